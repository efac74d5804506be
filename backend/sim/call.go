package sim

import (
	"github.com/runfence/runfence/backend"
)

// enter makes the checks that the device makes before it looks at a call's
// arguments.
func (d *Device) enter(op *Op) Answer {
	if !op.Kind.needsContext() {
		return Answer{}
	}
	switch d.threads[d.thread].current {
	case d.Home():
		return Answer{}
	case 0:
		return failed(backend.ContextNull)
	default:
		d.violate(Violation{Kind: ForeignContext, Stream: op.Stream, Event: op.Event, Memory: op.Memory})
		return failed(backend.StreamContext)
	}
}

// stale refuses a handle that names nothing. A second destroy is a violation.
func (d *Device) stale(op *Op, k Kind, h uint64, slots int) Answer {
	switch op.Kind {
	case OpDestroyStream, OpDestroyEvent, OpFree:
		if isHandle(h) && kindOf(h) == k && indexOf(h) < slots {
			d.violate(Violation{Kind: DoubleDestroy, Stream: op.Stream, Event: op.Event, Memory: op.Memory})
		}
	}
	return refused(backend.InvalidHandle)
}

// effect carries out a call that does not block.
func (d *Device) effect(op *Op, st *strike) (a Answer) {
	if a = d.enter(op); !a.Ok() {
		return a
	}
	var si int
	var ev *event
	var ok bool
	switch op.Kind {
	case OpDestroyStream, OpStreamID, OpQueryStream, OpCaptureStatus, OpRecordEvent, OpStreamWaitEvent,
		OpCopyAsync, OpSubmitAICore, OpSubmitAICPU, OpSynchronizeStream:
		if si, ok = d.findStream(op.Stream); !ok {
			return d.stale(op, KindStream, uint64(op.Stream), len(d.streams))
		}
	}
	switch op.Kind {
	case OpRecordEvent, OpQueryEvent, OpStreamWaitEvent, OpDestroyEvent, OpWaitEvent:
		if ev, ok = d.findEvent(op.Event); !ok {
			return d.stale(op, KindEvent, uint64(op.Event), len(d.events))
		}
	case OpFree, OpWrite, OpRead:
		if !d.alive(op.Memory) {
			return d.stale(op, KindMemory, uint64(op.Memory), len(d.mems))
		}
	}
	switch op.Kind {
	case OpCurrentContext:
		a.Handle = uint64(d.threads[d.thread].current)
	case OpCreateStream:
		s, c := d.createStream()
		return made(uint64(s), c)
	case OpDestroyStream:
		d.destroyStream(si)
	case OpStreamID:
		a.ID = int32(si)
	case OpQueryStream:
		s := &d.streams[si]
		switch {
		case s.capture == backend.CaptureActive:
			return failed(backend.StreamCaptured)
		case s.err != backend.Success:
			return failed(s.err)
		case s.n == 0:
			a.Status = backend.Complete
			d.prove(si, s.executed)
		}
	case OpCaptureStatus:
		a.Capture = d.streams[si].capture
	case OpCreateEvent:
		e, c := d.createEvent()
		return made(uint64(e), c)
	case OpRecordEvent:
		a.Accepted = d.record(si, op.Event)
	case OpQueryEvent:
		if ev.done {
			a.Status = backend.Complete
			d.prove(int(ev.recStream), ev.recPos)
		}
	case OpStreamWaitEvent:
		a.Accepted = d.waitFor(si, op.Event)
	case OpDestroyEvent:
		d.destroyEvent(op.Event)
	case OpAlloc:
		m, c := d.alloc(op.Place, op.Size)
		return made(uint64(m), c)
	case OpFree:
		d.free(op.Memory)
	case OpWrite:
		dst, ok := window(d.content(op.Memory), op.Offset, uint64(len(op.Data)))
		if !ok || d.mems[indexOf(uint64(op.Memory))].place != backend.PinnedMemory {
			return failed(backend.InvalidParam)
		}
		copy(dst, op.Data)
		d.overwrite(op.Memory, op.Offset, uint64(len(op.Data)))
	case OpRead:
		src, ok := window(d.content(op.Memory), op.Offset, op.Size)
		if !ok || d.mems[indexOf(uint64(op.Memory))].place != backend.PinnedMemory {
			return failed(backend.InvalidParam)
		}
		a.Data = src
	case OpCopy:
		if a = d.spans(op.Dst, op.Src); !a.Ok() {
			return a
		}
		src, _ := window(d.content(op.Src.Mem), op.Src.Offset, op.Src.Size)
		dst, _ := window(d.content(op.Dst.Mem), op.Dst.Offset, op.Dst.Size)
		copy(dst, src)
		d.overwrite(op.Dst.Mem, op.Dst.Offset, op.Dst.Size)
	case OpCopyAsync:
		if a = d.spans(op.Dst, op.Src); !a.Ok() {
			return a
		}
		a.Accepted = d.enqueue(si, &entry{kind: EntryCopy, dst: op.Dst, src: op.Src, recStream: -1, pair: -1})
	case OpSubmitAICore, OpSubmitAICPU:
		return d.submit(si, &op.Launch, st)
	case OpReset:
		if d.cfg.Borrowed {
			d.violate(Violation{Kind: BorrowedReset})
		}
		d.confirmedReset()
		a.Confirmed = true
	}
	return a
}

