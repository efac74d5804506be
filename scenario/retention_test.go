package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

func TestRetentionObserved(t *testing.T) {
	res, err := Retention{Start: 400, Task: time.Microsecond}.Run()
	require.NoError(t, err)
	require.Equal(t, RetentionObserved, res.Verdict)
	require.Equal(t, 12*time.Microsecond, res.Baseline)
	require.Len(t, res.Attempts, 1)
	a := res.Attempts[0]
	require.Equal(t, backend.NotReady, a.Before)
	require.Equal(t, backend.NotReady, a.After)
	require.Equal(t, res.Baseline, a.Cost, "the read does not know of the successor")
	require.Equal(t, 388*time.Microsecond, a.Drain)
	c := res.Control
	require.True(t, c.Synchronised)
	require.Equal(t, backend.NotReady, c.Before)
	require.Equal(t, backend.Complete, c.After)
	require.Equal(t, 412*time.Microsecond, c.Cost, "the synchronize waits for the successor")
	require.True(t, c.Waited)
	require.Zero(t, c.Drain)
}

func TestRetentionInconclusiveThenObserved(t *testing.T) {
	res, err := Retention{Start: 3, Task: time.Microsecond}.Run()
	require.NoError(t, err)
	require.Equal(t, RetentionObserved, res.Verdict)
	var tasks []int
	for i, a := range res.Attempts {
		tasks = append(tasks, a.Tasks)
		last := i == len(res.Attempts)-1
		require.Equal(t, !last, a.Inconclusive())
		require.Equal(t, res.Baseline, a.Cost)
	}
	require.Equal(t, []int{3, 6, 12, 24}, tasks)
}

func TestRetentionRegression(t *testing.T) {
	res, err := Retention{Start: 10, Task: time.Microsecond, Behind: true}.Run()
	require.NoError(t, err)
	require.Equal(t, RetentionRegression, res.Verdict)
	var tasks []int
	for i, a := range res.Attempts {
		tasks = append(tasks, a.Tasks)
		require.Equal(t, backend.Complete, a.After)
		require.Equal(t, time.Duration(a.Tasks)*time.Microsecond+res.Baseline, a.Cost)
		require.Equal(t, i == len(res.Attempts)-1, a.Waited, "several times the baseline, not a little more")
	}
	require.Equal(t, []int{10, 20, 40}, tasks)
}

func TestRetentionNeverObserved(t *testing.T) {
	res, err := Retention{Start: 3000, Task: time.Nanosecond}.Run()
	require.NoError(t, err)
	require.Equal(t, RetentionNeverObserved, res.Verdict)
	var tasks []int
	for _, a := range res.Attempts {
		tasks = append(tasks, a.Tasks)
		require.True(t, a.Inconclusive())
		require.Equal(t, res.Baseline, a.Cost)
	}
	require.Equal(t, []int{3000, 6000, RetentionCeiling}, tasks, "the last attempt is at the ceiling itself")
}

// A read that is slower than ordinary and not slow enough says neither.
func TestRetentionInconclusive(t *testing.T) {
	res, err := Retention{Start: 10, Ceiling: 20, Task: time.Microsecond, Behind: true}.Run()
	require.NoError(t, err)
	require.Equal(t, RetentionInconclusive, res.Verdict)
	require.Equal(t, 32*time.Microsecond, res.Attempts[1].Cost)
}

// A scope of three quarters of the window runs; one of all of it does not.
func TestRetentionScope(t *testing.T) {
	res, err := Retention{Start: 12288, Ceiling: 12288, Task: time.Microsecond}.Run()
	require.NoError(t, err)
	require.Equal(t, RetentionObserved, res.Verdict)
	_, err = Retention{Start: 16384, Ceiling: 16384, Task: time.Microsecond}.Run()
	require.ErrorIs(t, err, ErrScopeDeadlock)
}

func TestRetentionConfig(t *testing.T) {
	for _, r := range []Retention{{Start: -1}, {Start: 2, Ceiling: 1}, {Task: -1}, {Read: -1}} {
		_, err := r.Run()
		require.ErrorIs(t, err, ErrRetention, "%+v", r)
	}
}

// BenchmarkRetention reports, in virtual time, what the source's table does:
// the direct read, and the read behind a synchronize, with a successor in flight.
func BenchmarkRetention(b *testing.B) {
	var res *RetentionResult
	for b.Loop() {
		var err error
		if res, err = (Retention{Start: 400, Task: time.Microsecond}).Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(res.Attempts[0].Cost)/1e3, "read-us")
	b.ReportMetric(float64(res.Control.Cost)/1e3, "synchronised-us")
}
