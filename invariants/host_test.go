package invariants_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/states"
)

// player is a host that does anything, in any order, to a worker on a
// simulated device with faults, and is watched.
type player struct {
	dev      *sim.Device
	worker   *states.ChipWorker
	watch    *invariants.Watch
	writer   *translog.Writer
	log      bytes.Buffer
	process  int
	caller   backend.Stream
	runs     []*states.Run
	receipts map[*states.Run]states.Receipt
	tokens   []*held
	handles  []states.Callable
}

// held is a token, with what its host knows of the wait.
type held struct {
	*states.WaitRef
	waiter         states.Waiter
	queued, proven bool
	by             *states.Run
}

func newPlayer(t *rapid.T) *player {
	p := &player{process: 1, receipts: map[*states.Run]states.Receipt{}}
	borrowed, slots := rapid.Bool().Draw(t, "borrowed"), rapid.IntRange(1, 3).Draw(t, "slots")
	var err error
	p.dev, err = sim.New(sim.Config{
		Kernels: []sim.KernelSpec{
			{Name: "core", Class: backend.AICore, Duration: 40 * time.Microsecond},
			{Name: "cpu", Class: backend.AICPU, Duration: 50 * time.Microsecond},
		},
		Budget: rapid.Uint8Range(0, 4).Draw(t, "faults"), Borrowed: borrowed,
		Faults: sim.Faults(sim.Refuse, sim.FailBefore, sim.FailAfter, sim.FailAccepted, sim.PanicBefore, sim.PanicAfter, sim.KernelFatal, sim.KernelHang),
	})
	require.NoError(t, err)
	var r backend.Result
	p.caller, r = p.dev.CreateStream(context.Background())
	require.True(t, r.Ok())
	c := states.WorkerConfig{Mode: states.Program, Config: states.Config{
		Backend: p.dev, Slots: slots, Depth: rapid.IntRange(1, slots).Draw(t, "depth"), Incarnation: 1,
		Timeout: time.Second, Process: func() int { return p.process },
	}}
	if borrowed {
		c.Borrowed, c.Generation = true, 99
	}
	p.writer, err = translog.NewWriter(&p.log, states.Rules(), translog.Options{})
	require.NoError(t, err)
	pools := c.Pools()
	p.watch, err = invariants.NewWatch(states.Rules(), machine.Config{Name: "lane", Pools: pools, Recorder: p.writer.World("lane", pools, 0)})
	require.NoError(t, err)
	c.Recorder = p.watch
	p.worker, err = states.NewChipWorker(c)
	require.NoError(t, err)
	if err := p.worker.Init(context.Background()); err != nil {
		t.Skip("it does not start")
	}
	p.dev.SetPolicy(sim.NewRandom(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 40).Draw(t, "rare")))
	return p
}

// pick takes one of a list; the latest is the likeliest.
func oneOf[T any](t *rapid.T, list []T) (T, bool) {
	var none T
	if len(list) == 0 {
		return none, false
	}
	return list[len(list)-1-rapid.IntRange(0, min(3, len(list)-1)).Draw(t, "which")], true
}

