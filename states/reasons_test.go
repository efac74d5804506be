package states

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// second drops what a call returns beside its error.
func second[T any](_ T, err error) error { return err }

// partialRun makes a lane whose run is partial.
func partialRun(t *testing.T) (*fixture, *Run) {
	f := opened(t, "RecordEvent#2 fail-before")
	r := f.prepare()
	require.ErrorIs(t, second(r.Launch(ctx)), ErrPartial)
	return f, r
}

// ofFacade gets each reason from an operation that hosts call.
var ofFacade = map[machine.Reason]func(t *testing.T) error{
	ErrForeignProcess: func(t *testing.T) error { f := opened(t); f.process = 2; return f.lane.Close(ctx) },
	ErrExecutionContextRefused: func(t *testing.T) error {
		f := opened(t)
		f.dev.SetCurrent(0)
		return second(f.lane.Prepare(ctx, work))
	},
	ErrContextQuery: func(t *testing.T) error {
		f := opened(t)
		f.strike("CurrentContext#1 fail-before")
		return second(f.lane.Prepare(ctx, work))
	},
	ErrNoCurrentContext: func(t *testing.T) error {
		f := unopened(t, Config{})
		f.dev.SetCurrent(0)
		return f.lane.Open(ctx)
	},
	ErrGenerationRequired:    func(t *testing.T) error { return unopened(t, Config{Borrowed: true}).lane.Open(ctx) },
	ErrGenerationNotAccepted: func(t *testing.T) error { return unopened(t, Config{Generation: 1}).lane.Open(ctx) },
	ErrZeroIdentity: func(t *testing.T) error {
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		l, err := NewLane(Config{Backend: dev, Process: func() int { return 0 }})
		require.NoError(t, err)
		return l.Open(ctx)
	},
	ErrStaleIdentity: func(t *testing.T) error {
		f := opened(t)
		r := f.prepare()
		require.NoError(t, r.Finalize(ctx))
		return r.Wait(ctx)
	},
	ErrNotInitialised:     func(t *testing.T) error { return unopened(t, Config{}).lane.Close(ctx) },
	ErrAlreadyInitialised: func(t *testing.T) error { return opened(t).lane.Open(ctx) },
	ErrInitialisation: func(t *testing.T) error {
		return unopened(t, Config{}, "CreateStream#1 fail-before").lane.Open(ctx)
	},
	ErrCleanupOwed: func(t *testing.T) error {
		f := unopened(t, Config{}, "CreateStream#2 fail-before", "DestroyStream#1 fail-before")
		require.ErrorIs(t, f.lane.Open(ctx), ErrInitialisation)
		return f.lane.Open(ctx)
	},
	ErrTeardown: func(t *testing.T) error { return opened(t, "DestroyStream#1 fail-before").lane.Close(ctx) },
	ErrFinalized: func(t *testing.T) error {
		f := opened(t)
		require.NoError(t, f.lane.Close(ctx))
		return f.lane.Close(ctx)
	},
	ErrDetached: func(t *testing.T) error {
		f := opened(t)
		f.lane.Detach()
		return second(f.lane.Prepare(ctx, work))
	},
	ErrClosing: func(t *testing.T) error {
		f := opened(t, "DestroyStream#1 fail-before")
		require.ErrorIs(t, f.lane.Close(ctx), ErrTeardown)
		return f.lane.Environment().Check(ctx)
	},

	ErrModeLatched: func(t *testing.T) error {
		l := newLatch(t)
		require.NoError(t, l.Claim(Program))
		return l.Claim(Kernel)
	},
	ErrModeUnclaimed: func(t *testing.T) error { return newLatch(t).Begin() },
	ErrPhase: func(t *testing.T) error {
		l := newLatch(t)
		require.NoError(t, l.Claim(Program))
		return l.Succeed()
	},

	ErrReferenceHeld: func(t *testing.T) error {
		f := opened(t)
		r, rc := f.launch()
		f.reserve(rc, r)
		require.NoError(t, r.Wait(ctx))
		return r.Finalize(ctx)
	},
	ErrNotArmed: func(t *testing.T) error {
		f := opened(t)
		r := f.prepare()
		return second(f.lane.Reserve(ctx, Receipt{Identity: r.Identity()}, CoreDone, r, CPUStream))
	},
	ErrBoundaryOrder: func(t *testing.T) error {
		f, r := partialRun(t)
		rc := Receipt{Identity: r.Identity(), Arming: 1}
		return second(f.lane.Reserve(ctx, rc, CPUDone, r, CoreStream))
	},
	ErrUnproven: func(t *testing.T) error { r, _ := opened(t).launch(); return r.Finalize(ctx) },
	ErrEventCreate: func(t *testing.T) error {
		return second(opened(t, "CreateEvent#1 fail-before").prepare().Launch(ctx))
	},

	ErrWrongWaiter: func(t *testing.T) error {
		f := opened(t)
		r, rc := f.launch()
		token := f.reserve(rc, r)
		require.NoError(t, token.Commit(ctx))
		return token.Release(ctx, CPUStream)
	},
	ErrNotCommitted: func(t *testing.T) error {
		f := opened(t)
		r, rc := f.launch()
		return f.reserve(rc, r).Release(ctx, CoreStream)
	},
	ErrTokenEmpty: func(t *testing.T) error {
		f := opened(t)
		r, rc := f.launch()
		token := f.reserve(rc, r)
		require.NoError(t, token.Revoke(ctx))
		return token.Commit(ctx)
	},
	ErrTokenHeld: func(t *testing.T) error {
		f := opened(t)
		r, rc := f.launch()
		token := f.reserve(rc, r)
		require.NoError(t, token.Commit(ctx))
		return token.Revoke(ctx)
	},
	ErrTokenCurrent: func(t *testing.T) error { f := opened(t); r, rc := f.launch(); return f.reserve(rc, r).Discard(ctx, 0) },
	ErrForeignToken: func(t *testing.T) error { f := opened(t); r, rc := f.launch(); return f.reserve(rc, r).Discard(ctx, 1) },
	ErrNoQuiescence: func(t *testing.T) error {
		f := opened(t)
		r, rc := f.launch()
		return f.reserve(rc, r).ReleaseOnQuiescence(ctx)
	},
	ErrWaitMaybeQueued: func(t *testing.T) error {
		f := opened(t, "StreamWaitEvent#1 fail-after")
		r, rc := f.launch()
		return f.reserve(rc, r).Queue(ctx)
	},

	ErrAdmissionClosed: func(t *testing.T) error { f, _ := partialRun(t); return second(f.lane.Prepare(ctx, work)) },
	ErrSlotOccupied:    func(t *testing.T) error { f := opened(t); f.launch(); return second(f.lane.Prepare(ctx, work)) },
	ErrDepthReached: func(t *testing.T) error {
		f := unopened(t, Config{Slots: 2})
		require.NoError(t, f.lane.Open(ctx))
		f.launch()
		return second(f.prepare().Launch(ctx))
	},
	ErrPreparationRefused: func(t *testing.T) error {
		return second(opened(t, "Alloc#1 refuse").lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: []byte{1}}))
	},
	ErrPreparationAmbiguous: func(t *testing.T) error {
		return second(opened(t, "Copy#1 fail-before", "Free#1 fail-before").lane.Prepare(ctx, work))
	},
	ErrNotPrepared: func(t *testing.T) error { r, _ := opened(t).launch(); return second(r.Launch(ctx)) },
	ErrNotLaunched: func(t *testing.T) error { return opened(t).prepare().Wait(ctx) },
	ErrNotStarted: func(t *testing.T) error {
		return second(warm(t, "SubmitAICore#1 refuse").prepare().Launch(ctx))
	},
	ErrPartial: func(t *testing.T) error { _, r := partialRun(t); return r.Wait(ctx) },
	ErrRunFailed: func(t *testing.T) error {
		r, _ := opened(t, "SubmitAICPU#1 kernel-fatal").launch()
		return r.Wait(ctx)
	},
	ErrQueryFailed: func(t *testing.T) error {
		r, _ := opened(t, "QueryEvent#1 fail-before").launch()
		return second(r.Poll(ctx))
	},
	ErrStreamError: func(t *testing.T) error {
		r, _ := opened(t, "QueryStream#1 fail-before").launch()
		return second(r.Poll(ctx))
	},
	ErrWaitTimeout: func(t *testing.T) error {
		r, _ := opened(t, "SubmitAICore#1 kernel-hang").launch()
		return r.Wait(ctx)
	},
	ErrRunLive: func(t *testing.T) error { f := opened(t); f.launch(); return f.lane.Close(ctx) },
	ErrStreams: func(t *testing.T) error { return opened(t, "DestroyStream#1 fail-before").lane.Close(ctx) },
	ErrCloseRejected: func(t *testing.T) error {
		f := opened(t)
		f.dev.SetCurrent(0)
		return f.lane.Close(ctx)
	},
}

