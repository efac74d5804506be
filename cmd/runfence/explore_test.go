package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// jugs hold three and five gallons; in one of them, four are a finding. It is
// what every checker is tried on: TLC as well finds the way of six moves, and 16
// states if four gallons are fine.
type jugs struct{ four bool }

func (j jugs) New() explore.State { return &jugState{jugs: j} }
func (j jugs) Name() string       { return "two jugs" }

func (j jugs) Hash() machine.Fingerprint { return machine.Fingerprint{Hi: 3, Lo: 5} }

func (j jugs) MoveText(s explore.State, m explore.Move) string {
	x := s.(*jugState)
	return fmt.Sprintf("%s, from %d and %d", jugMoves[m], x.small, x.big)
}

func (j jugs) RowNames() []string { return append(jugMoves[:], "drink") }

var jugMoves = [...]string{"fill the small one", "fill the big one", "empty the small one", "empty the big one", "pour into the big one", "pour into the small one"}

type jugState struct {
	jugs
	small, big byte
	rows       *explore.Rows
}

func (s *jugState) Moves(dst []explore.Move) []explore.Move { return append(dst, 0, 1, 2, 3, 4, 5) }

func (s *jugState) Take(m explore.Move) *explore.Finding {
	s.rows.Mark(int(m))
	pour, back := min(s.small, 5-s.big), min(s.big, 3-s.small)
	switch m {
	case 0:
		s.small = 3
	case 1:
		s.big = 5
	case 2:
		s.small = 0
	case 3:
		s.big = 0
	case 4:
		s.small, s.big = s.small-pour, s.big+pour
	case 5:
		s.small, s.big = s.small+back, s.big-back
	}
	if s.big == 4 && s.four {
		return &explore.Finding{Kind: "four-gallons", Detail: "are in the big one"}
	}
	return nil
}

func (s *jugState) Final() *explore.Finding { return nil }

func (s *jugState) Fingerprint() machine.Fingerprint {
	b := s.AppendBinary(nil)
	return machine.Fingerprint{Hi: xxhash.Sum64(b), Lo: xxhash.Sum64(append(b, 1))}
}

func (s *jugState) AppendBinary(dst []byte) []byte { return append(dst, s.small, s.big) }

func (s *jugState) SetBinary(src []byte) error {
	if len(src) != 2 {
		return errors.New("not two jugs")
	}
	s.small, s.big = src[0], src[1]
	return nil
}

func (s *jugState) CopyFrom(o explore.State) {
	x := o.(*jugState)
	s.small, s.big = x.small, x.big
}

func (s *jugState) MarkIn(rows *explore.Rows) { s.rows = rows }

// exploring is a shell that explores the jugs.
func exploring(t *testing.T, four bool) *shell {
	s := newShell(pressRules(t))
	s.explored = func(_ *machine.Rules, bounds []string) (subject, error) {
		if len(bounds) > 0 {
			return subject{}, fmt.Errorf("jugs have no %q", bounds[0])
		}
		return subject{jugs{four}, func(_ []string, about string, moves []string) ([]byte, error) {
			return []byte("# " + about + "\n" + strings.Join(moves, "\n")), nil
		}}, nil
	}
	return s
}

func TestExplore(t *testing.T) {
	r := exploring(t, false).run("explore", "--workers", "1", "--rows")
	require.Equal(t, 0, r.code, r.err)
	require.Empty(t, r.err)
	for _, want := range []string{
		"system     two jugs\n",
		"states     16 visited, by 96 moves\n",
		"depth      7 moves to the farthest state\n",
		"frontier   none left\n",
		"collision  two states taken for one: less than 4e-37 likely\n",
		"rows       6 of 7 taken\n",
		"\nRows never taken\n  drink\n",
		"\nholds in every state that can be reached\n",
	} {
		require.Contains(t, r.out, want)
	}

	r = exploring(t, false).run("explore", "--max-depth", "2")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "depth      every path of 2 moves\n")
	require.Contains(t, r.out, "holds as far as it went: it was not finished, for --max-depth is reached\n")
	require.Contains(t, r.out, "6 of 7 taken; --rows lists the others\n")
}

