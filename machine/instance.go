package machine

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Instance is one machine alone: for a host with a small machine of its own.
// It is a world with one instance in it, with the same rules for refusals,
// re-entry, panics and waiting. All methods are safe for concurrent use.
type Instance struct {
	d   *Driver // nil when solo
	m   *Machine
	ref Ref

	// Solo: no log, and no row that is taken or waits while a command is in
	// flight. Then the mark "in flight" excludes everyone else by itself, and
	// one word is lock, mark and control state at once: state<<2 | waiters | busy.
	word  atomic.Uint32
	p     Performer
	bound time.Duration
	w     *World // its words hold the facts; only the owner of the busy bit reads it
	f     frame
	cmd   Command
	fast  *row // the row in flight, on the fast path
	done  bool // the command returned
	// caught is what the command panicked with.
	caught any
	ctx    atomic.Pointer[commandContext]

	mu   sync.Mutex
	wake chan struct{}
}

const (
	soloBusy    = 1
	soloWaiters = 2
	soloShift   = 2
)

// InstanceConfig sets up an [Instance].
type InstanceConfig struct {
	// Name names the world in logs; empty is the machine's name.
	Name string
	// Performer may be nil if no row has a command.
	Performer Performer
	Recorder  Recorder
	Clock     func() int64
	Bound     time.Duration // see DriverConfig
	Sites     bool          // see DriverConfig
}

