package promela

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
)

// Shape bounds the run model: what there is, and how much of what a host may do.
type Shape struct {
	// Name is for tables.
	Name string
	// Slots is how many pipeline slots there are, Runs how many runs are armed
	// on them in all, Tokens how many wait references a host may hold at once.
	Slots, Runs, Tokens int
	// Join lets runs be joined behind one another. Caller orders runs between
	// the work of a caller, with the first Edges of Start, Fork and Tail.
	Join, Caller bool
	Edges        int
	// Faulty lets calls fail, whether they took effect or not.
	Faulty bool
	// Resets is how many verified resets there may be. Quarantine lets the lane
	// be quarantined at any time.
	Resets     int
	Quarantine bool
	// Depth is how many entries a stream holds.
	Depth int
}

// String says what the bounds are.
func (s Shape) String() string {
	return fmt.Sprintf("%s: %d slots, %d runs, %d tokens, join %v, caller %v with %d edges, faulty calls %v, %d resets, quarantine %v, streams of %d entries",
		s.Name, s.Slots, s.Runs, s.Tokens, s.Join, s.Caller, s.Edges, s.Faulty, s.Resets, s.Quarantine, s.Depth)
}

func (s Shape) validate() error {
	if s.Slots < 1 || s.Slots > mostSlots || s.Runs < 1 || s.Tokens < 0 || s.Tokens > mostTokens ||
		s.Depth < 1 || s.Depth > mostDepth || s.Edges < 0 || s.Edges > 3 {
		return fmt.Errorf("%s: want 1 to %d slots, a run or more, at most %d tokens, streams of 1 to %d entries, at most 3 edges",
			s, mostSlots, mostTokens, mostDepth)
	}
	return nil
}

// Shapes are the models that are searched whole and counted on both sides. The
// large ones take minutes.
func Shapes(large bool) []Shape {
	out := []Shape{
		{Name: "two runs", Slots: 2, Runs: 2, Depth: 4},
		{Name: "failing calls", Slots: 1, Runs: 3, Depth: 4, Faulty: true, Resets: 1, Quarantine: true},
		{Name: "a caller", Slots: 1, Runs: 2, Depth: 4, Faulty: true, Caller: true, Edges: 1, Resets: 1},
		{Name: "a token", Slots: 2, Runs: 1, Tokens: 1, Depth: 4, Faulty: true, Resets: 1},
		{Name: "a join", Slots: 2, Runs: 1, Depth: 4, Join: true, Faulty: true},
	}
	if large {
		out = append(out,
			Shape{Name: "a token in quarantine", Slots: 2, Runs: 1, Tokens: 1, Depth: 4, Quarantine: true},
			Shape{Name: "two joined runs", Slots: 2, Runs: 2, Depth: 4, Join: true},
		)
	}
	return out
}

// ruled are the lifecycles of the run model.
var ruled = []string{"fence", "token", "join", "caller_order"}

const (
	generation   = 1
	rightContext = 1
	wrongContext = 2
)

// RunRules takes the lifecycles of the run model out of those of a lane, as in
// states.Definitions, and compiles them after change has been made to copies
// of them; nil changes nothing.
func RunRules(defs []*machine.Definition, change func([]*machine.Definition)) (*machine.Rules, error) {
	set, err := Alone(defs, ruled...)
	if err != nil {
		return nil, err
	}
	if change != nil {
		for i, d := range set {
			c := *d
			c.Rows = slices.Clone(d.Rows)
			for j := range c.Rows {
				c.Rows[j].Then = slices.Clone(c.Rows[j].Then)
			}
			set[i] = &c
		}
		change(set)
	}
	return machine.Compile(set...)
}

// world is the world that a model begins with: a live environment, an open lane.
func (s Shape) world(rules *machine.Rules) (*machine.World, error) {
	w, err := rules.NewWorld(machine.Config{Name: s.Name, Pools: s.pools(rules), Queue: max(1, s.Tokens)})
	if err != nil {
		return nil, err
	}
	for _, e := range []struct {
		machine, event string
		args           []uint64
	}{
		{"environment", "to_live", nil},
		{"environment", "set_context", []uint64{rightContext}},
		{"lane", "to_open", nil},
	} {
		m := rules.Machine(e.machine)
		if step := w.Issue(w.Ref(m.ID(), 0), m.MustEvent(e.event), e.args...); step.Status != machine.Accepted {
			return nil, w.RefusalError(step)
		}
	}
	return w, nil
}

func (s Shape) pools(rules *machine.Rules) map[string]int {
	sizes := map[string]int{"slot": s.Slots, "token": max(1, s.Tokens)}
	out := map[string]int{}
	for _, p := range rules.Pools() {
		out[p] = sizes[p]
	}
	return out
}

// bounds are the export's.
func (s Shape) exportBounds(rules *machine.Rules) Bounds {
	ids := map[string]int{}
	for _, sort := range rules.Sorts() {
		ids[sort] = max(s.Runs, wrongContext)
	}
	return Bounds{Pools: s.pools(rules), Identities: ids}
}

// edges are the orders that a caller's events are recorded for.
func (s Shape) edges() []string {
	all := []string{"at_tail", "at_start", "at_fork"}
	return slices.Clone(all[:s.Edges])
}
