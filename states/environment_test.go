package states

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// alone makes an environment on a simulated device, without a lane.
func alone(t *testing.T, c sim.Config, faults ...string) (*sim.Device, *Environment) {
	t.Helper()
	c.Plan = plan(t, faults...)
	dev, err := sim.New(c)
	require.NoError(t, err)
	e, err := NewEnvironment(dev, nil)
	require.NoError(t, err)
	return dev, e
}

func identity_(t *testing.T, e *EnvironmentView) EnvironmentIdentity {
	t.Helper()
	id, err := e.Identity()
	require.NoError(t, err)
	return id
}

func stateOf(t *testing.T, e *EnvironmentView) string {
	t.Helper()
	s, err := e.State()
	require.NoError(t, err)
	return s
}

func TestEnvironmentIdentity(t *testing.T) {
	_, owned := alone(t, sim.Config{Device: 3})
	require.Zero(t, identity_(t, &owned.EnvironmentView))
	require.NoError(t, owned.Create(ctx, 3))
	id := identity_(t, &owned.EnvironmentView)
	require.Equal(t, EnvironmentIdentity{Process: uint64(os.Getpid()), Incarnation: id.Incarnation, Generation: id.Generation, Device: 3}, id)
	require.NotZero(t, id.Incarnation)
	require.NotZero(t, id.Generation, "F52: an owned generation belongs to its incarnation")

	_, borrowed := alone(t, sim.Config{Borrowed: true})
	require.NoError(t, borrowed.Borrow(ctx, 0, 77))
	require.Equal(t, uint64(77), identity_(t, &borrowed.EnvironmentView).Generation)
	require.True(t, identity_(t, &borrowed.EnvironmentView).Borrowed)

	require.NoError(t, owned.Close(ctx))
	require.Zero(t, identity_(t, &owned.EnvironmentView), "it ends with a successful teardown")
}

func TestIncarnationsNeverRepeat(t *testing.T) {
	_, other := alone(t, sim.Config{})
	require.NoError(t, other.Create(ctx, 0))
	_, e := alone(t, sim.Config{})
	seen := map[EnvironmentIdentity]bool{identity_(t, &other.EnvironmentView): true}
	for range 3 {
		require.NoError(t, e.Create(ctx, 0))
		id := identity_(t, &e.EnvironmentView)
		require.False(t, seen[id])
		seen[id] = true
		require.NoError(t, e.Rollback(ctx))
	}
}

func TestGenerationOfEachPolicy(t *testing.T) {
	_, e := alone(t, sim.Config{Borrowed: true})
	require.ErrorIs(t, e.Borrow(ctx, 0, 0), ErrGenerationRequired)
	_, err := e.fire(ctx, "create", 0, 0, 5)
	require.ErrorIs(t, err, ErrGenerationNotAccepted)
	require.Equal(t, "absent", stateOf(t, &e.EnvironmentView), "a refusal changes nothing")
}

func TestBorrowingNeedsACurrentContext(t *testing.T) {
	dev, e := alone(t, sim.Config{Borrowed: true})
	dev.SetCurrent(0)
	require.ErrorIs(t, e.Borrow(ctx, 0, 1), ErrNoCurrentContext)
	require.Equal(t, "absent", stateOf(t, &e.EnvironmentView))
	dev.SetCurrent(dev.Home())
	require.NoError(t, dev.Inject(plan(t, "CurrentContext#1 fail-after 4242")[0]))
	err := e.Borrow(ctx, 0, 1)
	require.ErrorIs(t, err, ErrInitialisation)
	require.Equal(t, []int32{4242}, codes(err))
	require.Equal(t, "absent", stateOf(t, &e.EnvironmentView), "borrowing makes nothing, so its failure leaves nothing")
	require.NoError(t, e.Borrow(ctx, 0, 1))
}

func TestOwningNeedsACurrentContext(t *testing.T) {
	dev, e := alone(t, sim.Config{})
	dev.SetCurrent(0)
	require.ErrorIs(t, e.Create(ctx, 0), ErrNoCurrentContext)
	require.Equal(t, "absent", stateOf(t, &e.EnvironmentView))
}

func TestCreateOnAnotherDeviceTouchesNothing(t *testing.T) {
	_, e := alone(t, sim.Config{Device: 1})
	require.ErrorIs(t, e.Create(ctx, 2), ErrInitialisation)
	require.Equal(t, "absent", stateOf(t, &e.EnvironmentView))
}

