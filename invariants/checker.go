package invariants

import (
	"slices"
	"sync"

	"github.com/runfence/runfence/machine"
)

// Checker evaluates the catalogue under one set of rules: every name that a
// predicate looks at is found once, and a record that no predicate cares about
// costs next to nothing. It is immutable: any number of goroutines may use it.
type Checker struct {
	rules  *machine.Rules
	worlds []boundWorld
	steps  []boundStep
	// due lists, by machine and row, the step predicates that look at records
	// of the row; roots those that look at a machine's operations.
	due     [][]dueRow
	roots   [][]uint16
	refused []uint16
	scope   []Scope
}

type boundWorld struct {
	in    *Invariant
	holds worldPredicate
}

type boundStep struct {
	in    *Invariant
	holds stepPredicate
}

// dueRow lists positions in Checker.steps for the kinds of records of a row.
type dueRow struct{ stepped, issued, settled []uint16 }

// Scope says whether an invariant is evaluated under some rules.
type Scope struct {
	Invariant *Invariant
	// Evaluated: the rules have what the predicate looks at. A predicate about
	// a machine that the rules lack holds of nothing; Why says which.
	Evaluated bool
	// Unknown: the rules have the machines, but not what the predicate reads of
	// them, which Why names. It is neither a pass nor a finding.
	Unknown bool
	Why     string
}

var checkers struct {
	sync.Mutex
	// of has the latest last: rules are few, but a host that makes them by the
	// thousand must not have them kept.
	of []*Checker
}

const maxCheckers = 8

// For returns the checker for rules. It is made once for rules in use, and safe
// for concurrent use.
func For(rules *machine.Rules) *Checker {
	checkers.Lock()
	defer checkers.Unlock()
	if i := slices.IndexFunc(checkers.of, func(c *Checker) bool { return c.rules == rules }); i >= 0 {
		return checkers.of[i]
	}
	if len(checkers.of) == maxCheckers {
		checkers.of = slices.Delete(checkers.of, 0, 1)
	}
	c := newChecker(rules)
	checkers.of = append(checkers.of, c)
	return c
}

func newChecker(rules *machine.Rules) *Checker {
	c := &Checker{rules: rules, due: make([][]dueRow, rules.NumMachines()), roots: make([][]uint16, rules.NumMachines())}
	for i := range c.due {
		c.due[i] = make([]dueRow, rules.At(machine.MachineID(i)).NumRows())
	}
	for i := range catalogue {
		c.bind(&catalogue[i])
	}
	return c
}

// bind finds the names of an invariant, and leaves it out if they are not there.
func (c *Checker) bind(in *Invariant) {
	s := Scope{Invariant: in, Evaluated: true}
	defer func() { c.scope = append(c.scope, s) }()
	if in.device != nil {
		s.Evaluated, s.Why = false, "it needs the device"
		return
	}
	n := &names{rules: c.rules}
	var w worldPredicate
	var p stepPredicate
	if in.world != nil {
		w = in.world(n)
	}
	if in.step != nil {
		p = in.step(n)
	}
	switch {
	case len(n.absent) > 0:
		s.Evaluated, s.Why = false, "the rules have no machine "+n.absent[0]
		return
	case len(n.missing) > 0:
		s.Evaluated, s.Unknown, s.Why = false, true, n.missing[0]
		return
	}
	if w != nil {
		c.worlds = append(c.worlds, boundWorld{in, w})
	}
	if p != nil {
		c.steps = append(c.steps, boundStep{in, p})
		for _, t := range n.on {
			c.watch(uint16(len(c.steps)-1), t)
		}
	}
}

func (c *Checker) watch(step uint16, t trigger) {
	add := func(list *[]uint16) {
		if !slices.Contains(*list, step) {
			*list = append(*list, step)
		}
	}
	switch t.when {
	case refused:
		add(&c.refused)
		return
	case started:
		add(&c.roots[t.of])
		return
	}
	m := c.rules.At(t.of)
	for r := range m.NumRows() {
		d := &c.due[t.of][r]
		if t.rows != nil && t.rows[t.of][r] == 0 {
			continue
		}
		switch t.when {
		case moved:
			add(&d.stepped)
			add(&d.settled)
			if m.Row(machine.RowID(r)).Before != "" {
				add(&d.issued)
			}
		case issued:
			add(&d.issued)
		case answered:
			add(&d.settled)
		case taken:
			add(&d.stepped)
			add(&d.issued)
		}
	}
}

