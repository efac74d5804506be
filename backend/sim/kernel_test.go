package sim_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// A kernel's stores happen at their moments, into the arguments or through a
// handle that the arguments hold: a result record that bears the run's epoch.
func TestKernelStores(t *testing.T) {
	ctx := context.Background()
	result := sim.KernelSpec{
		Class: backend.AICPU, Duration: 10, Flag: true, FlagAfter: 5,
		Stores: []sim.Store{
			{When: sim.AtStart, Offset: 16, Size: 1, Value: 1},
			{When: sim.AtFlag, Offset: 17, Size: 1, Value: 2},
			{When: sim.AtExit, Through: true, Base: 8, Offset: 0, Size: 4, FromArgs: true, Value: 0},
			{When: sim.AtExit, Through: true, Base: 8, Offset: 4, Size: 4, Value: 0x6b4f},
			{When: sim.AtFatal, Through: true, Base: 8, Offset: 4, Size: 4, Value: 0xdead},
		},
	}
	fatal := result
	fatal.Exit = backend.AICPUTimeout
	for _, x := range []struct {
		kernel backend.Kernel
		want   []uint32
	}{{1, []uint32{77, 0x6b4f}}, {2, []uint32{0, 0xdead}}} {
		d := device(t, sim.Config{Kernels: []sim.KernelSpec{result, fatal}, Residue: true})
		s, _ := d.CreateStream(ctx)
		args, _ := d.Alloc(ctx, backend.DeviceMemory, 24)
		region, _ := d.Alloc(ctx, backend.DeviceMemory, 8)
		src, _ := d.Alloc(ctx, backend.PinnedMemory, 24)
		var image [24]byte
		binary.LittleEndian.PutUint32(image[:], 77) // the epoch
		binary.LittleEndian.PutUint64(image[8:], uint64(region))
		d.Write(ctx, src, 0, image[:])
		require.True(t, d.Copy(ctx, backend.Span{Mem: args, Size: 24}, backend.Span{Mem: src, Size: 24}).Ok())
		require.True(t, d.Submit(ctx, s, backend.Launch{Class: backend.AICPU, Kernel: x.kernel, Args: args}).Ok())
		require.Equal(t, []byte{1, 0}, d.Peek(args)[16:18])
		require.True(t, d.AdvanceToNext())
		require.Equal(t, time.Duration(5), d.Now())
		require.Equal(t, []byte{1, 2}, d.Peek(args)[16:18])
		require.Equal(t, make([]byte, 8), d.Peek(region))
		require.True(t, d.AdvanceToNext())
		require.Equal(t, x.want[0], binary.LittleEndian.Uint32(d.Peek(region)))
		require.Equal(t, x.want[1], binary.LittleEndian.Uint32(d.Peek(region)[4:]))
		require.Empty(t, d.Violations())
	}
}

// Launches pair by their arguments, the newest unpartnered one first.
func TestHandshakePairs(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	other, _ := r.d.Alloc(ctx, backend.DeviceMemory, 8)
	elsewhere := r.cpu
	elsewhere.Args = other
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.Submit(ctx, r.cpuS, elsewhere)
	r.d.Advance(time.Second)
	require.True(t, r.d.Busy(), "an AICore kernel of other arguments is not its partner")
	spare, _ := r.d.CreateStream(ctx)
	mine := r.core
	mine.Args = other
	r.d.Submit(ctx, spare, mine)
	r.d.Advance(time.Second)
	require.False(t, r.d.Busy())

	// The AICore kernel that was never joined has exited. It still counts for
	// the next AICPU kernel of its arguments: it did report in.
	r.d.Submit(ctx, r.cpuS, r.cpu)
	r.d.Advance(time.Second)
	require.False(t, r.d.Busy())
	r.d.Submit(ctx, r.cpuS, r.cpu)
	r.d.Advance(time.Second)
	require.True(t, r.d.Busy(), "but only once")
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.Advance(time.Second)
	require.False(t, r.d.Busy())

	// Two runs in a row on one pair of streams: each AICPU kernel has the AICore
	// kernel submitted right before it.
	for range 2 {
		r.d.Submit(ctx, r.coreS, r.core)
		r.d.Submit(ctx, r.cpuS, r.cpu)
	}
	r.d.Advance(time.Second)
	require.False(t, r.d.Busy())
}

// The AICPU kernel works from when the AICore kernel has reported in, not from
// when it was submitted.
func TestHandshakeTime(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	r.d.Submit(ctx, r.cpuS, r.cpu)
	r.d.Advance(100 * time.Microsecond)
	r.d.Submit(ctx, r.coreS, r.core)
	require.True(t, r.d.SynchronizeStream(ctx, r.cpuS, time.Second).Ok())
	require.Equal(t, 130*time.Microsecond, r.d.Now())
}

