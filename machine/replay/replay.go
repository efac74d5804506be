// Package replay runs a transition log through the rules again, and says where
// the two part.
//
// A replay is a fold over the log by sequence: what came from outside — events
// fired by hosts, events taken from the queue, answers of commands, drops — is
// given to a world again, and everything the world then records must be what
// the log says. One goroutine does it all; time, sites and goroutines of the
// recording do not matter.
package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// Options says how to replay.
type Options struct {
	// AllowOtherRules goes on although the log was recorded under other rules,
	// up to the first divergence. Names are matched; what has none is one.
	AllowOtherRules bool
	// SkipGaps goes on after a gap with the other worlds; of the world with the
	// gap, what comes after it is left out.
	SkipGaps bool
	// Observer is called for each record that matched, with its world after the
	// whole step that the record is of: a step may make several. It must not
	// change the world or keep r. An error ends the replay.
	Observer func(w *machine.World, r *machine.Record) error
	// Recent is how many records are kept to explain a divergence if the log
	// cannot be read twice; 0 means 4096.
	Recent int
	// MaxWorlds and MaxInstances bound what a log can open: worlds, and
	// instances of all of them; 0 means 4096 and 1048576.
	MaxWorlds, MaxInstances int
}

// Result is what a replay came to. It is there up to the error, if there is one.
type Result struct {
	Header *translog.Header
	// Worlds are in the order the log opens them.
	Worlds []*World
	// Records is how many records were replayed and matched: those of repeats
	// included, which Repeated counts.
	Records, Repeated uint64
	// Refusals is how many of the records are refusals.
	Refusals uint64
	// Lost is how many records the log says are lost, Skipped how many came
	// after such a gap and were left out.
	Lost, Skipped uint64
	// Gaps is how many gaps there are.
	Gaps int
	// Closed: the log's writer came to its end.
	Closed bool
}

// World is one world of the log, as it was at the end.
type World struct {
	Number int
	Name   string
	// State is the world after the last record.
	State *machine.World
	// Records, Repeated and Refusals are as in Result, of this world.
	Records, Repeated, Refusals uint64
	// Gap is the first gap, behind which the world was not replayed.
	Gap *translog.Gap
	// Missing is how many records of the last step are behind the end of a log
	// that was not closed.
	Missing int
}

// Instance is one instance at the end of a replay.
type Instance struct {
	Ref machine.Ref
	// Name is as logs have it: "fence[1]~2".
	Name string
	// State is the control state, "STATE▸ROW" with a command in flight.
	State string
	// Untouched: it is as a new world would have it.
	Untouched bool
}

// Instances lists the instances of the world by machine and slot.
func (w *World) Instances() []Instance {
	var out []Instance
	var facts []uint64
	rules := w.State.Rules()
	for m := range machine.MachineID(rules.NumMachines()) {
		for slot := range w.State.Capacity(m) {
			r := w.State.Ref(m, slot)
			s, inFlight, _ := w.State.State(r)
			i := Instance{Ref: r, Name: rules.RefName(r), State: w.State.StateName(r), Untouched: r.Gen == 0 && s == 0 && !inFlight}
			facts = w.State.AppendFacts(facts[:0], r)
			for _, v := range facts {
				i.Untouched = i.Untouched && v == 0
			}
			out = append(out, i)
		}
	}
	return out
}

// Run replays a log. If src can seek, it is read again, from where it stood,
// to explain a divergence.
//
// Errors: [*RulesError], [*Divergence], [*GapError], [*WorldError], those of
// [translog.NewReader] and [translog.Reader.Next], and the Observer's, wrapped.
// The Result is nil only if there is no header.
func Run(src io.Reader, rules *machine.Rules, o Options) (*Result, error) {
	p, err := newPlayer(src, rules, o)
	if err != nil {
		if p == nil {
			return nil, err
		}
		return p.result, err
	}
	err = p.play()
	p.result.Closed = p.reader.Closed()
	var d *Divergence
	if errors.As(err, &d) {
		p.explain(d)
	}
	return p.result, err
}

// RulesError says that the log was recorded under other rules.
type RulesError struct {
	// Logged and Given are the hashes, in hexadecimal.
	Logged, Given string
	// Machines are those that differ. There are none if only their order does.
	Machines []MachineDifference
}

// MachineDifference is a machine that the log and the given rules have
// different rules of. A hash is empty where there is no such machine.
type MachineDifference struct {
	Name, Logged, Given string
}

// Error names the machines whose rules changed.
func (e *RulesError) Error() string {
	s := fmt.Sprintf("the log was recorded under other rules: %s, given %s", e.Logged, e.Given)
	if len(e.Machines) == 0 {
		return s + ": the machines come in another order"
	}
	for _, m := range e.Machines {
		switch {
		case m.Given == "":
			s += fmt.Sprintf("; machine %s is not among the given rules", m.Name)
		case m.Logged == "":
			s += fmt.Sprintf("; machine %s is not in the log", m.Name)
		default:
			s += fmt.Sprintf("; machine %s changed: %s, given %s", m.Name, m.Logged, m.Given)
		}
	}
	return s
}

// compareRules returns nil if the log is of the rules.
func compareRules(log, given *translog.Header) *RulesError {
	if log.Rules == given.Rules {
		return nil
	}
	e := &RulesError{Logged: log.Rules, Given: given.Rules}
	hashes := map[string]string{}
	for _, m := range given.Machines {
		hashes[m.Name] = m.Hash
	}
	for _, m := range log.Machines {
		if h := hashes[m.Name]; h != m.Hash {
			e.Machines = append(e.Machines, MachineDifference{Name: m.Name, Logged: m.Hash, Given: h})
		}
		delete(hashes, m.Name)
	}
	for _, m := range given.Machines {
		if h, left := hashes[m.Name]; left {
			e.Machines = append(e.Machines, MachineDifference{Name: m.Name, Given: h})
		}
	}
	return e
}

// GapError says that the replay cannot go on: records are lost.
type GapError struct {
	Place translog.Place
	World int
	Name  string
	Gap   translog.Gap
}

// Error says which records are lost.
func (e *GapError) Error() string {
	return fmt.Sprintf("world %d %q: %d records are lost, %d to %d: what comes after them cannot be replayed (%v)",
		e.World, e.Name, e.Gap.Count, e.Gap.First, e.Gap.First+e.Gap.Count-1, e.Place)
}

// WorldError says that the log opens a world that cannot be.
type WorldError struct {
	Place translog.Place
	World int
	Name  string
	Err   error
}

// Error says what is wrong with the world.
func (e *WorldError) Error() string {
	return fmt.Sprintf("world %d %q: %v (%v)", e.World, e.Name, e.Err, e.Place)
}

// Unwrap returns what is wrong.
func (e *WorldError) Unwrap() error { return e.Err }

// ErrTooMuch is wrapped in a [WorldError] for a log that opens more than
// Options allow.
var ErrTooMuch = errors.New("more than the options allow")
