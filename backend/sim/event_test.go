package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// Of several records the latest counts, in whatever order they execute; a wait
// stays with the record that it was queued for.
func TestTheLatestRecordWins(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	third, _ := r.d.CreateStream(ctx)
	fourth, _ := r.d.CreateStream(ctx)
	r.d.Submit(ctx, r.coreS, r.core) // 20µs
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	r.d.StreamWaitEvent(ctx, third, r.coreE)
	r.d.Submit(ctx, r.cpuS, r.cpu) // 30µs
	r.d.RecordEvent(ctx, r.coreE, r.cpuS)
	r.d.StreamWaitEvent(ctx, fourth, r.coreE)

	status := func(s backend.Stream) backend.Status {
		st, res := r.d.QueryStream(ctx, s)
		require.True(t, res.Ok())
		return st
	}
	r.d.Advance(25 * time.Microsecond)
	st, _ := r.d.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.NotReady, st, "the first record has executed, the latest has not")
	require.Equal(t, backend.Complete, status(third))
	require.Equal(t, backend.NotReady, status(fourth))
	r.d.Advance(5 * time.Microsecond)
	st, _ = r.d.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.Complete, st)
	require.Equal(t, backend.Complete, status(fourth))

	// The other way round: the latest record executes first.
	r = newRig(t, sim.Config{})
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	r.d.RecordEvent(ctx, r.coreE, r.cpuS)
	st, _ = r.d.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.Complete, st)
	r.d.Advance(time.Second)
	st, _ = r.d.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.Complete, st)
}

// A wait of the host, too, is for the record that was the latest when it began.
func TestAHostWaitStaysWithItsRecord(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	k := r.d.Begin(sim.Op{Kind: sim.OpWaitEvent, Event: r.coreE, Timeout: time.Second})
	apply := func(kind sim.ChoiceKind, target uint64) {
		t.Helper()
		require.NoError(t, r.d.Apply(sim.Choice{Kind: kind, Target: target}))
	}
	apply(sim.ChooseEffect, uint64(k))
	require.Equal(t, []string{"entry s0", "expire " + k.String()}, text(r.d.Choices(nil)))
	apply(sim.ChooseEntry, uint64(r.coreS))
	again := r.d.Begin(sim.Op{Kind: sim.OpRecordEvent, Event: r.coreE, Stream: r.coreS})
	apply(sim.ChooseEffect, uint64(again))
	require.Contains(t, text(r.d.Choices(nil)), "return "+k.String(), "the new record does not take the old one back")
	apply(sim.ChooseReturn, uint64(k))
	a, _ := r.d.Take(k)
	require.True(t, a.Ok())
}

// A wait that was queued before its record proves the record once it passed.
func TestAWaitThatHeldProvesItsRecord(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{Unrecorded: sim.Hangs})
	r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	require.True(t, r.d.SynchronizeStream(ctx, r.cpuS, time.Second).Ok())
	before := len(r.d.Violations())
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	require.Len(t, r.d.Violations(), before)
}

// Each way to learn of a record is a proof of it.
func TestWaysToProve(t *testing.T) {
	ctx := context.Background()
	for name, learn := range map[string]func(*rig){
		"query of the event":        func(r *rig) { r.d.QueryEvent(ctx, r.coreE) },
		"wait for the event":        func(r *rig) { r.d.WaitEvent(ctx, r.coreE, 1) },
		"query of the stream":       func(r *rig) { r.d.QueryStream(ctx, r.coreS) },
		"synchronize of the stream": func(r *rig) { r.d.SynchronizeStream(ctx, r.coreS, 1) },
	} {
		r := newRig(t, sim.Config{})
		r.d.RecordEvent(ctx, r.coreE, r.coreS)
		learn(r)
		r.d.RecordEvent(ctx, r.coreE, r.coreS)
		require.Empty(t, r.d.Violations(), name)
	}
}

// What completes at the deadline completes; a moment earlier it would not have.
func TestADeadlineIsInclusive(t *testing.T) {
	ctx := context.Background()
	for timeout, want := range map[time.Duration]backend.Code{
		20 * time.Microsecond:     backend.Success,
		20*time.Microsecond - 1:   backend.EventSyncTimeout,
		20*time.Microsecond + 500: backend.Success,
	} {
		r := newRig(t, sim.Config{})
		r.d.Submit(ctx, r.coreS, r.core)
		r.d.RecordEvent(ctx, r.coreE, r.coreS)
		require.Equal(t, want, r.d.WaitEvent(ctx, r.coreE, timeout).Code)
	}
}

// A call that took effect and failed does not say that it was accepted, unless
// the plan says so.
func TestAcceptance(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{Plan: []sim.Fault{
		{Op: sim.OpRecordEvent, Nth: 1, Kind: sim.FailAfter},
		{Op: sim.OpRecordEvent, Nth: 2, Kind: sim.FailAccepted},
	}})
	res := r.d.RecordEvent(ctx, r.coreE, r.coreS)
	require.Equal(t, backend.InternalError, res.Code)
	require.False(t, res.Accepted)
	res = r.d.RecordEvent(ctx, r.cpuE, r.coreS)
	require.Equal(t, backend.InternalError, res.Code)
	require.True(t, res.Accepted)
	for _, e := range []backend.Event{r.coreE, r.cpuE} {
		st, _ := r.d.QueryEvent(ctx, e)
		require.Equal(t, backend.Complete, st, "both were recorded")
	}
}

// After a confirmed reset a stream is clean, and a kernel of before is no
// partner for one of after.
func TestAResetLeavesNothingBehind(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{Plan: []sim.Fault{{Op: sim.OpSubmitAICore, Nth: 1, Kind: sim.KernelFatal}}})
	r.d.Submit(ctx, r.coreS, r.core)
	require.False(t, r.d.SynchronizeStream(ctx, r.coreS, time.Second).Ok())
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.Reset(ctx)
	_, res := r.d.QueryStream(ctx, r.coreS)
	require.True(t, res.Ok(), "the sticky error is gone")
	require.True(t, r.d.SynchronizeStream(ctx, r.coreS, time.Second).Ok())
	r.d.Submit(ctx, r.cpuS, r.cpu)
	r.d.Advance(time.Second)
	require.Equal(t, "stream s1: AICPU kernel cpu (entry 1) spins for an AICore kernel that was not submitted (open)", r.d.Deadlock())
}
