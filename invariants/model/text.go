package model

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

const (
	firstFault, lastFault = sim.Refuse, sim.Unconfirmed
	firstOp, lastOp       = sim.OpCurrentContext, sim.OpReset
)

func faultText(s sim.FaultSet) string {
	var out []string
	for k := firstFault; k <= lastFault; k++ {
		if s.Has(k) {
			out = append(out, k.String())
		}
	}
	return strings.Join(out, ",")
}

func opText(s sim.OpSet) string {
	var out []string
	for k := firstOp; k <= lastOp; k++ {
		if s.Has(k) {
			out = append(out, k.String())
		}
	}
	return strings.Join(out, ",")
}

// EveryFault is every kind of fault that a choice can inject.
var EveryFault = sim.Faults(sim.Refuse, sim.FailBefore, sim.FailAfter, sim.FailAccepted, sim.PanicBefore, sim.PanicAfter, sim.KernelFatal, sim.KernelHang, sim.NoticeLost, sim.Unconfirmed)

// ParseFaults reads a list of kinds of faults, "all" among them.
func ParseFaults(list string) (set sim.FaultSet, err error) {
	for _, name := range strings.Split(list, ",") {
		if name == "all" {
			set |= EveryFault
			continue
		}
		k, err := sim.ParseFaultKind(name)
		if err != nil || !EveryFault.Has(k) {
			return 0, fmt.Errorf("%w: %s", ErrConfig, machine.Unknown("kind of fault", name, strings.Split(faultText(EveryFault)+",all", ",")))
		}
		set |= sim.Faults(k)
	}
	return set, nil
}

// Bound names one of the bounds of a [Config].
type Bound struct {
	Name string
	// Number bounds are NAME=NUMBER, List bounds NAME=A,B; the others are flags.
	Number, List bool
}

// Bounds lists the bounds that [ParseConfig] knows.
func Bounds() (out []Bound) {
	var c Config
	for _, n := range c.numbers() {
		out = append(out, Bound{Name: n.name, Number: true})
	}
	for _, f := range c.flags() {
		out = append(out, Bound{Name: f.name})
	}
	return append(out, Bound{Name: "kinds", List: true}, Bound{Name: "calls", List: true})
}

// ParseConfig reads what [Config.String] writes: NAME=NUMBER and the names of
// flags, in any order. Its errors wrap [ErrConfig] and name the nearest word.
func ParseConfig(text string) (Config, error) {
	var c Config
	numbers, flags := map[string]*int{}, map[string]*bool{}
	for _, n := range c.numbers() {
		numbers[n.name] = n.v
	}
	for _, f := range c.flags() {
		flags[f.name] = f.on
	}
	for _, word := range strings.Fields(text) {
		name, value, valued := strings.Cut(word, "=")
		var err error
		switch {
		case !valued && flags[name] != nil:
			*flags[name] = true
		case valued && numbers[name] != nil:
			*numbers[name], err = strconv.Atoi(value)
		case valued && name == "kinds":
			c.Faults, err = ParseFaults(value)
		case valued && name == "calls":
			c.FaultOps, err = parseOps(value)
		default:
			var known []string
			for _, b := range Bounds() {
				known = append(known, b.Name)
			}
			err = errors.New(machine.Unknown("bound", name, known))
		}
		if err != nil {
			return c, fmt.Errorf("%w: %s: %w", ErrConfig, word, err)
		}
	}
	if c.Budget > 0 && c.Faults == 0 {
		c.Faults = EveryFault
	}
	_, err := c.withDefaults()
	return c, err
}

func parseOps(list string) (set sim.OpSet, err error) {
	for _, n := range strings.Split(list, ",") {
		k, err := sim.ParseOpKind(n)
		if err != nil {
			return 0, err
		}
		set |= sim.Ops(k)
	}
	return set, nil
}
