package states

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// A run's end releases what it owns, and nothing of another run.
func TestRunReleasesOnlyItsOwn(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	var first, second *Domain
	h := o.submit(func() {
		first = o.domain()
		for g := SlotReference; g <= HostBuffer; g++ {
			require.NoError(t, dropped(o.Charge(ctx, g, 7)))
		}
	})
	require.Empty(t, o.h.released)
	require.NoError(t, h.Wait(ctx))
	require.True(t, first.Freed())
	require.ElementsMatch(t, []object{{SlotReference, 7}, {Region, 7}, {HostBuffer, 7}}, o.h.released)

	o.h.released = nil
	h2 := o.submit(func() {
		second = o.domain()
		require.NoError(t, dropped(o.Charge(ctx, Region, 7)), "it is nobody's any more")
	})
	require.NoError(t, h.Wait(ctx), "the outcome is kept")
	require.NoError(t, first.Release(ctx))
	require.False(t, second.Freed(), "another run owns it")
	require.Empty(t, o.h.released)
	require.NoError(t, h2.Wait(ctx))
	require.Equal(t, []object{{Region, 7}}, o.h.released)
	require.NoError(t, o.Close(ctx))
	require.Equal(t, 1, o.h.times(first))
	require.Equal(t, 1, o.h.times(second))
}

func dropped[T any](_ T, err error) error { return err }

// Allocation outside of a build is refused, after what can be said without a run.
func TestAllocationOutsideABuild(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{Level: 2})
	require.ErrorIs(t, dropped(o.AllocateDomain(ctx, 0)), ErrDomainRanks)
	require.ErrorIs(t, dropped(o.AllocateDomain(ctx, 2)), ErrLevel)
	o = newOrch(t, OrchestratorConfig{})
	require.ErrorIs(t, dropped(o.AllocateDomain(ctx, 0)), ErrDomainRanks)
	require.ErrorIs(t, dropped(o.AllocateDomain(ctx, 2)), ErrNotBuilding)
	require.ErrorIs(t, dropped(o.Charge(ctx, Region, 0)), ErrZeroIdentity)
	require.ErrorIs(t, dropped(o.Charge(ctx, Region, 1)), ErrNotBuilding)
	require.ErrorIs(t, dropped(o.AddTask(ctx, "t")), ErrNotBuilding)
	o.submit(func() {
		for range 16 { // the refusals took no place
			o.domain()
		}
		require.ErrorIs(t, dropped(o.AllocateDomain(ctx, 2)), ErrPlaces)
	})
	require.NoError(t, o.Close(ctx))
}

// A submit drains the runs before it, and then its own objects are charged to it.
func TestSubmitDrainsThePriorRun(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	var d *Domain
	var job *Task
	h := o.submit(func() { d, job = o.domain(), o.task("job") })
	require.ErrorIs(t, o.fire("building", "start"), ErrPriorRun, "the pointer does not move")

	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err := o.Submit(short, func(context.Context) error { t.Error("built ahead of the run before"); return nil })
	require.ErrorIs(t, err, ErrRunWait)

	next := async(func() error {
		return dropped(o.Submit(ctx, func(context.Context) error {
			if !d.Freed() {
				t.Error("built before the run before it is over")
			}
			return nil
		}))
	})
	require.NoError(t, job.Done(ctx, nil))
	require.NoError(t, <-next)
	require.NoError(t, h.Wait(ctx))
	require.NoError(t, o.Close(ctx))
}

func (o *orch) fire(name, event string, args ...uint64) error {
	m := o.config.Rules.Machine(name)
	return dropped(o.d.Fire(ctx, one(m), m.MustEvent(event), args...))
}

// A nested submit, and a close from inside of a build, are refused at once.
func TestNested(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	h, err := o.Submit(ctx, func(inner context.Context) error {
		_, err := o.Submit(inner, func(context.Context) error { t.Error("nested"); return nil })
		require.ErrorIs(t, err, ErrNestedSubmit)
		require.ErrorIs(t, err, machine.ErrReentrant)
		require.ErrorIs(t, o.Close(inner), ErrNestedSubmit)

		// Past its context it meets its bound.
		past, cancel := context.WithCancel(ctx)
		cancel()
		_, err = o.Submit(past, func(context.Context) error { t.Error("nested"); return nil })
		require.ErrorIs(t, err, machine.ErrBusy)
		_, err = o.AllocateDomain(inner, 2)
		return err
	})
	require.NoError(t, err)

	// And so is a close from inside of a backend's call.
	// So are a wait for the run and a submit, which would wait for that very call.
	inside := map[string]error{}
	waited := h
	o.h.onRelease = func(ctx context.Context, _ uint64) {
		inside["close"] = o.Close(ctx)
		inside["wait"] = waited.Wait(ctx)
		inside["submit"] = dropped(o.Submit(ctx, func(context.Context) error { return nil }))
	}
	for _, operation := range []func() error{
		func() error { return waited.Wait(ctx) },
		func() error { return o.Close(ctx) },
	} {
		clear(inside)
		require.NoError(t, operation())
		require.Len(t, inside, 3)
		for what, err := range inside {
			require.ErrorIs(t, err, machine.ErrReentrant, what)
		}
		if waited == h {
			waited = o.submit(func() { o.domain() })
		}
	}
}

