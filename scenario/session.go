package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// session is a script under way. It is one thread: operations that a hold
// parks are goroutines, and exactly one of them, or the script, runs at a time.
type session struct {
	opts    Options
	out     strings.Builder
	written int // bytes of answers of the blocks before
	// transitions that were made so far.
	transitions int

	// The device: sim is nil if it is another than the simulated one.
	dev     *Device
	sim     *sim.Device
	spec    DeviceSpec
	kernels map[string]backend.Kernel

	naming     naming
	timeline   timeline
	violations []string // told so far

	process  string
	lanes    map[string]*lane
	laneList []*lane
	lane     *lane          // the present one
	alone    *alone         // the environment without a lane
	pure     *machine.World // the world that is stepped by hand
	model    *model.State   // what is moved by choices
	modelled *model.System
	sources  map[string]*states.BufferSource
	buffers  map[string]states.Buffer
	below    *machine.Rules // the lane's, while it is an orchestrator's

	holds   []*hold
	running *operation
	parked  []*operation
	crashed bool
	lastErr error // the last refusal or failure

	callStart time.Duration
}

func newSession(o Options) *session {
	return &session{opts: o, naming: newNaming(), process: "parent", lanes: map[string]*lane{}, kernels: map[string]backend.Kernel{}, sources: map[string]*states.BufferSource{}, buffers: map[string]states.Buffer{}}
}

// do carries out one command.
func (s *session) do(c *call) (err error) {
	if c.sim {
		if _, err := s.simulator(c.name); err != nil {
			return err
		}
	}
	if s.dev != nil {
		s.callStart = s.now()
	}
	if s.crashed && !c.reads() {
		return fmt.Errorf("%s: the process has crashed; what is left is to look", c.name)
	}
	s.timeline.line = c.line
	err = c.run(s, c)
	if s.lane != nil {
		s.lane.learn()
	}
	s.report()
	return err
}

// report tells the violations that are new.
func (s *session) report() {
	if s.sim == nil {
		return
	}
	for _, v := range s.sim.Violations()[len(s.violations):] {
		s.violations = append(s.violations, s.violation(v))
		s.printf("! %s", s.violations[len(s.violations)-1])
	}
}

// device returns the device, which is made when it is first needed.
func (s *session) device() (*Device, error) {
	if s.dev != nil {
		return s.dev, nil
	}
	return s.makeDevice(sim.Config{})
}

// simulator returns the simulated device.
func (s *session) simulator(verb string) (*sim.Device, error) {
	if _, err := s.device(); err != nil {
		return nil, err
	}
	if s.sim == nil {
		return nil, &SimulatorOnlyError{Verb: verb}
	}
	return s.sim, nil
}

func (s *session) makeDevice(cfg sim.Config) (*Device, error) {
	s.spec = DeviceSpec{ID: cfg.Device, Borrowed: cfg.Borrowed}
	if s.opts.Device != nil {
		d, err := s.opts.Device(s.spec)
		if err != nil {
			return nil, err
		}
		if d.Backend == nil {
			return nil, errors.New("no device was made")
		}
		s.dev = &d
		for n, k := range d.Kernels {
			s.kernels[n] = k
		}
		if c, r := d.CurrentContext(free); r.Ok() {
			s.naming.contexts["home"] = c
		}
		return s.dev, nil
	}
	d, err := sim.New(cfg)
	if err != nil {
		return nil, err
	}
	s.sim, s.dev = d, &Device{Backend: d, Now: d.Now}
	s.naming.contexts["home"] = d.Home()
	for _, k := range defaultKernels {
		s.kernels[k.Name] = d.Define(k)
	}
	if s.opts.Seed != 0 {
		d.SetPolicy(sim.NewRandom(s.opts.Seed, 50))
	}
	d.Trace(s.trace)
	return s.dev, nil
}

