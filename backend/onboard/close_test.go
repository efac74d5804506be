//go:build cgo && linux

package onboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

func TestCloseGivesEverythingBack(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	b.launch(t, load(t, d, core("core")), load(t, d, cpu("cpu")))
	var used *onboard.InUseError
	require.ErrorAs(t, d.Close(), &used, "what may be in use is not freed")
	require.Equal(t, &onboard.InUseError{Streams: 2, Events: 2, Memory: 1}, used)
	require.True(t, d.WaitEvent(t.Context(), b.cpuE, timeout).Ok(), "a refused close changed nothing")
	b.giveBack(t)
	require.NoError(t, d.Close())
	require.Equal(t, standin.Live{}, driver.Live())
	require.ErrorIs(t, d.Close(), onboard.ErrClosed)
	_, err := d.Load(core("core"))
	require.ErrorIs(t, err, onboard.ErrClosed)
	refusesEverything(t, d)
}

// One of anything is enough to be in use.
func TestCloseLooksForEachKind(t *testing.T) {
	for want, make := range map[onboard.InUseError]func(t *testing.T, d *onboard.Device) func() backend.Result{
		{Streams: 1}: func(t *testing.T, d *onboard.Device) func() backend.Result {
			s, r := d.CreateStream(t.Context())
			require.True(t, r.Ok())
			return func() backend.Result { return d.DestroyStream(t.Context(), s) }
		},
		{Events: 1}: func(t *testing.T, d *onboard.Device) func() backend.Result {
			e, r := d.CreateEvent(t.Context())
			require.True(t, r.Ok())
			return func() backend.Result { return d.DestroyEvent(t.Context(), e) }
		},
		{Memory: 1}: func(t *testing.T, d *onboard.Device) func() backend.Result {
			m, r := d.Alloc(t.Context(), backend.PinnedMemory, 1)
			require.True(t, r.Ok())
			return func() backend.Result { return d.Free(t.Context(), m) }
		},
	} {
		d := fresh(t, onboard.Config{})
		giveBack := make(t, d)
		var used *onboard.InUseError
		require.ErrorAs(t, d.Close(), &used)
		require.Equal(t, want, *used)
		require.True(t, giveBack().Ok())
		require.NoError(t, d.Close())
	}
}

// refusesEverything checks that a device that is gone is not touched.
func refusesEverything(t *testing.T, d *onboard.Device) {
	t.Helper()
	before := driver.Calls()
	ctx := t.Context()
	gone := backend.Result{Outcome: backend.Refused, Code: backend.InvalidHandle}
	_, r := d.CreateStream(ctx)
	require.Equal(t, gone, r)
	_, r = d.CurrentContext(ctx)
	require.Equal(t, gone, r)
	_, r = d.Alloc(ctx, backend.DeviceMemory, 1)
	require.Equal(t, gone, r)
	require.Equal(t, gone, d.RecordEvent(ctx, 1, 1))
	_, r = d.Reset(ctx)
	require.Equal(t, gone, r)
	n, _ := d.Notices(make([]backend.Notice, 1))
	require.Zero(t, n)
	require.Nil(t, d.LatestFailure())
	require.Equal(t, before, driver.Calls(), "nothing was asked of the driver")
}

// A close that fails goes on, the next time, where it stopped.
func TestACloseThatFailsIsTriedAgain(t *testing.T) {
	for _, call := range []string{"aclrtBinaryUnLoad", "aclrtDestroyContext", "aclrtResetDevice"} {
		t.Run(call, func(t *testing.T) {
			d := fresh(t, onboard.Config{})
			load(t, d, core("core"))
			load(t, d, cpu("cpu"))
			driver.Fail(call, 1, standin.Before, int32(backend.DriverInternalError), 0)
			var e *onboard.CallError
			require.ErrorAs(t, d.Close(), &e)
			require.Equal(t, call, e.Call)
			_, err := onboard.Open(onboard.Config{Library: library})
			var used *onboard.DeviceInUseError
			require.ErrorAs(t, err, &used, "it is not closed yet")
			require.NoError(t, d.Close())
			require.Equal(t, standin.Live{}, driver.Live())
		})
	}
}

// What is detached stays, for the work that may name it.
func TestDetachFreesNothing(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	b.launch(t, load(t, d, core("core")), load(t, d, cpu("slow_cpu")))
	live := driver.Live()
	d.Detach()
	d.Detach()
	require.Equal(t, live, driver.Live())
	refusesEverything(t, d)
	require.Equal(t, backend.Result{Outcome: backend.Refused, Code: backend.InvalidHandle}, d.Free(t.Context(), b.args))
	again, err := onboard.Open(onboard.Config{Library: library})
	require.NoError(t, err, "the process may open the device again")
	require.NoError(t, again.Close())
}
