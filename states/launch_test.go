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

// TestLaunchGrades breaks each call of a launch in each way that a call can
// break and asks what the launch was graded, what the fence knows, and whether
// admission is open.
func TestLaunchGrades(t *testing.T) {
	const fails, refused = "fail-before fail-after panic-before panic-after", "refuse"
	for _, c := range []struct {
		call, ways string
		grade      error
		core, cpu  string // of the fence
	}{
		{"CreateEvent#1", fails + " " + refused, ErrEventCreate, "missing", "missing"},
		{"CreateEvent#2", fails + " " + refused, ErrEventCreate, "missing", "missing"},
		{"CopyAsync#1", fails + " fail-accepted", ErrPartial, "missing", "missing"},
		{"CopyAsync#1", refused, ErrNotStarted, "missing", "missing"},
		{"SubmitAICore#1", refused, ErrPartial, "missing", "missing"}, // behind the region's publication
		{"SubmitAICore#1", fails + " fail-accepted", ErrPartial, "submitted", "missing"},
		{"RecordEvent#1", fails + " fail-accepted " + refused, ErrPartial, "submitted", "missing"},
		{"SubmitAICPU#1", refused, ErrPartial, "recorded", "missing"},
		{"SubmitAICPU#1", fails + " fail-accepted", ErrPartial, "recorded", "submitted"},
		{"RecordEvent#2", fails + " fail-accepted " + refused, ErrPartial, "recorded", "submitted"},
	} {
		for _, way := range split(c.ways) {
			t.Run(c.call+" "+way, func(t *testing.T) {
				f := opened(t, c.call+" "+way)
				r := f.prepare()
				rc, err := r.Launch(ctx)
				require.ErrorIs(t, err, c.grade)
				require.Zero(t, rc, "no receipt")
				require.Equal(t, c.core, f.fact("fence", 0, "core"))
				require.Equal(t, c.cpu, f.fact("fence", 0, "cpu"))
				var failure *machine.FailureError
				require.ErrorAs(t, err, &failure)
				if way == "panic-before" || way == "panic-after" {
					require.NotNil(t, failure.Panic)
				} else {
					require.Equal(t, int32(backend.InternalError), failure.Code, "the call's own code (F73)")
				}
				if c.grade != ErrPartial {
					require.Equal(t, "not started", f.state("run", 0))
					_, err = r.Launch(ctx)
					require.ErrorIs(t, err, ErrNotPrepared, "one permit, one launch")
					require.NoError(t, r.Finalize(ctx))
					f.launch() // a valid retry is open (F159)
					f.clean()
					return
				}
				require.Equal(t, "partial", f.state("run", 0))
				require.Equal(t, "1", f.fact("lane", 0, "unproven"))
				_, err = f.lane.Prepare(ctx, work)
				require.ErrorIs(t, err, ErrAdmissionClosed)
				require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
				require.ErrorIs(t, f.lane.Close(ctx), ErrUnproven)
				if way == "panic-before" || way == "panic-after" {
					return
				}
				// The bounded fallback proves it over, and opens admission again.
				err = r.Wait(ctx)
				require.ErrorIs(t, err, ErrPartial)
				require.ErrorAs(t, err, &failure)
				require.Equal(t, int32(backend.InternalError), failure.Code, "the launch's code outlives its cleanup")
				require.Equal(t, "0", f.fact("lane", 0, "unproven"))
				err = r.Wait(ctx)
				require.ErrorIs(t, err, ErrPartial)
				require.ErrorAs(t, err, &failure)
				require.Equal(t, int32(backend.InternalError), failure.Code, "told again as it was told")
				require.NoError(t, r.Finalize(ctx))
				f.launch()
				f.clean()
			})
		}
	}
}

// A backend may refuse a call that it had marked as accepted. The mark counts.
func TestAcceptedIsNeverNotStarted(t *testing.T) {
	for op, want := range map[sim.OpKind][2]string{
		sim.OpSubmitAICore: {"submitted", "missing"},
		sim.OpSubmitAICPU:  {"recorded", "submitted"},
	} {
		b := &refusing{op: op}
		f := unopened(t, Config{Backend: b})
		b.Backend = f.dev
		require.NoError(t, f.lane.Open(ctx))
		_, err := f.prepare().Launch(ctx)
		require.ErrorIs(t, err, ErrPartial)
		require.Equal(t, want, [2]string{f.fact("fence", 0, "core"), f.fact("fence", 0, "cpu")})
	}
}

// refusing submits a kernel and then says that it did not.
type refusing struct {
	backend.Backend
	op sim.OpKind
}

func (b *refusing) Submit(ctx context.Context, s backend.Stream, l backend.Launch) backend.Result {
	r := b.Backend.Submit(ctx, s, l)
	if sim.SubmitOp(s, l).Kind == b.op {
		r.Outcome = machine.Refused
	}
	return r
}

// AICore first, each kernel followed by its own boundary, and nothing else: no
// wait, no copy, no query (F96, F101, F32).
func TestLaunchCallsAndTheirOrder(t *testing.T) {
	f := opened(t)
	r := f.prepare()
	calls := f.calls()
	rc, err := r.Launch(ctx)
	require.NoError(t, err)
	require.Equal(t, []sim.OpKind{
		sim.OpCurrentContext,
		sim.OpCreateEvent, sim.OpCreateEvent,
		sim.OpCopyAsync, // the region's marker, once (F3)
		sim.OpSubmitAICore, sim.OpRecordEvent,
		sim.OpSubmitAICPU, sim.OpRecordEvent,
	}, *calls)
	require.Equal(t, r.Identity(), rc.Identity)
	require.NotZero(t, rc.Arming)
	require.Equal(t, "recorded", f.fact("fence", 0, "core"))
	require.Equal(t, "recorded", f.fact("fence", 0, "cpu"))
}

