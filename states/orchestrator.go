package states

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runfence/runfence/machine"
)

// ResourceBackend makes and gives back what runs own. The orchestrator calls it
// without any lock of its own, and one ReleaseDomain at a time (R22). An error
// means attempted and failed; a panic is taken for one. The context marks its
// origin: through it the orchestrator refuses with [machine.ErrReentrant] what
// would wait for this very call. That of a release is never done: what fails is
// not tried again, so no deadline of whoever comes by may make it fail.
type ResourceBackend interface {
	// ReleaseResource gives an object of one of the three groups back.
	ReleaseResource(ctx context.Context, g Group, key uint64) error
	// AllocateDomain makes the communication domain of that allocation. An
	// error that wraps [ErrDomainRelease] says that something of it is left.
	AllocateDomain(ctx context.Context, allocation uint64, ranks int) error
	// ReleaseDomain gives it back. It is called once for an allocation (R11).
	ReleaseDomain(ctx context.Context, allocation uint64) error
}

// Closer is a worker below an orchestrator, such as a [ChipWorker].
type Closer interface {
	Close(ctx context.Context) error
}

// Pending is something below an orchestrator that has to be waited for, such as a
// [Run] of a chip worker. It is over when Finalize succeeds; how it ended is
// what Wait said. Wait ends with its context, at the latest, and may then be
// called again.
type Pending interface {
	Wait(ctx context.Context) error
	Finalize(ctx context.Context) error
}

// OrchestratorConfig sets up an [Orchestrator].
type OrchestratorConfig struct {
	// Backend makes and gives back resources. Required.
	Backend ResourceBackend
	// Workers are closed, in order, when everything else is (R15, R25).
	Workers []Closer
	// Name names it in logs; empty is "orchestrator".
	Name string
	// Rules are the lifecycles to run by; nil is [OrchestratorRules].
	Rules *machine.Rules
	// Level is how far up the hierarchy it stands; 0 means 3. Communication
	// domains need 3.
	Level int
	// Places for runs, objects, domains and tasks at a time; 0 means 4, 64, 16, 64.
	Runs, Resources, Domains, Tasks int
	// Endpoints is how many may be open at a time; 0 means 16.
	Endpoints int
	// Budget bounds a Close, from its beginning; 0 leaves that to the context.
	Budget time.Duration
	// Bound ends a wait for another goroutine's operation when the caller's
	// context has no deadline; 0 means 30 s.
	Bound time.Duration
	// Recorder takes the transition log; nil keeps none. Clock gives the time
	// of its records, in ns.
	Recorder machine.Recorder
	Clock    func() int64
}

// Pools returns the pool capacities that the config asks for.
func (c OrchestratorConfig) Pools() map[string]int {
	p := map[string]int{"work": c.Runs, "resource": c.Resources, "domain": c.Domains, "task": c.Tasks, "endpoint": c.Endpoints}
	for name, n := range map[string]int{"work": 4, "resource": 64, "domain": 16, "task": 64, "endpoint": 16} {
		if p[name] == 0 {
			p[name] = n
		}
	}
	return p
}

// Orchestrator submits runs whose resources are their own: what is made while
// a run's graph is built is charged to that run and released at its fence. It
// is the layer above chip workers and their lanes. All methods are safe for
// concurrent use, as far as the Backend is.
type Orchestrator struct {
	config OrchestratorConfig
	d      *machine.Driver
	at     orchestratorDirectory

	submitting, closing turn
	graph               func(ctx context.Context) error // of the submission that has its turn

	// recycling is held while places are made free; stale says that there may be
	// some since.
	recycling turn
	stale     atomic.Bool

	mu       sync.Mutex
	handles  map[machine.Ref]*RunHandle
	tasks    map[machine.Ref]*Task
	objects  map[object]machine.Ref
	failures map[uint64]error // of releases of domains, by allocation
	free     map[machine.MachineID][]machine.Ref
	places   map[machine.MachineID]int
}

// object names a resource: in every group keys are unique.
type object struct {
	group Group
	key   uint64
}

type orchestratorDirectory struct {
	orchestrator, building, resources, resource, domain, task, endpoint, ending *machine.Machine

	init, check, start, await, fence, charge, allocate, add, addOn, done, fail machine.EventID
	releaseResource, releaseDomain                                             machine.EventID
	retired, freed, gone, released, goneObject                                 machine.StateID
}

// ErrNilResourceBackend is for an OrchestratorConfig without a Backend.
var ErrNilResourceBackend = errors.New("states: nil resource backend")

