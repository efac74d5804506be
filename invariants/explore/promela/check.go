package promela

import "github.com/runfence/runfence/machine"

// check tells which of the asserted invariants does not hold in the state, or
// "", looking at them in the order of run.pml.tmpl.
func (s *state) check() broken {
	is, w, d := &s.m.is, s.w, &s.d
	for a := range s.m.shape.Slots {
		for b := range a + 1 {
			if s.follows(a, b) && s.follows(b, a) {
				return "no-wait-cycle"
			}
		}
	}
	lane, _, _ := w.State(s.at(s.m.lane, 0))
	for slot := range s.m.shape.Slots {
		f, core, cpu := s.look(slot), 2*slot, 2*slot+1
		stands := func(v uint64) bool { return v == is.recorded || v == is.complete }
		queued := d.waits[core] > 0 || d.waits[cpu] > 0
		recorded := d.records[core] > 0 || d.records[cpu] > 0
		switch {
		case f.refs != f.live:
			return "tokens-equal-counts"
		case f.refs[0] > 0 && !stands(f.boundary[0]) || f.refs[1] > 0 && !stands(f.boundary[1]):
			return "record-before-wait"
		case f.state == is.released && f.refs != [2]uint64{}, !d.made[slot] && (queued || recorded):
			return "events-kept-in-use"
		case lane != is.quarantined && (uint64(d.waits[core]) > f.refs[0] || uint64(d.waits[cpu]) > f.refs[1]):
			return "counts-drop-by-proof"
		case f.state != is.armed && (d.kernels[core] > 0 || d.kernels[cpu] > 0 || recorded):
			return "retired-is-proven"
		}
	}
	return ""
}

// counts is what a fence counts, and what there is to be counted.
type counts struct {
	state      machine.StateID
	boundary   [2]uint64
	refs, live [2]uint64
}

func (s *state) look(slot int) counts {
	m, at, is, w := s.m, &s.m.at, &s.m.is, s.w
	ref := s.at(m.fence, slot)
	fence, arming := ref.Pack(), s.fact(m.fence, slot, at.fenceArming)
	f := counts{
		boundary: [2]uint64{s.fact(m.fence, slot, at.fenceCore), s.fact(m.fence, slot, at.fenceCPU)},
		refs:     [2]uint64{s.fact(m.fence, slot, at.fenceCoreRefs), s.fact(m.fence, slot, at.fenceCPURefs)},
	}
	f.state, _, _ = w.State(ref)
	if s.fact(m.order, slot, at.orderHeld) != is.unheld {
		f.live[1]++
	}
	if arming == 0 {
		return f
	}
	for t := range m.shape.Tokens {
		st, _, _ := w.State(w.Ref(m.token.ID(), t))
		if is.counted>>st&1 != 0 && s.fact(m.token, t, at.tokenFence) == fence && s.fact(m.token, t, at.tokenArming) == arming {
			f.live[s.fact(m.token, t, at.tokenBoundary)]++
		}
	}
	for j := range m.shape.Slots {
		if s.fact(m.join, j, at.joinPred) != fence || s.fact(m.join, j, at.joinArming) != arming {
			continue
		}
		// Each stream waits for the other's boundary.
		for b := range 2 {
			if s.fact(m.join, j, at.joinWait[b]) != is.noWait {
				f.live[1-b]++
			}
		}
	}
	return f
}

// follows reports whether the run of slot a is joined behind that of slot b.
func (s *state) follows(a, b int) bool {
	m := s.m
	st, _, _ := s.w.State(s.at(m.join, a))
	if st != m.is.joining {
		return false
	}
	pred, home := s.fact(m.join, a, m.at.joinPred), s.fact(m.join, a, m.at.joinHome)
	return pred != 0 && home != 0 && slotOf(pred) == b && slotOf(home) == a
}