// actions are what the host may do. What they answer is nobody's business here.
func (p *player) actions(ctx context.Context) map[string]func(*rapid.T) {
	onRun := func(do func(t *rapid.T, r *states.Run)) func(*rapid.T) {
		return func(t *rapid.T) {
			if r, ok := oneOf(t, p.runs); ok {
				do(t, r)
			}
		}
	}
	onToken := func(do func(t *rapid.T, h *held)) func(*rapid.T) {
		return func(t *rapid.T) {
			if h, ok := oneOf(t, p.tokens); ok {
				do(t, h)
			}
		}
	}
	work := func(t *rapid.T) states.Work {
		w := states.Work{Core: 1, CPU: 2, Args: bytes.Repeat([]byte{1}, rapid.IntRange(0, 3).Draw(t, "args"))}
		if rapid.Bool().Draw(t, "eager") {
			w.Caller, w.Async = p.caller, rapid.Bool().Draw(t, "async")
		}
		return w
	}
	took := func(r *states.Run, _ error) {
		if r != nil {
			p.runs = append(p.runs, r)
		}
	}
	launch := func(_ *rapid.T, r *states.Run) {
		if rc, err := r.Launch(ctx); err == nil {
			p.receipts[r] = rc
		}
	}
	// onward is what brings a run to its end.
	onward := func(t *rapid.T, r *states.Run) {
		launch(t, r)
		_, _ = r.Poll(ctx)
		p.wait(ctx, r)
		_ = r.Finalize(ctx)
	}
	return map[string]func(*rapid.T){
		"prepare":  func(t *rapid.T) { took(p.worker.Prepare(ctx, work(t))) },
		"submit":   func(t *rapid.T) { took(p.worker.Submit(ctx, work(t))) },
		"submit-2": func(t *rapid.T) { took(p.worker.Submit(ctx, work(t))) },
		"pair": func(*rapid.T) {
			for range 2 {
				took(p.worker.Submit(ctx, states.Work{Core: 1, CPU: 2, Caller: p.caller}))
			}
		},
		"launch":   onRun(launch),
		"poll":     onRun(func(_ *rapid.T, r *states.Run) { _, _ = r.Poll(ctx) }),
		"wait":     onRun(func(_ *rapid.T, r *states.Run) { p.wait(ctx, r) }),
		"finalize": onRun(func(_ *rapid.T, r *states.Run) { _ = r.Finalize(ctx) }),
		"advance":  onRun(func(_ *rapid.T, r *states.Run) { _ = r.Advance(ctx) }),
		"abort":    onRun(func(_ *rapid.T, r *states.Run) { _ = r.Abort(ctx) }),
		"retry":    onRun(func(_ *rapid.T, r *states.Run) { _ = r.Retry(ctx) }),
		"onward":   onRun(onward),
		"onward-2": onRun(onward),
		"reserve": onRun(func(t *rapid.T, r *states.Run) {
			launch(t, r)
			by, _ := oneOf(t, p.runs)
			waiter := states.Waiter(rapid.IntRange(0, 2).Draw(t, "waiter"))
			w, err := p.worker.Reserve(ctx, p.receipts[r], states.Boundary(rapid.IntRange(0, 1).Draw(t, "boundary")), by, waiter)
			if err == nil {
				p.tokens = append(p.tokens, &held{WaitRef: w, waiter: waiter, by: by})
			}
		}),
		"queue": onToken(func(_ *rapid.T, h *held) {
			err := h.Queue(ctx)
			h.queued = h.queued || err == nil || errors.Is(err, states.ErrWaitMaybeQueued)
		}),
		"revoke": onToken(func(_ *rapid.T, h *held) { _ = h.Revoke(ctx) }),
		"release": onToken(func(_ *rapid.T, h *held) {
			if !h.queued || h.proven {
				_ = h.Release(ctx, h.waiter)
			}
		}),
		"release-other": onToken(func(_ *rapid.T, h *held) { _ = h.Release(ctx, (h.waiter+1)%3) }),
		"commit":        onToken(func(_ *rapid.T, h *held) { _ = h.Commit(ctx) }),
		"quiesce":       onToken(func(_ *rapid.T, h *held) { _ = h.ReleaseOnQuiescence(ctx) }),
		"discard":       onToken(func(t *rapid.T, h *held) { _ = h.Discard(ctx, rapid.IntRange(0, 1).Draw(t, "slot")) }),
		// A token that outlives a reset is dropped by the fence that minted it.
		"outlive": onRun(func(_ *rapid.T, r *states.Run) {
			launch(nil, r)
			w, err := p.worker.Reserve(ctx, p.receipts[r], states.CoreDone, r, states.CPUStream)
			if err != nil || p.worker.Recover(ctx) != nil {
				return
			}
			for slot := range 3 {
				_ = w.Discard(ctx, slot)
			}
		}),
		"recover": func(*rapid.T) { _ = p.worker.Recover(ctx) },
		"hear":    func(*rapid.T) { _ = p.worker.Hear(ctx) },
		"register": func(t *rapid.T) {
			c, err := p.worker.Register(ctx, []byte{byte(rapid.IntRange(1, 2).Draw(t, "image"))})
			if err == nil {
				p.handles = append(p.handles, c)
			}
		},
		"unregister": func(t *rapid.T) {
			if c, ok := oneOf(t, p.handles); ok {
				_ = p.worker.Unregister(ctx, c)
			}
		},
		"wrong-context": onRun(func(t *rapid.T, r *states.Run) {
			p.dev.SetCurrent(p.dev.NewContext(true))
			onward(t, r)
			p.dev.SetCurrent(p.dev.Home())
		}),
		"foreign": onRun(func(t *rapid.T, r *states.Run) {
			p.process = 2
			onward(t, r)
			p.process = 1
		}),
		"quarantine": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "sure") == 0 {
				_ = p.worker.Quarantine(ctx)
			}
		},
		"close": func(t *rapid.T) {
			if rapid.IntRange(0, 4).Draw(t, "sure") == 0 {
				_ = p.worker.Close(ctx)
			}
		},
	}
}

