package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/states"
)

func TestMutateLists(t *testing.T) {
	s := newShell(states.Rules())
	all := strings.Split(strings.TrimSpace(s.run("mutate", "--list", "--machine", "region").out), "\n")
	require.Greater(t, len(all), 50)
	require.Equal(t, "region/allocated: row drop", all[0])
	var parts []string
	for _, i := range []string{"1/2", "2/2"} {
		parts = append(parts, strings.Split(strings.TrimSpace(s.run("mutate", "--list", "--machine", "region", "--shard", i).out), "\n")...)
	}
	require.ElementsMatch(t, all, parts)
	var texts []string
	require.NoError(t, json.Unmarshal([]byte(s.run("mutate", "--list", "--json", "--machine", "region", "--limit", "3").out), &texts))
	require.Equal(t, all[:3], texts)
	require.Equal(t, all[0]+"\n"+all[10]+"\n", s.run("mutate", "--list", "--machine", "region", "--every", "10", "--limit", "2").out)
}

// TestMutate: a row whose every change is noticed, and one that has a hole.
func TestMutate(t *testing.T) {
	s := newShell(states.Rules())
	r := s.run("mutate", "--quick", "--machine", "run", "--row", "drained")
	require.Equal(t, 0, r.code, r.out)
	require.Contains(t, r.out, "holds: somebody notices each change")
	var x mutated
	r = s.run("mutate", "--quick", "--json", "--machine", "outcome", "--row", "diagnose")
	require.Equal(t, 1, r.code, r.err)
	require.NoError(t, json.Unmarshal([]byte(r.out), &x))
	require.Equal(t, 1, x.Holes, r.out)
	require.Equal(t, x.Mutants, x.Stillborn+x.Killed+x.Equivalent+x.Holes)
	require.Equal(t, x.Killed, x.By["scenario"]+x.By["exploration"]+x.By["lane"])
}

func TestMutateIsAskedWrongly(t *testing.T) {
	s := newShell(states.Rules())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--machine", "regoin"}, `unknown machine "regoin": did you mean "region"?`},
		{[]string{"--machine", "region", "--row", "alocated"}, `unknown row of region "alocated": did you mean "allocated"?`},
		{[]string{"--row", "allocated"}, "--row is of a machine"},
		{[]string{"--shard", "3/2"}, "want I/N, from 1/N to N/N"},
		{[]string{"region"}, "takes no arguments"},
	} {
		r := s.run(append([]string{"mutate"}, c.args...)...)
		require.Equal(t, 2, r.code, c.args)
		require.Contains(t, r.err, c.want)
	}
}
