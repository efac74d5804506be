package machine

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of the host level, matched with errors.Is.
const (
	// ErrRefused is matched by every [RefusalError].
	ErrRefused Reason = "refused"
	// ErrReentrant: an event was fired through the context of a command of the
	// same world. It would wait for itself.
	ErrReentrant Reason = "fired from inside a command of the same world"
	// ErrBusy: the instance did not become ready within the caller's context or
	// the driver's bound. Nothing changed; the event may be fired again.
	ErrBusy Reason = "busy"
	// ErrRuleHole is matched by every [HoleError]: the rules have no way on.
	ErrRuleHole Reason = "hole in the rules"
	// ErrStale is matched by a RefusalError for a reference whose occupancy ended.
	ErrStale Reason = "stale reference"
	// ErrBadArgument is matched by a RefusalError for arguments of the wrong type or number.
	ErrBadArgument Reason = "bad argument"
	// ErrQueueFull is matched by a RefusalError for a step that emits more events than the queue holds.
	ErrQueueFull Reason = "queue full"
	// ErrOutOfRange is matched by a RefusalError for a step that would push a fact past its type.
	ErrOutOfRange Reason = "fact out of range"
	// ErrNotTerminal is matched by a RefusalError for a drop of an instance that is not in a terminal state.
	ErrNotTerminal Reason = "not in a terminal state"
)

// RefusalError says that an event was refused and nothing changed. It names
// the machine, the instance, its state, the event, each guard that said no and
// what the state accepts. errors.Is matches [ErrRefused], the row's [Reason],
// and the sentinel of its Kind.
type RefusalError struct {
	rules *Rules
	world string

	Ref   Ref
	State StateID
	Event EventID
	Kind  RefusalKind
	// Reason is that of the refusing row, if any.
	Reason Reason

	during RowID
	row    RowID
	said   uint64
	fact   int

	by       Ref
	byState  StateID
	byEvent  EventID
	byRow    RowID
	byKind   RefusalKind
	bySaid   uint64
	byDuring RowID
}

func (w *World) refusalError(s *Step) *RefusalError {
	return &RefusalError{
		rules: w.rules, world: w.config.Name, Ref: s.Ref, State: s.State, Event: s.Event, Kind: s.Refusal, Reason: s.Reason,
		during: s.During, row: s.Row, said: s.Said, fact: s.Fact,
		by: s.By, byState: s.ByState, byEvent: s.ByEvent, byRow: s.ByRow, byKind: s.ByKind, bySaid: s.BySaid, byDuring: s.ByDuring,
	}
}

// RefusalError makes the error for a refused step. It returns nil if the step
// was not refused.
func (w *World) RefusalError(s *Step) error {
	if s.Status != StepRefused && s.Status != Hole {
		return nil
	}
	return w.refusalError(s)
}

// Is matches the sentinels and reasons listed at [RefusalError].
func (e *RefusalError) Is(target error) bool {
	r, ok := target.(Reason)
	if !ok {
		return false
	}
	k := e.Kind
	if k == ByJoint {
		k = e.byKind
	}
	switch r {
	case ErrRefused:
		return true
	case ErrStale:
		return k == StaleRef
	case ErrBadArgument:
		return k == BadArgument || k == BadRef
	case ErrQueueFull:
		return k == QueueFull
	case ErrOutOfRange:
		return k == OutOfRange
	case ErrNotTerminal:
		return k == NotTerminal
	}
	return r == e.Reason
}

// Row returns the id of the row that refused or that could not be taken, or "".
func (e *RefusalError) Row() string {
	if m := e.machine(e.Ref); m != nil {
		return m.RowID(e.row)
	}
	return ""
}

func (e *RefusalError) machine(r Ref) *Machine {
	if int(r.Machine) >= len(e.rules.machines) {
		return nil
	}
	return e.rules.machines[r.Machine]
}

