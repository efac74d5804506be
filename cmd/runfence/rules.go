package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
)

// rulesFlag gives a command the flag --rules.
func (a *app) rulesFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.rulesFile, "rules", "", "work with the definitions in this JSON file instead of the program's own")
	must(cmd.MarkFlagFilename("rules", "json"))
}

// patchFlag gives a command the flag --patch.
func (a *app) patchFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.patches, "patch", nil, "change the rules first: MACHINE/ROW: CHANGE; may be repeated")
	must(cmd.RegisterFlagCompletionFunc("patch", cobra.NoFileCompletions))
}

// theRules returns the rules of the flag --rules, or the program's, as the
// flags --patch change them.
func (a *app) theRules() (*machine.Rules, error) {
	r, err := a.baseRules()
	if err != nil || len(a.patches) == 0 {
		return r, err
	}
	var patches []patch.Patch
	for _, text := range a.patches {
		p, err := patch.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("--patch: %w", err)
		}
		patches = append(patches, p)
	}
	defs, err := patch.Apply(definitions(r), patches...)
	if err != nil {
		return nil, fmt.Errorf("--patch: %w", err)
	}
	if r, err = machine.Compile(defs...); err != nil {
		return nil, fmt.Errorf("--patch: %w", err)
	}
	return r, nil
}

// definitions are what rules were compiled from.
func definitions(r *machine.Rules) []*machine.Definition {
	out := make([]*machine.Definition, r.NumMachines())
	for i := range out {
		out[i] = r.At(machine.MachineID(i)).Definition()
	}
	return out
}

func (a *app) baseRules() (*machine.Rules, error) {
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
