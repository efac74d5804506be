package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain MACHINE [STATE [EVENT]]",
		Short: "Say what a state means and what each event does in it",
		Long: `Explain prints what the rules say: of a machine, its states, events and facts; of
a state, what it means, how it is reached, and every row that starts there; of an
event in a state, only its rows.

A row is read from top to bottom: the guard, what changes when it is chosen, the
command, and where each outcome of the command leads. Rows of one event are tried
in order.

A state with a space in its name may be quoted, or written with a dash or an
underscore. "STATE▸ROW", or "STATE>ROW", is in flight on that row's command.`,
		Example: `  runfence explain launch
  runfence explain launch "core submitted"
  runfence explain launch armed submit_core
  runfence explain launch 'armed>submit_core'
  runfence explain fence armed retire --json`,
		Args:              a.machineArguments(3, "MACHINE [STATE [EVENT]]"),
		ValidArgsFunction: a.completeRules(3),
		RunE:              func(_ *cobra.Command, args []string) error { return a.explain(args) },
	}
	a.jsonFlag(cmd)
	a.rulesFlag(cmd)
	return cmd
}

func (a *app) explain(args []string) error {
	rules, err := a.theRules()
	if err != nil {
		return err
	}
	m, err := findMachine(rules, args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if a.json {
			return a.out.json(aboutMachine(m))
		}
		a.explainer().machine(aboutMachine(m))
		return nil
	}
	p, err := findPlace(m, args[1])
	if err != nil {
		return err
	}
	about := aboutPlace(p)
	if len(args) == 3 {
		e, err := resolve("event of "+m.Name(), args[2], eventNames(m))
		if err != nil {
			return err
		}
		about.only(m.EventName(machine.EventID(e)))
	}
	if a.json {
		return a.out.json(about)
	}
	a.explainer().place(about, len(args) == 3)
	return nil
}

// machineAbout is what there is to say about a machine.
type machineAbout struct {
	Machine  string         `json:"machine"`
	Doc      string         `json:"doc,omitempty"`
	Source   string         `json:"source,omitempty"`
	Hash     string         `json:"hash"`
	Pool     string         `json:"pool,omitempty"`
	States   []stateAbout   `json:"states"`
	Events   []eventAbout   `json:"events"`
	Facts    []machine.Fact `json:"facts,omitempty"`
	Identity []string       `json:"identity,omitempty"`
	Views    []machine.View `json:"views,omitempty"`
}

type stateAbout struct {
	Name     string `json:"name"`
	Doc      string `json:"doc,omitempty"`
	Initial  bool   `json:"initial,omitempty"`
	Terminal bool   `json:"terminal,omitempty"`
	Kept     bool   `json:"kept,omitempty"`
}

type eventAbout struct {
	Name   string         `json:"name"`
	Doc    string         `json:"doc,omitempty"`
	Args   []machine.Fact `json:"args,omitempty"`
	States []string       `json:"states"`
}

func aboutMachine(m *machine.Machine) *machineAbout {
	d := m.Definition()
	out := &machineAbout{
		Machine: d.Name, Doc: d.Doc, Source: d.Source, Hash: m.Hash().String(), Pool: d.Pool,
		Facts: d.Facts, Identity: d.Identity, Views: d.Views,
	}
	for i := range d.States {
		out.States = append(out.States, aboutState(m, machine.StateID(i)))
	}
	for i, e := range d.Events {
		ev := eventAbout{Name: e.Name, Doc: e.Doc, Args: e.Args}
		for s := range d.States {
			if slices.Contains(m.Accepts(machine.StateID(s), machine.NoRowID), machine.EventID(i)) {
				ev.States = append(ev.States, d.States[s].Name)
			}
		}
		out.Events = append(out.Events, ev)
	}
	return out
}

func aboutState(m *machine.Machine, s machine.StateID) stateAbout {
	d := m.Definition().States[s]
	return stateAbout{Name: d.Name, Doc: d.Doc, Initial: s == 0, Terminal: d.Terminal, Kept: d.Kept}
}

// placeAbout is what there is to say about a state, or a row in flight.
type placeAbout struct {
	Machine string `json:"machine"`
	stateAbout
	// Row and Command are those in flight.
	Row     string `json:"row,omitempty"`
	Command string `json:"command,omitempty"`
	// From lists the rows that lead here.
	From []arrival `json:"reached_from,omitempty"`
	// Events are those with rows here, in order of declaration.
	Events []cellAbout `json:"events"`
	// Other lists the events that have no row here: they are refused.
	Other []string `json:"no_row_for,omitempty"`

	what string // how the machine introduces itself
}

