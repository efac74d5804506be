package sim

import (
	"errors"
	"fmt"

	"github.com/runfence/runfence/backend"
)

// Ticket names a call that was begun. Zero names none.
type Ticket uint64

// String returns the ticket as choices write it, such as "c2.7".
func (t Ticket) String() string { return HandleName(uint64(t)) }

// Model is the face of the device that an explorer drives: nothing happens but
// what is chosen. M is the implementation itself, so that cloning needs no
// assertion.
type Model[M any] interface {
	// Clone returns an independent copy.
	Clone() M
	// AppendCanonical appends bytes that two states share exactly if they can
	// be told apart by nothing but the numbers of their handles, given a naming
	// that numbers them alike. Neither the clock nor the violations are part of
	// it: look at the violations of a state before you merge it with another.
	AppendCanonical(dst []byte, n Naming) []byte
	// Begin begins a call of the present thread. It keeps nothing of the caller's.
	Begin(op Op) Ticket
	// Choices appends what may happen next to dst, in a fixed order.
	Choices(dst []Choice) []Choice
	// Apply lets a choice happen. The error wraps [ErrNotOffered].
	Apply(c Choice) error
	// Result returns how a call ended. It reports false while it has not.
	Result(t Ticket) (Answer, bool)
	// Take is Result, and forgets the call once it has ended.
	Take(t Ticket) (Answer, bool)
	// TakeNotices is Notices of [backend.Backend].
	TakeNotices(dst []backend.Notice) (n int, dropped uint64)
}

var _ Model[*Device] = (*Device)(nil)

// ErrNotOffered reports a choice that is not among the choices of the state.
var ErrNotOffered = errors.New("sim: choice is not offered")

// callPhase is how far a call has come.
type callPhase uint8

const (
	callFree callPhase = iota
	// callBegun: the host has called; the device knows nothing yet.
	callBegun
	// callWaiting: a bounded wait is under way.
	callWaiting
	// callTook: the device has answered; the host has not heard.
	callTook
	// callDone: the call has returned.
	callDone
)

// call is one call that was begun.
type call struct {
	gen      uint32
	phase    callPhase
	sat      bool // what WaitEvent waits for has executed
	aborted  bool // by a reset
	op       Op
	thread   int
	at       int64 // when it takes effect, if a policy looks at time
	deadline int64
	// WaitEvent: which record, and where it is.
	seq       uint32
	recStream int32
	recPos    uint32
	strike    strike
	answer    Answer
	// Where the data of the op is in the device's; the op itself has none.
	dataAt, dataLen int
}

func (d *Device) ticket(i int) Ticket { return Ticket(handle(KindCall, i, d.calls[i].gen)) }

func (d *Device) findCall(t Ticket) (*call, bool) {
	i := indexOf(uint64(t))
	if kindOf(uint64(t)) != KindCall || i >= len(d.calls) {
		return nil, false
	}
	c := &d.calls[i]
	return c, c.gen == genOf(uint64(t)) && c.phase != callFree
}

// Begin implements [Model]. The plan's faults are counted and decided now.
func (d *Device) Begin(op Op) Ticket {
	i := -1
	for j := range d.calls {
		if d.calls[j].phase == callFree && canReuse(d.calls[j].gen) {
			i = j
			break
		}
	}
	if i < 0 {
		d.calls = append(d.calls, call{})
		i = len(d.calls) - 1
	}
	c := &d.calls[i]
	data := op.Data
	op.Data = nil
	*c = call{gen: c.gen + 1, phase: callBegun, op: op, thread: d.thread, strike: d.consult(&op), at: d.now, recStream: -1}
	d.keep(c, data)
	if op.Kind.query() {
		c.at = later(d.now, d.cfg.QueryTime)
	}
	d.traceCall(&op)
	return d.ticket(i)
}

