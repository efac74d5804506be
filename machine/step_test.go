package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// minter makes identities, and can be made to refuse after having made one.
func minter() *machine.Definition {
	return &machine.Definition{
		Name: "minter", States: states("on"),
		Events: []machine.Event{event("mint"), event("burst")},
		Facts:  named("token:id token", "n:int 1"),
		Rows: []machine.Row{
			{ID: "mint", From: "on", Event: "mint", Then: do("token = fresh()")},
			{ID: "burst", From: "on", Event: "burst", Then: do("token = fresh(); n--")},
		},
	}
}

func TestCanUsesUpNoIdentity(t *testing.T) {
	l := newLane(t, machine.Config{}, minter())
	m := l.ref("minter", 0)
	for range 3 {
		require.True(t, l.can(m, "mint"))
	}
	l.takes(m, "mint")
	assert.EqualValues(t, 1, l.fact(m, "token"), "a rehearsal must not use up an identity: a replay would not see it")
}

func TestRefusedStepUsesUpNoIdentity(t *testing.T) {
	l := newLane(t, machine.Config{}, minter())
	m := l.ref("minter", 0)
	err := l.refuses(m, "burst")
	assert.ErrorIs(t, err, machine.ErrOutOfRange)
	assert.Zero(t, l.fact(m, "token"))
	l.takes(m, "mint")
	assert.EqualValues(t, 1, l.fact(m, "token"))
}

// pair is two machines of different shapes, one of which points at the other.
func pair() []*machine.Definition {
	return []*machine.Definition{
		{
			Name: "small", Pool: "p", States: states("on"), Events: []machine.Event{event("tick")},
			Rows: []machine.Row{{ID: "tick", From: "on", Event: "tick", Then: do("")}},
		},
		{
			Name: "large", Pool: "q", States: states("on"), Events: []machine.Event{event("no"), event("touch")},
			Facts: named("a:bool", "b:bool", "c:bool"),
			Rows: []machine.Row{
				{ID: "no", From: "on", Event: "no", Refuse: "no"},
				{ID: "touch", From: "on", Event: "touch", Then: do("c = true")},
			},
		},
		{
			Name: "user", States: states("on"), Events: []machine.Event{event("use", "r:ref large"), event("look")},
			Facts: named("r:ref large"), Views: []machine.View{{Name: "c", Expr: "r.c"}},
			Rows: []machine.Row{
				{ID: "use", From: "on", Event: "use", Then: do("r = arg.r")},
				{ID: "look", From: "on", Event: "look", Guard: "view.c", Then: []machine.Target{{With: []string{"r.touch()"}}}},
				{ID: "look-else", From: "on", Event: "look", Guard: "else", Then: []machine.Target{{With: []string{"r.touch()"}}}},
			},
		},
	}
}

func TestRefToAnotherMachineIsABadArgument(t *testing.T) {
	l := newLane(t, machine.Config{Pools: map[string]int{"p": 1, "q": 1}}, pair()...)
	u := l.ref("user", 0)
	for name, w := range map[string]uint64{
		"other machine": l.ref("small", 0).Pack(),
		"no machine":    machine.Ref{Machine: 77}.Pack(),
		"no ref at all": 256,
		"high bits":     l.ref("large", 0).Pack() | 1<<60,
	} {
		t.Run(name, func(t *testing.T) {
			err := lane{t, l.World}.refuses(u, "use", w)
			assert.ErrorIs(t, err, machine.ErrBadArgument)
			assert.ErrorContains(t, err, "argument r is not of type ref large")
		})
	}
	l.takes(u, "use", l.ref("large", 0).Pack())
	l.takes(u, "look")
	assert.EqualValues(t, 1, l.fact(l.ref("large", 0), "c"))
}

func TestRefPastTheWorldNamesNothing(t *testing.T) {
	l := newLane(t, machine.Config{Pools: map[string]int{"p": 1, "q": 1}}, pair()...)
	u := l.ref("user", 0)
	l.takes(u, "use", machine.Ref{Machine: 1, Slot: 9}.Pack())
	err := l.refuses(u, "look")
	assert.Equal(t, machine.ByJoint, err.Kind)
}

// A ref whose occupancy ended reads as nothing, not as its successor.
func TestViewThroughAStaleRef(t *testing.T) {
	l := newLane(t, machine.Config{Pools: map[string]int{"p": 1, "q": 2}}, pairWithEnds()...)
	u, large := l.ref("user", 0), l.ref("large", 1)
	l.takes(u, "use", large.Pack())
	l.takes(u, "look") // touches it
	guards := func() int {
		s := l.issue(u, "look")
		n := 0
		for said := s.Said; said != 0; said >>= 1 {
			n++
		}
		return n
	}
	assert.Zero(t, guards(), "r.c holds")
	l.takes(large, "end")
	assert.Zero(t, guards(), "also of one that is over")
	l.Drop(large)
	assert.Equal(t, 1, guards(), "the one that r names is gone")
	l.takes(l.ref("large", 1), "touch")
	assert.Equal(t, 1, guards(), "its successor is another")
}

// A view says what was before the step, wherever it is read: also after a change
// of what it looks at, before a command and after its answer.
func TestViewsAreOfBeforeTheStep(t *testing.T) {
	const both = "set = true; seen = view.set; also = view.set"
	l := newLane(t, machine.Config{Pools: map[string]int{"cells": 2}},
		&machine.Definition{
			Name: "cell", Pool: "cells", States: states("on"), Facts: named("set:bool", "seen:bool", "also:bool"),
			Views:  []machine.View{{Name: "set", Expr: "any(cell, set)"}},
			Events: []machine.Event{event("step"), event("call"), event("answer"), event("tell")},
			Rows: []machine.Row{
				{ID: "step", From: "on", Event: "step", Then: do(both)},
				{ID: "call", From: "on", Event: "call", Before: both, Command: "Call()", Then: do("")},
				{ID: "answer", From: "on", Event: "answer", Command: "Call()", Then: do(both)},
				{ID: "tell", From: "on", Event: "tell", Then: []machine.Target{{Do: "set = true", With: []string{"peer.hear(view.set)"}}}},
			},
		},
		&machine.Definition{
			Name: "peer", Pool: "cells", States: states("on"), Facts: named("heard:bool", "asked:bool"), Events: []machine.Event{event("hear", "set:bool")},
			Rows: []machine.Row{{ID: "hear", From: "on", Event: "hear", Then: do("heard = arg.set; asked = true")}},
		})
	fresh := l.Clone()
	for _, ev := range []string{"step", "call", "answer"} {
		l.CopyFrom(fresh)
		for slot, want := range []uint64{0, 1} { // the second sees what the first did
			r := l.ref("cell", slot)
			if l.takes(r, ev).Status == machine.InFlight {
				require.Equal(t, machine.Accepted, l.Settle(r, machine.Result{}).Status)
			}
			assert.EqualValues(t, 1, l.fact(r, "set"), ev)
			assert.Equal(t, want, l.fact(r, "seen"), ev)
			assert.Equal(t, want, l.fact(r, "also"), ev)
		}
	}
	l.CopyFrom(fresh)
	l.takes(l.ref("cell", 0), "tell")
	assert.EqualValues(t, 1, l.fact(l.ref("peer", 0), "asked"))
	assert.Zero(t, l.fact(l.ref("peer", 0), "heard"))
}
