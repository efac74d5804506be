package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Apply returns the definitions with the changes made, one after the other. The
// originals are left alone; a definition that no patch names is shared. Whether
// the result is rules at all is for [machine.Compile] to say.
//
// Rows are read in the order in which they are tried: where a change makes the
// first of two rows that said g and !g say something else, the second takes what
// is left; so does a row whose else is left without a row before it.
func Apply(defs []*machine.Definition, patches ...Patch) ([]*machine.Definition, error) {
	out := slices.Clone(defs)
	for _, p := range patches {
		i := slices.IndexFunc(out, func(d *machine.Definition) bool { return d.Name == p.Machine })
		if i < 0 {
			var known []string
			for _, d := range out {
				known = append(known, d.Name)
			}
			return nil, fmt.Errorf("%v: %s", p, machine.Unknown("machine", p.Machine, known))
		}
		d := clone(out[i])
		if err := apply(d, p); err != nil {
			return nil, fmt.Errorf("%v: %w", p, err)
		}
		out[i] = d
	}
	return out, nil
}

// clone copies as much of a definition as a patch may change.
func clone(d *machine.Definition) *machine.Definition {
	c := *d
	c.Rows = slices.Clone(d.Rows)
	for i := range c.Rows {
		r := &c.Rows[i]
		r.With, r.Then = slices.Clone(r.With), slices.Clone(r.Then)
		for j := range r.Then {
			t := &r.Then[j]
			t.With, t.Emit = slices.Clone(t.With), slices.Clone(t.Emit)
		}
	}
	return &c
}

func apply(d *machine.Definition, p Patch) error {
	i := slices.IndexFunc(d.Rows, func(r machine.Row) bool { return r.ID == p.Row })
	if i < 0 {
		var known []string
		for _, r := range d.Rows {
			known = append(known, r.ID)
		}
		return errors.New(machine.Unknown("row of "+d.Name, p.Row, known))
	}
	pairs := complements(d, i)
	if err := change(d, i, p); err != nil {
		return err
	}
	for _, j := range pairs {
		takeRest(d, i, j, p.Field == Row)
	}
	if p.Field == Row || p.Field == From {
		elseless(d)
	}
	return nil
}

func change(d *machine.Definition, i int, p Patch) error {
	r := &d.Rows[i]
	if !p.Field.ofTarget() {
		switch p.Field {
		case Row:
			d.Rows = slices.Delete(d.Rows, i, i+1)
			return nil
		case From:
			return changeFrom(r, p)
		case Guard:
			return changeGuard(d, i, p)
		case Refuse:
			if r.Refuse == "" {
				return errors.New("the row refuses nothing")
			}
			r.Refuse, r.Then = "", []machine.Target{{}}
			return nil
		case Defer:
			if !r.Defer {
				return errors.New("the row defers nothing")
			}
			r.Defer, r.Then = false, []machine.Target{{}}
			return nil
		case Before:
			return changeUpdates(&r.Before, p)
		case With:
			return changeSends(&r.With, p)
		case Command:
			return changeCommand(r, p)
		case Outcome:
			return remap(r, p)
		}
	}
	at := p.Target
	if at == Only {
		if at = 0; len(r.Then) != 1 {
			return fmt.Errorf("the row has %d targets: say which, then[0] to then[%d]", len(r.Then), len(r.Then)-1)
		}
	}
	if at >= len(r.Then) {
		return fmt.Errorf("the row has %d targets", len(r.Then))
	}
	t := &r.Then[at]
	switch p.Field {
	case Then:
		r.Then = slices.Delete(r.Then, at, at+1)
	case To:
		if !slices.ContainsFunc(d.States, func(s machine.State) bool { return s.Name == p.New }) {
			var known []string
			for _, s := range d.States {
				known = append(known, s.Name)
			}
			return errors.New(machine.Unknown("state of "+d.Name, p.New, known))
		}
		t.To = p.New
	case When:
		if p.Verb == Drop && p.Part == "" {
			return dropWhen(r, at)
		}
		return changeExpr(&t.When, p)
	case Do:
		return changeUpdates(&t.Do, p)
	case ThenWith:
		return changeSends(&t.With, p)
	case Emit:
		return changeSends(&t.Emit, p)
	case Code:
		return changeText(&t.Code, p)
	case Return:
		return changeText(&t.Return, p)
	case Error:
		return changeText((*string)(&t.Error), p)
	}
	return nil
}

