package promela

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

func sound(t *testing.T) *machine.Rules {
	t.Helper()
	rules, err := RunRules(states.Definitions(), nil)
	require.NoError(t, err)
	return rules
}

// Each mistake is found in its model, and in the same model sound rules have
// nothing wrong as far as that search went.
func TestMistakesAreFound(t *testing.T) {
	good := sound(t)
	for _, f := range Faults(false) {
		rules, err := f.Rules(states.Definitions())
		require.NoError(t, err, f.Name)
		found, err := Search(t.Context(), rules, f.Shape)
		require.NoError(t, err, f.Name)
		require.NotEmpty(t, found.Kinds, f.Name)
		m, err := NewRunModel(good, f.Shape)
		require.NoError(t, err)
		r, err := explore.Search(t.Context(), m, explore.Options{MaxDepth: found.Depth})
		require.NoError(t, err)
		require.Empty(t, r.Findings, f.Name)
	}
}

// SPIN counts what we count, and finds what we find.
func TestSpinAgrees(t *testing.T) {
	spin := installed(t)
	c, err := CountBoth(t.Context(), spin, sound(t), Shape{Name: "two runs on one slot", Slots: 1, Runs: 2, Depth: 4, Caller: true, Edges: 1, Resets: 1, Quarantine: true})
	require.NoError(t, err)
	require.True(t, c.Agrees(), "%+v", c)
	require.Greater(t, c.Ours.States, uint64(1000))
	for _, f := range Faults(false) {
		if f.Shape.Name != called.Name && f.Shape.Name != reused.Name {
			continue // make spin looks for all of them
		}
		c, err := CatchBoth(context.Background(), spin, states.Definitions(), f)
		require.NoError(t, err)
		require.True(t, c.Agrees(), "%+v", c)
	}
}

// A state is what it was once it is written and read back.
func TestStatesAreReadBack(t *testing.T) {
	m, err := NewRunModel(sound(t), Shape{Name: "all", Slots: 2, Runs: 2, Tokens: 2, Depth: 4, Faulty: true, Join: true, Caller: true, Edges: 3})
	require.NoError(t, err)
	at, back := m.newState(), m.newState()
	taken := map[string]bool{}
	seed := rand.New(rand.NewPCG(1, 2))
	for i := range 6000 {
		moves := at.Moves(nil)
		require.NotEmpty(t, moves)
		move := moves[seed.IntN(len(moves))]
		if strings.HasSuffix(m.MoveText(at, move), "] release []") && seed.IntN(50) > 0 {
			continue // a fence that is released does nothing more
		}
		taken[m.MoveText(at, move)] = true
		require.Nil(t, at.Take(move))
		require.NoError(t, back.SetBinary(at.AppendBinary(nil)))
		require.Equal(t, at.exact(nil), back.exact(nil))
		require.Equal(t, at.Fingerprint(), back.Fingerprint())
		require.Equal(t, at.Moves(nil), back.Moves(nil))
		if i%500 == 0 {
			at = m.newState()
		}
	}
	require.Greater(t, len(taken), 80, "the walk saw too little")
	require.Error(t, back.SetBinary(at.AppendBinary(nil)[:10]))
}

// What the device half says of the order of entries, in one run: neither kernel
// ends before both have begun, and a boundary completes behind its kernel.
func TestKernelsMeet(t *testing.T) {
	m, err := NewRunModel(sound(t), Shape{Name: "one run", Slots: 1, Runs: 1, Depth: 4})
	require.NoError(t, err)
	s := m.newState()
	take := func(text string) {
		t.Helper()
		for _, v := range s.Moves(nil) {
			if m.MoveText(s, v) == text {
				require.Nil(t, s.Take(v))
				return
			}
		}
		require.Fail(t, "not offered", "%s\n%s", text, s)
	}
	offered := func(text string) bool {
		for _, v := range s.Moves(nil) {
			if m.MoveText(s, v) == text {
				return true
			}
		}
		return false
	}
	launch := func(boundary, stream string) {
		take("fence[0] submitting [1 1 1 " + boundary + "]")
		take("stream " + stream + ": the kernel is queued")
		take("fence[0] submitted [1 1 1 " + boundary + "]")
		take("fence[0] recording [1 1 1 " + boundary + "]")
		take("stream " + stream + ": the record is queued")
		take("fence[0] recorded [1 1 1 " + boundary + "]")
	}
	take("fence[0] arm")
	take("fence[0] made [1 1 1]")
	launch("0", "0")
	require.False(t, offered("stream 0: the kernel ends"))
	require.False(t, offered("stream 0: the record takes effect"))
	launch("1", "1")
	take("stream 1: the kernel ends")
	take("stream 1: the record takes effect")
	require.False(t, offered("fence[0] reached [1 1 1 0]"), "its record has not taken effect")
	take("fence[0] reached [1 1 1 1]")
	require.False(t, offered("fence[0] retire [1 1 1]"), "one boundary is no proof")
	take("stream 0: the kernel ends")
	take("stream 0: the record takes effect")
	take("fence[0] reached [1 1 1 0]")
	take("fence[0] retire [1 1 1]")
	take("fence[0] release []")
}

