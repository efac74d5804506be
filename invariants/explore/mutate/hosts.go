package mutate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

const process = 1

// Model is a small system of rules against any answers, to be made of a mutant.
type Model struct {
	Name  string
	Above bool // of the orchestrator's rules
	// Checked models have hosts that keep to what hosts may do, so an invariant
	// that breaks there is the rules' fault.
	Checked bool
	Bad     int
	Pools   map[string]int
	Begin   func(w *machine.World) error
	Host    func(w *machine.World) []explore.Call
	Also    func(before, after *machine.World, recs []machine.Record) *explore.Finding
	// Lenient names operations that a host of this kind may make fail by what it
	// does beside them.
	Lenient []string
	// Most bounds the worlds that are visited.
	Most int
}

// system makes the model of a mutant's rules.
func (m *Model) system(rules *machine.Rules, observe func(*machine.World, *machine.Step, []machine.Record)) (explore.System, error) {
	return explore.Answers(explore.AnswersConfig{
		Name: m.Name, Rules: rules, Pools: m.Pools, Begin: m.Begin, Host: m.Host, Bad: m.Bad, Unchecked: !m.Checked, Lenient: append([]string{"submit", "ending"}, m.Lenient...), Also: m.Also, Observe: observe,
	})
}

func slots(n int) map[string]int {
	return map[string]int{"slot": n, "token": 1, "callable": 1, "watched": 2 * n}
}

func twoTokens() map[string]int {
	p := slots(2)
	p["token"] = 2
	return p
}

// Models are all of them.
func Models() []*Model { return append(Small(), Large()...) }

// Small are the models that are quick to visit whole; Large take minutes.
func Small() []*Model {
	return []*Model{
		{Name: "a caller's run, all going well", Checked: true, Pools: slots(1), Begin: opened(1), Host: user(0, 1, 1), Most: 20_000},
		{Name: "two joined runs, all going well", Checked: true, Pools: slots(2), Begin: opened(2), Host: pair, Most: 20_000},
	}
}

// Large are the models that take minutes to visit.
func Large() []*Model {
	out := []*Model{
		{Name: "a run", Checked: true, Bad: 1, Pools: slots(1), Begin: opened(1), Host: user(0, 0, 0), Most: 8_000},
		{Name: "a caller's run", Checked: true, Bad: 1, Pools: slots(1), Begin: opened(1), Host: user(0, 1, 1), Most: 8_000},
		{Name: "two joined runs", Checked: true, Bad: 1, Pools: slots(2), Begin: opened(2), Host: pair, Most: 8_000},
	}
	out = append(out,
		&Model{Name: "references", Checked: true, Pools: twoTokens(), Begin: opened(2), Host: both(user(0, 0, 0), references(false)), Most: 8_000},
		&Model{Name: "references without a receipt", Checked: true, Lenient: []string{"launch"}, Pools: twoTokens(), Begin: opened(2), Host: both(user(0, 0, 0), references(true)), Most: 8_000},
		&Model{
			Name: "an orchestrator's run", Above: true, Checked: true, Bad: 1, Begin: initialised, Host: above, Also: toldEarly, Most: 8_000,
			Pools: map[string]int{"work": 2, "resource": 1, "domain": 1, "task": 1, "endpoint": 1},
		},
	)
	for _, m := range []string{"environment", "latch", "lane", "opening", "closing", "recovery", "registry", "callable", "health", "watched", "invocation"} {
		out = append(out, &Model{Name: "anything done to " + m, Bad: 1, Pools: slots(1), Host: anything(m), Begin: opened(1), Most: 1_000})
	}
	out = append(out,
		&Model{Name: "anything done to an environment, from the beginning", Bad: 1, Pools: slots(1), Host: anything("environment"), Most: 1_000},
		&Model{Name: "anything done to a lane, from the beginning", Bad: 1, Pools: slots(1), Host: anything("opening", "lane", "closing"), Most: 1_000},
		&Model{
			Name: "anything done to an orchestrator", Above: true, Bad: 1, Begin: initialised, Most: 2_000,
			Pools: map[string]int{"work": 2, "resource": 1, "domain": 1, "task": 1, "endpoint": 1},
			Host:  anything("orchestrator", "building", "resources", "resource", "domain", "free_lock", "task", "ending"),
		},
	)
	for _, m := range []string{"run", "fence", "token", "prepare", "launch", "poll", "drain", "finalize", "submit", "region", "caller_order", "join", "outcome"} {
		out = append(out,
			&Model{Name: "anything done to " + m, Bad: 1, Pools: slots(2), Begin: opened(2), Host: both(anything(m), user(0, 1, 1)), Most: 300},
			&Model{Name: "anything done to " + m + " once launched", Bad: 1, Pools: slots(2), Begin: launched(1, 1), Host: both(anything(m), user(0, 1, 1)), Most: 300},
		)
	}
	return out
}

