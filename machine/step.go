package machine

import (
	"math/bits"
	"slices"
)

// Status says how a step ended.
type Status uint8

const (
	// Accepted: a row was taken and nothing is outstanding.
	Accepted Status = iota
	// InFlight: a row was chosen; its command is in [Step.Command] and its
	// answer is due at [World.Settle].
	InFlight
	// StepRefused: nothing changed. [Step.Refusal] says why.
	StepRefused
	// Deferred: nothing changed; the event must wait for the instance to
	// settle, or to leave a state that defers it.
	Deferred
	// Hole: the answer's target takes along an instance that refuses, or leaves
	// the range of a fact. Nothing changed and the command is still in flight:
	// the rules are wrong.
	Hole
)

var statusNames = [...]string{"accepted", "in flight", "refused", "deferred", "hole in the rules"}

// String names the status.
func (s Status) String() string { return statusNames[s] }

// Command is a call for the backend.
type Command struct {
	// Ref is the instance whose command it is.
	Ref  Ref
	Call CallID
	// Args are as the row computed them when it was chosen.
	Args [MaxArgs]uint64
	N    int
	// Seq of the issue.
	Seq uint64
}

// Step is the account of one step. The pointer that [World.Issue],
// [World.Settle], [World.Next] and [World.Drop] return is valid until the next
// of them, or of [World.Can].
type Step struct {
	Status  Status
	Ref     Ref
	Root    Ref
	Event   EventID
	Row     RowID
	Target  uint8
	From    StateID
	State   StateID // after the step
	Command Command
	Seq     uint64

	// Code, Return and Reason are what the target reports.
	Code   int32
	Return uint64
	Reason Reason

	Refusal RefusalKind
	// Said has a bit for each row of the state and event whose guard said no,
	// in order.
	Said uint64
	// By is the instance that refused, with its state, event, row and reason
	// why, if the refusal came from one taken along.
	By       Ref
	ByState  StateID
	ByEvent  EventID
	ByRow    RowID
	ByKind   RefusalKind
	BySaid   uint64
	ByDuring RowID
	// Fact is the fact that would leave its range, or the argument that is
	// wrong: of By if that is who refused.
	Fact int
	// During is the row in flight when the event came; NoRowID if none.
	During RowID
}

// Issue fires an event at an instance from outside. The row is chosen and, if
// it has no command, taken whole. If it has one, the instance is in flight and
// the answer must be given to [World.Settle].
func (w *World) Issue(ref Ref, ev EventID, args ...uint64) *Step {
	if w.rules.opaque {
		w.midstep = true
		defer w.unwind(w.save())
	}
	w.issue(ref, ev, args, origin{root: ref})
	w.commit()
	return &w.step
}

// unwind restores the world when an opaque function panics in the middle of a
// step, and lets the panic go on.
func (w *World) unwind(sp savepoint) {
	if w.midstep {
		w.restore(sp)
		w.depth, w.taking, w.quiet, w.midstep = 0, 0, false, false
	}
}

// Next takes the next waiting event of the root's operation. What that starts
// comes before what was waiting already. It returns nil
// if there is none, or while a command of the operation is in flight: an
// operation is one thread of events. A deferred event stays at the head.
func (w *World) Next(root Ref) *Step {
	if w.rules.opaque {
		w.midstep = true
		defer w.unwind(w.save())
	}
	p := root.Pack()
	n := w.Queued()
	for i := range n {
		e := w.entry(i)
		if w.words[e+entryRoot] != p {
			continue
		}
		if w.flying > 0 && w.operating(p) {
			return nil
		}
		ref := UnpackRef(w.words[e+entryRef])
		ev, nargs := EventID(w.words[e+entryEvent]), int(w.words[e+entryEvent]>>16)
		args := w.frames[0].args[:nargs]
		copy(args, w.words[e+entryArgs:e+entryArgs+nargs])
		parent := w.words[e+entryParent]
		w.taking = 1
		w.issue(ref, ev, args, origin{root: root, via: ViaQueue, parent: parent})
		w.taking = 0
		if w.step.Status != Deferred {
			w.dequeue(i)
			w.ahead(n-1, root)
		}
		w.commit()
		return &w.step
	}
	return nil
}

// operating reports whether a command of the root's operation is in flight.
func (w *World) operating(root uint64) bool {
	for i := range w.rules.machines {
		p := &w.pools[i]
		for at, n := p.at, p.capacity; n > 0; at, n = at+p.stride, n-1 {
			if w.words[at+atRoot] == root {
				return true
			}
		}
	}
	return false
}

