package promela

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Bounds makes a model finite where rules are not.
type Bounds struct {
	// Pools gives the capacity of each pool, as in [machine.Config].
	Pools map[string]int
	// Identities gives, for each sort that the rules mint or hold, the largest
	// number of an identity, at most 255.
	Identities map[string]int
}

// Rules writes steps of a set of lifecycles in Promela. It is not safe for
// concurrent use.
type Rules struct {
	rules  *machine.Rules
	bounds Bounds
	byName map[string]*lifecycle
	all    []*lifecycle
	temps  int
	// named has what each constant stands for, so that no two share a name.
	named map[string]string
}

// New reads rules for export. The error names what has no form in Promela: a
// Go function, a number too large for a variable, a sort of identities that
// has no bound, an event that is emitted to another instance.
func New(rules *machine.Rules, b Bounds) (x *Rules, err error) {
	defer catch(&err)
	x = &Rules{rules: rules, bounds: b, byName: map[string]*lifecycle{}, named: map[string]string{}}
	for i := range rules.NumMachines() {
		m := rules.At(machine.MachineID(i))
		size := 1
		if p := m.Definition().Pool; p != "" {
			if size = b.Pools[p]; size < 1 || size > 254 {
				refuse("%s: pool %q of %d: want 1 to 254", m.Name(), p, size)
			}
		}
		l := read(m, size)
		x.all = append(x.all, l)
		x.byName[l.name] = l
	}
	for _, l := range x.all {
		for _, f := range l.def.Facts {
			x.width(l.name+"."+f.Name, l.facts[f.Name])
		}
		for i, e := range l.def.Events {
			for j, a := range e.Args {
				x.width(l.name+"."+e.Name+": "+a.Name, l.argType(machine.EventID(i), j))
			}
		}
	}
	return x, nil
}

func (x *Rules) lifecycle(name string) *lifecycle {
	l := x.byName[name]
	if l == nil {
		refuse("there is no machine %q", name)
	}
	return l
}

func (x *Rules) bound(sort string) int {
	n := x.bounds.Identities[sort]
	if n < 1 || n > math.MaxUint8 {
		refuse("identities of sort %q have no bound from 1 to 255", sort)
	}
	return n
}

// width is the Promela type that holds the values of a type.
func (x *Rules) width(what string, t machine.Type) string {
	switch t.Kind {
	case machine.Bool:
		return "bool"
	case machine.Code:
		return "int"
	case machine.ID:
		x.bound(t.Name)
		return "byte"
	case machine.Int:
		switch {
		case t.Max <= math.MaxUint8:
			return "byte"
		case t.Max <= math.MaxInt16:
			return "short"
		case t.Max < math.MaxInt32:
			return "int"
		}
		refuse("%s counts to %d: no variable holds that", what, t.Max)
	}
	return "byte"
}

// keeps reports whether a command in flight must remember an argument of its
// event, because a target reads it.
func (x *Rules) keeps(l *lifecycle, r *row, arg string) bool {
	if r.Command == "" {
		return false
	}
	var reads func(e *machine.Expr) bool
	reads = func(e *machine.Expr) bool {
		return e != nil && (e.Op == machine.OpField && e.Peer == "arg" && e.Name == arg || slices.ContainsFunc(e.Args, reads))
	}
	sends := func(cs []machine.Invocation) bool {
		return slices.ContainsFunc(cs, func(c machine.Invocation) bool { return slices.ContainsFunc(c.Args, reads) })
	}
	return slices.ContainsFunc(r.then, func(t *target) bool {
		return reads(t.when) || sends(t.with) || sends(t.emit) ||
			slices.ContainsFunc(t.do, func(u machine.Update) bool { return reads(u.Expr) })
	})
}

