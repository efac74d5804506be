package explore

import (
	"math/rand/v2"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants/model"
)

// swarm is how one walk goes about: which moves it likes, and how much. Each
// walk draws one of its own, since walks that all do a little of everything
// rarely do much of anything.
type swarm struct {
	class [model.NumClasses]int
	// whom are weights of those concerned: a stream of little weight is starved,
	// a call of little weight hangs half-way.
	whom [32]int
}

// drawSwarm draws weights. What weighs nothing is only done if nothing else
// is left to be done.
func drawSwarm(r *rand.Rand) (s swarm) {
	faults := []int{1, 1, 2, 8, 64}[r.IntN(5)]
	for c := range s.class {
		switch k := model.Class(c); {
		case k.Fault():
			s.class[c] = faults * []int{0, 1, 1, 4}[r.IntN(4)]
		case k.Stranger():
			s.class[c] = []int{0, 1, 2}[r.IntN(3)]
		default:
			s.class[c] = []int{0, 4, 16, 32, 32, 64, 64, 256}[r.IntN(8)]
		}
	}
	plain := r.IntN(3) == 0
	for w := range s.whom {
		if s.whom[w] = 4; !plain {
			s.whom[w] = []int{0, 1, 4, 4, 4, 16}[r.IntN(6)]
		}
	}
	return s
}

// weight is what an act weighs.
func (s *swarm) weight(a model.Act) int {
	w := s.class[a.Class()]
	if whom := a.Whom(); whom != 0 {
		w *= s.whom[whom*0x9e3779b1>>27]
	}
	return w
}

// drawConfig draws bounds, far beyond what can be searched.
func drawConfig(r *rand.Rand) model.Config {
	one := func(in int) bool { return r.IntN(in) == 0 }
	// Small more often than large, zero among them.
	upTo := func(most int) int { return min(r.IntN(most+1), r.IntN(most+1)) }
	c := model.Config{Slots: 1 + r.IntN(4), Threads: 1 + r.IntN(3), Runs: 1 + upTo(29)}
	c.Depth = 1 + r.IntN(c.Slots)
	c.Submit, c.Caller, c.Async = one(2), one(3), one(3)
	c.Borrowed, c.Records = one(3), one(2)
	c.Opening, c.Close, c.Quarantine, c.Detach, c.Strangers = one(4), one(4), one(6), one(8), one(6)
	c.Spare, c.Polls = upTo(12), upTo(20)
	c.Expiries, c.Recoveries = upTo(4), upTo(5)
	if one(3) {
		c.Tokens = 1 + r.IntN(3)
	}
	if one(4) {
		return c
	}
	c.Budget = 1 + upTo(7)
	for k := sim.Refuse; k <= sim.Unconfirmed; k++ {
		if model.EveryFault.Has(k) && one(2) {
			c.Faults |= sim.Faults(k)
		}
	}
	if c.Faults == 0 {
		c.Faults = model.EveryFault
	}
	if one(2) {
		for range 1 + r.IntN(5) {
			c.FaultOps |= sim.Ops(sim.OpCurrentContext + sim.OpKind(r.IntN(int(sim.OpReset-sim.OpCurrentContext)+1)))
		}
	}
	return c
}
