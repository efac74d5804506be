package states

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// calls notes the calls that the device gets from now on.
func (f *fixture) calls() *[]sim.OpKind {
	var all []sim.OpKind
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceCall && e.Op != sim.OpNotices {
			all = append(all, e.Op)
		}
	})
	return &all
}

// Completion from the boundaries, then the verdict from the pair (F103, F104, F106).
func TestWaitAsksForTheVerdict(t *testing.T) {
	f := opened(t)
	r, _ := f.launch()
	calls := f.calls()
	require.NoError(t, r.Wait(ctx))
	require.Equal(t, []sim.OpKind{
		sim.OpCurrentContext, sim.OpWaitEvent, sim.OpWaitEvent, sim.OpCopy, sim.OpRead, sim.OpSynchronizeStream, sim.OpSynchronizeStream,
	}, *calls)
	require.Equal(t, "succeeded", f.fact("run", 0, "verdict"))
	*calls = nil
	require.NoError(t, r.Wait(ctx), "the verdict stands")
	require.Empty(t, *calls, "and is told again without the device")
}

// The measured case: both boundaries complete, both streams are drained, and
// the run failed all the same.
func TestFaultIsMaterialisedBySynchronizing(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 kernel-fatal")
	r, _ := f.launch()
	f.dev.Advance(time.Millisecond)
	require.Equal(t, backend.Complete, f.poll(r))
	for range 2 {
		err := r.Wait(ctx)
		require.ErrorIs(t, err, ErrRunFailed)
		var failure *machine.FailureError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, int32(backend.AICPUException), failure.Code)
	}
	require.Equal(t, "faulted", f.fact("run", 0, "verdict"))
	require.NoError(t, r.Finalize(ctx), "failed, and proven over")
	f.clean()
}

// The AICore stream's fault is found too, and of two the first is told.
func TestFaultOfEachStream(t *testing.T) {
	for _, c := range []struct {
		faults []string
		code   backend.Code
	}{
		{[]string{"SubmitAICore#1 kernel-fatal"}, backend.AICoreException},
		{[]string{"SubmitAICPU#1 kernel-fatal"}, backend.AICPUException},
		{[]string{"SubmitAICore#1 kernel-fatal", "SubmitAICPU#1 kernel-fatal"}, backend.AICPUException},
	} {
		f := opened(t, c.faults...)
		r, _ := f.launch()
		err := r.Wait(ctx)
		require.ErrorIs(t, err, ErrRunFailed)
		var failure *machine.FailureError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, int32(c.code), failure.Code)
		require.NoError(t, r.Finalize(ctx))
	}
}

// A device that fails a synchronize without saying why has failed it: the
// outcome decides, not the code.
func TestFaultWithoutACode(t *testing.T) {
	for failing := range 3 {
		b := &codeless{failing: failing}
		f := unopened(t, Config{Backend: b})
		b.Backend = f.dev
		require.NoError(t, f.lane.Open(ctx))
		r, _ := f.launch()
		for range 2 {
			err := r.Wait(ctx)
			if failing == 0 {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, ErrRunFailed)
			require.Equal(t, "faulted", f.fact("run", 0, "verdict"))
		}
	}
}

// codeless fails the n-th synchronize of a stream, with no code.
type codeless struct {
	backend.Backend
	failing, n int
}

func (b *codeless) SynchronizeStream(ctx context.Context, s backend.Stream, t time.Duration) backend.Result {
	r := b.Backend.SynchronizeStream(ctx, s, t)
	if b.n++; b.n == b.failing {
		r.Outcome = machine.Failed
	}
	return r
}

// TestWaitOutcomes breaks each call of a wait in each way and asks what is told
// of it and what the run is after. Only a proof makes it drained.
func TestWaitOutcomes(t *testing.T) {
	for _, c := range []struct {
		fault string
		want  error
		state string
	}{
		{"WaitEvent#1 hang", ErrWaitTimeout, "launched"},
		{"WaitEvent#2 hang", ErrWaitTimeout, "launched"},
		// A wait that fails says nothing; the synchronised pair does.
		{"WaitEvent#1 fail-before", nil, "drained"},
		{"WaitEvent#2 refuse", nil, "drained"},
		{"WaitEvent#2 panic-before", nil, "drained"},
		{"SynchronizeStream#1 hang", ErrWaitTimeout, "launched"},
		{"SynchronizeStream#2 hang", ErrWaitTimeout, "launched"},
		{"SynchronizeStream#1 refuse", ErrUnproven, "launched"},
		{"SynchronizeStream#2 refuse", ErrUnproven, "launched"},
		{"SynchronizeStream#1 panic-before", ErrUnproven, "launched"},
		{"SynchronizeStream#2 panic-before", ErrUnproven, "launched"},
		// Both boundaries are complete: the failure is the verdict.
		{"SynchronizeStream#1 fail-before", ErrRunFailed, "drained"},
		{"SynchronizeStream#2 fail-before", ErrRunFailed, "drained"},
	} {
		f := opened(t, c.fault)
		r, _ := f.launch()
		err := r.Wait(ctx)
		if c.want == nil {
			require.NoError(t, err, c.fault)
		} else {
			require.ErrorIs(t, err, c.want, c.fault)
		}
		require.Equal(t, c.state, f.state("run", 0), c.fault)
		if c.state == "launched" {
			require.ErrorIs(t, r.Finalize(ctx), ErrUnproven, c.fault)
			require.NoError(t, r.Wait(ctx), "the run is as it was: "+c.fault)
		}
		require.NoError(t, r.Finalize(ctx), c.fault)
		f.clean()
	}
}

