// Package lanetest tests a host: code that drives a [states.Lane]. [Check] runs
// it on a simulated device with luck that rapid draws: how many slots there are,
// in which order the device goes on, which calls fail, which waits expire. Then
// it holds what happened against the invariants of package invariants, as the
// explorers do with the rules themselves.
//
// A host that holds lets every run go, whatever happens to it, or gives the lane
// up in the open. What the rules refuse does no harm; but a host that does not
// heed a refusal leaves something behind, and that is found.
package lanetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// Bounds say what may happen to a host. The zero value is an owned device with
// one slot, on which nothing fails.
type Bounds struct {
	// Slots is how many pipeline slots the lane has at most, Depth its depth at
	// most; 0 means 1.
	Slots, Depth int
	// Tokens is how many wait references may be live; 0 means 4.
	Tokens int
	// Borrowed lets the device's context be a caller's.
	Borrowed bool
	// Faults is how many faults strike at most, Kinds which ones, Calls what they
	// strike; zero is every kind, and every call. That a wait expires is one of
	// them, [sim.Hang].
	Faults int
	Kinds  sim.FaultSet
	Calls  sim.OpSet
	// Luck is how many choices of the device are drawn at most, in which order it
	// goes on. After those, what is due next happens next. 0 means 40.
	Luck int
	// Timeout bounds each device wait, in virtual time; 0 means a second.
	Timeout time.Duration
	// Kernels are the images that the device knows, from 1; nil is one of AICore
	// and one of AICPU.
	Kernels []sim.KernelSpec
	// Rules are the lifecycles; nil is [states.Rules].
	Rules *machine.Rules
	// Strict makes it a failure to use a handle after its run is over. Such a use
	// is refused and does no harm, and where two goroutines share a run it may be
	// right.
	Strict bool
	// Goroutines makes it a failure to leave a goroutine behind. It goes with
	// tests that do not run in parallel.
	Goroutines bool
}

// Kinds of faults that can strike a host: every kind but one that comes late.
var everyKind = []sim.FaultKind{
	sim.Refuse, sim.FailBefore, sim.FailAfter, sim.FailAccepted, sim.PanicBefore, sim.PanicAfter,
	sim.Hang, sim.KernelFatal, sim.KernelHang, sim.NoticeLost, sim.Unconfirmed,
}

// Check runs the host once. It gets the configuration of one lane, to be passed
// to [states.NewLane] or [states.NewChipWorker]: with the device, the recorder
// and the clock, which is the device's. It may change Process, Sites and
// Bound. It may use several goroutines, which must have ended when it
// returns; the device takes one call at a time.
//
// The test fails if an invariant is broken, the device was misused, an operation
// is still under way, or a run is neither finalized nor given up with its lane,
// by [states.Lane.Quarantine] or [states.Lane.Detach]. The failure says what the
// lane told the host.
func Check(t *rapid.T, b Bounds, host func(c states.Config)) {
	t.Helper()
	rules := b.Rules
	if rules == nil {
		rules = states.Rules()
	}
	device, c, err := b.draw(t, rules)
	if err != nil {
		t.Fatalf("lanetest: %v", err)
	}
	v := &verdict{rules: rules, strict: b.Strict}
	watch, err := invariants.NewWatch(rules, machine.Config{Name: c.Name, Pools: c.Pools(), Recorder: v})
	if err != nil {
		t.Fatalf("lanetest: %v", err)
	}
	c.Recorder = watch

	var before goleak.Option
	if b.Goroutines {
		before = goleak.IgnoreCurrent()
	}
	host(c)
	v.world(watch)
	v.device(device)
	if b.Goroutines {
		if err := goleak.Find(before); err != nil {
			v.fail("a goroutine is left: %v", err)
		}
	}
	if len(v.wrong) > 0 {
		t.Fatalf("%s", v)
	}
}

// draw makes the device, and the configuration of the lane on it.
func (b *Bounds) draw(t *rapid.T, rules *machine.Rules) (*device, states.Config, error) {
	c := states.Config{Name: "lane", Rules: rules, Incarnation: 1, Tokens: b.Tokens, Timeout: b.Timeout}
	if c.Timeout == 0 {
		c.Timeout = time.Second
	}
	c.Slots = rapid.IntRange(1, max(1, b.Slots)).Draw(t, "slots")
	c.Depth = rapid.IntRange(1, max(1, min(c.Slots, b.Depth))).Draw(t, "depth")
	if b.Borrowed && rapid.Bool().Draw(t, "borrowed") {
		c.Borrowed, c.Generation = true, 1
	}
	config := sim.Config{Borrowed: c.Borrowed, Kernels: b.Kernels}
	if config.Kernels == nil {
		config.Kernels = []sim.KernelSpec{
			{Name: "core", Class: backend.AICore, Duration: 40 * time.Microsecond},
			{Name: "cpu", Class: backend.AICPU, Duration: 50 * time.Microsecond},
		}
	}
	if b.Faults > 0 {
		for _, text := range rapid.SliceOfN(b.faults(), 0, b.Faults).Draw(t, "faults") {
			f, err := sim.ParseFault(text)
			if err != nil {
				return nil, c, err
			}
			config.Plan = append(config.Plan, f)
		}
	}
	d, err := sim.New(config)
	if err != nil {
		return nil, c, err
	}
	most := b.Luck
	if most == 0 {
		most = 40
	}
	d.SetPolicy(&luck{drawn: rapid.SliceOfN(rapid.IntRange(0, 9), 0, most).Draw(t, "luck")})
	x := &device{d: d, plan: config.Plan}
	c.Backend, c.Clock = x, x.now
	return x, c, nil
}

