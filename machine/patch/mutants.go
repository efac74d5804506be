package patch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Mutants lists every single change of every row, in the order of the rows. A
// patch's text is its id: it stays as long as what it changes does.
//
// A row is dropped. Of a guard, and of a target's when, all is dropped and
// negated, and each operand of a && or || is. A refusal or deferral becomes
// acceptance. A command is taken to have answered ok. Each outcome goes where
// each other one goes. A target is dropped, and leads to each other state. Each
// update is dropped and changed, each event that is taken along or sent is
// dropped, and each word, number and truth that it bears is changed. A code, a
// return value and an error are dropped.
//
// Some are no rules; [machine.Compile] says so.
func Mutants(defs []*machine.Definition) []Patch {
	var out []Patch
	for _, d := range defs {
		for i := range d.Rows {
			m := mutator{defs: defs, d: d, row: &d.Rows[i], at: Patch{Machine: d.Name, Row: d.Rows[i].ID, Target: Only}}
			m.all()
			out = append(out, m.out...)
		}
	}
	return out
}

type mutator struct {
	defs []*machine.Definition
	d    *machine.Definition
	row  *machine.Row
	at   Patch
	out  []Patch
}

func (m *mutator) add(f Field, v Verb, part, becomes string) {
	p := m.at
	p.Field, p.Verb, p.Part, p.New = f, v, part, becomes
	// The second part of a text is told from the first.
	for slices.Contains(m.out, p) {
		p.Nth++
	}
	m.out = append(m.out, p)
}

func (m *mutator) all() {
	r := m.row
	m.add(Row, Drop, "", "")
	if r.Guard != "else" {
		m.expr(Guard, r.Guard)
	}
	if r.Refuse != "" {
		m.add(Refuse, Drop, "", "")
	}
	if r.Defer {
		m.add(Defer, Drop, "", "")
	}
	m.updates(Before, r.Before)
	m.sends(With, r.With)
	if r.Command != "" {
		m.add(Command, Drop, "", "")
		m.outcomes()
	}
	for i := range r.Then {
		if len(r.Then) > 1 {
			m.at.Target = i
			m.add(Then, Drop, "", "")
		}
		m.target(&r.Then[i])
	}
}

func (m *mutator) target(t *machine.Target) {
	for _, s := range m.d.States {
		if s.Name != t.To && (t.To != "" || s.Name != m.row.From) {
			m.add(To, Set, "", s.Name)
		}
	}
	m.expr(When, t.When)
	m.updates(Do, t.Do)
	m.sends(ThenWith, t.With)
	m.sends(Emit, t.Emit)
	for _, x := range []struct {
		f    Field
		text string
	}{{Code, t.Code}, {Return, t.Return}, {Error, string(t.Error)}} {
		if x.text != "" {
			m.add(x.f, Drop, "", "")
		}
	}
}

// expr drops and negates an expression and each part of it.
func (m *mutator) expr(f Field, text string) {
	e, err := machine.ParseExpr(text)
	if text == "" || err != nil {
		return
	}
	m.add(f, Drop, "", "")
	m.add(f, Negate, "", "")
	var walk func(e *machine.Expr)
	walk = func(e *machine.Expr) {
		if e.Op != machine.OpAnd && e.Op != machine.OpOr && e.Op != machine.OpNot {
			return
		}
		for _, a := range e.Args {
			if e.Op != machine.OpNot {
				m.add(f, Drop, a.String(), "")
				m.add(f, Negate, a.String(), "")
			}
			walk(a)
		}
	}
	walk(e)
}

// outcomes lets each outcome go where another one goes, once for each place.
func (m *mutator) outcomes() {
	then := answered(m.row.Then)
	goes := func(o machine.Outcome) string {
		var s strings.Builder
		for i, on := range then {
			if slices.Contains(on, o) {
				s.WriteString(strconv.Itoa(i) + " ")
			}
		}
		return s.String()
	}
	for a := range machine.Outcome(machine.NumOutcomes) {
		seen := []string{goes(a)}
		for b := range machine.Outcome(machine.NumOutcomes) {
			if g := goes(b); !slices.Contains(seen, g) {
				seen = append(seen, g)
				m.add(Outcome, Set, a.String(), b.String())
			}
		}
	}
}

