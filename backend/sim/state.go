package sim

import (
	"encoding/binary"
	"fmt"
	"sync"

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
	w := stateWriter{writer{binary.LittleEndian.AppendUint64(dst, d.cfg.hash())}, d}
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

type stateWriter struct {
	writer
	d *Device
}

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

// has says which fields of the op are there.
func (c *call) has() uint64 {
	o := &c.op
	var none backend.Span
	return bit(o.Stream != 0, opStream) | bit(o.Event != 0, opEvent) | bit(o.Memory != 0, opMemory) |
		bit(o.Size != 0, opSize) | bit(o.Launch != backend.Launch{}, opLaunch) | bit(o.Timeout != 0, opTimeout) |
		bit(o.Offset != 0, opOffset) | bit(o.Place != 0, opPlace) | bit(o.Dst != none, opDst) | bit(o.Src != none, opSrc) |
		bit(c.dataLen != 0, opData)
}

func (w *stateWriter) op(c *call) {
	o := &c.op
	has := c.has()
	w.u(uint64(o.Kind))
	w.u(has)
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
	if l := &o.Launch; has&opLaunch != 0 {
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
	if has&opDst != 0 {
		w.span(o.Dst)
	}
	if has&opSrc != 0 {
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
