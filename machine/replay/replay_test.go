package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// states describes every instance of a world: state and facts.
func states(w *machine.World) []string {
	var out []string
	for m := range machine.MachineID(w.Rules().NumMachines()) {
		for slot := range w.Capacity(m) {
			r := w.Ref(m, slot)
			out = append(out, fmt.Sprint(w.Rules().RefName(r), " ", w.StateName(r), " ", w.AppendFacts(nil, r)))
		}
	}
	return out
}

func TestSessionReplaysToTheSameState(t *testing.T) {
	rules := compiled(t, rig()...)
	for _, o := range []translog.Options{{}, {Exact: true}, {Format: translog.JSONLines}} {
		var b bytes.Buffer
		w, err := translog.NewWriter(&b, rules, o)
		require.NoError(t, err)
		h := newHost(t, rules, w.World("lane", pools, 0))
		h.session()
		require.NoError(t, w.Close())
		var live []string
		var seq uint64
		h.d.View(func(w *machine.World) { live, seq = states(w), w.Seq() })

		res, err := run(b.Bytes(), rules, replay.Options{})
		require.NoError(t, err)
		require.Len(t, res.Worlds, 1)
		got := res.Worlds[0]
		assert.Equal(t, live, states(got.State))
		assert.Equal(t, "lane", got.Name)
		assert.Equal(t, seq, got.State.Seq())
		assert.Equal(t, seq, got.Records)
		assert.Equal(t, seq, res.Records)
		assert.True(t, res.Closed)
		assert.Zero(t, got.Missing)
		assert.Equal(t, got.Refusals, res.Refusals)
		assert.EqualValues(t, 11, res.Refusals)
		assert.Equal(t, o.Exact, res.Repeated == 0)
		assert.Equal(t, got.Repeated, res.Repeated)
		assert.Zero(t, res.Gaps)

		res, err = replay.Run(pipe{bytes.NewReader(b.Bytes())}, rules, replay.Options{})
		require.NoError(t, err, "from a pipe")
		assert.Equal(t, live, states(res.Worlds[0].State))
	}
}

func TestInstancesOfTheResult(t *testing.T) {
	res, err := run(record(t, translog.Options{}), compiled(t, rig()...), replay.Options{})
	require.NoError(t, err)
	require.Len(t, res.Worlds, 2)
	byName := map[string]replay.Instance{}
	for _, i := range res.Worlds[0].Instances() {
		byName[i.Name] = i
	}
	require.Len(t, byName, 4+2+1)
	assert.Equal(t, "running", byName["job[0]~1"].State)
	assert.Equal(t, "lost", byName["job[2]"].State)
	assert.False(t, byName["desk"].Untouched)
	for _, i := range res.Worlds[1].Instances() {
		assert.Equal(t, i.Name != "job[0]~1" && i.Name != "desk" && i.Name != "gate[0]", i.Untouched, i.Name)
	}
}