func changeText(s *string, p Patch) error {
	if p.Verb == Drop && *s == "" {
		return errors.New("there is none")
	}
	*s = p.New
	return nil
}

func changeFrom(r *machine.Row, p Patch) error {
	if p.Verb == Set {
		r.From = p.New
		return nil
	}
	froms := strings.Split(r.From, "|")
	i := slices.Index(froms, p.Part)
	if i < 0 {
		return errors.New(machine.Unknown("state", p.Part, froms))
	}
	if len(froms) == 1 {
		return errors.New("it is the only state: drop the row")
	}
	r.From = strings.Join(slices.Delete(froms, i, i+1), "|")
	return nil
}

// changeGuard changes a guard. One that always holds is "true" where rows
// follow it, which can never be chosen then, and which Compile would refuse.
func changeGuard(d *machine.Definition, i int, p Patch) error {
	r := &d.Rows[i]
	if p.Verb == Set {
		r.Guard = p.New
		return nil
	}
	if r.Guard == "" || r.Guard == "else" {
		return errors.New("the row has no guard of its own")
	}
	if p.Verb == Drop && p.Part == "" {
		r.Guard = ""
		for _, cell := range cells(d) {
			if k := slices.Index(cell, i); k >= 0 && k < len(cell)-1 {
				r.Guard = "true"
			}
		}
		return nil
	}
	return changeExpr(&r.Guard, p)
}

// dropWhen lets a target take every answer of its outcomes; those after it
// never get one then, so they lose those outcomes.
func dropWhen(r *machine.Row, at int) error {
	if r.Then[at].When == "" {
		return errors.New("the target has no when")
	}
	r.Then[at].When = "true"
	return nil
}

// changeExpr drops, negates or replaces a part of an expression, or negates all of it.
func changeExpr(text *string, p Patch) error {
	if p.Verb == Set {
		*text = p.New
		return nil
	}
	e, err := machine.ParseExpr(*text)
	if err != nil {
		return err
	}
	if p.Part == "" {
		*text = negated(e).String()
		return nil
	}
	part, err := machine.ParseExpr(p.Part)
	if err != nil {
		return err
	}
	want, nth, done := part.String(), p.Nth, false
	var known []string
	var walk func(e *machine.Expr) *machine.Expr
	walk = func(e *machine.Expr) *machine.Expr {
		if e.Op != machine.OpAnd && e.Op != machine.OpOr && e.Op != machine.OpNot {
			return e
		}
		var args []*machine.Expr
		for _, a := range e.Args {
			if e.Op != machine.OpNot {
				s := a.String()
				known = append(known, s)
				if !done && s == want {
					if nth--; nth < 0 {
						if done = true; p.Verb == Negate {
							args = append(args, negated(a))
						}
						continue
					}
				}
			}
			args = append(args, walk(a))
		}
		if e.Op != machine.OpNot && len(args) == 1 {
			return args[0]
		}
		return &machine.Expr{Op: e.Op, Args: args}
	}
	e = walk(e)
	if !done {
		return errors.New(machine.Unknown("part", want, known))
	}
	*text = e.String()
	return nil
}

func negated(e *machine.Expr) *machine.Expr {
	if e.Op == machine.OpNot {
		return e.Args[0]
	}
	return &machine.Expr{Op: machine.OpNot, Args: []*machine.Expr{e}}
}