// wait waits for a run. A synchronised pair is the proof of what its streams hold.
func (p *player) wait(ctx context.Context, r *states.Run) {
	before, _ := r.State()
	if err := r.Wait(ctx); err == nil && before == "launched" {
		for _, h := range p.tokens {
			h.proven = h.proven || h.queued && h.by == r && h.waiter != states.CallerStream && p.idle()
		}
	}
}

// idle reports whether the device has nothing left to do.
func (p *player) idle() bool { return len(p.dev.Choices(nil)) == 0 }

// holds wants nothing broken, neither by the records nor in the device's eyes.
// Destroying again what may not have been destroyed is all that a host can do.
func (p *player) holds(t *rapid.T) {
	found, err := p.watch.Findings()
	require.NoError(t, err)
	for _, f := range found {
		t.Fatalf("%v", f)
	}
	for _, v := range p.dev.Violations() {
		require.Equal(t, sim.DoubleDestroy, v.Kind, "%v", v)
	}
}

// A host with random operations on a lane, on a simulated device with faults:
// every step of it holds to every invariant, and its log, replayed, says so too.
func TestRandomHostHolds(t *testing.T) {
	ctx := context.Background()
	evaluated := map[string]uint64{}
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer(t)
		actions := p.actions(ctx)
		actions[""] = p.holds
		t.Repeat(actions)
		require.NoError(t, p.writer.Close())
		standings := p.watch.Standings()
		for _, s := range standings {
			evaluated[s.Invariant.ID] += s.Evaluated
			if s.Invariant.Of == invariants.OfLane {
				require.Equal(t, invariants.Holds, s.Verdict, "%s: %s", s.Invariant.ID, s.Why)
			} else {
				require.Equal(t, invariants.Vacuous, s.Verdict, s.Invariant.ID)
			}
		}

		var o invariants.Observer
		_, err := replay.Run(bytes.NewReader(p.log.Bytes()), states.Rules(), replay.Options{Observer: func(w *machine.World, r *machine.Record) error {
			if found := o.Record(w, r); len(found) > 0 {
				return found[0]
			}
			return nil
		}})
		require.NoError(t, err)
		require.Empty(t, o.Flush())
		require.Equal(t, standings, o.Standings(), "replayed, it stands as it stood")
	})
	var never []string
	of := 0
	for _, in := range invariants.All() {
		if in.Of == invariants.OfLane {
			of++
			if evaluated[in.ID] == 0 {
				never = append(never, in.ID)
			}
		}
	}
	t.Logf("never evaluated: %v", never)
	require.Less(t, len(never), of/6, "the host is not random enough: %v", never)
}
