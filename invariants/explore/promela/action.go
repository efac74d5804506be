package promela

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Action is a part of a step that the rules decide.
type Action struct {
	paths func(p *path) []*path
}

// Fire is an event that a host fires at an instance. An argument is a value as
// its type writes it, such as an enum's name or none, or Promela text for one;
// a ref is 1 and the slot.
func (x *Rules) Fire(lifecycle string, slot int, event string, args ...string) (a Action, err error) {
	defer catch(&err)
	l := x.lifecycle(lifecycle)
	if slot < 0 || slot >= l.size {
		refuse("%s has no slot %d", lifecycle, slot)
	}
	id, facts := l.event(event)
	if len(args) != len(facts) {
		refuse("%s.%s: %d arguments, want %d", lifecycle, event, len(args), len(facts))
	}
	terms := make([]term, len(args))
	for i, text := range args {
		terms[i] = argument(l.argType(id, i), text)
	}
	return Action{func(p *path) []*path { return x.issue(p, l, slot, event, terms) }}, nil
}

func argument(t machine.Type, text string) term {
	if i := slices.Index(t.Names, text); i >= 0 {
		return number(int64(i))
	}
	switch text {
	case "none", "false":
		return number(0)
	case "true":
		return number(1)
	}
	return written(text)
}

// Answer is how a command in flight ends. The texts are Promela; an empty one
// is 0.
type Answer struct {
	Outcome                     machine.Outcome
	Code, Last, Accepted, Value string
}

// Settle is the answer to an instance's command in flight. An answer that no
// target of the row can take, because what it takes along refuses, is a hole
// in the rules: an assertion that fails.
func (x *Rules) Settle(lifecycle string, slot int, rowID string, with Answer) (a Action, err error) {
	defer catch(&err)
	l := x.lifecycle(lifecycle)
	i := slices.IndexFunc(l.rows, func(r *row) bool { return r.ID == rowID })
	if i < 0 || l.rows[i].Command == "" {
		refuse("%s has no row %q with a command", lifecycle, rowID)
	}
	r := l.rows[i]
	ans := &answer{code: written(or0(with.Code)), last: written(or0(with.Last)), accepted: written(or0(with.Accepted)), value: written(or0(with.Value))}
	return Action{func(p *path) []*path {
		out := x.settle(p, l, slot, r, with.Outcome, ans)
		q := p.whenIs(l.variable(slot, flightVar), l.flyingTerm(r.n))
		if q == nil {
			return out
		}
		if q = q.when(not(covered(q, out))); q != nil {
			q.ended = hole
			q.rows = append(q.rows, fmt.Sprintf("%s[%d]▸%s: %s: a hole in the rules", l.name, slot, r.ID, with.Outcome))
			out = append(out, q)
		}
		return out
	}}, nil
}

