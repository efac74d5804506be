package states

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

func TestOpenAndClose(t *testing.T) {
	f := unopened(t, Config{Slots: 2})
	require.ErrorIs(t, f.lane.Close(ctx), ErrNotInitialised)
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrNotInitialised)
	require.NoError(t, f.lane.Open(ctx))
	require.ErrorIs(t, f.lane.Open(ctx), ErrAlreadyInitialised)
	r, _ := f.launch()
	require.ErrorIs(t, f.lane.Close(ctx), ErrRunLive)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	calls := f.calls()
	require.NoError(t, f.lane.Close(ctx))
	require.Equal(t, []sim.OpKind{
		sim.OpCurrentContext,
		sim.OpDestroyEvent, sim.OpDestroyEvent, sim.OpDestroyStream, sim.OpDestroyStream,
		sim.OpFree, sim.OpFree, sim.OpFree, sim.OpFree,
		sim.OpDestroyStream, sim.OpDestroyStream,
	}, *calls)
	require.ErrorIs(t, f.lane.Close(ctx), ErrFinalized)
	require.ErrorIs(t, f.lane.Open(ctx), ErrFinalized)
	_, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.ErrorIs(t, f.lane.Quarantine(ctx), ErrFinalized)
	f.clean()
}

// A failed initialisation gives back what it made and may be tried again; what
// cannot be given back is owed, and then only closing is left (F53, F64).
func TestOpenFails(t *testing.T) {
	f := unopened(t, Config{}, "CreateStream#2 fail-before")
	err := f.lane.Open(ctx)
	require.ErrorIs(t, err, ErrInitialisation)
	require.ErrorIs(t, err, ErrStreams, "with its cause")
	require.Equal(t, "absent", f.state("environment", 0))
	require.NoError(t, f.lane.Open(ctx))

	f = unopened(t, Config{}, "CreateStream#2 fail-before", "DestroyStream#1 fail-before", "DestroyStream#2 fail-before")
	err = f.lane.Open(ctx)
	require.ErrorIs(t, err, ErrInitialisation)
	require.Equal(t, "cleanup owed", f.state("environment", 0))
	require.NotZero(t, identity_(t, f.lane.Environment()).Incarnation)
	require.ErrorIs(t, f.lane.Open(ctx), ErrCleanupOwed)
	_, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrNotInitialised)
	require.ErrorIs(t, f.lane.Close(ctx), ErrTeardown)
	require.NoError(t, f.lane.Close(ctx))
	require.ErrorIs(t, f.lane.Open(ctx), ErrFinalized)

	f = unopened(t, Config{}, "CurrentContext#1 fail-after")
	require.ErrorIs(t, f.lane.Open(ctx), ErrInitialisation)
	require.Equal(t, "absent", f.state("environment", 0), "half made, and undone")
	require.NoError(t, f.lane.Open(ctx))
}

func TestOpenBorrowed(t *testing.T) {
	f := unopened(t, Config{Borrowed: true})
	require.ErrorIs(t, f.lane.Open(ctx), ErrGenerationRequired)
	f = unopened(t, Config{Generation: 4})
	require.ErrorIs(t, f.lane.Open(ctx), ErrGenerationNotAccepted)
	f = unopened(t, Config{Borrowed: true, Generation: 4})
	f.dev.SetCurrent(0)
	require.ErrorIs(t, f.lane.Open(ctx), ErrNoCurrentContext)
	f.dev.SetCurrent(f.dev.Home())
	require.NoError(t, f.lane.Open(ctx))
	require.Equal(t, EnvironmentIdentity{Process: 1, Incarnation: 1, Generation: 4, Borrowed: true}, identity_(t, f.lane.Environment()))
	r, _ := f.launch()
	require.Equal(t, uint64(4), r.Identity().Generation)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	require.NoError(t, f.lane.Close(ctx))
	f.clean()
}

// The check comes before the claim: a rejected close claimed nothing, and the
// lane goes on (F62).
func TestRejectedCloseKeepsWhatWas(t *testing.T) {
	f := opened(t)
	before := f.bytes()
	f.dev.SetCurrent(f.dev.NewContext(true))
	err := f.lane.Close(ctx)
	require.ErrorIs(t, err, ErrCloseRejected)
	require.ErrorIs(t, err, ErrExecutionContextRefused)
	f.dev.SetCurrent(f.dev.Home())
	f.strike("CurrentContext#1 fail-before")
	err = f.lane.Close(ctx)
	require.ErrorIs(t, err, ErrCloseRejected)
	require.ErrorIs(t, err, ErrContextQuery)
	// closing remembers who last asked it.
	require.Equal(t, f.without("closing", before), f.without("closing", f.bytes()))
	f.launch()
}

