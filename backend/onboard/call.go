//go:build cgo && linux

package onboard

// #include "acl.h"
import "C"

import (
	"context"
	"math"
	"time"
	"unsafe"

	"github.com/runfence/runfence/backend"
)

var _ backend.Backend = (*Device)(nil)

// Device implements [backend.Backend].
func (d *Device) Device() int32 { return d.id }

// gone reports that a call is not to be made: its caller gave up, or the
// device is closed.
func (d *Device) gone(ctx context.Context) bool {
	return d.closed.Load() || (ctx != nil && ctx.Err() != nil)
}

// absent is the answer to a call that is not made.
func (d *Device) absent() backend.Result {
	if d.closed.Load() {
		return backend.Result{Outcome: backend.Refused, Code: backend.InvalidHandle}
	}
	return backend.Result{Outcome: backend.Refused}
}

// stale is the answer to a handle that names nothing.
func stale() backend.Result {
	return backend.Result{Outcome: backend.Refused, Code: backend.InvalidHandle}
}

// named returns what a handle of the table names, or the answer to a call that
// is not made.
func (d *Device) named(ctx context.Context, t *table, h uint64) (object, backend.Result) {
	if d.gone(ctx) {
		return object{}, d.absent()
	}
	o, ok := t.get(h)
	if !ok {
		return object{}, stale()
	}
	return o, backend.Result{}
}

// claimed is [Device.named] for a handle that the call will destroy.
func (d *Device) claimed(ctx context.Context, t *table, h uint64) (object, backend.Result) {
	if d.gone(ctx) {
		return object{}, d.absent()
	}
	o, ok := t.claim(h)
	if !ok {
		return object{}, stale()
	}
	return o, backend.Result{}
}

// reject is the answer to an argument that the device could not check, because
// what it would get is an address. It is what the device answers to one that it
// can.
func reject() backend.Result {
	return backend.Result{Outcome: backend.Failed, Code: backend.InvalidParam, LastError: backend.InvalidParam}
}

func result(a *C.rf_answer) backend.Result {
	r := backend.Result{Code: backend.Code(a.code), LastError: backend.Code(a.last)}
	switch {
	case a.attempted == 0:
		r.Outcome = backend.Refused
	case a.code != C.RF_OK:
		r.Outcome = backend.Failed
	}
	return r
}

// queued is the answer to a call that gives the device work: that it says
// success is the instant of acceptance.
func queued(a *C.rf_answer) backend.Result {
	r := result(a)
	r.Accepted = r.Outcome == backend.OK
	return r
}

// waited is the answer to a bounded wait.
func waited(a *C.rf_answer, expired backend.Code) backend.Result {
	r := result(a)
	if r.Outcome == backend.Failed && r.Code == expired {
		r.Outcome = backend.TimedOut
	}
	return r
}

func status(a *C.rf_answer) backend.Status {
	if a.status != 0 {
		return backend.Complete
	}
	return backend.NotReady
}

// millis turns a timeout into the device's, which counts milliseconds: rounded
// up, and at most what its 32 bits hold, about 24 days. Zero stands for all that
// must be rejected; a negative number would mean to wait for ever.
func millis(d time.Duration) C.int32_t {
	if d <= 0 {
		return 0
	}
	return C.int32_t(min((int64(d)-1)/int64(time.Millisecond)+1, math.MaxInt32))
}

// CurrentContext implements [backend.Backend]. A context of the device's own is
// made current and returned; as handles do, what it is called outlives a reset.
func (d *Device) CurrentContext(ctx context.Context) (backend.Context, backend.Result) {
	if d.gone(ctx) {
		return 0, d.absent()
	}
	a := C.rf_current_context(d.c)
	r := result(&a)
	switch {
	case !r.Ok():
		return 0, r
	case d.borrow:
		return backend.Context(a.value), r
	}
	return d.home, r
}

// CreateStream implements [backend.Backend].
func (d *Device) CreateStream(ctx context.Context) (backend.Stream, backend.Result) {
	if d.gone(ctx) {
		return 0, d.absent()
	}
	a := C.rf_create_stream(d.c)
	return backend.Stream(keep(&d.streams, &a)), result(&a)
}

// keep mints a handle for what a call made.
func keep(t *table, a *C.rf_answer) uint64 {
	if a.attempted == 0 || a.code != C.RF_OK {
		return 0
	}
	return t.put(object{ref: uintptr(a.value)})
}

// DestroyStream implements [backend.Backend].
func (d *Device) DestroyStream(ctx context.Context, s backend.Stream) backend.Result {
	o, r := d.claimed(ctx, &d.streams, uint64(s))
	if !r.Ok() {
		return r
	}
	a := C.rf_destroy_stream(d.c, C.rf_handle(o.ref))
	r = result(&a)
	d.streams.settle(uint64(s), r.Ok())
	return r
}

// StreamID implements [backend.Backend].
func (d *Device) StreamID(ctx context.Context, s backend.Stream) (int32, backend.Result) {
	o, r := d.named(ctx, &d.streams, uint64(s))
	if !r.Ok() {
		return 0, r
	}
	a := C.rf_stream_id(d.c, C.rf_handle(o.ref))
	return int32(a.status), result(&a)
}

