package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/states"
)

// optionsForTest are those that Run fills in.
func optionsForTest() Options {
	var o Options
	if err := o.fill("", nil); err != nil {
		panic(err)
	}
	return o
}

// play runs a script without answers and returns what it answered.
func play(t *testing.T, script string, o Options) (string, error) {
	t.Helper()
	r, err := Run("t.txt", []byte(script), o)
	var out strings.Builder
	for _, b := range r.Blocks {
		out.WriteString(b.Actual)
	}
	return out.String(), err
}

func TestRewriteAndCheck(t *testing.T) {
	const src = "# kept\n\nopen\n----\nopen: closed\n\n# kept, too\n\nprepare \\\n  a\nnow\n\nlaunch a\n----\n----\nblank\n\nlines\n----\n----\n\nstate launch[a]\n----\n"
	r, err := Run("f.txt", []byte(src), Options{})
	require.NoError(t, err)
	want := "# kept\n\nopen\n----\nopen: owned, 1 slot\n\n# kept, too\n\nprepare \\\n  a\nnow\n----\nprepare a: on slot 0\nnow: 0us\n\nlaunch a\n----\nlaunch a: complete, both boundaries recorded\n\nstate launch[a]\n----\nlaunch[0]: complete\n"
	require.Equal(t, want, string(r.Rewritten))

	var lines []int
	for _, m := range r.Mismatches {
		lines = append(lines, m.Line)
	}
	require.Equal(t, []int{3, 9, 13, 22}, lines)
	require.Equal(t, "f.txt:3: open\n--- expected\n+++ actual\n@@ -1 +1 @@\n-open: closed\n+open: owned, 1 slot\n", r.Mismatches[0].Diff())

	again, err := Run("f.txt", r.Rewritten, Options{})
	require.NoError(t, err)
	require.Empty(t, again.Mismatches)
	require.Equal(t, want, string(again.Rewritten))
}

// TestAnswersWithBlankLines: no verb answers so today, and the file format has
// a form for it.
func TestAnswersWithBlankLines(t *testing.T) {
	for _, answer := range []string{"", "a\n", "a\n\nb\n", "\n"} {
		parts := []part{
			{raw: []string{"now"}, end: []string{""}, Block: &Block{Line: 1, Answered: true, Actual: answer, Ran: true}},
			{raw: []string{"now"}, Block: &Block{Line: 1, Answered: true, Actual: answer, Ran: true}},
		}
		back, err := read("f", write(parts))
		require.NoError(t, err, "%q", answer)
		require.Len(t, back, 2)
		require.Equal(t, answer, back[0].Expected)
		require.Equal(t, answer, back[1].Expected)
	}
}

