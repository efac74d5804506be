package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/backend"
)

// stateForm names the form that AppendState writes; it changes with the form.
const stateForm = "sim state 1 "

// settings is what a device and its clones share. It never changes.
type settings struct {
	Config
	// hash tells two configurations apart, across processes too.
	hash func() uint64
}

func newSettings(c Config) *settings {
	return &settings{c, sync.OnceValue(func() uint64 {
		return xxhash.Sum64String(stateForm + fmt.Sprintf("%#v", c))
	})}
}

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

// What may be absent from a slot's bytes is announced in its first number.
const (
	slotBits = 3 // streams, events and memory: the low bits are the slot's life

	streamHasWork = 1 << 2
	streamHasDue  = 1 << 3
	streamHasFlag = 1 << 4
	streamWorking = 1 << 5
	streamProven  = 1 << 6
	streamCapture = 1 << 7
	streamFault   = 1 << 8
	streamErr     = 1 << 9
	streamFreed   = 1 << 10
	streamBits    = 1<<11 - 1

	eventDone    = 1 << 2
	eventPending = 1 << 3
	eventWaits   = 1 << 4
	eventPlaced  = 1 << 5
	eventBits    = 1<<6 - 1

	memPlace = 1 << 2
	memSize  = 1 << 3 // smaller than the region
	memFreed = 1 << 4
	memBits  = 1<<5 - 1

	entryKindBits = 7

	kernelHangs  = 1 << 3
	kernelLost   = 1 << 4
	kernelPaired = 1 << 5
	kernelExit   = 1 << 6 // not the image's own
	kernelNotice = 1 << 7 // not the device's own

	waitSat    = 1 << 3
	waitPlaced = 1 << 4

	callPhaseBits = 7
	callSat       = 1 << 3
	callAborted   = 1 << 4
	callStrike    = 1 << 5
	callPlaced    = 1 << 6
	callSeq       = 1 << 7
	callDeadline  = 1 << 8
	callThread    = 1 << 9
	callBits      = 1<<10 - 1

	opStream  = 1 << 0
	opEvent   = 1 << 1
	opMemory  = 1 << 2
	opSize    = 1 << 3
	opLaunch  = 1 << 4
	opTimeout = 1 << 5
	opOffset  = 1 << 6
	opPlace   = 1 << 7
	opDst     = 1 << 8
	opSrc     = 1 << 9
	opData    = 1 << 10
	opBits    = 1<<11 - 1

	answerOutcome   = 1 << 0
	answerCode      = 1 << 1
	answerLast      = 1 << 2
	answerAccepted  = 1 << 3
	answerConfirmed = 1 << 4
	answerHandle    = 1 << 5
	answerStatus    = 1 << 6
	answerRest      = 1 << 7 // capture and id
	answerBits      = 1<<8 - 1

	strikeHang = 1 << 0
	strikeLost = 1 << 1
	strikeLate = 1 << 2
	strikeBits = 1<<3 - 1

	violationStream = 1 << 0
	violationEvent  = 1 << 1
	violationMemory = 1 << 2
	violationBits   = 1<<3 - 1
)

