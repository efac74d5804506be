package states

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// ofOrchestrator gets each reason that a row names from a call of the façade,
// or from the rules where the façade never lets it come to that.
var ofOrchestrator = map[machine.Reason]func(o *orch) error{
	ErrAlreadyInitialised: func(o *orch) error { return o.fire("orchestrator", "init", 3) },
	ErrNotInitialised: func(o *orch) error {
		w, err := OrchestratorRules().NewWorld(machine.Config{Pools: OrchestratorConfig{}.Pools()})
		require.NoError(o, err)
		issue := func(ref machine.Ref, event machine.EventID, args ...uint64) error {
			return w.RefusalError(w.Issue(ref, event, args...))
		}
		require.ErrorIs(o, issue(one(o.at.orchestrator), o.at.check), ErrNotInitialised)
		require.ErrorIs(o, issue(w.Ref(o.at.domain.ID(), 0), o.at.allocate, 2), ErrNotInitialised)
		return issue(one(o.at.building), o.at.start)
	},
	ErrOrchestratorClosed: func(o *orch) error {
		require.NoError(o, o.Close(ctx))
		return dropped(o.Submit(ctx, func(context.Context) error { return nil }))
	},
	ErrBuilding: func(o *orch) (err error) {
		o.submit(func() {
			o.mu.Lock()
			var h *RunHandle
			for _, h = range o.handles {
			}
			o.mu.Unlock()
			require.ErrorIs(o, o.fire("orchestrator", "build", h.ref.Pack()), ErrBuilding)
			require.ErrorIs(o, dropped(o.d.Fire(ctx, h.ref, o.at.await)), ErrBuilding)
			require.ErrorIs(o, dropped(o.d.Fire(ctx, h.ref, o.at.fence)), ErrBuilding)
			err = h.Wait(ctx)
		})
		return err
	},
	ErrPriorRun: func(o *orch) error {
		o.submit(func() { o.task("t") })
		return o.fire("building", "start")
	},
	ErrTooManyRuns: func(o *orch) error {
		// The façade makes places free as runs end; here nobody does.
		for range 4 {
			o.graph = func(context.Context) error { return nil }
			require.NoError(o, dropped(o.d.Fire(ctx, one(o.at.building), o.at.start)))
			run, _ := o.d.Fact(one(o.at.building), o.at.building.MustFact("run"))
			require.NoError(o, dropped(o.d.Fire(ctx, machine.UnpackRef(run), o.at.fence)))
		}
		return o.fire("building", "start")
	},
	ErrBuildFailed: func(o *orch) error {
		return dropped(o.Submit(ctx, func(context.Context) error { return errors.New("boom") }))
	},
	ErrNotBuilding:  func(o *orch) error { return dropped(o.AllocateDomain(ctx, 1)) },
	ErrZeroIdentity: func(o *orch) error { return dropped(o.Charge(ctx, Region, 0)) },
	ErrNoRun: func(o *orch) error {
		require.ErrorIs(o, o.fire("resources", "fence"), ErrNoRun)
		return o.fire("resources", "await")
	},
	ErrTasksPending: func(o *orch) error {
		h := o.submit(func() { o.task("t") })
		return dropped(o.d.Fire(ctx, h.ref, o.at.fence))
	},
	ErrTaskFailed: func(o *orch) error {
		h := o.submit(func() { require.NoError(o, o.task("t").Done(ctx, errors.New("boom"))) })
		return h.Wait(ctx)
	},
	ErrEndpointFailed: func(o *orch) (err error) {
		e, err := o.OpenEndpoint(ctx, "worker")
		require.NoError(o, err)
		require.NoError(o, o.recycling.take(ctx, 0), "nobody makes places free")
		require.NoError(o, e.Fail(ctx, errors.New("boom")))
		o.submit(func() { require.ErrorIs(o, dropped(e.AddTask(ctx, "t")), ErrEndpointFailed) })
		o.recycling.give()
		o.recycle()
		o.submit(func() { err = dropped(e.AddTask(ctx, "t")) }) // its place is another's now
		require.NoError(o, e.Fail(ctx, errors.New("again")), "it is known")
		return err
	},
	ErrTaskOver: func(o *orch) (err error) {
		o.submit(func() {
			t := o.task("t")
			require.NoError(o, t.Done(ctx, nil))
			err = t.Done(ctx, nil)
		})
		return err
	},
	ErrRunWait: func(o *orch) error {
		h := o.submit(func() { require.NoError(o, dropped(o.Attach(ctx, "t", &told{finalize: []error{ErrUnproven}}))) })
		return h.Wait(ctx)
	},
	ErrDuplicate: func(o *orch) (err error) {
		o.submit(func() {
			require.NoError(o, dropped(o.Charge(ctx, Region, 1)))
			require.NoError(o, dropped(o.Charge(ctx, HostBuffer, 1)), "of another group")
			err = dropped(o.Charge(ctx, Region, 1))
		})
		return err
	},
	ErrResourceRelease: func(o *orch) error {
		var r *Resource
		o.h.stuck[1] = errors.New("boom")
		h := o.submit(func() { r, _ = o.Charge(ctx, Region, 1) })
		require.NoError(o, h.Wait(ctx))
		require.ErrorIs(o, r.Release(ctx), ErrResourceRelease)
		require.Len(o, o.h.released, 1, "told again, not tried again")
		return r.Release(ctx)
	},
	ErrGone: func(o *orch) error {
		var d *Domain
		var r *Resource
		h := o.submit(func() { d = o.domain(); r, _ = o.Charge(ctx, Region, 1) })
		require.NoError(o, dropped(o.d.Fire(ctx, h.ref, o.at.fence)))
		require.NoError(o, dropped(o.d.Fire(ctx, d.ref, o.at.domain.MustEvent("forget"))))
		require.NoError(o, dropped(o.d.Fire(ctx, r.ref, o.at.resource.MustEvent("forget"))))
		e, err := o.OpenEndpoint(ctx, "worker")
		require.NoError(o, err)
		require.NoError(o, o.recycling.take(ctx, 0))
		require.NoError(o, e.Fail(ctx, nil))
		require.NoError(o, dropped(o.d.Fire(ctx, e.ref, o.at.endpoint.MustEvent("forget"))))
		require.NoError(o, e.Fail(ctx, nil))
		require.ErrorIs(o, dropped(o.d.Fire(ctx, e.ref, o.at.fail, 0)), ErrGone)
		o.recycling.give()
		require.NoError(o, d.Release(ctx), "a handle takes it for done")
		require.NoError(o, r.Release(ctx))
		require.True(o, d.Freed())
		require.ErrorIs(o, dropped(o.d.Fire(ctx, d.ref, o.at.releaseDomain)), ErrGone)
		return dropped(o.d.Fire(ctx, r.ref, o.at.releaseResource))
	},
	ErrOwned: func(o *orch) error {
		// What was given back early is in the middle of the run's list.
		var early *Resource
		var d *Domain
		var job *Task
		h := o.submit(func() {
			require.NoError(o, dropped(o.Charge(ctx, Region, 1)))
			early, _ = o.Charge(ctx, Region, 2)
			require.NoError(o, dropped(o.Charge(ctx, Region, 3)))
			d, job = o.domain(), o.task("t")
		})
		require.NoError(o, early.Release(ctx))
		require.NoError(o, job.Done(ctx, nil))
		require.NoError(o, dropped(o.d.Fire(ctx, d.ref, o.at.domain.MustEvent("free"))))
		require.ErrorIs(o, dropped(o.d.Fire(ctx, d.ref, o.at.domain.MustEvent("forget"))), ErrOwned)
		require.ErrorIs(o, dropped(o.d.Fire(ctx, job.ref, o.at.task.MustEvent("forget"))), ErrOwned)
		err := dropped(o.d.Fire(ctx, early.ref, o.at.resource.MustEvent("forget")))
		require.NoError(o, h.Wait(ctx))
		require.Equal(o, []object{{Region, 2}, {Region, 3}, {Region, 1}}, o.h.released)
		return err
	},
	ErrDomainRanks: func(o *orch) error { return dropped(o.AllocateDomain(ctx, -1)) },
	ErrLevel: func(o *orch) error {
		return dropped(newOrch(o.T, OrchestratorConfig{Level: 2}).AllocateDomain(ctx, 1))
	},
	ErrDomainAllocate: func(o *orch) (err error) {
		o.submit(func() {
			o.h.unmade = ErrDomainRelease // of what there was of it
			require.ErrorIs(o, dropped(o.AllocateDomain(ctx, 1)), ErrDomainAllocate)
			require.Len(o, o.Residue(), 1, "something is left")
			for range 20 { // a clean failure takes no place
				o.h.unmade = errors.New("boom")
				err = dropped(o.AllocateDomain(ctx, 1))
				require.ErrorIs(o, err, ErrDomainAllocate)
			}
			require.Len(o, o.Residue(), 1)
		})
		return err
	},
	ErrDomainRelease: func(o *orch) error {
		var d *Domain
		h := o.submit(func() { d = o.domain(); o.h.fails[d.allocation] = errors.New("boom") })
		require.NoError(o, h.Wait(ctx))
		return d.Release(ctx)
	},
	ErrCloseBudget: func(o *orch) error {
		w := &told{finalize: []error{ErrUnproven, nil}}
		o.submit(func() { require.NoError(o, dropped(o.Attach(ctx, "t", w))) })
		err := o.Close(ctx)
		require.NoError(o, o.Close(ctx), "the next time it is proven over")
		return err
	},
	ErrTeardown: func(o *orch) error {
		w := &closer{fail: []error{errors.New("boom"), nil}}
		p := newOrch(o.T, OrchestratorConfig{Workers: []Closer{w}})
		err := p.Close(ctx)
		require.NoError(o, p.Close(ctx), "it is owed, and tried again")
		require.NoError(o, p.Close(ctx))
		require.Equal(o, 2, w.closes)
		return err
	},
	ErrResidue: func(o *orch) error {
		o.h.stuck[1] = errors.New("boom")
		o.submit(func() { require.NoError(o, dropped(o.Charge(ctx, Region, 1))) })
		require.ErrorIs(o, o.Close(ctx), ErrResidue)
		return o.Close(ctx)
	},
}