func TestErrorsHaveALineAndTheNearestWord(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"lanuch a", `t.txt:1: unknown verb "lanuch": did you mean "launch"?`},
		{"# c\n\nopen\n----\n\nprepare a\npol a\n", `t.txt:7: unknown verb "pol": did you mean "poll"?`},
		{"dev recrod e on=s", `t.txt:1: unknown verb after dev "recrod": did you mean "record"?`},
		{"dev", `t.txt:1: dev what? want one of`},
		{"latch mode=PROGRAM", `t.txt:1: latch what? want one of`},
		{"lane slost=2", `t.txt:1: lane: unknown argument "slost": did you mean "slots"?`},
		{"lane slots", `t.txt:1: lane: slots wants a value: slots=…`},
		{"lane one borowed", `t.txt:1: lane: unknown word "borowed": did you mean "borrowed"?`},
		{"lane borrowed=yes", `t.txt:1: lane: borrowed takes no value`},
		{"lane slots=2 slots=3", `t.txt:1: lane: slots is given twice`},
		{"lane slots=17", `t.txt:1: lane: slots=17: want a number from 0 to 16`},
		{"lane slots=99999999999999999999999", `want a number from 0 to 16`},
		{"lane slots=-1", `want a number from 0 to 16`},
		{"lane slots=0", `it needs a slot, a depth, a token, and a timeout`},
		{"lane timeout=5", `t.txt:1: lane: timeout: "5": want a duration from 0 to 24h, such as 40us`},
		{"lane timeout=1000h", `want a duration from 0 to 24h`},
		{"lane timeout=0s", `a timeout that is not zero`},
		{"lane generation=1", ``},
		{"lane 9lives", `want a name`},
		{"prepare", `t.txt:1: prepare: run is missing; usage: prepare RUN [core=…] [cpu=…] [blocks=…] [args=…] [caller=…] [async]`},
		{"prepare a b", `t.txt:1: prepare: unknown word "b": want one of ["async"]`},
		{"launch a b", `t.txt:1: launch: "b" is one word too many; usage: launch RUN`},
		{"open\nprepare a core=cpo", `t.txt:2: unknown kernel "cpo": did you mean`},
		{"open\nlaunch a", `t.txt:2: unknown run "a": there are none`},
		{"open\nprepare abc\nlaunch abd", `t.txt:3: unknown run "abd": did you mean "abc"?`},
		{"fault RecordEvnt refuse", `t.txt:1: fault: unknown call "RecordEvnt": did you mean "RecordEvent"?`},
		{"fault RecordEvent fail-befor", `t.txt:1: fault: unknown kind "fail-befor": did you mean "fail-before"?`},
		{"fault RecordEvent hang", `t.txt:1: sim: fault hang cannot strike RecordEvent`},
		{"fault RecordEvent refuse each nth=2", `t.txt:1: fault: each and nth exclude each other`},
		{"fault RecordEvent refuse code=AICORE_EXEPTION", `t.txt:1: fault: code: unknown code "AICORE_EXEPTION": did you mean "AICORE_EXCEPTION"?`},
		{"fault RecordEvent refuse code=4294967296", `unknown code`},
		{"kernel k", `t.txt:1: kernel: class is missing`},
		{"kernel k class=cor", `t.txt:1: kernel: unknown class "cor": did you mean "core"?`},
		{"kernel k class=core spin", `only a paired kernel can spin`},
		{"kernel k class=core flag=1us", `the flag comes before the end`},
		{"kernel k class=core store=exit", `give both`},
		{"device\ndevice", `t.txt:2: device: there is one already`},
		{"device unrecorded=hang", `t.txt:1: device: unknown unrecorded "hang": did you mean "hangs"?`},
		{"advance soon", `t.txt:1: advance: "soon": want a duration`},
		{"open\nstate fnce[0]", `t.txt:2: unknown machine "fnce": did you mean "fence"?`},
		{"open\nstate fence[9]", `t.txt:2: fence[9]: there are 1 of them, from 0`},
		{"open\nstate fence[x]", `t.txt:2: unknown run "x": there are none`},
		{"open\nstate (fence 0)", `t.txt:2`},
		{"open\nfire fence[0] amr", `t.txt:2: unknown event of fence "amr": did you mean "arm"?`},
		{"open\nfire fence[0] arm run_epcoh=1", `t.txt:2: unknown argument of fence.arm "run_epcoh": did you mean "run_epoch"?`},
		{"open\nfire fence[0] arm run_epoch=1", `t.txt:2: fence.arm: generation is missing: want run_epoch, generation, dispatch, run`},
		{"open\nfire fence[0] submitted run_epoch=1 generation=1 dispatch=1 boundary=core_don", `t.txt:2: boundary: "core_don": want one of core_done, cpu_done`},
		{"open\nfire fence[0] arm run_epoch=1 run_epoch=2", `t.txt:2: fire: run_epoch is given twice`},
		{"open\nfire token[0] discard fence=lane", `t.txt:2: fence: "lane": want a fence`},
		{"open\nexplain fence[0] arm state=(armd)", `t.txt:2: unknown state of fence "armd": did you mean "armed"?`},
		{"open\nissue fence[0] abandon", `t.txt:2: issue: begin a pure world first`},
		{"open\npure end", `t.txt:2: pure end: no pure world is begun`},
		{"open\npure begin\npure begin", `t.txt:3: pure begin: the pure world is begun already`},
		{"open\npure begin\nprepare a", `t.txt:3: prepare: there is no device in the pure world`},
		{"open\npure begin\ndev stream s", `t.txt:3: dev stream: there is no device in the pure world`},
		{"orch begin new level=2", `t.txt:1: orch begin: the level is given by init, and new is before it`},
		{"orch begin\norch begin new", `t.txt:2: orch begin: a pure world is begun already`},
		{"open\noutcomes lane", `t.txt:2: outcomes: lane has no command in flight`},
		{"open\nhold OpenSlot", `t.txt:2: hold: unknown call "OpenSlot": did you mean "OpenSlots"?`},
		{"open\nresume launch a", `t.txt:2: resume: no such operation is held`},
		{"open\nresume lunch a", `t.txt:2: resume: unknown operation "lunch": did you mean "launch"?`},
		{"hold CreateStream\nopen\nresume open code=1", `t.txt:3: resume: a code is of an outcome that is given by hand`},
		{"open\ncrash\nprepare a", `t.txt:3: prepare: the process has crashed`},
		{"dev stream s\ndev stream s", `t.txt:2: there is a stream s already`},
		{"dev stream abc\ndev query abd", `t.txt:2: unknown stream or event "abd": did you mean "abc"?`},
		{"dev event e\ndev record e on=x", `t.txt:2: unknown stream "x": there are none`},
		{"dev stream s\ndev free s", `t.txt:2: unknown memory "s": there are none`},
		{"dev destroy s", `t.txt:1: dev destroy: no stream and no event is called s`},
		{"open\nprepare a\nref reserve t of=a on=core_done by=a waiter=cpu_stream", `t.txt:3: ref reserve: run a has no receipt`},
		{"open\nref commit t", `t.txt:2: unknown reference "t": there are none`},
		{"launch a=(", `cannot parse directive at column`},
		{"launch =", `cannot parse directive at column`},
		{"----\nx", `t.txt:1: an answer without a command`},
		{"now\n----\n----\nx\n----\n", `t.txt:3: the answer begins with a second "----" and does not end with two of them`},
		{"now\n----\n----\nx\n----\n----\nnow", `t.txt:7: a blank line must follow an answer`},
		{"now \\", `nothing follows the backslash`},
		{"now\x00", `t.txt:1: a NUL byte`},
		{"\n\xff", `t.txt:2: not UTF-8`},
	} {
		_, err := play(t, c.script, Options{})
		if c.want == "" {
			require.NoError(t, err, c.script)
			continue
		}
		var e *Error
		require.ErrorAs(t, err, &e, c.script)
		require.Contains(t, err.Error(), c.want, c.script)
	}
}

