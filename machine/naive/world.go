// Package naive is a second reading of what package machine runs: it walks the
// same Definitions with maps and names, copies the whole world before every step
// and puts the copy back if the step does not happen. It is slow, has no dense
// tables and shares no code with the engine but the parsing of expressions and
// types, which is what makes it an oracle: the engine's tests drive both with
// the same events and compare.
package naive

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Ref names one occupancy of one slot of a machine. The zero Ref is none.
type Ref struct {
	Machine string
	Slot    int
	Gen     int
}

// ID is an identity. 0 is none.
type ID uint64

// Value is a value with its type: V is a bool, a uint64 for an int, an ID, a
// Ref, a string for a name of an enum or of a state, or an int32 for a code.
type Value struct {
	Type machine.Type
	V    any
}

// Config sizes a [World].
type Config struct {
	Pools map[string]int
	Queue int
}

// World is what [machine.World] is.
type World struct {
	defs   []*machine.Definition
	config Config

	instances map[Ref]*instance // Gen is 0 in the key
	queue     []waiting
	fresh     map[string]uint64
	depth     []Ref // who is in the middle of the step
}

type instance struct {
	gen    int
	state  string
	facts  map[string]Value
	flight *flight
}

// flight is a command that is out.
type flight struct {
	row  int
	args map[string]Value
	root Ref
	call []Value
}

// waiting is an event that was emitted.
type waiting struct {
	root, to Ref
	event    string
	args     []Value
}

// New makes a world of Definitions, which must compile and must not be opaque.
func New(c Config, defs ...*machine.Definition) (*World, error) {
	for _, d := range defs {
		for _, r := range d.Rows {
			if r.GuardFunc != nil || r.DoFunc != nil {
				return nil, fmt.Errorf("%s/%s is opaque", d.Name, r.ID)
			}
		}
	}
	w := &World{defs: defs, config: c, instances: map[Ref]*instance{}, fresh: map[string]uint64{}}
	for _, d := range defs {
		for s := range w.Capacity(d.Name) {
			w.instances[Ref{Machine: d.Name, Slot: s}] = w.born(d, 0)
		}
	}
	return w, nil
}

func (w *World) born(d *machine.Definition, gen int) *instance {
	x := &instance{gen: gen, state: d.States[0].Name, facts: map[string]Value{}}
	for _, f := range d.Facts {
		x.facts[f.Name] = zero(typeOf(f))
	}
	return x
}

func typeOf(f machine.Fact) machine.Type {
	t, err := machine.ParseType(f.Type)
	if err != nil {
		panic(err)
	}
	return t
}

func zero(t machine.Type) Value {
	switch t.Kind {
	case machine.Bool:
		return Value{t, false}
	case machine.Int:
		return Value{t, uint64(0)}
	case machine.ID:
		return Value{t, ID(0)}
	case machine.RefTo:
		return Value{t, Ref{}}
	case machine.Enum:
		return Value{t, t.Names[0]}
	}
	return Value{t, int32(0)}
}

// Capacity returns how many instances of a machine there are.
func (w *World) Capacity(name string) int {
	if d := w.def(name); d.Pool != "" {
		return w.config.Pools[d.Pool]
	}
	return 1
}

func (w *World) def(name string) *machine.Definition {
	for _, d := range w.defs {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// At returns the present occupant of a slot.
func (w *World) At(name string, slot int) Ref {
	return Ref{name, slot, w.instances[Ref{Machine: name, Slot: slot}].gen}
}

// find returns the instance of a Ref and whether the Ref is of the present.
func (w *World) find(r Ref) (x *instance, current bool) {
	x = w.instances[Ref{Machine: r.Machine, Slot: r.Slot}]
	return x, x != nil && x.gen == r.Gen
}

// State returns the name of the state of a slot's occupant: "STATE▸ROW" in flight.
func (w *World) State(name string, slot int) string {
	x, _ := w.find(Ref{Machine: name, Slot: slot})
	if x.flight != nil {
		return x.state + "▸" + w.def(name).Rows[x.flight.row].ID
	}
	return x.state
}

// Fact returns a fact of a slot's occupant.
func (w *World) Fact(name string, slot int, fact string) Value {
	x, _ := w.find(Ref{Machine: name, Slot: slot})
	return x.facts[fact]
}

// Waiting describes the events that wait, in order.
func (w *World) Waiting() []string {
	var out []string
	for _, e := range w.queue {
		out = append(out, fmt.Sprint(e.root, e.to, e.event, len(e.args)))
	}
	return out
}

// HasNext reports whether an event of the root's operation is waiting.
func (w *World) HasNext(root Ref) bool {
	return slices.ContainsFunc(w.queue, func(e waiting) bool { return e.root == root })
}

// Reserve makes sure that no fresh identity of the sort is v or less.
func (w *World) Reserve(sort string, v uint64) { w.fresh[sort] = max(w.fresh[sort], v) }

// clone copies everything that a step may change.
func (w *World) clone() *World {
	c := &World{defs: w.defs, config: w.config, instances: map[Ref]*instance{}, fresh: maps.Clone(w.fresh), queue: slices.Clone(w.queue)}
	for r, x := range w.instances {
		y := *x
		y.facts = maps.Clone(x.facts)
		c.instances[r] = &y
	}
	return c
}

// rowsOf returns the positions of the rows for an event in a state, or during
// the row in flight there.
func (w *World) rowsOf(d *machine.Definition, x *instance, event string) []int {
	at := x.state
	if x.flight != nil {
		at += "▸" + d.Rows[x.flight.row].ID
	}
	var out []int
	for i, r := range d.Rows {
		if r.Event == event && slices.Contains(strings.Split(r.From, "|"), at) {
			out = append(out, i)
		}
	}
	return out
}
