package promela

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
)

// issue takes an event to an instance along a path, and returns every way that
// goes on: those that are taken, those that wait, and those that leave the
// bounds. What no way covers is refused.
func (x *Rules) issue(p *path, l *lifecycle, slot int, event string, args []term) []*path {
	id, facts := l.event(event)
	if len(args) != len(facts) {
		refuse("%s.%s: %d arguments, want %d", l.name, event, len(args), len(facts))
	}
	if slices.Contains(p.stack, instance{l, slot}) {
		return nil // it is in the middle of this very step
	}
	var out []*path
	if l.calls {
		// A command in flight puts off every event that no row takes meanwhile.
		taken := map[int]bool{}
		for _, r := range l.rows {
			for _, f := range r.froms {
				if f.during >= 0 && r.Event == event {
					taken[f.during] = true
				}
			}
		}
		flight := l.variable(slot, flightVar)
		off := []term{not(equal(p.store.load(flight), number(0)))}
		for d := range taken {
			off = append(off, not(equal(p.store.load(flight), l.flyingTerm(d))))
		}
		if q := p.when(all(off...)); q != nil {
			q.ended = deferred
			out = append(out, q)
		}
	}
	// A row that starts from several states is one step, unless the rows that
	// are tried before it differ.
	before := map[from][]*row{}
	for _, r := range l.rows {
		if r.Event != event {
			continue
		}
		var groups [][]from
		for _, f := range r.froms {
			i := slices.IndexFunc(groups, func(g []from) bool {
				return g[0].during == f.during && slices.Equal(before[g[0]], before[f])
			})
			if i < 0 {
				groups = append(groups, []from{f})
			} else {
				groups[i] = append(groups[i], f)
			}
		}
		for _, g := range groups {
			out = append(out, x.try(p, l, slot, id, facts, args, r, g, before[g[0]])...)
		}
		for _, f := range r.froms {
			before[f] = append(slices.Clone(before[f]), r)
		}
	}
	return out
}

// try takes a row from a group of states, if its guard holds and those of the
// rows before it do not.
func (x *Rules) try(p *path, l *lifecycle, slot int, id machine.EventID, facts []machine.Fact, args []term, r *row, g []from, before []*row) []*path {
	if r.Refuse != "" {
		return nil
	}
	state := l.variable(slot, stateVar)
	q := p
	if len(g) == 1 {
		q = q.whenIs(state, l.stateTerm(g[0].state))
	} else {
		var in []term
		for _, f := range g {
			in = append(in, equal(p.store.load(state), l.stateTerm(f.state)))
		}
		q = q.when(anyOf(in...))
	}
	if q != nil && l.calls {
		q = q.whenIs(l.variable(slot, flightVar), l.flyingTerm(g[0].during))
	}
	if q == nil {
		return nil
	}
	s := &scope{x: x, l: l, slot: slot, store: q.store, before: q.store, event: id, args: facts, bound: args}
	var conds []term
	for _, b := range before {
		if b.guard == nil {
			return nil
		}
		conds = append(conds, not(s.truth(b.guard)))
	}
	if r.guard != nil {
		conds = append(conds, s.truth(r.guard))
	}
	for _, c := range conds {
		if q = q.when(c); q == nil {
			return nil
		}
	}
	if r.Defer {
		q.ended = deferred
		return []*path{q}
	}
	name := l.name
	if l.def.Pool != "" {
		name = fmt.Sprintf("%s[%d]", name, slot)
	}
	q.rows = append(q.rows, fmt.Sprintf("%s %s: %s", name, r.Event, r.ID))
	s.before = q.store.clone()
	if r.Command == "" {
		return x.arrive(q, s, r, machine.OK)
	}
	return onward(x.update(q, s, r.before), func(q *path) []*path {
		return onward(x.along(q, s, r.with), func(q *path) []*path {
			q.store.set(l.variable(slot, flightVar), l.flyingTerm(r.n))
			for i, f := range facts {
				if x.keeps(l, r, f.Name) {
					q.store.set(l.variable(slot, kept(r.Event, f.Name)), args[i])
				}
			}
			return []*path{q}
		})
	})
}

// arrive makes the changes of the target that an outcome picks.
func (x *Rules) arrive(p *path, s *scope, r *row, o machine.Outcome) []*path {
	var out []*path
	for _, t := range r.targets(o) {
		q := p
		if t.when != nil {
			in := *s
			in.store = s.before
			c := in.truth(t.when)
			q = p.when(c)
			p = p.when(not(c))
		}
		if q != nil {
			out = append(out, x.reach(q.clone(), s, t)...)
		}
		if p == nil || t.when == nil {
			break
		}
	}
	return out
}

func (x *Rules) reach(p *path, s *scope, t *target) []*path {
	return onward(x.update(p, s, t.do), func(p *path) []*path {
		if t.To != "" {
			id, _ := s.l.m.State(t.To)
			p.store.set(s.l.variable(s.slot, stateVar), s.l.stateTerm(int(id)))
		}
		return onward(x.along(p, s, t.with), func(p *path) []*path {
			if len(t.emit) == 0 {
				return []*path{p}
			}
			return x.emit(p, s, t.emit[0])
		})
	})
}

