package backendtest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// The caller's side: patience, contexts, capture, notices.
func hostTests() []test {
	return []test{
		{"patience/a caller that gave up enters nothing", nil, func(b *bench) {
			gone, cancel := context.WithCancel(b.ctx)
			cancel()
			r := b.Backend.RecordEvent(gone, b.coreE, b.coreS)
			require.Equal(b, backend.Refused, r.Outcome)
			require.Equal(b, backend.Success, r.Code, "no call was made, so none returned a code")
			require.False(b, r.Accepted)
			b.Pause()
			require.Equal(b, backend.NotReady, b.eventStatus(b.coreE))
			s, r := b.Backend.CreateStream(gone)
			require.Equal(b, backend.Refused, r.Outcome)
			require.Zero(b, s)
		}},
		{"context/is current and stays the same", nil, func(b *bench) {
			x, r := b.Backend.CurrentContext(b.ctx)
			b.ok(r)
			require.NotZero(b, x)
			y, r := b.Backend.CurrentContext(b.ctx)
			b.ok(r)
			require.Equal(b, x, y)
			require.Equal(b, b.Backend.Device(), b.Backend.Device())
		}},
		{"context/none current is an answer, and refuses the rest", []Capability{CanNoContext}, func(b *bench) {
			x, r := b.Backend.CurrentContext(b.ctx)
			b.ok(r)
			restore := b.NoContext()
			none, r := b.Backend.CurrentContext(b.ctx)
			b.ok(r)
			require.Zero(b, none)
			b.entersNothing(backend.ContextNull)
			restore()
			y, r := b.Backend.CurrentContext(b.ctx)
			require.True(b, r.Ok())
			require.Equal(b, x, y)
			b.afterwards()
		}},
		{"context/a foreign one enters nothing", []Capability{CanForeign}, func(b *bench) {
			x, r := b.Backend.CurrentContext(b.ctx)
			b.ok(r)
			restore := b.ForeignContext()
			other, r := b.Backend.CurrentContext(b.ctx)
			b.ok(r)
			require.NotEqual(b, x, other)
			require.NotZero(b, other)
			b.entersNothing(backend.StreamContext)
			restore()
			b.afterwards()
		}},
		{"capture/status is told", []Capability{CanCapture}, func(b *bench) {
			for _, want := range []backend.Capture{backend.CaptureNone, backend.CaptureActive, backend.CaptureInvalid, backend.CaptureNone} {
				b.Capture(b.coreS, want)
				got, r := b.Backend.CaptureStatus(b.ctx, b.coreS)
				b.ok(r)
				require.Equal(b, want, got)
				other, r := b.Backend.CaptureStatus(b.ctx, b.cpuS)
				b.ok(r)
				require.Equal(b, backend.CaptureNone, other)
			}
		}},
		{"notice/names device, stream and code, and no run", []Capability{CanFatal, CanNotice}, func(b *bench) {
			id, r := b.Backend.StreamID(b.ctx, b.cpuS)
			b.ok(r)
			other, r := b.Backend.StreamID(b.ctx, b.coreS)
			b.ok(r)
			require.NotEqual(b, id, other)
			b.launchRun(b.Kernels.Core, b.Kernels.FatalCPU)
			n := b.notice()
			require.Equal(b, b.Backend.Device(), n.Device)
			require.Equal(b, id, n.Stream)
			require.Equal(b, backend.AICPUException, n.Code)
			b.finishRun()
			require.Equal(b, backend.Complete, b.streamStatus(b.cpuS), "a notice materialises nothing")
		}},
		{"notice/a clean run posts none", []Capability{CanNotice}, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.CPU)
			b.finishRun()
			for range 100 {
				b.Pause()
			}
			var dst [1]backend.Notice
			n, dropped := b.Backend.Notices(dst[:])
			require.Zero(b, n)
			require.Zero(b, dropped)
		}},
		{"notice/may come late", []Capability{CanFatal, CanNotice, CanLateNotice}, func(b *bench) {
			b.LateNotice()
			b.launchRun(b.Kernels.Core, b.Kernels.FatalCPU)
			b.finishRun()
			var dst [1]backend.Notice
			n, _ := b.Backend.Notices(dst[:])
			require.Zero(b, n, "the boundaries completed first; silence is no health")
			b.notice()
		}},
		{"notice/a full ring drops and counts", []Capability{CanFatal, CanNotice, CanOverflow}, func(b *bench) {
			const extra = 3
			for range b.NoticeRing + extra {
				b.launchRun(b.Kernels.Core, b.Kernels.FatalCPU)
				b.finishRun()
				for range 100 {
					b.Pause()
				}
			}
			dst := make([]backend.Notice, b.NoticeRing+extra)
			n, dropped := b.Backend.Notices(dst[:1])
			require.Equal(b, 1, n)
			require.Equal(b, uint64(extra), dropped)
			n, dropped = b.Backend.Notices(dst)
			require.Equal(b, b.NoticeRing-1, n)
			require.Zero(b, dropped, "drops are told once")
		}},
	}
}

// notice waits for the next notice.
func (b *bench) notice() backend.Notice {
	b.Helper()
	var dst [1]backend.Notice
	for range 1_000_000 {
		if n, _ := b.Backend.Notices(dst[:]); n == 1 {
			return dst[0]
		}
		b.Pause()
	}
	require.FailNow(b, "the notice never comes")
	return backend.Notice{}
}

// entersNothing makes calls that must all end with the code and have no effect:
// the device fails them, or they are refused before it is entered.
func (b *bench) entersNothing(c backend.Code) {
	b.Helper()
	x := b.Backend
	no := func(r backend.Result) {
		b.Helper()
		if r.Outcome != backend.Refused {
			b.ends(backend.Failed, c, r)
		}
		require.Equal(b, c, r.Code)
		require.False(b, r.Accepted)
	}
	s, r := x.CreateStream(b.ctx)
	no(r)
	require.Zero(b, s)
	e, r := x.CreateEvent(b.ctx)
	no(r)
	require.Zero(b, e)
	m, r := x.Alloc(b.ctx, backend.DeviceMemory, ArgsSize)
	no(r)
	require.Zero(b, m)
	no(x.Free(b.ctx, b.args))
	no(x.Copy(b.ctx, whole(b.args), whole(b.pinned)))
	no(x.CopyAsync(b.ctx, whole(b.args), whole(b.pinned), b.coreS))
	no(x.Submit(b.ctx, b.coreS, b.launch(backend.AICore, b.Kernels.SlowCore)))
	no(x.RecordEvent(b.ctx, b.coreE, b.coreS))
	no(x.StreamWaitEvent(b.ctx, b.coreS, b.coreE))
	no(x.WaitEvent(b.ctx, b.coreE, b.Timeout))
	no(x.SynchronizeStream(b.ctx, b.coreS, b.Timeout))
	_, r = x.QueryStream(b.ctx, b.coreS)
	no(r)
	_, r = x.QueryEvent(b.ctx, b.coreE)
	no(r)
	no(x.DestroyEvent(b.ctx, b.coreE))
	no(x.DestroyStream(b.ctx, b.coreS))
}

// afterwards checks that everything is still there, with the same handles.
func (b *bench) afterwards() {
	b.Helper()
	st, r := b.Backend.QueryStream(b.ctx, b.coreS)
	require.True(b, r.Ok())
	require.Equal(b, backend.Complete, st, "nothing was queued meanwhile")
	b.launchRun(b.Kernels.Core, b.Kernels.CPU)
	require.True(b, b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout).Ok())
	require.True(b, b.Backend.WaitEvent(b.ctx, b.cpuE, b.Timeout).Ok())
}
