//go:build cgo && linux

package onboard_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// run is a device with a run's streams, events and arguments.
type bench struct {
	*onboard.Device
	coreS, cpuS backend.Stream
	coreE, cpuE backend.Event
	args        backend.Memory
}

func newBench(t testing.TB, d *onboard.Device) *bench {
	t.Helper()
	b := &bench{Device: d}
	ctx := context.Background()
	var r [5]backend.Result
	b.coreS, r[0] = d.CreateStream(ctx)
	b.cpuS, r[1] = d.CreateStream(ctx)
	b.coreE, r[2] = d.CreateEvent(ctx)
	b.cpuE, r[3] = d.CreateEvent(ctx)
	b.args, r[4] = d.Alloc(ctx, backend.DeviceMemory, 64)
	for _, r := range r {
		require.True(t, r.Ok(), "%+v", r)
	}
	return b
}

// launch submits a run.
func (b *bench) launch(t testing.TB, core, cpu backend.Kernel) {
	t.Helper()
	ctx := context.Background()
	for _, r := range []backend.Result{
		b.Submit(ctx, b.coreS, backend.Launch{Class: backend.AICore, Kernel: core, Args: b.args, Blocks: 1}),
		b.RecordEvent(ctx, b.coreE, b.coreS),
		b.Submit(ctx, b.cpuS, backend.Launch{Class: backend.AICPU, Kernel: cpu, Args: b.args}),
		b.RecordEvent(ctx, b.cpuE, b.cpuS),
	} {
		require.True(t, r.Ok() && r.Accepted, "%+v", r)
	}
}

// giveBack destroys what newBench made.
func (b *bench) giveBack(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	for _, r := range []backend.Result{
		b.DestroyEvent(ctx, b.coreE), b.DestroyEvent(ctx, b.cpuE), b.DestroyStream(ctx, b.coreS),
		b.DestroyStream(ctx, b.cpuS), b.Free(ctx, b.args),
	} {
		require.True(t, r.Ok(), "%+v", r)
	}
}

// The device counts milliseconds in 32 bits, and takes a negative number for
// "for ever". What it is given never is one, and never expires early.
func TestTimeoutsOnTheDevice(t *testing.T) {
	for d, want := range map[time.Duration]int32{
		math.MinInt64: 0, -1: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000,
		math.MaxInt32 * time.Millisecond: math.MaxInt32, math.MaxInt32*time.Millisecond + 1: math.MaxInt32, math.MaxInt64: math.MaxInt32,
	} {
		require.Equal(t, want, onboard.Millis(d), "%v", d)
	}
}

// A device that takes a timeout of zero for a look at the present state is
// overruled: that would be a wait that may say "done" or "time is up" at once.
func TestATimeoutOfZeroIsRejectedWhateverTheDeviceSays(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	ctx := t.Context()
	require.True(t, d.RecordEvent(ctx, b.coreE, b.coreS).Ok())
	driver.Fail("aclrtSynchronizeEventWithTimeout", 1, standin.Before, int32(backend.EventSyncTimeout), 0)
	r := d.WaitEvent(ctx, b.coreE, 0)
	require.Equal(t, backend.Failed, r.Outcome)
	require.Equal(t, backend.InvalidParam, r.Code)
	driver.Fail("aclrtSynchronizeStreamWithTimeout", 1, standin.Before, int32(backend.StreamSyncTimeout), 0)
	r = d.SynchronizeStream(ctx, b.coreS, -time.Second)
	require.Equal(t, backend.Failed, r.Outcome)
	require.Equal(t, backend.InvalidParam, r.Code)
}

