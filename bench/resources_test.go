package bench

import (
	"testing"
	"time"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// chargeAndRelease is one object from its charge to its release at the fence, in
// steps of the rules alone: no lock, no backend, no façade.
func chargeAndRelease() row {
	return row{
		name: "charge and release", within: 150 * time.Nanosecond, allocs: 0, per: objects,
		ours: func(b *testing.B) {
			w := building(b, states.OrchestratorRules(), objects)
			object := w.Rules().Machine("resource")
			charge, release := object.MustEvent("charge"), object.MustEvent("release")
			released, _ := object.State("released")
			before := w.Clone()
			m := measured(b)
			for b.Loop() {
				w.CopyFrom(before)
				for s := range objects {
					ref := machine.Ref{Machine: object.ID(), Slot: uint16(s)}
					w.Issue(ref, charge, 1, uint64(s+1))
					w.Issue(ref, release)
					if s := w.Settle(ref, machine.Result{}); s.State != released {
						b.Fatal(w.RefusalError(s))
					}
				}
			}
			m.stop()
		},
	}
}

// ownsNothing is what resources cost a run that has none: its fence, less the
// same step when it does not look whether there are any.
func ownsNothing() row {
	return row{
		name: "a run without resources", within: 50 * time.Nanosecond, allocs: 0, per: objects,
		ours: func(b *testing.B) {
			blind := states.OrchestratorDefinitions()
			for _, d := range blind {
				for i := range d.Rows {
					if d.Name == "resources" && d.Rows[i].ID == "fence-bare" {
						d.Rows[i].Guard = "pending == 0"
					}
				}
			}
			looks, not := fences(b, states.OrchestratorRules()), fences(b, machine.MustCompile(blind...))
			m := measured(b)
			var spent time.Duration
			for b.Loop() {
				begin := processor()
				looks()
				middle := processor()
				not()
				spent += (middle - begin) - (processor() - middle)
			}
			m.stop()
			b.ReportMetric(max(0, float64(spent))/float64(b.N), processorTime)
		},
	}
}

// objects is how many there are to an iteration.
const objects = 1000

// building is an orchestrator's world with a run that is being built, and room
// for resources.
func building(b *testing.B, rules *machine.Rules, resources int) *machine.World {
	w, err := rules.NewWorld(machine.Config{Pools: map[string]int{"work": 1, "resource": resources, "domain": 1, "task": 1, "endpoint": 1}})
	if err != nil {
		b.Fatal(err)
	}
	for _, x := range []struct {
		machine, event string
		args           []uint64
	}{{"orchestrator", "init", []uint64{3}}, {"building", "start", nil}} {
		m := rules.Machine(x.machine)
		if s := w.Issue(w.Ref(m.ID(), 0), m.MustEvent(x.event), x.args...); s.Status > machine.InFlight {
			b.Fatal(w.RefusalError(s))
		}
	}
	return w
}

// fences takes the fence of a run that owns nothing, again and again.
func fences(b *testing.B, rules *machine.Rules) func() {
	w := building(b, rules, 1)
	build, run := rules.Machine("building"), rules.Machine("resources")
	w.Settle(w.Ref(build.ID(), 0), machine.Result{})
	ref, fence, running := w.Ref(run.ID(), 0), run.MustEvent("fence"), w.Clone()
	if s := w.Issue(ref, fence); run.RowID(s.Row) != "fence-bare" {
		b.Fatal(w.RefusalError(s))
	}
	return func() {
		for range objects {
			w.CopyFrom(running)
			w.Issue(ref, fence)
		}
	}
}
