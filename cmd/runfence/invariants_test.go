package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/states"
)

// latchLog is the log of a latch that is claimed and whose initialisation fails
// so many times, under rules in which that undoes the claim.
func latchLog(t *testing.T, times int) (*machine.Rules, []byte) {
	p, err := patch.Parse("latch/fail: to unclaimed")
	require.NoError(t, err)
	defs, err := patch.Apply(states.Definitions(), p)
	require.NoError(t, err)
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	var log bytes.Buffer
	w, err := translog.NewWriter(&log, rules, translog.Options{})
	require.NoError(t, err)
	pools := map[string]int{"slot": 1, "token": 1, "callable": 1, "watched": 1}
	world, err := rules.NewWorld(machine.Config{Pools: pools, Recorder: w.World("main", pools, 0)})
	require.NoError(t, err)
	m := rules.Machine("latch")
	for range times {
		ref := world.Ref(m.ID(), 0)
		require.Equal(t, machine.Accepted, world.Issue(ref, m.MustEvent("claim"), 0).Status)
		require.Equal(t, machine.Accepted, world.Issue(ref, m.MustEvent("begin")).Status)
		require.Equal(t, machine.Accepted, world.Issue(ref, m.MustEvent("fail")).Status)
	}
	require.NoError(t, w.Close())
	return rules, log.Bytes()
}

// A log whose rules break a sentence replays, and says which, after which record.
func TestReplayFindsABrokenInvariant(t *testing.T) {
	rules, log := latchLog(t, 2)
	s := newShell(rules)
	s.stdin = bytes.NewReader(log)
	require.Equal(t, 0, s.run("replay", "-").code, "it replays")
	s.stdin = bytes.NewReader(log)
	r := s.run("replay", "-", "--invariants")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.out, "latch-never-changes, world 0: An execution mode that is claimed never changes")
	require.Contains(t, r.out, "latch: was program and is unclaimed\n  step latch fail(): program → unclaimed")
	require.Contains(t, r.out, "1 broken, 0 unknown")

	s.stdin = bytes.NewReader(log)
	r = s.run("replay", "-", "--invariants", "--json")
	require.Equal(t, 1, r.code)
	var x replayed
	require.NoError(t, json.Unmarshal([]byte(r.out), &x))
	require.True(t, x.Holds, "the log is what the rules make of it")
	require.False(t, x.Invariants.Holds)
	require.Equal(t, []uint64{3, 6}, []uint64{x.Invariants.Broken[0].Seq, x.Invariants.Broken[1].Seq})
	require.Len(t, x.Invariants.Broken, 2)
	require.Len(t, x.Invariants.Standings, len(invariants.All()))
	for _, st := range x.Invariants.Standings {
		if st.Invariant == "latch-never-changes" {
			require.Equal(t, uint64(2), st.Broken)
		}
	}
}

// A log with no end of findings is told of by the first of them.
func TestReplayTellsTheFirstFindings(t *testing.T) {
	rules, log := latchLog(t, mostBroken+5)
	s := newShell(rules)
	s.stdin = bytes.NewReader(log)
	r := s.run("replay", "-", "--invariants")
	require.Equal(t, 1, r.code)
	require.Equal(t, mostBroken, bytes.Count([]byte(r.out), []byte("latch-never-changes, world 0")))
	require.Contains(t, r.out, "counted only")
}

// Every scenario holds to what must hold, but for those that fire events of a
// fence by hand, past the operations that see to it.
func TestScenariosHold(t *testing.T) {
	byHand := map[string]bool{
		"fence-unfenced-table.txt": true, "launch-order.txt": true,
		"waitref-quiescence.txt": true, "waitref-stale.txt": true,
	}
	scripts, err := filepath.Glob("../../scenario/testdata/*.txt")
	require.NoError(t, err)
	require.Greater(t, len(scripts), 30)
	s := newShell(states.Rules())
	log := filepath.Join(t.TempDir(), "scenario.log")
	for _, path := range scripts {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if byHand[name] || patched(text) {
			continue
		}
		require.Equal(t, 0, s.run("run", path, "--log", log).code, name)
		r := s.run("replay", log, "--invariants")
		require.Equal(t, 0, r.code, "%s: %s", name, r.out)
		require.NotContains(t, r.out, "Unknown, which", name)
		require.NoError(t, os.Remove(log))
	}
}

// patched reports whether a scenario changes the rules that it runs by.
func patched(text []byte) bool { return bytes.Contains(text, []byte("\npatch ")) }
