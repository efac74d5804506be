package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// Move is one thing that may happen in a state. The same number may mean
// another thing in another state.
type Move uint64

// Finding is what is wrong with a state, or with the step that led to it.
type Finding struct {
	// Kind is the id of the invariant that is broken, or one of
	//
	//	hole        an answer has no target that can be taken
	//	refused     an event that the rules themselves send is refused
	//	intruder    somebody got something who must not
	//	device      the device was misused
	//	verdict     a run succeeded by the device's word, and a kernel of it failed
	//	deadlock    nothing can happen, and an operation is under way
	//	unfinished  nothing can happen, and a run is not finalized
	//	unranked    a step that does not bring the end nearer
	//	runaway     an operation that goes on without a call of the device
	Kind   string
	Detail string
}

// Kinds of what can only be wrong with a state, where nothing changes any more.
const (
	Deadlock   = "deadlock"
	Unfinished = "unfinished"
)

// Error says what is wrong.
func (f *Finding) Error() string { return f.Kind + ": " + f.Detail }

// State is one state of a [System]. It is used by one goroutine at a time.
type State struct {
	sys  *System
	w    *machine.World
	dev  *sim.Device
	cmd  *states.Commands
	host host
	// work is what every run does, behind what the caller's stream does.
	work   uint64
	caller backend.Stream
	// calls are the commands in flight, in the order in which they were issued.
	calls []call

	// Working memory, not part of the state.
	desk     desk
	scratch  *states.Commands
	earlier  *machine.World
	recs     []machine.Record
	check    *invariants.Checker
	recorder machine.Recorder
	choices  []sim.Choice
	naming   naming
	named    machine.Fingerprint
	isNamed  bool
	touched  bool // by the move under way
	offered  []Move
	failing  bool   // the last step of the operation's own instance was a failure
	refusal  string // the first event of the operation that was refused, in this move
	steps    int    // of the move under way
	rowSeen  func(*machine.Record)
}

// call is a command in flight, and the call of the device that it waits for.
type call struct {
	cmd     machine.Command
	row     machine.RowID
	root    machine.Ref
	ticket  sim.Ticket
	answers []sim.Answer
	// refused: an event that its operation sent was refused, and the operation
	// has not said what it makes of that.
	refused bool
	// due: the command's result waits for other instances to take it.
	due bool
	res machine.Result
}

func newState(sys *System, w *machine.World, dev *sim.Device) *State {
	s := &State{sys: sys, w: w, dev: dev, earlier: w.Clone(), check: invariants.For(sys.rules)}
	w.Observe(capture{s})
	s.naming.init(s)
	return s
}

// Clone returns an independent copy, without its recorder.
func (s *State) Clone() *State {
	c := newState(s.sys, s.w.Clone(), s.dev.Clone())
	c.cmd = s.cmd.Clone(&c.desk)
	c.scratch = c.cmd.Clone(&c.desk)
	c.CopyFrom(s)
	return c
}

// CopyFrom makes the state a copy of another one of the same system, and
// reuses the memory that it has. Its recorder stays.
func (s *State) CopyFrom(o *State) {
	s.w.CopyFrom(o.w)
	o.dev.CloneInto(s.dev)
	s.cmd.CopyFrom(o.cmd)
	s.host, s.work, s.caller = o.host, o.work, o.caller
	s.calls = resize(s.calls, len(o.calls))
	for i := range o.calls {
		answers := s.calls[i].answers
		s.calls[i] = o.calls[i]
		s.calls[i].answers = append(answers[:0], o.calls[i].answers...)
	}
	s.named, s.isNamed = o.named, o.isNamed
}

// resize returns a slice of n elements, over the same memory if it fits, with
// what the elements have.
func resize(c []call, n int) []call {
	if n <= cap(c) {
		return c[:n]
	}
	return append(c[:cap(c)], make([]call, n-cap(c))...)
}

// World returns the lane's world, to be looked at.
func (s *State) World() *machine.World { return s.w }

// Device returns the device, to be looked at.
func (s *State) Device() *sim.Device { return s.dev }

// Observe gives the state a recorder for the records of its world.
func (s *State) Observe(r machine.Recorder) { s.recorder = r }

// Seen has f called for every record. It is for counting rows.
func (s *State) Seen(f func(*machine.Record)) { s.rowSeen = f }

// capture keeps the records of a step for those who check it.
type capture struct{ s *State }

// Record implements [machine.Recorder].
func (c capture) Record(r *machine.Record) {
	s := c.s
	s.recs = append(s.recs, *r)
	if s.recorder != nil {
		s.recorder.Record(r)
	}
	if s.rowSeen != nil {
		s.rowSeen(r)
	}
}

// moved says that the state is not what it was.
func (s *State) moved() { s.isNamed, s.touched = false, true }

