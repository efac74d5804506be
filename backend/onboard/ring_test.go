//go:build cgo && linux

package onboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
)

// take drains a device's notices and counts the dropped.
func take(d *onboard.Device) (all []backend.Notice, dropped uint64) {
	var dst [100]backend.Notice
	for {
		n, more := d.Notices(dst[:])
		all = append(all, dst[:n]...)
		dropped += more
		if n == 0 {
			return all, dropped
		}
	}
}

// Threads of the driver call back at once while the host takes: each notice is
// taken once or counted as dropped, whole, and in the order of its thread.
func TestNoticesOfManyThreads(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 6, Notices: 16})
	const threads, count = 4, 500
	for range 5 {
		var got []backend.Notice
		var dropped uint64
		done := make(chan struct{})
		go func() { driver.Shout(6, threads, count); close(done) }()
		for busy := true; busy; {
			select {
			case <-done:
				busy = false
			default:
			}
			n, lost := take(d)
			got, dropped = append(got, n...), dropped+lost
		}
		require.Equal(t, uint64(threads*count), uint64(len(got))+dropped, "none is lost and none is made up")
		var next [threads]uint32
		for _, n := range got {
			require.Less(t, n.Thread, uint32(threads))
			require.GreaterOrEqual(t, n.Task, next[n.Thread], "the order of a thread's notices")
			next[n.Thread] = n.Task + 1
			require.Equal(t, backend.Notice{Device: 6, Stream: 1, Task: n.Task, Thread: n.Thread, Code: backend.AICPUException}, n)
		}
	}
}

func TestAFullRingKeepsTheOldest(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 6, Notices: 3})
	driver.Shout(6, 1, 5)
	got, dropped := take(d)
	require.Equal(t, uint64(2), dropped)
	require.Len(t, got, 3)
	for i, n := range got {
		require.Equal(t, uint32(i), n.Task)
	}
	driver.Shout(6, 1, onboard.MaxNotices)
	got, dropped = take(d)
	require.Len(t, got, 3, "an emptied ring takes as many again")
	require.Equal(t, uint64(onboard.MaxNotices-3), dropped)
}

// Places are used again, however often.
func TestARingGoesRound(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 6, Notices: 2})
	for i := range 3 * onboard.MaxNotices {
		driver.Shout(6, 1, 2)
		got, dropped := take(d)
		require.Len(t, got, 2, "round %d", i)
		require.Zero(t, dropped)
	}
}

// One callback serves all devices of the process.
func TestNoticesGoToTheirDevice(t *testing.T) {
	a := fresh(t, onboard.Config{Device: 1})
	b, err := onboard.Open(onboard.Config{Library: library, Device: 2})
	require.NoError(t, err)
	defer b.Detach()
	strays := onboard.StrayNotices()
	driver.Shout(1, 1, 1)
	driver.Shout(2, 1, 2)
	driver.Shout(3, 1, 4) // open in no one's hands
	driver.Shout(-1, 1, 1)
	driver.Shout(onboard.MaxDevices, 1, 1)
	for d, want := range map[*onboard.Device]int{a: 1, b: 2} {
		got, dropped := take(d)
		require.Len(t, got, want)
		require.Zero(t, dropped)
		for _, n := range got {
			require.Equal(t, d.Device(), n.Device)
		}
	}
	require.Equal(t, strays+6, onboard.StrayNotices())
}

// What came before a device was opened is an earlier user's.
func TestAReopenedDeviceHasNoOldNotices(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 1, Notices: 2})
	driver.Shout(1, 1, 5)
	require.NoError(t, d.Close())
	strays := onboard.StrayNotices()
	driver.Shout(1, 1, 1)
	require.Equal(t, strays+1, onboard.StrayNotices(), "nobody is there to take it")
	d, err := onboard.Open(onboard.Config{Library: library, Device: 1})
	require.NoError(t, err)
	got, dropped := take(d)
	require.Empty(t, got)
	require.Zero(t, dropped)
	require.NoError(t, d.Close())
}
