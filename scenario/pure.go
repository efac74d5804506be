package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// pureVerbs step a copy of the lane's world by hand: nothing reaches the
// device, and every answer is the script's to give.
var pureVerbs = []verb{
	{name: "pure begin", run: (*session).pureBegin},
	{name: "pure end", run: (*session).pureEnd},
	{name: "issue", open: true, run: (*session).issue, params: eventParams},
	{name: "settle", run: (*session).settle, params: []param{
		{name: "instance", kind: text, place: true, need: true},
		{name: "outcome", kind: word, place: true, need: true, words: outcomeNames()},
		{name: "code", kind: code},
		{name: "value", kind: text},
		{name: "accepted"},
	}},
	{name: "step", run: (*session).step, params: []param{{name: "instance", kind: text, place: true, need: true}}},
	{name: "drop", run: (*session).drop, params: []param{{name: "instance", kind: text, place: true, need: true}}},
	{name: "outcomes", run: (*session).outcomes, params: []param{
		{name: "instance", kind: text, place: true, need: true},
		{name: "code", kind: code},
		{name: "value", kind: text},
	}},
}

func outcomeNames() []string {
	var out []string
	for o := range machine.Outcome(machine.NumOutcomes) {
		out = append(out, o.String())
	}
	return out
}

func (s *session) pureBegin(*call) error {
	l, err := s.present()
	if err != nil {
		return err
	}
	if s.pure != nil {
		return errors.New("pure begin: the pure world is begun already")
	}
	l.Driver().View(func(w *machine.World) { s.pure = w.Clone() })
	s.printf("pure: a copy of the world of %s; nothing reaches the device", l.name)
	return nil
}

func (s *session) pureEnd(*call) error {
	if s.pure == nil {
		return errors.New("pure end: no pure world is begun")
	}
	s.pure = nil
	s.printf("pure: the copy is gone; the world is as it was")
	return nil
}

func (s *session) needPure(c *call) error {
	if s.pure == nil {
		return fmt.Errorf(`%s: begin a pure world first, with "pure begin"`, c.name)
	}
	return nil
}

func (s *session) issue(c *call) error {
	if err := s.needPure(c); err != nil {
		return err
	}
	r, ev, args, err := s.target(s.pure, c)
	if err != nil {
		return err
	}
	s.stepped("issue", s.pure, func(w *machine.World) *machine.Step { return w.Issue(r, ev, args...) })
	return nil
}

func (s *session) settle(c *call) error {
	if err := s.needPure(c); err != nil {
		return err
	}
	r, _, err := s.instance(s.pure, c.args["instance"])
	if err != nil {
		return err
	}
	res, err := s.handResult(s.pure, r, c)
	if err != nil {
		return err
	}
	res.Outcome, err = machine.ParseOutcome(c.args["outcome"])
	if err != nil {
		return err
	}
	s.stepped("settle", s.pure, func(w *machine.World) *machine.Step { return w.Settle(r, res) })
	return nil
}

// inFlight returns the command that an instance has in flight, or "".
func inFlight(w *machine.World, r machine.Ref) string {
	m := w.Rules().At(r.Machine)
	_, row, _ := strings.Cut(w.StateName(r), "▸")
	for _, x := range m.Definition().Rows {
		if x.ID == row {
			call, _, _ := strings.Cut(x.Command, "(")
			return call
		}
	}
	return ""
}

// handResult is the result that a script gives by hand. Asked for a context,
// it is the device's own if nothing else is said.
func (s *session) handResult(w *machine.World, r machine.Ref, c *call) (machine.Result, error) {
	res := machine.Result{Accepted: c.has("accepted"), Codes: machine.Codes{Code: int32(c.code("code", 0)), Last: int32(c.code("code", 0))}}
	v := c.str("value", "0")
	if call := inFlight(w, r); !c.has("value") && (call == "CurrentContext" || call == "CreateContext") {
		v = "home"
	}
	switch v {
	case "complete":
		res.Value = uint64(backend.Complete)
	case "not_ready":
		res.Value = uint64(backend.NotReady)
	default:
		if n, err := strconv.ParseUint(v, 10, 64); err == nil {
			res.Value = n
			break
		}
		x, ok := s.naming.contexts[v]
		if !ok {
			known := []string{"complete", "not_ready"}
			for n := range s.naming.contexts {
				known = append(known, n)
			}
			return res, errors.New(machine.Unknown("value", v, known))
		}
		res.Value = uint64(x)
	}
	return res, nil
}

func (s *session) step(c *call) error {
	if err := s.needPure(c); err != nil {
		return err
	}
	r, _, err := s.instance(s.pure, c.args["instance"])
	if err != nil {
		return err
	}
	s.stepped("step", s.pure, func(w *machine.World) *machine.Step { return w.Next(r) })
	return nil
}

func (s *session) drop(c *call) error {
	if err := s.needPure(c); err != nil {
		return err
	}
	r, _, err := s.instance(s.pure, c.args["instance"])
	if err != nil {
		return err
	}
	s.stepped("drop", s.pure, func(w *machine.World) *machine.Step { return w.Drop(r) })
	return nil
}

// stepped makes a step and tells what it did: to the instance itself first,
// then to others that it took along.
func (s *session) stepped(verb string, w *machine.World, f func(*machine.World) *machine.Step) {
	before := w.Clone()
	s.spend()
	st := f(w)
	if st == nil {
		s.printf("%s: nothing is waiting", verb)
		return
	}
	line := verb + " " + s.opts.Rules.RefName(st.Ref)
	if verb != "drop" {
		line = verb + " " + event(s.opts.Rules, st.Ref, st.Event)
	}
	s.printf("%s: %s", line, s.account(w, st))
	for _, l := range s.changes(before, w, st.Ref) {
		s.printf("  %s", l)
	}
}

