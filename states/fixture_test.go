package states

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// work is what the runs of a fixture execute: its kernels 1 and 2.
var work = Work{Core: 1, CPU: 2}

// fixture is a lane on a simulated device.
type fixture struct {
	*testing.T
	dev  *sim.Device
	lane *Lane
	// process is what the lane is told of the calling process.
	process int
}

// kernels work for 40 and 50 µs of virtual time.
func kernels() []sim.KernelSpec {
	return []sim.KernelSpec{
		{Name: "core", Class: backend.AICore, Duration: 40 * time.Microsecond},
		{Name: "cpu", Class: backend.AICPU, Duration: 50 * time.Microsecond},
	}
}

// opened makes an opened lane whose device is struck by the faults.
func opened(t *testing.T, faults ...string) *fixture {
	f := unopened(t, Config{}, faults...)
	require.NoError(t, f.lane.Open(ctx))
	return f
}

// warm makes an opened lane whose slot has hosted a run: its events are there
// and its result region is initialised, so a launch is of the plainest shape.
// The faults are counted from then on.
func warm(t *testing.T, faults ...string) *fixture {
	t.Helper()
	f := opened(t)
	f.whole()
	for _, x := range faults {
		f.strike(x)
	}
	return f
}

// whole is one run from beginning to end.
func (f *fixture) whole() {
	f.Helper()
	r, _ := f.launch()
	require.NoError(f, r.Wait(ctx))
	require.NoError(f, r.Finalize(ctx))
}

// unopened makes a lane as c says, on a device struck by the faults.
func unopened(t *testing.T, c Config, faults ...string) *fixture {
	t.Helper()
	dev, err := sim.New(sim.Config{Kernels: kernels(), Plan: plan(t, faults...), Borrowed: c.Borrowed})
	require.NoError(t, err)
	f := &fixture{T: t, dev: dev, process: 1}
	if c.Backend == nil {
		c.Backend = dev
	}
	if c.Timeout == 0 {
		c.Timeout = time.Second
	}
	c.Incarnation = 1
	c.Process = func() int { return f.process }
	f.lane, err = NewLane(c)
	require.NoError(t, err)
	return f
}

func plan(t *testing.T, faults ...string) []sim.Fault {
	t.Helper()
	var all []sim.Fault
	for _, s := range faults {
		x, err := sim.ParseFault(s)
		require.NoError(t, err)
		all = append(all, x)
	}
	return all
}

// strike adds a fault whose count starts now.
func (f *fixture) strike(fault string) {
	f.Helper()
	require.NoError(f, f.dev.Inject(plan(f.T, fault)[0]))
}

func (f *fixture) prepare() *Run {
	f.Helper()
	r, err := f.lane.Prepare(ctx, work)
	require.NoError(f, err)
	return r
}

func (f *fixture) launch() (*Run, Receipt) {
	f.Helper()
	r := f.prepare()
	rc, err := r.Launch(ctx)
	require.NoError(f, err)
	return r, rc
}

// ref is the instance of a machine that a slot has.
func (f *fixture) ref(machineName string, slot int) machine.Ref {
	return f.lane.d.Ref(f.lane.config.Rules.Machine(machineName).ID(), slot)
}

// state is the state of the instance.
func (f *fixture) state(machineName string, slot int) string {
	var s string
	r := f.ref(machineName, slot)
	f.lane.d.View(func(w *machine.World) { s = w.StateName(r) })
	return s
}

// fact is a fact of the instance, as rules write it.
func (f *fixture) fact(machineName string, slot int, name string) string {
	m := f.lane.config.Rules.Machine(machineName)
	v, ok := f.lane.d.Fact(f.ref(machineName, slot), m.MustFact(name))
	require.True(f, ok)
	return m.FactType(m.MustFact(name)).Format(v)
}