// Settle gives the answer to the command that the instance has in flight.
func (w *World) Settle(ref Ref, res Result) *Step {
	if w.rules.opaque {
		w.midstep = true
		defer w.unwind(w.save())
	}
	waiting := w.Queued()
	w.settle(ref, res)
	w.ahead(waiting, w.step.Root)
	w.commit()
	return &w.step
}

// Drop ends the occupancy of an instance in a terminal state: its slot starts
// anew in the initial state under the next generation, and the old Ref is stale.
func (w *World) Drop(ref Ref) *Step {
	s := w.begin(ref, 0, ref)
	switch {
	case !w.exists(ref):
		s.Refusal = BadRef
	case !w.current(ref):
		s.Refusal = StaleRef
	default:
		h := w.header(ref.Machine, ref.Slot)
		s.From, s.State = h.state, h.state
		if st := &w.rules.machines[ref.Machine].def.States[h.state]; !st.Terminal || st.Kept {
			s.Refusal = NotTerminal
		}
	}
	if s.Refusal != NotRefused {
		s.Status = StepRefused
		return s
	}
	rec := w.record(Dropped, ref, nil, nil, origin{root: ref})
	b := w.base(ref.Machine, ref.Slot)
	clear(w.words[b : b+w.rules.machines[ref.Machine].size])
	w.words[b] = header{gen: ref.Gen + 1}.pack()
	s.State, s.Seq = 0, w.seq
	if rec >= 0 {
		w.records[rec].To = 0
	}
	w.commit()
	return s
}

// Can reports whether the event would be accepted now, without any effect:
// the step is rehearsed and undone. A deferred event would not.
func (w *World) Can(ref Ref, ev EventID, args ...uint64) bool {
	if w.rules.opaque {
		w.midstep = true
		defer w.unwind(w.save())
	}
	sp := w.save()
	w.quiet = true
	w.issue(ref, ev, args, origin{root: ref})
	ok := w.step.Status == Accepted || w.step.Status == InFlight
	w.restore(sp)
	w.quiet, w.midstep = false, false
	return ok
}

// begin clears the account of the last step for one of ref.
func (w *World) begin(ref Ref, ev EventID, root Ref) *Step {
	s := &w.step
	switch {
	case s.ByRow != NoRowID || s.Status > InFlight:
		*s = Step{ByRow: NoRowID}
	case s.Status == InFlight:
		s.Command = Command{}
	}
	// A step that was taken has left alone what says who refused and why, which
	// is most of it.
	s.Status, s.Ref, s.Root, s.Event, s.Row, s.Target, s.From, s.State = Accepted, ref, root, ev, NoRowID, 0, 0, 0
	s.Seq, s.Code, s.Return, s.Said, s.BySaid, s.During, s.ByDuring = 0, 0, 0, 0, 0, NoRowID, NoRowID
	if s.Reason != "" {
		s.Reason = ""
	}
	return s
}

// savepoint is what a step must restore to have changed nothing.
type savepoint struct {
	undo, records int
	queued, seq   uint64
	flying        int
}

func (w *World) save() (p savepoint) {
	w.saveTo(&p)
	return p
}

// saveTo is save without a copy, which would wait for the words just written.
func (w *World) saveTo(p *savepoint) {
	p.undo, p.records, p.queued, p.seq, p.flying = len(w.undo), len(w.records), w.words[w.queueAt], w.seq, w.flying
}

// undoable reports whether a step on r may have to be undone after its first change.
func (w *World) undoable(m *Machine, r *row) bool {
	return !r.plain || m.careful || w.depth > 0 || w.quiet
}

func (w *World) restore(p savepoint) {
	for len(w.undo) > p.undo {
		n := int(w.undo[len(w.undo)-1])
		head := len(w.undo) - 1 - n - 1
		at := int(w.undo[head])
		copy(w.words[at:at+n], w.undo[head+1:head+1+n])
		w.undo = w.undo[:head]
	}
	w.records = w.records[:p.records]
	w.words[w.queueAt] = p.queued
	w.seq = p.seq
	w.flying = p.flying
}

// touch saves words before the first change of a step: offset, words, length,
// so that the list reads backwards.
func (w *World) touch(at, n int) {
	i := len(w.undo)
	if i+n+2 > cap(w.undo) {
		w.undo = slices.Grow(w.undo, n+2)
	}
	w.undo = w.undo[:i+n+2]
	w.undo[i], w.undo[i+n+1] = uint64(at), uint64(n)
	copy(w.undo[i+1:i+n+1], w.words[at:at+n])
}

