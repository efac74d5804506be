package states

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

func (f *fixture) poll(r *Run) backend.Status {
	f.Helper()
	s, err := r.Poll(ctx)
	require.NoError(f, err)
	return s
}

// Complete when both boundaries are, and not when one is: the AICPU kernel
// takes longer here, so there is a while in between (F97, F98).
func TestPollAsksBothBoundaries(t *testing.T) {
	f := opened(t)
	r, _ := f.launch()
	require.Equal(t, backend.NotReady, f.poll(r))
	f.dev.Advance(45 * time.Microsecond)
	require.Equal(t, backend.NotReady, f.poll(r))
	require.Equal(t, [2]string{"complete", "recorded"}, [2]string{f.fact("fence", 0, "core"), f.fact("fence", 0, "cpu")})
	f.dev.Advance(5 * time.Microsecond)
	require.Equal(t, backend.Complete, f.poll(r))
	require.Equal(t, "complete", f.fact("fence", 0, "cpu"))
	require.ErrorIs(t, r.Finalize(ctx), ErrUnproven, "complete is not the verdict")
	require.NoError(t, r.Wait(ctx))
}

// A kernel publishes its flag before it returns: the flag completes nothing (F99).
func TestFlagIsNoCompletion(t *testing.T) {
	f := opened(t)
	flag := f.dev.Define(sim.KernelSpec{Class: backend.AICPU, Duration: 50 * time.Microsecond, Flag: true, FlagAfter: 10 * time.Microsecond})
	r, err := f.lane.Prepare(ctx, Work{Core: 1, CPU: flag})
	require.NoError(t, err)
	flagged := false
	f.dev.Trace(func(e sim.TraceEvent) { flagged = flagged || e.Kind == sim.TraceFlag })
	_, err = r.Launch(ctx)
	require.NoError(t, err)
	f.dev.Advance(45 * time.Microsecond)
	require.True(t, flagged)
	require.Equal(t, backend.NotReady, f.poll(r))
}

// What else is queued on a run's streams does not keep the run from being
// complete: that is the question a stream cannot answer (F11).
func TestPollIsNotAboutTheQueue(t *testing.T) {
	f := opened(t)
	var streams []backend.Stream
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceQueued && e.Entry == sim.EntryKernel {
			streams = append(streams, e.Stream)
		}
	})
	r, _ := f.launch()
	f.dev.Trace(nil)
	for i, s := range streams {
		require.True(t, f.dev.Submit(ctx, s, backend.Launch{Class: backend.Class(i), Kernel: backend.Kernel(i + 1), Blocks: 1}).Ok())
	}
	f.dev.Advance(50 * time.Microsecond)
	require.True(t, f.dev.Busy())
	require.Equal(t, backend.Complete, f.poll(r))
}

// An Unfenced run has only its streams to ask (F129, F130).
func TestPollOfAnUnfencedRun(t *testing.T) {
	f := opened(t, "RecordEvent#2 fail-before")
	r := f.prepare()
	_, err := r.Launch(ctx)
	require.ErrorIs(t, err, ErrPartial)
	var asked []sim.OpKind
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceCall {
			asked = append(asked, e.Op)
		}
	})
	f.dev.Advance(45 * time.Microsecond)
	require.Equal(t, backend.NotReady, f.poll(r))
	require.Equal(t, []sim.OpKind{sim.OpCurrentContext, sim.OpQueryStream, sim.OpQueryStream}, asked)
	f.dev.Advance(5 * time.Microsecond)
	require.Equal(t, backend.Complete, f.poll(r))
	require.Equal(t, "submitted", f.fact("fence", 0, "cpu"), "no query makes a boundary that was not recorded")
}

// A partial launch whose AICPU kernel was refused has one boundary to ask. The
// other event still bears the record of an earlier run.
func TestPollAsksNoBoundaryOfAnotherRun(t *testing.T) {
	f := opened(t, "SubmitAICPU#2 refuse")
	r, _ := f.launch()
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	r = f.prepare()
	_, err := r.Launch(ctx)
	require.ErrorIs(t, err, ErrPartial)
	queries := 0
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceCall && e.Op == sim.OpQueryEvent {
			queries++
		}
	})
	require.Equal(t, backend.NotReady, f.poll(r))
	f.dev.Advance(40 * time.Microsecond)
	require.Equal(t, backend.Complete, f.poll(r))
	require.Equal(t, 2, queries)
	require.Equal(t, "missing", f.fact("fence", 0, "cpu"))
}

