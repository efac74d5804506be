package explore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/runfence/runfence/invariants/explore"
)

// A million states of six counters: next to nothing to do for a move, so this
// is what the search itself costs.
func BenchmarkSearch(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			var states, edges uint64
			var bytes float64
			for b.Loop() {
				r, err := explore.Search(context.Background(), counters(6, 9), explore.Options{Workers: workers})
				if err != nil || r.States != 1_000_000 {
					b.Fatal(r, err)
				}
				states += r.States
				edges += r.Edges
				bytes = r.BytesPerState()
			}
			b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds(), "edges/s")
			b.ReportMetric(bytes, "B/state")
		})
	}
}
