package mutate

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/scenario"
)

// killers are the quick ones, made once.
var killers = sync.OnceValues(func() ([]Killer, error) {
	base, err := Ours().Base()
	if err != nil {
		return nil, err
	}
	dir, err := fs.Sub(scenario.Examples, "testdata")
	if err != nil {
		return nil, err
	}
	s, err := NewScenarios(dir, base)
	if err != nil {
		return nil, err
	}
	x, err := NewExplorations(Small(), base)
	return []Killer{s, x, SmallLanes()}, err
})

func campaign(t *testing.T, texts ...string) *Campaign {
	t.Helper()
	ks, err := killers()
	require.NoError(t, err)
	c := &Campaign{Rules: Ours(), Killers: ks, Differ: ks[1].(Explorations)}
	for _, text := range texts {
		p, err := patch.Parse(text)
		require.NoError(t, err)
		c.Mutants = append(c.Mutants, p)
	}
	return c
}

// TestFates: of each fate one, and who notices what.
func TestFates(t *testing.T) {
	c := campaign(t,
		`lane/open: row drop`,
		`run/drained: to launched`,
		`drain/core_wait: outcome timedout as ok`,
		`domain/free-freeing: defer drop`,
		`launch/start: then[1].do drop "touched = false"`,
	)
	out, err := c.Run(t.Context())
	require.NoError(t, err)
	var fates []Fate
	for i, o := range out {
		require.Equal(t, c.Mutants[i].String(), o.ID)
		fates = append(fates, o.Fate)
	}
	require.Equal(t, []Fate{Stillborn, Killed, Killed, Killed, Equivalent}, fates)
	require.Contains(t, out[0].How, `"open" cannot be reached`)
	require.Equal(t, "scenario", out[1].By)
	require.Contains(t, out[4].How, "the same in ")

	c = campaign(t, `health/skip: to trusted`)
	c.Killers = nil
	out, err = c.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, Hole, out[0].Fate)
	require.Equal(t, "nothing ever comes there", out[0].How)
}

// TestEachKillerNotices: each by itself, what it is for.
func TestEachKillerNotices(t *testing.T) {
	ks, err := killers()
	require.NoError(t, err)
	for i, text := range []string{
		`run/drained: to launched`,
		`join/reserve: then.with drop "pred.reserve(pred_epoch, pred_generation, pred_dispatch, core_done, arming)"`,
		`finalize/start-stale: row drop`,
	} {
		c := campaign(t, text)
		c.Killers = ks[i : i+1]
		out, err := c.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, Killed, out[0].Fate, "%s: %s", text, out[0].How)
		require.Equal(t, ks[i].Name(), out[0].By)
	}
}

// TestARunawayIsNoticed: rules that never come to an end are stopped by a count
// of transitions.
func TestARunawayIsNoticed(t *testing.T) {
	base, err := Ours().Base()
	require.NoError(t, err)
	s, err := NewScenarios(fstest.MapFS{"wait.txt": {Data: []byte("open\nprepare a\nlaunch a\nwait a\n")}}, base)
	require.NoError(t, err)
	f := Fault{Patches: []string{
		`drain/core_wait: guard set "false"`, `drain/core_wait-none: to core_wait`, `drain/core_wait-none: emit set "self.cpu_wait()" "self.core_wait()"`,
	}}
	m, err := f.mutant(Ours())
	require.NoError(t, err)
	how, killed, err := s.Kill(m)
	require.NoError(t, err)
	require.True(t, killed)
	require.Equal(t, "wait.txt:4: it never ends", how)
}

// TestAnAnswerThatPrintsRulesDoesNotCount: it would notice any change.
func TestAnAnswerThatPrintsRulesDoesNotCount(t *testing.T) {
	base, err := Ours().Base()
	require.NoError(t, err)
	f := Fault{Patches: []string{`lane/admit: guard drop "!faulted"`}}
	m, err := f.mutant(Ours())
	require.NoError(t, err)
	for script, want := range map[string]bool{
		"open\nprepare a\n\nexplain lane admit\n":    false,
		"open\nprepare a\n\nprepare a2\nwhy\n":       false,
		"open\nfire lane fault\n\nfire lane admit\n": true,
	} {
		s, err := NewScenarios(fstest.MapFS{"s.txt": {Data: []byte(script)}}, base)
		require.NoError(t, err)
		_, killed, err := s.Kill(m)
		require.NoError(t, err)
		require.Equal(t, want, killed, script)
	}
}

// TestAScriptOfChangedRulesLeavesThoseRowsAlone: it notices other rows, and
// says nothing of those that it changes itself, where its change would not fit.
func TestAScriptOfChangedRulesLeavesThoseRowsAlone(t *testing.T) {
	base, err := Ours().Base()
	require.NoError(t, err)
	s, err := NewScenarios(fstest.MapFS{"fence-any.txt": {Data: []byte("patch fence/retire-held: row drop\nopen\nprepare a\nlaunch a\nwait a\nfinalize a\n")}}, base)
	require.NoError(t, err)
	for text, notices := range map[string]bool{`fence/retire-held: row drop`: false, `run/drained: to launched`: true} {
		p, err := patch.Parse(text)
		require.NoError(t, err)
		m, err := Ours().Mutant(p)
		require.NoError(t, err)
		_, killed, err := s.Kill(m)
		require.NoError(t, err)
		require.Equal(t, notices, killed, text)
	}
}

// TestWorkersDoNotMatter: what comes out is the same from one as from three.
func TestWorkersDoNotMatter(t *testing.T) {
	c := campaign(t)
	all := c.Rules.Mutants()
	for i := 0; i < len(all); i += len(all) / 12 {
		c.Mutants = append(c.Mutants, all[i])
	}
	c.Workers = 1
	one, err := c.Run(t.Context())
	require.NoError(t, err)
	c.Workers = 3
	told := 0
	c.Progress = func(done int, _ Outcome) { told = done }
	three, err := c.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, one, three)
	require.Equal(t, len(c.Mutants), told)
}

type failing struct{}

func (failing) Name() string                       { return "failing" }
func (failing) Kill(*Mutant) (string, bool, error) { return "", false, errFailing }

var errFailing = errors.New("cannot look")

// TestACampaignStops: at an error of a killer, and when it is told to.
func TestACampaignStops(t *testing.T) {
	c := campaign(t, `run/drained: to launched`)
	c.Killers = []Killer{failing{}}
	_, err := c.Run(t.Context())
	require.ErrorIs(t, err, errFailing)

	ctx, stop := context.WithCancel(t.Context())
	stop()
	c = campaign(t, `run/drained: to launched`)
	_, err = c.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)

	c = campaign(t, `run/dreined: to launched`)
	_, err = c.Run(t.Context())
	require.ErrorContains(t, err, `unknown row of run "dreined"`)
}

// TestExploredAsSearched: what a model comes to is what a search of it visits.
func TestExploredAsSearched(t *testing.T) {
	base, err := Ours().Base()
	require.NoError(t, err)
	for _, m := range Small() {
		x, err := Explore(m, base)
		require.NoError(t, err)
		sys, err := m.system(base.Lane, nil)
		require.NoError(t, err)
		r, err := explore.Search(t.Context(), sys, explore.Options{})
		require.NoError(t, err)
		require.True(t, r.Finished)
		require.Empty(t, r.Findings)
		require.Equal(t, [2]int{int(r.States), int(r.Edges)}, [2]int{len(x.states), x.edges}, m.Name)
	}
}