// TestNothingRunsIfACommandIsMisspelt: a typo at the end is told before the
// first command has done anything.
func TestNothingRunsIfACommandIsMisspelt(t *testing.T) {
	r, err := Run("t.txt", []byte("open\n----\n\nprepare a\n----\n\nlanuch a\n----\n"), Options{})
	require.ErrorContains(t, err, "t.txt:7: ")
	require.Len(t, r.Blocks, 3)
	for _, b := range r.Blocks {
		require.False(t, b.Ran)
	}
}

// TestErrorInTheMiddle: what was done before the error is told, and what comes
// after keeps its answer.
func TestErrorInTheMiddle(t *testing.T) {
	const src = "open\n----\nx\n\nlaunch a\n----\ny\n\nnow\n----\nz\n"
	r, err := Run("t.txt", []byte(src), Options{})
	require.ErrorContains(t, err, "t.txt:5: ")
	require.Equal(t, strings.Replace(src, "\nx\n", "\nopen: owned, 1 slot\n", 1), string(r.Rewritten))
	require.Len(t, r.Mismatches, 1)
}

func TestBounds(t *testing.T) {
	for what, c := range map[string]struct {
		script string
		o      Options
	}{
		"bytes":    {strings.Repeat("#\n", maxBytes/2+1), Options{}},
		"line":     {"#" + strings.Repeat("x", 10<<20/16), Options{}},
		"joined":   {strings.Repeat(strings.Repeat("x", 200)+" \\\n", 100), Options{}},
		"commands": {strings.Repeat("now\n", 11), Options{MaxSteps: 10}},
		"output":   {"open\nprepare a\nlaunch a\nlog\n", Options{MaxOutput: 100}},
		"over all": {strings.Repeat("now\n\n", 50), Options{MaxOutput: 100}},
		"clock":    {strings.Repeat("advance 24h\n", 101), Options{}},
		"lanes": {func() (s string) {
			for i := range maxLanes + 1 {
				s += fmt.Sprintf("lane l%d\n", i)
			}
			return s
		}(), Options{}},
		"contexts": {func() (s string) {
			for i := range maxContexts + 1 {
				s += fmt.Sprintf("context c%d\n", i)
			}
			return s
		}(), Options{}},
		"kernels": {func() (s string) {
			for i := range maxKernels + 1 {
				s += fmt.Sprintf("kernel k%d class=core\n", i)
			}
			return s
		}(), Options{}},
	} {
		_, err := play(t, c.script, c.o)
		var e *Error
		require.ErrorAs(t, err, &e, what)
		require.ErrorIs(t, err, ErrTooLarge, what)
	}
	_, err := play(t, "fire x="+strings.Repeat("(", 4000), Options{})
	require.ErrorContains(t, err, "cannot parse", "nesting")
	out, err := play(t, strings.Repeat("dev alloc m size=1048576\ndev free m\n", 1)+"dev alloc n size=1048576", Options{})
	require.NoError(t, err)
	require.Contains(t, out, "dev alloc n: 1048576 bytes")
}

