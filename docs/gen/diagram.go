package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/looplab"
)

// edge is a line of a diagram that draws a transition: from, to, event, row
// and, of a row with a command, the outcome and the target's position.
var edge = regexp.MustCompile(`^    (\S+) --> (\S+): (\w+)#(\S+)(?: (\w+)(?:\.\d+)?)?$`)

// diagram draws a machine with looplab's visualiser. Its lines for one row
// that lead from one state to one other are drawn as one, with all their
// outcomes; and an event is named only if its row is not called so.
func diagram(m *machine.Machine) (string, error) {
	text, err := looplab.Mermaid(m)
	if err != nil {
		return "", err
	}
	var lines []string
	at := map[string]int{}
	outcomes := map[string][]string{}
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		e := edge.FindStringSubmatch(l)
		if e == nil {
			lines = append(lines, l)
			continue
		}
		label := e[4]
		if label != e[3] {
			label = e[3] + " " + label
		}
		key := "    " + e[1] + " --> " + e[2] + ": " + label
		if _, ok := at[key]; !ok {
			at[key] = len(lines)
			lines = append(lines, key)
		}
		if e[5] != "" && !slices.Contains(outcomes[key], e[5]) {
			outcomes[key] = append(outcomes[key], e[5])
		}
	}
	for key, i := range at {
		if all := outcomes[key]; len(all) > 0 {
			lines[i] += ", " + strings.Join(all, " ")
		}
	}
	return strings.Join(lines, "\n"), nil
}
