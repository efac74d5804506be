//go:build cgo && linux

package onboard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// benchDevice is a device whose driver has no delays.
func benchDevice(b *testing.B) *bench {
	b.Helper()
	driver.Restart()
	driver.Configure(standin.Settings{UnrecordedPasses: true, MemoryLimit: 1 << 20, Devices: 8})
	d, err := onboard.Open(onboard.Config{Library: library})
	require.NoError(b, err)
	b.Cleanup(d.Detach)
	return newBench(b, d)
}

// A call through the backend against the bare call in C: the reported overhead
// is what the interface costs, in nanoseconds a call. The target is 150.
func BenchmarkQueryEvent(b *testing.B) {
	x := benchDevice(b)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		x.QueryEvent(ctx, x.coreE)
	}
	bare := driver.BareQueries(b.N)
	b.ReportMetric(float64(bare.Nanoseconds())/float64(b.N), "bare-ns/op")
	b.ReportMetric(float64((b.Elapsed()-bare).Nanoseconds())/float64(b.N), "overhead-ns/op")
}

// The same with a patience that can end, as a lane has it.
func BenchmarkQueryEventCancellable(b *testing.B) {
	x := benchDevice(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		x.QueryEvent(ctx, x.coreE)
	}
	bare := driver.BareQueries(b.N)
	b.ReportMetric(float64((b.Elapsed()-bare).Nanoseconds())/float64(b.N), "overhead-ns/op")
}

func BenchmarkWaitEvent(b *testing.B) {
	x := benchDevice(b)
	ctx := context.Background()
	x.RecordEvent(ctx, x.coreE, x.coreS)
	x.WaitEvent(ctx, x.coreE, timeout)
	b.ReportAllocs()
	for b.Loop() {
		x.WaitEvent(ctx, x.coreE, timeout)
	}
}

// A run from submission to verdict, with the driver's threads taking part.
func BenchmarkRun(b *testing.B) {
	x := benchDevice(b)
	ctx := context.Background()
	core, err := x.Load(core("core"))
	require.NoError(b, err)
	cpu, err := x.Load(cpu("cpu"))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		x.Submit(ctx, x.coreS, backend.Launch{Class: backend.AICore, Kernel: core, Args: x.args, Blocks: 1})
		x.RecordEvent(ctx, x.coreE, x.coreS)
		x.Submit(ctx, x.cpuS, backend.Launch{Class: backend.AICPU, Kernel: cpu, Args: x.args})
		x.RecordEvent(ctx, x.cpuE, x.cpuS)
		x.WaitEvent(ctx, x.coreE, timeout)
		if r := x.WaitEvent(ctx, x.cpuE, timeout); !r.Ok() {
			b.Fatal(r)
		}
	}
}