// Any session replays, whatever is recorded of it and however.
func TestAnySessionReplays(t *testing.T) {
	rules := compiled(t, rig()...)
	rapid.Check(t, func(rt *rapid.T) {
		var b bytes.Buffer
		w, err := translog.NewWriter(&b, rules, translog.Options{
			Format: translog.Format(rapid.IntRange(0, 1).Draw(rt, "format")),
			Exact:  rapid.Bool().Draw(rt, "exact"), Batch: rapid.SampledFrom([]int{0, 1}).Draw(rt, "batch"),
		})
		require.NoError(rt, err)
		hosts := []*host{newHost(t, rules, w.World("a", pools, 0)), newHostWithQueue(t, rules, w.World("b", pools, 2), 2)}
		epoch := uint64(0)
		result := rapid.Custom(func(t *rapid.T) machine.Result {
			return machine.Result{
				Outcome: machine.Outcome(rapid.IntRange(0, machine.NumOutcomes-1).Draw(t, "outcome")), Accepted: rapid.Bool().Draw(t, "accepted"),
				Codes: machine.Codes{Code: rapid.Int32Range(-1, 1).Draw(t, "code")}, Value: rapid.Uint64Range(0, 1).Draw(t, "value"),
			}
		})
		var act func(h *host, depth int)
		act = func(h *host, depth int) {
			slot := rapid.IntRange(0, 3).Draw(rt, "slot")
			j := h.ref("job", slot)
			h.answer = result.Draw(rt, "answer")
			if depth < 2 && rapid.Bool().Draw(rt, "nested") {
				h.inside = func() { act(h, depth+1) }
			}
			defer func() { h.inside = nil }()
			switch rapid.IntRange(0, 7).Draw(rt, "op") {
			case 0, 1:
				epoch++
				h.prepare(slot, epoch*rapid.Uint64Range(0, 1).Draw(rt, "identified"), rapid.Uint64Range(0, 2).Draw(rt, "size"))
			case 2:
				h.fire(j, "submit")
			case 3:
				h.fire(j, "poll")
			case 4:
				h.fire(j, "nudge")
			case 5:
				_ = h.d.Drop(j)
			case 6:
				h.fire(h.ref("desk", 0), "mint")
			case 7:
				h.d.View(func(w *machine.World) { w.ReserveIdentity("token", rapid.Uint64Range(0, 50).Draw(rt, "reserved")) })
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "ops") {
			act(hosts[rapid.IntRange(0, 1).Draw(rt, "world")], 0)
			if rapid.IntRange(0, 9).Draw(rt, "sync") == 0 {
				require.NoError(rt, w.Sync())
			}
		}
		require.NoError(rt, w.Close())
		res, err := run(b.Bytes(), rules, replay.Options{})
		var d *replay.Divergence
		if errors.As(err, &d) {
			var text bytes.Buffer
			require.NoError(rt, d.Explain(&text))
			rt.Fatalf("%s", text.String())
		}
		require.NoError(rt, err)
		for i, h := range hosts {
			var live []string
			h.d.View(func(w *machine.World) { live = states(w) })
			require.Equal(rt, live, states(res.Worlds[i].State))
		}
	})
}

// A log that was not closed replays as far as it goes, also from the middle of
// a step.
func TestEveryBeginningReplays(t *testing.T) {
	rules := compiled(t, rig()...)
	for _, o := range []translog.Options{{}, {Format: translog.JSONLines}} {
		log := record(t, o)
		n := 0
		missing := 0
		for {
			done := false
			part := edit(t, log, func(es []translog.Entry) []translog.Entry {
				done = n == len(es)
				return es[:n]
			})
			res, err := run(part, rules, replay.Options{})
			require.NoError(t, err, "%d entries", n)
			require.Equal(t, done, res.Closed)
			for _, w := range res.Worlds {
				missing += w.Missing
			}
			if n++; done {
				break
			}
		}
		assert.Greater(t, missing, 3, "steps were cut")
	}
}

func TestTornLogReplaysUpToTheTear(t *testing.T) {
	log := record(t, translog.Options{})
	res, err := run(log[:len(log)-40], compiled(t, rig()...), replay.Options{})
	var torn *translog.TornError
	require.ErrorAs(t, err, &torn)
	assert.Equal(t, torn.Place.Seq, res.Worlds[1].Records)
	assert.Equal(t, 1, torn.Place.World)
	assert.False(t, res.Closed)
	assert.EqualValues(t, 58, res.Worlds[0].Records)
}

func TestGaps(t *testing.T) {
	rules := compiled(t, rig()...)
	log := edit(t, record(t, translog.Options{}), func(es []translog.Entry) []translog.Entry {
		i := at(t, es, 0, func(r *machine.Record) bool { return r.Seq == 30 })
		gap := translog.Entry{Kind: translog.GapEntry, Gap: translog.Gap{First: 30, Count: 3}}
		es = append(append(es[:i:i], gap), es[i+3:]...)
		es[len(es)-1].End = translog.End{Records: 72, Dropped: 3}
		return es
	})
	res, err := run(log, rules, replay.Options{})
	var gap *replay.GapError
	require.ErrorAs(t, err, &gap)
	assert.Equal(t, translog.Gap{First: 30, Count: 3}, gap.Gap)
	assert.ErrorContains(t, err, `world 0 "lane": 3 records are lost, 30 to 32`)
	assert.ErrorContains(t, err, "byte ")
	assert.EqualValues(t, 29, res.Records)
	assert.Equal(t, 1, res.Gaps)

	res, err = run(log, rules, replay.Options{SkipGaps: true})
	require.NoError(t, err)
	assert.EqualValues(t, 29, res.Worlds[0].Records)
	assert.Equal(t, &translog.Gap{First: 30, Count: 3}, res.Worlds[0].Gap)
	assert.EqualValues(t, 17, res.Worlds[1].Records, "the other world is replayed whole")
	assert.Nil(t, res.Worlds[1].Gap)
	assert.EqualValues(t, 3, res.Lost)
	assert.EqualValues(t, 26, res.Skipped)
	assert.True(t, res.Closed)
}

func TestObserverSeesEachRecord(t *testing.T) {
	rules := compiled(t, rig()...)
	log := record(t, translog.Options{})
	seen := map[string]uint64{}
	_, err := run(log, rules, replay.Options{Observer: func(w *machine.World, r *machine.Record) error {
		seen[w.Name()]++
		assert.Equal(t, seen[w.Name()], r.Seq)
		if r.Kind == machine.Settled || r.Kind == machine.Stepped && r.Via == machine.ViaHost {
			s, in, ok := w.State(r.Ref)
			assert.True(t, ok)
			assert.False(t, in && r.Kind == machine.Settled)
			assert.Equal(t, r.To, s)
		}
		return nil
	}})
	require.NoError(t, err)
	assert.Equal(t, map[string]uint64{"lane": 58, "other": 17}, seen)

	stop := errors.New("broken promise")
	res, err := run(log, rules, replay.Options{Observer: func(_ *machine.World, r *machine.Record) error {
		if r.Seq == 9 {
			return stop
		}
		return nil
	}})
	assert.ErrorIs(t, err, stop)
	assert.ErrorContains(t, err, `world 0 "lane", record 9`)
	assert.EqualValues(t, 9, res.Records)
}

func TestWorldsThatCannotBe(t *testing.T) {
	rules := compiled(t, rig()...)
	change := func(f func(w *translog.World)) []byte {
		return edit(t, record(t, translog.Options{}), func(es []translog.Entry) []translog.Entry { f(&es[0].Opened); return es })
	}
	for name, log := range map[string][]byte{
		"no pool":       change(func(w *translog.World) { w.Pools = nil }),
		"a pool too":    change(func(w *translog.World) { w.Pools["dock"] = 3 }),
		"pool too big":  change(func(w *translog.World) { w.Pools["slot"] = 1 << 40 }),
		"negative pool": change(func(w *translog.World) { w.Pools["slot"] = -1 << 62 }),
		"queue too big": change(func(w *translog.World) { w.Queue = 1 << 40 }),
	} {
		res, err := run(log, rules, replay.Options{})
		var bad *replay.WorldError
		if assert.ErrorAs(t, err, &bad, name) {
			assert.Equal(t, "lane", bad.Name)
			assert.ErrorContains(t, err, "byte ")
			assert.Empty(t, res.Worlds)
		}
	}
	log := record(t, translog.Options{})
	for _, o := range []replay.Options{{MaxWorlds: 1}, {MaxInstances: 8}} {
		res, err := run(log, rules, o)
		require.ErrorIs(t, err, replay.ErrTooMuch)
		assert.Len(t, res.Worlds, 1)
	}
}

// What a replay takes does not grow with the log.
func TestMemoryIsConstantInTheLength(t *testing.T) {
	rules := compiled(t, rig()...)
	for _, f := range []translog.Format{translog.Binary, translog.JSONLines} {
		var allocs [2]float64
		for i, jobs := range []int{100, 1600} {
			log, n := longLog(t, jobs, f)
			require.Greater(t, n, uint64(jobs*10))
			allocs[i] = testing.AllocsPerRun(2, func() {
				if _, err := replay.Run(pipe{bytes.NewReader(log)}, rules, replay.Options{Recent: 64}); err != nil {
					panic(err)
				}
			})
		}
		// Pools give back less under the race detector; one allocation for each
		// record would be fifteen thousand.
		assert.InDelta(t, allocs[0], allocs[1], 500, "%v: sixteen times the records", f)
	}
}
