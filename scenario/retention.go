package scenario

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// Bounds of the retention experiment.
const (
	// RingWindow is the number of task slots of a ring window. A scope cannot
	// fill it, since what it holds is let go only at its end: one that reaches
	// the window reports SCOPE_DEADLOCK instead of running (F168).
	RingWindow = 16384
	// RetentionCeiling is the largest successor that the experiment tries: half
	// the window (F120).
	RetentionCeiling = RingWindow / 2
)

// ErrScopeDeadlock says that a successor of as many tasks as the ring window
// has slots does not run (F168).
var ErrScopeDeadlock = errors.New("SCOPE_DEADLOCK: the scope fills the ring window")

// ErrRetention says that an experiment cannot be made, or that its device failed.
var ErrRetention = errors.New("the retention experiment failed")

// Retention is an experiment on one pair of streams of a simulated device: a
// predecessor is complete, its result is read and it is not finalized, while
// its successor executes behind it on the same streams. Does the read wait for
// the successor (F120)?
//
// A successor's boundary that is still Pending after the read settles it: a
// read that waited could not have left it so. Complete settles nothing, since
// the successor may have finished by itself; then only the read's cost tells.
// At its ordinary cost the attempt is inconclusive, and the next one has a
// successor twice as large.
type Retention struct {
	// Start is the first successor's size in tasks; 0 means 1.
	Start int
	// Ceiling ends the escalation; 0 means [RetentionCeiling].
	Ceiling int
	// Task is how long one task of the successor executes; 0 means none.
	Task time.Duration
	// Read is how long copying a record back takes; 0 means 12 µs.
	Read time.Duration
	// Behind queues that copy on the pair's own AICPU stream: the regression
	// that the experiment is there to find.
	Behind bool
}

// A read that waited took several times its baseline; one at its ordinary cost
// took less than twice. What is between is neither.
const (
	waitedFrom    = 3
	ordinaryBelow = 2
)

// RetentionVerdict is what an experiment found.
type RetentionVerdict uint8

const (
	// RetentionObserved: the successor was still executing after the read.
	RetentionObserved RetentionVerdict = iota + 1
	// RetentionRegression: the successor was complete after a read that cost
	// several times its baseline: the read waits.
	RetentionRegression
	// RetentionNeverObserved: every read was at its ordinary cost, no successor
	// outlasted one, and the escalation is exhausted.
	RetentionNeverObserved
	// RetentionInconclusive: the escalation is exhausted, and some read cost more
	// than its ordinary cost and less than one that waited.
	RetentionInconclusive
)

// String names the verdict.
func (v RetentionVerdict) String() string {
	return [...]string{"", "observed", "regression: the read waits for the successor", "never observed", "inconclusive"}[v]
}

// RetentionAttempt is one predecessor and one successor.
type RetentionAttempt struct {
	// Synchronised is the arm: the pair was synchronised before the read.
	Synchronised bool
	// Tasks is the successor's size.
	Tasks int
	// Before and After are the successor's boundary around the read.
	Before, After backend.Status
	// Cost is what the read took, with the synchronize if there was one, and
	// Drain what draining the successor took afterwards.
	Cost, Drain time.Duration
	// Waited: complete, at several times the baseline.
	Waited bool
}

// Inconclusive reports that the attempt settles nothing.
func (a *RetentionAttempt) Inconclusive() bool { return a.After == backend.Complete && !a.Waited }

// RetentionResult is what the experiment measured, in virtual time.
type RetentionResult struct {
	// Baseline is the read's cost with nothing in flight.
	Baseline time.Duration
	// Attempts are those that read directly, in order; the last one decided.
	Attempts []RetentionAttempt
	// Control has the pair synchronised first, at the size of the last attempt.
	Control RetentionAttempt
	Verdict RetentionVerdict
}

// Run makes the experiment on a device of its own. Errors: [ErrScopeDeadlock]
// for a successor that fills the ring window; [ErrRetention].
func (r Retention) Run() (*RetentionResult, error) {
	if r.Start == 0 {
		r.Start = 1
	}
	if r.Ceiling == 0 {
		r.Ceiling = RetentionCeiling
	}
	if r.Read == 0 {
		r.Read = 12 * time.Microsecond
	}
	if r.Start < 0 || r.Ceiling < r.Start || r.Task < 0 || r.Read < 0 {
		return nil, fmt.Errorf("from %d to %d tasks of %v, a read of %v: %w", r.Start, r.Ceiling, r.Task, r.Read, ErrRetention)
	}
	b, err := r.newBench()
	if err != nil {
		return nil, err
	}
	res := &RetentionResult{}
	alone, err := b.attempt(0, false)
	if err != nil {
		return nil, err
	}
	res.Baseline = alone.Cost
	tasks, ordinary := r.Start, true
	for {
		a, err := b.attempt(tasks, false)
		if err != nil {
			return res, err
		}
		a.Waited = a.After == backend.Complete && a.Cost >= waitedFrom*res.Baseline
		ordinary = ordinary && a.Cost < ordinaryBelow*res.Baseline
		res.Attempts = append(res.Attempts, a)
		switch {
		case a.After == backend.NotReady:
			res.Verdict = RetentionObserved
		case a.Waited:
			res.Verdict = RetentionRegression
		case tasks == r.Ceiling && ordinary:
			res.Verdict = RetentionNeverObserved
		case tasks == r.Ceiling:
			res.Verdict = RetentionInconclusive
		}
		if res.Verdict != 0 {
			break
		}
		tasks = min(2*tasks, r.Ceiling)
	}
	if res.Control, err = b.attempt(tasks, true); err != nil {
		return res, err
	}
	res.Control.Waited = res.Control.After == backend.Complete && res.Control.Cost >= waitedFrom*res.Baseline
	return res, nil
}