// commit hands the step's records on and forgets how to undo it.
func (w *World) commit() {
	w.undo, w.midstep = w.undo[:0], false
	if len(w.records) > 0 {
		for i := range w.records {
			w.config.Recorder.Record(&w.records[i])
		}
		w.records = w.records[:0]
	}
}

// origin says where an event came from.
type origin struct {
	root   Ref
	via    Via
	fits   bool // the arguments are known to be of their types
	parent uint64
}

// issue chooses a row and takes it as far as it goes without an answer. The
// outermost call (depth 0) fills w.step; a joint call adds only why it refused.
func (w *World) issue(ref Ref, ev EventID, args []uint64, o origin) bool {
	s := &w.step
	outer := w.depth == 0
	if outer {
		s = w.begin(ref, ev, o.root)
	}
	f := &w.frames[w.depth]
	f.said, f.during = 0, NoRowID
	if !w.exists(ref) {
		return w.refuse(BadRef, ref, ev, nil, args, o)
	}
	m := w.rules.machines[ref.Machine]
	b := w.base(ref.Machine, ref.Slot)
	h := unpackHeader(w.words[b])
	if h.gen != ref.Gen {
		return w.refuse(StaleRef, ref, ev, nil, args, o)
	}
	for i := range w.depth {
		if w.frames[i].self == ref {
			// It is in the middle of this very step: it has no state to refuse in.
			return w.refuse(TakenTwice, ref, ev, nil, args, o)
		}
	}
	if outer {
		s.From, s.State = h.state, h.state
	}
	if !o.fits {
		if bad := m.badArgument(ev, args); bad >= 0 {
			s.Fact = bad
			return w.refuse(BadArgument, ref, ev, nil, args, o)
		}
	}
	var c *cell
	if h.flight == 0 {
		c = &m.cells[int(h.state)*len(m.argTy)+int(ev)]
	} else {
		flying := &m.rows[h.flight-1]
		f.during = flying.idx
		if outer {
			s.During = flying.idx
		}
		if flying.inFlight == nil || len(flying.inFlight[ev].rows) == 0 {
			// A joint step cannot wait by itself: the whole step waits.
			s.Status = Deferred
			return false
		}
		c = &flying.inFlight[ev]
	}
	nf := len(m.factTy)
	f.facts, f.base[fromSelf], f.base[fromBeside] = w.words[b+atFacts:b+atFacts+nf:b+atFacts+nf], b, b
	if len(args) > 0 && &args[0] != &f.args[0] {
		copy(f.args[:], args)
	}
	f.state, f.self, f.outOfRange, f.seen = uint64(h.state), ref, 0, 0
	if w.recording() {
		c.look(f, 1<<len(c.views)-1)
	}
	var r *row
	nth := c.which.first(f)
	f.said = 1<<nth - 1
	if nth < len(c.rows) {
		r = c.rows[nth]
	}
	if outer {
		s.Said = f.said
	}
	switch {
	case r == nil:
		return w.refuse(NoRow, ref, ev, nil, args, o)
	case r.kind == refusal:
		return w.refuse(ByRow, ref, ev, r, args, o)
	case r.kind == deferral:
		s.Status = Deferred
		return false
	}
	c.look(f, r.views)

	var sp savepoint
	if w.undoable(m, r) {
		w.saveTo(&sp)
		if w.quiet {
			w.touch(b, m.size)
		} else {
			w.touch(b, atFacts+nf) // what a command in flight keeps is written once nothing can fail
		}
		if r.mints {
			w.touch(0, len(w.rules.sorts))
		}
	}
	if !r.hasCall {
		rec := w.record(Stepped, ref, f, r, o)
		t := r.pick(OK, f)
		c.look(f, t.views)
		if !w.apply(r, t, f, w.seq, o.root) {
			w.restore(sp)
			return w.untaken(ref, ev, r, args, o)
		}
		if rec >= 0 {
			w.arrive(rec, t)
		}
		return true
	}

	rec := w.record(Issued, ref, f, r, o)
	seq := w.seq
	change(r.before, f)
	if rec >= 0 {
		w.identify(rec)
	}
	if f.outOfRange != 0 {
		s.Refusal, s.Fact = OutOfRange, f.outOfRange-1
	}
	if s.Refusal != NotRefused || len(r.with) > 0 && !w.joint(r.with, f, seq, o.root) {
		w.restore(sp)
		return w.untaken(ref, ev, r, args, o)
	}
	s.Status, s.Row, s.Seq = InFlight, r.idx, seq
	cmd := &s.Command
	cmd.Ref, cmd.Call, cmd.N, cmd.Seq = ref, r.call, len(r.callArgs), seq
	if len(args) > 0 {
		copy(w.words[b+atFacts+nf:], args)
	}
	at := b + atFacts + nf + m.maxArgs
	for i := range r.callArgs {
		cmd.Args[i] = r.callArgs[i].of(f)
		w.words[at+i] = cmd.Args[i]
	}
	w.words[b+atIssue], w.words[b+atRoot] = seq, o.root.Pack()
	w.words[b] = header{state: h.state, flight: uint16(r.idx) + 1, gen: h.gen}.pack()
	w.flying++
	if rec >= 0 {
		p := &w.records[rec]
		p.Call, p.NCall, p.CallArgs = r.call, uint8(cmd.N), cmd.Args
		p.To = p.From
	}
	return true
}

