package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// asProgram makes the test binary the program itself, for the tests that need a
// process.
const asProgram = "RUNFENCE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// result is what a command left behind.
type result struct {
	out, err string
	code     int
}

// shell runs commands of the program in this process.
type shell struct {
	environment
	env map[string]string
}

func newShell(rules *machine.Rules) *shell {
	s := &shell{env: map[string]string{}}
	s.stdin = strings.NewReader("")
	s.getenv = func(name string) string { return s.env[name] }
	s.rules = func() *machine.Rules { return rules }
	s.explored = lane
	s.interruptible = func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }
	return s
}

func (s *shell) run(args ...string) result {
	var out, err bytes.Buffer
	e := s.environment
	e.stderr = &err
	if e.stdout == nil {
		e.stdout = &out
	}
	code := execute(args, e)
	return result{out.String(), err.String(), code}
}

// pressRules are small rules that have every kind of row, so that what is
// printed of rules and logs does not change with package states.
func pressRules(t *testing.T) *machine.Rules {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "press.json"))
	require.NoError(t, err)
	defer f.Close()
	rules, err := machine.LoadRules(f)
	require.NoError(t, err)
	return rules
}

// pressDay makes a log of the press rules with every kind of record in it, two
// worlds, and operations that repeat.
func pressDay(t *testing.T, sink io.Writer, o translog.Options) {
	t.Helper()
	rules := pressRules(t)
	w, err := translog.NewWriter(sink, rules, o)
	require.NoError(t, err)
	var now int64
	world := func(name string) *machine.World {
		c := machine.Config{Name: name, Pools: map[string]int{"slot": 2}, Clock: func() int64 { now += 500; return now }}
		c.Recorder = w.World(name, c.Pools, 0)
		world, err := rules.NewWorld(c)
		require.NoError(t, err)
		return world
	}
	day, night := world("day"), world("night")
	press := func(w *machine.World, slot int) machine.Ref { return w.Ref(rules.Machine("press").ID(), slot) }
	event := rules.Machine("press").MustEvent
	enter := rules.Machine("hall").MustEvent("enter")
	hall := machine.Ref{Machine: rules.Machine("hall").ID()}

	day.ReserveIdentity("epoch", 100)
	day.Issue(press(day, 0), event("load"), 0)
	day.Issue(press(day, 0), event("load"), 7)
	for range 5 {
		day.Issue(press(day, 0), event("load"), 8)
	}
	day.Issue(press(day, 0), event("stroke"), 3)
	day.Issue(press(day, 0), event("kick"))
	day.Issue(press(day, 1), event("load"), 9)
	night.Issue(hall, enter)
	night.Issue(hall, enter)
	night.Issue(press(night, 1), event("load"), 1)
	day.Settle(press(day, 0), machine.Result{Value: 1})
	for day.Next(press(day, 0)) != nil {
	}
	day.Drop(press(day, 0))
	day.Issue(press(day, 1), event("stroke"), 9)
	day.Settle(press(day, 1), machine.Result{Outcome: machine.Failed, Accepted: true, Codes: machine.Codes{Code: 507018, Last: 507015}})
	day.Issue(press(day, 1), event("eject"))
	require.NoError(t, w.Close())
}

