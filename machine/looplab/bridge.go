package looplab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/looplab/fsm"

	"github.com/runfence/runfence/machine"
)

// Errors of a bridge, matched with errors.Is.
const (
	// ErrUnsupported: looplab has no way to run the rules.
	ErrUnsupported machine.Reason = "looplab cannot run these rules"
	// ErrDiverged: looplab's state is not the one that the rules came to.
	// Somebody else has fired at it or set its state.
	ErrDiverged machine.Reason = "looplab is in another state than the rules"
	// ErrCallback: one of looplab's callbacks has cancelled a transition or
	// reported an error.
	ErrCallback machine.Reason = "a looplab callback objects"
)

// Config sets up a [Bridge].
type Config struct {
	// Performer carries out commands; nil if no row has one.
	Performer machine.Performer
	// Callbacks are looplab's. One that cancels the event of a row makes Fire
	// fail and nothing happen; one that cancels the event of an outcome leaves
	// the command in flight, since its answer cannot be taken. To fire through
	// the context that a callback gets is [machine.ErrReentrant].
	Callbacks fsm.Callbacks
	// Bound ends the wait for a busy bridge when the caller's context has no
	// deadline; 0 means 30 s.
	Bound time.Duration
}

// Bridge runs the rules of one machine in a looplab FSM, which holds the control
// state: the guards pick the row, and then the row's event is fired. The facts
// are the bridge's. All methods are safe for concurrent use.
type Bridge struct {
	m      *machine.Machine
	ref    machine.Ref
	fsm    *fsm.FSM
	config Config

	// turn holds one token, which whoever uses what follows has taken.
	turn    chan struct{}
	w       *machine.World
	before  *machine.World // to go back to if looplab objects
	changed chan struct{}  // closed and replaced at each change
}

