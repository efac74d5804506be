package invariants_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
)

const (
	ourContext = 77
	ourProcess = 1
)

// rig drives a world of some rules a step at a time, gives the answers to its
// calls, and checks each step. It goes no further once there is a finding. What
// the rules refuse is refused: the same drive serves rules that are whole.
type rig struct {
	t       *testing.T
	rules   *machine.Rules
	w       *machine.World
	checker *invariants.Checker
	recs    []machine.Record
	found   []*invariants.Finding
	// observer takes the records instead of the checker, whatever it finds.
	observer *invariants.Observer
	observed []*invariants.Finding
	// answers are given next, by call, instead of the ones that are hoped for.
	answers map[string][]machine.Result
	// held calls are left in flight, for [rig.resume].
	held   map[string]bool
	flying map[string]machine.Ref
}

func newRig(t *testing.T, defs []*machine.Definition, pools map[string]int) *rig {
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	r := &rig{
		t: t, rules: rules, checker: invariants.For(rules),
		answers: map[string][]machine.Result{}, held: map[string]bool{}, flying: map[string]machine.Ref{},
	}
	r.w, err = rules.NewWorld(machine.Config{Pools: pools, Recorder: r})
	require.NoError(t, err)
	return r
}

// Record implements machine.Recorder.
func (r *rig) Record(rec *machine.Record) { r.recs = append(r.recs, *rec) }

// step takes a step and checks it. It returns nil if none was taken.
func (r *rig) step(take func() *machine.Step) *machine.Step {
	if len(r.found) > 0 {
		return nil
	}
	before := r.w.Clone()
	r.recs = r.recs[:0]
	s := take()
	if s == nil {
		return nil
	}
	if r.observer != nil { // it is asked what it knows of the device, and looks on
		for i := range r.recs {
			r.observed = append(r.observed, r.observer.Record(r.w, &r.recs[i])...)
		}
		return s
	}
	r.found = append(r.checker.Step(before, r.w, r.recs), r.checker.World(r.w)...)
	return s
}

func (r *rig) ref(name string, slot int) machine.Ref {
	return r.w.Ref(r.rules.Machine(name).ID(), slot)
}

func (r *rig) state(name string, slot int) string { return r.w.StateName(r.ref(name, slot)) }

func (r *rig) fact(name string, slot int, fact string) uint64 {
	v, ok := r.w.Fact(r.ref(name, slot), r.rules.Machine(name).MustFact(fact))
	require.True(r.t, ok)
	return v
}

// fire fires an event and takes no other step.
func (r *rig) fire(name string, slot int, event string, args ...uint64) *machine.Step {
	return r.step(func() *machine.Step {
		return r.w.Issue(r.ref(name, slot), r.rules.Machine(name).MustEvent(event), args...)
	})
}

// op fires an event and carries the operation on until it is done, blocked, or
// at a call that is held.
func (r *rig) op(name string, slot int, event string, args ...uint64) {
	r.pump(r.ref(name, slot), r.fire(name, slot, event, args...))
}

func (r *rig) pump(root machine.Ref, s *machine.Step) {
	for s != nil && s.Status != machine.Deferred {
		if s.Status == machine.InFlight {
			call, ref := r.rules.CallName(s.Command.Call), s.Command.Ref
			if r.held[call] {
				delete(r.held, call)
				r.flying[call] = ref
				return
			}
			res := r.answer(call, s.Command)
			s = r.step(func() *machine.Step { return r.w.Settle(ref, res) })
			continue
		}
		s = r.step(func() *machine.Step { return r.w.Next(root) })
	}
}

// hold leaves the next call of that name in flight.
func (r *rig) hold(call string) { r.held[call] = true }

// resume answers a call that was held, and carries its operation on.
func (r *rig) resume(call string, res ...machine.Result) {
	if len(r.found) > 0 {
		return
	}
	ref, ok := r.flying[call]
	require.True(r.t, ok, "%s was not held", call)
	delete(r.flying, call)
	var root machine.Ref
	s := r.step(func() *machine.Step {
		s := r.w.Settle(ref, append(res, machine.Result{})[0])
		root = s.Root
		return s
	})
	r.pump(root, s)
}

// next gives answers to the next calls of that name.
func (r *rig) next(call string, results ...machine.Result) {
	r.answers[call] = append(r.answers[call], results...)
}

func value(v uint64) machine.Result { return machine.Result{Value: v} }

