// Package mutate breaks the rules, one change of one row at a time, and sees
// whether anybody notices: a scenario that answers otherwise, or an exploration
// that finds an invariant broken. What nobody notices is a hole, unless an
// exploration shows that within its bounds it makes no difference.
package mutate

import (
	"fmt"
	"slices"
	"sync"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/states"
)

// Rules are the two sets of lifecycles: those of a lane, and those of the
// orchestrator above it. They share no world.
type Rules struct {
	Lane, Orchestrator []*machine.Definition
	// lane and orchestrator are what they compile to.
	lane, orchestrator *machine.Rules
}

// Ours are the rules of this project.
func Ours() Rules {
	r := Rules{Lane: states.Definitions(), Orchestrator: states.OrchestratorDefinitions()}
	r.lane, r.orchestrator = machine.MustCompile(r.Lane...), machine.MustCompile(r.Orchestrator...)
	return r
}

// Mutants lists every single change of every row, in a fixed order: the lane's
// first.
func (r Rules) Mutants() []patch.Patch {
	return append(patch.Mutants(r.Lane), patch.Mutants(r.Orchestrator)...)
}

// Mutant is one way in which the rules are broken, compiled. The set that is
// not changed is the original.
type Mutant struct {
	Patches            []patch.Patch
	Lane, Orchestrator *machine.Rules
	// Above says that the orchestrator's rules are what is changed.
	Above bool

	of Rules
	// alike is the mutant that [Mutant.renumbered] returns, once it is asked for.
	alike func() (*Mutant, bool)
	// rows are those that the patches change, as they are.
	rows []machine.Row
}

// Base is the rules as they are.
func (r Rules) Base() (*Mutant, error) { return r.Mutant() }

// Mutant breaks the rules by some patches, all of one of the two sets. The
// error matches [*machine.DefinitionError] if they are no rules any more:
// the mutant is stillborn.
func (r Rules) Mutant(ps ...patch.Patch) (*Mutant, error) {
	m := &Mutant{Patches: ps, of: r, Lane: r.lane, Orchestrator: r.orchestrator}
	if len(ps) == 0 {
		return m, nil
	}
	for _, p := range ps {
		m.rows = append(m.rows, r.row(p))
	}
	set, to := r.Lane, &m.Lane
	if m.Above = slices.ContainsFunc(r.Orchestrator, func(d *machine.Definition) bool { return d.Name == ps[0].Machine }); m.Above {
		set, to = r.Orchestrator, &m.Orchestrator
	}
	set, err := patch.Apply(set, ps...)
	if err != nil {
		return nil, err
	}
	*to, err = machine.Compile(set...)
	m.alike = sync.OnceValues(m.renumbered)
	return m, err
}

// row is the row that a patch changes, as it is.
func (r Rules) row(p patch.Patch) machine.Row {
	for _, d := range slices.Concat(r.Lane, r.Orchestrator) {
		for i := range d.Rows {
			if d.Name == p.Machine && d.Rows[i].ID == p.Row {
				return d.Rows[i]
			}
		}
	}
	return machine.Row{}
}

// changed returns the set of rules that is changed.
func (m *Mutant) changed() *machine.Rules {
	if m.Above {
		return m.Orchestrator
	}
	return m.Lane
}

// Killer is somebody who may notice that rules are broken. It is safe for
// concurrent use.
type Killer interface {
	// Name says in a word or two who it is.
	Name() string
	// Kill looks whether the mutant is noticed, and says by what.
	Kill(m *Mutant) (how string, killed bool, err error)
}

// Texts are the patches' texts.
func Texts(ps []patch.Patch) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = fmt.Sprint(p)
	}
	return out
}
