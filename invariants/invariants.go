package invariants

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Needs says what a predicate looks at.
type Needs uint8

const (
	// NeedsWorld: the instances of one world.
	NeedsWorld Needs = iota
	// NeedsStep: the world before and after one record, and the record.
	NeedsStep
	// NeedsDevice: the simulated device as well.
	NeedsDevice
)

// String names the need.
func (n Needs) String() string { return [...]string{"a world", "a step", "the device"}[n] }

// Invariant is one sentence that must hold.
type Invariant struct {
	// ID is stable.
	ID       string
	Sentence string
	// Source names the section or clauses that demand it.
	Source string
	Needs  Needs

	world  func(*view) error
	step   func(*step) error
	device func(Device) error
}

// Device is what predicates ask of a device that can be looked into.
type Device interface {
	// Broken lists what the device saw done to it that must not be done: memory
	// freed or overwritten, or an event destroyed or recorded again, while
	// queued work named it.
	Broken() []string
}

// Finding is an invariant that does not hold.
type Finding struct {
	Invariant *Invariant
	// Seq is the record after which it does not hold; 0 if unknown.
	Seq    uint64
	Detail string
}

// Error says which sentence is broken and by what.
func (f *Finding) Error() string {
	s := fmt.Sprintf("%s: %s (%s): %s", f.Invariant.ID, f.Invariant.Sentence, f.Invariant.Source, f.Detail)
	if f.Seq > 0 {
		s = fmt.Sprintf("record %d: %s", f.Seq, s)
	}
	return s
}

// Check tells every invariant of worlds that does not hold in w.
func Check(w *machine.World) []*Finding {
	v := look(w)
	var out []*Finding
	for i := range catalogue {
		if in := &catalogue[i]; in.world != nil {
			if err := in.world(v); err != nil {
				out = append(out, &Finding{Invariant: in, Seq: w.Seq(), Detail: err.Error()})
			}
		}
	}
	return out
}

// CheckDevice tells every invariant of devices that does not hold.
func CheckDevice(d Device) []*Finding {
	var out []*Finding
	for i := range catalogue {
		if in := &catalogue[i]; in.device != nil {
			if err := in.device(d); err != nil {
				out = append(out, &Finding{Invariant: in, Detail: err.Error()})
			}
		}
	}
	return out
}

// CheckStep tells every invariant of steps that one atomic step breaks, which
// led from the world before to the world after. recs are its records: the
// first and those that it took along.
func CheckStep(before, after *machine.World, recs []machine.Record) []*Finding {
	s := &step{before: look(before), after: look(after), recs: recs, rules: after.Rules()}
	var out []*Finding
	for i := range catalogue {
		if in := &catalogue[i]; in.step != nil {
			for r := range recs {
				s.rec = &recs[r]
				if err := in.step(s); err != nil {
					out = append(out, &Finding{Invariant: in, Seq: s.rec.Seq, Detail: err.Error()})
					break
				}
			}
		}
	}
	return out
}

// All returns the catalogue, in the order of docs/invariants.md.
func All() []Invariant { return append([]Invariant(nil), catalogue...) }

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
	out := append(Check(o.after), CheckStep(o.before, o.after, o.group)...)
	o.Checks += len(catalogue)
	o.group = o.group[:0]
	return out
}

// view reads a world by name. Rules without a machine read as none of it, so
// that the catalogue also serves parts of the lifecycles.
type view struct {
	w     *machine.World
	rules *machine.Rules
}

func look(w *machine.World) *view { return &view{w: w, rules: w.Rules()} }

// each calls f for every instance of a machine.
func (v *view) each(name string, f func(instance) error) error {
	m := v.rules.Machine(name)
	if m == nil {
		return nil
	}
	var errs []error
	for s := range v.w.Capacity(m.ID()) {
		if err := f(instance{v: v, m: m, ref: v.w.Ref(m.ID(), s)}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// at returns an instance; ok is false if the rules have no such machine.
func (v *view) at(name string, slot int) (instance, bool) {
	m := v.rules.Machine(name)
	if m == nil || slot >= v.w.Capacity(m.ID()) {
		return instance{}, false
	}
	return instance{v: v, m: m, ref: v.w.Ref(m.ID(), slot)}, true
}

// count counts the instances that f holds of.
func (v *view) count(name string, f func(instance) bool) int {
	n := 0
	_ = v.each(name, func(i instance) error {
		if f(i) {
			n++
		}
		return nil
	})
	return n
}

type instance struct {
	v   *view
	m   *machine.Machine
	ref machine.Ref
}

func (i instance) name() string { return i.v.rules.RefName(i.ref) }

func (i instance) state() string {
	s, _, _ := i.v.w.State(i.ref)
	return i.m.StateName(s)
}

func (i instance) in(states ...string) bool {
	s := i.state()
	for _, x := range states {
		if s == x {
			return true
		}
	}
	return false
}

// word is the value of a fact; 0 if the machine has none of that name.
func (i instance) word(fact string) uint64 {
	f, ok := i.m.Fact(fact)
	if !ok {
		return 0
	}
	v, _ := i.v.w.Fact(i.ref, f)
	return v
}

// is compares a fact as rules write it.
func (i instance) is(fact string, values ...string) bool {
	f, ok := i.m.Fact(fact)
	if !ok {
		return false
	}
	v, _ := i.v.w.Fact(i.ref, f)
	s := i.m.FactType(f).Format(v)
	for _, x := range values {
		if s == x {
			return true
		}
	}
	return false
}

func (i instance) fail(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{i.name()}, args...)...)
}

// step is one record with the worlds around it.
type step struct {
	before, after *view
	recs          []machine.Record
	rec           *machine.Record // the one under consideration
	rules         *machine.Rules
}

// took reports whether the step has a row of a machine among its records.
func (s *step) took(name string, rows ...string) bool {
	for i := range s.recs {
		m := s.rules.At(s.recs[i].Ref.Machine)
		for _, r := range rows {
			if m.Name() == name && m.RowID(s.recs[i].Row) == r {
				return true
			}
		}
	}
	return false
}

func (s *step) machine() string { return s.rules.At(s.rec.Ref.Machine).Name() }
func (s *step) root() string    { return s.rules.At(s.rec.Root.Machine).Name() }
func (s *step) call() string    { return s.rules.CallName(s.rec.Call) }

func (s *step) row() string {
	return s.rules.At(s.rec.Ref.Machine).RowID(s.rec.Row)
}

// changed lists the machines that the step changed.
func (s *step) changed() []string {
	var out []string
	for id := range s.rules.NumMachines() {
		m := s.rules.At(machine.MachineID(id))
		for slot := range s.after.w.Capacity(m.ID()) {
			a, b := s.before.w.Ref(m.ID(), slot), s.after.w.Ref(m.ID(), slot)
			if a != b || s.before.w.StateName(a) != s.after.w.StateName(b) || !equal(s.before.w.AppendFacts(nil, a), s.after.w.AppendFacts(nil, b)) {
				out = append(out, m.Name())
				break
			}
		}
	}
	return out
}

func equal(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func list(names []string) string { return strings.Join(names, ", ") }
