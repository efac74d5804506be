package states

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// called is work that a caller's stream orders.
func (f *fixture) called() Work {
	f.Helper()
	s, r := f.dev.CreateStream(ctx)
	require.True(f, r.Ok())
	w := work
	w.Caller = s
	return w
}

// registrar makes an initialised worker.
func registrar(t *testing.T, c WorkerConfig, faults ...string) *ChipWorker {
	t.Helper()
	dev, err := sim.New(sim.Config{Kernels: kernels(), Plan: plan(t, faults...)})
	require.NoError(t, err)
	c.Backend, c.Mode = dev, Program
	w, err := NewChipWorker(c)
	require.NoError(t, err)
	require.NoError(t, w.Init(ctx))
	return w
}

func init() {
	for reason, get := range map[machine.Reason]func(t *testing.T) error{
		ErrCallerStream: func(t *testing.T) error {
			w := work
			w.Caller = 12345
			return second(opened(t).lane.Prepare(ctx, w))
		},
		ErrResourceWait: func(t *testing.T) error {
			return second(opened(t, "Alloc#3 fail-before 207001").lane.Prepare(ctx, work))
		},
		ErrRunPreparationRefused: func(t *testing.T) error {
			return second(opened(t, "Copy#1 fail-before").lane.Prepare(ctx, work))
		},
		ErrCaptureActive: func(t *testing.T) error {
			f := opened(t)
			w := f.called()
			r, err := f.lane.Prepare(ctx, w)
			require.NoError(t, err)
			require.True(t, f.dev.SetCapture(w.Caller, backend.CaptureActive))
			return second(r.Launch(ctx))
		},
		ErrOrderEvents: func(t *testing.T) error {
			f := opened(t, "CreateEvent#4 fail-before")
			r, err := f.lane.Prepare(ctx, f.called())
			require.NoError(t, err)
			return second(r.Launch(ctx))
		},
		ErrReset: func(t *testing.T) error {
			f, r := partialRun(t)
			require.NoError(t, f.lane.Recover(ctx))
			return r.Wait(ctx)
		},
		ErrDiagnosed: func(t *testing.T) error {
			dev, err := sim.New(sim.Config{Kernels: reporting(2)})
			require.NoError(t, err)
			l, err := NewLane(Config{Backend: dev})
			require.NoError(t, err)
			require.NoError(t, l.Open(ctx))
			r, err := l.Prepare(ctx, work)
			require.NoError(t, err)
			require.NoError(t, second(r.Launch(ctx)))
			require.ErrorIs(t, r.Wait(ctx), ErrDiagnosed)
			require.ErrorIs(t, r.Wait(ctx), ErrDiagnosed, "told again")
			require.NoError(t, r.Finalize(ctx))
			r, err = l.Prepare(ctx, work)
			require.NoError(t, err, "it can leave a healthy device (F114)")
			require.NoError(t, second(r.Launch(ctx)))
			return r.Wait(ctx)
		},
		ErrSubmit: func(t *testing.T) error {
			f, _ := partialRun(t)
			return second(f.lane.Submit(ctx, work))
		},
		ErrNothingToRecover: func(t *testing.T) error { return opened(t).lane.Recover(ctx) },
		ErrBorrowedDevice: func(t *testing.T) error {
			f := unopened(t, Config{Borrowed: true, Generation: 7}, "RecordEvent#2 fail-before")
			require.NoError(t, f.lane.Open(ctx))
			require.ErrorIs(t, second(f.prepare().Launch(ctx)), ErrPartial)
			return f.lane.Recover(ctx)
		},
		ErrDeviceUnusable: func(t *testing.T) error {
			f, _ := partialRun(t)
			f.strike("Reset#1 unconfirmed")
			return f.lane.Recover(ctx)
		},
		ErrUnsupportedEntry: func(t *testing.T) error {
			return second(registrar(t, WorkerConfig{NoAutomaticIDs: true}).Register(ctx, []byte("image")))
		},
		ErrInvalidArgument: func(t *testing.T) error {
			return second(registrar(t, WorkerConfig{}).Register(ctx, nil))
		},
		ErrInvalidState: func(t *testing.T) error {
			w := registrar(t, WorkerConfig{})
			for range MaxCallables {
				require.NoError(t, second(w.Register(ctx, []byte("image"))))
			}
			return second(w.Register(ctx, []byte("image")))
		},
		ErrUpload: func(t *testing.T) error {
			return second(registrar(t, WorkerConfig{}, "Alloc#1 fail-before").Register(ctx, []byte("image")))
		},
	} {
		ofFacade[reason] = get
	}
	for reason, get := range map[machine.Reason]func(t *testing.T) error{
		ErrJoinDeclined: func(t *testing.T) error {
			f := unopened(t, Config{Slots: 2, Depth: 2})
			require.NoError(t, f.lane.Open(ctx))
			f.prepare() // not launched: nothing of it is recorded
			r := f.prepare()
			require.NoError(t, f.fire("join", 1, "plan", f.ref("fence", 0).Pack(), 1, 1, 1, 1, f.ref("fence", 1).Pack()))
			return second(r.Launch(ctx))
		},
		ErrWaitCycle: func(t *testing.T) error {
			f := opened(t)
			fence := f.ref("fence", 0).Pack()
			return f.fire("join", 0, "plan", fence, 1, 1, 1, 1, fence)
		},
		ErrDecided:   func(t *testing.T) error { return opened(t).fire("outcome", 0, "synchronised", 0, 0) },
		ErrTransport: func(t *testing.T) error { return opened(t).fire("invocation", 0, "check", 0, 1, 1, 1) },
		ErrPacket:    func(t *testing.T) error { return opened(t).fire("invocation", 0, "store") },
		ErrLent: func(t *testing.T) error {
			f := opened(t)
			require.NoError(t, f.fire("invocation", 0, "check", 1, 1, 1, 1))
			require.NoError(t, f.fire("invocation", 0, "store"))
			require.NoError(t, f.fire("invocation", 0, "lend"))
			return f.fire("invocation", 0, "clear")
		},
	} {
		ofRules[reason] = get
	}
}
