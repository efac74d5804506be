package backendtest

import (
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// The measured table (F102): a run whose AICPU kernel returns a fatal status.
func tableTests() []test {
	need := []Capability{CanFatal}
	fatal := func(b *bench) { b.launchRun(b.Kernels.Core, b.Kernels.FatalCPU) }
	return []test{
		{"table/event waits return 0", need, func(b *bench) {
			fatal(b)
			require.Equal(b, backend.Result{}, b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout))
			require.Equal(b, backend.Result{}, b.Backend.WaitEvent(b.ctx, b.cpuE, b.Timeout))
		}},
		{"table/stream queries return 0", need, func(b *bench) {
			fatal(b)
			b.finishRun()
			require.Equal(b, backend.Complete, b.streamStatus(b.coreS))
			require.Equal(b, backend.Complete, b.streamStatus(b.cpuS))
		}},
		{"table/last error is 0 before a synchronize", need, func(b *bench) {
			fatal(b)
			b.finishRun()
			_, r := b.Backend.QueryStream(b.ctx, b.cpuS)
			require.Equal(b, backend.Result{}, r)
		}},
		{"table/synchronize with timeout 0 returns 107000", need, func(b *bench) {
			fatal(b)
			b.finishRun()
			b.ends(backend.Failed, backend.InvalidParam, b.Backend.SynchronizeStream(b.ctx, b.cpuS, 0))
			st, r := b.Backend.QueryStream(b.ctx, b.cpuS)
			require.True(b, r.Ok(), "a rejected synchronize materialises nothing")
			require.Equal(b, backend.Complete, st)
		}},
		{"table/synchronize returns 507018", need, func(b *bench) {
			fatal(b)
			b.finishRun()
			r := b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout)
			require.Equal(b, backend.Failed, r.Outcome)
			require.Equal(b, backend.AICPUException, r.Code)
		}},
		{"table/last error is 507018 after it", need, func(b *bench) {
			fatal(b)
			b.finishRun()
			r := b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout)
			require.Equal(b, backend.AICPUException, r.LastError)
		}},
		{"fault/is sticky once it is materialised", need, func(b *bench) {
			fatal(b)
			b.finishRun()
			require.Equal(b, backend.Complete, b.streamStatus(b.cpuS), "not materialised yet")
			b.ends(backend.Failed, backend.AICPUException, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
			for range 3 {
				_, r := b.Backend.QueryStream(b.ctx, b.cpuS)
				b.ends(backend.Failed, backend.AICPUException, r)
				b.ends(backend.Failed, backend.AICPUException, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
			}
		}},
		{"fault/stays on its own stream", need, func(b *bench) {
			fatal(b)
			b.finishRun()
			b.ends(backend.Failed, backend.AICPUException, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
			require.Equal(b, backend.Complete, b.streamStatus(b.coreS))
			r := b.Backend.SynchronizeStream(b.ctx, b.coreS, b.Timeout)
			require.Equal(b, backend.OK, r.Outcome)
		}},
		{"fault/of a successor is reported by the predecessor's synchronize", need, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.submit(b.cpuS, backend.AICPU, b.Kernels.FatalCPU)
			b.finishRun()
			b.ends(backend.Failed, backend.AICPUException, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
		}},
		{"fault/does not hinder the work behind it", need, func(b *bench) {
			fatal(b)
			mark := b.queueMark(b.cpuS, 7)
			e := b.event()
			b.record(e, b.cpuS)
			b.ok(b.Backend.WaitEvent(b.ctx, e, b.Timeout))
			require.True(b, b.holds(mark, 7))
		}},
	}
}