// NewInstance makes an instance of the only machine of the rules.
func (r *Rules) NewInstance(c InstanceConfig) (*Instance, error) {
	if len(r.machines) != 1 || len(r.pools) != 0 {
		return nil, fmt.Errorf("machine: NewInstance wants rules of one machine without a pool; these have %d", len(r.machines))
	}
	m := r.machines[0]
	if c.Name == "" {
		c.Name = m.def.Name
	}
	if c.Performer == nil {
		if len(r.calls) > 0 {
			return nil, errNilPerformer
		}
		c.Performer = PerformerFunc(func(context.Context, *Command) Result { return Result{} })
	}
	w, err := r.NewWorld(Config{Name: c.Name, Recorder: c.Recorder, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	i := &Instance{m: m, ref: w.Ref(0, 0)}
	if c.Recorder == nil && !c.Sites && m.soloable() {
		i.p, i.w, i.bound = c.Performer, w, c.Bound
		if i.bound == 0 {
			i.bound = 30 * time.Second
		}
		i.f.facts, i.f.self, i.f.w = w.factWords(0, 0), i.ref, w
		i.cmd.Ref = i.ref
		i.wake = make(chan struct{})
		return i, nil
	}
	i.d, err = NewDriver(w, DriverConfig{Performer: c.Performer, Bound: c.Bound, Sites: c.Sites})
	return i, err
}

// soloable reports whether every row touches only its own instance and none is
// taken, or waits, beside a command.
func (m *Machine) soloable() bool {
	for i := range m.rows {
		r := &m.rows[i]
		if r.kind == deferral || r.during != nil || (r.kind == transition && !r.plain) || len(r.cell.views) > 0 {
			return false
		}
	}
	return true
}

// Machine returns the instance's machine, for the positions of its names.
func (i *Instance) Machine() *Machine { return i.m }

// Fire lets an event happen; see [Driver.Fire] for its errors.
func (i *Instance) Fire(ctx context.Context, ev EventID, args ...uint64) (Reply, error) {
	if i.d != nil {
		return i.d.Fire(ctx, i.ref, ev, args...)
	}
	cc := i.ctx.Load()
	if cc == nil || cc.Context != ctx {
		if isOrigin(ctx, i) {
			return Reply{}, fmt.Errorf("%s: %w", i.m.EventName(ev), ErrReentrant)
		}
		cc = i.mark(ctx)
	}
	old := i.word.Load()
	for old&soloBusy != 0 || !i.word.CompareAndSwap(old, old|soloBusy) {
		if old&soloBusy != 0 {
			if err := i.await(ctx, ev); err != nil {
				return Reply{}, err
			}
		}
		old = i.word.Load()
	}
	state := StateID(old >> soloShift)
	m := i.m
	if m.careful || int(ev) >= len(m.argTy) || len(args) != len(m.argTy[ev]) {
		return i.whole(cc, state, ev, args)
	}
	f := &i.f
	if len(args) > 0 {
		if m.badArgument(ev, args) >= 0 {
			return i.whole(cc, state, ev, args)
		}
		copy(f.args[:], args)
	}
	f.state = uint64(state)
	var r *row
	for _, x := range m.cells[int(state)*len(m.argTy)+int(ev)].rows {
		if x.guard == nil || x.guard(f) {
			r = x
			break
		}
	}
	if r == nil || r.kind == refusal {
		return i.whole(cc, state, ev, args)
	}
	f.res.Outcome = OK
	if r.hasCall {
		for _, u := range r.before {
			u(f)
		}
		i.cmd.Call, i.cmd.N = r.call, len(r.callArgs)
		for n, a := range r.callArgs {
			i.cmd.Args[n] = a(f)
		}
		i.fast, i.done = r, false
		i.perform(cc)
	}
	t := r.only[f.res.Outcome]
	if t == nil {
		t = pick(r.targets[f.res.Outcome], f)
	}
	for _, u := range t.do {
		u(f)
	}
	reply := Reply{State: t.to, Row: r.idx}
	if t.code != nil {
		reply.Code = int32(uint32(t.code(f)))
	}
	if t.ret != nil {
		reply.Value = t.ret(f)
	}
	if t.reason == "" {
		i.release(t.to)
		return reply, nil
	}
	err := &FailureError{rules: m.rules, Ref: i.ref, State: t.to, Event: ev, Reason: t.reason, Code: reply.Code, Panic: i.caught, row: r.idx}
	i.caught = nil
	i.release(t.to)
	return reply, err
}

// whole takes the step through the world: for refusals, which need an account
// of who said no, and for machines whose steps may have to be undone. The
// caller owns the busy bit.
func (i *Instance) whole(cc *commandContext, state StateID, ev EventID, args []uint64) (reply Reply, err error) {
	w, b := i.w, i.w.base(0, 0)
	if !i.m.careful {
		w.words[b] = header{state: state}.pack()
	}
	defer func() { i.release(unpackHeader(w.words[b]).state) }()
	s := w.Issue(i.ref, ev, args...)
	switch s.Status {
	case StepRefused:
		return Reply{State: state, Row: s.Row}, w.refusalError(s)
	case Deferred: // an earlier answer had no way on, and is still due
		return Reply{State: state}, &BusyError{Where: i.m.InFlightName(s.During), Event: i.m.EventName(ev)}
	}
	var caught any
	if s.Status == InFlight {
		i.cmd, i.fast, i.done = s.Command, nil, false
		i.perform(cc)
		caught, i.caught = i.caught, nil
		if s = w.Settle(i.ref, i.f.res); s.Status != Accepted {
			// A hole: there is no way on, and the answer stays due.
			return Reply{State: state, Row: s.Row}, &HoleError{Refusal: w.refusalError(s), Settling: true}
		}
	}
	reply = Reply{State: s.State, Row: s.Row, Code: s.Code, Value: s.Return}
	if s.Reason != "" {
		err = &FailureError{rules: w.rules, Ref: i.ref, State: s.State, Event: ev, Reason: s.Reason, Code: s.Code, Panic: caught, row: s.Row}
	}
	return reply, err
}

// perform carries the command out; its answer goes to f.res.
func (i *Instance) perform(cc *commandContext) {
	defer i.performed()
	i.f.res = i.p.Perform(cc, &i.cmd)
	i.done = true
}

// performed turns a panic of the command into its outcome.
func (i *Instance) performed() {
	if i.done {
		return
	}
	i.f.res = Result{Outcome: Panicked}
	if i.caught = recover(); i.caught != nil {
		return
	}
	// runtime.Goexit: nobody comes back to settle.
	r := i.fast
	if r == nil {
		i.w.Settle(i.ref, i.f.res)
		return
	}
	t := pick(r.targets[Panicked], &i.f)
	for _, u := range t.do {
		u(&i.f)
	}
	i.release(t.to)
}

// mark returns ctx marked as this instance's. The last one is kept, since
// hosts fire with the same context again and again.
func (i *Instance) mark(ctx context.Context) *commandContext {
	cc := &commandContext{Context: ctx, owner: i}
	if reflect.TypeOf(ctx).Comparable() {
		i.ctx.Store(cc)
	}
	return cc
}

// release gives the word back with the new state, and wakes those who wait.
func (i *Instance) release(to StateID) {
	if old := i.word.Swap(uint32(to) << soloShift); old&soloWaiters != 0 {
		i.mu.Lock()
		close(i.wake)
		i.wake = make(chan struct{})
		i.mu.Unlock()
	}
}

// await waits for the word to be given back.
func (i *Instance) await(ctx context.Context, ev EventID) error {
	i.mu.Lock()
	wake := i.wake
	for {
		old := i.word.Load()
		if old&soloBusy == 0 {
			i.mu.Unlock()
			return nil
		}
		if old&soloWaiters != 0 || i.word.CompareAndSwap(old, old|soloWaiters) {
			break
		}
	}
	i.mu.Unlock()
	var bound <-chan time.Time
	if _, ends := ctx.Deadline(); !ends {
		t := time.NewTimer(i.bound)
		defer t.Stop()
		bound = t.C
	}
	busy := &BusyError{Where: i.m.def.Name + " in state " + i.StateName(), Event: i.m.EventName(ev)}
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		busy.Cause = context.Cause(ctx)
	case <-bound:
	}
	return busy
}

// State returns the control state; in flight, the one the row started from.
func (i *Instance) State() StateID {
	if i.d != nil {
		s, _, _ := i.d.State(i.ref)
		return s
	}
	return StateID(i.word.Load() >> soloShift)
}

// StateName returns the name of [Instance.State].
func (i *Instance) StateName() string { return i.m.StateName(i.State()) }

// InFlight reports whether an event is being carried out.
func (i *Instance) InFlight() bool {
	if i.d != nil {
		_, in, _ := i.d.State(i.ref)
		return in
	}
	return i.word.Load()&soloBusy != 0
}

// Available lists the events that the state accepts by some row. It is empty
// while an event that excludes all others is being carried out.
func (i *Instance) Available() []EventID {
	if i.d != nil {
		return i.d.Available(i.ref)
	}
	word := i.word.Load()
	if word&soloBusy != 0 {
		return nil
	}
	return i.m.Accepts(StateID(word>>soloShift), NoRowID)
}

// Can reports whether the event would be accepted at this instant, without any
// effect. It is false while an event that excludes all others is being carried out.
func (i *Instance) Can(ev EventID, args ...uint64) bool {
	if i.d != nil {
		return i.d.Can(i.ref, ev, args...)
	}
	can := false
	i.peek(func(w *World) { can = w.Can(i.ref, ev, args...) })
	return can
}

// Fact returns the value of a fact. ok is false while an event that excludes
// all others is being carried out, since the fact may be about to change.
func (i *Instance) Fact(f FactID) (v uint64, ok bool) {
	if i.d != nil {
		return i.d.Fact(i.ref, f)
	}
	i.peek(func(w *World) { v, ok = w.Fact(i.ref, f) })
	return v, ok
}

// peek lends the world to f if nothing is being carried out.
func (i *Instance) peek(f func(*World)) {
	for {
		old := i.word.Load()
		if old&soloBusy != 0 {
			return
		}
		if i.word.CompareAndSwap(old, old|soloBusy) {
			state := StateID(old >> soloShift)
			if !i.m.careful {
				i.w.words[i.w.base(0, 0)] = header{state: state}.pack()
			}
			defer i.release(state)
			f(i.w)
			return
		}
	}
}
