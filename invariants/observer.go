package invariants

import "github.com/runfence/runfence/machine"

// Observer checks a world as its records stream by, and keeps account of every
// invariant. What needs the device is asked of Device, or else decided by what
// the records tell of the calls. The zero Observer is ready for use. It is not
// safe for concurrent use.
type Observer struct {
	// Device is the device, if it can be looked into.
	Device Device
	// Checks counts the predicates evaluated.
	Checks int

	before, after *machine.World
	group         []machine.Record
	checker       *Checker
	account       account
	shadow        *shadow
	told          int // how much of Device.Broken was reported
}

// account is what became of the predicates of a checker.
type account struct {
	worlds  uint64   // looked at
	steps   []uint64 // evaluations, by position in Checker.steps
	devices uint64
	broken  map[*Invariant]*broken
}

type broken struct {
	times uint64
	first *Finding
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
		o.begin(after, rec.Seq)
	} else {
		o.before.CopyFrom(o.after)
		o.after.CopyFrom(after)
	}
	o.group = append(o.group, *rec)
	return out
}

func (o *Observer) begin(w *machine.World, first uint64) {
	o.before, o.after = w.Clone(), w.Clone()
	if first == 1 {
		o.before = w.Fresh()
	}
	o.checker = For(w.Rules())
	o.account = account{steps: make([]uint64, len(o.checker.steps)), broken: map[*Invariant]*broken{}}
	o.shadow = newShadow(w, first)
}

// Flush checks the step whose records came last. Call it once more at the end.
func (o *Observer) Flush() []*Finding {
	if len(o.group) == 0 {
		return nil
	}
	out := o.look(o.before, o.after, o.group)
	o.group = o.group[:0]
	return out
}

// look checks a step and keeps account of it.
func (o *Observer) look(before, after *machine.World, recs []machine.Record) []*Finding {
	c := o.checker
	out := c.World(after)
	o.account.worlds++
	o.Checks += len(c.worlds) + len(c.steps)
	out = append(out, c.evaluate(before, after, recs, o.account.steps)...)
	out = append(out, o.ask(before, after, recs)...)
	for _, f := range out {
		b := o.account.broken[f.Invariant]
		if b == nil {
			b = &broken{first: f}
			o.account.broken[f.Invariant] = b
		}
		b.times++
	}
	return out
}

// ask evaluates what needs the device, on what is known of it.
func (o *Observer) ask(before, after *machine.World, recs []machine.Record) []*Finding {
	var d Device
	switch {
	case o.Device != nil:
		d = o.Device
	case o.shadow.why == "":
		o.shadow.step(before, after, recs)
		d = o.shadow
	default:
		return nil
	}
	o.account.devices++
	if n := len(d.Broken()); n == o.told {
		return nil
	} else {
		d, o.told = since{d, o.told}, n
	}
	out := CheckDevice(d)
	for _, f := range out {
		f.Seq = recs[0].Seq
	}
	return out
}

// since is a device of which something was told already.
type since struct {
	d    Device
	told int
}

func (s since) Broken() []string { return s.d.Broken()[s.told:] }

// Verdict is what is known of an invariant.
type Verdict uint8

const (
	// Holds: evaluated, and never broken.
	Holds Verdict = iota
	// Broken at least once.
	Broken
	// Unknown: it could not be evaluated, and that is neither a pass nor a finding.
	Unknown
	// Vacuous: the rules have nothing that it is about.
	Vacuous
)

// String names the verdict.
func (v Verdict) String() string { return [...]string{"holds", "broken", "unknown", "vacuous"}[v] }

// Standing is what an [Observer] knows of one invariant.
type Standing struct {
	Invariant *Invariant
	Verdict   Verdict
	// Evaluated counts the worlds, or the records of steps, that the predicate
	// looked at.
	Evaluated uint64
	// Broken counts the steps after which it did not hold; First is the first.
	Broken uint64
	First  *Finding
	// Why says why it is unknown or vacuous.
	Why string
}

// Standings tells what is known of each invariant, in the order of the
// catalogue. Before the first record nothing is.
func (o *Observer) Standings() []Standing {
	var out []Standing
	if o.checker == nil {
		for i := range catalogue {
			out = append(out, Standing{Invariant: &catalogue[i], Verdict: Unknown, Why: "there was no record"})
		}
		return out
	}
	for _, s := range o.checker.scope {
		st := Standing{Invariant: s.Invariant, Why: s.Why}
		switch {
		case s.Invariant.Needs == NeedsDevice:
			st.Evaluated, st.Why = o.account.devices, ""
			if o.Device == nil && o.shadow.why != "" {
				st.Verdict, st.Why = Unknown, o.shadow.why
				if o.shadow.vacuous {
					st.Verdict = Vacuous
				}
			}
		case s.Unknown:
			st.Verdict = Unknown
		case !s.Evaluated:
			st.Verdict = Vacuous
		default:
			st.Evaluated = o.account.evaluated(o.checker, s.Invariant)
		}
		if b := o.account.broken[s.Invariant]; b != nil {
			st.Verdict, st.Broken, st.First = Broken, b.times, b.first
		}
		out = append(out, st)
	}
	return out
}

func (a *account) evaluated(c *Checker, in *Invariant) uint64 {
	if in.world != nil {
		return a.worlds
	}
	for i := range c.steps {
		if c.steps[i].in == in {
			return a.steps[i]
		}
	}
	return 0
}
