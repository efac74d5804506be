package backendtest

import (
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// Handles: zero, destroyed, made up.
func handleTests() []test {
	return []test{
		{"handle/zero names nothing", nil, func(b *bench) { b.refusesAll(0, 0, 0) }},
		{"handle/a destroyed one is refused", nil, func(b *bench) {
			s, e, m := b.stream(), b.event(), b.alloc(backend.DeviceMemory, ArgsSize)
			b.ok(b.Backend.DestroyStream(b.ctx, s))
			b.ok(b.Backend.DestroyEvent(b.ctx, e))
			b.ok(b.Backend.Free(b.ctx, m))
			b.refusesAll(s, e, m)
		}},
		{"handle/a destroyed one is refused after its place is taken", nil, func(b *bench) {
			s, e, m := b.stream(), b.event(), b.alloc(backend.DeviceMemory, ArgsSize)
			b.ok(b.Backend.DestroyStream(b.ctx, s))
			b.ok(b.Backend.DestroyEvent(b.ctx, e))
			b.ok(b.Backend.Free(b.ctx, m))
			require.NotEqual(b, s, b.stream())
			require.NotEqual(b, e, b.event())
			require.NotEqual(b, m, b.alloc(backend.DeviceMemory, ArgsSize))
			b.refusesAll(s, e, m)
		}},
		{"handle/one that was never minted is refused", nil, func(b *bench) {
			b.refusesAll(1<<63-1, 1<<63-1, 1<<63-1)
		}},
		{"handle/no value is minted twice", nil, func(b *bench) {
			seen := map[uint64]bool{}
			once := func(h uint64) {
				require.False(b, seen[h], "%#x was minted twice", h)
				seen[h] = true
			}
			for range 50 {
				s, e, m := b.stream(), b.event(), b.alloc(backend.PinnedMemory, ArgsSize)
				b.ok(b.Backend.DestroyStream(b.ctx, s))
				b.ok(b.Backend.DestroyEvent(b.ctx, e))
				b.ok(b.Backend.Free(b.ctx, m))
				once(uint64(s)<<2 | 1) // handles of different kinds may be equal
				once(uint64(e)<<2 | 2)
				once(uint64(m)<<2 | 3)
			}
		}},
		{"handle/a kernel that does not exist is rejected", nil, func(b *bench) {
			for _, k := range []backend.Kernel{0, 1 << 40} {
				r := b.Backend.Submit(b.ctx, b.coreS, b.launch(backend.AICore, k))
				b.ends(backend.Failed, backend.InvalidParam, r)
				require.False(b, r.Accepted)
			}
			require.Equal(b, backend.Complete, b.streamStatus(b.coreS))
		}},
		{"handle/an AICore kernel needs a block", nil, func(b *bench) {
			l := b.launch(backend.AICore, b.Kernels.Core)
			l.Blocks = 0
			b.ends(backend.Failed, backend.InvalidParam, b.Backend.Submit(b.ctx, b.coreS, l))
		}},
	}
}

// refusesAll calls everything with handles that name nothing.
func (b *bench) refusesAll(s backend.Stream, e backend.Event, m backend.Memory) {
	b.Helper()
	x := b.Backend
	no := func(r backend.Result) {
		b.Helper()
		b.ends(backend.Refused, backend.InvalidHandle, r)
		require.False(b, r.Accepted)
	}
	no(x.DestroyStream(b.ctx, s))
	_, r := x.StreamID(b.ctx, s)
	no(r)
	st, r := x.QueryStream(b.ctx, s)
	no(r)
	require.Equal(b, backend.NotReady, st, "a refused query claims nothing")
	no(x.SynchronizeStream(b.ctx, s, b.Timeout))
	_, r = x.CaptureStatus(b.ctx, s)
	no(r)
	no(x.RecordEvent(b.ctx, b.coreE, s))
	no(x.RecordEvent(b.ctx, e, b.coreS))
	st, r = x.QueryEvent(b.ctx, e)
	no(r)
	require.Equal(b, backend.NotReady, st)
	no(x.WaitEvent(b.ctx, e, b.Timeout))
	no(x.StreamWaitEvent(b.ctx, s, b.coreE))
	no(x.StreamWaitEvent(b.ctx, b.coreS, e))
	no(x.DestroyEvent(b.ctx, e))
	no(x.Free(b.ctx, m))
	no(x.Write(b.ctx, m, 0, []byte{1}))
	no(x.Read(b.ctx, make([]byte, 1), m, 0))
	no(x.Copy(b.ctx, whole(m), whole(b.args)))
	no(x.Copy(b.ctx, whole(b.args), whole(m)))
	no(x.CopyAsync(b.ctx, whole(m), whole(b.pinned), b.coreS))
	no(x.CopyAsync(b.ctx, whole(b.args), whole(m), b.coreS))
	no(x.CopyAsync(b.ctx, whole(b.args), whole(b.pinned), s))
	no(x.Submit(b.ctx, s, b.launch(backend.AICore, b.Kernels.Core)))
	if m != 0 { // a launch without arguments is legal
		l := b.launch(backend.AICore, b.Kernels.Core)
		l.Args = m
		no(x.Submit(b.ctx, b.coreS, l))
	}
	require.Equal(b, backend.Complete, b.streamStatus(b.coreS), "nothing was queued")
	require.Equal(b, backend.NotReady, b.eventStatus(b.coreE), "nothing was recorded")
}
