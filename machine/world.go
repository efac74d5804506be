package machine

import (
	"fmt"
)

// Config sizes a [World].
type Config struct {
	// Name names the world in logs.
	Name string
	// Pools gives the capacity of each pool, 1 to 4096.
	Pools map[string]int
	// Queue bounds the events waiting between steps; 0 means [DefaultQueue].
	Queue int
	// Recorder takes a record of every step; nil keeps none.
	Recorder Recorder
	// Clock gives the time of records in ns; nil means 0.
	Clock func() int64
}

// DefaultQueue is how many events may wait between steps if a Config does not say.
const DefaultQueue = 16

// World is a set of instances that share one lock, one log and one hash: one
// lane. It is the pure level: no I/O, no goroutine, no clock of its own, and
// no lock; one goroutine at a time. A [Driver] puts a lock and a backend to it.
//
// A World is a flat value behind one pointer. Clone copies it, so a world can
// be cloned in the middle of any operation.
type World struct {
	rules  *Rules
	config Config
	// words holds, in order: a fresh counter for each sort of identity, the
	// instances of machines that have only one, those of each pool, slot by slot,
	// and the queue (a count, then entries).
	words []uint64
	pools *[256]place // shared by clones, never changed

	queueAt, queueCap int
	// taking is 1 while the event that Next takes is still in the queue.
	taking int

	seq     uint64
	flying  int      // commands in flight
	undo    []uint64 // see touch
	records []Record // of the step under way
	step    Step
	site    uintptr
	depth   int
	frames  [maxJoint]frame
	inner   frame    // of any and count
	lent    []uint64 // see lend
	quiet   bool     // a rehearsal: keep no records
	midstep bool     // see unwind

	canon *canonical // working memory, made on first use
	spare []uint64   // see SetState
}

// maxJoint bounds how deep joint steps may call one another.
const maxJoint = 6

// place says where the instances of a machine are: that of slot 0 at at, and
// each of the next ones stride words further.
type place struct {
	at, stride, capacity int
}

// An instance is: header, issue's Seq, root of the operation in flight, facts,
// arguments of the event in flight, arguments of the command in flight.
const (
	atHeader = iota
	atIssue
	atRoot
	atFacts
)

// A queue entry is: root, target, event, parent's Seq, arguments.
const (
	entryRoot = iota
	entryRef
	entryEvent
	entryParent
	entryArgs
	entryWords = entryArgs + MaxArgs
)

// header packs control state, the row in flight + 1, and the generation.
type header struct {
	state  StateID
	flight uint16
	gen    uint32
}

// stateAndFlight are the bits of a header that are not its generation.
const stateAndFlight = 1<<32 - 1

func (h header) pack() uint64 {
	return uint64(h.state) | uint64(h.flight)<<16 | uint64(h.gen)<<32
}

func unpackHeader(w uint64) header {
	return header{state: StateID(w), flight: uint16(w >> 16), gen: uint32(w >> 32)}
}

// NewWorld makes a world with every instance in its initial state.
func (r *Rules) NewWorld(c Config) (*World, error) {
	w := &World{rules: r, config: c, queueCap: c.Queue, pools: new([256]place)}
	if w.queueCap == 0 {
		w.queueCap = DefaultQueue
	}
	if w.queueCap < 1 || w.queueCap > 1<<12 {
		return nil, fmt.Errorf("queue of %d: want 1 to 4096", w.queueCap)
	}
	for name := range c.Pools {
		if !contains(r.pools, name) {
			return nil, fmt.Errorf("%s", Unknown("pool", name, r.pools))
		}
	}
	at := r.singles
	starts := make([]int, len(r.pools))
	for i, name := range r.pools {
		n := c.Pools[name]
		if n < 1 || n > 4096 {
			return nil, fmt.Errorf("pool %q of %d: want 1 to 4096", name, n)
		}
		starts[i] = at
		at += n * r.blocks[i]
	}
	for i, m := range r.machines {
		w.pools[i] = place{at: m.off, stride: m.size, capacity: 1}
		if p := r.poolOf[i]; p >= 0 {
			w.pools[i] = place{at: starts[p] + m.off, stride: r.blocks[p], capacity: c.Pools[m.def.Pool]}
		}
	}
	w.queueAt = at
	at += 1 + (w.queueCap+1)*entryWords // one more for the event being taken
	w.words = make([]uint64, at)
	w.wire()
	return w, nil
}