// Result implements [Model].
func (d *Device) Result(t Ticket) (Answer, bool) {
	c, ok := d.findCall(t)
	if !ok || c.phase != callDone {
		return Answer{}, false
	}
	a := c.answer
	if c.op.Kind == OpRead && a.Ok() && d.alive(c.op.Memory) {
		a.Data, _ = window(d.content(c.op.Memory), c.op.Offset, c.op.Size)
	}
	return a, true
}

// Pending returns the call of a ticket, as long as it has not been taken.
func (d *Device) Pending(t Ticket) (Op, bool) {
	c, ok := d.findCall(t)
	if !ok {
		return Op{}, false
	}
	return c.op, true
}

// Progress returns how far a call is from its end: a number that every choice
// for it lowers. It reports false for a call that was taken.
func (d *Device) Progress(t Ticket) (left int, ok bool) {
	c, ok := d.findCall(t)
	if !ok {
		return 0, false
	}
	return int(callDone - c.phase), true
}

// Fault returns the error that a stream keeps, or the fault of a kernel of its
// that a synchronize will find there; Success for none, and for no stream.
func (d *Device) Fault(s backend.Stream) backend.Code {
	i, ok := d.findStream(s)
	if !ok {
		return backend.Success
	}
	if x := &d.streams[i]; x.err != backend.Success {
		return x.err
	}
	return d.streams[i].fault
}

// Left returns how much is left to happen by itself: what is in the streams,
// which every move of a stream lowers, and the notices that are under way or in
// the ring.
func (d *Device) Left() (streams, notices int) {
	for i := range d.streams {
		s := &d.streams[i]
		streams += 2 * int(s.n)
		if s.n > 0 && s.flagDue != never {
			streams++
		}
	}
	return streams, 2*len(d.posts) + len(d.ring)
}

// Take implements [Model].
func (d *Device) Take(t Ticket) (Answer, bool) {
	a, ok := d.Result(t)
	if ok {
		c, _ := d.findCall(t)
		d.release(c)
		*c = call{gen: c.gen}
	}
	return a, ok
}

// keep copies the data of a call to the end of the device's. It is not in the
// op, because that is copied to clones as it is.
func (d *Device) keep(c *call, data []byte) {
	if len(data) == 0 {
		return
	}
	c.dataAt, c.dataLen = len(d.data), len(data)
	d.data = append(d.data, data...)
}

// payload is the data of a call, valid until the next call begins or ends.
func (d *Device) payload(c *call) []byte { return d.data[c.dataAt : c.dataAt+c.dataLen] }

// release takes the data of a call out.
func (d *Device) release(c *call) {
	if c.dataLen == 0 {
		return
	}
	d.data = append(d.data[:c.dataAt], d.data[c.dataAt+c.dataLen:]...)
	for i := range d.calls {
		if x := &d.calls[i]; x.dataAt > c.dataAt {
			x.dataAt -= c.dataLen
		}
	}
}

// offers reports whether choices may inject a fault of kind k into a call.
func (d *Device) offers(k FaultKind, op OpKind) bool {
	return d.budget > 0 && d.cfg.Faults.Has(k) && k.fits(op) && (d.cfg.FaultOps == 0 || d.cfg.FaultOps.Has(op))
}

// canFinish reports whether the head of a stream can take effect.
func (d *Device) canFinish(si int) bool { return d.streams[si].n > 0 && d.streams[si].due != never }

// Choices implements [Model]: what streams may do, in the order of their slots,
// then notices in the order they were posted, then calls.
func (d *Device) Choices(dst []Choice) []Choice {
	for i := range d.streams {
		if d.streams[i].n > 0 {
			dst = d.streamChoices(dst, i)
		}
	}
	for i := range d.posts {
		dst = d.noticeChoices(dst, i)
	}
	for i := range d.calls {
		if d.calls[i].phase != callFree {
			dst = d.callChoices(dst, i)
		}
	}
	return dst
}