// Guards returns the texts of the guards that said no, in order: those of the
// instance itself, then those of an instance that it would have taken along.
func (e *RefusalError) Guards() []string {
	out := e.guards(nil, e.Ref, e.State, e.during, e.Event, e.said)
	return e.guards(out, e.by, e.byState, e.byDuring, e.byEvent, e.bySaid)
}

func (e *RefusalError) guards(out []string, ref Ref, s StateID, during RowID, ev EventID, said uint64) []string {
	if said == 0 {
		return out // and the rest may name nothing
	}
	m := e.machine(ref)
	for i, r := range m.RowsOf(s, during, ev) {
		if said&(1<<uint(i)) != 0 {
			out = append(out, m.rows[r].guardText)
		}
	}
	return out
}

// Accepts returns the names of the events that the state accepts.
func (e *RefusalError) Accepts() []string {
	m := e.machine(e.Ref)
	if m == nil || e.Kind == StaleRef || e.Kind == BadRef && e.row == NoRowID {
		return nil
	}
	var out []string
	for _, ev := range m.Accepts(e.State, e.during) {
		out = append(out, m.EventName(ev))
	}
	return out
}

// Error says all of it in one line.
func (e *RefusalError) Error() string {
	m := e.machine(e.Ref)
	if m == nil {
		return fmt.Sprintf("refused: no machine %d", e.Ref.Machine)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s refused", e.rules.RefName(e.Ref), m.EventName(e.Event))
	switch e.Kind {
	case StaleRef:
		fmt.Fprintf(&b, ": stale reference: this occupancy has ended")
		return b.String()
	case BadRef:
		if e.row == NoRowID {
			b.WriteString(": the reference names nothing")
			return b.String()
		}
	}
	fmt.Fprintf(&b, " in state %q", e.stateName(m, e.State, e.during))
	if e.row != NoRowID {
		fmt.Fprintf(&b, " (row %s)", m.RowID(e.row))
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", string(e.Reason))
	}
	if e.Kind == ByJoint {
		fmt.Fprintf(&b, ": %s, to be taken along, refuses %s", e.rules.RefName(e.by), e.rules.eventName(e.by, e.byEvent))
		if bm := e.machine(e.by); bm != nil && e.byKind != StaleRef && e.byKind != BadRef {
			fmt.Fprintf(&b, " in state %q", e.stateName(bm, e.byState, e.byDuring))
			if e.byRow != NoRowID {
				fmt.Fprintf(&b, " (row %s)", bm.RowID(e.byRow))
			}
		}
		b.WriteString(e.why(e.byKind, e.by, e.byEvent))
	}
	b.WriteString(e.why(e.Kind, e.Ref, e.Event))
	if g := e.Guards(); len(g) > 0 {
		fmt.Fprintf(&b, "; said no: %s", strings.Join(g, ", "))
	}
	if a := e.Accepts(); len(a) > 0 {
		fmt.Fprintf(&b, "; accepts %s", strings.Join(a, ", "))
	} else {
		b.WriteString("; accepts nothing")
	}
	return b.String()
}

func (e *RefusalError) stateName(m *Machine, s StateID, during RowID) string {
	if during != NoRowID {
		return m.InFlightName(during)
	}
	return m.StateName(s)
}

// why puts a kind of refusal into words, as the end of a line. Where a row
// says no, its Reason has said it all.
func (e *RefusalError) why(k RefusalKind, ref Ref, ev EventID) string {
	switch k {
	case NoRow:
		return ": no row takes it there"
	case StaleRef:
		return ": stale reference: that occupancy has ended"
	case BadRef:
		return ": a reference that the step needs names nothing"
	case QueueFull:
		return ": the queue is full"
	case NotTerminal:
		return ": only an instance in a terminal state can be dropped"
	case NotInFlight:
		return ": it has no command in flight"
	case TakenTwice:
		return ": the step is changing it already"
	case OutOfRange:
		return fmt.Sprintf(": fact %s would leave its range", e.machine(ref).def.Facts[e.fact].Name)
	case BadArgument:
		m := e.machine(ref)
		switch {
		case int(ev) >= len(m.argTy):
			return ": no such event"
		case e.fact >= len(m.argTy[ev]):
			return fmt.Sprintf(": want %d arguments", len(m.argTy[ev]))
		}
		return fmt.Sprintf(": argument %s is not of type %s", m.def.Events[ev].Args[e.fact].Name, m.argTy[ev][e.fact])
	}
	return ""
}

// RefName names an instance for readers: "fence[1]", or "fence[1]~2" for the
// occupancy of generation 2.
func (r *Rules) RefName(ref Ref) string {
	if int(ref.Machine) >= len(r.machines) {
		return "machine " + ref.local()
	}
	m := r.machines[ref.Machine]
	s := m.def.Name
	if m.def.Pool != "" {
		s = fmt.Sprintf("%s[%d]", s, ref.Slot)
	}
	if ref.Gen > 0 {
		s = fmt.Sprintf("%s~%d", s, ref.Gen)
	}
	return s
}

// FailureError says that a transition was taken and its target names a
// failure: the instance moved. errors.Is matches the Reason.
type FailureError struct {
	rules *Rules

	Ref    Ref
	State  StateID // where the instance is now
	Event  EventID
	Reason Reason
	// Code is what the target reports.
	Code int32
	// Panic is what the command panicked with, if it did.
	Panic any
	// Cause is what another instance refused or failed on the way, if anything.
	Cause error
	row   RowID
}

// FailureError makes the error for a step that was accepted and whose target
// names a failure. It returns nil if it names none. panicked is what the step's
// command panicked with, if it did.
func (w *World) FailureError(s *Step, panicked any) error {
	if s.Status != Accepted || s.Reason == "" {
		return nil
	}
	return &FailureError{rules: w.rules, Ref: s.Ref, State: s.State, Event: s.Event, Reason: s.Reason, Code: s.Code, Panic: panicked, row: s.Row}
}

// Unwrap returns the Reason and the Cause.
func (e *FailureError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}

// Error says all of it in one line.
func (e *FailureError) Error() string {
	m := e.rules.machines[e.Ref.Machine]
	s := fmt.Sprintf("%s: %s: %s: now in state %q (row %s", e.rules.RefName(e.Ref), m.EventName(e.Event), string(e.Reason), m.StateName(e.State), m.RowID(e.row))
	if e.Code != 0 {
		s += fmt.Sprintf(", code %d", e.Code)
	}
	s += ")"
	if e.Panic != nil {
		s += fmt.Sprintf(": command panicked: %v", e.Panic)
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// HoleError says that the rules have no way on: an answer whose target
// another instance refuses, or an emitted event that its addressee refuses.
// It matches [ErrRuleHole] and wraps the refusal.
type HoleError struct {
	Refusal *RefusalError
	// Settling: the command stays in flight, since its answer could not be taken.
	Settling bool
}

// Is matches [ErrRuleHole].
func (e *HoleError) Is(target error) bool { return target == ErrRuleHole }

// Unwrap returns the refusal.
func (e *HoleError) Unwrap() error { return e.Refusal }

// Error says what could not be taken and why.
func (e *HoleError) Error() string {
	if e.Settling {
		return "hole in the rules: an answer cannot be taken: " + e.Refusal.Error()
	}
	return "hole in the rules: an emitted event is not taken: " + e.Refusal.Error()
}

// BusyError says that an instance stayed busy for as long as the caller would
// wait. It matches [ErrBusy] and wraps the context's error, if that ended the wait.
type BusyError struct {
	Where string // instance and state
	Event string
	Cause error // nil: the driver's bound
}

// Is matches [ErrBusy].
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Unwrap returns the context's error.
func (e *BusyError) Unwrap() error { return e.Cause }

// Error says who is busy and what ended the wait.
func (e *BusyError) Error() string {
	why := "the driver's bound"
	if e.Cause != nil {
		why = e.Cause.Error()
	}
	return fmt.Sprintf("%s: %s: busy until %s", e.Where, e.Event, why)
}

var errNilPerformer = errors.New("machine: nil performer")
