package machine

// RecordKind says what a [Record] reports.
type RecordKind uint8

// The kinds of records a world makes.
const (
	// Stepped: a row without a command was taken.
	Stepped RecordKind = iota
	// Issued: a row was chosen and its command is in the outbox.
	Issued
	// Settled: the command's answer was taken.
	Settled
	// Rejected: an event was refused; the instance is untouched.
	Rejected
	// Holed: an answer came that the rules have no way to take. Nothing changed
	// and the command is still in flight.
	Holed
	// Dropped: an instance in a terminal state was dropped; its slot is a new occupancy.
	Dropped
	// Reserved: identities that came in from outside are taken. Event is the
	// position of their sort in [Rules.Sorts], Args[0] the highest of them; the
	// record is of no instance.
	Reserved

	// NumRecordKinds is the number of kinds.
	NumRecordKinds = int(Reserved) + 1
)

var recordKindNames = [NumRecordKinds]string{"step", "issue", "settle", "refuse", "hole", "drop", "reserve"}

// String returns the name used in logs.
func (k RecordKind) String() string {
	if int(k) < NumRecordKinds {
		return recordKindNames[k]
	}
	return "unknown"
}

// Via says where an event came from.
type Via uint8

// The origins of an event.
const (
	// ViaHost: fired from outside the world.
	ViaHost Via = iota
	// ViaQueue: emitted by an earlier step of the same host operation.
	ViaQueue
	// ViaJoint: part of its parent's atomic step.
	ViaJoint

	// NumVia is the number of origins.
	NumVia = int(ViaJoint) + 1
)

var viaNames = [NumVia]string{"host", "queue", "joint"}

// String returns the name used in logs.
func (v Via) String() string {
	if int(v) < NumVia {
		return viaNames[v]
	}
	return "unknown"
}

// RefusalKind says what kind of thing said no.
type RefusalKind uint8

// The kinds of refusal.
const (
	// NotRefused is the zero value.
	NotRefused RefusalKind = iota
	// NoRow: the state has no row for the event.
	NoRow
	// ByRow: a row refuses, with its Reason.
	ByRow
	// ByJoint: an instance that the step would take along refused.
	ByJoint
	// StaleRef: the occupancy that the Ref names has ended.
	StaleRef
	// OutOfRange: an update would leave the range of its fact.
	OutOfRange
	// BadArgument: an argument is not of its type, or there are too few or too many.
	BadArgument
	// QueueFull: the step emits more events than the world's queue holds.
	QueueFull
	// BadRef: the Ref names no slot, or a ref fact names nothing.
	BadRef
	// NotInFlight: an answer came for an instance that has no command out.
	NotInFlight
	// NotTerminal: only an instance in a terminal state can be dropped.
	NotTerminal
	// TakenTwice: a step would take along an instance that it is already
	// changing.
	TakenTwice

	// NumRefusalKinds is the number of kinds.
	NumRefusalKinds = int(TakenTwice) + 1
)

var refusalNames = [NumRefusalKinds]string{
	"", "no row", "refused by row", "refused by another instance", "stale reference", "out of range",
	"bad argument", "queue full", "bad reference", "not in flight", "not terminal", "taken along twice",
}

// String returns the name used in logs and messages.
func (k RefusalKind) String() string {
	if int(k) < NumRefusalKinds {
		return refusalNames[k]
	}
	return "unknown refusal"
}

// Values that stand for "none" in a Record.
const (
	NoRowID    RowID  = 1<<16 - 1
	NoCall     CallID = 1<<16 - 1
	NoReasonID uint16 = 1<<16 - 1
)

// Record is one entry of the transition log. It has no pointers: names are
// positions in the Rules that made it.
type Record struct {
	Kind RecordKind
	Via  Via
	// Seq counts from 1 without a gap, assigned under the world's lock.
	Seq uint64
	// Parent is the Seq that caused this record: of the issue for a settle, of
	// the emitting step for a queued event, of the step for a joint one; 0 for
	// an event from the host.
	Parent uint64
	// Time in ns, by the world's clock. Data only: nothing depends on it.
	Time int64
	Ref  Ref
	// Root is the instance whose host operation this belongs to.
	Root  Ref
	Event EventID
	Row   RowID
	// Target is the position in Row.Then that was taken.
	Target   uint8
	From, To StateID

	NArgs, NViews, NCall, NIdentity uint8

	Args     [MaxArgs]uint64
	Views    [MaxViews]uint64
	Identity [MaxIdentity]uint64
	Call     CallID
	CallArgs [MaxArgs]uint64
	// Result is the answer, for Settled.
	Result Result
	// Refusal and Reason say why, for Rejected. Reason is also the failure a
	// target names.
	Refusal RefusalKind
	Reason  uint16
	// By and ByEvent name the instance taken along that said no, for ByJoint.
	By      Ref
	ByEvent EventID
	// Site is the program counter of the host's Fire, if the driver records sites.
	Site uintptr
}

// Result is how a command ended.
type Result struct {
	Outcome Outcome
	// Accepted: the device is known to have taken the work, whatever Code says.
	Accepted bool
	Codes
	// Value is what a successful call brought, for res.value.
	Value uint64
}

// Codes are the numbers that a call answered with. (A struct of its own, so
// that a Result stays in registers.)
type Codes struct {
	// Code is the raw return code, Last the thread's last error after the call.
	Code, Last int32
}

// Recorder takes the records of a world, in order, under the world's lock. The
// Record is valid until Record returns. It must not block and must not call
// the world.
type Recorder interface {
	Record(*Record)
}

// Flusher is a Recorder that does I/O. A [Driver] calls Flush before each
// command and after each host operation, without the world's lock. Flush may do
// nothing, and it may block: that is how a slow sink holds its hosts back without
// holding the lock.
type Flusher interface {
	Recorder
	Flush()
}
