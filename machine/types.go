package machine

import (
	"fmt"
	"go/token"
	"strconv"
	"strings"
)

// Kind is the kind of a [Type].
type Kind uint8

// The kinds of values. Every value is held in one 64-bit word.
const (
	Bool    Kind = iota // 0 or 1
	Int                 // 0 to Max
	ID                  // an identity of a sort: equality only, 0 is none
	RefTo               // an instance of a machine: a packed [Ref], 0 is none
	Enum                // an index into Names
	Code                // a 32-bit return code
	stateOf             // a state of a machine, in expressions only
)

// Type is the parsed form of [Fact.Type].
type Type struct {
	Kind  Kind
	Max   uint64   // Int
	Name  string   // the sort of an ID, the machine of a RefTo
	Names []string // Enum

	peer MachineID // RefTo, once compiled
	sort int       // ID, once compiled
}

// ParseType reads the text forms listed at [Fact.Type].
func ParseType(text string) (Type, error) {
	if len(text) > maxText {
		return Type{}, fmt.Errorf("type of %d bytes: at most %d", len(text), maxText)
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "bool", "code":
		if rest != "" {
			return Type{}, fmt.Errorf("type %q: %s takes nothing after it", text, word)
		}
		if word == "code" {
			return Type{Kind: Code}, nil
		}
		return Type{Kind: Bool}, nil
	case "int":
		n, err := strconv.ParseUint(rest, 10, 63)
		if err != nil || n == 0 {
			return Type{}, fmt.Errorf("type %q: want int N with N from 1", text)
		}
		return Type{Kind: Int, Max: n}, nil
	case "id", "ref":
		if !token.IsIdentifier(rest) {
			return Type{}, fmt.Errorf("type %q: want %s NAME", text, word)
		}
		if word == "id" {
			return Type{Kind: ID, Name: rest}, nil
		}
		return Type{Kind: RefTo, Name: rest}, nil
	case "enum":
		names := strings.Split(rest, "|")
		seen := map[string]bool{}
		for i, n := range names {
			n = strings.TrimSpace(n)
			names[i] = n
			if !token.IsIdentifier(n) || seen[n] || n == "true" || n == "false" || n == "none" {
				return Type{}, fmt.Errorf("type %q: %q is not a fresh name", text, n)
			}
			seen[n] = true
		}
		return Type{Kind: Enum, Names: names}, nil
	}
	return Type{}, fmt.Errorf("type %q: want bool, int N, id SORT, ref MACHINE, enum a|b or code", text)
}

// String returns the text that [ParseType] reads.
func (t Type) String() string {
	switch t.Kind {
	case Bool:
		return "bool"
	case Int:
		return "int " + strconv.FormatUint(t.Max, 10)
	case ID:
		return "id " + t.Name
	case RefTo:
		return "ref " + t.Name
	case Enum:
		return "enum " + strings.Join(t.Names, "|")
	case Code:
		return "code"
	}
	return "state of " + t.Name
}

// matches reports whether values of the two types may be compared or assigned.
func (t Type) matches(o Type) bool {
	if t.Kind != o.Kind {
		return false
	}
	switch t.Kind {
	case ID, RefTo, stateOf:
		return t.Name == o.Name
	case Enum:
		return strings.Join(t.Names, "|") == strings.Join(o.Names, "|")
	}
	return true
}

// Format prints a value of the type as rules, logs and scenarios write it.
func (t Type) Format(v uint64) string {
	switch t.Kind {
	case Bool:
		if v == 0 {
			return "false"
		}
		return "true"
	case ID:
		if v == 0 {
			return "none"
		}
	case RefTo:
		if v == 0 {
			return "none"
		}
		return UnpackRef(v).local()
	case Enum:
		if v < uint64(len(t.Names)) {
			return t.Names[v]
		}
	case Code:
		return strconv.Itoa(int(int32(uint32(v))))
	}
	return strconv.FormatUint(v, 10)
}

// Parse is the inverse of [Type.Format]. A bad value is an error that says
// what is wanted.
func (t Type) Parse(s string) (uint64, error) {
	switch t.Kind {
	case Bool:
		switch s {
		case "true":
			return 1, nil
		case "false":
			return 0, nil
		}
		return 0, fmt.Errorf("%q: want true or false", s)
	case ID:
		if s == "none" {
			return 0, nil
		}
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: want a number or none", s)
		}
		return v, nil
	case RefTo:
		if s == "none" {
			return 0, nil
		}
		r, err := parseLocalRef(s)
		if err != nil {
			return 0, err
		}
		return r.Pack(), nil
	case Enum:
		for i, n := range t.Names {
			if n == s {
				return uint64(i), nil
			}
		}
		return 0, fmt.Errorf("%q: want one of %s", s, strings.Join(t.Names, ", "))
	case Code:
		v, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q: want a 32-bit number", s)
		}
		return CodeWord(int32(v)), nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || (t.Kind == Int && v > t.Max) {
		return 0, fmt.Errorf("%q: want a number from 0 to %d", s, t.Max)
	}
	return v, nil
}

// check reports whether v is a value of the type.
func (t *Type) check(v uint64) bool {
	b := t.bounds()
	return b.hold(v)
}

// bounds are what check looks at, worked out.
type bounds struct {
	most uint64
	// mask and machine: of a Ref, the bits that say whose it is, and which they
	// must be unless the Ref is none.
	mask, machine uint64
}

func (t *Type) bounds() bounds {
	switch t.Kind {
	case Bool:
		return bounds{most: 1}
	case Int:
		return bounds{most: t.Max}
	case Enum:
		return bounds{most: uint64(len(t.Names)) - 1}
	case Code:
		return bounds{most: CodeWord(-1)}
	case RefTo:
		return bounds{most: 1<<56 - 1, mask: 0xff, machine: uint64(t.peer) + 1}
	}
	return bounds{most: 1<<64 - 1}
}

func (b *bounds) hold(v uint64) bool {
	return v <= b.most && (v&b.mask == b.machine || v == 0)
}

// CodeWord is a return code as a value of type code.
func CodeWord(c int32) uint64 { return uint64(uint32(c)) }

// BoolWord is a truth value as a value of type bool.
func BoolWord(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// MachineID is the position of a machine among its [Rules].
type MachineID uint8

// Ref names one occupancy of one slot of one machine in a world. A Ref whose
// generation has passed is stale: it reads and changes nothing.
type Ref struct {
	Machine MachineID
	Slot    uint16
	Gen     uint32
}

// Pack returns the Ref as one word, never 0.
func (r Ref) Pack() uint64 {
	return (uint64(r.Machine) + 1) | uint64(r.Slot)<<8 | uint64(r.Gen)<<24
}

// UnpackRef is the inverse of [Ref.Pack]. The word must not be 0.
func UnpackRef(w uint64) Ref {
	return Ref{Machine: MachineID(w&0xff - 1), Slot: uint16(w >> 8), Gen: uint32(w >> 24)}
}

// local prints the parts of a Ref for readers who know no machine names: machine.slot.generation.
func (r Ref) local() string { return fmt.Sprintf("%d.%d.%d", r.Machine, r.Slot, r.Gen) }

func parseLocalRef(s string) (Ref, error) {
	var r Ref
	if n, err := fmt.Sscanf(s, "%d.%d.%d", &r.Machine, &r.Slot, &r.Gen); n != 3 || err != nil || r.local() != s || UnpackRef(r.Pack()) != r {
		return Ref{}, fmt.Errorf("%q: want machine.slot.generation or none", s)
	}
	return r, nil
}