// AppendState appends the whole value of the device to dst, exactly: what
// [Device.Clone] copies, clock and violations included, and what
// [Device.SetState] reads back. Equal bytes are equal devices. Of the [Config]
// there is only a hash. It allocates nothing but what dst needs.
func (d *Device) AppendState(dst []byte) []byte {
	w := stateWriter{b: binary.LittleEndian.AppendUint64(dst, d.cfg.hash()), d: d}
	w.u(uint64(d.now))
	w.u(uint64(d.during))
	w.u(uint64(d.budget))
	w.u(uint64(d.pairSerial))
	w.u(uint64(d.frees))
	w.u(d.dropped)
	w.counters()
	for _, n := range [...]int{
		len(d.threads), len(d.contexts), len(d.streams), len(d.entries), len(d.events), len(d.mems),
		len(d.pairs), len(d.edges), len(d.posts), len(d.ring), len(d.calls), len(d.violations),
	} {
		w.u(uint64(n))
	}
	w.u(uint64(d.thread))
	for i := range d.threads {
		w.handle(KindContext, uint64(d.threads[i].current))
		w.code(d.threads[i].lastError)
	}
	for _, owned := range d.contexts {
		w.u(bit(owned, 1))
	}
	for i := range d.mems {
		w.mem(&d.mems[i])
	}
	w.b = appendRuns(w.b, d.arena)
	for i := range d.pairs {
		w.pair(&d.pairs[i])
	}
	for i := range d.events {
		w.event(&d.events[i])
	}
	for i := range d.streams {
		w.stream(&d.streams[i])
	}
	for i := d.freeEntry; i >= 0; i = d.entries[i].next {
		w.u(uint64(i))
	}
	for i := range d.edges {
		w.edge(&d.edges[i])
	}
	for i := range d.posts {
		w.at(d.posts[i].due)
		w.posted(&d.posts[i])
	}
	for i := range d.ring {
		w.posted(&d.ring[i])
	}
	for i := range d.calls {
		w.call(&d.calls[i])
	}
	for i := range d.violations {
		w.violation(&d.violations[i])
	}
	return w.b
}

// bit returns mask if the fact holds, else zero.
func bit(fact bool, mask uint64) uint64 {
	if fact {
		return mask
	}
	return 0
}

type stateWriter struct {
	b []byte
	d *Device
}

func (w *stateWriter) u(v uint64) {
	if v < 0x80 {
		w.b = append(w.b, byte(v))
		return
	}
	w.b = binary.AppendUvarint(w.b, v)
}

func (w *stateWriter) code(c backend.Code) { w.u(uint64(uint32(c))) }

// at writes a time by its distance from now.
func (w *stateWriter) at(t int64) {
	t -= w.d.now
	w.u(uint64(t)<<1 ^ uint64(t>>63))
}

func (w *stateWriter) handle(k Kind, h uint64) { w.u(packHandle(k, h)) }

// packHandle turns handles around so that those of the expected kind with a
// small slot and generation, and zero, are small numbers.
func packHandle(k Kind, h uint64) uint64 {
	kind := uint64(k) << 56
	switch h {
	case 0:
		return 0
	case kind: // of no generation: it changes places with zero
		h = 0
	}
	h ^= kind
	slot, gen := h&maxSlots, h>>indexBits&(1<<32-1)
	return slot&15 | gen&7<<4 | slot>>4&15<<7 | gen>>3&7<<11 | gen>>6<<14 | slot>>8<<40 | h>>56<<56
}

// unpackHandle is the inverse of packHandle.
func unpackHandle(k Kind, p uint64) uint64 {
	if p == 0 {
		return 0
	}
	slot := p&15 | p>>7&15<<4 | p>>40&(1<<16-1)<<8
	gen := p>>4&7 | p>>11&7<<3 | p>>14&(1<<26-1)<<6
	h := p>>56<<56 | gen<<indexBits | slot
	if h ^= uint64(k) << 56; h == 0 {
		return uint64(k) << 56
	}
	return h
}

func (w *stateWriter) counters() {
	mask := uint64(0)
	for i, n := range w.d.nth {
		mask |= bit(n != 0, 1<<i)
	}
	w.u(mask)
	for _, n := range w.d.nth {
		if n != 0 {
			w.u(uint64(n))
		}
	}
}

func (w *stateWriter) mem(a *allocation) {
	w.u(uint64(a.state) | bit(a.place != 0, memPlace) | bit(a.size != a.region, memSize) | bit(a.freed != 0, memFreed))
	w.u(uint64(a.gen))
	w.u(a.region)
	if a.place != 0 {
		w.u(uint64(a.place))
	}
	if a.size != a.region {
		w.u(a.size)
	}
	if a.freed != 0 {
		w.u(uint64(a.freed))
	}
}

