package sim_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func soakConfig() sim.Config {
	return sim.Config{
		Kernels: toyKernels(), CopyTime: 1000, QueryTime: 500, NoProofs: true,
		Budget: 200, Faults: sim.Faults(sim.FailAfter, sim.FailBefore, sim.KernelFatal, sim.NoticeLost),
		FaultOps: sim.Ops(sim.OpSubmitAICore, sim.OpSubmitAICPU, sim.OpRecordEvent, sim.OpCopyAsync),
	}
}

func soakSetup(d *sim.Device) toys { return makeToys(d, nil, nil, nil) }

// soak lets goroutines drive one device, each with streams, events and
// arguments of its own, under a random policy.
func soak(t *testing.T, seed uint64, goroutines, runs int) (*sim.Host, []string) {
	d := device(t, soakConfig())
	soakSetup(d)
	h := sim.NewHost(d, sim.NewRandom(seed, 8))
	ctx := context.Background()
	ends := make([]string, goroutines)
	callers := make([]*sim.Caller, goroutines)
	for i := range callers {
		callers[i] = h.Enter()
	}
	var wg sync.WaitGroup
	for i, c := range callers {
		wg.Go(func() {
			defer c.Leave()
			var s [2]backend.Stream
			var e [2]backend.Event
			for j := range s {
				s[j], _ = c.CreateStream(ctx)
				e[j], _ = c.CreateEvent(ctx)
			}
			args, _ := c.Alloc(ctx, backend.DeviceMemory, toySize)
			pinned, _ := c.Alloc(ctx, backend.PinnedMemory, toySize)
			for range runs {
				c.Write(ctx, pinned, 0, []byte("12345678"))
				c.CopyAsync(ctx, backend.Span{Mem: args, Size: 8}, backend.Span{Mem: pinned, Size: 8}, s[1])
				c.Submit(ctx, s[0], backend.Launch{Class: backend.AICore, Kernel: 1, Args: args, Blocks: 1})
				c.RecordEvent(ctx, e[0], s[0])
				c.Submit(ctx, s[1], backend.Launch{Class: backend.AICPU, Kernel: 3, Args: args})
				c.RecordEvent(ctx, e[1], s[1])
				c.WaitEvent(ctx, e[0], time.Millisecond)
				c.QueryEvent(ctx, e[1])
				r := c.SynchronizeStream(ctx, s[1], time.Millisecond)
				ends[i] += r.Outcome.String() + " "
				var n [4]backend.Notice
				c.Notices(n[:])
			}
		})
	}
	wg.Wait()
	return h, ends
}

// Whatever the scheduler does, the log tells it all: on one goroutine it leads
// to the same answers and the same device.
func TestAHostsLogReplays(t *testing.T) {
	for seed := range uint64(20) {
		h, ends := soak(t, seed, 4, 6)
		for _, e := range ends {
			require.NotEmpty(t, e)
		}
		d, err := h.Replay()
		require.NoError(t, err)
		h.Inspect(func(live *sim.Device) {
			require.Equal(t, live.Now(), d.Now())
			live.SetThread(0)
			d.SetThread(0)
			require.Equal(t, state(live, sim.Naming{}), state(d, sim.Naming{}))
		})
	}
}

func TestAReplayThatDivergesSaysWhere(t *testing.T) {
	h, _ := soak(t, 7, 2, 2)
	log := h.Log()
	for i, s := range log {
		if s.Kind == sim.StepTake {
			wrong := *s.Answer
			wrong.Code = 4711
			log[i].Answer = &wrong
			break
		}
	}
	d := device(t, soakConfig())
	soakSetup(d)
	require.ErrorIs(t, sim.Replay(d, log), sim.ErrDiverged)

	log = h.Log()
	for i, s := range log {
		if s.Kind == sim.StepChoice {
			log = append(log[:i], log[i+1:]...)
			break
		}
	}
	d = device(t, soakConfig())
	soakSetup(d)
	err := sim.Replay(d, log)
	require.ErrorIs(t, err, sim.ErrDiverged)
	require.Contains(t, err.Error(), "step ")
}