// choicesLike appends the choices of the stream, notice or call that c is
// about, if there is such a one.
func (d *Device) choicesLike(dst []Choice, c Choice) []Choice {
	i := indexOf(c.Target)
	switch c.Kind {
	case ChooseFlag, ChooseEntry, ChooseFatal, ChooseHang:
		if i < len(d.streams) {
			return d.streamChoices(dst, i)
		}
	case ChooseNotice, ChooseLose:
		if i < len(d.posts) {
			return d.noticeChoices(dst, i)
		}
	default:
		if i < len(d.calls) {
			return d.callChoices(dst, i)
		}
	}
	return dst
}

func (d *Device) streamChoices(dst []Choice, i int) []Choice {
	s := &d.streams[i]
	if s.n == 0 {
		return dst
	}
	h := uint64(d.streamHandle(i))
	if s.flagDue != never {
		dst = append(dst, Choice{Kind: ChooseFlag, Target: h})
	}
	if !d.canFinish(i) {
		return dst
	}
	dst = append(dst, Choice{Kind: ChooseEntry, Target: h})
	e := d.head(i)
	if e.kind != EntryKernel {
		return dst
	}
	if op := submitKind(e.class); e.exit == backend.Success && d.offers(KernelFatal, op) {
		dst = append(dst, Choice{Kind: ChooseFatal, Target: h, Code: defaultFatal(e.class)})
	}
	if d.offers(KernelHang, submitKind(e.class)) {
		dst = append(dst, Choice{Kind: ChooseHang, Target: h})
	}
	return dst
}

func (d *Device) noticeChoices(dst []Choice, i int) []Choice {
	dst = append(dst, Choice{Kind: ChooseNotice, Target: uint64(i)})
	if d.budget > 0 && d.cfg.Faults.Has(NoticeLost) {
		dst = append(dst, Choice{Kind: ChooseLose, Target: uint64(i)})
	}
	return dst
}

func (d *Device) callChoices(dst []Choice, i int) []Choice {
	c := &d.calls[i]
	h := uint64(d.ticket(i))
	op := c.op.Kind
	switch c.phase {
	case callBegun:
		dst = append(dst, Choice{Kind: ChooseEffect, Target: h})
		if c.strike.call != 0 {
			return dst
		}
		if d.offers(Refuse, op) {
			dst = append(dst, Choice{Kind: ChooseRefuse, Target: h, Code: backend.InternalError})
		}
		if d.offers(FailBefore, op) {
			dst = append(dst, Choice{Kind: ChooseFail, Target: h, Code: backend.InternalError})
		}
		if d.offers(PanicBefore, op) {
			dst = append(dst, Choice{Kind: ChoosePanic, Target: h})
		}
		if d.offers(Unconfirmed, op) {
			dst = append(dst, Choice{Kind: ChooseUnconfirmed, Target: h})
		}
	case callWaiting:
		if c.strike.call != Hang && d.ready(c) {
			dst = append(dst, Choice{Kind: ChooseReturn, Target: h})
		}
		dst = append(dst, Choice{Kind: ChooseExpire, Target: h})
	case callTook:
		dst = append(dst, Choice{Kind: ChooseReturn, Target: h})
		if !c.answer.Ok() || c.strike.call != 0 || !op.takesEffect() {
			return dst
		}
		if d.offers(FailAfter, op) {
			dst = append(dst, Choice{Kind: ChooseFail, Target: h, Code: backend.InternalError})
		}
		if d.offers(FailAccepted, op) {
			dst = append(dst, Choice{Kind: ChooseFailAccepted, Target: h, Code: backend.InternalError})
		}
		if d.offers(PanicAfter, op) {
			dst = append(dst, Choice{Kind: ChoosePanic, Target: h})
		}
	}
	return dst
}

// Apply implements [Model]. If the choice has a time, the clock moves to it.
func (d *Device) Apply(c Choice) error {
	d.scratch.offered = d.choicesLike(d.scratch.offered[:0], c)
	for _, o := range d.scratch.offered {
		if o.Kind == c.Kind && o.Target == c.Target && (o.Code == c.Code || (c.Kind.Fault() && c.Code != 0 && o.Code != 0)) {
			d.apply(c)
			return nil
		}
	}
	return fmt.Errorf("%w: %v", ErrNotOffered, c)
}

