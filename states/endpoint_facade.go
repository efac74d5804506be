package states

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/runfence/runfence/machine"
)

// Endpoint is where tasks are carried out: a worker process, a mailbox to one, a
// remote worker. Who notices that it failed says so once, and every run that has
// a task there is told. All methods are safe for concurrent use.
type Endpoint struct {
	o    *Orchestrator
	ref  machine.Ref
	name string

	// mu is held while a failure is told, so that who is told finds the cause.
	mu    sync.Mutex
	cause error
}

// OpenEndpoint makes an endpoint, in a build or outside of any. The name is for
// messages. Its place is free for another when it has failed.
//
// Errors: [ErrPlaces]; [machine.ErrBusy].
func (o *Orchestrator) OpenEndpoint(ctx context.Context, name string) (*Endpoint, error) {
	ref, err := o.place(o.at.endpoint)
	if err != nil {
		return nil, err
	}
	if _, err := o.d.Fire(ctx, ref, o.at.endpoint.MustEvent("open")); err != nil {
		o.vacate(ref)
		return nil, err
	}
	return &Endpoint{o: o, ref: ref, name: name}, nil
}

// AddTask gives the run that is being built a task that is carried out here. It
// reports its end with Done, or is ended by the endpoint's failure, whichever
// comes first.
//
// Errors: [ErrPlaces]; [ErrNotBuilding]; [ErrEndpointFailed].
func (e *Endpoint) AddTask(ctx context.Context, name string) (*Task, error) {
	t, err := e.o.addTask(ctx, &Task{name: name, endpoint: e}, e.o.at.addOn, e.ref.Pack())
	if errors.Is(err, machine.ErrStale) {
		return nil, fmt.Errorf("%w: %w", ErrEndpointFailed, err)
	}
	return t, err
}

// Fail says that the endpoint failed, and why. Each task that is under way
// there has failed with it: its run is told, as if the task had reported it, and
// a report that comes later is refused with [ErrTaskOver]. Tasks that are over,
// or elsewhere, are as they were. When Fail returns, all are told: there is
// nothing to wait for in that. Only the first failure counts.
//
// Errors: [machine.ErrReentrant] from inside of a backend's call.
func (e *Endpoint) Fail(ctx context.Context, cause error) error {
	if cause == nil {
		cause = ErrEndpointFailed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := e.o.d.Fire(ctx, e.ref, e.o.at.fail, machine.CodeWord(codesOf(cause).Code))
	if outlived(err) {
		return nil
	}
	if err == nil && e.cause == nil {
		e.cause = cause
	}
	if err == nil {
		e.o.recycle()
	}
	return err
}

func (e *Endpoint) why() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}
