package sim

import "github.com/runfence/runfence/backend"

// event is a completion-only marker. It re-records without a reset; its status
// is that of its latest record.
type event struct {
	gen     uint32
	state   slot
	done    bool   // the latest record has executed
	issued  uint32 // records enqueued so far
	pending uint32 // of these, not yet executed
	waits   uint32 // queued stream waits that name the event
	// Where the latest record is.
	recStream int32
	recPos    uint32
}

func (d *Device) eventHandle(i int) backend.Event {
	return backend.Event(handle(KindEvent, i, d.events[i].gen))
}

func (d *Device) findEvent(h backend.Event) (*event, bool) {
	i := indexOf(uint64(h))
	if kindOf(uint64(h)) != KindEvent || i >= len(d.events) {
		return nil, false
	}
	e := &d.events[i]
	return e, e.gen == genOf(uint64(h)) && e.state == slotLive
}

func (d *Device) createEvent() (backend.Event, backend.Code) {
	i := -1
	for j := range d.events {
		if d.events[j].state == slotFree && canReuse(d.events[j].gen) {
			i = j
			break
		}
	}
	if i < 0 {
		if len(d.events) >= maxSlots {
			return 0, backend.OutOfMemory
		}
		i = len(d.events)
		d.events = append(d.events, event{})
	}
	d.events[i] = event{gen: d.events[i].gen + 1, state: slotLive, recStream: -1}
	return d.eventHandle(i), backend.Success
}

// destroyEvent takes the handle away. Entries that name the event go on.
func (d *Device) destroyEvent(h backend.Event) {
	ev := &d.events[indexOf(uint64(h))]
	if ev.waits > 0 {
		d.violate(Violation{Kind: EventDestroyedWaited, Event: h})
	}
	if ev.pending > 0 {
		d.violate(Violation{Kind: EventDestroyedPending, Event: h})
	}
	ev.state = slotZombie
	d.bury(ev)
}

// bury frees the slot of a destroyed event that nothing names any more.
func (d *Device) bury(ev *event) {
	if ev.state == slotZombie && ev.waits == 0 && ev.pending == 0 {
		ev.state = slotFree
	}
}

func (d *Device) record(si int, h backend.Event) bool {
	ev := &d.events[indexOf(uint64(h))]
	v := Violation{Event: h, Stream: d.streamHandle(si)}
	switch {
	case ev.waits > 0:
		v.Kind = ReRecordWaited
	case ev.pending > 0:
		v.Kind = ReRecordPending
	case !d.cfg.NoProofs && ev.issued > 0 && ev.recPos > d.streams[ev.recStream].proven:
		v.Kind = ReRecordUnproven
	}
	if d.streams[si].capture == backend.CaptureNone {
		if v.Kind != NoViolation {
			d.violate(v)
		}
		ev.issued++
		ev.pending++
		ev.done = false
		ev.recStream, ev.recPos = int32(si), d.streams[si].enqueued+1
	}
	return d.enqueue(si, &entry{kind: EntryRecord, event: h, seq: ev.issued, recStream: -1, pair: -1})
}

func (d *Device) waitFor(si int, h backend.Event) bool {
	ev := &d.events[indexOf(uint64(h))]
	e := entry{kind: EntryWait, event: h, seq: ev.issued, sat: ev.done, recStream: -1, pair: -1}
	if d.streams[si].capture == backend.CaptureNone {
		ev.waits++
		if ev.issued == 0 {
			d.violate(Violation{Kind: WaitBeforeRecord, Event: h, Stream: d.streamHandle(si)})
			e.seq, e.sat = 1, d.cfg.Unrecorded == PassesAtOnce
		} else {
			e.recStream, e.recPos = ev.recStream, ev.recPos
		}
	}
	return d.enqueue(si, &e)
}

// recorded lets a record execute: waits for it, queued or of the host, are
// satisfied.
func (d *Device) recorded(r *entry) {
	ev := &d.events[indexOf(uint64(r.event))]
	ev.pending--
	if r.seq == ev.issued {
		ev.done = true
	}
	if ev.waits > 0 {
		for i := range d.entries {
			e := &d.entries[i]
			if e.kind != EntryWait || e.event != r.event || e.seq != r.seq || e.sat {
				continue
			}
			e.sat, e.recStream, e.recPos = true, r.stream, r.pos
			if s := &d.streams[e.stream]; s.first == int32(i) {
				s.due = d.now
			}
		}
	}
	for i := range d.calls {
		c := &d.calls[i]
		if c.phase == callWaiting && c.op.Kind == OpWaitEvent && c.op.Event == r.event && c.seq == r.seq {
			c.sat = true
		}
	}
	d.bury(ev)
}

// waited lets a satisfied wait pass.
func (d *Device) waited(si int, e *entry) {
	ev := &d.events[indexOf(uint64(e.event))]
	ev.waits--
	if !d.cfg.NoProofs && e.recStream >= 0 && int(e.recStream) != si && e.recPos > d.streams[e.recStream].proven {
		d.edges = append(d.edges, edge{stream: int32(si), pos: e.pos, from: e.recStream, fromPos: e.recPos})
	}
	d.bury(ev)
}

// edge is a wait that passed: once position pos of stream is proven to the
// host, so is fromPos of from.
type edge struct {
	stream, from int32
	pos, fromPos uint32
}

// prove notes that the host knows stream si to have executed up to pos. The
// knowledge follows the waits that passed before it. Edges are in the order in
// which they passed, so what one implies is never ahead of it: one pass back
// over them is enough.
func (d *Device) prove(si int, pos uint32) {
	if d.cfg.NoProofs || pos <= d.streams[si].proven {
		return
	}
	d.streams[si].proven = pos
	if len(d.edges) == 0 {
		return
	}
	for i := len(d.edges) - 1; i >= 0; i-- {
		e := &d.edges[i]
		if e.pos <= d.streams[e.stream].proven {
			from := &d.streams[e.from]
			from.proven = max(from.proven, e.fromPos)
		}
	}
	keep := d.edges[:0]
	for _, e := range d.edges {
		if e.fromPos > d.streams[e.from].proven {
			keep = append(keep, e)
		}
	}
	d.edges = keep
}
