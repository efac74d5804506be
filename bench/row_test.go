package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// row is one workload and what it must reach.
type row struct {
	name string
	ours func(*testing.B)
	// peers do the same work.
	peers []peer
	// per is how many operations one iteration is; 0 means 1.
	per int
	// allocs is the most allocations an iteration may make, rounded down as Go's
	// benchmarks do; -1 does not count them.
	allocs int64
	// within is the most time an operation may take; 0 sets no limit.
	within time.Duration
}

// peer is another library's version of a row.
type peer struct {
	name  string
	bench func(*testing.B)
	// times is how many times faster ours must be.
	times float64
}

// sample is one measurement of one version.
type sample struct {
	ns     float64 // of processor time, an operation
	allocs int64
}

// take measures each version of the row once, one after the other: ours, then
// the peers.
func (r *row) take() []sample {
	var out []sample
	measure := func(f func(*testing.B)) {
		x := testing.Benchmark(f)
		ns, ran := x.Extra[processorTime]
		if !ran {
			ns = math.NaN()
		}
		out = append(out, sample{ns / float64(max(r.per, 1)), x.AllocsPerOp()})
	}
	measure(r.ours)
	for _, p := range r.peers {
		measure(p.bench)
	}
	return out
}

// verdict is a requirement held against what was measured.
type verdict struct {
	row, needs, reached string
	pass                bool
}

// judge holds rounds of samples against the row's requirements. A ratio is
// taken within each round, where what slows one side is likely to slow the
// other, and the median of the ratios decides. What did not run fails.
func (r *row) judge(rounds [][]sample) []verdict {
	var out []verdict
	add := func(pass bool, needs, reached string, args ...any) {
		out = append(out, verdict{r.name, needs, fmt.Sprintf(reached, args...), pass})
	}
	column := func(i int) []float64 {
		var ns []float64
		for _, x := range rounds {
			ns = append(ns, x[i].ns)
		}
		return ns
	}
	own := column(0)
	for i, p := range r.peers {
		theirs := column(i + 1)
		var ratios []float64
		for k := range own {
			ratios = append(ratios, theirs[k]/own[k])
		}
		got := median(ratios)
		add(got >= p.times, fmt.Sprintf("%gx as fast as %s", p.times, p.name),
			"%.1fx (%s, %s %s)", got, nanoseconds(median(own)), p.name, nanoseconds(median(theirs)))
	}
	if r.within > 0 {
		got := median(own)
		add(got <= float64(r.within), "at most "+nanoseconds(float64(r.within)), "%s", nanoseconds(got))
	}
	if r.allocs >= 0 {
		var most int64
		for _, x := range rounds {
			most = max(most, x[0].allocs)
		}
		add(most <= r.allocs, fmt.Sprintf("at most %d allocs", r.allocs), "%d", most)
	}
	return out
}

// median returns the middle value, the lower one of two; NaN sorts first and
// so counts against.
func median(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return s[(len(s)-1)/2]
}

// nanoseconds prints a time with three digits.
func nanoseconds(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	}
	return fmt.Sprintf("%.3g ms", ns/1e6)
}
