package machine

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Performer carries out commands. A panic becomes the outcome [Panicked].
//
// The context marks its origin: firing an event of the same world through it,
// or through one made from it, is [ErrReentrant] at once. The Command is valid
// until Perform returns. The world's lock is not held, so Perform may be called
// for several instances at the same time.
type Performer interface {
	Perform(ctx context.Context, c *Command) Result
}

// PerformerFunc is a function as a [Performer].
type PerformerFunc func(ctx context.Context, c *Command) Result

// Perform calls f.
func (f PerformerFunc) Perform(ctx context.Context, c *Command) Result { return f(ctx, c) }

// DriverConfig sets up a [Driver].
type DriverConfig struct {
	Performer Performer
	// Bound ends the wait for a busy instance when the caller's context has
	// no deadline; 0 means 30 s. It is what keeps a command that fires at
	// its own world past its context from waiting for ever.
	Bound time.Duration
	// Sites records where in the host's code each event was fired from. It
	// costs about a microsecond an event.
	Sites bool
}

// Driver puts a lock and a backend to a [World]: the level hosts use. All
// methods are safe for concurrent use. The lock is not held while a command is
// carried out.
type Driver struct {
	mu     sync.Mutex
	w      *World
	config DriverConfig

	// changed is closed and replaced when something settles while waiting > 0.
	changed chan struct{}
	waiting int
	// pumping lists the roots whose operations some goroutine is carrying on.
	pumping []pumped
	// due holds the answers that nobody waits with any more.
	due     []answer
	cmds    [][]Command // per machine and slot: stable while in flight
	perform PerformerFunc
	flusher Flusher // nil if the recorder is none
	ctx     atomic.Pointer[commandContext]
}

// pumped is a root whose operations pumps callers carry on. taking of them are
// in the middle of an event that was emitted.
type pumped struct {
	root          Ref
	pumps, taking int
}

// answer is a command's answer that an instance in flight holds up: its target
// takes that instance along.
type answer struct {
	ref Ref
	res Result
}

// NewDriver drives w, which nobody else may use from now on.
func NewDriver(w *World, c DriverConfig) (*Driver, error) {
	if c.Performer == nil {
		return nil, errNilPerformer
	}
	if c.Bound == 0 {
		c.Bound = 30 * time.Second
	}
	d := &Driver{w: w, config: c, changed: make(chan struct{}), perform: function(c.Performer)}
	d.flusher, _ = w.config.Recorder.(Flusher)
	for i := range w.rules.machines {
		d.cmds = append(d.cmds, make([]Command, w.capacity(MachineID(i))))
	}
	return d, nil
}

// Reply is what a host operation reports: of the transition of its own instance.
type Reply struct {
	State StateID
	Row   RowID
	// Code and Value are the target's Code and Return.
	Code  int32
	Value uint64
}

// Fire lets an event happen to an instance and carries the host operation it
// starts on to its end: the row's command, and every event that its steps emit.
//
// Errors: [*RefusalError] if the event is refused, and nothing changed;
// [*FailureError] if the instance's own last target names a failure;
// [ErrReentrant]; [*BusyError] if the instance, or one that an emitted event is
// for, stays busy; [*HoleError] if the rules have no way on: an answer, or an event that the
// operation emitted, is not taken, and the operation does not fail by its own rules.
func (d *Driver) Fire(ctx context.Context, ref Ref, ev EventID, args ...uint64) (Reply, error) {
	var site uintptr
	if d.config.Sites {
		site = callSite()
	}
	cc := d.ctx.Load()
	if cc == nil || cc.Context != ctx {
		if isOrigin(ctx, d) {
			return Reply{}, fmt.Errorf("%s: %w", d.w.rules.eventName(ref, ev), ErrReentrant)
		}
		cc = nil
	}
	var p pump // set field by field: a literal would be made aside and copied
	p.d, p.ctx, p.cc, p.root = d, ctx, cc, ref
	d.mu.Lock()
	defer p.end()
	if d.w.Queued() > 0 && d.w.HasNext(ref) && d.pumped(ref) == nil {
		// An earlier caller gave up half-way: its operation goes first.
		p.begin()
		if err := p.run(); err != nil {
			return p.reply, err
		}
		p.forget()
	}
	var s *Step
	for {
		d.w.site = site
		s = d.w.Issue(ref, ev, args...)
		d.w.site = 0
		if s.Status != Deferred {
			break
		}
		if err := p.wait(s); err != nil {
			return Reply{}, err
		}
	}
	if s.Status == StepRefused {
		return Reply{State: s.State, Row: s.Row}, d.w.refusalError(s)
	}
	p.begin()
	if err := p.carryOut(s); err != nil {
		return p.reply, err
	}
	return p.reply, p.run()
}

