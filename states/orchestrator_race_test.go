package states

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// stage is an orchestrator in a bubble of its own, on a backend whose calls
// stop where a race wants them to. What does not hold is an error and not a
// failed test, so that the same race shows what broken rules do.
type stage struct {
	o       *Orchestrator
	ctx     context.Context          // ends with the race
	parked  map[string]chan struct{} // calls that stop, by name
	arrived map[string]bool
	end     chan struct{}

	freed   map[uint64]int
	fails   map[uint64]error
	busy    atomic.Int32
	overlap atomic.Bool
	closes  int
	during  []string // releases under way when the workers were closed
	under   map[uint64]bool
}

// patience is work that is over when it is let, and can be finalized then.
type patience struct {
	done chan struct{}
	over atomic.Int32
	late func() // happens as a wait is given up
}

func (p *patience) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		if p.late != nil {
			p.late()
		}
		return context.Cause(ctx)
	}
}

func (p *patience) Finalize(context.Context) error {
	select {
	case <-p.done:
		p.over.Add(1)
		return nil
	default:
		return ErrUnproven
	}
}

// broken ends a race with what does not hold.
type broken string

func (s *stage) that(holds bool, format string, args ...any) {
	if !holds {
		panic(broken(fmt.Sprintf(format, args...)))
	}
}

// stop parks the calls of that name from now on.
func (s *stage) stop(name string) { s.parked[name] = make(chan struct{}) }

// goOn lets them through again.
func (s *stage) goOn(name string) {
	if c := s.parked[name]; c != nil {
		delete(s.parked, name)
		close(c)
	}
	synctest.Wait()
}

// pass is where a call may stop. (In a bubble the host's goroutines are let run
// one after another by Wait, which orders the accesses to the stage.)
func (s *stage) pass(name string) {
	if c := s.parked[name]; c != nil {
		s.arrived[name] = true
		select {
		case <-c:
		case <-s.end:
		}
	}
}

func (s *stage) ReleaseResource(ctx context.Context, _ Group, _ uint64) error {
	s.pass("object")
	return ctx.Err() // as a backend may that keeps to its context
}

func (s *stage) AllocateDomain(context.Context, uint64, int) error { s.pass("allocate"); return nil }

func (s *stage) ReleaseDomain(ctx context.Context, a uint64) error {
	if s.busy.Add(1) > 1 {
		s.overlap.Store(true)
	}
	s.freed[a]++
	s.under[a] = true
	s.pass(fmt.Sprint("free ", a))
	delete(s.under, a)
	s.busy.Add(-1)
	return errors.Join(s.fails[a], ctx.Err())
}

// Close is of the worker below. Broken rules use it as the point at which they
// may be preempted, too: no call of the host is there by the right ones.
func (s *stage) Close(context.Context) error {
	s.closes++
	for a := range s.under {
		s.during = append(s.during, fmt.Sprint(a))
	}
	s.pass("worker")
	return nil
}

// start runs f beside, until it ends or stops somewhere.
func (s *stage) start(f func() error) func() (ended bool, err error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	synctest.Wait()
	var got *error
	return func() (bool, error) {
		synctest.Wait()
		if got == nil {
			select {
			case err := <-done:
				got = &err
			default:
				return false, nil
			}
		}
		return true, *got
	}
}

// whole waits for an operation that nothing stops any more.
func (s *stage) whole(what string, f func() (bool, error)) error {
	ended, err := f()
	s.that(ended, "%s does not come back", what)
	return err
}

func (s *stage) submit(build func()) *RunHandle {
	h, err := s.o.Submit(s.ctx, func(context.Context) error {
		if build != nil {
			build()
		}
		return nil
	})
	s.that(err == nil, "submit: %v", err)
	return h
}

func (s *stage) domain() *Domain {
	d, err := s.o.AllocateDomain(s.ctx, 2)
	s.that(err == nil, "allocate: %v", err)
	return d
}

func (s *stage) endpoint(name string) *Endpoint {
	e, err := s.o.OpenEndpoint(s.ctx, name)
	s.that(err == nil, "open an endpoint: %v", err)
	return e
}

func (s *stage) on(e *Endpoint, name string) *Task {
	t, err := e.AddTask(s.ctx, name)
	s.that(err == nil, "add a task: %v", err)
	return t
}

// late makes a domain whose allocation takes longer than the build of its run,
// and longer than the beginning of the run's fence if there is one.
func (s *stage) late(fence bool) (h *RunHandle, wait func() (bool, error), d *Domain) {
	s.stop("allocate")
	var made func() (bool, error)
	h = s.submit(func() {
		if fence {
			_, err := s.o.Charge(s.ctx, Region, 1)
			s.that(err == nil, "charge: %v", err)
		}
		made = s.start(func() (err error) { d, err = s.o.AllocateDomain(s.ctx, 2); return err })
	})
	if fence {
		s.stop("object")
	}
	wait = s.start(func() error { return h.Wait(s.ctx) })
	s.goOn("allocate")
	s.that(s.whole("the allocation", made) == nil, "the late allocation fails")
	return h, wait, d
}