// TestRules: a run by other rules is a run by other rules. Here a fence lets a
// run go with one boundary, and the scenario about that finds it.
func TestRules(t *testing.T) {
	defs := states.Definitions()
	changed := false
	for _, d := range defs {
		for i := range d.Rows {
			if r := &d.Rows[i]; d.Name == "fence" && r.ID == "retire-proven" {
				r.Guard = "core == complete || cpu == complete || quiet || core == missing"
				changed = true
			}
		}
	}
	require.True(t, changed)
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	const file = "testdata/fence-one-boundary.txt"
	r, err := Run(file, read1(t, file), Options{Rules: rules})
	require.NoError(t, err)
	require.Len(t, r.Mismatches, 1)
	require.Contains(t, r.Mismatches[0].Diff(), "+fire fence[c] retire: idle")
}

// TestDeterminism: what a script answers follows from the script and the seed.
func TestDeterminism(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2, 3} {
		differ := false
		for _, file := range files(t) {
			src := read1(t, file)
			one, err1 := Run(file, src, Options{Seed: seed})
			two, err2 := Run(file, src, Options{Seed: seed})
			require.Equal(t, fmt.Sprint(err1), fmt.Sprint(err2), file)
			require.Equal(t, string(one.Rewritten), string(two.Rewritten), file)
			require.Equal(t, one.Timeline, two.Timeline, file)
			differ = differ || len(one.Mismatches) > 0
		}
		require.Equal(t, seed != 0, differ, "a seed lets chance decide, and none does not")
	}
}

// TestRecorder: a log gets the worlds by their lanes' names, every record in
// sequence, and after a crash nothing.
func TestRecorder(t *testing.T) {
	var log bytes.Buffer
	w, err := translog.NewWriter(&log, states.Rules(), translog.Options{Format: translog.JSONLines, Exact: true})
	require.NoError(t, err)
	type opened struct {
		world string
		pools map[string]int
		queue int
	}
	var worlds []opened
	out, err := play(t, "open\nlane b slots=2 tokens=3\nopen\nprepare a\nhold RecordCore\nlaunch a\nprocess child\npoll a\nprocess parent\ncrash", Options{
		Recorder: func(world string, pools map[string]int, queue int) machine.Recorder {
			worlds = append(worlds, opened{world, pools, queue})
			return w.World(world, pools, queue)
		},
	})
	require.NoError(t, err)
	require.Contains(t, out, "crash: launch[0] was in flight")
	require.NoError(t, w.Close())
	require.Equal(t, []opened{
		{"lane", states.Config{}.Pools(), 0},
		{"b", states.Config{Slots: 2, Tokens: 3}.Pools(), 0},
	}, worlds)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	last := ""
	for _, l := range lines {
		if strings.Contains(l, `"RecordCore`) {
			last = l
		}
	}
	require.Contains(t, last, `"kind":"issue"`, "the last that is known of the command is that it was issued")
}

