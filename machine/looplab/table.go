// Package looplab runs a machine's rules in github.com/looplab/fsm, for a host
// that has standardised on it, and draws a machine with its visualisers.
//
// In looplab's table a state and an event have one destination, guards are
// unknown, and of two entries for the same pair the last silently wins. So each
// row has an event of its own, and a row with a command has two steps:
//
//	event#row             S to the target of the row, or to S▸row if it has a command
//	event#row:outcome     S▸row to the target of the outcome
//	event#row:outcome.1   the same where an outcome has several targets: by its position in Row.Then
//
// A [Bridge] picks the row by the compiled guards before looplab is asked.
package looplab

import (
	"strconv"
	"strings"

	"github.com/looplab/fsm"

	"github.com/runfence/runfence/machine"
)

// Events returns looplab's table for the rows of a machine. Refusals and
// deferrals are no entries.
func Events(m *machine.Machine) fsm.Events {
	var out fsm.Events
	for i := range m.NumRows() {
		id := machine.RowID(i)
		r := m.Row(id)
		if len(r.Then) == 0 {
			continue
		}
		from, during := m.RowFrom(id)
		src := m.StateName(from)
		if during != machine.NoRowID {
			src = m.InFlightName(during)
		}
		to := func(t int) string {
			if r.Then[t].To != "" {
				return r.Then[t].To
			}
			return src
		}
		outcomes := 1
		if r.Command != "" {
			flying := m.InFlightName(id)
			out = append(out, fsm.EventDesc{Name: taken(m, id), Src: []string{src}, Dst: flying})
			outcomes = machine.NumOutcomes
		}
		for o := range outcomes {
			for _, t := range targets(r, machine.Outcome(o)) {
				dst := to(t)
				at := src
				if r.Command != "" {
					at = m.InFlightName(id)
				}
				out = append(out, fsm.EventDesc{Name: ended(m, id, machine.Outcome(o), t), Src: []string{at}, Dst: dst})
			}
		}
	}
	return out
}

// targets lists the positions in Then of the targets for an outcome.
func targets(r *machine.Row, o machine.Outcome) []int {
	var named, rest []int
	for i, t := range r.Then {
		on := strings.Fields(t.On)
		if len(on) == 0 {
			rest = append(rest, i)
		}
		for _, name := range on {
			if name == o.String() {
				named = append(named, i)
			}
		}
	}
	if len(named) > 0 {
		return named
	}
	return rest
}

// taken is the event for a row that was chosen.
func taken(m *machine.Machine, id machine.RowID) string {
	return m.EventName(m.RowEvent(id)) + "#" + m.RowID(id)
}

// ended is the event for a target that was taken.
func ended(m *machine.Machine, id machine.RowID, o machine.Outcome, target int) string {
	r, name := m.Row(id), taken(m, id)
	several := len(targets(r, o)) > 1
	if r.Command != "" || several {
		name += ":" + o.String()
	}
	if several {
		name += "." + strconv.Itoa(target)
	}
	return name
}
