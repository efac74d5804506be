package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/invariants/explore/mutate"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/scenario"
)

// mutateFlags are the flags of mutate.
type mutateFlags struct {
	machine, row string
	list, quick  bool
	limit, every number
	shard        shard
	workers      number
}

// shard is the i-th of n parts.
type shard struct{ i, n int }

// String implements pflag.Value.
func (s *shard) String() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.i, s.n)
}

// Set implements pflag.Value.
func (s *shard) Set(text string) error {
	a, b, _ := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || n < 1 || i < 1 || i > n {
		return errors.New("want I/N, from 1/N to N/N")
	}
	*s = shard{i, n}
	return nil
}

// Type implements pflag.Value.
func (s *shard) Type() string { return "I/N" }

func (a *app) mutateCommand() *cobra.Command {
	var f mutateFlags
	cmd := &cobra.Command{
		Use:   "mutate",
		Short: "Break the rules, one change at a time, and see whether anybody notices",
		Long: `Mutate makes every single change of every row of the rules: a row is not there,
a guard or a part of it dropped or negated, a target another state, an update
dropped or changed, an event that is taken along or sent dropped, an outcome taken
for another, a command not carried out, a refusal not made. Each is tried in turn.

A change that is no rules any more is stillborn, and counts for nothing. Of the
others somebody must notice each: a scenario of this project whose answers change,
or an exploration of the changed rules that finds an invariant broken. A change
that nobody notices and that makes no difference in any of the explored models is
equivalent within their bounds, which are printed. Any other is a hole, exit 1.

--list prints the changes, each in the form that 'patch' takes at the head of a
scenario.`,
		Example: `  runfence mutate
  runfence mutate --machine drain --row core_wait
  runfence mutate --list --machine fence
  runfence mutate --every 40 --quick
  runfence mutate --shard 1/4 --json`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.mutate(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.machine, "machine", "", "only rows of this machine")
	fl.StringVar(&f.row, "row", "", "only this row of the machine")
	fl.BoolVar(&f.list, "list", false, "print the changes and make none")
	fl.BoolVar(&f.quick, "quick", false, "explore the small models only")
	fl.Var(&f.limit, "limit", "only so many of the changes")
	fl.Var(&f.every, "every", "only every so-manieth of the changes")
	fl.Var(&f.shard, "shard", "only the I-th of N parts")
	fl.Var(&f.workers, "workers", "how many changes to try at a time (default: one for each processor)")
	must(cmd.RegisterFlagCompletionFunc("machine", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return machineNames(mutate.Ours()), cobra.ShellCompDirectiveNoFileComp
	}))
	for _, name := range []string{"row", "limit", "every", "shard", "workers"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	a.jsonFlag(cmd)
	return cmd
}

func machineNames(r mutate.Rules) (out []string) {
	for _, d := range slices.Concat(r.Lane, r.Orchestrator) {
		out = append(out, d.Name)
	}
	return out
}

// chosen are the changes that the flags ask for.
func (f *mutateFlags) chosen(cmd *cobra.Command, r mutate.Rules) ([]patch.Patch, error) {
	if f.row != "" && f.machine == "" {
		return nil, misused(cmd, "--row is of a machine: give --machine too")
	}
	if f.machine != "" {
		if known := machineNames(r); !slices.Contains(known, f.machine) {
			return nil, misused(cmd, "%s", machine.Unknown("machine", f.machine, known))
		}
	}
	var rows []string
	all := slices.DeleteFunc(r.Mutants(), func(p patch.Patch) bool {
		if f.machine != "" && p.Machine != f.machine {
			return true
		}
		rows = append(rows, p.Row)
		return f.row != "" && p.Row != f.row
	})
	if len(all) == 0 {
		slices.Sort(rows)
		return nil, misused(cmd, "%s", machine.Unknown("row of "+f.machine, f.row, slices.Compact(rows)))
	}
	var out []patch.Patch
	for i, p := range all {
		switch {
		case f.every.given && f.every.n > 0 && uint64(i)%f.every.n != 0:
		case f.shard.n > 0 && i%f.shard.n != f.shard.i-1:
		case f.limit.given && uint64(len(out)) >= f.limit.n:
		default:
			out = append(out, p)
		}
	}
	return out, nil
}

// mutated is what mutate prints.
type mutated struct {
	Mutants    int              `json:"mutants"`
	Stillborn  int              `json:"stillborn"`
	Killed     int              `json:"killed"`
	By         map[string]int   `json:"killed_by"`
	Equivalent int              `json:"equivalent"`
	Holes      int              `json:"holes"`
	Bounds     []string         `json:"bounds"`
	Outcomes   []mutate.Outcome `json:"outcomes"`
}

func (a *app) mutate(cmd *cobra.Command, f mutateFlags) error {
	rules := mutate.Ours()
	list, err := f.chosen(cmd, rules)
	if err != nil {
		return err
	}
	if f.list {
		if a.json {
			return a.out.json(mutate.Texts(list))
		}
		for _, p := range list {
			a.out.println(p.String())
		}
		return nil
	}
	ctx, stop := a.interruptible()
	defer stop()
	base, err := rules.Base()
	if err != nil {
		return err
	}
	dir, err := fs.Sub(scenario.Examples, "testdata")
	if err != nil {
		return err
	}
	scripts, err := mutate.NewScenarios(dir, base)
	if err != nil {
		return err
	}
	models := mutate.Small()
	if !f.quick {
		models = mutate.Models()
	}
	explored, err := mutate.NewExplorations(models, base)
	if err != nil {
		return err
	}
	c := mutate.Campaign{
		Rules: rules, Mutants: list, Workers: int(min(f.workers.n, 256)), Differ: explored,
		Killers: []mutate.Killer{scripts, explored, mutate.SmallLanes()},
	}
	p, holes, began := a.newProgress(uint64(len(list))), 0, time.Now()
	c.Progress = func(done int, o mutate.Outcome) {
		if o.Fate == mutate.Hole {
			holes++
		}
		p.tellMutants(time.Since(began), done, len(list), holes)
	}
	outcomes, err := c.Run(ctx)
	p.end()
	if err != nil {
		return err
	}
	return a.mutatedCame(summed(outcomes, explored.Bounds()))
}

// mutatedCame prints what came of it; a hole is a finding.
func (a *app) mutatedCame(x *mutated) error {
	if a.json {
		if err := a.out.json(x); err != nil {
			return err
		}
	} else {
		a.printMutated(x)
	}
	if x.Holes > 0 {
		return found("")
	}
	return nil
}

func summed(outcomes []mutate.Outcome, bounds []string) *mutated {
	x := &mutated{Mutants: len(outcomes), By: map[string]int{}, Bounds: bounds, Outcomes: outcomes}
	for _, o := range outcomes {
		switch o.Fate {
		case mutate.Stillborn:
			x.Stillborn++
		case mutate.Killed:
			x.Killed++
			x.By[o.By]++
		case mutate.Equivalent:
			x.Equivalent++
		case mutate.Hole:
			x.Holes++
		}
	}
	return x
}

func (a *app) printMutated(x *mutated) {
	s := a.styled()
	var by []string
	for _, k := range slices.Sorted(maps.Keys(x.By)) {
		by = append(by, fmt.Sprintf("%d by %s", x.By[k], k))
	}
	rows := [][]string{
		{"changes", strconv.Itoa(x.Mutants)},
		{"stillborn", fmt.Sprintf("%d are no rules", x.Stillborn)},
		{"killed", fmt.Sprintf("%d: %s", x.Killed, strings.Join(by, ", "))},
		{"equivalent", fmt.Sprintf("%d, within the bounds", x.Equivalent)},
		{"holes", strconv.Itoa(x.Holes)},
	}
	a.out.table("", rows)
	if x.Equivalent > 0 {
		a.out.println("")
		a.out.println(s.bold("The bounds"))
		for _, b := range x.Bounds {
			a.out.println("  " + b)
		}
	}
	for _, what := range []struct {
		fate  mutate.Fate
		title string
	}{{mutate.Equivalent, "Equivalent within the bounds"}, {mutate.Hole, "Holes"}} {
		shown := false
		for _, o := range x.Outcomes {
			if o.Fate != what.fate {
				continue
			}
			if !shown {
				a.out.println("")
				a.out.println(s.bold(what.title))
				shown = true
			}
			a.out.println("  " + printable(o.ID))
			a.out.println("      " + s.dim(printable(o.How)))
		}
	}
	a.out.println("")
	if x.Holes == 0 {
		a.out.println(s.green("holds: somebody notices each change, or it makes no difference"))
	} else {
		a.out.println(s.red(fmt.Sprintf("%s: nobody notices", plural(x.Holes, "hole"))))
	}
}
