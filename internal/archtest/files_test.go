package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrackedFiles(t *testing.T) {
	problems, err := CheckFiles(top(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestCheckFiles(t *testing.T) {
	around := t.TempDir()
	top := filepath.Join(around, "project")
	write := func(name string, data []byte) {
		t.Helper()
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("clean.txt", []byte("nothing of "+filepath.Base(around)+"\n"))
	write("own.txt", []byte("first line\nsee "+top+"/clean.txt\n"))
	write("docs/beside.md", []byte("see "+around+"/notes"))
	write("binary", []byte("\x00 "+top))
	write("limit", bytes.Repeat([]byte("x"), MaxFile))
	write("large", bytes.Repeat([]byte("x"), MaxFile+1))
	write("untracked.txt", []byte(top))

	want := []string{
		"docs/beside.md:1: names " + around + "/, a place of this machine",
		"large: 1048577 bytes, more than 1048576",
		"own.txt:2: names " + around + "/, a place of this machine",
	}
	untracked := "untracked.txt:1: names " + around + "/, a place of this machine"
	expect := func(when string, want []string) {
		t.Helper()
		got, err := CheckFiles(top)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("problems %s (-want +got):\n%s", when, diff)
		}
	}
	expect("without a repository", append(want[:len(want):len(want)], untracked))

	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", top}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	write("removed.txt", []byte(top))
	git("add", "--", "clean.txt", "own.txt", "docs", "binary", "limit", "large", "removed.txt")
	if err := os.Remove(filepath.Join(top, "removed.txt")); err != nil {
		t.Fatal(err)
	}
	expect("in a repository", want)
}

func TestWorkplace(t *testing.T) {
	for _, c := range []struct {
		top, text string
		named     bool
	}{
		{"/tmp/project", "run --log /tmp/run.log", false},
		{"/tmp/project", "cd /tmp/project && make", true},
		{"/tmp/project", "cd /tmp/projects", false},
		{"/usr/local/project", "/usr/local/bin", false},
		{"/project", "/dev/null", false},
		{"/project", "/project/x", true},
		{"/home/me/project", "/home/me/other", true},
		{"/home/me/project", "/home/mel/other", false},
		{"/home/me.x/project", "/home/mexx/other", false},
	} {
		if named := workplace(c.top).MatchString(c.text); named != c.named {
			t.Errorf("in %s, %q names a place of the machine: %v, want %v", c.top, c.text, named, c.named)
		}
	}
}
