package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// The measured table (F102), call by call, on one run whose AICPU kernel
// returned a fatal status.
func TestMeasuredTable(t *testing.T) {
	r := newRig(t, sim.Config{Plan: []sim.Fault{{Op: sim.OpSubmitAICPU, Nth: 1, Kind: sim.KernelFatal}}})
	ctx := context.Background()
	d := r.d
	require.True(t, d.Submit(ctx, r.coreS, r.core).Ok())
	require.True(t, d.RecordEvent(ctx, r.coreE, r.coreS).Ok())
	require.True(t, d.Submit(ctx, r.cpuS, r.cpu).Ok())
	require.True(t, d.RecordEvent(ctx, r.cpuE, r.cpuS).Ok())

	require.Equal(t, backend.Result{}, d.WaitEvent(ctx, r.coreE, time.Second))
	require.Equal(t, backend.Result{}, d.WaitEvent(ctx, r.cpuE, time.Second))
	for _, s := range []backend.Stream{r.coreS, r.cpuS} {
		st, res := d.QueryStream(ctx, s)
		require.Equal(t, backend.Complete, st)
		require.Equal(t, backend.Result{}, res, "nor is there a last error before a synchronize")
	}
	require.Equal(t, backend.InvalidParam, d.SynchronizeStream(ctx, r.cpuS, 0).Code)
	want := backend.Result{Outcome: backend.Failed, Code: backend.AICPUException, LastError: backend.AICPUException}
	require.Equal(t, want, d.SynchronizeStream(ctx, r.cpuS, time.Second))
	_, res := d.QueryStream(ctx, r.coreS)
	require.Equal(t, backend.Result{LastError: backend.AICPUException}, res)
	_, res = d.QueryStream(ctx, r.cpuS)
	require.Equal(t, want, res, "once materialised, the error is sticky")
}
