//go:build cgo && linux

package onboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// A reset takes everything from the device. What the handles name afterwards is
// new, and works.
func TestAfterAReset(t *testing.T) {
	d := fresh(t, onboard.Config{})
	ctx := t.Context()
	b := newBench(t, d)
	k, c := load(t, d, core("core")), load(t, d, cpu("cpu"))
	p, r := d.Alloc(ctx, backend.PinnedMemory, 64)
	require.True(t, r.Ok())
	require.True(t, d.Write(ctx, p, 0, []byte("before")).Ok())
	b.launch(t, k, c)
	require.True(t, d.WaitEvent(ctx, b.cpuE, timeout).Ok())

	confirmed, r := d.Reset(ctx)
	require.True(t, confirmed)
	require.True(t, r.Ok())
	gone := backend.Result{Outcome: backend.Refused, Code: backend.InvalidHandle}
	require.Equal(t, gone, d.RecordEvent(ctx, b.cpuE, b.cpuS), "no event outlives it")
	got := make([]byte, 64)
	require.True(t, d.Read(ctx, got, p, 0).Ok())
	require.Equal(t, make([]byte, 64), got, "memory holds zeros, not what it held and not residue")
	require.True(t, d.Copy(ctx, backend.Span{Mem: p, Size: 64}, backend.Span{Mem: b.args, Size: 64}).Ok())
	require.True(t, d.Read(ctx, got, p, 0).Ok())
	require.Equal(t, make([]byte, 64), got)

	b.coreE, r = d.CreateEvent(ctx)
	require.True(t, r.Ok())
	b.cpuE, r = d.CreateEvent(ctx)
	require.True(t, r.Ok())
	b.launch(t, k, c)
	require.True(t, d.WaitEvent(ctx, b.coreE, timeout).Ok())
	require.True(t, d.WaitEvent(ctx, b.cpuE, timeout).Ok(), "the kernels were loaded anew, on the streams of the old handles")
	b.giveBack(t)
	require.True(t, d.Free(ctx, p).Ok())
	require.NoError(t, d.Close())
	require.Equal(t, standin.Live{}, driver.Live())
}

// The reset is a proof even if what comes after it fails; what could not be
// made anew names nothing.
func TestAResetThatIsConfirmedAndNotRecovered(t *testing.T) {
	gone := backend.Result{Outcome: backend.Refused, Code: backend.InvalidHandle}
	for call, check := range map[string]func(t *testing.T, d *onboard.Device, b *bench){
		"aclrtSetDevice": func(t *testing.T, d *onboard.Device, b *bench) {
			require.Equal(t, gone, d.Free(t.Context(), b.args))
			require.Equal(t, gone, d.DestroyStream(t.Context(), b.coreS))
		},
		"aclrtCreateContext": func(t *testing.T, d *onboard.Device, b *bench) {
			require.Equal(t, gone, d.Free(t.Context(), b.args))
		},
		"aclrtBinaryLoadFromFile": func(t *testing.T, d *onboard.Device, b *bench) {
			require.True(t, d.Free(t.Context(), b.args).Ok())
			r := d.Submit(t.Context(), b.coreS, backend.Launch{Class: backend.AICore, Kernel: 1, Blocks: 1})
			require.Equal(t, backend.Failed, r.Outcome, "the kernel is not there")
			require.False(t, r.Accepted)
		},
		"aclrtCreateStreamWithConfig": func(t *testing.T, d *onboard.Device, b *bench) {
			require.Equal(t, gone, d.DestroyStream(t.Context(), b.coreS))
			require.True(t, d.DestroyStream(t.Context(), b.cpuS).Ok(), "the other one is there")
		},
		"aclrtMalloc": func(t *testing.T, d *onboard.Device, b *bench) {
			require.Equal(t, gone, d.Free(t.Context(), b.args))
		},
		"aclrtMemset": func(t *testing.T, d *onboard.Device, b *bench) {
			require.Equal(t, gone, d.Free(t.Context(), b.args), "memory that may hold anything is not given to the host")
		},
	} {
		t.Run(call, func(t *testing.T) {
			d := fresh(t, onboard.Config{})
			b := newBench(t, d)
			load(t, d, core("core"))
			driver.Fail(call, 1, standin.Before, int32(backend.DriverInternalError), 0)
			confirmed, r := d.Reset(t.Context())
			require.True(t, confirmed, "the old work is over all the same")
			require.Equal(t, backend.Failed, r.Outcome)
			require.Equal(t, backend.DriverInternalError, r.Code)
			check(t, d, b)
		})
	}
}

func TestAResetThatIsNotConfirmedChangesNothing(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	b.launch(t, load(t, d, core("core")), load(t, d, cpu("slow_cpu")))
	driver.Fail("aclrtResetDeviceForce", 1, standin.Before, int32(backend.DriverInternalError), 0)
	confirmed, r := d.Reset(t.Context())
	require.False(t, confirmed)
	require.Equal(t, backend.DriverInternalError, r.Code)
	require.True(t, d.WaitEvent(t.Context(), b.cpuE, timeout).Ok(), "handles and work are as they were")
}