// faults generates faults as text, which is how they are printed.
func (b *Bounds) faults() *rapid.Generator[string] {
	var all []sim.Fault
	for op := sim.OpCurrentContext; op <= sim.OpReset; op++ {
		for _, k := range everyKind {
			f := sim.Fault{Op: op, Kind: k, Nth: 1}
			if _, err := sim.ParseFault(f.String()); err == nil && (b.Kinds == 0 || b.Kinds.Has(k)) && (b.Calls == 0 || b.Calls.Has(op)) {
				all = append(all, f)
			}
		}
	}
	return rapid.Custom(func(t *rapid.T) string {
		f := all[rapid.IntRange(0, len(all)-1).Draw(t, "fault")]
		f.Nth = rapid.Uint32Range(1, 6).Draw(t, "nth")
		return f.String()
	})
}

// luck picks what was drawn wherever there is a choice of what goes on, and then
// what is due next: 0 is what is due next as well, any other number one of the
// rest. A wait that expires is a fault: see [sim.Hang].
type luck struct{ drawn []int }

// Pick implements [sim.Policy].
func (l *luck) Pick(d *sim.Device, choices []sim.Choice) int {
	due := sim.Timed{}.Pick(d, choices)
	var others []int
	for i, c := range choices {
		if i != due && c.Kind != sim.ChooseExpire {
			others = append(others, i)
		}
	}
	if len(l.drawn) == 0 || len(others) == 0 {
		return due
	}
	n := l.drawn[0]
	l.drawn = l.drawn[1:]
	if n %= len(others) + 1; n > 0 {
		return others[n-1]
	}
	return due
}

// verdict is what is wrong with what a host did. It records what the lane told
// the host.
type verdict struct {
	rules  *machine.Rules
	strict bool
	wrong  []string
	told   []string
}

func (v *verdict) fail(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// String says what is wrong, and what the host was told.
func (v *verdict) String() string {
	s := strings.Join(v.wrong, "\n")
	if len(v.told) == 0 {
		return s + "\nthe lane refused nothing, and nothing failed"
	}
	return s + "\nthe host was told:\n  " + strings.Join(v.told, "\n  ")
}

// world looks at what was seen of each step, and at the end.
func (v *verdict) world(w *invariants.Watch) {
	found, err := w.Findings()
	if err != nil {
		v.fail("what happened cannot be followed: %v", err)
		return
	}
	if len(found) > 0 {
		v.fail("an invariant is broken: %v", found[0])
		return
	}
	w.View(v.end)
}

// Record implements [machine.Recorder].
func (v *verdict) Record(rec *machine.Record) {
	if rec.Reason == machine.NoReasonID || rec.Ref != rec.Root && rec.Kind != machine.Holed {
		return
	}
	m, reason := v.rules.At(rec.Ref.Machine), v.rules.ReasonAt(rec.Reason)
	text := fmt.Sprintf("%s %s: ", v.rules.RefName(rec.Ref), m.EventName(rec.Event))
	if rec.Kind == machine.Rejected {
		text += "refused: "
	}
	text += string(reason)
	if rec.Result.Code != 0 {
		text += fmt.Sprintf(", code %d", rec.Result.Code)
	}
	v.told = append(v.told, text)
	if v.strict && rec.Kind == machine.Rejected && reason == states.ErrStaleIdentity {
		v.fail("a handle was used after its run was over: %s %s", v.rules.RefName(rec.Ref), m.EventName(rec.Event))
	}
}

// end looks at what the host left behind.
func (v *verdict) end(w *machine.World) {
	for i := range w.Queued() {
		v.fail("left under way: %s has something to do still", v.rules.RefName(w.QueuedRoot(i)))
	}
	lane := v.state(w, "lane", 0)
	given := lane == "quarantined" || v.state(w, "environment", 0) == "detached"
	for id := range v.rules.NumMachines() {
		m := v.rules.At(machine.MachineID(id))
		for slot := range w.Capacity(m.ID()) {
			ref := w.Ref(m.ID(), slot)
			_, flying, _ := w.State(ref)
			if flying {
				v.fail("left under way: %s has called the device", v.rules.RefName(ref))
			}
			if state := w.StateName(ref); m.Name() == "run" && !given && state != "idle" && state != "finalized" {
				v.fail("left behind: %s is %q, neither finalized nor given up with its lane", v.rules.RefName(ref), state)
			}
		}
	}
}

func (v *verdict) state(w *machine.World, name string, slot int) string {
	m := v.rules.Machine(name)
	if m == nil {
		return ""
	}
	return w.StateName(w.Ref(m.ID(), slot))
}

// device looks at what the device saw.
func (v *verdict) device(d *device) {
	doubtful := slices.ContainsFunc(d.plan, func(f sim.Fault) bool {
		return f.Op == sim.OpDestroyEvent || f.Op == sim.OpDestroyStream || f.Op == sim.OpFree
	})
	for _, x := range d.d.Violations() {
		// A destroy that failed may have taken effect: nobody can tell but by
		// destroying again.
		if x.Kind != sim.DoubleDestroy || !doubtful {
			v.fail("the device was misused: %v", x)
		}
	}
}