// hosted is a host with one run's streams and events, and a slow AICPU kernel.
func hosted(t *testing.T) (*sim.Host, *rig) {
	r := newRig(t, sim.Config{})
	return sim.NewHost(r.d, nil), r
}

// The device stands still while any caller may still do something, and moves
// when all are parked.
func TestTheDeviceMovesWhenAllCallersAreParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		h, r := hosted(t)
		a, b := h.Enter(), h.Enter()
		require.True(t, a.Submit(ctx, r.coreS, r.core).Ok())
		require.True(t, a.RecordEvent(ctx, r.coreE, r.coreS).Ok())
		done := make(chan backend.Result, 1)
		go func() { done <- a.WaitEvent(ctx, r.coreE, time.Second) }()
		synctest.Wait() // a is parked
		st, res := b.QueryEvent(ctx, r.coreE)
		require.True(t, res.Ok())
		require.Equal(t, backend.NotReady, st)
		synctest.Wait()
		require.Empty(t, done, "the wait ended while a caller was at work")
		h.Inspect(func(d *sim.Device) { require.Zero(t, d.Now()) })
		require.True(t, b.WaitEvent(ctx, r.coreE, time.Second).Ok()) // now both are parked, and both return
		require.True(t, (<-done).Ok())
		h.Inspect(func(d *sim.Device) { require.Equal(t, 20*time.Microsecond, d.Now()) })
		a.Leave()
		b.Leave()
		_, err := h.Replay()
		require.NoError(t, err)
	})
}

// Time that is let pass lets waits return, parked or not the others.
func TestTimePassesOnAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		h, r := hosted(t)
		a, b := h.Enter(), h.Enter()
		require.True(t, a.Submit(ctx, r.coreS, r.core).Ok())
		done := make(chan backend.Result, 1)
		go func() { done <- a.SynchronizeStream(ctx, r.coreS, time.Second) }()
		synctest.Wait()
		h.Advance(19 * time.Microsecond)
		synctest.Wait()
		require.Empty(t, done)
		h.Advance(time.Microsecond)
		require.True(t, (<-done).Ok())
		a.Leave()
		b.Leave()
		d, err := h.Replay()
		require.NoError(t, err)
		require.Equal(t, 20*time.Microsecond, d.Now())
		require.Equal(t, "advance 1µs", h.Log()[len(h.Log())-3].String())
	})
}

// A log keeps the bytes that were written, not the caller's buffer.
func TestALogKeepsWhatWasWritten(t *testing.T) {
	ctx := context.Background()
	h, _ := hosted(t)
	a := h.Enter()
	m, _ := a.Alloc(ctx, backend.PinnedMemory, 2)
	buf := []byte("ab")
	require.True(t, a.Write(ctx, m, 0, buf).Ok())
	copy(buf, "zz")
	got := make([]byte, 2)
	require.True(t, a.Read(ctx, got, m, 0).Ok())
	require.Equal(t, "ab", string(got))
	a.Leave()
	d, err := h.Replay()
	require.NoError(t, err)
	require.Equal(t, "ab", string(d.Peek(m)))
}

// The last caller to leave lets those who are parked go on.
func TestLeavingLetsTheOthersGoOn(t *testing.T) {
	ctx := context.Background()
	h, r := hosted(t)
	a, b := h.Enter(), h.Enter()
	done := make(chan backend.Result)
	go func() { done <- a.WaitEvent(ctx, r.cpuE, time.Second) }() // never recorded here, but on this device it passes
	b.Leave()
	b.Leave() // leaving twice is leaving once
	require.True(t, (<-done).Ok())
	a.Leave()
}

