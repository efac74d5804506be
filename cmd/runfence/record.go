package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// namer prints what records hold by the names that their log brought, made
// printable: a log comes from anywhere.
type namer struct {
	h     *translog.Header
	types map[string]machine.Type
}

func newNamer(h *translog.Header) *namer {
	clean := *h
	clean.Calls = eachPrintable(h.Calls)
	clean.Reasons = eachPrintable(h.Reasons)
	clean.Machines = slices.Clone(h.Machines)
	for i := range clean.Machines {
		m := &clean.Machines[i]
		m.Name, m.States = printable(m.Name), eachPrintable(m.States)
		m.Events, m.Identity, m.Rows = slices.Clone(m.Events), printableFields(m.Identity), slices.Clone(m.Rows)
		for j := range m.Events {
			m.Events[j].Name, m.Events[j].Args = printable(m.Events[j].Name), printableFields(m.Events[j].Args)
		}
		for j := range m.Rows {
			m.Rows[j].ID, m.Rows[j].Views = printable(m.Rows[j].ID), printableFields(m.Rows[j].Views)
		}
	}
	return &namer{h: &clean, types: map[string]machine.Type{}}
}

func eachPrintable[S ~string](names []S) []S {
	out := slices.Clone(names)
	for i, n := range out {
		out[i] = S(printable(string(n)))
	}
	return out
}

func printableFields(fs []translog.Field) []translog.Field {
	out := slices.Clone(fs)
	for i := range out {
		out[i].Name = printable(out[i].Name)
	}
	return out
}

func (n *namer) machine(id machine.MachineID) *translog.MachineTable {
	if int(id) < len(n.h.Machines) {
		return &n.h.Machines[id]
	}
	return nil
}

// ref names an instance as [machine.Rules.RefName] does.
func (n *namer) ref(r machine.Ref) string {
	m := n.machine(r.Machine)
	if m == nil {
		return fmt.Sprintf("#%d[%d]~%d", r.Machine, r.Slot, r.Gen)
	}
	s := m.Name
	if m.Pool != "" {
		s += "[" + strconv.Itoa(int(r.Slot)) + "]"
	}
	if r.Gen > 0 {
		s += "~" + strconv.Itoa(int(r.Gen))
	}
	return s
}

// longestRef is the width of the names of instances, generations left out.
func (n *namer) longestRef() int {
	longest := 0
	for i := range n.h.Machines {
		longest = max(longest, width(n.ref(machine.Ref{Machine: machine.MachineID(i)})))
	}
	return longest
}

func (n *namer) state(m machine.MachineID, s machine.StateID) string {
	if t := n.machine(m); t != nil && int(s) < len(t.States) {
		return t.States[s]
	}
	return "#" + strconv.Itoa(int(s))
}

func (n *namer) event(m machine.MachineID, e machine.EventID) string {
	if t := n.machine(m); t != nil && int(e) < len(t.Events) {
		return t.Events[e].Name
	}
	return "#" + strconv.Itoa(int(e))
}

func (n *namer) row(m machine.MachineID, r machine.RowID) *translog.RowTable {
	if t := n.machine(m); t != nil && int(r) < len(t.Rows) {
		return &t.Rows[r]
	}
	return nil
}

func (n *namer) rowID(m machine.MachineID, r machine.RowID) string {
	if t := n.row(m, r); t != nil {
		return t.ID
	}
	if r == machine.NoRowID {
		return ""
	}
	return strconv.Itoa(int(r))
}

func (n *namer) call(c machine.CallID) string {
	if int(c) < len(n.h.Calls) {
		return n.h.Calls[c]
	}
	return "#" + strconv.Itoa(int(c))
}

func (n *namer) reason(r uint16) string {
	if int(r) < len(n.h.Reasons) {
		return string(n.h.Reasons[r])
	}
	return ""
}

// value prints a value of a type that the header names.
func (n *namer) value(ty string, v uint64) string {
	if of, ok := strings.CutPrefix(ty, "state of "); ok {
		for i := range n.h.Machines {
			if n.h.Machines[i].Name == of {
				return strconv.Quote(n.state(machine.MachineID(i), machine.StateID(v)))
			}
		}
	}
	t, known := n.types[ty]
	if !known {
		var err error
		if t, err = machine.ParseType(ty); err != nil {
			t = machine.Type{Kind: machine.ID}
		}
		n.types[ty] = t
	}
	if t.Kind == machine.RefTo && v != 0 {
		return n.ref(machine.UnpackRef(v))
	}
	return t.Format(v)
}

// named prints values with their names.
func (n *namer) named(fields []translog.Field, vs []uint64) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		if i < len(fields) {
			parts[i] = fields[i].Name + "=" + n.value(fields[i].Type, v)
		} else {
			parts[i] = strconv.FormatUint(v, 10)
		}
	}
	return strings.Join(parts, ", ")
}