// Moves appends what may happen next to dst.
func (s *State) Moves(dst []Move) []Move {
	s.choices = s.dev.Choices(s.choices[:0])
	for i, c := range s.choices {
		if c.Kind == sim.ChooseExpire && !s.mayExpire() {
			continue
		}
		dst = append(dst, Move(i))
	}
	return s.hostMoves(dst)
}

// mayExpire reports whether a bounded wait may expire: it is a long time, which
// only something that hangs makes last as often as one likes.
func (s *State) mayExpire() bool { return s.host.expiries > 0 || s.faulted() }

// faulted reports whether a fault has struck.
func (s *State) faulted() bool { return int(s.dev.Budget()) < s.sys.config.Budget }

// active counts the operations that are under way.
func (s *State) active() int {
	n := len(s.calls)
	for i := range s.calls {
		for j := range i {
			if s.calls[j].root == s.calls[i].root {
				n--
				break
			}
		}
	}
next:
	for i := range s.w.Queued() {
		r := s.w.QueuedRoot(i)
		for j := range s.calls {
			if s.calls[j].root == r {
				continue next
			}
		}
		for j := range i {
			if s.w.QueuedRoot(j) == r {
				continue next
			}
		}
		n++
	}
	return n
}

// Take lets a move happen, which is one of those that Moves gave for this state.
func (s *State) Take(m Move) *Finding {
	s.steps = 0
	before, as := s.rank(), s.Fingerprint()
	f := s.take(m)
	if f == nil && !s.isNamed && s.Fingerprint() != as {
		f = s.ended(before)
	}
	return f
}

func (s *State) take(m Move) *Finding {
	if m&hostBit != 0 {
		return s.start(m)
	}
	s.moved()
	s.choices = s.dev.Choices(s.choices[:0])
	c := s.choices[m]
	if c.Kind == sim.ChooseExpire && s.host.expiries > 0 {
		s.host.expiries--
		s.forgive(sim.Ticket(c.Target))
	}
	if err := s.dev.Apply(c); err != nil {
		return &Finding{Kind: "device", Detail: err.Error()}
	}
	for i := 0; i < len(s.calls); i++ {
		a, ended := s.dev.Take(s.calls[i].ticket)
		if !ended || s.calls[i].due {
			continue
		}
		a.Data = slices.Clone(a.Data)
		s.calls[i].answers = append(s.calls[i].answers, a)
		if f := s.perform(i); f != nil {
			return f
		}
		break // one call at a time ends
	}
	if f := s.misuse(); f != nil {
		return f
	}
	return s.overlooked()
}

// simply takes the first choice that is no fault and no expiry.
func (s *State) simply() *Finding {
	for i, c := range s.dev.Choices(nil) {
		if !c.Kind.Fault() && c.Kind != sim.ChooseExpire {
			return s.take(Move(i))
		}
	}
	return &Finding{Kind: Deadlock, Detail: "no call can go on"}
}

// forgive lets the host wait again for what this call waited for in vain.
func (s *State) forgive(t sim.Ticket) {
	for i := range s.calls {
		if s.calls[i].ticket == t {
			s.host.tried[int(s.calls[i].root.Slot)%maxSlots] &^= once[opWait]
		}
	}
}

// misuse tells what the device saw done to it.
func (s *State) misuse() *Finding {
	for _, v := range s.dev.Violations() {
		// A destroy that failed may have taken effect: nobody can tell but by
		// destroying again.
		if v.Kind == sim.DoubleDestroy && s.faulted() {
			continue
		}
		return &Finding{Kind: "device", Detail: s.violation(v)}
	}
	return nil
}

// overlooked tells of a run that succeeded because the device was asked, though
// a kernel of its left a fault on the stream: a synchronize is what shows it
// (F103, F104).
func (s *State) overlooked() *Finding {
	a := &s.sys.at
	for slot := range s.sys.config.Slots {
		if st, _, _ := s.w.State(s.w.Ref(a.outcome.ID(), slot)); st != a.succeeded {
			continue
		}
		h := s.cmd.Handles(slot)
		for _, stream := range [...]backend.Stream{h.Core, h.CPU} {
			if c := s.dev.Fault(stream); c != backend.Success {
				return &Finding{Kind: "verdict", Detail: fmt.Sprintf("the run of slot %d succeeded, and %s has fault %d", slot, s.handleText(uint64(stream)), c)}
			}
		}
	}
	return nil
}

// issue starts an operation that is not refused.
func (s *State) issue(o operation, slot int, args ...uint64) *Finding {
	refused, f := s.issued(o, slot, args)
	if f == nil && refused {
		f = &Finding{Kind: "refused", Detail: o.m.Name() + " " + o.m.EventName(o.ev)}
	}
	return f
}

