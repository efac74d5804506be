package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// walk visits every state of a device that choices lead to, and calls see for
// each. Where a state is met again, over another path, it must offer the same
// choices and lead to the same states: the canonical bytes leave out nothing
// that matters.
//
// It stops at the given number of states, if that is not zero.
func walk(t require.TestingT, start *sim.Device, n sim.Naming, limit int, see func(*sim.Device)) int {
	after := map[string]string{}
	future := func(d *sim.Device) (string, []*sim.Device) {
		var lines []string
		var next []*sim.Device
		for _, c := range d.Choices(nil) {
			x := d.Clone()
			require.NoError(t, x.Apply(c))
			lines = append(lines, fmt.Sprintf("%v > %x", c, x.AppendCanonical(nil, n)))
			next = append(next, x)
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n"), next
	}
	todo := []*sim.Device{start}
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		key := string(d.AppendCanonical(nil, n))
		f, next := future(d)
		if known, met := after[key]; met {
			if known != f {
				require.FailNow(t, "one state with two futures", "%s\n\n%s", known, f)
			}
			continue
		}
		if limit > 0 && len(after) >= limit {
			break
		}
		after[key] = f
		see(d)
		todo = append(todo, next...)
	}
	return len(after)
}

// explored is a run of a spinning AICore kernel and its AICPU kernel, half
// through its submission: everything is in the hands of choices.
func explored(t *testing.T, cfg sim.Config) (*sim.Device, toys, []sim.Ticket) {
	cfg.Kernels = toyKernels()
	d := device(t, cfg)
	w := makeToys(d, nil, nil, nil)
	core := backend.Launch{Class: backend.AICore, Kernel: 2, Args: w.mems[0], Blocks: 1}
	cpu := backend.Launch{Class: backend.AICPU, Kernel: 3, Args: w.mems[0]}
	for _, op := range []sim.Op{
		sim.SubmitOp(w.streams[0], core),
		{Kind: sim.OpRecordEvent, Stream: w.streams[0], Event: w.events[0]},
		sim.SubmitOp(w.streams[1], cpu),
		{Kind: sim.OpRecordEvent, Stream: w.streams[1], Event: w.events[1]},
	} {
		k := d.Begin(op)
		require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseEffect, Target: uint64(k)}))
		require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseReturn, Target: uint64(k)}))
		a, ok := d.Take(k)
		require.True(t, ok && a.Ok() && a.Accepted)
	}
	tickets := []sim.Ticket{
		d.Begin(sim.Op{Kind: sim.OpWaitEvent, Event: w.events[0], Timeout: time.Second}),
		d.Begin(sim.Op{Kind: sim.OpSynchronizeStream, Stream: w.streams[1], Timeout: time.Second}),
	}
	return d, w, tickets
}

func TestEveryOrderIsReached(t *testing.T) {
	d, w, tickets := explored(t, sim.Config{NoProofs: true})
	seen := map[string]bool{}
	states := walk(t, d, w.naming(), 0, func(d *sim.Device) {
		core := query(t, d, sim.Op{Kind: sim.OpQueryEvent, Event: w.events[0]}).Status
		cpu := query(t, d, sim.Op{Kind: sim.OpQueryEvent, Event: w.events[1]}).Status
		drained := query(t, d, sim.Op{Kind: sim.OpQueryStream, Stream: w.streams[1]}).Status
		seen[fmt.Sprint("core ", core, ", cpu ", cpu)] = true
		if cpu == backend.NotReady {
			if d.Peek(w.mems[0])[7] == 1 {
				seen["flag without boundary"] = true
			}
		}
		if a, ok := d.Result(tickets[0]); ok {
			seen[fmt.Sprint("wait ", a.Outcome, ", core ", core)] = true
		}
		if a, ok := d.Result(tickets[1]); ok {
			seen[fmt.Sprint("synchronize ", a.Outcome, ", drained ", drained)] = true
		}
		require.Empty(t, d.Violations())
	})
	for _, want := range []string{
		"core not ready, cpu not ready", "core complete, cpu not ready", "core not ready, cpu complete", "core complete, cpu complete",
		"flag without boundary",
		"wait ok, core complete", "wait timedout, core not ready", "wait timedout, core complete",
		"synchronize ok, drained complete", "synchronize timedout, drained not ready", "synchronize timedout, drained complete",
	} {
		require.True(t, seen[want], "never reached: %s", want)
	}
	for _, never := range []string{"wait ok, core not ready", "synchronize ok, drained not ready"} {
		require.False(t, seen[never], "reached: %s", never)
	}
	require.Greater(t, states, 100)
}

