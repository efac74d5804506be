package states

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// pair makes a lane of depth two with a run on the device and another that was
// submitted behind it, as the faults let it be.
func pair(t *testing.T, faults ...string) (f *fixture, first, second *Run, err error) {
	t.Helper()
	f = unopened(t, Config{Slots: 2, Depth: 2})
	require.NoError(t, f.lane.Open(ctx))
	f.whole()
	first, _ = f.launch()
	caller, r := f.dev.CreateStream(ctx)
	require.True(t, r.Ok())
	for _, x := range faults {
		f.strike(x)
	}
	w := work
	w.Caller = caller
	second, err = f.lane.Submit(ctx, w)
	return f, first, second, err
}

func (f *fixture) ends(runs ...*Run) {
	f.Helper()
	for _, r := range runs {
		require.NoError(f, r.Finalize(ctx))
	}
	require.Equal(f, [4]string{"0", "0", "0", "0"}, [4]string{
		f.fact("fence", 0, "core_refs"), f.fact("fence", 0, "cpu_refs"), f.fact("fence", 1, "core_refs"), f.fact("fence", 1, "cpu_refs"),
	})
	require.NoError(f, f.lane.Close(ctx))
	f.clean()
}

// A joined run whose launch is partial gives its references back once the pair
// of its streams is synchronised: that is a proof of the streams that hold its
// waits (F135).
func TestPartialJoinGivesItsReferencesBack(t *testing.T) {
	for _, fault := range []string{"SubmitAICore#1 fail-before", "SubmitAICPU#1 fail-after", "SubmitAICPU#1 refuse", "RecordEvent#1 fail-before", "StreamWaitEvent#2 refuse", "StreamWaitEvent#1 fail-after"} {
		t.Run(fault, func(t *testing.T) {
			f, first, second, err := pair(t, fault)
			require.ErrorIs(t, err, ErrPartial)
			require.ErrorIs(t, second.Finalize(ctx), ErrUnproven)
			require.NoError(t, first.Wait(ctx))
			require.ErrorIs(t, first.Finalize(ctx), ErrReferenceHeld)
			require.ErrorIs(t, second.Wait(ctx), ErrPartial)
			f.ends(second, first)
		})
	}
}

// So does one whose boundaries could not be waited for, and one whose stream
// faults.
func TestJoinIsProvenByThePair(t *testing.T) {
	for _, fault := range []string{"WaitEvent#1 fail-before", "WaitEvent#2 fail-before"} {
		f, first, second, err := pair(t)
		require.NoError(t, err)
		f.strike(fault)
		require.NoError(t, second.Wait(ctx))
		require.NoError(t, first.Wait(ctx))
		f.ends(second, first)
	}
	for _, fault := range []string{"SubmitAICore#1 kernel-fatal", "SubmitAICPU#1 kernel-fatal"} {
		f, first, second, err := pair(t, fault)
		require.NoError(t, err)
		f.strike("WaitEvent#1 fail-before")
		err = second.Wait(ctx)
		if fault == "SubmitAICore#1 kernel-fatal" {
			require.ErrorIs(t, err, ErrUnproven, "the stream that faulted has no boundary that is complete")
			err = second.Wait(ctx)
		}
		require.ErrorIs(t, err, ErrRunFailed)
		require.NoError(t, first.Wait(ctx))
		f.ends(second, first)
	}
}

// Advancing is an operation on a run: a handle of an earlier one enqueues
// nothing (F122).
func TestStaleHandleAdvancesNothing(t *testing.T) {
	f := opened(t)
	old, err := f.lane.Submit(ctx, work)
	require.NoError(t, err)
	require.NoError(t, old.Finalize(ctx))
	r, err := f.lane.Submit(ctx, work)
	require.NoError(t, err)
	before := f.bytes()
	require.ErrorIs(t, old.Advance(ctx), ErrStaleIdentity)
	require.Equal(t, before, f.bytes())
	require.NoError(t, r.Advance(ctx))
	require.NoError(t, r.Wait(ctx))
}

// Before it is opened a lane says so, to whoever asks, and not that the caller
// is a stranger.
func TestNotOpenedIsNotForeign(t *testing.T) {
	f := unopened(t, Config{})
	_, err := f.lane.Submit(ctx, work)
	require.ErrorIs(t, err, ErrNotInitialised)
	require.ErrorIs(t, f.lane.Recover(ctx), ErrNotInitialised)
	w, err := NewChipWorker(WorkerConfig{Config: Config{Backend: backend.Backend(f.dev)}, Mode: Program})
	require.NoError(t, err)
	_, err = w.Register(ctx, []byte("image"))
	require.ErrorIs(t, err, ErrInvalidState, "registering initialises nothing (F83)")
	_, err = w.RegisterAt(ctx, 3, []byte("image"))
	require.ErrorIs(t, err, ErrInvalidState)
	require.ErrorIs(t, w.Unregister(ctx, Callable{ID: 3, Occupancy: 1}), ErrInvalidState)
}