func TestExploreFinds(t *testing.T) {
	r := exploring(t, true).run("explore")
	require.Equal(t, 1, r.code)
	require.Empty(t, r.err)
	require.Contains(t, r.out, `
four-gallons: are in the big one
at move 6; no way is shorter; seen 1 time in all
    1  fill the big one, from 0 and 0
    2  pour into the small one, from 0 and 5
    3  empty the small one, from 3 and 2
    4  pour into the small one, from 0 and 2
    5  fill the big one, from 2 and 0
    6  pour into the small one, from 2 and 5

a finding
`)

	file := filepath.Join(t.TempDir(), "found.txt")
	r = exploring(t, true).run("explore", "--scenario", file)
	require.Equal(t, 1, r.code, r.err)
	story, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `# four-gallons: are in the big one
Explored: two jugs.
fill the big one, from 0 and 0
pour into the small one, from 0 and 5
empty the small one, from 3 and 2
pour into the small one, from 0 and 2
fill the big one, from 2 and 0
pour into the small one, from 2 and 5`, string(story))

	r = exploring(t, true).run("explore", "--keep-going", "--json")
	require.Equal(t, 1, r.code)
	var x explored
	require.NoError(t, json.Unmarshal([]byte(r.out), &x))
	require.True(t, x.Finished)
	require.Equal(t, []string{"drink"}, x.NeverTaken)
	require.Len(t, x.Findings, 1)
	require.Equal(t, "four-gallons", x.Findings[0].Kind)
	require.True(t, x.Findings[0].AtMove)
	require.Len(t, x.Findings[0].Moves, 6)
	require.Equal(t, "fill the big one, from 0 and 0", x.Findings[0].Moves[0])
}

// A search that is interrupted has no answer, and goes on from its checkpoint.
func TestExploreInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jugs.rfe")
	s := exploring(t, true)
	interrupted := *s
	interrupted.interruptible = func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx, cancel
	}
	r := interrupted.run("explore", "--checkpoint", file)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.out, "holds as far as it went: it was not finished, for it was interrupted\n")
	require.Equal(t, "runfence: interrupted before the end; --checkpoint "+file+" --resume goes on\n", r.err)

	r = s.run("explore", "--checkpoint", file)
	require.Equal(t, 2, r.code)
	require.Equal(t, "runfence: "+file+": there is a checkpoint already; --resume goes on with it, or remove it\n", r.err)

	r = s.run("explore", "--checkpoint", file, "--resume")
	require.Equal(t, 1, r.code, r.err)
	require.Contains(t, r.out, "    6  pour into the small one, from 2 and 5\n")

	require.NoError(t, os.WriteFile(file, []byte("not any more"), 0o600))
	r = s.run("explore", "--checkpoint", file, "--resume")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "not a checkpoint of this search")

	r = interrupted.run("explore")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "with --checkpoint there would be a file to go on from")
}

func TestExploreMisused(t *testing.T) {
	s := exploring(t, false)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--resume"}, "--resume goes with --checkpoint"},
		{[]string{"--checkpoint-every", "1m"}, "--checkpoint-every goes with --checkpoint"},
		{[]string{"--memory", "much"}, "want an amount of memory"},
		{[]string{"--workers", "-1"}, "--workers"},
		{[]string{"--max-depth", "99999999999"}, "that many"},
		{[]string{"water"}, `jugs have no "water"`},
	} {
		r := s.run(append([]string{"explore"}, c.args...)...)
		require.Equal(t, 2, r.code, c.args)
		require.Empty(t, r.out, c.args)
		require.Contains(t, r.err, c.want)
		require.Contains(t, r.err, "Try 'runfence explore --help'.")
	}
	r := s.run("explore", "--dir", filepath.Join(t.TempDir(), "none"), "--checkpoint", filepath.Join(t.TempDir(), "none", "x"), "--max-depth", "1")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "cannot write the checkpoint")
	require.Contains(t, r.out, "holds as far as it went", "what was seen is not lost")
}

// The lane itself.
func TestExploreLane(t *testing.T) {
	s := newShell(states.Rules())
	r := s.run("explore", "runs=1", "--json")
	require.Equal(t, 0, r.code, r.err)
	var x explored
	require.NoError(t, json.Unmarshal([]byte(r.out), &x))
	require.True(t, x.Finished)
	require.Greater(t, x.States, uint64(50))
	r = s.run("explore", "rums=1")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "runs")
	r = newShell(pressRules(t)).run("explore")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "the rules have no machine")
}

