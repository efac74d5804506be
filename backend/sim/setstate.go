package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runfence/runfence/backend"
)

// ErrOtherConfig is matched by the error of [Device.SetState] for a state of a
// device of another [Config], or one that another version wrote.
var ErrOtherConfig = errors.New("state of a device of another configuration or version")

// StateError says what is wrong with the bytes given to [Device.SetState].
type StateError struct {
	Offset int // bytes
	Err    error
}

// Error says what is wrong and at which byte.
func (e *StateError) Error() string { return fmt.Sprintf("sim: state: byte %d: %v", e.Offset, e.Err) }

// Unwrap returns what is wrong, without the place.
func (e *StateError) Unwrap() error { return e.Err }

// SetState makes d the device that [Device.AppendState] wrote. It is for a
// device of the same [Config], what was defined and injected since included:
// else the error matches [ErrOtherConfig]. d keeps its policy and trace hook,
// and reuses its memory: it allocates nothing if d held as much before, and never more than
// 4 KiB for each byte of src. Any error is a [*StateError]; d is then in its
// initial state.
func (d *Device) SetState(src []byte) error {
	d.scratch.reading = append(append(d.scratch.reading[:0], src...), noNumber[0])
	r := stateReader{src: d.scratch.reading, d: d}
	r.read()
	if r.err != nil {
		d.initial()
		return r.err
	}
	return nil
}

// noNumber ends what is read, so that only long has to look for the end.
var noNumber = []byte{0x80}

type stateReader struct {
	src []byte // with noNumber behind
	at  int
	d   *Device
	err error
}

// fail notes the first fault, at the byte given, and ends the bytes.
func (r *stateReader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &StateError{at, fmt.Errorf(format, args...)}
	}
	r.src, r.at = noNumber, 0
}

// left is how many bytes are left.
func (r *stateReader) left() int { return len(r.src) - len(noNumber) - r.at }

// u returns the next number, or zero after a fault.
func (r *stateReader) u() uint64 {
	b := r.src[r.at]
	r.at++
	if b < 0x80 {
		return uint64(b)
	}
	return r.long()
}

// long is u if there is more than one byte, or none.
func (r *stateReader) long() uint64 {
	r.at--
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.src[r.at:])
	if n <= 0 {
		r.fail(r.at, "no number here")
		return 0
	}
	r.at += n
	return v
}

// upTo returns the next number, which is bounded.
func (r *stateReader) upTo(most uint64, what string) uint64 {
	at := r.at
	v := r.u()
	if v > most {
		r.tooMuch(at, what, v, most)
		return 0
	}
	return v
}

func (r *stateReader) tooMuch(at int, what string, v, most uint64) {
	r.fail(at, "%s is %d: at most %d", what, v, most)
}

func (r *stateReader) u32(what string) uint32 { return uint32(r.upTo(1<<32-1, what)) }

