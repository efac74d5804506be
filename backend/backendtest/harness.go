// Package backendtest is the conformance suite of [backend.Backend]. Every
// backend passes the same one: the simulator, and a driver of a real device.
//
// What a test must provoke, such as a kernel that returns a fatal status, a
// backend cannot do for it; the [Harness] does. A harness that cannot provoke
// something leaves the field empty, and the subtests that need it report it as
// not offered, by name.
package backendtest

import (
	"testing"
	"time"

	"github.com/runfence/runfence/backend"
)

// Call names a method of [backend.Backend] into which a fault can be injected.
type Call string

// The calls that the suite injects faults into.
const (
	CallSubmitAICore    Call = "SubmitAICore"
	CallSubmitAICPU     Call = "SubmitAICPU"
	CallRecordEvent     Call = "RecordEvent"
	CallStreamWaitEvent Call = "StreamWaitEvent"
	CallCopyAsync       Call = "CopyAsync"
	CallQueryEvent      Call = "QueryEvent"
	CallQueryStream     Call = "QueryStream"
	CallCreateEvent     Call = "CreateEvent"
)

// Kernels are the images that the suite submits. Each takes as Args an
// allocation of [ArgsSize] bytes of device memory. Zero means not offered.
type Kernels struct {
	// Core and CPU are a run's two kernels: the AICPU kernel spins until the
	// AICore kernel of the same Args has reported in. Required.
	Core, CPU backend.Kernel
	// SlowCore and SlowCPU are the same, but work for longer than
	// [Harness.Short] and less than [Harness.Timeout]. Required.
	SlowCore, SlowCPU backend.Kernel
	// SpinCore is an AICore kernel that in turn spins until the AICPU kernel of
	// the same Args has started.
	SpinCore backend.Kernel
	// FatalCPU is like CPU, but returns a fatal status that a synchronize
	// reports as 507018.
	FatalCPU backend.Kernel
	// FlagCPU is like SlowCPU, but stores 1 as the last byte of its Args after
	// it has started and well before it returns.
	FlagCPU backend.Kernel
}

// ArgsSize is the size in bytes of the argument memory that the suite allocates.
const ArgsSize = 64

// Harness is one backend with one fresh device, and what the suite can make go
// wrong on it. Fields without "Required" may be left empty.
type Harness struct {
	// Backend is the backend under test. Required.
	Backend backend.Backend
	Kernels Kernels
	// Timeout is a run's timeout: every kernel of the harness ends well within
	// it. Required.
	Timeout time.Duration
	// Short is a timeout that expires while a slow kernel works. Required.
	Short time.Duration
	// Pause lets a little time pass on the device: much less than a slow
	// kernel's work. Required.
	Pause func()

	// FailAfter makes the next call of the named kind take effect and return
	// the code.
	FailAfter func(Call, backend.Code)
	// FailBefore makes the next call of the named kind fail with the code and
	// have no effect.
	FailBefore func(Call, backend.Code)
	// Refuse makes the next call of the named kind not be attempted.
	Refuse func(Call)
	// NoContext leaves the caller without a current context until the function
	// that it returns is called.
	NoContext func() (restore func())
	// ForeignContext makes the context of another device current.
	ForeignContext func() (restore func())
	// Capture gives a stream a capture status.
	Capture func(backend.Stream, backend.Capture)
	// UnrecordedPasses says how the device treats a wait for an event that was
	// never recorded: true, it passes; false, it holds until the event is
	// recorded. Nil: not known.
	UnrecordedPasses *bool
	// Notices says that a fatal status posts an exception notice. LateNotice
	// makes the next one come only after the run's boundaries have completed
	// and many pauses have passed.
	Notices    bool
	LateNotice func()
	// NoticeRing is how many notices are kept for a host that does not take
	// them; with it the suite overflows the ring.
	NoticeRing int
	// Reset says that the device may be reset. Unconfirmed makes the next reset
	// stay without effect and unconfirmed.
	Reset       bool
	Unconfirmed func()
	// TooMuch is a size in bytes that the device cannot allocate.
	TooMuch uint64
	// Deadlock explains what can never move on the device, or returns "".
	Deadlock func() string
}

// Capability names something that a harness may offer.
type Capability string

// The capabilities.
const (
	CanSpin         Capability = "AICore kernel that spins"
	CanFatal        Capability = "fatal AICPU kernel"
	CanFlag         Capability = "in-kernel flag"
	CanFailAfter    Capability = "call that takes effect and fails"
	CanFailBefore   Capability = "call that fails without effect"
	CanRefuse       Capability = "call that is not attempted"
	CanNoContext    Capability = "no current context"
	CanForeign      Capability = "foreign context"
	CanCapture      Capability = "capture status"
	CanUnrecorded   Capability = "model of unrecorded waits"
	CanNotice       Capability = "exception notices"
	CanLateNotice   Capability = "late notice"
	CanOverflow     Capability = "notice ring of known size"
	CanReset        Capability = "reset"
	CanUnconfirm    Capability = "unconfirmed reset"
	CanExhaust      Capability = "allocation limit"
	CanSeeDeadlocks Capability = "deadlock explanation"
)

// Offers reports whether the harness offers a capability.
func (h *Harness) Offers(c Capability) bool {
	switch c {
	case CanSpin:
		return h.Kernels.SpinCore != 0
	case CanFatal:
		return h.Kernels.FatalCPU != 0
	case CanFlag:
		return h.Kernels.FlagCPU != 0
	case CanFailAfter:
		return h.FailAfter != nil
	case CanFailBefore:
		return h.FailBefore != nil
	case CanRefuse:
		return h.Refuse != nil
	case CanNoContext:
		return h.NoContext != nil
	case CanForeign:
		return h.ForeignContext != nil
	case CanCapture:
		return h.Capture != nil
	case CanUnrecorded:
		return h.UnrecordedPasses != nil
	case CanNotice:
		return h.Notices
	case CanLateNotice:
		return h.LateNotice != nil
	case CanOverflow:
		return h.NoticeRing > 0
	case CanReset:
		return h.Reset
	case CanUnconfirm:
		return h.Unconfirmed != nil
	case CanExhaust:
		return h.TooMuch > 0
	case CanSeeDeadlocks:
		return h.Deadlock != nil
	}
	return false
}

// complete reports the required fields that are missing.
func (h *Harness) complete(t *testing.T) {
	t.Helper()
	k := h.Kernels
	if h.Backend == nil || h.Pause == nil || k.Core == 0 || k.CPU == 0 || k.SlowCore == 0 || k.SlowCPU == 0 {
		t.Fatal("backendtest: the harness lacks a backend, a pause, or one of the kernels Core, CPU, SlowCore, SlowCPU")
	}
	if h.Short <= 0 || h.Timeout <= h.Short {
		t.Fatalf("backendtest: timeouts of %v and %v: want 0 < Short < Timeout", h.Short, h.Timeout)
	}
}
