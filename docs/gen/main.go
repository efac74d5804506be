// Command gen writes the generated parts of docs/: a page for each lifecycle,
// from its Definition and a text beside it; the page of what must hold, from the
// catalogue of invariants; the code in docs/embedding.md, from the Examples that
// run it; and in docs/coverage.md the scenarios of each clause, from what they say
// that they prove.
//
//	go run ./docs/gen          write what is out of date
//	go run ./docs/gen -check   name what is out of date, write nothing, exit 1
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	check := flag.Bool("check", false, "name what is out of date and write nothing")
	flag.Parse()
	root, err := top()
	if err == nil {
		err = run(root, *check, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs/gen:", err)
		os.Exit(1)
	}
}

// errStale ends a check that found something.
var errStale = errors.New("out of date: run make docs")

// run writes the files that are out of date below root, or, with check, names
// them and returns errStale.
func run(root string, check bool, out io.Writer) error {
	files, err := generate(os.DirFS(root))
	if err != nil {
		return err
	}
	stale := false
	for _, name := range sorted(files) {
		path := filepath.Join(root, filepath.FromSlash(name))
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		want := files[name]
		if want == nil { // a page of a lifecycle that is gone
			if err == nil {
				stale = true
				fmt.Fprintln(out, name, "(of no lifecycle)")
				if !check {
					err = os.Remove(path)
				}
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if bytes.Equal(old, want) {
			continue
		}
		stale = true
		fmt.Fprintln(out, name)
		if check {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, want, 0o666); err != nil {
			return err
		}
	}
	if check && stale {
		return errStale
	}
	return nil
}

// top finds the top of the repository, from the working directory up.
func top() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
