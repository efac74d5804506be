package promela

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// lifecycle is a machine as the exporter sees it: its rows read, and the
// variables that an instance has.
type lifecycle struct {
	name  string
	def   *machine.Definition
	m     *machine.Machine
	id    machine.MachineID
	size  int
	facts map[string]machine.Type
	views map[string]*machine.Expr
	rows  []*row
	// calls says that a row has a command.
	calls bool
	// emitted has the events that rows send to the instance itself.
	emitted []string
}

// row is a row with its texts read.
type row struct {
	*machine.Row
	n      int // its position
	froms  []from
	guard  *machine.Expr // nil: none, or else
	before []machine.Update
	with   []machine.Invocation
	then   []*target
}

// from is a state that a row starts from, and the row in flight during which
// it is taken, or -1.
type from struct{ state, during int }

type target struct {
	*machine.Target
	outcomes []machine.Outcome
	when     *machine.Expr
	do       []machine.Update
	with     []machine.Invocation
	emit     []machine.Invocation
}

// refusal is why something cannot be exported. It is thrown while the rows are
// walked, and caught where the exporter was entered.
type refusal struct{ error }

func refuse(format string, args ...any) {
	panic(refusal{fmt.Errorf(format, args...)})
}

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case refusal:
		*err = r.error
	default:
		panic(r)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(refusal{err})
	}
	return v
}

// read reads a machine's texts, which the compiler has found good.
func read(m *machine.Machine, size int) *lifecycle {
	d := m.Definition()
	l := &lifecycle{name: d.Name, def: d, m: m, id: m.ID(), size: size, facts: map[string]machine.Type{}, views: map[string]*machine.Expr{}}
	for i, f := range d.Facts {
		l.facts[f.Name] = m.FactType(machine.FactID(i))
	}
	for _, v := range d.Views {
		l.views[v.Name] = must(machine.ParseExpr(v.Expr))
	}
	for i := range d.Rows {
		r := &row{Row: &d.Rows[i], n: i}
		where := fmt.Sprintf("%s, row %s", l.name, r.ID)
		if r.GuardFunc != nil || r.DoFunc != nil {
			refuse("%s: an opaque Go function has no form in Promela", where)
		}
		for f := range strings.SplitSeq(r.From, "|") {
			state, during, is := strings.Cut(f, "▸")
			id, _ := m.State(state)
			at := from{int(id), -1}
			if is {
				at.during = slices.IndexFunc(d.Rows, func(x machine.Row) bool { return x.ID == during })
			}
			r.froms = append(r.froms, at)
		}
		if g := strings.TrimSpace(r.Guard); g != "" && g != "else" {
			r.guard = must(machine.ParseExpr(g))
		}
		r.before = must(machine.ParseUpdates(r.Before))
		r.with = invocations(r.With)
		l.calls = l.calls || r.Command != ""
		for j := range r.Then {
			t := &target{Target: &r.Then[j]}
			if t.When != "" {
				t.when = must(machine.ParseExpr(t.When))
			}
			t.do, t.with, t.emit = must(machine.ParseUpdates(t.Do)), invocations(t.With), invocations(t.Emit)
			for _, o := range strings.Fields(t.On) {
				t.outcomes = append(t.outcomes, must(machine.ParseOutcome(o)))
			}
			if len(t.emit) > 1 {
				refuse("%s: it emits %d events in one step, and one can wait for an instance", where, len(t.emit))
			}
			for _, e := range t.emit {
				if e.Peer != "self" {
					refuse("%s: it emits %s to another instance; what waits is kept by the instance it is for", where, e)
				}
				if !slices.Contains(l.emitted, e.Name) {
					l.emitted = append(l.emitted, e.Name)
				}
			}
			r.then = append(r.then, t)
		}
		l.rows = append(l.rows, r)
	}
	return l
}

func invocations(texts []string) []machine.Invocation {
	var out []machine.Invocation
	for _, t := range texts {
		out = append(out, must(machine.ParseInvocation(t)))
	}
	return out
}

// targets are the ones that an outcome of the row picks among.
func (r *row) targets(o machine.Outcome) []*target {
	var named, rest []*target
	for _, t := range r.then {
		switch {
		case slices.Contains(t.outcomes, o):
			named = append(named, t)
		case len(t.outcomes) == 0:
			rest = append(rest, t)
		}
	}
	if named != nil {
		return named
	}
	return rest
}

// event returns an event's position and arguments.
func (l *lifecycle) event(name string) (machine.EventID, []machine.Fact) {
	id, ok := l.m.Event(name)
	if !ok {
		refuse("%s has no event %q", l.name, name)
	}
	return id, l.def.Events[id].Args
}

func (l *lifecycle) argType(e machine.EventID, i int) machine.Type { return l.m.EventArgs(e)[i] }

// variable is the name of a variable of an instance.
func (l *lifecycle) variable(slot int, what string) string {
	if l.def.Pool == "" {
		return l.name + "_" + what
	}
	return fmt.Sprintf("%s_%s[%d]", l.name, what, slot)
}

// Names of the variables that every instance may have besides its facts: facts
// are Go identifiers, so a double underscore at the start is nobody's.
const (
	stateVar  = "_state"
	flightVar = "_flight" // 0, or 1 and the position of the row in flight
	waitsVar  = "_waits"  // 0, or 1 and the position of the event that waits for its turn
)

// kept is the variable for an argument of an event whose command is in flight.
func kept(event, arg string) string { return "_" + event + "_" + arg }

// waiting is the variable for an argument of an event that waits for its turn.
func waiting(event, arg string) string { return "_waits_" + event + "_" + arg }

func freshVar(sort string) string { return "_fresh_" + sort }

func (l *lifecycle) stateTerm(i int) term {
	return named(constant(l.name, l.def.States[i].Name), int64(i))
}

// flyingTerm stands for being in flight on a row, or on none if it is negative.
func (l *lifecycle) flyingTerm(row int) term {
	if row < 0 {
		return number(0)
	}
	return named(constant(l.name, "flying", l.rows[row].ID), int64(row)+1)
}

// waitsTerm stands for an event that waits for its turn.
func (l *lifecycle) waitsTerm(event int) term {
	return named(constant(l.name, "next", l.def.Events[event].Name), int64(event)+1)
}

// constant is the name of a state or of a value of an enum.
func constant(parts ...string) string {
	s := strings.Join(parts, "_")
	return strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(s))
}
