package lanetest

import (
	"context"
	"sync"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// device is a simulated one that goroutines may share: it takes a call at a
// time, and goes on while a call lasts.
type device struct {
	mu   sync.Mutex
	d    *sim.Device
	plan []sim.Fault
}

// call takes the device for a call; what it returns lets it go.
func (x *device) call() (d *sim.Device, end func()) {
	x.mu.Lock()
	return x.d, x.mu.Unlock
}

// now is the device's clock. It is read by recorders, inside of no call.
func (x *device) now() int64 {
	d, end := x.call()
	defer end()
	return int64(d.Now())
}

// Device implements [backend.Backend].
func (x *device) Device() int32 { return x.d.Device() }

// CurrentContext implements [backend.Backend].
func (x *device) CurrentContext(ctx context.Context) (backend.Context, backend.Result) {
	d, end := x.call()
	defer end()
	return d.CurrentContext(ctx)
}

// CreateStream implements [backend.Backend].
func (x *device) CreateStream(ctx context.Context) (backend.Stream, backend.Result) {
	d, end := x.call()
	defer end()
	return d.CreateStream(ctx)
}

// DestroyStream implements [backend.Backend].
func (x *device) DestroyStream(ctx context.Context, s backend.Stream) backend.Result {
	d, end := x.call()
	defer end()
	return d.DestroyStream(ctx, s)
}

// StreamID implements [backend.Backend].
func (x *device) StreamID(ctx context.Context, s backend.Stream) (int32, backend.Result) {
	d, end := x.call()
	defer end()
	return d.StreamID(ctx, s)
}

// QueryStream implements [backend.Backend].
func (x *device) QueryStream(ctx context.Context, s backend.Stream) (backend.Status, backend.Result) {
	d, end := x.call()
	defer end()
	return d.QueryStream(ctx, s)
}

// SynchronizeStream implements [backend.Backend].
func (x *device) SynchronizeStream(ctx context.Context, s backend.Stream, t time.Duration) backend.Result {
	d, end := x.call()
	defer end()
	return d.SynchronizeStream(ctx, s, t)
}

// CaptureStatus implements [backend.Backend].
func (x *device) CaptureStatus(ctx context.Context, s backend.Stream) (backend.Capture, backend.Result) {
	d, end := x.call()
	defer end()
	return d.CaptureStatus(ctx, s)
}

// CreateEvent implements [backend.Backend].
func (x *device) CreateEvent(ctx context.Context) (backend.Event, backend.Result) {
	d, end := x.call()
	defer end()
	return d.CreateEvent(ctx)
}

// RecordEvent implements [backend.Backend].
func (x *device) RecordEvent(ctx context.Context, e backend.Event, s backend.Stream) backend.Result {
	d, end := x.call()
	defer end()
	return d.RecordEvent(ctx, e, s)
}

// QueryEvent implements [backend.Backend].
func (x *device) QueryEvent(ctx context.Context, e backend.Event) (backend.Status, backend.Result) {
	d, end := x.call()
	defer end()
	return d.QueryEvent(ctx, e)
}

// WaitEvent implements [backend.Backend].
func (x *device) WaitEvent(ctx context.Context, e backend.Event, t time.Duration) backend.Result {
	d, end := x.call()
	defer end()
	return d.WaitEvent(ctx, e, t)
}

// StreamWaitEvent implements [backend.Backend].
func (x *device) StreamWaitEvent(ctx context.Context, s backend.Stream, e backend.Event) backend.Result {
	d, end := x.call()
	defer end()
	return d.StreamWaitEvent(ctx, s, e)
}

// DestroyEvent implements [backend.Backend].
func (x *device) DestroyEvent(ctx context.Context, e backend.Event) backend.Result {
	d, end := x.call()
	defer end()
	return d.DestroyEvent(ctx, e)
}

// Alloc implements [backend.Backend].
func (x *device) Alloc(ctx context.Context, p backend.Place, size uint64) (backend.Memory, backend.Result) {
	d, end := x.call()
	defer end()
	return d.Alloc(ctx, p, size)
}

// Free implements [backend.Backend].
func (x *device) Free(ctx context.Context, m backend.Memory) backend.Result {
	d, end := x.call()
	defer end()
	return d.Free(ctx, m)
}

// Write implements [backend.Backend].
func (x *device) Write(ctx context.Context, m backend.Memory, offset uint64, src []byte) backend.Result {
	d, end := x.call()
	defer end()
	return d.Write(ctx, m, offset, src)
}

// Read implements [backend.Backend].
func (x *device) Read(ctx context.Context, dst []byte, m backend.Memory, offset uint64) backend.Result {
	d, end := x.call()
	defer end()
	return d.Read(ctx, dst, m, offset)
}

// Copy implements [backend.Backend].
func (x *device) Copy(ctx context.Context, dst, src backend.Span) backend.Result {
	d, end := x.call()
	defer end()
	return d.Copy(ctx, dst, src)
}

// CopyAsync implements [backend.Backend].
func (x *device) CopyAsync(ctx context.Context, dst, src backend.Span, s backend.Stream) backend.Result {
	d, end := x.call()
	defer end()
	return d.CopyAsync(ctx, dst, src, s)
}

// Submit implements [backend.Backend].
func (x *device) Submit(ctx context.Context, s backend.Stream, l backend.Launch) backend.Result {
	d, end := x.call()
	defer end()
	return d.Submit(ctx, s, l)
}

// Notices implements [backend.Backend].
func (x *device) Notices(dst []backend.Notice) (n int, dropped uint64) {
	d, end := x.call()
	defer end()
	return d.Notices(dst)
}

// Reset implements [backend.Backend].
func (x *device) Reset(ctx context.Context) (bool, backend.Result) {
	d, end := x.call()
	defer end()
	return d.Reset(ctx)
}