// references is a host that counts a wait of slot 1's streams on slot 0's run,
// and lets go of it in every way there is. An early one does so from the arming
// on, without a receipt that would say what there is to wait for.
func references(early bool) func(w *machine.World) []explore.Call {
	return func(w *machine.World) []explore.Call { return referencesOf(w, early) }
}

func referencesOf(w *machine.World, early bool) []explore.Call {
	var out []explore.Call
	fence := w.Rules().Machine("fence")
	ref := w.Ref(fence.ID(), 0)
	for slot := range w.Capacity(w.Rules().Machine("token").ID()) {
		call := func(event string, args ...uint64) {
			out = append(out, explore.Call{Machine: "token", Slot: slot, Event: event, Args: args})
		}
		switch {
		case settled(w, "token", slot, "free"):
			arming, _ := w.Fact(ref, fence.MustFact("arming"))
			if arming == 0 || !early && !settled(w, "run", 0, "launched", "drained") {
				continue
			}
			id := identity(w, 0)
			for boundary := range uint64(2) {
				call("reserve", ref.Pack(), id[1], id[2], id[3], arming, boundary, boundary, w.Ref(fence.ID(), 1).Pack())
			}
		case settled(w, "token", slot, "reserved", "committed"):
			call("commit")
			call("revoke")
			call("release", 0)
			call("release", 1)
			call("quiesce")
			call("discard", ref.Pack())
		}
	}
	return out
}

// initialised is an orchestrator that takes runs.
func initialised(w *machine.World) error {
	run(w, explore.Call{Machine: "orchestrator", Event: "init", Args: []uint64{3}})
	return nil
}

// opened brings a world to an open lane, all going well.
func opened(depth uint64) func(w *machine.World) error {
	return func(w *machine.World) error {
		r := w.Rules()
		m := r.Machine("opening")
		ref := w.Ref(m.ID(), 0)
		s := w.Issue(ref, m.MustEvent("start"), process, 0, 0, 0, depth)
		for range 40 {
			if s == nil || s.Status == machine.StepRefused || s.Status == machine.Hole {
				break
			}
			if s.Status == machine.InFlight {
				s = w.Settle(s.Ref, machine.Result{Value: explore.Context})
			} else {
				s = w.Next(ref)
			}
		}
		if got := w.StateName(w.Ref(r.Machine("lane").ID(), 0)); got != "open" {
			return fmt.Errorf("the rules do not open a lane: it is %s", got)
		}
		return nil
	}
}

// settled reports whether the instance is in one of the states, a command in
// flight or not.
func settled(w *machine.World, name string, slot int, states ...string) bool {
	s, _, _ := strings.Cut(w.StateName(w.Ref(w.Rules().Machine(name).ID(), slot)), "▸")
	return slices.Contains(states, s)
}

// identity reads that of the slot's run, for a host that has its handle.
func identity(w *machine.World, slot int) []uint64 {
	m := w.Rules().Machine("run")
	ref := w.Ref(m.ID(), slot)
	out := []uint64{process}
	for _, f := range m.IdentityFacts() {
		v, _ := w.Fact(ref, f)
		out = append(out, v)
	}
	return out
}

