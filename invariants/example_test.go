package invariants_test

import (
	"context"
	"fmt"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// A host holds its own lane to the invariants while it runs: the watch is the
// lane's recorder, and hands the records on to another, such as a log.
func ExampleWatch() {
	ctx := context.Background()
	dev, err := sim.New(sim.Config{Kernels: []sim.KernelSpec{{Name: "core", Class: backend.AICore}, {Name: "cpu", Class: backend.AICPU}}})
	check(err)
	config := states.Config{Backend: dev}
	watch, err := invariants.NewWatch(states.Rules(), machine.Config{Pools: config.Pools()})
	check(err)
	config.Recorder = watch
	lane, err := states.NewLane(config)
	check(err)
	check(lane.Open(ctx))
	run, err := lane.Prepare(ctx, states.Work{Core: 1, CPU: 2})
	check(err)
	_, err = run.Launch(ctx)
	check(err)
	check(run.Wait(ctx))
	check(run.Finalize(ctx))
	check(lane.Close(ctx))

	findings, err := watch.Findings()
	check(err)
	fmt.Println(len(findings), "findings")
	for _, s := range watch.Standings() {
		switch s.Invariant.ID {
		case "nothing-freed-in-use", "both-boundaries", "one-release":
			fmt.Println(s.Invariant.ID, s.Verdict)
		}
	}
	// Output:
	// 0 findings
	// nothing-freed-in-use holds
	// both-boundaries holds
	// one-release vacuous
}

// A world of one's own is held to the invariants at any moment.
func ExampleCheck() {
	rules := states.Rules()
	w, err := rules.NewWorld(machine.Config{Pools: states.Config{}.Pools()})
	check(err)
	fmt.Println(len(invariants.Check(w)))
	// Output: 0
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
