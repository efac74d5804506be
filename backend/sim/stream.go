package sim

import "github.com/runfence/runfence/backend"

// EntryKind says what an entry of a stream is.
type EntryKind uint8

const (
	entryFree EntryKind = iota
	// EntryKernel is a submitted kernel.
	EntryKernel
	// EntryRecord is a record of an event.
	EntryRecord
	// EntryWait is a wait of the stream for an event's record.
	EntryWait
	// EntryCopy is an asynchronous copy.
	EntryCopy
)

// String returns "kernel", "record", "wait" or "copy".
func (k EntryKind) String() string {
	switch k {
	case EntryKernel:
		return "kernel"
	case EntryRecord:
		return "record"
	case EntryWait:
		return "wait"
	case EntryCopy:
		return "copy"
	}
	return "free"
}

// entry is one queued piece of work. Entries of all streams share a pool.
type entry struct {
	kind   EntryKind
	class  backend.Class
	sat    bool // wait: its record has executed
	hang   bool // kernel: never returns
	lost   bool // kernel: posts no notice
	next   int32
	stream int32
	pos    uint32 // position in its stream, from 1
	// record, wait
	seq       uint32 // which record of the event
	recStream int32  // wait: where that record is; -1 unknown
	recPos    uint32
	event     backend.Event
	// kernel
	kernel backend.Kernel
	args   backend.Memory
	pair   int32
	exit   backend.Code
	notice int64 // ns from exit to the notice
	// copy
	dst, src backend.Span
}

func (e *entry) names(m backend.Memory) bool {
	switch e.kind {
	case EntryKernel:
		return e.args == m
	case EntryCopy:
		return e.dst.Mem == m || e.src.Mem == m
	}
	return false
}

// stream is a FIFO queue. Its first entry has always started.
type stream struct {
	gen     uint32
	state   slot
	capture backend.Capture
	working bool // the kernel at the head met its handshake
	first   int32
	last    int32
	n       int32
	due     int64        // when the head takes effect; never if nothing is known to end it
	flagDue int64        // when the kernel at the head publishes its flag; never if it has or does not
	fault   backend.Code // of a kernel, invisible until a synchronize
	err     backend.Code // materialised, sticky
	freed   uint32       // when the slot became free; see Device.frees
	// Positions only grow, through reuse of the slot too.
	enqueued, executed, proven uint32
}

func (d *Device) streamHandle(i int) backend.Stream {
	return backend.Stream(handle(KindStream, i, d.streams[i].gen))
}

func (d *Device) findStream(h backend.Stream) (int, bool) {
	i := indexOf(uint64(h))
	ok := kindOf(uint64(h)) == KindStream && i < len(d.streams) &&
		d.streams[i].gen == genOf(uint64(h)) && d.streams[i].state == slotLive
	return i, ok
}

func (d *Device) createStream() (backend.Stream, backend.Code) {
	i := -1
	for j := range d.streams {
		if s := &d.streams[j]; s.state == slotFree && canReuse(s.gen) && (i < 0 || s.freed < d.streams[i].freed) {
			i = j
		}
	}
	if i < 0 {
		if len(d.streams) >= maxSlots {
			return 0, backend.OutOfMemory
		}
		i = len(d.streams)
		d.streams = append(d.streams, stream{})
	}
	s := &d.streams[i]
	*s = stream{
		gen: s.gen + 1, state: slotLive, first: -1, last: -1, due: never, flagDue: never,
		enqueued: s.enqueued, executed: s.executed, proven: s.proven,
	}
	return d.streamHandle(i), backend.Success
}

// destroyStream takes the handle away. Work that is queued goes on.
func (d *Device) destroyStream(i int) {
	s := &d.streams[i]
	if s.n == 0 {
		d.freeStream(s)
		return
	}
	s.state = slotZombie
	d.violate(Violation{Kind: StreamDestroyedBusy, Stream: d.streamHandle(i)})
}

func (d *Device) freeStream(s *stream) {
	d.frees++
	s.state, s.freed = slotFree, d.frees
}

func (d *Device) head(si int) *entry { return &d.entries[d.streams[si].first] }

// enqueue appends an entry and starts it if it is the first. It reports false
// for a stream under capture: the work then goes into the graph and runs on no
// stream.
func (d *Device) enqueue(si int, e *entry) bool {
	s := &d.streams[si]
	if s.capture != backend.CaptureNone {
		d.violate(Violation{Kind: CapturedWork, Stream: d.streamHandle(si)})
		return false
	}
	i := d.freeEntry
	if i < 0 {
		d.entries = append(d.entries, entry{})
		i = int32(len(d.entries) - 1)
	} else {
		d.freeEntry = d.entries[i].next
	}
	s.enqueued++
	e.next, e.stream, e.pos = -1, int32(si), s.enqueued
	d.entries[i] = *e
	if s.n == 0 {
		s.first = i
	} else {
		d.entries[s.last].next = i
	}
	s.last = i
	s.n++
	d.traceEntry(TraceQueued, si, e, backend.Success)
	if s.n == 1 {
		d.start(si)
	}
	return true
}

// start lets the entry at the head begin. What begins is not yet done.
func (d *Device) start(si int) {
	s := &d.streams[si]
	s.due, s.flagDue, s.working = never, never, false
	e := d.head(si)
	d.traceEntry(TraceStart, si, e, backend.Success)
	switch e.kind {
	case EntryKernel:
		d.startKernel(si)
	case EntryRecord:
		s.due = d.now
	case EntryWait:
		if e.sat {
			s.due = d.now
		}
	case EntryCopy:
		s.due = later(d.now, d.cfg.CopyTime)
	}
}

// finish lets the head of the stream take effect, and the next entry begin. A
// kernel returns with the given status.
func (d *Device) finish(si int, code backend.Code) {
	e := d.head(si)
	switch e.kind {
	case EntryKernel:
		d.exit(si, code)
	case EntryRecord:
		d.recorded(e)
	case EntryWait:
		d.waited(si, e)
	case EntryCopy:
		d.move(si, e)
	}
	d.traceEntry(TraceDone, si, e, code)
	s := &d.streams[si]
	s.executed = e.pos
	d.pop(si)
	if s.n > 0 {
		d.start(si)
		return
	}
	s.due, s.flagDue, s.working = never, never, false
	if s.state == slotZombie {
		d.freeStream(s)
	}
}

func (d *Device) pop(si int) {
	s := &d.streams[si]
	i := s.first
	s.first = d.entries[i].next
	s.n--
	if s.n == 0 {
		s.last = -1
	}
	d.entries[i] = entry{next: d.freeEntry}
	d.freeEntry = i
}

// drop empties the stream without executing anything.
func (d *Device) drop(si int) {
	for d.streams[si].n > 0 {
		d.traceEntry(TraceDropped, si, d.head(si), backend.TaskAbort)
		d.pop(si)
	}
	s := &d.streams[si]
	s.due, s.flagDue, s.working = never, never, false
	s.executed = s.enqueued
	s.proven = s.enqueued
	s.fault, s.err = backend.Success, backend.Success
	s.capture = backend.CaptureNone
	if s.state == slotZombie {
		d.freeStream(s)
	}
}
