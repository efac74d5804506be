// Package machinetest draws machine definitions, events and answers at random,
// for property tests of what runs or shows machines. All that it draws compiles.
package machinetest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
)

// Definition draws one machine without a pool that touches no other: facts and
// arguments of every type, guards in chains, commands with a target for each
// outcome, targets split by what the answer brought, rows taken in flight, rows
// that refuse and rows that defer, counters that soon leave their range.
func Definition(t *rapid.T) *machine.Definition {
	g := &generator{T: t}
	g.outline("door", "")
	g.rows(0)
	return g.defs[0]
}

// Definitions draws up to three machines of one world, in pools or not, that
// also send events to one another, take one another along and view one another.
func Definitions(t *rapid.T) []*machine.Definition {
	g := &generator{T: t, many: true}
	for i := range rapid.IntRange(2, 3).Draw(t, "machines") {
		g.outline([]string{"lane", "fence", "token"}[i], rapid.SampledFrom([]string{"", "runs", "runs", "slots"}).Draw(t, "pool"))
	}
	for i := range g.defs {
		g.views(i)
	}
	for i := range g.defs {
		g.rows(i)
	}
	return g.defs
}

// Pools sizes each pool that definitions name.
func Pools(defs []*machine.Definition, n int) map[string]int {
	out := map[string]int{}
	for _, d := range defs {
		if d.Pool != "" {
			out[d.Pool] = n
		}
	}
	return out
}

type generator struct {
	*rapid.T
	many bool
	defs []*machine.Definition
	ids  int // of rows
}

func (g *generator) n(what string, from, to int) int { return rapid.IntRange(from, to).Draw(g.T, what) }

func (g *generator) chance(what string, percent int) bool { return g.n(what, 0, 99) < percent }

func pick[V any](g *generator, what string, from []V) V {
	return rapid.SampledFrom(from).Draw(g.T, what)
}

// outline draws names and types, so that machines can refer to one another.
func (g *generator) outline(name, pool string) {
	d := &machine.Definition{Name: name, Pool: pool}
	states := g.n("states", 1, 4)
	for i := range states {
		d.States = append(d.States, machine.State{Name: fmt.Sprint("s", i)})
	}
	if last := &d.States[states-1]; states > 1 && g.chance("terminal", 50) {
		last.Terminal = true
		last.Kept = g.chance("kept", 25)
	}
	d.Facts = g.typed("f", g.n("facts", 1, 6), true)
	// The first event leads through the states, the second is never taken by a
	// row with a command, so that others can take it along.
	d.Events = append(d.Events, machine.Event{Name: "next", Args: g.typed("a", g.n("arguments", 0, 2), false)})
	d.Events = append(d.Events, machine.Event{Name: "quiet", Args: g.typed("a", g.n("arguments", 0, 2), false)})
	for i := range g.n("events", 0, 2) {
		d.Events = append(d.Events, machine.Event{Name: fmt.Sprint("e", i), Args: g.typed("a", g.n("arguments", 0, 3), false)})
	}
	g.defs = append(g.defs, d)
}

// typed draws facts or arguments.
func (g *generator) typed(prefix string, n int, fact bool) []machine.Fact {
	types := []string{"bool", "int 1", "int 2", "int 3", "id epoch", "id token", "enum red|green|blue", "code"}
	if g.many {
		types = append(types, "ref lane", "ref fence", "ref lane", "ref fence")
	}
	if !fact {
		types = append(types, "int 5")
	}
	out := make([]machine.Fact, n)
	for i := range out {
		out[i] = machine.Fact{Name: fmt.Sprint(prefix, i), Type: pick(g, "type", types)}
	}
	return out
}

func (g *generator) views(i int) {
	for v := range g.n("views", 0, 2) {
		x := &scope{generator: g, d: g.defs[i], viewing: true}
		g.defs[i].Views = append(g.defs[i].Views, machine.View{Name: fmt.Sprint("v", v), Expr: x.viewed()})
	}
}

