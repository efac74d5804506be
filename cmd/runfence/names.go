package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
)

// loose is a name as it may be typed: the case does not count, and neither
// does whether words are joined by spaces, dashes or underscores, nor which
// arrow stands before a row in flight.
func loose(name string) string {
	return strings.NewReplacer("-", " ", "_", " ", ">", "▸").Replace(strings.ToLower(name))
}

// resolve finds what is meant by a name: the one that is equal, or else the
// one that is equal but for spelling.
func resolve(what, name string, known []string) (int, error) {
	if i := slices.Index(known, name); i >= 0 {
		return i, nil
	}
	for i, k := range known {
		if loose(k) == loose(name) {
			return i, nil
		}
	}
	return -1, fmt.Errorf("%s", machine.Unknown(what, name, known))
}

func findMachine(r *machine.Rules, name string) (*machine.Machine, error) {
	i, err := resolve("machine", name, r.Machines())
	if err != nil {
		return nil, err
	}
	return r.At(machine.MachineID(i)), nil
}

// place is where an instance may be: in a state, or in flight on a row.
type place struct {
	m      *machine.Machine
	state  machine.StateID
	during machine.RowID // NoRowID if not in flight
}

func (p place) name() string {
	if p.during != machine.NoRowID {
		return p.m.InFlightName(p.during)
	}
	return p.m.StateName(p.state)
}

// places lists all of a machine's: its states, then its rows in flight.
func places(m *machine.Machine) []place {
	var all []place
	for s := range m.NumStates() {
		all = append(all, place{m, machine.StateID(s), machine.NoRowID})
	}
	for r := range m.NumRows() {
		if id := machine.RowID(r); m.Row(id).Command != "" {
			s, _ := m.RowFrom(id)
			all = append(all, place{m, s, id})
		}
	}
	return all
}

func placeNames(m *machine.Machine) []string {
	var names []string
	for _, p := range places(m) {
		names = append(names, p.name())
	}
	return names
}

// findPlace finds a state. An event in its place is a mistake worth a word.
func findPlace(m *machine.Machine, name string) (place, error) {
	names := placeNames(m)
	i, err := resolve("state of "+m.Name(), name, names)
	if err == nil {
		return places(m)[i], nil
	}
	if e, everr := resolve("event", name, eventNames(m)); everr == nil {
		return place{}, fmt.Errorf("%s is an event of %s, not a state; it is for %s", eventNames(m)[e], m.Name(), strings.Join(statesOf(m, machine.EventID(e)), ", "))
	}
	// The rows in flight are too many to be listed.
	if m.NumStates() < len(names) && !strings.Contains(err.Error(), "did you mean") {
		_, err = resolve("state of "+m.Name(), name, names[:m.NumStates()])
	}
	return place{}, err
}

// statesOf lists the states that have rows for an event, quoted as a shell
// needs them.
func statesOf(m *machine.Machine, e machine.EventID) []string {
	var out []string
	for s := range m.NumStates() {
		if len(m.RowsOf(machine.StateID(s), machine.NoRowID, e)) > 0 {
			out = append(out, fmt.Sprintf("%q", m.StateName(machine.StateID(s))))
		}
	}
	return out
}

func eventNames(m *machine.Machine) []string {
	var names []string
	for e := range m.NumEvents() {
		names = append(names, m.EventName(machine.EventID(e)))
	}
	return names
}

// machineArguments checks the arguments of a command whose first is a machine.
// Without one it lists them.
func (a *app) machineArguments(most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			rules, err := a.theRules()
			if err != nil {
				return err
			}
			return misused(cmd, "%s needs %s; the machines are %s", cmd.CommandPath(), names, strings.Join(rules.Machines(), ", "))
		}
		return arguments(1, most, names)(cmd, args)
	}
}

// completeRules completes MACHINE STATE EVENT, as far as a command takes them.
func (a *app) completeRules(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const done = cobra.ShellCompDirectiveNoFileComp
		if len(args) >= most {
			return nil, done
		}
		rules, err := a.theRules()
		if err != nil {
			return nil, done
		}
		if len(args) == 0 {
			var out []string
			for i := range rules.NumMachines() {
				d := rules.At(machine.MachineID(i)).Definition()
				out = append(out, cobra.CompletionWithDesc(d.Name, d.Doc))
			}
			return out, done
		}
		m, err := findMachine(rules, args[0])
		if err != nil {
			return nil, done
		}
		if len(args) == 1 {
			var out []string
			for _, s := range m.Definition().States {
				out = append(out, cobra.CompletionWithDesc(s.Name, s.Doc))
			}
			return out, done
		}
		p, err := findPlace(m, args[1])
		if err != nil {
			return nil, done
		}
		var out []string
		for i, e := range m.Definition().Events {
			if len(m.RowsOf(p.state, p.during, machine.EventID(i))) > 0 {
				out = append(out, cobra.CompletionWithDesc(e.Name, e.Doc))
			}
		}
		return out, done
	}
}
