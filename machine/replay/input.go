package replay

import "github.com/runfence/runfence/machine"

// input is what a world was given from outside.
type input struct {
	kind   machine.RecordKind
	via    machine.Via
	nargs  uint8
	event  machine.EventID
	ref    machine.Ref
	root   machine.Ref
	args   [machine.MaxArgs + 1]uint64
	result machine.Result
}

// inputOf reads what was given off the first record that it made.
func inputOf(w *machine.World, r *machine.Record) input {
	in := input{kind: r.Kind, via: r.Via, nargs: r.NArgs, event: r.Event, ref: r.Ref, root: r.Root, result: r.Result}
	copy(in.args[:], r.Args[:])
	if r.Refusal == machine.BadArgument && r.NArgs == machine.MaxArgs && int(r.Ref.Machine) < w.Rules().NumMachines() {
		// A record holds no more arguments than an event can have. If these are
		// as many as the event takes, there was one too many.
		if m := w.Rules().At(r.Ref.Machine); int(r.Event) < m.NumEvents() && len(m.EventArgs(r.Event)) == machine.MaxArgs {
			in.nargs++
		}
	}
	return in
}

// give hands it to a world. It returns nil if the world had nothing to take.
func (in *input) give(w *machine.World) *machine.Step {
	switch in.kind {
	case machine.Settled, machine.Holed:
		return w.Settle(in.ref, in.result)
	case machine.Dropped:
		return w.Drop(in.ref)
	case machine.Reserved:
		if sorts := w.Rules().Sorts(); int(in.event) < len(sorts) {
			w.ReserveIdentity(sorts[in.event], in.args[0])
		}
		return nil
	}
	if in.via == machine.ViaQueue {
		return w.Next(in.root)
	}
	return w.Issue(in.ref, in.event, in.args[:in.nargs]...)
}

// checkpoint is after how many inputs a world is copied.
const checkpoint = 256

// keep remembers an input that is about to be given.
func (w *world) keep(in *input) {
	if len(w.inputs) == checkpoint {
		w.before.CopyFrom(w.State)
		w.inputs = w.inputs[:0]
	}
	w.inputs = append(w.inputs, *in)
}

// stateBefore returns the world as it was before the last input was given; or
// as it is, if undo is false.
func (w *world) stateBefore(undo bool) *machine.World {
	out := w.before.Clone()
	n := len(w.inputs)
	if undo && n > 0 {
		n--
	}
	for i := range w.inputs[:n] {
		w.inputs[i].give(out)
	}
	return out
}
