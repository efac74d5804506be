package looplab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/looplab/fsm"

	"github.com/runfence/runfence/machine"
)

// Graphviz draws a machine in the language of Graphviz, through looplab's
// visualiser. Any machine can be drawn, also one that a [Bridge] refuses. The
// text depends on nothing but the rules.
func Graphviz(m *machine.Machine) string {
	return fsm.Visualize(fsm.NewFSM(m.StateName(0), Events(m), nil))
}

// Mermaid draws a machine as a Mermaid state diagram, through looplab's
// visualiser; see [Graphviz]. As Mermaid allows neither spaces in states nor
// colons in labels, states have short names that the text spells out, and an
// outcome stands after a space.
func Mermaid(m *machine.Machine) (string, error) {
	events := Events(m)
	short := names{by: map[string]string{}}
	for i := range m.NumStates() {
		short.of(m.StateName(machine.StateID(i)))
	}
	for i := range events {
		e := &events[i]
		e.Name = strings.ReplaceAll(e.Name, ":", " ")
		e.Src = []string{short.of(e.Src[0])}
		e.Dst = short.of(e.Dst)
	}
	text, err := fsm.VisualizeForMermaidWithGraphType(fsm.NewFSM(short.of(m.StateName(0)), events, nil), fsm.StateDiagram)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(text)
	for _, name := range short.order {
		if id := short.by[name]; id != name {
			fmt.Fprintf(&b, "    state \"%s\" as %s\n", name, id)
		}
	}
	return b.String(), nil
}

// names gives states names that Mermaid can read.
type names struct {
	by    map[string]string
	order []string
}

func (n *names) of(name string) string {
	if id, ok := n.by[name]; ok {
		return id
	}
	id := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	for used := true; used; {
		used = false
		for _, other := range n.by {
			used = used || other == id
		}
		if used || slices.Contains(keywords, id) {
			id += "_"
			used = true
		}
	}
	n.by[name] = id
	n.order = append(n.order, name)
	return id
}

// keywords of Mermaid's state diagrams.
var keywords = []string{"state", "note", "end", "as", "direction", "class", "classDef", "style", "default", "click", "stateDiagram"}
