package scenario

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// Column says who did something.
type Column uint8

// The columns of a timeline.
const (
	Host Column = iota
	AICore
	AICPU
)

// Event is one thing that the host or the device did.
type Event struct {
	// Time is virtual, since the device was made.
	Time time.Duration
	// Line is that of the command in the script.
	Line   int
	Column Column
	// Stream is the stream's name, if it was done on one.
	Stream string
	// Text says it in short. Mark is set for what the script says, as against
	// what came of it.
	Text string
	Mark bool
}

// timeline collects events.
type timeline struct {
	events  []Event
	told    int
	line    int
	columns map[backend.Stream]Column
	// begun is the position of the call under way, started that of the first
	// entry of a stream.
	begun   int
	kernel  string // that the call under way queued
	started map[string]int
}

// column says in which column a stream stands, by the end of its name.
func (tl *timeline) column(st backend.Stream, name string) {
	if tl.columns == nil {
		tl.columns = map[backend.Stream]Column{}
	}
	tl.columns[st] = AICore
	if strings.HasPrefix(name[strings.LastIndex(name, ".")+1:], "cpu") {
		tl.columns[st] = AICPU
	}
}

func (s *session) mark(text string) {
	s.timeline.events = append(s.timeline.events, Event{Time: s.now(), Line: s.timeline.line, Text: text, Mark: true})
}

// markResult notes what came of a command that was marked: in the place of the
// mark if nothing came between.
func (s *session) markResult(what, text string, took bool) {
	evs := s.timeline.events
	if n := len(evs); n > s.timeline.told && evs[n-1].Mark && evs[n-1].Text == what && evs[n-1].Time == s.now() {
		evs[n-1].Text = text
		return
	}
	if strings.HasPrefix(what, "dev ") {
		return // its call says the same
	}
	for _, w := range []string{": failed", ": refused", ": held", ": busy", ": panicked"} {
		took = took || strings.HasPrefix(text, what+w)
	}
	if took && s.sim != nil {
		s.mark(text)
	}
}

// trace takes what the simulated device tells.
func (s *session) trace(t sim.TraceEvent) {
	e := Event{Time: t.Time, Line: s.timeline.line}
	if t.Stream != 0 {
		e.Stream = s.naming.stream(t.Stream)
	}
	switch t.Kind {
	case sim.TraceCall:
		if quiet(t.Op) {
			return
		}
		s.timeline.begun, s.timeline.kernel = len(s.timeline.events), ""
		e.Text = t.Op.String() + s.about(t)
	case sim.TraceReturn:
		text := t.Op.String() + s.about(t) + s.ended(t)
		if !quiet(t.Op) {
			if began := &s.timeline.events[s.timeline.begun]; began.Time == t.Time {
				began.Text = text
				return
			}
		} else if t.Outcome == machine.OK {
			return
		}
		e.Text = text
	case sim.TraceQueued:
		if k, ok := s.sim.Kernel(t.Kernel); ok && t.Entry == sim.EntryKernel {
			s.timeline.kernel = k.Name
		}
		return // the call that queued it says so
	case sim.TraceNotice:
		e.Text = "notice of " + e.Stream + ": " + t.Code.Brief()
	case sim.TraceViolation:
		e.Text = "! " + t.Violation.String()
	default:
		e.Column = s.timeline.columns[t.Stream]
		e.Text = s.happened(t)
		if s.timeline.began(e, t) {
			return
		}
	}
	s.timeline.events = append(s.timeline.events, e)
}

// quiet calls are told only if they fail: operations begin with them.
func quiet(op sim.OpKind) bool {
	return op == sim.OpCurrentContext || op == sim.OpStreamID || op == sim.OpNotices
}

// began notes where an entry began; it reports that the entry ends at the very
// time it began, and then says only that.
func (tl *timeline) began(e Event, t sim.TraceEvent) bool {
	if tl.started == nil {
		tl.started = map[string]int{}
	}
	if t.Kind == sim.TraceStart {
		tl.started[e.Stream] = len(tl.events)
	}
	if at, ok := tl.started[e.Stream]; ok && t.Kind == sim.TraceDone {
		delete(tl.started, e.Stream)
		if at >= tl.told && tl.events[at].Time == e.Time {
			tl.events[at] = e
			return true
		}
	}
	return false
}

