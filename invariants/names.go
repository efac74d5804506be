package invariants

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
)

// names finds where the rules have what a predicate looks at, once. Rules
// without a machine that a predicate is about have nothing that it could be
// broken by; rules that have the machine, but not a name of it, leave the
// predicate unknown.
type names struct {
	rules   *machine.Rules
	absent  []string // machines that a predicate is about
	missing []string // names in machines that there are
	on      []trigger
}

// kind is one machine of the rules.
type kind struct {
	id    machine.MachineID
	there bool

	n *machine.Machine
	r *names
}

// one is an instance of a machine in a world.
type one struct {
	state machine.StateID
	facts []uint64
}

// kind is a machine that a predicate is about.
func (n *names) kind(name string) kind {
	k := n.maybe(name)
	if !k.there {
		n.absent = append(n.absent, name)
	}
	return k
}

// maybe is a machine that rules may do without.
func (n *names) maybe(name string) kind {
	m := n.rules.Machine(name)
	if m == nil {
		return kind{r: n}
	}
	return kind{id: m.ID(), there: true, n: m, r: n}
}

func (n *names) lacks(k kind, what, name string) {
	if k.there {
		n.missing = append(n.missing, k.n.Name()+" has no "+what+" "+name)
	}
}

// count is how many instances there are in a world.
func (k kind) count(w *machine.World) int {
	if !k.there {
		return 0
	}
	return w.Capacity(k.id)
}

func (k kind) at(w *machine.World, slot int) one {
	s, f := w.Occupant(k.id, slot)
	return one{s, f}
}

// alone is the instance of a machine that there is once, or none.
func (k kind) alone(w *machine.World) (one, bool) {
	if !k.there {
		return one{}, false
	}
	return k.at(w, 0), true
}

// pack is a reference to the present occupant of a slot, as facts hold it.
func (k kind) pack(w *machine.World, slot int) uint64 { return w.Ref(k.id, slot).Pack() }

// fail says what is wrong with an instance.
func (k kind) fail(w *machine.World, slot int, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{w.Rules().RefName(w.Ref(k.id, slot))}, args...)...)
}

// show names the state that an instance is in.
func (k kind) show(i one) string { return k.n.StateName(i.state) }

// stateSet is a set of states of one machine.
type stateSet uint64

func (s stateSet) has(i one) bool { return s>>i.state&1 != 0 }

func (k kind) in(list ...string) stateSet {
	var s stateSet
	for _, name := range list {
		var id machine.StateID
		ok := false
		if k.there {
			id, ok = k.n.State(name)
		}
		if !ok || id > 63 {
			k.r.lacks(k, "state", name)
			continue
		}
		s |= 1 << id
	}
	return s
}

// fact is the position of a fact.
type fact uint16

func (f fact) of(i one) uint64 { return i.facts[f] }

func (k kind) fact(name string) fact {
	if !k.there {
		return 0
	}
	id, ok := k.n.Fact(name)
	if !ok {
		k.r.lacks(k, "fact", name)
	}
	return fact(id)
}

// test holds of an instance whose fact has one of some values.
type test struct {
	at  fact
	set uint64
}

func (t test) holds(i one) bool { return t.set>>i.facts[t.at]&1 != 0 }

// is tests a fact for values, as rules write them.
func (k kind) is(name string, values ...string) test {
	t := test{at: k.fact(name)}
	if !k.there {
		return t
	}
	id, ok := k.n.Fact(name)
	for _, v := range values {
		if !ok {
			break
		}
		w, err := k.n.FactType(id).Parse(v)
		if err != nil || w > 63 {
			k.r.lacks(k, "value of "+name, v)
			continue
		}
		t.set |= 1 << w
	}
	return t
}

// identityFacts is the facts run_epoch, generation and dispatch of a machine.
type identityFacts [3]fact

func (k kind) identity() identityFacts {
	return identityFacts{k.fact("run_epoch"), k.fact("generation"), k.fact("dispatch")}
}

func (d identityFacts) of(i one) [3]uint64 {
	return [3]uint64{i.facts[d[0]], i.facts[d[1]], i.facts[d[2]]}
}