// races are what the source's review found, one by one. Each says what does not
// hold, or nil.
var races = map[string]func(s *stage){
	// A release between the fence's sweep and its retirement is a straggler,
	// which retirement claims (R9).
	"release while its run retires": func(s *stage) {
		_, wait, d := s.late(true)
		s.that(s.arrived["object"], "the fence is not where it should be")
		released := s.start(func() error { return d.Release(s.ctx) })
		s.that(s.whole("the release", released) == nil, "the release fails")
		s.that(!d.Freed(), "put off to a fence that is under way")
		s.goOn("object")
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		s.that(d.Freed() && s.freed[d.allocation] == 1, "a release that raced retirement is stranded")
	},
	// A release that is preempted between looking at its run and putting itself
	// off: the fence must not pass in between (R9).
	"release preempted between check and append": func(s *stage) {
		_, wait, d := s.late(true)
		s.stop("worker") // where broken rules are preempted
		released := s.start(func() error { return d.Release(s.ctx) })
		s.goOn("object")
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		s.goOn("worker")
		s.that(s.whole("the release", released) == nil, "the release fails")
		s.that(d.Freed() && s.freed[d.allocation] == 1, "a release that was preempted is stranded")
	},
	// A release after the fence frees at once (R8).
	"late release after the fence": func(s *stage) {
		_, wait, d := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		s.that(!d.Freed(), "nobody has released it")
		s.that(d.Release(s.ctx) == nil, "the late release fails")
		s.that(d.Freed() && s.freed[d.allocation] == 1, "a late release is stranded")
	},
	// A fence releases nothing of another run (R2).
	"fence of another run": func(s *stage) {
		_, wait, d := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		h := s.submit(func() { s.domain() })
		s.that(h.Wait(s.ctx) == nil, "the other run's fence fails")
		s.that(s.freed[d.allocation] == 0, "freed at the fence of another run")
		s.that(s.o.Close(s.ctx) == nil, "close fails")
		s.that(s.freed[d.allocation] == 1, "close has not swept it")
	},
	// The sweep stops at one domain while its user releases another, which the
	// sweep has still before it (R10, R11).
	"sweep from a snapshot taken before a release": func(s *stage) {
		var first, second, third *Domain
		h := s.submit(func() { first, second, third = s.domain(), s.domain(), s.domain() })
		s.that(first.Release(s.ctx) == nil, "release") // flushed, and met by the sweep again
		s.stop(fmt.Sprint("free ", third.allocation))
		wait := s.start(func() error { return h.Wait(s.ctx) })
		s.that(s.arrived[fmt.Sprint("free ", third.allocation)], "the sweep is not where it should be")
		released := s.start(func() error { return second.Release(s.ctx) })
		s.that(s.whole("the release", released) == nil, "the release fails")
		s.goOn(fmt.Sprint("free ", third.allocation))
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		for _, d := range []*Domain{first, second, third} {
			s.that(s.freed[d.allocation] == 1, "allocation %d reached the backend %d times", d.allocation, s.freed[d.allocation])
			s.that(d.Freed(), "allocation %d is not freed", d.allocation)
		}
	},
	// A second caller for one allocation waits for the first's outcome, and the
	// domain is not freed meanwhile (R12, R13, R24).
	"second caller during the first's backend call": func(s *stage) {
		var d *Domain
		h := s.submit(func() { d = s.domain() })
		at := fmt.Sprint("free ", d.allocation)
		s.stop(at)
		wait := s.start(func() error { return h.Wait(s.ctx) })
		s.that(s.arrived[at], "the first caller is not where it should be")
		second := s.start(func() error { return d.Release(s.ctx) })
		ended, _ := second()
		s.that(!ended, "the second caller came back while the first was still releasing")
		s.that(!d.Freed(), "freed while the release is under way")
		s.goOn(at)
		s.that(s.whole("the first caller", wait) == nil, "the fence fails")
		s.that(s.whole("the second caller", second) == nil, "the second caller is told otherwise")
		s.that(d.Freed() && s.freed[d.allocation] == 1, "released %d times", s.freed[d.allocation])
	},
	// A failure is told to who comes later, and never tried again (R14).
	"a failed release is told again": func(s *stage) {
		var d *Domain
		boom := errors.New("boom")
		h := s.submit(func() { d = s.domain() })
		s.fails[d.allocation] = boom
		at := fmt.Sprint("free ", d.allocation)
		s.stop(at)
		wait := s.start(func() error { return h.Wait(s.ctx) })
		second := s.start(func() error { return d.Release(s.ctx) })
		s.goOn(at)
		s.that(s.whole("the fence", wait) == nil, "a failed release ends no run otherwise")
		s.that(errors.Is(s.whole("the second caller", second), boom), "a failed release is not told to the second caller")
		for range 2 {
			err := d.Release(s.ctx)
			s.that(errors.Is(err, ErrDomainRelease) && errors.Is(err, boom), "a failed release is told as %v", err)
			s.that(!d.Freed(), "a failed release is reported as freed")
		}
		for range 2 {
			s.that(errors.Is(s.o.Close(s.ctx), ErrResidue), "close says nothing of the residue")
		}
		s.that(s.freed[d.allocation] == 1, "a failed release was tried %d times", s.freed[d.allocation])
		s.that(len(s.o.Residue()) == 1 && s.o.Residue()[0] == d.allocation, "the residue is %v", s.o.Residue())
	},
	// So is one of a release that came after the fence: the caller is told, and
	// the residue stays where close finds it (R14, R18).
	"a failed late release stays visible": func(s *stage) {
		_, wait, d := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		boom := errors.New("boom")
		s.fails[d.allocation] = boom
		for range 2 {
			s.that(errors.Is(d.Release(s.ctx), boom) && !d.Freed(), "a late release that failed is told otherwise")
		}
		h := s.submit(func() { s.domain() }) // whose places are made free, not that one
		s.that(h.Wait(s.ctx) == nil, "another run's fence fails")
		s.that(errors.Is(s.o.Close(s.ctx), ErrResidue) && s.closes == 1, "close says nothing of the residue")
		s.that(s.freed[d.allocation] == 1, "a failed release was tried %d times", s.freed[d.allocation])
	},
	// Releases of different allocations take turns (R22).
	"one release at a time": func(s *stage) {
		_, wait, d1 := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		_, wait, d2 := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		at := fmt.Sprint("free ", d1.allocation)
		s.stop(at)
		first := s.start(func() error { return d1.Release(s.ctx) })
		second := s.start(func() error { return d2.Release(s.ctx) })
		ended, _ := second()
		s.that(!ended, "two releases at a time")
		s.goOn(at)
		s.that(s.whole("the first", first) == nil && s.whole("the second", second) == nil, "a release fails")
		s.that(!s.overlap.Load(), "two releases at a time")
	},
	// A handle that outlives its run does nothing to who has the place now (R17).
	"handle used after its run": func(s *stage) {
		var old, now *Domain
		h := s.submit(func() { old = s.domain() })
		s.that(h.Wait(s.ctx) == nil, "the fence fails")
		h2 := s.submit(func() { now = s.domain() })
		s.that(old.ref.Slot == now.ref.Slot, "the place was not used again")
		s.that(old.Release(s.ctx) == nil && old.Freed(), "an old handle has something to do")
		s.that(!now.Freed() && s.o.in(now.ref) == "live", "an old handle released another's domain")
		s.that(h.Wait(s.ctx) == nil && s.o.in(now.ref) == "live", "an old run's handle released another's domain")
		s.that(h2.Wait(s.ctx) == nil, "the fence fails")
	},
	// Close waits for a release under way before it closes the worker (R15).
	"close during release": func(s *stage) {
		_, wait, d := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		at := fmt.Sprint("free ", d.allocation)
		s.stop(at)
		released := s.start(func() error { return d.Release(s.ctx) })
		closed := s.start(func() error { return s.o.Close(s.ctx) })
		ended, _ := closed()
		s.that(!ended && s.closes == 0, "the worker was closed while it was releasing %v", s.during)
		s.goOn(at)
		s.that(s.whole("the release", released) == nil && s.whole("close", closed) == nil, "release or close fails")
		s.that(len(s.during) == 0 && s.closes == 1 && s.freed[d.allocation] == 1, "closed %d times, while releasing %v", s.closes, s.during)
	},
	// And for an allocation under way: what it makes is swept like the rest (R15).
	"close during an allocation": func(s *stage) {
		s.stop("allocate")
		var d *Domain
		var made func() (bool, error)
		h := s.submit(func() {
			made = s.start(func() (err error) { d, err = s.o.AllocateDomain(s.ctx, 2); return err })
		})
		s.that(h.Wait(s.ctx) == nil, "the fence fails")
		closed := s.start(func() error { return s.o.Close(s.ctx) })
		ended, _ := closed()
		s.that(!ended && s.closes == 0, "the worker was closed while it was allocating")
		s.goOn("allocate")
		s.that(s.whole("the allocation", made) == nil && s.whole("close", closed) == nil, "allocation or close fails")
		s.that(s.closes == 1 && d.Freed() && s.freed[d.allocation] == 1, "what was allocated is not swept")
	},
	// Close waits for the build that is under way (R25).
	"close during submit": func(s *stage) {
		goOn := make(chan struct{})
		submitted := s.start(func() error {
			_, err := s.o.Submit(s.ctx, func(context.Context) error {
				select {
				case <-goOn:
				case <-s.end:
				}
				_, err := s.o.AllocateDomain(s.ctx, 2)
				return err
			})
			return err
		})
		closed := s.start(func() error { return s.o.Close(s.ctx) })
		ended, _ := closed()
		s.that(!ended && s.closes == 0, "closed during a build")
		refused := s.start(func() error { return dropped(s.o.Submit(s.ctx, func(context.Context) error { return nil })) })
		s.that(errors.Is(s.whole("the other submit", refused), ErrOrchestratorClosed), "a run is admitted during close")
		close(goOn)
		s.that(s.whole("submit", submitted) == nil && s.whole("close", closed) == nil, "submit or close fails")
		s.that(len(s.freed) == 1, "what the build made is not released")
	},
	// A close whose budget is spent lost nothing, touched no worker, and may be
	// made again (R16).
	"close with its budget spent": func(s *stage) {
		var d *Domain
		var job *Task
		h := s.submit(func() {
			d = s.domain()
			job, _ = s.o.AddTask(s.ctx, "job")
		})
		s.o.config.Budget = 1000 // ns, of the bubble's clock
		for range 2 {
			began := time.Now()
			s.that(errors.Is(s.o.Close(s.ctx), ErrCloseBudget), "close does not say that its budget is spent")
			s.that(time.Since(began) == 1000, "it took %v", time.Since(began))
			s.that(s.closes == 0, "a teardown was attempted with a run accepted")
			s.that(s.freed[d.allocation] == 0, "released ahead of its fence")
		}
		s.that(job.Done(s.ctx, nil) == nil, "the task cannot report")
		closed := s.start(func() error { return s.o.Close(s.ctx) })
		other := s.start(func() error { return s.o.Close(s.ctx) })
		s.that(s.whole("close", closed) == nil && s.whole("the other close", other) == nil, "closing again fails")
		s.that(s.o.Close(s.ctx) == nil, "closing what is closed fails")
		s.that(s.closes == 1, "the worker was closed %d times", s.closes)
		s.that(h.Wait(s.ctx) == nil && d.Freed(), "the run is lost")
	},
	// Meanwhile the run may come to its end by another waiter: the close that goes
	// on finds it over.
	"close with its budget spent on a run that ends": func(s *stage) {
		var job *Task
		h := s.submit(func() { job, _ = s.o.AddTask(s.ctx, "job") })
		s.o.config.Budget = 1000
		s.that(errors.Is(s.o.Close(s.ctx), ErrCloseBudget), "close does not say that its budget is spent")
		s.that(job.Done(s.ctx, nil) == nil && h.Wait(s.ctx) == nil, "the run does not end")
		err := s.o.Close(s.ctx)
		s.that(err == nil && s.closes == 1, "closing again fails: %v", err)
	},
	// So has one whose budget is spent on a release that another caller is making:
	// it goes on from there (R12, R15, R16).
	"close with its budget spent on a release": func(s *stage) {
		_, wait, d := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		at := fmt.Sprint("free ", d.allocation)
		s.stop(at)
		released := s.start(func() error { return d.Release(s.ctx) })
		s.o.config.Budget = 1000 // ns, of the bubble's clock
		for range 2 {
			s.that(errors.Is(s.o.Close(s.ctx), ErrCloseBudget), "close does not say that its budget is spent")
			s.that(s.closes == 0, "a teardown was attempted with a release under way")
		}
		s.goOn(at)
		s.that(s.whole("the release", released) == nil, "the release fails")
		err := s.o.Close(s.ctx)
		s.that(err == nil && s.closes == 1, "closing again fails: %v", err)
		s.that(d.Freed() && s.freed[d.allocation] == 1, "released %d times", s.freed[d.allocation])
	},
	// And on a build that is under way (R16, R25).
	"close with its budget spent on a build": func(s *stage) {
		s.stop("build")
		var d *Domain
		submitted := s.start(func() error {
			return dropped(s.o.Submit(s.ctx, func(context.Context) error {
				d = s.domain()
				s.pass("build")
				return nil
			}))
		})
		s.o.config.Budget = 1000
		for range 2 {
			s.that(errors.Is(s.o.Close(s.ctx), ErrCloseBudget), "close does not say that its budget is spent")
			s.that(s.closes == 0, "a teardown was attempted during a build")
		}
		s.goOn("build")
		s.that(s.whole("submit", submitted) == nil, "the build that was accepted fails")
		s.that(s.o.Close(s.ctx) == nil && s.closes == 1 && d.Freed(), "closing again fails")
	},
	// All who wait for a run wait until its fence is over, and are told one
	// outcome (R20).
	"second waiter during the fence": func(s *stage) {
		var d *Domain
		var job *Task
		h := s.submit(func() { d = s.domain(); job, _ = s.o.AddTask(s.ctx, "job") })
		s.that(job.Done(s.ctx, errors.New("boom")) == nil, "the task cannot report")
		at := fmt.Sprint("free ", d.allocation)
		s.stop(at)
		first := s.start(func() error { return h.Wait(s.ctx) })
		second := s.start(func() error { return h.Wait(s.ctx) })
		for _, w := range []func() (bool, error){first, second} {
			ended, err := w()
			s.that(!ended, "a waiter is told %v ahead of the fence", err)
		}
		s.goOn(at)
		one, two := s.whole("the first", first), s.whole("the second", second)
		s.that(errors.Is(one, ErrTaskFailed) && one == two && h.Wait(s.ctx) == one, "one is told %v and another %v", one, two)
	},
	// A close whose caller gives up is taken over by another that waits (R16, R25).
	"close taken over": func(s *stage) {
		var job *Task
		s.submit(func() { s.domain(); job, _ = s.o.AddTask(s.ctx, "job") })
		patient, giveUp := context.WithCancel(s.ctx)
		first := s.start(func() error { return s.o.Close(patient) })
		second := s.start(func() error { return s.o.Close(s.ctx) })
		giveUp()
		s.that(errors.Is(s.whole("the first close", first), ErrCloseBudget), "a close that was given up is told otherwise")
		ended, _ := second()
		s.that(!ended && s.closes == 0, "the other did not wait")
		s.that(job.Done(s.ctx, nil) == nil, "the task cannot report")
		s.that(s.whole("the other close", second) == nil && s.closes == 1 && len(s.freed) == 1, "the other did not go on")
	},
	// Who gives up when his run has come to its fence cuts nothing in two: close
	// would meet the half of it. Nor does it make a release fail (R14, R16).
	"waiter gives up at the fence": func(s *stage) {
		_, wait, late := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		var d *Domain
		h := s.submit(func() {
			d = s.domain()
			_, err := s.o.Charge(s.ctx, Region, 1)
			s.that(err == nil, "charge: %v", err)
		})
		at := fmt.Sprint("free ", late.allocation)
		s.stop(at) // it has the lock of all releases
		released := s.start(func() error { return late.Release(s.ctx) })
		short, giveUp := context.WithCancel(s.ctx)
		waits := s.start(func() error { return h.Wait(short) })
		giveUp()
		ended, err := waits()
		s.that(!ended, "the fence was cut in two: %v", err)
		closed := s.start(func() error { return s.o.Close(s.ctx) })
		s.goOn(at)
		s.that(s.whole("the release", released) == nil && s.whole("the wait", waits) == nil, "the release or the wait fails")
		s.that(s.whole("close", closed) == nil && d.Freed(), "close fails, or the deadline made a release fail")
	},
	// A close that gives up in the middle of a run's fence goes on there, and the
	// run's waiters are told then (R16).
	"close gives up at the fence of a run": func(s *stage) {
		_, wait, late := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		var d *Domain
		h := s.submit(func() { d = s.domain() })
		at := fmt.Sprint("free ", late.allocation)
		s.stop(at)
		released := s.start(func() error { return late.Release(s.ctx) })
		s.o.config.Budget = 1000
		s.that(errors.Is(s.o.Close(s.ctx), ErrCloseBudget) && s.closes == 0, "close does not say that its budget is spent")
		waits := s.start(func() error { return h.Wait(s.ctx) })
		s.goOn(at)
		s.that(s.whole("the release", released) == nil, "the release fails")
		err := s.o.Close(s.ctx)
		s.that(err == nil && s.closes == 1 && d.Freed() && s.freed[d.allocation] == 1, "closing again: %v", err)
		s.that(s.whole("the waiter", waits) == nil, "the run is lost")
	},
	// A budget that is spent while a release is under way makes no release fail
	// that comes after it (R14, R16).
	"close whose budget is spent in a release": func(s *stage) {
		_, wait, d1 := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		_, wait, d2 := s.late(false)
		s.that(s.whole("the fence", wait) == nil, "the fence fails")
		at := fmt.Sprint("free ", d1.allocation)
		s.stop(at)
		s.o.config.Budget = 1000
		closed := s.start(func() error { return s.o.Close(s.ctx) })
		time.Sleep(2000) // of the bubble's clock: the budget is spent
		s.goOn(at)
		err := s.whole("close", closed)
		s.that(err == nil || errors.Is(err, ErrCloseBudget), "close: %v", err)
		s.that(s.o.Close(s.ctx) == nil && d1.Freed() && d2.Freed(), "a spent budget made a release fail: %v", s.o.Residue())
	},
	// A run that close has brought to its fence tells its waiters what became of
	// it, although places are made free since (R20).
	"waiter after close": func(s *stage) {
		at := s.endpoint("worker")
		h := s.submit(func() { s.on(at, "t") })
		s.that(at.Fail(s.ctx, errors.New("boom")) == nil && s.o.Close(s.ctx) == nil, "close fails")
		s.o.recycle()
		var e *RunError
		s.that(errors.As(h.Wait(s.ctx), &e) && e.Task == "t" && e.Endpoint == "worker", "the run failed by %v", e)
	},
	// Work that has to be waited for is waited for by one waiter at a time. When
	// that one gives up, the others wait on, and are told nothing of it (R20).
	"waiter gives up": func(s *stage) {
		work := &patience{done: make(chan struct{})}
		h := s.submit(func() {
			_, err := s.o.Attach(s.ctx, "work", work)
			s.that(err == nil, "attach: %v", err)
		})
		short, giveUp := context.WithCancel(s.ctx)
		first := s.start(func() error { return h.Wait(short) })
		second := s.start(func() error { return h.Wait(s.ctx) })
		third := s.start(func() error { return h.Wait(s.ctx) })
		giveUp()
		s.that(errors.Is(s.whole("the waiter that gives up", first), ErrRunWait), "a wait that was given up is told otherwise")
		for _, w := range []func() (bool, error){second, third} {
			ended, err := w()
			s.that(!ended, "another waiter is told %v", err)
		}
		close(work.done)
		s.that(s.whole("the second", second) == nil && s.whole("the third", third) == nil, "the run fails")
		s.that(work.over.Load() == 1, "the work was finalized %d times", work.over.Load())
	},
	// Work that ends at the moment at which its waiter gives up has not failed by
	// that: the next wait tells (R20).
	"work ends as its waiter gives up": func(s *stage) {
		work := &patience{done: make(chan struct{})}
		h := s.submit(func() {
			_, err := s.o.Attach(s.ctx, "work", work)
			s.that(err == nil, "attach: %v", err)
		})
		short, giveUp := context.WithCancel(s.ctx)
		work.late = func() { close(work.done) }
		waits := s.start(func() error { return h.Wait(short) })
		giveUp()
		s.that(errors.Is(s.whole("the waiter", waits), ErrRunWait), "giving up is taken for what became of the work")
		s.that(h.Wait(s.ctx) == nil && work.over.Load() == 1, "the run fails")
	},
	// One run builds at a time, and the pointer moves when prior runs are over (R4, R19).
	"submit while another builds": func(s *stage) {
		s.stop("build")
		var job *Task
		first := s.start(func() error {
			return dropped(s.o.Submit(s.ctx, func(context.Context) (err error) {
				s.pass("build")
				job, err = s.o.AddTask(s.ctx, "job")
				return err
			}))
		})
		builds := 0
		second := s.start(func() error {
			return dropped(s.o.Submit(s.ctx, func(context.Context) error { builds++; return nil }))
		})
		s.that(builds == 0, "two builds at a time")
		s.goOn("build")
		s.that(s.whole("the first", first) == nil && builds == 0, "built ahead of a run that is not over")
		s.that(errors.Is(dropped(s.o.d.Fire(s.ctx, one(s.o.at.building), s.o.at.start)), ErrPriorRun), "the rules admit a run ahead of the fence of another")
		s.that(job.Done(s.ctx, nil) == nil, "the task cannot report")
		s.that(s.whole("the second", second) == nil && builds == 1, "the second was not built")
	},
	// An object that is being given back is its run's until it has been; who
	// charges it meanwhile is told, and holds nobody up (R2).
	"charge during a release": func(s *stage) {
		h := s.submit(func() {
			x, err := s.o.Charge(s.ctx, Region, 1)
			s.that(err == nil, "charge: %v", err)
			s.stop("object")
			released := s.start(func() error { return x.Release(s.ctx) })
			s.that(s.arrived["object"], "the release is not where it should be")
			again := s.start(func() error { return dropped(s.o.Charge(s.ctx, Region, 1)) })
			ended, err := again()
			s.that(ended && errors.Is(err, ErrDuplicate), "charged while it is given back: %v %v", ended, err)
			s.that(s.o.mu.TryLock(), "a wait holds the lock")
			s.o.mu.Unlock()
			s.goOn("object")
			s.that(s.whole("the release", released) == nil, "the release fails")
			s.that(dropped(s.o.Charge(s.ctx, Region, 1)) == nil, "given back, and not to be charged")
		})
		s.that(h.Wait(s.ctx) == nil, "the fence fails")
	},
	// The first error wins (R20).
	"first error": func(s *stage) {
		var a, b *Task
		h := s.submit(func() { a, _ = s.o.AddTask(s.ctx, "a"); b, _ = s.o.AddTask(s.ctx, "b") })
		w1 := s.start(func() error { return h.Wait(s.ctx) })
		w2 := s.start(func() error { return h.Wait(s.ctx) })
		s.that(b.Done(s.ctx, errors.New("of b")) == nil && a.Done(s.ctx, errors.New("of a")) == nil, "a task cannot report")
		for _, w := range []func() (bool, error){w1, w2} {
			var e *RunError
			s.that(errors.As(s.whole("a waiter", w), &e) && e.Task == "b", "the run failed by %v", e)
		}
	},
	// An endpoint's failure ends each task that is under way there, with the
	// run that waits for it told, and nothing else (R20).
	"endpoint fails": func(s *stage) {
		boom := errors.New("boom")
		near, far := s.endpoint("near"), s.endpoint("far")
		var d *Domain
		var early, a, b, c, loose *Task
		h := s.submit(func() {
			d = s.domain()
			early, a, b, c = s.on(near, "early"), s.on(near, "a"), s.on(near, "b"), s.on(far, "c")
			loose, _ = s.o.AddTask(s.ctx, "loose")
		})
		s.that(early.Done(s.ctx, nil) == nil, "a task cannot report")
		w1 := s.start(func() error { return h.Wait(s.ctx) })
		w2 := s.start(func() error { return h.Wait(s.ctx) })
		s.that(s.o.recycling.take(s.ctx, 0) == nil, "somebody makes places free") // nobody does from here on
		s.that(near.Fail(s.ctx, boom) == nil && near.Fail(s.ctx, errors.New("another")) == nil, "the failure is not taken")
		_, pending := h.Tasks()
		s.that(pending == 2, "%d tasks are pending, those elsewhere are 2", pending)
		for _, t := range []*Task{early, a, b} {
			s.that(errors.Is(t.Done(s.ctx, nil), ErrTaskOver), "task %s is told nothing", t.name)
		}
		ended, _ := w1()
		s.that(!ended && !d.Freed(), "the run ended with tasks under way elsewhere")
		s.that(c.Done(s.ctx, errors.New("of c")) == nil && loose.Done(s.ctx, nil) == nil, "a task elsewhere cannot report")
		for _, w := range []func() (bool, error){w1, w2} {
			var e *RunError
			err := s.whole("a waiter", w)
			s.that(errors.As(err, &e) && e.Task == "a" && e.Endpoint == "near" && e.Cause == boom, "the run failed by %v", err)
			s.that(errors.Is(err, ErrEndpointFailed) && errors.Is(err, ErrTaskFailed), "the run failed by %v", err)
		}
		s.that(d.Freed(), "the failed run owns what it owned")
		h = s.submit(func() {
			s.that(errors.Is(dropped(near.AddTask(s.ctx, "t")), ErrEndpointFailed), "a task is given to an endpoint that failed")
			s.that(s.on(far, "c").Done(s.ctx, nil) == nil, "an endpoint failed that did not")
		})
		s.that(h.Wait(s.ctx) == nil, "a failure reached a run that it is not of")
		s.o.recycling.give()
		s.o.recycle()
		s.that(s.endpoint("new").ref.Slot == near.ref.Slot, "the place is not used again")
		s.that(near.Fail(s.ctx, boom) == nil, "it is known")
		s.submit(func() {
			s.that(errors.Is(dropped(near.AddTask(s.ctx, "t")), ErrEndpointFailed), "an old handle names another's endpoint")
		})
	},
	// A close that waits for a run ends when the run's endpoint has failed, since
	// nothing else would end it (R16, R20).
	"endpoint fails during close": func(s *stage) {
		at := s.endpoint("worker")
		h := s.submit(func() { s.domain(); s.on(at, "t") })
		closed := s.start(func() error { return s.o.Close(s.ctx) })
		ended, _ := closed()
		s.that(!ended && s.closes == 0, "closed ahead of an accepted run")
		s.that(at.Fail(s.ctx, errors.New("boom")) == nil, "the failure is not taken")
		s.that(s.whole("close", closed) == nil && s.closes == 1, "close fails")
		s.that(errors.Is(h.Wait(s.ctx), ErrEndpointFailed), "the run is told otherwise")
	},
	// A task's end is no end of the run while others are pending (R2).
	"fence with a task pending": func(s *stage) {
		var d *Domain
		var a, b *Task
		h := s.submit(func() { d = s.domain(); a, _ = s.o.AddTask(s.ctx, "a"); b, _ = s.o.AddTask(s.ctx, "b") })
		s.that(a.Done(s.ctx, nil) == nil, "a task cannot report")
		s.that(errors.Is(dropped(s.o.d.Fire(s.ctx, h.ref, s.o.at.fence)), ErrTasksPending) && !d.Freed(), "fenced with a task pending")
		s.that(b.Done(s.ctx, nil) == nil && h.Wait(s.ctx) == nil && d.Freed(), "the run does not end")
	},
	// Allocation outside of a build has no owner and is refused, after what does
	// not depend on a run (R3).
	"allocation outside of a build": func(s *stage) {
		s.that(errors.Is(dropped(s.o.AllocateDomain(s.ctx, 0)), ErrDomainRanks), "the order of refusals")
		s.that(errors.Is(dropped(s.o.AllocateDomain(s.ctx, 2)), ErrNotBuilding), "allocated with no run to free it")
		s.that(errors.Is(dropped(s.o.Charge(s.ctx, Region, 1)), ErrNotBuilding), "charged to no run")
	},
}

