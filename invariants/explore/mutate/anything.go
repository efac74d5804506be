package mutate

import (
	"slices"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

// anything is a host that fires every event at the instances of some machines,
// those that only other instances send included, with arguments that vary one
// at a time from what the instance itself would say. It keeps to no rule of
// hosts, so what it leads to shows what rows do and not what may happen.
func anything(machines ...string) func(w *machine.World) []explore.Call {
	return func(w *machine.World) []explore.Call {
		if w.Queued() > 4 {
			return nil
		}
		var out []explore.Call
		for _, name := range machines {
			m := w.Rules().Machine(name)
			for slot := range min(2, w.Capacity(m.ID())) {
				ref := w.Ref(m.ID(), slot)
				if ref.Gen > 1 {
					continue
				}
				for i := range m.Definition().Events {
					for _, args := range arguments(w, ref, i) {
						out = append(out, explore.Call{Machine: name, Slot: slot, Event: m.Definition().Events[i].Name, Args: args})
					}
				}
			}
		}
		return out
	}
}

// maxCombined bounds the arguments that an event is fired with.
const maxCombined = 12

// arguments lists what an event of an instance is fired with: every combination
// of words, truths and small numbers with the identities that the instance has,
// and then each identity exchanged for another.
func arguments(w *machine.World, ref machine.Ref, event int) [][]uint64 {
	m := w.Rules().At(ref.Machine)
	d := m.Definition()
	types := m.EventArgs(machine.EventID(event))
	all := [][]uint64{{}}
	for i, ty := range types {
		values := plain(ty)
		if values == nil {
			values = []uint64{usual(w, ref, d.Events[event].Args[i].Name, ty)}
		}
		var next [][]uint64
		for _, v := range values {
			for _, a := range all {
				next = append(next, append(slices.Clone(a), v))
			}
		}
		all = next
	}
	if len(all) > maxCombined {
		all = all[:maxCombined]
	}
	for i, ty := range types {
		if plain(ty) != nil {
			continue
		}
		for _, v := range others(w, ty) {
			if v != all[0][i] {
				a := slices.Clone(all[0])
				a[i] = v
				all = append(all, a)
			}
		}
	}
	return all
}

// plain are the values of a type that is no identity and no reference.
func plain(ty machine.Type) []uint64 {
	switch ty.Kind {
	case machine.Bool:
		return []uint64{0, 1}
	case machine.Enum:
		var out []uint64
		for i := range ty.Names {
			out = append(out, uint64(i))
		}
		return out
	case machine.Int:
		return []uint64{0, 1}
	case machine.Code:
		return []uint64{0, machine.CodeWord(7)}
	}
	return nil
}

// usual is what an argument is when all is well: the fact of that name, or
// whatever of its sort there is.
func usual(w *machine.World, ref machine.Ref, name string, ty machine.Type) uint64 {
	m := w.Rules().At(ref.Machine)
	if f, ok := m.Fact(name); ok {
		if v, _ := w.Fact(ref, f); v != 0 {
			return v
		}
	}
	if ty.Kind == machine.ID && ty.Name == "process" {
		return process
	}
	for _, v := range others(w, ty) {
		if v != 0 && v != stranger {
			return v
		}
	}
	if ty.Kind == machine.ID {
		return 1
	}
	return 0
}

// stranger is an identity that nothing has.
const stranger = 1 << 40

// others are some values of the type that are about, and two that are not.
func others(w *machine.World, ty machine.Type) []uint64 {
	out := []uint64{0}
	if ty.Kind == machine.RefTo {
		m := w.Rules().Machine(ty.Name)
		for slot := range min(2, w.Capacity(m.ID())) {
			out = append(out, w.Ref(m.ID(), slot).Pack())
		}
		return out
	}
	for id := range w.Rules().NumMachines() {
		m := w.Rules().At(machine.MachineID(id))
		for slot := range w.Capacity(m.ID()) {
			for i := range m.Definition().Facts {
				f := machine.FactID(i)
				if t := m.FactType(f); t.Kind == ty.Kind && t.Name == ty.Name {
					if v, _ := w.Fact(w.Ref(m.ID(), slot), f); v != 0 && !slices.Contains(out, v) && len(out) < 3 {
						out = append(out, v)
					}
				}
			}
		}
	}
	return append(out, stranger)
}

// both is a host that may do what either does.
func both(a, b func(w *machine.World) []explore.Call) func(w *machine.World) []explore.Call {
	return func(w *machine.World) []explore.Call { return append(a(w), b(w)...) }
}

// launched brings a world to a launched run on slot 0, all going well.
func launched(eager, async uint64) func(w *machine.World) error {
	return func(w *machine.World) error {
		if err := opened(2)(w); err != nil {
			return err
		}
		host := user(0, eager, async)
		for _, op := range []string{"prepare", "launch"} {
			for _, c := range host(w) {
				if c.Machine == op && c.Event == "start" {
					run(w, c)
					break
				}
			}
		}
		return nil
	}
}

// run carries an operation to its end, every answer being what is hoped for.
func run(w *machine.World, c explore.Call) {
	m := w.Rules().Machine(c.Machine)
	ref := w.Ref(m.ID(), c.Slot)
	s := w.Issue(ref, m.MustEvent(c.Event), c.Args...)
	for range 60 {
		switch {
		case s == nil || s.Status > machine.InFlight:
			return
		case s.Status == machine.InFlight:
			s = w.Settle(s.Ref, explore.Hoped(w.Rules().CallName(s.Command.Call)))
		default:
			s = w.Next(ref)
		}
	}
}