// recording reports whether the step's records are kept, and with them every
// view that the rows of its state and event look at.
func (w *World) recording() bool { return w.config.Recorder != nil && !w.quiet }

// look evaluates the views that are wanted and were not looked at: those that
// something reads after the step's first change.
func (c *cell) look(f *frame, want uint16) {
	if left := want &^ f.seen; left != 0 {
		c.see(f, left)
	}
}

func (c *cell) see(f *frame, left uint16) {
	for ; left != 0; left &= left - 1 {
		i := bits.TrailingZeros16(left)
		f.see(i, c.views[i])
	}
}

// settle takes the answer to a command in flight.
func (w *World) settle(ref Ref, res Result) bool {
	s := w.begin(ref, 0, ref)
	if !w.exists(ref) {
		s.Status, s.Refusal = StepRefused, BadRef
		return false
	}
	m := w.rules.machines[ref.Machine]
	b := w.base(ref.Machine, ref.Slot)
	h := unpackHeader(w.words[b])
	if h.gen != ref.Gen {
		s.Status, s.Refusal = StepRefused, StaleRef
		return false
	}
	s.From, s.State = h.state, h.state
	if h.flight == 0 || int(res.Outcome) >= NumOutcomes {
		s.Status, s.Refusal = StepRefused, NotInFlight
		return false
	}
	r := &m.rows[h.flight-1]
	nf := len(m.factTy)
	f := &w.frames[0]
	f.facts, f.base[fromSelf], f.base[fromBeside] = w.words[b+atFacts:b+atFacts+nf:b+atFacts+nf], b, b
	if n := len(m.argTy[r.ev]); n > 0 {
		copy(f.args[:], w.words[b+atFacts+nf:b+atFacts+nf+n])
	}
	f.state, f.self, f.outOfRange, f.seen, f.res = uint64(h.state), ref, 0, 0, res
	if w.recording() {
		r.cell.look(f, 1<<len(r.cell.views)-1)
	}
	t := r.pick(res.Outcome, f)
	r.cell.look(f, t.views)
	o := origin{root: UnpackRef(w.words[b+atRoot]), via: ViaHost, parent: w.words[b+atIssue]}
	s.Event, s.Row, s.Root = r.ev, r.idx, o.root
	var sp savepoint
	if w.undoable(m, r) {
		w.saveTo(&sp)
		w.touch(b, atFacts+nf)
		if r.mints {
			w.touch(0, len(w.rules.sorts))
		}
	}
	rec := w.record(Settled, ref, f, r, o)
	w.words[b+atIssue], w.words[b+atRoot] = 0, 0
	w.words[b] = header{state: h.state, gen: h.gen}.pack()
	w.flying--
	if !w.apply(r, t, f, w.seq, o.root) {
		w.restore(sp)
		s.Row = r.idx
		if s.Status == Deferred {
			return false
		}
		s.Status = Hole
		if rec := w.record(Holed, ref, f, r, o); rec >= 0 {
			w.blame(rec)
			w.records[rec].Result = res
		}
		return false
	}
	if m.maxArgs+m.maxCall > 0 {
		clear(w.words[b+atFacts+nf : b+m.size])
	}
	if rec >= 0 {
		w.records[rec].Result = res
		w.arrive(rec, t)
	}
	return true
}