// arrival is one way into a state.
type arrival struct {
	State string `json:"state"`
	Event string `json:"event"`
	Row   string `json:"row"`
	On    string `json:"on,omitempty"`
}

// cellAbout is what an event does in a state.
type cellAbout struct {
	Event string         `json:"event"`
	Doc   string         `json:"doc,omitempty"`
	Args  []machine.Fact `json:"args,omitempty"`
	// Answer is takes if some row takes it, else waits if some row defers it,
	// else refuses.
	Answer string     `json:"answer"`
	Rows   []rowAbout `json:"rows"`
}

// rowAbout is a row as it is read.
type rowAbout struct {
	ID      string         `json:"row"`
	Kind    string         `json:"kind"` // transition, refusal or deferral
	Guard   string         `json:"guard,omitempty"`
	Opaque  bool           `json:"opaque,omitempty"`
	Refuse  machine.Reason `json:"refuse,omitempty"`
	Before  string         `json:"before,omitempty"`
	With    []string       `json:"with,omitempty"`
	Command string         `json:"command,omitempty"`
	Then    []thenAbout    `json:"then,omitempty"`
	Doc     string         `json:"doc,omitempty"`
	Source  string         `json:"source,omitempty"`
}

// thenAbout is a target, with every outcome that leads to it by name.
type thenAbout struct {
	On     []string       `json:"on,omitempty"`
	When   string         `json:"when,omitempty"`
	To     string         `json:"to"`
	Stays  bool           `json:"stays,omitempty"`
	Do     string         `json:"do,omitempty"`
	With   []string       `json:"with,omitempty"`
	Emit   []string       `json:"emit,omitempty"`
	Code   string         `json:"code,omitempty"`
	Return string         `json:"return,omitempty"`
	Error  machine.Reason `json:"error,omitempty"`
}

func aboutPlace(p place) *placeAbout {
	d := p.m.Definition()
	out := &placeAbout{Machine: d.Name, stateAbout: aboutState(p.m, p.state), what: d.Doc}
	if p.during != machine.NoRowID {
		r := p.m.Row(p.during)
		out.Name, out.Row, out.Command, out.Initial = p.name(), r.ID, r.Command, false
	} else {
		out.From = arrivals(p)
	}
	for i, e := range d.Events {
		ev := machine.EventID(i)
		rows := p.m.RowsOf(p.state, p.during, ev)
		if len(rows) == 0 {
			out.Other = append(out.Other, e.Name)
			continue
		}
		c := cellAbout{Event: e.Name, Doc: e.Doc, Args: e.Args, Answer: "refuses"}
		for _, r := range rows {
			row := aboutRow(p.m, r)
			switch {
			case row.Kind == "transition":
				c.Answer = "takes"
			case row.Kind == "deferral" && c.Answer != "takes":
				c.Answer = "waits"
			}
			c.Rows = append(c.Rows, row)
		}
		out.Events = append(out.Events, c)
	}
	return out
}

// only leaves one event. If the state has no row for it, that is what there is
// to say.
func (p *placeAbout) only(event string) {
	p.From = nil
	p.Events = slices.DeleteFunc(p.Events, func(c cellAbout) bool { return c.Event != event })
	p.Other = nil
	if len(p.Events) == 0 {
		p.Events, p.Other = []cellAbout{}, []string{event}
	}
}

// arrivals lists the targets that lead to a state from another.
func arrivals(p place) []arrival {
	var out []arrival
	for r := range p.m.NumRows() {
		id := machine.RowID(r)
		from, _ := p.m.RowFrom(id)
		row := p.m.Row(id)
		for i := range row.Then {
			t := &row.Then[i]
			if t.To != p.m.StateName(p.state) || from == p.state {
				continue
			}
			a := arrival{State: p.m.StateName(from), Event: row.Event, Row: row.ID}
			if row.Command != "" {
				a.On = strings.Join(outcomes(row, i), ", ")
			}
			out = append(out, a)
		}
	}
	return out
}

func aboutRow(m *machine.Machine, id machine.RowID) rowAbout {
	r := m.Row(id)
	out := rowAbout{
		ID: r.ID, Kind: "transition", Guard: r.Guard, Opaque: r.GuardFunc != nil || r.DoFunc != nil,
		Refuse: r.Refuse, Before: r.Before, With: r.With, Command: r.Command, Doc: r.Doc, Source: r.Source,
	}
	switch {
	case r.Refuse != "":
		out.Kind = "refusal"
	case r.Defer:
		out.Kind = "deferral"
	}
	from, _ := m.RowFrom(id)
	for i := range r.Then {
		t := &r.Then[i]
		x := thenAbout{When: t.When, To: t.To, Do: t.Do, With: t.With, Emit: t.Emit, Code: t.Code, Return: t.Return, Error: t.Error}
		if r.Command != "" {
			x.On = outcomes(r, i)
		}
		if x.To == "" || x.To == m.StateName(from) {
			x.To, x.Stays = m.StateName(from), true
		}
		out.Then = append(out.Then, x)
	}
	return out
}