// about names what a call is about.
func (s *session) about(t sim.TraceEvent) string {
	switch {
	case t.Kind == sim.TraceReturn && s.timeline.kernel != "":
		return " " + s.timeline.kernel + " on " + s.naming.stream(t.Stream)
	case t.Event != 0 && t.Stream != 0:
		return " " + s.naming.of(sim.KindEvent, uint64(t.Event)) + " on " + s.naming.stream(t.Stream)
	case t.Event != 0:
		return " " + s.naming.of(sim.KindEvent, uint64(t.Event))
	case t.Stream != 0:
		return " " + s.naming.stream(t.Stream)
	case t.Memory != 0:
		return " " + s.naming.of(sim.KindMemory, uint64(t.Memory))
	}
	return ""
}

// ended says how a call returned, if that is worth it.
func (s *session) ended(t sim.TraceEvent) string {
	switch {
	case t.Outcome != machine.OK && t.Code != 0:
		return ": " + t.Outcome.String() + " " + t.Code.Brief()
	case t.Outcome != machine.OK:
		return ": " + t.Outcome.String()
	case t.Op == sim.OpQueryStream || t.Op == sim.OpQueryEvent:
		return ": " + t.Status.String()
	case t.Op.Blocking():
		return ": ok"
	}
	return ""
}

// happened says what an entry of a stream did.
func (s *session) happened(t sim.TraceEvent) string {
	what := t.Entry.String()
	switch t.Entry {
	case sim.EntryKernel:
		if k, ok := s.sim.Kernel(t.Kernel); ok && k.Name != "" {
			what += " " + k.Name
		}
	case sim.EntryRecord, sim.EntryWait:
		what += " " + s.naming.of(sim.KindEvent, uint64(t.Event))
	case sim.EntryCopy:
		what += " " + s.naming.of(sim.KindMemory, uint64(t.Source)) + " to " + s.naming.of(sim.KindMemory, uint64(t.Memory))
	}
	switch t.Kind {
	case sim.TraceStart:
		what += " starts"
	case sim.TraceFlag:
		what += " sets its flag"
	case sim.TraceDropped:
		what += " dropped"
	default:
		if t.Entry == sim.EntryKernel {
			what += " ends"
		}
		if t.Code != 0 {
			what += ", " + t.Code.Brief()
		}
	}
	return what
}

// timelineVerb tells what happened since the last time.
func (s *session) timelineVerb(c *call) error {
	from := s.timeline.told
	if c.has("all") {
		from = 0
	}
	s.timeline.told = len(s.timeline.events)
	rows := s.timeline.events[from:]
	if c.has("skip") {
		s.printf("timeline: skipped")
		return nil
	}
	if len(rows) == 0 {
		s.printf("timeline: nothing new")
		return nil
	}
	for _, l := range Table(rows) {
		s.printf("%s", l)
	}
	return nil
}

// Table lays events out in columns: time, host, AICore and AICPU. The first
// line is the heading.
func Table(events []Event) []string {
	cells := [][4]string{{"time", "host", "AICore", "AICPU"}}
	for _, e := range events {
		row := [4]string{us(e.Time)}
		text := e.Text
		if e.Column == Host && !e.Mark {
			text = "  " + text
		}
		if e.Column != Host && e.Stream != "core" && e.Stream != "cpu" {
			text = e.Stream + ": " + text
		}
		row[1+e.Column] = text
		cells = append(cells, row)
	}
	var width [4]int
	for _, r := range cells {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var out []string
	for _, r := range cells {
		l := fmt.Sprintf("%*s  %-*s  %-*s  %s", width[0], r[0], width[1], r[1], width[2], r[2], r[3])
		out = append(out, strings.TrimRight(l, " "))
	}
	return out
}
