package backendtest

import (
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// Events over time, and what a timeout does not prove.
func timeTests() []test {
	return []test{
		{"event/not ready is a status", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			st, r := b.Backend.QueryEvent(b.ctx, b.cpuE)
			require.Equal(b, backend.Result{}, r)
			require.Equal(b, backend.NotReady, st)
			st, r = b.Backend.QueryStream(b.ctx, b.cpuS)
			require.Equal(b, backend.Result{}, r)
			require.Equal(b, backend.NotReady, st)
			b.finishRun()
		}},
		{"event/is not ready before any record", nil, func(b *bench) {
			require.Equal(b, backend.NotReady, b.eventStatus(b.coreE))
		}},
		{"event/re-records without a reset", nil, func(b *bench) {
			for range 3 {
				b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
				require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE), "the latest record counts")
				b.finishRun()
				require.Equal(b, backend.Complete, b.eventStatus(b.cpuE))
			}
		}},
		{"event/re-records on another stream", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.finishRun()
			b.submit(b.coreS, backend.AICore, b.Kernels.SlowCore)
			b.record(b.cpuE, b.coreS)
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE))
			b.ok(b.Backend.WaitEvent(b.ctx, b.cpuE, b.Timeout))
		}},
		{"event/the latest record counts while an earlier one is pending", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			e := b.event()
			b.record(e, b.coreS)
			b.record(e, b.cpuS)
			b.ok(b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout))
			b.Pause()
			require.Equal(b, backend.NotReady, b.eventStatus(e), "only the earlier record has executed")
			b.ok(b.Backend.WaitEvent(b.ctx, e, b.Timeout))
			require.Equal(b, backend.Complete, b.eventStatus(b.cpuE))
		}},
		{"event/waiting twice is one answer", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.finishRun()
			b.finishRun()
		}},
		{"timeout/zero or negative is rejected", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.finishRun()
			for _, d := range []time.Duration{0, -1, -time.Second, math.MinInt64} {
				b.ends(backend.Failed, backend.InvalidParam, b.Backend.WaitEvent(b.ctx, b.cpuE, d))
				b.ends(backend.Failed, backend.InvalidParam, b.Backend.SynchronizeStream(b.ctx, b.cpuS, d))
			}
		}},
		{"timeout/may be longer than any clock", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.ok(b.Backend.WaitEvent(b.ctx, b.cpuE, math.MaxInt64))
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.coreS, math.MaxInt64))
		}},
		{"timeout/proves nothing: the work goes on and writes", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			mark := b.queueMark(b.cpuS, 3)
			b.ends(backend.TimedOut, backend.EventSyncTimeout, b.Backend.WaitEvent(b.ctx, b.cpuE, b.Short))
			require.True(b, b.holds(mark, 0))
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE))
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
			require.True(b, b.holds(mark, 3), "the device wrote long after the host stopped waiting")
			require.Equal(b, backend.Complete, b.eventStatus(b.cpuE))
		}},
		{"timeout/of a synchronize has a code of its own and changes nothing", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.ends(backend.TimedOut, backend.StreamSyncTimeout, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Short))
			st, r := b.Backend.QueryStream(b.ctx, b.cpuS)
			require.True(b, r.Ok())
			require.Equal(b, backend.NotReady, st)
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
		}},
		{"timeout/of a synchronize materialises no fault", []Capability{CanFatal}, func(b *bench) {
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.submit(b.cpuS, backend.AICPU, b.Kernels.FatalCPU)
			b.record(b.cpuE, b.cpuS)
			b.ok(b.Backend.WaitEvent(b.ctx, b.cpuE, b.Timeout))
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.submit(b.cpuS, backend.AICPU, b.Kernels.SlowCPU)
			b.ends(backend.TimedOut, backend.StreamSyncTimeout, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Short))
			_, r := b.Backend.QueryStream(b.ctx, b.cpuS)
			require.True(b, r.Ok(), "the fault is still invisible")
			b.ends(backend.Failed, backend.AICPUException, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
		}},
	}
}