// An accepted close that fails keeps its claim, admits nothing, and goes on
// from where it failed (F63).
func TestAcceptedCloseKeepsItsClaim(t *testing.T) {
	f := opened(t, "DestroyStream#1 fail-before", "DestroyStream#3 fail-before")
	err := f.lane.Close(ctx)
	require.ErrorIs(t, err, ErrTeardown)
	require.ErrorIs(t, err, ErrStreams)
	require.Equal(t, "closing", f.state("environment", 0))
	require.Equal(t, "true", f.fact("environment", 0, "closed"))
	before := f.bytes()
	_, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed, "CLOSED is claimed")
	require.Equal(t, before, f.bytes())
	require.ErrorIs(t, f.lane.Close(ctx), ErrTeardown)
	require.NoError(t, f.lane.Close(ctx))
	require.ErrorIs(t, f.lane.Close(ctx), ErrFinalized)
	f.clean()
}

// What was destroyed, although the call failed, is gone: asked again, the
// device says so, and the close goes on.
func TestDestroyedAllTheSame(t *testing.T) {
	f := opened(t, "DestroyEvent#1 fail-after", "DestroyStream#1 fail-after", "Free#1 fail-after")
	r, err := f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: []byte{1}})
	require.NoError(t, err)
	_, err = r.Launch(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	for range 3 {
		require.ErrorIs(t, f.lane.Close(ctx), ErrTeardown)
	}
	require.NoError(t, f.lane.Close(ctx))
	require.Equal(t, "torn down", f.state("environment", 0))
}

// The last step of a close may fail too. What is shut already is not shut
// again.
func TestFailedTeardownOfALane(t *testing.T) {
	f := opened(t)
	s := f.stepping()
	teardown := func(r machine.Result) {
		require.Equal(t, machine.InFlight, s.next("closing"))
		s.settle("environment", r)
		require.Equal(t, machine.Accepted, s.next("closing"))
	}
	failed := machine.Result{Outcome: machine.Failed, Codes: machine.Codes{Code: 507000}}
	s.fire("closing", "start", 1)
	require.Equal(t, machine.InFlight, s.next("closing")) // environment.close
	s.settle("environment", s.context())
	require.Equal(t, machine.Accepted, s.next("closing")) // claimed
	require.Equal(t, machine.Accepted, s.next("closing")) // let_go: the slot's fence
	require.Equal(t, "released", s.state("fence"))
	require.Equal(t, machine.Accepted, s.next("closing")) // let_go: none is left
	require.Equal(t, machine.InFlight, s.next("closing")) // lane.shut
	s.settle("lane", machine.Result{})
	require.Equal(t, machine.Accepted, s.next("closing")) // slots_shut
	teardown(failed)
	require.Equal(t, "cleanup owed", s.state("environment"))
	require.Equal(t, "ready", s.state("closing"))

	s.fire("closing", "start", 1)
	require.Equal(t, machine.Accepted, s.next("closing")) // environment.close: claimed again, without a check
	require.Equal(t, machine.Accepted, s.next("closing")) // claimed
	require.Equal(t, "tearing", s.state("closing"))
	teardown(machine.Result{})
	require.Equal(t, "closed", s.state("closing"))
	require.Zero(t, s.w.Queued())

	// Cut short between its claim and the teardown, with the slots shut.
	s = f.stepping()
	s.fire("closing", "start", 1)
	s.next("closing")
	s.settle("environment", s.context())
	s.next("closing")
	s.next("closing")
	s.next("closing")
	s.next("closing")
	s.settle("lane", machine.Result{})
	s.next("closing")
	require.Equal(t, machine.InFlight, s.next("closing"))
	require.Equal(t, "closing▸teardown", s.state("environment"))
}

// A poisoned lane gives nothing back: not on an unproven path (F132).
func TestUnprovenLaneIsNotClosed(t *testing.T) {
	f := opened(t, "Copy#1 fail-before", "Free#1 fail-before")
	_, err := f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: []byte{1}})
	require.ErrorIs(t, err, ErrPreparationAmbiguous)
	require.Equal(t, "ambiguous", f.state("run", 0))
	calls := f.calls()
	require.ErrorIs(t, f.lane.Close(ctx), ErrUnproven)
	_, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.ErrorIs(t, f.fire("lane", 0, "shut"), ErrRunLive)
	require.Empty(t, *calls)
	require.NoError(t, f.lane.Quarantine(ctx))
	require.ErrorIs(t, f.lane.Close(ctx), ErrUnproven)
	require.Empty(t, *calls)
}

