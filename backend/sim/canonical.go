package sim

import (
	"bytes"
	"cmp"

	"github.com/runfence/runfence/backend"
)

// Naming numbers the handles for [Device.AppendCanonical].
type Naming struct {
	// Handle returns the number of a handle, or zero if it has none. Numbers of
	// one kind must differ, and be below 1<<62. A handle without a number comes
	// after the numbered: an event or memory in the order in which the streams'
	// entries, and then the calls, lead to it; then, since the host can have lost them all, those
	// that nothing leads to by what they hold; anything else by its slot. Nil
	// numbers nothing.
	Handle func(k Kind, h uint64) uint64
	// Memory appends the content of an allocation in a form in which the
	// identities that it holds are renamed. Nil appends it as it is.
	Memory func(dst []byte, m backend.Memory, content []byte) []byte
}

// ranks is the canonical order of the slots of one kind.
type ranks struct {
	order []int32  // slots, in canonical order
	ref   []uint64 // by slot: what stands for the handle; zero if it has no place yet
	// sorted is where in the order those begin that nothing leads to; zero if
	// there are none yet, or nothing else.
	sorted int
}

func (r *ranks) reset(slots int) {
	r.order, r.sorted = r.order[:0], 0
	r.ref = resized(r.ref, slots)
	clear(r.ref)
}

// numbered gives a slot its place among those that the naming numbers.
func (r *ranks) numbered(slot int, number uint64) {
	r.ref[slot] = number<<1 | 1
	r.order = append(r.order, int32(slot))
	for i := len(r.order) - 1; i > 0 && r.ref[r.order[i-1]] > r.ref[slot]; i-- {
		r.order[i-1], r.order[i] = r.order[i], r.order[i-1]
	}
}

// found gives a slot that has no number the next place, once.
func (r *ranks) found(slot int) {
	if r.ref[slot] == 0 {
		r.order = append(r.order, int32(slot))
		r.ref[slot] = uint64(len(r.order)) << 1
	}
}

// lost gives a slot that nothing leads to its place among the others like it.
func (r *ranks) lost(slot int, compare func(i, j int32) int) {
	if r.ref[slot] != 0 {
		return
	}
	if r.sorted == 0 {
		r.sorted = len(r.order)
	}
	r.order = append(r.order, int32(slot))
	for i := len(r.order) - 1; i > r.sorted && compare(r.order[i-1], r.order[i]) > 0; i-- {
		r.order[i-1], r.order[i] = r.order[i], r.order[i-1]
	}
}

// settle numbers the lost by their places.
func (r *ranks) settle() {
	for i, slot := range r.order {
		if r.ref[slot] == 0 {
			r.ref[slot] = uint64(i+1) << 1
		}
	}
}

// canon is the working memory of AppendCanonical.
type canon struct {
	stream, event, mem, call, context ranks
	pair                              []uint32 // by slot: number by first appearance
}

// AppendCanonical implements [Model]. Besides the clock and the violations it
// leaves out counters that the rules must not look at: notice tasks and the
// answers of StreamID.
func (d *Device) AppendCanonical(dst []byte, n Naming) []byte {
	c := &d.scratch.canon
	c.stream.reset(len(d.streams))
	c.event.reset(len(d.events))
	c.mem.reset(len(d.mems))
	c.call.reset(len(d.calls))
	c.context.reset(len(d.contexts))
	c.pair = resized(c.pair, len(d.pairs))
	clear(c.pair)
	if n.Handle != nil {
		d.number(c, n.Handle)
	}
	d.discover(c)
	e := encoder{writer{dst}, d, c}
	e.host()
	e.u(uint64(len(c.stream.order)))
	for _, i := range c.stream.order {
		e.stream(int(i))
	}
	e.pairs()
	e.u(uint64(len(c.event.order)))
	for _, i := range c.event.order {
		e.event(int(i))
	}
	e.memory(n)
	e.u(uint64(len(c.call.order)))
	for _, i := range c.call.order {
		e.call(int(i))
	}
	e.notices(d.posts)
	e.notices(d.ring)
	e.u(d.dropped)
	e.proofs()
	return e.b
}

