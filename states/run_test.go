package states

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// operations are a run's, each on a run that is ready for it.
var operations = []struct {
	name  string
	ready func(f *fixture) *Run
	do    func(f *fixture, r *Run) error
}{
	{"launch", func(f *fixture) *Run { return f.prepare() }, func(_ *fixture, r *Run) error { _, err := r.Launch(ctx); return err }},
	{"poll", launched, func(_ *fixture, r *Run) error { _, err := r.Poll(ctx); return err }},
	{"wait", launched, func(_ *fixture, r *Run) error { return r.Wait(ctx) }},
	{"finalize", waited, func(_ *fixture, r *Run) error { return r.Finalize(ctx) }},
	{"prepare", func(*fixture) *Run { return nil }, func(f *fixture, _ *Run) error { _, err := f.lane.Prepare(ctx, work); return err }},
}

func launched(f *fixture) *Run {
	r, _ := f.launch()
	return r
}

func waited(f *fixture) *Run {
	r, _ := f.launch()
	require.NoError(f, r.Wait(ctx))
	return r
}

// Under another context every operation refuses, the device is entered for
// nothing but that question, nothing is lost, and the same handle goes on once
// the context is back (F59, F157).
func TestContextMismatchLosesNothing(t *testing.T) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			f := opened(t)
			r := op.ready(f)
			before := f.bytes()
			calls := f.calls()
			for _, c := range []backend.Context{0, f.dev.NewContext(true)} {
				f.dev.SetCurrent(c)
				require.ErrorIs(t, op.do(f, r), ErrExecutionContextRefused)
			}
			f.dev.SetCurrent(f.dev.Home())
			for _, way := range []string{"refuse", "fail-before", "panic-before"} {
				f.strike("CurrentContext#1 " + way)
				require.ErrorIs(t, op.do(f, r), ErrContextQuery)
			}
			for _, call := range *calls {
				require.Equal(t, sim.OpCurrentContext, call)
			}
			require.Equal(t, before, f.bytes())
			require.NoError(t, op.do(f, r))
			f.clean()
		})
	}
}

// A handle of a run that is over reads and changes nothing of the run that has
// its slot now (F122).
func TestStaleHandleTouchesNothing(t *testing.T) {
	f := opened(t)
	old, oldReceipt := f.launch()
	require.NoError(t, old.Wait(ctx))
	require.NoError(t, old.Finalize(ctx))
	stale := func(when string) {
		t.Helper()
		before := f.bytes()
		calls := f.calls()
		_, err1 := old.Launch(ctx)
		_, err2 := old.Poll(ctx)
		_, err3 := f.lane.Reserve(ctx, oldReceipt, CoreDone, old, CPUStream)
		for _, err := range []error{err1, err2, err3, old.Wait(ctx), old.Finalize(ctx)} {
			require.ErrorIs(t, err, ErrStaleIdentity, when)
		}
		s, err := old.State()
		require.NoError(t, err)
		require.Equal(t, "(stale)", s)
		require.Empty(t, *calls, when)
		require.Equal(t, before, f.bytes(), when)
	}
	stale("the slot is vacant")
	r := f.prepare()
	require.Equal(t, old.Identity().Slot, r.Identity().Slot)
	require.NotEqual(t, old.Identity(), r.Identity())
	stale("prepared")
	_, err := r.Launch(ctx)
	require.NoError(t, err)
	stale("launched")
	// Each part of an identity counts, also for whoever asks the rules directly.
	id := r.Identity()
	for i := range 3 {
		args := []uint64{1, id.RunEpoch, id.Generation, id.Dispatch}
		args[1+i]++
		for _, m := range []string{"poll", "drain", "finalize"} {
			require.ErrorIs(t, f.fire(m, 0, "start", args...), ErrStaleIdentity)
		}
		for _, e := range []string{"disarm", "quiesced", "retire", "made"} {
			require.ErrorIs(t, f.fire("fence", 0, e, args[1:]...), ErrStaleIdentity, e)
		}
		for _, e := range []string{"submitting", "submitted", "unsubmitted", "recording", "recorded", "unrecorded", "reached"} {
			require.ErrorIs(t, f.fire("fence", 0, e, append(args[1:4:4], 0)...), ErrStaleIdentity, e)
		}
	}
	require.NoError(t, r.Wait(ctx))
	stale("drained")
	require.NoError(t, r.Finalize(ctx))
	f.clean()
}