// A quarantine may be declared at any time. Runs under way go on to their end,
// and what they report has somewhere to go.
func TestQuarantineWithRunsUnderWay(t *testing.T) {
	for _, faults := range [][]string{nil, {"SubmitAICPU#1 refuse"}, {"SubmitAICPU#1 kernel-fatal"}} {
		f := opened(t, faults...)
		r := f.prepare()
		_, launched := r.Launch(ctx)
		require.NoError(t, f.lane.Quarantine(ctx))
		require.ErrorIs(t, f.lane.Quarantine(ctx), ErrFinalized)
		_, err := f.lane.Prepare(ctx, work)
		require.ErrorIs(t, err, ErrAdmissionClosed)
		f.poll(r)
		switch err := r.Wait(ctx); {
		case launched != nil:
			require.ErrorIs(t, err, ErrPartial)
		case faults != nil:
			require.ErrorIs(t, err, ErrRunFailed)
		default:
			require.NoError(t, err)
		}
		require.NoError(t, r.Finalize(ctx))
		require.Equal(t, "0", f.fact("lane", 0, "runs"))
		require.ErrorIs(t, f.lane.Close(ctx), ErrUnproven, "only detach is left")
		require.ErrorIs(t, f.lane.Open(ctx), ErrAlreadyInitialised)
	}

	// Declared while a launch, or a preparation, is on its way.
	for _, res := range []machine.Result{{}, {Outcome: machine.Refused}, {Outcome: machine.Failed}} {
		f := opened(t)
		s := f.stepping()
		s.issue("prepare", "start", 1, 1, 0, 0)
		s.settle("prepare", s.context())
		require.Equal(t, machine.Accepted, s.next("prepare"))
		require.Equal(t, machine.InFlight, s.next("prepare"))
		s.fire("lane", "quarantine")
		s.settle("prepare", res)
	}
	f := opened(t)
	f.prepare()
	s := f.stepping()
	s.issue("launch", "start", append(s.runArgs(), s.fact("run", "permit"))...)
	s.settle("launch", s.context())
	require.Equal(t, machine.InFlight, s.next("launch"))
	s.fire("lane", "quarantine")
	s.settle("launch", machine.Result{})
	require.Equal(t, machine.InFlight, s.next("launch"))
	s.settle("launch", machine.Result{Outcome: machine.Failed})
	require.Equal(t, "partial", s.state("run"))
}

// After Detach every handle refuses, and the device is left alone (F66).
func TestDetachedHandlesRefuse(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	token := f.reserve(rc, r)
	f.lane.Detach()
	before := f.bytes()
	calls := f.calls()
	_, err1 := f.lane.Prepare(ctx, work)
	_, err2 := r.Launch(ctx)
	_, err3 := r.Poll(ctx)
	_, err4 := f.lane.Environment().Device(ctx)
	for _, err := range []error{err1, err2, err3, err4, r.Wait(ctx), r.Finalize(ctx), token.Queue(ctx), f.lane.Environment().Check(ctx), f.lane.Open(ctx)} {
		require.ErrorIs(t, err, ErrDetached)
	}
	require.ErrorIs(t, f.lane.Close(ctx), ErrFinalized)
	require.Empty(t, *calls)
	require.Equal(t, before, f.bytes())
	require.NotZero(t, identity_(t, f.lane.Environment()).Incarnation, "storage and identity are kept")
	f.lane.Detach() // it never fails
	f.clean()

	f = unopened(t, Config{})
	f.lane.Detach()
	require.ErrorIs(t, f.lane.Open(ctx), ErrDetached)
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
}

