package standin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Variant is a way to build the driver.
type Variant struct {
	// Sanitizer is "none", "address" or "thread".
	Sanitizer string
	// Hide lists functions that the library shall lack.
	Hide []string
	// Major is the major version of its interface; 0 means 1.
	Major int
	// Runtime puts the functions whose names begin with rt into a library of
	// their own beside it.
	Runtime bool
}

// Build builds a driver in a directory, with the system's compiler, and returns
// the library's file.
func Build(dir string, v Variant) (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("standin: where the sources are is not known")
	}
	sources := filepath.Join(filepath.Dir(here), "..", "..", "testdata")
	files, err := filepath.Glob(filepath.Join(sources, "standin", "*.c"))
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	lib := filepath.Join(dir, "libascendcl.so")
	flags := []string{"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread"}
	switch v.Sanitizer {
	case "address", "thread":
		flags = append(flags, "-fsanitize="+v.Sanitizer, "-fno-omit-frame-pointer")
	}
	args := append(slices.Clone(flags), "-o", lib)
	if v.Major != 0 {
		args = append(args, fmt.Sprintf("-DSTANDIN_MAJOR=%d", v.Major))
	}
	if len(v.Hide) > 0 {
		script := filepath.Join(dir, "hide.map")
		if err := os.WriteFile(script, []byte("{ local: "+strings.Join(v.Hide, "; ")+"; };\n"), 0o600); err != nil {
			return "", err
		}
		args = append(args, "-Wl,--version-script="+script)
	}
	if err := compile(append(args, files...)); err != nil {
		return "", err
	}
	if v.Runtime {
		args := append(slices.Clone(flags), "-o", filepath.Join(dir, "libruntime.so"), filepath.Join(sources, "runtime", "runtime.c"),
			lib, "-Wl,-rpath,"+dir)
		if err := compile(args); err != nil {
			return "", err
		}
	}
	return lib, nil
}

func compile(args []string) error {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	out, err := exec.Command(cc, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("standin: %s: %w\n%s", cc, err, out)
	}
	return nil
}
