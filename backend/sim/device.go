// Package sim is a pure-Go, deterministic accelerator: FIFO streams, events,
// memory with real bytes, two kernel classes that handshake, faults, exception
// notices, and a virtual clock.
//
// A [Device] is a single-threaded value: it starts no goroutine, sleeps never,
// reads no wall clock, and is cheap to clone. It has two faces.
//
// As a [backend.Backend] it is driven like a device. Virtual time moves in
// blocking calls, by [Device.Advance] and [Device.AdvanceToNext], and by
// [Config.QueryTime] a query; no other call moves it. Before a call takes
// effect, everything due at the current instant happens; so a record whose
// kernel has ended is seen by the next query without time passing. A call
// returns as soon as it can. Which of several possible things happens next is a policy's choice, by default the
// earliest due, ties by stream slot.
//
// As a [Model] it is driven by choices: a call is begun, and whatever may
// happen next is offered as a list. It then knows no policy and no time.
package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/runfence/runfence/backend"
)

const never = math.MaxInt64

// later returns now plus d, without overflow.
func later(now int64, d time.Duration) int64 {
	if int64(d) >= never-now {
		return never - 1
	}
	return now + int64(d)
}

// Unrecorded says how a device treats a wait for an event that was never
// recorded.
type Unrecorded uint8

const (
	// PassesAtOnce: the wait is satisfied at once, as if there were no edge.
	PassesAtOnce Unrecorded = iota
	// Hangs: the wait holds until a later record of the event executes.
	Hangs
)

// Config describes a device. The zero Config is an owned device with id 0, no
// kernel images, free copies, prompt notices and no faults.
type Config struct {
	// Device is the logical id.
	Device int32
	// Borrowed makes the device's context a caller's.
	Borrowed bool
	// Kernels are the images known from the start; the first is Kernel(1).
	Kernels    []KernelSpec
	Unrecorded Unrecorded
	// CopyTime is the duration of an asynchronous copy.
	CopyTime time.Duration
	// QueryTime is what one query of a stream or event costs, so that a loop
	// that polls comes to an end.
	QueryTime time.Duration
	// NoticeTime is the time from a kernel's fatal status to its notice.
	NoticeTime time.Duration
	// NoticeRing is how many notices wait for the host before further ones are
	// dropped; zero means 16.
	NoticeRing int
	// MemoryLimit bounds the live allocations, in bytes; zero means 64 MiB.
	MemoryLimit uint64
	// Residue lets fresh memory hold what the address held before, zero at
	// first. Otherwise it is painted with 0xDB.
	Residue bool
	// NoProofs turns off [ReRecordUnproven], which needs the device to remember
	// what the host has seen. An exhaustive exploration does not need it: it
	// visits the order in which the record is still pending.
	NoProofs bool
	// Plan is the faults that strike.
	Plan []Fault
	// Budget is how many faults choices may inject, Faults which kinds, and
	// FaultOps into which calls; zero means every call. Only the [Model] face
	// and policies other than the default use these.
	Budget   uint8
	Faults   FaultSet
	FaultOps OpSet
}

// ErrConfig reports a [Config] that describes no device.
var ErrConfig = errors.New("sim: impossible configuration")