// query makes a call on a copy, in one step.
func query(t *testing.T, d *sim.Device, op sim.Op) sim.Answer {
	t.Helper()
	c := d.Clone()
	k := c.Begin(op)
	require.NoError(t, c.Apply(sim.Choice{Kind: sim.ChooseEffect, Target: uint64(k)}))
	require.NoError(t, c.Apply(sim.Choice{Kind: sim.ChooseReturn, Target: uint64(k)}))
	a, ok := c.Take(k)
	require.True(t, ok)
	return a
}

// Exploring with proofs, faults and calls in flight, the canonical bytes still
// leave out nothing.
func TestFaultsAreChoicesWithinABudget(t *testing.T) {
	all := sim.Faults(sim.Refuse, sim.FailBefore, sim.FailAfter, sim.FailAccepted, sim.PanicBefore, sim.PanicAfter,
		sim.KernelFatal, sim.KernelHang, sim.NoticeLost, sim.Unconfirmed)
	d := device(t, sim.Config{Kernels: toyKernels(), Budget: 1, Faults: all})
	w := makeToys(d, nil, nil, nil)
	plain := backend.Launch{Class: backend.AICore, Kernel: 5, Args: w.mems[0], Blocks: 1}
	submit := d.Begin(sim.SubmitOp(w.streams[0], plain))
	record := d.Begin(sim.Op{Kind: sim.OpRecordEvent, Stream: w.streams[0], Event: w.events[0]})
	reset := d.Begin(sim.Op{Kind: sim.OpReset})
	sync := d.Begin(sim.Op{Kind: sim.OpSynchronizeStream, Stream: w.streams[0], Timeout: time.Second})
	seen := map[string]bool{}
	walk(t, d, w.naming(), 0, func(d *sim.Device) {
		for name, k := range map[string]sim.Ticket{"submit": submit, "record": record, "reset": reset, "sync": sync} {
			a, ok := d.Result(k)
			if !ok {
				continue
			}
			seen[fmt.Sprintf("%s %v %d accepted=%v confirmed=%v", name, a.Outcome, a.Code, a.Accepted, a.Confirmed)] = true
		}
		if _, ok := d.Result(submit); ok {
			seen[fmt.Sprint("busy ", d.Busy())] = true
		}
		var notice [1]backend.Notice
		if n, _ := d.Clone().TakeNotices(notice[:]); n == 1 {
			seen[fmt.Sprint("notice ", notice[0].Code)] = true
		}
	})
	for _, want := range []string{
		"submit ok 0 accepted=true confirmed=false",
		"submit refused 507000 accepted=false confirmed=false",
		"submit failed 507000 accepted=false confirmed=false",
		"submit failed 507000 accepted=true confirmed=false",
		"submit panicked 0 accepted=false confirmed=false",
		"record failed 507000 accepted=true confirmed=false",
		"reset ok 0 accepted=false confirmed=true",
		"reset ok 0 accepted=false confirmed=false",
		"reset refused 507000 accepted=false confirmed=false",
		"sync ok 0 accepted=false confirmed=false",
		"sync failed 507015 accepted=false confirmed=false",
		"sync failed 107022 accepted=false confirmed=false",
		"sync timedout 507046 accepted=false confirmed=false",
		"busy true", "busy false",
		"notice 507015 (ACL_ERROR_RT_AICORE_EXCEPTION)",
	} {
		require.True(t, seen[want], "never reached: %s", want)
	}
}

// A budget is spent by faults and by nothing else.
func TestABudgetRunsOut(t *testing.T) {
	d := device(t, sim.Config{Kernels: toyKernels(), Budget: 1, Faults: sim.Faults(sim.FailBefore, sim.FailAfter), FaultOps: sim.Ops(sim.OpRecordEvent)})
	w := makeToys(d, nil, nil, nil)
	query := d.Begin(sim.Op{Kind: sim.OpQueryEvent, Event: w.events[0]})
	require.Equal(t, []string{"effect " + query.String()}, text(d.Choices(nil)), "faults strike only the calls they are allowed to")
	first := d.Begin(sim.Op{Kind: sim.OpRecordEvent, Event: w.events[0], Stream: w.streams[0]})
	second := d.Begin(sim.Op{Kind: sim.OpRecordEvent, Event: w.events[1], Stream: w.streams[0]})
	require.Contains(t, text(d.Choices(nil)), "fail "+second.String()+" 507000")
	require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseFail, Target: uint64(first), Code: backend.DriverInternalError}))
	a, ok := d.Result(first)
	require.True(t, ok)
	require.Equal(t, backend.Result{Outcome: backend.Failed, Code: backend.DriverInternalError, LastError: backend.DriverInternalError}, a.Result)
	require.NotContains(t, text(d.Choices(nil)), "fail "+second.String()+" 507000")
	err := d.Apply(sim.Choice{Kind: sim.ChooseFail, Target: uint64(second), Code: backend.InternalError})
	require.ErrorIs(t, err, sim.ErrNotOffered)
	require.ErrorIs(t, d.Apply(sim.Choice{Kind: sim.ChooseEntry, Target: uint64(w.streams[0])}), sim.ErrNotOffered, "the stream is empty")
}

