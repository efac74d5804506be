package bench

import (
	"testing"
	"time"
)

// meter takes the processor time of a benchmark's loop, the garbage collector's
// share included. On a machine that others use too it says what the work costs,
// where a clock on the wall says how busy they were.
type meter struct {
	b     *testing.B
	start time.Duration
}

const processorTime = "cpu-ns/op"

// measured starts the meter, to be stopped right after the loop.
func measured(b *testing.B) meter {
	b.ReportAllocs()
	return meter{b, processor()}
}

func (m meter) stop() {
	m.b.ReportMetric(float64(processor()-m.start)/float64(m.b.N), processorTime)
}