func (w *stateWriter) pair(p *pair) {
	if p.serial == 0 {
		w.u(0)
		return
	}
	w.u(1 + uint64(w.d.pairSerial-p.serial))
	w.handle(KindMemory, uint64(p.tag))
	w.u(uint64(p.side[0])<<2 | uint64(p.side[1]))
	w.u(uint64(p.stream[0] + 1))
	w.u(uint64(p.stream[1] + 1))
}

func (w *stateWriter) event(e *event) {
	w.u(uint64(e.state) | bit(e.done, eventDone) | bit(e.pending != 0, eventPending) |
		bit(e.waits != 0, eventWaits) | bit(e.recStream >= 0, eventPlaced))
	w.u(uint64(e.gen))
	w.u(uint64(e.issued))
	if e.pending != 0 {
		w.u(uint64(e.pending))
	}
	if e.waits != 0 {
		w.u(uint64(e.waits))
	}
	if e.recStream >= 0 {
		w.place(e.recStream, e.recPos)
	}
}

// place writes a position in a stream that there is.
func (w *stateWriter) place(stream int32, pos uint32) {
	w.u(uint64(stream))
	w.u(uint64(pos))
}

// stream writes a stream with its queue. Positions in the queue count up to
// enqueued, so neither they nor executed need be written.
func (w *stateWriter) stream(s *stream) {
	w.u(uint64(s.state) | bit(s.n > 0, streamHasWork) | bit(s.due != never, streamHasDue) |
		bit(s.flagDue != never, streamHasFlag) | bit(s.working, streamWorking) | bit(s.proven != 0, streamProven) |
		bit(s.capture != 0, streamCapture) | bit(s.fault != 0, streamFault) | bit(s.err != 0, streamErr) |
		bit(s.freed != 0, streamFreed))
	w.u(uint64(s.gen))
	w.u(uint64(s.enqueued))
	if s.due != never {
		w.at(s.due)
	}
	if s.flagDue != never {
		w.at(s.flagDue)
	}
	if s.proven != 0 {
		w.u(uint64(s.proven))
	}
	if s.capture != 0 {
		w.u(uint64(s.capture))
	}
	if s.fault != 0 {
		w.code(s.fault)
	}
	if s.err != 0 {
		w.code(s.err)
	}
	if s.freed != 0 {
		w.u(uint64(s.freed))
	}
	if s.n == 0 {
		return
	}
	w.u(uint64(s.n))
	for i, left := s.first, s.n; left > 0; left-- {
		e := &w.d.entries[i]
		w.u(uint64(i)) // the order in the pool decides which of two violations is seen first
		w.entry(e)
		i = e.next
	}
}

func (w *stateWriter) entry(e *entry) {
	switch e.kind {
	case EntryKernel:
		exit := e.exit != w.d.spec(e.kernel).Exit
		notice := e.notice != int64(w.d.cfg.NoticeTime)
		w.u(uint64(e.kind) | bit(e.hang, kernelHangs) | bit(e.lost, kernelLost) | bit(e.pair >= 0, kernelPaired) |
			bit(exit, kernelExit) | bit(notice, kernelNotice))
		w.u(uint64(e.kernel))
		w.handle(KindMemory, uint64(e.args))
		if e.pair >= 0 {
			w.u(uint64(e.pair))
		}
		if exit {
			w.code(e.exit)
		}
		if notice {
			w.u(uint64(e.notice))
		}
	case EntryRecord, EntryWait:
		w.u(uint64(e.kind) | bit(e.sat, waitSat) | bit(e.recStream >= 0, waitPlaced))
		w.handle(KindEvent, uint64(e.event))
		w.u(uint64(e.seq))
		if e.recStream >= 0 {
			w.place(e.recStream, e.recPos)
		}
	case EntryCopy: // the two spans are equally long
		w.u(uint64(e.kind))
		w.span(e.dst)
		w.handle(KindMemory, uint64(e.src.Mem))
		w.u(e.src.Offset)
	}
}