// told is work that ends as it is told, time after time.
type told struct {
	wait, finalize []error
}

func (w *told) Wait(context.Context) error     { return popError(&w.wait) }
func (w *told) Finalize(context.Context) error { return popError(&w.finalize) }

func popError(list *[]error) error {
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	return err
}

type closer struct {
	fail   []error
	closes int
}

func (c *closer) Close(context.Context) error { c.closes++; return popError(&c.fail) }

// Every reason that a row names is one that somebody has seen.
func TestEveryReasonOfAnOrchestrator(t *testing.T) {
	var all []machine.Reason
	for reason, get := range ofOrchestrator {
		all = append(all, reason)
		t.Run(string(reason), func(t *testing.T) {
			require.ErrorIs(t, get(newOrch(t, OrchestratorConfig{})), reason)
		})
	}
	require.ElementsMatch(t, OrchestratorRules().Reasons(), all)
}

// An orchestrator above a chip worker: its runs are tasks that the waiter waits
// for, their failures reach the run that they are of, and the worker is closed last.
func TestOrchestratorAboveAChipWorker(t *testing.T) {
	f := unopened(t, Config{Slots: 2, Depth: 2}, "SubmitAICPU#2 kernel-fatal")
	w, err := NewChipWorker(WorkerConfig{Config: f.lane.config, Mode: Program})
	require.NoError(t, err)
	require.NoError(t, w.Init(ctx))
	o := newOrch(t, OrchestratorConfig{Workers: []Closer{w}})
	run := func() *Run {
		r, err := w.Prepare(ctx, work)
		require.NoError(t, err)
		_, err = r.Launch(ctx)
		require.NoError(t, err)
		return r
	}
	h := o.submit(func() { require.NoError(t, dropped(o.Attach(ctx, "good", run()))) })
	require.NoError(t, h.Wait(ctx))
	var d *Domain
	h = o.submit(func() {
		d = o.domain()
		require.NoError(t, dropped(o.Attach(ctx, "bad", run())))
	})
	require.ErrorIs(t, w.Close(ctx), ErrRunLive)
	err = h.Wait(ctx)
	require.ErrorIs(t, err, ErrRunFailed)
	var e *RunError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "bad", e.Task)
	require.True(t, d.Freed())
	require.NoError(t, o.Close(ctx))
	require.ErrorIs(t, w.Close(ctx), ErrFinalized)
	require.NoError(t, newOrch(t, OrchestratorConfig{Workers: []Closer{w}}).Close(ctx), "another has closed the worker")
}