func text(choices []sim.Choice) (lines []string) {
	for _, c := range choices {
		lines = append(lines, c.String())
	}
	return lines
}

// Whatever hosts do, a state's bytes tell its future: handles that were
// destroyed, memory that was freed under the device, resets, faults.
func TestCanonicalBytesTellTheFuture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := genConfig().Draw(t, "config")
		cfg.Residue = rapid.Bool().Draw(t, "residue")
		cfg.Budget, cfg.Faults = 1, sim.Faults(sim.FailAfter, sim.KernelFatal, sim.NoticeLost)
		d := device(t, cfg)
		w := makeToys(d, nil, nil, nil)
		for range rapid.IntRange(0, 12).Draw(t, "before") { // set the scene
			s := genStep().Draw(t, "step")
			w.took(s, call(d, w.op(s)))
		}
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			d.Begin(w.op(genStep().Draw(t, "step")))
		}
		walk(t, d, w.naming(), 150, func(*sim.Device) {})
	})
}

// A call that took effect has not returned: the device may move between.
func TestTheDeviceMovesBeforeACallReturns(t *testing.T) {
	d := device(t, sim.Config{Kernels: toyKernels()})
	w := makeToys(d, nil, nil, nil)
	k := d.Begin(sim.SubmitOp(w.streams[0], backend.Launch{Class: backend.AICore, Kernel: 5, Args: w.mems[0], Blocks: 1}))
	require.Equal(t, []string{"effect c0"}, text(d.Choices(nil)))
	require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseEffect, Target: uint64(k)}))
	require.Equal(t, []string{"entry s0", "return c0"}, text(d.Choices(nil)))
	_, ok := d.Result(k)
	require.False(t, ok)
	require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseEntry, Target: uint64(w.streams[0])}))
	require.Equal(t, 3*time.Microsecond, d.Now(), "the clock goes to when the choice was due")
	require.False(t, d.Busy(), "the kernel is done before the host knows that it was submitted")
	require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseReturn, Target: uint64(k)}))
	a, ok := d.Take(k)
	require.True(t, ok)
	require.True(t, a.Ok())
	_, ok = d.Take(k)
	require.False(t, ok, "a ticket is taken once")
	require.NotEqual(t, k, d.Begin(sim.Op{Kind: sim.OpCurrentContext}), "a ticket is never used again")
}

// Apply takes what Choices offers, whatever the code of a fault, and nothing
// else; what it refuses changes nothing.
func TestApplyTakesWhatIsOffered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := device(t, mixed(t))
		w := makeToys(d, nil, nil, nil)
		wander(t, d, &w, "before")
		choices := d.Choices(nil)
		targets := []uint64{0, 1, 1 << 24, 1 << 56}
		for _, c := range choices {
			targets = append(targets, c.Target, c.Target+1, c.Target+1<<24, c.Target+1<<56)
		}
		for range 20 {
			c := sim.Choice{
				Kind:   sim.ChoiceKind(rapid.IntRange(0, 15).Draw(t, "kind")),
				Target: rapid.SampledFrom(targets).Draw(t, "target"),
				Code:   rapid.SampledFrom([]backend.Code{0, backend.InternalError, 5}).Draw(t, "code"),
			}
			offered := slices.ContainsFunc(choices, func(o sim.Choice) bool {
				return o.Kind == c.Kind && o.Target == c.Target && (o.Code == c.Code || (c.Kind.Fault() && o.Code != 0 && c.Code != 0))
			})
			x := d.Clone()
			if err := x.Apply(c); offered {
				require.NoError(t, err)
				continue
			} else {
				require.ErrorIs(t, err, sim.ErrNotOffered)
			}
			require.Equal(t, d.AppendState(nil), x.AppendState(nil))
		}
		for _, c := range choices {
			require.NoError(t, d.Clone().Apply(c))
		}
	})
}
