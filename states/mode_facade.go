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

// String returns "PROGRAM", "KERNEL", or "unclaimed" for anything else.
func (m Mode) String() string {
	switch m {
	case Program:
		return "PROGRAM"
	case Kernel:
		return "KERNEL"
	}
	return "unclaimed"
}

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
// The latch of a [Lane] refuses a foreign process with [ErrForeignProcess]
// before any lock is taken, what it remembers included (F55).
type ModeLatch struct {
	d     *machine.Driver
	m     *machine.Machine
	admit func() error
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
	return &ModeLatch{d: d, m: rules.Machine("latch"), admit: func() error { return nil }}, err
}

func (l *ModeLatch) ref() machine.Ref { return machine.Ref{Machine: l.m.ID()} }

func (l *ModeLatch) fire(event string, args ...uint64) error {
	if err := l.admit(); err != nil {
		return err
	}
	_, err := l.d.Fire(context.Background(), l.ref(), l.m.MustEvent(event), args...)
	return err
}

// Claim latches the mode, or confirms it. Errors: [ErrModeLatched],
// [machine.ErrBadArgument] for a mode that is none.
func (l *ModeLatch) Claim(m Mode) error { return l.fire("claim", uint64(m)-1) }

// LatchState is what a [ModeLatch] remembers: three facts, none of which
// implies another (F91).
type LatchState struct {
	// Mode is 0 while none is claimed.
	Mode Mode
	// Phase is how far initialisation is.
	Phase Phase
	// Retired: finalisation proved that every resource is released.
	Retired bool
}

// State returns what the latch remembers, at one instant. Error:
// [ErrForeignProcess], for the latch of a lane.
func (l *ModeLatch) State() (LatchState, error) {
	if err := l.admit(); err != nil {
		return LatchState{}, err
	}
	var s LatchState
	l.d.View(func(w *machine.World) {
		mode, _, _ := w.State(l.ref())
		phase, _ := w.Fact(l.ref(), l.m.MustFact("phase"))
		retired, _ := w.Fact(l.ref(), l.m.MustFact("retired"))
		s = LatchState{Mode: Mode(mode), Phase: Phase(phase), Retired: retired != 0}
	})
	return s, nil
}

// Begin starts initialising. Errors: [ErrModeUnclaimed], [ErrPhase].
func (l *ModeLatch) Begin() error { return l.fire("begin") }

// Succeed ends initialising. Errors: [ErrModeUnclaimed], [ErrPhase].
func (l *ModeLatch) Succeed() error { return l.fire("succeed") }

// Fail ends initialising; the claim stays. Errors: [ErrModeUnclaimed], [ErrPhase].
func (l *ModeLatch) Fail() error { return l.fire("fail") }

// Finalise ends the handle's use. With the cleanup proof a PROGRAM handle may
// begin again. Errors: [ErrPhase], [ErrModeUnclaimed].
func (l *ModeLatch) Finalise(proof bool) error { return l.fire("finalise", machine.BoolWord(proof)) }
