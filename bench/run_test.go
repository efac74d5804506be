package bench

import (
	"context"
	"testing"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/states"
)

// wholeRun is one run on the simulator from admission to the end, its verdict
// asked of the device, with the log off.
func wholeRun() row {
	return row{
		name: "a whole run", within: 6 * time.Microsecond, allocs: 10,
		ours: func(b *testing.B) { runs(b, nil, false) },
	}
}

// certifiedRun is the same with a kernel that publishes the run's own record,
// so that nothing is synchronised.
func certifiedRun() row {
	return row{
		name: "a certified run", within: 6 * time.Microsecond, allocs: 10,
		ours: func(b *testing.B) { runs(b, record, false) },
	}
}

// callersRun is a run on a borrowed context, ordered against a caller's
// stream, with its descriptor published asynchronously and health asked twice.
func callersRun() row {
	return row{
		name: "a caller's run, borrowed", within: 12 * time.Microsecond, allocs: 10,
		ours: func(b *testing.B) { runs(b, record, true) },
	}
}

// record publishes that all is well.
var record = []sim.Store{
	{When: sim.AtExit, Through: true, Offset: 0, Size: 8, FromArgs: true, Value: 8},
	{When: sim.AtExit, Through: true, Offset: 8, Size: 4},
}

func runs(b *testing.B, stores []sim.Store, caller bool) {
	dev, err := sim.New(sim.Config{Borrowed: caller, Kernels: []sim.KernelSpec{
		{Class: backend.AICore, Duration: 40 * time.Microsecond},
		{Class: backend.AICPU, Duration: 50 * time.Microsecond, Stores: stores},
	}})
	if err != nil {
		b.Fatal(err)
	}
	c := states.Config{Backend: dev, Borrowed: caller}
	work := states.Work{Core: 1, CPU: 2}
	ctx := context.Background()
	if caller {
		c.Generation = 1
		work.Async = true
		work.Caller, _ = dev.CreateStream(ctx)
	}
	l, err := states.NewLane(c)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Open(ctx); err != nil {
		b.Fatal(err)
	}
	m := measured(b)
	for b.Loop() {
		r, err := l.Prepare(ctx, work)
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
	m.stop()
}
