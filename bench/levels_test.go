package bench

import (
	"context"
	"testing"

	"github.com/runfence/runfence/machine"
)

// BenchmarkLevels is the same transition at each level of the engine: an
// instance alone, a driver of a world, and the world by itself, as explorers
// and replays use it.
func BenchmarkLevels(b *testing.B) {
	perform := machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })
	b.Run("instance", func(b *testing.B) { alternate(b, nil) })
	b.Run("instance recorded", func(b *testing.B) { alternate(b, &counter{}) })
	b.Run("driver", func(b *testing.B) {
		w := newWorld(b)
		ref, ev, ctx := w.Ref(0, 0), toggles(w.Rules().At(0)), context.Background()
		d, err := machine.NewDriver(w, machine.DriverConfig{Performer: perform})
		if err != nil {
			b.Fatal(err)
		}
		m := measured(b)
		n := 0
		for b.Loop() {
			if _, err := d.Fire(ctx, ref, ev[n&1]); err != nil {
				b.Fatal(err)
			}
			n++
		}
		m.stop()
	})
	b.Run("world", func(b *testing.B) {
		w := newWorld(b)
		ref, ev := w.Ref(0, 0), toggles(w.Rules().At(0))
		m := measured(b)
		n := 0
		for b.Loop() {
			if s := w.Issue(ref, ev[n&1]); s.Status != machine.InFlight {
				b.Fatal(s.Status)
			}
			if s := w.Settle(ref, machine.Result{}); s.Status != machine.Accepted {
				b.Fatal(s.Status)
			}
			n++
		}
		m.stop()
	})
}

func newWorld(b *testing.B) *machine.World {
	w, err := machine.MustCompile(toggle()).NewWorld(machine.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// counter is a recorder that keeps nothing.
type counter struct{ n int }

func (c *counter) Record(*machine.Record) { c.n++ }