// Destroying drains nothing: the queued work of a destroyed stream goes on.
func TestADestroyedStreamGoesOn(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	require.True(t, r.d.DestroyStream(ctx, r.coreS).Ok())
	next, _ := r.d.CreateStream(ctx)
	st, _ := r.d.QueryStream(ctx, next)
	require.Equal(t, backend.Complete, st, "the next stream does not inherit the queue")
	require.True(t, r.d.WaitEvent(ctx, r.coreE, time.Second).Ok())
	require.Equal(t, 20*time.Microsecond, r.d.Now())
	last, _ := r.d.CreateStream(ctx)
	id, _ := r.d.StreamID(ctx, last)
	require.Zero(t, id, "a drained stream's id is used again")
}

// A fault that a kernel's exit left unseen belongs to the stream, not to its
// slot; and the first one counts.
func TestFaultsOfAStream(t *testing.T) {
	ctx := context.Background()
	fail := func(c backend.Code) sim.KernelSpec {
		return sim.KernelSpec{Class: backend.AICore, Exit: c}
	}
	d := device(t, sim.Config{Kernels: []sim.KernelSpec{fail(backend.AICoreTimeout), fail(backend.AICoreException)}})
	s, _ := d.CreateStream(ctx)
	for k := range backend.Kernel(2) {
		d.Submit(ctx, s, backend.Launch{Class: backend.AICore, Kernel: k + 1, Blocks: 1})
	}
	require.Equal(t, backend.AICoreTimeout, d.SynchronizeStream(ctx, s, 1).Code)
	d.DestroyStream(ctx, s)
	s, _ = d.CreateStream(ctx)
	_, r := d.QueryStream(ctx, s)
	require.True(t, r.Ok())
	require.True(t, d.SynchronizeStream(ctx, s, 1).Ok())
}

// Virtual time moves where it is said to, and nowhere else.
func TestWhereTimeMoves(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{QueryTime: 3 * time.Microsecond})
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	require.Zero(t, r.d.Now())
	polls := 0
	for st := backend.NotReady; st != backend.Complete; polls++ {
		st, _ = r.d.QueryEvent(ctx, r.coreE)
	}
	require.Equal(t, 7, polls, "a loop that polls comes to an end")
	require.Equal(t, 21*time.Microsecond, r.d.Now())
	require.False(t, r.d.AdvanceToNext(), "nothing is ahead")
	r.d.Advance(-time.Second)
	require.Equal(t, 21*time.Microsecond, r.d.Now(), "time does not go back")
	r.d.WaitEvent(ctx, r.coreE, time.Second)
	require.Equal(t, 21*time.Microsecond, r.d.Now(), "a wait for the past takes no time")
}

// A bounded wait that is told to hang expires although its work completes.
func TestAWaitMayHang(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{Plan: []sim.Fault{{Op: sim.OpWaitEvent, Nth: 1, Kind: sim.Hang}}})
	r.d.RecordEvent(ctx, r.coreE, r.coreS)
	require.Equal(t, backend.EventSyncTimeout, r.d.WaitEvent(ctx, r.coreE, time.Second).Code)
	require.Equal(t, time.Second, r.d.Now())
	require.True(t, r.d.WaitEvent(ctx, r.coreE, time.Second).Ok())
	require.Equal(t, time.Second, r.d.Now())
}

// Threads have contexts and last errors of their own.
func TestThreads(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	r.d.WaitEvent(ctx, r.coreE, 0)
	r.d.SetThread(2)
	x, res := r.d.CurrentContext(ctx)
	require.Zero(t, x, "a new thread has no context")
	require.Equal(t, backend.Result{}, res, "nor the error of another")
	_, res = r.d.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.ContextNull, res.Code)
	r.d.SetCurrent(r.d.Home())
	_, res = r.d.QueryEvent(ctx, r.coreE)
	require.True(t, res.Ok())
	r.d.SetThread(0)
	_, res = r.d.QueryEvent(ctx, r.coreE)
	require.Equal(t, backend.InvalidParam, res.LastError)
	require.True(t, r.d.Owned(r.d.Home()))
	require.False(t, device(t, sim.Config{Borrowed: true}).Owned(r.d.Home()))
	require.False(t, r.d.Owned(r.d.NewContext(false)))
	require.False(t, r.d.SetCapture(0, backend.CaptureActive))
}

