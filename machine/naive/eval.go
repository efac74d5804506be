package naive

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
)

// scope is what an expression sees.
type scope struct {
	w     *World
	def   *machine.Definition // whose facts bare names are
	facts map[string]Value
	state string
	args  map[string]Value
	views map[string]Value
	res   *machine.Result
	self  Ref
	// home is the machine beside whose slot peers stand: that of self.
	home string
	said []string // the rows whose guards said no
}

var (
	truth  = machine.Type{Kind: machine.Bool}
	number = machine.Type{Kind: machine.Int, Max: 1<<63 - 1}
	code   = machine.Type{Kind: machine.Code}
)

// state is a Value of a state's name.
type stateName string

func parse(text string) *machine.Expr {
	e, err := machine.ParseExpr(text)
	if err != nil {
		panic(err)
	}
	return e
}

// holds evaluates a condition.
func (s *scope) holds(text string) bool {
	return s.true(parse(text))
}

// true evaluates a condition. An answer's value is true if it is not 0.
func (s *scope) true(e *machine.Expr) bool {
	switch v := s.eval(e, &truth).V.(type) {
	case stray:
		return true
	case bool:
		return v
	}
	panic("not a condition: " + e.String())
}

// literal reports whether an expression takes its type from where it stands.
func (s *scope) literal(e *machine.Expr) bool {
	switch e.Op {
	case machine.OpConst, machine.OpText:
		return true
	case machine.OpName:
		_, fact := s.facts[e.Name]
		return !fact && !slices.Contains([]string{"true", "false", "self", "state"}, e.Name)
	case machine.OpField:
		return e.Peer == "res" && e.Name == "value"
	}
	return false
}

// eval evaluates an expression. want is the type of the place where it stands,
// or nil.
func (s *scope) eval(e *machine.Expr, want *machine.Type) Value {
	switch e.Op {
	case machine.OpConst:
		if want != nil && want.Kind == machine.Code {
			return Value{code, int32(e.Value)}
		}
		return Value{number, uint64(e.Value)}
	case machine.OpText:
		return Value{V: stateName(e.Name)}
	case machine.OpName:
		return s.name(e.Name, want)
	case machine.OpField:
		return s.field(e, want)
	case machine.OpAnd, machine.OpOr:
		for _, a := range e.Args {
			if s.true(a) != (e.Op == machine.OpAnd) {
				return Value{truth, e.Op == machine.OpOr}
			}
		}
		return Value{truth, e.Op == machine.OpAnd}
	case machine.OpNot:
		return Value{truth, !s.true(e.Args[0])}
	case machine.OpEq:
		l, r := s.both(e)
		return Value{truth, l.V == r.V}
	case machine.OpLess:
		return Value{truth, s.eval(e.Args[0], &number).V.(uint64) < s.eval(e.Args[1], &number).V.(uint64)}
	case machine.OpCall:
		return s.over(e)
	}
	panic("no such expression: " + e.String())
}

// both evaluates two sides of ==, of which one may give the other its type.
func (s *scope) both(e *machine.Expr) (l, r Value) {
	if s.literal(e.Args[0]) && !s.literal(e.Args[1]) {
		r = s.eval(e.Args[1], nil)
		return s.eval(e.Args[0], &r.Type), r
	}
	l = s.eval(e.Args[0], nil)
	return l, s.eval(e.Args[1], &l.Type)
}

func (s *scope) name(name string, want *machine.Type) Value {
	switch name {
	case "true", "false":
		return Value{truth, name == "true"}
	case "self":
		return Value{machine.Type{Kind: machine.RefTo, Name: s.home}, s.self}
	case "state":
		return Value{V: stateName(s.state)}
	}
	if v, ok := s.facts[name]; ok {
		return v
	}
	if name == "none" {
		return zero(*want)
	}
	return Value{*want, name} // of an enum
}

func (s *scope) field(e *machine.Expr, want *machine.Type) Value {
	switch e.Peer {
	case "arg":
		return s.args[e.Name]
	case "view":
		return s.views[e.Name]
	case "res":
		switch e.Name {
		case "code":
			return Value{code, s.res.Code}
		case "last":
			return Value{code, s.res.Last}
		case "accepted":
			return Value{truth, s.res.Accepted}
		}
		t := number
		if want != nil {
			t = *want
		}
		return s.w.FromWord(t, s.res.Value)
	}
	// A fact of another instance: by a ref that is a fact, or by name.
	var at Ref
	if v, ok := s.facts[e.Peer]; ok && v.Type.Kind == machine.RefTo {
		at = v.V.(Ref)
		if x, current := s.w.find(at); !current {
			return s.ofNobody(v.Type.Name, e.Name)
		} else {
			return s.of(x, e.Name)
		}
	}
	at = s.beside(e.Peer)
	x, _ := s.w.find(at)
	return s.of(x, e.Name)
}