// Resume carries on an operation that was left half-way by a caller whose
// wait ended. It does nothing if there is none.
func (d *Driver) Resume(ctx context.Context, root Ref) (Reply, error) {
	if isOrigin(ctx, d) {
		return Reply{}, fmt.Errorf("resume %s: %w", d.w.rules.RefName(root), ErrReentrant)
	}
	p := pump{d: d, ctx: ctx, root: root}
	d.mu.Lock()
	defer p.end()
	if d.pumped(root) != nil {
		return Reply{}, nil
	}
	p.begin()
	err := p.run()
	return p.reply, err
}

// Drop ends the occupancy of an instance in a terminal state; see [World.Drop].
func (d *Driver) Drop(ref Ref) error {
	d.mu.Lock()
	defer d.unlock()
	s := d.w.Drop(ref)
	if s.Status == StepRefused {
		return d.w.refusalError(s)
	}
	d.wake()
	return nil
}

// unlock ends a host operation.
func (d *Driver) unlock() {
	d.mu.Unlock()
	if d.flusher != nil {
		d.flusher.Flush()
	}
}

// pumped returns the entry of a root, or nil if nobody carries it on.
func (d *Driver) pumped(root Ref) *pumped {
	for i := range d.pumping {
		if d.pumping[i].root == root {
			return &d.pumping[i]
		}
	}
	return nil
}

// pump carries one host operation on. Its methods are called with the lock held.
type pump struct {
	d     *Driver
	ctx   context.Context
	cc    *commandContext // ctx marked; nil until a command needs it
	root  Ref
	begun bool
	// taking: in the middle of an event that was emitted.
	taking bool
	reply  Reply
	fail   *FailureError
	// cause is the first failure or refusal of another instance on the way.
	cause error
	hole  *HoleError
	timer *time.Timer
}

// begin says that this pump carries its root's operation on.
func (p *pump) begin() {
	if p.begun {
		return
	}
	p.begun = true
	if x := p.d.pumped(p.root); x != nil {
		x.pumps++
		return
	}
	p.d.pumping = append(p.d.pumping, pumped{root: p.root, pumps: 1})
}

// take says whether this pump is in the middle of an emitted event.
func (p *pump) take(taking bool) {
	if p.taking != taking {
		p.taking = taking
		if x := p.d.pumped(p.root); taking {
			x.taking++
		} else {
			x.taking--
		}
	}
}

// othersAt reports whether events of the operation wait, or are being taken,
// while another caller has the turn.
func (p *pump) othersAt() bool {
	return p.d.w.HasNext(p.root) || p.d.pumped(p.root).taking > 0
}