func (d *Device) apply(c Choice) {
	if due := d.due(c); due != never {
		d.now = max(d.now, due)
	}
	if c.Kind.Fault() {
		d.budget--
	}
	si := indexOf(c.Target)
	switch c.Kind {
	case ChooseFlag:
		d.publish(si)
	case ChooseEntry:
		d.finish(si, d.head(si).exit)
	case ChooseFatal:
		d.finish(si, c.Code)
	case ChooseHang:
		d.head(si).hang = true
		d.streams[si].due = never
	case ChooseNotice:
		d.deliver(int(c.Target))
	case ChooseLose:
		d.posts = append(d.posts[:c.Target], d.posts[c.Target+1:]...)
	default:
		d.applyCall(c)
	}
}

func (d *Device) applyCall(c Choice) {
	k := &d.calls[indexOf(c.Target)]
	thread := d.thread
	d.thread, d.during = k.thread, k.op.Kind
	defer func() { d.thread, d.during = thread, OpNone }()
	switch c.Kind {
	case ChooseEffect:
		d.takeEffect(k)
		return
	case ChooseReturn:
		if k.phase == callWaiting {
			k.answer = d.answerWait(k)
		}
		k.strike.blame(&k.answer)
	case ChooseExpire:
		k.answer = expired(k.op.Kind)
	case ChooseRefuse:
		k.answer = refused(c.Code)
	case ChooseFail:
		k.answer = failed(c.Code)
	case ChooseFailAccepted:
		accepted := k.answer.Accepted
		k.answer = failed(c.Code)
		k.answer.Accepted = accepted
	case ChoosePanic:
		k.strike.call = PanicBefore
		if k.phase == callTook {
			k.strike.call = PanicAfter
		}
		k.answer = panicked()
	case ChooseUnconfirmed:
		k.answer = unconfirmed(c.Code)
	}
	if k.strike.call == PanicAfter {
		k.answer = panicked()
	}
	k.phase = callDone
	d.leave(&k.op, &k.answer)
}

// takeEffect lets a begun call reach the device.
func (d *Device) takeEffect(k *call) {
	k.phase = callTook
	switch k.strike.call {
	case Refuse:
		k.answer = refused(k.strike.code)
		return
	case FailBefore:
		k.answer = failed(k.strike.code)
		return
	case PanicBefore:
		k.answer = panicked()
		return
	case Unconfirmed:
		k.answer = unconfirmed(k.strike.code)
		return
	}
	if !k.op.Kind.Blocking() {
		k.op.Data = d.payload(k)
		k.answer = d.effect(&k.op, &k.strike)
		k.op.Data = nil
		k.answer.Data = nil // a view of this device's memory must not reach a clone
		return
	}
	if k.answer = d.admitWait(&k.op); !k.answer.Ok() {
		return
	}
	w := d.newCall(&k.op)
	k.deadline, k.seq, k.sat, k.recStream, k.recPos = w.deadline, w.seq, w.sat, w.recStream, w.recPos
	k.phase = callWaiting
}

func panicked() Answer { return Answer{Result: backend.Result{Outcome: backend.Panicked}} }

// due returns when a choice is due: the present for what needs no time, never
// for a fault, which no clock decides.
func (d *Device) due(c Choice) int64 {
	switch c.Kind {
	case ChooseFlag:
		return d.streams[indexOf(c.Target)].flagDue
	case ChooseEntry:
		return d.streams[indexOf(c.Target)].due
	case ChooseNotice:
		return d.posts[c.Target].due
	case ChooseEffect:
		return d.calls[indexOf(c.Target)].at
	case ChooseReturn:
		return d.now
	case ChooseExpire:
		return d.calls[indexOf(c.Target)].deadline
	}
	return never
}
