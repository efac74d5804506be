package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/looplab"
)

func (a *app) graphCommand() *cobra.Command {
	var list bool
	format := option{value: "mermaid", what: "format of a diagram", words: []string{"mermaid", "dot"}}
	cmd := &cobra.Command{
		Use:   "graph MACHINE",
		Short: "Draw a machine's states and transitions",
		Long: `Graph prints a machine as a diagram, for Mermaid or for Graphviz's dot. An arrow
bears its event and row; a row with a command has a state of its own, "STATE▸ROW",
which is where the command is out, and an arrow for each outcome. Refusals are not
drawn.`,
		Example: `  runfence graph launch
  runfence graph fence --format dot | dot -Tsvg -o fence.svg
  runfence graph --list`,
		ValidArgsFunction: a.completeRules(1),
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return arguments(0, 0, "")(cmd, args)
			}
			return a.machineArguments(1, "a MACHINE, or --list")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			rules, err := a.theRules()
			switch {
			case err != nil:
				return err
			case list:
				return a.listMachines(rules)
			case a.json:
				return misused(cmd, "--json goes with --list")
			}
			m, err := findMachine(rules, args[0])
			if err != nil {
				return err
			}
			text, err := draw(m, format.value)
			a.out.println(strings.TrimRight(text, "\n"))
			return err
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the machines that can be drawn")
	cmd.Flags().Var(&format, "format", "the language of the diagram")
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(format.words, cobra.ShellCompDirectiveNoFileComp)))
	a.jsonFlag(cmd)
	a.rulesFlag(cmd)
	return cmd
}

func draw(m *machine.Machine, format string) (string, error) {
	if format == "dot" {
		return looplab.Graphviz(m), nil
	}
	return looplab.Mermaid(m)
}

// listed is a machine in a list.
type listed struct {
	Machine string `json:"machine"`
	Doc     string `json:"doc,omitempty"`
	Source  string `json:"source,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Hash    string `json:"hash"`
	States  int    `json:"states"`
	Events  int    `json:"events"`
	Rows    int    `json:"rows"`
}

func (a *app) listMachines(rules *machine.Rules) error {
	var all []listed
	var lines [][2]string
	for i := range rules.NumMachines() {
		m := rules.At(machine.MachineID(i))
		d := m.Definition()
		all = append(all, listed{d.Name, d.Doc, d.Source, d.Pool, m.Hash().String(), len(d.States), len(d.Events), len(d.Rows)})
		lines = append(lines, [2]string{d.Name, d.Doc})
	}
	if a.json {
		return a.out.json(all)
	}
	a.explainer().list(lines)
	return nil
}
