package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

func TestTrace(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{
		Kernels:    []sim.KernelSpec{{Name: "flagged", Class: backend.AICPU, Duration: 9000, Paired: true, Flag: true, FlagAfter: 4000, Exit: backend.AICPUTimeout}},
		CopyTime:   2000,
		NoticeTime: 3000,
	})
	var lines []string
	r.d.Trace(func(e sim.TraceEvent) { lines = append(lines, e.String()) })
	r.d.Clone().Submit(ctx, r.coreS, r.core) // a clone is not traced
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	r.d.Submit(ctx, r.cpuS, backend.Launch{Class: backend.AICPU, Kernel: 1, Args: r.args})
	r.d.CopyAsync(ctx, backend.Span{Mem: r.args, Size: 1}, backend.Span{Mem: r.args, Offset: 1, Size: 1}, r.cpuS)
	r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
	r.d.RecordEvent(ctx, r.cpuE, r.cpuS)
	r.d.WaitEvent(ctx, r.cpuE, 10*time.Microsecond)
	r.d.SynchronizeStream(ctx, r.cpuS, time.Millisecond)
	r.d.QueryEvent(ctx, r.cpuE)
	r.d.RecordEvent(ctx, r.cpuE, r.cpuS)
	r.d.Reset(ctx)
	r.d.Trace(nil)
	r.d.Reset(ctx)
	require.Equal(t, strings.TrimSpace(`
0s call SubmitAICore s0
0s queued kernel core s0 m0
0s start kernel core s0 m0
0s return SubmitAICore s0 ok
0s call RecordEvent s0 e0
0s queued record s0 e0
0s return RecordEvent s0 e0 ok
0s call SubmitAICPU s1
0s queued kernel cpu s1 m0
0s start kernel cpu s1 m0
0s return SubmitAICPU s1 ok
0s call CopyAsync s1
0s queued copy s1 m0 m0
0s return CopyAsync s1 ok
0s call StreamWaitEvent s1 e0
0s queued wait s1 e0
0s return StreamWaitEvent s1 e0 ok
0s call RecordEvent s1 e1
0s queued record s1 e1
0s return RecordEvent s1 e1 ok
0s call WaitEvent e1
4µs flag kernel cpu s1 m0
9µs done kernel cpu s1 m0 code 507017 (ACL_ERROR_RT_AICPU_TIMEOUT)
9µs start copy s1 m0 m0
10µs return WaitEvent e1 timedout code 507047 (ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)
10µs call SynchronizeStream s1
11µs done copy s1 m0 m0
11µs start wait s1 e0
12µs notice s1 code 507017 (ACL_ERROR_RT_AICPU_TIMEOUT)
20µs done kernel core s0 m0
20µs start record s0 e0
20µs done record s0 e0
20µs done wait s1 e0
20µs start record s1 e1
20µs done record s1 e1
20µs return SynchronizeStream s1 failed code 507017 (ACL_ERROR_RT_AICPU_TIMEOUT)
20µs call QueryEvent e1
20µs return QueryEvent e1 ok complete
20µs call RecordEvent s1 e1
20µs queued record s1 e1
20µs start record s1 e1
20µs return RecordEvent s1 e1 ok
20µs call Reset
20µs done record s1 e1
20µs return Reset ok`), strings.Join(lines, "\n"))
}

// The hook sees what a reset removes, and what the host does wrong.
func TestTraceOfResetAndViolation(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{Borrowed: true})
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	var lines []string
	r.d.Trace(func(e sim.TraceEvent) { lines = append(lines, e.String()) })
	r.d.Reset(ctx)
	require.Equal(t, []string{
		"0s call Reset",
		"0s violation borrowed-reset",
		"0s dropped kernel core s0 m0 code 107022 (ACL_ERROR_RT_DEVICE_TASK_ABORT)",
		"0s dropped record s0 e0 code 107022 (ACL_ERROR_RT_DEVICE_TASK_ABORT)",
		"0s return Reset ok",
	}, lines)
}
