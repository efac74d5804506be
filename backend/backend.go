// Package backend is the narrow waist between the rules and a device: the
// interface that the simulator and the onboard runtime both implement, and the
// return codes that both speak.
//
// Every call answers with one [Result]. The thread's last error is read in the
// same breath as the call that it belongs to; there is no separate peek,
// because on another thread it would read another thread's error.
package backend

import (
	"context"
	"time"
)

// Handles are opaque to everyone but the backend that minted them. The zero
// value names nothing. A backend refuses a handle that it destroyed, and never
// mints the same value twice.
type (
	// Context is a device context, owned by the backend or borrowed from a caller.
	Context uint64
	// Stream is a FIFO queue of device work.
	Stream uint64
	// Event is a completion-only marker that re-records without a reset.
	Event uint64
	// Memory is one allocation, of device memory or of pinned host memory.
	Memory uint64
)

// Kernel names a kernel image known to the backend.
type Kernel uint64

// Class says on which processor a kernel runs.
type Class uint8

const (
	// AICore is the compute kernel of a run.
	AICore Class = iota
	// AICPU is the orchestrating kernel of a run.
	AICPU
)

// String returns "core" or "cpu".
func (c Class) String() string {
	if c == AICore {
		return "core"
	}
	return "cpu"
}

// Status is the answer to a query.
type Status uint8

const (
	// NotReady: the work is not known to be complete. It is a status, not an error.
	NotReady Status = iota
	// Complete: everything the query asked about has completed.
	Complete
)

// String returns "not ready" or "complete".
func (s Status) String() string {
	if s == Complete {
		return "complete"
	}
	return "not ready"
}

// Capture is a stream's graph-capture status.
type Capture uint8

const (
	// CaptureNone: the stream is not capturing.
	CaptureNone Capture = iota
	// CaptureActive: the stream is recording a graph.
	CaptureActive
	// CaptureInvalid: a capture was begun and broken.
	CaptureInvalid
)

// Result is how a call ended. The zero Result is a success that reported no error.
type Result struct {
	// Outcome is the class the rules branch on.
	Outcome Outcome
	// Code is the raw return code; zero if the call returned success.
	Code Code
	// LastError is the calling thread's last error, read right after the call
	// on the same thread.
	LastError Code
	// Accepted reports that the device is known to have taken the work,
	// whatever Code says. It is set at the instant of acceptance, so that a
	// later failing step of the same call cannot hide it. False proves nothing:
	// a call that failed may have taken effect unknown to the backend (F34).
	Accepted bool
}

// Ok reports whether the call returned success.
func (r Result) Ok() bool { return r.Outcome == OK }

// Launch describes one kernel submission.
type Launch struct {
	Class  Class
	Kernel Kernel
	// Args is device-visible argument memory, or zero.
	Args Memory
	// Blocks is the number of blocks of an AICore kernel; at least 1.
	Blocks uint32
}

// Place says where an allocation lives.
type Place uint8

const (
	// DeviceMemory is memory of the accelerator.
	DeviceMemory Place = iota
	// PinnedMemory is page-locked host memory, the only legal source or
	// destination of an asynchronous copy on the host's side.
	PinnedMemory
)

// Span is a range of bytes in an allocation.
type Span struct {
	Mem    Memory
	Offset uint64 // bytes
	Size   uint64 // bytes
}

// Notice is a device exception, delivered on no thread of the caller's. It
// carries no run identity and no device time, and may arrive late.
type Notice struct {
	// Device is the id in the logical id space.
	Device int32
	// Stream is the id of the stream as [Backend.StreamID] reports it.
	Stream int32
	Task   uint32
	Thread uint32
	Code   Code
}

// Backend is one device as a host drives it.
//
// A timeout is a [time.Duration] and must be positive and finite: a zero or
// negative timeout is rejected by the device (code 107000) and never means
// "do not wait" or "wait for ever". A ctx bounds only the caller's patience
// before the device is entered; a call under way is bounded by its timeout.
//
// A handle that names nothing is Refused with [InvalidHandle]; an argument that
// the device rejects is Failed, as a call that was made. A caller whose ctx is
// done is Refused with no code. Without the device's context current, every
// call but CurrentContext, Notices and Reset is Failed or Refused, with
// [ContextNull], or with [StreamContext] under another context, and has no effect.
//
// Unless an implementation says otherwise it is not safe for concurrent use.
type Backend interface {
	// Device returns the logical id of the device.
	Device() int32
	// CurrentContext reports the context that is current for the caller. None
	// is an answer, zero and OK, not a failure.
	CurrentContext(ctx context.Context) (Context, Result)

	CreateStream(ctx context.Context) (Stream, Result)
	// DestroyStream destroys a stream. It drains nothing.
	DestroyStream(ctx context.Context, s Stream) Result
	// StreamID reports the id under which notices name the stream.
	StreamID(ctx context.Context, s Stream) (int32, Result)
	// QueryStream asks whether the queue is drained. A kernel's fault stays
	// invisible to it until a synchronize has materialised the fault.
	QueryStream(ctx context.Context, s Stream) (Status, Result)
	// SynchronizeStream waits for the queue to drain and materialises a fault.
	SynchronizeStream(ctx context.Context, s Stream, timeout time.Duration) Result
	// CaptureStatus reports whether the stream is recording a graph.
	CaptureStatus(ctx context.Context, s Stream) (Capture, Result)

	CreateEvent(ctx context.Context) (Event, Result)
	// RecordEvent enqueues a record. The event may have been recorded before.
	RecordEvent(ctx context.Context, e Event, s Stream) Result
	// QueryEvent asks for the recorded status of the event's latest record.
	QueryEvent(ctx context.Context, e Event) (Status, Result)
	// WaitEvent waits on the host for the event's latest record.
	WaitEvent(ctx context.Context, e Event, timeout time.Duration) Result
	// StreamWaitEvent enqueues a wait of stream s for the event's latest record.
	StreamWaitEvent(ctx context.Context, s Stream, e Event) Result
	DestroyEvent(ctx context.Context, e Event) Result

	// Alloc allocates size bytes. Its content is undefined.
	Alloc(ctx context.Context, p Place, size uint64) (Memory, Result)
	// Free frees an allocation at once. It drains nothing.
	Free(ctx context.Context, m Memory) Result
	// Write copies host bytes into pinned memory; Read copies them out.
	// Neither touches a stream.
	Write(ctx context.Context, dst Memory, offset uint64, src []byte) Result
	Read(ctx context.Context, dst []byte, src Memory, offset uint64) Result
	// Copy copies between allocations and returns when it is done.
	Copy(ctx context.Context, dst, src Span) Result
	// CopyAsync enqueues a copy. The host side of it must be pinned memory,
	// and both sides must outlive the copy.
	CopyAsync(ctx context.Context, dst, src Span, s Stream) Result

	// Submit enqueues a kernel.
	Submit(ctx context.Context, s Stream, l Launch) Result

	// Notices moves up to len(dst) pending notices into dst, oldest first,
	// and returns how many, and how many were dropped since the last call
	// because the ring was full. It must not call whoever asks.
	Notices(dst []Notice) (n int, dropped uint64)
	// Reset resets the device by force. Only confirmed is a proof that no
	// earlier work can touch memory any more.
	Reset(ctx context.Context) (confirmed bool, r Result)
}
