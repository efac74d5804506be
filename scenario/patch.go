package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/states"
)

// patched is a line at the head of a script that changes the rules it runs by.
type patched struct {
	patch.Patch
	line int
}

// patchWord begins such a line.
const patchWord = "patch"

var errLatePatch = errors.New("patch: the rules cannot change any more; patches come before the first command")

func isPatch(line string) bool {
	f := strings.Fields(line)
	return len(f) > 0 && f[0] == patchWord
}

// patchLine reads a line of patches.
func patchLine(file string, n int, line string) (patched, error) {
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), patchWord))
	p, err := patch.Parse(text)
	if err != nil {
		err = &Error{File: file, Line: n, Err: fmt.Errorf("patch: %w", err)}
	}
	return patched{p, n}, err
}

// Rules returns the rules of a lane that a script runs by: base, or
// [states.Rules] for nil, with the changes that the script begins with. It is
// base itself if there are none of a lane's. Errors are those of [Run].
func Rules(name string, src []byte, base *machine.Rules) (*machine.Rules, error) {
	o := Options{Rules: base}
	parts, err := read(name, src)
	if err == nil {
		err = o.fill(name, parts)
	}
	return o.Rules, err
}

// fill fills in what was left out, and the rules that the script asks for.
func (o *Options) fill(file string, parts []part) error {
	if o.Rules == nil {
		o.Rules = states.Rules()
	}
	if o.Orchestrator == nil {
		o.Orchestrator = states.OrchestratorRules()
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = 10_000
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 4 << 20
	}
	if o.MaxTransitions == 0 {
		o.MaxTransitions = 1_000_000
	}
	var lane, above []patched
	for _, p := range parts {
		for _, x := range p.patches {
			switch {
			case o.Rules.Machine(x.Machine) != nil:
				lane = append(lane, x)
			case o.Orchestrator.Machine(x.Machine) != nil:
				above = append(above, x)
			default:
				known := slices.Concat(o.Rules.Machines(), o.Orchestrator.Machines())
				return &Error{File: file, Line: x.line, Err: errors.New("patch: " + machine.Unknown("machine", x.Machine, known))}
			}
		}
	}
	var err error
	if o.Rules, err = change(file, o.Rules, lane); err != nil {
		return err
	}
	o.Orchestrator, err = change(file, o.Orchestrator, above)
	return err
}

// change returns the rules with the changes made.
func change(file string, rules *machine.Rules, patches []patched) (*machine.Rules, error) {
	if len(patches) == 0 {
		return rules, nil
	}
	defs := make([]*machine.Definition, rules.NumMachines())
	for i := range defs {
		defs[i] = rules.At(machine.MachineID(i)).Definition()
	}
	var err error
	for _, p := range patches {
		if defs, err = patch.Apply(defs, p.Patch); err != nil {
			return nil, &Error{File: file, Line: p.line, Err: fmt.Errorf("patch: %w", err)}
		}
	}
	rules, err = machine.Compile(defs...)
	if err != nil {
		return nil, &Error{File: file, Line: patches[len(patches)-1].line, Err: fmt.Errorf("the rules do not compile with the patches: %w", err)}
	}
	return rules, nil
}

// runaway is what a script panics with whose rules never come to an end.
type runaway struct{}

// spend counts a transition of the script, or ends it.
func (s *session) spend() {
	if s.transitions++; s.transitions > s.opts.MaxTransitions {
		panic(runaway{})
	}
}
