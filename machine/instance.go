package machine

import (
	"context"
	"fmt"
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

	// Solo: no row is taken or waits while a command is in flight. Then the
	// mark "in flight" excludes everyone else by itself, and one word is lock,
	// mark and control state at once: state<<3 | look | waiters | busy.
	word    atomic.Uint32
	perform PerformerFunc
	bound   time.Duration
	// careful: every step goes through the world, because it is recorded or
	// may have to be undone. Else the world holds the facts and no more.
	careful bool
	w       *World // only the owner of the busy bit reads it
	sites   bool
	flusher Flusher // nil if the recorder is none
	f       frame
	cmd     Command
	done    bool // the command returned
	// caught is what the command panicked with.
	caught any
	ctx    atomic.Pointer[commandContext]

	mu   sync.Mutex
	wake chan struct{}
	look sync.Mutex // one look at a time; see peek
}

const (
	soloBusy    = 1
	soloWaiters = 2
	soloLook    = 4 // busy only for a look: nothing is being carried out
	soloShift   = 3
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
	if m.soloable() {
		i.w, i.bound, i.perform = w, c.Bound, function(c.Performer)
		i.careful, i.sites = m.careful || c.Recorder != nil, c.Sites
		i.flusher, _ = c.Recorder.(Flusher)
		if i.bound == 0 {
			i.bound = 30 * time.Second
		}
		i.f.facts, i.f.self, i.f.w, i.f.words = w.factWords(0, 0), i.ref, w, w.words
		i.f.base[fromSelf] = w.base(0, 0)
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
	cc := i.ctx.Load()
	if cc == nil || cc.Context != ctx {
		if i.d != nil {
			return i.d.Fire(ctx, i.ref, ev, args...)
		}
		if cc = i.mark(ctx); cc == nil {
			return Reply{}, reentrant(i.m, ev)
		}
	}
	// What can be read without the busy bit is read before it is taken: between
	// the two atomic operations, each store and each call counts twice, since
	// the second waits for all of them.
	m := i.m
	if i.careful || int(ev) >= len(m.argTy) || len(args) != len(m.argTy[ev]) {
		return i.slow(cc, ev, args)
	}
	old := i.word.Load()
	c := &m.cells[int(old>>soloShift)*len(m.argTy)+int(ev)]
	if old&soloBusy != 0 {
		return i.slow(cc, ev, args)
	}
	if len(c.rows) == 0 {
		if m.badArgument(ev, args) >= 0 {
			return i.slow(cc, ev, args)
		}
		return i.refuse(StateID(old>>soloShift), ev, nil)
	}
	r := c.rows[0]
	if !i.word.CompareAndSwap(old, old|soloBusy) {
		return i.slow(cc, ev, args)
	}
	i.f.state = uint64(old >> soloShift)
	if len(args) > 0 && !i.take(ev, args) {
		return i.whole(cc, ev, args)
	}
	if r.guard != nil && !r.guard(&i.f) {
		r = c.choose(&i.f)
	}
	if r == nil || r.kind == refusal {
		state := i.State()
		i.release(state)
		return i.refuse(state, ev, r)
	}
	t := r.only[OK]
	if r.hasCall {
		if len(r.before)+len(r.callArgs) > 0 {
			i.prepare(r)
		}
		i.cmd.Call, i.cmd.N = r.call, len(r.callArgs)
		t = i.carryOut(cc, r)
	} else if i.f.res.Outcome = OK; t != nil && !t.bare() {
		t = nil
	}
	if t == nil {
		return i.arrive(r)
	}
	i.release(t.to)
	return Reply{State: t.to, Row: r.idx}, nil
}

// slow takes the busy bit, waiting for it if it must, and goes through the world.
func (i *Instance) slow(cc *commandContext, ev EventID, args []uint64) (Reply, error) {
	for {
		old := i.word.Load()
		if old&soloBusy != 0 {
			if err := i.await(cc.Context, ev); err != nil {
				return Reply{}, err
			}
		} else if i.word.CompareAndSwap(old, old|soloBusy) {
			return i.whole(cc, ev, args)
		}
	}
}

// refuse says that the state has no row for the event, or r, which refuses.
func (i *Instance) refuse(state StateID, ev EventID, r *row) (Reply, error) {
	e := &RefusalError{
		rules: i.m.rules, Ref: i.ref, State: state, Event: ev, Kind: NoRow,
		row: NoRowID, during: NoRowID, byRow: NoRowID, byDuring: NoRowID,
	}
	if r != nil {
		e.Kind, e.Reason, e.row = ByRow, r.reason, r.idx
	}
	for _, x := range i.m.cells[int(state)*len(i.m.argTy)+int(ev)].rows {
		if x == r {
			break
		}
		e.said = e.said<<1 | 1 // whoever was asked before said no
	}
	return Reply{State: state, Row: e.row}, e
}

// take puts the event's arguments into the frame. It returns false if one is
// not of its type.
func (i *Instance) take(ev EventID, args []uint64) bool {
	copy(i.f.args[:], args)
	return i.m.badArgument(ev, args) < 0
}

// prepare makes the changes before the row's command, and its arguments.
func (i *Instance) prepare(r *row) {
	change(r.before, &i.f)
	for n := range r.callArgs {
		i.cmd.Args[n] = r.callArgs[n].of(&i.f)
	}
}

// carryOut performs the row's command. It returns the target if that is bare;
// else nil, and the answer is in i.f.res.
func (i *Instance) carryOut(cc *commandContext, r *row) *target {
	i.done = false
	defer func() {
		if i.done {
			return
		}
		i.f.res = Result{Outcome: Panicked}
		if i.caught = recover(); i.caught == nil {
			i.abandon(r)
		}
	}()
	res := i.perform(cc, &i.cmd)
	if t := r.only[OK]; res.Outcome == OK && t != nil && t.bare() {
		i.done = true
		return t
	}
	i.f.res = res.checked()
	i.done = true
	return nil
}

// abandon ends the transition of a goroutine that ended inside the command
// with runtime.Goexit: nobody comes back to do it.
func (i *Instance) abandon(r *row) {
	t := r.pick(Panicked, &i.f)
	change(t.do, &i.f)
	i.release(t.to)
}

// arrive ends a transition whose target changes facts or reports something;
// i.f.res has the answer.
func (i *Instance) arrive(r *row) (Reply, error) {
	f := &i.f
	t := r.pick(f.res.Outcome, f)
	change(t.do, f)
	reply := Reply{State: t.to, Row: r.idx}
	if t.code.kind != noValue {
		reply.Code = int32(uint32(t.code.of(f)))
	}
	if t.ret.kind != noValue {
		reply.Value = t.ret.of(f)
	}
	var err error
	if t.reason != "" {
		err = &FailureError{rules: i.m.rules, Ref: i.ref, State: t.to, Event: r.ev, Reason: t.reason, Code: reply.Code, Panic: i.caught, row: r.idx}
	}
	i.caught = nil
	i.release(t.to)
	return reply, err
}

// whole takes the step through the world: for careful instances, for bad
// arguments, and for whoever had to wait. The caller owns the busy bit.
func (i *Instance) whole(cc *commandContext, ev EventID, args []uint64) (reply Reply, err error) {
	w, b := i.w, i.w.base(0, 0)
	state := StateID(i.word.Load() >> soloShift)
	if !i.careful {
		w.words[b] = header{state: state}.pack()
	}
	defer func() {
		// (After a hole the command stays in flight, and the busy bit with it.)
		if h := unpackHeader(w.words[b]); h.flight == 0 {
			i.release(h.state)
		}
		i.flush()
	}()
	if i.sites {
		w.site = callSite()
	}
	s := w.Issue(i.ref, ev, args...)
	w.site = 0
	if s.Status == StepRefused {
		return Reply{State: state, Row: s.Row}, w.refusalError(s)
	}
	var caught any
	if s.Status == InFlight {
		i.cmd = s.Command
		i.flush() // a crash from here on finds the issue on record
		caught = i.answer(cc)
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

func (i *Instance) flush() {
	if i.flusher != nil {
		i.flusher.Flush()
	}
}

// answer performs a command that the world has in flight; its answer goes to i.f.res.
func (i *Instance) answer(cc *commandContext) (caught any) {
	done := false
	defer func() {
		if done {
			return
		}
		i.f.res = Result{Outcome: Panicked}
		if caught = recover(); caught == nil {
			i.w.Settle(i.ref, i.f.res) // runtime.Goexit, as in abandon
		}
	}()
	i.f.res = i.perform(cc, &i.cmd).checked()
	done = true
	return nil
}

// bare reports whether a target only names the state to go to.
func (t *target) bare() bool {
	return len(t.do) == 0 && t.code.kind == noValue && t.ret.kind == noValue && t.reason == ""
}

// checked panics if the outcome is none: the command's code is wrong, and
// what it did is unknown, as if it had panicked by itself.
func (r Result) checked() Result {
	if int(r.Outcome) >= NumOutcomes {
		panic("machine: a command was answered with " + r.Outcome.String())
	}
	return r
}

// reentrant makes the error for an event fired through a command's context.
func reentrant(m *Machine, ev EventID) error {
	return fmt.Errorf("%s: %w", m.EventName(ev), ErrReentrant)
}

// mark returns ctx marked as this instance's, or nil if it is already.
func (i *Instance) mark(ctx context.Context) *commandContext {
	if isOrigin(ctx, i) {
		return nil
	}
	return marked(ctx, i, &i.ctx)
}

// release gives the word back with the new state, and wakes those who wait.
func (i *Instance) release(to StateID) {
	if i.word.Swap(uint32(to)<<soloShift)&soloWaiters != 0 {
		i.wakeAll()
	}
}

func (i *Instance) wakeAll() {
	i.mu.Lock()
	close(i.wake)
	i.wake = make(chan struct{})
	i.mu.Unlock()
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
	return i.word.Load()&(soloBusy|soloLook) == soloBusy
}

// Available lists the events that the state accepts by some row. It is empty
// while an event that excludes all others is being carried out.
func (i *Instance) Available() []EventID {
	if i.d != nil {
		return i.d.Available(i.ref)
	}
	word := i.word.Load()
	if word&(soloBusy|soloLook) == soloBusy {
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
	state, ok := i.peek()
	if !ok {
		return false
	}
	defer i.peeked(state)
	return i.w.Can(i.ref, ev, args...)
}

// Fact returns the value of a fact. ok is false while an event that excludes
// all others is being carried out, since the fact may be about to change.
func (i *Instance) Fact(f FactID) (v uint64, ok bool) {
	if i.d != nil {
		return i.d.Fact(i.ref, f)
	}
	state, ok := i.peek()
	if !ok {
		return 0, false
	}
	defer i.peeked(state)
	return i.w.Fact(i.ref, f)
}

// peek takes the world for a look, unless something is being carried out. It
// is given back with peeked. Looks take turns.
func (i *Instance) peek() (state StateID, ok bool) {
	i.look.Lock()
	for {
		old := i.word.Load()
		if old&soloBusy != 0 {
			i.look.Unlock()
			return 0, false
		}
		if i.word.CompareAndSwap(old, old|soloBusy|soloLook) {
			state = StateID(old >> soloShift)
			if !i.careful {
				i.w.words[i.w.base(0, 0)] = header{state: state}.pack()
			}
			return state, true
		}
	}
}

func (i *Instance) peeked(state StateID) {
	i.release(state)
	i.look.Unlock()
}