func or0(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// covered is true where one of the paths goes on from the one before them.
func covered(before *path, ps []*path) term {
	var out []term
	for _, p := range ps {
		out = append(out, all(p.conds[len(before.conds):]...))
	}
	return anyOf(out...)
}

// Next is the event that waits for its turn at an instance. If the rules refuse
// it, it is gone.
func (x *Rules) Next(lifecycle string, slot int) (a Action, err error) {
	defer catch(&err)
	l := x.lifecycle(lifecycle)
	return Action{func(p *path) []*path {
		var out []*path
		for _, e := range l.emitted {
			id, facts := l.event(e)
			q := p.whenIs(l.variable(slot, waitsVar), l.waitsTerm(int(id)))
			if q != nil && l.calls {
				q = q.whenIs(l.variable(slot, flightVar), number(0))
			}
			if q == nil {
				continue
			}
			q.store.set(l.variable(slot, waitsVar), number(0))
			args := make([]term, len(facts))
			for i, f := range facts {
				v := l.variable(slot, waiting(e, f.Name))
				args[i] = q.store.load(v)
				q.store.set(v, number(0))
			}
			to := x.issue(q, l, slot, e, args)
			if no := q.when(not(covered(q, to))); no != nil {
				no.rows = append(no.rows, fmt.Sprintf("%s[%d] %s: refused", l.name, slot, e))
				to = append(to, no)
			}
			out = append(out, to...)
		}
		return out
	}}, nil
}

// Drop ends the occupancy of an instance in a terminal state that is not kept.
// Instances that facts refer to cannot be dropped in a model: it has no
// generations to tell occupants apart.
func (x *Rules) Drop(lifecycle string, slot int) (a Action, err error) {
	defer catch(&err)
	l := x.lifecycle(lifecycle)
	for _, o := range x.all {
		for f, t := range o.facts {
			if t.Kind == machine.RefTo && t.Name == lifecycle {
				refuse("%s cannot be dropped: %s.%s refers to it", lifecycle, o.name, f)
			}
		}
	}
	return Action{func(p *path) []*path {
		var out []*path
		for i, s := range l.def.States {
			if !s.Terminal || s.Kept {
				continue
			}
			if q := p.whenIs(l.variable(slot, stateVar), l.stateTerm(i)); q != nil {
				for _, v := range x.variables(l) {
					q.store.set(l.variable(slot, v[0]), number(0))
				}
				q.rows = append(q.rows, fmt.Sprintf("%s[%d]: dropped", l.name, slot))
				out = append(out, q)
			}
		}
		return out
	}}, nil
}

// Step writes the options of one step: under guard, the actions in order, each
// in the state that the one before it left, then effect, all of it atomic. An
// option stands for one way through the rows, which exclude each other, and ends
// with CHECK, which the model defines. The model also defines broken_hole and
// broken_bounds as something false: an answer that no target can take, and a
// step that would leave the bounds, assert them. Guard and effect are Promela
// text; empty ones do nothing.
func (x *Rules) Step(guard, effect string, actions ...Action) (text string, err error) {
	defer catch(&err)
	paths := []*path{{store: newStore()}}
	if guard != "" {
		paths[0].conds = append(paths[0].conds, term{text: "(" + guard + ")"})
	}
	for _, a := range actions {
		paths = onward(paths, a.paths)
	}
	var b strings.Builder
	for _, p := range paths {
		if p.ended == deferred {
			continue
		}
		var conds []string
		for _, c := range p.conds {
			conds = append(conds, c.text)
		}
		if len(conds) == 0 {
			conds = []string{"true"}
		}
		if len(p.rows) > 0 {
			fmt.Fprintf(&b, "/* %s */\n", strings.Join(p.rows, ", "))
		}
		var does []string
		switch p.ended {
		case taken:
			does = x.assignments(p.store)
			if effect != "" {
				does = append(does, effect)
			}
			does = append(does, "CHECK")
		case beyond:
			does = []string{"assert(broken_bounds)"}
		case hole:
			does = []string{"assert(broken_hole)"}
		}
		fmt.Fprintf(&b, ":: d_step { %s -> %s }\n", strings.Join(conds, " && "), strings.Join(does, "; "))
	}
	return b.String(), nil
}

// assignments makes the changes one after another. What a later one reads of
// an earlier one's variable is put aside first.
func (x *Rules) assignments(s *store) []string {
	changes := s.changes()
	var first, then []string
	for i, v := range changes {
		value := s.now[v].text
		for _, earlier := range changes[:i] {
			base, _, _ := strings.Cut(earlier, "[")
			if word(base).MatchString(value) {
				temp := len(first)
				x.temps = max(x.temps, temp+1)
				first = append(first, fmt.Sprintf("_temp[%d] = %s", temp, value))
				value = fmt.Sprintf("_temp[%d]", temp)
				break
			}
		}
		then = append(then, v+" = "+value)
	}
	for i := range first {
		then = append(then, fmt.Sprintf("_temp[%d] = 0", i))
	}
	return append(first, then...)
}

func word(name string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
}

// Temporaries declares what steps put aside. Between steps it is 0.
func (x *Rules) Temporaries() string {
	if x.temps == 0 {
		return ""
	}
	return fmt.Sprintf("int _temp[%d];\n", x.temps)
}