// TestAnotherDevice: a lane runs on whatever device is plugged in, and what only
// the simulated one can do is refused by the verb's name.
func TestAnotherDevice(t *testing.T) {
	plug := func(spec DeviceSpec) (Device, error) {
		d, err := sim.New(sim.Config{Device: spec.ID, Borrowed: spec.Borrowed})
		if err != nil {
			return Device{}, err
		}
		k := map[string]backend.Kernel{
			"core": d.Define(sim.KernelSpec{Class: backend.AICore, Duration: time.Microsecond}),
			"cpu":  d.Define(sim.KernelSpec{Class: backend.AICPU, Duration: time.Microsecond}),
		}
		return Device{Backend: d, Kernels: k}, nil
	}
	out, err := play(t, "device id=2\nopen\nprepare a\nhold RecordCore\nlaunch a\nresume launch a\nwait a\nfinalize a\nenv create\nenv identity\ndev stream s\ndev submit s kernel=cpu class=cpu\ndev sync s\nclose", Options{Device: plug})
	require.NoError(t, err)
	require.Equal(t, `device 2: owned
open: owned, 1 slot
prepare a: on slot 0
hold: before RecordCore
launch a: held before RecordEvent (RecordCore of launch[0])
launch a: complete, both boundaries recorded
wait a: succeeded
finalize a: slot 0 is free
env create: owned
env identity: process parent, incarnation 1, generation 1, device 2, owned
dev stream s: made
dev submit s: kernel cpu queued
dev sync s: ok
close: closed
`, out)

	for _, v := range []string{"kernel k class=core", "fault RecordEvent refuse", "context other", "thread 1", "advance 1us", "now", "violations", "deadlock", "dev peek m size=1", "dev capture s status=none", "device ring=2"} {
		_, err := play(t, v, Options{Device: plug})
		var only *SimulatorOnlyError
		require.ErrorAs(t, err, &only, v)
		require.True(t, strings.HasPrefix(v, only.Verb) || only.Verb == "device ring", v)
		require.ErrorContains(t, err, "t.txt:1: "+only.Verb+" needs the simulated device")
	}

	broken := errors.New("no such board")
	_, err = play(t, "open", Options{Device: func(DeviceSpec) (Device, error) { return Device{}, broken }})
	require.ErrorIs(t, err, broken)
	_, err = play(t, "open", Options{Device: func(DeviceSpec) (Device, error) { return Device{}, nil }})
	require.ErrorContains(t, err, "no device was made")
}

// TestHeldOperationsEnd: a script may end with operations that a hold parked;
// no goroutine is left, which TestMain checks, and no record is made of it.
func TestHeldOperationsEnd(t *testing.T) {
	var count recordCount
	out, err := play(t, "open\nprepare a\nlaunch a\nhold QueryCore\nhold WaitCore after\npoll a\nwait a", Options{
		Recorder: func(string, map[string]int, int) machine.Recorder { return &count },
	})
	require.NoError(t, err)
	require.Contains(t, out, "poll a: held before QueryEvent (QueryCore of poll[0])\nwait a: held after WaitEvent (WaitCore of drain[0])")
	require.Equal(t, machine.Issued, count.last, "the end of a script is not an answer")
}

type recordCount struct {
	last machine.RecordKind
	time int64
}

func (c *recordCount) Record(r *machine.Record) { c.last, c.time = r.Kind, r.Time }

// TestRecordsHaveVirtualTime: the log's clock is the device's.
func TestRecordsHaveVirtualTime(t *testing.T) {
	var count recordCount
	_, err := play(t, "open\nprepare a\nlaunch a\nwait a", Options{
		Recorder: func(string, map[string]int, int) machine.Recorder { return &count },
	})
	require.NoError(t, err)
	require.Equal(t, 50*time.Microsecond, time.Duration(count.time))
}