// The first error wins, is attributed, and all who wait are told it; the run's
// resources are released all the same.
func TestFirstErrorWins(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	errFirst, errSecond := errors.New("first"), errors.New("second")
	var d *Domain
	var a, b, c *Task
	h := o.submit(func() { d, a, b, c = o.domain(), o.task("a"), o.task("b"), o.task("c") })
	waits := []chan error{}
	for range 4 {
		waits = append(waits, async(func() error { return h.Wait(ctx) }))
	}
	given, pending := h.Tasks()
	require.Equal(t, []int{3, 3}, []int{given, pending})
	require.NoError(t, b.Done(ctx, errFirst))
	require.ErrorIs(t, b.Done(ctx, nil), ErrTaskOver)
	require.NoError(t, c.Done(ctx, errSecond))
	require.False(t, d.Freed(), "a task is pending")
	require.NoError(t, a.Done(ctx, nil))
	for _, w := range append(waits, async(func() error { return h.Wait(ctx) })) {
		err := <-w
		var e *RunError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "b", e.Task)
		require.ErrorIs(t, err, errFirst)
		require.NotErrorIs(t, err, errSecond)
		require.ErrorIs(t, err, ErrTaskFailed)
	}
	require.True(t, d.Freed())
	require.ErrorIs(t, b.Done(ctx, nil), ErrTaskOver)
	o.submit(nil)
	require.NoError(t, o.Close(ctx))
}

// A wait that expires proves nothing and may be made again.
func TestRunWaitExpires(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	var d *Domain
	var a *Task
	h := o.submit(func() { d, a = o.domain(), o.task("a") })
	short, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, h.Wait(short), ErrRunWait)
	require.ErrorIs(t, h.Wait(short), context.Canceled)
	require.False(t, d.Freed())
	require.NoError(t, a.Done(ctx, nil))
	require.NoError(t, h.Wait(short), "nothing is left to wait for, and the end is not cut in two")
	require.True(t, d.Freed())
}

// A build that fails or panics makes a failed run, which releases what it owns.
func TestFailedBuild(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	boom := errors.New("boom")
	var d *Domain
	h, err := o.Submit(ctx, func(context.Context) error { d = o.domain(); return boom })
	require.ErrorIs(t, err, ErrBuildFailed)
	require.ErrorIs(t, err, boom)
	require.False(t, d.Freed())
	require.ErrorIs(t, h.Wait(ctx), ErrBuildFailed)
	require.ErrorIs(t, h.Wait(ctx), boom)
	require.True(t, d.Freed())

	h, err = o.Submit(ctx, func(context.Context) error { return boom })
	require.ErrorIs(t, err, ErrBuildFailed)
	require.ErrorIs(t, h.Wait(ctx), ErrBuildFailed, "though it made nothing")

	h, err = o.Submit(ctx, func(context.Context) error { d = o.domain(); panic("at the graph") })
	require.ErrorIs(t, err, ErrBuildFailed)
	require.ErrorContains(t, err, "at the graph")
	o.submit(nil)
	require.ErrorIs(t, h.Wait(ctx), ErrBuildFailed)
	require.ErrorIs(t, h.Wait(ctx), errPanicked)
	require.True(t, d.Freed())
}

// An object that was given back is nobody's, and may be charged again before
// its place has been made free.
func TestChargedAgain(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	var first *Resource
	h := o.submit(func() { first, _ = o.Charge(ctx, Region, 1) })
	require.NoError(t, o.recycling.take(ctx, 0), "nobody makes places free")
	require.NoError(t, h.Wait(ctx))
	require.Equal(t, "released", o.in(first.ref))
	o.submit(func() {
		again, err := o.Charge(ctx, Region, 1)
		require.NoError(t, err)
		require.NotEqual(t, first.ref, again.ref)
		require.ErrorIs(t, dropped(o.Charge(ctx, Region, 1)), ErrDuplicate)
		require.NoError(t, first.Release(ctx))
		require.Equal(t, "charged", o.in(again.ref), "the old handle is of the old one")
	})
	o.recycling.give()
	require.NoError(t, o.Close(ctx))
	require.Len(t, o.h.released, 2)
}

