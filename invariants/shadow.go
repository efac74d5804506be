package invariants

import (
	"fmt"

	"github.com/runfence/runfence/machine"
)

// shadow is what the records of a lane tell of its device: what was, or may
// have been, put into which stream, and how far each stream is proven to be. It
// knows of a caller's stream only what the runs put there, and takes a host's
// word for proofs that the host has itself, such as for a token that it
// releases.
//
// An entry counts as queued from its issue on, unless it was refused before its
// attempt. An answer about a record, or about a whole stream, proves the entries
// that had been answered when that record, or that question, was issued.
type shadow struct {
	why     string // why it cannot tell
	vacuous bool

	calls   []shadowCall // by call
	rowCall [][]int      // the call of a row, by machine, or -1
	open    []*entry
	last    map[int]*entry // the latest record of each event
	under   map[uint64]*entry
	of      map[machine.Ref]*entry // the wait of a token
	broken  []string
	tokens  tokenFacts
}

// entry is what a stream has, or may have.
type entry struct {
	seq     uint64 // of its issue
	until   uint64 // of its answer; 0 while it is in flight
	stream  int
	event   int    // that it records or waits for, or -1
	memory  uint8  // that it uses
	slot    int    // whose memory
	after   *entry // the record that it waits for
	records bool
	run     bool // part of the slot's run
	over    bool
}

// Streams and events of a slot, and its memory.
const (
	coreStream = iota
	cpuStream
	callerStream
	numStreams
)

const (
	coreDone = iota
	cpuDone
	startEvent
	forkEvent
	tailEvent
	numEvents
)

const (
	argsMemory   uint8 = 1 << iota // the argument block on the device
	pinnedMemory                   // its pinned source
	regionMemory
	sourceMemory // the region's pinned source
)

// shadowCall is what a call does to the device.
type shadowCall struct {
	name string
	// stream is where it queues something, -1 if nowhere.
	stream  int
	records int // event, -1
	waits   int // event, -1
	uses    uint8
	// writes is memory that it overwrites or frees at once.
	writes uint8
	// proves the record of this event, or with whole the whole stream.
	proves int
	status bool // proves only if the answer is 1
	whole  int
	// all: it frees everything that the slots have. ends: the run's resources.
	all, ends, reset, drain bool
}

var shadowCalls = func() map[string]shadowCall {
	none := shadowCall{stream: -1, records: -1, waits: -1, proves: -1, whole: -1}
	with := func(f func(c *shadowCall)) shadowCall {
		c := none
		f(&c)
		return c
	}
	queues := func(stream int, f func(c *shadowCall)) shadowCall {
		return with(func(c *shadowCall) { c.stream = stream; f(c) })
	}
	record := func(stream, event int) shadowCall { return queues(stream, func(c *shadowCall) { c.records = event }) }
	wait := func(stream, event int) shadowCall { return queues(stream, func(c *shadowCall) { c.waits = event }) }
	use := func(stream int, memory uint8) shadowCall {
		return queues(stream, func(c *shadowCall) { c.uses = memory })
	}
	proof := func(event int, status bool) shadowCall {
		return with(func(c *shadowCall) { c.proves, c.status = event, status })
	}
	whole := func(stream int) shadowCall { return with(func(c *shadowCall) { c.whole = stream }) }
	return map[string]shadowCall{
		"SubmitCore":     use(coreStream, argsMemory|regionMemory),
		"SubmitCPU":      use(cpuStream, argsMemory|regionMemory),
		"PublishRegion":  use(cpuStream, sourceMemory|regionMemory),
		"CopyDescriptor": use(cpuStream, pinnedMemory|argsMemory),
		"RecordCore":     record(coreStream, coreDone),
		"RecordCPU":      record(cpuStream, cpuDone),
		"RecordStart":    record(callerStream, startEvent),
		"RecordFork":     record(cpuStream, forkEvent),
		"RecordTail":     record(callerStream, tailEvent),
		"WaitStart":      wait(cpuStream, startEvent),
		"WaitFork":       wait(coreStream, forkEvent),
		"WaitCoreDone":   wait(cpuStream, coreDone),
		"WaitCPUDone":    wait(callerStream, cpuDone),
		"QueueJoinCore":  wait(coreStream, cpuDone), // of the predecessor
		"QueueJoinCPU":   wait(cpuStream, coreDone),
		"QueueWait":      wait(coreStream, coreDone), // its arguments say which
		"QueryCore":      proof(coreDone, true),
		"QueryCPU":       proof(cpuDone, true),
		"QueryTail":      proof(tailEvent, true),
		"WaitCore":       proof(coreDone, false),
		"WaitCPU":        proof(cpuDone, false),
		"WaitTail":       proof(tailEvent, false),
		"SyncCore":       whole(coreStream),
		"SyncCPU":        whole(cpuStream),
		"SyncCaller":     whole(callerStream),
		"PrepareRun":     with(func(c *shadowCall) { c.writes = argsMemory | pinnedMemory }),
		"RollBack":       with(func(c *shadowCall) { c.writes = argsMemory | pinnedMemory }),
		"AllocateRegion": with(func(c *shadowCall) { c.writes = sourceMemory }),
		"ReleaseRun":     with(func(c *shadowCall) { c.ends = true }),
		"ReleaseSlots":   with(func(c *shadowCall) { c.all = true }),
		"Teardown":       with(func(c *shadowCall) { c.all = true }),
		"ResetDevice":    with(func(c *shadowCall) { c.reset = true }),
		"DrainDevice":    with(func(c *shadowCall) { c.drain = true }),
	}
}()

