//go:build cgo && linux

package onboard

// #include <stdlib.h>
// #include "acl.h"
import "C"

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/runfence/runfence/backend"
)

// Device is one device, behind [backend.Backend].
//
// It is safe for concurrent use, with three exceptions that are the caller's to
// see to, as on the device itself: a handle is not destroyed while another call
// uses it; Reset, Close and Detach run beside no other call; Notices is called
// by one goroutine at a time.
type Device struct {
	lib    *Library
	c      *C.rf_device
	id     int32
	borrow bool
	// home is what CurrentContext calls a context of the device's own. It stays
	// when a reset has the context made anew.
	home   backend.Context
	closed atomic.Bool

	streams, events, memory table

	mu      sync.Mutex
	images  []image
	kernels []kernel
}

// image is a loaded file. One file is loaded once.
type image struct {
	path   string
	mode   int32
	handle C.rf_handle
}

type kernel struct {
	Image
	handle C.rf_handle
}

// Open loads the library and opens a device of it: [Load] and [Library.Open] in
// one.
func Open(c Config) (*Device, error) {
	l, err := Load(c.Library)
	if err != nil {
		return nil, err
	}
	return l.Open(c)
}

// Open opens a device: with a context of its own or, borrowed, with the one
// that is current on the calling thread. Config.Library is not looked at.
//
// The errors are a [*CallError], a [*DeviceInUseError], an
// [*OtherLibraryError], a [*ContextDeviceError], or [ErrConfig].
func (l *Library) Open(c Config) (*Device, error) {
	switch {
	case c.Device < 0 || c.Device >= MaxDevices:
		return nil, fmt.Errorf("%w: device %d: want 0 to %d", ErrConfig, c.Device, MaxDevices-1)
	case c.Notices < 0 || c.Notices > MaxNotices:
		return nil, fmt.Errorf("%w: %d notices: want at most %d", ErrConfig, c.Notices, MaxNotices)
	case c.Notices == 0:
		c.Notices = MaxNotices
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.devices[c.Device] != nil {
		return nil, &DeviceInUseError{c.Device}
	}
	if len(process.devices) > 0 && process.library.acl != l.acl {
		return nil, &OtherLibraryError{Open: process.library.path, Wanted: l.path}
	}
	if !c.Borrow { // who lends a context has initialised the runtime
		if err := l.init(); err != nil {
			return nil, err
		}
	}
	borrow := C.int(0)
	if c.Borrow {
		borrow = 1
	}
	s := C.rf_open(l.acl, C.int32_t(c.Device), borrow)
	switch {
	case s.code != C.RF_OK:
		return nil, callError(&s)
	case s.device == nil:
		return nil, &ContextDeviceError{Context: int32(s.number), Wanted: c.Device}
	}
	d := &Device{lib: l, c: s.device, id: c.Device, borrow: c.Borrow, home: backend.Context(s.value)}
	if C.rf_can_watch(l.acl) != 0 {
		C.rf_ring_open(C.int32_t(c.Device), C.uint32_t(c.Notices))
		if s := C.rf_watch(l.acl); s.code != C.RF_OK {
			err := callError(&s)
			C.rf_ring_close(C.int32_t(c.Device))
			C.rf_close(d.c) // the first failure is the one to tell
			C.rf_forget(d.c)
			return nil, err
		}
	}
	if process.devices == nil {
		process.devices = map[int32]*Device{}
	}
	process.devices[c.Device], process.library = d, l
	return d, nil
}

// Load makes a kernel known to the device. The errors are a [*CallError],
// [ErrConfig] or [ErrClosed].
func (d *Device) Load(i Image) (backend.Kernel, error) {
	switch {
	case d.closed.Load():
		return 0, ErrClosed
	case i.Class > backend.AICPU, i.Function == "", !filepath.IsAbs(i.Path),
		i.Class == backend.AICore && (i.OpType != "" || i.UserLibrary),
		strings.ContainsRune(i.Path+i.Function+i.OpType, 0):
		return 0, fmt.Errorf("%w: kernel %q of class %v in %q: want an absolute path, a function, and op type and library for the AICPU only",
			ErrConfig, i.Function, i.Class, i.Path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.find(i)
	if err != nil {
		return 0, err
	}
	d.kernels = append(d.kernels, kernel{i, h})
	return backend.Kernel(len(d.kernels)), nil
}

// find loads the image of a kernel unless it is loaded, and looks the kernel up.
func (d *Device) find(i Image) (C.rf_handle, error) {
	mode := int32(-1)
	if i.Class == backend.AICPU {
		mode = 0
		if i.UserLibrary {
			mode = 1
		}
	}
	at := slices.IndexFunc(d.images, func(m image) bool { return m.path == i.Path && m.mode == mode })
	if at < 0 {
		path := C.CString(i.Path)
		defer C.free(unsafe.Pointer(path))
		s := C.rf_load_image(d.c, path, C.int32_t(mode))
		if s.code != C.RF_OK {
			return 0, callError(&s)
		}
		at = len(d.images)
		d.images = append(d.images, image{i.Path, mode, s.value})
	}
	name := C.CString(i.Function)
	defer C.free(unsafe.Pointer(name))
	var opType *C.char
	if i.OpType != "" {
		opType = C.CString(i.OpType)
		defer C.free(unsafe.Pointer(opType))
	}
	s := C.rf_find_kernel(d.c, d.images[at].handle, name, opType)
	if s.code != C.RF_OK {
		return 0, callError(&s)
	}
	return s.value, nil
}

// LatestFailure returns the runtime's own words for the latest call of the
// device that failed; nil if none did or the runtime has no words. Of calls on
// several threads it is that of any.
func (d *Device) LatestFailure() *CallError {
	if d.closed.Load() {
		return nil
	}
	w := C.rf_latest_failure(d.c)
	if w.code == C.RF_OK {
		return nil
	}
	return &CallError{Call: "a call", Code: backend.Code(w.code), Message: strings.TrimSpace(C.GoString(&w.message[0]))}
}

// Close gives the device back. It answers with an [*InUseError] while handles
// are alive, which may be in use by work that is not proven over. After a
// failure, a [*CallError], it may be called again and goes on where it stopped.
// A borrowed context is left as it is. Closing twice is [ErrClosed].
func (d *Device) Close() error {
	if d.closed.Load() {
		return ErrClosed
	}
	if s, e, m := d.streams.count(), d.events.count(), d.memory.count(); s+e+m > 0 {
		return &InUseError{Streams: s, Events: e, Memory: m}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.images) > 0 {
		last := len(d.images) - 1
		if s := C.rf_unload_image(d.c, d.images[last].handle); s.code != C.RF_OK {
			return callError(&s)
		}
		d.images = d.images[:last]
	}
	if s := C.rf_close(d.c); s.code != C.RF_OK {
		return callError(&s)
	}
	d.leave()
	C.rf_forget(d.c)
	return nil
}

// Detach gives the device up without giving anything back: its context, streams,
// events and memory stay for the life of the process, because work that is not
// proven over may name them. Every later call is refused. The process may open
// the device again.
func (d *Device) Detach() {
	if !d.closed.Load() {
		d.leave()
		d.streams.empty()
		d.events.empty()
		d.memory.empty()
	}
}

func (d *Device) leave() {
	d.closed.Store(true)
	process.mu.Lock()
	defer process.mu.Unlock()
	C.rf_ring_close(C.int32_t(d.id))
	delete(process.devices, d.id)
}