// account is a step in short.
func (s *session) account(w *machine.World, st *machine.Step) string {
	rules := s.opts.Rules
	m := rules.At(st.Ref.Machine)
	switch st.Status {
	case machine.StepRefused, machine.Hole:
		err := w.RefusalError(st)
		text := s.said(rules, err)
		if st.Status == machine.Hole {
			text = "hole in the rules: " + text
		}
		return text
	case machine.Deferred:
		return "has to wait"
	case machine.InFlight:
		return m.StateName(st.From) + ", " + rules.CallName(st.Command.Call) + " is in flight"
	}
	text := m.StateName(st.From)
	if st.State != st.From {
		text += " -> " + m.StateName(st.State)
	}
	if st.Reason != "" {
		text += "; " + string(st.Reason)
		if st.Code != 0 {
			text += ", " + backend.Code(st.Code).Brief()
		}
	}
	return text
}

// changes lists what differs between two worlds: states of instances other than
// self, and facts that are no identities.
func (s *session) changes(a, b *machine.World, self machine.Ref) []string {
	rules := b.Rules()
	var out []string
	for _, r := range instances(b) {
		if _, _, ok := a.State(r); !ok {
			continue // another occupancy: the step is about it
		}
		m := rules.At(r.Machine)
		var what []string
		if was, is := a.StateName(r), b.StateName(r); was != is && r != self {
			what = append(what, was+" -> "+is)
		}
		for i, f := range m.Definition().Facts {
			id := machine.FactID(i)
			was, _ := a.Fact(r, id)
			is, _ := b.Fact(r, id)
			if was != is && m.FactType(id).Kind != machine.ID {
				what = append(what, f.Name+" = "+s.value(m.FactType(id), is))
			}
		}
		if len(what) > 0 {
			out = append(out, rules.RefName(r)+": "+strings.Join(what, ", "))
		}
	}
	return out
}

// outcomes tells where each outcome of the command that an instance has in
// flight would lead, up to the operation's next command.
func (s *session) outcomes(c *call) error {
	return s.look(func(w *machine.World) error {
		r, _, err := s.instance(w, c.args["instance"])
		if err != nil {
			return err
		}
		if _, flying, _ := w.State(r); !flying {
			return fmt.Errorf("outcomes: %s has no command in flight", w.Rules().RefName(r))
		}
		res, err := s.handResult(w, r, c)
		if err != nil {
			return err
		}
		// Outcomes that lead to the same are told once.
		var leads [][]string
		var of [][]string
		for o := range machine.Outcome(machine.NumOutcomes) {
			x := res
			x.Outcome = o
			if o == machine.OK {
				x.Codes = machine.Codes{}
			}
			l := s.lead(w.Clone(), r, x)
			i := slices.IndexFunc(leads, func(m []string) bool { return slices.Equal(l, m) })
			if i < 0 {
				i = len(leads)
				leads, of = append(leads, l), append(of, nil)
			}
			of[i] = append(of[i], o.String())
			if o != machine.Refused {
				continue
			}
			x.Accepted = true
			if l = s.lead(w.Clone(), r, x); !slices.Equal(l, leads[i]) {
				leads, of = append(leads, l), append(of, []string{"refused but accepted"})
			}
		}
		for i, l := range leads {
			s.printf("%s: %s", words(of[i]), l[0])
			for _, x := range l[1:] {
				s.printf("  %s", x)
			}
		}
		return nil
	})
}

// lead settles a command and tells where its operation goes from there.
func (s *session) lead(w *machine.World, r machine.Ref, res machine.Result) []string {
	before := w.Clone()
	rules := w.Rules()
	st := w.Settle(r, res)
	if st.Status != machine.Accepted {
		return []string{s.account(w, st)}
	}
	root, reason := st.Root, st.Reason
	after := w.Clone()
	where := rules.RefName(r) + " is " + w.StateName(r)
	if reason != "" {
		where += "; " + string(reason)
	}
	for {
		s.spend()
		if st = w.Next(root); st == nil || st.Status == machine.Deferred {
			break
		}
		if st.Ref == root && st.Status == machine.Accepted && st.Reason != "" && st.Reason != reason {
			where += "; " + string(st.Reason)
		}
		if st.Status == machine.InFlight {
			where += ", next is " + rules.CallName(st.Command.Call)
			break
		}
		after.CopyFrom(w)
	}
	return append([]string{where}, s.changes(before, after, r)...)
}

// crash ends the process at this point: what is in flight has no answer, and is
// graded as attempted and failed.
func (s *session) crash(c *call) error {
	if s.pure != nil {
		return errors.New(`crash: leave the pure world first, with "pure end"`)
	}
	l, err := s.present()
	if err != nil {
		return err
	}
	s.crashed = true
	l.Driver().View(func(w *machine.World) { s.pure = w.Clone() })
	n := 0
	for _, r := range instances(s.pure) {
		if _, flying, _ := s.pure.State(r); flying {
			n++
			name := s.pure.StateName(r)
			s.printf("crash: %s was in flight in %s: graded as attempted and failed", s.opts.Rules.RefName(r), name)
			s.stepped("settle", s.pure, func(w *machine.World) *machine.Step { return w.Settle(r, machine.Result{Outcome: machine.Failed}) })
		}
	}
	if n == 0 {
		s.answer(c, "nothing was in flight")
	}
	return nil
}
