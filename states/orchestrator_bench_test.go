package states

import (
	"context"
	"sync"
	"testing"

	"github.com/runfence/runfence/machine"
)

// free is a resource backend that costs nothing.
type freeBackend struct{}

func (freeBackend) ReleaseResource(context.Context, Group, uint64) error { return nil }
func (freeBackend) AllocateDomain(context.Context, uint64, int) error    { return nil }
func (freeBackend) ReleaseDomain(context.Context, uint64) error          { return nil }

func benchOrchestrator(b *testing.B) *Orchestrator {
	o, err := NewOrchestrator(OrchestratorConfig{Backend: freeBackend{}, Resources: 1024, Domains: 1024})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	return o
}

func submitAndWait(b *testing.B, o *Orchestrator, build func(context.Context) error) {
	h, err := o.Submit(ctx, build)
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Wait(ctx); err != nil {
		b.Fatal(err)
	}
}

// A run that owns nothing, from submit to the end of its wait.
func BenchmarkRunBare(b *testing.B) {
	o := benchOrchestrator(b)
	for b.Loop() {
		submitAndWait(b, o, func(context.Context) error { return nil })
	}
}

// A thousand objects of one run: per object, its charge, its release at the
// fence and its place's return.
func BenchmarkChargeAndRelease(b *testing.B) {
	o := benchOrchestrator(b)
	const n = 1000
	for b.Loop() {
		submitAndWait(b, o, func(ctx context.Context) error {
			for k := range uint64(n) {
				if _, err := o.Charge(ctx, Region, k+1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
}

// The rules alone, without a lock, a backend and a façade: what charging and
// releasing one object is, in steps of the world. (Its place is made free when
// its run is over, so the world goes back to where it was, once for a thousand.)
func BenchmarkChargeAndReleaseRules(b *testing.B) {
	const n = 1000
	rules := OrchestratorRules()
	w, err := rules.NewWorld(machine.Config{Pools: OrchestratorConfig{Resources: n}.Pools()})
	if err != nil {
		b.Fatal(err)
	}
	var at orchestratorDirectory
	if err := at.look(rules); err != nil {
		b.Fatal(err)
	}
	w.Issue(one(at.orchestrator), at.init, 3)
	w.Issue(one(at.building), at.start)
	before := w.Clone()
	b.ReportAllocs()
	for b.Loop() {
		for s := range n {
			ref := w.Ref(at.resource.ID(), s)
			w.Issue(ref, at.charge, 1, uint64(s+1))
			w.Issue(ref, at.releaseResource)
			if s := w.Settle(ref, machine.Result{}); s.State != at.released {
				b.Fatal(s.Status)
			}
		}
		w.CopyFrom(before)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
}

// What the fence of a run that owns nothing is: one step. The copy that brings
// the run back is measured alone as well, and the step without its look at what
// the run owns: what resources cost a run that has none is the difference.
func BenchmarkBareFenceRules(b *testing.B) {
	for _, c := range []struct {
		name  string
		fence bool
		guard string
	}{
		{"copy", false, ""},
		{"fence", true, ""},
		{"fence-unguarded", true, "pending == 0"},
	} {
		b.Run(c.name, func(b *testing.B) {
			defs := OrchestratorDefinitions()
			if c.guard != "" {
				rowOf(defs, "resources", "fence-bare").Guard = c.guard
			}
			rules := machine.MustCompile(defs...)
			w, err := rules.NewWorld(machine.Config{Pools: map[string]int{"work": 1, "resource": 1, "domain": 1, "task": 1, "endpoint": 1}})
			if err != nil {
				b.Fatal(err)
			}
			var at orchestratorDirectory
			if err := at.look(rules); err != nil {
				b.Fatal(err)
			}
			w.Issue(one(at.orchestrator), at.init, 3)
			w.Issue(one(at.building), at.start)
			w.Settle(one(at.building), machine.Result{})
			before := w.Clone()
			ref := w.Ref(at.resources.ID(), 0)
			b.ReportAllocs()
			for b.Loop() {
				w.CopyFrom(before)
				if c.fence && w.Issue(ref, at.fence).State != at.retired {
					b.Fatal(w.StateName(ref))
				}
			}
		})
	}
}

// The one lock of all releases, with eight goroutines whose domains are their
// own, and without others: per domain, its allocation and its release.
func BenchmarkFreeLock(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(map[int]string{1: "one", 8: "eight"}[n], func(b *testing.B) {
			o := benchOrchestrator(b)
			const each = 64
			for b.Loop() {
				var domains [8][]*Domain
				submitAndWait(b, o, func(ctx context.Context) error {
					for i := range n {
						for range each * 8 / n {
							d, err := o.AllocateDomain(ctx, 2)
							if err != nil {
								return err
							}
							domains[i] = append(domains[i], d)
						}
					}
					// Freed here and now, past the fence, by all at a time.
					var all sync.WaitGroup
					free := o.at.domain.MustEvent("free")
					for i := range n {
						all.Go(func() {
							for _, d := range domains[i] {
								if _, err := o.d.Fire(context.Background(), d.ref, free); err != nil {
									b.Error(err)
								}
							}
						})
					}
					all.Wait()
					return nil
				})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(each*8), "ns/domain")
		})
	}
}