func (d *Device) number(c *canon, name func(Kind, uint64) uint64) {
	give := func(r *ranks, k Kind, slot int, gen uint32, used bool) {
		if !used {
			return
		}
		if n := name(k, handle(k, slot, gen)); n != 0 {
			r.numbered(slot, n)
		}
	}
	for i := range d.contexts {
		give(&c.context, KindContext, i, 1, true)
	}
	for i := range d.streams {
		give(&c.stream, KindStream, i, d.streams[i].gen, d.streams[i].state != slotFree)
	}
	for i := range d.events {
		give(&c.event, KindEvent, i, d.events[i].gen, d.events[i].state != slotFree)
	}
	for i := range d.mems {
		give(&c.mem, KindMemory, i, d.mems[i].gen, d.mems[i].state != slotFree)
	}
	for i := range d.calls {
		give(&c.call, KindCall, i, d.calls[i].gen, d.calls[i].phase != callFree)
	}
}

// discover places what has no number.
func (d *Device) discover(c *canon) {
	for i := range d.contexts {
		c.context.found(i)
	}
	for i := range d.streams {
		if d.streams[i].state != slotFree {
			c.stream.found(i)
		}
	}
	see := func(m backend.Memory) {
		if d.alive(m) {
			c.mem.found(indexOf(uint64(m)))
		}
	}
	pairs := uint32(0)
	for _, si := range c.stream.order {
		s := &d.streams[si]
		for i, left := s.first, s.n; left > 0; i, left = d.entries[i].next, left-1 {
			e := &d.entries[i]
			switch e.kind {
			case EntryRecord, EntryWait:
				c.event.found(indexOf(uint64(e.event)))
			case EntryCopy:
				see(e.dst.Mem)
				see(e.src.Mem)
			case EntryKernel:
				see(e.args)
				if e.pair >= 0 && c.pair[e.pair] == 0 {
					pairs++
					c.pair[e.pair] = pairs
				}
			}
		}
	}
	for i := range d.calls {
		if d.calls[i].phase != callFree {
			c.call.found(i)
		}
	}
	for _, i := range c.call.order {
		k := &d.calls[i]
		op := &k.op
		for _, h := range [...]uint64{
			uint64(op.Event), uint64(op.Memory), uint64(op.Dst.Mem), uint64(op.Src.Mem), uint64(op.Launch.Args), k.answer.Handle,
		} {
			if h == 0 {
				continue
			}
			see(backend.Memory(h))
			if _, live := d.findEvent(backend.Event(h)); live {
				c.event.found(indexOf(h))
			}
		}
	}
	for i := range d.events {
		if d.events[i].state != slotFree {
			c.event.lost(i, d.compareEvents)
		}
	}
	for i := range d.mems {
		if d.mems[i].state != slotFree {
			c.mem.lost(i, d.compareMems)
		}
	}
	c.event.settle()
	c.mem.settle()
}

// compareEvents orders events that no queued entry names.
func (d *Device) compareEvents(i, j int32) int {
	rank := func(e *event) int {
		switch {
		case e.issued == 0:
			return 0
		case !e.done:
			return 1
		case d.cfg.NoProofs || e.recPos <= d.streams[e.recStream].proven:
			return 2
		}
		return 3
	}
	a, b := &d.events[i], &d.events[j]
	if x := rank(a) - rank(b); x != 0 || rank(a) < 3 {
		return x
	}
	return cmp.Or(cmp.Compare(a.recStream, b.recStream), cmp.Compare(a.recPos, b.recPos))
}

func (d *Device) compareMems(i, j int32) int {
	a, b := &d.mems[i], &d.mems[j]
	return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.size, b.size),
		bytes.Compare(d.content(d.memHandle(int(i))), d.content(d.memHandle(int(j)))))
}

type encoder struct {
	writer
	d *Device
	c *canon
}

// streamSlot writes what stands for a slot of streams: its reference or, if the
// slot is free, when it will be taken.
func (e *encoder) streamSlot(i int32) {
	switch {
	case i < 0:
		e.u(0)
	case e.c.stream.ref[i] != 0:
		e.u(1)
		e.u(e.c.stream.ref[i])
	default:
		e.u(2)
		e.u(e.turn(KindStream, int(i)))
	}
}