// beside returns the peer of a name: the only instance of it, or the one in the
// same slot.
func (s *scope) beside(name string) Ref {
	if s.w.def(name).Pool == "" {
		return s.w.At(name, 0)
	}
	return s.w.At(name, s.self.Slot)
}

func (s *scope) of(x *instance, fact string) Value {
	if fact == "state" {
		return Value{V: stateName(x.state)}
	}
	return x.facts[fact]
}

// ofNobody is what a ref that names nothing, or the past, reads.
func (s *scope) ofNobody(name, fact string) Value {
	return s.of(s.w.born(s.w.def(name), 0), fact)
}

// over evaluates any, count and first.
func (s *scope) over(e *machine.Expr) Value {
	d := s.w.def(e.Args[0].Name)
	n := uint64(0)
	for slot := range s.w.Capacity(d.Name) {
		at := s.w.At(d.Name, slot)
		x, _ := s.w.find(at)
		in := &scope{w: s.w, def: d, facts: x.facts, state: x.state, self: s.self, home: s.home}
		if !in.true(e.Args[1]) {
			continue
		}
		n++
		if e.Name == "first" {
			return Value{machine.Type{Kind: machine.RefTo, Name: d.Name}, at}
		}
	}
	switch e.Name {
	case "any":
		return Value{truth, n > 0}
	case "first":
		return zero(machine.Type{Kind: machine.RefTo, Name: d.Name})
	}
	return Value{number, n}
}

// fits reports whether a value is one of the type.
func (w *World) fits(t machine.Type, v Value) bool {
	switch x := v.V.(type) {
	case bool:
		return t.Kind == machine.Bool
	case uint64:
		return t.Kind == machine.Int && x <= t.Max
	case ID:
		return t.Kind == machine.ID
	case Ref:
		return t.Kind == machine.RefTo && (x == Ref{} || x.Machine == t.Name)
	case string:
		return t.Kind == machine.Enum && slices.Contains(t.Names, x)
	case int32:
		return t.Kind == machine.Code
	}
	return false // stray bits: see FromWord
}

// Word returns a value as the engine holds it.
func (w *World) Word(v Value) uint64 {
	switch x := v.V.(type) {
	case bool:
		return machine.BoolWord(x)
	case uint64:
		return x
	case ID:
		return uint64(x)
	case int32:
		return machine.CodeWord(x)
	case stray:
		return uint64(x)
	case string:
		return uint64(slices.Index(v.Type.Names, x))
	case Ref:
		if x == (Ref{}) {
			return 0
		}
		return machine.Ref{Machine: machine.MachineID(w.index(x.Machine)), Slot: uint16(x.Slot), Gen: uint32(x.Gen)}.Pack()
	}
	panic(fmt.Sprintf("no word for %v", v))
}

func (w *World) index(name string) int {
	return slices.IndexFunc(w.defs, func(d *machine.Definition) bool { return d.Name == name })
}

// stray is a word that is no value of its type.
type stray uint64

// FromWord is the inverse of [World.Word].
func (w *World) FromWord(t machine.Type, v uint64) Value {
	switch t.Kind {
	case machine.Bool:
		if v < 2 {
			return Value{t, v == 1}
		}
	case machine.Int:
		return Value{t, v}
	case machine.ID:
		return Value{t, ID(v)}
	case machine.Code:
		if v>>32 == 0 {
			return Value{t, int32(uint32(v))}
		}
	case machine.Enum:
		if v < uint64(len(t.Names)) {
			return Value{t, t.Names[v]}
		}
	case machine.RefTo:
		if v == 0 {
			return zero(t)
		}
		if r := machine.UnpackRef(v); int(r.Machine) < len(w.defs) && r.Pack() == v {
			return Value{t, Ref{w.defs[r.Machine].Name, int(r.Slot), int(r.Gen)}}
		}
	}
	return Value{t, stray(v)}
}
