package states

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/runfence/runfence/machine"
)

// RunHandle is a run that was submitted. All who wait for it see one outcome.
type RunHandle struct {
	o     *Orchestrator
	ref   machine.Ref
	build error

	// waiting is the turn of one waiter: an operation of the run is carried on
	// within one caller's context, which is not to end another's wait.
	waiting turn

	ended   atomic.Bool
	outcome error // once ended
}

// RunError is the outcome of a run that failed: the error that came first, and
// what it is of (R20). errors.Is matches [ErrTaskFailed] or [ErrBuildFailed],
// and what the cause matches.
type RunError struct {
	// Task is the name of the task that failed; "" for the build.
	Task string
	// Endpoint is the name of the endpoint whose failure ended the task; "" if
	// the task failed by itself.
	Endpoint string
	// Cause is what was reported.
	Cause error
	rules error
}

// Error says what failed and why.
func (e *RunError) Error() string {
	switch {
	case e.Task == "":
		return fmt.Sprintf("%v: %v", ErrBuildFailed, e.Cause)
	case e.Endpoint != "":
		return fmt.Sprintf("task %s failed with its endpoint %s: %v", e.Task, e.Endpoint, e.Cause)
	}
	return fmt.Sprintf("task %s failed: %v", e.Task, e.Cause)
}

// Unwrap returns what the rules said, and the cause.
func (e *RunError) Unwrap() []error { return []error{e.rules, e.Cause} }

// Wait waits until every task of the run is over, and brings the run to its
// fence: what it owns is released, whether it failed or not. A wait that
// expires changes nothing and may be made again.
//
// Errors: [*RunError] if the run failed, the same for all who wait and however
// often; [ErrRunWait]; [ErrBuilding] from inside of its own build.
func (h *RunHandle) Wait(ctx context.Context) error {
	switch err := h.o.take(ctx, h.waiting); {
	case errors.Is(err, machine.ErrBusy):
		return fmt.Errorf("%w: %w", ErrRunWait, err)
	case err != nil:
		return err
	}
	defer h.waiting.give()
	if h.over() {
		return h.outcome
	}
	reply, err := h.o.d.Fire(ctx, h.ref, h.o.at.await)
	if err == nil {
		// What is left is the run's end, which no caller's deadline cuts in two.
		reply, err = h.o.d.Fire(untimed(ctx), h.ref, h.o.at.fence)
	}
	switch {
	case errors.Is(err, machine.ErrBusy):
		return fmt.Errorf("%w: %w", ErrRunWait, err)
	case reply.State == h.o.at.retired:
		return h.o.ended(h, err)
	}
	return err
}

// Tasks returns how many tasks the run was given and how many are not over;
// zero for a run that is over.
func (h *RunHandle) Tasks() (given, pending int) {
	m := h.o.at.resources
	g, _ := h.o.d.Fact(h.ref, m.MustFact("tasks"))
	p, _ := h.o.d.Fact(h.ref, m.MustFact("pending"))
	return int(g), int(p)
}

// over reports whether the outcome is known, which never changes then.
func (h *RunHandle) over() bool { return h.ended.Load() }

// ended keeps the outcome of a run that retired, for the waiter whose turn it
// is, and makes its places free.
func (o *Orchestrator) ended(h *RunHandle, err error) error {
	switch {
	case errors.Is(err, ErrTaskFailed):
		v, _ := o.d.Fact(h.ref, o.at.resources.MustFact("culprit"))
		o.mu.Lock()
		t := o.tasks[machine.UnpackRef(v)]
		o.mu.Unlock()
		err = t.failure(err)
	case errors.Is(err, ErrBuildFailed):
		err = &RunError{Cause: h.build, rules: err}
	}
	h.outcome = err
	h.ended.Store(true)
	o.recycle()
	return err
}

// recycle makes the places free of all that is over and that nobody walks over
// any more: runs whose handles keep the outcome, their objects and tasks,
// domains that are freed and whose run has retired, and endpoints that failed.
func (o *Orchestrator) recycle() {
	for o.stale.Store(true); o.stale.Load(); {
		select {
		case o.recycling <- struct{}{}:
			o.recycleNow()
			o.recycling.give()
		default:
			return // somebody does it already, and looks again after
		}
	}
}

