package model

import (
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// Act names a move by what it does to whom, which stays the same from state to
// state and from one system to another one with other bounds; a [Move] is good
// for its own state only.
type Act uint64

// An act of the host's is its move. One of the device's is the kind of choice,
// then what its target is.
const (
	actKind = 48

	ofStream = iota << 24
	ofCaller
	ofCall
	ofNotice
	ofOther
)

// Act returns what a move does. The move is one of those that Moves gave last,
// and none was taken since.
func (s *State) Act(m Move) Act {
	if m&hostBit != 0 {
		return Act(m)
	}
	c := s.choices[m]
	return Act(c.Kind)<<actKind | Act(s.target(c))
}

// target says whom a choice concerns, as handleText does.
func (s *State) target(c sim.Choice) uint64 {
	switch {
	case c.Kind == sim.ChooseNotice || c.Kind == sim.ChooseLose:
		return ofNotice | c.Target
	case c.Target == uint64(s.caller):
		return ofCaller
	}
	for i := range s.calls {
		if uint64(s.calls[i].ticket) == c.Target {
			ref := s.calls[i].cmd.Ref
			return ofCall | uint64(ref.Machine)<<8 | uint64(ref.Slot)
		}
	}
	for slot := range s.sys.config.Slots {
		h := s.cmd.Handles(slot)
		for part, v := range [...]uint64{uint64(h.Core), uint64(h.CPU)} {
			if v == c.Target {
				return ofStream | uint64(slot)<<1 | uint64(part)
			}
		}
	}
	return ofOther | c.Target&(1<<24-1)
}

// Offered returns the move of this state that does the act, if there is one.
func (s *State) Offered(a Act) (Move, bool) {
	s.offered = s.Moves(s.offered[:0])
	for _, m := range s.offered {
		if s.Act(m) == a {
			return m, true
		}
	}
	return 0, false
}

// Begins reports whether the act is that a run begins.
func (a Act) Begins() bool {
	m := Move(a)
	return m&hostBit != 0 && m.who() == themself && (m.op() == opPrepare || m.op() == opSubmit)
}

// SlotOf returns the slot that an act concerns, if it is one slot.
func (s *System) SlotOf(a Act) (int, bool) {
	if m := Move(a); m&hostBit != 0 {
		return m.slot(), s.pooled(s.at.ops[m.op()].m)
	}
	switch whom := uint64(a) & (1<<actKind - 1); whom &^ (1<<24 - 1) {
	case ofStream:
		return int(uint8(whom >> 1)), true
	case ofCall:
		return int(uint8(whom)), s.pooled(s.rules.At(machine.MachineID(uint8(whom >> 8))))
	}
	return 0, false
}

// pooled reports whether each slot has a machine of its own.
func (s *System) pooled(m *machine.Machine) bool { return m.Definition().Pool == "slot" }

// Swap returns the act that does in slot i what this one does in slot j, and the
// other way round.
func (s *System) Swap(a Act, i, j int) Act {
	other := func(slot int) Act {
		switch slot {
		case i:
			return Act(j)
		case j:
			return Act(i)
		}
		return Act(slot)
	}
	if m := Move(a); m&hostBit != 0 && m.op() == opReserve {
		a = a&^(0xffff<<16) | other(m.of())<<16 | other(m.by())<<24
	}
	slot, ok := s.SlotOf(a)
	switch {
	case !ok:
	case Move(a)&hostBit != 0:
		a = a&^(0xff<<8) | other(slot)<<8
	case uint64(a)&(1<<actKind-1)&^(1<<24-1) == ofStream:
		a = a&^0x1fe | other(slot)<<1
	default:
		a = a&^0xff | other(slot)
	}
	return a
}

// Class groups acts that differ only in whom they concern: one operation of the
// host's, one kind of choice.
type Class uint8

// NumClasses is above every class.
const NumClasses = 4*classHosts + 16

const classHosts = 32

// Class returns the class of an act.
func (a Act) Class() Class {
	if m := Move(a); m&hostBit != 0 {
		return Class(m.op()) + classHosts*Class(m.who())
	}
	return 4*classHosts + Class(a>>actKind)
}

// Whom tells the streams, calls and notices apart that the device's acts
// concern, and is 0 for those of the host's.
func (a Act) Whom() uint32 {
	if Move(a)&hostBit != 0 {
		return 0
	}
	return uint32(a)
}

// Fault reports whether the class is of faults that strike.
func (c Class) Fault() bool { return c >= 4*classHosts && sim.ChoiceKind(c-4*classHosts).Fault() }

// Stranger reports whether the class is of operations that others try than the
// host of the lane.
func (c Class) Stranger() bool { return c >= classHosts && c < 4*classHosts }

// Progress is what came of a move.
type Progress uint8

const (
	// Unchanged: the move changed nothing; an operation was refused.
	Unchanged Progress = iota
	// Nearer: it brought the end nearer, as every change must.
	Nearer
	// Unsure: either nothing changed, or the end is no nearer than before, which
	// [State.Take] would report: it compares the states.
	Unsure
)

// Step is Take without the fingerprints by which Take sees whether a move that
// does not bring the end nearer changes anything at all.
func (s *State) Step(m Move) (Progress, *Finding) {
	s.steps, s.refusal, s.touched = 0, "", false
	before := s.rank()
	f := s.take(m)
	switch {
	case f != nil || !s.touched:
		return Unchanged, f
	case s.rank().below(before):
		return Nearer, nil
	}
	return Unsure, nil
}
