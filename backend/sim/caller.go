package sim

import (
	"context"
	"time"

	"github.com/runfence/runfence/backend"
)

// Device implements [backend.Backend].
func (c *Caller) Device() int32 { return c.h.d.Device() }

// CurrentContext implements [backend.Backend].
func (c *Caller) CurrentContext(ctx context.Context) (backend.Context, backend.Result) {
	a := c.do(ctx, Op{Kind: OpCurrentContext}, nil)
	return backend.Context(a.Handle), a.Result
}

// CreateStream implements [backend.Backend].
func (c *Caller) CreateStream(ctx context.Context) (backend.Stream, backend.Result) {
	a := c.do(ctx, Op{Kind: OpCreateStream}, nil)
	return backend.Stream(a.Handle), a.Result
}

// DestroyStream implements [backend.Backend].
func (c *Caller) DestroyStream(ctx context.Context, s backend.Stream) backend.Result {
	return c.do(ctx, Op{Kind: OpDestroyStream, Stream: s}, nil).Result
}

// StreamID implements [backend.Backend].
func (c *Caller) StreamID(ctx context.Context, s backend.Stream) (int32, backend.Result) {
	a := c.do(ctx, Op{Kind: OpStreamID, Stream: s}, nil)
	return a.ID, a.Result
}

// QueryStream implements [backend.Backend].
func (c *Caller) QueryStream(ctx context.Context, s backend.Stream) (backend.Status, backend.Result) {
	a := c.do(ctx, Op{Kind: OpQueryStream, Stream: s}, nil)
	return a.Status, a.Result
}

// SynchronizeStream implements [backend.Backend].
func (c *Caller) SynchronizeStream(ctx context.Context, s backend.Stream, timeout time.Duration) backend.Result {
	return c.do(ctx, Op{Kind: OpSynchronizeStream, Stream: s, Timeout: timeout}, nil).Result
}

// CaptureStatus implements [backend.Backend].
func (c *Caller) CaptureStatus(ctx context.Context, s backend.Stream) (backend.Capture, backend.Result) {
	a := c.do(ctx, Op{Kind: OpCaptureStatus, Stream: s}, nil)
	return a.Capture, a.Result
}

// CreateEvent implements [backend.Backend].
func (c *Caller) CreateEvent(ctx context.Context) (backend.Event, backend.Result) {
	a := c.do(ctx, Op{Kind: OpCreateEvent}, nil)
	return backend.Event(a.Handle), a.Result
}

// RecordEvent implements [backend.Backend].
func (c *Caller) RecordEvent(ctx context.Context, e backend.Event, s backend.Stream) backend.Result {
	return c.do(ctx, Op{Kind: OpRecordEvent, Event: e, Stream: s}, nil).Result
}

// QueryEvent implements [backend.Backend].
func (c *Caller) QueryEvent(ctx context.Context, e backend.Event) (backend.Status, backend.Result) {
	a := c.do(ctx, Op{Kind: OpQueryEvent, Event: e}, nil)
	return a.Status, a.Result
}

// WaitEvent implements [backend.Backend].
func (c *Caller) WaitEvent(ctx context.Context, e backend.Event, timeout time.Duration) backend.Result {
	return c.do(ctx, Op{Kind: OpWaitEvent, Event: e, Timeout: timeout}, nil).Result
}

// StreamWaitEvent implements [backend.Backend].
func (c *Caller) StreamWaitEvent(ctx context.Context, s backend.Stream, e backend.Event) backend.Result {
	return c.do(ctx, Op{Kind: OpStreamWaitEvent, Stream: s, Event: e}, nil).Result
}

// DestroyEvent implements [backend.Backend].
func (c *Caller) DestroyEvent(ctx context.Context, e backend.Event) backend.Result {
	return c.do(ctx, Op{Kind: OpDestroyEvent, Event: e}, nil).Result
}

// Alloc implements [backend.Backend].
func (c *Caller) Alloc(ctx context.Context, p backend.Place, size uint64) (backend.Memory, backend.Result) {
	a := c.do(ctx, Op{Kind: OpAlloc, Place: p, Size: size}, nil)
	return backend.Memory(a.Handle), a.Result
}

// Free implements [backend.Backend].
func (c *Caller) Free(ctx context.Context, m backend.Memory) backend.Result {
	return c.do(ctx, Op{Kind: OpFree, Memory: m}, nil).Result
}

// Write implements [backend.Backend].
func (c *Caller) Write(ctx context.Context, dst backend.Memory, offset uint64, src []byte) backend.Result {
	data := append([]byte(nil), src...) // the log outlives the call
	return c.do(ctx, Op{Kind: OpWrite, Memory: dst, Offset: offset, Data: data}, nil).Result
}

// Read implements [backend.Backend].
func (c *Caller) Read(ctx context.Context, dst []byte, src backend.Memory, offset uint64) backend.Result {
	op := Op{Kind: OpRead, Memory: src, Offset: offset, Size: uint64(len(dst))}
	return c.do(ctx, op, func(a *Answer) { copy(dst, a.Data) }).Result
}

// Copy implements [backend.Backend].
func (c *Caller) Copy(ctx context.Context, dst, src backend.Span) backend.Result {
	return c.do(ctx, Op{Kind: OpCopy, Dst: dst, Src: src}, nil).Result
}

// CopyAsync implements [backend.Backend].
func (c *Caller) CopyAsync(ctx context.Context, dst, src backend.Span, s backend.Stream) backend.Result {
	return c.do(ctx, Op{Kind: OpCopyAsync, Dst: dst, Src: src, Stream: s}, nil).Result
}

// Submit implements [backend.Backend].
func (c *Caller) Submit(ctx context.Context, s backend.Stream, l backend.Launch) backend.Result {
	return c.do(ctx, SubmitOp(s, l), nil).Result
}

// Notices implements [backend.Backend].
func (c *Caller) Notices(dst []backend.Notice) (n int, dropped uint64) {
	c.do(context.Background(), Op{Kind: OpNotices}, func(*Answer) {
		c.h.log = append(c.h.log, Step{Kind: StepNotices, Thread: c.thread, Size: len(dst)})
		n, dropped = c.h.d.TakeNotices(dst)
	})
	return n, dropped
}

// Reset implements [backend.Backend].
func (c *Caller) Reset(ctx context.Context) (bool, backend.Result) {
	a := c.do(ctx, Op{Kind: OpReset}, nil)
	return a.Confirmed && a.Ok(), a.Result
}
