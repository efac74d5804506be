package states

import (
	"context"
	"errors"
	"fmt"

	"github.com/runfence/runfence/machine"
)

// performer carries out the commands of the rules.
func (o *Orchestrator) performer(r *machine.Rules) (machine.Performer, error) {
	byName := map[string]func(context.Context, *machine.Command) error{
		"Build": func(ctx context.Context, _ *machine.Command) error {
			return o.graph(ctx)
		},
		"ReleaseResource": func(ctx context.Context, c *machine.Command) error {
			return o.config.Backend.ReleaseResource(untimed(ctx), Group(c.Args[0]), c.Args[1])
		},
		"AllocateDomain": func(ctx context.Context, c *machine.Command) error {
			return o.config.Backend.AllocateDomain(ctx, c.Args[0], int(c.Args[1]))
		},
		"ReleaseDomain": o.releaseDomain,
		"WaitTask":      o.waitTask,
		"CloseWorkers": func(ctx context.Context, _ *machine.Command) error {
			for _, w := range o.config.Workers {
				if err := w.Close(ctx); err != nil && !errors.Is(err, ErrFinalized) {
					return err
				}
			}
			return nil
		},
	}
	var calls []func(context.Context, *machine.Command) error
	for _, name := range r.Calls() {
		f := byName[name]
		if f == nil {
			return nil, &UnknownCommandError{Command: name}
		}
		calls = append(calls, f)
	}
	return machine.PerformerFunc(func(ctx context.Context, c *machine.Command) machine.Result {
		err := calls[c.Call](ctx, c)
		switch {
		case err == nil:
			return machine.Result{}
		case errors.Is(err, errNotOver):
			return machine.Result{Outcome: machine.TimedOut, Codes: codesOf(err)}
		}
		return machine.Result{Outcome: machine.Failed, Accepted: errors.Is(err, ErrDomainRelease), Codes: codesOf(err)}
	}), nil
}

// untimed is a context that is never done, with the values of ctx: none of what
// ends with a deadline may end a release or a fence.
func untimed(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// codesOf finds the return code that an error bears.
func codesOf(err error) machine.Codes {
	var f *machine.FailureError
	if errors.As(err, &f) {
		return machine.Codes{Code: f.Code, Last: f.Code}
	}
	return machine.Codes{}
}

// releaseDomain keeps the error of a release that failed, for everybody who is
// told of it.
func (o *Orchestrator) releaseDomain(ctx context.Context, c *machine.Command) error {
	err := o.config.Backend.ReleaseDomain(untimed(ctx), c.Args[0])
	if err != nil {
		o.mu.Lock()
		o.failures[c.Args[0]] = err
		o.mu.Unlock()
	}
	return err
}

var errNotOver = errors.New("the work is not over")

// waitTask waits for a task that does not report. It is over when it could be
// finalized, which no wait that expired or proved nothing leads to.
func (o *Orchestrator) waitTask(ctx context.Context, c *machine.Command) error {
	o.mu.Lock()
	t := o.tasks[c.Ref]
	o.mu.Unlock()
	err := t.work.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		// That says nothing of the work, though it be over by now.
		return fmt.Errorf("%w: %w", errNotOver, err)
	}
	if ferr := t.work.Finalize(ctx); ferr != nil {
		return fmt.Errorf("%w: %w", errNotOver, errors.Join(err, ferr))
	}
	if err != nil {
		t.waited.Store(&err)
	}
	return err
}
