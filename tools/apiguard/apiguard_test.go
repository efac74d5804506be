package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// files is a tree: path to content.
type files map[string]string

func goModule(path string, more files) files {
	tree := files{"go.mod": "module " + path + "\n\ngo 1.26\n"}
	for name, text := range more {
		tree[name] = text
	}
	return tree
}

const v1API = `package api

type T struct{ A int }

func F(a int) T { return T{a} }
`

// repository commits trees one after another, each under its tag, if it has one.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) *repository {
	r := &repository{t, t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// write replaces the work tree.
func (r *repository) write(tree files) {
	r.t.Helper()
	r.git("rm", "-r", "-q", "--force", "--ignore-unmatch", ".")
	for name, text := range tree {
		name = filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", "--all")
}

func (r *repository) commit(tree files, tag string) {
	r.t.Helper()
	r.write(tree)
	r.git("commit", "--quiet", "--allow-empty", "--message=step")
	if tag != "" {
		r.git("tag", tag)
	}
}

func (r *repository) guard(args ...string) (code int, output string) {
	r.t.Helper()
	var out bytes.Buffer
	code = run(append(args, r.dir), &out, &out)
	if trees := r.git("worktree", "list"); strings.Count(trees, "\n") != 1 {
		r.t.Errorf("a work tree is left behind:\n%s", trees)
	}
	return code, out.String()
}

func TestGuard(t *testing.T) {
	const path = "example.org/m"
	broken := strings.Replace(v1API, "a int", "a int, b string", 1)
	wider := v1API + "\nfunc G() {}\n"
	for _, c := range []struct {
		name     string
		tag      string
		old, new files
		next     string
		code     int
		want     string
	}{
		{"unchanged", "v0.1.0", files{"api/api.go": v1API}, files{"api/api.go": v1API}, "", 0, "since v0.1.0: 0"},
		{"compatible", "v0.1.0", files{"api/api.go": v1API}, files{"api/api.go": wider}, "", 0, "Compatible changes:\n- ./api.G: added"},
		{"incompatible", "v0.1.0", files{"api/api.go": v1API}, files{"api/api.go": broken}, "", 1, "- ./api.F: changed"},
		{"package removed", "v1.2.3", files{"a.go": "package m", "api/api.go": v1API}, files{"a.go": "package m"}, "", 1, "package example.org/m/api: removed"},
		{"announced minor of v0", "v0.1.0", files{"api/api.go": v1API}, files{"api/api.go": broken}, "v0.2.0", 0, "v0.2.0 may break the API of v0.1.0"},
		{"announced patch of v0", "v0.1.0", files{"api/api.go": v1API}, files{"api/api.go": broken}, "v0.1.1", 1, "- ./api.F: changed"},
		{"announced v1", "v0.1.0", files{"api/api.go": v1API}, files{"api/api.go": broken}, "v1.0.0", 0, "v1.0.0 may break"},
		{"announced minor of v1", "v1.0.0", files{"api/api.go": v1API}, files{"api/api.go": broken}, "v1.1.0", 1, "- ./api.F: changed"},
		{"announcement already released", "v0.2.0", files{"api/api.go": v1API}, files{"api/api.go": broken}, "v0.2.0", 1, "- ./api.F: changed"},
		{"announcement older than the release", "v1.0.0", files{"api/api.go": v1API}, files{"api/api.go": broken}, "v0.9.0", 1, "- ./api.F: changed"},
		{
			"internal and main packages promise nothing", "v1.0.0",
			files{"internal/api/api.go": v1API, "cmd/c/main.go": "package main\n\nfunc Exported() {}\n\nfunc main() {}\n", "api/api.go": v1API},
			files{"api/api.go": v1API},
			"", 0, "since v1.0.0: 0",
		},
		{"a tag that does not compile", "v1.0.0", files{"api/api.go": "package api\n\nvar X undefined\n"}, files{"api/api.go": v1API}, "", 2, "undefined"},
		{"a tree that does not compile", "v1.0.0", files{"api/api.go": v1API}, files{"api/api.go": "package api\n\nvar X undefined\n"}, "", 2, "undefined"},
		{"announcement is no version", "v1.0.0", files{"api/api.go": v1API}, files{"api/api.go": v1API}, "2.0", 2, "no version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepository(t)
			r.commit(goModule(path, c.old), c.tag)
			r.write(goModule(path, c.new)) // not committed: the guard reads the tree as it is
			code, out := r.guard("-next", c.next)
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %d; output, which must contain %q:\n%s", code, c.code, c.want, out)
			}
		})
	}
}

func TestNoTag(t *testing.T) {
	const notice = "no release of example.org/m is tagged yet"
	r := newRepository(t)
	r.commit(goModule("example.org/m", files{"api/api.go": v1API}), "")
	if code, out := r.guard(); code != 0 || !strings.Contains(out, notice) {
		t.Errorf("exit code %d without a tag:\n%s", code, out)
	}
	for _, tag := range []string{"nightly", "v1", "v1.0.0-rc.1", "v2.0.0"} {
		r.git("tag", tag)
	}
	if code, out := r.guard(); code != 0 || !strings.Contains(out, notice) {
		t.Errorf("exit code %d without a release tag of this module:\n%s", code, out)
	}
}

// The last release is the highest version, not the latest tag nor the last in
// the alphabet, and only of the history that this tree has.
func TestLastRelease(t *testing.T) {
	r := newRepository(t)
	tree := goModule("example.org/m", files{"api/api.go": v1API})
	r.commit(tree, "v0.10.0")
	r.commit(tree, "v0.9.1")
	r.git("switch", "--quiet", "--create", "other")
	r.commit(tree, "v0.11.0")
	r.git("switch", "--quiet", "main")
	if last, err := lastRelease(r.dir, "example.org/m"); err != nil || last != "v0.10.0" {
		t.Errorf("last release %q, error %v", last, err)
	}
}

func TestMajorSuffixIsANewModule(t *testing.T) {
	r := newRepository(t)
	r.commit(goModule("example.org/m", files{"api/api.go": v1API}), "v1.0.0")
	r.write(goModule("example.org/m/v2", files{"api/api.go": "package api\n"}))
	if code, out := r.guard(); code != 0 || !strings.Contains(out, "no release of example.org/m/v2") {
		t.Errorf("exit code %d for a new major version:\n%s", code, out)
	}
	r.commit(goModule("example.org/m/v2", files{"api/api.go": v1API}), "v2.0.0")
	r.write(goModule("example.org/m/v2", files{"api/api.go": "package api\n"}))
	if code, out := r.guard(); code != 1 || !strings.Contains(out, "since v2.0.0") {
		t.Errorf("exit code %d for a break within v2:\n%s", code, out)
	}
}

func TestWrongUse(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{nil, {"a", "b"}, {"-bogus", "."}, {t.TempDir()}} {
		if code := run(args, &out, &out); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
	}
}
