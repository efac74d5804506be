package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MaxFile is the size in bytes above which a file does not belong in the
// repository.
const MaxFile = 1 << 20

// CheckFiles holds the files of the repository at top against two rules: none
// is larger than [MaxFile], and no text file names a place of the machine that
// it was written on, which here is the repository or the directory around it.
func CheckFiles(top string) (problems []string, err error) {
	names, err := tracked(top)
	if err != nil {
		return nil, err
	}
	places := workplace(top)
	for _, name := range names {
		path := filepath.Join(top, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and the removal is not committed yet
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if info.Size() > MaxFile {
			problems = append(problems, fmt.Sprintf("%s: %d bytes, more than %d", name, info.Size(), MaxFile))
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if binary := bytes.IndexByte(data, 0) >= 0; binary {
			continue
		}
		if at := places.FindIndex(data); at != nil {
			line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
			problems = append(problems, fmt.Sprintf("%s:%d: names %s, a place of this machine", name, line, data[at[0]:at[1]]))
		}
	}
	return problems, nil
}

// tracked lists the files of the repository; where there is none, as in a
// released module, those of the tree.
func tracked(top string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
		out, err := exec.Command("git", "-C", top, "ls-files", "-z").Output()
		if err != nil {
			return nil, fmt.Errorf("git ls-files in %s: %w", top, err)
		}
		return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(s string) bool { return s == "" }), nil
	}
	var names []string
	err := fs.WalkDir(os.DirFS(top), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// everywhere matches directories that any machine has, so that a repository
// cloned right into one says nothing about where its files were written.
var everywhere = regexp.MustCompile(`^/((tmp|home|opt|srv|mnt|src|var|usr|usr/local|usr/src|var/tmp)/?)?$`)

func workplace(top string) *regexp.Regexp {
	place := regexp.QuoteMeta(top) + `\b`
	if parent := filepath.Dir(top); !everywhere.MatchString(parent) {
		place = regexp.QuoteMeta(parent) + `/`
	}
	return regexp.MustCompile(place)
}