// In a child process nothing is entered, locked or changed, cached answers
// included, and its detach leaves the inherited lane untouched (F54–F56, F160).
func TestForeignProcessLocksNothing(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	token := f.reserve(rc, r)
	before := f.bytes()
	calls := f.calls()
	f.process = 2
	// Whoever holds the lock, as a thread of the parent may have at the fork:
	// if any of these took it, the test would never end.
	f.lane.d.View(func(*machine.World) {
		_, err1 := f.lane.Prepare(ctx, work)
		_, err2 := r.Launch(ctx)
		_, err3 := r.Poll(ctx)
		_, err4 := r.State()
		_, err5 := f.lane.Reserve(ctx, rc, CoreDone, r, CPUStream)
		_, err6 := token.Move()
		_, err7 := f.lane.Environment().Identity()
		_, err8 := f.lane.Environment().State()
		_, err9 := f.lane.Mode().State()
		for i, err := range []error{
			err1, err2, err3, err4, err5, err6, err7, err8, err9,
			r.Wait(ctx), r.Finalize(ctx), f.lane.Open(ctx), f.lane.Close(ctx), f.lane.Quarantine(ctx),
			token.Queue(ctx), token.Commit(ctx), token.Revoke(ctx), token.Release(ctx, CoreStream), token.ReleaseOnQuiescence(ctx), token.Discard(ctx, 0),
			f.lane.Mode().Claim(Program), f.lane.Environment().Check(ctx),
		} {
			require.ErrorIs(t, err, ErrForeignProcess, "operation %d", i)
		}
		f.lane.Detach()
	})
	require.Empty(t, *calls)
	require.Equal(t, before, f.bytes())
	f.process = 1
	require.NoError(t, r.Wait(ctx))
}

// The rows refuse a foreign process too, for whoever gets past the façade.
func TestForeignProcessIsRefusedByRows(t *testing.T) {
	f := opened(t)
	r, _ := f.launch()
	id := []uint64{2, r.id.RunEpoch, r.id.Generation, r.id.Dispatch}
	for m, args := range map[string][]uint64{"prepare": {2, 1, 0, 0}, "poll": id, "drain": id, "finalize": id, "closing": {2}} {
		require.ErrorIs(t, f.fire(m, 0, "start", args...), ErrForeignProcess, m)
	}
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	r = f.prepare()
	require.ErrorIs(t, f.fire("launch", 0, "start", 2, r.id.RunEpoch, r.id.Generation, r.id.Dispatch, r.permit), ErrForeignProcess)
}

// The environment of a lane is shown, not handed out: only the lane tears it
// down, and it guards what that destroys.
func TestEnvironmentOfALane(t *testing.T) {
	f := opened(t)
	e := f.lane.Environment()
	require.Equal(t, "live", stateOf(t, e))
	device, err := e.Device(ctx)
	require.NoError(t, err)
	require.Zero(t, device)
	require.NoError(t, e.Check(ctx))
	f.dev.SetCurrent(0)
	require.ErrorIs(t, e.Check(ctx), ErrExecutionContextRefused)
	_, hands := any(e).(interface{ Close(context.Context) error })
	require.False(t, hands)
}

func TestNewLaneChecksItsConfig(t *testing.T) {
	_, err := NewLane(Config{})
	require.ErrorIs(t, err, ErrNilBackend)
	_, err = NewEnvironment(nil, nil)
	require.ErrorIs(t, err, ErrNilBackend)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for _, c := range []Config{{Timeout: -1}, {Slots: -1}, {Slots: 5000}, {Tokens: -1}} {
		c.Backend = dev
		_, err := NewLane(c)
		require.Error(t, err)
	}
	other, err := machine.Compile(&machine.Definition{
		Name: "other", Pool: "slot", States: []machine.State{{Name: "a"}}, Events: []machine.Event{{Name: "e"}},
		Rows: []machine.Row{{ID: "r", From: "a", Event: "e", Then: []machine.Target{{}}}},
	}, &machine.Definition{
		Name: "another", Pool: "token", States: []machine.State{{Name: "a"}}, Events: []machine.Event{{Name: "e"}},
		Rows: []machine.Row{{ID: "r", From: "a", Event: "e", Then: []machine.Target{{}}}},
	})
	require.NoError(t, err)
	_, err = NewLane(Config{Backend: dev, Rules: other})
	require.ErrorContains(t, err, "no machine")

	defs := Definitions()
	for _, d := range defs {
		for i := range d.Rows {
			if d.Rows[i].Command == "SyncCPU()" {
				d.Rows[i].Command = "Pray()"
			}
		}
	}
	unknown, err := machine.Compile(defs...)
	require.NoError(t, err)
	_, err = NewLane(Config{Backend: dev, Rules: unknown})
	var u *UnknownCommandError
	require.ErrorAs(t, err, &u)
	require.Equal(t, "Pray", u.Command)
}