func made(h uint64, c backend.Code) Answer {
	if c != backend.Success {
		return failed(c)
	}
	return Answer{Handle: h}
}

func (d *Device) submit(si int, l *backend.Launch, st *strike) (a Answer) {
	if isHandle(uint64(l.Args)) && !d.alive(l.Args) {
		return refused(backend.InvalidHandle)
	}
	if l.Kernel == 0 || uint64(l.Kernel) > uint64(len(d.cfg.Kernels)) {
		return failed(backend.InvalidParam)
	}
	k := d.spec(l.Kernel)
	if k.Class != l.Class || (l.Class == backend.AICore && l.Blocks == 0) {
		return failed(backend.InvalidParam)
	}
	e := entry{
		kind: EntryKernel, class: l.Class, kernel: l.Kernel, args: l.Args, exit: k.Exit, pair: -1,
		recStream: -1, hang: st.hang, lost: st.lost, notice: int64(d.cfg.NoticeTime),
	}
	if st.fatal != backend.Success {
		e.exit = st.fatal
	}
	if st.late {
		e.notice = st.notice
	}
	if k.Paired && d.streams[si].capture == backend.CaptureNone {
		e.pair = d.join(l.Class, l.Args, si)
	}
	a.Accepted = d.enqueue(si, &e)
	return a
}

// admitWait makes the checks of a bounded wait.
func (d *Device) admitWait(op *Op) (a Answer) {
	if a = d.effectless(op); !a.Ok() {
		return a
	}
	if op.Timeout <= 0 {
		return failed(backend.InvalidParam)
	}
	if op.Kind == OpSynchronizeStream && d.streams[indexOf(uint64(op.Stream))].capture == backend.CaptureActive {
		return failed(backend.StreamCaptured)
	}
	return Answer{}
}

// effectless is effect for the calls that only have their handles checked there.
func (d *Device) effectless(op *Op) Answer { return d.effect(op, nil) }

// answerWait is what a bounded wait answers once what it waits for has
// happened. A synchronize materialises a kernel's fault (F103).
func (d *Device) answerWait(c *call) Answer {
	switch {
	case c.aborted:
		return failed(backend.TaskAbort)
	case c.op.Kind == OpWaitEvent:
		if c.recStream >= 0 {
			d.prove(int(c.recStream), c.recPos)
		}
		return Answer{}
	}
	s := &d.streams[indexOf(uint64(c.op.Stream))]
	if s.gen != genOf(uint64(c.op.Stream)) {
		return Answer{}
	}
	d.prove(indexOf(uint64(c.op.Stream)), s.executed)
	if s.err == backend.Success {
		s.err = s.fault
	}
	s.fault = backend.Success
	if s.err != backend.Success {
		return failed(s.err)
	}
	return Answer{}
}

func expiredCode(k OpKind) backend.Code {
	if k == OpSynchronizeStream {
		return backend.StreamSyncTimeout
	}
	return backend.EventSyncTimeout
}

func expired(k OpKind) Answer {
	return Answer{Result: backend.Result{Outcome: backend.TimedOut, Code: expiredCode(k)}}
}

