// Apiguard compares the public API of a module's last release, as its tag
// stands in git, with the tree in DIR, the top of its repository.
//
// It prints what changed and exits 0 when the next release may hold that, 1
// when it would break its users, 2 when it could not tell. An incompatible
// change is let through only if -next names a version that may break: a new
// major version, or, while the major version is 0, a new minor version. A
// module path with another major suffix (/v2) is a new module, compared with
// releases of that suffix only. Pre-release tags promise nothing.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("apiguard", flag.ContinueOnError)
	flags.SetOutput(stderr)
	next := flags.String("next", "", "`version` of the next release, if it may break the API")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: apiguard [-next vX.Y.Z] DIR")
		flags.PrintDefaults()
	}
	if flags.Parse(args) != nil {
		return 2
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	ok, err := guard(flags.Arg(0), *next, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "apiguard:", err)
		return 2
	case !ok:
		return 1
	}
	return 0
}
