package explore_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/scenario"
	"github.com/runfence/runfence/states"
)

// wide are bounds far beyond what can be searched, in which nothing is found.
var wide = []string{
	"runs=30 slots=4 depth=4 faults=4 spare=6 recoveries=3 polls=10 expiries=2 caller submit records",
	"runs=30 slots=4 depth=2 faults=3 spare=10 recoveries=2 polls=5 tokens=3 expiries=2",
	"runs=10 slots=3 depth=2 threads=3 spare=6 polls=10 faults=4 expiries=2 async",
	"runs=10 slots=2 close quarantine detach opening strangers faults=4 spare=4",
	"runs=10 slots=2 threads=2 borrowed recoveries=4 faults=4 spare=4 strangers",
}

func bounds(t *testing.T, text string) *model.Config {
	t.Helper()
	c, err := model.ParseConfig(text)
	require.NoError(t, err)
	return &c
}

func walk(t *testing.T, o explore.WalkOptions) *explore.WalkResult {
	t.Helper()
	r, err := explore.Walk(t.Context(), o)
	require.NoError(t, err)
	require.Positive(t, r.Elapsed)
	r.Elapsed = 0
	return r
}

func TestWalkHolds(t *testing.T) {
	for _, text := range wide {
		r := walk(t, explore.WalkOptions{Walks: 60, Seed: 11, Bounds: bounds(t, text)})
		for i := range r.Findings {
			t.Errorf("%s: %v", text, &r.Findings[i])
		}
		require.Equal(t, uint64(60), r.Walks)
		require.Less(t, r.Unchanged, r.Moves)
		require.Greater(t, r.Rows-len(r.NeverTaken), 90, text)
	}
}

// Hosts that are drawn, with everything that a host may do.
func TestDrawnWalksHold(t *testing.T) {
	r := walk(t, explore.WalkOptions{Walks: 1500, Seed: 3})
	for i := range r.Findings {
		t.Errorf("%v", &r.Findings[i])
	}
	require.Equal(t, uint64(1500), r.Walks)
}

// All that is seen follows from the seed and the number of walks.
func TestWalkFollowsFromItsSeed(t *testing.T) {
	rules := broken(t, depthIgnored)
	for _, keepGoing := range []bool{false, true} {
		see := func(seed uint64, workers int) *explore.WalkResult {
			return walk(t, explore.WalkOptions{Walks: 100, Seed: seed, Workers: workers, KeepGoing: keepGoing, Rules: rules})
		}
		one := see(1, 1)
		require.NotEmpty(t, one.Findings)
		for _, workers := range []int{2, 5} {
			require.Equal(t, one, see(1, workers))
		}
		require.NotEqual(t, one, see(2, 1))
		if !keepGoing {
			require.Len(t, one.Findings, 1)
			require.Equal(t, one.Findings[0].Walk+1, one.Walks)
			continue
		}
		require.Equal(t, uint64(100), one.Walks)
		require.Greater(t, one.Findings[0].Count, uint64(1))
	}
}

// The walks that an interrupted Walk took are the first there are.
func TestWalkInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := explore.WalkOptions{Seed: 3, Bounds: bounds(t, wide[2]), Workers: 3, Tick: time.Nanosecond}
	o.Progress = func(r explore.WalkReport) {
		if r.Walks >= 10 {
			cancel()
		}
	}
	r, err := explore.Walk(ctx, o)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Walks, uint64(10))
	o.Walks, o.Progress, r.Elapsed = r.Walks, nil, 0
	require.Equal(t, walk(t, o), r)
}

func TestWalkBounds(t *testing.T) {
	r := walk(t, explore.WalkOptions{Walks: 20, Seed: 1, Bounds: bounds(t, wide[0]), Moves: 15})
	require.Equal(t, uint64(20*15), r.Moves)
	require.Equal(t, uint64(15), r.Longest)

	_, err := explore.Walk(t.Context(), explore.WalkOptions{Walks: 1, Bounds: &model.Config{Slots: 99}})
	require.ErrorIs(t, err, model.ErrConfig)
	_, err = explore.Walk(t.Context(), explore.WalkOptions{Walks: 1, Rules: states.OrchestratorRules()})
	require.ErrorContains(t, err, "the rules have no machine")

	// That borrowing fails is seen by the first walk that borrows.
	o := explore.WalkOptions{Walks: 100, Seed: 1, KeepGoing: true, Rules: broken(t, `environment/borrow: then[0].when set "res.value != 0"`)}
	_, err = explore.Walk(t.Context(), o)
	require.ErrorContains(t, err, "the rules do not open the lane")
	first := err.Error()
	require.Contains(t, first, " borrowed ")
	o.Workers = 3
	_, err = explore.Walk(t.Context(), o)
	require.EqualError(t, err, first)
}

// broken are the rules with one change.
func broken(t *testing.T, change string) *machine.Rules {
	t.Helper()
	p, err := patch.Parse(change)
	require.NoError(t, err)
	defs, err := patch.Apply(states.Definitions(), p)
	require.NoError(t, err)
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	return rules
}

const depthIgnored = `launch/arm-no-permit: guard drop "view.room"`

