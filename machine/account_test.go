package machine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
)

// The account of a step says nothing of the steps before it: it is the same in
// a world that has taken none. A step that is not taken changes no instance.
func TestStepSaysNothingOfEarlierSteps(t *testing.T) {
	rules := machine.MustCompile(append(giverAndTaker(), valve())...)
	queue := 1
	rapid.Check(t, func(t *rapid.T) {
		w, err := rules.NewWorld(machine.Config{Queue: queue})
		if err != nil {
			t.Fatal(err)
		}
		var world func() []uint64
		same := func(step func(*machine.World) *machine.Step) {
			before, fresh := world(), w.Clone()
			want, got := step(fresh), step(w)
			if want == nil || got == nil {
				if want != got {
					t.Fatalf("one world had a next event, the other none")
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("in a world without a past (-), in this one (+):\n%s", d)
			}
			if d := cmp.Diff(before, world()); d != "" && got.Status != machine.Accepted && got.Status != machine.InFlight {
				t.Fatalf("%s, but the world changed:\n%s", got.Status, d)
			}
		}
		world = func() (words []uint64) {
			for id := range machine.MachineID(rules.NumMachines()) {
				r := w.Ref(id, 0)
				state, inFlight, _ := w.State(r)
				words = append(words, uint64(state), machine.BoolWord(inFlight))
				words = w.AppendFacts(words, r)
			}
			return words
		}
		ref := func() machine.Ref { return w.Ref(machine.MachineID(rapid.IntRange(0, 2).Draw(t, "machine")), 0) }
		t.Repeat(map[string]func(*rapid.T){
			"issue": func(t *rapid.T) {
				r := ref()
				m := rules.At(r.Machine)
				ev := machine.EventID(rapid.IntRange(0, m.NumEvents()-1).Draw(t, "event"))
				var args []uint64
				for range m.EventArgs(ev) {
					args = append(args, rapid.Uint64Range(0, 2).Draw(t, "argument"))
				}
				same(func(w *machine.World) *machine.Step { return w.Issue(r, ev, args...) })
			},
			"settle": func(t *rapid.T) {
				r := ref()
				res := machine.Result{Outcome: machine.Outcome(rapid.IntRange(0, machine.NumOutcomes).Draw(t, "outcome")), Value: 3, Codes: machine.Codes{Code: 4}}
				same(func(w *machine.World) *machine.Step { return w.Settle(r, res) })
			},
			"next": func(*rapid.T) {
				r := ref()
				same(func(w *machine.World) *machine.Step { return w.Next(r) })
			},
			"drop": func(*rapid.T) {
				r := ref()
				r.Gen += uint32(rapid.IntRange(0, 1).Draw(t, "stale"))
				same(func(w *machine.World) *machine.Step { return w.Drop(r) })
			},
			"can": func(t *rapid.T) {
				r := ref()
				before := world()
				w.Can(r, machine.EventID(rapid.IntRange(0, rules.At(r.Machine).NumEvents()-1).Draw(t, "event")))
				if d := cmp.Diff(before, world()); d != "" {
					t.Fatalf("a rehearsal changed the world:\n%s", d)
				}
			},
		})
	})
}
