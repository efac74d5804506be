package invariants_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// standing is what an observer knows of an invariant.
func standing(t *testing.T, o *invariants.Observer, id string) invariants.Standing {
	for _, s := range o.Standings() {
		if s.Invariant.ID == id {
			return s
		}
	}
	t.Fatalf("no invariant %s", id)
	return invariants.Standing{}
}

// What the records tell of the device is enough to see that something is freed
// or recorded again which the device may still name; and with the rules as they
// are, the same drive frees nothing too early.
func TestRecordsTellOfTheDevice(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		drive  func(r *rig)
		want   string
		then   string // what is broken after that
	}{
		"a proof of the other stream": {
			change: "token/release-other: row drop",
			drive: func(r *rig) {
				r.run(0)
				r.reserve(0, core, coreStream, 1)
				r.op("token", 0, "queue")
				r.wait(0)
				r.fire("token", 0, "release", cpuStream)
				r.finalize(0)
				r.step(func() *machine.Step { return r.w.Drop(r.ref("run", 0)) })
				r.run(0)
			},
			want: "the AICore event of slot 0 is recorded again while a wait for the AICore event of slot 0",
		},
		"released on one boundary": {
			change: `fence/retire-proven: guard set "quiet || core == complete"`,
			drive: func(r *rig) {
				r.run(0)
				r.next("QueryCPU", value(0))
				r.poll(0)
				r.fire("run", 0, "drained", append(r.ids(0), 0, 0)...)
				r.finalize(0)
			},
			want: "ReleaseRun of slot 0 while ",
		},
		"memory for the next run while this one may use it": {
			change: `fence/retire-proven: guard set "quiet || core == complete"`,
			drive: func(r *rig) {
				r.run(0)
				r.next("QueryCPU", value(0))
				r.poll(0)
				r.fire("run", 0, "drained", append(r.ids(0), 0, 0)...)
				r.finalize(0)
				r.step(func() *machine.Step { return r.w.Drop(r.ref("run", 0)) })
				r.prepare(0)
			},
			want: "ReleaseRun of slot 0 while ", then: "PrepareRun overwrites memory of slot 0 that work of record ",
		},
		"a close while a token's wait may be queued": {
			change: "token/release-other: row drop",
			drive: func(r *rig) {
				r.run(0)
				r.reserve(0, core, coreStream, 1)
				r.op("token", 0, "queue")
				r.wait(0)
				r.fire("token", 0, "release", cpuStream)
				r.finalize(0)
				r.close()
			},
			want: "ReleaseSlots while a wait for the AICore event of slot 0",
		},
		"a caller's wait that was never over": {
			change: `drain/tail_wait: then[6].with add "caller_order.proven()"`,
			drive: func(r *rig) {
				r.eager(0)
				r.next("WaitTail", ends(machine.Failed))
				r.next("SyncCaller", ends(machine.TimedOut))
				r.wait(0)
				r.next("SyncCaller", ends(machine.TimedOut))
				r.wait(0)
				r.finalize(0)
			},
			want: "a wait for the AICPU event of slot 0 of record ",
		},
		"a reset that was not confirmed": {
			change: "recovery/reset: then[0].when drop",
			drive: func(r *rig) {
				r.next("SubmitCPU", ends(machine.Failed))
				r.run(0)
				r.next("DrainDevice", ends(machine.TimedOut))
				r.next("ResetDevice", value(0))
				r.recover()
				r.finalize(0)
			},
			want: "ReleaseRun of slot 0 while ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, whole := range []bool{true, false} {
				defs := states.Definitions()
				if !whole {
					defs = changedDefs(t, defs, c.change)
				}
				r := newRig(t, defs, lanePools)
				r.observer = &invariants.Observer{}
				r.open(2)
				c.drive(r)
				r.observed = append(r.observed, r.observer.Flush()...)
				s := standing(t, r.observer, "nothing-freed-in-use")
				if whole {
					require.Equal(t, invariants.Holds, s.Verdict, "%v", s.First)
					require.NotZero(t, s.Evaluated)
					continue
				}
				require.Equal(t, invariants.Broken, s.Verdict)
				require.Contains(t, s.First.Detail, c.want)
				if c.then != "" {
					last := r.observed[len(r.observed)-1]
					require.NotSame(t, s.First, last)
					require.Contains(t, last.Detail, c.then)
				}
			}
		})
	}
}