// turn counts the free slots that will be taken before a free one.
func (e *encoder) turn(k Kind, slot int) (n uint64) {
	if k == KindStream {
		for i := range e.d.streams {
			if s := &e.d.streams[i]; s.state == slotFree && s.freed < e.d.streams[slot].freed {
				n++
			}
		}
		return n
	}
	for i := range e.d.mems {
		if a := &e.d.mems[i]; a.state == slotFree && a.freed < e.d.mems[slot].freed {
			n++
		}
	}
	return n
}

// known writes a handle that the host gave: its reference if it names something.
// What a stale one looks like matters only where its slot does.
func (e *encoder) known(k Kind, h uint64) {
	ref, gen, found := e.lookup(k, h)
	switch {
	case h == 0:
		e.u(0)
	case found && ref != 0 && gen == genOf(h):
		e.u(4)
		e.u(ref)
	case k != KindMemory || !found:
		e.u(1) // names nothing, and never will again
	default:
		e.alias(ref, h)
	}
}

// alias writes a stale handle whose slot still counts: what lives in the slot
// now or, if nothing does, when something will.
func (e *encoder) alias(ref, h uint64) {
	if ref != 0 {
		e.u(3)
		e.u(ref)
		return
	}
	e.u(2)
	e.u(e.turn(kindOf(h), indexOf(h)))
}

// lookup finds the slot of a handle of kind k: what stands for what lives there
// now, and its generation.
func (e *encoder) lookup(k Kind, h uint64) (ref uint64, gen uint32, found bool) {
	i := indexOf(h)
	if kindOf(h) != k {
		return 0, 0, false
	}
	switch {
	case k == KindStream && i < len(e.d.streams):
		return e.c.stream.ref[i], e.d.streams[i].gen, true
	case k == KindEvent && i < len(e.d.events):
		return e.c.event.ref[i], e.d.events[i].gen, true
	case k == KindMemory && i < len(e.d.mems):
		return e.c.mem.ref[i], e.d.mems[i].gen, true
	case k == KindContext && i < len(e.d.contexts):
		return e.c.context.ref[i], 1, true
	}
	return 0, 0, false
}

func (e *encoder) span(s backend.Span) {
	e.known(KindMemory, uint64(s.Mem))
	e.u(s.Offset)
	e.u(s.Size)
}

func (e *encoder) host() {
	d := e.d
	e.u(uint64(d.budget))
	for i := range d.cfg.Plan {
		f := &d.cfg.Plan[i]
		if f.Nth > d.nth[f.Op] {
			e.u(uint64(f.Nth - d.nth[f.Op]))
		} else {
			e.u(0)
		}
	}
	e.u(uint64(d.thread))
	e.u(uint64(len(d.threads)))
	for _, t := range d.threads {
		e.known(KindContext, uint64(t.current))
		e.code(t.lastError)
	}
	e.u(uint64(len(d.contexts)))
	for _, i := range e.c.context.order {
		e.u(e.c.context.ref[i])
		e.u(bit(d.contexts[i], 1) | bit(i == 0, 2))
	}
}

func (e *encoder) stream(si int) {
	s := &e.d.streams[si]
	e.u(e.c.stream.ref[si])
	e.u(bit(s.state == slotZombie, 1) | bit(s.flagDue != never, 2) | bit(s.due != never, 4) |
		bit(s.fault != 0, 8) | bit(s.err != 0, 16) | uint64(s.capture)<<5)
	if s.fault != 0 {
		e.code(s.fault)
	}
	if s.err != 0 {
		e.code(s.err)
	}
	e.u(uint64(s.n))
	for i, left := s.first, s.n; left > 0; i, left = e.d.entries[i].next, left-1 {
		e.entry(&e.d.entries[i])
	}
}

