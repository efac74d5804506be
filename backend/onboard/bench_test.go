//go:build cgo && linux

package onboard_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

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

// realDevice is a device of the library that the environment names, if it does.
func realDevice(b *testing.B) *bench {
	b.Helper()
	if os.Getenv(onboard.LibraryVariable) == "" {
		return benchDevice(b)
	}
	d, err := onboard.Open(onboard.Config{})
	require.NoError(b, err)
	b.Cleanup(d.Detach)
	return newBench(b, d)
}

// What the interface costs: batches of calls through the backend beside batches
// of the bare call made in C, and the median of the differences, in nanoseconds
// a call. Neighbours on the machine disturb it little. The target is 150.
func BenchmarkOverhead(b *testing.B) {
	done, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"query": context.Background(), "query, cancellable": done} {
		b.Run(name, func(b *testing.B) {
			x := benchDevice(b)
			const batch = 1000
			var overhead, bare []float64
			for b.Loop() {
				start := time.Now()
				for range batch {
					x.QueryEvent(ctx, x.coreE)
				}
				through := time.Since(start)
				inC := driver.BareQueries(batch)
				overhead = append(overhead, float64((through-inC).Nanoseconds())/batch)
				bare = append(bare, float64(inC.Nanoseconds())/batch)
			}
			slices.Sort(overhead)
			slices.Sort(bare)
			b.ReportMetric(overhead[len(overhead)/2], "median-overhead-ns/call")
			b.ReportMetric(bare[len(bare)/2], "median-bare-ns/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkQueryEvent(b *testing.B) {
	x := realDevice(b)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		x.QueryEvent(ctx, x.coreE)
	}
}

func BenchmarkWaitEvent(b *testing.B) {
	x := realDevice(b)
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
