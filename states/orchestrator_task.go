package states

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/runfence/runfence/machine"
)

// Task is a piece of a run's work. All methods are safe for concurrent use.
type Task struct {
	o        *Orchestrator
	ref      machine.Ref
	name     string
	work     Pending   // of one that is waited for, or nil
	endpoint *Endpoint // where it is carried out, or nil

	// mu is held while the end is reported, so that whoever is told of it finds
	// the error of the report that counted.
	mu       sync.Mutex
	reported error
	waited   atomic.Pointer[error] // what waiting for the work brought
}

// AddTask gives the run that is being built a task, which reports its end with
// Done. The name is for messages. Errors: [ErrNotBuilding]; [ErrPlaces].
func (o *Orchestrator) AddTask(ctx context.Context, name string) (*Task, error) {
	return o.addTask(ctx, &Task{name: name}, o.at.add, machine.BoolWord(false))
}

// Attach gives the run that is being built a task that does not report: who
// waits for the run waits for the work, and finalizes it. Errors: as AddTask.
func (o *Orchestrator) Attach(ctx context.Context, name string, w Pending) (*Task, error) {
	return o.addTask(ctx, &Task{name: name, work: w}, o.at.add, machine.BoolWord(true))
}

func (o *Orchestrator) addTask(ctx context.Context, t *Task, event machine.EventID, arg uint64) (*Task, error) {
	var err error
	if t.ref, err = o.place(o.at.task); err != nil {
		return nil, err
	}
	t.o = o
	o.mu.Lock()
	o.tasks[t.ref] = t
	o.mu.Unlock()
	if _, err := o.d.Fire(ctx, t.ref, event, arg); err != nil {
		o.mu.Lock()
		delete(o.tasks, t.ref)
		o.mu.Unlock()
		o.vacate(t.ref)
		return nil, err
	}
	return t, nil
}

// Done reports the task's end to the run that it is of, with its error if it
// failed. Errors: [ErrTaskOver] if it is over, by a report or by the failure of
// its endpoint.
func (t *Task) Done(ctx context.Context, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ferr := t.o.d.Fire(ctx, t.ref, t.o.at.done, machine.BoolWord(err != nil), machine.CodeWord(codesOf(err).Code))
	switch {
	case ferr == nil:
		t.reported = err
	case errors.Is(ferr, machine.ErrStale):
		return fmt.Errorf("%w: %w", ErrTaskOver, ferr)
	}
	return ferr
}

// failure words the failure of the run whose first error is this task's.
func (t *Task) failure(rules error) *RunError {
	e := &RunError{Task: t.name, rules: rules}
	if lost, _ := t.o.d.Fact(t.ref, t.o.at.task.MustFact("lost")); lost != 0 {
		e.Endpoint, e.Cause, e.rules = t.endpoint.name, t.endpoint.why(), errors.Join(rules, ErrEndpointFailed)
		return e
	}
	if err := t.waited.Load(); err != nil {
		e.Cause = *err
		return e
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Cause = t.reported
	return e
}