// TestHeldTwiceInOneCommand: a command that makes several calls is the one that
// is held, whatever happened at the hold before.
func TestHeldTwiceInOneCommand(t *testing.T) {
	out, err := play(t, "open\nprepare a\nhold CreateEvent\nhold CreateEvent nth=2\nlaunch a\nfire environment check\nresume launch a\nresume launch a", Options{})
	require.NoError(t, err)
	require.Contains(t, out, `launch a: held before CreateEvent (MakeEvents of launch[0])
fire environment check: live
launch a: held before CreateEvent (MakeEvents of launch[0])
launch a: complete`)
}

// TestTimeline: what the host did and what the streams did, each with the line
// of the script that it came from.
func TestTimeline(t *testing.T) {
	r, err := Run("t.txt", []byte("open\nprepare a\n\nlaunch a\nwait a\n"), Options{})
	require.NoError(t, err)
	var core, cpu []string
	for i, e := range r.Timeline {
		if i > 0 {
			require.GreaterOrEqual(t, e.Time, r.Timeline[i-1].Time)
			require.GreaterOrEqual(t, e.Line, r.Timeline[i-1].Line)
		}
		switch e.Column {
		case AICore:
			require.Equal(t, "core", e.Stream)
			core = append(core, fmt.Sprintf("%v %d %s", e.Time, e.Line, e.Text))
		case AICPU:
			require.Equal(t, "cpu", e.Stream)
			cpu = append(cpu, fmt.Sprintf("%v %d %s", e.Time, e.Line, e.Text))
		}
	}
	require.Equal(t, []string{"0s 4 kernel core starts", "40µs 5 kernel core ends", "40µs 5 record core_done"}, core)
	require.Equal(t, []string{"0s 4 copy source to result", "0s 4 kernel cpu starts", "50µs 5 kernel cpu ends", "50µs 5 record cpu_done"}, cpu)
}

// TestViolations: a misuse is told by the command that made it, and again at the end.
func TestViolations(t *testing.T) {
	r, err := Run("t.txt", []byte("dev stream s\ndev alloc m size=8\ndev submit s kernel=core args=m\n\ndev free m\n"), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"freed-while-named in Free: memory m, stream s, at 0us"}, r.Violations)
	require.Equal(t, "dev free m: freed\n! freed-while-named in Free: memory m, stream s, at 0us\n", r.Blocks[1].Actual)
}

var _ backend.Backend = (*gate)(nil)

// TestGate: every call goes through, with no bound of the caller's on it.
func TestGate(t *testing.T) {
	d, err := sim.New(sim.Config{})
	require.NoError(t, err)
	s := newSession(optionsForTest())
	g := &gate{s: s, l: &lane{recorder: &recorder{}, name: "l"}, b: d}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	st, r := g.CreateStream(done)
	require.True(t, r.Ok())
	id, r := g.StreamID(done, st)
	require.True(t, r.Ok())
	require.Zero(t, id)
	c, r := g.CaptureStatus(done, st)
	require.True(t, r.Ok())
	require.Equal(t, backend.CaptureNone, c)
	m, r := g.Alloc(done, backend.PinnedMemory, 4)
	require.True(t, r.Ok())
	n, r := g.Alloc(done, backend.DeviceMemory, 4)
	require.True(t, r.Ok())
	require.True(t, g.Write(done, m, 0, []byte("abcd")).Ok())
	require.True(t, g.CopyAsync(done, backend.Span{Mem: n, Size: 4}, backend.Span{Mem: m, Size: 4}, st).Ok())
	require.True(t, g.SynchronizeStream(done, st, time.Second).Ok())
	dst := make([]byte, 4)
	require.True(t, g.Read(done, dst, m, 0).Ok())
	require.Equal(t, "abcd", string(dst))
	require.Equal(t, "abcd", string(d.Peek(n)))
	require.True(t, g.Free(done, m).Ok())
	ok, r := g.Reset(done)
	require.True(t, ok && r.Ok())
	got, dropped := g.Notices(make([]backend.Notice, 1))
	require.Zero(t, got)
	require.Zero(t, dropped)
	require.True(t, g.DestroyStream(done, st).Ok())
	require.Zero(t, g.Device())
}
