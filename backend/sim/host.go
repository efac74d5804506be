package sim

import (
	"context"
	"sync"
	"time"

	"github.com/runfence/runfence/backend"
)

// Host lets many goroutines drive one [Device]. It is a lock and a list of
// parked callers: it starts no goroutine and reads no wall clock.
//
// Each goroutine enters, calls through its [Caller], and leaves. The device
// moves when a call arrives, as far as the policy lets it before that call
// takes effect, and when every caller that has entered is parked in a bounded
// wait: then it moves until one of the waits ends. So a wait of a second ends
// at once if nobody is left to do anything else, and virtual time stands still
// while somebody is. A wait returns as soon as what it waits for has happened.
//
// A goroutine that waits for another one, on a channel or a lock, must say so
// with [Caller.Elsewhere], or the device stands still while it waits.
//
// Everything that decided what happened is logged, in order; [Host.Replay]
// repeats it on one goroutine.
type Host struct {
	mu      sync.Mutex
	d       *Device
	base    *Device
	callers []*Caller
	parked  int
	log     []Step
}

// Caller is one goroutine's access to a [Host], as one host thread with a
// current context and a last error of its own. It is not itself safe for
// concurrent use.
type Caller struct {
	h      *Host
	thread int
	ticket Ticket        // of the wait that it is parked in, else zero
	wake   chan struct{} // holds one token for each time the caller is unparked
}

var _ backend.Backend = (*Caller)(nil)

// NewHost returns a host for the device, which belongs to the host from then
// on. A nil policy means [Timed].
func NewHost(d *Device, p Policy) *Host {
	if p == nil {
		p = Timed{}
	}
	h := &Host{d: d, base: d.Clone()}
	d.SetPolicy(p)
	return h
}

// Enter registers a caller. The device's own context is current on its thread.
func (h *Host) Enter() *Caller {
	h.mu.Lock()
	defer h.mu.Unlock()
	thread := 1
	for h.threadTaken(thread) {
		thread++
	}
	c := &Caller{h: h, thread: thread, wake: make(chan struct{}, 1)}
	h.callers = append(h.callers, c)
	h.current(thread, h.d.Home())
	return c
}

func (h *Host) threadTaken(n int) bool {
	for _, c := range h.callers {
		if c.thread == n {
			return true
		}
	}
	return false
}

// Leave ends a caller's part. The caller must not be used again.
func (c *Caller) Leave() {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, x := range h.callers {
		if x == c {
			h.callers = append(h.callers[:i], h.callers[i+1:]...)
			h.pump()
			return
		}
	}
}

// Elsewhere runs f, in which the caller may wait for other goroutines. Until f
// returns the caller counts as parked. f must not use the caller.
func (c *Caller) Elsewhere(f func()) {
	h := c.h
	h.mu.Lock()
	h.parked++
	h.pump()
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.parked--
		h.mu.Unlock()
	}()
	f()
}

// Thread returns the number of the caller's host thread.
func (c *Caller) Thread() int { return c.thread }

// SetCurrent makes a context current on the caller's thread; zero makes none
// current.
func (c *Caller) SetCurrent(x backend.Context) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.h.current(c.thread, x)
}

func (h *Host) current(thread int, x backend.Context) {
	s := Step{Kind: StepCurrent, Thread: thread, Context: x}
	h.log = append(h.log, s)
	h.d.SetThread(thread)
	h.d.SetCurrent(x)
}

// Advance lets virtual time pass by t, and everything due in it happen.
func (h *Host) Advance(t time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, Step{Kind: StepAdvance, Time: t})
	h.d.Advance(t)
	h.returnWaits()
}

// Inspect calls f with the device, while no caller moves it. What f changes is
// not in the log: change a device before the first call, or make a checkpoint
// afterwards.
func (h *Host) Inspect(f func(*Device)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.d)
}

// pump lets the device move until a wait ends, if every caller is parked and
// some of them in a wait.
func (h *Host) pump() {
	for _, c := range h.callers {
		if c.ticket != 0 {
			for h.parked == len(h.callers) {
				h.step()
			}
			return
		}
	}
}

// step lets the policy pick one choice, and then every wait return whose end
// has come.
func (h *Host) step() {
	h.happened(h.d.step())
	h.returnWaits()
}

// returnWaits lets every wait return that can.
func (h *Host) returnWaits() {
	for _, w := range h.callers {
		if w.ticket != 0 && h.d.returnable(w.ticket) {
			c := Choice{Kind: ChooseReturn, Target: uint64(w.ticket)}
			h.d.apply(c)
			h.happened(c)
		}
	}
}

// happened logs a choice, and wakes the caller whose wait ended by it.
func (h *Host) happened(c Choice) {
	h.log = append(h.log, Step{Kind: StepChoice, Choice: c})
	for _, w := range h.callers {
		if w.ticket != 0 && uint64(w.ticket) == c.Target && h.d.ended(w.ticket) {
			w.ticket = 0
			h.parked--
			w.wake <- struct{}{}
		}
	}
}

// ended reports whether a call has returned.
func (d *Device) ended(t Ticket) bool {
	c, ok := d.findCall(t)
	return ok && c.phase == callDone
}

// returnable reports whether a bounded wait can return with success or failure
// of what it waits for.
func (d *Device) returnable(t Ticket) bool {
	c, ok := d.findCall(t)
	return ok && c.phase == callWaiting && c.strike.call != Hang && d.ready(c)
}

// waiting reports whether a call is a bounded wait that has not returned.
func (d *Device) waiting(t Ticket) bool {
	c, ok := d.findCall(t)
	return ok && c.phase == callWaiting
}

// do carries out one call. read, if any, sees the answer before the device
// moves on.
func (c *Caller) do(ctx context.Context, op Op, read func(*Answer)) Answer {
	h := c.h
	h.mu.Lock()
	h.d.SetThread(c.thread)
	if ctx != nil && ctx.Err() != nil {
		last := h.d.threads[c.thread].lastError
		h.mu.Unlock()
		return Answer{Result: backend.Result{Outcome: backend.Refused, LastError: last}}
	}
	h.log = append(h.log, Step{Kind: StepBegin, Thread: c.thread, Op: &op})
	t := h.d.Begin(op)
	for !h.d.ended(t) {
		if !h.d.waiting(t) {
			h.step()
			continue
		}
		c.ticket = t
		h.parked++
		h.pump()
		h.mu.Unlock()
		<-c.wake
		h.mu.Lock()
	}
	k, _ := h.d.findCall(t)
	took := k.strike.call == PanicAfter
	a, _ := h.d.Take(t)
	if read != nil {
		read(&a)
	}
	a.Data = nil
	h.log = append(h.log, Step{Kind: StepTake, Ticket: t, Answer: &a})
	h.mu.Unlock()
	if a.Outcome == backend.Panicked {
		panic(&Panic{Op: op.Kind, Took: took})
	}
	return a
}

// Checkpoint forgets the log: a replay then begins at the present state. A long
// run calls it now and then to bound the memory that the log takes.
func (h *Host) Checkpoint() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.d.CloneInto(h.base)
	h.log = nil
}

// Log returns what was logged since the start or the last checkpoint.
func (h *Host) Log() []Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Step(nil), h.log...)
}

// Replay repeats the log on a copy of the state at which it begins, and returns
// that copy. The error wraps [ErrDiverged].
func (h *Host) Replay() (*Device, error) {
	h.mu.Lock()
	d, log := h.base.Clone(), append([]Step(nil), h.log...)
	h.mu.Unlock()
	return d, Replay(d, log)
}