// A stream under capture answers no query and no synchronize.
func TestCaptureBlocksQueries(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	require.True(t, r.d.SetCapture(r.coreS, backend.CaptureActive))
	_, res := r.d.QueryStream(ctx, r.coreS)
	require.Equal(t, backend.StreamCaptured, res.Code)
	require.Equal(t, backend.StreamCaptured, r.d.SynchronizeStream(ctx, r.coreS, 1).Code)
	require.False(t, r.d.Submit(ctx, r.coreS, r.core).Accepted, "work that a graph took is not accepted for the stream")
}

// An image defined later is known to the device and not to older clones.
func TestDefine(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	old := r.d.Clone()
	k := r.d.Define(sim.KernelSpec{Name: "late", Class: backend.AICore})
	spec, ok := r.d.Kernel(k)
	require.True(t, ok)
	require.Equal(t, "late", spec.Name)
	_, ok = old.Kernel(k)
	require.False(t, ok)
	_, ok = r.d.Kernel(0)
	require.False(t, ok)
	l := backend.Launch{Class: backend.AICore, Kernel: k, Blocks: 1}
	require.Equal(t, backend.InvalidParam, old.Submit(ctx, r.coreS, l).Code)
	require.True(t, r.d.Submit(ctx, r.coreS, l).Ok())
}

// The plan can lose a notice, or hold it up.
func TestNoticesOfThePlan(t *testing.T) {
	ctx := context.Background()
	for _, x := range []struct {
		plan string
		at   time.Duration // zero: never
	}{
		{"SubmitAICore#1 kernel-hang", 0},
		{"SubmitAICore#1 notice-lost", 0},
		{"SubmitAICore#1 notice-late 16s", 16*time.Second + 20*time.Microsecond},
		{"SubmitAICore#1 kernel-fatal 507014", 5*time.Microsecond + 20*time.Microsecond},
	} {
		f, err := sim.ParseFault(x.plan)
		require.NoError(t, err)
		fatal := sim.Fault{Op: sim.OpSubmitAICore, Nth: 1, Kind: sim.KernelFatal}
		r := newRig(t, sim.Config{NoticeTime: 5 * time.Microsecond, Plan: []sim.Fault{f, fatal}})
		r.d.Submit(ctx, r.coreS, r.core)
		for r.d.AdvanceToNext() {
			continue
		}
		var n [2]backend.Notice
		got, _ := r.d.Notices(n[:])
		if x.at == 0 {
			require.Zero(t, got, x.plan)
			continue
		}
		require.Equal(t, 1, got, x.plan)
		require.Equal(t, x.at, r.d.Now(), x.plan)
	}
}

// An unconfirmed reset may report success, or an error of its own.
func TestUnconfirmedReset(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{Plan: []sim.Fault{
		{Op: sim.OpReset, Nth: 1, Kind: sim.Unconfirmed},
		{Op: sim.OpReset, Nth: 2, Kind: sim.Unconfirmed, Code: backend.DriverInternalError},
		{Op: sim.OpReset, Nth: 3, Kind: sim.FailAfter},
	}})
	r.d.Submit(ctx, r.coreS, r.core)
	confirmed, res := r.d.Reset(ctx)
	require.False(t, confirmed)
	require.True(t, res.Ok())
	confirmed, res = r.d.Reset(ctx)
	require.False(t, confirmed)
	require.Equal(t, backend.DriverInternalError, res.Code)
	require.True(t, r.d.Busy(), "neither had an effect")
	confirmed, res = r.d.Reset(ctx)
	require.False(t, confirmed, "a reset that took effect and failed is no proof either")
	require.False(t, res.Ok())
	require.False(t, r.d.Busy())
}

// The newest launch without a partner is the one that is joined.
func TestTheNewestIsJoined(t *testing.T) {
	ctx := context.Background()
	spin := sim.KernelSpec{Class: backend.AICore, Paired: true, Spin: true}
	r := newRig(t, sim.Config{Kernels: []sim.KernelSpec{spin}})
	third, _ := r.d.CreateStream(ctx)
	l := backend.Launch{Class: backend.AICore, Kernel: 1, Args: r.args, Blocks: 1}
	r.d.Submit(ctx, r.coreS, l)
	r.d.Submit(ctx, third, l)
	r.d.Submit(ctx, r.cpuS, r.cpu)
	r.d.Advance(time.Second)
	st, _ := r.d.QueryStream(ctx, third)
	require.Equal(t, backend.Complete, st)
	st, _ = r.d.QueryStream(ctx, r.coreS)
	require.Equal(t, backend.NotReady, st, "the older one spins on")
}

