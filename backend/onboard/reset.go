//go:build cgo && linux

package onboard

// #include "acl.h"
import "C"

import (
	"context"

	"github.com/runfence/runfence/backend"
)

// Reset implements [backend.Backend]. It is confirmed if the runtime says that
// the forced reset succeeded: no earlier work touches memory any more.
//
// Everything on the device is gone then. A context is made anew, kernels are
// loaded anew, and the handles of streams and memory get new streams and new
// memory, which holds zeros. Pinned memory is replaced too, because whether a
// reset unmaps it is not promised; the old one is never touched again. Events
// name nothing from then on. If some of that fails, the reset is confirmed all
// the same and the answer is the failure; what could not be made anew names
// nothing.
//
// A borrowed device is never reset: that is refused with
// [backend.FeatureNotSupported].
func (d *Device) Reset(ctx context.Context) (confirmed bool, r backend.Result) {
	if d.gone(ctx) {
		return false, d.absent()
	}
	if d.borrow {
		return false, backend.Result{Outcome: backend.Refused, Code: backend.FeatureNotSupported}
	}
	a := C.rf_reset(d.c)
	if r = result(&a); !r.Ok() {
		return false, r
	}
	d.events.empty()
	return true, d.renew(r)
}

// renew makes anew what a reset took. It goes on after a failure, with what
// does not depend on it, and returns the first.
func (d *Device) renew(r backend.Result) backend.Result {
	if s := C.rf_reopen(d.c); s.code != C.RF_OK {
		d.streams.empty()
		d.memory.empty()
		return backend.Result{Outcome: backend.Failed, Code: backend.Code(s.code), LastError: r.LastError}
	}
	blame := func(a *C.rf_answer) bool {
		now := result(a)
		if !now.Ok() && r.Ok() {
			r = now
		}
		return now.Ok()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.images = nil
	for i := range d.kernels {
		h, err := d.find(d.kernels[i].Image)
		if err != nil && r.Ok() {
			code := backend.InternalError
			if c, ok := err.(*CallError); ok {
				code = c.Code
			}
			r = backend.Result{Outcome: backend.Failed, Code: code, LastError: r.LastError}
		}
		d.kernels[i].handle = h
	}
	d.streams.replace(func(object) (object, bool) {
		a := C.rf_create_stream(d.c)
		return object{ref: uintptr(a.value)}, blame(&a)
	})
	d.memory.replace(func(o object) (object, bool) {
		a := C.rf_alloc(d.c, host(o.place), C.size_t(o.size))
		if !blame(&a) {
			return object{}, false
		}
		o.mem = a.memory
		a = C.rf_zero(d.c, o.mem, host(o.place), C.size_t(o.size))
		return o, blame(&a)
	})
	return r
}
