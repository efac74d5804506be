//go:build cgo && linux

package onboard_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		driver.Unset() // a thread that Go had before may have one
		f()
	}()
	<-done
}

// A call on any thread is made under the device's context, whatever the thread
// had before, and nothing is remembered from call to call.
func TestAnOwnContextIsMadeCurrent(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 2})
	ctx := t.Context()
	own, r := d.CurrentContext(ctx)
	require.True(t, r.Ok())
	require.NotZero(t, own)
	onThread(func() {
		require.Zero(t, driver.Current())
		sets := driver.ContextSets()
		e, r := d.CreateEvent(ctx)
		require.True(t, r.Ok())
		require.Equal(t, uintptr(own), driver.Current())
		require.Equal(t, sets+1, driver.ContextSets())
		_, r = d.QueryEvent(ctx, e)
		require.True(t, r.Ok())
		require.Equal(t, sets+1, driver.ContextSets(), "it is set where it is not, and only there")

		foreign, err := driver.Lend(4) // other code on this thread
		require.NoError(t, err)
		require.Equal(t, foreign, driver.Current())
		_, r = d.QueryEvent(ctx, e)
		require.True(t, r.Ok())
		require.Equal(t, uintptr(own), driver.Current(), "no cache: the other code's context was noticed")

		driver.Unset()
		x, r := d.CurrentContext(ctx)
		require.True(t, r.Ok())
		require.Equal(t, own, x)
	})
}

// The question which context is current may itself leave an error on the
// thread; it must not pass for that of the call.
func TestTheLastErrorIsThatOfTheCall(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 2})
	onThread(func() {
		e, r := d.CreateEvent(t.Context())
		require.Equal(t, backend.Result{}, r, "a thread without a context answered the question with 107002")
		driver.Fail("aclrtQueryEventStatus", 1, standin.Before, int32(backend.DriverInternalError), 0)
		_, r = d.QueryEvent(t.Context(), e)
		require.Equal(t, backend.DriverInternalError, r.Code)
		require.Equal(t, backend.DriverInternalError, r.LastError)
		require.Equal(t, int32(backend.DriverInternalError), driver.LastError(), "it is still the thread's")
		f := d.LatestFailure()
		require.NotNil(t, f)
		require.Equal(t, backend.DriverInternalError, f.Code)
		require.Equal(t, "stand-in: aclrtQueryEventStatus answered 507899", f.Message)
	})
}

// Error and last error belong together on every thread: each of many shows its
// own, and no other's.
func TestErrorsOfManyThreads(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 2})
	driver.Eager(true)
	ctx := t.Context()
	s, r := d.CreateStream(ctx)
	require.True(t, r.Ok())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			last := backend.Success
			for n := range 50 {
				if (n+i)%3 == 0 {
					r := d.SynchronizeStream(ctx, s, 0)
					last = backend.InvalidParam
					if r.Code != last || r.LastError != last {
						t.Errorf("a rejected synchronize: %+v", r)
					}
					continue
				}
				if _, r := d.QueryStream(ctx, s); !r.Ok() || r.LastError != last {
					t.Errorf("goroutine %d, call %d: %+v, want the last error %v", i, n, r, last)
				}
			}
		})
	}
	all.Wait()
}

// A borrowed context is compared and never set: a mismatch is refused, and the
// same call with the same handles succeeds once the host has restored it.
func TestABorrowedContextIsNeverSet(t *testing.T) {
	restart(t)
	onThread(func() {
		ctx := context.Background()
		lent, err := driver.Lend(3)
		require.NoError(t, err)
		d, err := onboard.Open(onboard.Config{Library: library, Device: 3, Borrow: true})
		require.NoError(t, err)
		defer d.Detach()
		sets := driver.ContextSets()
		x, r := d.CurrentContext(ctx)
		require.True(t, r.Ok())
		require.Equal(t, backend.Context(lent), x)
		s, r := d.CreateStream(ctx)
		require.True(t, r.Ok())
		e, r := d.CreateEvent(ctx)
		require.True(t, r.Ok())
		p, r := d.Alloc(ctx, backend.PinnedMemory, 8)
		require.True(t, r.Ok())

		for code, spoil := range map[backend.Code]func(){
			backend.ContextNull: driver.Unset,
			backend.StreamContext: func() {
				_, err := driver.Lend(4)
				require.NoError(t, err)
				sets = driver.ContextSets()
			},
		} {
			spoil()
			for name, r := range map[string]backend.Result{
				"record": d.RecordEvent(ctx, e, s), "write": d.Write(ctx, p, 0, []byte{1}), "read": d.Read(ctx, make([]byte, 1), p, 0),
				"destroy": d.DestroyEvent(ctx, e), "free": d.Free(ctx, p), "destroy stream": d.DestroyStream(ctx, s),
			} {
				require.Equal(t, backend.Refused, r.Outcome, "%s under %v", name, code)
				require.Equal(t, code, r.Code, name)
				require.False(t, r.Accepted)
			}
			y, r := d.CurrentContext(ctx)
			require.True(t, r.Ok(), "what is current is an answer")
			require.NotEqual(t, x, y)
			require.Equal(t, sets, driver.ContextSets(), "never set")
			require.NoError(t, driver.MakeCurrent(lent)) // the host restores it
			sets = driver.ContextSets()
			require.True(t, d.RecordEvent(ctx, e, s).Ok(), "nothing was lost")
		}
		confirmed, r := d.Reset(ctx)
		require.False(t, confirmed)
		require.Equal(t, backend.Result{Outcome: backend.Refused, Code: backend.FeatureNotSupported}, r, "never reset")
		require.True(t, d.DestroyEvent(ctx, e).Ok())
		require.True(t, d.DestroyStream(ctx, s).Ok())
		require.True(t, d.Free(ctx, p).Ok())
		live := driver.Live()
		require.NoError(t, d.Close())
		require.Equal(t, live, driver.Live(), "the host's context is left as it is")
		require.Equal(t, lent, driver.Current())
	})
}

func TestBorrowingNeedsTheRightContext(t *testing.T) {
	restart(t)
	onThread(func() {
		_, err := onboard.Open(onboard.Config{Library: library, Device: 3, Borrow: true})
		var e *onboard.CallError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "aclrtGetCurrentContext", e.Call)
		require.Equal(t, backend.ContextNull, e.Code)
		require.ErrorContains(t, err, "LockOSThread", "the error says what to do")

		_, err = driver.Lend(4)
		require.NoError(t, err)
		_, err = onboard.Open(onboard.Config{Library: library, Device: 3, Borrow: true})
		var wrong *onboard.ContextDeviceError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, &onboard.ContextDeviceError{Context: 4, Wanted: 3}, wrong)
	})
}
