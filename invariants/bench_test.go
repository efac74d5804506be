package invariants_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// stepped is a step that a lane made, with the worlds around it.
type stepped struct {
	before, after *machine.World
	recs          []machine.Record
}

// stepper keeps the steps of a world that records itself: it plays every record
// a second time on a world of its own, to have the world between two steps.
type stepKeeper struct{ recs []machine.Record }

func (k *stepKeeper) Record(r *machine.Record) { k.recs = append(k.recs, *r) }

// laneSteps are all steps of two runs on a lane with two slots, the second
// behind the first, both with a caller's stream.
func laneSteps(t testing.TB) []stepped {
	dev, err := sim.New(sim.Config{Kernels: []sim.KernelSpec{{Name: "core", Class: backend.AICore}, {Name: "cpu", Class: backend.AICPU}}})
	require.NoError(t, err)
	ctx := context.Background()
	caller, r := dev.CreateStream(ctx)
	require.True(t, r.Ok())
	keep := &stepKeeper{}
	config := states.Config{Backend: dev, Slots: 2, Depth: 2, Incarnation: 1, Timeout: time.Second, Recorder: keep}
	lane, err := states.NewLane(config)
	require.NoError(t, err)
	require.NoError(t, lane.Open(ctx))
	work := states.Work{Core: 1, CPU: 2, Caller: caller, Async: true}
	var runs []*states.Run
	for range 2 {
		run, err := lane.Submit(ctx, work)
		require.NoError(t, err)
		runs = append(runs, run)
	}
	for _, run := range runs {
		_, err := run.Poll(ctx)
		require.NoError(t, err)
		require.NoError(t, run.Wait(ctx))
	}
	for i := range runs {
		require.NoError(t, runs[len(runs)-1-i].Finalize(ctx))
	}
	return replayed(t, states.Rules(), config.Pools(), keep.recs)
}

// replayed plays records again, step by step.
func replayed(t testing.TB, rules *machine.Rules, pools map[string]int, recs []machine.Record) []stepped {
	w, err := rules.NewWorld(machine.Config{Pools: pools})
	require.NoError(t, err)
	var out []stepped
	for len(recs) > 0 {
		n := 1
		for n < len(recs) && recs[n].Via == machine.ViaJoint {
			n++
		}
		before := w.Clone()
		switch rec := &recs[0]; {
		case rec.Kind == machine.Settled:
			w.Settle(rec.Ref, rec.Result)
		case rec.Kind == machine.Dropped:
			w.Drop(rec.Ref)
		case rec.Kind == machine.Reserved:
			w.ReserveIdentity(rules.Sorts()[rec.Event], rec.Args[0])
		case rec.Via == machine.ViaQueue:
			w.Next(rec.Root)
		default:
			w.Issue(rec.Ref, rec.Event, rec.Args[:rec.NArgs]...)
		}
		out = append(out, stepped{before, w.Clone(), recs[:n]})
		recs = recs[n:]
	}
	return out
}

// A world costs under a microsecond and a step far less, on average over all
// steps of two runs; neither allocates.
func BenchmarkChecker(b *testing.B) {
	steps := laneSteps(b)
	c := invariants.For(states.Rules())
	b.Run("world", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if c.World(steps[i%len(steps)].after) != nil {
				b.Fatal("a finding")
			}
		}
	})
	b.Run("step", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s := &steps[i%len(steps)]
			if c.Step(s.before, s.after, s.recs) != nil {
				b.Fatal("a finding")
			}
		}
	})
	b.Run("worst-step", func(b *testing.B) {
		worst, most := 0, time.Duration(0)
		for i, s := range steps {
			began := time.Now()
			for range 1000 {
				c.Step(s.before, s.after, s.recs)
			}
			if d := time.Since(began); d > most {
				worst, most = i, d
			}
		}
		b.ReportAllocs()
		s := &steps[worst]
		for b.Loop() {
			c.Step(s.before, s.after, s.recs)
		}
		b.Logf("%s with %d records", s.after.Rules().RefName(s.recs[0].Ref), len(s.recs))
	})
}

// Checking allocates nothing where nothing is found.
func TestCheckerAllocatesNothing(t *testing.T) {
	steps := laneSteps(t)
	require.Greater(t, len(steps), 100)
	c := invariants.For(states.Rules())
	require.Same(t, c, invariants.For(states.Rules()))
	require.Zero(t, testing.AllocsPerRun(2, func() {
		for i := range steps {
			s := &steps[i]
			if c.World(s.after) != nil || c.Step(s.before, s.after, s.recs) != nil {
				t.Fatal("a finding")
			}
		}
	}))
	for _, s := range c.Scope() {
		require.False(t, s.Unknown, "%s: %s", s.Invariant.ID, s.Why)
		require.Equal(t, s.Invariant.Of == invariants.OfLane && s.Invariant.Needs != invariants.NeedsDevice, s.Evaluated, "%s: %s", s.Invariant.ID, s.Why)
	}
}
