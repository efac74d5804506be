package promela

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

// Count is one model counted by both.
type Count struct {
	Shape Shape
	Spin  Verdict
	Ours  Ours
}

// Ours is what our search saw.
type Ours struct {
	States, Edges uint64
	// Kinds are the findings of the level that the search ended with, and Depth
	// is how many moves led there.
	Kinds      []string
	Depth      int
	Wall, CPU  time.Duration
	StateBytes float64
}

// Agrees reports whether both saw the same: as many states, as many
// transitions, and nothing wrong.
func (c Count) Agrees() bool {
	return same(c.Spin.States, c.Ours.States) && same(c.Spin.Edges, c.Ours.Edges) && c.Spin.Broken == "" && len(c.Ours.Kinds) == 0
}

// same compares a number of SPIN's with one of ours. It prints eight digits.
func same(spin, ours uint64) bool {
	if spin < 100_000_000 {
		return spin == ours
	}
	return max(spin, ours)-min(spin, ours) <= spin/10_000_000
}

// Search searches the model of a shape here, until the end of the first level
// that has a finding.
func Search(ctx context.Context, rules *machine.Rules, s Shape) (Ours, error) {
	m, err := NewRunModel(rules, s)
	if err != nil {
		return Ours{}, err
	}
	runtime.GC()
	cpu := processorTime()
	r, err := explore.Search(ctx, m, explore.Options{})
	if err != nil {
		return Ours{}, err
	}
	if !r.Finished && r.Stopped != explore.AtFinding {
		return Ours{}, fmt.Errorf("%s: the search stopped: %s", s.Name, r.Stopped)
	}
	o := Ours{States: r.States, Edges: r.Edges, Wall: r.Elapsed, CPU: processorTime() - cpu, StateBytes: r.BytesPerState()}
	for _, f := range r.Findings {
		o.Kinds = append(o.Kinds, f.Finding.Kind)
	}
	if len(o.Kinds) > 0 {
		o.Depth = r.Depth
	}
	return o, nil
}

// CountBoth counts the model of a shape with SPIN and here.
func CountBoth(ctx context.Context, spin Spin, rules *machine.Rules, s Shape) (c Count, err error) {
	c.Shape = s
	text, err := Program(rules, s)
	if err != nil {
		return c, err
	}
	if c.Spin, err = spin.Check(ctx, text, false); err != nil {
		return c, err
	}
	c.Ours, err = Search(ctx, rules, s)
	return c, err
}

// Caught is one fault as both found it.
type Caught struct {
	Fault Fault
	Spin  Verdict
	Ours  Ours
}

// Agrees reports whether both found it after as many steps, and what SPIN says
// is broken is among what we say.
func (c Caught) Agrees() bool {
	return c.Spin.Broken != "" && c.Spin.Depth == c.Ours.Depth && slices.Contains(c.Ours.Kinds, c.Spin.Broken)
}

// CatchBoth looks for the shortest way to a fault with SPIN and here.
func CatchBoth(ctx context.Context, spin Spin, defs []*machine.Definition, f Fault) (c Caught, err error) {
	c.Fault = f
	rules, err := f.Rules(defs)
	if err != nil {
		return c, err
	}
	text, err := Program(rules, f.Shape)
	if err != nil {
		return c, err
	}
	if c.Spin, err = spin.Check(ctx, text, true); err != nil {
		return c, err
	}
	c.Ours, err = Search(ctx, rules, f.Shape)
	return c, err
}

// Section writes the comparison as a section of a page in Markdown: the counts
// and rates, then the faults.
func Section(counts []Count, caught []Caught) string {
	var b strings.Builder
	if len(counts) > 0 {
		b.WriteString("| model | states | transitions | SPIN: states/s | of CPU | bytes a state | ours: states/s | of CPU | bytes a state | |\n")
		b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
		for _, c := range counts {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.0f | %s | %s | %.0f | %s |\n", c.Shape.Name,
				pair(c.Spin.States, c.Ours.States), pair(c.Spin.Edges, c.Ours.Edges),
				rate(c.Spin.States, c.Spin.Wall), rate(c.Spin.States, c.Spin.CPU), c.Spin.StateBytes,
				rate(c.Ours.States, c.Ours.Wall), rate(c.Ours.States, c.Ours.CPU), c.Ours.StateBytes, agreement(c.Agrees()))
		}
		b.WriteString("\nThe bounds:\n\n")
		for _, c := range counts {
			fmt.Fprintf(&b, "- %s\n", c.Shape)
		}
	}
	if len(caught) > 0 {
		b.WriteString("\n| mistake | forbidden by | model | SPIN: broken | steps | ours: broken | steps | |\n|---|---|---|---|--:|---|--:|---|\n")
		for _, c := range caught {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %s | %d | %s |\n", c.Fault.Name, c.Fault.Source, c.Fault.Shape.Name,
				c.Spin.Broken, c.Spin.Depth, strings.Join(c.Ours.Kinds, ", "), c.Ours.Depth, agreement(c.Agrees()))
		}
	}
	return b.String()
}

// Table writes the comparison for a terminal.
func Table(w io.Writer, section string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "|--") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

func agreement(agrees bool) string {
	if agrees {
		return "agree"
	}
	return "**differ**"
}

func pair(a, b uint64) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d / %d", a, b)
}

func rate(n uint64, d time.Duration) string {
	if d <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", float64(n)/d.Seconds())
}
