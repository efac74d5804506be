package states_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/states"
)

// printer is a resource backend that says what it is asked for.
type printer struct{}

func (printer) ReleaseResource(_ context.Context, _ states.Group, key uint64) error {
	fmt.Println("give object", key, "back")
	return nil
}

func (printer) AllocateDomain(_ context.Context, a uint64, ranks int) error {
	fmt.Println("make domain", a, "of", ranks, "ranks")
	return nil
}

func (printer) ReleaseDomain(_ context.Context, a uint64) error {
	fmt.Println("give domain", a, "back")
	return nil
}

// A host with an orchestrator above a chip worker: the worker's run is a task of
// the orchestrator's, and the domain is the run's, and goes with it.
func ExampleOrchestrator() {
	device, err := sim.New(sim.Config{Kernels: kernels})
	check(err)
	worker, err := states.NewChipWorker(states.WorkerConfig{Config: states.Config{Backend: device}, Mode: states.Program})
	check(err)
	check(worker.Init(ctx))
	o, err := states.NewOrchestrator(states.OrchestratorConfig{
		Backend: printer{}, Workers: []states.Closer{worker}, Budget: time.Minute,
	})
	check(err)

	var domain *states.Domain
	run, err := o.Submit(ctx, func(ctx context.Context) (err error) { // all that is made in here is the run's
		if domain, err = o.AllocateDomain(ctx, 2); err != nil {
			return err
		}
		below, err := worker.Prepare(ctx, states.Work{Core: 1, CPU: 2})
		if err != nil {
			return err
		}
		_, err = o.Attach(ctx, "on the chip", below) // first, so that it is finalized whatever comes
		_, lerr := below.Launch(ctx)
		return errors.Join(err, lerr)
	})
	check(err)
	fmt.Println("released:", domain.Release(ctx), "freed:", domain.Freed()) // put off: the run may use it
	fmt.Println("run:", run.Wait(ctx), "freed:", domain.Freed())
	fmt.Println("close:", o.Close(ctx)) // the worker too
	// Output:
	// make domain 1 of 2 ranks
	// released: <nil> freed: false
	// give domain 1 back
	// run: <nil> freed: true
	// close: <nil>
}

// Tasks that are carried out elsewhere report by themselves. When the process
// that carries them out is gone, their run is told.
func ExampleEndpoint_Fail() {
	o, err := states.NewOrchestrator(states.OrchestratorConfig{Backend: printer{}})
	check(err)
	worker, err := o.OpenEndpoint(ctx, "worker 3")
	check(err)

	var done, lost *states.Task
	run, err := o.Submit(ctx, func(ctx context.Context) (err error) {
		if _, err = o.Charge(ctx, states.HostBuffer, 7); err != nil {
			return err
		}
		if done, err = worker.AddTask(ctx, "gather"); err != nil {
			return err
		}
		lost, err = worker.AddTask(ctx, "reduce")
		return err
	})
	check(err)
	check(done.Done(ctx, nil))
	check(worker.Fail(ctx, errors.New("killed"))) // by whoever watches the process
	fmt.Println("late report:", errors.Is(lost.Done(ctx, nil), states.ErrTaskOver))
	fmt.Println("run:", run.Wait(ctx))
	fmt.Println("close:", o.Close(ctx))
	// Output:
	// late report: true
	// give object 7 back
	// run: task reduce failed with its endpoint worker 3: killed
	// close: <nil>
}
