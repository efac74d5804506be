package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// referenceVerbs are the protocol of wait references.
var referenceVerbs = []verb{
	{name: "ref reserve", run: (*session).refReserve, params: []param{
		newName("ref"),
		{name: "of", kind: name, need: true},
		{name: "on", kind: word, need: true, words: boundaries},
		{name: "by", kind: name, need: true},
		{name: "waiter", kind: word, need: true, words: waiters},
	}},
	{name: "ref queue", run: onRef("queued and committed", (*states.WaitRef).Queue), params: refName},
	{name: "ref commit", run: onRef("committed", (*states.WaitRef).Commit), params: refName},
	{name: "ref revoke", run: onRef("revoked", (*states.WaitRef).Revoke), params: refName},
	{name: "ref release", run: (*session).refRelease, params: []param{newName("ref"), {name: "proven", kind: word, need: true, words: waiters}}},
	{name: "ref quiesce", run: onRef("dropped", (*states.WaitRef).ReleaseOnQuiescence), params: refName},
	{name: "ref discard", run: (*session).refDiscard, params: []param{newName("ref"), {name: "slot", kind: count, need: true, max: 64}}},
	{name: "ref move", run: (*session).refMove, params: []param{newName("ref"), {name: "to", kind: name, need: true}}},
}

var (
	refName    = []param{newName("ref")}
	boundaries = []string{"core_done", "cpu_done"}
	waiters    = []string{"core_stream", "cpu_stream", "caller_stream"}
)

func (s *session) refReserve(c *call) error {
	l, err := s.present()
	if err != nil {
		return err
	}
	of, err := l.run(c.args["of"])
	if err != nil {
		return err
	}
	by, err := l.run(c.args["by"])
	if err != nil {
		return err
	}
	if of.receipt == nil {
		return fmt.Errorf("ref reserve: run %s has no receipt: its launch did not complete", c.args["of"])
	}
	boundary := states.Boundary(slices.Index(boundaries, c.args["on"]))
	waiter := states.Waiter(slices.Index(waiters, c.args["waiter"]))
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		t, err := l.Reserve(ctx, *of.receipt, boundary, by.Run, waiter)
		if err == nil {
			l.refs[c.args["ref"]] = t
		}
		return func() {
			s.result(c, err, fmt.Sprintf("reserved: %s of %s, for the %s of %s", c.args["on"], c.args["of"], spaced(c.args["waiter"]), c.args["by"]))
		}
	})
}

// spaced writes a word of the rules as people do.
func spaced(w string) string {
	b := []byte(w)
	for i := range b {
		if b[i] == '_' {
			b[i] = ' '
		}
	}
	return string(b)
}

// ref returns a reference of the present lane by name.
func (s *session) ref(c *call) (*states.WaitRef, error) {
	l, err := s.present()
	if err != nil {
		return nil, err
	}
	if t := l.refs[c.args["ref"]]; t != nil {
		return t, nil
	}
	var known []string
	for n := range l.refs {
		known = append(known, n)
	}
	return nil, errors.New(machine.Unknown("reference", c.args["ref"], known))
}

// onRef makes a verb of a method of references.
func onRef(ok string, f func(*states.WaitRef, context.Context) error) func(*session, *call) error {
	return func(s *session, c *call) error {
		t, err := s.ref(c)
		if err != nil {
			return err
		}
		return s.operate(c, func(ctx context.Context, _ *lane) func() {
			err := f(t, ctx)
			return func() { s.result(c, err, ok) }
		})
	}
}

func (s *session) refRelease(c *call) error {
	proven := states.Waiter(slices.Index(waiters, c.args["proven"]))
	return onRef("released", func(t *states.WaitRef, ctx context.Context) error { return t.Release(ctx, proven) })(s, c)
}

func (s *session) refDiscard(c *call) error {
	slot := int(c.num("slot", 0))
	return onRef("discarded", func(t *states.WaitRef, ctx context.Context) error { return t.Discard(ctx, slot) })(s, c)
}

func (s *session) refMove(c *call) error {
	t, err := s.ref(c)
	if err != nil {
		return err
	}
	if s.lane.refs[c.args["to"]] != nil {
		return fmt.Errorf("ref move: there is a reference %s already", c.args["to"])
	}
	to, err := t.Move()
	if err == nil {
		s.lane.refs[c.args["to"]] = to
	}
	s.result(c, err, c.args["to"]+" holds it now")
	return nil
}
