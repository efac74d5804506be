package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

var inspectVerbs = []verb{
	{name: "state", run: (*session).stateVerb, params: []param{{name: "instance", kind: text, place: true}}},
	{name: "facts", run: (*session).facts, params: []param{{name: "instance", kind: text, place: true, need: true}, {name: "all"}}},
	{name: "accepts", run: (*session).accepts, params: []param{{name: "instance", kind: text, place: true, need: true}}},
	{name: "explain", run: (*session).explain, params: []param{
		{name: "instance", kind: text, place: true, need: true},
		{name: "event", kind: name, place: true, need: true},
		{name: "state", kind: text},
	}},
	{name: "can", open: true, run: (*session).can, params: eventParams},
	{name: "fire", open: true, run: (*session).fire, params: eventParams},
	{name: "why", run: (*session).why},
	{name: "log", run: (*session).logVerb, params: []param{{name: "machines", kind: names}, {name: "refused"}, {name: "failed"}, {name: "rows"}, {name: "all"}, {name: "skip"}}},
	{name: "timeline", run: (*session).timelineVerb, params: []param{{name: "all"}, {name: "skip"}}},
	{name: "violations", sim: true, run: (*session).violationsVerb},
	{name: "deadlock", sim: true, run: (*session).deadlock},
}

var eventParams = []param{
	{name: "instance", kind: text, place: true, need: true},
	{name: "event", kind: name, place: true, need: true},
}

// reads reports that a verb only looks.
func (c *call) reads() bool {
	switch c.name {
	case "health", "state", "facts", "accepts", "explain", "can", "why", "log", "timeline", "violations", "deadlock", "outcomes", "now", "latch show":
		return true
	}
	return false
}

// stateVerb tells the state of one instance, or of all that are not in their
// first one.
func (s *session) stateVerb(c *call) error {
	return s.look(func(w *machine.World) error {
		if !c.has("instance") {
			n := 0
			for _, r := range instances(w) {
				if st, flying, _ := w.State(r); st != 0 || flying {
					s.printf("%s: %s", w.Rules().RefName(r), w.StateName(r))
					n++
				}
			}
			if n == 0 {
				s.printf("state: everything is as it was made")
			}
			return nil
		}
		r, _, err := s.instance(w, c.args["instance"])
		if err != nil {
			return err
		}
		s.printf("%s: %s", w.Rules().RefName(r), w.StateName(r))
		return nil
	})
}

// instances lists the instances of a world.
func instances(w *machine.World) []machine.Ref {
	var out []machine.Ref
	for m := range w.Rules().NumMachines() {
		for slot := range w.Capacity(machine.MachineID(m)) {
			out = append(out, w.Ref(machine.MachineID(m), slot))
		}
	}
	return out
}

// facts tells an instance's state and what it knows. Facts that are zero are
// left out, and so is an identity that the heading names a run for.
func (s *session) facts(c *call) error {
	return s.look(func(w *machine.World) error {
		r, m, err := s.instance(w, c.args["instance"])
		if err != nil {
			return err
		}
		head := w.Rules().RefName(r)
		run := s.occupant(w, r, m)
		if run != "" {
			head += " of run " + run
		}
		s.printf("%s: %s", head, w.StateName(r))
		for i, f := range m.Definition().Facts {
			id := machine.FactID(i)
			v, _ := w.Fact(r, id)
			named := run != "" && slices.Contains(m.IdentityFacts(), id)
			if c.has("all") || v != 0 && !named {
				s.printf("  %s = %s", f.Name, s.value(m.FactType(id), v))
			}
		}
		return nil
	})
}

// occupant names the run whose identity an instance bears.
func (s *session) occupant(w *machine.World, r machine.Ref, m *machine.Machine) string {
	f, ok := m.Fact("run_epoch")
	if !ok || s.lane == nil {
		return ""
	}
	epoch, _ := w.Fact(r, f)
	for n, x := range s.runs() {
		if epoch != 0 && x.Identity().RunEpoch == epoch {
			return n
		}
	}
	return ""
}

func (s *session) accepts(c *call) error {
	return s.look(func(w *machine.World) error {
		r, m, err := s.instance(w, c.args["instance"])
		if err != nil {
			return err
		}
		var evs []string
		for _, e := range w.Available(r) {
			evs = append(evs, m.EventName(e))
		}
		s.printf("%s in %q accepts %s", w.Rules().RefName(r), w.StateName(r), words(evs))
		return nil
	})
}

// findEvent checks an event's name.
func findEvent(m *machine.Machine, n string) (machine.EventID, error) {
	if e, ok := m.Event(n); ok {
		return e, nil
	}
	var known []string
	for i := range m.NumEvents() {
		known = append(known, m.EventName(machine.EventID(i)))
	}
	return 0, errors.New(machine.Unknown("event of "+m.Name(), n, known))
}

