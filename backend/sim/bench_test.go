package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// rig is the two streams, two events and two kernels of a run.
type rig struct {
	d           *sim.Device
	coreS, cpuS backend.Stream
	coreE, cpuE backend.Event
	core, cpu   backend.Launch
	coreK, cpuK backend.Kernel
	args        backend.Memory
}

func newRig(tb testing.TB, cfg sim.Config) *rig {
	tb.Helper()
	cfg.Kernels = append(cfg.Kernels,
		sim.KernelSpec{Name: "core", Class: backend.AICore, Duration: 20 * time.Microsecond, Paired: true},
		sim.KernelSpec{Name: "cpu", Class: backend.AICPU, Duration: 30 * time.Microsecond, Paired: true})
	d, err := sim.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{d: d}
	ctx := context.Background()
	must := func(res backend.Result) {
		tb.Helper()
		if !res.Ok() {
			tb.Fatalf("setting up: %+v", res)
		}
	}
	var res backend.Result
	r.coreS, res = d.CreateStream(ctx)
	must(res)
	r.cpuS, res = d.CreateStream(ctx)
	must(res)
	r.coreE, res = d.CreateEvent(ctx)
	must(res)
	r.cpuE, res = d.CreateEvent(ctx)
	must(res)
	r.args, res = d.Alloc(ctx, backend.DeviceMemory, 64)
	must(res)
	n := backend.Kernel(len(cfg.Kernels))
	r.coreK, r.cpuK = n-1, n
	r.core = backend.Launch{Class: backend.AICore, Kernel: r.coreK, Args: r.args, Blocks: 8}
	r.cpu = backend.Launch{Class: backend.AICPU, Kernel: r.cpuK, Args: r.args}
	return r
}

// run is one whole run: both kernels, both records, both waits, both queries.
func (r *rig) run(ctx context.Context) bool {
	d := r.d
	ok := d.Submit(ctx, r.coreS, r.core).Ok()
	ok = d.RecordEvent(ctx, r.coreE, r.coreS).Ok() && ok
	ok = d.Submit(ctx, r.cpuS, r.cpu).Ok() && ok
	ok = d.RecordEvent(ctx, r.cpuE, r.cpuS).Ok() && ok
	ok = d.WaitEvent(ctx, r.coreE, time.Second).Ok() && ok
	ok = d.WaitEvent(ctx, r.cpuE, time.Second).Ok() && ok
	a, res := d.QueryStream(ctx, r.coreS)
	ok = ok && res.Ok() && a == backend.Complete
	b, res := d.QueryStream(ctx, r.cpuS)
	return ok && res.Ok() && b == backend.Complete
}

