package promela

import (
	"github.com/runfence/runfence/machine"
)

// answer is what a settled command brought.
type answer struct{ code, last, accepted, value term }

// scope is where an expression is read.
type scope struct {
	x     *Rules
	l     *lifecycle // whose facts bare names are
	slot  int
	store *store
	event machine.EventID
	args  []machine.Fact
	bound []term
	// before is what views see: the state before the instance's own changes.
	before *store
	answer *answer
	// outer is the instance whose view looks at all of another machine.
	outer *instance
}

// kind is the type of an expression: that of a fact, or of a lifecycle's state.
type kind struct {
	machine.Type
	state *lifecycle
}

var (
	boolKind = kind{Type: machine.Type{Kind: machine.Bool}}
	intKind  = kind{Type: machine.Type{Kind: machine.Int, Max: 1<<63 - 1}}
)

func (s *scope) kindOf(e *machine.Expr) (kind, bool) {
	switch e.Op {
	case machine.OpConst:
		return intKind, true
	case machine.OpName:
		switch e.Name {
		case "true", "false":
			return boolKind, true
		case "self":
			return kind{Type: machine.Type{Kind: machine.RefTo, Name: s.self().m.name}}, true
		case "state":
			return kind{state: s.l}, true
		}
		t, ok := s.l.facts[e.Name]
		return kind{Type: t}, ok
	case machine.OpField:
		switch e.Peer {
		case "arg":
			i := s.arg(e.Name)
			return kind{Type: s.l.argType(s.event, i)}, true
		case "view":
			return s.viewing().kindOf(s.l.views[e.Name])
		case "res":
			switch e.Name {
			case "code", "last":
				return kind{Type: machine.Type{Kind: machine.Code}}, true
			case "accepted":
				return boolKind, true
			}
			return intKind, true
		}
		p, _ := s.peer(e.Peer)
		if e.Name == "state" {
			return kind{state: p}, true
		}
		t, ok := p.facts[e.Name]
		return kind{Type: t}, ok
	case machine.OpCall:
		switch e.Name {
		case "count":
			return intKind, true
		case "first":
			return kind{Type: machine.Type{Kind: machine.RefTo, Name: e.Args[0].Name}}, true
		}
		return boolKind, true
	case machine.OpText:
		return kind{}, false
	}
	return boolKind, true
}

func (s *scope) self() instance {
	if s.outer != nil {
		return *s.outer
	}
	return instance{s.l, s.slot}
}

func (s *scope) arg(name string) int {
	for i, a := range s.args {
		if a.Name == name {
			return i
		}
	}
	refuse("%s: argument %q is not there", s.l.name, name)
	return 0
}

// peer finds what a name before a dot stands for: the lifecycle, and the fact
// of the instance that says which of its instances, or "".
func (s *scope) peer(name string) (*lifecycle, string) {
	if t, ok := s.l.facts[name]; ok && t.Kind == machine.RefTo {
		return s.x.lifecycle(t.Name), name
	}
	return s.x.lifecycle(name), ""
}

// viewing is the scope of the instance's views.
func (s *scope) viewing() *scope {
	return &scope{x: s.x, l: s.l, slot: s.slot, store: s.before, before: s.before}
}

func (s *scope) fact(l *lifecycle, slot int, name string) term {
	if name == "state" {
		return s.store.load(l.variable(slot, stateVar))
	}
	return s.store.load(l.variable(slot, name))
}

func (s *scope) truth(e *machine.Expr) term { return s.value(e, boolKind) }

// value evaluates an expression of a kind.
func (s *scope) value(e *machine.Expr, want kind) term {
	if t, ok := s.constant(e, want); ok {
		return t
	}
	switch e.Op {
	case machine.OpAnd, machine.OpOr:
		ts := make([]term, len(e.Args))
		for i, a := range e.Args {
			ts[i] = s.truth(a)
		}
		if e.Op == machine.OpAnd {
			return all(ts...)
		}
		return anyOf(ts...)
	case machine.OpNot:
		return not(s.truth(e.Args[0]))
	case machine.OpEq:
		return s.equal(e.Args[0], e.Args[1])
	case machine.OpLess:
		return less(s.value(e.Args[0], intKind), s.value(e.Args[1], intKind))
	case machine.OpName:
		switch e.Name {
		case "self":
			return number(int64(s.self().slot) + 1)
		case "state":
			return s.fact(s.l, s.slot, "state")
		}
		return s.fact(s.l, s.slot, e.Name)
	case machine.OpField:
		return s.field(e)
	case machine.OpCall:
		return s.overAll(e)
	}
	refuse("%s: %s has no form in Promela", s.l.name, e)
	return term{}
}