// bytes is the whole state of the world: every instance's occupancy, state,
// command in flight and facts, and what is queued.
func (f *fixture) bytes() string {
	var b strings.Builder
	f.lane.d.View(func(w *machine.World) {
		fmt.Fprintf(&b, "queued %d\n", w.Queued())
		for i := range w.Rules().NumMachines() {
			if w.Rules().At(machine.MachineID(i)).Name() == "health" {
				continue // what is heard is heard, whatever is refused
			}
			for s := range w.Capacity(machine.MachineID(i)) {
				r := w.Ref(machine.MachineID(i), s)
				fmt.Fprintf(&b, "%s %q %v\n", w.Rules().RefName(r), w.StateName(r), w.AppendFacts(nil, r))
			}
		}
	})
	return b.String()
}

// fire fires an event past the façade, as another machine would.
func (f *fixture) fire(machineName string, slot int, event string, args ...uint64) error {
	m := f.lane.config.Rules.Machine(machineName)
	_, err := f.lane.d.Fire(ctx, f.ref(machineName, slot), m.MustEvent(event), args...)
	return err
}

// clean checks that the host did not misuse the device.
func (f *fixture) clean() {
	f.Helper()
	require.Empty(f, f.dev.Violations())
}

func split(words string) []string { return strings.Fields(words) }

// stepper takes a lane's rules one step at a time, on a world of its own: the
// orders of steps in which no driver would take them, but an explorer does.
type stepper struct {
	*testing.T
	w     *machine.World
	rules *machine.Rules
}

// stepping makes a world as the lane's is now, with nothing in flight.
func (f *fixture) stepping() *stepper {
	f.Helper()
	s := &stepper{T: f.T, rules: f.lane.config.Rules}
	f.lane.d.View(func(w *machine.World) { s.w = w.Clone() })
	return s
}

func (s *stepper) ref(machineName string) machine.Ref {
	return s.w.Ref(s.rules.Machine(machineName).ID(), 0)
}

func (s *stepper) state(machineName string) string { return s.w.StateName(s.ref(machineName)) }

// fire takes an event that needs no command.
func (s *stepper) fire(machineName, event string, args ...uint64) {
	s.Helper()
	step := s.w.Issue(s.ref(machineName), s.rules.Machine(machineName).MustEvent(event), args...)
	require.NoError(s, s.w.RefusalError(step))
	require.Equal(s, machine.Accepted, step.Status)
}

// issue takes an event whose command stays in flight.
func (s *stepper) issue(machineName, event string, args ...uint64) {
	s.Helper()
	step := s.w.Issue(s.ref(machineName), s.rules.Machine(machineName).MustEvent(event), args...)
	require.NoError(s, s.w.RefusalError(step))
	require.Equal(s, machine.InFlight, step.Status)
}

// settle answers the command in flight.
func (s *stepper) settle(machineName string, r machine.Result) machine.Status {
	s.Helper()
	step := s.w.Settle(s.ref(machineName), r)
	require.NoError(s, s.w.RefusalError(step))
	return step.Status
}

// next takes the next event that an operation emitted.
func (s *stepper) next(root string) machine.Status {
	s.Helper()
	step := s.w.Next(s.ref(root))
	require.NotNil(s, step)
	require.NoError(s, s.w.RefusalError(step))
	return step.Status
}

// runArgs are the arguments of an operation on the run, by process 1.
func (s *stepper) runArgs() []uint64 {
	out := []uint64{1}
	for _, n := range identityNames {
		v, _ := s.w.Fact(s.ref("run"), s.rules.Machine("run").MustFact(n))
		out = append(out, v)
	}
	return out
}

func (s *stepper) fact(machineName, name string) uint64 {
	v, _ := s.w.Fact(s.ref(machineName), s.rules.Machine(machineName).MustFact(name))
	return v
}

// context is what CurrentContext answers when all is well.
func (s *stepper) context() machine.Result {
	return machine.Result{Value: s.fact("environment", "context")}
}

// without leaves the lines of a machine out of what bytes returned.
func (f *fixture) without(machineName, state string) string {
	var b strings.Builder
	for line := range strings.Lines(state) {
		if !strings.HasPrefix(line, machineName+" ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