func (r *stateReader) code() backend.Code { return backend.Code(r.u32("a code")) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// time reads a time that is given by its distance from now.
func (r *stateReader) time() int64 {
	at := r.at
	t := r.d.now + unzigzag(r.u())
	if t < 0 || t == never {
		r.fail(at, "a time beyond all time")
		return 0
	}
	return t
}

func (r *stateReader) handle(k Kind) uint64 { return unpackHandle(k, r.u()) }

// named reads a handle of kind k in one of so many slots; zero if it may be.
func (r *stateReader) named(k Kind, slots int, zero bool) uint64 {
	at := r.at
	h := r.handle(k)
	if (h == 0 && zero) || (kindOf(h) == k && indexOf(h) < slots) {
		return h
	}
	r.fail(at, "%s names no %s", HandleName(h), k)
	return 0
}

// slot reads the number of one of so many slots.
func (r *stateReader) slot(slots int, what string) int32 {
	at := r.at
	v := r.u()
	if v >= uint64(slots) {
		r.fail(at, "%s is %d: there are %d", what, v, slots)
		return 0
	}
	return int32(v)
}

// count reads how many of something follow. Each takes a byte at least.
func (r *stateReader) count(what string) int {
	at := r.at
	v := r.u()
	if left := r.left(); v > uint64(left) {
		r.tooMuch(at, what, v, uint64(left))
		return 0
	}
	return int(v)
}

// resized returns s with n elements, whose values are left over.
func resized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

func (r *stateReader) read() {
	d := r.d
	if r.left() < 8 {
		r.fail(0, "no hash of a configuration")
		return
	}
	if h := binary.LittleEndian.Uint64(r.src); h != d.cfg.hash() {
		r.fail(0, "%w: %016x, not %016x", ErrOtherConfig, h, d.cfg.hash())
		return
	}
	r.at = 8
	d.now = int64(r.upTo(never-1, "the time"))
	d.during = OpKind(r.upTo(uint64(numOps-1), "the call under way"))
	d.budget = uint8(r.upTo(255, "the budget"))
	d.pairSerial = r.u32("the number of pairs")
	d.frees = r.u32("the number of frees")
	d.dropped = r.u()
	mask := r.upTo(1<<numOps-1, "the calls that were made")
	for i := range d.nth {
		d.nth[i] = 0
		if mask&(1<<i) != 0 {
			d.nth[i] = r.u32("the number of calls")
		}
	}
	d.threads = resized(d.threads, r.count("the number of threads"))
	d.contexts = resized(d.contexts, r.count("the number of contexts"))
	d.streams = resized(d.streams, r.count("the number of streams"))
	d.entries = resized(d.entries, r.count("the number of entries"))
	d.events = resized(d.events, r.count("the number of events"))
	d.mems = resized(d.mems, r.count("the number of allocations"))
	d.pairs = resized(d.pairs, r.count("the number of pairs"))
	d.edges = resized(d.edges, r.count("the number of edges"))
	d.posts = resized(d.posts, r.count("the number of notices under way"))
	d.ring = resized(d.ring, r.count("the number of notices"))
	d.calls = resized(d.calls, r.count("the number of calls"))
	d.violations = resized(d.violations, r.count("the number of violations"))
	d.thread = int(r.slot(len(d.threads), "the thread"))
	for i := range d.threads {
		d.threads[i] = thread{backend.Context(r.handle(KindContext)), r.code()}
	}
	for i := range d.contexts {
		d.contexts[i] = r.upTo(1, "a context") == 1
	}
	r.memory()
	for i := range d.pairs {
		d.pairs[i] = r.pair()
	}
	for i := range d.events {
		d.events[i] = r.event()
	}
	r.queues()
	for i := range d.edges {
		d.edges[i] = r.edge()
	}
	for i := range d.posts {
		due := r.time()
		d.posts[i] = r.posted()
		d.posts[i].due = due
	}
	for i := range d.ring {
		d.ring[i] = r.posted()
	}
	d.data = d.data[:0]
	for i := range d.calls {
		r.call(&d.calls[i])
	}
	for i := range d.violations {
		r.violation(&d.violations[i])
	}
	if r.left() > 0 {
		r.fail(r.at, "%d bytes too many", r.left())
	}
}

// life reads the first number of a slot.
func (r *stateReader) life(bits uint64, what string) (slot, uint64) {
	at := r.at
	v := r.upTo(bits, what)
	s := slot(v & slotBits)
	if s > slotZombie {
		r.fail(at, "%s is %d", what, v)
	}
	return s, v
}

func (r *stateReader) memory() {
	d := r.d
	d.allocated = 0
	size := uint64(0)
	for i := range d.mems {
		state, has := r.life(memBits, "an allocation")
		a := allocation{state: state, gen: r.u32("a generation"), off: size}
		a.region = r.upTo(d.cfg.MemoryLimit, "a region")
		a.size = a.region
		if has&memPlace != 0 {
			a.place = backend.Place(r.upTo(255, "a place"))
		}
		if has&memSize != 0 {
			a.size = r.upTo(a.region, "a size")
		}
		if has&memFreed != 0 {
			a.freed = r.u32("a free")
		}
		if size += a.region; size < a.region {
			r.fail(r.at, "the memory has no end")
		}
		if a.state == slotLive {
			d.allocated += a.size
		}
		d.mems[i] = a
	}
	d.arena = d.arena[:0]
	for r.err == nil && uint64(len(d.arena)) < size {
		r.run(size - uint64(len(d.arena)))
	}
}

func (r *stateReader) pair() (p pair) {
	age := r.u()
	if age == 0 {
		return pair{}
	}
	p.serial = r.d.pairSerial - uint32(age-1)
	p.tag = backend.Memory(r.handle(KindMemory))
	sides := r.upTo(15, "the sides of a pair")
	p.side = [2]side{side(sides >> 2), side(sides & 3)}
	for i := range p.stream {
		p.stream[i] = r.slot(len(r.d.streams)+1, "the stream of a pair") - 1
	}
	return p
}

func (r *stateReader) event() event {
	at := r.at
	state, has := r.life(eventBits, "an event")
	e := event{state: state, done: has&eventDone != 0, gen: r.u32("a generation"), issued: r.u32("the number of records"), recStream: -1}
	if has&eventPending != 0 {
		e.pending = r.u32("the number of pending records")
	}
	if has&eventWaits != 0 {
		e.waits = r.u32("the number of waits")
	}
	if has&eventPlaced != 0 {
		e.recStream, e.recPos = r.place()
	} else if e.done || e.issued > 0 {
		r.fail(at, "an event was recorded nowhere")
	}
	return e
}

func (r *stateReader) place() (stream int32, pos uint32) {
	return r.slot(len(r.d.streams), "a stream"), r.u32("a position")
}

// queues reads the streams and then the free entries, which are the rest of
// the pool.
func (r *stateReader) queues() {
	d := r.d
	clear(d.entries)
	left := len(d.entries)
	for i := range d.streams {
		left -= r.stream(int32(i), left)
	}
	d.freeEntry = -1
	for last := &d.freeEntry; left > 0 && r.err == nil; left-- {
		at := r.at
		i := r.slot(len(d.entries), "a free entry")
		e := &d.entries[i]
		if e.kind != entryFree || e.next != 0 {
			r.fail(at, "entry %d is there twice", i)
			return
		}
		*last, e.next = i, -1
		last = &e.next
	}
}

func (r *stateReader) stream(si int32, most int) int {
	d, at := r.d, r.at
	state, has := r.life(streamBits, "a stream")
	s := stream{
		state: state, working: has&streamWorking != 0, gen: r.u32("a generation"), enqueued: r.u32("a position"),
		first: -1, last: -1, due: never, flagDue: never,
	}
	if has&streamHasDue != 0 {
		s.due = r.time()
	}
	if has&streamHasFlag != 0 {
		s.flagDue = r.time()
	}
	if has&streamProven != 0 {
		s.proven = r.u32("a position")
	}
	if has&streamCapture != 0 {
		s.capture = backend.Capture(r.upTo(255, "a capture status"))
	}
	if has&streamFault != 0 {
		s.fault = r.code()
	}
	if has&streamErr != 0 {
		s.err = r.code()
	}
	if has&streamFreed != 0 {
		s.freed = r.u32("a free")
	}
	if has&streamHasWork != 0 {
		s.n = int32(r.upTo(uint64(most), "the number of entries"))
	}
	s.executed = s.enqueued - uint32(s.n)
	for pos := s.executed + 1; pos != s.enqueued+1 && r.err == nil; pos++ {
		at := r.at
		i := r.slot(len(d.entries), "an entry")
		e := &d.entries[i]
		if e.kind != entryFree {
			r.fail(at, "entry %d is there twice", i)
			break
		}
		r.entry(e)
		e.stream, e.pos, e.next = si, pos, -1
		if s.first < 0 {
			s.first = i
		} else {
			d.entries[s.last].next = i
		}
		s.last = i
	}
	switch {
	case r.err != nil:
	case s.n == 0 && (s.due != never || s.flagDue != never || s.working):
		r.fail(at, "a stream without work moves")
	case s.n > 0 && s.state == slotFree:
		r.fail(at, "a stream that is gone has work")
	case s.flagDue != never && d.entries[s.first].kind != EntryKernel:
		r.fail(at, "a flag of no kernel")
	}
	d.streams[si] = s
	return int(s.n)
}

func (r *stateReader) entry(e *entry) {
	d, at := r.d, r.at
	has := r.upTo(255, "an entry")
	e.kind = EntryKind(has & entryKindBits)
	e.recStream, e.pair = -1, -1
	switch e.kind {
	case EntryKernel:
		e.hang, e.lost = has&kernelHangs != 0, has&kernelLost != 0
		if e.kernel = backend.Kernel(r.slot(len(d.cfg.Kernels)+1, "a kernel")); e.kernel == 0 {
			r.fail(at, "an entry has no kernel")
			return
		}
		k := d.spec(e.kernel)
		e.class, e.exit, e.notice = k.Class, k.Exit, int64(d.cfg.NoticeTime)
		e.args = backend.Memory(r.named(KindMemory, len(d.mems), true))
		if has&kernelPaired != 0 {
			e.pair = r.slot(len(d.pairs), "the pair of a kernel")
		}
		if has&kernelExit != 0 {
			e.exit = r.code()
		}
		if has&kernelNotice != 0 {
			e.notice = int64(r.upTo(never-1, "the time of a notice"))
		}
	case EntryRecord, EntryWait:
		e.sat = has&waitSat != 0
		e.event = backend.Event(r.named(KindEvent, len(d.events), false))
		e.seq = r.u32("the number of a record")
		if has&waitPlaced != 0 {
			e.recStream, e.recPos = r.place()
		}
	case EntryCopy:
		e.dst = backend.Span{Mem: backend.Memory(r.named(KindMemory, len(d.mems), false)), Offset: r.u(), Size: r.u()}
		e.src = backend.Span{Mem: backend.Memory(r.named(KindMemory, len(d.mems), false)), Offset: r.u(), Size: e.dst.Size}
	default:
		r.fail(at, "no entry is of kind %d", e.kind)
	}
}

func (r *stateReader) edge() (g edge) {
	g.stream, g.pos = r.place()
	g.from, g.fromPos = r.place()
	if r.err == nil {
		g.pos = r.d.streams[g.stream].enqueued - g.pos
		g.fromPos = r.d.streams[g.from].enqueued - g.fromPos
	}
	return g
}

// posted reads a notice. Notices name streams by slot.
func (r *stateReader) posted() posted {
	return posted{
		stream: backend.Stream(r.named(KindStream, len(r.d.streams), false)), pos: r.u32("a position"), code: r.code(),
	}
}

func (r *stateReader) call(c *call) {
	d, at := r.d, r.at
	has := r.upTo(callBits, "a call")
	*c = call{gen: r.u32("a generation"), phase: callPhase(has & callPhaseBits)}
	if c.phase > callDone {
		r.fail(at, "a call has no phase %d", c.phase)
	}
	if c.phase == callFree {
		return
	}
	c.sat, c.aborted, c.recStream = has&callSat != 0, has&callAborted != 0, -1
	if has&callPlaced != 0 {
		c.recStream, c.recPos = r.place()
	}
	if has&callSeq != 0 {
		c.seq = r.u32("the number of a record")
	}
	if has&callDeadline != 0 {
		c.deadline = r.time()
	}
	if has&callThread != 0 {
		c.thread = int(r.slot(len(d.threads), "a thread"))
	}
	c.at = r.time()
	r.op(c)
	if c.phase == callWaiting {
		switch o := &c.op; {
		case o.Kind == OpWaitEvent && kindOf(uint64(o.Event)) == KindEvent && indexOf(uint64(o.Event)) < len(d.events):
		case o.Kind == OpSynchronizeStream && kindOf(uint64(o.Stream)) == KindStream && indexOf(uint64(o.Stream)) < len(d.streams):
		default:
			r.fail(at, "%s waits for nothing", o.Kind)
		}
	}
	if has&callStrike != 0 {
		f := r.upTo(strikeBits, "a fault")
		c.strike = strike{
			hang: f&strikeHang != 0, lost: f&strikeLost != 0, late: f&strikeLate != 0,
			call: FaultKind(r.upTo(uint64(numFaults-1), "a fault")), code: r.code(), fatal: r.code(),
			notice: int64(r.upTo(never-1, "the time of a notice")),
		}
	}
	if c.phase >= callTook {
		r.answer(&c.answer)
	}
}

func (r *stateReader) op(c *call) {
	o := &c.op
	at := r.at
	if o.Kind = OpKind(r.upTo(uint64(numOps-1), "a kind of call")); o.Kind == OpNone {
		r.fail(at, "a call is none")
	}
	has := r.upTo(opBits, "a call's arguments")
	if has&opStream != 0 {
		o.Stream = backend.Stream(r.handle(KindStream))
	}
	if has&opEvent != 0 {
		o.Event = backend.Event(r.handle(KindEvent))
	}
	if has&opMemory != 0 {
		o.Memory = backend.Memory(r.handle(KindMemory))
	}
	if has&opSize != 0 {
		o.Size = r.u()
	}
	if has&opLaunch != 0 {
		o.Launch = backend.Launch{
			Class: backend.Class(r.upTo(255, "a class")), Kernel: backend.Kernel(r.u()),
			Args: backend.Memory(r.handle(KindMemory)), Blocks: r.u32("blocks"),
		}
	}
	if has&opTimeout != 0 {
		o.Timeout = time.Duration(unzigzag(r.u()))
	}
	if has&opOffset != 0 {
		o.Offset = r.u()
	}
	if has&opPlace != 0 {
		o.Place = backend.Place(r.upTo(255, "a place"))
	}
	if has&opDst != 0 {
		o.Dst = r.span()
	}
	if has&opSrc != 0 {
		o.Src = r.span()
	}
	if has&opData != 0 {
		n := r.count("the number of bytes of a call")
		if r.err == nil {
			r.d.keep(c, r.src[r.at:r.at+n])
			r.at += n
		}
	}
}

func (r *stateReader) span() backend.Span {
	return backend.Span{Mem: backend.Memory(r.handle(KindMemory)), Offset: r.u(), Size: r.u()}
}

func (r *stateReader) answer(a *Answer) {
	has := r.upTo(answerBits, "an answer")
	if has&answerOutcome != 0 {
		a.Outcome = backend.Outcome(r.upTo(255, "an outcome"))
	}
	if has&answerCode != 0 {
		a.Code = r.code()
	}
	if has&answerLast != 0 {
		a.LastError = r.code()
	}
	a.Accepted, a.Confirmed = has&answerAccepted != 0, has&answerConfirmed != 0
	if has&answerHandle != 0 {
		a.Handle = r.handle(Kind(r.upTo(255, "the kind of a handle")))
	}
	if has&answerStatus != 0 {
		a.Status = backend.Status(r.upTo(255, "a status"))
	}
	if has&answerRest != 0 {
		a.Capture = backend.Capture(r.upTo(255, "a capture status"))
		a.ID = int32(r.u32("an id"))
	}
}

func (r *stateReader) violation(v *Violation) {
	*v = Violation{
		Kind: ViolationKind(r.upTo(uint64(numViolations-1), "a violation")), Time: time.Duration(r.time()),
		During: OpKind(r.upTo(uint64(numOps-1), "the call of a violation")),
	}
	has := r.upTo(violationBits, "what a violation concerns")
	if has&violationStream != 0 {
		v.Stream = backend.Stream(r.handle(KindStream))
	}
	if has&violationEvent != 0 {
		v.Event = backend.Event(r.handle(KindEvent))
	}
	if has&violationMemory != 0 {
		v.Memory = backend.Memory(r.handle(KindMemory))
	}
}
