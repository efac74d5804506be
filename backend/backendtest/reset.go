package backendtest

import (
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// Reset: only a confirmed one is a proof.
func resetTests() []test {
	return []test{
		{"reset/confirmed ends all earlier work", []Capability{CanReset}, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			mark := b.queueMark(b.cpuS, 6)
			confirmed, r := b.Backend.Reset(b.ctx)
			b.ok(r)
			require.True(b, confirmed)
			for range 1000 {
				b.Pause()
			}
			require.True(b, b.holds(mark, 0), "nothing earlier touches memory any more")
			_, r = b.Backend.QueryEvent(b.ctx, b.cpuE)
			b.ends(backend.Refused, backend.InvalidHandle, r)
			b.ok(b.Backend.Free(b.ctx, mark))
		}},
		{"reset/confirmed clears a circle and a sticky error", []Capability{CanReset, CanFatal}, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.FatalCPU)
			b.finishRun()
			b.ends(backend.Failed, backend.AICPUException, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
			b.coreS, b.cpuS = b.stream(), b.stream()
			b.coreE, b.cpuE = b.event(), b.event()
			fork := b.event()
			require.True(b, b.Backend.Submit(b.ctx, b.cpuS, b.launch(backend.AICPU, b.Kernels.CPU)).Ok())
			require.True(b, b.Backend.RecordEvent(b.ctx, fork, b.cpuS).Ok())
			require.True(b, b.Backend.StreamWaitEvent(b.ctx, b.coreS, fork).Ok())
			require.True(b, b.Backend.Submit(b.ctx, b.coreS, b.launch(backend.AICore, b.Kernels.Core)).Ok())
			confirmed, r := b.Backend.Reset(b.ctx)
			require.True(b, r.Ok())
			require.True(b, confirmed)
			b.coreS, b.cpuS = b.stream(), b.stream()
			b.coreE, b.cpuE = b.event(), b.event()
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			require.True(b, b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout).Ok())
			require.True(b, b.Backend.WaitEvent(b.ctx, b.cpuE, b.Timeout).Ok())
			require.True(b, b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout).Ok())
		}},
		{"reset/unconfirmed is no proof", []Capability{CanReset, CanUnconfirm}, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			mark := b.queueMark(b.cpuS, 6)
			b.Unconfirmed()
			confirmed, _ := b.Backend.Reset(b.ctx)
			require.False(b, confirmed)
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE))
			b.finishRun()
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
			require.True(b, b.holds(mark, 6), "the device wrote after the reset")
		}},
		{"reset/skips no notice that is delivered later", []Capability{CanReset, CanFatal, CanNotice, CanLateNotice}, func(b *bench) {
			b.LateNotice()
			b.launchRun(b.Kernels.Core, b.Kernels.FatalCPU)
			b.finishRun()
			confirmed, r := b.Backend.Reset(b.ctx)
			require.True(b, r.Ok())
			require.True(b, confirmed)
			b.notice()
		}},
	}
}