// pick returns the target that the row has for an answer.
func (r *row) pick(o Outcome, f *frame) *target {
	if t := r.only[o]; t != nil {
		return t
	}
	c := r.targets[o]
	return c.targets[c.which.first(f)]
}

// apply makes a target's changes. If it returns false it has said why in
// w.step, and the caller restores.
func (w *World) apply(r *row, t *target, f *frame, seq uint64, root Ref) bool {
	s := &w.step
	change(t.do, f)
	if t.doFunc != nil {
		t.doFunc(f.facts)
		for i, ty := range w.rules.machines[f.self.Machine].factTy {
			if !ty.check(f.facts[i]) {
				f.outOfRange = i + 1
			}
		}
	}
	if f.outOfRange != 0 {
		s.Refusal, s.Fact = OutOfRange, f.outOfRange-1
		return false
	}
	b := f.base[fromSelf]
	w.words[b] = w.words[b]&^stateBits | uint64(t.to)
	if len(t.with) > 0 && !w.joint(t.with, f, seq, root) {
		return false
	}
	for i := range t.emit {
		if !w.enqueue(&t.emit[i], f, seq, root) {
			return false
		}
	}
	if w.depth == 0 {
		s.Status, s.Row, s.Target, s.State, s.Seq, s.Reason = Accepted, r.idx, t.idx, t.to, seq, t.reason
		if t.code.kind != noValue {
			s.Code = int32(uint32(t.code.of(f)))
		}
		if t.ret.kind != noValue {
			s.Return = t.ret.of(f)
		}
	}
	return true
}

// addressee finds the instance that a send is for.
func (w *World) addressee(x *send, f *frame) (Ref, bool) {
	switch {
	case x.self:
		return f.self, true
	case x.byRef:
		v := f.facts[x.ref]
		if v == 0 {
			return Ref{}, false
		}
		return UnpackRef(v), true
	}
	slot := f.self.Slot
	if w.rules.poolOf[x.peer] < 0 {
		slot = 0
	}
	return Ref{Machine: x.peer, Slot: slot, Gen: w.header(x.peer, slot).gen}, true
}

// joint lets other instances take events in the same atomic step.
func (w *World) joint(sends []send, f *frame, seq uint64, root Ref) bool {
	for i := range sends {
		x := &sends[i]
		to, ok := w.addressee(x, f)
		if !ok {
			w.step.Refusal = BadRef
			return false
		}
		w.depth++
		args := w.frames[w.depth].args[:len(x.args)]
		for j := range x.args {
			args[j] = x.args[j].of(f)
		}
		ok = w.issue(to, x.ev, args, origin{root: root, via: ViaJoint, fits: x.fits, parent: seq})
		w.depth--
		if !ok {
			return false
		}
	}
	return true
}

func (w *World) enqueue(x *send, f *frame, seq uint64, root Ref) bool {
	to, ok := w.addressee(x, f)
	if !ok {
		w.step.Refusal = BadRef
		return false
	}
	n := w.Queued()
	if n == w.queueCap+w.taking {
		w.step.Refusal = QueueFull
		return false
	}
	e := w.words[w.entry(n) : w.entry(n)+entryWords]
	clear(e)
	e[entryRoot], e[entryRef], e[entryParent] = root.Pack(), to.Pack(), seq
	e[entryEvent] = uint64(x.ev) | uint64(len(x.args))<<16
	for j := range x.args {
		e[entryArgs+j] = x.args[j].of(f)
	}
	w.words[w.queueAt]++
	return true
}

// ahead puts the events that a step emitted, those from position n on, before
// the ones of its operation that were waiting already: what a step of an
// operation starts is done before the operation goes on.
func (w *World) ahead(n int, root Ref) {
	if w.Queued() == n {
		return
	}
	p := root.Pack()
	for i := range n {
		if w.words[w.entry(i)+entryRoot] != p {
			continue
		}
		for ; n < w.Queued(); i, n = i+1, n+1 {
			var e [entryWords]uint64
			copy(e[:], w.words[w.entry(n):w.entry(n+1)])
			copy(w.words[w.entry(i+1):w.entry(n+1)], w.words[w.entry(i):w.entry(n)])
			copy(w.words[w.entry(i):w.entry(i+1)], e[:])
		}
		return
	}
}

func (w *World) dequeue(i int) {
	n := w.Queued()
	copy(w.words[w.entry(i):w.entry(n-1)], w.words[w.entry(i+1):w.entry(n)])
	clear(w.words[w.entry(n-1):w.entry(n)])
	w.words[w.queueAt]--
}

