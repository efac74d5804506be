package sim

import (
	"strconv"
	"time"

	"github.com/runfence/runfence/backend"
)

// ViolationKind names a misuse of the device. The device goes on after one, as
// real ones do; that is what makes the misuse dangerous.
type ViolationKind uint8

const (
	// NoViolation is the zero kind.
	NoViolation ViolationKind = iota
	// UseAfterFree: the device read or wrote memory that the host had freed.
	UseAfterFree
	// FreedWhileNamed: memory was freed while a queued or running entry names it.
	FreedWhileNamed
	// DoubleDestroy: a handle was destroyed or freed a second time.
	DoubleDestroy
	// EventDestroyedWaited: an event was destroyed while a queued wait names it.
	EventDestroyedWaited
	// EventDestroyedPending: an event was destroyed while its record is queued.
	EventDestroyedPending
	// ReRecordWaited: an event was recorded again while a queued wait names it.
	ReRecordWaited
	// ReRecordPending: an event was recorded again before its earlier record executed.
	ReRecordPending
	// ReRecordUnproven: an event was recorded again after its earlier record
	// executed, but the host had no proof of it: no query, wait or synchronize
	// answered for it, directly or through the waits that follow it.
	ReRecordUnproven
	// WaitBeforeRecord: a stream wait or host wait named an event that was never recorded.
	WaitBeforeRecord
	// SourceOverwritten: bytes changed that a queued copy has yet to read.
	SourceOverwritten
	// StreamDestroyedBusy: a stream was destroyed with work in it.
	StreamDestroyedBusy
	// CapturedWork: eager work was put into a stream under capture.
	CapturedWork
	// ForeignContext: the device was entered under a context that is not its own.
	ForeignContext
	// WildStore: a kernel stored outside of every allocation.
	WildStore
	// BorrowedReset: a borrowed device was reset.
	BorrowedReset

	numViolations = int(BorrowedReset) + 1
)

var violationNames = [numViolations]string{
	"none", "use-after-free", "freed-while-named", "double-destroy", "event-destroyed-waited",
	"event-destroyed-pending", "re-record-waited", "re-record-pending", "re-record-unproven",
	"wait-before-record", "source-overwritten", "stream-destroyed-busy", "captured-work",
	"foreign-context", "wild-store", "borrowed-reset",
}

// String returns the kind's name, such as "use-after-free".
func (k ViolationKind) String() string {
	if int(k) < numViolations {
		return violationNames[k]
	}
	return "violation(" + strconv.Itoa(int(k)) + ")"
}

// Violation is one misuse, with what it concerns. Handles that do not apply are
// zero.
type Violation struct {
	Kind   ViolationKind
	Time   time.Duration // virtual
	During OpKind        // the call that did it; OpNone if the device did, moving
	Stream backend.Stream
	Event  backend.Event
	Memory backend.Memory
}

// String returns, for example, "freed-while-named in Free: memory m0, stream s1, at 30µs".
func (v Violation) String() string {
	s := v.Kind.String()
	if v.During != OpNone {
		s += " in " + v.During.String()
	}
	sep := ": "
	add := func(k Kind, h uint64) {
		if isHandle(h) {
			s += sep + k.String() + " " + HandleName(h)
			sep = ", "
		}
	}
	add(KindMemory, uint64(v.Memory))
	add(KindEvent, uint64(v.Event))
	add(KindStream, uint64(v.Stream))
	return s + sep + "at " + v.Time.String()
}

// Violations returns what the host did wrong so far, in order. The slice
// belongs to the device.
func (d *Device) Violations() []Violation { return d.violations }

func (d *Device) violate(v Violation) {
	v.Time, v.During = time.Duration(d.now), d.during
	d.violations = append(d.violations, v)
	if d.trace != nil {
		d.trace(TraceEvent{
			Kind: TraceViolation, Time: v.Time, Thread: d.thread, Op: v.During,
			Stream: v.Stream, Event: v.Event, Memory: v.Memory, Violation: v.Kind,
		})
	}
}
