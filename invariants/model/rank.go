package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// A rank says how far a state is from its end, most weighty part first: what
// the host has left to do, the turns of a loop in the rules, the events and
// commands under way, the calls of the device under way, and what the device
// has left to do. Every move that changes the state lowers it; so there is no
// way to go on for ever, and what the rules must do in the end they do wherever
// nothing can happen any more.
type rank [6]int

func (r rank) below(o rank) bool { return slices.Compare(r[:], o[:]) < 0 }

// weights are how many steps an event can lead to, counting only those of its
// own operation.
type weights struct {
	rules *machine.Rules
	event [][]int // by machine and event
	row   [][]int // of a row whose command is in flight, by machine and row
	on    []step  // what is being weighed
}

type step struct {
	machine machine.MachineID
	event   int
	row     *machine.Row
}

// again are the rows that send an event that leads to them again, past calls of
// the device; [State.turns] says what makes them end. A loop without a call ends
// within one move, or the move does not.
var again = map[string]bool{"submit/declined": true, "submit/declined-alone": true}

// weigh finds the weights. The error names a loop that nothing is known to end.
func weigh(rules *machine.Rules) (*weights, error) {
	w := &weights{rules: rules}
	for id := range rules.NumMachines() {
		d := rules.At(machine.MachineID(id)).Definition()
		w.event = append(w.event, make([]int, len(d.Events)))
		w.row = append(w.row, make([]int, rules.At(machine.MachineID(id)).NumRows()))
	}
	for id := range rules.NumMachines() {
		for e := range w.event[id] {
			if _, err := w.weigh(rules.At(machine.MachineID(id)), e); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

const weighing = -1

// weigh returns the weight of taking an event.
func (w *weights) weigh(m *machine.Machine, e int) (int, error) {
	at := &w.event[m.ID()][e]
	if *at == weighing {
		from := slices.IndexFunc(w.on, func(s step) bool { return s.machine == m.ID() && s.event == e })
		if !slices.ContainsFunc(w.on[from:], func(s step) bool { return s.row.Command != "" }) {
			return 0, nil
		}
		return 0, fmt.Errorf("model: %s %s leads to itself, and nothing is known to end it", m.Name(), m.EventName(machine.EventID(e)))
	}
	if *at > 0 {
		return *at, nil
	}
	*at = weighing
	most := 0
	for i := range m.NumRows() {
		r := m.Row(machine.RowID(i))
		if m.RowEvent(machine.RowID(i)) != machine.EventID(e) {
			continue
		}
		w.on = append(w.on, step{m.ID(), e, r})
		lead, err := w.lead(m, r)
		if err != nil {
			return 0, err
		}
		w.on = w.on[:len(w.on)-1]
		w.row[m.ID()][i] = lead + 1
		most = max(most, lead)
	}
	*at = most + 2 // and taken, in flight
	return *at, nil
}

// lead is the weight of what a row can leave under way when it is done.
func (w *weights) lead(m *machine.Machine, r *machine.Row) (int, error) {
	if again[m.Name()+"/"+r.ID] {
		return 0, nil
	}
	first, err := w.sum(m, r, r.With, false)
	if err != nil {
		return 0, err
	}
	most := 0
	for i := range r.Then {
		t := &r.Then[i]
		sent, err := w.sum(m, r, t.Emit, true)
		if err != nil {
			return 0, err
		}
		along, err := w.sum(m, r, t.With, false)
		if err != nil {
			return 0, err
		}
		most = max(most, sent+along)
	}
	return first + most, nil
}

// sum adds up the events of a list: their own weight if they are sent, what
// they send if they are taken along.
func (w *weights) sum(m *machine.Machine, r *machine.Row, list []string, sent bool) (total int, err error) {
	for _, text := range list {
		to, name, ok := w.addressee(m, r, text)
		if !ok {
			return 0, fmt.Errorf("model: %s/%s: who is meant by %q?", m.Name(), r.ID, text)
		}
		e, known := to.Event(name)
		if !known {
			return 0, fmt.Errorf("model: %s/%s: %q: %s has no such event", m.Name(), r.ID, text, to.Name())
		}
		n, err := w.weigh(to, int(e))
		if err != nil {
			return 0, err
		}
		if !sent {
			n -= 2
		}
		total += max(n, 0)
	}
	return total, nil
}

// addressee finds the machine and the event that a text such as
// "fence.retire(…)" names: by the machine's name, or by a name for a reference.
func (w *weights) addressee(m *machine.Machine, r *machine.Row, text string) (to *machine.Machine, event string, ok bool) {
	call, _, _ := strings.Cut(text, "(")
	whose, event, ok := cutLast(call)
	if !ok {
		return nil, "", false
	}
	if whose == "self" {
		return m, event, true
	}
	if to = w.rules.Machine(whose); to != nil && !strings.Contains(whose, ".") {
		if _, isFact := m.Fact(whose); !isFact {
			return to, event, true
		}
	}
	d := m.Definition()
	name := strings.TrimPrefix(strings.TrimPrefix(whose, "arg."), "view.")
	facts := d.Facts
	for i := range d.Events {
		if d.Events[i].Name == r.Event {
			facts = slices.Concat(facts, d.Events[i].Args)
		}
	}
	for _, f := range facts {
		if target, isRef := strings.CutPrefix(f.Type, "ref "); isRef && f.Name == name {
			return w.rules.Machine(target), event, true
		}
	}
	for _, v := range d.Views {
		if rest, isFirst := strings.CutPrefix(v.Expr, "first("); isFirst && v.Name == name {
			target, _, _ := strings.Cut(rest, ",")
			return w.rules.Machine(target), event, true
		}
	}
	return nil, "", false
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// rank returns the rank of the state.
func (s *State) rank() (r rank) {
	a, h := &s.sys.at, &s.host
	r[0] = 8*int(h.runs) + 5*int(h.spare) + int(h.polls) + 2*int(h.expiries) + int(h.recoveries) + int(s.dev.Budget())
	for _, done := range [...]bool{h.opened, h.closed, h.quarantined, h.detached} {
		if !done {
			r[0]++
		}
	}
	for slot := range s.sys.config.Slots {
		if !s.occupied(slot) {
			continue
		}
		r[0]++
		for o := range numOps {
			if once[o] != 0 && h.tried[slot]&once[o] == 0 {
				r[0]++
			}
		}
	}
	for t := range s.w.Capacity(a.token.ID()) {
		if st, _, _ := s.w.State(s.w.Ref(a.token.ID(), t)); st != 0 {
			r[0]++
		}
	}
	r[1] = s.turns()
	for i := range s.w.Queued() {
		ref, ev := s.w.QueuedEvent(i)
		r[2] += s.sys.weights.event[ref.Machine][ev]
	}
	for i := range s.calls {
		c := &s.calls[i]
		r[2] += s.sys.weights.row[c.cmd.Ref.Machine][c.row]
		r[3] += 8 * (4096 - len(c.answers))
		if p, ok := s.dev.Progress(c.ticket); ok {
			r[3] += p
		}
	}
	r[4], r[5] = s.dev.Left()
	return r
}

// occupied reports whether a slot has a run, or something that may bring one.
func (s *State) occupied(slot int) bool {
	a := &s.sys.at
	return s.runState(slot) != a.idle || s.under(a.prepare, slot) || s.under(a.submit, slot)
}

// under reports whether an operation of a slot is under way: not in the state
// that it begins and ends in.
func (s *State) under(m *machine.Machine, slot int) bool {
	st, flying, _ := s.w.State(s.w.Ref(m.ID(), slot))
	return st != 0 || flying
}

// turns counts how often a submission may go on from what came of a launch: it
// is tried again at most once, and not joined then.
func (s *State) turns() (n int) {
	a := &s.sys.at
	joined, known := a.submit.Fact("joined")
	for slot := range s.sys.config.Slots {
		ref := s.w.Ref(a.submit.ID(), slot)
		switch s.w.StateName(ref) {
		case "preparing", "enqueueing":
			n += 4
		case "draining":
			n += 2
		case "launching":
			n++
			if v, _ := s.w.Fact(ref, joined); known && v != 0 {
				n += 2
			}
		}
	}
	return n
}

// ended checks that a move brought the end nearer.
func (s *State) ended(before rank) *Finding {
	if after := s.rank(); !after.below(before) {
		return &Finding{Kind: "unranked", Detail: fmt.Sprintf("the state is as far from its end as before: %v, then %v", before, after)}
	}
	return nil
}
