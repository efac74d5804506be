package backendtest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// Order within a stream, between streams, and between the two kernels.
func orderTests() []test {
	return []test{
		{"order/a stream is first in, first out", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			dst := b.alloc(backend.DeviceMemory, ArgsSize)
			b.fillWith(dst, 0)
			for v := byte(1); v <= 3; v++ {
				src := b.alloc(backend.PinnedMemory, ArgsSize)
				b.fillWith(src, v)
				b.ok(b.Backend.CopyAsync(b.ctx, whole(dst), whole(src), b.cpuS))
			}
			last := b.event()
			b.record(last, b.cpuS)
			require.True(b, b.holds(dst, 0), "nothing overtakes the kernel in front")
			require.Equal(b, backend.NotReady, b.eventStatus(last))
			b.ok(b.Backend.WaitEvent(b.ctx, last, b.Timeout))
			require.True(b, b.holds(dst, 3), "the last copy queued is the last executed")
			require.Equal(b, backend.Complete, b.eventStatus(b.cpuE), "what is in front completes first")
		}},
		{"order/a boundary is not complete before its kernel returns", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.Pause()
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE))
			require.Equal(b, backend.NotReady, b.streamStatus(b.cpuS))
			b.finishRun()
			require.Equal(b, backend.Complete, b.eventStatus(b.cpuE))
			require.Equal(b, backend.Complete, b.streamStatus(b.cpuS))
		}},
		{"order/a drained stream is not a finished run once a successor is queued", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.submit(b.cpuS, backend.AICPU, b.Kernels.SlowCPU)
			b.finishRun()
			require.Equal(b, backend.NotReady, b.streamStatus(b.cpuS), "the stream answers for the successor too")
		}},
		{"order/a stream waits for another's record", nil, func(b *bench) {
			third := b.stream()
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.wait(third, b.cpuE)
			mark := b.queueMark(third, 9)
			b.Pause()
			require.True(b, b.holds(mark, 0))
			require.Equal(b, backend.NotReady, b.streamStatus(third))
			b.ok(b.Backend.SynchronizeStream(b.ctx, third, b.Timeout))
			require.Equal(b, backend.Complete, b.eventStatus(b.cpuE))
			require.True(b, b.holds(mark, 9))
		}},
		{"order/a wait for a completed record passes", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.finishRun()
			third := b.stream()
			b.wait(third, b.cpuE)
			b.ok(b.Backend.SynchronizeStream(b.ctx, third, b.Timeout))
		}},
		{"order/crossed waits put both kernels ahead of both successors", nil, func(b *bench) {
			b.launchRun(b.Kernels.SlowCore, b.Kernels.CPU)
			next := [2]backend.Event{b.event(), b.event()}
			b.wait(b.coreS, b.cpuE)
			b.wait(b.cpuS, b.coreE)
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.record(next[0], b.coreS)
			b.submit(b.cpuS, backend.AICPU, b.Kernels.CPU)
			b.record(next[1], b.cpuS)
			b.ok(b.Backend.WaitEvent(b.ctx, next[1], b.Timeout))
			require.Equal(b, backend.Complete, b.eventStatus(b.coreE))
			require.Equal(b, backend.Complete, b.eventStatus(b.cpuE))
			b.ok(b.Backend.WaitEvent(b.ctx, next[0], b.Timeout))
		}},
		{"order/either kernel may exit first: AICore", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.ok(b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout))
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE), "one boundary completes no run")
			b.finishRun()
		}},
		{"order/either kernel may exit first: AICPU", nil, func(b *bench) {
			b.launchRun(b.Kernels.SlowCore, b.Kernels.CPU)
			b.ok(b.Backend.WaitEvent(b.ctx, b.cpuE, b.Timeout))
			require.Equal(b, backend.NotReady, b.eventStatus(b.coreE), "one boundary completes no run")
			b.finishRun()
		}},
		{"order/a flag is published before the kernel returns", []Capability{CanFlag}, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.FlagCPU)
			for n := 0; b.bytes(b.args)[ArgsSize-1] != 1; n++ {
				require.Less(b, n, 1_000_000, "the flag is never published")
				b.Pause()
			}
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE), "the flag completes no run")
			b.finishRun()
		}},
		{"handshake/the AICPU kernel spins for the AICore kernel", nil, func(b *bench) {
			b.submit(b.cpuS, backend.AICPU, b.Kernels.CPU)
			b.record(b.cpuE, b.cpuS)
			b.ends(backend.TimedOut, backend.EventSyncTimeout, b.Backend.WaitEvent(b.ctx, b.cpuE, b.Short))
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.record(b.coreE, b.coreS)
			b.finishRun()
		}},
		{"handshake/waiting for AICore before the AICPU submission is in vain", []Capability{CanSpin}, func(b *bench) {
			b.submit(b.coreS, backend.AICore, b.Kernels.SpinCore)
			b.record(b.coreE, b.coreS)
			b.ends(backend.TimedOut, backend.EventSyncTimeout, b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout))
			require.Equal(b, backend.NotReady, b.eventStatus(b.coreE))
			b.submit(b.cpuS, backend.AICPU, b.Kernels.CPU)
			b.record(b.cpuE, b.cpuS)
			b.finishRun()
		}},
		{"handshake/and is explained", []Capability{CanSpin, CanSeeDeadlocks}, func(b *bench) {
			require.Empty(b, b.Deadlock())
			b.submit(b.coreS, backend.AICore, b.Kernels.SpinCore)
			b.record(b.coreE, b.coreS)
			require.Contains(b, b.Deadlock(), "AICPU kernel")
			b.submit(b.cpuS, backend.AICPU, b.Kernels.CPU)
			require.Empty(b, b.Deadlock())
		}},
		{"handshake/a fork behind the AICPU kernel is a circle", nil, func(b *bench) { b.forkBehind() }},
		{"handshake/and is explained as one", []Capability{CanSeeDeadlocks}, func(b *bench) {
			b.forkBehind()
			why := b.Deadlock()
			require.Contains(b, why, "circle")
			require.Equal(b, 2, len(strings.Split(why, "\n")), "both streams are named: %s", why)
		}},
		{"handshake/a fork ahead of the AICPU kernel is none", nil, func(b *bench) {
			fork := b.event()
			b.record(fork, b.cpuS)
			b.wait(b.coreS, fork)
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.finishRun()
		}},
		{"wait before record/passes at once or holds", []Capability{CanUnrecorded}, func(b *bench) {
			e := b.event()
			third := b.stream()
			b.wait(third, e)
			mark := b.queueMark(third, 5)
			if *b.UnrecordedPasses {
				b.ok(b.Backend.SynchronizeStream(b.ctx, third, b.Timeout))
				require.True(b, b.holds(mark, 5), "there was no edge")
				return
			}
			b.ends(backend.TimedOut, backend.StreamSyncTimeout, b.Backend.SynchronizeStream(b.ctx, third, b.Timeout))
			require.True(b, b.holds(mark, 0))
			b.record(e, b.coreS)
			b.ok(b.Backend.SynchronizeStream(b.ctx, third, b.Timeout))
			require.True(b, b.holds(mark, 5))
		}},
	}
}

// forkBehind queues the entry fork behind the AICPU kernel that spins for the
// AICore kernel that the fork holds back (F23).
func (b *bench) forkBehind() {
	b.Helper()
	fork := b.event()
	b.submit(b.cpuS, backend.AICPU, b.Kernels.CPU)
	b.record(fork, b.cpuS)
	b.wait(b.coreS, fork)
	b.submit(b.coreS, backend.AICore, b.Kernels.Core)
	b.ends(backend.TimedOut, backend.StreamSyncTimeout, b.Backend.SynchronizeStream(b.ctx, b.coreS, b.Timeout))
	require.Equal(b, backend.NotReady, b.eventStatus(fork))
	require.Equal(b, backend.NotReady, b.streamStatus(b.cpuS))
}
