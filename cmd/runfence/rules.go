package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
)

// rulesFlag gives a command the flag --rules.
func (a *app) rulesFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.rulesFile, "rules", "", "work with the definitions in this JSON file instead of the program's own")
	must(cmd.MarkFlagFilename("rules", "json"))
}

// theRules returns the rules of the flag --rules, or the program's.
func (a *app) theRules() (*machine.Rules, error) {
	if a.rulesFile == "" {
		return a.rules(), nil
	}
	in, err := a.openInput(a.rulesFile)
	if err != nil {
		return nil, err
	}
	defer in.close()
	r, err := machine.LoadRules(in)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", in.name, err)
	}
	return r, nil
}