// TestShrink: walks find what is broken on purpose. It is made about as short as
// it can be; its scenario shows it again; its log replays.
func TestShrink(t *testing.T) {
	for _, c := range []struct {
		change string
		kind   string
		// more is how many moves there are beyond those of the shortest way.
		more int
	}{
		{`run/unprepared: then.with drop "lane.leave()"`, "runs-are-counted", 0},
		{`lane/shut-live: row drop`, "freed-when-over", 0},
		{`prepare/bind: command set "PublishRegion()"`, "prepare-submits-nothing", 0},
		{`launch/submit_core: command set "SubmitCPU()"`, "launch-order", 0},
		{`launch/record_start: then[0].with drop "caller_order.record(at_start)"`, "wait-after-record", 0},
		{`drain/core_sync: then[1].with drop "fence.quiesced(run_epoch, generation, dispatch)"`, "both-boundaries", 0},
		{`run/finalized: then.with drop "launch.reset()"`, "finalized-leaves-nothing", 0},
		{`outcome/certify: guard set "arg.complete && arg.transferred && arg.trusted"`, "no-record-certifies-nothing", 4},
		{depthIgnored, "depth", 0},
	} {
		t.Run(c.kind, func(t *testing.T) {
			rules := broken(t, c.change)
			r := walk(t, explore.WalkOptions{Walks: 150, Seed: 1, KeepGoing: true, Rules: rules})
			var found *explore.WalkFinding
			for i := range r.Findings {
				if r.Findings[i].Finding.Kind == c.kind {
					found = &r.Findings[i]
				}
			}
			require.NotNil(t, found, "%+v", r.Findings)
			short, err := explore.Shrink(*found, 0)
			require.NoError(t, err)
			require.False(t, short.GaveUp)
			require.Equal(t, c.kind, short.Finding.Kind)
			require.LessOrEqual(t, len(short.Moves), len(found.Acts))
			again, err := explore.Shrink(*found, 0)
			require.NoError(t, err)
			require.Equal(t, short, again)

			sys, err := explore.Lane(short.Config)
			require.NoError(t, err)
			all, err := explore.Search(t.Context(), sys, explore.Options{KeepGoing: true, MaxDepth: len(short.Moves), MaxStates: 300_000})
			require.NoError(t, err)
			shortest := -1
			for _, x := range all.Findings {
				if x.Finding.Kind == c.kind {
					shortest = len(x.Moves)
				}
			}
			require.NotEqual(t, -1, shortest, "the search finds it too")
			require.LessOrEqual(t, len(short.Moves), shortest+c.more)

			var log bytes.Buffer
			w, err := translog.NewWriter(&log, rules, translog.Options{})
			require.NoError(t, err)
			file, err := short.Story(short.Finding.Error()).Scenario(w.World(model.World, short.Pools, 0))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.Contains(t, string(file), "\n! "+c.kind+": ")
			played, err := scenario.Run("found", file, scenario.Options{Rules: rules})
			require.NoError(t, err)
			require.Empty(t, played.Mismatches)
			sound, err := scenario.Run("found", file, scenario.Options{})
			require.True(t, err != nil || len(sound.Mismatches) > 0, "rules that are not broken do something else")
			replayed, err := replay.Run(bytes.NewReader(log.Bytes()), rules, replay.Options{})
			require.NoError(t, err)
			require.True(t, replayed.Closed)
		})
	}
}

// A finding of what is left undone is made short as well, and so is one with few
// moves to spend on it.
func TestShrinkUnfinished(t *testing.T) {
	// A run that is to be finalized again is not let go any more.
	rules := broken(t, `finalize/start-gone: guard set "true"`)
	r := walk(t, explore.WalkOptions{Walks: 20, Seed: 1, Rules: rules, Bounds: bounds(t, "runs=8 slots=2 depth=2 threads=2 spare=3 polls=3")})
	require.Len(t, r.Findings, 1)
	found := r.Findings[0]
	require.Equal(t, model.Unfinished, found.Finding.Kind)
	short, err := explore.Shrink(found, 0)
	require.NoError(t, err)
	require.False(t, short.GaveUp)
	require.Equal(t, "runs=1", short.Config.String())
	require.Equal(t, "start prepare 0", short.Moves[0])
	file, err := short.Story("unfinished").Scenario(nil)
	require.NoError(t, err)
	require.Contains(t, string(file), "! unfinished: the run of slot 0 is ")

	some, err := explore.Shrink(found, 2000)
	require.NoError(t, err)
	require.True(t, some.GaveUp)
	require.Less(t, some.Taken, uint64(3000))
	require.Greater(t, len(some.Moves), len(short.Moves))
	file, err = some.Story("unfinished").Scenario(nil)
	require.NoError(t, err)
	require.Contains(t, string(file), "! unfinished: ")

	// A way to something else is no shorter way.
	other := found
	other.Finding.Kind = model.Deadlock
	same, err := explore.Shrink(other, 0)
	require.NoError(t, err)
	require.Equal(t, other.Finding, same.Finding)
	require.Len(t, same.Moves, len(found.Acts))

	_, err = explore.Shrink(explore.WalkFinding{Config: model.Config{Slots: 99}}, 0)
	require.ErrorIs(t, err, model.ErrConfig)
}
