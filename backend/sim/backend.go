package sim

import (
	"context"
	"time"

	"github.com/runfence/runfence/backend"
)

var _ backend.Backend = (*Device)(nil)

// do carries out one call unless its caller's patience has already ended.
func (d *Device) do(ctx context.Context, op *Op, a *Answer) {
	if ctx != nil && ctx.Err() != nil {
		*a = Answer{Result: backend.Result{Outcome: backend.Refused, LastError: d.threads[d.thread].lastError}}
		return
	}
	d.run(op, a)
}

// CurrentContext implements [backend.Backend].
func (d *Device) CurrentContext(ctx context.Context) (backend.Context, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpCurrentContext}, &a)
	return backend.Context(a.Handle), a.Result
}

// CreateStream implements [backend.Backend].
func (d *Device) CreateStream(ctx context.Context) (backend.Stream, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpCreateStream}, &a)
	return backend.Stream(a.Handle), a.Result
}

// DestroyStream implements [backend.Backend]. Queued work goes on.
func (d *Device) DestroyStream(ctx context.Context, s backend.Stream) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpDestroyStream, Stream: s}, &a)
	return a.Result
}

// StreamID implements [backend.Backend]. The id of a destroyed stream is used
// again.
func (d *Device) StreamID(ctx context.Context, s backend.Stream) (int32, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpStreamID, Stream: s}, &a)
	return a.ID, a.Result
}

// QueryStream implements [backend.Backend].
func (d *Device) QueryStream(ctx context.Context, s backend.Stream) (backend.Status, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpQueryStream, Stream: s}, &a)
	return a.Status, a.Result
}

// SynchronizeStream implements [backend.Backend].
func (d *Device) SynchronizeStream(ctx context.Context, s backend.Stream, timeout time.Duration) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpSynchronizeStream, Stream: s, Timeout: timeout}, &a)
	return a.Result
}

// CaptureStatus implements [backend.Backend].
func (d *Device) CaptureStatus(ctx context.Context, s backend.Stream) (backend.Capture, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpCaptureStatus, Stream: s}, &a)
	return a.Capture, a.Result
}

// CreateEvent implements [backend.Backend].
func (d *Device) CreateEvent(ctx context.Context) (backend.Event, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpCreateEvent}, &a)
	return backend.Event(a.Handle), a.Result
}

// RecordEvent implements [backend.Backend].
func (d *Device) RecordEvent(ctx context.Context, e backend.Event, s backend.Stream) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpRecordEvent, Event: e, Stream: s}, &a)
	return a.Result
}

// QueryEvent implements [backend.Backend].
func (d *Device) QueryEvent(ctx context.Context, e backend.Event) (backend.Status, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpQueryEvent, Event: e}, &a)
	return a.Status, a.Result
}

// WaitEvent implements [backend.Backend].
func (d *Device) WaitEvent(ctx context.Context, e backend.Event, timeout time.Duration) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpWaitEvent, Event: e, Timeout: timeout}, &a)
	return a.Result
}

// StreamWaitEvent implements [backend.Backend].
func (d *Device) StreamWaitEvent(ctx context.Context, s backend.Stream, e backend.Event) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpStreamWaitEvent, Stream: s, Event: e}, &a)
	return a.Result
}

// DestroyEvent implements [backend.Backend].
func (d *Device) DestroyEvent(ctx context.Context, e backend.Event) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpDestroyEvent, Event: e}, &a)
	return a.Result
}

// Alloc implements [backend.Backend].
func (d *Device) Alloc(ctx context.Context, p backend.Place, size uint64) (backend.Memory, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpAlloc, Place: p, Size: size}, &a)
	return backend.Memory(a.Handle), a.Result
}

// Free implements [backend.Backend].
func (d *Device) Free(ctx context.Context, m backend.Memory) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpFree, Memory: m}, &a)
	return a.Result
}

// Write implements [backend.Backend].
func (d *Device) Write(ctx context.Context, dst backend.Memory, offset uint64, src []byte) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpWrite, Memory: dst, Offset: offset, Data: src}, &a)
	return a.Result
}

// Read implements [backend.Backend].
func (d *Device) Read(ctx context.Context, dst []byte, src backend.Memory, offset uint64) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpRead, Memory: src, Offset: offset, Size: uint64(len(dst))}, &a)
	copy(dst, a.Data)
	return a.Result
}

// Copy implements [backend.Backend].
func (d *Device) Copy(ctx context.Context, dst, src backend.Span) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpCopy, Dst: dst, Src: src}, &a)
	return a.Result
}

// CopyAsync implements [backend.Backend].
func (d *Device) CopyAsync(ctx context.Context, dst, src backend.Span, s backend.Stream) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: OpCopyAsync, Dst: dst, Src: src, Stream: s}, &a)
	return a.Result
}

// Submit implements [backend.Backend].
func (d *Device) Submit(ctx context.Context, s backend.Stream, l backend.Launch) backend.Result {
	var a Answer
	d.do(ctx, &Op{Kind: submitKind(l.Class), Stream: s, Launch: l}, &a)
	return a.Result
}

// Reset implements [backend.Backend]. A confirmed reset empties every stream,
// invalidates every event and leaves memory and stream handles to the host. An
// unconfirmed one had no effect.
func (d *Device) Reset(ctx context.Context) (bool, backend.Result) {
	var a Answer
	d.do(ctx, &Op{Kind: OpReset}, &a)
	return a.Confirmed && a.Ok(), a.Result
}
