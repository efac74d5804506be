package invariants

import "github.com/runfence/runfence/machine"

// Observer checks a world as its records stream by. It is not safe for
// concurrent use.
type Observer struct {
	before, after *machine.World
	group         []machine.Record
	// Checks counts the predicates evaluated.
	Checks int
}

// Record takes the next record, and the world as it is after the step that the
// record belongs to, which is borrowed for the call. It returns what the step
// before broke: a step is checked when its last record is known. See Flush.
func (o *Observer) Record(after *machine.World, rec *machine.Record) []*Finding {
	if rec.Via == machine.ViaJoint && len(o.group) > 0 {
		o.group = append(o.group, *rec)
		return nil
	}
	out := o.Flush()
	if o.after == nil {
		o.before, o.after = after.Clone(), after.Clone()
	} else {
		o.before.CopyFrom(o.after)
		o.after.CopyFrom(after)
	}
	o.group = append(o.group, *rec)
	return out
}

// Flush checks the step whose records came last.
func (o *Observer) Flush() []*Finding {
	if len(o.group) == 0 {
		return nil
	}
	c := For(o.after.Rules())
	out := append(c.World(o.after), c.Step(o.before, o.after, o.group)...)
	o.Checks += len(c.worlds) + len(c.steps)
	o.group = o.group[:0]
	return out
}
