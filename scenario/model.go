package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
)

// modelVerbs move a host, its lane and a device by choices, as an exploration
// does: what an exploration found is told in them.
var modelVerbs = []verb{
	{name: "model begin", run: (*session).modelBegin, params: modelParams()},
	{name: "model end", run: (*session).modelEnd},
	{name: "model moves", run: (*session).modelMoves},
	{name: "move", run: (*session).move, params: []param{
		{name: "kind", kind: word, place: true, need: true, words: []string{"start", "device"}},
		{name: "what", kind: text, place: true, need: true},
		{name: "on", kind: text, place: true},
		{name: "slot", kind: text, place: true},
		{name: "of", kind: count},
		{name: "by", kind: count},
	}},
}

func modelParams() (ps []param) {
	for _, b := range model.Bounds() {
		p := param{name: b.Name, kind: toggle}
		switch {
		case b.Number:
			p.kind = count
		case b.List:
			p.kind = names
		}
		ps = append(ps, p)
	}
	return ps
}

func (s *session) modelBegin(c *call) error {
	if s.model != nil {
		return errors.New(`model begin: a model is begun already; leave it with "model end"`)
	}
	var words []string
	for _, p := range c.params {
		if v, ok := c.args[p.name]; ok && p.kind == toggle {
			words = append(words, p.name)
		} else if ok {
			words = append(words, p.name+"="+v)
		}
	}
	cfg, err := model.ParseConfig(strings.Join(words, " "))
	if err != nil {
		return fmt.Errorf("model begin: %w", err)
	}
	if s.below != nil {
		return errors.New(`model begin: leave the orchestrator's world first, with "orch end"`)
	}
	cfg.Rules = s.opts.Rules
	sys, err := model.New(cfg)
	if err != nil {
		return fmt.Errorf("model begin: %w", err)
	}
	var r machine.Recorder
	if s.opts.Recorder != nil {
		r = s.opts.Recorder(model.World, sys.Pools(), 0)
	}
	if s.model, err = sys.Begin(r); err != nil {
		return fmt.Errorf("model begin: %w", err)
	}
	s.modelled = sys
	is := "the lane is open"
	if cfg.Opening {
		is = "the lane is not open yet"
	}
	s.printf("model: %s; %s", sys.Name(), is)
	return nil
}

func (s *session) needModel(c *call) error {
	if s.below != nil {
		return fmt.Errorf(`%s: leave the orchestrator's world first, with "orch end"`, c.name)
	}
	if s.model == nil {
		return fmt.Errorf(`%s: begin a model first, with "model begin"`, c.name)
	}
	return nil
}

func (s *session) move(c *call) error {
	if err := s.needModel(c); err != nil {
		return err
	}
	words := []string{c.args["kind"], c.args["what"]}
	for _, p := range [...]string{"on", "slot"} {
		if c.has(p) {
			words = append(words, c.args[p])
		}
	}
	for _, p := range [...]string{"of", "by"} {
		if c.has(p) {
			words = append(words, p+"="+c.args[p])
		}
	}
	text := strings.Join(words, " ")
	m, ok := s.model.MoveOf(text)
	if !ok {
		return fmt.Errorf("move: %s", machine.Unknown("move that may happen now", text, s.moveTexts()))
	}
	before := s.model.World().Clone()
	found := s.model.Take(m)
	s.printf("%s", text)
	for _, l := range s.changes(before, s.model.World(), machine.Ref{Machine: ^machine.MachineID(0)}) {
		s.printf("  %s", l)
	}
	if found != nil {
		s.printf("! %v", found)
	}
	return nil
}

func (s *session) moveTexts() (out []string) {
	for _, m := range s.model.Moves(nil) {
		out = append(out, s.modelled.MoveText(s.model, m))
	}
	return out
}

func (s *session) modelMoves(c *call) error {
	if err := s.needModel(c); err != nil {
		return err
	}
	for _, t := range s.moveTexts() {
		s.printf("%s", t)
	}
	return nil
}

// modelEnd leaves the model. It tells if it is left where nothing can change
// any more and something is not done.
func (s *session) modelEnd(c *call) error {
	if err := s.needModel(c); err != nil {
		return err
	}
	s.printf("model: %s", s.leftover())
	s.model, s.modelled = nil, nil
	return nil
}

func (s *session) leftover() string {
	n, next := 0, s.model.Clone()
	for _, m := range s.model.Moves(nil) {
		next.CopyFrom(s.model)
		if next.Take(m) != nil || next.Fingerprint() != s.model.Fingerprint() {
			n++
		}
	}
	if n > 0 {
		return plural(n, "move") + " could change something"
	}
	if f := s.model.Final(); f != nil {
		return "nothing changes any more\n! " + f.Error()
	}
	return "nothing changes any more, and all is done"
}
