package states

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// reporting is a kernel pair whose AICPU kernel publishes the run's own record.
func reporting(class uint64) []sim.KernelSpec {
	return []sim.KernelSpec{
		{Name: "core", Class: backend.AICore, Duration: 40 * time.Microsecond, Paired: true},
		{Name: "cpu", Class: backend.AICPU, Duration: 50 * time.Microsecond, Paired: true, Stores: []sim.Store{
			{When: sim.AtExit, Through: true, Offset: 0, Size: 8, FromArgs: true, Value: 8},
			{When: sim.AtExit, Through: true, Offset: 8, Size: 4, Value: class},
		}},
	}
}

func TestCertifiedRunNeedsNoSynchronize(t *testing.T) {
	dev, err := sim.New(sim.Config{Kernels: reporting(0)})
	require.NoError(t, err)
	rec := &printer{t: t}
	l, err := NewLane(Config{Backend: dev, Recorder: rec})
	require.NoError(t, err)
	require.NoError(t, l.Open(ctx))
	for range 2 {
		r, err := l.Prepare(ctx, Work{Core: 1, CPU: 2})
		require.NoError(t, err)
		_, err = r.Launch(ctx)
		require.NoError(t, err)
		require.NoError(t, r.Wait(ctx))
		require.NoError(t, r.Finalize(ctx))
	}
	require.NoError(t, l.Close(ctx))
}

func TestCallerOrderedRun(t *testing.T) {
	dev, err := sim.New(sim.Config{Kernels: reporting(0), CopyTime: time.Microsecond})
	require.NoError(t, err)
	caller, r0 := dev.CreateStream(ctx)
	require.True(t, r0.Ok())
	l, err := NewLane(Config{Backend: dev, Recorder: &printer{t: t}, Slots: 2, Depth: 2})
	require.NoError(t, err)
	require.NoError(t, l.Open(ctx))
	r, err := l.Submit(ctx, Work{Core: 1, CPU: 2, Caller: caller, Async: true})
	require.NoError(t, err)
	s, err := l.Submit(ctx, Work{Core: 1, CPU: 2, Caller: caller, Async: true})
	require.NoError(t, err)
	require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	require.NoError(t, r.Wait(ctx))
	require.ErrorIs(t, r.Finalize(ctx), ErrReferenceHeld)
	require.NoError(t, s.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	require.NoError(t, s.Finalize(ctx))
	require.NoError(t, l.Close(ctx))
	require.Empty(t, dev.Violations())
}