func BenchmarkRun(b *testing.B) {
	r := newRig(b, sim.Config{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if !r.run(ctx) {
			b.Fatal("run failed")
		}
	}
	if v := r.d.Violations(); len(v) > 0 {
		b.Fatal(v)
	}
}

func BenchmarkClone(b *testing.B) {
	r := newRig(b, sim.Config{NoProofs: true})
	ctx := context.Background()
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	var dst sim.Device
	b.ReportAllocs()
	for b.Loop() {
		r.d.CloneInto(&dst)
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	r := newRig(t, sim.Config{})
	ctx := context.Background()
	r.run(ctx)
	many := func() { // even rare growth shows
		for range 10_000 {
			r.run(ctx)
		}
	}
	if n := testing.AllocsPerRun(1, many); n != 0 {
		t.Errorf("10000 runs allocate %v times, want 0", n)
	}
}

func TestExploringAllocatesNothing(t *testing.T) {
	d := lane(t, true)
	var x sim.Device
	var choices []sim.Choice
	var buf []byte
	n := sim.Naming{Handle: func(_ sim.Kind, h uint64) uint64 { return 1 + h&0xffff }}
	data := []byte{1, 2, 3}
	all := func() {
		for i := 0; ; i++ {
			d.CloneInto(&x)
			choices = x.Choices(choices[:0])
			if i >= len(choices) {
				return
			}
			if err := x.Apply(choices[i]); err != nil {
				t.Fatal(err)
			}
			k := x.Begin(sim.Op{Kind: sim.OpWrite, Data: data})
			buf = x.AppendCanonical(buf[:0], n)
			for _, c := range [...]sim.ChoiceKind{sim.ChooseEffect, sim.ChooseReturn} {
				if err := x.Apply(sim.Choice{Kind: c, Target: uint64(k)}); err != nil {
					t.Fatal(err)
				}
			}
			if _, ended := x.Take(k); !ended {
				t.Fatal("the call has not ended")
			}
		}
	}
	if n := testing.AllocsPerRun(10, all); n != 0 {
		t.Errorf("going to all next states allocates %v times, want 0", n)
	}
}

// BenchmarkExplore is what an explorer pays for one edge: a copy, a choice, and
// the bytes of where it leads.
func BenchmarkExplore(b *testing.B) {
	r := newRig(b, sim.Config{NoProofs: true})
	ctx := context.Background()
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	r.d.Submit(ctx, r.cpuS, r.cpu)
	r.d.RecordEvent(ctx, r.cpuE, r.cpuS)
	r.d.Begin(sim.Op{Kind: sim.OpQueryEvent, Event: r.cpuE})
	var dst sim.Device
	var buf []byte
	choices := r.d.Choices(nil)
	n := sim.Naming{Handle: func(_ sim.Kind, h uint64) uint64 { return h }}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.d.CloneInto(&dst)
		if err := dst.Apply(choices[i%len(choices)]); err != nil {
			b.Fatal(err)
		}
		buf = dst.AppendCanonical(buf[:0], n)
	}
}

// lane is what a lane with two slots has on its device: two runs' rigs, with
// result regions and their sources, idle or under way.
func lane(tb testing.TB, busy bool) *sim.Device {
	r := newRig(tb, sim.Config{NoProofs: true, Budget: 1, Faults: sim.Faults(sim.FailAfter, sim.KernelFatal)})
	ctx := context.Background()
	other := *r
	other.coreS, _ = r.d.CreateStream(ctx)
	other.cpuS, _ = r.d.CreateStream(ctx)
	other.coreE, _ = r.d.CreateEvent(ctx)
	other.cpuE, _ = r.d.CreateEvent(ctx)
	other.args, _ = r.d.Alloc(ctx, backend.DeviceMemory, 64)
	other.core.Args, other.cpu.Args = other.args, other.args
	for range 2 {
		m, _ := r.d.Alloc(ctx, backend.PinnedMemory, 64)
		r.d.Write(ctx, m, 8, []byte{1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0})
		if _, res := r.d.Alloc(ctx, backend.DeviceMemory, 64); !res.Ok() {
			tb.Fatal(res)
		}
	}
	for range 3 {
		if !r.run(ctx) || !other.run(ctx) {
			tb.Fatal("run failed")
		}
	}
	if !busy {
		return r.d
	}
	for _, x := range []*rig{r, &other} {
		x.d.Submit(ctx, x.coreS, x.core)
		x.d.RecordEvent(ctx, x.coreE, x.coreS)
		x.d.StreamWaitEvent(ctx, x.cpuS, r.coreE)
		x.d.Submit(ctx, x.cpuS, x.cpu)
		x.d.RecordEvent(ctx, x.cpuE, x.cpuS)
	}
	r.d.Begin(sim.Op{Kind: sim.OpQueryEvent, Event: r.cpuE})
	k := r.d.Begin(sim.Op{Kind: sim.OpWaitEvent, Event: r.cpuE, Timeout: time.Second})
	if err := r.d.Apply(sim.Choice{Kind: sim.ChooseEffect, Target: uint64(k)}); err != nil {
		tb.Fatal(err)
	}
	return r.d
}

func eachLane(b *testing.B, bench func(*testing.B, *sim.Device)) {
	for name, busy := range map[string]bool{"idle": false, "busy": true} {
		b.Run(name, func(b *testing.B) {
			d := lane(b, busy)
			b.ReportAllocs()
			bench(b, d)
		})
	}
}

func BenchmarkAppendState(b *testing.B) {
	eachLane(b, func(b *testing.B, d *sim.Device) {
		var buf []byte
		for b.Loop() {
			buf = d.AppendState(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "bytes")
	})
}

func BenchmarkSetState(b *testing.B) {
	eachLane(b, func(b *testing.B, d *sim.Device) {
		state := d.AppendState(nil)
		x := d.Clone()
		for b.Loop() {
			if err := x.SetState(state); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCloneInto(b *testing.B) {
	eachLane(b, func(b *testing.B, d *sim.Device) {
		var x sim.Device
		for b.Loop() {
			d.CloneInto(&x)
		}
	})
}

func BenchmarkChoices(b *testing.B) {
	eachLane(b, func(b *testing.B, d *sim.Device) {
		var list []sim.Choice
		for b.Loop() {
			list = d.Choices(list[:0])
		}
		b.ReportMetric(float64(len(list)), "choices")
	})
}

// BenchmarkApply includes a copy of the device for each choice.
func BenchmarkApply(b *testing.B) {
	d := lane(b, true)
	choices := d.Choices(nil)
	var x sim.Device
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.CloneInto(&x)
		if err := x.Apply(choices[i%len(choices)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendCanonical(b *testing.B) {
	eachLane(b, func(b *testing.B, d *sim.Device) {
		n := sim.Naming{Handle: func(_ sim.Kind, h uint64) uint64 { return 1 + h&0xffff }} // by slot
		var buf []byte
		for b.Loop() {
			buf = d.AppendCanonical(buf[:0], n)
		}
		b.ReportMetric(float64(len(buf)), "bytes")
	})
}
