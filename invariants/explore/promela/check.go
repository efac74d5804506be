package promela

import "github.com/runfence/runfence/machine"

// check tells which invariant of [asserted] does not hold in the state, or "".
func (s *state) check() broken {
	m, at, w := s.m, &s.m.at, s.w
	waitKind := m.join.FactType(at.joinWait[0])
	noWait, _ := waitKind.Parse("no_wait")
	joining, _ := m.join.State("joining")
	armed, _ := m.fence.State("armed")
	released, _ := m.fence.State("released")
	recorded, _ := m.fence.FactType(at.fenceCore).Parse("recorded")
	complete, _ := m.fence.FactType(at.fenceCore).Parse("complete")
	quarantined, _ := m.lane.State("quarantined")
	lane, _, _ := w.State(w.Ref(m.lane.ID(), 0))
	for a := range m.shape.Slots {
		for b := range m.shape.Slots {
			if s.follows(a, b, joining) && s.follows(b, a, joining) {
				return "no-wait-cycle"
			}
		}
	}
	for slot := range m.shape.Slots {
		fence := w.Ref(m.fence.ID(), slot)
		st, _, _ := w.State(fence)
		arming := s.fact(m.fence, slot, at.fenceArming)
		refs := [2]uint64{s.fact(m.fence, slot, at.fenceCoreRefs), s.fact(m.fence, slot, at.fenceCPURefs)}
		var live [2]uint64
		if arming != 0 {
			for t := range m.shape.Tokens {
				if ts, _, _ := w.State(w.Ref(m.token.ID(), t)); m.countsIn(ts) && s.fact(m.token, t, at.tokenFence) == fence.Pack() && s.fact(m.token, t, at.tokenArming) == arming {
					live[s.fact(m.token, t, at.tokenBoundary)]++
				}
			}
			for j := range m.shape.Slots {
				if s.fact(m.join, j, at.joinPred) == fence.Pack() && s.fact(m.join, j, at.joinArming) == arming {
					for b := range 2 {
						if s.fact(m.join, j, at.joinWait[b]) != noWait {
							live[1-b]++
						}
					}
				}
			}
		}
		if s.fact(m.order, slot, at.orderHeld) != 0 {
			live[1]++
		}
		if live != refs {
			return "tokens-equal-counts"
		}
		for b, f := range []machine.FactID{at.fenceCore, at.fenceCPU} {
			e := 2*slot + b
			v := s.fact(m.fence, slot, f)
			switch {
			case refs[b] > 0 && v != recorded && v != complete:
				return "record-before-wait"
			case st == released && refs[b] > 0, !s.d.made[slot] && (s.d.waits[e] > 0 || s.d.records[e] > 0):
				return "events-kept-in-use"
			case lane != quarantined && uint64(s.d.waits[e]) > refs[b]:
				return "counts-drop-by-proof"
			case st != armed && (s.d.kernels[e] > 0 || s.d.records[e] > 0):
				return "retired-is-proven"
			}
		}
	}
	return ""
}

// follows reports whether the run of slot a is joined behind that of slot b.
func (s *state) follows(a, b int, joining machine.StateID) bool {
	st, _, _ := s.w.State(s.w.Ref(s.m.join.ID(), a))
	return st == joining && slotOf(s.fact(s.m.join, a, s.m.at.joinPred)) == b && s.fact(s.m.join, a, s.m.at.joinPred) != 0 && slotOf(s.fact(s.m.join, a, s.m.at.joinHome)) == a
}

// countsIn reports whether a token in the state is counted.
func (m *RunModel) countsIn(st machine.StateID) bool {
	switch m.token.Definition().States[st].Name {
	case "reserved", "queueing", "committed":
		return true
	}
	return false
}