// A report that says less than that the search is complete is no verdict.
func TestReports(t *testing.T) {
	whole := `
State-vector 124 byte, depth reached 44, errors: 0
   102322 states, stored
   605519 states, matched
   14.052	equivalent memory usage for states (stored*(State-vector + overhead))
   12.646	actual memory usage for states (compression: 90.00%)
`
	v, err := parseVerdict(whole)
	require.NoError(t, err)
	require.Equal(t, [2]uint64{102322, 707840}, [2]uint64{v.States, v.Edges})
	require.InDelta(t, 12.646*(1<<20)/102322, v.StateBytes, 0.01)

	v, err = parseVerdict(strings.Replace(whole, "errors: 0", "errors: 1", 1) + "\npan:1: assertion violated ((7003==0)||(x==1)) (at depth 16)\nWarning: Search not completed\n")
	require.NoError(t, err)
	require.Equal(t, claims()[3], strings.ReplaceAll(v.Broken, "-", "_"))
	require.Equal(t, 17, v.Depth)

	for _, bad := range []string{
		"",
		whole + "error: max search depth too small",
		whole + "Warning: Search not completed",
		strings.Replace(whole, "errors: 0", "errors: 1", 1),
		strings.Replace(whole, "errors: 0", "errors: 1", 1) + "\npan:1: assertion violated (x==1) (at depth 16)\n",
		strings.Replace(whole, "errors: 0", "errors: 1", 1) + "\npan:1: assertion violated ((7999==0)||x) (at depth 16)\n",
	} {
		_, err := parseVerdict(bad)
		require.Error(t, err, bad)
	}
}

func TestAgreement(t *testing.T) {
	alike := Count{Spin: Verdict{States: 3, Edges: 4}, Ours: Ours{States: 3, Edges: 4}}
	require.True(t, alike.Agrees())
	for _, c := range []Count{
		{Spin: Verdict{States: 2, Edges: 4}, Ours: Ours{States: 3, Edges: 4}},
		{Spin: Verdict{States: 3, Edges: 5}, Ours: Ours{States: 3, Edges: 4}},
		{Spin: Verdict{States: 3, Edges: 4, Broken: "hole"}, Ours: Ours{States: 3, Edges: 4}},
		{Spin: Verdict{States: 3, Edges: 4}, Ours: Ours{States: 3, Edges: 4, Kinds: []string{"hole"}}},
	} {
		require.False(t, c.Agrees())
		require.Contains(t, Section([]Count{c}, nil), "differ")
	}
	require.True(t, same(100_959_330, 100_959_332), "SPIN prints eight digits")
	require.False(t, same(100_959_330, 100_959_532))
	require.True(t, Caught{Spin: Verdict{Broken: "a", Depth: 2}, Ours: Ours{Kinds: []string{"b", "a"}, Depth: 2}}.Agrees())
	for _, c := range []Caught{
		{Spin: Verdict{Broken: "a", Depth: 3}, Ours: Ours{Kinds: []string{"a"}, Depth: 2}},
		{Spin: Verdict{Broken: "a", Depth: 2}, Ours: Ours{Kinds: []string{"b"}, Depth: 2}},
		{},
	} {
		require.False(t, c.Agrees())
		require.Contains(t, Section(nil, []Caught{c}), "differ")
	}
}

func TestSectionGoesBetweenItsMarks(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+sectionBegins+"old\n"+sectionEnds+"after\n"), 0o600))
	require.NoError(t, WriteSection(page, "new\n"))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "before\n"+sectionBegins+"\nnew\n\n"+sectionEnds+"after\n", string(text))
	require.NoError(t, os.WriteFile(page, []byte("no marks\n"), 0o600))
	require.Error(t, WriteSection(page, "new\n"))
}

func TestAloneStandsInForWhatIsRead(t *testing.T) {
	set, err := Alone(states.Definitions(), ruled...)
	require.NoError(t, err)
	var names []string
	for _, d := range set {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"fence", "token", "join", "caller_order", "lane", "environment"}, names)
	lane, environment := set[4], set[5]
	require.Empty(t, lane.Facts, "only its state is read")
	require.Len(t, environment.Facts, 1)
	_, err = Alone(states.Definitions(), "nothing")
	require.Error(t, err)
	// A run takes others along: they cannot be stood in for.
	set, err = Alone(states.Definitions(), "run")
	require.NoError(t, err)
	_, err = machine.Compile(set...)
	require.Error(t, err)
}
