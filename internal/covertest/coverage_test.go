package covertest

import (
	"os"
	"testing"

	"github.com/runfence/runfence/states"
)

// TestCoverage holds docs/coverage.md to the tree and to the rules.
func TestCoverage(t *testing.T) {
	rows := map[[2]string]bool{}
	for _, d := range append(states.Definitions(), states.OrchestratorDefinitions()...) {
		for _, r := range d.Rows {
			rows[[2]string{d.Name, r.ID}] = true
		}
	}
	problems, err := Check(Options{
		Tree: os.DirFS("../.."), Page: "docs/coverage.md", IDs: Clauses(),
		HasRow: func(machine, row string) bool { return rows[[2]string{machine, row}] },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}