// World tells every invariant that does not hold in a world of the rules. It
// allocates nothing if all do.
func (c *Checker) World(w *machine.World) []*Finding {
	var out []*Finding
	for i := range c.worlds {
		if err := c.worlds[i].holds(w); err != nil {
			out = append(out, &Finding{Invariant: c.worlds[i].in, Seq: w.Seq(), Detail: err.Error()})
		}
	}
	return out
}

// Step tells every invariant that one atomic step breaks, which led from the
// world before to the world after; recs are its records, the first and those of
// the instances that it took along. It allocates nothing if all hold.
func (c *Checker) Step(before, after *machine.World, recs []machine.Record) []*Finding {
	return c.evaluate(before, after, recs, nil)
}

// evaluate is Step, and counts evaluations by the predicate, if they are counted.
func (c *Checker) evaluate(before, after *machine.World, recs []machine.Record, counts []uint64) []*Finding {
	var out []*Finding
	for i := range recs {
		rec := &recs[i]
		var due []uint16
		switch rec.Kind {
		case machine.Rejected, machine.Holed:
			due = c.refused
		case machine.Stepped:
			due = c.due[rec.Ref.Machine][rec.Row].stepped
		case machine.Issued:
			due = c.due[rec.Ref.Machine][rec.Row].issued
		case machine.Settled:
			due = c.due[rec.Ref.Machine][rec.Row].settled
		default:
			continue
		}
		for _, p := range due {
			out = c.step(out, p, step{before, after, recs, rec}, counts)
		}
		if int(rec.Root.Machine) >= len(c.roots) {
			continue // refused: there is no such machine
		}
		for _, p := range c.roots[rec.Root.Machine] {
			out = c.step(out, p, step{before, after, recs, rec}, counts)
		}
	}
	return out
}

func (c *Checker) step(out []*Finding, p uint16, s step, counts []uint64) []*Finding {
	b := &c.steps[p]
	if counts != nil {
		counts[p]++
	}
	err := b.holds(s)
	if err == nil || slices.ContainsFunc(out, func(f *Finding) bool { return f.Invariant == b.in }) {
		return out
	}
	return append(out, &Finding{Invariant: b.in, Seq: s.rec.Seq, Detail: err.Error()})
}

// Scope says of each invariant of the catalogue whether it is evaluated under
// the rules.
func (c *Checker) Scope() []Scope { return slices.Clone(c.scope) }

// worldPredicate says what is wrong with a world.
type worldPredicate func(w *machine.World) error

// stepPredicate says what is wrong with a step, looking at one of its records.
type stepPredicate func(s step) error

// step is one record with the worlds around the step that it is of.
type step struct {
	before, after *machine.World
	recs          []machine.Record
	rec           *machine.Record // the one under consideration
}

// slot is that of the record's instance.
func (s step) slot() int { return int(s.rec.Ref.Slot) }

// lead is the record that the step began with: the answer that it takes, or
// the event that came.
func (s step) lead() *machine.Record { return &s.recs[0] }

// vouched reports whether a host fired the event at this very instance: then it
// is the host that says so, and no other record can.
func (s step) vouched() bool { return s.rec.Via != machine.ViaJoint && s.rec.Kind == machine.Stepped }

// answerOf reports whether the step takes the answer of one of the rows' calls.
func (s step) answerOf(calls rows) bool {
	return s.lead().Kind == machine.Settled && calls.has(s.lead())
}

// answeredWell is answerOf an answer that came, with that value.
func (s step) answeredWell(calls rows, value uint64) bool {
	return s.answerOf(calls) && s.lead().Result.Outcome == machine.OK && s.lead().Result.Value == value
}

// takes reports whether the instance takes one of the rows in the step. Where it
// takes several, the worlds around the step show what comes of all.
func (s step) takes(r rows) bool {
	for i := range s.recs {
		if s.recs[i].Ref == s.rec.Ref && r.has(&s.recs[i]) {
			return true
		}
	}
	return false
}

// expired reports whether the step takes the answer that a wait expired.
func (s step) expired() bool {
	return s.lead().Kind == machine.Settled && s.lead().Result.Outcome == machine.TimedOut
}
