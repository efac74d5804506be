package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/backendtest"
	"github.com/runfence/runfence/backend/sim"
)

// The faces under which a device passes the conformance suite.
func TestConformance(t *testing.T) {
	direct := func(d *sim.Device) (backend.Backend, func(func(*sim.Device))) {
		return d, func(f func(*sim.Device)) { f(d) }
	}
	faces := map[string]func(d *sim.Device) (backend.Backend, func(func(*sim.Device))){
		"device": direct,
		"device by choices": func(d *sim.Device) (backend.Backend, func(func(*sim.Device))) {
			d.SetPolicy(sim.Timed{})
			return direct(d)
		},
		"caller of a host": func(d *sim.Device) (backend.Backend, func(func(*sim.Device))) {
			h := sim.NewHost(d, nil)
			c := h.Enter()
			return c, func(f func(*sim.Device)) {
				h.Inspect(func(d *sim.Device) {
					d.SetThread(c.Thread())
					f(d)
				})
			}
		},
	}
	for name, face := range faces {
		for _, u := range []sim.Unrecorded{sim.PassesAtOnce, sim.Hangs} {
			t.Run(name+" "+[]string{"passes", "hangs"}[u], func(t *testing.T) {
				missing := backendtest.Run(t, func(t *testing.T) backendtest.Harness {
					return harness(t, u, face)
				})
				require.Empty(t, missing, "the simulator offers everything")
			})
		}
	}
}

func harness(t *testing.T, u sim.Unrecorded, face func(*sim.Device) (backend.Backend, func(func(*sim.Device)))) backendtest.Harness {
	const us = time.Microsecond
	paired := func(name string, c backend.Class, d time.Duration) sim.KernelSpec {
		return sim.KernelSpec{Name: name, Class: c, Duration: d, Paired: true}
	}
	spin := paired("spin", backend.AICore, 10*us)
	spin.Spin = true
	fatal := paired("fatal", backend.AICPU, 15*us)
	fatal.Exit = backend.AICPUException
	flag := paired("flag", backend.AICPU, 1000*us)
	flag.Flag, flag.FlagAfter = true, 100*us
	flag.Stores = []sim.Store{{When: sim.AtFlag, Offset: backendtest.ArgsSize - 1, Size: 1, Value: 1}}
	d, err := sim.New(sim.Config{
		Device: 3, Unrecorded: u, CopyTime: 2 * us, NoticeTime: 40 * us, NoticeRing: 4, MemoryLimit: 1 << 20,
		Kernels: []sim.KernelSpec{
			paired("core", backend.AICore, 10*us), paired("cpu", backend.AICPU, 15*us),
			paired("slow-core", backend.AICore, 1000*us), paired("slow-cpu", backend.AICPU, 1000*us),
			spin, fatal, flag,
		},
	})
	require.NoError(t, err)
	b, on := face(d)
	inject := func(f sim.Fault) {
		on(func(d *sim.Device) { require.NoError(t, d.Inject(f)) })
	}
	op := func(c backendtest.Call) sim.OpKind {
		k, err := sim.ParseOpKind(string(c))
		require.NoError(t, err)
		return k
	}
	passes := u == sim.PassesAtOnce
	context := func(x func(*sim.Device) backend.Context) func() func() {
		return func() func() {
			on(func(d *sim.Device) { d.SetCurrent(x(d)) })
			return func() { on(func(d *sim.Device) { d.SetCurrent(d.Home()) }) }
		}
	}
	return backendtest.Harness{
		Backend: b,
		Kernels: backendtest.Kernels{Core: 1, CPU: 2, SlowCore: 3, SlowCPU: 4, SpinCore: 5, FatalCPU: 6, FlagCPU: 7},
		Timeout: 100 * time.Millisecond,
		Short:   200 * us,
		Pause:   func() { on(func(d *sim.Device) { d.Advance(10 * us) }) },
		FailAfter: func(c backendtest.Call, code backend.Code) {
			inject(sim.Fault{Op: op(c), Nth: 1, Kind: sim.FailAfter, Code: code})
		},
		FailBefore: func(c backendtest.Call, code backend.Code) {
			inject(sim.Fault{Op: op(c), Nth: 1, Kind: sim.FailBefore, Code: code})
		},
		Refuse:         func(c backendtest.Call) { inject(sim.Fault{Op: op(c), Nth: 1, Kind: sim.Refuse}) },
		NoContext:      context(func(*sim.Device) backend.Context { return 0 }),
		ForeignContext: context(func(d *sim.Device) backend.Context { return d.NewContext(true) }),
		Capture: func(s backend.Stream, c backend.Capture) {
			on(func(d *sim.Device) { require.True(t, d.SetCapture(s, c)) })
		},
		UnrecordedPasses: &passes,
		Notices:          true,
		LateNotice: func() {
			inject(sim.Fault{Op: sim.OpSubmitAICPU, Nth: 1, Kind: sim.NoticeLate, Delay: 200 * time.Millisecond})
		},
		NoticeRing:  4,
		Reset:       true,
		Unconfirmed: func() { inject(sim.Fault{Op: sim.OpReset, Nth: 1, Kind: sim.Unconfirmed}) },
		TooMuch:     2 << 20,
		Deadlock: func() (why string) {
			on(func(d *sim.Device) { why = d.Deadlock() })
			return why
		},
	}
}