func changeUpdates(text *string, p Patch) error {
	us, err := machine.ParseUpdates(*text)
	if err != nil {
		return err
	}
	parts := make([]string, len(us))
	for i, u := range us {
		parts[i] = u.String()
	}
	read := func(s string) (string, error) {
		us, err := machine.ParseUpdates(s)
		if err == nil && len(us) != 1 {
			err = fmt.Errorf("%q: want one update", s)
		}
		if err != nil {
			return "", err
		}
		return us[0].String(), nil
	}
	parts, err = changeList(parts, "update", p, read)
	*text = strings.Join(parts, "; ")
	return err
}

func changeSends(sends *[]string, p Patch) error {
	read := func(s string) (string, error) {
		inv, err := machine.ParseInvocation(s)
		return inv.String(), err
	}
	parts := make([]string, len(*sends))
	for i, s := range *sends {
		var err error
		if parts[i], err = read(s); err != nil {
			return err
		}
	}
	var err error
	*sends, err = changeList(parts, "event", p, read)
	return err
}

// changeList drops, replaces or adds a part of a list whose texts read makes canonical.
func changeList(parts []string, what string, p Patch, read func(string) (string, error)) ([]string, error) {
	if p.Verb == Add {
		s, err := read(p.New)
		return append(parts, s), err
	}
	want, err := read(p.Part)
	if err != nil {
		return nil, err
	}
	nth := p.Nth
	for i, s := range parts {
		if s != want {
			continue
		}
		if nth--; nth >= 0 {
			continue
		}
		if p.Verb == Drop {
			return slices.Delete(parts, i, i+1), nil
		}
		parts[i], err = read(p.New)
		return parts, err
	}
	return nil, errors.New(machine.Unknown(what, want, parts))
}

// changeCommand replaces a command, or takes it to have answered ok already:
// what the row would have done then is done at once, and what the answer would
// have brought is what its first target hopes for.
func changeCommand(r *machine.Row, p Patch) error {
	if r.Command == "" {
		return errors.New("the row has no command")
	}
	if p.Verb == Set {
		r.Command = p.New
		return nil
	}
	var then []machine.Target
	for i, on := range answered(r.Then) {
		if !slices.Contains(on, machine.OK) {
			continue
		}
		t := r.Then[i]
		t.On = ""
		t.With = append(slices.Clone(r.With), t.With...)
		if err := unanswered(&t, r.Before); err != nil {
			return err
		}
		if then = append(then, t); t.When == "" {
			break
		}
	}
	r.Command, r.Before, r.With, r.Then = "", "", nil, then
	return nil
}

// unanswered takes out of a target what it says of an answer.
func unanswered(t *machine.Target, before string) error {
	if t.When != "" {
		e, err := machine.ParseExpr(t.When)
		if err != nil {
			return err
		}
		if e = hoped(e); e == nil {
			t.When = ""
		} else {
			t.When = e.String()
		}
	}
	us, err := machine.ParseUpdates(t.Do)
	if err != nil {
		return err
	}
	us = slices.DeleteFunc(us, func(u machine.Update) bool { return u.Op == machine.Assign && asks(u.Expr) })
	t.Do = strings.Trim(before+"; "+machine.FormatUpdates(us), "; ")
	for _, s := range []*string{&t.Code, &t.Return} {
		if strings.Contains(*s, "res.") {
			*s = ""
		}
	}
	for _, list := range [][]string{t.With, t.Emit} {
		for i, s := range list {
			inv, err := machine.ParseInvocation(s)
			if err != nil {
				return err
			}
			for j, a := range inv.Args {
				if asks(a) {
					inv.Args[j] = &machine.Expr{Op: machine.OpConst}
				}
			}
			list[i] = inv.String()
		}
	}
	return nil
}

// asks reports whether an expression reads an answer.
func asks(e *machine.Expr) bool {
	return e.Op == machine.OpField && e.Peer == "res" || slices.ContainsFunc(e.Args, asks)
}

