package bench

import (
	"context"
	"testing"

	"github.com/runfence/runfence/machine"
)

// rows are the workloads of the table, in its order.
func rows() []row {
	return []row{
		transition(),
		loggedToMemory(),
		loggedToFile(),
		refusedByState(),
		refusedByGuard(),
		replayOfBinary(),
		replayOfJSON(),
		wholeRun(),
		certifiedRun(),
		callersRun(),
		chargeAndRelease(),
		ownsNothing(),
	}
}

// BenchmarkSpeed runs every version of every row.
func BenchmarkSpeed(b *testing.B) {
	for _, r := range rows() {
		b.Run(r.name, func(b *testing.B) {
			b.Run("runfence", r.ours)
			for _, p := range r.peers {
				b.Run(p.name, p.bench)
			}
		})
	}
}

// transition is one accepted transition: lock, in-flight mark, re-entry check
// and panic recovery are in the path, and no log.
func transition() row {
	return row{
		name:   "transition",
		allocs: 0,
		ours:   func(b *testing.B) { alternate(b, nil) },
		peers:  []peer{{"looplab", looplabAlternates, 15}, {"stateless", statelessAlternates, 15}},
	}
}

// alternate fires the two events in turn, with a log or without.
func alternate(b *testing.B, recorder machine.Recorder) {
	i, worked := ours(b, recorder)
	ev, ctx := toggles(i.Machine()), context.Background()
	m := measured(b)
	n := 0
	for b.Loop() {
		if _, err := i.Fire(ctx, ev[n&1]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	m.stop()
	if *worked != n {
		b.Fatalf("%d commands for %d events", *worked, n)
	}
}

func looplabAlternates(b *testing.B) {
	f, _, worked := looplabToggle()
	ev, ctx := [2]string{"start", "stop"}, context.Background()
	m := measured(b)
	n := 0
	for b.Loop() {
		if err := f.Event(ctx, ev[n&1]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	m.stop()
	if *worked != n {
		b.Fatalf("%d commands for %d events", *worked, n)
	}
}

func statelessAlternates(b *testing.B) {
	s, _, worked := statelessToggle()
	ev, ctx := [2]any{"start", "stop"}, context.Background()
	m := measured(b)
	n := 0
	for b.Loop() {
		if err := s.FireCtx(ctx, ev[n&1]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	m.stop()
	if *worked != n {
		b.Fatalf("%d commands for %d events", *worked, n)
	}
}

// refusedByState is an event that the state does not take.
func refusedByState() row {
	return row{
		name:   "refused by state",
		allocs: 1,
		ours: func(b *testing.B) {
			i, _ := ours(b, nil)
			refuse(b, i, i.Machine().MustEvent("stop"))
		},
		peers: []peer{{"looplab", func(b *testing.B) {
			f, _, _ := looplabToggle()
			ctx := context.Background()
			m := measured(b)
			for b.Loop() {
				if f.Event(ctx, "stop") == nil {
					b.Fatal("taken")
				}
			}
			m.stop()
		}, 1}},
	}
}

// refusedByGuard is an event that the guard says no to.
func refusedByGuard() row {
	return row{
		name:   "refused by guard",
		allocs: 1,
		ours: func(b *testing.B) {
			i, _ := ours(b, nil)
			if _, err := i.Fire(context.Background(), i.Machine().MustEvent("lock"), 1); err != nil {
				b.Fatal(err)
			}
			refuse(b, i, i.Machine().MustEvent("start"))
		},
		peers: []peer{{"looplab", func(b *testing.B) {
			f, locked, _ := looplabToggle()
			*locked = true
			ctx := context.Background()
			m := measured(b)
			for b.Loop() {
				if f.Event(ctx, "start") == nil {
					b.Fatal("taken")
				}
			}
			m.stop()
		}, 1}},
	}
}

func refuse(b *testing.B, i *machine.Instance, ev machine.EventID) {
	ctx := context.Background()
	m := measured(b)
	for b.Loop() {
		if _, err := i.Fire(ctx, ev); err == nil {
			b.Fatal("taken")
		}
	}
	m.stop()
}
