package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// Under random policies either kernel exits first, waits expire now and then,
// and faults strike within the budget.
func TestRandomReachesWhatTimedDoesNot(t *testing.T) {
	ctx := context.Background()
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		r := newRig(t, sim.Config{Budget: 1, Faults: sim.Faults(sim.KernelFatal)})
		r.d.SetPolicy(sim.NewRandom(seed, 10))
		r.d.Submit(ctx, r.coreS, r.core)
		r.d.RecordEvent(ctx, r.coreE, r.coreS)
		r.d.Submit(ctx, r.cpuS, r.cpu)
		r.d.RecordEvent(ctx, r.cpuE, r.cpuS)
		if r.d.WaitEvent(ctx, r.cpuE, time.Second).Ok() {
			st, _ := r.d.QueryEvent(ctx, r.coreE)
			seen["core "+st.String()+" when cpu completes"] = true
		} else {
			seen["wait expires"] = true
		}
		seen["synchronize "+r.d.SynchronizeStream(ctx, r.cpuS, time.Second).Outcome.String()] = true
		require.Empty(t, r.d.Violations())
	}
	for _, want := range []string{
		"core complete when cpu completes", "core not ready when cpu completes", "wait expires",
		"synchronize ok", "synchronize failed", "synchronize timedout",
	} {
		require.True(t, seen[want], want)
	}
}

// A recording that does not fit is reported, and the device goes on.
func TestRecordedReportsDivergence(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	p := sim.NewRecorded([]sim.Choice{{Kind: sim.ChooseExpire, Target: 1}})
	r.d.SetPolicy(p)
	require.True(t, r.d.Submit(ctx, r.coreS, r.core).Ok())
	require.ErrorIs(t, p.Err(), sim.ErrNotOffered)
	require.Equal(t, 1, p.Left())
	require.True(t, r.d.SynchronizeStream(ctx, r.coreS, time.Second).Ok())
	require.Equal(t, 20*time.Microsecond, r.d.Now())
}

// Due tells when a choice is due; no clock decides a fault.
func TestDue(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{Budget: 1, Faults: sim.Faults(sim.KernelFatal)})
	r.d.Submit(ctx, r.coreS, r.core)
	at, ok := r.d.Due(sim.Choice{Kind: sim.ChooseEntry, Target: uint64(r.coreS)})
	require.True(t, ok)
	require.Equal(t, 20*time.Microsecond, at)
	choices := r.d.Choices(nil)
	require.Equal(t, []string{"entry s0", "fatal s0 507015"}, text(choices))
	_, ok = r.d.Due(choices[1])
	require.False(t, ok)
	require.NoError(t, r.d.Apply(choices[1]))
	require.Equal(t, []string{"notice 0"}, text(r.d.Choices(nil)), "the kernel's notice is under way")
	require.NoError(t, r.d.Apply(r.d.Choices(nil)[0]))
	var n [1]backend.Notice
	got, _ := r.d.Notices(n[:])
	require.Equal(t, 1, got)
}

// A device driven by choices reads and writes as one driven by calls does.
func TestReadAndWriteByChoices(t *testing.T) {
	d := device(t, sim.Config{})
	m := backend.Memory(call(d, sim.Op{Kind: sim.OpAlloc, Place: backend.PinnedMemory, Size: 4}).Handle)
	do := func(op sim.Op) sim.Answer {
		k := d.Begin(op)
		require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseEffect, Target: uint64(k)}))
		require.NoError(t, d.Apply(sim.Choice{Kind: sim.ChooseReturn, Target: uint64(k)}))
		a, ok := d.Take(k)
		require.True(t, ok)
		return a
	}
	require.True(t, do(sim.Op{Kind: sim.OpWrite, Memory: m, Offset: 1, Data: []byte("ab")}).Ok())
	a := do(sim.Op{Kind: sim.OpRead, Memory: m, Offset: 1, Size: 2})
	require.Equal(t, "ab", string(a.Data))
}
