package lanetest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants/lanetest"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/states"
)

var (
	ctx  = context.Background()
	work = states.Work{Core: 1, CPU: 2}
)

// careful takes runs to their end whatever happens, and if it cannot, gives the
// lane up.
func careful(lane *states.Lane) {
	for range 4 {
		if once(lane) != nil && lane.Recover(ctx) != nil {
			break
		}
	}
	for range 2 {
		if lane.Close(ctx) == nil {
			return
		}
	}
	lane.Detach()
}

func once(lane *states.Lane) error {
	run, err := lane.Prepare(ctx, work)
	if err != nil {
		return err
	}
	if _, err = run.Launch(ctx); err == nil || errors.Is(err, states.ErrPartial) {
		for range 3 {
			if err = run.Wait(ctx); !errors.Is(err, states.ErrWaitTimeout) {
				break
			}
		}
	}
	return errors.Join(err, run.Finalize(ctx))
}

// opened is a host of which the lane is open.
func opened(host func(lane *states.Lane)) func(states.Config) {
	return func(c states.Config) {
		lane, err := states.NewLane(c)
		if err != nil {
			panic(err)
		}
		if lane.Open(ctx) == nil {
			host(lane)
		}
	}
}

var hard = lanetest.Bounds{Slots: 3, Depth: 2, Borrowed: true, Faults: 3}

func TestCarefulHost(t *testing.T) {
	// A destroy that failed may have been done: a close that is tried again is right.
	doubt := lanetest.Bounds{Faults: 1, Kinds: sim.Faults(sim.FailAfter), Calls: sim.Ops(sim.OpDestroyEvent, sim.OpDestroyStream, sim.OpFree)}
	for _, b := range []lanetest.Bounds{hard, doubt} {
		rapid.Check(t, func(t *rapid.T) { lanetest.Check(t, b, opened(careful)) })
	}
}

// Many goroutines that share a lane.
func TestCarefulHostOfGoroutines(t *testing.T) {
	b := hard
	b.Goroutines = true
	rapid.Check(t, func(t *rapid.T) {
		lanetest.Check(t, b, opened(func(lane *states.Lane) {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for range 3 {
						_ = once(lane)
					}
				})
			}
			wg.Wait()
			careful(lane)
		}))
	})
}

// tb is a test whose failure is looked at.
type tb struct {
	name   string
	failed bool
	out    strings.Builder
}

func (b *tb) Helper()      {}
func (b *tb) Name() string { return b.name }

func (b *tb) Logf(format string, args ...any) { fmt.Fprintf(&b.out, format+"\n", args...) }
func (b *tb) Log(args ...any)                 { fmt.Fprintln(&b.out, args...) }
func (b *tb) Skipf(string, ...any)            { runtime.Goexit() }
func (b *tb) Skip(...any)                     { runtime.Goexit() }
func (b *tb) SkipNow()                        { runtime.Goexit() }

func (b *tb) Errorf(format string, args ...any) {
	b.Logf(format, args...)
	b.failed = true
}

func (b *tb) Error(args ...any) {
	b.Log(args...)
	b.failed = true
}

func (b *tb) Fatalf(format string, args ...any) {
	b.Errorf(format, args...)
	runtime.Goexit()
}

func (b *tb) Fatal(args ...any) {
	b.Error(args...)
	runtime.Goexit()
}

func (b *tb) FailNow() {
	b.failed = true
	runtime.Goexit()
}

func (b *tb) Fail()        { b.failed = true }
func (b *tb) Failed() bool { return b.failed }

// tried runs a host until it fails, and returns what rapid prints.
func tried(t *testing.T, b lanetest.Bounds, host func(states.Config)) (printed string, failed bool) {
	t.Chdir(t.TempDir()) // where rapid keeps what failed
	// The smallest failure is not wanted at any price.
	require.NoError(t, flag.Set("rapid.shrinktime", "2s"))
	x := &tb{name: t.Name()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(x, func(t *rapid.T) { lanetest.Check(t, b, host) })
	}()
	<-done
	return x.out.String(), x.failed
}

