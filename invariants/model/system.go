package model

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// System is everything that does not change: rules, bounds, and the state that
// everything begins with. It is safe for concurrent use.
type System struct {
	config Config
	rules  *machine.Rules
	calls  int // that rules name
	at     places
	// weights rank states: see rank.
	weights *weights
	start   *State
}

// places are the positions of the names that the host uses.
type places struct {
	run, fence, token, drain, prepare, submit, health, environment, lane, recovery, outcome *machine.Machine

	ops                    [numOps]operation
	notice, skip, drop     machine.EventID
	identity               [3]machine.FactID // of run
	permit, arming, holder machine.FactID
	epoch, dispatch        int // sorts
	slots                  int // pool
	currentContext         machine.CallID
	idle, finalized        machine.StateID
	prepared               machine.StateID
	launched, partial      machine.StateID
	launching, drained     machine.StateID
	waiting                machine.StateID // of prepare
	live                   machine.StateID // of environment
	succeeded              machine.StateID // of outcome
}

type operation struct {
	m  *machine.Machine
	ev machine.EventID
}

// process is the one that makes the environment; stranger is another.
const (
	process  = 1
	stranger = 2
	// stale is an identity that no run ever has.
	stale = 1 << 40
)

const timeout = time.Second

// New returns a system whose lane is open, with everything having gone well.
// The error wraps [ErrConfig], or says what the rules lack or why they do not
// open a lane.
func New(c Config) (*System, error) {
	if c.Rules == nil {
		c.Rules = states.Rules()
	}
	s := &System{rules: c.Rules, calls: len(c.Rules.Calls())}
	var err error
	if s.config, err = c.withDefaults(); err != nil {
		return nil, err
	}
	if err := s.find(); err != nil {
		return nil, err
	}
	if s.weights, err = weigh(c.Rules); err != nil {
		return nil, err
	}
	s.start, err = s.Begin(nil)
	return s, err
}

// Bounded is New for other bounds and the same rules, and costs less.
func (s *System) Bounded(c Config) (*System, error) {
	c.Rules = s.rules
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	o := &System{config: c, rules: s.rules, calls: s.calls, at: s.at, weights: s.weights}
	o.start, err = o.Begin(nil)
	return o, err
}

// Pools are the capacities of the world's pools.
func (s *System) Pools() map[string]int {
	return map[string]int{"slot": s.config.Slots, "token": max(1, s.config.Tokens), "callable": 1, "watched": 2 * s.config.Slots}
}

// World is the name of the world in logs.
const World = "lane"

// Begin makes the state that everything begins with anew, with the recorder
// taking every record from the first on.
func (s *System) Begin(r machine.Recorder) (*State, error) {
	w, err := s.rules.NewWorld(machine.Config{Name: World, Pools: s.Pools()})
	if err != nil {
		return nil, err
	}
	dev, err := s.device()
	if err != nil {
		return nil, err
	}
	st := newState(s, w, dev)
	st.recorder = r
	if st.cmd, err = states.NewCommands(s.rules, &st.desk, s.config.Slots, timeout); err != nil {
		return nil, err
	}
	st.scratch = st.cmd.Clone(&st.desk)
	return st, s.ready(st)
}

// device makes the device: two kernels that shake hands, each waiting for the
// other, as those of a run may.
func (s *System) device() (*sim.Device, error) {
	core := sim.KernelSpec{Name: "core", Class: backend.AICore, Paired: true, Spin: true}
	cpu := sim.KernelSpec{Name: "cpu", Class: backend.AICPU, Paired: true}
	if s.config.Records {
		cpu.Stores = []sim.Store{
			{When: sim.AtExit, Through: true, Size: 8, FromArgs: true, Value: 8},
			{When: sim.AtExit, Through: true, Offset: 8, Size: 4},
		}
	}
	return sim.New(sim.Config{
		Borrowed: s.config.Borrowed, Kernels: []sim.KernelSpec{core, cpu}, NoProofs: true,
		Budget: uint8(s.config.Budget), Faults: s.config.Faults, FaultOps: s.config.FaultOps,
	})
}