func ends(o machine.Outcome) machine.Result {
	return machine.Result{Outcome: o, Codes: machine.Codes{Code: 9}}
}

// answer is what a call answers when all is well, unless something else is wanted.
func (r *rig) answer(call string, c machine.Command) machine.Result {
	if list := r.answers[call]; len(list) > 0 {
		r.answers[call] = list[1:]
		return list[0]
	}
	slot := int(c.Ref.Slot)
	switch call {
	case "CurrentContext", "CreateContext":
		return value(ourContext)
	case "QueryCore", "QueryCPU", "QueryTail", "QueryCoreStream", "QueryCPUStream", "ResetDevice":
		return value(1)
	case "ReadRecord":
		return value(r.fact("run", slot, "run_epoch"))
	case "RollBack":
		return value(c.Args[0])
	case "RecordCore":
		return value(uint64(10 + slot))
	case "RecordCPU":
		return value(uint64(20 + slot))
	}
	return machine.Result{}
}

// Of a lane.

func (r *rig) open(depth uint64) { r.op("opening", 0, "start", ourProcess, 0, 0, 0, depth) }

func (r *rig) borrow(generation uint64) {
	r.op("opening", 0, "start", ourProcess, 0, 1, generation, 2)
}

// ids is the identity that the run of a slot has.
func (r *rig) ids(slot int) []uint64 {
	return []uint64{r.fact("run", slot, "run_epoch"), r.fact("run", slot, "generation"), r.fact("run", slot, "dispatch")}
}

func (r *rig) mine(slot int, more ...uint64) []uint64 {
	return append(append([]uint64{ourProcess}, r.ids(slot)...), more...)
}

func (r *rig) prepare(slot int) { r.op("prepare", slot, "start", ourProcess, 1, 0, 0) }

func (r *rig) launch(slot int) {
	r.op("launch", slot, "start", r.mine(slot, r.fact("run", slot, "permit"))...)
}

func (r *rig) run(slot int) {
	r.prepare(slot)
	r.launch(slot)
}

func (r *rig) poll(slot int)     { r.op("poll", slot, "start", r.mine(slot)...) }
func (r *rig) wait(slot int)     { r.op("drain", slot, "start", r.mine(slot)...) }
func (r *rig) finalize(slot int) { r.op("finalize", slot, "start", r.mine(slot)...) }
func (r *rig) recover()          { r.op("recovery", 0, "start", ourProcess) }
func (r *rig) close()            { r.op("closing", 0, "start", ourProcess) }

// whole is one run from beginning to end, and the slot free for another.
func (r *rig) whole(slot int) {
	r.run(slot)
	r.wait(slot)
	r.finalize(slot)
	r.step(func() *machine.Step { return r.w.Drop(r.ref("run", slot)) })
}

// eager submits a run with a caller's stream, behind another if that is one.
func (r *rig) eager(slot int, behind ...int) {
	args := []uint64{ourProcess, 1, 1, 0, 0, 0, 0, r.ref("fence", slot).Pack()}
	for _, p := range behind {
		args[4], args[5], args[6] = r.ref("run", p).Pack(), r.ref("fence", p).Pack(), r.ref("drain", p).Pack()
	}
	r.op("submit", slot, "start", args...)
}

// reserve mints a token on a boundary of a slot, held by a stream of another.
func (r *rig) reserve(on int, boundary, waiter uint64, by int) {
	args := append([]uint64{r.ref("fence", on).Pack()}, r.ids(on)...)
	r.fire("token", 0, "reserve", append(args, r.fact("fence", on, "arming"), boundary, waiter, r.ref("fence", by).Pack())...)
}

// worker opens the lane of a handle whose mode is claimed.
func (r *rig) worker() {
	r.open(1)
	r.fire("latch", 0, "claim", 0)
	r.fire("latch", 0, "begin")
	r.fire("latch", 0, "succeed")
}

func (r *rig) register(image uint64) { r.op("registry", 0, "register", ourProcess, image, 1) }

func (r *rig) unregister(slot int, occupancy uint64) {
	r.op("registry", 0, "unregister", ourProcess, r.ref("callable", slot).Pack(), occupancy)
}

// Of an orchestrator.

// build begins a run, whose graph is being built until it is resumed.
func (r *rig) build() {
	if r.state("orchestrator", 0) == "new" {
		r.fire("orchestrator", 0, "init", 3)
	}
	r.hold("Build")
	r.op("building", 0, "start")
}