// in is the name of the state that an instance is in.
func (o *Orchestrator) in(ref machine.Ref) (name string) {
	o.d.View(func(w *machine.World) { name = w.StateName(ref) })
	return name
}

// race plays one of the races by the rules that are given and returns what does not hold.
func race(t *testing.T, rules *machine.Rules, of func(*stage)) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{
			parked: map[string]chan struct{}{}, arrived: map[string]bool{}, end: make(chan struct{}),
			freed: map[uint64]int{}, fails: map[uint64]error{}, under: map[uint64]bool{},
		}
		s.o, err = NewOrchestrator(OrchestratorConfig{Backend: s, Workers: []Closer{s}, Rules: rules})
		require.NoError(t, err)
		var cancel context.CancelFunc
		s.ctx, cancel = context.WithCancel(t.Context())
		defer func() {
			cancel()
			close(s.end)
			if p := recover(); p != nil {
				b, ok := p.(broken)
				if !ok {
					panic(p)
				}
				err = errors.New(string(b))
			}
		}()
		of(s)
	})
	return err
}

func TestRaces(t *testing.T) {
	for name, of := range races {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) { require.NoError(t, race(t, OrchestratorRules(), of)) })
	}
}

// rowOf finds a row of mutable definitions.
func rowOf(defs []*machine.Definition, name, id string) *machine.Row {
	for _, d := range defs {
		for i := range d.Rows {
			if d.Name == name && d.Rows[i].ID == id {
				return &d.Rows[i]
			}
		}
	}
	panic("no row " + name + "/" + id)
}