// outcomes lists those that lead to a target: what it names, or else what no
// other target names.
func outcomes(r *machine.Row, target int) []string {
	if on := strings.Fields(r.Then[target].On); len(on) > 0 {
		return on
	}
	named := map[string]bool{}
	for _, t := range r.Then {
		for _, o := range strings.Fields(t.On) {
			named[o] = true
		}
	}
	var rest []string
	for o := range machine.NumOutcomes {
		if name := machine.Outcome(o).String(); !named[name] {
			rest = append(rest, name)
		}
	}
	return rest
}

// explainer prints what there is to say.
type explainer struct {
	out   *output
	style style
	width int
}

func (a *app) explainer() *explainer {
	return &explainer{out: a.out, style: a.styled(), width: a.columns()}
}

// text prints a paragraph: its first line after a head, the others below it.
func (x *explainer) text(head, s string) {
	indent := strings.Repeat(" ", width(head))
	for i, l := range wrap(s, max(x.width-width(head), 20)) {
		if i == 0 {
			x.out.println(strings.TrimRight(head+l, " "))
		} else {
			x.out.println(indent + l)
		}
	}
}

// list prints names in one column and what they mean in another.
func (x *explainer) list(rows [][2]string) {
	w := 0
	for _, r := range rows {
		w = max(w, width(r[0]))
	}
	w = min(w, 28)
	for _, r := range rows {
		if width(r[0]) > w {
			x.out.println("  " + r[0])
			r[0] = ""
		}
		x.text("  "+pad(r[0], w)+"  ", r[1])
	}
}

func (x *explainer) section(title string) {
	x.out.println("")
	x.out.println(x.style.bold(title))
}

// withSource adds the clauses that rule something.
func (x *explainer) withSource(text, source string) string {
	if source == "" {
		return text
	}
	return strings.TrimLeft(text+" "+x.style.dim("["+source+"]"), " ")
}

func (x *explainer) machine(m *machineAbout) {
	x.text(x.style.bold(m.Machine)+": ", m.Doc)
	if m.Source != "" {
		x.text("Source: ", m.Source)
	}
	if m.Pool == "" {
		x.out.println("One instance a lane.")
	} else {
		x.out.printf("One instance for each place in the pool %q of a lane.\n", m.Pool)
	}
	x.section("States")
	var rows [][2]string
	for _, s := range m.States {
		rows = append(rows, [2]string{s.Name, strings.TrimSpace(s.Doc + " " + x.style.dim(s.marks()))})
	}
	x.list(rows)
	x.section("Events")
	rows = nil
	for _, e := range m.Events {
		var doc []string
		if e.Doc != "" {
			doc = append(doc, e.Doc)
		}
		if len(e.States) > 0 {
			doc = append(doc, x.style.dim("Taken in: "+strings.Join(e.States, ", ")+"."))
		}
		rows = append(rows, [2]string{e.Name, strings.Join(doc, " ")})
	}
	x.list(rows)
	if len(m.Facts) > 0 {
		x.section("Facts")
		rows = nil
		for _, f := range m.Facts {
			doc := x.style.dim(f.Type+".") + " " + f.Doc
			if slices.Contains(m.Identity, f.Name) {
				doc = strings.TrimSpace(doc) + " " + x.style.dim("(identity)")
			}
			rows = append(rows, [2]string{f.Name, doc})
		}
		x.list(rows)
	}
	if len(m.Views) > 0 {
		x.section("Views, read of other machines")
		rows = nil
		for _, v := range m.Views {
			rows = append(rows, [2]string{v.Name, strings.TrimSpace(v.Expr + " " + x.style.dim(parenthesised(v.Doc)))})
		}
		x.list(rows)
	}
}

func (s stateAbout) marks() string {
	var marks []string
	if s.Initial {
		marks = append(marks, "initial")
	}
	if s.Terminal {
		marks = append(marks, "terminal")
	}
	if s.Kept {
		marks = append(marks, "kept")
	}
	return parenthesised(strings.Join(marks, ", "))
}

