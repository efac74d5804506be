package states

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/runfence/runfence/machine"
)

// WorkerConfig sets up a [ChipWorker].
type WorkerConfig struct {
	Config
	// Mode is latched by Init, for good.
	Mode Mode
	// SDMA and Simulator select an owned device's extras; a borrowed
	// initialisation rejects both (F49).
	SDMA, Simulator bool
	// NoAutomaticIDs says that the runtime lacks the optional registration
	// entry: everything but automatic registration works (F82).
	NoAutomaticIDs bool
	// Budget bounds the bytes of the images that are registered at a time, equal
	// ones counted once; 0 is no bound. Owned and borrowed devices take it
	// alike (F170).
	Budget uint64
}

// ChipWorker is a [Lane] with the execution mode and the callables of its
// native handle: what a host registers with, submits to and closes. All
// methods are safe for concurrent use, as far as the Backend is, except that
// the caller serialises Init and Close against everything else (F162).
type ChipWorker struct {
	*Lane
	config WorkerConfig
	mode   *ModeLatch

	mu     sync.Mutex
	images map[[sha256.Size]byte]*shared
	of     map[uint64]*shared // by the occupancy that shares it
	last   uint64             // image identity given out
	used   uint64             // bytes against the budget
}

// shared is an image and how many registrations, done or under way, share it.
type shared struct {
	sum   [sha256.Size]byte
	id    uint64
	bytes uint64
	users int
}

// Reasons of a worker.
const (
	// ErrOptions: an option that a borrowed initialisation rejects (F49).
	ErrOptions machine.Reason = "a borrowed initialisation takes no SDMA and no simulator"
	// ErrBudget: the byte budget is used up.
	ErrBudget machine.Reason = "the byte budget is used up"
	// ErrTransport: the transport does not permit kernel packets (F153).
	ErrTransport machine.Reason = "the transport permits no kernel packets"
	// ErrPacket: an invocation packet that was not validated (F147, F149).
	ErrPacket machine.Reason = "the packet is not validated"
	// ErrLent: orchestration still borrows the argument storage (F148).
	ErrLent machine.Reason = "the argument storage is lent"
)

// NewChipWorker makes a worker that is not initialised. Errors: those of
// [NewLane]; [ErrOptions]; [ErrModeUnclaimed] without a Mode.
func NewChipWorker(c WorkerConfig) (*ChipWorker, error) {
	if c.Borrowed && (c.SDMA || c.Simulator) {
		return nil, ErrOptions
	}
	if c.Mode != Program && c.Mode != Kernel {
		return nil, ErrModeUnclaimed
	}
	l, err := NewLane(c.Config)
	if err != nil {
		return nil, err
	}
	return &ChipWorker{Lane: l, config: c, mode: l.Mode(), images: map[[sha256.Size]byte]*shared{}, of: map[uint64]*shared{}}, nil
}

// Init latches the mode and opens the lane. If it fails, what it made is given
// back and Init may be tried again; if giving back fails too, cleanup is owed
// and Init refuses (F64). A worker that was closed does not initialise again (F93).
//
// Errors: those of [Lane.Open]; [ErrModeLatched]; [ErrPhase]; [ErrFinalized].
func (w *ChipWorker) Init(ctx context.Context) error {
	if err := w.admit(); err != nil {
		return err
	}
	// Before the latch is asked: it would permit a PROGRAM handle that was
	// released to initialise again, and that permission is not to be used up.
	if w.tornDown() {
		return ErrFinalized
	}
	if err := w.mode.Claim(w.config.Mode); err != nil {
		return err
	}
	if err := w.mode.Begin(); err != nil {
		return err
	}
	if err := w.Lane.Open(ctx); err != nil {
		if ferr := w.mode.Fail(); ferr != nil {
			return fmt.Errorf("%w; and the latch: %w", err, ferr)
		}
		return err
	}
	return w.mode.Succeed()
}

// Close unregisters nothing by itself: it closes the lane, which frees the
// images too, clears the registry and records in the latch that everything was
// released. A rejected close changed nothing; one that failed after its claim
// may be tried again. Any goroutine may close, since goroutines have no
// identity to check an owner by (F161): closers take turns, one of them tears
// down, and a close from inside one of the worker's own commands is refused
// with [machine.ErrReentrant].
// Errors: those of [Lane.Close].
func (w *ChipWorker) Close(ctx context.Context) error {
	m := w.at.registry
	if err := w.Lane.Close(ctx); err != nil {
		var registry string
		w.d.View(func(world *machine.World) { registry = world.StateName(w.one(m)) })
		if !errors.Is(err, ErrFinalized) || !w.tornDown() || registry == "finalized" {
			return err
		}
		// An earlier close tore down and was cut short of the rest.
	}
	if _, err := w.d.Fire(ctx, w.one(m), m.MustEvent("finalize")); err != nil {
		return err
	}
	// What initialisation left half made is paid off by now, and the latch never
	// counted it as initialised.
	if st, err := w.mode.State(); err != nil || st.Phase != Initialised {
		return err
	}
	return w.mode.Finalise(true)
}

func (w *ChipWorker) tornDown() (yes bool) {
	w.d.View(func(world *machine.World) { yes = world.StateName(w.one(w.at.environment)) == "torn down" })
	return yes
}

// NoCallable is the id that a failed registration answers with.
const NoCallable = -1