// Of goroutines that finalize one run, one does; the others are told that the
// run is over, not that it might still be at work.
func TestOneFinalizes(t *testing.T) {
	f := opened(t)
	r := waited(f)
	errs := make(chan error)
	for range 4 {
		go func() { errs <- r.Finalize(ctx) }()
	}
	won := 0
	for range 4 {
		if err := <-errs; err == nil {
			won++
		} else {
			require.ErrorIs(t, err, ErrStaleIdentity)
		}
	}
	require.Equal(t, 1, won)
	require.Equal(t, "0", f.fact("lane", 0, "runs"))

	// The moment between the run's end and its slot's.
	f = opened(t)
	waited(f)
	s := f.stepping()
	s.issue("finalize", "start", s.runArgs()...)
	s.settle("finalize", s.context())
	require.Equal(t, machine.InFlight, s.next("finalize"))
	s.settle("finalize", machine.Result{})
	require.Equal(t, "finalized", s.state("run"))
	step := s.w.Issue(s.ref("finalize"), s.rules.Machine("finalize").MustEvent("start"), s.runArgs()...)
	require.ErrorIs(t, s.w.RefusalError(step), ErrStaleIdentity)
}

// A run may be given up while its launch has only looked at the context. The
// launch then finds its permit gone, and the end of the run waits for it.
func TestGivenUpWhileLaunching(t *testing.T) {
	f := opened(t)
	f.prepare()
	s := f.stepping()
	s.issue("launch", "start", append(s.runArgs(), s.fact("run", "permit"))...)
	s.settle("launch", s.context())
	require.Equal(t, "permitted", s.state("launch"))
	s.issue("finalize", "start", s.runArgs()...)
	s.settle("finalize", s.context())
	require.Equal(t, machine.InFlight, s.next("finalize"))
	require.Equal(t, machine.Deferred, s.settle("finalize", machine.Result{}))
	require.Equal(t, machine.Accepted, s.next("launch"))
	require.Equal(t, "not started", s.state("launch"))
	require.Equal(t, machine.Accepted, s.settle("finalize", machine.Result{}))
	require.Equal(t, "finalized", s.state("run"))
	require.Equal(t, "idle", s.state("launch"))
	require.Equal(t, "bare", s.state("fence"))
}

// What preparing a run can come to, and what it leaves behind.
func TestPrepareOutcomes(t *testing.T) {
	args := Work{Core: 1, CPU: 2, Args: []byte("arguments")}
	for _, call := range []string{"Alloc#1", "Alloc#2", "Write#1", "Alloc#3", "Alloc#4", "Write#2", "Write#3", "Copy#1"} {
		for _, way := range []string{"refuse", "fail-before", "fail-after", "panic-before", "panic-after"} {
			t.Run(call+" "+way, func(t *testing.T) {
				f := opened(t, call+" "+way)
				_, err := f.lane.Prepare(ctx, args)
				if way == "refuse" {
					require.ErrorIs(t, err, ErrPreparationRefused)
				} else {
					// Its rollback answers with the attempt's own epoch (F68).
					require.ErrorIs(t, err, ErrRunPreparationRefused)
				}
				require.Equal(t, "idle", f.state("run", 0))
				require.Equal(t, "0", f.fact("lane", 0, "runs"))
				r, err := f.lane.Prepare(ctx, args)
				require.NoError(t, err)
				require.NoError(t, r.Finalize(ctx))
				require.NoError(t, f.lane.Close(ctx))
			})
		}
	}
}