// TestCarelessHosts: typical mistakes of hosts are found, and what is printed
// says what the mistake is.
func TestCarelessHosts(t *testing.T) {
	strict, goroutines := hard, hard
	strict.Strict, goroutines.Goroutines = true, true
	leave := make(chan struct{})
	defer close(leave)
	for _, c := range []struct {
		name   string
		bounds lanetest.Bounds
		host   func(states.Config)
		want   []string
	}{
		{"finalizes after a wait that expired", lanetest.Bounds{Faults: 1, Kinds: sim.Faults(sim.Hang)}, opened(func(lane *states.Lane) {
			run, _ := lane.Prepare(ctx, work)
			_, _ = run.Launch(ctx)
			_ = run.Wait(ctx)
			_ = run.Finalize(ctx)
			_ = lane.Close(ctx)
		}), []string{
			`draw faults: []string{"`, ` hang"}`, "draw luck: []int{}", `left behind: run[0] is "launched", neither finalized nor given up with its lane`,
			"the host was told:\n", "drain[0] ", "the wait expired, which proves nothing, code 50704", "finalize[0] start: refused: unproven: the device may still be at work", "closing start: refused: a run is not finalized",
		}},
		{"does not heed a partial launch", lanetest.Bounds{Faults: 1, Kinds: sim.Faults(sim.FailAfter), Calls: sim.Ops(sim.OpSubmitAICPU)}, opened(func(lane *states.Lane) {
			for range 2 {
				run, err := lane.Prepare(ctx, work)
				if err != nil {
					continue
				}
				if _, err := run.Launch(ctx); err == nil {
					_ = run.Wait(ctx)
				}
				_ = run.Finalize(ctx)
			}
		}), []string{
			`draw faults: []string{"SubmitAICPU#`, ` fail-after"}`, "draw luck: []int{}", "left behind: run[0]", ` is "partial", neither`,
			"launch[0] submit_cpu: launch partial: something may be submitted, code 507000", "finalize[0] start: refused: unproven",
		}},
		{"uses a handle after its run is over", strict, opened(func(lane *states.Lane) {
			if run, err := lane.Prepare(ctx, work); err == nil {
				_ = run.Finalize(ctx)
				_, _ = run.Poll(ctx)
			}
			careful(lane)
		}), []string{"a handle was used after its run was over: poll[0] start", "poll[0] start: refused: stale identity"}},
		{"leaves a goroutine behind", goroutines, opened(func(lane *states.Lane) {
			go func() { <-leave }()
			careful(lane)
		}), []string{"a goroutine is left: found unexpected goroutines", "lanetest_test.TestCarelessHosts"}},
		{"leaves an operation under way", lanetest.Bounds{}, func(c states.Config) {
			c.Backend = vanishing{c.Backend}
			opened(func(lane *states.Lane) {
				run, _ := lane.Prepare(ctx, work)
				_, _ = run.Launch(ctx)
				var wg sync.WaitGroup
				wg.Go(func() { _ = run.Wait(ctx) })
				wg.Wait()
				lane.Detach()
			})(c)
		}, []string{"left under way: drain[0] has "}},
		{"meddles with the device", lanetest.Bounds{}, func(c states.Config) {
			e, _ := c.Backend.CreateEvent(ctx)
			c.Backend.DestroyEvent(ctx, e)
			c.Backend.DestroyEvent(ctx, e)
			opened(careful)(c)
		}, []string{"the device was misused: double-destroy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			printed, failed := tried(t, c.bounds, c.host)
			require.True(t, failed, printed)
			for _, want := range c.want {
				require.Contains(t, printed, want)
			}
		})
	}
}

// vanishing is a device on which whoever waits is never heard of again.
type vanishing struct{ backend.Backend }