// A fault that no synchronize has materialised is invisible to poll; once one
// has, the stream's sticky error is not (F119).
func TestPollAndFaults(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 kernel-fatal", "SynchronizeStream#2 hang")
	r, _ := f.launch()
	f.dev.Advance(time.Millisecond)
	require.Equal(t, backend.Complete, f.poll(r))
	require.ErrorIs(t, r.Wait(ctx), ErrWaitTimeout, "of the AICore stream, after the AICPU stream was synchronised")
	_, err := r.Poll(ctx)
	require.ErrorIs(t, err, ErrStreamError)
}

// A failed query is neither "not ready" nor "complete" (F126).
func TestFailedQueryIsAFailure(t *testing.T) {
	for _, c := range []struct {
		fault string
		want  error
	}{
		{"QueryEvent#1 fail-before", ErrQueryFailed},
		{"QueryEvent#2 fail-before", ErrQueryFailed},
		{"QueryEvent#1 panic-before", ErrQueryFailed},
		{"QueryEvent#1 refuse", ErrQueryFailed},
		{"QueryStream#1 fail-before", ErrStreamError},
		{"QueryStream#2 fail-before", ErrStreamError},
		{"QueryStream#1 refuse", ErrQueryFailed},
		{"QueryStream#2 panic-before", ErrQueryFailed},
	} {
		f := opened(t, c.fault)
		r, _ := f.launch()
		f.dev.Advance(time.Millisecond)
		_, err := r.Poll(ctx)
		require.ErrorIs(t, err, c.want, c.fault)
		require.Equal(t, "launched", f.state("run", 0), c.fault)
		require.Equal(t, backend.Complete, f.poll(r), "and may be asked again")
		require.NoError(t, r.Wait(ctx))
	}
}

// A run may be finalized while somebody polls it. The answer that comes then is
// about a boundary that stands for nobody, or for another.
func TestFinalizedWhilePolling(t *testing.T) {
	for _, asked := range []int{0, 1, 2, 3} {
		f := opened(t)
		f.launch()
		s := f.stepping()
		s.issue("poll", "start", s.runArgs()...)
		s.settle("poll", s.context())
		require.Equal(t, machine.InFlight, s.next("poll"))
		for range asked {
			s.settle("poll", machine.Result{Value: 1})
			require.Equal(t, machine.InFlight, s.next("poll"))
		}
		s.fire("fence", "abandon")
		s.fire("fence", "arm", 8, 8, 8)
		before := s.w.AppendFacts(nil, s.ref("fence"))
		s.settle("poll", machine.Result{Value: 1})
		require.Equal(t, "ready", s.state("poll"))
		require.Equal(t, before, s.w.AppendFacts(nil, s.ref("fence")))
		require.Zero(t, s.w.Queued())
	}
}

// Polling proves as waiting does: a boundary of this run behind its wait for
// the run before it, and Tail behind the caller's wait for this run.
func TestPollGivesReferencesBack(t *testing.T) {
	f, first, second, err := pair(t)
	require.NoError(t, err)
	f.dev.Advance(time.Millisecond)
	require.Equal(t, backend.Complete, f.poll(second))
	require.Equal(t, [4]string{"no_wait", "no_wait", "no_wait", "true"}, [4]string{
		f.fact("join", 1, "core_wait"), f.fact("join", 1, "cpu_wait"), f.fact("caller_order", 1, "held"), f.fact("caller_order", 1, "consumed"),
	})
	require.Equal(t, [2]string{"complete", "complete"}, [2]string{f.fact("fence", 1, "core"), f.fact("fence", 1, "cpu")})
	require.NoError(t, first.Wait(ctx))
	require.NoError(t, first.Finalize(ctx), "nobody waits for it any more")
	require.NoError(t, second.Wait(ctx))
	f.ends(second)
}

func TestPollBeforeLaunch(t *testing.T) {
	f := opened(t)
	_, err := f.prepare().Poll(ctx)
	require.ErrorIs(t, err, ErrNotLaunched)
}
