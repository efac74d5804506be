package model

import (
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

// ParseConfig reads what [Config.String] writes: NAME=NUMBER and the names of
// flags, in any order. Its errors wrap [ErrConfig] and name the nearest word.
func ParseConfig(text string) (Config, error) {
	var c Config
	numbers := map[string]*int{
		"runs": &c.Runs, "slots": &c.Slots, "depth": &c.Depth, "threads": &c.Threads, "spare": &c.Spare, "polls": &c.Polls,
		"expiries": &c.Expiries, "recoveries": &c.Recoveries, "tokens": &c.Tokens, "faults": &c.Budget,
	}
	known := []string{"kinds", "calls"}
	for n := range numbers {
		known = append(known, n)
	}
	flags := map[string]*bool{}
	for _, f := range c.flags() {
		flags[f.name] = f.on
		known = append(known, f.name)
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
			for _, n := range strings.Split(value, ",") {
				k, perr := sim.ParseOpKind(n)
				if perr != nil {
					err = perr
				}
				c.FaultOps |= sim.Ops(k)
			}
		default:
			return c, fmt.Errorf("%w: %s", ErrConfig, machine.Unknown("bound", word, known))
		}
		if err != nil {
			return c, fmt.Errorf("%w: %s: %w", ErrConfig, word, err)
		}
	}
	if c.Budget > 0 && c.Faults == 0 {
		c.Faults = EveryFault
	}
	if _, err := c.withDefaults(); err != nil {
		return c, err
	}
	return c, nil
}
