package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// namer prints what records hold by the names that their log brought, made
// printable: a log comes from anywhere.
type namer struct{ h *translog.Header }

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
	s := printable(m.Name)
	if m.Pool != "" {
		s += "[" + strconv.Itoa(int(r.Slot)) + "]"
	}
	if r.Gen > 0 {
		s += "~" + strconv.Itoa(int(r.Gen))
	}
	return s
}

// who is the instance of a record; a record of none says so.
func (n *namer) who(rec *machine.Record) string {
	if rec.Kind == machine.Reserved {
		return "-"
	}
	return n.ref(rec.Ref)
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
		return printable(t.States[s])
	}
	return "#" + strconv.Itoa(int(s))
}

func (n *namer) event(m machine.MachineID, e machine.EventID) string {
	if t := n.machine(m); t != nil && int(e) < len(t.Events) {
		return printable(t.Events[e].Name)
	}
	return "#" + strconv.Itoa(int(e))
}

func (n *namer) row(m machine.MachineID, r machine.RowID) *translog.RowTable {
	if t := n.machine(m); t != nil && int(r) < len(t.Rows) {
		return &t.Rows[r]
	}
	return nil
}

func (n *namer) call(c machine.CallID) string {
	if int(c) < len(n.h.Calls) {
		return printable(n.h.Calls[c])
	}
	return "#" + strconv.Itoa(int(c))
}

func (n *namer) reason(r uint16) string {
	if int(r) < len(n.h.Reasons) {
		return printable(string(n.h.Reasons[r]))
	}
	return ""
}

// parts are the parts of a record by name, made printable.
type parts []translog.Member

func (n *namer) parts(rec *machine.Record) parts {
	out := parts(n.h.Members(rec))
	for i := range out {
		out[i].Value = printable(out[i].Value)
	}
	return out
}

func (p parts) get(name string) string {
	for _, m := range p {
		if m.Name == name {
			return m.Value
		}
	}
	return ""
}

// list returns the values of a list, with their names if they have any.
func (p parts) list(what string) string {
	var out []string
	for _, m := range p {
		name, ok := strings.CutPrefix(m.Name, what+".")
		switch {
		case !ok:
		case name[0] >= '0' && name[0] <= '9':
			out = append(out, m.Value)
		default:
			out = append(out, printable(name)+"="+m.Value)
		}
	}
	return strings.Join(out, ", ")
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
	p := n.parts(rec)
	from := p.get("from")
	if d := p.get("during"); d != "" {
		from += "▸" + d
	}
	move := from + " → " + s.green(p.get("to"))
	if rec.From == rec.To {
		move = s.dim("stays ") + from
	}
	event, row, fails := p.get("event"), "", ""
	happening := event + "(" + p.list("args") + ")"
	if id := p.get("row"); id != "" {
		row = "  " + s.dim("#"+id)
	}
	if why := p.get("reason"); why != "" {
		fails = "  " + s.red("fails: "+why)
	}
	switch rec.Kind {
	case machine.Stepped:
		return happening + "  " + move + fails + row
	case machine.Issued:
		return happening + "  " + from + " ▸ " + s.cyan(p.get("call")+"("+p.list("callargs")+")") + row
	case machine.Settled:
		a := answer(rec.Result)
		if rec.Result.Outcome != machine.OK {
			a = s.red(a)
		}
		return event + " answered " + a + "  " + move + fails + row
	case machine.Holed:
		return event + " answered " + answer(rec.Result) + ", which " + s.red("no row can take: "+n.blame(rec)) + row
	case machine.Rejected:
		return happening + "  in " + from + ": " + s.yellow("refused: "+n.blame(rec)) + row
	case machine.Dropped:
		return "dropped in " + from + "; the place is free"
	case machine.Reserved:
		return "identities of sort " + p.get("sort") + " are taken up to " + p.list("args")
	}
	return rec.Kind.String()
}

// blame says why a record was refused.
func (n *namer) blame(rec *machine.Record) string {
	why := n.reason(rec.Reason)
	switch {
	case rec.Refusal == machine.ByJoint && why != "":
		return fmt.Sprintf("%s refuses %s: %s", n.ref(rec.By), n.event(rec.By.Machine, rec.ByEvent), why)
	case rec.Refusal == machine.ByJoint:
		return fmt.Sprintf("%s refuses %s", n.ref(rec.By), n.event(rec.By.Machine, rec.ByEvent))
	case why != "":
		return why
	}
	return rec.Refusal.String()
}

// details prints what a line leaves out.
func (n *namer) details(e *translog.Entry) []string {
	rec, p := &e.Record, n.parts(&e.Record)
	var out []string
	for _, what := range []string{"identity", "views"} {
		if v := p.list(what); v != "" {
			out = append(out, what+" "+v)
		}
	}
	if rec.Parent != 0 {
		out = append(out, fmt.Sprintf("caused by %d, via %v, for %s", rec.Parent, rec.Via, n.ref(rec.Root)))
	} else {
		out = append(out, "from the host")
	}
	if e.Site != "" {
		out = append(out, "at "+printable(e.Site))
	}
	return out
}
