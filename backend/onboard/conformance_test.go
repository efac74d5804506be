//go:build cgo && linux

package onboard_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/backendtest"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// calls names the runtime's function behind a call of the interface.
var calls = map[backendtest.Call]string{
	backendtest.CallSubmitAICore:    "aclrtLaunchKernelWithHostArgs",
	backendtest.CallSubmitAICPU:     "aclrtLaunchKernelWithHostArgs",
	backendtest.CallRecordEvent:     "aclrtRecordEvent",
	backendtest.CallStreamWaitEvent: "aclrtStreamWaitEvent",
	backendtest.CallCopyAsync:       "aclrtMemcpyAsync",
	backendtest.CallQueryEvent:      "aclrtQueryEventStatus",
	backendtest.CallQueryStream:     "aclrtStreamQuery",
	backendtest.CallCreateEvent:     "aclrtCreateEventExWithFlag",
}

const ring = 4

// late is a device that is opened by its first call, on the thread of the
// subtest, which stays there: the runtime keeps its last error, and a borrowed
// context, for the thread.
type late struct {
	backend.Backend
	open func() *onboard.Device
}

func (l *late) CreateStream(ctx context.Context) (backend.Stream, backend.Result) {
	if l.Backend == nil {
		runtime.LockOSThread() // the thread ends with the subtest's goroutine
		l.Backend = l.open()
	}
	return l.Backend.CreateStream(ctx)
}

// suite runs the conformance suite on the stand-in driver.
func suite(t *testing.T, unrecordedPasses, borrow bool) []backendtest.Capability {
	var last *onboard.Device
	end := func() {
		if last != nil {
			last.Detach()
		}
		noMisuse(t)
		driver.Restart()
	}
	t.Cleanup(end)
	return backendtest.Run(t, func(t *testing.T) backendtest.Harness {
		end()
		driver.Configure(standin.Settings{
			CopyTime: 2 * time.Microsecond, NoticeTime: 40 * time.Microsecond,
			UnrecordedPasses: unrecordedPasses, MemoryLimit: 1 << 20, Devices: 8,
		})
		l := &late{}
		var lent uintptr
		l.open = func() *onboard.Device {
			if borrow {
				var err error
				lent, err = driver.Lend(3)
				require.NoError(t, err)
			}
			d, err := onboard.Open(onboard.Config{Library: library, Device: 3, Borrow: borrow, Notices: ring})
			require.NoError(t, err)
			last = d
			for _, i := range []onboard.Image{
				core("core"), cpu("cpu"), core("slow_core"), cpu("slow_cpu"), core("spin_core"), cpu("fatal_cpu"), cpu("flag_cpu"),
			} {
				load(t, d, i)
			}
			return d
		}
		h := backendtest.Harness{
			Backend: l,
			Kernels: backendtest.Kernels{Core: 1, CPU: 2, SlowCore: 3, SlowCPU: 4, SpinCore: 5, FatalCPU: 6, FlagCPU: 7},
			Timeout: timeout, Short: short,
			Pause: func() { driver.Advance(10 * time.Microsecond) },
			FailAfter: func(c backendtest.Call, code backend.Code) {
				driver.Fail(calls[c], 1, standin.After, int32(code), 0)
			},
			FailBefore: func(c backendtest.Call, code backend.Code) {
				driver.Fail(calls[c], 1, standin.Before, int32(code), 0)
			},
			Refuse: func(backendtest.Call) {
				// No context to be had: the call must not be made.
				driver.Fail("aclrtGetCurrentContext", 1, standin.Before, int32(backend.InternalError), 0)
				driver.Fail("aclrtSetCurrentContext", 1, standin.Before, int32(backend.InternalError), 0)
			},
			Capture: func(s backend.Stream, c backend.Capture) {
				id, r := l.StreamID(t.Context(), s)
				require.True(t, r.Ok())
				driver.Capture(id, uint32(c))
			},
			UnrecordedPasses: &unrecordedPasses,
			Notices:          true,
			LateNotice: func() {
				driver.Fail("aclrtLaunchKernelWithHostArgs", 2, standin.Late, 0, 200*time.Millisecond)
			},
			NoticeRing: ring,
			TooMuch:    2 << 20,
			Deadlock:   driver.Deadlock,
		}
		if borrow {
			h.NoContext = func() func() {
				driver.Unset()
				return func() { require.NoError(t, driver.MakeCurrent(lent)) }
			}
			h.ForeignContext = func() func() {
				_, err := driver.Lend(4)
				require.NoError(t, err)
				return func() { require.NoError(t, driver.MakeCurrent(lent)) }
			}
		} else {
			h.Reset = true
			h.Unconfirmed = func() {
				driver.Fail("aclrtResetDeviceForce", 1, standin.Before, int32(backend.DriverInternalError), 0)
			}
		}
		return h
	})
}

// Between an owned and a borrowed context, the suite leaves nothing out: only
// a borrowed one can be taken away from under the device, and only a device of
// one's own is ever reset.
func TestConformance(t *testing.T) {
	for _, passes := range []bool{true, false} {
		name := map[bool]string{true: "passes", false: "hangs"}[passes]
		t.Run("owned "+name, func(t *testing.T) {
			require.ElementsMatch(t, []backendtest.Capability{backendtest.CanNoContext, backendtest.CanForeign},
				suite(t, passes, false))
		})
		t.Run("borrowed "+name, func(t *testing.T) {
			require.ElementsMatch(t, []backendtest.Capability{backendtest.CanReset, backendtest.CanUnconfirm},
				suite(t, passes, true))
		})
	}
}
