package backendtest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// Memory, copies, and frees that drain nothing.
func memoryTests() []test {
	return []test{
		{"memory/bytes make the round trip", nil, func(b *bench) {
			in, dev, out := b.alloc(backend.PinnedMemory, 32), b.alloc(backend.DeviceMemory, 32), b.alloc(backend.PinnedMemory, 32)
			want := []byte("0123456789abcdefghijklmnopqrstuv")
			b.ok(b.Backend.Write(b.ctx, in, 0, want))
			b.ok(b.Backend.Copy(b.ctx, backend.Span{Mem: dev, Size: 32}, backend.Span{Mem: in, Size: 32}))
			r := b.Backend.CopyAsync(b.ctx, backend.Span{Mem: out, Offset: 4, Size: 8}, backend.Span{Mem: dev, Offset: 10, Size: 8}, b.coreS)
			b.ok(r)
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.coreS, b.Timeout))
			got := make([]byte, 8)
			b.ok(b.Backend.Read(b.ctx, got, out, 4))
			require.Equal(b, string(want[10:18]), string(got))
		}},
		{"memory/an asynchronous copy reads its source when it executes", nil, func(b *bench) {
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			dst, src := b.alloc(backend.DeviceMemory, ArgsSize), b.alloc(backend.PinnedMemory, ArgsSize)
			b.fillWith(src, 1)
			b.ok(b.Backend.CopyAsync(b.ctx, whole(dst), whole(src), b.cpuS))
			b.fillWith(src, 2) // too early: the copy is still queued
			b.ok(b.Backend.SynchronizeStream(b.ctx, b.cpuS, b.Timeout))
			require.True(b, b.holds(dst, 2), "the device reads pinned memory late")
		}},
		{"memory/ranges outside of an allocation are rejected", nil, func(b *bench) {
			bad := func(r backend.Result) {
				b.Helper()
				b.ends(backend.Failed, backend.InvalidParam, r)
				require.False(b, r.Accepted)
			}
			for _, s := range []backend.Span{
				{Mem: b.args, Offset: 1, Size: ArgsSize},
				{Mem: b.args, Offset: math.MaxUint64, Size: 2},
				{Mem: b.args, Offset: 2, Size: math.MaxUint64},
				{Mem: b.args},
			} {
				other := backend.Span{Mem: b.pinned, Size: s.Size}
				bad(b.Backend.Copy(b.ctx, s, other))
				bad(b.Backend.Copy(b.ctx, other, s))
				bad(b.Backend.CopyAsync(b.ctx, s, other, b.coreS))
				bad(b.Backend.CopyAsync(b.ctx, other, s, b.coreS))
			}
			bad(b.Backend.Copy(b.ctx, backend.Span{Mem: b.args, Size: 4}, backend.Span{Mem: b.pinned, Size: 8}))
			bad(b.Backend.Write(b.ctx, b.pinned, ArgsSize, []byte{1}))
			bad(b.Backend.Write(b.ctx, b.pinned, math.MaxUint64, []byte{1, 2}))
			bad(b.Backend.Read(b.ctx, make([]byte, 2), b.pinned, ArgsSize-1))
			require.Equal(b, backend.Complete, b.streamStatus(b.coreS))
		}},
		{"memory/the host reaches pinned memory only", nil, func(b *bench) {
			b.ends(backend.Failed, backend.InvalidParam, b.Backend.Write(b.ctx, b.args, 0, []byte{1}))
			b.ends(backend.Failed, backend.InvalidParam, b.Backend.Read(b.ctx, make([]byte, 1), b.args, 0))
		}},
		{"memory/an empty allocation is rejected", nil, func(b *bench) {
			m, r := b.Backend.Alloc(b.ctx, backend.DeviceMemory, 0)
			b.ends(backend.Failed, backend.InvalidParam, r)
			require.Zero(b, m)
		}},
		{"memory/runs out", []Capability{CanExhaust}, func(b *bench) {
			for _, p := range []backend.Place{backend.DeviceMemory, backend.PinnedMemory} {
				m, r := b.Backend.Alloc(b.ctx, p, b.TooMuch)
				b.ends(backend.Failed, backend.OutOfMemory, r)
				require.Zero(b, m)
			}
			b.alloc(backend.DeviceMemory, ArgsSize)
		}},
		{"memory/free drains nothing", nil, func(b *bench) {
			other := b.alloc(backend.DeviceMemory, ArgsSize)
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.ok(b.Backend.Free(b.ctx, other))
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE), "the free did not wait")
			b.finishRun()
		}},
		{"memory/destroying an event or stream drains nothing", nil, func(b *bench) {
			e, s := b.event(), b.stream()
			b.launchRun(b.Kernels.Core, b.Kernels.SlowCPU)
			b.ok(b.Backend.DestroyEvent(b.ctx, e))
			b.ok(b.Backend.DestroyStream(b.ctx, s))
			require.Equal(b, backend.NotReady, b.eventStatus(b.cpuE))
			b.finishRun()
		}},
	}
}