// The active owner exists, and the streams are bound, before the backend is
// first called (F12, F75).
func TestOwnerBeforeTheBackend(t *testing.T) {
	f := opened(t)
	r := f.prepare()
	var seen []string
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceCall && e.Op == sim.OpCreateEvent {
			seen = append(seen, f.state("run", 0), f.fact("run", 0, "bound"), f.state("fence", 0))
		}
	})
	_, err := r.Launch(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"launching", "true", "armed", "launching", "true", "armed"}, seen)
}

// Later runs of a slot re-record its events: no create, no reset (F123, F125).
func TestSlotKeepsItsEvents(t *testing.T) {
	f := opened(t)
	created := 0
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceCall && e.Op == sim.OpCreateEvent {
			created++
		}
	})
	for range 3 {
		r, _ := f.launch()
		require.NoError(t, r.Wait(ctx))
		require.NoError(t, r.Finalize(ctx))
		require.Equal(t, "true", f.fact("fence", 0, "handles"))
	}
	require.Equal(t, 2, created)
	f.clean()
}

// Once the last submission is accepted, nothing needs memory any more to say
// so and to hand the run over (F77).
func TestHandOffAllocatesNothing(t *testing.T) {
	f := opened(t)
	f.prepare()
	s := f.stepping()
	s.issue("launch", "start", append(s.runArgs(), s.fact("run", "permit"))...)
	s.settle("launch", s.context())
	const last = "core awaited▸record_cpu"
	for s.state("launch") != last {
		if s.next("launch") == machine.InFlight && s.state("launch") != last {
			s.settle("launch", machine.Result{})
		}
	}
	w, launch := s.w.Clone(), s.ref("launch")
	for _, answer := range []machine.Result{{}, {Outcome: machine.Failed}, {Outcome: machine.Panicked}} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			w.CopyFrom(s.w)
			w.Settle(launch, answer)
		}))
	}
	require.Equal(t, "partial", w.StateName(launch))
}

// A permit is for one launch of one run.
func TestPermit(t *testing.T) {
	f := opened(t)
	r := f.prepare()
	forged := *r
	forged.permit++
	_, err := forged.Launch(ctx)
	require.ErrorIs(t, err, ErrNotStarted)
	var failure *machine.FailureError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, int32(-1), failure.Code)
	require.Equal(t, "prepared", f.state("run", 0), "nothing was submitted, and the permit stands")
	_, err = r.Launch(ctx)
	require.NoError(t, err)
	_, err = r.Launch(ctx)
	require.ErrorIs(t, err, ErrNotPrepared)
}

// Admission is asked again at launch, and again in the step that arms.
func TestAdmissionIsAskedAtLaunch(t *testing.T) {
	f := opened(t)
	r := f.prepare()
	require.NoError(t, f.fire("lane", 0, "poison"))
	_, err := r.Launch(ctx)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.Equal(t, "prepared", f.state("run", 0))

	// Poisoned between the launch's look at the context and its next step.
	f = opened(t)
	f.prepare()
	s := f.stepping()
	s.issue("launch", "start", append(s.runArgs(), s.fact("run", "permit"))...)
	s.settle("launch", s.context())
	s.fire("lane", "poison")
	s.next("launch")
	require.Equal(t, "not started", s.state("launch"))
	require.Equal(t, "prepared", s.state("run"))
}

// Preparing selects and replaces no stream (F13).
func TestPrepareTouchesNoStream(t *testing.T) {
	f := opened(t)
	var streams []sim.OpKind
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceCall && (e.Stream != 0 || e.Op == sim.OpCreateStream) {
			streams = append(streams, e.Op)
		}
	})
	r, err := f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: []byte("arguments")})
	require.NoError(t, err)
	require.Empty(t, streams)
	require.NoError(t, r.Finalize(ctx))
	require.Empty(t, streams, "nor does giving it up")
}

// A launch returns when everything is enqueued, and says nothing of how it
// will end (F21).
func TestLaunchReturnsTheEnqueueResult(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 kernel-fatal")
	r, _ := f.launch()
	require.Zero(t, f.dev.Now(), "it waited for nothing")
	require.ErrorIs(t, r.Wait(ctx), ErrRunFailed)
}

// A kernel that never ends keeps its run: the wait expires, and nothing is
// freed, closed or run again (F100, F132).
func TestExpiredWaitProvesNothing(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 kernel-hang")
	r, _ := f.launch()
	before := f.bytes()
	for range 2 {
		require.ErrorIs(t, r.Wait(ctx), ErrWaitTimeout)
	}
	require.Equal(t, "launched", f.state("run", 0))
	require.Equal(t, "complete", f.fact("fence", 0, "core"))
	require.Equal(t, "recorded", f.fact("fence", 0, "cpu"))
	require.NotEqual(t, before, f.bytes())
	before = f.bytes()
	require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	require.ErrorIs(t, f.lane.Close(ctx), ErrRunLive)
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrSlotOccupied)
	require.Equal(t, before, f.bytes())
	require.GreaterOrEqual(t, f.dev.Now(), 2*time.Second, "each wait was bounded by the lane's timeout")
	f.clean()
}