// alterDay makes logs in which something is not as it was recorded.
func alterDay(t *testing.T, dir string) {
	t.Helper()
	var day bytes.Buffer
	pressDay(t, &day, translog.Options{})
	// alter copies the log, each entry as f has it: any number of them.
	alter := func(name string, f func(e translog.Entry) []translog.Entry) {
		r, err := translog.NewReader(bytes.NewReader(day.Bytes()))
		require.NoError(t, err)
		out, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		enc, err := translog.NewEncoder(out, translog.Binary, r.Header())
		require.NoError(t, err)
		for {
			var e translog.Entry
			if err := r.Next(&e); err == io.EOF {
				break
			} else {
				require.NoError(t, err)
			}
			for _, x := range f(e) {
				require.NoError(t, enc.Encode(&x))
			}
		}
		require.NoError(t, enc.Flush())
		require.NoError(t, out.Close())
	}
	// one changes one record of the first world.
	one := func(name string, seq uint64, change func(e *translog.Entry) bool) {
		alter(name, func(e translog.Entry) []translog.Entry {
			if e.Kind == translog.RecordEntry && e.World == 0 && e.Record.Seq == seq && !change(&e) {
				return nil
			}
			return []translog.Entry{e}
		})
	}
	one("state.log", 14, func(e *translog.Entry) bool { e.Record.To = 0; return true })
	one("code.log", 19, func(e *translog.Entry) bool { e.Record.Result = machine.Result{Value: 1}; return true })
	one("foreign.log", 12, func(e *translog.Entry) bool { e.Record.Identity[0]++; return true })
	one("removed.log", 11, func(*translog.Entry) bool { return false })
	alter("gap.log", func(e translog.Entry) []translog.Entry {
		switch {
		case e.Kind == translog.EndEntry:
			e.End.Records, e.End.Dropped = e.End.Records-1, 1
		case e.Kind == translog.RecordEntry && e.World == 0 && e.Record.Seq == 11:
			e = translog.Entry{Kind: translog.GapEntry, Gap: translog.Gap{First: 11, Count: 1}}
		}
		return []translog.Entry{e}
	})
	var held []translog.Entry
	alter("swapped.log", func(e translog.Entry) []translog.Entry {
		if e.World == 0 && e.Kind == translog.RecordEntry && e.Record.Seq == 11 {
			held = append(held, e)
			return nil
		}
		out := append([]translog.Entry{e}, held...)
		held = nil
		return out
	})
	alter("unclosed.log", func(e translog.Entry) []translog.Entry {
		if e.Kind == translog.EndEntry || e.Kind == translog.RecordEntry && e.World == 0 && e.Record.Seq >= 20 {
			return nil
		}
		return []translog.Entry{e}
	})
	alter("named.log", func(e translog.Entry) []translog.Entry {
		if e.Kind == translog.WorldEntry {
			e.Opened.Name = "\x1b[2Jcleared\n" + e.Opened.Name
		}
		return []translog.Entry{e}
	})
}

// strangeDay makes a log of what no sound world records, and of what few do:
// numbers without a name, a hole, call sites, times of a clock on a wall.
func strangeDay(t *testing.T, dir string) {
	t.Helper()
	rules := pressRules(t)
	h, err := translog.HeaderOf(rules)
	require.NoError(t, err)
	press := machine.Ref{Machine: rules.Machine("press").ID(), Slot: 1, Gen: 3}
	seq := uint64(0)
	record := func(r machine.Record) translog.Entry {
		seq++
		r.Seq, r.Time = seq, 1700000000123456789
		return translog.Entry{Kind: translog.RecordEntry, Record: r, Site: "host.go:12"}
	}
	none := machine.Record{Row: machine.NoRowID, Call: machine.NoCall, Reason: machine.NoReasonID}
	hole := none
	hole.Kind, hole.Ref, hole.Root, hole.Event, hole.By, hole.Refusal = machine.Holed, press, press, 1, machine.Ref{}, machine.ByJoint
	nobody := none
	nobody.Ref, nobody.Root, nobody.Event = machine.Ref{Machine: 77, Slot: 5, Gen: 6}, machine.Ref{Machine: 77, Slot: 5, Gen: 6}, 88
	nothing := none
	nothing.Ref, nothing.Root, nothing.Event, nothing.From, nothing.To = press, press, 88, 88, 89
	lost := none
	lost.Kind, lost.Ref, lost.Root, lost.Event = machine.Settled, press, press, 1
	f, err := os.Create(filepath.Join(dir, "strange.log"))
	require.NoError(t, err)
	enc, err := translog.NewEncoder(f, translog.Binary, h)
	require.NoError(t, err)
	for _, e := range []translog.Entry{
		{Kind: translog.WorldEntry, Opened: translog.World{Name: "strange", Pools: map[string]int{"slot": 9}}},
		{Kind: translog.WorldEntry, World: 1, Opened: translog.World{Name: "idle"}},
		record(hole), record(nobody), record(nothing), record(lost),
		{Kind: translog.RepeatEntry, Repeat: translog.Repeat{First: 5, Length: 2, Count: 3}},
		{Kind: translog.GapEntry, Gap: translog.Gap{First: 11, Count: 5}},
	} {
		require.NoError(t, enc.Encode(&e))
	}
	require.NoError(t, enc.Flush())
	require.NoError(t, f.Close())

	lamp := machine.MustCompile(&machine.Definition{
		Name: "lamp", States: []machine.State{{Name: "on"}}, Events: []machine.Event{{Name: "blink"}},
		Rows: []machine.Row{{ID: "blink", From: "on", Event: "blink", Then: []machine.Target{{}}}},
	})
	f, err = os.Create(filepath.Join(dir, "lamp.log"))
	require.NoError(t, err)
	w, err := translog.NewWriter(f, lamp, translog.Options{})
	require.NoError(t, err)
	w.World("lamp", nil, 0)
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// at counts from the end if it is negative.
func at(t *testing.T, text string, size int) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	if n < 0 {
		n += size
	}
	require.True(t, n >= 0 && n <= size, "%s of %d bytes", text, size)
	return n
}