// variables lists an instance's variables with their types.
func (x *Rules) variables(l *lifecycle) [][2]string {
	out := [][2]string{{stateVar, "byte"}}
	if l.calls {
		w := "byte"
		if len(l.rows) > 254 {
			w = "short"
		}
		out = append(out, [2]string{flightVar, w})
	}
	for _, f := range l.def.Facts {
		out = append(out, [2]string{f.Name, x.width(l.name+"."+f.Name, l.facts[f.Name])})
	}
	for _, r := range l.rows {
		id, args := l.event(r.Event)
		for i, a := range args {
			v := [2]string{kept(r.Event, a.Name), x.width(a.Name, l.argType(id, i))}
			if x.keeps(l, r, a.Name) && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	if len(l.emitted) > 0 {
		out = append(out, [2]string{waitsVar, "byte"})
	}
	for _, e := range l.emitted {
		id, args := l.event(e)
		for i, a := range args {
			out = append(out, [2]string{waiting(e, a.Name), x.width(a.Name, l.argType(id, i))})
		}
	}
	return out
}

// Declarations writes the constants and the variables of all lifecycles. They
// start as the instances of w are, in which nothing may wait or be in flight.
func (x *Rules) Declarations(w *machine.World) (text string, err error) {
	defer catch(&err)
	var b strings.Builder
	define := func(name, what string, v int) {
		if was, is := x.named[name]; is && was != what {
			refuse("%s and %s would both be called %s", was, what, name)
		} else if is {
			return
		}
		x.named[name] = what
		fmt.Fprintf(&b, "#define %s %d\n", name, v)
	}
	for _, l := range x.all {
		fmt.Fprintf(&b, "/* %s: %s */\n", l.name, oneLine(l.def.Doc))
		for i, s := range l.def.States {
			define(constant(l.name, s.Name), l.name+" "+s.Name, i)
		}
		for _, f := range l.def.Facts {
			for i, n := range l.facts[f.Name].Names {
				define(constant(l.name, f.Name, n), l.name+"."+f.Name+" "+n, i)
			}
		}
		for _, r := range l.rows {
			if r.Command != "" {
				define(constant(l.name, "flying", r.ID), l.name+"▸"+r.ID, r.n+1)
			}
		}
		for _, e := range l.emitted {
			id, _ := l.event(e)
			define(constant(l.name, "next", e), l.name+" next "+e, int(id)+1)
		}
		for _, v := range x.variables(l) {
			values := make([]string, l.size)
			for slot := range values {
				values[slot] = fmt.Sprint(x.initial(w, l, slot, v[0]))
			}
			decl := fmt.Sprintf("%s %s_%s", v[1], l.name, v[0])
			if l.def.Pool != "" {
				decl += fmt.Sprintf("[%d]", l.size)
			}
			switch first := values[0]; {
			case slices.ContainsFunc(values, func(v string) bool { return v != first }):
				decl += " = {" + strings.Join(values, ", ") + "}"
			case first != "0":
				decl += " = " + first
			}
			b.WriteString(decl + ";\n")
		}
		b.WriteString("\n")
	}
	for i, sort := range x.rules.Sorts() {
		if n := x.minted(w, i); x.mints(sort) {
			fmt.Fprintf(&b, "byte %s = %d; /* how many identities of the sort were minted */\n", freshVar(sort), n)
		}
	}
	return b.String(), nil
}

// mints reports whether a row mints identities of a sort.
func (x *Rules) mints(sort string) bool {
	fresh := func(l *lifecycle, us []machine.Update) bool {
		return slices.ContainsFunc(us, func(u machine.Update) bool {
			return u.Expr != nil && u.Expr.Op == machine.OpCall && u.Expr.Name == "fresh" && l.facts[u.Fact].Name == sort
		})
	}
	for _, l := range x.all {
		for _, r := range l.rows {
			if fresh(l, r.before) || slices.ContainsFunc(r.then, func(t *target) bool { return fresh(l, t.do) }) {
				return true
			}
		}
	}
	return false
}

// minted finds how many identities of a sort a world has minted.
func (x *Rules) minted(w *machine.World, sort int) uint64 {
	c := w.Clone()
	var last uint64
	c.Observe(recorder(func(r *machine.Record) { last = r.Args[0] }))
	for n := uint64(1); n <= math.MaxUint8; n++ {
		if c.ReserveIdentity(x.rules.Sorts()[sort], n); last == n {
			return n - 1
		}
	}
	refuse("%s: too many identities are minted already", x.rules.Sorts()[sort])
	return 0
}

type recorder func(*machine.Record)

// Record implements [machine.Recorder].
func (f recorder) Record(r *machine.Record) { f(r) }

func (x *Rules) initial(w *machine.World, l *lifecycle, slot int, name string) int64 {
	ref := w.Ref(l.id, slot)
	state, flying, _ := w.State(ref)
	if flying || w.Queued() > 0 {
		refuse("%s: a model begins with nothing in flight and nothing waiting", l.name)
	}
	if name == stateVar {
		return int64(state)
	}
	if f, ok := l.m.Fact(name); ok {
		v, _ := w.Fact(ref, f)
		t := l.facts[name]
		switch {
		case t.Kind == machine.Code:
			return int64(int32(uint32(v)))
		case t.Kind == machine.RefTo && v != 0:
			return int64(machine.UnpackRef(v).Slot) + 1
		}
		return int64(v)
	}
	return 0
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\n", " "), "*/", "* /")
}