// defaultKernels are there without being defined: a pair that shakes hands.
var defaultKernels = []sim.KernelSpec{
	{Name: "core", Class: backend.AICore, Duration: 40 * time.Microsecond, Paired: true},
	{Name: "cpu", Class: backend.AICPU, Duration: 50 * time.Microsecond, Paired: true},
}

func (s *session) now() time.Duration {
	if s.dev == nil || s.dev.Now == nil {
		return 0
	}
	return s.dev.Now()
}

// answer tells how a command ended, and the time if it took some.
func (s *session) answer(c *call, format string, args ...any) {
	text := c.String() + ": " + fmt.Sprintf(format, args...)
	took := s.now() != s.callStart
	s.markResult(c.String(), text, took)
	if took {
		text += ", now " + us(s.now())
	}
	s.printf("%s", text)
}

// us prints a virtual time.
func us(t time.Duration) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(t)/1e3), "0"), ".") + "us"
}

// end lets nothing of the script run on.
func (s *session) end() {
	for _, l := range s.laneList {
		l.recorder.closed = true
	}
	for _, o := range s.parked {
		o.kill()
	}
	s.parked = nil
}

// patience of a command: none. An operation that would have to wait for one
// that a hold parked says so at once, since nobody else can go on meanwhile.
var patience, _ = context.WithDeadline(context.Background(), time.Unix(0, 0))

// said puts an error of the rules into one short line.
func (s *session) said(rules *machine.Rules, err error) string {
	s.lastErr = err
	var refusal *machine.RefusalError
	var failure *machine.FailureError
	var busy *machine.BusyError
	var hole *machine.HoleError
	switch {
	case errors.As(err, &failure) && failure == err:
		return "failed: " + failed(rules, failure)
	case errors.As(err, &refusal) && refusal == err:
		return "refused: " + refused(rules, refusal)
	case errors.As(err, &hole):
		return hole.Error()
	case errors.As(err, &busy):
		return "busy: " + busy.Where
	}
	var reason machine.Reason
	if errors.As(err, &reason) {
		return "refused: " + string(reason)
	}
	return "refused: " + err.Error()
}

func refused(rules *machine.Rules, e *machine.RefusalError) string {
	m := rules.At(e.Ref.Machine)
	what := string(e.Reason)
	if what == "" {
		what = e.Kind.String()
	}
	if e.Row() != "" {
		return what + " [" + m.Name() + "/" + e.Row() + "]"
	}
	return fmt.Sprintf("%s [%s %s in state %q]", what, m.Name(), m.EventName(e.Event), m.StateName(e.State))
}

func failed(rules *machine.Rules, e *machine.FailureError) string {
	what := string(e.Reason)
	if e.Code != 0 {
		what += ", " + backend.Code(e.Code).Brief()
	}
	if e.Panic != nil {
		what += fmt.Sprintf(", panic: %v", e.Panic)
	}
	var cause *machine.FailureError
	var refusal *machine.RefusalError
	switch {
	case errors.As(e.Cause, &cause):
		what += "; " + event(rules, cause.Ref, cause.Event) + " failed: " + failed(rules, cause)
	case errors.As(e.Cause, &refusal):
		what += "; " + event(rules, refusal.Ref, refusal.Event) + " refused: " + refused(rules, refusal)
	}
	return what
}

func event(rules *machine.Rules, r machine.Ref, ev machine.EventID) string {
	return rules.RefName(r) + " " + rules.At(r.Machine).EventName(ev)
}

// result answers with ok, or with what went wrong.
func (s *session) result(c *call, err error, ok string) {
	if err != nil {
		ok = s.said(s.opts.Rules, err)
	}
	s.answer(c, "%s", ok)
}

// present returns the present lane, which is made when it is first needed.
func (s *session) present() (*lane, error) {
	if s.lane == nil {
		if err := s.makeLane("lane", states.Config{Timeout: time.Second}, nil); err != nil {
			return nil, err
		}
	}
	return s.lane, nil
}