// explain tells the rows of an event in the instance's state, or in another.
func (s *session) explain(c *call) error {
	return s.look(func(w *machine.World) error {
		r, m, err := s.instance(w, c.args["instance"])
		if err != nil {
			return err
		}
		ev, err := findEvent(m, c.args["event"])
		if err != nil {
			return err
		}
		st, _, _ := w.State(r)
		if c.has("state") {
			var known []string
			for i := range m.NumStates() {
				known = append(known, m.StateName(machine.StateID(i)))
			}
			i := slices.Index(known, c.args["state"])
			if i < 0 {
				return errors.New(machine.Unknown("state of "+m.Name(), c.args["state"], known))
			}
			st = machine.StateID(i)
		}
		rows := m.RowsOf(st, machine.NoRowID, ev)
		if len(rows) == 0 {
			s.printf("%s in %q takes no %s", m.Name(), m.StateName(st), c.args["event"])
		}
		for _, id := range rows {
			s.explainRow(m, st, m.Row(id))
		}
		return nil
	})
}

func (s *session) explainRow(m *machine.Machine, st machine.StateID, r *machine.Row) {
	head := m.Name() + "/" + r.ID
	if r.Guard != "" {
		head += " if " + r.Guard
	}
	switch {
	case r.Refuse != "":
		head += ": refuses: " + string(r.Refuse)
	case r.Defer:
		head += ": waits"
	case r.Command != "":
		head += ": " + r.Command
	}
	if r.Source != "" {
		head += " (" + r.Source + ")"
	}
	s.printf("%s", head)
	for _, t := range r.Then {
		line := "  "
		if r.Command != "" {
			on := t.On
			if on == "" {
				on = "anything else"
			}
			line += on + " "
		}
		if t.When != "" {
			line += "when " + t.When + " "
		}
		to := t.To
		if to == "" {
			to = m.StateName(st)
		}
		line += "-> " + to
		if len(t.With) > 0 {
			line += " with " + strings.Join(t.With, ", ")
		}
		if t.Error != "" {
			line += "; fails: " + string(t.Error)
		}
		s.printf("%s", line)
	}
}

// target reads the instance, event and arguments of a call.
func (s *session) target(w *machine.World, c *call) (machine.Ref, machine.EventID, []uint64, error) {
	r, m, err := s.instance(w, c.args["instance"])
	if err != nil {
		return r, 0, nil, err
	}
	ev, err := findEvent(m, c.args["event"])
	if err != nil {
		return r, 0, nil, err
	}
	args, err := s.eventArgs(w, m, ev, c.more)
	return r, ev, args, err
}

// can asks whether an event would be taken.
func (s *session) can(c *call) error {
	var r machine.Ref
	var ev machine.EventID
	var args []uint64
	err := s.look(func(w *machine.World) (err error) {
		r, ev, args, err = s.target(w, c)
		return err
	})
	if err != nil {
		return err
	}
	yes := false
	if s.pure != nil {
		yes = s.pure.Can(r, ev, args...)
	} else {
		yes = s.lane.Driver().Can(r, ev, args...)
	}
	text := "no"
	if yes {
		text = "yes"
	}
	s.printf("%s: %s", c, text)
	return nil
}

// fire lets an event happen to an instance past the lane's operations, as no
// host could: to show what the rules themselves say.
func (s *session) fire(c *call) error {
	var r machine.Ref
	var ev machine.EventID
	var args []uint64
	err := s.look(func(w *machine.World) (err error) {
		r, ev, args, err = s.target(w, c)
		return err
	})
	if err != nil {
		return err
	}
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		reply, err := l.Driver().Fire(ctx, r, ev, args...)
		return func() {
			s.result(c, err, s.opts.Rules.At(r.Machine).StateName(reply.State))
		}
	})
}

// why tells the last refusal or failure in full.
func (s *session) why(*call) error {
	if s.lastErr == nil {
		s.printf("why: nothing was refused, and nothing failed")
		return nil
	}
	var refusal *machine.RefusalError
	if !errors.As(s.lastErr, &refusal) {
		s.printf("why: %v", s.lastErr)
		return nil
	}
	for _, l := range strings.Split(refusal.Error(), "; ") {
		s.printf("why: %s", l)
	}
	return nil
}

func (s *session) violationsVerb(*call) error {
	s.report()
	if len(s.violations) == 0 {
		s.printf("violations: none")
	}
	for _, v := range s.violations {
		s.printf("violations: %s", v)
	}
	return nil
}

func (s *session) deadlock(*call) error {
	text := s.sim.Deadlock()
	if text == "" {
		s.printf("deadlock: none")
		return nil
	}
	for _, l := range strings.Split(s.naming.text(text), "\n") {
		s.printf("deadlock: %s", fmt.Sprint(l))
	}
	return nil
}