func TestProgressInLines(t *testing.T) {
	var out bytes.Buffer
	a := &app{environment: environment{stderr: &out}}
	p := a.newProgress(0)
	for _, r := range []explore.Report{
		{Elapsed: 9 * time.Second, States: 900},
		{Elapsed: 10 * time.Second, States: 1000, Depth: 3, Left: 20, Next: 1500, TableBytes: 1 << 20, FrontierBytes: 1 << 20},
		{Elapsed: 19 * time.Second, States: 9000},
		{Elapsed: 30 * time.Second, States: 41_000, Depth: 4, DiskBytes: 3 << 30, Findings: 7},
	} {
		p.tell(r)
	}
	p.end()
	require.Equal(t, `explore: 10s, depth 3: 1k states, 100/s; frontier 20, then 1.5k; memory 2.0 MiB
explore: 30s, depth 4: 41k states, 2k/s; frontier 0, then 0; memory 0 B, disk 3.0 GiB; findings 7
`, out.String())
}

func TestProgressOnATerminal(t *testing.T) {
	for most, want := range map[uint64]string{0: "depth 3: 1k states, 100/s; frontier 20", 2000: " 50% |"} {
		var out bytes.Buffer
		a := &app{environment: environment{stderr: &out, console: true}}
		p := a.newProgress(most)
		p.tell(explore.Report{Elapsed: 10 * time.Second, States: 1000, Depth: 3, Left: 20, Next: 1500})
		require.Contains(t, out.String(), want)
		require.NotContains(t, out.String(), "\n")
		p.end()
		last := out.String()[strings.LastIndex(strings.TrimRight(out.String(), "\r"), "\r")+1:]
		require.Empty(t, strings.TrimSpace(last), "the line is empty in the end")
	}
}

// What is wrong with rules is found, told as a scenario that shows it again, and
// recorded as a log that replays.
func TestExploreBrokenRules(t *testing.T) {
	dir := t.TempDir()
	file, log := filepath.Join(dir, "found.txt"), filepath.Join(dir, "found.log")
	const broken = "run/drained: to launched"
	s := newShell(states.Rules())
	r := s.run("explore", "runs=1", "--patch", broken, "--scenario", file)
	require.Equal(t, 1, r.code, r.err)
	require.Contains(t, r.out, "unfinished: the run of slot 0 is launched, with no fault\nin the state after ")
	require.Contains(t, r.out, "\n    1  start prepare 0\n")
	story, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(story), "Explored: runs=1.\n\npatch "+broken+"\nmodel begin runs=1\nmove start prepare 0\n")
	require.Contains(t, string(story), "! unfinished: the run of slot 0 is launched, with no fault\n")

	r = s.run("run", "--check", file)
	require.Equal(t, 0, r.code, r.out+r.err)
	r = s.run("run", "--log", log, file)
	require.Equal(t, 0, r.code, r.out+r.err)
	r = s.run("replay", log, "--patch", broken)
	require.Equal(t, 0, r.code, r.out+r.err)
	require.Equal(t, 0, s.run("explore", "runs=1").code, "the rules as they are hold")
}

// A process that is told to stop leaves its checkpoint, and nothing else.
func TestExploreSignal(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	checkpoint := filepath.Join(dir, "checkpoint")
	args := []string{"explore", "runs=2", "slots=2", "threads=2", "faults=1", "spare=2", "--dir", dir, "--checkpoint", checkpoint}
	c := exec.Command(self, append(args, "--memory", "6MiB", "--checkpoint-every", "1ms")...)
	c.Env = append(os.Environ(), asProgram+"=1", "GOCOVERDIR="+t.TempDir())
	var complaint bytes.Buffer
	c.Stderr = &complaint
	require.NoError(t, c.Start())
	for {
		if _, err := os.Stat(checkpoint); err == nil {
			break
		}
		runtime.Gosched()
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, 2, exit.ExitCode())
	require.Contains(t, complaint.String(), "runfence: interrupted before the end; --checkpoint "+checkpoint+" --resume goes on\n")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)

	r := newShell(states.Rules()).run(append(args, "--resume", "--max-states", "2000")...)
	require.Equal(t, 0, r.code, r.err)
}