// What only this side can check does not reach the device, and is answered as
// the device answers what it rejects.
func TestWhatIsRejectedHere(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	ctx := t.Context()
	k := load(t, d, core("core"))
	before := driver.Calls()
	_, empty := d.Alloc(ctx, backend.DeviceMemory, 0)
	_, huge := d.Alloc(ctx, backend.DeviceMemory, math.MaxUint64)
	_, nowhere := d.Alloc(ctx, backend.PinnedMemory+1, 8)
	for name, r := range map[string]backend.Result{
		"nothing": empty, "too much": huge, "nowhere": nowhere,
		"a range outside":    d.Copy(ctx, backend.Span{Mem: b.args, Offset: 1, Size: 64}, backend.Span{Mem: b.args, Size: 64}),
		"ranges that differ": d.CopyAsync(ctx, backend.Span{Mem: b.args, Size: 8}, backend.Span{Mem: b.args, Size: 9}, b.coreS),
		"no blocks":          d.Submit(ctx, b.coreS, backend.Launch{Class: backend.AICore, Kernel: k}),
		"no kernel":          d.Submit(ctx, b.coreS, backend.Launch{Class: backend.AICore, Kernel: k + 1, Blocks: 1}),
	} {
		require.Equal(t, backend.Result{Outcome: backend.Failed, Code: backend.InvalidParam, LastError: backend.InvalidParam}, r, name)
	}
	require.Equal(t, before, driver.Calls())
}

// Only a wait's own code says that its time was up.
func TestWhatIsATimeout(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	ctx := t.Context()
	for _, x := range []struct {
		call string
		code backend.Code
		do   func() backend.Result
		want backend.Outcome
	}{
		{"aclrtSynchronizeEventWithTimeout", backend.EventSyncTimeout, func() backend.Result { return d.WaitEvent(ctx, b.coreE, timeout) }, backend.TimedOut},
		{"aclrtSynchronizeEventWithTimeout", backend.StreamSyncTimeout, func() backend.Result { return d.WaitEvent(ctx, b.coreE, timeout) }, backend.Failed},
		{"aclrtSynchronizeStreamWithTimeout", backend.StreamSyncTimeout, func() backend.Result { return d.SynchronizeStream(ctx, b.coreS, timeout) }, backend.TimedOut},
		{"aclrtSynchronizeStreamWithTimeout", backend.EventSyncTimeout, func() backend.Result { return d.SynchronizeStream(ctx, b.coreS, timeout) }, backend.Failed},
		{"aclrtSynchronizeStreamWithTimeout", backend.AICPUTimeout, func() backend.Result { return d.SynchronizeStream(ctx, b.coreS, timeout) }, backend.Failed},
		{"aclrtRecordEvent", backend.EventSyncTimeout, func() backend.Result { return d.RecordEvent(ctx, b.coreE, b.coreS) }, backend.Failed},
	} {
		driver.Fail(x.call, 1, standin.Before, int32(x.code), 0)
		r := x.do()
		require.Equal(t, x.want, r.Outcome, "%s: %v", x.call, x.code)
		require.Equal(t, x.code, r.Code)
		require.Equal(t, x.code, r.LastError)
	}
}

// A host thread that waits in the driver is let go by a reset, and its wait is
// a failure that proves nothing.
func TestAResetEndsWaits(t *testing.T) {
	d := fresh(t, onboard.Config{})
	driver.Still(true) // no timeout passes by itself
	b := newBench(t, d)
	b.launch(t, load(t, d, core("core")), load(t, d, cpu("slow_cpu")))
	answers := make(chan backend.Result, 2)
	go func() { answers <- d.WaitEvent(context.Background(), b.cpuE, timeout) }()
	go func() { answers <- d.SynchronizeStream(context.Background(), b.cpuS, timeout) }()
	driver.AwaitWaiting(2)
	require.Empty(t, answers)
	confirmed, r := d.Reset(t.Context())
	require.True(t, confirmed)
	require.True(t, r.Ok())
	for range 2 {
		require.Equal(t, backend.Result{Outcome: backend.Failed, Code: backend.TaskAbort, LastError: backend.TaskAbort}, <-answers)
	}
}

// A destroy that fails leaves the handle for another try.
func TestADestroyThatFails(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	ctx := t.Context()
	for call, do := range map[string]func() backend.Result{
		"aclrtDestroyStream": func() backend.Result { return d.DestroyStream(ctx, b.coreS) },
		"aclrtDestroyEvent":  func() backend.Result { return d.DestroyEvent(ctx, b.coreE) },
		"aclrtFree":          func() backend.Result { return d.Free(ctx, b.args) },
	} {
		driver.Fail(call, 1, standin.Before, int32(backend.DriverInternalError), 0)
		require.Equal(t, backend.Failed, do().Outcome, call)
		require.Equal(t, backend.OK, do().Outcome, call)
		require.Equal(t, backend.Result{Outcome: backend.Refused, Code: backend.InvalidHandle}, do(), call)
	}
}