func (g *generator) rows(i int) {
	d := g.defs[i]
	var terminal, live []string
	for _, s := range d.States {
		if s.Terminal {
			terminal = append(terminal, s.Name)
		} else {
			live = append(live, s.Name)
		}
	}
	for e := range d.Events {
		if e == 0 {
			// From each state to the one after it, so that all are reached.
			for s := range live {
				to := d.States[min(s+1, len(d.States)-1)].Name
				g.chain(i, live[s], "", e, to)
			}
		} else {
			// The states in groups, each with rows of its own, or none.
			rest := append([]string{}, live...)
			for first := true; len(rest) > 0; first = false {
				n := g.n("states of a row", 1, len(rest))
				if first || g.chance("rows for a group", 60) {
					g.chain(i, strings.Join(rest[:n], "|"), "", e, "")
				}
				rest = rest[n:]
			}
		}
		if len(terminal) > 0 && g.chance("refusal when over", 50) {
			d.Rows = append(d.Rows, machine.Row{ID: g.id(), From: terminal[0], Event: d.Events[e].Name, Refuse: "over"})
		}
	}
	// Some events are taken while a command is in flight.
	for _, r := range append([]machine.Row{}, d.Rows...) {
		if r.Command != "" && g.chance("rows in flight", 40) {
			from := strings.Split(r.From, "|")
			g.chain(i, pick(g, "in flight from", from)+"▸"+r.ID, r.ID, g.n("event in flight", 0, len(d.Events)-1), "")
		}
	}
}

func (g *generator) id() string {
	g.ids++
	return fmt.Sprint("r", g.ids)
}

// chain draws the rows of one event in some states, the last of which takes
// what is left. to is a state that one of them must lead to.
func (g *generator) chain(i int, from, during string, e int, to string) {
	d := g.defs[i]
	ev := d.Events[e]
	n := g.n("rows", 1, 3)
	must := -1
	if to != "" {
		must = g.n("the row on", 0, n-1)
	}
	for k := range n {
		x := &scope{generator: g, d: d, args: ev.Args}
		r := machine.Row{ID: g.id(), From: from, Event: ev.Name}
		switch last := k == n-1; {
		case !last:
			r.Guard = x.boolean(2)
		case n == 2 && g.chance("negation", 30):
			r.Guard = "!(" + d.Rows[len(d.Rows)-1].Guard + ")"
		case n > 1:
			r.Guard = "else"
		}
		switch kind := g.n("kind", 0, 9); {
		case k != must && kind < 2:
			r.Refuse = machine.Reason(pick(g, "reason", []string{"shut", "busy", "not now"}))
		case k != must && kind < 3:
			r.Defer = true
		case during == "" && e != 1 && kind < 7:
			g.command(i, &r, x, e, to)
		default:
			x.split(&r, []string{""}, i, e, during != "", to)
		}
		d.Rows = append(d.Rows, r)
	}
}

// command draws a command and a target for each outcome.
func (g *generator) command(i int, r *machine.Row, x *scope, e int, to string) {
	if g.chance("before", 50) {
		r.Before = x.updates()
	}
	if g.chance("with", 20) {
		r.With = x.along(i)
	}
	var args []string
	for range g.n("command's arguments", 0, 3) {
		args = append(args, x.anything())
	}
	r.Command = fmt.Sprintf("%s(%s)", pick(g, "command", []string{"Open", "Shut", "Poll"}), strings.Join(args, ", "))
	x.settling = true
	outcomes := []string{"ok", "refused", "failed", "panicked", "timedout"}
	for len(outcomes) > 0 {
		n := g.n("outcomes of a target", 1, len(outcomes))
		on := strings.Join(outcomes[:n], " ")
		if n == len(outcomes) && g.chance("the rest", 70) {
			on = ""
		}
		x.split(r, []string{on}, i, e, false, to)
		to = ""
		outcomes = outcomes[n:]
	}
	x.settling = false
}

// split draws one target for some outcomes, or several with conditions.
func (x *scope) split(r *machine.Row, on []string, i, e int, stays bool, to string) {
	n := 1
	if x.chance("split", 35) {
		n = x.n("targets", 2, 3)
	}
	for k := range n {
		t := machine.Target{On: on[0]}
		if k < n-1 {
			t.When = x.boolean(1)
		}
		switch {
		case k == 0 && to != "":
			t.To = to
		case !stays && x.chance("to", 50):
			t.To = pick(x.generator, "state", x.d.States).Name
		}
		if x.chance("do", 60) {
			t.Do = x.updates()
		}
		if x.chance("with", 25) {
			t.With = x.along(i)
		}
		if x.chance("emit", 30) {
			t.Emit = x.emits()
		}
		if x.chance("code", 20) {
			t.Code = x.value("code")
		}
		if x.chance("return", 20) {
			t.Return = x.anything()
		}
		if x.chance("error", 20) {
			t.Error = machine.Reason(pick(x.generator, "error", []string{"went wrong", "shut"}))
		}
		r.Then = append(r.Then, t)
	}
}
