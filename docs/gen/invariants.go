package main

import (
	"fmt"
	"strings"

	"github.com/runfence/runfence/invariants"
)

const (
	catalogue   = "docs/invariants.md"
	ofCatalogue = proseDir + "/invariants.md"
)

// invariantsPage is the page of what must hold.
func invariantsPage(prose string) string {
	var b strings.Builder
	b.WriteString(strings.Replace(generated, "the Definition", "the catalogue", 1) + "# Invariants\n\n" + prose + "\n")
	all := invariants.All()
	for _, of := range []invariants.Of{invariants.OfLane, invariants.OfOrchestrator} {
		fmt.Fprintf(&b, "\n## Of %s\n\n", map[invariants.Of]string{invariants.OfLane: "a lane", invariants.OfOrchestrator: "an orchestrator"}[of])
		b.WriteString("| id | what holds | source | looks at | the change that it catches |\n|---|---|---|---|---|\n")
		for i := range all {
			in := &all[i]
			if in.Of != of {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(in.ID), cell(in.Sentence), in.Source, in.Needs, cell(catches(in)))
		}
	}
	return b.String()
}

// catches says which change of a rule an invariant notices.
func catches(in *invariants.Invariant) string {
	c := in.Catches
	if c == (invariants.Change{}) {
		return "None can. " + in.Held
	}
	text := "becomes " + code(c.Text)
	if c.Text == "" {
		text = "is dropped"
	}
	if c.View != "" {
		return fmt.Sprintf("%s: %s %s", code(c.Machine), code("view."+c.View), text)
	}
	row := code(c.Machine + "/" + c.Row)
	switch c.Field {
	case "row":
		return row + ": the row is dropped"
	case "guard", "command", "from":
		return fmt.Sprintf("%s: its %s %s", row, c.Field, text)
	}
	return fmt.Sprintf("%s: %s of its target %d %s", row, code(c.Field), c.Target+1, text)
}
