package states

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// Config sets up a [Lane].
type Config struct {
	// Backend is the device. Required.
	Backend backend.Backend
	// Name names the lane in logs; empty is "lane".
	Name string
	// Rules are the lifecycles to run by; nil is [Rules].
	Rules *machine.Rules
	// Slots is the number of pipeline slots, each with a stream pair and a
	// fence of its own; 0 means 1.
	Slots int
	// Depth is how many runs may be launched and not drained at a time, 1 to
	// Slots; 0 means 1. Above 1 a run is queued behind the one before it (F43).
	Depth int
	// Tokens bounds the wait references that are live at a time; 0 means 4.
	Tokens int
	// Borrowed adopts the context that is current when the lane is opened,
	// under the caller's nonzero Generation. Otherwise the context is the
	// backend's own, and Generation must be zero.
	Borrowed   bool
	Generation uint64
	// Incarnation tells this lane's environments from those of the process's
	// other lanes; 0 takes the next number, so that none repeats (F51). Give it
	// for logs that are to be the same, byte for byte, each time.
	Incarnation uint64
	// Timeout bounds each device wait; 0 means 30 s.
	Timeout time.Duration
	// Process reports the calling process, as os.Getpid does; nil asks the
	// system, on Linux once in each process. A handle that
	// crossed a fork is refused by it before any lock is taken.
	Process func() int
	// Recorder takes the transition log; nil keeps none.
	Recorder machine.Recorder
	// Clock gives the time of log records, in ns.
	Clock func() int64
	// Sites records where in the host's code operations were called from.
	Sites bool
	// Bound ends a wait for another goroutine's operation when the caller's
	// context has no deadline; 0 means 30 s.
	Bound time.Duration
}

// Pools returns the pool capacities that the Config asks for, as a log's
// world record carries them.
func (c Config) Pools() map[string]int {
	slots, tokens := c.Slots, c.Tokens
	if slots == 0 {
		slots = 1
	}
	if tokens == 0 {
		tokens = 4
	}
	return map[string]int{"slot": slots, "token": tokens, "callable": MaxCallables, "watched": 2*slots + 14}
}

// Lane is the runs of one environment: where a host prepares, launches, polls,
// waits for and finalizes them. All methods are safe for concurrent use, as
// far as the Backend is.
type Lane struct {
	config  Config
	d       *machine.Driver
	dev     *device
	process int
	at      *directory
	hearing sync.Mutex // one at a time takes notices
	heard   [8]backend.Notice
}

// directory is where a lane's rules keep what the façade needs: positions of
// machines, events and facts, looked up once.
type directory struct {
	environment, lane, latch, run, fence, token           *machine.Machine
	opening, closing, prepare, launch, poll, drain, final *machine.Machine
	submit, recovery, registry, callable, health          *machine.Machine
	identity                                              [3]machine.FactID // of run
	permit, fault                                         machine.FactID
	arming                                                machine.FactID    // of fence
	occupancy                                             machine.FactID    // of callable
	registered, live                                      machine.StateID   // of callable, of environment
	start                                                 []machine.EventID // by machine, of the operations
}

// ErrNilBackend is returned for a Config without a Backend.
var ErrNilBackend = errors.New("states: nil backend")