func TestHalfMadeEnvironmentKeepsItsIdentity(t *testing.T) {
	_, e := alone(t, sim.Config{}, "CurrentContext#1 fail-after")
	require.ErrorIs(t, e.Create(ctx, 0), ErrInitialisation)
	require.Equal(t, "half made", stateOf(t, &e.EnvironmentView))
	require.NotZero(t, identity_(t, &e.EnvironmentView).Incarnation)
	require.ErrorIs(t, e.Create(ctx, 0), ErrCleanupOwed)
	require.ErrorIs(t, e.Check(ctx), ErrCleanupOwed)
	require.NoError(t, e.Rollback(ctx))
	require.NoError(t, e.Create(ctx, 0), "undone, it may be tried again")
}

// performer answers each call of an environment by name.
func performer(f func(call string) machine.Result) machine.Performer {
	rules, err := machine.Compile(environment())
	if err != nil {
		panic(err)
	}
	return machine.PerformerFunc(func(_ context.Context, c *machine.Command) machine.Result { return f(rules.CallName(c.Call)) })
}

// scripted makes an environment whose commands are answered by f.
func scripted(t *testing.T, f func(call string) machine.Result) *Environment {
	t.Helper()
	rules, err := machine.Compile(environment())
	require.NoError(t, err)
	w, err := rules.NewWorld(machine.Config{})
	require.NoError(t, err)
	d, err := machine.NewDriver(w, machine.DriverConfig{Performer: performer(f)})
	require.NoError(t, err)
	one := func() int { return 1 }
	return &Environment{EnvironmentView{d: d, m: rules.Machine("environment"), process: one, made: 1}}
}

func TestFailedTeardownKeepsIdentityAndDebt(t *testing.T) {
	fails := true
	e := scripted(t, func(call string) machine.Result {
		if call == "Teardown" && fails {
			return machine.Result{Outcome: machine.Failed, Codes: machine.Codes{Code: int32(backend.InternalError)}}
		}
		return machine.Result{Value: 9}
	})
	require.NoError(t, e.Create(ctx, 0))
	require.NoError(t, e.Complete(ctx))
	id := identity_(t, &e.EnvironmentView)
	for range 2 {
		err := e.Close(ctx)
		require.ErrorIs(t, err, ErrTeardown)
		var failure *machine.FailureError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, int32(backend.InternalError), failure.Code)
		require.Equal(t, "cleanup owed", stateOf(t, &e.EnvironmentView))
		require.Equal(t, id, identity_(t, &e.EnvironmentView))
		require.ErrorIs(t, e.Create(ctx, 0), ErrCleanupOwed)
		require.ErrorIs(t, e.Check(ctx), ErrCleanupOwed)
		device, err := e.Device(ctx)
		require.NoError(t, err)
		require.Zero(t, device)
	}
	fails = false
	require.NoError(t, e.Close(ctx))
	require.ErrorIs(t, e.Close(ctx), ErrFinalized)
	require.ErrorIs(t, e.Create(ctx, 0), ErrFinalized)
	require.ErrorIs(t, e.Rollback(ctx), ErrFinalized)
	_, err := e.Device(ctx)
	require.ErrorIs(t, err, ErrFinalized)
}

func TestFailedRollbackLeavesOnlyClose(t *testing.T) {
	fails := true
	e := scripted(t, func(call string) machine.Result {
		if call == "Teardown" && fails {
			return machine.Result{Outcome: machine.Panicked}
		}
		return machine.Result{Value: 9}
	})
	require.ErrorIs(t, e.Rollback(ctx), ErrNotInitialised)
	require.NoError(t, e.Create(ctx, 0))
	require.ErrorIs(t, e.Rollback(ctx), ErrTeardown)
	require.ErrorIs(t, e.Rollback(ctx), ErrCleanupOwed)
	require.ErrorIs(t, e.Create(ctx, 0), ErrCleanupOwed)
	fails = false
	require.NoError(t, e.Close(ctx))
	require.ErrorIs(t, e.Create(ctx, 0), ErrFinalized)
}

// What is initialised is closed, with a close's checks, and not rolled back.
func TestRollbackEndsWithInitialisation(t *testing.T) {
	dev, e := alone(t, sim.Config{})
	require.NoError(t, e.Create(ctx, 0))
	require.NoError(t, e.Complete(ctx))
	require.ErrorIs(t, e.Rollback(ctx), ErrAlreadyInitialised)
	dev.SetCurrent(dev.NewContext(true))
	require.ErrorIs(t, e.Close(ctx), ErrExecutionContextRefused)
	require.Equal(t, "live", stateOf(t, &e.EnvironmentView), "a rejected claim keeps what was")
	dev.SetCurrent(dev.Home())
	require.NoError(t, e.Close(ctx))
}