// New makes a bridge for rules of one machine without a pool, whose rows neither
// take along nor emit events. Others are refused by name, with an error that
// matches [ErrUnsupported].
func New(r *machine.Rules, c Config) (*Bridge, error) {
	if r.NumMachines() != 1 || len(r.Pools()) > 0 {
		return nil, fmt.Errorf("%w: %d machines %q, pools %q: want one machine without a pool", ErrUnsupported, r.NumMachines(), r.Machines(), r.Pools())
	}
	m := r.At(0)
	for _, row := range m.Definition().Rows {
		with, emit := len(row.With), 0
		for _, t := range row.Then {
			with, emit = with+len(t.With), emit+len(t.Emit)
		}
		if with+emit > 0 {
			return nil, fmt.Errorf("%w: %s/%s takes along %d events and emits %d", ErrUnsupported, m.Name(), row.ID, with, emit)
		}
	}
	if c.Performer == nil && len(r.Calls()) > 0 {
		return nil, errors.New("looplab: nil performer")
	}
	if c.Bound == 0 {
		c.Bound = 30 * time.Second
	}
	w, err := r.NewWorld(machine.Config{})
	if err != nil {
		return nil, err
	}
	b := &Bridge{
		m: m, ref: w.Ref(0, 0), config: c, w: w, before: w.Clone(),
		fsm:  fsm.NewFSM(m.StateName(0), Events(m), c.Callbacks),
		turn: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	b.turn <- struct{}{}
	return b, nil
}

// FSM returns looplab's machine, to be looked at. Events must be fired through
// the bridge.
func (b *Bridge) FSM() *fsm.FSM { return b.fsm }

// State returns the name of the state: "S▸row" while the row's command is out.
func (b *Bridge) State() string { return b.fsm.Current() }

// Facts returns the facts, in the order of their declaration.
func (b *Bridge) Facts() []uint64 {
	<-b.turn
	defer b.release()
	return b.w.AppendFacts(nil, b.ref)
}

func (b *Bridge) release() { b.turn <- struct{}{} }

// origin marks the contexts of commands and callbacks.
type origin struct{ *Bridge }

// Fire lets an event happen, as [machine.Instance.Fire] does, with its errors.
// In addition it fails with errors that match [ErrDiverged] and [ErrCallback].
func (b *Bridge) Fire(ctx context.Context, event string, args ...uint64) (machine.Reply, error) {
	if ctx.Value(origin{b}) != nil {
		return machine.Reply{}, fmt.Errorf("%s: %w", event, machine.ErrReentrant)
	}
	ev, ok := b.m.Event(event)
	if !ok {
		var known []string
		for _, e := range b.m.Definition().Events {
			known = append(known, e.Name)
		}
		return machine.Reply{}, fmt.Errorf("%s: %s: %w", b.m.Name(), machine.Unknown("event", event, known), machine.ErrBadArgument)
	}
	wait := waiter{b: b, ctx: ctx, event: event}
	defer wait.stop()
	s, came, err := b.issue(&wait, ev, args)
	switch {
	case !came:
		return machine.Reply{State: s.State, Row: s.Row}, err
	case s.Status == machine.Accepted:
		return reply(s), join(b.w.FailureError(&s, nil), err)
	}
	r, ended := b.carryOut(ctx, s)
	return r, join(ended, err)
}

// join is errors.Join, which would hide the type of an error that is alone.
func join(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return errors.Join(a, b)
}

// issue takes a row as far as it goes without an answer. It reports whether it
// did; the error may be a callback's even so.
func (b *Bridge) issue(wait *waiter, ev machine.EventID, args []uint64) (s machine.Step, came bool, err error) {
	for {
		if err := wait.turn(); err != nil {
			return s, false, err
		}
		if err := b.together(); err != nil {
			b.release()
			return s, false, err
		}
		b.before.CopyFrom(b.w)
		s = *b.w.Issue(b.ref, ev, args...)
		switch s.Status {
		case machine.Deferred:
			changed := b.changed
			b.release()
			if err := wait.until(changed); err != nil {
				return s, false, err
			}
			continue
		case machine.StepRefused:
			err := b.w.RefusalError(&s)
			b.release()
			return s, false, err
		}
		name := taken(b.m, s.Row)
		if s.Status == machine.Accepted {
			name = ended(b.m, s.Row, machine.OK, int(s.Target))
		}
		came, err = b.fire(wait.ctx, name, args)
		return s, came, err
	}
}

// carryOut performs a command and settles it.
func (b *Bridge) carryOut(ctx context.Context, s machine.Step) (r machine.Reply, err error) {
	done := false
	var res machine.Result
	var caught any
	func() {
		defer func() {
			if done {
				return
			}
			caught = recover()
			res = machine.Result{Outcome: machine.Panicked}
			if caught == nil { // runtime.Goexit: nobody comes back to settle
				_, _ = b.settle(ctx, s.Row, res, nil)
			}
		}()
		res = b.config.Performer.Perform(context.WithValue(ctx, origin{b}, true), &s.Command)
		if int(res.Outcome) >= machine.NumOutcomes {
			panic("looplab: a command was answered with " + res.Outcome.String())
		}
		done = true
	}()
	return b.settle(ctx, s.Row, res, caught)
}

// settle takes the answer to a command, however long it takes to get the turn.
func (b *Bridge) settle(ctx context.Context, row machine.RowID, res machine.Result, caught any) (machine.Reply, error) {
	<-b.turn
	if err := b.together(); err != nil {
		b.release()
		return machine.Reply{}, err
	}
	b.before.CopyFrom(b.w)
	s := *b.w.Settle(b.ref, res)
	if s.Status != machine.Accepted {
		var refused *machine.RefusalError
		errors.As(b.w.RefusalError(&s), &refused)
		b.release()
		return machine.Reply{State: s.State, Row: s.Row}, &machine.HoleError{Refusal: refused, Settling: true}
	}
	came, err := b.fire(ctx, ended(b.m, row, res.Outcome, int(s.Target)), nil)
	if !came {
		return machine.Reply{State: s.From, Row: s.Row}, err
	}
	return reply(s), join(b.w.FailureError(&s, caught), err)
}

// together checks that looplab's state is the one the rules came to.
func (b *Bridge) together() error {
	if rules, theirs := b.w.StateName(b.ref), b.fsm.Current(); rules != theirs {
		return fmt.Errorf("%w: %q, not %q", ErrDiverged, theirs, rules)
	}
	return nil
}

// fire fires a row's event at looplab and gives the turn back. If looplab stays
// where it was, so do the rules.
func (b *Bridge) fire(ctx context.Context, name string, args []uint64) (came bool, err error) {
	returned := false
	defer func() {
		if !returned { // a callback panicked: before the state changed, or after
			came = b.together() == nil && b.w.StateName(b.ref) != b.before.StateName(b.ref)
		}
		if came {
			close(b.changed)
			b.changed = make(chan struct{})
		} else {
			b.w.CopyFrom(b.before)
		}
		b.release()
	}()
	given := make([]any, len(args))
	for i, a := range args {
		given[i] = a
	}
	// (looplab stays in transition for ever if the context ends meanwhile.)
	ctx = context.WithValue(context.WithoutCancel(ctx), origin{b}, true)
	err = b.fsm.Event(ctx, name, given...)
	if errors.As(err, new(fsm.AsyncError)) {
		err = b.fsm.Transition()
	}
	if stays := (fsm.NoTransitionError{}); errors.As(err, &stays) {
		err = stays.Err
	}
	returned = true
	came = b.together() == nil && !errors.As(err, new(fsm.CanceledError))
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %s: %w", ErrCallback, name, err)
	case !came:
		err = fmt.Errorf("%w: after %s", ErrDiverged, name)
	}
	return came, err
}

func reply(s machine.Step) machine.Reply {
	return machine.Reply{State: s.State, Row: s.Row, Code: s.Code, Value: s.Return}
}

// waiter bounds what one Fire waits for.
type waiter struct {
	b     *Bridge
	ctx   context.Context
	event string
	timer *time.Timer
}

func (x *waiter) stop() {
	if x.timer != nil {
		x.timer.Stop()
	}
}

// turn takes the turn.
func (x *waiter) turn() error {
	select {
	case <-x.b.turn: // at once, whatever the context says
		return nil
	default:
		return x.until(x.b.turn)
	}
}

func (x *waiter) until(c <-chan struct{}) error {
	var bound <-chan time.Time
	if _, ends := x.ctx.Deadline(); !ends {
		if x.timer == nil {
			x.timer = time.NewTimer(x.b.config.Bound)
		}
		bound = x.timer.C
	}
	busy := &machine.BusyError{Where: x.b.m.Name() + " in state " + x.b.State(), Event: x.event}
	select {
	case <-c:
		return nil
	case <-x.ctx.Done():
		busy.Cause = context.Cause(x.ctx)
	case <-bound:
	}
	return busy
}