// end ends it, and the host operation with it.
func (p *pump) end() {
	d := p.d
	if p.begun {
		if p.taking {
			p.take(false)
			d.wake()
		}
		if x := d.pumped(p.root); x.pumps > 1 {
			x.pumps--
		} else {
			last := len(d.pumping) - 1
			*x = d.pumping[last]
			d.pumping = d.pumping[:last]
		}
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	d.unlock()
}

// forget makes the pump ready for another operation of its root.
func (p *pump) forget() {
	p.reply, p.fail, p.cause, p.hole = Reply{}, nil, nil, nil
}

// run takes the operation's queued events until there are none.
func (p *pump) run() error {
	d := p.d
	for {
		s := d.w.Next(p.root)
		if s == nil {
			if p.othersAt() {
				if err := p.waitFor(p.root, "the rest of its operation"); err != nil {
					return err
				}
				continue
			}
			switch {
			case p.fail != nil:
				p.fail.Cause = p.cause
				return p.fail
			case p.hole != nil:
				return p.hole
			}
			return nil
		}
		switch s.Status {
		case Deferred:
			if err := p.wait(s); err != nil {
				return err
			}
		case StepRefused:
			// The operation may notice and fail by its own rules, with this as
			// the cause. If it does not, it is a hole.
			r := d.w.refusalError(s)
			if p.cause == nil {
				p.cause = r
			}
			if p.hole == nil {
				p.hole = &HoleError{Refusal: r}
			}
		default:
			p.take(true)
			if err := p.carryOut(s); err != nil {
				return err
			}
		}
	}
}

// carryOut performs the command of a step, if it has one, and settles it.
func (p *pump) carryOut(s *Step) error {
	d := p.d
	var caught any
	if s.Status == InFlight {
		ref := s.Ref
		c := &d.cmds[ref.Machine][ref.Slot]
		// (Field by field: a copy of the whole would wait for the words just written.)
		c.Ref, c.Call, c.N, c.Seq = ref, s.Command.Call, s.Command.N, s.Command.Seq
		copy(c.Args[:c.N], s.Command.Args[:c.N])
		clear(c.Args[c.N:])
		var res Result
		res, caught = p.perform(c)
		for {
			s = d.w.Settle(ref, res)
			if s.Status != Deferred {
				break
			}
			if err := p.wait(s); err != nil {
				d.due = append(d.due, answer{ref, res})
				return err
			}
		}
		if s.Status != Accepted {
			return &HoleError{Refusal: d.w.refusalError(s), Settling: true}
		}
	}
	p.note(s, caught)
	p.take(false)
	d.wake()
	return nil
}

// note keeps what the operation's own instance reports.
func (p *pump) note(s *Step, caught any) {
	if s.Ref != p.root {
		if s.Reason != "" && p.cause == nil {
			p.cause = &FailureError{rules: p.d.w.rules, Ref: s.Ref, State: s.State, Event: s.Event, Reason: s.Reason, Code: s.Code, Panic: caught, row: s.Row}
		}
		return
	}
	p.reply = Reply{State: s.State, Row: s.Row, Code: s.Code, Value: s.Return}
	p.fail = nil
	if s.Reason != "" {
		p.fail = &FailureError{rules: p.d.w.rules, Ref: s.Ref, State: s.State, Event: s.Event, Reason: s.Reason, Code: s.Code, Panic: caught, row: s.Row}
	}
}

// perform carries out a command with the lock released.
func (p *pump) perform(c *Command) (res Result, caught any) {
	d := p.d
	if p.cc == nil {
		p.cc = marked(p.ctx, d, &d.ctx)
	}
	done := false
	d.mu.Unlock()
	defer func() {
		if done {
			d.mu.Lock()
			return
		}
		caught = recover()
		res = Result{Outcome: Panicked}
		d.mu.Lock()
		if caught == nil {
			// runtime.Goexit: nobody comes back to settle.
			d.due = append(d.due, answer{c.Ref, res})
			d.wake()
		}
	}()
	if d.flusher != nil {
		d.flusher.Flush() // a crash from here on finds the issue on record
	}
	res = d.perform(p.cc, c).checked()
	done = true
	return res, nil
}

// wait lets go of the lock until something settles.
func (p *pump) wait(s *Step) error {
	return p.waitFor(s.Ref, p.d.w.rules.eventName(s.Ref, s.Event))
}

func (p *pump) waitFor(ref Ref, what string) error {
	d := p.d
	where := d.w.rules.RefName(ref) + " in state " + d.w.StateName(ref)
	changed := d.changed
	d.waiting++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.waiting--
	}()
	var bound <-chan time.Time
	if _, ends := p.ctx.Deadline(); !ends {
		if p.timer == nil {
			p.timer = time.NewTimer(d.config.Bound)
		}
		bound = p.timer.C
	}
	select {
	case <-changed:
		return nil
	case <-p.ctx.Done():
		return &BusyError{Where: where, Event: what, Cause: context.Cause(p.ctx)}
	case <-bound:
		return &BusyError{Where: where, Event: what}
	}
}

