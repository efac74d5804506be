package sim

import (
	"strconv"
	"strings"
	"time"

	"github.com/runfence/runfence/backend"
)

// TraceKind says what a [TraceEvent] reports.
type TraceKind uint8

const (
	// TraceCall: a host call began.
	TraceCall TraceKind = iota
	// TraceReturn: a host call returned.
	TraceReturn
	// TraceQueued: an entry was put into its stream.
	TraceQueued
	// TraceStart: an entry became the first of its stream and began.
	TraceStart
	// TraceFlag: a kernel published its flag.
	TraceFlag
	// TraceDone: an entry took effect; a kernel returned with Code.
	TraceDone
	// TraceDropped: a reset removed an entry.
	TraceDropped
	// TraceNotice: an exception notice was delivered.
	TraceNotice
	// TraceViolation: the host misused the device.
	TraceViolation
)

var traceNames = [...]string{"call", "return", "queued", "start", "flag", "done", "dropped", "notice", "violation"}

// String returns "call", "return", "queued", "start", "flag", "done",
// "dropped", "notice" or "violation".
func (k TraceKind) String() string {
	if int(k) < len(traceNames) {
		return traceNames[k]
	}
	return "trace(" + strconv.Itoa(int(k)) + ")"
}

// TraceEvent is one thing that happened, as a plain value. Fields that do not
// apply are zero.
type TraceEvent struct {
	Time      time.Duration // virtual
	Kind      TraceKind
	Thread    int             // the host thread of a call
	Op        OpKind          // TraceCall, TraceReturn; TraceViolation: the call that did it
	Outcome   backend.Outcome // TraceReturn
	Status    backend.Status  // TraceReturn of a query
	Code      backend.Code    // TraceReturn, TraceDone, TraceNotice
	Entry     EntryKind       // device events
	Class     backend.Class   // kernels
	Kernel    backend.Kernel
	Stream    backend.Stream
	Event     backend.Event
	Memory    backend.Memory // kernels: the arguments; copies: the destination
	Source    backend.Memory // copies
	Violation ViolationKind
}

// String returns one line, for example "30µs done kernel core s0 args m0 code 0".
func (t TraceEvent) String() string {
	var b strings.Builder
	b.WriteString(t.Time.String())
	b.WriteByte(' ')
	b.WriteString(t.Kind.String())
	switch t.Kind {
	case TraceCall, TraceReturn:
		b.WriteString(" " + t.Op.String())
	case TraceViolation:
		b.WriteString(" " + t.Violation.String())
	case TraceNotice:
	default:
		b.WriteString(" " + t.Entry.String())
		if t.Entry == EntryKernel {
			b.WriteString(" " + t.Class.String())
		}
	}
	for _, h := range [...]uint64{uint64(t.Stream), uint64(t.Event), uint64(t.Memory), uint64(t.Source)} {
		if isHandle(h) {
			b.WriteString(" " + HandleName(h))
		}
	}
	if t.Kind == TraceReturn {
		b.WriteString(" " + t.Outcome.String())
		if t.Op.query() && t.Outcome == backend.OK {
			b.WriteString(" " + t.Status.String())
		}
	}
	if t.Code != backend.Success {
		b.WriteString(" code " + t.Code.String())
	}
	return b.String()
}

// Trace sets a hook that sees every host call and every entry the device
// executes; nil removes it. The hook must not call the device. A clone has none.
func (d *Device) Trace(hook func(TraceEvent)) { d.trace = hook }

func (d *Device) traceEntry(k TraceKind, si int, e *entry, code backend.Code) {
	if d.trace == nil {
		return
	}
	t := TraceEvent{
		Time: time.Duration(d.now), Kind: k, Stream: d.streamHandle(si), Entry: e.kind, Class: e.class,
		Kernel: e.kernel, Event: e.event, Memory: e.args, Code: code,
	}
	if e.kind == EntryCopy {
		t.Memory, t.Source = e.dst.Mem, e.src.Mem
	}
	d.trace(t)
}

func (d *Device) traceCall(op *Op) {
	if d.trace != nil {
		d.trace(TraceEvent{
			Time: time.Duration(d.now), Kind: TraceCall, Thread: d.thread, Op: op.Kind,
			Stream: op.Stream, Event: op.Event, Memory: op.Memory,
		})
	}
}

func (d *Device) traceReturn(op *Op, a *Answer) {
	if d.trace != nil {
		d.trace(TraceEvent{
			Time: time.Duration(d.now), Kind: TraceReturn, Thread: d.thread, Op: op.Kind,
			Stream: op.Stream, Event: op.Event, Memory: op.Memory,
			Outcome: a.Outcome, Status: a.Status, Code: a.Code,
		})
	}
}