// issued starts an operation. If it is refused, nothing has changed.
func (s *State) issued(o operation, slot int, args []uint64) (refused bool, f *Finding) {
	s.keep()
	s.failing, s.refusal = false, ""
	st := s.w.Issue(s.w.Ref(o.m.ID(), slot), o.ev, args...)
	if st.Status == machine.StepRefused || st.Status == machine.Deferred {
		return true, s.checked(st)
	}
	s.moved()
	root := st.Ref
	if f := s.went(st); f != nil {
		return false, f
	}
	return false, s.pump(root)
}

// keep remembers the world as it is before a step.
func (s *State) keep() {
	s.earlier.CopyFrom(s.w)
	s.recs = s.recs[:0]
}

// checked holds a step, and the world after it, against the invariants.
func (s *State) checked(st *machine.Step) *Finding {
	if st != nil && st.Status == machine.Hole {
		return &Finding{Kind: "hole", Detail: s.w.RefusalError(st).Error()}
	}
	if found := s.check.Step(s.earlier, s.w, s.recs); len(found) > 0 {
		return &Finding{Kind: found[0].Invariant.ID, Detail: found[0].Detail}
	}
	if found := s.check.World(s.w); len(found) > 0 {
		return &Finding{Kind: found[0].Invariant.ID, Detail: found[0].Detail}
	}
	return nil
}

// went looks at a step, and begins the command that it put into flight.
func (s *State) went(st *machine.Step) *Finding {
	if st.Ref == st.Root {
		s.failing = st.Reason != ""
	}
	fly, cmd, row, root := st.Status == machine.InFlight, st.Command, st.Row, st.Root
	if f := s.checked(st); f != nil || !fly {
		return f
	}
	n := len(s.calls)
	s.calls = resize(s.calls, n+1)
	s.calls[n] = call{cmd: cmd, row: row, root: root, refused: s.refusal != "", answers: s.calls[n].answers[:0]}
	return s.perform(n)
}

// perform carries the command on: to its next call of the device, or to its end.
func (s *State) perform(i int) *Finding {
	c := &s.calls[i]
	s.desk.begin(s.dev, c.answers)
	s.scratch.CopyFrom(s.cmd)
	res := s.run(&c.cmd)
	if s.desk.asked {
		c.ticket = s.dev.Begin(s.desk.op)
		return nil
	}
	s.cmd.CopyFrom(s.scratch)
	c.ticket, c.res, c.due = 0, res, true
	return s.settle(i)
}

// run carries a command out against the desk.
func (s *State) run(cmd *machine.Command) (res machine.Result) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(injected); !ok {
				panic(p)
			}
			res = machine.Result{Outcome: machine.Panicked}
		}
	}()
	return s.scratch.Perform(context.Background(), cmd)
}

// settle feeds a command's result back, and carries its operation on.
func (s *State) settle(i int) *Finding {
	c := &s.calls[i]
	root := c.root
	s.failing, s.refusal = false, ""
	if c.refused {
		s.refusal = "an event that " + s.sys.rules.RefName(root) + " sent"
	}
	s.keep()
	st := s.w.Settle(c.cmd.Ref, c.res)
	if st.Status == machine.Deferred {
		return nil
	}
	answers := c.answers
	copy(s.calls[i:], s.calls[i+1:])
	s.calls = s.calls[:len(s.calls)-1]
	s.calls[:len(s.calls)+1][len(s.calls)].answers = answers
	if f := s.went(st); f != nil {
		return f
	}
	return s.pump(root)
}

// mostSteps bounds the steps of one move: an operation that goes on longer
// without a call of the device goes on for ever.
const mostSteps = 2000