// happening prints a record's event with its arguments.
func (n *namer) happening(rec *machine.Record) string {
	var fields []translog.Field
	if t := n.machine(rec.Ref.Machine); t != nil && int(rec.Event) < len(t.Events) {
		fields = t.Events[rec.Event].Args
	}
	return n.event(rec.Ref.Machine, rec.Event) + "(" + n.named(fields, rec.Args[:rec.NArgs]) + ")"
}

// command prints a record's call with its arguments.
func (n *namer) command(rec *machine.Record) string {
	parts := make([]string, rec.NCall)
	row := n.row(rec.Ref.Machine, rec.Row)
	for i := range parts {
		if row != nil && i < len(row.Call) {
			parts[i] = n.value(row.Call[i], rec.CallArgs[i])
		} else {
			parts[i] = strconv.FormatUint(rec.CallArgs[i], 10)
		}
	}
	return n.call(rec.Call) + "(" + strings.Join(parts, ", ") + ")"
}

// answer prints what a command was answered.
func answer(r machine.Result) string {
	s := r.Outcome.String()
	if r.Code != 0 {
		s += fmt.Sprintf(" code %d", r.Code)
	}
	if r.Last != 0 && r.Last != r.Code {
		s += fmt.Sprintf(" last error %d", r.Last)
	}
	if r.Value != 0 {
		s += fmt.Sprintf(" value %d", r.Value)
	}
	if r.Accepted && r.Outcome != machine.OK {
		s += " accepted"
	}
	return s
}

// clock prints the time of a record: virtual time as a duration, and what can
// only be a wall clock's as a date.
func clock(ns int64) string {
	const since2001 = 1e18
	if ns >= since2001 {
		return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	return virtual(time.Duration(ns))
}

// line prints what a record says, without its sequence, time and instance.
func (n *namer) line(rec *machine.Record, s style) string {
	from, to := n.state(rec.Ref.Machine, rec.From), n.state(rec.Ref.Machine, rec.To)
	move := from + " → " + s.green(to)
	if rec.From == rec.To {
		move = s.dim("stays ") + from
	}
	row := ""
	if id := n.rowID(rec.Ref.Machine, rec.Row); id != "" {
		row = "  " + s.dim("#"+id)
	}
	fails := ""
	if why := n.reason(rec.Reason); why != "" && rec.Kind != machine.Rejected {
		fails = "  " + s.red("fails: "+why)
	}
	switch rec.Kind {
	case machine.Stepped:
		return n.happening(rec) + "  " + move + fails + row
	case machine.Issued:
		return n.happening(rec) + "  " + from + " ▸ " + s.cyan(n.command(rec)) + row
	case machine.Settled:
		a := answer(rec.Result)
		if rec.Result.Outcome != machine.OK {
			a = s.red(a)
		}
		return n.event(rec.Ref.Machine, rec.Event) + " answered " + a + "  " + move + fails + row
	case machine.Holed:
		return n.event(rec.Ref.Machine, rec.Event) + " answered " + answer(rec.Result) + ", which " + s.red("no row can take: "+n.blame(rec)) + row
	case machine.Rejected:
		return n.happening(rec) + "  in " + from + ": " + s.yellow("refused: "+n.blame(rec)) + row
	case machine.Dropped:
		return "dropped in " + from + "; the place is free"
	}
	return rec.Kind.String()
}

// blame says why a record was refused.
func (n *namer) blame(rec *machine.Record) string {
	why := n.reason(rec.Reason)
	if why == "" {
		why = rec.Refusal.String()
	}
	if rec.Refusal == machine.ByJoint {
		why = fmt.Sprintf("%s refuses %s: %s", n.ref(rec.By), n.event(rec.By.Machine, rec.ByEvent), why)
	}
	return why
}

// details prints what a line leaves out.
func (n *namer) details(e *translog.Entry) []string {
	rec := &e.Record
	var out []string
	if t := n.machine(rec.Ref.Machine); t != nil && rec.NIdentity > 0 {
		out = append(out, "identity "+n.named(t.Identity, rec.Identity[:rec.NIdentity]))
	}
	if rec.NViews > 0 {
		var fields []translog.Field
		if row := n.row(rec.Ref.Machine, rec.Row); row != nil {
			fields = row.Views
		}
		out = append(out, "views "+n.named(fields, rec.Views[:rec.NViews]))
	}
	switch {
	case rec.Parent != 0:
		out = append(out, fmt.Sprintf("caused by %d, via %v, for %s", rec.Parent, rec.Via, n.ref(rec.Root)))
	default:
		out = append(out, "from the host")
	}
	if e.Site != "" {
		out = append(out, "at "+printable(e.Site))
	}
	return out
}
