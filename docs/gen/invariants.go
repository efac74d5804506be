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

// catches says which change of a rule an invariant notices, as patches are written.
func catches(in *invariants.Invariant) string {
	if in.Catches == "" {
		return "None can. " + in.Held
	}
	return code(in.Catches)
}
