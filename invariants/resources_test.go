package invariants

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// walk lets anything happen that may, in any order and with any answer, and
// returns what does not hold.
func walk(t *rapid.T, rules *machine.Rules) error {
	releases := &ReleaseCounter{Rules: rules}
	var twice error
	w, err := rules.NewWorld(machine.Config{
		Pools: map[string]int{"work": 2, "resource": 2, "domain": 3, "task": 3, "endpoint": 2},
		Recorder: recorder(func(r *machine.Record) {
			if err := releases.Record(r); err != nil && twice == nil {
				twice = err
			}
		}),
	})
	require.NoError(t, err)
	hosts := []struct{ machine, event string }{
		{"building", "start"},
		{"building", "start"},
		{"resource", "charge"},
		{"domain", "allocate"},
		{"domain", "allocate"},
		{"domain", "release"},
		{"domain", "release"},
		{"domain", "free"},
		{"task", "add"},
		{"task", "done"},
		{"task", "done"},
		{"endpoint", "open"},
		{"task", "add_on"},
		{"task", "add_on"},
		{"endpoint", "fail"},
		{"resources", "await"},
		{"resources", "fence"},
		{"resources", "fence"},
		{"resource", "release"},
		{"ending", "start"},
		{"resources", "forget"},
		{"domain", "forget"},
		{"resource", "forget"},
		{"task", "forget"},
		{"endpoint", "forget"},
	}
	o := rules.Machine("orchestrator")
	w.Issue(machine.Ref{Machine: o.ID()}, o.MustEvent("init"), 3)
	for range rapid.SampledFrom([]int{20, 100, 400, 400}).Draw(t, "steps") {
		var refs []machine.Ref
		for m := range rules.NumMachines() {
			for s := range w.Capacity(machine.MachineID(m)) {
				refs = append(refs, w.Ref(machine.MachineID(m), s))
			}
		}
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0, 1: // a host's call
			h := rapid.SampledFrom(hosts).Draw(t, "host")
			if h.machine == "ending" && rapid.IntRange(0, 5).Draw(t, "close") > 0 {
				continue // after a close little happens
			}
			m := rules.Machine(h.machine)
			ref := w.Ref(m.ID(), rapid.IntRange(0, w.Capacity(m.ID())-1).Draw(t, "slot"))
			ev := m.MustEvent(h.event)
			var args []uint64
			switch h.machine + "." + h.event {
			case "resource.charge":
				args = []uint64{1, uint64(ref.Slot) + 1}
			case "domain.allocate":
				args = []uint64{2}
			case "task.add":
				args = []uint64{rapid.Uint64Range(0, 1).Draw(t, "pulled")}
			case "task.add_on":
				e := rules.Machine("endpoint").ID()
				args = []uint64{w.Ref(e, rapid.IntRange(0, w.Capacity(e)-1).Draw(t, "endpoint")).Pack()}
			case "endpoint.fail":
				args = []uint64{7}
			case "task.done":
				args = []uint64{rapid.Uint64Range(0, 1).Draw(t, "failed"), 7}
			}
			w.Issue(ref, ev, args...)
		case 2, 3: // an operation goes on
			var roots []machine.Ref
			for i := range w.Queued() {
				roots = append(roots, w.QueuedRoot(i))
			}
			if len(roots) > 0 {
				w.Next(rapid.SampledFrom(roots).Draw(t, "root"))
			}
		case 4: // an answer comes
			var flying []machine.Ref
			for _, r := range refs {
				if _, f, _ := w.State(r); f {
					flying = append(flying, r)
				}
			}
			if len(flying) > 0 {
				outcome := rapid.SampledFrom([]machine.Outcome{machine.OK, machine.OK, machine.OK, machine.Failed, machine.Refused, machine.Panicked, machine.TimedOut}).Draw(t, "outcome")
				if s := w.Settle(rapid.SampledFrom(flying).Draw(t, "flying"), machine.Result{Outcome: outcome}); s.Status == machine.Hole {
					return w.RefusalError(s)
				}
			}
		case 5:
			w.Drop(rapid.SampledFrom(refs).Draw(t, "dropped"))
		}
		if found, _ := CheckResources(w); len(found) > 0 {
			return found[0]
		}
		if twice != nil {
			return twice
		}
	}
	return nil
}

type recorder func(*machine.Record)

func (f recorder) Record(r *machine.Record) { f(r) }

// TestResourceInvariants: whatever happens in whatever order, they hold.
func TestResourceInvariants(t *testing.T) {
	rules := states.OrchestratorRules()
	for range 30 { // of a hundred walks
		rapid.Check(t, func(t *rapid.T) {
			if err := walk(t, rules); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Each invariant notices a rule that breaks it, by the walk that found nothing.
func TestResourceInvariantsNotice(t *testing.T) {
	row := func(defs []*machine.Definition, name, id string) *machine.Row {
		for _, d := range defs {
			for i := range d.Rows {
				if d.Name == name && d.Rows[i].ID == id {
					return &d.Rows[i]
				}
			}
		}
		panic(name + "/" + id)
	}
	for id, m := range map[string]func(defs []*machine.Definition){
		"one-building": func(d []*machine.Definition) { row(d, "orchestrator", "built").Then[0].Do = "objects = none" },
		"nothing-stranded": func(d []*machine.Definition) {
			row(d, "resources", "retire-stragglers").Then = []machine.Target{{When: "queued == 4096", To: "retiring", Emit: []string{"self.straggle()"}}, {To: "retired"}}
		},
		"one-release-under-way": func(d []*machine.Definition) {
			*row(d, "free_lock", "take-held") = machine.Row{ID: "take-held", From: "held", Event: "take", Then: []machine.Target{{}}}
		},
		"retired-owns-nothing": func(d []*machine.Definition) { row(d, "resources", "fence-bare").Guard = "domains == none" },
		"tasks-are-counted":    func(d []*machine.Definition) { row(d, "task", "lost").Then[0].With = nil },
		"endpoint-told": func(d []*machine.Definition) {
			row(d, "endpoint", "tell").Then[0].To, row(d, "endpoint", "tell").Then[0].Emit = "failed", nil
		},
		"teardown-last": func(d []*machine.Definition) {
			row(d, "ending", "sweep-domain").Guard = "view.domain != none && attempted"
		},
		"R11": func(d []*machine.Definition) {
			*row(d, "domain", "free-freed") = machine.Row{ID: "free-freed", From: "freed", Event: "free", Then: []machine.Target{{To: "freeing", With: []string{"free_lock.take()"}, Emit: []string{"self.execute()"}}}}
		},
	} {
		t.Run(id, func(t *testing.T) {
			defs := states.OrchestratorDefinitions()
			m(defs)
			rules, err := machine.Compile(defs...)
			require.NoError(t, err)
			// Example draws at random from a seed: a walk that finds it is soon met.
			// (Another sentence may be broken by the same rule, and sooner.)
			walks := rapid.Custom(func(t *rapid.T) string {
				if err := walk(t, rules); err != nil {
					return err.Error()
				}
				return ""
			})
			for seed := range 20000 {
				if strings.Contains(walks.Example(seed), id) {
					return
				}
			}
			t.Fatal("no walk notices")
		})
	}
}
