package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore/mutate"
	"github.com/runfence/runfence/machine/patch"
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

// TestMutate: a row whose every change is noticed.
func TestMutate(t *testing.T) {
	s := newShell(states.Rules())
	r := s.run("mutate", "--quick", "--machine", "run", "--row", "drained")
	require.Equal(t, 0, r.code, r.out)
	require.Contains(t, r.out, "holds: somebody notices each change")
	var x mutated
	r = s.run("mutate", "--quick", "--json", "--machine", "run", "--row", "drained")
	require.NoError(t, json.Unmarshal([]byte(r.out), &x))
	require.Equal(t, x.Mutants, x.Stillborn+x.Killed+x.Equivalent+x.Holes)
	require.Equal(t, x.Killed, x.By["scenario"]+x.By["exploration"]+x.By["lane"])
	require.Len(t, x.Outcomes, x.Mutants)
}

// TestMutateTellsOfHoles: each with what nobody noticed, and it is a finding.
func TestMutateTellsOfHoles(t *testing.T) {
	p, err := patch.Parse("run/drained: to launched")
	require.NoError(t, err)
	var out bytes.Buffer
	e := newShell(states.Rules()).environment
	e.stdout, e.stderr = &out, io.Discard
	a := &app{environment: e, out: newOutput(&out)}
	a.color = option{value: "never"}
	err = a.mutatedCame(summed([]mutate.Outcome{
		{Patch: p, ID: p.String(), Fate: mutate.Hole, How: "nobody notices: a move"},
		{Fate: mutate.Killed, By: "scenario"},
		{Fate: mutate.Stillborn},
		{ID: "an id", Fate: mutate.Equivalent, How: "the same in a model"},
	}, []string{"a model: 3 worlds and 5 moves"}))
	require.NoError(t, a.out.Flush())
	var f *finding
	require.ErrorAs(t, err, &f)
	for _, want := range []string{
		"killed      1: 1 by scenario\n", "stillborn   1 are no rules\n", "  a model: 3 worlds and 5 moves\n",
		"Holes\n  run/drained: to launched\n      nobody notices: a move\n", "  an id\n      the same in a model\n", "1 hole: nobody notices\n",
	} {
		require.Contains(t, out.String(), want)
	}
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
