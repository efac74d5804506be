package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/states"
)

// sound are bounds in which walks find nothing.
const sound = "runs=20 slots=3 depth=2 faults=2 spare=4 polls=5 recoveries=1"

func TestFuzz(t *testing.T) {
	s := newShell(states.Rules())
	r := s.run("fuzz", "--walks", "40", "--seed", "7", "--bounds", sound)
	require.Equal(t, 0, r.code, r.out)
	require.Empty(t, r.err)
	require.Regexp(t, `(?s)^seed       7
walks      40, of [\d,]+ moves; the longest of [\d,]+
unchanged  [\d,]+ moves were refused, and changed nothing
time       .* moves a second
rows       \d+ of \d+ taken; --rows lists the others
bounds     `+sound+`

holds in every state that was walked through
$`, r.out)

	r = s.run("fuzz", "--walks", "2", "--bounds", sound, "--rows")
	require.Regexp(t, `(?s)rows       \d+ of \d+ taken\n.*\nRows never taken\n  environment/`, r.out)

	// What is seen follows from the seed, and from no number of workers.
	see := func(args ...string) fuzzed {
		r := s.run(append([]string{"fuzz", "--json", "--walks", "40", "--bounds", sound}, args...)...)
		require.Equal(t, 0, r.code, r.out)
		var x fuzzed
		require.NoError(t, json.Unmarshal([]byte(r.out), &x))
		require.NotZero(t, x.Moves)
		x.Seconds, x.MovesPerSecond = 0, 0
		return x
	}
	seven := see("--seed", "7")
	require.Equal(t, seven, see("--seed", "7", "--workers", "3"))
	eight := see("--seed", "8")
	require.NotEqual(t, seven.Moves, eight.Moves)
	short := see("--seed", "7", "--moves", "20")
	require.Equal(t, uint64(40*20), short.Moves)
	require.Equal(t, uint64(20), short.Longest)
}

// A rule that is broken on purpose is found, and the scenario and the log that
// are kept of it show it again.
func TestFuzzFinds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "findings")
	s := newShell(states.Rules())
	const patch = `run/unprepared: then.with drop "lane.leave()"`
	r := s.run("fuzz", "--walks", "200", "--out", dir, "--patch", patch)
	require.Equal(t, 1, r.code, r.err)
	file, log := filepath.Join(dir, "runs-are-counted.txt"), filepath.Join(dir, "runs-are-counted.log")
	require.Contains(t, r.out, "\nruns-are-counted: ")
	require.Contains(t, r.out, "kept in "+file+" and "+log)
	require.Contains(t, r.out, "\n  model begin runs=1 faults=1 ")
	require.Contains(t, r.out, "\n  ! runs-are-counted: ")

	require.Equal(t, result{out: "ok    " + file + ", 1 block\n"}, s.run("run", "--check", file))
	again := s.run("replay", log, "--patch", patch)
	require.Equal(t, 0, again.code, again.err)
	require.Contains(t, s.run("replay", log).err, "machine run changed")

	r = s.run("fuzz", "--walks", "200", "--json", "--patch", patch)
	require.Equal(t, 1, r.code)
	var x fuzzed
	require.NoError(t, json.Unmarshal([]byte(r.out), &x))
	require.Len(t, x.Findings, 1)
	f := x.Findings[0]
	require.Equal(t, f.Walk+1, x.Walks, "no walk counts behind the first with a finding")
	require.Equal(t, "runs-are-counted", f.Kind)
	require.LessOrEqual(t, len(f.Moves), f.From)
	scenario, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(scenario), f.Scenario)

	r = s.run("fuzz", "--walks", "300", "--json", "--keep-going", "--patch", patch)
	require.NoError(t, json.Unmarshal([]byte(r.out), &x))
	require.Equal(t, uint64(300), x.Walks)
	require.Greater(t, x.Findings[0].Count, uint64(1))
}

func TestFuzzMisused(t *testing.T) {
	s := newShell(states.Rules())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--for", "1s", "--walks", "3"}, "--for and --walks exclude each other"},
		{[]string{"--for", "-1s"}, "find nothing"},
		{[]string{"--walks", "0"}, "find nothing"},
		{[]string{"--moves", "0"}, "find nothing"},
		{[]string{"--workers", "99999999"}, "that many"},
		{[]string{"--bounds", "runs=2 slts=2"}, "did you mean \"slots\""},
		{[]string{"--bounds", "slots=99"}, "99 slots"},
		{[]string{"runs=1"}, "takes no arguments"},
		{[]string{"--seed", "x"}, "--seed"},
	} {
		r := s.run(append([]string{"fuzz"}, c.args...)...)
		require.Equal(t, 2, r.code, c.args)
		require.Empty(t, r.out, c.args)
		require.Contains(t, r.err, c.want)
		require.Contains(t, r.err, "Try 'runfence fuzz --help'.")
	}
	r := s.run("fuzz", "--rules", "missing.json")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "missing.json: no such file")
	r = newShell(pressRules(t)).run("fuzz")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "the rules have no machine")
}

// Walks that are interrupted have no answer; those that their time ends have.
func TestFuzzInterrupted(t *testing.T) {
	s := newShell(states.Rules())
	s.interruptible = func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx, cancel
	}
	r := s.run("fuzz", "--walks", "1000000")
	require.Equal(t, 2, r.code)
	require.Equal(t, "runfence: interrupted after 0 walks\n", r.err)
	require.Equal(t, 0, s.run("fuzz", "--for", "1h").code)
	r = newShell(states.Rules()).run("fuzz", "--for", "1ns")
	require.Equal(t, 0, r.code)
	require.Contains(t, r.out, "walks      0, of 0 moves")
}

func TestFuzzProgress(t *testing.T) {
	var out bytes.Buffer
	a := &app{environment: environment{stderr: &out}}
	p := a.newProgress(100)
	p.tellWalks(explore.WalkReport{Elapsed: 9 * time.Second, Walks: 9})
	p.tellWalks(explore.WalkReport{Elapsed: 10 * time.Second, Walks: 1000, Moves: 300_000, Findings: 3})
	p.tellWalks(explore.WalkReport{Elapsed: 19 * time.Second, Walks: 2000})
	p.end()
	require.Equal(t, "fuzz: 10s: 1k walks, 300k moves, 30k/s; findings 3\n", out.String())

	out.Reset()
	a.console = true
	p = a.newProgress(100)
	p.tellWalks(explore.WalkReport{Elapsed: time.Second, Walks: 50, Moves: 1000})
	require.Contains(t, out.String(), "50%")
	require.Contains(t, out.String(), "50 walks, 1k moves, 1k/s")
	p.end()
}
