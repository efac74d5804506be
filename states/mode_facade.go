package states

import (
	"context"

	"github.com/runfence/runfence/machine"
)

// Mode is an execution mode.
type Mode uint8

// The execution modes. There is no zero mode: unclaimed is not PROGRAM (F90).
const (
	Program Mode = iota + 1
	Kernel
)

// String returns "PROGRAM", "KERNEL" or "unclaimed".
func (m Mode) String() string { return [...]string{"unclaimed", "PROGRAM", "KERNEL"}[m] }

// Phase is how far initialisation is. It says nothing about mode or resources.
type Phase uint8

// The phases.
const (
	Uninitialised Phase = iota
	Initialising
	Initialised
	Finalised
)

// ModeLatch is the execution mode of one native handle. All methods are safe
// for concurrent use; concurrent claims cannot choose different modes (F94).
type ModeLatch struct {
	d *machine.Driver
	m *machine.Machine
}

// NewModeLatch makes a latch that stands alone.
func NewModeLatch() (*ModeLatch, error) {
	rules, err := machine.Compile(latch())
	if err != nil {
		return nil, err
	}
	w, err := rules.NewWorld(machine.Config{Name: "latch"})
	if err != nil {
		return nil, err
	}
	none := machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })
	d, err := machine.NewDriver(w, machine.DriverConfig{Performer: none})
	return &ModeLatch{d: d, m: rules.Machine("latch")}, err
}

func (l *ModeLatch) ref() machine.Ref { return machine.Ref{Machine: l.m.ID()} }

func (l *ModeLatch) fire(event string, args ...uint64) error {
	_, err := l.d.Fire(context.Background(), l.ref(), l.m.MustEvent(event), args...)
	return err
}

// Claim latches the mode, or confirms it. Error: [ErrModeLatched].
func (l *ModeLatch) Claim(m Mode) error { return l.fire("claim", uint64(m)-1) }

// Latched returns the mode and true, or false while none is claimed.
func (l *ModeLatch) Latched() (Mode, bool) {
	s, _, _ := l.d.State(l.ref())
	return Mode(s), s != 0
}

// Phase returns how far initialisation is.
func (l *ModeLatch) Phase() Phase {
	v, _ := l.d.Fact(l.ref(), l.m.MustFact("phase"))
	return Phase(v)
}

// Retired reports whether finalisation proved that every resource is released.
func (l *ModeLatch) Retired() bool {
	v, _ := l.d.Fact(l.ref(), l.m.MustFact("retired"))
	return v != 0
}

// Begin starts initialising. Errors: [ErrModeUnclaimed], [ErrPhase].
func (l *ModeLatch) Begin() error { return l.fire("begin") }

// Succeed ends initialising. Error: [ErrPhase].
func (l *ModeLatch) Succeed() error { return l.fire("succeed") }

// Fail ends initialising; the claim stays. Error: [ErrPhase].
func (l *ModeLatch) Fail() error { return l.fire("fail") }

// Finalise ends the handle's use. With the cleanup proof a PROGRAM handle may
// begin again. Errors: [ErrPhase], [ErrModeUnclaimed].
func (l *ModeLatch) Finalise(proof bool) error { return l.fire("finalise", machine.BoolWord(proof)) }
