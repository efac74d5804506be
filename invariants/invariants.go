package invariants

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
)

// Needs says what a predicate looks at.
type Needs uint8

const (
	// NeedsWorld: the instances of one world.
	NeedsWorld Needs = iota
	// NeedsStep: the world before and after one step, and its records.
	NeedsStep
	// NeedsDevice: the simulated device, or what a log tells of a device.
	NeedsDevice
)

// String names the need.
func (n Needs) String() string { return [...]string{"a world", "a step", "the device"}[n] }

// Of says whose worlds an invariant is about.
type Of uint8

const (
	// OfLane: worlds of a lane.
	OfLane Of = iota
	// OfOrchestrator: worlds of an orchestrator.
	OfOrchestrator
)

// String names the owner of the worlds.
func (o Of) String() string { return [...]string{"lane", "orchestrator"}[o] }

// Invariant is one sentence that must hold.
type Invariant struct {
	// ID is stable.
	ID       string
	Sentence string
	// Source names the clauses that demand it.
	Source string
	Of     Of
	Needs  Needs
	// Catches is a change of one rule after which only this invariant says that
	// something is wrong, as package machine/patch reads it.
	Catches string
	// Held says what else keeps the sentence true, where no change of one rule
	// can break it. Then Catches is empty.
	Held string

	world  func(*names) worldPredicate
	step   func(*names) stepPredicate
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
func Check(w *machine.World) []*Finding { return For(w.Rules()).World(w) }

// CheckStep tells every invariant of steps that one atomic step breaks, which
// led from the world before to the world after. recs are its records: the
// first and those that it took along.
func CheckStep(before, after *machine.World, recs []machine.Record) []*Finding {
	return For(after.Rules()).Step(before, after, recs)
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

// All returns the catalogue, in the order of docs/invariants.md.
func All() []Invariant { return slices.Clone(catalogue) }

// catalogue is every invariant, in the order of the page that is made of it.
var catalogue = slices.Concat(
	ofFence, ofReferences, ofLaunch, ofRun, ofOutcome, ofRegion, ofHealth,
	ofEnvironment, ofOperations, ofWorker, ofResources,
)
