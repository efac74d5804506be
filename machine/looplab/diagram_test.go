package looplab_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/looplab"
	"github.com/runfence/runfence/machine/machinetest"
)

func ExampleMermaid() {
	text, err := looplab.Mermaid(machine.MustCompile(valve()).At(0))
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
	// Output:
	// stateDiagram-v2
	//     [*] --> shut
	//     shut --> shut_open: open#open
	//     shut --> shut: tap#tap
	//     shut_open --> shut: open#open failed
	//     shut_open --> wide_open: open#open ok.0
	//     shut_open --> shut: open#open ok.1
	//     shut_open --> stuck: open#open panicked
	//     shut_open --> shut: open#open refused
	//     shut_open --> shut: open#open timedout
	//     shut_open --> shut_open: tap#tap-beside
	//     wide_open --> wide_open: drain#drain-open
	//     wide_open --> stuck: shut#shut ok.0
	//     wide_open --> shut: shut#shut ok.1
	//     wide_open --> wide_open: tap#tap
	//     state "wide open" as wide_open
	//     state "shut▸open" as shut_open
}

func ExampleGraphviz() {
	fmt.Print(looplab.Graphviz(machine.MustCompile(valve()).At(0)))
	// Output:
	// digraph fsm {
	//     "shut" -> "shut▸open" [ label = "open#open" ];
	//     "shut" -> "shut" [ label = "tap#tap" ];
	//     "shut▸open" -> "shut" [ label = "open#open:failed" ];
	//     "shut▸open" -> "wide open" [ label = "open#open:ok.0" ];
	//     "shut▸open" -> "shut" [ label = "open#open:ok.1" ];
	//     "shut▸open" -> "stuck" [ label = "open#open:panicked" ];
	//     "shut▸open" -> "shut" [ label = "open#open:refused" ];
	//     "shut▸open" -> "shut" [ label = "open#open:timedout" ];
	//     "shut▸open" -> "shut▸open" [ label = "tap#tap-beside" ];
	//     "wide open" -> "wide open" [ label = "drain#drain-open" ];
	//     "wide open" -> "stuck" [ label = "shut#shut:ok.0" ];
	//     "wide open" -> "shut" [ label = "shut#shut:ok.1" ];
	//     "wide open" -> "wide open" [ label = "tap#tap" ];
	//
	//     "shut" [color = "red"];
	//     "shut▸open";
	//     "stuck";
	//     "wide open";
	// }
}

func TestDiagramsDependOnTheRulesOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := machine.MustCompile(machinetest.Definitions(t)...)
		for i := range rules.NumMachines() {
			m := rules.At(machine.MachineID(i))
			once, err := looplab.Mermaid(m)
			require.NoError(t, err)
			again, err := looplab.Mermaid(m)
			require.NoError(t, err)
			require.Equal(t, once, again)
			require.Equal(t, looplab.Graphviz(m), looplab.Graphviz(m))
		}
	})
}

// States whose names come to the same in Mermaid stay apart.
func TestMermaidNamesStayApart(t *testing.T) {
	d := &machine.Definition{
		Name: "m", States: []machine.State{{Name: "a b"}, {Name: "a-b"}, {Name: "end"}, {Name: "a_b"}},
		Events: []machine.Event{{Name: "e"}},
		Rows: []machine.Row{
			{ID: "r0", From: "a b", Event: "e", Then: []machine.Target{{To: "a-b"}}},
			{ID: "r1", From: "a-b", Event: "e", Then: []machine.Target{{To: "end"}}},
			{ID: "r2", From: "end", Event: "e", Then: []machine.Target{{To: "a_b"}}},
			{ID: "r3", From: "a_b", Event: "e", Then: []machine.Target{{To: "a b"}}},
		},
	}
	text, err := looplab.Mermaid(machine.MustCompile(d).At(0))
	require.NoError(t, err)
	assert.Equal(t, `stateDiagram-v2
    [*] --> a_b
    a_b --> a_b_: e#r0
    a_b_ --> end_: e#r1
    a_b__ --> a_b: e#r3
    end_ --> a_b__: e#r2
    state "a b" as a_b
    state "a-b" as a_b_
    state "end" as end_
    state "a_b" as a_b__
`, text)
}