// Without its boundaries, and without a pair that synchronises, a run is
// proven by nothing.
func TestUnprovenWithoutBoundariesAndPair(t *testing.T) {
	for _, faults := range [][]string{
		{"WaitEvent#2 fail-before", "SynchronizeStream#1 fail-before"},
		{"WaitEvent#1 fail-before", "SynchronizeStream#2 fail-before"},
	} {
		f := opened(t, faults...)
		r, _ := f.launch()
		require.ErrorIs(t, r.Wait(ctx), ErrUnproven)
		require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	}
}

// An Unfenced run skips its boundaries and goes to the pair, which is bounded
// and proves it over, or not (F130, F132).
func TestWaitOfAnUnfencedRun(t *testing.T) {
	f := opened(t, "RecordEvent#2 fail-before", "SynchronizeStream#1 hang")
	r := f.prepare()
	_, err := r.Launch(ctx)
	require.ErrorIs(t, err, ErrPartial)
	calls := f.calls()
	require.ErrorIs(t, r.Wait(ctx), ErrWaitTimeout)
	require.Equal(t, []sim.OpKind{sim.OpCurrentContext, sim.OpSynchronizeStream}, *calls, "and no second event is appended (F131)")
	require.Equal(t, "1", f.fact("lane", 0, "unproven"))
	require.ErrorIs(t, r.Wait(ctx), ErrPartial)
	require.Equal(t, "0", f.fact("lane", 0, "unproven"))
	require.NoError(t, r.Finalize(ctx))
	f.clean()
}

// A fault on an Unfenced run's streams proves nothing: a stream in error is
// not a drained one, as far as the host can tell.
func TestFaultOfAnUnfencedRunProvesNothing(t *testing.T) {
	f := opened(t, "RecordEvent#2 fail-before", "SubmitAICPU#1 kernel-fatal")
	r := f.prepare()
	_, err := r.Launch(ctx)
	require.ErrorIs(t, err, ErrPartial)
	require.ErrorIs(t, r.Wait(ctx), ErrUnproven)
	require.Equal(t, "partial", f.state("run", 0))
	require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	require.ErrorIs(t, f.lane.Close(ctx), ErrUnproven)
	f.clean()
}

// A proof that fails takes neither the owner away nor the launch's own code (F79).
func TestFailingProofKeepsOwnerAndCode(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 fail-before 4242", "SynchronizeStream#1 fail-before", "SynchronizeStream#2 hang", "SynchronizeStream#3 panic-before")
	r := f.prepare()
	require.ErrorIs(t, second(r.Launch(ctx)), ErrPartial)
	for range 2 {
		require.Error(t, r.Wait(ctx))
		require.Equal(t, "partial", f.state("run", 0))
		require.Equal(t, "true", f.fact("run", 0, "bound"))
		require.Equal(t, "4242", f.fact("run", 0, "rc"))
		require.Equal(t, "armed", f.state("fence", 0))
		require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	}
	err := r.Wait(ctx)
	require.ErrorIs(t, err, ErrPartial)
	require.Equal(t, []int32{4242}, codes(err))
}

// A partial launch with a fault of its own tells the fault, again and again.
func TestPartialWithAFault(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 refuse", "SubmitAICore#1 kernel-fatal")
	r := f.prepare()
	_, err := r.Launch(ctx)
	require.ErrorIs(t, err, ErrPartial)
	for range 2 {
		err := r.Wait(ctx)
		require.ErrorIs(t, err, ErrRunFailed)
		var failure *machine.FailureError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, int32(backend.AICoreException), failure.Code)
	}
	require.Equal(t, "0", f.fact("lane", 0, "unproven"))
	require.NoError(t, r.Finalize(ctx))
}

func TestWaitBeforeLaunch(t *testing.T) {
	f := opened(t)
	require.ErrorIs(t, f.prepare().Wait(ctx), ErrNotLaunched)
}
