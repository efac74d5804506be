package promela

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Alone takes the named lifecycles out of a larger set. What their views read
// of others stands in for them: a lifecycle of the same name with the same
// states and those facts, which a host sets as it likes with the events to_STATE
// and set_FACT. Lifecycles that send events to one that is left out cannot be
// taken alone.
func Alone(all []*machine.Definition, names ...string) (set []*machine.Definition, err error) {
	defer catch(&err)
	byName := map[string]*machine.Definition{}
	for _, d := range all {
		byName[d.Name] = d
	}
	reads := map[string][]string{}
	var order []string
	for _, n := range names {
		d := byName[n]
		if d == nil {
			refuse("there is no lifecycle %q", n)
		}
		set = append(set, d)
		own := map[string]bool{}
		for _, f := range d.Facts {
			own[f.Name] = true
		}
		var walk func(e *machine.Expr)
		walk = func(e *machine.Expr) {
			if e.Op == machine.OpField && byName[e.Peer] != nil && !own[e.Peer] && !slices.Contains(names, e.Peer) {
				if reads[e.Peer] == nil {
					order = append(order, e.Peer)
				}
				if !slices.Contains(reads[e.Peer], e.Name) {
					reads[e.Peer] = append(reads[e.Peer], e.Name)
				}
			}
			for _, a := range e.Args {
				walk(a)
			}
		}
		for _, v := range d.Views {
			walk(must(machine.ParseExpr(v.Expr)))
		}
	}
	for _, n := range order {
		set = append(set, standIn(byName[n], reads[n]))
	}
	return set, nil
}

// standIn has the states of a lifecycle and some of its facts, and no rules but
// that a host may set them.
func standIn(d *machine.Definition, reads []string) *machine.Definition {
	s := &machine.Definition{Name: d.Name, Pool: d.Pool, Doc: "Stands in for " + d.Name + ": a host sets it.", States: d.States}
	var live []string
	for _, st := range d.States {
		if !st.Terminal {
			live = append(live, st.Name)
		}
	}
	from := strings.Join(live, "|")
	for _, st := range d.States[1:] {
		e := "to_" + strings.ReplaceAll(st.Name, " ", "_")
		s.Events = append(s.Events, machine.Event{Name: e})
		s.Rows = append(s.Rows, machine.Row{ID: e, From: from, Event: e, Then: []machine.Target{{To: st.Name}}})
	}
	for _, f := range d.Facts {
		if !slices.Contains(reads, f.Name) {
			continue
		}
		e := "set_" + f.Name
		s.Facts = append(s.Facts, f)
		s.Events = append(s.Events, machine.Event{Name: e, Args: []machine.Fact{{Name: "to", Type: f.Type}}})
		s.Rows = append(s.Rows, machine.Row{ID: e, From: from, Event: e, Then: []machine.Target{{Do: fmt.Sprintf("%s = arg.to", f.Name)}}})
	}
	return s
}
