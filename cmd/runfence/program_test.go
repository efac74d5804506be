package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/states"
)

// TestDemo holds the demonstration to what it promises: two runs, a fault in
// one, both retired, a log that replays; and answers that are those of the file.
func TestDemo(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newShell(states.Rules())
	r := s.run("run", "--log", "demo.log")
	require.Equal(t, result{out: r.out}, r)
	for _, want := range []string{
		"┌ kernel core", "└ kernel cpu ends,", "507018",
		"run 1  slot 0       succeeded; finalized at ",
		"run 2  slot 0       faulted: the device reports 507018 AICPU_EXCEPTION; finalized at ",
		"replayed: it holds; kept in demo.log\n",
	} {
		require.Contains(t, r.out, want)
	}
	for l := range strings.Lines(r.out) {
		require.LessOrEqual(t, width(l), 101, "%s", l)
	}
	again := s.run("replay", "demo.log")
	require.Equal(t, 0, again.code)
	require.Contains(t, again.out, "runs     2: 1 faulted, 1 succeeded\n")

	require.NoError(t, os.WriteFile("demo.txt", demo, 0o600))
	checked := s.run("run", "--check", "demo.txt")
	require.Equal(t, 0, checked.code, checked.out)
}

// TestRunLog: what a scenario records can be kept, in either encoding, and is
// the same each time.
func TestRunLog(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("one.txt", []byte("open\nprepare a\nlaunch a\nwait a\nfinalize a\n"), 0o600))
	s := newShell(states.Rules())
	for _, name := range []string{"one.log", "one.jsonl"} {
		r := s.run("run", "one.txt", "--log", name)
		require.Equal(t, 0, r.code, r.err)
		require.Contains(t, r.out, "kept in "+name)
	}
	piped := s.run("run", "one.txt", "--log", "-")
	kept, err := os.ReadFile("one.log")
	require.NoError(t, err)
	require.Equal(t, string(kept), piped.out, "the log has standard output to itself")
	require.Equal(t, s.run("log", "cat", "one.log"), s.run("log", "cat", "one.jsonl"))
	cat := s.run("log", "cat", "one.log", "--machine", "run", "--run", "1")
	require.Regexp(t, `(?s)run\[0\] .*  begin\(.*launching\(.*drained\(.*finalized\(.*dropped in finalized`, cat.out)
	require.NotContains(t, cat.out, "launch[0]")
	require.Equal(t, 0, s.run("replay", "one.jsonl").code)
}

// TestVerdicts: what became of a run is told by what the rules came to.
// TestRunLogOfPatchedRules: the log of a scenario that changes the rules bears
// their hash, and replays with the same changes and with no others.
func TestRunLogOfPatchedRules(t *testing.T) {
	sh := newShell(states.Rules())
	dir := t.TempDir()
	file, log := filepath.Join(dir, "p.txt"), filepath.Join(dir, "p.log")
	script := "patch run/drained: to launched\nopen\nprepare a\nlaunch a\nwait a\nstate run[a]\n"
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	require.Equal(t, 0, sh.run("run", "--rewrite", file).code)
	require.Equal(t, result{out: "ok    " + file + ", 1 block\n"}, sh.run("run", "--check", file))
	got := sh.run("run", "--log", log, file)
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "replayed: it holds")

	require.Contains(t, sh.run("replay", log).err, "machine run changed")
	got = sh.run("replay", log, "--patch", "run/drained: to launched")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "holds: every record")
	got = sh.run("replay", log, "--patch", "run/drained: to lunched")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, `--patch: run/drained: to lunched: unknown state of run "lunched": did you mean "launched"?`)
	require.Contains(t, sh.run("replay", log, "--patch", "run").err, "--patch: \"run\": want MACHINE/ROW")
}

func TestVerdicts(t *testing.T) {
	t.Chdir(t.TempDir())
	for script, want := range map[string]string{
		"open\nprepare a\nlaunch a\nwait a\nfinalize a\n":                                                "run 1  slot 0 +succeeded; finalized at 50us\n",
		"open\nprepare a\nlaunch a\n":                                                                    "run 1  slot 0 +undecided; left launched at 0s\n",
		"fault SubmitAICPU kernel-fatal code=507018\nopen\nprepare a\nlaunch a\nwait a\n":                "run 1  slot 0 +faulted: the device reports 507018 AICPU_EXCEPTION; left drained at 50us\n",
		"fault RecordEvent fail-after code=507000\nopen\nprepare a\nlaunch a\n":                          "run 1  slot 0 +undecided, the launch reported 507000 INTERNAL_ERROR; left partial at 0s\n",
		"lane one\nopen\nprepare a\nlaunch a\nlane two\nopen\nprepare b\nlaunch b\nwait b\nfinalize b\n": "(?s)run 1  one slot 0 +undecided;.*run 1  two slot 0 +succeeded;",
	} {
		require.NoError(t, os.WriteFile("one.txt", []byte(script), 0o600))
		r := newShell(states.Rules()).run("run", "one.txt")
		require.Equal(t, 0, r.code, r.err)
		require.Regexp(t, want, r.out)
	}
}