func (w *stateWriter) span(s backend.Span) {
	w.handle(KindMemory, uint64(s.Mem))
	w.u(s.Offset)
	w.u(s.Size)
}

func (w *stateWriter) edge(g *edge) {
	w.u(uint64(g.stream))
	w.u(uint64(w.d.streams[g.stream].enqueued - g.pos))
	w.u(uint64(g.from))
	w.u(uint64(w.d.streams[g.from].enqueued - g.fromPos))
}

func (w *stateWriter) posted(p *posted) {
	w.handle(KindStream, uint64(p.stream))
	w.u(uint64(p.pos))
	w.code(p.code)
}

func (w *stateWriter) call(c *call) {
	w.u(uint64(c.phase) | bit(c.sat, callSat) | bit(c.aborted, callAborted) | bit(c.strike != strike{}, callStrike) |
		bit(c.recStream >= 0, callPlaced) | bit(c.seq != 0, callSeq) | bit(c.deadline != 0, callDeadline) |
		bit(c.thread != 0, callThread))
	w.u(uint64(c.gen))
	if c.phase == callFree {
		return
	}
	if c.recStream >= 0 {
		w.place(c.recStream, c.recPos)
	}
	if c.seq != 0 {
		w.u(uint64(c.seq))
	}
	if c.deadline != 0 {
		w.at(c.deadline)
	}
	if c.thread != 0 {
		w.u(uint64(c.thread))
	}
	w.at(c.at)
	w.op(c)
	if c.strike != (strike{}) {
		s := &c.strike
		w.u(bit(s.hang, strikeHang) | bit(s.lost, strikeLost) | bit(s.late, strikeLate))
		w.u(uint64(s.call))
		w.code(s.code)
		w.code(s.fatal)
		w.u(uint64(s.notice))
	}
	if c.phase >= callTook {
		w.answer(&c.answer)
	}
}

func (w *stateWriter) op(c *call) {
	o := &c.op
	var none backend.Span
	w.u(uint64(o.Kind))
	w.u(bit(o.Stream != 0, opStream) | bit(o.Event != 0, opEvent) | bit(o.Memory != 0, opMemory) |
		bit(o.Size != 0, opSize) | bit(o.Launch != backend.Launch{}, opLaunch) | bit(o.Timeout != 0, opTimeout) |
		bit(o.Offset != 0, opOffset) | bit(o.Place != 0, opPlace) | bit(o.Dst != none, opDst) | bit(o.Src != none, opSrc) |
		bit(c.dataLen != 0, opData))
	if o.Stream != 0 {
		w.handle(KindStream, uint64(o.Stream))
	}
	if o.Event != 0 {
		w.handle(KindEvent, uint64(o.Event))
	}
	if o.Memory != 0 {
		w.handle(KindMemory, uint64(o.Memory))
	}
	if o.Size != 0 {
		w.u(o.Size)
	}
	if l := &o.Launch; *l != (backend.Launch{}) {
		w.u(uint64(l.Class))
		w.u(uint64(l.Kernel))
		w.handle(KindMemory, uint64(l.Args))
		w.u(uint64(l.Blocks))
	}
	if t := int64(o.Timeout); t != 0 {
		w.u(uint64(t)<<1 ^ uint64(t>>63))
	}
	if o.Offset != 0 {
		w.u(o.Offset)
	}
	if o.Place != 0 {
		w.u(uint64(o.Place))
	}
	if o.Dst != none {
		w.span(o.Dst)
	}
	if o.Src != none {
		w.span(o.Src)
	}
	if c.dataLen != 0 {
		w.u(uint64(c.dataLen))
		w.b = append(w.b, w.d.payload(c)...)
	}
}