// leave makes an answer what the caller sees: the thread's last error changes
// only by a call that was attempted and did not succeed, and is read in the
// same breath.
func (d *Device) leave(op *Op, a *Answer) {
	t := &d.threads[d.thread]
	if a.Code != backend.Success && (a.Outcome == backend.Failed || a.Outcome == backend.TimedOut) {
		t.lastError = a.Code
	}
	a.LastError = t.lastError
	d.traceReturn(op, a)
}

// blame turns the answer of a call that took effect into the one that its
// fault makes of it.
func (st *strike) blame(a *Answer) {
	switch {
	case !a.Ok():
	case st.call == FailAfter:
		*a = failed(st.code)
	case st.call == FailAccepted:
		accepted := a.Accepted
		*a = failed(st.code)
		a.Accepted = accepted
	}
}

// timed carries out a call under the default policy, without choices.
func (d *Device) timed(op *Op, a *Answer) {
	d.during = op.Kind
	defer d.outside()
	st := d.consult(op)
	d.traceCall(op)
	if op.Kind.query() && d.cfg.QueryTime > 0 {
		d.Advance(d.cfg.QueryTime)
	} else {
		d.settle()
	}
	switch st.call {
	case Refuse:
		*a = refused(st.code)
	case FailBefore:
		*a = failed(st.code)
	case PanicBefore:
		d.blow(op, false)
	default:
		if op.Kind.Blocking() {
			*a = d.await(op, &st)
			break
		}
		if st.call == Unconfirmed {
			*a = unconfirmed(st.code)
			break
		}
		*a = d.effect(op, &st)
	}
	if st.call == PanicAfter {
		d.blow(op, true)
	}
	st.blame(a)
	d.leave(op, a)
}

// blow ends a call with an injected panic.
func (d *Device) blow(op *Op, took bool) {
	a := panicked()
	d.leave(op, &a)
	panic(&Panic{Op: op.Kind, Took: took})
}

func (d *Device) outside() { d.during = OpNone }

func unconfirmed(c backend.Code) Answer {
	if c != backend.Success {
		return failed(c)
	}
	return Answer{}
}

// await is a bounded wait under the default policy.
func (d *Device) await(op *Op, st *strike) Answer {
	if a := d.admitWait(op); !a.Ok() {
		return a
	}
	c := d.newCall(op)
	for st.call == Hang || !d.ready(&c) {
		at, m, i := d.next()
		if at > c.deadline {
			d.now = max(d.now, c.deadline)
			return expired(op.Kind)
		}
		d.now = max(d.now, at)
		d.move1(m, i)
	}
	return d.answerWait(&c)
}

// newCall notes what a bounded wait waits for. Its arguments have been checked.
func (d *Device) newCall(op *Op) call {
	c := call{thread: d.thread, deadline: later(d.now, op.Timeout), recStream: -1}
	c.op.Kind, c.op.Event, c.op.Stream = op.Kind, op.Event, op.Stream
	if op.Kind == OpWaitEvent {
		ev := &d.events[indexOf(uint64(op.Event))]
		c.seq, c.sat = ev.issued, ev.done
		if ev.issued == 0 {
			d.violate(Violation{Kind: WaitBeforeRecord, Event: op.Event})
			c.seq, c.sat = 1, d.cfg.Unrecorded == PassesAtOnce
		} else {
			c.recStream, c.recPos = ev.recStream, ev.recPos
		}
	}
	return c
}

// ready reports whether what a bounded wait waits for has happened.
func (d *Device) ready(c *call) bool {
	if c.aborted {
		return true
	}
	if c.op.Kind == OpWaitEvent {
		if c.sat {
			return true
		}
		// A wait that is not in the call table is not told; it looks for itself.
		ev := &d.events[indexOf(uint64(c.op.Event))]
		return ev.gen == genOf(uint64(c.op.Event)) && ev.issued == c.seq && ev.done
	}
	s := &d.streams[indexOf(uint64(c.op.Stream))]
	return s.n == 0 || s.gen != genOf(uint64(c.op.Stream))
}

// run carries out a call for the backend face.
func (d *Device) run(op *Op, a *Answer) {
	if d.policy == nil {
		d.timed(op, a)
		return
	}
	*a = d.chosen(op)
}
