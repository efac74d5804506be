package invariants

import "github.com/runfence/runfence/machine"

type Checker struct{}

func For(*machine.Rules) *Checker                  { return &Checker{} }
func (*Checker) World(w *machine.World) []*Finding { return Check(w) }
func (*Checker) Step(a, b *machine.World, recs []machine.Record) []*Finding {
	return CheckStep(a, b, recs)
}