// refuse says no, for an instance that is as it was. It returns false.
func (w *World) refuse(k RefusalKind, ref Ref, ev EventID, r *row, args []uint64, o origin) bool {
	s := &w.step
	if w.depth > 0 {
		s.Refusal, s.ByKind = ByJoint, k
		s.By, s.ByEvent = ref, ev
		s.BySaid, s.ByDuring = w.frames[w.depth].said, w.frames[w.depth].during
		if w.current(ref) {
			s.ByState = w.header(ref.Machine, ref.Slot).state
		}
		if r != nil {
			s.ByRow, s.Reason = r.idx, r.reason
		}
		return false
	}
	s.Refusal = k
	if r != nil {
		s.Row, s.Reason = r.idx, r.reason
	}
	return w.untaken(ref, ev, r, args, o)
}

// untaken ends a step that changed nothing: it waits, or it is refused and on record.
func (w *World) untaken(ref Ref, ev EventID, r *row, args []uint64, o origin) bool {
	s := &w.step
	if s.Status == Deferred {
		return false
	}
	if w.depth > 0 {
		if s.Refusal != ByJoint {
			// An instance taken along could not keep its own rules.
			s.By, s.ByEvent, s.ByState, s.ByRow = ref, ev, w.header(ref.Machine, ref.Slot).state, r.idx
			s.BySaid, s.ByDuring = w.frames[w.depth].said, w.frames[w.depth].during
			s.Refusal, s.ByKind = ByJoint, s.Refusal
		}
		return false
	}
	s.Status = StepRefused
	var f *frame
	if r != nil {
		f, s.Row = &w.frames[0], r.idx
	}
	rec := w.record(Rejected, ref, f, r, o)
	if rec < 0 {
		return false
	}
	p := &w.records[rec]
	p.Event = ev
	p.NArgs = uint8(min(len(args), MaxArgs))
	p.Args = [MaxArgs]uint64{}
	copy(p.Args[:], args)
	w.blame(rec)
	return false
}

// blame copies who said no, and why, from the step to its record.
func (w *World) blame(rec int) {
	s, p := &w.step, &w.records[rec]
	p.Refusal, p.By, p.ByEvent = s.Refusal, s.By, s.ByEvent
	p.Reason = w.rules.reason(s.Reason)
}

// record counts a record, and makes it if there is a recorder. It returns its
// place among the step's records, or -1. f and r may be nil.
func (w *World) record(k RecordKind, ref Ref, f *frame, r *row, o origin) int {
	w.seq++
	if w.config.Recorder == nil || w.quiet {
		return -1
	}
	return w.write(k, ref, f, r, o)
}

func (w *World) write(k RecordKind, ref Ref, f *frame, r *row, o origin) int {
	w.records = append(w.records, Record{})
	p := &w.records[len(w.records)-1]
	p.Kind, p.Via, p.Seq, p.Parent, p.Ref, p.Root = k, o.via, w.seq, o.parent, ref, o.root
	p.Row, p.Call, p.Reason = NoRowID, NoCall, NoReasonID
	if w.config.Clock != nil {
		p.Time = w.config.Clock()
	}
	p.Site = w.site
	if w.current(ref) {
		p.From = w.header(ref.Machine, ref.Slot).state
		p.To = p.From
		w.identify(len(w.records) - 1)
	}
	if r != nil {
		p.Event, p.Row = r.ev, r.idx
		m := w.rules.machines[ref.Machine]
		p.NArgs = uint8(len(m.argTy[r.ev]))
		copy(p.Args[:p.NArgs], f.args[:])
		p.NViews = uint8(len(r.cell.views))
		copy(p.Views[:p.NViews], f.views[:])
	}
	return len(w.records) - 1
}

// arrive completes the record of a transition with where it went and the
// identity the instance has there.
func (w *World) arrive(rec int, t *target) {
	p := &w.records[rec]
	p.To, p.Target = t.to, t.idx
	p.Reason = w.rules.reason(t.reason)
	w.identify(rec)
}

// identify puts the identity that an instance has now into its record.
func (w *World) identify(rec int) {
	p := &w.records[rec]
	m := w.rules.machines[p.Ref.Machine]
	facts := w.factWords(p.Ref.Machine, p.Ref.Slot)
	for i, id := range m.ident {
		p.Identity[i] = facts[id]
	}
	p.NIdentity = uint8(len(m.ident))
}
