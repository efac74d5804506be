package scenario

import (
	"errors"
	"fmt"

	"github.com/runfence/runfence/machine"
)

// orchestratorVerbs step a world of the orchestrator's lifecycles by hand, which
// have no device: every answer of what is below is the script's to give.
var orchestratorVerbs = []verb{
	{name: "orch begin", run: (*session).orchBegin, params: []param{
		{name: "runs", kind: count, max: 16},
		{name: "objects", kind: count, max: 64},
		{name: "domains", kind: count, max: 64},
		{name: "tasks", kind: count, max: 64},
		{name: "endpoints", kind: count, max: 16},
		{name: "level", kind: count, max: 16},
		{name: "new"},
	}},
	{name: "orch go", run: (*session).orchGo, params: []param{{name: "instance", kind: text, place: true, need: true}}},
	{name: "orch end", run: (*session).orchEnd},
}

func init() {
	for i := range orchestratorVerbs {
		verbs[orchestratorVerbs[i].name] = &orchestratorVerbs[i]
	}
}

func (s *session) orchBegin(c *call) error {
	switch {
	case s.pure != nil:
		return errors.New("orch begin: a pure world is begun already")
	case c.has("new") && c.has("level"):
		return errors.New("orch begin: the level is given by init, and new is before it")
	}
	rules := s.opts.Orchestrator
	w, err := rules.NewWorld(machine.Config{Name: "orchestrator", Pools: map[string]int{
		"work": int(c.num("runs", 2)), "resource": int(c.num("objects", 4)), "domain": int(c.num("domains", 4)), "task": int(c.num("tasks", 4)),
		"endpoint": int(c.num("endpoints", 2)),
	}})
	if err != nil {
		return err
	}
	is := "not initialised"
	if !c.has("new") {
		level := c.num("level", 3)
		o := rules.Machine("orchestrator")
		w.Issue(machine.Ref{Machine: o.ID()}, o.MustEvent("init"), level)
		is = fmt.Sprintf("level %d", level)
	}
	s.below, s.opts.Rules, s.pure = s.opts.Rules, rules, w
	s.printf("orch: a world of its own, %s; every answer is given by hand", is)
	return nil
}

func (s *session) orchEnd(*call) error {
	if s.below == nil {
		return errors.New("orch end: no orchestrator is begun")
	}
	s.opts.Rules, s.below, s.pure = s.below, nil, nil
	s.printf("orch: the world is gone")
	return nil
}

// orchGo takes the steps of an operation that wait, until there are none, one
// has to wait for another operation, or a command is in flight.
func (s *session) orchGo(c *call) error {
	if err := s.needPure(c); err != nil {
		return err
	}
	root, _, err := s.instance(s.pure, c.args["instance"])
	if err != nil {
		return err
	}
	if !s.pure.HasNext(root) {
		s.printf("step: nothing is waiting")
	}
	for s.pure.HasNext(root) {
		waits, flying := false, true
		s.stepped("step", s.pure, func(w *machine.World) *machine.Step {
			st := w.Next(root)
			flying = st == nil || st.Status == machine.InFlight
			waits = st != nil && st.Status == machine.Deferred
			return st
		})
		if waits || flying {
			return nil
		}
	}
	return nil
}

// laneRules are the rules of lanes, which an orchestrator stands in front of.
func (s *session) laneRules() *machine.Rules {
	if s.below != nil {
		return s.below
	}
	return s.opts.Rules
}