func (e *encoder) entry(x *entry) {
	e.u(uint64(x.kind) | bit(x.sat, waitSat) | bit(x.hang, kernelHangs) | bit(x.lost, kernelLost))
	switch x.kind {
	case EntryKernel:
		e.u(uint64(x.kernel))
		e.known(KindMemory, uint64(x.args))
		e.code(x.exit)
		if x.pair < 0 {
			e.u(0)
			return
		}
		e.u(uint64(e.c.pair[x.pair])) // the partner's entry, or the pair's own place, tells the rest
	case EntryRecord:
		e.u(e.c.event.ref[indexOf(uint64(x.event))])
		e.age(x.event, x.seq)
	case EntryWait:
		e.u(e.c.event.ref[indexOf(uint64(x.event))])
		if !x.sat {
			e.age(x.event, x.seq)
		}
		e.position(x.recStream, x.recPos)
	case EntryCopy:
		e.span(x.dst)
		e.span(x.src)
	}
}

// age writes how many records after the given one the event has seen. A wait
// for a record that is yet to come is one ahead.
func (e *encoder) age(h backend.Event, seq uint32) {
	e.u(uint64(e.d.events[indexOf(uint64(h))].issued + 1 - seq))
}

// position writes a place in a stream, if the proofs need it and lack it.
func (e *encoder) position(si int32, pos uint32) {
	if e.d.cfg.NoProofs || si < 0 || pos <= e.d.streams[si].proven {
		e.u(0)
		return
	}
	e.u(1 + uint64(e.d.streams[si].enqueued+1-pos))
	e.streamSlot(si)
}

