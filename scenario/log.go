package scenario

import (
	"slices"
	"strings"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// recorder keeps a lane's transitions for the script to read, and passes them
// on to the log outside.
type recorder struct {
	rules   *machine.Rules
	spend   func() // counts a transition
	records []machine.Record
	told    int    // records that an answer told
	issued  issued // the last command
	next    machine.Recorder
	closed  bool
}

// issued is a command that the rules issued, and for whom.
type issued struct {
	ref  machine.Ref
	call string
}

// Record implements [machine.Recorder].
func (r *recorder) Record(rec *machine.Record) {
	if r.closed {
		return
	}
	r.spend()
	if rec.Kind == machine.Issued {
		r.issued = issued{rec.Ref, r.rules.CallName(rec.Call)}
	}
	r.records = append(r.records, *rec)
	if r.next != nil {
		r.next.Record(rec)
	}
}

// Flush implements [machine.Flusher].
func (r *recorder) Flush() {
	if f, ok := r.next.(machine.Flusher); ok && !r.closed {
		f.Flush()
	}
}

// logVerb tells the transitions since the last time.
func (s *session) logVerb(c *call) error {
	l, err := s.present()
	if err != nil {
		return err
	}
	rules := s.opts.Rules
	recs := l.recorder.records
	from := l.recorder.told
	if c.has("all") {
		from = 0
	}
	l.recorder.told = len(recs)
	if c.has("skip") {
		s.printf("log: skipped")
		return nil
	}
	recs = recs[from:]
	told := map[uint64]bool{} // by sequence
	for i := 0; i < len(recs); i++ {
		r := &recs[i]
		m := rules.At(r.Ref.Machine)
		joint := ""
		if r.Via == machine.ViaJoint && told[r.Parent] {
			joint = "  "
		}
		line, last := s.transition(r), r
		skip := 0
		if r.Kind == machine.Issued {
			// Its answer, if nothing but its own joint steps came between.
			j := i + 1
			for j < len(recs) && recs[j].Via == machine.ViaJoint && recs[j].Parent == r.Seq {
				j++
			}
			if j < len(recs) && recs[j].Parent == r.Seq && (recs[j].Kind == machine.Settled || recs[j].Kind == machine.Holed) && recs[j].Ref == r.Ref {
				last, skip = &recs[j], j
				line = s.transition(last)
			}
		}
		if s.wanted(c, m.Name(), last) {
			if c.has("rows") && r.Row != machine.NoRowID {
				line += " [" + m.RowID(r.Row) + "]"
			}
			s.printf("%s%s", joint, line)
			told[r.Seq] = true
			if skip > 0 {
				told[recs[skip].Seq] = true
			}
		}
		if skip > 0 {
			recs = slices.Delete(slices.Clone(recs), skip, skip+1)
		}
	}
	if len(told) == 0 {
		s.printf("log: nothing new")
	}
	return nil
}

// wanted reports whether the log is asked for such a transition.
func (s *session) wanted(c *call, m string, r *machine.Record) bool {
	if len(c.list) > 0 && !slices.Contains(c.list, m) {
		return false
	}
	refused := r.Kind == machine.Rejected || r.Kind == machine.Holed
	failed := !refused && s.opts.Rules.ReasonAt(r.Reason) != ""
	return !c.has("refused") && !c.has("failed") || c.has("refused") && refused || c.has("failed") && failed
}

// transition is a record in one short line.
func (s *session) transition(r *machine.Record) string {
	rules := s.opts.Rules
	m := rules.At(r.Ref.Machine)
	line := rules.RefName(r.Ref)
	if r.Kind == machine.Dropped {
		return line + ": the slot is free for the next"
	}
	line += " " + m.EventName(r.Event) + s.shortArgs(m, r) + ": "
	reason := string(rules.ReasonAt(r.Reason))
	switch r.Kind {
	case machine.Rejected:
		line += "refused in " + m.StateName(r.From)
		if reason == "" {
			reason = r.Refusal.String()
		}
		return line + "; " + reason
	case machine.Issued:
		return line + m.StateName(r.From) + ", " + rules.CallName(r.Call) + " is in flight"
	case machine.Holed:
		return line + "a hole in the rules: " + rules.RefName(r.By) + " refuses"
	}
	line += m.StateName(r.From)
	if r.To != r.From {
		line += " -> " + m.StateName(r.To)
	}
	if r.Kind == machine.Settled {
		call, _, _ := strings.Cut(m.Row(r.Row).Command, "(") // a settle does not repeat it
		line += ", " + call + " " + r.Result.Outcome.String()
		if r.Result.Code != 0 {
			line += " " + backend.Code(r.Result.Code).Brief()
		}
	}
	if reason != "" {
		line += "; " + reason
	}
	return line
}

// shortArgs are the arguments of a record that are no identities.
func (s *session) shortArgs(m *machine.Machine, r *machine.Record) string {
	var out []string
	for i, ty := range m.EventArgs(r.Event) {
		if i < int(r.NArgs) && ty.Kind != machine.ID && ty.Kind != machine.RefTo {
			out = append(out, s.value(ty, r.Args[i]))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "(" + strings.Join(out, ", ") + ")"
}
