package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runfence/runfence/machine"
)

const generated = "<!-- Written by docs/gen from the Definition; the text is in docs/rules/prose/. Run make docs. -->\n\n"

// page is the page of one lifecycle.
func page(m *machine.Machine, of, prose string, names map[machine.Reason]string) (string, error) {
	picture, err := diagram(m)
	if err != nil {
		return "", err
	}
	d := m.Definition()
	p := &writer{d: d, of: of, names: names}
	p.printf("%s# %s\n\n%s\n\n", generated, d.Name, d.Doc)
	p.printf("Source: %s.", d.Source)
	if d.Pool == "" {
		p.printf(" One for each %s.", of)
	} else {
		p.printf(" One for each place in the pool `%s`.", d.Pool)
	}
	if len(d.Identity) > 0 {
		p.printf(" Its records bear the identity %s.", list(d.Identity))
	}
	p.printf("\n\n%s\n\n", prose)
	p.printf("## Diagram\n\nA row with a command goes through a state of its own, in which the command is under way. Refusals are not drawn.\n\n")
	p.printf("```mermaid\n%s\n```\n\n", picture)
	p.states()
	p.facts()
	p.events()
	p.refusals()
	p.deferrals()
	return strings.TrimRight(p.b.String(), "\n") + "\n", nil
}

// writer writes a page.
type writer struct {
	b     strings.Builder
	d     *machine.Definition
	of    string // what its world is of
	names map[machine.Reason]string
}

func (p *writer) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// row writes a line of a table.
func (p *writer) row(cells ...string) {
	p.b.WriteString("|")
	for _, c := range cells {
		p.b.WriteString(" " + cell(c) + " |")
	}
	p.b.WriteString("\n")
}

func (p *writer) table(heads ...string) {
	p.row(heads...)
	p.b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
}

func (p *writer) states() {
	p.printf("## States\n\nThe first is where it starts.\n\n")
	p.table("state", "meaning", "")
	for _, s := range p.d.States {
		mark := ""
		switch {
		case s.Kept:
			mark = "terminal, kept"
		case s.Terminal:
			mark = "terminal"
		}
		p.row(code(s.Name), s.Doc, mark)
	}
	p.printf("\n")
}

func (p *writer) facts() {
	if len(p.d.Facts) > 0 {
		p.printf("## Facts\n\nWhat it remembers besides its state.\n\n")
		p.table("fact", "type", "meaning")
		for _, f := range p.d.Facts {
			p.row(code(f.Name), code(f.Type), f.Doc)
		}
		p.printf("\n")
	}
	if len(p.d.Views) > 0 {
		p.printf("## Views\n\nWhat its guards see of other instances, read under the %s's lock and logged with the row.\n\n", p.of)
		p.table("view", "is", "meaning")
		for _, v := range p.d.Views {
			p.row(code("view."+v.Name), code(v.Expr), v.Doc)
		}
		p.printf("\n")
	}
}

// events writes the rows that take an event, event by event.
func (p *writer) events() {
	p.printf("## Rows\n\nThe rows of one event, refusals included, are tried in the order of their numbers. Each outcome of a command has its line.\n\n")
	for _, e := range p.d.Events {
		var args []string
		for _, a := range e.Args {
			args = append(args, code(a.Name+": "+a.Type))
		}
		p.printf("### %s\n\n", e.Name)
		about := e.Doc
		if len(args) > 0 {
			about = strings.TrimSpace(about + " Arguments: " + strings.Join(args, ", ") + ".")
		}
		if about != "" {
			p.printf("%s\n\n", about)
		}
		head := false
		for i := range p.d.Rows {
			r := &p.d.Rows[i]
			if r.Event != e.Name || r.Refuse != "" || r.Defer {
				continue
			}
			if !head {
				p.table("#", "row", "from", "when", "first", "command", "outcome", "to", "then", "reports", "source")
				head = true
			}
			p.transition(r)
		}
		if !head {
			p.printf("No row takes it: it is refused or waits, as below.\n")
		}
		p.printf("\n")
	}
}