// A rollback that gives no evidence, or another attempt's, keeps everything
// and closes admission for good (F67, F69).
func TestRollbackWithoutEvidence(t *testing.T) {
	for _, way := range []string{"refuse", "fail-before", "fail-after", "panic-before"} {
		f := opened(t, "Copy#1 fail-before", "Free#1 "+way)
		_, err := f.lane.Prepare(ctx, work)
		require.ErrorIs(t, err, ErrPreparationAmbiguous, way)
		require.Equal(t, "ambiguous", f.state("run", 0))
		_, err = f.lane.Prepare(ctx, work)
		require.ErrorIs(t, err, ErrAdmissionClosed)
		require.ErrorIs(t, f.lane.Close(ctx), ErrUnproven)
	}
	for _, epoch := range []uint64{0, 99} {
		f := opened(t)
		s := f.stepping()
		s.issue("prepare", "start", 1, 1, 0, 0)
		s.settle("prepare", s.context())
		s.next("prepare")
		s.next("prepare")
		s.settle("prepare", machine.Result{Outcome: machine.Failed})
		require.Equal(t, machine.InFlight, s.next("prepare"))
		s.settle("prepare", machine.Result{Value: epoch})
		require.Equal(t, "ambiguous", s.state("run"), "a marker of epoch %d", epoch)
	}
}

// A resource that is not to be had now is waited for, not failed (F70).
func TestResourceWait(t *testing.T) {
	f := opened(t, "Alloc#3 fail-before 207001", "Alloc#4 fail-before 207001")
	r, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrResourceWait)
	require.Equal(t, "preparing", f.state("run", 0))
	require.ErrorIs(t, r.Retry(ctx), ErrResourceWait)
	require.NoError(t, r.Retry(ctx))
	_, err = r.Launch(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))

	f = opened(t, "Alloc#3 fail-before 207001")
	r, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrResourceWait)
	require.ErrorIs(t, r.Abort(ctx), ErrRunPreparationRefused)
	require.ErrorIs(t, r.Retry(ctx), ErrNotPrepared)
	f.whole()
	f.clean()
}

// The kernels are given the run's bytes, and a slot's blocks serve the next
// run that fits in them.
func TestArguments(t *testing.T) {
	f := opened(t)
	var seen []backend.Memory
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceStart && e.Entry == sim.EntryKernel {
			seen = append(seen, e.Memory)
		}
	})
	sizes := []int{8, 4, 32}
	for _, n := range sizes {
		r, err := f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: bytes.Repeat([]byte{byte(n)}, n)})
		require.NoError(t, err)
		_, err = r.Launch(ctx)
		require.NoError(t, err)
		require.NoError(t, r.Wait(ctx))
		pinned, res := f.dev.Alloc(ctx, backend.PinnedMemory, uint64(n))
		require.True(t, res.Ok())
		require.True(t, f.dev.Copy(ctx, backend.Span{Mem: pinned, Size: uint64(n)}, backend.Span{Mem: seen[len(seen)-1], Offset: ArgsOffset, Size: uint64(n)}).Ok())
		got := make([]byte, n)
		require.True(t, f.dev.Read(ctx, got, pinned, 0).Ok())
		require.Equal(t, bytes.Repeat([]byte{byte(n)}, n), got)
		require.True(t, f.dev.Free(ctx, pinned).Ok())
		require.NoError(t, r.Finalize(ctx))
	}
	require.Equal(t, seen[0], seen[1], "both kernels of a run get one block")
	require.Equal(t, seen[1], seen[2], "a block that is large enough stays")
	require.NotEqual(t, seen[3], seen[4])
	require.NoError(t, f.lane.Close(ctx))
	f.clean()
}

// One run on the device at a time, at this depth; a successor may be prepared
// meanwhile, and launched once the run before it is drained (F43, F45).
func TestAdmissionDepth(t *testing.T) {
	f := unopened(t, Config{Slots: 2})
	require.NoError(t, f.lane.Open(ctx))
	first, _ := f.launch()
	next := f.prepare()
	_, err := next.Launch(ctx)
	require.ErrorIs(t, err, ErrDepthReached)
	require.Equal(t, "prepared", f.state("run", 1))
	require.NoError(t, first.Wait(ctx))
	_, err = next.Launch(ctx)
	require.NoError(t, err)
	require.NoError(t, next.Wait(ctx))

	f = opened(t)
	f.launch()
	_, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrSlotOccupied)
}

