package scenario

import (
	"context"
	"fmt"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// environmentVerbs drive an environment that stands alone, without a lane.
var environmentVerbs = []verb{
	{name: "env new", run: (*session).envNew},
	{name: "env create", run: (*session).envCreate, params: []param{{name: "device", kind: count}}},
	{name: "env borrow", run: (*session).envBorrow, params: []param{{name: "device", kind: count}, {name: "generation", kind: count, need: true}}},
	{name: "env check", run: onEnv("the context is the right one", func(e *states.Environment, ctx context.Context) error { return e.Check(ctx) })},
	{name: "env device", run: (*session).envDevice},
	{name: "env complete", run: onEnv("initialisation is complete", (*states.Environment).Complete)},
	{name: "env rollback", run: onEnv("undone", (*states.Environment).Rollback)},
	{name: "env close", run: onEnv("torn down", (*states.Environment).Close)},
	{name: "env detach", run: onEnv("detached; everything is kept", (*states.Environment).Detach)},
	{name: "env identity", run: (*session).envIdentity},
	{name: "env state", run: (*session).envState},
}

// alone is an environment without a lane.
type alone struct {
	*states.Environment
	rules *machine.Rules
}

// environment returns the present environment, which is made when it is first
// needed.
func (s *session) environment() (*alone, error) {
	if s.alone != nil {
		return s.alone, nil
	}
	d, err := s.device()
	if err != nil {
		return nil, err
	}
	a := &alone{}
	if a.rules, err = machine.Compile(s.laneRules().Machine("environment").Definition()); err != nil {
		return nil, err
	}
	a.Environment, err = states.NewEnvironmentUnder(a.rules, d.Backend, func() int { return int(s.naming.processes[s.process]) })
	s.alone = a
	return a, err
}

// onEnv makes a verb of a method of environments.
func onEnv(ok string, f func(*states.Environment, context.Context) error) func(*session, *call) error {
	return func(s *session, c *call) error {
		e, err := s.environment()
		if err != nil {
			return err
		}
		s.mark(c.String())
		if err := f(e.Environment, free); err != nil {
			s.answer(c, "%s", s.said(e.rules, err))
			return nil
		}
		s.answer(c, "%s", ok)
		return nil
	}
}

func (s *session) envNew(c *call) error {
	s.alone = nil
	s.answer(c, "absent")
	return nil
}

func (s *session) envCreate(c *call) error {
	if _, err := s.device(); err != nil {
		return err
	}
	device := int(c.num("device", uint64(s.spec.ID)))
	return onEnv("owned", func(e *states.Environment, ctx context.Context) error { return e.Create(ctx, device) })(s, c)
}

func (s *session) envBorrow(c *call) error {
	if _, err := s.device(); err != nil {
		return err
	}
	device, generation := int(c.num("device", uint64(s.spec.ID))), c.num("generation", 0)
	return onEnv(fmt.Sprintf("borrowed, generation %d", generation), func(e *states.Environment, ctx context.Context) error {
		return e.Borrow(ctx, device, generation)
	})(s, c)
}

func (s *session) envDevice(c *call) error {
	e, err := s.environment()
	if err != nil {
		return err
	}
	n, err := e.Device(free)
	if err != nil {
		s.answer(c, "%s", s.said(e.rules, err))
		return nil
	}
	s.answer(c, "device %d", n)
	return nil
}

func (s *session) envIdentity(c *call) error {
	e, err := s.environment()
	if err != nil {
		return err
	}
	id, err := e.Identity()
	if err != nil {
		s.answer(c, "%s", s.said(e.rules, err))
		return nil
	}
	if id == (states.EnvironmentIdentity{}) {
		s.answer(c, "none")
		return nil
	}
	// The generation of an owned context is its incarnation's (F52).
	incarnation := s.naming.incarnation(id.Incarnation)
	policy, generation := "owned", incarnation
	if id.Borrowed {
		policy, generation = "borrowed", id.Generation
	}
	s.answer(c, "process %s, incarnation %d, generation %d, device %d, %s",
		s.naming.process(id.Process), incarnation, generation, id.Device, policy)
	return nil
}

func (s *session) envState(c *call) error {
	e, err := s.environment()
	if err != nil {
		return err
	}
	st, err := e.State()
	if err != nil {
		st = s.said(e.rules, err)
	}
	s.answer(c, "%s", st)
	return nil
}