// wire lets frames find their world, and its words.
func (w *World) wire() {
	for i := range w.frames {
		w.frames[i].w, w.frames[i].words = w, w.words
	}
	w.inner.w, w.inner.words = w, w.words
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Rules returns the rules the world runs by.
func (w *World) Rules() *Rules { return w.rules }

// Name returns Config.Name.
func (w *World) Name() string { return w.config.Name }

// Seq returns the sequence number of the last record made.
func (w *World) Seq() uint64 { return w.seq }

// Observe gives the world another recorder, or none: a clone has none until it
// is given one.
func (w *World) Observe(r Recorder) { w.config.Recorder = r }

// Clone returns an independent copy. It has no recorder.
func (w *World) Clone() *World {
	c := &World{rules: w.rules, config: w.config, pools: w.pools, queueAt: w.queueAt, queueCap: w.queueCap, seq: w.seq, flying: w.flying}
	c.config.Recorder = nil
	c.words = append(make([]uint64, 0, len(w.words)), w.words...)
	c.wire()
	return c
}

// CopyFrom makes w a copy of o, and allocates nothing. It panics unless both
// are of the same rules and the same Config.
func (w *World) CopyFrom(o *World) {
	if w.rules != o.rules || w.queueCap != o.queueCap || (w.pools != o.pools && *w.pools != *o.pools) {
		panic("machine: CopyFrom a world of another shape")
	}
	copy(w.words, o.words)
	w.seq, w.flying = o.seq, o.flying
}

// Ref returns the current occupant of a slot. It panics if there is no such
// machine or slot, as indexing does.
func (w *World) Ref(m MachineID, slot int) Ref {
	if int(m) >= len(w.rules.machines) || slot < 0 || slot >= w.pools[m].capacity {
		panic(fmt.Sprintf("machine: no slot %d of machine %d", slot, m))
	}
	return Ref{Machine: m, Slot: uint16(slot), Gen: w.header(m, uint16(slot)).gen}
}

// Capacity returns how many instances of a machine there are.
func (w *World) Capacity(m MachineID) int { return w.capacity(m) }

func (w *World) capacity(m MachineID) int { return w.pools[m].capacity }

func (w *World) base(m MachineID, slot uint16) int {
	p := &w.pools[m]
	return p.at + int(slot)*p.stride
}

func (w *World) header(m MachineID, slot uint16) header {
	return unpackHeader(w.words[w.base(m, slot)])
}

func (w *World) factWords(m MachineID, slot uint16) []uint64 {
	b := w.base(m, slot) + atFacts
	n := len(w.rules.machines[m].factTy)
	return w.words[b : b+n : b+n]
}

// exists reports whether the Ref names a slot at all.
func (w *World) exists(r Ref) bool {
	return int(r.Machine) < len(w.rules.machines) && int(r.Slot) < w.pools[r.Machine].capacity
}

// current reports whether the Ref names the slot's present occupant.
func (w *World) current(r Ref) bool {
	return w.exists(r) && w.header(r.Machine, r.Slot).gen == r.Gen
}

// State returns an instance's control state, and whether a command of its is
// in flight. ok is false for a Ref that is stale or names nothing.
func (w *World) State(r Ref) (s StateID, inFlight, ok bool) {
	if !w.current(r) {
		return 0, false, false
	}
	h := w.header(r.Machine, r.Slot)
	return h.state, h.flight != 0, true
}

// InFlight returns the row whose command an instance has in flight, if any.
func (w *World) InFlight(r Ref) (row RowID, flying bool) {
	if !w.current(r) {
		return NoRowID, false
	}
	h := w.header(r.Machine, r.Slot)
	return RowID(h.flight) - 1, h.flight != 0
}

// StateName returns the name of the state, "STATE▸ROW" in flight, or "(stale)".
func (w *World) StateName(r Ref) string {
	if !w.current(r) {
		return "(stale)"
	}
	h := w.header(r.Machine, r.Slot)
	m := w.rules.machines[r.Machine]
	if h.flight != 0 {
		return m.InFlightName(RowID(h.flight - 1))
	}
	return m.def.States[h.state].Name
}

// Fact returns the value of a fact; ok is false for a Ref that is stale or
// names nothing.
func (w *World) Fact(r Ref, f FactID) (v uint64, ok bool) {
	if !w.current(r) || int(f) >= len(w.rules.machines[r.Machine].factTy) {
		return 0, false
	}
	return w.factWords(r.Machine, r.Slot)[f], true
}

// AppendFacts appends the values of all facts of an instance to dst; it
// appends nothing for a Ref that is stale or names nothing.
func (w *World) AppendFacts(dst []uint64, r Ref) []uint64 {
	if !w.current(r) {
		return dst
	}
	return append(dst, w.factWords(r.Machine, r.Slot)...)
}

// Queued returns the number of events waiting for [World.Next].
func (w *World) Queued() int { return int(w.words[w.queueAt]) }

// QueuedRoot returns the root of the i-th waiting event.
func (w *World) QueuedRoot(i int) Ref {
	return UnpackRef(w.words[w.entry(i)+entryRoot])
}

// QueuedEvent returns the i-th waiting event and whom it is for.
func (w *World) QueuedEvent(i int) (Ref, EventID) {
	at := w.entry(i)
	return UnpackRef(w.words[at+entryRef]), EventID(w.words[at+entryEvent] & 0xffff)
}

func (w *World) entry(i int) int { return w.queueAt + 1 + i*entryWords }

// HasNext reports whether an event of the root's operation is waiting.
func (w *World) HasNext(root Ref) bool {
	p := root.Pack()
	for i := range w.Queued() {
		if w.words[w.entry(i)+entryRoot] == p {
			return true
		}
	}
	return false
}

// lend copies facts for an opaque guard, which may look but not touch.
func (w *World) lend(facts []uint64) Facts {
	w.lent = append(w.lent[:0], facts...)
	return w.lent
}

func (w *World) fresh(sort int) uint64 {
	w.words[sort]++
	return w.words[sort]
}

// ReserveIdentity makes sure that fresh() of the sort never returns v or less:
// for identities that came in from outside. It is on record, as [Reserved], if
// it changes anything.
func (w *World) ReserveIdentity(sort string, v uint64) {
	i, ok := w.rules.sortID[sort]
	if !ok || w.words[i] >= v {
		return
	}
	w.words[i] = v
	if rec := w.record(Reserved, Ref{}, nil, nil, origin{}); rec >= 0 {
		p := &w.records[rec]
		*p = Record{
			Kind: Reserved, Seq: p.Seq, Time: p.Time, Event: EventID(i), Args: [MaxArgs]uint64{v}, NArgs: 1,
			Row: NoRowID, Call: NoCall, Reason: NoReasonID,
		}
	}
	w.commit()
}