// NewLane makes a lane that is not open yet. It touches no device.
//
// It returns [ErrNilBackend], an [*UnknownCommandError] for rules that ask for
// more than a device can do, or an error of the Config.
func NewLane(c Config) (*Lane, error) {
	if c.Backend == nil {
		return nil, ErrNilBackend
	}
	if c.Rules == nil {
		c.Rules = Rules()
	}
	if c.Name == "" {
		c.Name = "lane"
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("states: timeout %v: want a positive one; a device rejects zero and never waits for ever", c.Timeout)
	}
	if c.Process == nil {
		c.Process = callingProcess()
	}
	if c.Depth == 0 {
		c.Depth = 1
	}
	if c.Depth < 0 || c.Depth > 8 || c.Depth > c.Pools()["slot"] {
		return nil, fmt.Errorf("states: depth %d: want 1 to the number of slots, at most 8", c.Depth)
	}
	l := &Lane{config: c, process: c.Process()}
	var err error
	if l.at, err = look(c.Rules); err != nil {
		return nil, err
	}
	w, err := c.Rules.NewWorld(machine.Config{Name: c.Name, Pools: c.Pools(), Recorder: c.Recorder, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	if l.dev, err = newDevice(c.Rules, c.Backend, c.Pools()["slot"], c.Timeout); err != nil {
		return nil, err
	}
	setApart(w, c.Incarnation)
	l.d, err = machine.NewDriver(w, machine.DriverConfig{Performer: l.dev, Bound: c.Bound, Sites: c.Sites})
	return l, err
}

// incarnations counts the environments' makers of the process.
var incarnations atomic.Uint64

// setApart gives a world's environments identities of their own. Each maker
// has 2^16 of them before it meets the next one's.
func setApart(w *machine.World, n uint64) {
	if n == 0 {
		n = incarnations.Add(1)
	}
	w.ReserveIdentity("incarnation", (n-1)<<16)
	w.ReserveIdentity("generation", (n-1)<<16)
}

// look finds the machines in the rules. Rules that lack one are for another façade.
func look(r *machine.Rules) (*directory, error) {
	at := &directory{}
	for name, m := range map[string]**machine.Machine{
		"environment": &at.environment, "lane": &at.lane, "latch": &at.latch, "run": &at.run, "fence": &at.fence, "token": &at.token,
		"opening": &at.opening, "closing": &at.closing, "prepare": &at.prepare, "launch": &at.launch, "poll": &at.poll, "drain": &at.drain, "finalize": &at.final,
		"submit": &at.submit, "recovery": &at.recovery, "registry": &at.registry, "callable": &at.callable, "health": &at.health,
	} {
		if *m = r.Machine(name); *m == nil {
			return nil, fmt.Errorf("states: the rules have no machine %q", name)
		}
	}
	at.start = make([]machine.EventID, r.NumMachines())
	for _, m := range []*machine.Machine{at.opening, at.closing, at.prepare, at.launch, at.poll, at.drain, at.final, at.submit, at.recovery} {
		ev, ok := m.Event("start")
		if !ok {
			return nil, fmt.Errorf("states: the rules' machine %q has no event start", m.Name())
		}
		at.start[m.ID()] = ev
	}
	for i, n := range identityNames {
		at.identity[i] = at.run.MustFact(n)
	}
	at.occupancy = at.callable.MustFact("occupancy")
	at.registered, _ = at.callable.State("registered")
	at.live, _ = at.environment.State("live")
	at.permit, at.fault, at.arming = at.run.MustFact("permit"), at.run.MustFact("fault"), at.fence.MustFact("arming")
	return at, nil
}

// admit refuses a foreign process before any lock is taken: a thread of the
// parent may have held the lock at the fork (F55).
func (l *Lane) admit() error {
	if p := l.config.Process(); p != l.process {
		return fmt.Errorf("lane %s was made by process %d, and this is %d: %w", l.config.Name, l.process, p, ErrForeignProcess)
	}
	return nil
}

func (l *Lane) one(m *machine.Machine) machine.Ref { return machine.Ref{Machine: m.ID()} }

// start fires the first event of an operation.
func (l *Lane) start(ctx context.Context, m *machine.Machine, slot int, args ...uint64) (machine.Reply, error) {
	return l.d.Fire(ctx, machine.Ref{Machine: m.ID(), Slot: uint16(slot)}, l.at.start[m.ID()], args...)
}

// Open makes or adopts the native context and makes the slots' streams. If it
// fails, what it made is given back and Open may be tried again; if giving
// back fails too, the lane owes its cleanup and only Close and Detach are left.
//
// Errors: [ErrInitialisation] with its cause, among them
// [ErrGenerationRequired], [ErrGenerationNotAccepted], [ErrNoCurrentContext],
// [ErrStreams] and [ErrTeardown]; [ErrAlreadyInitialised]; [ErrCleanupOwed];
// [ErrFinalized]; [ErrDetached]; [ErrForeignProcess].
func (l *Lane) Open(ctx context.Context) error {
	if err := l.admit(); err != nil {
		return err
	}
	policy := uint64(0)
	if l.config.Borrowed {
		policy = 1
	}
	_, err := l.start(ctx, l.at.opening, 0, uint64(l.process), uint64(l.config.Backend.Device()), policy, l.config.Generation, uint64(l.config.Depth))
	return err
}

// Close closes the lane: context check, claim, then the slots' events, streams
// and memory, then the native context. A rejected close changed nothing; a
// close that failed after its claim may be tried again and goes on from there.
//
// Errors: [ErrRunLive]; [ErrUnproven] if something cannot be proven over, or
// the lane is quarantined; [ErrCloseRejected] with its cause, such as [ErrExecutionContextRefused];
// [ErrTeardown]; [ErrNotInitialised]; [ErrFinalized]; [ErrForeignProcess].
func (l *Lane) Close(ctx context.Context) error {
	if err := l.admit(); err != nil {
		return err
	}
	_, err := l.start(ctx, l.at.closing, 0, uint64(l.process))
	return err
}

// Detach gives the lane up without a close: nothing is released, and every
// handle of it refuses from now on. In a child process it leaves the inherited
// lane untouched and takes no lock. It never fails.
func (l *Lane) Detach() {
	if l.admit() != nil {
		return
	}
	ctx := context.Background()
	_, _ = l.d.Fire(ctx, l.one(l.at.environment), l.at.environment.MustEvent("detach"), uint64(l.process))
	_, _ = l.d.Fire(ctx, l.one(l.at.lane), l.at.lane.MustEvent("quarantine"))
}

// Quarantine declares that what could not be proven over is kept for the life
// of the process. Admission stays closed for good, and the references that
// only a proof could release may be dropped. Errors: [ErrFinalized],
// [ErrForeignProcess].
func (l *Lane) Quarantine(ctx context.Context) error {
	if err := l.admit(); err != nil {
		return err
	}
	_, err := l.d.Fire(ctx, l.one(l.at.lane), l.at.lane.MustEvent("quarantine"))
	return err
}

// Environment shows the lane's environment. It is the lane that makes it and
// tears it down.
func (l *Lane) Environment() *EnvironmentView {
	return &EnvironmentView{d: l.d, m: l.at.environment, process: l.config.Process, made: l.process}
}

// Mode returns the execution-mode latch of the lane's native handle.
func (l *Lane) Mode() *ModeLatch { return &ModeLatch{d: l.d, m: l.at.latch, admit: l.admit} }

// Driver returns the driver under the lane, for observers and tests.
func (l *Lane) Driver() *machine.Driver { return l.d }