func parenthesised(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

func (x *explainer) place(p *placeAbout, oneEvent bool) {
	head := x.style.bold(p.Machine + " · " + p.Name)
	switch {
	case p.Row != "":
		x.text(head+": ", fmt.Sprintf("%s is called for row %s; its answer decides what is next.", p.Command, p.Row))
	default:
		x.text(head+": ", strings.TrimSpace(p.Doc+" "+x.style.dim(p.marks())))
	}
	if p.what != "" && !oneEvent {
		x.text("Of "+p.Machine+": ", p.what)
	}
	if len(p.From) > 0 {
		x.section("Reached from")
		var rows [][2]string
		for _, f := range p.From {
			how := f.Event
			if f.On != "" {
				how += ": " + f.On
			}
			rows = append(rows, [2]string{f.State, how + " " + x.style.dim("#"+f.Row)})
		}
		x.list(rows)
	}
	x.cells("Takes", p.Events, "takes")
	x.cells("Lets wait", p.Events, "waits")
	x.cells("Refuses, with a reason", p.Events, "refuses")
	switch {
	case oneEvent && len(p.Other) > 0 && p.Row != "":
		x.out.println("")
		x.text("", p.Other[0]+" has no row while the command is out: it waits for the answer, and is taken or refused in the state that comes then.")
	case oneEvent && len(p.Other) > 0:
		x.out.println("")
		x.text("", p.Other[0]+" has no row in this state: it is refused, and nothing changes.")
	case len(p.Other) > 0:
		if p.Row != "" {
			x.section("Lets wait for the answer, since no row takes it here")
		} else {
			x.section("Refuses, since no row takes it here")
		}
		x.text("  ", strings.Join(p.Other, ", "))
	case len(p.Events) == 0:
		x.out.println("")
		x.text("", "No event has a row here.")
	}
}

func (x *explainer) cells(title string, cells []cellAbout, answer string) {
	first := true
	for _, c := range cells {
		if c.Answer != answer {
			continue
		}
		if first {
			x.section(title)
			first = false
		} else {
			x.out.println("")
		}
		args := make([]string, len(c.Args))
		for i, f := range c.Args {
			args[i] = f.Name
		}
		head := "  " + x.style.cyan(c.Event+"("+strings.Join(args, ", ")+")") + "  "
		if width(head+c.Doc) > x.width {
			x.out.println(strings.TrimRight(head, " "))
			head = "    "
		}
		if c.Doc != "" || head != "    " {
			x.text(head, c.Doc)
		}
		for i, r := range c.Rows {
			x.row(r, i > 0)
		}
	}
}

func (x *explainer) row(r rowAbout, more bool) {
	const in = "    "
	guard := "always"
	switch {
	case r.Guard == "else" || r.Guard == "" && more:
		guard = "otherwise"
	case r.Guard != "":
		guard = "if " + r.Guard
	}
	if r.Opaque {
		guard += ", and as a function of the host says"
	}
	x.text(in, x.withSource(guard+" "+x.style.dim("#"+r.ID), r.Source))
	const deep = in + "  "
	if r.Doc != "" {
		x.text(deep, x.style.dim(r.Doc))
	}
	switch r.Kind {
	case "refusal":
		x.text(deep, x.style.yellow("refused")+": "+string(r.Refuse))
	case "deferral":
		x.text(deep, x.style.yellow("waits")+" until the state is another")
	}
	x.effects(deep, r.Before, r.With, nil)
	if r.Command != "" {
		x.text(deep+"calls ", r.Command)
	}
	for _, t := range r.Then {
		x.then(deep, t)
	}
}

func (x *explainer) then(in string, t thenAbout) {
	head := ""
	if len(t.On) > 0 {
		head = strings.Join(t.On, ", ") + " "
	}
	if t.When != "" {
		head += "if " + t.When + " "
	}
	to := x.style.green("→ " + t.To)
	if t.Stays {
		to = x.style.dim("→ stays " + t.To)
	}
	x.text(in, head+to)
	deep := in + "    "
	x.effects(deep, t.Do, t.With, t.Emit)
	if t.Return != "" {
		x.text(deep+"returns ", t.Return)
	}
	if t.Error != "" {
		x.text(deep, x.style.red("fails")+": "+string(t.Error))
	}
	if t.Code != "" {
		x.text(deep+"with code ", t.Code)
	}
}

func (x *explainer) effects(in, do string, with, emit []string) {
	if do != "" {
		x.text(in+"sets ", do)
	}
	for _, w := range with {
		x.text(in+"together with ", w)
	}
	for _, e := range emit {
		x.text(in+"next ", e)
	}
}
