package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/machinetest"
	"github.com/runfence/runfence/machine/naive"
)

// both is a world and its reference, step by step.
type both struct {
	*rapid.T
	w     *machine.World
	n     *naive.World
	rules *machine.Rules
	seen  map[string]int
}

func (b *both) name(r machine.Ref) naive.Ref {
	return naive.Ref{Machine: b.rules.At(r.Machine).Name(), Slot: int(r.Slot), Gen: int(r.Gen)}
}

// same compares the accounts of one step, and then the worlds.
func (b *both) same(s *machine.Step, n naive.Step) {
	m := b.rules.At(s.Ref.Machine)
	b.seen[s.Status.String()]++
	require.Equal(b, n.Status, s.Status, "engine: %v", b.w.RefusalError(s))
	switch s.Status {
	case machine.Accepted:
		require.Equal(b, n.Row, m.RowID(s.Row))
		require.Equal(b, n.Target, int(s.Target))
		require.Equal(b, n.State, m.StateName(s.State))
		require.Equal(b, n.Code, s.Code)
		require.Equal(b, n.Reason, s.Reason)
		if n.Return.V != nil {
			require.Equal(b, b.n.Word(n.Return), s.Return)
		}
	case machine.InFlight:
		require.Equal(b, n.Row, m.RowID(s.Row))
		require.Equal(b, n.Call, b.rules.CallName(s.Command.Call))
		require.Equal(b, len(n.Args), s.Command.N)
		for i, a := range n.Args {
			require.Equal(b, b.n.Word(a), s.Command.Args[i])
		}
	case machine.StepRefused, machine.Hole:
		b.seen["refused: "+n.Refusal.String()]++
		if n.Refusal == machine.ByJoint {
			b.seen["taken along: "+n.ByKind.String()]++
		}
		require.Equal(b, n.Refusal, s.Refusal)
		require.Equal(b, n.Reason, s.Reason)
		require.Equal(b, n.ByKind, s.ByKind)
		if n.Refusal == machine.ByJoint {
			require.Equal(b, n.By, b.name(s.By))
			if n.ByRow != "" {
				require.Equal(b, n.ByRow, b.rules.At(s.By.Machine).RowID(s.ByRow))
			}
			require.Equal(b, n.BySaid, b.said(s.By.Machine, s.ByState, s.ByDuring, s.ByEvent, s.BySaid))
		} else if n.Row != "" {
			require.Equal(b, n.Row, m.RowID(s.Row))
		}
		if s.Status == machine.StepRefused {
			require.Equal(b, n.Said, b.said(s.Ref.Machine, s.State, s.During, s.Event, s.Said))
		}
		require.NotEmpty(b, b.w.RefusalError(s).Error())
	}
	b.sameWorlds()
}

func (b *both) said(m machine.MachineID, s machine.StateID, during machine.RowID, ev machine.EventID, bits uint64) (out []string) {
	if bits == 0 {
		return nil
	}
	for i, r := range b.rules.At(m).RowsOf(s, during, ev) {
		if bits&(1<<i) != 0 {
			out = append(out, b.rules.At(m).RowID(r))
		}
	}
	return out
}

func (b *both) sameWorlds() {
	for i := range b.rules.NumMachines() {
		m := b.rules.At(machine.MachineID(i))
		for slot := range b.w.Capacity(m.ID()) {
			r := b.w.Ref(m.ID(), slot)
			require.Equal(b, b.n.At(m.Name(), slot), b.name(r))
			require.Equal(b, b.n.State(m.Name(), slot), b.w.StateName(r))
			for _, f := range m.Definition().Facts {
				v, _ := b.w.Fact(r, m.MustFact(f.Name))
				require.Equal(b, b.n.Word(b.n.Fact(m.Name(), slot, f.Name)), v, "%s[%d].%s", m.Name(), slot, f.Name)
			}
		}
	}
	var queue []string
	for i := range b.w.Queued() {
		e := b.w.Entry(i)
		queue = append(queue, fmt.Sprint(b.name(e.Root), b.name(e.Ref), b.rules.At(e.Ref.Machine).EventName(e.Event), e.NArgs))
	}
	require.Equal(b, b.n.Waiting(), queue)
}