func (m *mutator) updates(f Field, text string) {
	us, err := machine.ParseUpdates(text)
	if err != nil {
		return
	}
	for _, u := range us {
		m.add(f, Drop, u.String(), "")
		if other := m.changed(u); other != "" {
			m.add(f, Set, u.String(), other)
		}
	}
}

// changed is another update of the same fact, or "" if there is none to think of.
func (m *mutator) changed(u machine.Update) string {
	switch u.Op {
	case machine.Increment:
		return u.Fact + "--"
	case machine.Decrement:
		return u.Fact + "++"
	}
	i := slices.IndexFunc(m.d.Facts, func(f machine.Fact) bool { return f.Name == u.Fact })
	if i < 0 {
		return ""
	}
	v := another(m.d.Facts[i].Type, u.Expr)
	if v == "" {
		return ""
	}
	return u.Fact + " = " + v
}

// another is another value of the type than the expression has, or "" if there
// is none to think of.
func another(typ string, e *machine.Expr) string {
	words := strings.Fields(typ)
	if len(words) == 0 {
		return ""
	}
	switch words[0] {
	case "bool":
		switch {
		case e.Op == machine.OpName && e.Name == "true":
			return "false"
		case e.Op == machine.OpName && e.Name == "false":
			return "true"
		case e.Op == machine.OpField && e.Peer == "res":
			return "" // an answer is whatever is wanted, but not the operand of a !
		}
		return negated(e).String()
	case "enum":
		all := strings.Split(words[len(words)-1], "|")
		if i := slices.Index(all, e.Name); i >= 0 && (e.Op == machine.OpName || e.Op == machine.OpText) {
			return all[(i+1)%len(all)]
		}
		return all[0]
	case "int":
		if e.Op != machine.OpConst {
			return "0"
		}
		if most := words[len(words)-1]; strconv.FormatInt(e.Value, 10) == most {
			return strconv.FormatInt(e.Value-1, 10)
		}
		return strconv.FormatInt(e.Value+1, 10)
	case "code":
		if e.Op != machine.OpConst {
			return "0"
		}
		return strconv.FormatInt(e.Value+1, 10)
	case "id", "ref":
		switch {
		case e.Op != machine.OpName || e.Name != "none":
			return "none"
		case words[0] == "id":
			return "fresh()"
		}
	}
	return ""
}

func (m *mutator) sends(f Field, list []string) {
	for _, text := range list {
		inv, err := machine.ParseInvocation(text)
		if err != nil {
			continue
		}
		s := inv.String()
		m.add(f, Drop, s, "")
		args := m.arguments(inv)
		for i, e := range inv.Args {
			if i >= len(args) {
				break
			}
			v := another(args[i].Type, e)
			if v == "" || strings.HasPrefix(args[i].Type, "id ") || strings.HasPrefix(args[i].Type, "ref ") {
				continue
			}
			other, err := machine.ParseExpr(v)
			if err != nil {
				continue
			}
			changed := inv
			changed.Args = slices.Clone(inv.Args)
			changed.Args[i] = other
			m.add(f, Set, s, changed.String())
		}
	}
}

// arguments finds what an event that is sent bears.
func (m *mutator) arguments(inv machine.Invocation) []machine.Fact {
	name := inv.Peer
	for _, f := range m.d.Facts {
		if to, ok := strings.CutPrefix(f.Type, "ref "); ok && f.Name == name {
			name = strings.TrimSpace(to)
		}
	}
	if name == "self" {
		name = m.d.Name
	}
	for _, d := range m.defs {
		if d.Name != name {
			continue
		}
		for _, e := range d.Events {
			if e.Name == inv.Name {
				return e.Args
			}
		}
	}
	return nil
}