// QueryStream implements [backend.Backend].
func (d *Device) QueryStream(ctx context.Context, s backend.Stream) (backend.Status, backend.Result) {
	o, r := d.named(ctx, &d.streams, uint64(s))
	if !r.Ok() {
		return 0, r
	}
	a := C.rf_query_stream(d.c, C.rf_handle(o.ref))
	return status(&a), result(&a)
}

// SynchronizeStream implements [backend.Backend]. The timeout is rounded up to
// milliseconds and cut off at 24 days.
func (d *Device) SynchronizeStream(ctx context.Context, s backend.Stream, timeout time.Duration) backend.Result {
	o, r := d.named(ctx, &d.streams, uint64(s))
	if !r.Ok() {
		return r
	}
	a := C.rf_synchronize_stream(d.c, C.rf_handle(o.ref), millis(timeout))
	return waited(&a, backend.StreamSyncTimeout)
}

// CaptureStatus implements [backend.Backend].
func (d *Device) CaptureStatus(ctx context.Context, s backend.Stream) (backend.Capture, backend.Result) {
	o, r := d.named(ctx, &d.streams, uint64(s))
	if !r.Ok() {
		return 0, r
	}
	a := C.rf_capture_status(d.c, C.rf_handle(o.ref))
	return backend.Capture(a.status), result(&a)
}

// CreateEvent implements [backend.Backend].
func (d *Device) CreateEvent(ctx context.Context) (backend.Event, backend.Result) {
	if d.gone(ctx) {
		return 0, d.absent()
	}
	a := C.rf_create_event(d.c)
	return backend.Event(keep(&d.events, &a)), result(&a)
}

// RecordEvent implements [backend.Backend].
func (d *Device) RecordEvent(ctx context.Context, e backend.Event, s backend.Stream) backend.Result {
	if d.gone(ctx) {
		return d.absent()
	}
	o, ok := d.events.get(uint64(e))
	q, ok2 := d.streams.get(uint64(s))
	if !ok || !ok2 {
		return stale()
	}
	a := C.rf_record_event(d.c, C.rf_handle(o.ref), C.rf_handle(q.ref))
	return queued(&a)
}

// QueryEvent implements [backend.Backend].
func (d *Device) QueryEvent(ctx context.Context, e backend.Event) (backend.Status, backend.Result) {
	o, r := d.named(ctx, &d.events, uint64(e))
	if !r.Ok() {
		return 0, r
	}
	a := C.rf_query_event(d.c, C.rf_handle(o.ref))
	return status(&a), result(&a)
}

// WaitEvent implements [backend.Backend]. The timeout is rounded up to
// milliseconds and cut off at 24 days.
func (d *Device) WaitEvent(ctx context.Context, e backend.Event, timeout time.Duration) backend.Result {
	o, r := d.named(ctx, &d.events, uint64(e))
	if !r.Ok() {
		return r
	}
	a := C.rf_wait_event(d.c, C.rf_handle(o.ref), millis(timeout))
	return waited(&a, backend.EventSyncTimeout)
}

// StreamWaitEvent implements [backend.Backend].
func (d *Device) StreamWaitEvent(ctx context.Context, s backend.Stream, e backend.Event) backend.Result {
	if d.gone(ctx) {
		return d.absent()
	}
	q, ok := d.streams.get(uint64(s))
	o, ok2 := d.events.get(uint64(e))
	if !ok || !ok2 {
		return stale()
	}
	a := C.rf_stream_wait_event(d.c, C.rf_handle(q.ref), C.rf_handle(o.ref))
	return queued(&a)
}

// DestroyEvent implements [backend.Backend].
func (d *Device) DestroyEvent(ctx context.Context, e backend.Event) backend.Result {
	o, r := d.claimed(ctx, &d.events, uint64(e))
	if !r.Ok() {
		return r
	}
	a := C.rf_destroy_event(d.c, C.rf_handle(o.ref))
	r = result(&a)
	d.events.settle(uint64(e), r.Ok())
	return r
}

func host(p backend.Place) C.int {
	if p == backend.PinnedMemory {
		return 1
	}
	return 0
}

// Alloc implements [backend.Backend].
func (d *Device) Alloc(ctx context.Context, p backend.Place, size uint64) (backend.Memory, backend.Result) {
	if d.gone(ctx) {
		return 0, d.absent()
	}
	if size == 0 || size > math.MaxInt64 || p > backend.PinnedMemory {
		return 0, reject()
	}
	a := C.rf_alloc(d.c, host(p), C.size_t(size))
	if a.attempted == 0 || a.code != C.RF_OK {
		return 0, result(&a)
	}
	return backend.Memory(d.memory.put(object{mem: a.memory, size: size, place: p})), result(&a)
}

// Free implements [backend.Backend].
func (d *Device) Free(ctx context.Context, m backend.Memory) backend.Result {
	o, r := d.claimed(ctx, &d.memory, uint64(m))
	if !r.Ok() {
		return r
	}
	a := C.rf_free(d.c, o.mem, host(o.place))
	r = result(&a)
	d.memory.settle(uint64(m), r.Ok())
	return r
}

