package states

import (
	"context"
	"errors"
	"fmt"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// Environment is the identity of a device context and its lifecycle, for a
// host without a [Lane]. All methods are safe for concurrent use. Every
// operation refuses a foreign process with [ErrForeignProcess] before anything
// is entered.
type Environment struct{ EnvironmentView }

// EnvironmentView looks at an environment and changes nothing of it. All
// methods are safe for concurrent use.
type EnvironmentView struct {
	d       *machine.Driver
	m       *machine.Machine
	process func() int
	made    int // by which process
}

// admit refuses a foreign process before any lock is taken (F54, F55).
func (e *EnvironmentView) admit() error {
	if p := e.process(); p != e.made {
		return fmt.Errorf("environment was made by process %d, and this is %d: %w", e.made, p, ErrForeignProcess)
	}
	return nil
}

// EnvironmentIdentity says which environment a handle belongs to. It
// associates; it neither notices a reset from outside nor proves that memory
// is one's own (F58).
type EnvironmentIdentity struct {
	Process     uint64
	Incarnation uint64
	Generation  uint64
	Device      int
	Borrowed    bool
}

// NewEnvironment makes an environment that stands alone, for a host without a
// [Lane]. process is as [Config.Process].
func NewEnvironment(b backend.Backend, process func() int) (*Environment, error) {
	rules, err := machine.Compile(environment())
	if err != nil {
		return nil, err
	}
	return NewEnvironmentUnder(rules, b, process)
}

// NewEnvironmentUnder is [NewEnvironment] under other rules, which have the
// machine environment and need no other.
func NewEnvironmentUnder(rules *machine.Rules, b backend.Backend, process func() int) (*Environment, error) {
	if b == nil {
		return nil, ErrNilBackend
	}
	if process == nil {
		process = callingProcess()
	}
	dev, err := newDevice(rules, b, 0, 0)
	if err != nil {
		return nil, err
	}
	w, err := rules.NewWorld(machine.Config{Name: "environment"})
	if err != nil {
		return nil, err
	}
	setApart(w, 0)
	d, err := machine.NewDriver(w, machine.DriverConfig{Performer: dev})
	return &Environment{EnvironmentView{d: d, m: rules.Machine("environment"), process: process, made: process()}}, err
}

func (e *EnvironmentView) fire(ctx context.Context, event string, args ...uint64) (machine.Reply, error) {
	if err := e.admit(); err != nil {
		return machine.Reply{}, err
	}
	return e.d.Fire(ctx, machine.Ref{Machine: e.m.ID()}, e.m.MustEvent(event), append([]uint64{uint64(e.process())}, args...)...)
}

// Create makes an owned context's identity. Errors: [ErrInitialisation],
// [ErrAlreadyInitialised], [ErrCleanupOwed], [ErrFinalized].
func (e *Environment) Create(ctx context.Context, device int) error {
	_, err := e.fire(ctx, "create", uint64(device), 0, 0)
	return err
}

// Borrow adopts the context that is current, under the caller's generation.
// Errors: those of Create, [ErrGenerationRequired], [ErrNoCurrentContext].
func (e *Environment) Borrow(ctx context.Context, device int, generation uint64) error {
	_, err := e.fire(ctx, "create", uint64(device), 1, generation)
	return err
}

// Check validates the current context. Errors: [ErrExecutionContextRefused],
// [ErrContextQuery], [ErrNotInitialised], [ErrCleanupOwed], [ErrClosing],
// [ErrFinalized], [ErrDetached].
func (e *EnvironmentView) Check(ctx context.Context) error {
	_, err := e.fire(ctx, "check")
	return err
}

// Device returns the logical device id. It opts out of the context check
// (F61). Errors: [ErrNotInitialised], [ErrFinalized], [ErrDetached],
// [ErrForeignProcess].
func (e *EnvironmentView) Device(ctx context.Context) (int, error) {
	r, err := e.fire(ctx, "locate")
	return int(r.Value), err
}

// Rollback undoes an initialisation that failed later on; after it
// initialisation may be tried again. If it fails, cleanup is owed, and only
// Close and Detach are left (F64). Errors: [ErrTeardown], [ErrCleanupOwed],
// [ErrAlreadyInitialised] once initialisation was complete,
// [ErrNotInitialised], [ErrClosing], [ErrFinalized], [ErrDetached].
func (e *Environment) Rollback(ctx context.Context) error {
	_, err := e.fire(ctx, "rollback")
	return err
}

// Complete says that everything else initialisation makes is made: from now on
// the environment is closed, not rolled back.
func (e *Environment) Complete(ctx context.Context) error {
	if err := e.admit(); err != nil {
		return err
	}
	_, err := e.d.Fire(ctx, machine.Ref{Machine: e.m.ID()}, e.m.MustEvent("complete"))
	return err
}

// Close checks the context, claims the close and tears down. A rejected claim
// changed nothing; a failed teardown is owed and Close may be tried again.
// Errors: [ErrExecutionContextRefused], [ErrContextQuery], [ErrTeardown],
// [ErrNotInitialised], [ErrFinalized], [ErrDetached].
func (e *Environment) Close(ctx context.Context) error {
	if _, err := e.fire(ctx, "close"); err != nil && !errors.Is(err, ErrClosing) {
		return err
	}
	// Closing already: an earlier Close may have been cut short before its teardown.
	_, err := e.fire(ctx, "teardown")
	return err
}

// Detach gives the environment up without a completed close: identity,
// context and storage are kept for the life of the process (F66).
func (e *Environment) Detach(ctx context.Context) error {
	_, err := e.fire(ctx, "detach")
	return err
}

// Identity returns the identity; zero when there is none. Error:
// [ErrForeignProcess].
func (e *EnvironmentView) Identity() (EnvironmentIdentity, error) {
	if err := e.admit(); err != nil {
		return EnvironmentIdentity{}, err
	}
	var id EnvironmentIdentity
	e.d.View(func(w *machine.World) {
		fact := func(n string) uint64 { v, _ := w.Fact(machine.Ref{Machine: e.m.ID()}, e.m.MustFact(n)); return v }
		id = EnvironmentIdentity{
			Process: fact("process"), Incarnation: fact("incarnation"), Generation: fact("generation"),
			Device: int(fact("device")), Borrowed: fact("policy") == 1,
		}
	})
	return id, nil
}

// State returns the name of the state. Error: [ErrForeignProcess].
func (e *EnvironmentView) State() (string, error) {
	if err := e.admit(); err != nil {
		return "", err
	}
	var s string
	e.d.View(func(w *machine.World) { s = w.StateName(machine.Ref{Machine: e.m.ID()}) })
	return s, nil
}
