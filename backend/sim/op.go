package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runfence/runfence/backend"
)

// OpKind names a call of [backend.Backend].
type OpKind uint8

// The calls. Submit is two kinds, so that a fault can name one class.
const (
	OpNone OpKind = iota
	OpCurrentContext
	OpCreateStream
	OpDestroyStream
	OpStreamID
	OpQueryStream
	OpSynchronizeStream
	OpCaptureStatus
	OpCreateEvent
	OpRecordEvent
	OpQueryEvent
	OpWaitEvent
	OpStreamWaitEvent
	OpDestroyEvent
	OpAlloc
	OpFree
	OpWrite
	OpRead
	OpCopy
	OpCopyAsync
	OpSubmitAICore
	OpSubmitAICPU
	OpNotices
	OpReset

	numOps = int(OpReset) + 1
)

var opNames = [numOps]string{
	"none", "CurrentContext", "CreateStream", "DestroyStream", "StreamID", "QueryStream",
	"SynchronizeStream", "CaptureStatus", "CreateEvent", "RecordEvent", "QueryEvent", "WaitEvent",
	"StreamWaitEvent", "DestroyEvent", "Alloc", "Free", "Write", "Read", "Copy", "CopyAsync",
	"SubmitAICore", "SubmitAICPU", "Notices", "Reset",
}

// String returns the method's name; the two submissions are "SubmitAICore" and
// "SubmitAICPU".
func (k OpKind) String() string {
	if int(k) < numOps {
		return opNames[k]
	}
	return "op(" + strconv.Itoa(int(k)) + ")"
}

// ParseOpKind is the inverse of [OpKind.String].
func ParseOpKind(s string) (OpKind, error) {
	for i := 1; i < numOps; i++ {
		if opNames[i] == s {
			return OpKind(i), nil
		}
	}
	return OpNone, fmt.Errorf("sim: unknown call %q: want one of %s", s, strings.Join(opNames[1:], " "))
}

// Blocking reports that the call is a bounded wait.
func (k OpKind) Blocking() bool { return k == OpSynchronizeStream || k == OpWaitEvent }

// Enqueues reports that the call puts an entry into a stream.
func (k OpKind) Enqueues() bool {
	switch k {
	case OpRecordEvent, OpStreamWaitEvent, OpCopyAsync, OpSubmitAICore, OpSubmitAICPU:
		return true
	}
	return false
}

// takesEffect reports that the call changes the device when it succeeds.
func (k OpKind) takesEffect() bool {
	switch k {
	case OpCreateStream, OpDestroyStream, OpCreateEvent, OpDestroyEvent, OpAlloc, OpFree, OpWrite, OpCopy, OpReset:
		return true
	}
	return k.Enqueues()
}

func (k OpKind) query() bool { return k == OpQueryStream || k == OpQueryEvent }

// needsContext reports that the device refuses the call on a thread where its
// context is not current.
func (k OpKind) needsContext() bool {
	switch k {
	case OpCurrentContext, OpNotices, OpReset:
		return false
	}
	return true
}

// OpSet is a set of calls.
type OpSet uint32

// Ops returns the set of the given calls.
func Ops(kinds ...OpKind) OpSet {
	var s OpSet
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in the set.
func (s OpSet) Has(k OpKind) bool { return s&(1<<k) != 0 }

// Op is one call, as a value. Only the fields that its kind uses count.
type Op struct {
	Kind    OpKind
	Stream  backend.Stream
	Event   backend.Event
	Memory  backend.Memory // Free, Write, Read
	Place   backend.Place  // Alloc
	Size    uint64         // Alloc, Read: bytes; Notices: how many at most
	Offset  uint64         // Write, Read: bytes
	Dst     backend.Span   // Copy, CopyAsync
	Src     backend.Span   // Copy, CopyAsync
	Launch  backend.Launch // Submit
	Timeout time.Duration  // SynchronizeStream, WaitEvent
	Data    []byte         // Write: what to write; Begin copies it
}

// SubmitOp returns the submission as an [Op] of the kind of its class.
func SubmitOp(s backend.Stream, l backend.Launch) Op {
	return Op{Kind: submitKind(l.Class), Stream: s, Launch: l}
}

func submitKind(c backend.Class) OpKind {
	if c == backend.AICore {
		return OpSubmitAICore
	}
	return OpSubmitAICPU
}

// Answer is how a call ended, with whatever it asked for.
type Answer struct {
	backend.Result
	Status    backend.Status
	Capture   backend.Capture
	ID        int32  // StreamID
	Handle    uint64 // what a create or Alloc minted, or the current context
	Confirmed bool   // Reset
	Data      []byte // Read: a view of the bytes, valid until the device next moves
}

func refused(c backend.Code) Answer {
	return Answer{Result: backend.Result{Outcome: backend.Refused, Code: c}}
}

func failed(c backend.Code) Answer {
	return Answer{Result: backend.Result{Outcome: backend.Failed, Code: c}}
}