// emit lets an event wait for its turn at the instance. There is room for one.
func (x *Rules) emit(p *path, s *scope, e machine.Invocation) []*path {
	var out []*path
	waits := s.l.variable(s.slot, waitsVar)
	if full := p.when(not(equal(p.store.load(waits), number(0)))); full != nil {
		full.ended = beyond
		out = append(out, full)
	}
	free := p.whenIs(waits, number(0))
	if free == nil {
		return out
	}
	id, facts := s.l.event(e.Name)
	free.store.set(waits, s.l.waitsTerm(int(id)))
	in := *s
	in.store = free.store
	for i, f := range facts {
		v := in.value(e.Args[i], kind{Type: s.l.argType(id, i)})
		free.store.set(s.l.variable(s.slot, waiting(e.Name, f.Name)), v)
	}
	return append(out, free)
}

// update makes changes in order. A fact that would leave its range refuses.
func (x *Rules) update(p *path, s *scope, us []machine.Update) []*path {
	var out []*path
	for _, u := range us {
		v, ty := s.l.variable(s.slot, u.Fact), s.l.facts[u.Fact]
		in := *s
		in.store = p.store
		switch {
		case u.Op == machine.Increment:
			if p = p.when(less(p.store.load(v), number(int64(ty.Max)))); p == nil {
				return out
			}
			p.store.set(v, plus(p.store.load(v), 1))
		case u.Op == machine.Decrement:
			if p = p.when(not(equal(p.store.load(v), number(0)))); p == nil {
				return out
			}
			p.store.set(v, plus(p.store.load(v), -1))
		case u.Expr.Op == machine.OpCall && u.Expr.Name == "fresh":
			count := freshVar(ty.Name)
			fits := less(p.store.load(count), number(int64(x.bound(ty.Name))))
			if over := p.when(not(fits)); over != nil {
				over.ended = beyond
				out = append(out, over)
			}
			if p = p.when(fits); p == nil {
				return out
			}
			p.store.set(count, plus(p.store.load(count), 1))
			p.store.set(v, p.store.load(count))
		default:
			t := in.valueOf(s.l, u.Fact, u.Expr)
			if ty.Kind == machine.Int {
				if p = p.when(less(t, number(int64(ty.Max)+1))); p == nil {
					return out
				}
			}
			p = p.clone()
			p.store.set(v, t)
		}
	}
	return append(out, p)
}

// along takes events to other instances, each in the state that the one before
// left. If one refuses, the whole step is refused.
func (x *Rules) along(p *path, s *scope, sends []machine.Invocation) []*path {
	paths := []*path{p}
	for _, c := range sends {
		paths = onward(paths, func(p *path) []*path {
			in := *s
			in.store = p.store
			to, by := in.peer(c.Peer)
			id, _ := to.event(c.Name)
			args := make([]term, len(c.Args))
			for i, a := range c.Args {
				args[i] = in.value(a, kind{Type: to.argType(id, i)})
			}
			deeper := func(p *path, slot int) []*path {
				p = p.clone()
				p.stack = append(p.stack, instance{s.l, s.slot})
				out := x.issue(p, to, slot, c.Name, args)
				for _, q := range out {
					q.stack = q.stack[:len(q.stack)-1]
				}
				return out
			}
			if by == "" {
				slot := s.slot
				if to.def.Pool == "" {
					slot = 0
				}
				return deeper(p, slot)
			}
			var out []*path
			ref := s.l.variable(s.slot, by)
			for slot := range to.size {
				if q := p.whenIs(ref, number(int64(slot)+1)); q != nil {
					out = append(out, deeper(q, slot)...)
				}
			}
			return out
		})
	}
	return paths
}

// settle gives an answer to a command in flight.
func (x *Rules) settle(p *path, l *lifecycle, slot int, r *row, o machine.Outcome, a *answer) []*path {
	flight := l.variable(slot, flightVar)
	q := p.whenIs(flight, l.flyingTerm(r.n))
	if q == nil {
		return nil
	}
	id, facts := l.event(r.Event)
	s := &scope{x: x, l: l, slot: slot, before: q.store.clone(), event: id, args: facts, answer: a}
	s.store = s.before
	for _, f := range facts {
		t := number(0)
		if x.keeps(l, r, f.Name) {
			v := l.variable(slot, kept(r.Event, f.Name))
			t = q.store.load(v)
			q.store.set(v, number(0))
		}
		s.bound = append(s.bound, t)
	}
	name := l.name
	if l.def.Pool != "" {
		name = fmt.Sprintf("%s[%d]", name, slot)
	}
	q.store.set(flight, number(0))
	q.rows = append(q.rows, fmt.Sprintf("%s▸%s: %s", name, r.ID, o))
	return x.arrive(q, s, r, o)
}

// onward goes on along each path that is taken so far.
func onward(ps []*path, step func(*path) []*path) []*path {
	var out []*path
	for _, p := range ps {
		if p.ended != taken {
			out = append(out, p)
			continue
		}
		out = append(out, step(p)...)
	}
	return out
}
