package lanetest_test

import (
	"context"
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"github.com/runfence/runfence/invariants/lanetest"
	"github.com/runfence/runfence/states"
)

// A host under test, whatever happens to it: the device does as rapid draws it,
// and the lane is held against the invariants.
func ExampleCheck() {
	ctx := context.Background()
	host := func(c states.Config) { // your code
		lane, err := states.NewLane(c)
		if err != nil || lane.Open(ctx) != nil {
			return
		}
		for range 3 {
			run, err := lane.Prepare(ctx, states.Work{Core: 1, CPU: 2})
			if err != nil {
				break
			}
			if _, err = run.Launch(ctx); err == nil || errors.Is(err, states.ErrPartial) {
				_ = run.Wait(ctx)
			}
			if run.Finalize(ctx) != nil && lane.Recover(ctx) == nil {
				_ = run.Finalize(ctx)
			}
		}
		if lane.Close(ctx) != nil {
			lane.Detach() // given up, in the open
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		lanetest.Check(t, lanetest.Bounds{Slots: 3, Depth: 2, Borrowed: true, Faults: 2}, host)
	})
	fmt.Println("holds:", !t.Failed())
	// Output:
	// holds: true
}

// outside stands for the test that a property is checked in.
type outside struct {
	rapid.TB
	failed bool
}

var t = &outside{}

func (*outside) Helper()                     {}
func (*outside) Name() string                { return "ExampleCheck" }
func (*outside) Logf(string, ...any)         {}
func (o *outside) Errorf(f string, a ...any) { o.failed = true; fmt.Printf(f+"\n", a...) }
func (o *outside) Fatalf(f string, a ...any) { o.Errorf(f, a...) }
func (o *outside) FailNow()                  { o.failed = true }
func (o *outside) Failed() bool              { return o.failed }
