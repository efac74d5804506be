package promela

import (
	"maps"
	"slices"
)

// store is what the variables hold at some point of a step, as terms over the
// state before it. A variable that is not in it holds what it held then.
type store struct {
	now map[string]term
	// was has the values before the step that a condition of the path fixes.
	was map[string]term
}

func newStore() *store { return &store{map[string]term{}, map[string]term{}} }

func (s *store) clone() *store { return &store{maps.Clone(s.now), maps.Clone(s.was)} }

func (s *store) load(v string) term {
	if t, ok := s.now[v]; ok {
		return t
	}
	if t, ok := s.was[v]; ok {
		return t
	}
	return term{text: v}
}

func (s *store) set(v string, t term) { s.now[v] = t }

// changes lists the variables that the step changes, in order.
func (s *store) changes() []string {
	var out []string
	for v, t := range s.now {
		was, fixed := s.was[v]
		if t.text != v && !(fixed && t.known && was.value == t.value) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// path is one way through a step: the conditions on the state before it under
// which it is gone, and what the variables hold at its end.
type path struct {
	conds []term
	store *store
	// rows are those taken, as "machine[slot] event: row".
	rows []string
	// stack has the instances in the middle of the step.
	stack []instance
	// ended says why the path goes no further.
	ended ending
}

// ending is how a path through a step ends.
type ending uint8

const (
	// taken: the step is done, as far as the rules go.
	taken ending = iota
	// deferred: nothing happens now.
	deferred
	// beyond: the step would leave the bounds of the model.
	beyond
	// hole: an answer has no target that can be reached.
	hole
)

type instance struct {
	m    *lifecycle
	slot int
}

func (p *path) clone() *path {
	c := *p
	c.conds, c.rows, c.stack = slices.Clone(p.conds), slices.Clone(p.rows), slices.Clone(p.stack)
	c.store = p.store.clone()
	return &c
}

// when is the path under one more condition, or nil if that can never hold.
func (p *path) when(c term) *path {
	if c.known && c.value == 0 {
		return nil
	}
	q := p.clone()
	if c.known {
		return q
	}
	contrary := not(c).text
	for _, have := range q.conds {
		switch have.text {
		case c.text:
			return q
		case contrary:
			return nil
		}
	}
	q.conds = append(q.conds, c)
	return q
}

// whenIs is the path under the condition that a variable holds a number. What
// follows on the path knows it.
func (p *path) whenIs(v string, n term) *path {
	now := p.store.load(v)
	q := p.when(equal(now, n))
	if q != nil && now.text == v {
		q.store.was[v] = n
	}
	return q
}