// At depth one a submission with a caller's stream drains the run before it
// first, and returns enqueued (F42, F43).
func TestSubmitDrainsThePredecessor(t *testing.T) {
	f := unopened(t, Config{Slots: 2})
	require.NoError(t, f.lane.Open(ctx))
	first, err := f.lane.Submit(ctx, f.called())
	require.NoError(t, err)
	second, err := f.lane.Submit(ctx, f.called())
	require.NoError(t, err)
	require.Equal(t, "drained", f.state("run", 0))
	require.Equal(t, "launched", f.state("run", 1))
	require.NoError(t, second.Wait(ctx))
	require.NoError(t, first.Finalize(ctx))
	require.NoError(t, second.Finalize(ctx))
	f.clean()
}

// A fault closes admission until a recovery: a stream keeps its error, and the
// next run on it would be charged with this one's (F14, F15, F151).
func TestFaultClosesAdmission(t *testing.T) {
	f := warm(t, "SubmitAICPU#1 kernel-fatal", "SubmitAICPU#1 notice-lost")
	r, _ := f.launch()
	require.ErrorIs(t, r.Wait(ctx), ErrRunFailed)
	require.False(t, f.health().Suspect, "the notice is lost")
	require.NoError(t, r.Finalize(ctx))
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.NoError(t, f.lane.Recover(ctx))
	f.whole()
	require.NoError(t, f.lane.Close(ctx))
	f.clean()
}

// An event fired from inside a command, through its context, is refused at
// once; one that goes past the context meets the lane's bound.
func TestReentry(t *testing.T) {
	b := &reentrant{}
	f := unopened(t, Config{Backend: b, Bound: time.Nanosecond})
	b.Backend = f.dev
	require.NoError(t, f.lane.Open(ctx))
	r := f.prepare()
	var through, past error
	b.during = func(ctx context.Context) {
		_, through = r.Poll(ctx)
		_, past = r.Launch(context.Background())
	}
	_, err := r.Launch(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, through, machine.ErrReentrant)
	require.ErrorIs(t, past, machine.ErrBusy)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
}

// reentrant calls the host back from inside the first submission, and once its
// notices were taken.
type reentrant struct {
	backend.Backend
	during func(context.Context)
	heard  func()
}

func (b *reentrant) Notices(dst []backend.Notice) (n int, dropped uint64) {
	n, dropped = b.Backend.Notices(dst)
	if f := b.heard; f != nil {
		b.heard = nil
		f()
	}
	return n, dropped
}

func (b *reentrant) Submit(ctx context.Context, s backend.Stream, l backend.Launch) backend.Result {
	if f := b.during; f != nil {
		b.during = nil
		f(ctx)
	}
	return b.Backend.Submit(ctx, s, l)
}

// A launch that another goroutine's launch precedes waits for it, and is then
// refused in the new state.
func TestSecondLaunchIsRefusedInTheNewState(t *testing.T) {
	b := &reentrant{}
	f := unopened(t, Config{Backend: b})
	b.Backend = f.dev
	require.NoError(t, f.lane.Open(ctx))
	r := f.prepare()
	second := make(chan error)
	b.during = func(context.Context) {
		// The device is for one goroutine at a time: the submission goes on when
		// the second launch has asked it for notices, and waits for the first.
		heard := make(chan struct{})
		b.heard = func() { close(heard) }
		go func() {
			_, err := r.Launch(ctx)
			second <- err
		}()
		<-heard
	}
	_, err := r.Launch(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, <-second, ErrNotPrepared)
}

// A caller whose patience ends before the device is entered loses nothing.
func TestCancelledCaller(t *testing.T) {
	f := opened(t)
	r, _ := f.launch()
	before := f.bytes()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := r.Poll(cancelled)
	require.ErrorIs(t, err, ErrContextQuery)
	require.ErrorIs(t, r.Wait(cancelled), ErrContextQuery)
	require.ErrorIs(t, r.Finalize(cancelled), ErrUnproven)
	require.Equal(t, before, f.bytes())
	require.NoError(t, r.Wait(ctx))
}