// recycleNow is recycle for a caller whose turn it is.
func (o *Orchestrator) recycleNow() {
	o.stale.Store(false)
	o.mu.Lock()
	var runs []machine.Ref
	for ref, h := range o.handles {
		if h.over() {
			runs = append(runs, ref)
		}
	}
	o.mu.Unlock()
	for _, m := range []*machine.Machine{o.at.resource, o.at.domain, o.at.task, o.at.endpoint} {
		forget := m.MustEvent("forget")
		for _, x := range o.leftBy(m, runs) {
			if o.forget(x.ref, forget) {
				o.vacated(x)
			}
		}
	}
	forget := o.at.resources.MustEvent("forget")
	for _, ref := range runs {
		if o.forget(ref, forget) {
			o.mu.Lock()
			delete(o.handles, ref)
			o.mu.Unlock()
		}
	}
}

// occupant is an instance whose occupancy is to end.
type occupant struct {
	ref machine.Ref
	obj object
}

// leftBy lists the instances of a machine that are over and whose run, if they
// are of one, is one of these, or gone. What is not over, such as residue or a release under way,
// stays where close finds it.
func (o *Orchestrator) leftBy(m *machine.Machine, runs []machine.Ref) (left []occupant) {
	if o.unused(m) {
		return nil
	}
	owner, owned := m.Fact("owner")
	group, _ := o.at.resource.Fact("group")
	key, _ := o.at.resource.Fact("key")
	over, _ := m.State(map[*machine.Machine]string{o.at.resource: "released", o.at.domain: "freed", o.at.task: "over", o.at.endpoint: "failed"}[m])
	o.d.View(func(w *machine.World) {
		for s := range w.Capacity(m.ID()) {
			x := occupant{ref: w.Ref(m.ID(), s)}
			if st, flying, _ := w.State(x.ref); st != over || flying {
				continue
			}
			if owned {
				v, _ := w.Fact(x.ref, owner)
				run := machine.UnpackRef(v)
				if _, _, current := w.State(run); current && !slices.Contains(runs, run) {
					continue
				}
			}
			if m == o.at.resource {
				g, _ := w.Fact(x.ref, group)
				x.obj.group = Group(g)
				x.obj.key, _ = w.Fact(x.ref, key)
			}
			left = append(left, x)
		}
	})
	return left
}

// unused reports whether every place of a machine is free.
func (o *Orchestrator) unused(m *machine.Machine) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.free[m.ID()]) == o.places[m.ID()]
}

// forget ends an occupancy.
func (o *Orchestrator) forget(ref machine.Ref, event machine.EventID) bool {
	_, err := o.d.Fire(context.Background(), ref, event)
	return err == nil && o.d.Drop(ref) == nil
}

// vacated makes the place free that an occupant has left.
func (o *Orchestrator) vacated(x occupant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case x.ref.Machine == o.at.task.ID():
		delete(o.tasks, x.ref)
	case x.ref.Machine == o.at.resource.ID() && o.objects[x.obj] == x.ref:
		delete(o.objects, x.obj)
	}
	x.ref.Gen++
	o.free[x.ref.Machine] = append(o.free[x.ref.Machine], x.ref)
}

// place takes a free place of a pool.
func (o *Orchestrator) place(m *machine.Machine) (machine.Ref, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.takePlace(m)
}

// takePlace is place for a caller that holds the lock.
func (o *Orchestrator) takePlace(m *machine.Machine) (machine.Ref, error) {
	list := o.free[m.ID()]
	if len(list) == 0 {
		return machine.Ref{}, fmt.Errorf("%s: %w", m.Name(), ErrPlaces)
	}
	o.free[m.ID()] = list[:len(list)-1]
	return list[len(list)-1], nil
}

// vacate gives a place back in which nothing came to be.
func (o *Orchestrator) vacate(ref machine.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free[ref.Machine] = append(o.free[ref.Machine], ref)
}