// failing is an output that takes so many bytes, and then fails.
type failing struct {
	takes int
	err   error
}

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.takes {
		n := f.takes
		f.takes = 0
		return n, f.err
	}
	f.takes -= len(p)
	return len(p), nil
}

// TestClosedOutput: a reader that went away is nobody's error, and what was
// found still counts.
func TestClosedOutput(t *testing.T) {
	dir := t.TempDir()
	alterDay(t, dir)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer writer.Close()
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"log", "cat", filepath.Join(dir, "named.log")}, 0},
		{[]string{"replay", filepath.Join(dir, "named.log")}, 0},
		{[]string{"replay", filepath.Join(dir, "state.log")}, 1},
		{[]string{"log", "convert", filepath.Join(dir, "named.log"), "-"}, 0},
		{[]string{"explain", "press"}, 0},
		{[]string{"help"}, 0},
	} {
		s := newShell(pressRules(t))
		s.stdout = writer
		require.Equal(t, result{code: c.code}, s.run(c.args...), "%q", c.args)
	}
}

// TestBrokenOutput: an output that fails is told, once.
func TestBrokenOutput(t *testing.T) {
	for _, takes := range []int{0, 100} {
		s := newShell(states.Rules())
		s.stdout = &failing{takes: takes, err: syscall.ENOSPC}
		r := s.run("explain", "fence")
		require.Equal(t, result{err: "runfence: cannot write the output: no space left on device\n", code: 2}, r)
	}
}

// endless is a log that goes on for ever.
type endless struct{ head, body []byte }

func (e *endless) Read(p []byte) (int, error) {
	if len(e.head) == 0 {
		e.head = e.body
	}
	n := copy(p, e.head)
	e.head = e.head[n:]
	return n, nil
}

// TestCatStops: once nobody reads, nothing more is read.
func TestCatStops(t *testing.T) {
	var log bytes.Buffer
	pressDay(t, &log, translog.Options{Format: translog.JSONLines})
	lines := bytes.SplitAfter(log.Bytes(), []byte("\n"))
	var body []byte
	for _, l := range lines {
		if bytes.HasPrefix(l, []byte(`{"kind":"refuse"`)) {
			body = append(body, l...)
		}
	}
	head := bytes.Join(lines[:5], nil) // the header and the worlds
	s := newShell(pressRules(t))
	s.stdin = &endless{head, body}
	s.stdout = &failing{takes: 1 << 20, err: syscall.EPIPE}
	r := s.run("log", "cat", "-")
	// A log that was not read to its end is not known to be incomplete.
	require.Equal(t, result{}, r)
}

// TestUnreadableInput: a file that fails while it is read is told with its name.
func TestUnreadableInput(t *testing.T) {
	var log bytes.Buffer
	pressDay(t, &log, translog.Options{})
	for _, args := range [][]string{{"log", "cat", "-"}, {"replay", "-"}, {"log", "stat", "-"}, {"run", "-"}} {
		s := newShell(pressRules(t))
		whole := log.Bytes()
		s.stdin = io.MultiReader(bytes.NewReader(whole[:len(whole)-50]), &broken{errors.New("the disk is gone")})
		r := s.run(args...)
		require.Equal(t, 2, r.code, "%q", args)
		require.Contains(t, r.err, "runfence: standard input: ", "%q", args)
		require.Contains(t, r.err, "the disk is gone", "%q", args)
	}
}

type broken struct{ err error }

func (b *broken) Read([]byte) (int, error) { return 0, b.err }

// TestProcess runs the program as a process of its own.
func TestProcess(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	alterDay(t, dir)
	program := func(args ...string) *exec.Cmd {
		c := exec.Command(self, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), asProgram+"=1", "GOCOVERDIR="+dir)
		return c
	}
	code := func(err error) int {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		require.NoError(t, err)
		return 0
	}
	out, err := program("run").Output()
	require.Equal(t, 0, code(err))
	require.Contains(t, string(out), "run 2  slot 0       faulted")
	require.NotContains(t, string(out), "\x1b", "a pipe is no terminal")

	var complaint bytes.Buffer
	c := program("replay", "state.log", "--rules", "missing.json")
	c.Stderr = &complaint
	require.Equal(t, 2, code(c.Run()))
	require.Equal(t, "runfence: missing.json: no such file or directory\n", complaint.String())

	// A pipe that nobody reads from does not kill it.
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer writer.Close()
	complaint.Reset()
	c = program("explain", "fence")
	c.Stdout, c.Stderr = writer, &complaint
	require.Equal(t, 0, code(c.Run()))
	require.Empty(t, complaint.String())

	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return // only some systems have one
	}
	require.NoError(t, err)
	defer full.Close()
	c = program("explain", "fence")
	c.Stdout, c.Stderr = full, &complaint
	require.Equal(t, 2, code(c.Run()))
	require.Contains(t, complaint.String(), "cannot write the output: ")

	// A finding stays one, though nobody can read what it is.
	complaint.Reset()
	c = program("doctor", "--acl-lib", "/nonexistent.so")
	c.Stdout, c.Stderr = full, &complaint
	require.Equal(t, 1, code(c.Run()))
	require.Contains(t, complaint.String(), "cannot write the output: ")
}

