package model

import (
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// op is an operation that the host may start.
type op uint8

const (
	opNone op = iota
	opOpen
	opPrepare
	opSubmit
	opLaunch
	opAdvance
	opPoll
	opWait
	opFinalize
	opRetry
	opAbort
	opRecover
	opClose
	opQuarantine
	opDetach
	opReserve
	opQueue
	opRevoke
	opRelease
	opQuiesce
	numOps
)

var opNames = [numOps]string{
	"", "open", "prepare", "submit", "launch", "advance", "poll", "wait", "finalize", "retry", "abort",
	"recover", "close", "quarantine", "detach", "reserve", "queue", "revoke", "release", "quiesce",
}

var opMachines = [numOps]string{
	"", "opening", "prepare", "submit", "launch", "submit", "poll", "drain", "finalize", "prepare", "prepare",
	"recovery", "closing", "lane", "environment", "token", "token", "token", "token", "token",
}

var opEvents = [numOps]string{
	"", "start", "start", "start", "start", "advance", "start", "start", "start", "retry", "abort",
	"start", "start", "quarantine", "detach", "reserve", "queue", "revoke", "release", "quiesce",
}

// host is what the host has left to do. Besides that it knows what its lane
// would tell it.
type host struct {
	runs, spare, polls, expiries, recoveries uint8
	opened, closed, quarantined, detached    bool
	// gaveUp: something failed, and nothing was spare to try it again.
	gaveUp bool
	// tried has a bit for each operation that was started for the present run
	// of a slot.
	tried [maxSlots]uint8
}

// once are the operations that are started once for a run, and then only with
// what is spare.
var once = [numOps]uint8{opLaunch: 1, opAdvance: 2, opWait: 4, opFinalize: 8, opRetry: 16, opAbort: 32}

// may reports whether the host may start an operation for the run of a slot.
func (h *host) may(o op, slot int) bool {
	return h.tried[slot]&once[o] == 0 || h.spare > 0
}

// charge counts an operation that was started for the run of a slot.
func (h *host) charge(o op, slot int) {
	if h.tried[slot]&once[o] != 0 {
		h.spare--
	}
	h.tried[slot] |= once[o]
}

// again counts an operation that was started for the lane.
func (h *host) again(done *bool) {
	if *done {
		h.spare--
	}
	*done = true
}

// who is the process that starts an operation, and which run it means.
type who uint8

const (
	themself who = iota
	foreigner
	latecomer
)

var whoNames = [...]string{"", "foreign", "stale"}

// hostMoves appends what the host may start.
func (s *State) hostMoves(dst []Move) []Move {
	c, a, h := &s.sys.config, &s.sys.at, &s.host
	if s.active() >= c.Threads {
		return dst
	}
	if c.Opening && (!h.opened || h.spare > 0) {
		dst = append(dst, hostMove(opOpen, 0, themself))
	}
	for slot := range c.Slots {
		// A lane picks the first slot without a run. Which that is follows from
		// numbers that mean nothing, so any may be.
		if h.runs == 0 || s.runState(slot) != a.idle {
			continue
		}
		o := opPrepare
		if c.Submit {
			o = opSubmit
		}
		dst = append(dst, hostMove(o, slot, themself))
	}
	for slot := range c.Slots {
		run := s.runState(slot)
		if st, _, _ := s.w.State(s.w.Ref(a.prepare.ID(), slot)); st == a.waiting {
			for _, o := range [...]op{opRetry, opAbort} {
				if h.may(o, slot) {
					dst = append(dst, hostMove(o, slot, themself))
				}
			}
		}
		if run == a.idle {
			continue
		}
		for _, o := range [...]op{opLaunch, opAdvance, opWait, opFinalize} {
			if (o == opAdvance) != c.Submit && (o == opAdvance || o == opLaunch) {
				continue
			}
			if h.may(o, slot) {
				dst = append(dst, hostMove(o, slot, themself))
			}
		}
		if h.polls > 0 {
			dst = append(dst, hostMove(opPoll, slot, themself))
		}
	}
	if h.recoveries > 0 {
		dst = append(dst, hostMove(opRecover, 0, themself))
	}
	if c.Close && (!h.closed || h.spare > 0) {
		dst = append(dst, hostMove(opClose, 0, themself))
	}
	if c.Quarantine && !h.quarantined {
		dst = append(dst, hostMove(opQuarantine, 0, themself))
	}
	if c.Detach && !h.detached {
		dst = append(dst, hostMove(opDetach, 0, themself))
	}
	dst = s.tokenMoves(dst)
	if !c.Strangers {
		return dst
	}
	for slot := range c.Slots {
		for _, o := range [...]op{opPrepare, opLaunch, opAdvance, opPoll, opWait, opFinalize, opRetry, opAbort} {
			dst = append(dst, hostMove(o, slot, foreigner))
			if o != opPrepare {
				dst = append(dst, hostMove(o, slot, latecomer))
			}
		}
	}
	return append(dst, hostMove(opRecover, 0, foreigner), hostMove(opClose, 0, foreigner))
}

// tokenMoves appends what the host may do with wait references: count a wait
// of a stream of one slot on a boundary of another, queue it, and give it back.
func (s *State) tokenMoves(dst []Move) []Move {
	c, a := &s.sys.config, &s.sys.at
	reserved := false
	for t := range c.Tokens {
		st, _, _ := s.w.State(s.w.Ref(a.token.ID(), t))
		if st == 0 {
			if reserved {
				continue // free tokens are alike
			}
			reserved = true
			for slot := range c.Slots {
				if s.runState(slot) != a.launched || s.host.spare == 0 {
					continue
				}
				for by := range c.Slots {
					// A wait that is queued behind a run's boundaries is covered by none.
					if by == slot || s.runState(by) != a.prepared {
						continue
					}
					for variant := range 2 {
						dst = append(dst, tokenMove(opReserve, t, slot, by, variant))
					}
				}
			}
			continue
		}
		if s.host.spare > 0 {
			dst = append(dst, tokenMove(opQueue, t, 0, 0, 0))
		}
		dst = append(dst, tokenMove(opRevoke, t, 0, 0, 0), tokenMove(opQuiesce, t, 0, 0, 0))
		// The proof is the host's to have: the run that follows the wait is over.
		holder, _ := s.w.Fact(s.w.Ref(a.token.ID(), t), a.holder)
		if s.runState(int(machine.UnpackRef(holder).Slot)) == a.drained {
			dst = append(dst, tokenMove(opRelease, t, 0, 0, 0), tokenMove(opRelease, t, 0, 0, 1))
		}
	}
	return dst
}

// A host's move is op, slot and who; a token's is op, token, the slots of the
// fence and of the holder, and a variant: which boundary, or which stream.
const hostBit Move = 1 << 63

func hostMove(o op, slot int, w who) Move {
	return hostBit | Move(o) | Move(slot)<<8 | Move(w)<<32
}

func tokenMove(o op, token, slot, by, variant int) Move {
	return hostBit | Move(o) | Move(token)<<8 | Move(slot)<<16 | Move(by)<<24 | Move(variant)<<40
}

func (m Move) op() op       { return op(m) }
func (m Move) slot() int    { return int(uint8(m >> 8)) }
func (m Move) of() int      { return int(uint8(m >> 16)) }
func (m Move) by() int      { return int(uint8(m >> 24)) }
func (m Move) who() who     { return who(uint8(m >> 32)) }
func (m Move) variant() int { return int(uint8(m >> 40)) }

func (s *State) runState(slot int) machine.StateID {
	st, _, _ := s.w.State(s.w.Ref(s.sys.at.run.ID(), slot))
	return st
}

// start lets the host start an operation.
func (s *State) start(m Move) *Finding {
	a, o, slot := &s.sys.at, m.op(), m.slot()
	if m.who() != themself {
		return s.intrude(m)
	}
	switch o {
	case opPrepare, opSubmit, opLaunch, opAdvance, opRecover:
		// A lane that is not open hears nothing.
		if st, _, _ := s.w.State(s.w.Ref(a.environment.ID(), 0)); st != a.live {
			break
		}
		if f := s.hear(); f != nil {
			return f
		}
	}
	var args [machine.MaxArgs]uint64
	n := s.arguments(m, &args)
	refused, f := s.issued(a.ops[o], slot, args[:n])
	if f != nil || refused {
		return f
	}
	switch o {
	case opPrepare, opSubmit:
		s.host.runs--
	case opPoll:
		s.host.polls--
	case opRecover:
		s.host.recoveries--
	case opOpen:
		s.host.again(&s.host.opened)
	case opClose:
		s.host.again(&s.host.closed)
	case opQuarantine:
		s.host.quarantined = true
	case opDetach:
		s.host.detached = true
		_, f = s.issued(a.ops[opQuarantine], 0, nil)
	case opReserve, opQueue:
		s.host.spare--
	default:
		s.host.charge(o, slot%maxSlots)
	}
	return f
}

// intrude lets somebody try an operation who must get nothing of it.
func (s *State) intrude(m Move) *Finding {
	a, o := &s.sys.at, m.op()
	var args [machine.MaxArgs]uint64
	n := s.arguments(m, &args)
	if m.who() == foreigner {
		args[0] = stranger
	} else {
		args[1], args[3] = stale, stale
	}
	refused, f := s.issued(a.ops[o], m.slot(), args[:n])
	if f == nil && !refused {
		f = &Finding{Kind: "intruder", Detail: s.sys.MoveText(s, m) + " was not refused"}
	}
	return f
}

// arguments writes what an operation is started with.
func (s *State) arguments(m Move, args *[machine.MaxArgs]uint64) int {
	a, o, slot := &s.sys.at, m.op(), m.slot()
	fence := func(slot int) uint64 { return s.w.Ref(a.fence.ID(), slot).Pack() }
	args[0] = process
	switch o {
	case opPrepare, opSubmit:
		args[1], args[2], args[3] = s.work, machine.BoolWord(s.sys.config.Caller), machine.BoolWord(s.sys.config.Async)
		if o == opPrepare {
			return 4
		}
		s.before(slot, args[4:])
		return 8
	case opOpen:
		// A context that is borrowed comes with a generation, and no other does.
		borrowed := machine.BoolWord(s.sys.config.Borrowed)
		args[1], args[2], args[3], args[4] = 0, borrowed, borrowed, uint64(s.sys.config.Depth)
		return 5
	case opRecover, opClose, opDetach:
		return 1
	case opQuarantine, opQueue, opRevoke, opQuiesce:
		return 0
	case opRelease:
		args[0] = uint64(m.variant())
		return 1
	case opReserve:
		run := s.w.Ref(a.run.ID(), m.of())
		args[0] = fence(m.of())
		for i, f := range a.identity {
			args[1+i], _ = s.w.Fact(run, f)
		}
		args[4], _ = s.w.Fact(s.w.Ref(a.fence.ID(), m.of()), a.arming)
		// Crossed, as a join's are: AICore waits for the AICPU boundary.
		args[5], args[6] = uint64(states.CPUDone), uint64(states.CoreStream)
		if m.variant() == 1 {
			args[5], args[6] = uint64(states.CoreDone), uint64(states.CPUStream)
		}
		args[7] = fence(m.by())
		return 8
	}
	run := s.w.Ref(a.run.ID(), slot)
	for i, f := range a.identity {
		args[1+i], _ = s.w.Fact(run, f)
	}
	switch o {
	case opLaunch:
		args[4], _ = s.w.Fact(run, a.permit)
		return 5
	case opAdvance:
		s.before(slot, args[4:])
		return 8
	}
	return 4
}

// before fills in which run a run of the slot goes behind, as a lane does.
func (s *State) before(slot int, args []uint64) {
	a := &s.sys.at
	for other := range s.sys.config.Slots {
		if st := s.runState(other); other != slot && (st == a.launched || st == a.partial) {
			args[0] = s.w.Ref(a.run.ID(), other).Pack()
			args[1] = s.w.Ref(a.fence.ID(), other).Pack()
			args[2] = s.w.Ref(a.drain.ID(), other).Pack()
		}
	}
	args[3] = s.w.Ref(a.fence.ID(), slot).Pack()
}