func (v vanishing) WaitEvent(context.Context, backend.Event, time.Duration) backend.Result {
	runtime.Goexit()
	return backend.Result{}
}

// What is refused does no harm: a host that uses a handle of old is none the
// worse for it, unless that is to be found.
func TestStaleHandles(t *testing.T) {
	printed, failed := tried(t, hard, opened(func(lane *states.Lane) {
		if run, err := lane.Prepare(ctx, work); err == nil {
			if run.Finalize(ctx) == nil {
				if _, err := run.Poll(ctx); !errors.Is(err, states.ErrStaleIdentity) {
					panic(err)
				}
			}
		}
		careful(lane)
	}))
	require.False(t, failed, printed)
}

// Rules that are broken are found by hosts that are not, at the last step too.
func TestBrokenRules(t *testing.T) {
	for _, c := range []struct {
		patch, want string
		bounds      lanetest.Bounds
		host        func(lane *states.Lane)
	}{
		{`run/finalized: then.with drop "launch.reset()"`, "finalized-leaves-nothing: ", lanetest.Bounds{}, careful},
		{
			`run/unprepared: then.with drop "lane.leave()"`, "runs-are-counted: ",
			lanetest.Bounds{Faults: 1, Kinds: sim.Faults(sim.Refuse), Calls: sim.Ops(sim.OpAlloc)},
			func(lane *states.Lane) {
				if run, err := lane.Prepare(ctx, work); err == nil {
					_ = run.Finalize(ctx)
				}
			},
		},
	} {
		change, err := patch.Parse(c.patch)
		require.NoError(t, err)
		defs, err := patch.Apply(states.Definitions(), change)
		require.NoError(t, err)
		c.bounds.Rules, err = machine.Compile(defs...)
		require.NoError(t, err)
		printed, failed := tried(t, c.bounds, opened(c.host))
		require.True(t, failed)
		require.Contains(t, printed, "an invariant is broken: record ")
		require.Contains(t, printed, c.want)
	}
}

func TestBounds(t *testing.T) {
	for want, b := range map[string]lanetest.Bounds{
		"lanetest: sim: impossible configuration": {Kernels: []sim.KernelSpec{{Class: 99}}},
	} {
		printed, failed := tried(t, b, opened(careful))
		require.True(t, failed)
		require.Contains(t, printed, want)
	}
}

// Everything that may be drawn is.
func TestDrawn(t *testing.T) {
	b := hard
	b.Kinds, b.Calls, b.Timeout = sim.Faults(sim.Refuse), sim.Ops(sim.OpAlloc), time.Minute
	var slots, depth, borrowed, owned, most int
	seen := map[backend.Status]int{}
	rapid.Check(t, func(t *rapid.T) {
		lanetest.Check(t, b, func(c states.Config) {
			slots, depth = max(slots, c.Slots), max(depth, c.Depth)
			require.LessOrEqual(t, c.Depth, c.Slots)
			require.Equal(t, time.Minute, c.Timeout)
			if c.Borrowed {
				borrowed++
			} else {
				owned++
			}
			// By time, the kernel would not be over yet.
			stream, _ := c.Backend.CreateStream(ctx)
			require.True(t, c.Backend.Submit(ctx, stream, backend.Launch{Kernel: 1, Class: backend.AICore, Blocks: 1}).Ok())
			status, _ := c.Backend.QueryStream(ctx, stream)
			seen[status]++
			refused := 0
			for range 10 {
				switch _, r := c.Backend.Alloc(ctx, backend.DeviceMemory, 8); r.Outcome {
				case backend.Refused:
					refused++
				default:
					require.True(t, r.Ok())
				}
			}
			most = max(most, refused)
		})
	})
	require.Equal(t, []int{3, 2, 3}, []int{slots, depth, most})
	require.Positive(t, borrowed)
	require.Positive(t, owned)
	require.Len(t, seen, 2)
}
