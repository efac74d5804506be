package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/states"
)

func TestPromela(t *testing.T) {
	s := newShell(states.Rules())
	list := s.run("promela", "--list")
	require.Equal(t, 0, list.code, list.err)
	require.Contains(t, list.out, "a token: 2 slots, 1 runs, 1 tokens")

	model := s.run("promela", "a", "join")
	require.Equal(t, 0, model.code, model.err)
	require.Contains(t, model.out, "/* join[0] reserve: reserve, fence[1] reserve: reserve-cpu, fence[1] reserve: reserve-core */")

	unknown := s.run("promela", "a tokn")
	require.Equal(t, 2, unknown.code)
	require.Contains(t, unknown.err, "a token")

	// Rules without these lifecycles have no run model.
	other := newShell(pressRules(t)).run("promela")
	require.Equal(t, 2, other.code)
	require.Contains(t, other.err, `there is no lifecycle "fence"`)
}