// hoped is the condition without what it says of an answer, or nil if that was all.
func hoped(e *machine.Expr) *machine.Expr {
	if !asks(e) {
		return e
	}
	if e.Op != machine.OpAnd {
		return nil
	}
	var args []*machine.Expr
	for _, a := range e.Args {
		if a = hoped(a); a != nil {
			args = append(args, a)
		}
	}
	switch len(args) {
	case 0:
		return nil
	case 1:
		return args[0]
	}
	return &machine.Expr{Op: machine.OpAnd, Args: args}
}

// answered lists the outcomes of each target.
func answered(then []machine.Target) [][]machine.Outcome {
	out := make([][]machine.Outcome, len(then))
	var named [machine.NumOutcomes]bool
	for i, t := range then {
		for _, w := range strings.Fields(t.On) {
			if o, err := machine.ParseOutcome(w); err == nil {
				out[i], named[o] = append(out[i], o), true
			}
		}
	}
	for i, t := range then {
		if t.On == "" {
			for o := range machine.Outcome(machine.NumOutcomes) {
				if !named[o] {
					out[i] = append(out[i], o)
				}
			}
		}
	}
	return out
}

// remap has an outcome go where another one goes.
func remap(r *machine.Row, p Patch) error {
	if r.Command == "" {
		return errors.New("the row has no command, and so no outcomes")
	}
	a, err := machine.ParseOutcome(p.Part)
	if err != nil {
		return err
	}
	b, err := machine.ParseOutcome(p.New)
	if err != nil {
		return err
	}
	var then []machine.Target
	for i, on := range answered(r.Then) {
		on = slices.DeleteFunc(on, func(o machine.Outcome) bool { return o == a })
		if slices.Contains(on, b) {
			on = append(on, a)
		}
		if len(on) == 0 {
			continue
		}
		slices.Sort(on)
		t := r.Then[i]
		t.On = ""
		for _, o := range on {
			t.On = strings.TrimSpace(t.On + " " + o.String())
		}
		then = append(then, t)
	}
	r.Then = then
	return nil
}

// cells lists the rows of each state, or row in flight, and event, in order.
func cells(d *machine.Definition) [][]int {
	at := map[[2]string]int{}
	var out [][]int
	for i, r := range d.Rows {
		for f := range strings.SplitSeq(r.From, "|") {
			k := [2]string{f, r.Event}
			n, ok := at[k]
			if !ok {
				n = len(out)
				at[k], out = n, append(out, nil)
			}
			out[n] = append(out[n], i)
		}
	}
	return out
}

// complements lists the rows that take what row i leaves, by the negation of its guard.
func complements(d *machine.Definition, i int) (out []int) {
	for _, cell := range cells(d) {
		if len(cell) == 2 && cell[0] == i && opposite(d.Rows[i].Guard, d.Rows[cell[1]].Guard) && !slices.Contains(out, cell[1]) {
			out = append(out, cell[1])
		}
	}
	return out
}

func opposite(a, b string) bool {
	x, err1 := machine.ParseExpr(a)
	y, err2 := machine.ParseExpr(b)
	if err1 != nil || err2 != nil {
		return false
	}
	return negated(x).String() == y.String() || negated(y).String() == x.String()
}

// takeRest has row j take what row i, which was changed or is gone, leaves.
func takeRest(d *machine.Definition, i, j int, gone bool) {
	if gone {
		d.Rows[j-1].Guard = ""
		return
	}
	if !opposite(d.Rows[i].Guard, d.Rows[j].Guard) {
		d.Rows[j].Guard = "else"
	}
}

// elseless takes away an else that no row is before.
func elseless(d *machine.Definition) {
	for _, cell := range cells(d) {
		if r := &d.Rows[cell[0]]; r.Guard == "else" {
			r.Guard = ""
		}
	}
}