func TestCheckComparesContexts(t *testing.T) {
	dev, e := alone(t, sim.Config{Device: 5})
	require.ErrorIs(t, e.Check(ctx), ErrNotInitialised)
	require.NoError(t, e.Create(ctx, 5))
	require.NoError(t, e.Check(ctx))
	for _, c := range []backend.Context{0, dev.NewContext(true)} {
		dev.SetCurrent(c)
		require.ErrorIs(t, e.Check(ctx), ErrExecutionContextRefused)
		device, err := e.Device(ctx)
		require.NoError(t, err, "asking for the device opts out")
		require.Equal(t, 5, device)
	}
	dev.SetCurrent(dev.Home())
	require.NoError(t, e.Check(ctx))
	require.NoError(t, dev.Inject(plan(t, "CurrentContext#1 fail-before 507899")[0]))
	require.ErrorIs(t, e.Check(ctx), ErrContextQuery)
}

func TestDetachKeepsWhatItHas(t *testing.T) {
	_, e := alone(t, sim.Config{})
	require.ErrorIs(t, e.Detach(ctx), ErrNotInitialised)
	require.NoError(t, e.Create(ctx, 0))
	id := identity_(t, &e.EnvironmentView)
	require.NoError(t, e.Detach(ctx))
	require.Equal(t, id, identity_(t, &e.EnvironmentView))
	for _, err := range []error{e.Check(ctx), e.Close(ctx), e.Rollback(ctx), e.Create(ctx, 0), e.Detach(ctx)} {
		require.ErrorIs(t, err, ErrDetached)
	}
	_, err := e.Device(ctx)
	require.ErrorIs(t, err, ErrDetached)
}

// A teardown that was never reached, because the close was cut short after its
// claim, is not lost: closing again does it.
func TestCloseGoesOnFromItsClaim(t *testing.T) {
	_, e := alone(t, sim.Config{})
	require.NoError(t, e.Create(ctx, 0))
	_, err := e.fire(ctx, "close")
	require.NoError(t, err)
	require.Equal(t, "closing", stateOf(t, &e.EnvironmentView))
	require.ErrorIs(t, e.Check(ctx), ErrClosing)
	require.ErrorIs(t, e.Create(ctx, 0), ErrClosing)
	require.ErrorIs(t, e.Rollback(ctx), ErrClosing)
	require.NoError(t, e.Close(ctx))
	require.Equal(t, "torn down", stateOf(t, &e.EnvironmentView))
}

// Of several that close at a time, one tears down.
func TestOneCloserTearsDown(t *testing.T) {
	teardowns := 0
	e := scripted(t, func(call string) machine.Result {
		if call == "Teardown" {
			teardowns++
		}
		return machine.Result{Value: 9}
	})
	require.NoError(t, e.Create(ctx, 0))
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = e.Close(ctx) })
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else {
			require.ErrorIs(t, err, ErrFinalized)
		}
	}
	require.Equal(t, 1, done)
	require.Equal(t, 1, teardowns)
}

func TestForeignProcessEntersNothing(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	here := 1
	e, err := NewEnvironment(dev, func() int { return here })
	require.NoError(t, err)
	require.NoError(t, e.Create(ctx, 0))
	here = 2
	calls := 0
	dev.Trace(func(sim.TraceEvent) { calls++ })
	// Whoever holds the lock, as a thread of the parent may have at the fork:
	// if any of these took it, the test would never end.
	e.d.View(func(*machine.World) {
		_, err1 := e.Identity()
		_, err2 := e.State()
		_, err3 := e.Device(ctx)
		for _, err := range []error{e.Create(ctx, 0), e.Borrow(ctx, 0, 1), e.Check(ctx), e.Complete(ctx), e.Rollback(ctx), e.Close(ctx), e.Detach(ctx), err1, err2, err3} {
			require.ErrorIs(t, err, ErrForeignProcess)
		}
	})
	require.Zero(t, calls)
	// The rows say so too, for whoever gets past the façade.
	for _, event := range []string{"rollback", "check", "locate", "close", "detach"} {
		_, err := e.d.Fire(ctx, e.d.Ref(e.m.ID(), 0), e.m.MustEvent(event), 2)
		require.ErrorIs(t, err, ErrForeignProcess, event)
	}
	here = 1
	require.Equal(t, "live", stateOf(t, &e.EnvironmentView))
	_, err = e.fire(ctx, "close")
	require.NoError(t, err)
	_, err = e.d.Fire(ctx, e.d.Ref(e.m.ID(), 0), e.m.MustEvent("teardown"), 2)
	require.ErrorIs(t, err, ErrForeignProcess)
}