// knownToTouchNothing are the calls that put nothing into a stream and free
// nothing that one may name. Any other makes the shadow say that it cannot tell.
var knownToTouchNothing = map[string]bool{
	"CurrentContext": true, "CreateContext": true, "OpenSlots": true, "CheckCaller": true, "CaptureStatus": true,
	"MakeEvents": true, "MakeOrderEvents": true, "ReadRecord": true, "QueryCoreStream": true, "QueryCPUStream": true,
	// Images are the registry's: they are removed when their users are gone (F87).
	"Upload": true, "Remove": true,
}

// tokenFacts are where tokens say what they wait for.
type tokenFacts struct {
	kind
	fence, boundary, waiter, holder fact
	commit, release                 rows
}

func newShadow(w *machine.World, first uint64) *shadow {
	rules := w.Rules()
	s := &shadow{last: map[int]*entry{}, under: map[uint64]*entry{}, of: map[machine.Ref]*entry{}}
	if rules.Machine("launch") == nil || rules.Machine("fence") == nil {
		s.why, s.vacuous = "the rules have no launch that touches a device", true
		return s
	}
	if first != 1 {
		s.why = "the records do not begin with the world's first"
		return s
	}
	for _, name := range rules.Calls() {
		c, ok := shadowCalls[name]
		if !ok {
			if !knownToTouchNothing[name] {
				s.why = "nobody knows what the call " + name + " does to the device"
				return s
			}
			c = shadowCall{stream: -1, records: -1, waits: -1, proves: -1, whole: -1}
		}
		c.name = name
		s.calls = append(s.calls, c)
	}
	for i := range rules.NumMachines() {
		m := rules.At(machine.MachineID(i))
		of := make([]int, m.NumRows())
		for r := range of {
			of[r] = -1
			if id, ok := rules.Call(callOf(m, machine.RowID(r))); ok {
				of[r] = int(id)
			}
		}
		s.rowCall = append(s.rowCall, of)
	}
	n := &names{rules: rules}
	k := n.maybe("token")
	s.tokens = tokenFacts{
		kind: k, fence: k.fact("fence"), boundary: k.fact("boundary"), waiter: k.fact("waiter"), holder: k.fact("holder"),
		commit: n.eventRows(k, "commit"), release: n.eventRows(k, "release"),
	}
	if len(n.missing) > 0 {
		s.why = n.missing[0]
	}
	return s
}

// Broken implements [Device].
func (s *shadow) Broken() []string { return s.broken }

func (s *shadow) wrong(seq uint64, format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf("record %d: ", seq)+fmt.Sprintf(format, args...))
}

func (s *shadow) step(before, after *machine.World, recs []machine.Record) {
	for i := range recs {
		rec := &recs[i]
		switch rec.Kind {
		case machine.Issued:
			s.issue(rec)
		case machine.Settled:
			s.settle(rec)
		case machine.Stepped:
			s.token(before, after, rec)
		}
	}
}

func (s *shadow) issue(rec *machine.Record) {
	c, slot := &s.calls[rec.Call], int(rec.Ref.Slot)
	if c.records >= 0 {
		s.reuse(rec.Seq, slot, c.records)
	}
	for _, e := range s.open {
		switch {
		case c.all:
			s.wrong(rec.Seq, "%s while %s may be on the device", c.name, e)
			return
		case c.ends && e.run && e.stream/numStreams == slot:
			s.wrong(rec.Seq, "%s of slot %d while %s may be on the device", c.name, slot, e)
			return
		case e.memory&c.writes != 0 && e.slot == slot:
			s.wrong(rec.Seq, "%s overwrites memory of slot %d that %s may still use", c.name, slot, e)
			return
		}
	}
	if c.stream < 0 {
		return
	}
	e := &entry{seq: rec.Seq, stream: slot*numStreams + c.stream, event: -1, memory: c.uses, slot: slot, run: true}
	switch {
	case c.records >= 0:
		e.event, e.records = slot*numEvents+c.records, true
	case c.waits >= 0:
		on := slot
		switch c.name {
		case "QueueJoinCore", "QueueJoinCPU":
			on = int(machine.UnpackRef(rec.CallArgs[0]).Slot)
			e.event = on*numEvents + c.waits
		case "QueueWait":
			s.waits(e, rec.CallArgs[0], rec.CallArgs[1], rec.CallArgs[2], rec.CallArgs[3])
			s.of[rec.Ref] = e
		default:
			e.event = on*numEvents + c.waits
		}
		e.after = s.last[e.event]
	}
	s.under[rec.Seq] = e
	s.open = append(s.open, e)
}