func (c *Config) validate() error {
	for _, f := range c.Plan {
		if err := f.validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	for i, k := range c.Kernels {
		if err := k.validate(); err != nil {
			return fmt.Errorf("%w: kernel %d: %w", ErrConfig, i+1, err)
		}
	}
	if c.CopyTime < 0 || c.QueryTime < 0 || c.NoticeTime < 0 || c.NoticeRing < 0 {
		return fmt.Errorf("%w: negative time or size", ErrConfig)
	}
	return nil
}

// thread is what the device keeps for each host thread.
type thread struct {
	current   backend.Context
	lastError backend.Code
}

// Device is a simulated accelerator. It is not safe for concurrent use; see
// [Host]. The zero Device is not usable; see [New].
type Device struct {
	cfg        *settings
	now        int64
	thread     int
	during     OpKind // the call under way
	budget     uint8
	freeEntry  int32
	pairSerial uint32
	// frees counts the slots of streams and memory that became free. The one
	// free for longest is taken first, so that which id or address is used again
	// follows from what the host did and not from how slots were numbered.
	frees     uint32
	dropped   uint64
	allocated uint64
	nth       [numOps]uint32

	threads    []thread
	contexts   []bool // owned
	streams    []stream
	entries    []entry
	events     []event
	mems       []allocation
	arena      []byte
	pairs      []pair
	edges      []edge
	posts      []posted
	ring       []posted
	calls      []call
	data       []byte // of the calls; see keep
	violations []Violation

	// Not part of the value: a clone has none of it.
	policy  Policy
	trace   func(TraceEvent)
	scratch scratch
}

// New returns a device in its initial state. Its own context is current on
// thread 0. The error wraps [ErrConfig].
func New(cfg Config) (*Device, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.NoticeRing == 0 {
		cfg.NoticeRing = 16
	}
	if cfg.MemoryLimit == 0 {
		cfg.MemoryLimit = 64 << 20
	}
	d := &Device{cfg: newSettings(cfg)}
	d.initial()
	return d, nil
}

// initial makes d what it was when it was new, and keeps its memory.
func (d *Device) initial() {
	*d = Device{
		cfg: d.cfg, freeEntry: -1, budget: d.cfg.Budget,
		threads: append(d.threads[:0], thread{current: d.Home()}), contexts: append(d.contexts[:0], !d.cfg.Borrowed),
		streams: d.streams[:0], entries: d.entries[:0], events: d.events[:0], mems: d.mems[:0], arena: d.arena[:0],
		pairs: d.pairs[:0], edges: d.edges[:0], posts: d.posts[:0], ring: d.ring[:0], calls: d.calls[:0], data: d.data[:0],
		violations: d.violations[:0],
		policy:     d.policy, trace: d.trace, scratch: d.scratch,
	}
}

// Clone returns an independent copy of the device's state, without its policy
// and trace hook.
func (d *Device) Clone() *Device {
	c := new(Device)
	d.CloneInto(c)
	return c
}

// CloneInto makes dst a copy of d, reusing the memory dst has. What dst was is
// lost; its policy and trace hook are removed.
func (d *Device) CloneInto(dst *Device) {
	old := *dst
	*dst = *d
	dst.threads = append(old.threads[:0], d.threads...)
	dst.contexts = append(old.contexts[:0], d.contexts...)
	dst.streams = append(old.streams[:0], d.streams...)
	dst.entries = append(old.entries[:0], d.entries...)
	dst.events = append(old.events[:0], d.events...)
	dst.mems = append(old.mems[:0], d.mems...)
	dst.arena = append(old.arena[:0], d.arena...)
	dst.pairs = append(old.pairs[:0], d.pairs...)
	dst.edges = append(old.edges[:0], d.edges...)
	dst.posts = append(old.posts[:0], d.posts...)
	dst.ring = append(old.ring[:0], d.ring...)
	dst.calls = append(old.calls[:0], d.calls...)
	dst.data = append(old.data[:0], d.data...)
	dst.violations = append(old.violations[:0], d.violations...)
	dst.policy, dst.trace, dst.scratch = nil, nil, old.scratch
}

// Budget returns how many faults choices may still inject, of [Config.Budget].
func (d *Device) Budget() uint8 { return d.budget }

// Now returns the virtual time since the device was made.
func (d *Device) Now() time.Duration { return time.Duration(d.now) }

// Home returns the device's own context.
func (d *Device) Home() backend.Context { return backend.Context(handle(KindContext, 0, 1)) }

// NewContext adds a context of another device, which a thread may have current
// by mistake.
func (d *Device) NewContext(owned bool) backend.Context {
	d.contexts = append(d.contexts, owned)
	return backend.Context(handle(KindContext, len(d.contexts)-1, 1))
}

// Owned reports whether a context is owned, not borrowed; false for an unknown one.
func (d *Device) Owned(c backend.Context) bool {
	i := indexOf(uint64(c))
	return kindOf(uint64(c)) == KindContext && i < len(d.contexts) && d.contexts[i]
}

// SetCurrent makes a context current on the present host thread; zero makes
// none current.
func (d *Device) SetCurrent(c backend.Context) { d.threads[d.thread].current = c }

// SetThread changes which host thread the calls that follow come from. Each
// thread has its own current context, at first none, and its own last error.
// Thread 0 is the first.
func (d *Device) SetThread(n int) {
	for len(d.threads) <= n {
		d.threads = append(d.threads, thread{})
	}
	d.thread = n
}

// SetCapture sets the capture status of a stream; it reports whether the stream
// is alive.
func (d *Device) SetCapture(s backend.Stream, c backend.Capture) bool {
	i, ok := d.findStream(s)
	if ok {
		d.streams[i].capture = c
	}
	return ok
}

// Device implements [backend.Backend].
func (d *Device) Device() int32 { return d.cfg.Device }

type moveKind uint8

const (
	moveFlag moveKind = iota
	moveEntry
	moveNotice
)

// next returns the device's earliest move: ties go to the lower stream slot, a
// kernel's flag before its return, notices last. at is never if nothing is due.
func (d *Device) next() (at int64, m moveKind, i int) {
	at = never
	for j := range d.streams {
		s := &d.streams[j]
		if s.flagDue < at {
			at, m, i = s.flagDue, moveFlag, j
		}
		if s.due < at {
			at, m, i = s.due, moveEntry, j
		}
	}
	for j := range d.posts {
		if d.posts[j].due < at {
			at, m, i = d.posts[j].due, moveNotice, j
		}
	}
	return at, m, i
}

func (d *Device) move1(m moveKind, i int) {
	during := d.during
	d.during = OpNone
	switch m {
	case moveFlag:
		d.publish(i)
	case moveEntry:
		d.finish(i, d.head(i).exit)
	case moveNotice:
		d.deliver(i)
	}
	d.during = during
}

// runUntil lets everything due up to the given time happen, in order.
func (d *Device) runUntil(t int64) {
	for {
		at, m, i := d.next()
		if at > t {
			return
		}
		d.now = max(d.now, at)
		d.move1(m, i)
	}
}

// settle lets everything due at the current instant happen.
func (d *Device) settle() { d.runUntil(d.now) }

// Advance lets virtual time pass by t, and everything due in it happen.
func (d *Device) Advance(t time.Duration) {
	end := later(d.now, max(t, 0))
	d.runUntil(end)
	d.now = end
}

// AdvanceToNext moves virtual time to the next instant at which something is
// due, and lets everything due then happen. It reports false if the device has
// nothing ahead of it.
func (d *Device) AdvanceToNext() bool {
	at, _, _ := d.next()
	if at == never {
		return false
	}
	d.runUntil(max(at, d.now))
	return true
}

// Busy reports whether any stream holds work.
func (d *Device) Busy() bool {
	for i := range d.streams {
		if d.streams[i].n > 0 {
			return true
		}
	}
	return false
}

// confirmedReset empties every stream, invalidates every event and aborts
// pending waits. Memory stays the host's to free; notices stay where they are,
// for they carry no time.
func (d *Device) confirmedReset() {
	for i := range d.streams {
		d.drop(i)
	}
	for i := range d.events {
		e := &d.events[i]
		e.waits, e.pending, e.state = 0, 0, slotFree
	}
	d.pairs = d.pairs[:0]
	d.edges = d.edges[:0]
	for i := range d.calls {
		c := &d.calls[i]
		if c.phase == callWaiting {
			c.aborted = true
		}
	}
}