// whenKind says at which kinds of records a step predicate looks.
type whenKind uint8

const (
	moved    whenKind = iota // the instance may have changed
	issued                   // a command is in the outbox
	answered                 // an answer was taken
	taken                    // a row was chosen
	refused                  // nothing was
	started                  // any record of an operation of the machine's
)

// trigger is a kind of records of a machine that a step predicate looks at. Nil
// rows are all.
type trigger struct {
	when whenKind
	of   machine.MachineID
	rows rows
}

// rows is a set of rows of several machines: by machine and row, one more than
// a position that goes with the row, or 0.
type rows [][]uint8

func (r rows) has(rec *machine.Record) bool { return r.at(rec) >= 0 }

// at is the position that goes with the row of a record, or -1.
func (r rows) at(rec *machine.Record) int {
	if of := r[rec.Ref.Machine]; int(rec.Row) < len(of) {
		return int(of[rec.Row]) - 1
	}
	return -1
}

func (r rows) add(m *machine.Machine, id machine.RowID, position int) {
	if r[m.ID()] == nil {
		r[m.ID()] = make([]uint8, m.NumRows())
	}
	r[m.ID()][id] = uint8(position + 1)
}

// join adds the rows of other sets.
func (r rows) join(others ...rows) rows {
	for _, o := range others {
		for m := range o {
			if r[m] == nil {
				r[m] = slices.Clone(o[m])
				continue
			}
			for i, p := range o[m] {
				r[m][i] = max(r[m][i], p)
			}
		}
	}
	return r
}

// moved: look whenever an instance of one of the machines may have changed.
func (n *names) moved(kinds ...kind) {
	for _, k := range kinds {
		if k.there {
			n.on = append(n.on, trigger{when: moved, of: k.id})
		}
	}
}

// rooted: look at every record of a host operation of the machine's.
func (n *names) rooted(k kind) {
	if k.there {
		n.on = append(n.on, trigger{when: started, of: k.id})
	}
}

// refused: look at what was refused.
func (n *names) refused() { n.on = append(n.on, trigger{when: refused}) }

// calling finds the rows that issue one of the calls.
func (n *names) calling(calls ...string) rows {
	return n.rows(func(m *machine.Machine, id machine.RowID) int {
		return position(slices.Contains(calls, callOf(m, id)))
	})
}

// position is that of a row that is wanted for itself.
func position(wanted bool) int {
	if wanted {
		return 0
	}
	return -1
}

// rows finds rows, and the position that goes with each; -1 is not to have it.
func (n *names) rows(want func(m *machine.Machine, id machine.RowID) int) rows {
	out := make(rows, n.rules.NumMachines())
	for i := range n.rules.NumMachines() {
		m := n.rules.At(machine.MachineID(i))
		for r := range m.NumRows() {
			if at := want(m, machine.RowID(r)); at >= 0 {
				out.add(m, machine.RowID(r), at)
			}
		}
	}
	return out
}

// issued and answered: look at the issue, or the answer, of one of the calls.
func (n *names) issued(calls ...string) rows { return n.look(issued, n.calling(calls...)) }

func (n *names) answered(calls ...string) rows { return n.look(answered, n.calling(calls...)) }

// look: look at records of these rows.
func (n *names) look(when whenKind, r rows) rows {
	for m := range r {
		if r[m] != nil {
			n.on = append(n.on, trigger{when: when, of: machine.MachineID(m), rows: r})
		}
	}
	return r
}

// callOf is the name of the call that a row issues, or nothing.
func callOf(m *machine.Machine, id machine.RowID) string {
	name := m.Row(id).Command
	for i := range name {
		if name[i] == '(' {
			return name[:i]
		}
	}
	return name
}

// eventRows finds the rows of an event of a machine.
func (n *names) eventRows(k kind, events ...string) rows {
	return n.rows(func(m *machine.Machine, id machine.RowID) int {
		return position(k.there && m == k.n && slices.Contains(events, m.Row(id).Event))
	})
}