// A wait that nothing can end expires, once nobody is left to do anything else.
func TestAWaitExpiresWhenNothingElseCanHappen(t *testing.T) {
	ctx := context.Background()
	h, r := hosted(t)
	a := h.Enter()
	defer a.Leave()
	require.True(t, a.Submit(ctx, r.cpuS, r.cpu).Ok()) // its partner never comes
	res := a.SynchronizeStream(ctx, r.cpuS, time.Hour)
	require.Equal(t, backend.TimedOut, res.Outcome)
	require.Equal(t, backend.StreamSyncTimeout, res.Code)
	h.Inspect(func(d *sim.Device) {
		require.Equal(t, time.Hour, d.Now())
		require.NotEmpty(t, d.Deadlock())
	})
}

// Waiting for another goroutine elsewhere does not stop the device.
func TestElsewhere(t *testing.T) {
	ctx := context.Background()
	h, r := hosted(t)
	a, b := h.Enter(), h.Enter()
	require.True(t, a.Submit(ctx, r.coreS, r.core).Ok())
	done := make(chan backend.Result)
	go func() {
		defer a.Leave()
		done <- a.SynchronizeStream(ctx, r.coreS, time.Second)
	}()
	var res backend.Result
	b.Elsewhere(func() { res = <-done })
	require.True(t, res.Ok())
	b.Leave()
}

// Each caller is a host thread: it has a context and a last error of its own.
func TestCallersAreThreads(t *testing.T) {
	ctx := context.Background()
	h, r := hosted(t)
	a, b := h.Enter(), h.Enter()
	require.NotEqual(t, a.Thread(), b.Thread())
	res := a.WaitEvent(ctx, r.coreE, 0)
	require.Equal(t, backend.InvalidParam, res.LastError)
	_, res = b.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.Result{}, res)
	b.SetCurrent(0)
	_, res = b.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.ContextNull, res.Code)
	_, res = a.QueryEvent(ctx, r.coreE)
	require.True(t, res.Ok())
	b.Leave()
	again := h.Enter()
	require.Equal(t, b.Thread(), again.Thread(), "a thread's number is used again")
	x, _ := again.CurrentContext(ctx)
	require.NotZero(t, x, "and has the device's context again")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.Equal(t, backend.Refused, a.RecordEvent(gone, r.coreE, r.coreS).Outcome)
	a.Leave()
	again.Leave()
	_, err := h.Replay()
	require.NoError(t, err)
}

// A checkpoint shortens the log; what follows replays from there.
func TestCheckpoint(t *testing.T) {
	ctx := context.Background()
	h, r := hosted(t)
	a := h.Enter()
	a.Submit(ctx, r.coreS, r.core)
	before := len(h.Log())
	require.NotZero(t, before)
	h.Checkpoint()
	require.Empty(t, h.Log())
	require.True(t, a.SynchronizeStream(ctx, r.coreS, time.Second).Ok())
	a.Leave()
	d, err := h.Replay()
	require.NoError(t, err)
	require.Equal(t, 20*time.Microsecond, d.Now())
}

// An injected panic reaches the caller and leaves the host usable.
func TestAPanicReachesTheCaller(t *testing.T) {
	ctx := context.Background()
	h, r := hosted(t)
	a := h.Enter()
	defer a.Leave()
	for _, took := range []bool{false, true} {
		h.Inspect(func(d *sim.Device) {
			k := sim.PanicBefore
			if took {
				k = sim.PanicAfter
			}
			require.NoError(t, d.Inject(sim.Fault{Op: sim.OpRecordEvent, Nth: 1, Kind: k}))
		})
		require.PanicsWithError(t, (&sim.Panic{Op: sim.OpRecordEvent, Took: took}).Error(), func() { a.RecordEvent(ctx, r.coreE, r.coreS) })
		st, res := a.QueryEvent(ctx, r.coreE)
		require.True(t, res.Ok())
		require.Equal(t, took, st == backend.Complete)
	}
}