// pump takes the events of an operation until a command is in flight, none is
// left, or the next one has to wait; then those of the operations that waited.
func (s *State) pump(root machine.Ref) *Finding {
	if f := s.drive(root); f != nil {
		return f
	}
	if f := s.over(root); f != nil {
		return f
	}
	for again := true; again && (s.w.Queued() > 0 || len(s.calls) > 0); {
		again = false
		for i := range s.calls {
			if c := &s.calls[i]; c.due {
				n := len(s.calls)
				if f := s.settle(i); f != nil {
					return f
				}
				if again = len(s.calls) != n || !c.due; again {
					break
				}
			}
		}
		for i := 0; i < s.w.Queued() && !again; i++ {
			r := s.w.QueuedRoot(i)
			if r == root || s.flying(r) {
				continue
			}
			seq := s.w.Seq()
			s.failing, s.refusal = false, ""
			if f := s.drive(r); f != nil {
				return f
			}
			if again = s.w.Seq() != seq; again {
				if f := s.over(r); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

func (s *State) flying(root machine.Ref) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.root == root })
}

// drive takes the events of one operation.
func (s *State) drive(root machine.Ref) *Finding {
	for !s.flying(root) {
		if s.steps++; s.steps > mostSteps {
			return &Finding{Kind: "runaway", Detail: s.sys.rules.RefName(root) + " goes on and on"}
		}
		s.keep()
		st := s.w.Next(root)
		if st == nil || st.Status == machine.Deferred {
			return nil
		}
		if st.Status == machine.StepRefused {
			// The operation may notice and fail by its own rules. If it does not, it
			// is a hole.
			if s.refusal == "" {
				s.refusal = s.w.RefusalError(st).Error()
			}
			if f := s.checked(st); f != nil {
				return f
			}
			continue
		}
		if f := s.went(st); f != nil {
			return f
		}
	}
	return nil
}

// over does what a façade does when an operation is over: it frees the slots of
// runs that are finalized, and of tokens that are spent.
func (s *State) over(root machine.Ref) *Finding {
	if s.flying(root) || s.w.HasNext(root) {
		return nil
	}
	a := &s.sys.at
	if s.refusal != "" && !s.failing {
		return &Finding{Kind: "refused", Detail: s.refusal}
	}
	s.refusal = ""
	if slot, o := int(root.Slot)%maxSlots, opOf(a, root); s.failing && s.host.tried[slot]&once[o] != 0 {
		// It may be tried again, out of what is spare.
		if s.host.spare > 0 {
			s.host.tried[slot] &^= once[o]
			s.host.spare--
		} else {
			s.host.gaveUp = true
		}
	}
	if root.Machine == a.recovery.ID() {
		found, dropped := s.cmd.Skipped()
		for range found {
			if f := s.tell(a.skip); f != nil {
				return f
			}
		}
		for range dropped {
			if f := s.tell(a.drop); f != nil {
				return f
			}
		}
	}
	for slot := range s.sys.config.Slots {
		if s.runState(slot) == a.finalized {
			if f := s.leave(s.w.Ref(a.run.ID(), slot)); f != nil {
				return f
			}
		}
		if !s.occupied(slot) {
			s.host.tried[slot] = 0
		}
	}
	if root.Machine == a.token.ID() && s.w.StateName(root) == "spent" {
		return s.leave(root)
	}
	return nil
}

// opOf is the operation that is started once and whose instance this is.
func opOf(a *places, root machine.Ref) op {
	for o := range numOps {
		if once[o] != 0 && a.ops[o].m.ID() == root.Machine {
			return o
		}
	}
	return opNone
}

func (s *State) leave(r machine.Ref) *Finding {
	s.keep()
	st := s.w.Drop(r)
	if st.Status == machine.StepRefused {
		return &Finding{Kind: "refused", Detail: s.w.RefusalError(st).Error()}
	}
	return s.checked(st)
}

// hear passes the device's notices on.
func (s *State) hear() *Finding {
	var buf [8]backend.Notice
	for {
		n, dropped := s.dev.TakeNotices(buf[:])
		for _, x := range buf[:n] {
			if f := s.tell(s.sys.at.notice, uint64(uint16(x.Device)), uint64(uint32(x.Stream))); f != nil {
				return f
			}
		}
		for range dropped {
			if f := s.tell(s.sys.at.drop); f != nil {
				return f
			}
		}
		if n < len(buf) {
			return nil
		}
	}
}

func (s *State) tell(ev machine.EventID, args ...uint64) *Finding {
	return s.issue(operation{s.sys.at.health, ev}, 0, args...)
}

// Final says what is wrong with the state if nothing can happen in it any more.
func (s *State) Final() *Finding {
	if n := s.active(); n > 0 {
		var what []string
		for i := range s.calls {
			c := &s.calls[i]
			what = append(what, s.sys.rules.RefName(c.cmd.Ref)+" waits for "+s.sys.rules.CallName(c.cmd.Call))
		}
		for i := range s.w.Queued() {
			what = append(what, s.sys.rules.RefName(s.w.QueuedRoot(i))+" has to wait")
		}
		return &Finding{Kind: Deadlock, Detail: fmt.Sprint(what)}
	}
	c := &s.sys.config
	if s.faulted() || c.Tokens > 0 || c.Quarantine || c.Close || c.Detach || s.host.gaveUp {
		return nil
	}
	// A borrowed device is its owner's to recover: asking for it closes the lane.
	if c.Borrowed && int(s.host.recoveries) < c.Recoveries {
		return nil
	}
	for slot := range c.Slots {
		if s.runState(slot) != s.sys.at.idle {
			return &Finding{Kind: Unfinished, Detail: fmt.Sprintf("the run of slot %d is %s, with no fault", slot, s.w.StateName(s.w.Ref(s.sys.at.run.ID(), slot)))}
		}
	}
	if s.host.runs > 0 {
		return &Finding{Kind: Unfinished, Detail: fmt.Sprintf("%d runs are not admitted, with no fault", s.host.runs)}
	}
	return nil
}

// errState reports bytes that AppendBinary did not write.
var errState = errors.New("model: not a state of this system")