// reach returns the address of a range of an allocation; ok is false if the
// range is empty or not inside.
func (o *object) reach(offset, size uint64) (p unsafe.Pointer, ok bool) {
	if size == 0 || offset > o.size || size > o.size-offset {
		return nil, false
	}
	return unsafe.Add(o.mem, offset), true
}

// pinned returns a range of pinned memory as bytes, or the answer to a call
// that must not touch it.
func (d *Device) pinned(ctx context.Context, m backend.Memory, offset uint64, n int) ([]byte, backend.Result) {
	o, r := d.named(ctx, &d.memory, uint64(m))
	if !r.Ok() {
		return nil, r
	}
	a := C.rf_check_context(d.c)
	r = result(&a)
	if !r.Ok() {
		return nil, r
	}
	if o.place != backend.PinnedMemory || offset > o.size || uint64(n) > o.size-offset {
		return nil, reject()
	}
	return unsafe.Slice((*byte)(unsafe.Add(o.mem, offset)), n), r
}

// Write implements [backend.Backend].
func (d *Device) Write(ctx context.Context, dst backend.Memory, offset uint64, src []byte) backend.Result {
	b, r := d.pinned(ctx, dst, offset, len(src))
	copy(b, src)
	return r
}

// Read implements [backend.Backend].
func (d *Device) Read(ctx context.Context, dst []byte, src backend.Memory, offset uint64) backend.Result {
	b, r := d.pinned(ctx, src, offset, len(dst))
	copy(dst, b)
	return r
}

// sides looks up the two sides of a copy.
func (d *Device) sides(dst, src backend.Span) (to, from unsafe.Pointer, kind C.int32_t, r backend.Result) {
	t, ok := d.memory.get(uint64(dst.Mem))
	f, ok2 := d.memory.get(uint64(src.Mem))
	if !ok || !ok2 {
		return nil, nil, 0, stale()
	}
	to, ok = t.reach(dst.Offset, dst.Size)
	from, ok2 = f.reach(src.Offset, src.Size)
	if !ok || !ok2 || dst.Size != src.Size {
		return nil, nil, 0, reject()
	}
	// Host to host is 0, host to device 1, device to host 2, device to device 3.
	if f.place == backend.DeviceMemory {
		kind += 2
	}
	if t.place == backend.DeviceMemory {
		kind++
	}
	return to, from, kind, backend.Result{}
}

// Copy implements [backend.Backend].
func (d *Device) Copy(ctx context.Context, dst, src backend.Span) backend.Result {
	if d.gone(ctx) {
		return d.absent()
	}
	to, from, kind, r := d.sides(dst, src)
	if !r.Ok() {
		return r
	}
	a := C.rf_copy(d.c, to, from, C.size_t(src.Size), kind)
	return result(&a)
}

// CopyAsync implements [backend.Backend].
func (d *Device) CopyAsync(ctx context.Context, dst, src backend.Span, s backend.Stream) backend.Result {
	q, r := d.named(ctx, &d.streams, uint64(s))
	if !r.Ok() {
		return r
	}
	to, from, kind, r := d.sides(dst, src)
	if !r.Ok() {
		return r
	}
	a := C.rf_copy_async(d.c, to, from, C.size_t(src.Size), kind, C.rf_handle(q.ref))
	return queued(&a)
}

// Submit implements [backend.Backend]. The kernel's one argument is the address
// of the argument memory.
func (d *Device) Submit(ctx context.Context, s backend.Stream, l backend.Launch) backend.Result {
	q, r := d.named(ctx, &d.streams, uint64(s))
	if !r.Ok() {
		return r
	}
	var args object
	if l.Args != 0 {
		var ok bool
		if args, ok = d.memory.get(uint64(l.Args)); !ok {
			return stale()
		}
	}
	k, ok := d.kernel(l)
	if !ok {
		return reject()
	}
	a := C.rf_launch(d.c, k, C.uint32_t(max(l.Blocks, 1)), C.rf_handle(q.ref), args.mem)
	return queued(&a)
}

func (d *Device) kernel(l backend.Launch) (C.rf_handle, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.Kernel == 0 || uint64(l.Kernel) > uint64(len(d.kernels)) {
		return 0, false
	}
	k := &d.kernels[l.Kernel-1]
	return k.handle, k.Class == l.Class && (l.Class == backend.AICPU || l.Blocks > 0)
}

// Notices implements [backend.Backend].
func (d *Device) Notices(dst []backend.Notice) (n int, dropped uint64) {
	if d.closed.Load() {
		return 0, 0
	}
	for {
		b := C.rf_ring_take(C.int32_t(d.id), C.int32_t(min(len(dst)-n, C.RF_BATCH)))
		dropped += uint64(b.dropped)
		for _, x := range b.notices[:b.count] {
			dst[n] = backend.Notice{
				Device: int32(x.device), Stream: int32(x.stream), Task: uint32(x.task), Thread: uint32(x.thread),
				Code: backend.Code(x.code),
			}
			n++
		}
		if b.count < C.RF_BATCH || n == len(dst) {
			return n, dropped
		}
	}
}
