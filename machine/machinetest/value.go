package machinetest

import (
	"math"

	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
)

// Value draws a value of a type, now and then one that is none.
func Value(t *rapid.T, w *machine.World, ty machine.Type) uint64 {
	if rapid.IntRange(0, 19).Draw(t, "any bits") == 0 {
		return rapid.Uint64().Draw(t, "bits")
	}
	switch ty.Kind {
	case machine.Bool:
		return machine.BoolWord(rapid.Bool().Draw(t, "bool"))
	case machine.Int:
		return rapid.Uint64Range(0, min(ty.Max, 5)).Draw(t, "int")
	case machine.ID:
		return rapid.Uint64Range(0, 3).Draw(t, "id")
	case machine.Enum:
		return rapid.Uint64Range(0, uint64(len(ty.Names)-1)).Draw(t, "name")
	case machine.Code:
		return machine.CodeWord(rapid.SampledFrom([]int32{0, 507018, -1, math.MinInt32}).Draw(t, "code"))
	case machine.RefTo:
		id := w.Rules().Machine(ty.Name).ID()
		slot := rapid.IntRange(-1, w.Capacity(id)-1).Draw(t, "slot")
		if slot < 0 {
			return 0
		}
		r := w.Ref(id, slot)
		if r.Gen > 0 && rapid.IntRange(0, 3).Draw(t, "past") == 0 {
			r.Gen--
		}
		return r.Pack()
	}
	return 0
}

// Args draws the arguments of an event.
func Args(t *rapid.T, w *machine.World, m *machine.Machine, ev machine.EventID) []uint64 {
	var out []uint64
	for _, ty := range m.EventArgs(ev) {
		out = append(out, Value(t, w, ty))
	}
	return out
}

// Result draws an answer to a command.
func Result(t *rapid.T) machine.Result {
	return machine.Result{
		Outcome:  machine.Outcome(rapid.IntRange(0, machine.NumOutcomes-1).Draw(t, "outcome")),
		Accepted: rapid.Bool().Draw(t, "accepted"),
		Codes: machine.Codes{
			Code: rapid.SampledFrom([]int32{0, 507018, -1}).Draw(t, "code"),
			Last: rapid.SampledFrom([]int32{0, 507018, -1}).Draw(t, "last"),
		},
		Value: rapid.SampledFrom([]uint64{0, 1, 2, 3, 4, 1 << 40, math.MaxUint64}).Draw(t, "value"),
	}
}