// Callable names one registration: an id alone does not, since ids are used again.
type Callable struct {
	// ID is the slot, 0 to [MaxCallables]-1, or [NoCallable].
	ID int
	// Occupancy is new for each registration of the slot (F146).
	Occupancy uint64
}

// Register gives an image the first free id. Equal images get ids of their own
// and share one copy on the device (F84, F85).
//
// Errors, with the id [NoCallable]: [ErrUnsupportedEntry]; [ErrInvalidState]
// if every id is taken, or the worker is not initialised or is being closed; [ErrDetached]; [ErrInvalidArgument]
// for an empty image; [ErrBudget]; [ErrUpload];
// [ErrExecutionContextRefused] and [ErrContextQuery] (retry); [ErrForeignProcess].
func (w *ChipWorker) Register(ctx context.Context, image []byte) (Callable, error) {
	return w.register(ctx, image, "register", func(id uint64) []uint64 {
		return []uint64{uint64(w.process), id, machine.BoolWord(!w.config.NoAutomaticIDs)}
	})
}

// RegisterAt gives an image this id. Errors: those of Register, and
// [ErrInvalidArgument] if the id is taken or out of range (F81).
func (w *ChipWorker) RegisterAt(ctx context.Context, id int, image []byte) (Callable, error) {
	if id < 0 || id >= MaxCallables {
		return Callable{ID: NoCallable}, fmt.Errorf("callable id %d: want 0 to %d: %w", id, MaxCallables-1, ErrInvalidArgument)
	}
	return w.register(ctx, image, "register_at", func(im uint64) []uint64 {
		return []uint64{uint64(w.process), im, w.d.Ref(w.at.callable.ID(), id).Pack()}
	})
}

func (w *ChipWorker) register(ctx context.Context, image []byte, event string, args func(uint64) []uint64) (Callable, error) {
	none := Callable{ID: NoCallable}
	if err := w.admit(); err != nil {
		return none, err
	}
	im, err := w.share(image)
	if err != nil {
		return none, err
	}
	m := w.at.registry
	reply, err := w.d.Fire(ctx, w.one(m), m.MustEvent(event), args(im.id)...)
	if err != nil {
		w.leave(im)
		return none, err
	}
	w.mu.Lock()
	w.of[reply.Value] = im
	w.mu.Unlock()
	c := none
	w.d.View(func(world *machine.World) {
		t := w.at.callable
		for s := range world.Capacity(t.ID()) {
			if v, _ := world.Fact(world.Ref(t.ID(), s), w.at.occupancy); v == reply.Value {
				c = Callable{ID: s, Occupancy: v}
			}
		}
	})
	return c, nil
}

// share gives equal images equal identities, and counts a user of this one. The
// identity 0 is an empty image, which the rules refuse.
func (w *ChipWorker) share(b []byte) (*shared, error) {
	if len(b) == 0 {
		return &shared{}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := sha256.Sum256(b)
	im := w.images[sum]
	if im == nil {
		size := uint64(len(b))
		if budget := w.config.Budget; budget > 0 && (size > budget || w.used > budget-size) {
			return nil, ErrBudget
		}
		w.used += size
		w.last++
		im = &shared{sum: sum, id: w.last, bytes: size}
		w.images[sum] = im
		w.dev.addImage(im.id, b)
	}
	im.users++
	return im, nil
}

// leave takes a user of an image away; with the last one its bytes are free
// again, unless the device still has some of them (F86).
func (w *ChipWorker) leave(im *shared) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if im.users--; im.users == 0 && w.dev.dropImage(im.id) {
		w.used -= im.bytes
		delete(w.images, im.sum)
	}
}

// Unregister frees an id. The caller has retired every user of it first, and
// discards it (F87). Errors: [ErrInvalidArgument] for a callable that is not,
// or no longer, registered; [ErrUpload] (it stays registered);
// [ErrExecutionContextRefused] and [ErrContextQuery] (retry); [ErrForeignProcess].
func (w *ChipWorker) Unregister(ctx context.Context, c Callable) error {
	if err := w.admit(); err != nil {
		return err
	}
	if c.ID < 0 || c.ID >= MaxCallables {
		return fmt.Errorf("callable id %d: want 0 to %d: %w", c.ID, MaxCallables-1, ErrInvalidArgument)
	}
	m := w.at.registry
	if _, err := w.d.Fire(ctx, w.one(m), m.MustEvent("unregister"), uint64(w.process), w.d.Ref(w.at.callable.ID(), c.ID).Pack(), c.Occupancy); err != nil {
		return err
	}
	w.mu.Lock()
	im := w.of[c.Occupancy]
	delete(w.of, c.Occupancy)
	w.mu.Unlock()
	if im != nil {
		w.leave(im)
	}
	return nil
}

// Live reports whether the callable is registered under this occupancy: of a
// worker that was closed or detached, none is. It allocates nothing.
func (w *ChipWorker) Live(c Callable) bool {
	if c.ID < 0 || c.ID >= MaxCallables || c.Occupancy == 0 || w.admit() != nil {
		return false
	}
	t := w.at.callable
	ref := machine.Ref{Machine: t.ID(), Slot: uint16(c.ID)}
	st, _, _ := w.d.State(ref)
	v, _ := w.d.Fact(ref, w.at.occupancy)
	env, _, _ := w.d.State(w.one(w.at.environment))
	return v == c.Occupancy && st == w.at.registered && env == w.at.live
}
