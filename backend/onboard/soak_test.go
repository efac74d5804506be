//go:build cgo && linux

package onboard_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// Goroutines that move between threads carry out runs on one device, each on
// streams of its own, while the driver's threads race as they would: bytes
// arrive, faults stay on their stream, nothing is used after its end, and
// nothing is left.
func TestManyGoroutinesOnOneDevice(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 1})
	driver.Eager(true)
	k := load(t, d, core("core"))
	good, bad := load(t, d, cpu("cpu")), load(t, d, cpu("fatal_cpu"))
	const goroutines, runs = 8, 30
	var faults [goroutines]int
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			for range runs {
				fatal := rng.IntN(4) == 0
				if fatal {
					faults[i]++
				}
				if why := oneRun(d, k, map[bool]backend.Kernel{true: bad, false: good}[fatal], fatal, byte(rng.IntN(256))); why != "" {
					t.Errorf("goroutine %d: %s", i, why)
					return
				}
			}
		})
	}
	all.Wait()
	driver.Eager(false)
	driver.Advance(time.Second) // notices that are still on their way
	notices, dropped := take(d)
	want := 0
	for _, n := range faults {
		want += n
	}
	require.Equal(t, want, len(notices)+int(dropped), "one notice for each fault")
	require.NoError(t, d.Close())
	require.Equal(t, standin.Live{}, driver.Live())
}

// oneRun carries out a run and says what went wrong.
func oneRun(d *onboard.Device, core, cpu backend.Kernel, fatal bool, v byte) string {
	ctx := context.Background()
	const patience = time.Hour // of virtual time
	var (
		failed string
		r      backend.Result
		got    [64]byte
		p, out backend.Memory
	)
	must := func(what string, r backend.Result) {
		if !r.Ok() && failed == "" {
			failed = what + ": " + r.Outcome.String() + " " + r.Code.String()
		}
	}
	b := &bench{Device: d}
	b.coreS, r = d.CreateStream(ctx)
	must("stream", r)
	b.cpuS, r = d.CreateStream(ctx)
	must("stream", r)
	b.coreE, r = d.CreateEvent(ctx)
	must("event", r)
	b.cpuE, r = d.CreateEvent(ctx)
	must("event", r)
	b.args, r = d.Alloc(ctx, backend.DeviceMemory, 64)
	must("memory", r)
	p, r = d.Alloc(ctx, backend.PinnedMemory, 64)
	must("memory", r)
	out, r = d.Alloc(ctx, backend.PinnedMemory, 64)
	must("memory", r)
	for i := range got {
		got[i] = v
	}
	whole := func(m backend.Memory) backend.Span { return backend.Span{Mem: m, Size: 64} }
	must("write", d.Write(ctx, p, 0, got[:]))
	must("copy", d.CopyAsync(ctx, whole(b.args), whole(p), b.cpuS))
	must("submit", d.Submit(ctx, b.coreS, backend.Launch{Class: backend.AICore, Kernel: core, Args: b.args, Blocks: 1}))
	must("record", d.RecordEvent(ctx, b.coreE, b.coreS))
	must("submit", d.Submit(ctx, b.cpuS, backend.Launch{Class: backend.AICPU, Kernel: cpu, Args: b.args}))
	must("record", d.RecordEvent(ctx, b.cpuE, b.cpuS))
	must("order", d.StreamWaitEvent(ctx, b.coreS, b.cpuE))
	must("copy back", d.CopyAsync(ctx, whole(out), whole(b.args), b.coreS))
	must("wait", d.WaitEvent(ctx, b.coreE, patience))
	must("wait", d.WaitEvent(ctx, b.cpuE, patience))
	must("synchronize core", d.SynchronizeStream(ctx, b.coreS, patience))
	r = d.SynchronizeStream(ctx, b.cpuS, patience)
	if want := map[bool]backend.Code{true: backend.AICPUException}[fatal]; failed == "" && r.Code != want {
		failed = "verdict: " + r.Code.String()
	}
	must("read", d.Read(ctx, got[:], out, 0))
	for _, x := range got {
		if x != v && failed == "" {
			failed = "other bytes came back"
		}
	}
	for _, m := range []backend.Memory{b.args, p, out} {
		must("free", d.Free(ctx, m))
	}
	for _, e := range []backend.Event{b.coreE, b.cpuE} {
		must("destroy", d.DestroyEvent(ctx, e))
	}
	for _, s := range []backend.Stream{b.coreS, b.cpuS} {
		must("destroy", d.DestroyStream(ctx, s))
	}
	return failed
}