func (w *stateWriter) answer(a *Answer) {
	rest := a.Capture != 0 || a.ID != 0
	w.u(bit(a.Outcome != 0, answerOutcome) | bit(a.Code != 0, answerCode) | bit(a.LastError != 0, answerLast) |
		bit(a.Accepted, answerAccepted) | bit(a.Confirmed, answerConfirmed) | bit(a.Handle != 0, answerHandle) |
		bit(a.Status != 0, answerStatus) | bit(rest, answerRest))
	if a.Outcome != 0 {
		w.u(uint64(a.Outcome))
	}
	if a.Code != 0 {
		w.code(a.Code)
	}
	if a.LastError != 0 {
		w.code(a.LastError)
	}
	if a.Handle != 0 {
		w.u(uint64(kindOf(a.Handle)))
		w.handle(kindOf(a.Handle), a.Handle)
	}
	if a.Status != 0 {
		w.u(uint64(a.Status))
	}
	if rest {
		w.u(uint64(a.Capture))
		w.u(uint64(uint32(a.ID)))
	}
}

func (w *stateWriter) violation(v *Violation) {
	w.u(uint64(v.Kind))
	w.at(int64(v.Time))
	w.u(uint64(v.During))
	w.u(bit(v.Stream != 0, violationStream) | bit(v.Event != 0, violationEvent) | bit(v.Memory != 0, violationMemory))
	if v.Stream != 0 {
		w.handle(KindStream, uint64(v.Stream))
	}
	if v.Event != 0 {
		w.handle(KindEvent, uint64(v.Event))
	}
	if v.Memory != 0 {
		w.handle(KindMemory, uint64(v.Memory))
	}
}

// SetState makes d the device that [Device.AppendState] wrote. It is for a
// device of the same [Config], what was defined and injected since included:
// else the error matches [ErrOtherConfig]. d keeps its policy and trace hook,
// and reuses its memory: it allocates nothing if d held as much before, and never more than
// 4 KiB for each byte of src. Any error is a [*StateError]; d is then in its
// initial state.
func (d *Device) SetState(src []byte) error {
	r := stateReader{src: src, d: d}
	r.read()
	if r.err != nil {
		d.initial()
		return r.err
	}
	return nil
}

type stateReader struct {
	src []byte
	at  int
	d   *Device
	err error
}

// fail notes the first fault, at the byte given, and ends the bytes.
func (r *stateReader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &StateError{at, fmt.Errorf(format, args...)}
	}
	r.src = nil
}

// u returns the next number, or zero after a fault.
func (r *stateReader) u() uint64 {
	if i := r.at; i < len(r.src) && r.src[i] < 0x80 {
		r.at++
		return uint64(r.src[i])
	}
	return r.long()
}

func (r *stateReader) long() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.src[min(r.at, len(r.src)):])
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
	if left := max(len(r.src)-r.at, 0); v > uint64(left) {
		r.tooMuch(at, "the number of "+what, v, uint64(left))
		return 0
	}
	return int(v)
}

// resized returns s with n elements, whose values are left over.
func resized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

func (r *stateReader) read() {
	d := r.d
	if len(r.src) < 8 {
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
	d.threads = resized(d.threads, r.count("threads"))
	d.contexts = resized(d.contexts, r.count("contexts"))
	d.streams = resized(d.streams, r.count("streams"))
	d.entries = resized(d.entries, r.count("entries"))
	d.events = resized(d.events, r.count("events"))
	d.mems = resized(d.mems, r.count("allocations"))
	d.pairs = resized(d.pairs, r.count("pairs"))
	d.edges = resized(d.edges, r.count("edges"))
	d.posts = resized(d.posts, r.count("notices under way"))
	d.ring = resized(d.ring, r.count("notices"))
	d.calls = resized(d.calls, r.count("calls"))
	d.violations = resized(d.violations, r.count("violations"))
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
	if r.err == nil && r.at != len(r.src) {
		r.fail(r.at, "%d bytes too many", len(r.src)-r.at)
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
		n := r.count("bytes of a call")
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
