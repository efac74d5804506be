package states

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend/sim"
)

func worker(t *testing.T) (*sim.Device, *ChipWorker) {
	t.Helper()
	dev, err := sim.New(sim.Config{Kernels: reporting(0)})
	require.NoError(t, err)
	w, err := NewChipWorker(WorkerConfig{Config: Config{Backend: dev}, Mode: Program})
	require.NoError(t, err)
	require.NoError(t, w.Init(ctx))
	return dev, w
}

func TestRegistry(t *testing.T) {
	_, w := worker(t)
	a, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.Equal(t, 0, a.ID)
	b, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.Equal(t, 1, b.ID, "F85")
	none, err := w.RegisterAt(ctx, 1, []byte("other"))
	require.ErrorIs(t, err, ErrInvalidArgument)
	require.Equal(t, NoCallable, none.ID)
	for i := 2; i < MaxCallables; i++ {
		c, err := w.RegisterAt(ctx, i, fmt.Appendf(nil, "image %d", i))
		require.NoError(t, err)
		require.Equal(t, i, c.ID)
	}
	none, err = w.Register(ctx, []byte("one more"))
	require.ErrorIs(t, err, ErrInvalidState)
	require.Equal(t, NoCallable, none.ID)
	require.True(t, w.Live(a))
	require.NoError(t, w.Unregister(ctx, a))
	require.False(t, w.Live(a))
	c, err := w.Register(ctx, []byte("one more"))
	require.NoError(t, err)
	require.Equal(t, 0, c.ID)
	require.NotEqual(t, a.Occupancy, c.Occupancy)
	require.ErrorIs(t, w.Unregister(ctx, a), ErrInvalidArgument, "F87: a stale occupancy")
	require.Zero(t, testing.AllocsPerRun(100, func() { w.Live(c) }))
	require.NoError(t, w.Close(ctx))
}

func TestRecovery(t *testing.T) {
	dev, w := worker(t)
	require.ErrorIs(t, w.Recover(ctx), ErrNothingToRecover)
	r, err := w.Prepare(ctx, work)
	require.NoError(t, err)
	require.NoError(t, dev.Inject(plan(t, "RecordEvent#2 fail-after 507000")[0]))
	_, err = r.Launch(ctx)
	require.ErrorIs(t, err, ErrPartial)
	_, err = w.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.NoError(t, w.Recover(ctx))
	require.ErrorIs(t, r.Wait(ctx), ErrReset)
	require.NoError(t, r.Finalize(ctx))
	r, err = w.Prepare(ctx, work)
	require.NoError(t, err)
	_, err = r.Launch(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	require.NoError(t, w.Close(ctx))
	require.Empty(t, dev.Violations())
}

// Closing takes the images off the device, can be tried again, and ends once.
func TestWorkerCloses(t *testing.T) {
	dev, w := worker(t)
	_, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.NoError(t, dev.Inject(plan(t, "Free#1 fail-before")[0]))
	require.ErrorIs(t, w.Close(ctx), ErrTeardown)
	require.NoError(t, w.Close(ctx))
	require.ErrorIs(t, w.Close(ctx), ErrFinalized)
	require.ErrorIs(t, w.Init(ctx), ErrFinalized, "F93: the worker does not initialise again")
	_, err = w.Register(ctx, []byte("image"))
	require.ErrorIs(t, err, ErrFinalized)
	require.Empty(t, dev.Violations())
}

// A borrowed initialisation rejects what is an owned device's (F49).
func TestBorrowedWorkerTakesNoOptions(t *testing.T) {
	dev, err := sim.New(sim.Config{Borrowed: true})
	require.NoError(t, err)
	for _, c := range []WorkerConfig{{SDMA: true}, {Simulator: true}} {
		c.Backend, c.Borrowed, c.Generation, c.Mode = dev, true, 1, Kernel
		_, err := NewChipWorker(c)
		require.ErrorIs(t, err, ErrOptions)
		c.Borrowed, c.Generation = false, 0
		_, err = NewChipWorker(c)
		require.NoError(t, err)
	}
	_, err = NewChipWorker(WorkerConfig{Config: Config{Backend: dev}})
	require.ErrorIs(t, err, ErrModeUnclaimed)
}

// What a preparation left on the host is not settled by a reset of the device (F69).
func TestAmbiguityOutlivesAReset(t *testing.T) {
	f := unopened(t, Config{Slots: 2}, "Copy#1 fail-before", "Free#1 fail-before")
	require.NoError(t, f.lane.Open(ctx))
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrPreparationAmbiguous)
	require.NoError(t, f.lane.Recover(ctx))
	_, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
}
