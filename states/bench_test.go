package states

import (
	"testing"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

func benchLane(b *testing.B, w Work, kernels []sim.KernelSpec, caller bool) {
	dev, err := sim.New(sim.Config{Kernels: kernels})
	if err != nil {
		b.Fatal(err)
	}
	l, err := NewLane(Config{Backend: dev})
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Open(ctx); err != nil {
		b.Fatal(err)
	}
	if caller {
		w.Caller, _ = dev.CreateStream(ctx)
		w.Async = true
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := l.Prepare(ctx, w)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Launch(ctx); err != nil {
			b.Fatal(err)
		}
		if err := r.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		if err := r.Finalize(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunPlain(b *testing.B) {
	benchLane(b, Work{Core: 1, CPU: 2}, []sim.KernelSpec{
		{Class: backend.AICore, Duration: 40 * time.Microsecond},
		{Class: backend.AICPU, Duration: 50 * time.Microsecond},
	}, false)
}

func BenchmarkRunCertified(b *testing.B) { benchLane(b, Work{Core: 1, CPU: 2}, reporting(0), false) }
func BenchmarkRunCaller(b *testing.B)    { benchLane(b, Work{Core: 1, CPU: 2}, reporting(0), true) }