// NewOrchestrator makes an orchestrator that takes runs. Errors:
// [ErrNilResourceBackend], or of the config.
func NewOrchestrator(c OrchestratorConfig) (*Orchestrator, error) {
	if c.Backend == nil {
		return nil, ErrNilResourceBackend
	}
	if c.Rules == nil {
		c.Rules = OrchestratorRules()
	}
	if c.Name == "" {
		c.Name = "orchestrator"
	}
	if c.Level == 0 {
		c.Level = 3
	}
	if c.Bound == 0 {
		c.Bound = 30 * time.Second
	}
	o := &Orchestrator{
		config: c, submitting: make(turn, 1), closing: make(turn, 1), recycling: make(turn, 1),
		handles: map[machine.Ref]*RunHandle{}, tasks: map[machine.Ref]*Task{}, objects: map[object]machine.Ref{},
		failures: map[uint64]error{}, free: map[machine.MachineID][]machine.Ref{},
		places: map[machine.MachineID]int{},
	}
	if err := o.at.look(c.Rules); err != nil {
		return nil, err
	}
	w, err := c.Rules.NewWorld(machine.Config{Name: c.Name, Pools: c.Pools(), Recorder: c.Recorder, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	for _, m := range []*machine.Machine{o.at.resource, o.at.domain, o.at.task, o.at.endpoint} {
		o.places[m.ID()] = w.Capacity(m.ID())
		for s := w.Capacity(m.ID()) - 1; s >= 0; s-- {
			o.free[m.ID()] = append(o.free[m.ID()], w.Ref(m.ID(), s))
		}
	}
	p, err := o.performer(c.Rules)
	if err != nil {
		return nil, err
	}
	if o.d, err = machine.NewDriver(w, machine.DriverConfig{Performer: p, Bound: c.Bound}); err != nil {
		return nil, err
	}
	_, err = o.d.Fire(context.Background(), one(o.at.orchestrator), o.at.init, uint64(c.Level))
	return o, err
}

func (at *orchestratorDirectory) look(r *machine.Rules) error {
	for name, m := range map[string]**machine.Machine{
		"orchestrator": &at.orchestrator, "building": &at.building, "resources": &at.resources, "resource": &at.resource,
		"domain": &at.domain, "task": &at.task, "endpoint": &at.endpoint, "ending": &at.ending,
	} {
		if *m = r.Machine(name); *m == nil {
			return fmt.Errorf("states: the rules have no machine %q", name)
		}
	}
	at.init, at.check = at.orchestrator.MustEvent("init"), at.orchestrator.MustEvent("check")
	at.start = at.building.MustEvent("start")
	at.await, at.fence = at.resources.MustEvent("await"), at.resources.MustEvent("fence")
	at.charge, at.releaseResource = at.resource.MustEvent("charge"), at.resource.MustEvent("release")
	at.allocate, at.releaseDomain = at.domain.MustEvent("allocate"), at.domain.MustEvent("release")
	at.add, at.addOn, at.done = at.task.MustEvent("add"), at.task.MustEvent("add_on"), at.task.MustEvent("done")
	at.fail = at.endpoint.MustEvent("fail")
	at.retired, _ = at.resources.State("retired")
	at.freed, _ = at.domain.State("freed")
	at.gone, _ = at.domain.State("gone")
	at.released, _ = at.resource.State("released")
	at.goneObject, _ = at.resource.State("gone")
	return nil
}

func one(m *machine.Machine) machine.Ref { return machine.Ref{Machine: m.ID()} }

// Driver returns the driver under the orchestrator, for observers and tests.
func (o *Orchestrator) Driver() *machine.Driver { return o.d }

// inBuild is the key by which a context says that it comes from a build.
type inBuild struct{ o *Orchestrator }

// Submit drains the runs before it, then has build make the run's graph:
// whatever is charged, allocated or added meanwhile, by whichever goroutine, is
// the run's. One run builds at a time; others wait for their turn within their
// context. Build's context is Submit's, marked: a submit or a close through it
// is refused.
//
// A run whose build failed or panicked is a failed run: Submit returns its
// handle and [ErrBuildFailed], and the run is over when its tasks are.
//
// Errors: [ErrNestedSubmit], which is [machine.ErrReentrant] as well;
// [ErrOrchestratorClosed]; [ErrRunWait] if a prior run is not over within the
// context; [ErrTooManyRuns]; [machine.ErrBusy].
func (o *Orchestrator) Submit(ctx context.Context, build func(ctx context.Context) error) (*RunHandle, error) {
	if err := o.nested(ctx); err != nil {
		return nil, err
	}
	if _, err := o.d.Fire(ctx, one(o.at.orchestrator), o.at.check); err != nil {
		return nil, err
	}
	if err := o.take(ctx, o.submitting); err != nil {
		return nil, err
	}
	defer o.submitting.give()
	for full := false; ; {
		if err := o.drain(ctx); err != nil {
			return nil, err
		}
		var h *RunHandle
		var failure error
		o.graph = func(context.Context) error {
			o.d.View(func(w *machine.World) {
				v, _ := w.Fact(one(o.at.building), o.at.building.MustFact("run"))
				h = &RunHandle{o: o, ref: machine.UnpackRef(v), waiting: make(turn, 1)}
			})
			o.mu.Lock()
			o.handles[h.ref] = h
			o.mu.Unlock()
			failure = errPanicked // until it returns
			failure = build(context.WithValue(ctx, inBuild{o}, true))
			h.build = failure
			return failure
		}
		_, err := o.d.Fire(ctx, one(o.at.building), o.at.start)
		o.graph = nil
		if errors.Is(err, ErrTooManyRuns) && !full {
			// Every run is over, so somebody is just making their places free.
			full = true
			if err := o.recycling.take(ctx, o.config.Bound); err != nil {
				return nil, err
			}
			o.recycleNow()
			o.recycling.give()
			continue
		}
		if h != nil && err != nil {
			h.build = failure
			err = fmt.Errorf("%w: %w", err, failure)
		}
		return h, err
	}
}

var errPanicked = errors.New("the build panicked")

// nested refuses what comes from inside of a build and would wait for it.
func (o *Orchestrator) nested(ctx context.Context) error {
	if ctx.Value(inBuild{o}) != nil {
		return fmt.Errorf("%w: %w", ErrNestedSubmit, machine.ErrReentrant)
	}
	return nil
}

// drain waits for every run that is not over, whatever its outcome (R19).
func (o *Orchestrator) drain(ctx context.Context) error {
	o.mu.Lock()
	var prior []*RunHandle
	for _, h := range o.handles {
		prior = append(prior, h)
	}
	o.mu.Unlock()
	for _, h := range prior {
		if err := h.Wait(ctx); err != nil && !h.over() {
			return err
		}
	}
	return nil
}

// Close ends the orchestrator: it takes no more runs, waits for a build under
// way and for accepted runs, releases what no fence released, and then closes
// the workers. The budget is counted from the beginning; what a build takes of
// it is not there for the runs.
//
// With the budget spent, nothing is lost and no worker was touched: closing
// again goes on, with a run that was at its fence too. Closing what is closed
// does nothing. Closers take turns.
//
// Errors: [ErrCloseBudget]; [ErrTeardown] if a worker could not be closed, and
// closing again tries it again; [ErrResidue], each time, if something could not
// be released; [ErrNestedSubmit] from inside of a build, and
// [machine.ErrReentrant] from inside of a backend's call.
func (o *Orchestrator) Close(ctx context.Context) error {
	if err := o.nested(ctx); err != nil {
		return err
	}
	if o.config.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.config.Budget)
		defer cancel()
	}
	switch err := o.take(ctx, o.closing); {
	case errors.Is(err, machine.ErrBusy):
		return fmt.Errorf("%w: %w", ErrCloseBudget, err)
	case err != nil:
		return err
	}
	defer o.closing.give()
	_, err := o.d.Fire(ctx, one(o.at.ending), o.at.ending.MustEvent("start"))
	if errors.Is(err, machine.ErrBusy) {
		return fmt.Errorf("%w: %w", ErrCloseBudget, err)
	}
	return err
}

// take waits for a turn, unless it is asked from inside of a backend's call,
// which may be part of the operation that has the turn.
func (o *Orchestrator) take(ctx context.Context, t turn) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	if _, err := o.d.Resume(ctx, one(o.at.orchestrator)); err != nil {
		return err
	}
	return t.take(ctx, o.config.Bound)
}

// turn lets operations go one at a time, each waiting within its context.
type turn chan struct{}

func (t turn) take(ctx context.Context, bound time.Duration) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	if _, ends := ctx.Deadline(); !ends {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, bound)
		defer cancel()
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", machine.ErrBusy, context.Cause(ctx))
	}
}

func (t turn) give() { <-t }