func viewOf(defs []*machine.Definition, name, view string) *machine.View {
	for _, d := range defs {
		for i := range d.Views {
			if d.Name == name && d.Views[i].Name == view {
				return &d.Views[i]
			}
		}
	}
	panic("no view " + name + "/" + view)
}

func definitionOf(defs []*machine.Definition, name string) *machine.Definition {
	for _, d := range defs {
		if d.Name == name {
			return d
		}
	}
	panic("no machine " + name)
}

// mutations break one property each, and name the race that notices.
var mutations = map[string]struct {
	race string
	do   func(defs []*machine.Definition)
}{
	"the lock of release and retirement is gone": {"release preempted between check and append", func(d []*machine.Definition) {
		r := rowOf(d, "domain", "release")
		r.Command = "CloseWorkers()" // here another comes in
		rowOf(d, "resources", "put-off").From += "|retiring|retired"
	}},
	"stragglers are not drained": {"release while its run retires", func(d []*machine.Definition) {
		rowOf(d, "resources", "retire-stragglers").Then = []machine.Target{{When: "queued == 4096", To: "retiring", Emit: []string{"self.straggle()"}}, {To: "retired"}}
	}},
	"a late release is put off too": {"late release after the fence", func(d []*machine.Definition) {
		rowOf(d, "domain", "release").Guard = "view.deferring || true"
		rowOf(d, "domain", "release").Then[0].With = nil
	}},
	"a run is never seen to retire": {"late release after the fence", func(d []*machine.Definition) {
		viewOf(d, "domain", "deferring").Expr += ` || owner.state == "retired" || owner.state == "free"`
		rowOf(d, "domain", "release").Then[0].With = nil
	}},
	"a fence sweeps what is another's": {"fence of another run", func(d []*machine.Definition) {
		viewOf(d, "resources", "straggler").Expr = `first(domain, state == "live")`
		rowOf(d, "resources", "swept").Guard = "view.straggler == none"
		rows := definitionOf(d, "resources")
		rows.Rows = append(rows.Rows, machine.Row{ID: "sweep-any", From: "sweeping", Event: "sweep", Guard: "else", Then: []machine.Target{{Do: "domain = view.straggler", Emit: []string{"domain.free()", "self.sweep()"}}}})
	}},
	"no claim: what is freed is freed again": {"sweep from a snapshot taken before a release", func(d []*machine.Definition) {
		*rowOf(d, "domain", "free-freed") = machine.Row{ID: "free-freed", From: "freed", Event: "free", Then: []machine.Target{{To: "freeing", With: []string{"free_lock.take()"}, Emit: []string{"self.execute()"}}}}
	}},
	"the second caller does not wait": {"second caller during the first's backend call", func(d []*machine.Definition) {
		m := definitionOf(d, "domain")
		m.Rows = append(m.Rows, machine.Row{ID: "release-at-it", From: "freeing▸execute", Event: "release", Then: []machine.Target{{}}})
	}},
	"freed before the release is executed": {"second caller during the first's backend call", func(d []*machine.Definition) {
		rowOf(d, "domain", "free-live").Then[0].To = "freed"
		rowOf(d, "domain", "execute").From = "freeing|freed"
		rowOf(d, "domain", "execute").Then[0].To = ""
	}},
	"the outcome is success whatever came": {"a failed release is told again", func(d []*machine.Definition) {
		rowOf(d, "domain", "execute").Then = []machine.Target{{To: "freed", With: []string{"free_lock.give()"}}}
	}},
	"a failure is tried again": {"a failed release is told again", func(d []*machine.Definition) {
		rowOf(d, "domain", "release-failed").Then = []machine.Target{{To: "freeing", With: []string{"free_lock.take()"}, Emit: []string{"self.execute()"}}}
	}},
	"a failure is not told again": {"a failed release is told again", func(d []*machine.Definition) {
		rowOf(d, "domain", "release-failed").Then = []machine.Target{{}}
	}},
	"a failed release is gone": {"a failed late release stays visible", func(d []*machine.Definition) {
		rowOf(d, "domain", "execute").Then[1].To = "freed"
	}},
	"close looks at no residue": {"a failed release is told again", func(d []*machine.Definition) {
		viewOf(d, "ending", "residue").Expr = `any(domain, state == "unused" && state == "failed")`
	}},
	"there is no lock of releases": {"one release at a time", func(d []*machine.Definition) {
		*rowOf(d, "free_lock", "take-held") = machine.Row{ID: "take-held", From: "held", Event: "take", Then: []machine.Target{{}}}
		rowOf(d, "free_lock", "give").From = "open|held"
	}},
	"close does not wait for a release": {"close during release", func(d []*machine.Definition) {
		viewOf(d, "ending", "domain").Expr = `first(domain, state == "live" || state == "queued")`
	}},
	"close does not wait for an allocation": {"close during an allocation", func(d []*machine.Definition) {
		viewOf(d, "ending", "domain").Expr = `first(domain, state == "live" || state == "freeing")`
	}},
	"close does not sweep": {"fence of another run", func(d []*machine.Definition) {
		viewOf(d, "ending", "domain").Expr = `first(domain, state == "queued" && state == "live")`
	}},
	"close does not wait for a build": {"close during submit", func(d []*machine.Definition) {
		viewOf(d, "ending", "building").Expr = `orchestrator.building != none && orchestrator.state == "new"`
		viewOf(d, "ending", "prior").Expr = `first(resources, state == "running")`
	}},
	"a close admits runs": {"close during submit", func(d []*machine.Definition) {
		rowOf(d, "orchestrator", "check-over").From = "closed"
		rowOf(d, "orchestrator", "check").From = "open|closing"
		rowOf(d, "building", "start-closed").Guard = "view.new"
		rowOf(d, "orchestrator", "build").From = "open|closing"
		rowOf(d, "orchestrator", "build-second").From = "open|closing"
	}},
	"a spent budget goes on to the teardown": {"close with its budget spent", func(d []*machine.Definition) {
		viewOf(d, "ending", "prior").Expr = `first(resources, state == "running" && pending == 0)`
	}},
	"a place is made free that a close has still to come by": {"close with its budget spent on a release", func(d []*machine.Definition) {
		rowOf(d, "domain", "forget-owned").Guard = "view.owned"
	}},
	"a run is forgotten that a close has still to come by": {"close with its budget spent on a run that ends", func(d []*machine.Definition) {
		rowOf(d, "resources", "forget-drained").Guard = "view.drained && failed"
	}},
	"a run is built ahead of the one before": {"submit while another builds", func(d []*machine.Definition) {
		viewOf(d, "building", "prior").Expr = `any(resources, state == "building")`
	}},
	"charging waits for a release": {"charge during a release", func(d []*machine.Definition) {
		m := definitionOf(d, "resource")
		m.Rows = slices.DeleteFunc(m.Rows, func(r machine.Row) bool { return r.ID == "charge-releasing" })
	}},
	"the last error wins": {"first error", func(d []*machine.Definition) {
		rowOf(d, "resources", "task-failed").Guard = "arg.failed"
	}},
	"an endpoint's failure is told to nobody": {"endpoint fails during close", func(d []*machine.Definition) {
		rowOf(d, "endpoint", "tell").Guard = "view.under_way != none && code == 4711"
	}},
	"an endpoint's failure is told to one task": {"endpoint fails", func(d []*machine.Definition) {
		rowOf(d, "endpoint", "tell").Then[0].To, rowOf(d, "endpoint", "tell").Then[0].Emit = "failed", nil
	}},
	"an endpoint's failure is told to tasks elsewhere": {"endpoint fails", func(d []*machine.Definition) {
		viewOf(d, "endpoint", "under_way").Expr = `first(task, state == "pending")`
	}},
	"a task's run is not told that it was lost": {"endpoint fails", func(d []*machine.Definition) {
		rowOf(d, "task", "lost").Then[0].With = []string{"owner.task_over(self, false, 0)"}
	}},
	"an endpoint that failed takes tasks": {"endpoint fails", func(d []*machine.Definition) {
		*rowOf(d, "endpoint", "assign-failed") = machine.Row{ID: "assign-failed", From: "failing|failed", Event: "assign", Then: []machine.Target{{}}}
	}},
	"a fence does not look at its tasks": {"fence with a task pending", func(d []*machine.Definition) {
		rowOf(d, "resources", "fence-pending").Guard = "pending == 4096"
	}},
	"an allocation needs no run": {"allocation outside of a build", func(d []*machine.Definition) {
		rowOf(d, "domain", "allocate-outside").Guard = "view.building == none && view.new"
	}},
	"no run is looked at ahead of the arguments": {"allocation outside of a build", func(d []*machine.Definition) {
		rowOf(d, "domain", "allocate-empty").Guard, rowOf(d, "domain", "allocate-outside").Guard = "view.building == none", "arg.ranks == 0"
		rowOf(d, "domain", "allocate-empty").Refuse, rowOf(d, "domain", "allocate-outside").Refuse = ErrNotBuilding, ErrDomainRanks
	}},
}

// Every property has a race that notices when it is taken away.
func TestMutationsAreNoticed(t *testing.T) {
	for name, m := range mutations {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			defs := OrchestratorDefinitions()
			m.do(defs)
			rules, err := machine.Compile(defs...)
			require.NoError(t, err)
			err = race(t, rules, races[m.race])
			require.Error(t, err, "%q notices nothing", m.race)
			t.Log(err)
		})
	}
}