// pairs writes the launches that still lack a partner, oldest first for each
// argument memory: which one the next launch joins depends on it.
func (e *encoder) pairs() {
	d := e.d
	done := func(p *pair) bool {
		return p.serial == 0 || (p.side[0] != sideAbsent && p.side[1] != sideAbsent)
	}
	less := func(a, b *pair) bool {
		if x, y := e.tag(a), e.tag(b); x != y {
			return x < y
		}
		return a.serial < b.serial
	}
	var last *pair
	for {
		next := -1
		for i := range d.pairs {
			p := &d.pairs[i]
			if done(p) || (last != nil && !less(last, p)) {
				continue
			}
			if next < 0 || less(p, &d.pairs[next]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		last = &d.pairs[next]
		e.u(1)
		e.u(e.tag(last))
		e.u(uint64(last.side[0])<<2 | uint64(last.side[1]))
		e.u(uint64(e.c.pair[next]))
	}
	e.u(0)
}

// tag orders pairs by argument memory; memory that was freed is never named again.
func (e *encoder) tag(p *pair) uint64 {
	switch {
	case p.tag == 0:
		return 0
	case e.d.alive(p.tag):
		return 2 + e.c.mem.ref[indexOf(uint64(p.tag))]
	}
	return 1
}

func (e *encoder) event(i int) {
	ev := &e.d.events[i]
	e.u(e.c.event.ref[i])
	e.u(bit(ev.state == slotZombie, 1) | bit(ev.done, 2)) // a record that is queued speaks for itself
	e.position(ev.recStream, ev.recPos)
}

func (e *encoder) memory(n Naming) {
	d := e.d
	e.u(uint64(len(e.c.mem.order)))
	for _, i := range e.c.mem.order {
		a := &d.mems[i]
		e.u(e.c.mem.ref[i])
		e.u(uint64(a.place))
		e.u(a.size)
		if d.cfg.Residue { // the region will be taken again, and what it holds be seen
			e.u(a.region)
			e.b = append(e.b, d.arena[a.off+a.size:a.off+a.region]...)
		}
		content := d.arena[a.off : a.off+a.size]
		if n.Memory == nil {
			e.b = append(e.b, content...)
			continue
		}
		at := len(e.b)
		e.b = n.Memory(e.b, d.memHandle(int(i)), content)
		e.u(uint64(len(e.b) - at))
	}
	if !d.cfg.Residue {
		return
	}
	for taken := uint32(0); ; { // free regions, in the order in which they will be taken
		next := -1
		for i := range d.mems {
			a := &d.mems[i]
			if a.state == slotFree && a.freed > taken && (next < 0 || a.freed < d.mems[next].freed) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		a := &d.mems[next]
		taken = a.freed
		e.u(a.region)
		e.b = append(e.b, d.arena[a.off:a.off+a.region]...)
	}
}

func (e *encoder) call(i int) {
	c := &e.d.calls[i]
	st := &c.strike
	e.u(e.c.call.ref[i])
	e.u(uint64(c.phase) | bit(*st != strike{}, callStrike))
	e.u(uint64(c.thread))
	e.op(c)
	if *st != (strike{}) {
		e.u(bit(st.hang, strikeHang) | bit(st.lost, strikeLost) | bit(st.late, strikeLate))
		e.u(uint64(st.call))
		e.code(st.code)
		e.code(st.fatal)
	}
	switch c.phase {
	case callWaiting:
		e.wait(c)
	case callTook, callDone:
		a := &c.answer
		e.u(uint64(a.Outcome)<<2 | bit(a.Accepted, 1) | bit(a.Confirmed, 2))
		e.code(a.Code)
		e.code(a.LastError)
		e.u(uint64(a.Status) | uint64(a.Capture)<<8)
		e.known(kindOf(a.Handle), a.Handle)
	}
}

func (e *encoder) op(c *call) {
	op := &c.op
	// How long a wait may take is not asked, only whether it may take anything.
	has := c.has()&^opTimeout | bit(op.Timeout > 0, opTimeout)
	e.u(uint64(op.Kind))
	e.u(has)
	if op.Stream != 0 {
		e.known(KindStream, uint64(op.Stream))
	}
	if op.Event != 0 {
		e.known(KindEvent, uint64(op.Event))
	}
	if op.Memory != 0 {
		e.known(KindMemory, uint64(op.Memory))
	}
	if op.Size != 0 {
		e.u(op.Size)
	}
	if has&opLaunch != 0 {
		e.u(uint64(op.Launch.Class))
		e.u(uint64(op.Launch.Kernel))
		e.known(KindMemory, uint64(op.Launch.Args))
		e.u(uint64(op.Launch.Blocks))
	}
	if op.Offset != 0 {
		e.u(op.Offset)
	}
	if op.Place != 0 {
		e.u(uint64(op.Place))
	}
	if has&opDst != 0 {
		e.span(op.Dst)
	}
	if has&opSrc != 0 {
		e.span(op.Src)
	}
	if c.dataLen != 0 {
		e.u(uint64(c.dataLen))
		e.b = append(e.b, e.d.payload(c)...)
	}
}

// wait writes what decides the answer of a bounded wait.
func (e *encoder) wait(c *call) {
	ready := e.d.ready(c)
	e.u(bit(ready, 1) | bit(c.aborted, 2))
	if c.op.Kind == OpWaitEvent {
		if ev, _ := e.d.findEvent(c.op.Event); !ready && ev.gen == genOf(uint64(c.op.Event)) {
			e.age(c.op.Event, c.seq)
		}
		e.position(c.recStream, c.recPos)
		return
	}
	// A stream that was destroyed meanwhile keeps its fault for the wait until
	// the slot is taken again.
	i := indexOf(uint64(c.op.Stream))
	s := &e.d.streams[i]
	if s.state != slotFree || s.gen != genOf(uint64(c.op.Stream)) || (s.fault == 0 && s.err == 0) {
		e.u(0)
		return
	}
	e.u(1 + e.turn(KindStream, i))
	e.code(s.fault)
	e.code(s.err)
}

func (e *encoder) notices(list []posted) {
	e.u(uint64(len(list)))
	for _, p := range list {
		ref, gen, _ := e.lookup(KindStream, uint64(p.stream))
		if ref != 0 && gen == genOf(uint64(p.stream)) {
			e.u(4)
			e.u(ref)
		} else {
			e.alias(ref, uint64(p.stream)) // notices name streams by slot
		}
		e.code(p.code)
	}
}

func (e *encoder) proofs() {
	d := e.d
	if d.cfg.NoProofs {
		return
	}
	e.u(uint64(len(d.edges)))
	for _, g := range d.edges {
		e.streamSlot(g.stream)
		e.u(uint64(d.streams[g.stream].enqueued - g.pos))
		e.streamSlot(g.from)
		e.u(uint64(d.streams[g.from].enqueued - g.fromPos))
	}
}
