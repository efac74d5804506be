package invariants

import (
	"fmt"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Change is one change of a rule, as data.
type Change struct {
	Machine string
	// Row is the id of the row, or empty for a change of a view.
	Row string
	// View is the name of a view of the machine.
	View string
	// Target is the position in [machine.Row.Then] of the target that is
	// changed; it counts for the fields of targets only.
	Target int
	// Field is what is changed: "row", which is taken out; "guard", "command" or
	// "from" of the row; "to", "when", "do", "with", "on" or "emit" of a target;
	// "expr" of a view.
	Field string
	// Text is the new text; events of "with" and "emit" are parted by "; ".
	Text string
}

// String says what is changed, in a line.
func (c Change) String() string {
	where := c.Machine + "/" + c.Row
	if c.View != "" {
		where = c.Machine + ": view." + c.View
	}
	switch c.Field {
	case "row":
		return where + ": the row is taken out"
	case "expr":
		return fmt.Sprintf("%s: %s", where, orNothing(c.Text))
	case "guard", "command", "from":
		return fmt.Sprintf("%s: %s: %s", where, c.Field, orNothing(c.Text))
	}
	return fmt.Sprintf("%s: target %d: %s: %s", where, c.Target, c.Field, orNothing(c.Text))
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// Apply makes the change in definitions that are the caller's own, such as
// states.Definitions returns. It is an error if they have no such rule, or if
// the change changes nothing.
func (c Change) Apply(defs []*machine.Definition) error {
	for _, d := range defs {
		if d.Name != c.Machine {
			continue
		}
		text, set := c.find(d)
		switch {
		case set == nil:
			return fmt.Errorf("%s: no such rule", c)
		case c.Field != "row" && text == c.Text:
			return fmt.Errorf("%s: it says that already", c)
		}
		set(c.Text)
		return nil
	}
	return fmt.Errorf("%s: no such machine", c)
}

// find returns the text that is changed, and how to change it.
func (c Change) find(d *machine.Definition) (string, func(string)) {
	if c.View != "" {
		for i := range d.Views {
			if v := &d.Views[i]; v.Name == c.View && c.Field == "expr" {
				return v.Expr, func(s string) { v.Expr = s }
			}
		}
		return "", nil
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.ID != c.Row {
			continue
		}
		field := func(p *string) (string, func(string)) { return *p, func(s string) { *p = s } }
		list := func(p *[]string) (string, func(string)) {
			return strings.Join(*p, "; "), func(s string) {
				*p = nil
				if s != "" {
					*p = strings.Split(s, "; ")
				}
			}
		}
		switch c.Field {
		case "row":
			return r.ID, func(string) { d.Rows = append(d.Rows[:i:i], d.Rows[i+1:]...) }
		case "guard":
			return field(&r.Guard)
		case "command":
			return field(&r.Command)
		case "from":
			return field(&r.From)
		}
		if c.Target < 0 || c.Target >= len(r.Then) {
			return "", nil
		}
		t := &r.Then[c.Target]
		switch c.Field {
		case "to":
			return field(&t.To)
		case "when":
			return field(&t.When)
		case "on":
			return field(&t.On)
		case "do":
			return field(&t.Do)
		case "with":
			return list(&t.With)
		case "emit":
			return list(&t.Emit)
		}
	}
	return "", nil
}