// What is over outside of any fence makes its place free at once: a domain whose
// release came late, an endpoint that failed.
func TestPlacesAreMadeFree(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{Domains: 1, Endpoints: 1})
	var late *Domain
	at, goOn := make(chan struct{}), make(chan struct{})
	o.h.onAllocate = func() { close(at); <-goOn }
	made := make(chan error, 1)
	h := o.submit(func() {
		go func() {
			var err error
			late, err = o.AllocateDomain(ctx, 2)
			made <- err
		}()
		<-at
	})
	require.NoError(t, h.Wait(ctx))
	close(goOn)
	require.NoError(t, <-made)
	o.h.onAllocate = nil
	o.submit(func() {
		require.ErrorIs(t, dropped(o.AllocateDomain(ctx, 2)), ErrPlaces)
		require.NoError(t, late.Release(ctx))
		o.domain()
	})

	for range 3 {
		e, err := o.OpenEndpoint(ctx, "worker")
		require.NoError(t, err)
		require.ErrorIs(t, dropped(o.OpenEndpoint(ctx, "another")), ErrPlaces)
		require.NoError(t, e.Fail(ctx, nil))
	}
	require.NoError(t, o.Close(ctx))
}

// A release is not tried again, so the backend is given no deadline of whoever
// comes by.
func TestReleasesHaveNoDeadline(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	o.h.keepsTo = true
	ended, cancel := context.WithCancel(ctx)
	cancel()
	o.submit(func() {
		x, err := o.Charge(ctx, Region, 1)
		require.NoError(t, err)
		require.NoError(t, x.Release(ended))
		o.domain()
		require.NoError(t, dropped(o.Charge(ctx, Region, 2)))
	})
	require.NoError(t, o.Close(ended), "nothing had to be waited for")
	require.Len(t, o.h.released, 2)
}

// While the fence of a run is under way, in whatever state, no place of what it
// owned is made free: what was given back early, a domain that was freed, a task
// that is over.
func TestPlacesAreKept(t *testing.T) {
	rules := OrchestratorRules()
	w, err := rules.NewWorld(machine.Config{Pools: OrchestratorConfig{}.Pools()})
	require.NoError(t, err)
	var at orchestratorDirectory
	require.NoError(t, at.look(rules))
	issue := func(ref machine.Ref, event machine.EventID, args ...uint64) {
		t.Helper()
		s := w.Issue(ref, event, args...)
		require.NoError(t, w.RefusalError(s))
	}
	settle := func(ref machine.Ref) { require.Equal(t, machine.Accepted, w.Settle(ref, machine.Result{}).Status) }
	next := func(root machine.Ref) { require.NotEqual(t, machine.StepRefused, w.Next(root).Status) }
	ref := func(m *machine.Machine, slot int) machine.Ref { return w.Ref(m.ID(), slot) }
	building, run := one(at.building), ref(at.resources, 0)
	object, early, freed, late, job := ref(at.resource, 0), ref(at.resource, 1), ref(at.domain, 0), ref(at.domain, 1), ref(at.task, 0)

	issue(one(at.orchestrator), at.init, 3)
	issue(building, at.start)
	issue(object, at.charge, uint64(Region), 1)
	issue(early, at.charge, uint64(Region), 2)
	issue(early, at.releaseResource)
	settle(early)
	for _, d := range []machine.Ref{freed, late} {
		issue(d, at.allocate, 2)
		next(d)
	}
	settle(freed)
	issue(freed, at.domain.MustEvent("free"))
	next(freed)
	settle(freed)
	issue(job, at.add, 0)
	issue(job, at.done, 0, 0)

	seen := map[string]bool{}
	look := func() {
		state := w.StateName(run)
		seen[state] = true
		for _, x := range []struct {
			ref machine.Ref
			m   *machine.Machine
		}{{early, at.resource}, {freed, at.domain}, {job, at.task}} {
			c := w.Clone()
			err := c.RefusalError(c.Issue(x.ref, x.m.MustEvent("forget")))
			if state == "retired" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrOwned, "%s, its run is %s", x.m.Name(), state)
			}
		}
	}
	look()
	settle(building)
	look()
	issue(run, at.fence)
	for look(); w.HasNext(run); look() {
		next(run)
		if _, flying, _ := w.State(object); flying {
			settle(late) // after the sweep, so that its release is a straggler
			issue(late, at.releaseDomain)
			settle(object)
		}
		if w.StateName(late) == "freeing▸execute" {
			settle(late)
		}
	}
	require.Equal(t, map[string]bool{
		"building": true, "running": true, "flushing": true, "sweeping": true, "releasing": true, "retiring": true, "retired": true,
	}, seen)
}