// waits makes an entry the wait of a token.
func (s *shadow) waits(e *entry, holder, waiter, fence, boundary uint64) {
	e.run = false
	e.stream = int(machine.UnpackRef(holder).Slot)*numStreams + int(waiter)
	e.event = int(machine.UnpackRef(fence).Slot)*numEvents + int(boundary)
	e.after = s.last[e.event]
}

// reuse looks for what may name an event that is about to be recorded.
func (s *shadow) reuse(seq uint64, slot, event int) {
	for _, e := range s.open {
		if e.event == slot*numEvents+event {
			s.wrong(seq, "the %s event of slot %d is recorded again while %s may name it", eventName(event), slot, e)
			return
		}
	}
}

func (s *shadow) settle(rec *machine.Record) {
	if e := s.under[rec.Parent]; e != nil {
		delete(s.under, rec.Parent)
		e.until = rec.Seq
		if !mayBeQueued(rec) {
			e.after = nil
			s.end(e)
			delete(s.of, rec.Ref)
		} else if e.records {
			s.last[e.event] = e
		}
		return
	}
	call := s.rowCall[rec.Ref.Machine][rec.Row]
	if call < 0 {
		return
	}
	c := &s.calls[call]
	slot := int(rec.Ref.Slot)
	well := rec.Result.Outcome == machine.OK
	switch {
	case c.proves >= 0 && well && (!c.status || rec.Result.Value == 1):
		// Asked before its answer: what was recorded then.
		if e := s.last[slot*numEvents+c.proves]; e != nil && e.until <= rec.Parent {
			s.proven(e)
		}
	case c.whole >= 0 && well:
		s.empty(slot*numStreams+c.whole, rec.Parent)
	case c.drain && well:
		for _, stream := range s.streams() {
			if stream%numStreams != callerStream {
				s.empty(stream, rec.Parent)
			}
		}
	case c.reset && well && rec.Result.Value == 1:
		s.open = nil
		clear(s.last)
		clear(s.under)
		clear(s.of)
	}
}

// streams lists those that something is in.
func (s *shadow) streams() []int {
	var out []int
	seen := map[int]bool{}
	for _, e := range s.open {
		if !seen[e.stream] {
			seen[e.stream] = true
			out = append(out, e.stream)
		}
	}
	return out
}

// proven: a record is on its stream no more, nor what was before it.
func (s *shadow) proven(e *entry) {
	s.end(e)
	s.empty(e.stream, e.seq)
}

// empty: what a stream had been given, and answered for, by then is over.
func (s *shadow) empty(stream int, by uint64) {
	for again := true; again; {
		again = false
		for _, e := range s.open {
			if e.stream == stream && e.until != 0 && e.until <= by {
				s.end(e)
				again = true
				break
			}
		}
	}
}

// end takes an entry out of the open ones. A wait that is over was released by
// its record, which is over as well.
func (s *shadow) end(e *entry) {
	if e.over {
		return
	}
	e.over = true
	for i, x := range s.open {
		if x == e {
			s.open = append(s.open[:i], s.open[i+1:]...)
			break
		}
	}
	if e.after != nil && e.until != 0 {
		s.proven(e.after)
		e.after = nil
	}
}

// token follows the waits that a host queues by itself, and takes its word for
// the proof that it releases one by, if that is of the stream with the wait.
func (s *shadow) token(before, after *machine.World, rec *machine.Record) {
	t := &s.tokens
	if !t.there || rec.Ref.Machine != t.id {
		return
	}
	switch i := t.at(before, int(rec.Ref.Slot)); {
	case t.commit.has(rec):
		e := &entry{seq: rec.Seq, until: rec.Seq}
		s.waits(e, t.holder.of(i), t.waiter.of(i), t.fence.of(i), t.boundary.of(i))
		s.of[rec.Ref] = e
		s.open = append(s.open, e)
	case t.release.has(rec):
		if e := s.of[rec.Ref]; e != nil && rec.Args[0] == t.waiter.of(i) {
			s.end(e)
			delete(s.of, rec.Ref)
		}
	}
}

func eventName(e int) string {
	return [...]string{"AICore", "AICPU", "Start", "Fork", "Tail"}[e%numEvents]
}

// String says what an entry is.
func (e *entry) String() string {
	what := "work"
	switch {
	case e.records:
		what = "a record of the " + eventName(e.event) + " event"
	case e.event >= 0:
		what = fmt.Sprintf("a wait for the %s event of slot %d", eventName(e.event), e.event/numEvents)
	}
	return fmt.Sprintf("%s of record %d, in the %s stream of slot %d", what, e.seq, [...]string{"AICore", "AICPU", "caller's"}[e.stream%numStreams], e.stream/numStreams)
}
