package invariants_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/states"
)

// make soak sets these.
var (
	soakOps  = flag.Int("soak.n", 4000, "operations of the soak")
	soakTime = flag.Duration("soak.time", 10*time.Minute, "begin no other round after this long")
	soakSeed = flag.Uint64("soak.seed", 1, "of the first round; each round has the next")
)

const (
	soakers    = 8
	roundOps   = 2000 // of all goroutines
	phases     = 5    // of a round, each with a quiescent point at its end
	soakFaults = 12
)

// onHost makes and gives back resources on a simulated device that many
// goroutines share: each call is a caller of its own, for as long as it takes.
type onHost struct {
	h       *sim.Host
	mu      sync.Mutex
	memory  map[uint64]backend.Memory // by allocation
	made    int
	given   int
	failing int
}

var errDevice = errors.New("the device refuses or fails")

func failure(r backend.Result) error {
	if r.Ok() {
		return nil
	}
	return fmt.Errorf("%w: code %d", errDevice, r.Code)
}

func (b *onHost) AllocateDomain(ctx context.Context, a uint64, ranks int) error {
	c := b.h.Enter()
	defer c.Leave()
	m, r := c.Alloc(ctx, backend.DeviceMemory, uint64(64*ranks))
	if !r.Ok() {
		return failure(r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory[a] = m
	b.made++
	return nil
}

func (b *onHost) ReleaseDomain(ctx context.Context, a uint64) (err error) {
	c := b.h.Enter()
	defer c.Leave()
	b.mu.Lock()
	m := b.memory[a]
	delete(b.memory, a)
	b.failing++ // unless it comes back with success
	b.mu.Unlock()
	if err := failure(c.Free(ctx, m)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing--
	b.given++
	return nil
}

func (b *onHost) ReleaseResource(ctx context.Context, _ states.Group, _ uint64) error {
	c := b.h.Enter()
	defer c.Leave()
	_, r := c.CurrentContext(ctx)
	return failure(r)
}

// round is one orchestrator under eight goroutines, from making to close.
type round struct {
	t    testing.TB
	o    *states.Orchestrator
	b    *onHost
	ops  atomic.Int64
	mu   sync.Mutex
	runs []*states.RunHandle
	doms []*states.Domain
	objs []*states.Resource
	open []*states.Task
	ends []*states.Endpoint
	jobs []*work
	key  atomic.Uint64
	bad  atomic.Pointer[string]
}

// wrong notes what must not come, the first time.
func (r *round) wrong(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	r.bad.CompareAndSwap(nil, &s)
}

// may checks an answer against those that an operation may give.
func (r *round) may(what string, err error, allowed ...error) {
	r.ops.Add(1)
	if err == nil {
		return
	}
	for _, a := range allowed {
		if errors.Is(err, a) {
			return
		}
	}
	r.wrong("%s: %v", what, err)
}

// work is what somebody has to wait for. It is over when it is let.
type work struct {
	let  chan struct{}
	ends error
}

func (w *work) Wait(ctx context.Context) error {
	select {
	case <-w.let:
		return w.ends
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *work) Finalize(context.Context) error {
	select {
	case <-w.let:
		return nil
	default:
		return states.ErrUnproven
	}
}

// finish reports every task that is known, so that whoever waits gets on.
func (r *round) finish(ctx context.Context, random *rand.Rand) {
	r.mu.Lock()
	open, jobs := r.open, r.jobs
	r.open, r.jobs = nil, nil
	r.mu.Unlock()
	for _, w := range jobs {
		close(w.let)
	}
	for _, t := range open {
		var err error
		if random.IntN(8) == 0 {
			err = errDevice
		}
		r.may("done", t.Done(ctx, err), states.ErrTaskOver)
	}
}

func (r *round) charge(ctx context.Context, random *rand.Rand) {
	key := r.key.Add(1)
	if random.IntN(4) == 0 {
		key = 1 + random.Uint64N(key) // it may be taken
	}
	x, err := r.o.Charge(ctx, states.Group(random.IntN(3)), key)
	r.may("charge", err, states.ErrNotBuilding, states.ErrDuplicate, states.ErrPlaces)
	if err == nil {
		r.mu.Lock()
		r.objs = append(r.objs, x)
		r.mu.Unlock()
	}
}

func (r *round) allocate(ctx context.Context) {
	d, err := r.o.AllocateDomain(ctx, 2)
	r.may("allocate", err, states.ErrNotBuilding, states.ErrPlaces, states.ErrDomainAllocate)
	if err == nil {
		r.mu.Lock()
		r.doms = append(r.doms, d)
		r.mu.Unlock()
	}
}

// attach adds work that has to be waited for.
func (r *round) attach(ctx context.Context, random *rand.Rand) {
	w := &work{let: make(chan struct{})}
	if random.IntN(8) == 0 {
		w.ends = errDevice
	}
	_, err := r.o.Attach(ctx, "work", w)
	r.may("attach", err, states.ErrNotBuilding, states.ErrPlaces)
	if err == nil {
		r.mu.Lock()
		r.jobs = append(r.jobs, w)
		r.mu.Unlock()
	}
}

// addTask adds a task, on an endpoint if there is one: it may have failed.
func (r *round) addTask(ctx context.Context, random *rand.Rand) {
	add := r.o.AddTask
	if e := pick(r, random, &r.ends); e != nil && random.IntN(2) == 0 {
		add = e.AddTask
	}
	t, err := add(ctx, "task")
	r.may("add a task", err, states.ErrNotBuilding, states.ErrPlaces, states.ErrEndpointFailed)
	if err == nil {
		r.mu.Lock()
		r.open = append(r.open, t)
		r.mu.Unlock()
	}
}

func (r *round) submit(ctx context.Context, random *rand.Rand) {
	r.finish(ctx, random)
	h, err := r.o.Submit(ctx, func(ctx context.Context) error {
		for range random.IntN(4) {
			r.charge(ctx, random)
		}
		for range random.IntN(3) {
			r.allocate(ctx)
		}
		for range random.IntN(3) {
			r.addTask(ctx, random)
		}
		for range random.IntN(3) {
			r.attach(ctx, random)
		}
		switch random.IntN(20) {
		case 0:
			return errDevice
		case 1:
			panic("in the build")
		case 2:
			_, err := r.o.Submit(ctx, nil)
			if !errors.Is(err, states.ErrNestedSubmit) {
				r.wrong("a nested submit: %v", err)
			}
		}
		return nil
	})
	r.may("submit", err, states.ErrBuildFailed, states.ErrOrchestratorClosed)
	if h != nil {
		r.mu.Lock()
		r.runs = append(r.runs, h)
		r.mu.Unlock()
	}
}

// pick takes one of a list at random; nil if there is none.
func pick[T any](r *round, random *rand.Rand, list *[]*T) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(*list) == 0 {
		return nil
	}
	if n := len(*list); n > 64 { // those of long ago are only a few of the cases
		*list = append([]*T(nil), (*list)[n-32:]...)
	}
	return (*list)[random.IntN(len(*list))]
}

func (r *round) one(ctx context.Context, random *rand.Rand) {
	switch random.IntN(14) {
	case 0, 1:
		r.submit(ctx, random)
	case 2:
		if h := pick(r, random, &r.runs); h != nil {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			r.may("a wait that expires", h.Wait(ended), states.ErrTaskFailed, states.ErrBuildFailed, states.ErrRunWait)
		}
	case 3:
		if h := pick(r, random, &r.runs); h != nil {
			r.finish(ctx, random)
			r.may("wait", h.Wait(ctx), states.ErrTaskFailed, states.ErrBuildFailed)
		}
	case 4, 5:
		if d := pick(r, random, &r.doms); d != nil {
			err := d.Release(ctx)
			r.may("release", err, states.ErrDomainRelease)
			if err != nil && d.Freed() {
				r.wrong("allocation %d failed and is freed", d.Allocation())
			}
		}
	case 6:
		r.allocate(ctx)
	case 7:
		r.charge(ctx, random)
	case 8:
		r.addTask(ctx, random)
	case 9:
		if x := pick(r, random, &r.objs); x != nil {
			r.may("release an object", x.Release(ctx), states.ErrResourceRelease)
		}
	case 10:
		r.finish(ctx, random)
	case 11:
		if d := pick(r, random, &r.doms); d != nil && d.Freed() {
			r.may("release what is freed", d.Release(ctx))
		}
	case 12:
		e, err := r.o.OpenEndpoint(ctx, "endpoint")
		r.may("open an endpoint", err, states.ErrPlaces)
		if err == nil {
			r.mu.Lock()
			r.ends = append(r.ends, e)
			r.mu.Unlock()
		}
	case 13:
		if e := pick(r, random, &r.ends); e != nil {
			r.may("fail an endpoint", e.Fail(ctx, errDevice))
		}
	}
}

// soakLog is where a round keeps its log. It is written as the round goes, so
// that a crash leaves it too, and is removed when all is well.
func soakLog(dir string, seed uint64) string {
	return filepath.Join(dir, fmt.Sprintf("soak-%d.log", seed))
}

// soakRound plays a round and returns how many operations and checks it made.
func soakRound(t testing.TB, rules *machine.Rules, seed uint64, most int, path string) (ops, checks int, err error) {
	log, err := os.Create(path)
	require.NoError(t, err)
	defer log.Close()
	random := rand.New(rand.NewPCG(seed, 1))
	var plan []sim.Fault
	for range soakFaults {
		op, kind := []string{"Free", "Alloc", "CurrentContext"}[random.IntN(3)], []string{"refuse", "fail-before", "fail-after", "panic-before"}[random.IntN(4)]
		f, err := sim.ParseFault(fmt.Sprintf("%s#%d %s", op, 1+random.IntN(60), kind))
		require.NoError(t, err)
		plan = append(plan, f)
	}
	dev, err := sim.New(sim.Config{Plan: plan})
	require.NoError(t, err)
	host := sim.NewHost(dev, nil)
	w, err := translog.NewWriter(log, rules, translog.Options{})
	require.NoError(t, err)
	b := &onHost{h: host, memory: map[uint64]backend.Memory{}}
	config := states.OrchestratorConfig{Backend: b, Rules: rules, Runs: 4, Resources: 64, Domains: 32, Tasks: 64, Bound: time.Minute}
	config.Recorder = w.World("orchestrator", config.Pools(), 0)
	o, err := states.NewOrchestrator(config)
	require.NoError(t, err)
	r := &round{t: t, o: o, b: b}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	check := func(when string) {
		o.Driver().View(func(w *machine.World) {
			found, n := invariants.CheckResources(w)
			checks += n
			for _, f := range found {
				r.wrong("%s: %v", when, f)
			}
			for m := range rules.NumMachines() {
				for s := range w.Capacity(machine.MachineID(m)) {
					if _, flying, _ := w.State(w.Ref(machine.MachineID(m), s)); flying {
						r.wrong("%s: %s is in flight", when, rules.RefName(w.Ref(machine.MachineID(m), s)))
					}
				}
			}
		})
	}
	each := func(f func(random *rand.Rand, i int)) {
		var all sync.WaitGroup
		for i := range soakers {
			own := rand.New(rand.NewPCG(seed, random.Uint64()))
			all.Go(func() { f(own, i) })
		}
		all.Wait()
	}
	for phase := range phases {
		each(func(random *rand.Rand, _ int) {
			for int(r.ops.Load()) < most*(phase+1)/phases && r.bad.Load() == nil {
				r.one(ctx, random)
			}
			r.finish(ctx, random)
		})
		check(fmt.Sprint("at the end of phase ", phase))
	}
	// Half of them close while the others go on.
	each(func(random *rand.Rand, i int) {
		if i%2 == 0 {
			// First without the time to wait for anything, and maybe half-way.
			ended, cancel := context.WithCancel(ctx)
			cancel()
			r.may("a close with its budget spent", o.Close(ended), states.ErrCloseBudget, states.ErrResidue)
			r.one(ctx, random)
			r.finish(ctx, random)
			r.may("close", o.Close(ctx), states.ErrResidue)
			return
		}
		for range 8 {
			r.one(ctx, random)
		}
		r.finish(ctx, random)
	})
	r.finish(ctx, random)
	r.may("close", o.Close(ctx), states.ErrResidue)
	check("closed")
	b.mu.Lock()
	if len(b.memory) != 0 || b.made != b.given+b.failing {
		r.wrong("%d domains were made, %d given back, %d failed, %d are left", b.made, b.given, b.failing, len(b.memory))
	}
	if len(o.Residue()) != b.failing {
		r.wrong("%d releases failed, the residue is %v", b.failing, o.Residue())
	}
	b.mu.Unlock()
	checks += 2
	if err := w.Close(); err != nil {
		return 0, 0, err
	}
	if bad := r.bad.Load(); bad != nil {
		return int(r.ops.Load()), checks, errors.New(*bad)
	}

	res, err := soakReplay(path, rules)
	if err != nil {
		return int(r.ops.Load()), checks, fmt.Errorf("the replay: %w", err)
	}
	same := false
	o.Driver().View(func(w *machine.World) {
		same = bytes.Equal(w.AppendCanonical(nil, nil), res.Worlds[0].State.AppendCanonical(nil, nil))
	})
	if !same {
		return int(r.ops.Load()), checks, errors.New("the replay ends elsewhere")
	}
	if _, err := host.Replay(); err != nil {
		return int(r.ops.Load()), checks, fmt.Errorf("the device's replay: %w", err)
	}
	return int(r.ops.Load()), checks + 2, nil
}

// soakReplay puts the log of eight goroutines through the rules on one: each step
// as it was, and no allocation released twice.
func soakReplay(path string, rules *machine.Rules) (*replay.Result, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	releases := &invariants.ReleaseCounter{Rules: rules}
	return replay.Run(log, rules, replay.Options{Observer: func(_ *machine.World, rec *machine.Record) error { return releases.Record(rec) }})
}

// TestResourcesSoak: eight goroutines do anything to an orchestrator on a
// simulated device with faults. The invariants hold at every quiescent point,
// every answer is one that may come, nothing is released twice or lost, and the
// log of all of it replays on one goroutine.
func TestResourcesSoak(t *testing.T) {
	goleak.VerifyNone(t)
	began := time.Now()
	ops, checks, rounds := 0, 0, 0
	for ops < *soakOps && time.Since(began) < *soakTime {
		seed := *soakSeed + uint64(rounds)
		path := soakLog(os.TempDir(), seed)
		n, c, err := soakRound(t, states.OrchestratorRules(), seed, min(roundOps, *soakOps-ops), path)
		ops, checks, rounds = ops+n, checks+c, rounds+1
		if err != nil {
			t.Fatalf("round %d, seed %d: %v\nits log, which replays on one goroutine: %s", rounds, seed, err, path)
		}
		require.NoError(t, os.Remove(path))
	}
	goleak.VerifyNone(t)
	t.Logf("%d operations in %d rounds by %d goroutines, %d invariant checks, every round replayed", ops, rounds, soakers, checks)
}

// TestSoakFailureReplays: by rules that are broken the soak fails, and leaves a
// log that shows the failure again, on one goroutine.
func TestSoakFailureReplays(t *testing.T) {
	defs := states.OrchestratorDefinitions()
	for _, d := range defs {
		for i := range d.Rows {
			if d.Name == "domain" && d.Rows[i].ID == "free-freed" { // what is freed is freed again
				d.Rows[i].Then = []machine.Target{{To: "freeing", With: []string{"free_lock.take()"}, Emit: []string{"self.execute()"}}}
			}
		}
	}
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	dir := t.TempDir()
	for seed := range uint64(20) {
		path := soakLog(dir, seed)
		_, _, err := soakRound(t, rules, seed, roundOps, path)
		if err == nil {
			continue
		}
		for range 2 {
			_, err := soakReplay(path, rules)
			require.ErrorContains(t, err, "is released again (R11)")
		}
		_, err = soakReplay(path, states.OrchestratorRules())
		var other *replay.RulesError
		require.ErrorAs(t, err, &other, "the log says by which rules it was")
		return
	}
	t.Fatal("the soak notices nothing")
}
