package model

import (
	"context"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// desk is the device as a command sees it that is carried out once more after
// each answer: it repeats the answers that there are, and writes down the first
// call that has none. What the command does after that is of no account.
type desk struct {
	dev     *sim.Device
	answers []sim.Answer
	next    int
	// asked is the call that has no answer yet.
	asked bool
	op    sim.Op
}

// injected is what a call panics with.
type injected struct{}

func (injected) String() string { return "injected" }

func (d *desk) begin(dev *sim.Device, answers []sim.Answer) {
	d.dev, d.answers, d.next, d.asked = dev, answers, 0, false
}

func (d *desk) call(op sim.Op) *sim.Answer {
	switch {
	case d.asked:
		return &unanswered
	case d.next < len(d.answers):
		a := &d.answers[d.next]
		if d.next++; a.Outcome == backend.Panicked {
			panic(injected{})
		}
		return a
	}
	d.asked, d.op = true, op
	return &unanswered
}

var unanswered = sim.Answer{Result: backend.Result{Outcome: backend.Refused}}

// Device implements [backend.Backend].
func (d *desk) Device() int32 { return d.dev.Device() }

// CurrentContext implements [backend.Backend].
func (d *desk) CurrentContext(context.Context) (backend.Context, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpCurrentContext})
	return backend.Context(a.Handle), a.Result
}

// CreateStream implements [backend.Backend].
func (d *desk) CreateStream(context.Context) (backend.Stream, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpCreateStream})
	return backend.Stream(a.Handle), a.Result
}

// DestroyStream implements [backend.Backend].
func (d *desk) DestroyStream(_ context.Context, s backend.Stream) backend.Result {
	return d.call(sim.Op{Kind: sim.OpDestroyStream, Stream: s}).Result
}

// StreamID implements [backend.Backend].
func (d *desk) StreamID(_ context.Context, s backend.Stream) (int32, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpStreamID, Stream: s})
	return a.ID, a.Result
}

// QueryStream implements [backend.Backend].
func (d *desk) QueryStream(_ context.Context, s backend.Stream) (backend.Status, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpQueryStream, Stream: s})
	return a.Status, a.Result
}

// SynchronizeStream implements [backend.Backend].
func (d *desk) SynchronizeStream(_ context.Context, s backend.Stream, t time.Duration) backend.Result {
	return d.call(sim.Op{Kind: sim.OpSynchronizeStream, Stream: s, Timeout: t}).Result
}

// CaptureStatus implements [backend.Backend].
func (d *desk) CaptureStatus(_ context.Context, s backend.Stream) (backend.Capture, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpCaptureStatus, Stream: s})
	return a.Capture, a.Result
}

// CreateEvent implements [backend.Backend].
func (d *desk) CreateEvent(context.Context) (backend.Event, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpCreateEvent})
	return backend.Event(a.Handle), a.Result
}

// RecordEvent implements [backend.Backend].
func (d *desk) RecordEvent(_ context.Context, e backend.Event, s backend.Stream) backend.Result {
	return d.call(sim.Op{Kind: sim.OpRecordEvent, Event: e, Stream: s}).Result
}

// QueryEvent implements [backend.Backend].
func (d *desk) QueryEvent(_ context.Context, e backend.Event) (backend.Status, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpQueryEvent, Event: e})
	return a.Status, a.Result
}

// WaitEvent implements [backend.Backend].
func (d *desk) WaitEvent(_ context.Context, e backend.Event, t time.Duration) backend.Result {
	return d.call(sim.Op{Kind: sim.OpWaitEvent, Event: e, Timeout: t}).Result
}

// StreamWaitEvent implements [backend.Backend].
func (d *desk) StreamWaitEvent(_ context.Context, s backend.Stream, e backend.Event) backend.Result {
	return d.call(sim.Op{Kind: sim.OpStreamWaitEvent, Stream: s, Event: e}).Result
}

// DestroyEvent implements [backend.Backend].
func (d *desk) DestroyEvent(_ context.Context, e backend.Event) backend.Result {
	return d.call(sim.Op{Kind: sim.OpDestroyEvent, Event: e}).Result
}

// Alloc implements [backend.Backend].
func (d *desk) Alloc(_ context.Context, p backend.Place, size uint64) (backend.Memory, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpAlloc, Place: p, Size: size})
	return backend.Memory(a.Handle), a.Result
}

// Free implements [backend.Backend].
func (d *desk) Free(_ context.Context, m backend.Memory) backend.Result {
	return d.call(sim.Op{Kind: sim.OpFree, Memory: m}).Result
}

// Write implements [backend.Backend].
func (d *desk) Write(_ context.Context, m backend.Memory, offset uint64, src []byte) backend.Result {
	return d.call(sim.Op{Kind: sim.OpWrite, Memory: m, Offset: offset, Data: src}).Result
}

// Read implements [backend.Backend].
func (d *desk) Read(_ context.Context, dst []byte, m backend.Memory, offset uint64) backend.Result {
	a := d.call(sim.Op{Kind: sim.OpRead, Memory: m, Offset: offset, Size: uint64(len(dst))})
	copy(dst, a.Data)
	return a.Result
}

// Copy implements [backend.Backend].
func (d *desk) Copy(_ context.Context, dst, src backend.Span) backend.Result {
	return d.call(sim.Op{Kind: sim.OpCopy, Dst: dst, Src: src}).Result
}

// CopyAsync implements [backend.Backend].
func (d *desk) CopyAsync(_ context.Context, dst, src backend.Span, s backend.Stream) backend.Result {
	return d.call(sim.Op{Kind: sim.OpCopyAsync, Dst: dst, Src: src, Stream: s}).Result
}

// Submit implements [backend.Backend].
func (d *desk) Submit(_ context.Context, s backend.Stream, l backend.Launch) backend.Result {
	return d.call(sim.SubmitOp(s, l)).Result
}

// Notices implements [backend.Backend]. It is called when a command has all of
// its answers, so it is not repeated.
func (d *desk) Notices(dst []backend.Notice) (int, uint64) {
	if d.asked {
		return 0, 0
	}
	return d.dev.TakeNotices(dst)
}

// Reset implements [backend.Backend].
func (d *desk) Reset(context.Context) (bool, backend.Result) {
	a := d.call(sim.Op{Kind: sim.OpReset})
	return a.Confirmed && a.Ok(), a.Result
}