// user is a host that uses a slot in every order, an operation at a time, but
// a poll beside a wait.
func user(slot int, eager, async uint64) func(w *machine.World) []explore.Call {
	return func(w *machine.World) []explore.Call {
		if !settled(w, "prepare", slot, "ready", "waiting") || !settled(w, "finalize", slot, "ready") || !settled(w, "recovery", 0, "ready", "unusable") {
			return nil
		}
		if !settled(w, "launch", slot, "idle", "not started", "complete", "partial") || w.Queued() > 2 {
			return nil
		}
		id := identity(w, slot)
		m := w.Rules().Machine("run")
		ref := w.Ref(m.ID(), slot)
		var out []explore.Call
		switch {
		case settled(w, "run", slot, "idle"):
			if ref.Gen < 2 {
				out = append(out, explore.Call{Machine: "prepare", Slot: slot, Event: "start", Args: []uint64{process, 1, eager, async}})
			}
			return out
		case settled(w, "run", slot, "prepared"):
			permit, _ := w.Fact(ref, m.MustFact("permit"))
			out = append(out, explore.Call{Machine: "launch", Slot: slot, Event: "start", Args: append(slices.Clone(id), permit)})
		case settled(w, "prepare", slot, "waiting"):
			return []explore.Call{{Machine: "prepare", Slot: slot, Event: "retry", Args: id}, {Machine: "prepare", Slot: slot, Event: "abort", Args: id}}
		}
		for _, op := range []string{"drain", "poll"} {
			if settled(w, op, slot, "ready") {
				out = append(out, explore.Call{Machine: op, Slot: slot, Event: "start", Args: id})
			}
		}
		out = append(out, explore.Call{Machine: "finalize", Slot: slot, Event: "start", Args: id})
		if settled(w, "run", slot, "partial") {
			out = append(out, explore.Call{Machine: "recovery", Event: "start", Args: []uint64{process}})
		}
		return out
	}
}

// pair is a host that submits two runs, the second behind the first, and waits
// for and finalizes them in every order.
func pair(w *machine.World) []explore.Call {
	busy := func(slot int) bool {
		return !settled(w, "submit", slot, "ready") || !settled(w, "prepare", slot, "ready") || !settled(w, "finalize", slot, "ready") ||
			!settled(w, "launch", slot, "idle", "not started", "complete", "partial") || !settled(w, "drain", slot, "ready")
	}
	if w.Queued() > 0 || busy(0) || busy(1) || !settled(w, "recovery", 0, "ready", "unusable") {
		return nil
	}
	ref := func(name string, slot int) machine.Ref { return w.Ref(w.Rules().Machine(name).ID(), slot) }
	submit := func(slot int, work uint64, behind ...uint64) explore.Call {
		args := append([]uint64{process, work, 1, 0}, behind...)
		return explore.Call{Machine: "submit", Slot: slot, Event: "start", Args: append(args, ref("fence", slot).Pack())}
	}
	if settled(w, "run", 0, "idle") && ref("run", 0).Gen == 0 {
		return []explore.Call{submit(0, 1, 0, 0, 0)}
	}
	var out []explore.Call
	if settled(w, "run", 1, "idle") && ref("run", 1).Gen == 0 {
		if settled(w, "run", 0, "launched", "partial") {
			out = append(out, submit(1, 2, ref("run", 0).Pack(), ref("fence", 0).Pack(), ref("drain", 0).Pack()))
		} else {
			out = append(out, submit(1, 2, 0, 0, 0))
		}
	}
	partial := false
	for slot := range 2 {
		partial = partial || settled(w, "run", slot, "partial")
		if settled(w, "run", slot, "launched", "partial") {
			out = append(out, explore.Call{Machine: "drain", Slot: slot, Event: "start", Args: identity(w, slot)})
		}
		if settled(w, "run", slot, "drained", "not started", "retired") {
			out = append(out, explore.Call{Machine: "finalize", Slot: slot, Event: "start", Args: identity(w, slot)})
		}
	}
	if partial {
		out = append(out, explore.Call{Machine: "recovery", Event: "start", Args: []uint64{process}})
	}
	return out
}
