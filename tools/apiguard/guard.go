package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// guard reports whether the next release of the module in dir may hold what
// changed since the last one.
func guard(dir, next string, out io.Writer) (bool, error) {
	if next != "" && !semver.IsValid(next) {
		return false, fmt.Errorf("-next %q is no version", next)
	}
	path, err := modulePath(dir)
	if err != nil {
		return false, err
	}
	last, err := lastRelease(dir, path)
	if err != nil {
		return false, err
	}
	if last == "" {
		fmt.Fprintf(out, "apiguard: no release of %s is tagged yet: nothing to compare with\n", path)
		return true, nil
	}
	before, err := atTag(dir, last)
	if err != nil {
		return false, err
	}
	after, err := load(dir)
	if err != nil {
		return false, err
	}
	return judge(out, last, next, apidiff.ModuleChanges(before, after)), nil
}

// judge prints the changes since the release last and reports whether the
// release next may hold them.
func judge(out io.Writer, last, next string, changes apidiff.Report) bool {
	breaks := slices.ContainsFunc(changes.Changes, func(c apidiff.Change) bool { return !c.Compatible })
	fmt.Fprintf(out, "apiguard: changes of the public API since %s: %d\n%s", last, len(changes.Changes), changes)
	switch {
	case !breaks:
		return true
	case mayBreak(last, next):
		fmt.Fprintf(out, "apiguard: %s may break the API of %s\n", next, last)
		return true
	}
	fmt.Fprintf(out, "apiguard: this breaks users of %s; restore the API or announce a release that may break it (-next)\n", last)
	return false
}

// mayBreak reports whether semantic versioning lets the release next break the
// API of the release last.
func mayBreak(last, next string) bool {
	if semver.Compare(next, last) <= 0 {
		return false
	}
	if semver.Major(last) != "v0" {
		return semver.Major(next) != semver.Major(last)
	}
	return semver.MajorMinor(next) != semver.MajorMinor(last)
}

func modulePath(dir string) (string, error) {
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	path := modfile.ModulePath(data)
	if path == "" {
		return "", fmt.Errorf("%s names no module", name)
	}
	return path, nil
}

// lastRelease is the highest release tag of the module path that this tree
// descends from, or none.
func lastRelease(dir, path string) (string, error) {
	_, major, ok := module.SplitPathVersion(path)
	if !ok {
		return "", fmt.Errorf("bad module path %q", path)
	}
	tags, err := git(dir, "tag", "--list", "v*", "--merged", "HEAD")
	if err != nil {
		return "", err
	}
	last := ""
	for _, tag := range strings.Fields(tags) {
		release := semver.Canonical(tag) == tag && semver.Prerelease(tag) == ""
		if release && module.CheckPathMajor(tag, major) == nil && semver.Compare(tag, last) > 0 {
			last = tag
		}
	}
	return last, nil
}

// atTag loads the module as it stood at the tag, from a work tree that is gone
// when it returns.
func atTag(dir, tag string) (_ *apidiff.Module, err error) {
	temp, err := os.MkdirTemp("", "apiguard-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	tree := filepath.Join(temp, tag)
	if _, err := git(dir, "worktree", "add", "--quiet", "--detach", tree, tag); err != nil {
		return nil, err
	}
	defer func() {
		_, gone := git(dir, "worktree", "remove", "--force", tree)
		err = errors.Join(err, gone)
	}()
	return load(tree)
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out), nil
}