// ofRules gets the reasons that no façade's operation can bring about: rows
// that guard what other rows rule out already, and a command that never fails.
var ofRules = map[machine.Reason]func(t *testing.T) error{
	ErrNotRetired: func(t *testing.T) error {
		f := opened(t)
		f.launch()
		return f.fire("fence", 0, "arm", 7, 7, 7)
	},
	ErrFenceReleased: func(t *testing.T) error {
		f := opened(t)
		require.NoError(t, f.fire("fence", 0, "release"))
		return f.fire("fence", 0, "arm", 7, 7, 7)
	},
	ErrRelease: func(t *testing.T) error {
		f := opened(t)
		waited(f)
		s := f.stepping()
		s.issue("finalize", "start", s.runArgs()...)
		s.settle("finalize", s.context())
		s.next("finalize")
		step := s.w.Settle(s.ref("finalize"), machine.Result{Outcome: machine.Failed})
		require.Equal(t, "retired", s.state("run"), "and may be tried again")
		return step.Reason
	},
}

// Every reason that a row names is one that somebody has seen.
func TestEveryReason(t *testing.T) {
	var all []machine.Reason
	for _, some := range []map[machine.Reason]func(*testing.T) error{ofFacade, ofRules} {
		for reason, get := range some {
			all = append(all, reason)
			t.Run(string(reason), func(t *testing.T) { require.ErrorIs(t, get(t), reason) })
		}
	}
	require.ElementsMatch(t, Rules().Reasons(), all)
}
