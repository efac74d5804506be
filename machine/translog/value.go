package translog

import (
	"fmt"
	"math"
	"strconv"

	"github.com/valyala/fastjson"

	"github.com/runfence/runfence/machine"
)

// A value is written by its type: true and false, numbers, signed codes, names
// of enums and states, references as machine[slot]~generation, and "none". A
// word that is no value of its type, as an argument that was refused may be,
// is written as a bare number.

func (n *names) appendValue(b []byte, f *field, v uint64) []byte {
	if f.states != nil {
		return appendName(b, f.states.states, v)
	}
	switch f.ty.Kind {
	case machine.Bool:
		switch v {
		case 0:
			return append(b, "false"...)
		case 1:
			return append(b, "true"...)
		}
	case machine.ID:
		if v == 0 {
			return append(b, `"none"`...)
		}
	case machine.RefTo:
		if v == 0 {
			return append(b, `"none"`...)
		}
		if r := machine.UnpackRef(v); r.Pack() == v {
			return append(n.appendRef(append(b, '"'), r), '"')
		}
	case machine.Enum:
		if v < uint64(len(f.ty.Names)) {
			b = append(b, '"')
			b = append(b, f.ty.Names[v]...) // an identifier
			return append(b, '"')
		}
	case machine.Code:
		if v <= math.MaxUint32 {
			return strconv.AppendInt(b, int64(int32(uint32(v))), 10)
		}
	}
	return strconv.AppendUint(b, v, 10)
}

func (n *names) parseValue(f *field, v *fastjson.Value) (uint64, error) {
	switch v.Type() {
	case fastjson.TypeTrue, fastjson.TypeFalse:
		if f.states == nil && f.ty.Kind == machine.Bool {
			return machine.BoolWord(v.Type() == fastjson.TypeTrue), nil
		}
		return 0, fmt.Errorf("%s: a truth value is not of type %s", f.name, f.typeName())
	case fastjson.TypeNumber:
		if f.states == nil && f.ty.Kind == machine.Code {
			if c, err := v.Int64(); err == nil && c >= math.MinInt32 && c <= math.MaxInt32 {
				return machine.CodeWord(int32(c)), nil
			}
		}
		u, err := v.Uint64()
		if err != nil {
			return 0, fmt.Errorf("%s: want a whole number: %w", f.name, err)
		}
		return u, nil
	case fastjson.TypeString:
	default:
		return 0, fmt.Errorf("%s: want a value of type %s", f.name, f.typeName())
	}
	s, err := v.StringBytes()
	if err != nil {
		return 0, err
	}
	if f.states != nil {
		if id, ok := f.states.stateID[string(s)]; ok {
			return uint64(id), nil
		}
		return 0, unknown("state", string(s), f.states.stateID)
	}
	switch f.ty.Kind {
	case machine.ID:
		if string(s) == "none" {
			return 0, nil
		}
	case machine.RefTo:
		if string(s) == "none" {
			return 0, nil
		}
		r, err := n.parseRef(s)
		if err != nil {
			return 0, err
		}
		if machine.UnpackRef(r.Pack()) != r {
			return 0, fmt.Errorf("%s: no such reference: %q", f.name, s)
		}
		return r.Pack(), nil
	case machine.Enum:
		for i, name := range f.ty.Names {
			if name == string(s) {
				return uint64(i), nil
			}
		}
		return 0, &nameFault{what: "name of " + f.ty.String(), name: string(s), hint: machine.Unknown("name of "+f.ty.String(), string(s), f.ty.Names)}
	}
	return 0, fmt.Errorf("%s: %q is not of type %s", f.name, s, f.typeName())
}

func (f *field) typeName() string {
	if f.states != nil {
		return "state of " + f.states.name
	}
	return f.ty.String()
}

// appendRef writes "fence[1]~2", as [machine.Rules.RefName] does; the slot is
// left out for slot 0 of a machine of one instance. A machine that is not
// among the rules is "#" and its number.
func (n *names) appendRef(b []byte, r machine.Ref) []byte {
	m := n.machine(r.Machine)
	if m != nil {
		b = append(b, m.name...)
	} else {
		b = strconv.AppendUint(append(b, '#'), uint64(r.Machine), 10)
	}
	if m == nil || m.pooled || r.Slot != 0 {
		b = strconv.AppendUint(append(b, '['), uint64(r.Slot), 10)
		b = append(b, ']')
	}
	if r.Gen != 0 {
		b = strconv.AppendUint(append(b, '~'), uint64(r.Gen), 10)
	}
	return b
}

func (n *names) parseRef(s []byte) (machine.Ref, error) {
	bad := func() (machine.Ref, error) {
		return machine.Ref{}, fmt.Errorf("%q: want machine[slot]~generation", s)
	}
	i := 0
	for i < len(s) && s[i] != '[' && s[i] != '~' {
		i++
	}
	var r machine.Ref
	if i > 0 && s[0] == '#' {
		v, rest, ok := number(s[1:i], math.MaxUint8)
		if !ok || len(rest) > 0 || int(v) < len(n.machines) {
			return bad()
		}
		r.Machine = machine.MachineID(v)
	} else if id, ok := n.machineID[string(s[:i])]; ok {
		r.Machine = id
	} else {
		return machine.Ref{}, unknown("machine", string(s[:i]), n.machineID)
	}
	rest := s[i:]
	if len(rest) > 0 && rest[0] == '[' {
		v, after, ok := number(rest[1:], math.MaxUint16)
		if !ok || len(after) == 0 || after[0] != ']' {
			return bad()
		}
		r.Slot, rest = uint16(v), after[1:]
	}
	if len(rest) > 0 && rest[0] == '~' {
		v, after, ok := number(rest[1:], math.MaxUint32)
		if !ok || v == 0 {
			return bad()
		}
		r.Gen, rest = uint32(v), after
	}
	if len(rest) > 0 {
		return bad()
	}
	return r, nil
}

// number reads decimal digits, at least one, up to most.
func number(s []byte, most uint64) (v uint64, rest []byte, ok bool) {
	i := 0
	for i < len(s) && i < 20 && s[i] >= '0' && s[i] <= '9' {
		v = v*10 + uint64(s[i]-'0')
		if v > most {
			return 0, s, false
		}
		i++
	}
	return v, s[i:], i > 0
}

// nameFault is a [NameError] before its place is known.
type nameFault struct {
	what, name, hint string
}

func (e *nameFault) Error() string { return e.hint }

func unknown[ID any](what, name string, known map[string]ID) error {
	names := make([]string, 0, len(known))
	for n := range known {
		names = append(names, n)
	}
	return &nameFault{what: what, name: name, hint: machine.Unknown(what, name, names)}
}