// A kernel that returns has published its flag, even if nobody chose it; one
// that dies need not have.
func TestAReturnPublishesTheFlag(t *testing.T) {
	flag := sim.KernelSpec{
		Class: backend.AICPU, Flag: true, Duration: 2, FlagAfter: 1,
		Stores: []sim.Store{{When: sim.AtFlag, Size: 1, Value: 1}},
	}
	for kind, want := range map[sim.ChoiceKind]byte{sim.ChooseEntry: 1, sim.ChooseFatal: 0xDB} {
		r := newRig(t, sim.Config{Kernels: []sim.KernelSpec{flag}, Budget: 1, Faults: sim.Faults(sim.KernelFatal)})
		r.d.Submit(context.Background(), r.cpuS, backend.Launch{Class: backend.AICPU, Kernel: 1, Args: r.args})
		c := sim.Choice{Kind: kind, Target: uint64(r.cpuS)}
		if kind == sim.ChooseFatal {
			c.Code = backend.AICPUException
		}
		require.NoError(t, r.d.Apply(c))
		require.Equal(t, want, r.d.Peek(r.args)[0], "%v", kind)
	}
}

// Ids and addresses are used again in the order in which they became free.
func TestWhatIsFreeLongestIsTakenFirst(t *testing.T) {
	ctx := context.Background()
	d := device(t, sim.Config{})
	w := makeToys(d, nil, nil, nil)
	d.DestroyStream(ctx, w.streams[2])
	d.DestroyStream(ctx, w.streams[0])
	s, _ := d.CreateStream(ctx)
	require.Equal(t, "s2.2", sim.HandleName(uint64(s)))
	s, _ = d.CreateStream(ctx)
	require.Equal(t, "s0.2", sim.HandleName(uint64(s)))
	d.Free(ctx, w.mems[3])
	d.Free(ctx, w.mems[1])
	m, _ := d.Alloc(ctx, backend.DeviceMemory, toySize)
	require.Equal(t, "m3.2", sim.HandleName(uint64(m)))
	m, _ = d.Alloc(ctx, backend.DeviceMemory, toySize+1)
	require.Equal(t, "m4", sim.HandleName(uint64(m)), "what is too small is not taken")
}

// At one instant the lower stream moves first, on either path.
func TestTiesGoToTheLowerStream(t *testing.T) {
	ctx := context.Background()
	for _, p := range []sim.Policy{nil, sim.Timed{}} {
		r := newRig(t, sim.Config{Kernels: []sim.KernelSpec{{Class: backend.AICore, Duration: 5}}})
		r.d.SetPolicy(p)
		var order []backend.Stream
		r.d.Trace(func(e sim.TraceEvent) {
			if e.Kind == sim.TraceDone {
				order = append(order, e.Stream)
			}
		})
		l := backend.Launch{Class: backend.AICore, Kernel: 1, Blocks: 1}
		r.d.Submit(ctx, r.cpuS, l)
		r.d.Submit(ctx, r.coreS, l)
		require.True(t, r.d.SynchronizeStream(ctx, r.cpuS, time.Second).Ok())
		require.Equal(t, []backend.Stream{r.coreS, r.cpuS}, order)
	}
}

// What is freed is there to be allocated again.
func TestMemoryComesBack(t *testing.T) {
	ctx := context.Background()
	d := device(t, sim.Config{MemoryLimit: 100})
	for range 50 {
		m, res := d.Alloc(ctx, backend.DeviceMemory, 60)
		require.True(t, res.Ok())
		_, res = d.Alloc(ctx, backend.DeviceMemory, 41)
		require.Equal(t, backend.OutOfMemory, res.Code)
		require.True(t, d.Free(ctx, m).Ok())
	}
}

// Choices that were due in the past do not turn the clock back.
func TestTheClockOnlyAdvances(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	r.d.Submit(ctx, r.coreS, r.core)
	r.d.Submit(ctx, r.cpuS, r.cpu)
	require.NoError(t, r.d.Apply(sim.Choice{Kind: sim.ChooseEntry, Target: uint64(r.cpuS)}))
	require.Equal(t, 30*time.Microsecond, r.d.Now())
	require.NoError(t, r.d.Apply(sim.Choice{Kind: sim.ChooseEntry, Target: uint64(r.coreS)}))
	require.Equal(t, 30*time.Microsecond, r.d.Now())
}

// A wait that the plan hangs can only expire.
func TestAHangIsNoChoice(t *testing.T) {
	r := newRig(t, sim.Config{Plan: []sim.Fault{{Op: sim.OpSynchronizeStream, Nth: 1, Kind: sim.Hang}}})
	k := r.d.Begin(sim.Op{Kind: sim.OpSynchronizeStream, Stream: r.coreS, Timeout: 1})
	require.NoError(t, r.d.Apply(sim.Choice{Kind: sim.ChooseEffect, Target: uint64(k)}))
	require.Equal(t, []string{"expire " + k.String()}, text(r.d.Choices(nil)))
}