// TestCommands runs the scripts in testdata/cli, in a directory that has
// day.log and day.jsonl, the log of a day with presses, others made of it, their
// rules, others made of them, and the scenarios of testdata/scenarios.
//
//	sh [tty] [width=N] [NAME=VALUE]    runs the lines below, each a command of the
//	                                   program; < and > are files
//	file name=NAME                     makes a file of the lines below
//	cut from=A to=B at=N               makes a file of the first N bytes of another
//	flip from=A to=B at=N              changes the byte at N
func TestCommands(t *testing.T) {
	rules := pressRules(t)
	dir := t.TempDir()
	for name, format := range map[string]translog.Format{"day.log": translog.Binary, "day.jsonl": translog.JSONLines} {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		pressDay(t, f, translog.Options{Format: format})
		require.NoError(t, f.Close())
	}
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txt"))
	require.NoError(t, err)
	for _, name := range append(files, filepath.Join("testdata", "press.json"), filepath.Join("testdata", "small.json")) {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), content, 0o600))
	}
	alterDay(t, dir)
	strangeDay(t, dir)
	scripts, err := filepath.Abs(filepath.Join("testdata", "cli"))
	require.NoError(t, err)
	t.Chdir(dir)
	datadriven.Walk(t, scripts, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var name, from, to, where string
			switch d.Cmd {
			case "sh":
				return sh(t, rules, d)
			case "file":
				d.ScanArgs(t, "name", &name)
				require.NoError(t, os.WriteFile(name, []byte(d.Input+"\n"), 0o600))
				return ""
			case "cut", "flip":
				d.ScanArgs(t, "from", &from)
				d.ScanArgs(t, "to", &to)
				d.ScanArgs(t, "at", &where)
				b, err := os.ReadFile(from)
				require.NoError(t, err)
				n := at(t, where, len(b))
				if d.Cmd == "cut" {
					b = b[:n]
				} else {
					b[n] ^= 0x55
				}
				require.NoError(t, os.WriteFile(to, b, 0o600))
				return ""
			}
			t.Fatalf("%s: unknown directive %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

// sh runs command lines and returns what they print: the output, the error
// output behind an exclamation mark, and the exit code if it is not 0.
func sh(t *testing.T, rules *machine.Rules, d *datadriven.TestData) string {
	s := newShell(rules)
	for _, a := range d.CmdArgs {
		switch {
		case a.Key == "tty":
			s.terminal = true
		case a.Key == "width":
			a.Scan(t, 0, &s.width)
		default:
			s.env[a.Key] = strings.Join(a.Vals, ",")
		}
	}
	var all strings.Builder
	for line := range strings.Lines(d.Input) {
		words := words(line)
		require.Equal(t, "runfence", words[0], "%s", d.Pos)
		args := words[1:]
		s.stdin, s.stdout = strings.NewReader(""), nil
		var file *os.File
		if n := len(args) - 2; n >= 0 && args[n] == ">" {
			var err error
			file, err = os.Create(args[n+1])
			require.NoError(t, err)
			s.stdout, args = file, args[:n]
		}
		if n := len(args) - 2; n >= 0 && args[n] == "<" {
			in, err := os.ReadFile(args[n+1])
			require.NoError(t, err)
			s.stdin, args = bytes.NewReader(in), args[:n]
		}
		r := s.run(args...)
		if file != nil {
			require.NoError(t, file.Close())
		}
		all.WriteString(strings.ReplaceAll(r.out, "\x1b", "^"))
		for l := range strings.Lines(r.err) {
			all.WriteString("! " + l)
		}
		if r.code != 0 {
			fmt.Fprintf(&all, "exit %d\n", r.code)
		}
	}
	return strings.ReplaceAll(all.String(), rules.Hash().String(), "HASH")
}

// words splits a command line; single and double quotes keep spaces.
func words(line string) []string {
	var out []string
	var word strings.Builder
	quote, any := rune(0), false
	for _, c := range strings.TrimRight(line, "\n") + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, any = c, true
		case quote == 0 && c == ' ':
			if any {
				out = append(out, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(c)
			any = true
		}
	}
	return out
}