func (s *scope) equal(a, b *machine.Expr) term {
	k, ok := s.kindOf(a)
	if !ok || a.Op == machine.OpConst || a.Op == machine.OpField && a.Peer == "res" && a.Name == "value" {
		if other, is := s.kindOf(b); is {
			k = other
		}
	}
	x, y := s.value(a, k), s.value(b, k)
	if l, f, is := s.owner(a); is {
		y = l.byName(f, y)
	} else if l, f, is := s.owner(b); is {
		x = l.byName(f, x)
	}
	return equal(x, y)
}

// owner finds whose fact an expression reads, so that a value of it may be
// written by its name.
func (s *scope) owner(e *machine.Expr) (l *lifecycle, fact string, is bool) {
	switch {
	case e.Op == machine.OpName && e.Name == "state":
		return s.l, "state", true
	case e.Op == machine.OpName:
		_, is = s.l.facts[e.Name]
		return s.l, e.Name, is
	case e.Op == machine.OpField && e.Peer != "arg" && e.Peer != "view" && e.Peer != "res":
		p, _ := s.peer(e.Peer)
		return p, e.Name, true
	}
	return nil, "", false
}

// byName writes a value of a fact, or of the state, by its name if it has one.
func (l *lifecycle) byName(fact string, t term) term {
	if !t.known {
		return t
	}
	if fact == "state" {
		return l.stateTerm(int(t.value))
	}
	if names := l.facts[fact].Names; names != nil {
		return named(constant(l.name, fact, names[t.value]), t.value)
	}
	return t
}

// valueOf evaluates what becomes of a fact.
func (s *scope) valueOf(l *lifecycle, fact string, e *machine.Expr) term {
	return l.byName(fact, s.value(e, kind{Type: l.facts[fact]}))
}

// constant evaluates a literal of a kind.
func (s *scope) constant(e *machine.Expr, k kind) (term, bool) {
	switch e.Op {
	case machine.OpConst:
		return number(e.Value), true
	case machine.OpText:
		if k.state != nil {
			id, ok := k.state.m.State(e.Name)
			return number(int64(id)), ok
		}
	case machine.OpName:
		switch {
		case k.state == nil && k.Kind == machine.Bool && (e.Name == "true" || e.Name == "false"):
			return truth(e.Name == "true"), true
		case e.Name == "none":
			return number(0), true
		case k.state == nil && k.Kind == machine.Enum:
			if _, is := s.l.facts[e.Name]; is {
				return term{}, false
			}
			for i, n := range k.Names {
				if n == e.Name {
					return number(int64(i)), true
				}
			}
		}
	}
	return term{}, false
}

func (s *scope) field(e *machine.Expr) term {
	switch e.Peer {
	case "arg":
		return s.bound[s.arg(e.Name)]
	case "view":
		v := s.viewing()
		k, _ := v.kindOf(s.l.views[e.Name])
		return v.value(s.l.views[e.Name], k)
	case "res":
		switch e.Name {
		case "code":
			return s.answer.code
		case "last":
			return s.answer.last
		case "accepted":
			return s.answer.accepted
		}
		return s.answer.value
	}
	p, by := s.peer(e.Peer)
	if by == "" {
		slot := s.self().slot
		if p.def.Pool == "" {
			slot = 0
		}
		return s.fact(p, slot, e.Name)
	}
	// A ref that names nothing reads as zero.
	ref := s.fact(s.l, s.slot, by)
	out := number(0)
	for slot := p.size - 1; slot >= 0; slot-- {
		out = either(equal(ref, number(int64(slot)+1)), s.fact(p, slot, e.Name), out)
	}
	return out
}

// overAll unrolls any, count and first over the instances of a machine.
func (s *scope) overAll(e *machine.Expr) term {
	p, self := s.x.lifecycle(e.Args[0].Name), s.self()
	out := number(0)
	for i := range p.size {
		slot := i
		if e.Name == "first" {
			slot = p.size - 1 - i // the first wins, so it comes last
		}
		in := &scope{x: s.x, l: p, slot: slot, store: s.store, before: s.before, outer: &self}
		c := in.truth(e.Args[1])
		switch e.Name {
		case "any":
			out = anyOf(out, c)
		case "count":
			out = sum(out, either(c, number(1), number(0)))
		case "first":
			out = either(c, number(int64(slot)+1), out)
		default:
			refuse("%s: %s has no form in Promela", s.l.name, e)
		}
	}
	return out
}