func (s *System) find() error {
	a := &s.at
	for name, m := range map[string]**machine.Machine{
		"run": &a.run, "fence": &a.fence, "token": &a.token, "drain": &a.drain, "prepare": &a.prepare, "submit": &a.submit,
		"outcome": &a.outcome,
		"health":  &a.health, "environment": &a.environment, "lane": &a.lane, "recovery": &a.recovery,
	} {
		if *m = s.rules.Machine(name); *m == nil {
			return fmt.Errorf("model: the rules have no machine %q", name)
		}
	}
	for o := opOpen; o < numOps; o++ {
		m := s.rules.Machine(opMachines[o])
		if m == nil {
			return fmt.Errorf("model: the rules have no machine %q", opMachines[o])
		}
		a.ops[o] = operation{m, m.MustEvent(opEvents[o])}
	}
	a.notice, a.skip, a.drop = a.health.MustEvent("notice"), a.health.MustEvent("skip"), a.health.MustEvent("drop")
	for i, f := range a.run.IdentityFacts() {
		a.identity[i] = f
	}
	a.permit, a.arming, a.holder = a.run.MustFact("permit"), a.fence.MustFact("arming"), a.token.MustFact("holder")
	a.epoch, _ = s.rules.Sort("epoch")
	a.dispatch, _ = s.rules.Sort("dispatch")
	a.slots = slices.Index(s.rules.Pools(), "slot")
	a.currentContext, _ = s.rules.Call("CurrentContext")
	for name, x := range map[string]*machine.StateID{
		"idle": &a.idle, "finalized": &a.finalized, "prepared": &a.prepared, "launched": &a.launched, "partial": &a.partial, "launching": &a.launching, "drained": &a.drained,
	} {
		var ok bool
		if *x, ok = a.run.State(name); !ok {
			return fmt.Errorf("model: runs have no state %q", name)
		}
	}
	var ok bool
	if a.waiting, ok = a.prepare.State("waiting"); !ok {
		return errors.New("model: a preparation has no state waiting")
	}
	if a.succeeded, ok = a.outcome.State("succeeded"); !ok {
		return errors.New("model: an outcome has no state succeeded")
	}
	if a.live, ok = a.environment.State("live"); !ok {
		return errors.New("model: an environment has no state live")
	}
	return nil
}

// ready makes what the host has before it does anything, and opens the lane:
// each call of the device takes effect and returns at once, with no fault.
func (s *System) ready(st *State) error {
	work := states.Work{Core: 1, CPU: 2, Async: s.config.Async}
	if s.config.Caller {
		t := st.dev.Begin(sim.Op{Kind: sim.OpCreateStream})
		for range 2 {
			if f := st.simply(); f != nil {
				return f
			}
		}
		a, _ := st.dev.Take(t)
		st.caller = backend.Stream(a.Handle)
		work.Caller = st.caller
	}
	st.work = st.cmd.Define(work)
	st.scratch = st.cmd.Clone(&st.desk)
	st.host = host{
		runs: uint8(s.config.Runs), spare: uint8(s.config.Spare), polls: uint8(s.config.Polls),
		expiries: uint8(s.config.Expiries), recoveries: uint8(s.config.Recoveries),
	}
	if s.config.Opening {
		return nil
	}
	f := st.start(hostMove(opOpen, 0, themself))
	for f == nil && len(st.calls) > 0 {
		f = st.simply()
	}
	if f != nil {
		return f
	}
	if name := st.w.StateName(st.w.Ref(s.at.lane.ID(), 0)); name != "open" {
		return fmt.Errorf("model: the rules do not open the lane: it is %s", name)
	}
	st.moved()
	return nil
}

// Name says how the system is bounded.
func (s *System) Name() string { return s.config.String() }

// Config returns the bounds.
func (s *System) Config() Config { return s.config }

// Rules returns the lifecycles.
func (s *System) Rules() *machine.Rules { return s.rules }

// Hash names rules and bounds.
func (s *System) Hash() machine.Fingerprint {
	h := s.rules.Hash()
	text := append(h[:], s.Name()...)
	var d xxhash.Digest
	d.ResetWithSeed(1)
	_, _ = d.Write(text)
	return machine.Fingerprint{Hi: d.Sum64(), Lo: xxhash.Sum64(text)}
}

// New returns the state that everything begins with.
func (s *System) New() *State { return s.start.Clone() }