// Table prints the two arms, and every attempt of the direct one.
func (r *RetentionResult) Table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "arm\ttasks\tsuccessor's boundary\tread\tsuccessor's drain afterwards\t") // no error: it writes to memory
	for _, a := range append(r.Attempts[:len(r.Attempts):len(r.Attempts)], r.Control) {
		arm, note := "read the record directly", ""
		if a.Synchronised {
			arm = "synchronise the pair first"
		}
		switch {
		case a.Synchronised:
		case a.Waited:
			note = "waited"
		case a.Inconclusive():
			note = "inconclusive"
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s -> %s\t%s\t%s\t%s\n", arm, a.Tasks, pending(a.Before), pending(a.After), us(a.Cost), us(a.Drain), note)
	}
	_ = w.Flush()
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func pending(s backend.Status) string {
	if s == backend.Complete {
		return "Complete"
	}
	return "Pending"
}

// bench is the device of the experiment, its one pair of streams, and what two
// runs on it need.
type bench struct {
	r                     Retention
	d                     *sim.Device
	core, cpu, apart      backend.Stream
	runs                  [2]benchRun
	pinned                backend.Memory
	coreKernel, cpuKernel backend.Kernel
	scopeCore             backend.Kernel // over at once: the successor's size is its AICPU kernel's
	epoch                 uint64
}

// benchRun is a slot's worth: events, arguments and a result region.
type benchRun struct {
	coreDone, cpuDone backend.Event
	args, result      backend.Memory
}

func (r Retention) newBench() (*bench, error) {
	d, err := sim.New(sim.Config{CopyTime: r.Read})
	if err != nil {
		return nil, err
	}
	b := &bench{r: r, d: d}
	b.coreKernel = d.Define(sim.KernelSpec{Name: "core", Class: backend.AICore, Duration: 40 * time.Microsecond, Paired: true})
	b.scopeCore = d.Define(sim.KernelSpec{Name: "scope core", Class: backend.AICore, Paired: true})
	b.cpuKernel = d.Define(b.recording("cpu", 50*time.Microsecond))
	var c calls
	for _, s := range []*backend.Stream{&b.core, &b.cpu, &b.apart} {
		*s, c.r = d.CreateStream(free)
		c.note("a stream")
	}
	for i := range b.runs {
		x := &b.runs[i]
		for _, e := range []*backend.Event{&x.coreDone, &x.cpuDone} {
			*e, c.r = d.CreateEvent(free)
			c.note("an event")
		}
		for _, m := range []*backend.Memory{&x.args, &x.result} {
			*m, c.r = d.Alloc(free, backend.DeviceMemory, 16)
			c.note("memory")
		}
	}
	b.pinned, c.r = d.Alloc(free, backend.PinnedMemory, 16)
	c.note("memory")
	return b, c.err
}

// recording is an AICPU kernel that publishes the run's own record, all well,
// as its last act: its epoch and class, into the result region.
func (b *bench) recording(name string, t time.Duration) sim.KernelSpec {
	return sim.KernelSpec{Name: name, Class: backend.AICPU, Duration: t, Paired: true, Stores: []sim.Store{
		{When: sim.AtExit, Through: true, Size: 8, FromArgs: true, Value: 8},
		{When: sim.AtExit, Through: true, Offset: 8, Size: 4},
	}}
}

// calls keeps the first call that failed.
type calls struct {
	r   backend.Result
	err error
}

func (c *calls) note(what string) {
	if c.err == nil && !c.r.Ok() {
		c.err = fmt.Errorf("%s: %s %s: %w", what, c.r.Outcome, c.r.Code.Brief(), ErrRetention)
	}
}

// patienceOfBench bounds each wait; no successor is as long.
const patienceOfBench = time.Hour

// attempt runs a predecessor and, if tasks is not 0, a successor of that size
// behind it, and reads the predecessor's record.
func (b *bench) attempt(tasks int, synchronise bool) (a RetentionAttempt, err error) {
	a = RetentionAttempt{Synchronised: synchronise, Tasks: tasks, Before: backend.Complete, After: backend.Complete}
	pred, succ := &b.runs[0], &b.runs[1]
	if err := b.submit(pred, b.coreKernel, b.cpuKernel); err != nil {
		return a, err
	}
	epoch := b.epoch
	if tasks > 0 {
		if err := b.submit(succ, b.scopeCore, b.d.Define(b.scope(tasks))); err != nil {
			return a, err
		}
	}
	var c calls
	for _, e := range []backend.Event{pred.coreDone, pred.cpuDone} {
		c.r = b.d.WaitEvent(free, e, patienceOfBench)
		c.note("the predecessor's boundary")
	}
	boundary := func() backend.Status {
		if tasks == 0 {
			return backend.Complete
		}
		var s backend.Status
		s, c.r = b.d.QueryEvent(free, succ.cpuDone)
		c.note("the successor's boundary")
		return s
	}
	a.Before = boundary()
	from := b.d.Now()
	if synchronise {
		c.r = b.synchronise()
		c.note("the pair")
	}
	on := b.apart
	if b.r.Behind {
		on = b.cpu
	}
	c.r = b.d.CopyAsync(free, backend.Span{Mem: b.pinned, Size: 16}, backend.Span{Mem: pred.result, Size: 16}, on)
	c.note("the record's copy")
	c.r = b.d.SynchronizeStream(free, on, patienceOfBench)
	c.note("the record's copy")
	a.Cost = b.d.Now() - from
	a.After = boundary()
	var record [16]byte
	c.r = b.d.Read(free, record[:], b.pinned, 0)
	c.note("the record")
	if got := binary.LittleEndian.Uint64(record[:]); c.err == nil && got != epoch {
		c.err = fmt.Errorf("the record bears epoch %d, want %d: %w", got, epoch, ErrRetention)
	}
	from = b.d.Now()
	if r := b.synchronise(); !r.Ok() {
		if tasks >= RingWindow && r.Code == backend.AICPUException {
			return a, fmt.Errorf("%d tasks of %d: %s: %w", tasks, RingWindow, r.Code.Brief(), ErrScopeDeadlock)
		}
		c.r = r
		c.note("the successor")
	}
	a.Drain = b.d.Now() - from
	return a, c.err
}

// scope is the successor's AICPU kernel: so many tasks in one scope. One that
// fills the window returns a fatal status at once.
func (b *bench) scope(tasks int) sim.KernelSpec {
	k := b.recording("scope", time.Duration(tasks)*b.r.Task)
	if tasks >= RingWindow {
		k.Duration, k.Exit = 0, backend.AICPUException
	}
	return k
}

// submit puts a run on the pair, each kernel with its boundary right behind it.
func (b *bench) submit(x *benchRun, core, cpu backend.Kernel) error {
	b.epoch++
	var head [16]byte
	binary.LittleEndian.PutUint64(head[0:], uint64(x.result))
	binary.LittleEndian.PutUint64(head[8:], b.epoch)
	var c calls
	c.r = b.d.Write(free, b.pinned, 0, head[:])
	c.note("the arguments")
	c.r = b.d.Copy(free, backend.Span{Mem: x.args, Size: 16}, backend.Span{Mem: b.pinned, Size: 16})
	c.note("the arguments")
	c.r = b.d.Submit(free, b.core, backend.Launch{Class: backend.AICore, Kernel: core, Args: x.args, Blocks: 1})
	c.note("the AICore kernel")
	c.r = b.d.RecordEvent(free, x.coreDone, b.core)
	c.note("its boundary")
	c.r = b.d.Submit(free, b.cpu, backend.Launch{Class: backend.AICPU, Kernel: cpu, Args: x.args, Blocks: 1})
	c.note("the AICPU kernel")
	c.r = b.d.RecordEvent(free, x.cpuDone, b.cpu)
	c.note("its boundary")
	return c.err
}

// synchronise drains the pair, AICPU first.
func (b *bench) synchronise() backend.Result {
	if r := b.d.SynchronizeStream(free, b.cpu, patienceOfBench); !r.Ok() {
		return r
	}
	return b.d.SynchronizeStream(free, b.core, patienceOfBench)
}

var retentionVerbs = []verb{{name: "retention", sim: true, run: (*session).retention, params: []param{
	{name: "start", kind: count},
	{name: "ceiling", kind: count},
	{name: "task", kind: duration},
	{name: "read", kind: duration},
	{name: "behind"},
}}}

// retention makes the experiment on a device of its own and prints its table.
func (s *session) retention(c *call) error {
	r := Retention{
		Start: int(c.num("start", 1)), Ceiling: int(c.num("ceiling", 0)), Task: c.dur("task", time.Microsecond),
		Read: c.dur("read", 0), Behind: c.has("behind"),
	}
	res, err := r.Run()
	if err != nil {
		s.answer(c, "failed: %v", err)
		return nil
	}
	for l := range strings.Lines(res.Table()) {
		s.printf("%s", l)
	}
	s.answer(c, "%s; a read with nothing in flight costs %s", res.Verdict, us(res.Baseline))
	return nil
}