func TestVersion(t *testing.T) {
	s := newShell(states.Rules())
	s.build = &debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
			{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
			{Key: "vcs.modified", Value: "true"},
		},
	}
	require.Equal(t, "runfence v1.2.3, revision 0123456789ab modified of 2026-01-02T03:04:05Z, go1.26.0\n", s.run("--version").out)
	out := s.run("version", "--json").out
	for _, want := range []string{`"version": "v1.2.3"`, `"modified": true`, `"rules": "` + states.Rules().Hash().String() + `"`} {
		require.Contains(t, out, want)
	}
}

// TestHelp: every command says what it does, with examples that name it.
func TestHelp(t *testing.T) {
	s := newShell(states.Rules())
	a := &app{environment: s.environment, out: newOutput(io.Discard)}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Name() == "completion" || c.Parent() != nil && c.Parent().Name() == "completion" {
			return // cobra's own
		}
		path := c.CommandPath()
		require.NotEmpty(t, c.Short, path)
		require.NotEmpty(t, c.Long, path)
		require.Contains(t, c.Example, "runfence ", path)
		if c.HasParent() && c.Name() != "help" {
			require.Contains(t, c.Example, path, path)
		}
		for l := range strings.Lines(c.Long + "\n" + c.Example) {
			require.LessOrEqual(t, width(strings.TrimRight(l, "\n")), 82, "%s: %s", path, l)
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(a.root(nil))
}

func TestCompletion(t *testing.T) {
	rules := pressRules(t)
	t.Chdir(t.TempDir())
	const nothing = ":4" // no more words, and no files
	complete := func(args ...string) []string {
		r := newShell(rules).run(append([]string{"__complete"}, args...)...)
		require.Equal(t, 0, r.code, r.err)
		return strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	}
	require.Equal(t, []string{"hall\tThe hall that the presses stand in.", "press\tOne press, which works on one run at a time. It is loaded, does one stroke, and is emptied; what gets stuck stays where it is for ever.", nothing}, complete("explain", ""))
	require.Equal(t, []string{"idle\tNothing is in it.", "just loaded\tA run is in it, and waits for its stroke.", "done\tThe stroke is done.", "empty\tThe run is out.", "jammed\tSomething is stuck in it.", nothing}, complete("explain", "press", ""))
	// Those that the state has rows for; the shell picks those that begin as typed.
	require.Equal(t, []string{"load\tPut a run in.", "stroke\tPress.", "kick\tLose patience.", nothing}, complete("explain", "press", "just loaded", ""))
	require.Equal(t, []string{"kick\tLose patience.", nothing}, complete("explain", "press", "just-loaded>stroke", ""))
	for _, args := range [][]string{
		{"explain", "press", "done", "eject", ""},
		{"explain", "prss", ""},
		{"explain", "press", "idel", ""},
		{"explain", "--rules", "missing.json", ""},
		{"version", ""},
	} {
		require.Equal(t, []string{nothing}, complete(args...), "%q", args)
	}
	require.Equal(t, []string{"auto", "always", "never", nothing}, complete("--color", ""))
	require.Equal(t, []string{"binary", "json", nothing}, complete("log", "convert", "--to", ""))
	require.Equal(t, []string{"hall", "press", nothing}, complete("log", "cat", "--machine", ""))
	require.Equal(t, []string{"txt", ":8"}, complete("run", "")) // files of that name
	require.Equal(t, []string{"cat\tPrint a log, a line for each record", "convert\tCopy a log from one encoding to the other", nothing}, complete("log", "c"))
	require.Equal(t, []string{"cat", "convert", "stat", nothing}, complete("help", "log", ""))
	for _, shell := range []string{"bash", "fish", "zsh", "powershell"} {
		r := newShell(rules).run("completion", shell)
		require.Equal(t, 0, r.code)
		require.Contains(t, r.out, "__complete")
	}
}

func TestText(t *testing.T) {
	s := style{on: true}
	require.Equal(t, 5, width(s.red("a▸b")+"cd"))
	require.Equal(t, 1, width("a\x1b[31"), "an escape without an end ends the text")
	require.Equal(t, []string{"aa", "b " + s.green("c"), "dddd"}, wrap("aa b "+s.green("c")+"\n dddd", 3))
	require.Equal(t, []string{""}, wrap(" \n", 3))
	require.Equal(t, "a\ufffd[2Jb\ufffd\ufffd", printable("a\x1b[2Jb\n\u009b"))
}