// transition writes a row, a line for each of its targets.
func (p *writer) transition(r *machine.Row) {
	first := parts("", r.Before, "takes along", r.With)
	command := code(r.Command)
	if r.Command == "" {
		command = "–"
	}
	id := code(r.ID)
	if r.Doc != "" {
		id += "<br>" + r.Doc
	}
	lead := []string{p.place(r), id, from(r), code(r.Guard), first, command}
	for i, t := range r.Then {
		outcome := t.On
		if outcome == "" && r.Command != "" {
			outcome = "any"
			if len(r.Then) > 1 {
				outcome = "any other"
			}
		}
		if t.When != "" {
			outcome += " " + code(t.When)
		}
		to := code(t.To)
		if t.To == "" {
			to = "stays"
		}
		then := parts("", t.Do, "takes along", t.With)
		if emits := parts("", "", "emits", t.Emit); emits != "" {
			then = join(then, emits)
		}
		var reports string
		if t.Error != "" {
			reports = p.reason(t.Error)
			if t.Code != "" {
				reports += ", code " + code(t.Code)
			}
		} else if t.Return != "" {
			reports = "returns " + code(t.Return)
		}
		source := ""
		if i == 0 {
			source = r.Source
		} else {
			lead = make([]string, len(lead))
		}
		p.row(append(lead[:len(lead):len(lead)], strings.TrimSpace(outcome), to, then, reports, source)...)
	}
}

// refusals lists the rows that say no by name, and by which name.
func (p *writer) refusals() {
	p.printf("## Refusals\n\nA refusal changes nothing. An event that a state has no row for is refused too, without a reason of its own.\n\n")
	p.table("event", "#", "from", "when", "reason", "row", "source", "")
	for _, e := range p.d.Events {
		for i := range p.d.Rows {
			if r := &p.d.Rows[i]; r.Event == e.Name && r.Refuse != "" {
				p.row(code(r.Event), p.place(r), from(r), code(r.Guard), p.reason(r.Refuse), code(r.ID), r.Source, r.Doc)
			}
		}
	}
	p.printf("\n")
}

// deferrals lists the rows by which a caller waits.
func (p *writer) deferrals() {
	head := false
	for i := range p.d.Rows {
		r := &p.d.Rows[i]
		if !r.Defer {
			continue
		}
		if !head {
			p.printf("## Waits\n\nThe caller waits until the state changes, for as long as its context and the %s's bound allow.\n\n", p.of)
			p.table("event", "#", "from", "when", "row", "")
			head = true
		}
		p.row(code(r.Event), p.place(r), from(r), code(r.Guard), code(r.ID), r.Doc)
	}
}

// place is where a row stands among those of its event.
func (p *writer) place(r *machine.Row) string {
	n := 0
	for i := range p.d.Rows {
		if x := &p.d.Rows[i]; x.Event == r.Event {
			n++
			if x == r {
				break
			}
		}
	}
	return strconv.Itoa(n)
}

// reason writes a reason with its name in Go.
func (p *writer) reason(r machine.Reason) string {
	if name := p.names[r]; name != "" {
		return code(name)
	}
	return string(r)
}

func from(r *machine.Row) string {
	return list(strings.Split(r.From, "|"))
}

// parts writes updates, and the events that a row sends.
func parts(prefix, updates, word string, sends []string) string {
	var out string
	if updates != "" {
		out = prefix + code(updates)
	}
	if len(sends) > 0 {
		out = join(out, word+" "+list(sends))
	}
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "<br>" + b
}

// list writes words as code, separated by commas.
func list(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, code(strings.TrimSpace(w)))
	}
	return strings.Join(out, ", ")
}

// code sets text as code, if there is any.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// cell makes text fit into a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", `\|`)
}
