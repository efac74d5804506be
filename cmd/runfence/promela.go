package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/invariants/explore/promela"
	"github.com/runfence/runfence/machine"
)

func (a *app) promelaCommand() *cobra.Command {
	var check, faults, large, list bool
	var write string
	cmd := &cobra.Command{
		Use:   "promela [MODEL]",
		Short: "Print the run model in Promela, or hold SPIN's search of it against ours",
		Long: `Promela prints a model for the model checker SPIN: the rules of fences, wait
references, joins and a caller's order, each row as one step, and a device and a
host around them that are written by hand.

With --check SPIN searches the models and so do we, and both must count as many
states and as many transitions. With --faults the rules are broken on purpose, one
mistake at a time, and both must find it after as many steps. Either needs the
Debian packages spin and gcc.`,
		Example: `  runfence promela --list
  runfence promela 'a token' > token.pml
  runfence promela --check --faults`,
		RunE: func(cmd *cobra.Command, args []string) error {
			rules, err := a.theRules()
			if err != nil {
				return err
			}
			var defs []*machine.Definition
			for i := range rules.NumMachines() {
				defs = append(defs, rules.At(machine.MachineID(i)).Definition())
			}
			shapes := promela.Shapes(large || len(args) > 0 || list)
			if len(args) > 0 {
				if shapes, err = shapeNamed(cmd, shapes, strings.Join(args, " ")); err != nil {
					return err
				}
			}
			switch {
			case list:
				for _, s := range shapes {
					a.out.println(s.String())
				}
				return nil
			case check || faults:
				ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
				defer stop()
				c := comparison{a: a, defs: defs, large: large, write: write}
				return c.run(ctx, shapes, check, faults)
			}
			run, err := promela.RunRules(defs, nil)
			if err != nil {
				return err
			}
			text, err := promela.Program(run, shapes[0])
			a.out.println(strings.TrimRight(text, "\n"))
			return err
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "count states with SPIN and here, and compare")
	cmd.Flags().BoolVar(&faults, "faults", false, "find mistakes made on purpose with SPIN and here, and compare")
	cmd.Flags().BoolVar(&large, "large", false, "with the models that take minutes")
	cmd.Flags().BoolVar(&list, "list", false, "list the models and their bounds")
	cmd.Flags().StringVar(&write, "write", "", "put the tables into this page, between its marks")
	a.rulesFlag(cmd)
	return cmd
}

func shapeNamed(cmd *cobra.Command, shapes []promela.Shape, name string) ([]promela.Shape, error) {
	var names []string
	for _, s := range shapes {
		if s.Name == name {
			return []promela.Shape{s}, nil
		}
		names = append(names, s.Name)
	}
	return nil, misused(cmd, "%s", machine.Unknown("model", name, names))
}

// comparison holds SPIN's searches against ours.
type comparison struct {
	a     *app
	defs  []*machine.Definition
	large bool
	write string
}

func (c *comparison) run(ctx context.Context, shapes []promela.Shape, check, faults bool) error {
	spin, err := promela.FindSpin()
	if err != nil {
		return err
	}
	var counts []promela.Count
	var caught []promela.Caught
	agree := true
	if check {
		rules, err := promela.RunRules(c.defs, nil)
		if err != nil {
			return err
		}
		for _, s := range shapes {
			n, err := promela.CountBoth(ctx, spin, rules, s)
			if err != nil {
				return err
			}
			counts, agree = append(counts, n), agree && n.Agrees()
			c.say(s.Name, n.Agrees())
		}
	}
	if faults {
		for _, f := range promela.Faults(c.large) {
			n, err := promela.CatchBoth(ctx, spin, c.defs, f)
			if err != nil {
				return err
			}
			caught, agree = append(caught, n), agree && n.Agrees()
			c.say(f.Name, n.Agrees())
		}
	}
	section := promela.Section(counts, caught)
	if err := promela.Table(c.a.out, section); err != nil {
		return err
	}
	if c.write != "" {
		if err := promela.WriteSection(c.write, section); err != nil {
			return err
		}
	}
	if !agree {
		return found("SPIN and we do not agree")
	}
	return nil
}

// say tells on the way how one comparison ended.
func (c *comparison) say(name string, agrees bool) {
	word := "agree"
	if !agrees {
		word = "differ"
	}
	fmt.Fprintf(c.a.stderr, "%s: %s\n", name, word)
}
