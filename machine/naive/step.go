package naive

import (
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Step is the account of one step; its fields are those of [machine.Step].
type Step struct {
	Status machine.Status
	Row    string
	Target int
	State  string
	Code   int32
	Return Value // V is nil if the target returns nothing
	Reason machine.Reason
	Call   string
	Args   []Value // of the command

	Refusal machine.RefusalKind
	Said    []string // the rows whose guards said no
	By      Ref
	ByKind  machine.RefusalKind
	ByRow   string
	BySaid  []string
}

// Issue is [machine.World.Issue].
func (w *World) Issue(ref Ref, event string, args ...Value) Step {
	var s Step
	w.attempt(&s, func() bool { return w.issue(&s, ref, ref, event, args) })
	return s
}

// Next is [machine.World.Next]; ok is false where that returns nil.
func (w *World) Next(root Ref) (s Step, ok bool) {
	i := slices.IndexFunc(w.queue, func(e waiting) bool { return e.root == root })
	if i < 0 {
		return s, false
	}
	for _, x := range w.instances {
		if x.flight != nil && x.flight.root == root {
			return s, false
		}
	}
	e := w.queue[i]
	queue := slices.Clone(w.queue)
	w.queue = slices.Delete(slices.Clone(w.queue), i, i+1)
	n := len(w.queue)
	w.attempt(&s, func() bool { return w.issue(&s, root, e.to, e.event, e.args) })
	if s.Status == machine.Deferred {
		w.queue = queue
		return s, true
	}
	w.ahead(root, n)
	return s, true
}

// ahead puts the events from position n on before those of the root.
func (w *World) ahead(root Ref, n int) {
	if len(w.queue) <= n {
		return
	}
	old, emitted := w.queue[:n:n], slices.Clone(w.queue[n:])
	i := slices.IndexFunc(old, func(e waiting) bool { return e.root == root })
	if i < 0 {
		return
	}
	w.queue = slices.Concat(old[:i], emitted, old[i:])
}

// Settle is [machine.World.Settle].
func (w *World) Settle(ref Ref, res machine.Result) Step {
	var s Step
	x, current := w.find(ref)
	switch {
	case x == nil:
		return Step{Status: machine.StepRefused, Refusal: machine.BadRef}
	case !current:
		return Step{Status: machine.StepRefused, Refusal: machine.StaleRef}
	case x.flight == nil:
		return Step{Status: machine.StepRefused, Refusal: machine.NotInFlight, State: x.state}
	}
	n := len(w.queue)
	fl := *x.flight
	d := w.def(ref.Machine)
	r := &d.Rows[fl.row]
	w.attempt(&s, func() bool {
		x, _ := w.find(ref)
		sc := w.scope(d, x, ref, fl.args)
		sc.res = &res
		x.flight = nil
		return w.apply(&s, sc, r, res.Outcome, fl.root, true)
	})
	if s.Status == machine.StepRefused {
		s.Status, s.Row = machine.Hole, r.ID
	}
	w.ahead(fl.root, n)
	return s
}

// Drop is [machine.World.Drop].
func (w *World) Drop(ref Ref) Step {
	x, current := w.find(ref)
	d := w.def(ref.Machine)
	s := Step{Status: machine.StepRefused}
	switch {
	case x == nil:
		s.Refusal = machine.BadRef
		return s
	case !current:
		s.Refusal = machine.StaleRef
		return s
	}
	for _, st := range d.States {
		if st.Name == x.state && st.Terminal && !st.Kept {
			*x = *w.born(d, x.gen+1)
			return Step{State: x.state}
		}
	}
	s.Refusal, s.State = machine.NotTerminal, x.state
	return s
}

// attempt makes a step, and undoes all of it if it does not happen.
func (w *World) attempt(s *Step, f func() bool) {
	before := w.clone()
	if !f() {
		w.instances, w.queue, w.fresh = before.instances, before.queue, before.fresh
		if s.Status != machine.Deferred {
			s.Status = machine.StepRefused
		}
	}
	w.depth = nil
}

func (w *World) scope(d *machine.Definition, x *instance, ref Ref, args map[string]Value) *scope {
	sc := &scope{w: w, def: d, facts: x.facts, state: x.state, args: args, self: ref, home: d.Name}
	views := map[string]Value{}
	for _, v := range d.Views {
		views[v.Name] = sc.eval(parse(v.Expr), nil)
	}
	sc.views = views
	return sc
}

// refuse notes who said no, and why; said lists the rows whose guards did.
func (w *World) refuse(s *Step, kind machine.RefusalKind, ref Ref, row string, reason machine.Reason, said []string) bool {
	if len(w.depth) > 0 {
		s.Refusal, s.ByKind, s.By, s.ByRow, s.BySaid = machine.ByJoint, kind, ref, row, said
	} else {
		s.Refusal, s.Row = kind, row
	}
	s.Reason = reason
	return false
}

func (w *World) issue(s *Step, root, ref Ref, event string, args []Value) bool {
	x, current := w.find(ref)
	switch {
	case x == nil:
		return w.refuse(s, machine.BadRef, ref, "", "", nil)
	case !current:
		return w.refuse(s, machine.StaleRef, ref, "", "", nil)
	case slices.Contains(w.depth, ref):
		return w.refuse(s, machine.TakenTwice, ref, "", "", nil)
	}
	outer := len(w.depth) == 0
	if outer {
		s.State = x.state
	}
	d := w.def(ref.Machine)
	named, good := w.named(d, event, args)
	if !good {
		return w.refuse(s, machine.BadArgument, ref, "", "", nil)
	}
	rows := w.rowsOf(d, x, event)
	if x.flight != nil && len(rows) == 0 {
		s.Status = machine.Deferred
		return false
	}
	sc := w.scope(d, x, ref, named)
	var r *machine.Row
	at := 0
	var said []string
	for _, i := range rows {
		if g := strings.TrimSpace(d.Rows[i].Guard); g == "" || g == "else" || sc.holds(g) {
			r, at = &d.Rows[i], i
			break
		}
		said = append(said, d.Rows[i].ID)
	}
	sc.said = said
	if outer {
		s.Said = said
	}
	switch {
	case r == nil:
		return w.refuse(s, machine.NoRow, ref, "", "", said)
	case r.Refuse != "":
		return w.refuse(s, machine.ByRow, ref, r.ID, r.Refuse, said)
	case r.Defer:
		s.Status = machine.Deferred
		return false
	case r.Command == "":
		return w.apply(s, sc, r, machine.OK, root, outer)
	}
	if !sc.update(r.Before) {
		return w.refuse(s, machine.OutOfRange, ref, r.ID, "", said)
	}
	if !w.along(s, sc, r, r.With, root) {
		return false
	}
	c, err := machine.ParseInvocation(r.Command)
	if err != nil {
		panic(err)
	}
	x.flight = &flight{row: at, args: named, root: root}
	for _, a := range c.Args {
		x.flight.call = append(x.flight.call, sc.eval(a, nil))
	}
	s.Status, s.Row, s.Call, s.Args = machine.InFlight, r.ID, c.Name, x.flight.call
	return true
}

// named checks the arguments of an event and gives them their names.
func (w *World) named(d *machine.Definition, event string, args []Value) (map[string]Value, bool) {
	for _, e := range d.Events {
		if e.Name != event {
			continue
		}
		if len(e.Args) != len(args) {
			return nil, false
		}
		out := map[string]Value{}
		for i, a := range e.Args {
			if !w.fits(typeOf(a), args[i]) {
				return nil, false
			}
			out[a.Name] = Value{typeOf(a), args[i].V}
		}
		return out, true
	}
	return nil, false
}

// apply takes a row's target for an outcome. done says that this is the whole
// step, whose account is to be given.
func (w *World) apply(s *Step, sc *scope, r *machine.Row, o machine.Outcome, root Ref, outer bool) bool {
	var named, rest []int
	for i, t := range r.Then {
		on := strings.Fields(t.On)
		if len(on) == 0 {
			rest = append(rest, i)
		}
		if slices.Contains(on, o.String()) {
			named = append(named, i)
		}
	}
	if len(named) == 0 {
		named = rest
	}
	at := 0
	for _, at = range named {
		if r.Then[at].When == "" || sc.holds(r.Then[at].When) {
			break
		}
	}
	t := &r.Then[at]
	if !sc.update(t.Do) {
		return w.refuse(s, machine.OutOfRange, sc.self, r.ID, "", sc.said)
	}
	x, _ := w.find(sc.self)
	if t.To != "" {
		x.state = t.To
	}
	if !w.along(s, sc, r, t.With, root) {
		return false
	}
	for _, text := range t.Emit {
		to, event, args, found := sc.send(text)
		if !found {
			return w.refuse(s, machine.BadRef, sc.self, r.ID, "", sc.said)
		}
		if len(w.queue) >= w.config.Queue {
			return w.refuse(s, machine.QueueFull, sc.self, r.ID, "", sc.said)
		}
		w.queue = append(w.queue, waiting{root, to, event, args})
	}
	if !outer {
		return true
	}
	s.Status, s.Row, s.Target, s.State, s.Reason = machine.Accepted, r.ID, at, x.state, t.Error
	if t.Code != "" {
		s.Code = int32(uint32(w.Word(sc.eval(parse(t.Code), &code))))
	}
	if t.Return != "" {
		s.Return = sc.eval(parse(t.Return), nil)
	}
	return true
}

// along lets others take events in the same step.
func (w *World) along(s *Step, sc *scope, r *machine.Row, sends []string, root Ref) bool {
	for _, text := range sends {
		to, event, args, found := sc.send(text)
		if !found {
			return w.refuse(s, machine.BadRef, sc.self, r.ID, "", sc.said)
		}
		w.depth = append(w.depth, sc.self)
		ok := w.issue(s, root, to, event, args)
		w.depth = w.depth[:len(w.depth)-1]
		if !ok {
			return false
		}
	}
	return true
}

// send evaluates an event for another instance.
func (s *scope) send(text string) (to Ref, event string, args []Value, found bool) {
	c, err := machine.ParseInvocation(text)
	if err != nil {
		panic(err)
	}
	name := c.Peer
	if v, ok := s.facts[c.Peer]; ok && v.Type.Kind == machine.RefTo {
		to, name = v.V.(Ref), v.Type.Name
		if to == (Ref{}) {
			return to, "", nil, false
		}
	} else if c.Peer == "self" {
		to, name = s.self, s.self.Machine
	} else {
		to = s.beside(c.Peer)
	}
	for _, e := range s.w.def(name).Events {
		if e.Name == c.Name {
			for i, a := range c.Args {
				t := typeOf(e.Args[i])
				args = append(args, s.eval(a, &t))
			}
		}
	}
	return to, c.Name, args, true
}

// update makes a list of updates. It returns false if one of them would leave
// the range of its fact.
func (s *scope) update(text string) bool {
	us, err := machine.ParseUpdates(text)
	if err != nil {
		panic(err)
	}
	for _, u := range us {
		t := s.facts[u.Fact].Type
		v := s.facts[u.Fact]
		switch {
		case u.Op == machine.Increment:
			v.V = v.V.(uint64) + 1
		case u.Op == machine.Decrement:
			v.V = v.V.(uint64) - 1 // from 0 to far out of range
		case u.Expr.Op == machine.OpCall && u.Expr.Name == "fresh":
			s.w.fresh[t.Name]++
			v.V = ID(s.w.fresh[t.Name])
		default:
			v.V = s.eval(u.Expr, &t).V
		}
		if !s.w.fits(t, v) {
			return false
		}
		s.facts[u.Fact] = v
	}
	return true
}