// step draws and makes one step of both.
func (b *both) step() {
	m := b.rules.At(machine.MachineID(rapid.IntRange(0, b.rules.NumMachines()-1).Draw(b.T, "machine")))
	ref := b.w.Ref(m.ID(), rapid.IntRange(0, b.w.Capacity(m.ID())-1).Draw(b.T, "slot"))
	_, inFlight, _ := b.w.State(ref)
	what := rapid.IntRange(0, 11).Draw(b.T, "what")
	switch {
	case what < 7 && inFlight:
		res := machinetest.Result(b.T)
		n := b.n.Settle(b.name(ref), res)
		b.same(b.w.Settle(ref, res), n)
	case what < 4 || what < 9 && b.w.HasNext(ref):
		n, ok := b.n.Next(b.name(ref))
		s := b.w.Next(ref)
		require.Equal(b, ok, s != nil)
		require.Equal(b, b.n.HasNext(b.name(ref)), b.w.HasNext(ref))
		if ok {
			b.seen["from the queue"]++
			b.same(s, n)
		}
	case what == 4:
		if ref.Gen > 0 && rapid.Bool().Draw(b.T, "past") {
			ref.Gen--
		}
		n := b.n.Drop(b.name(ref))
		s := b.w.Drop(ref)
		require.Equal(b, n.Status, s.Status)
		require.Equal(b, n.Refusal, s.Refusal)
		if s.Status == machine.Accepted {
			b.seen["dropped"]++
		}
		b.sameWorlds()
	default:
		ev := machine.EventID(rapid.IntRange(0, m.NumEvents()-1).Draw(b.T, "event"))
		args := machinetest.Args(b.T, b.w, m, ev)
		if ref.Gen > 0 && rapid.IntRange(0, 9).Draw(b.T, "past") == 0 {
			ref.Gen--
		}
		var values []naive.Value
		for i, ty := range m.EventArgs(ev) {
			if ty.Kind == machine.ID && args[i] < 1<<20 {
				b.w.ReserveIdentity(ty.Name, args[i])
				b.n.Reserve(ty.Name, args[i])
			}
			values = append(values, b.n.FromWord(ty, args[i]))
		}
		can := b.w.Can(ref, ev, args...)
		n := b.n.Issue(b.name(ref), m.EventName(ev), values...)
		b.same(b.w.Issue(ref, ev, args...), n)
		require.Equal(b, n.Status == machine.Accepted || n.Status == machine.InFlight, can)
		if inFlight && n.Status == machine.Accepted {
			b.seen["taken in flight"]++
		}
	}
}

// The engine and the reference, given the same definitions, events and answers,
// come to the same states, facts, refusals, codes and waiting events at every step.
func TestWorldAgreesWithTheReference(t *testing.T) {
	seen := map[string]int{}
	untilSeen(t, seen, []string{
		"accepted", "in flight", "refused", "deferred", "hole in the rules", "from the queue", "dropped", "taken in flight",
		"refused: no row", "refused: refused by row", "refused: refused by another instance", "refused: stale reference",
		"refused: out of range", "refused: bad argument", "refused: queue full", "refused: bad reference",
		"taken along: no row", "taken along: refused by row", "taken along: out of range",
	}, func(t *rapid.T) {
		defs := machinetest.Definitions(t)
		rules, err := machine.Compile(defs...)
		require.NoError(t, err)
		slots, queue := rapid.IntRange(1, 3).Draw(t, "slots"), rapid.IntRange(1, 4).Draw(t, "queue")
		pools := machinetest.Pools(defs, slots)
		size := machine.Config{Pools: pools, Queue: queue}
		if rapid.Bool().Draw(t, "on record") {
			size.Recorder = &log{}
		}
		w, err := rules.NewWorld(size)
		require.NoError(t, err)
		n, err := naive.New(naive.Config{Pools: pools, Queue: queue}, defs...)
		require.NoError(t, err)
		b := &both{T: t, w: w, n: n, rules: rules, seen: seen}
		b.sameWorlds()
		for range 60 {
			b.step()
		}
	})
}

// untilSeen checks a property, and again until each thing has been seen that it
// is about.
func untilSeen(t *testing.T, seen map[string]int, what []string, property func(*rapid.T)) {
	t.Helper()
	var missing []string
	for range 20 {
		rapid.Check(t, property)
		missing = nil
		for _, w := range what {
			if seen[w] == 0 {
				missing = append(missing, w)
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	t.Errorf("never seen: %q; seen: %v", missing, seen)
}
