package states_test

import (
	"context"
	"errors"
	"fmt"

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

// What is made while a run's graph is built is that run's, and goes with it,
// although a task of it fails.
func ExampleOrchestrator() {
	ctx := context.Background()
	o, err := states.NewOrchestrator(states.OrchestratorConfig{Backend: printer{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var job *states.Task
	var domain *states.Domain
	run, err := o.Submit(ctx, func(ctx context.Context) (err error) {
		if domain, err = o.AllocateDomain(ctx, 2); err != nil {
			return err
		}
		if _, err = o.Charge(ctx, states.HostBuffer, 7); err != nil {
			return err
		}
		job, err = o.AddTask(ctx, "job")
		return err
	})
	fmt.Println("submitted:", err)
	fmt.Println("released:", domain.Release(ctx), "and freed:", domain.Freed()) // put off: the job may use it
	_ = job.Done(ctx, errors.New("no luck"))
	fmt.Println("run:", run.Wait(ctx))
	fmt.Println("freed:", domain.Freed())
	_, err = o.AllocateDomain(ctx, 2)
	fmt.Println("outside of a build:", errors.Is(err, states.ErrNotBuilding))
	fmt.Println("closed:", o.Close(ctx))
	// Output:
	// make domain 1 of 2 ranks
	// submitted: <nil>
	// released: <nil> and freed: false
	// give domain 1 back
	// give object 7 back
	// run: task job failed: no luck
	// freed: true
	// outside of a build: true
	// closed: <nil>
}
