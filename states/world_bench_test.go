package states

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// midway is a lane's world with a run that is launched and another prepared
// behind it: what an explorer copies, writes, reads back and names.
func midway(b *testing.B) *machine.World {
	dev, err := sim.New(sim.Config{Kernels: reporting(0)})
	require.NoError(b, err)
	l, err := NewLane(Config{Backend: dev, Slots: 2, Depth: 2})
	require.NoError(b, err)
	require.NoError(b, l.Open(ctx))
	first, err := l.Prepare(ctx, Work{Core: 1, CPU: 2})
	require.NoError(b, err)
	_, err = first.Launch(ctx)
	require.NoError(b, err)
	_, err = l.Prepare(ctx, Work{Core: 1, CPU: 2})
	require.NoError(b, err)
	var w *machine.World
	l.d.View(func(x *machine.World) { w = x.Clone() })
	return w
}

func BenchmarkWorld(b *testing.B) {
	w := midway(b)
	other := w.Clone()
	buf := w.AppendState(nil)
	b.Run("Clone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Clone()
		}
	})
	b.Run("CopyFrom", func(b *testing.B) {
		for b.Loop() {
			other.CopyFrom(w)
		}
	})
	b.Run("AppendState", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = w.AppendState(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "bytes")
	})
	b.Run("SetState", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := other.SetState(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("AppendBinary", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf = w.AppendBinary(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "bytes")
	})
	b.Run("Fingerprint", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Fingerprint(nil)
		}
	})
}
