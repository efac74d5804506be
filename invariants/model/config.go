package model

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// Config bounds a [System].
type Config struct {
	// Rules are the lifecycles; nil is states.Rules.
	Rules *machine.Rules
	// Slots and Depth are the lane's; 0 means 1.
	Slots, Depth int
	// Runs is how many runs the host starts; 0 means 1.
	Runs int
	// Submit starts a run with one operation, behind the run before it, instead
	// of preparing and launching it.
	Submit bool
	// Caller orders each run against a stream of the caller's.
	Caller bool
	// Async publishes the arguments on the device.
	Async bool
	// Borrowed adopts a caller's context.
	Borrowed bool
	// Records has the kernels report that all is well.
	Records bool
	// Threads is how many operations of the host's may be under way at a time;
	// 0 means 1.
	Threads int
	// Spare is how many operations the host may start beyond one of a kind a run.
	Spare int
	// Polls is how many polls the host makes.
	Polls int
	// Expiries is how many bounded waits may expire while nothing hangs.
	Expiries int
	// Recoveries is how often the host asks for recovery.
	Recoveries int
	// Tokens is how many wait references the host has; it queues waits of one
	// slot's streams on another's boundaries with them.
	Tokens int
	// Opening begins with a lane that is not open yet, and has the host open it.
	Opening bool
	// Detach has the host give the lane up without a close, at any time.
	Detach bool
	// Close has the host close the lane, at any time.
	Close bool
	// Quarantine has the host declare a quarantine, at any time.
	Quarantine bool
	// Strangers has a foreign process, and a host with a stale identity, try
	// every operation.
	Strangers bool
	// Faults strike at most Budget times, the calls in FaultOps; zero is all.
	Faults   sim.FaultSet
	FaultOps sim.OpSet
	Budget   int
	// Exact names states by all they hold instead of up to symmetry.
	Exact bool
}

// ErrConfig reports bounds that are none.
var ErrConfig = errors.New("model: impossible bounds")

const maxSlots = 8

func (c Config) withDefaults() (Config, error) {
	for _, n := range []*int{&c.Slots, &c.Depth, &c.Runs, &c.Threads} {
		if *n == 0 {
			*n = 1
		}
	}
	switch {
	case c.Slots < 1 || c.Slots > maxSlots:
		return c, fmt.Errorf("%w: %d slots: want 1 to %d", ErrConfig, c.Slots, maxSlots)
	case c.Depth < 1 || c.Depth > c.Slots:
		return c, fmt.Errorf("%w: depth %d: want 1 to the number of slots", ErrConfig, c.Depth)
	case c.Runs < 1 || c.Runs > 200, c.Spare < 0 || c.Spare > 200, c.Polls < 0 || c.Polls > 200, c.Expiries < 0 || c.Expiries > 200,
		c.Recoveries < 0 || c.Recoveries > 200, c.Budget < 0 || c.Budget > 200, c.Tokens < 0 || c.Tokens > 8:
		return c, fmt.Errorf("%w: a count below zero, over 200, or over 8 tokens", ErrConfig)
	case c.Threads < 1 || c.Threads > 4:
		return c, fmt.Errorf("%w: %d threads: want 1 to 4", ErrConfig, c.Threads)
	}
	return c, nil
}

// String writes the bounds in one line, as [ParseConfig] reads them.
func (c Config) String() string {
	c, _ = c.withDefaults()
	var out []string
	for _, n := range c.numbers() {
		if *n.v != n.no {
			out = append(out, fmt.Sprintf("%s=%d", n.name, *n.v))
		}
	}
	for _, f := range c.flags() {
		if *f.on {
			out = append(out, f.name)
		}
	}
	if c.Budget > 0 {
		out = append(out, "kinds="+faultText(c.Faults))
		if c.FaultOps != 0 {
			out = append(out, "calls="+opText(c.FaultOps))
		}
	}
	return strings.Join(out, " ")
}

type number struct {
	name string
	v    *int
	// no is what need not be said.
	no int
}

func (c *Config) numbers() []number {
	return []number{
		{"runs", &c.Runs, -1},
		{"slots", &c.Slots, 1},
		{"depth", &c.Depth, 1},
		{"threads", &c.Threads, 1},
		{"spare", &c.Spare, 0},
		{"polls", &c.Polls, 0},
		{"expiries", &c.Expiries, 0},
		{"recoveries", &c.Recoveries, 0},
		{"tokens", &c.Tokens, 0},
		{"faults", &c.Budget, 0},
	}
}

type toggle struct {
	name string
	on   *bool
}

func (c *Config) flags() []toggle {
	return []toggle{
		{"submit", &c.Submit},
		{"caller", &c.Caller},
		{"async", &c.Async},
		{"borrowed", &c.Borrowed},
		{"records", &c.Records},
		{"opening", &c.Opening},
		{"close", &c.Close},
		{"detach", &c.Detach},
		{"quarantine", &c.Quarantine},
		{"strangers", &c.Strangers},
		{"exact", &c.Exact},
	}
}
