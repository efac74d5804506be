package states_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/states"
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// kernels are the images that the simulated device knows: 1 is for AICore, 2
// for the AICPU.
var kernels = []sim.KernelSpec{
	{Class: backend.AICore, Duration: 40 * time.Microsecond},
	{Class: backend.AICPU, Duration: 50 * time.Microsecond},
}

// host is some host's code: it runs work once, as far as it gets.
func host(lane *states.Lane) error {
	run, err := lane.Prepare(ctx, states.Work{Core: 1, CPU: 2})
	if err != nil {
		return err
	}
	if _, err = run.Launch(ctx); err == nil || errors.Is(err, states.ErrPartial) {
		err = run.Wait(ctx)
	}
	return errors.Join(err, run.Finalize(ctx))
}

// A host that embeds the library: a lane on its device, and a run on the lane.
func ExampleLane() {
	device, err := sim.New(sim.Config{Kernels: kernels}) // or any backend.Backend of yours
	check(err)
	lane, err := states.NewLane(states.Config{Backend: device, Timeout: time.Second})
	check(err)
	check(lane.Open(ctx))

	run, err := lane.Prepare(ctx, states.Work{Core: 1, CPU: 2, Args: []byte("for both kernels")})
	check(err)
	_, err = run.Launch(ctx)
	check(err) // enqueued, not done

	status, err := run.Poll(ctx)
	check(err)
	fmt.Println("poll:", status)
	fmt.Println("too early:", errors.Is(run.Finalize(ctx), states.ErrUnproven))
	fmt.Println("wait:", run.Wait(ctx)) // nil: over, and the device reports no fault
	fmt.Println("finalize:", run.Finalize(ctx))
	fmt.Println("close:", lane.Close(ctx))
	// Output:
	// poll: not ready
	// too early: true
	// wait: <nil>
	// finalize: <nil>
	// close: <nil>
}

// What an error carries, and how a host tells one from another.
func ExampleRun_Launch_partial() {
	fault, err := sim.ParseFault("SubmitAICPU#1 fail-after 507899")
	check(err)
	device, err := sim.New(sim.Config{Kernels: kernels, Plan: []sim.Fault{fault}})
	check(err)
	lane, err := states.NewLane(states.Config{Backend: device, Timeout: time.Second})
	check(err)
	check(lane.Open(ctx))
	run, err := lane.Prepare(ctx, states.Work{Core: 1, CPU: 2})
	check(err)

	_, err = run.Launch(ctx)
	var failure *machine.FailureError
	if errors.Is(err, states.ErrPartial) && errors.As(err, &failure) {
		fmt.Println("launch:", backend.Code(failure.Code))
	}
	_, err = lane.Prepare(ctx, states.Work{Core: 1, CPU: 2})
	fmt.Println("admission closed:", errors.Is(err, states.ErrAdmissionClosed))
	fmt.Println("proven over:", errors.Is(run.Wait(ctx), states.ErrPartial))
	fmt.Println("finalize:", run.Finalize(ctx))
	fmt.Println("open again:", host(lane))
	// Output:
	// launch: 507899 (ACL_ERROR_RT_DRV_INTERNAL_ERROR)
	// admission closed: true
	// proven over: true
	// finalize: <nil>
	// open again: <nil>
}

// A property of the host above: whichever call fails, in whichever way, it
// never misuses the device.
func Example_property() {
	rapid.Check(t, func(t *rapid.T) {
		device, err := sim.New(sim.Config{Kernels: kernels, Plan: []sim.Fault{{
			Op:   rapid.SampledFrom([]sim.OpKind{sim.OpSubmitAICore, sim.OpRecordEvent, sim.OpSubmitAICPU, sim.OpWaitEvent}).Draw(t, "call"),
			Nth:  rapid.Uint32Range(1, 4).Draw(t, "which"),
			Kind: rapid.SampledFrom([]sim.FaultKind{sim.Refuse, sim.FailBefore, sim.FailAfter, sim.PanicAfter}).Draw(t, "fault"),
		}}})
		check(err)
		lane, err := states.NewLane(states.Config{Backend: device, Timeout: time.Second})
		check(err)
		check(lane.Open(ctx))
		for range 3 {
			_ = host(lane) // it may fail, but not misuse the device
		}
		if misuse := device.Violations(); len(misuse) > 0 {
			t.Fatalf("%v", misuse)
		}
	})
	fmt.Println("holds:", !t.Failed())
	// Output:
	// holds: true
}

// A log of what a lane did, and its replay by the same rules without a device.
func Example_replay() {
	device, err := sim.New(sim.Config{Kernels: kernels})
	check(err)
	var file bytes.Buffer // or an *os.File
	log, err := translog.NewWriter(&file, states.Rules(), translog.Options{Format: translog.Binary})
	check(err)
	config := states.Config{Backend: device, Name: "lane 0"}
	config.Recorder = log.World(config.Name, config.Pools(), 0)
	lane, err := states.NewLane(config)
	check(err)
	check(lane.Open(ctx))
	check(host(lane))
	check(log.Close())

	result, err := replay.Run(bytes.NewReader(file.Bytes()), states.Rules(), replay.Options{})
	check(err) // a *replay.Divergence says where log and rules part
	fmt.Println("whole:", result.Closed)
	for _, i := range result.Worlds[0].Instances() {
		if !i.Untouched {
			fmt.Println(i.Name, "is", i.State)
		}
	}
	// Output:
	// whole: true
	// environment is live
	// lane is open
	// run[0]~1 is idle
	// fence[0] is idle
	// opening is open
	// prepare[0] is ready
	// launch[0] is idle
	// drain[0] is ready
	// finalize[0] is ready
	// region[0] is initialised
	// health is trusted
	// watched[0] is kept
	// watched[1] is kept
}

// outside stands for the test that a property is checked in.
type outside struct {
	rapid.TB
	failed bool
}

var t = &outside{}

func (*outside) Helper()                     {}
func (*outside) Name() string                { return "Example_property" }
func (*outside) Logf(string, ...any)         {}
func (o *outside) Errorf(f string, a ...any) { o.failed = true; fmt.Printf(f+"\n", a...) }
func (o *outside) Fatalf(f string, a ...any) { o.Errorf(f, a...) }
func (o *outside) FailNow()                  { o.failed = true }
func (o *outside) Failed() bool              { return o.failed }