// wake settles the answers that are due, if they can be, and lets those who
// wait look again. The lock is held.
func (d *Driver) wake() {
	for i := 0; i < len(d.due); {
		if d.w.Settle(d.due[i].ref, d.due[i].res).Status == Deferred {
			i++
			continue
		}
		d.due = slices.Delete(d.due, i, i+1)
		i = 0 // it may have held up any of the others
	}
	if d.waiting > 0 {
		close(d.changed)
		d.changed = make(chan struct{})
	}
}

// View calls f with the world, under the lock. f must not keep w, change it,
// or call the driver.
func (d *Driver) View(f func(w *World)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d.w)
}

// State returns the instance's control state and whether a command is in
// flight; ok is false for a Ref that is stale or names nothing.
func (d *Driver) State(ref Ref) (s StateID, inFlight, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.w.State(ref)
}

// Fact returns the value of a fact; ok is false for a Ref that is stale or
// names nothing.
func (d *Driver) Fact(ref Ref, f FactID) (v uint64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.w.Fact(ref, f)
}

// Can reports whether the event would be accepted at this instant.
func (d *Driver) Can(ref Ref, ev EventID, args ...uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.w.Can(ref, ev, args...)
}

// Available lists the events that the instance's state accepts by some row.
func (d *Driver) Available(ref Ref) []EventID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.w.Available(ref)
}

// Ref returns the current occupant of a slot; see [World.Ref].
func (d *Driver) Ref(m MachineID, slot int) Ref {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.w.Ref(m, slot)
}

// Available lists the events that the instance's state accepts by some row.
func (w *World) Available(ref Ref) []EventID {
	if !w.current(ref) {
		return nil
	}
	h := w.header(ref.Machine, ref.Slot)
	during := NoRowID
	if h.flight != 0 {
		during = RowID(h.flight - 1)
	}
	return w.rules.machines[ref.Machine].Accepts(h.state, during)
}

func (r *Rules) eventName(ref Ref, ev EventID) string {
	if int(ref.Machine) >= len(r.machines) {
		return "(no machine)"
	}
	return r.machines[ref.Machine].EventName(ev)
}

// commandContext marks a context with the driver or instance, a pointer, whose
// command it was made for.
type commandContext struct {
	context.Context
	owner any
}

// Value answers for the owner and asks the parent for the rest.
func (c *commandContext) Value(key any) any {
	if key == c.owner {
		return c
	}
	return c.Context.Value(key)
}

// isOrigin reports whether ctx comes from a command of owner.
func isOrigin(ctx context.Context, owner any) bool {
	return ctx != context.Background() && ctx.Value(owner) != nil
}

// marked returns ctx marked as coming from a command of owner. The last one is
// kept, since hosts fire with the same context again and again: to find it kept
// also says that ctx is not marked itself.
func marked(ctx context.Context, owner any, kept *atomic.Pointer[commandContext]) *commandContext {
	cc := &commandContext{Context: ctx, owner: owner}
	if reflect.ValueOf(ctx).Comparable() {
		kept.Store(cc)
	}
	return cc
}

// function returns a performer as a function. (The method value of a
// PerformerFunc would cost it one more call.)
func function(p Performer) PerformerFunc {
	if f, ok := p.(PerformerFunc); ok {
		return f
	}
	return p.Perform
}

// facades are the packages whose functions stand between a host and its Fire.
var facades = []string{"github.com/runfence/runfence/machine.", "github.com/runfence/runfence/states."}

// callSite returns the program counter of the host's call: the innermost one
// outside this package and the façades over it. It is a return address, as
// [runtime.Callers] gives it; 0 if there is none.
func callSite() uintptr {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		ours := func(pkg string) bool { return strings.HasPrefix(f.Function, pkg) }
		if f.PC != 0 && !slices.ContainsFunc(facades, ours) {
			return f.PC + 1
		}
		if !more {
			return 0
		}
	}
}