// What cannot be told is unknown: a log that begins in the middle, and calls
// that nobody knows.
func TestUnknownIsSaid(t *testing.T) {
	var o invariants.Observer
	require.Equal(t, invariants.Unknown, standing(t, &o, "nothing-freed-in-use").Verdict)

	r := newRig(t, states.Definitions(), lanePools)
	r.open(1)
	r.observer = &o
	r.run(0)
	o.Flush()
	s := standing(t, &o, "nothing-freed-in-use")
	require.Equal(t, invariants.Unknown, s.Verdict)
	require.Contains(t, s.Why, "begin")
	require.Equal(t, invariants.Holds, standing(t, &o, "launch-order").Verdict)
	require.Equal(t, invariants.Vacuous, standing(t, &o, "one-release").Verdict)

	defs := changedDefs(t, states.Definitions(), `prepare/check: command set "Frobnicate(work)"`)
	r = newRig(t, defs, lanePools)
	r.observer = &invariants.Observer{}
	r.open(1)
	r.observer.Flush()
	s = standing(t, r.observer, "nothing-freed-in-use")
	require.Equal(t, invariants.Unknown, s.Verdict)
	require.Contains(t, s.Why, "Frobnicate")

	// A predicate that reads a fact which the rules do not have is unknown too.
	for _, d := range defs {
		for i := range d.Facts {
			if d.Name == "watched" && d.Facts[i].Name == "stream" {
				d.Facts[i].Name = "queue"
				d.Rows[0].Then[0].Do = "generation = arg.generation; queue = arg.stream"
			}
		}
		for i := range d.Views {
			if d.Name == "health" && d.Views[i].Name == "mine" {
				d.Views[i].Expr = "any(watched, generation != none && generation == health.generation && queue == health.stream)"
			}
		}
	}
	r = newRig(t, defs, lanePools)
	r.observer = &invariants.Observer{}
	r.open(1)
	r.observer.Flush()
	s = standing(t, r.observer, "only-a-match-suspects")
	require.Equal(t, invariants.Unknown, s.Verdict)
	require.Contains(t, s.Why, "watched has no fact stream")
}

// A watch sees what the device sees, while the lane runs: it is the records of a
// real host that say so.
func TestWatchSeesIt(t *testing.T) {
	for _, whole := range []bool{true, false} {
		rules := states.Rules()
		if !whole {
			rules = changed(t, "token/release-other: row drop")
		}
		w, err := invariants.NewWatch(rules, machine.Config{Pools: states.Config{Slots: 2}.Pools()})
		require.NoError(t, err)
		dev := wrongWaiter(t, rules, w)
		found, err := w.Findings()
		require.NoError(t, err)
		ids := map[string]int{}
		for _, f := range found {
			ids[f.Invariant.ID]++
		}
		if whole {
			require.Empty(t, ids)
			require.Empty(t, dev.Violations())
			continue
		}
		require.Equal(t, map[string]int{"counts-drop-by-proof": 1, "nothing-freed-in-use": 1}, ids)
		require.NotEmpty(t, dev.Violations())
	}
}

// A watch that misses a record says so, and says nothing of what comes after.
func TestWatchOfOtherRecords(t *testing.T) {
	w, err := invariants.NewWatch(states.Rules(), machine.Config{Pools: lanePools})
	require.NoError(t, err)
	r := newRig(t, states.Definitions(), lanePools)
	r.fire("latch", 0, "claim", 0)
	r.fire("latch", 0, "begin")
	w.Record(&r.recs[0])
	_, err = w.Findings()
	require.ErrorContains(t, err, "record 2 of latch")
}

// Many goroutines fire, and others ask how it stands meanwhile.
func TestWatchUnderManyGoroutines(t *testing.T) {
	rules := states.Rules()
	config := machine.Config{Pools: lanePools}
	w, err := invariants.NewWatch(rules, config)
	require.NoError(t, err)
	config.Recorder = w
	world, err := rules.NewWorld(config)
	require.NoError(t, err)
	d, err := machine.NewDriver(world, machine.DriverConfig{Performer: performer(func(*machine.Command) machine.Result { return value(ourContext) })})
	require.NoError(t, err)
	m := rules.Machine("health")
	ref := d.Ref(m.ID(), 0)
	ctx := context.Background()
	_, err = d.Fire(ctx, ref, m.MustEvent("begin"), 0)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range uint64(200) {
				_, err := d.Fire(ctx, ref, m.MustEvent("notice"), 0, i%3)
				require.NoError(t, err)
			}
		})
		all.Go(func() {
			for range 50 {
				found, err := w.Findings()
				require.NoError(t, err)
				require.Empty(t, found)
				w.Standings()
			}
		})
	}
	all.Wait()
	for _, s := range w.Standings() {
		if s.Invariant.ID == "notice-only-refuses" {
			require.Equal(t, invariants.Holds, s.Verdict)
			require.Equal(t, uint64(2*4*200+1), s.Evaluated)
		}
	}
}

type performer func(*machine.Command) machine.Result

func (p performer) Perform(_ context.Context, c *machine.Command) machine.Result { return p(c) }

// A host that releases a token by a proof of the stream with the wait has that
// proof itself: the records need not show it, and its word is taken.
func TestTheWordOfAHostIsTaken(t *testing.T) {
	for _, host := range []string{"queue", "commit"} {
		r := newRig(t, states.Definitions(), lanePools)
		r.observer = &invariants.Observer{}
		r.open(1)
		r.run(0)
		r.reserve(0, core, coreStream, 1)
		r.op("token", 0, host)
		r.wait(0)
		r.fire("token", 0, "release", coreStream)
		r.finalize(0)
		r.step(func() *machine.Step { return r.w.Drop(r.ref("run", 0)) })
		r.run(0)
		r.observer.Flush()
		require.Equal(t, "launched", r.state("run", 0))
		require.Equal(t, invariants.Holds, standing(t, r.observer, "nothing-freed-in-use").Verdict, host)
	}
}
