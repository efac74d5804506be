package backendtest

import (
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// Calls that fail, with and without effect.
func faultTests() []test {
	after, before := []Capability{CanFailAfter}, []Capability{CanFailBefore}
	return []test{
		{"fails after taking effect/record", after, func(b *bench) {
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.FailAfter(CallRecordEvent, backend.DriverInternalError)
			b.ends(backend.Failed, backend.DriverInternalError, b.Backend.RecordEvent(b.ctx, b.coreE, b.coreS))
			b.ok(b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout))
			require.Equal(b, backend.Complete, b.eventStatus(b.coreE), "the record was queued after all")
		}},
		{"fails after taking effect/submission", after, func(b *bench) {
			b.submit(b.coreS, backend.AICore, b.Kernels.Core)
			b.FailAfter(CallSubmitAICPU, backend.InternalError)
			r := b.Backend.Submit(b.ctx, b.cpuS, b.launch(backend.AICPU, b.Kernels.SlowCPU))
			b.ends(backend.Failed, backend.InternalError, r)
			require.Equal(b, backend.NotReady, b.streamStatus(b.cpuS), "the kernel runs after all")
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
		}},
		{"fails after taking effect/stream wait", after, func(b *bench) {
			third := b.stream()
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.FailAfter(CallStreamWaitEvent, backend.InternalError)
			b.ends(backend.Failed, backend.InternalError, b.Backend.StreamWaitEvent(b.ctx, third, b.cpuE))
			require.Equal(b, backend.NotReady, b.streamStatus(third), "the wait was queued after all")
			b.ok(b.Backend.SynchronizeStream(b.ctx, third, b.Timeout))
			b.finishRun()
		}},
		{"fails after taking effect/copy", after, func(b *bench) {
			dst, src := b.alloc(backend.DeviceMemory, ArgsSize), b.alloc(backend.PinnedMemory, ArgsSize)
			b.fillWith(dst, 0)
			b.fillWith(src, 4)
			b.FailAfter(CallCopyAsync, backend.InternalError)
			b.ends(backend.Failed, backend.InternalError, b.Backend.CopyAsync(b.ctx, whole(dst), whole(src), b.coreS))
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.coreS, b.Timeout))
			require.True(b, b.holds(dst, 4), "the copy was made after all")
		}},
		{"fails without effect/record", before, func(b *bench) {
			b.FailBefore(CallRecordEvent, backend.DriverInternalError)
			r := b.Backend.RecordEvent(b.ctx, b.coreE, b.coreS)
			b.ends(backend.Failed, backend.DriverInternalError, r)
			require.False(b, r.Accepted)
			b.Pause()
			require.Equal(b, backend.NotReady, b.eventStatus(b.coreE))
			b.record(b.coreE, b.coreS)
			b.ok(b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout))
		}},
		{"fails without effect/submission", before, func(b *bench) {
			b.FailBefore(CallSubmitAICore, backend.InternalError)
			r := b.Backend.Submit(b.ctx, b.coreS, b.launch(backend.AICore, b.Kernels.SlowCore))
			b.ends(backend.Failed, backend.InternalError, r)
			require.False(b, r.Accepted)
			require.Equal(b, backend.Complete, b.streamStatus(b.coreS))
		}},
		{"fails without effect/create", before, func(b *bench) {
			b.FailBefore(CallCreateEvent, backend.InternalError)
			e, r := b.Backend.CreateEvent(b.ctx)
			b.ends(backend.Failed, backend.InternalError, r)
			require.Zero(b, e)
		}},
		{"a failing query is a failure, not a status", before, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.finishRun()
			b.FailBefore(CallQueryEvent, backend.DriverInternalError)
			st, r := b.Backend.QueryEvent(b.ctx, b.cpuE)
			b.ends(backend.Failed, backend.DriverInternalError, r)
			require.Equal(b, backend.NotReady, st, "a failed query claims nothing")
			b.FailBefore(CallQueryStream, backend.DriverInternalError)
			st, r = b.Backend.QueryStream(b.ctx, b.cpuS)
			b.ends(backend.Failed, backend.DriverInternalError, r)
			require.Equal(b, backend.NotReady, st)
		}},
		{"a refused call was not attempted", []Capability{CanRefuse}, func(b *bench) {
			b.Refuse(CallSubmitAICore)
			r := b.Backend.Submit(b.ctx, b.coreS, b.launch(backend.AICore, b.Kernels.SlowCore))
			require.Equal(b, backend.Refused, r.Outcome)
			require.False(b, r.Accepted)
			require.Equal(b, backend.Complete, b.streamStatus(b.coreS))
		}},
		{"the last error stays until another call fails", nil, func(b *bench) {
			b.ends(backend.Failed, backend.InvalidParam, b.Backend.SynchronizeStream(b.ctx, b.coreS, 0))
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			r := b.Backend.RecordEvent(b.ctx, b.event(), b.coreS)
			require.True(b, r.Ok())
			require.Equal(b, backend.InvalidParam, r.LastError, "a success does not clear it")
			b.ends(backend.TimedOut, backend.EventSyncTimeout, b.Backend.WaitEvent(b.ctx, b.cpuE, b.Short))
			b.finishRun()
		}},
	}
}
