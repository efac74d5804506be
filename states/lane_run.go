package states

import (
	"context"
	"errors"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// Identity says which run is meant: nothing reads or changes anything of a run
// under another identity than its own (F122). Identities are compared, never
// counted with.
type Identity struct {
	// RunEpoch never repeats in a lane.
	RunEpoch uint64
	// Generation is the environment's.
	Generation uint64
	// Dispatch is of the submission.
	Dispatch uint64
	// Slot is the pipeline slot.
	Slot int
}

// Run is a handle on one run. All methods are safe for concurrent use. After
// [Lane.Detach] its operations refuse with [ErrDetached] (F66).
type Run struct {
	l      *Lane
	ref    machine.Ref
	id     Identity
	permit uint64 // zero if the run was waiting for a resource when this was made
}

// Receipt proves that both kernels and both boundaries of a run were accepted.
type Receipt struct {
	Identity Identity
	// Arming names the fence's arming for the run; a wait reference needs it.
	Arming uint64
}

// Prepare admits a run to a free slot and makes its resources. Nothing is
// submitted.
//
// Errors: [ErrAdmissionClosed], [ErrSlotOccupied], [ErrDepthReached],
// [ErrPreparationRefused] and [ErrRunPreparationRefused] (nothing of it is
// left), [ErrPreparationAmbiguous] (admission is poisoned), [ErrResourceWait]
// with a handle to Retry or Abort, [ErrCallerStream], [ErrExecutionContextRefused] and [ErrContextQuery]
// (retry), [ErrNotInitialised], [ErrDetached], [ErrForeignProcess].
func (l *Lane) Prepare(ctx context.Context, w Work) (*Run, error) {
	if err := l.admit(); err != nil {
		return nil, err
	}
	if err := l.hear(ctx); err != nil {
		return nil, err
	}
	work := l.dev.add(w)
	for {
		slot, free := l.vacant()
		_, err := l.start(ctx, l.at.prepare, slot, uint64(l.process), work, machine.BoolWord(w.Caller != 0), machine.BoolWord(w.Async))
		if errors.Is(err, ErrSlotOccupied) && free {
			continue // somebody else took it: there may be another
		}
		if errors.Is(err, ErrResourceWait) {
			return l.handle(slot), err
		}
		if err != nil {
			l.dev.remove(work)
			return nil, err
		}
		return l.handle(slot), nil
	}
}

// Retry tries again for the resource that Prepare waits for. Errors: those of
// Prepare, [ErrStaleIdentity].
func (r *Run) Retry(ctx context.Context) error { return r.again(ctx, "retry") }

// Abort gives up waiting for a resource; what was prepared is rolled back.
// [ErrRunPreparationRefused] says that nothing of it is left,
// [ErrPreparationAmbiguous] that nobody knows.
func (r *Run) Abort(ctx context.Context) error { return r.again(ctx, "abort") }

func (r *Run) again(ctx context.Context, event string) error {
	if err := r.l.admit(); err != nil {
		return err
	}
	m := r.l.at.prepare
	_, err := r.l.d.Fire(ctx, machine.Ref{Machine: m.ID(), Slot: uint16(r.id.Slot)}, m.MustEvent(event), uint64(r.l.process), r.id.RunEpoch, r.id.Generation, r.id.Dispatch)
	return err
}

// vacant picks the first slot without a run, or slot 0, which then says why not.
func (l *Lane) vacant() (slot int, free bool) {
	l.d.View(func(w *machine.World) {
		for s := range w.Capacity(l.at.run.ID()) {
			if st, _, _ := w.State(w.Ref(l.at.run.ID(), s)); st == 0 {
				slot, free = s, true
				return
			}
		}
	})
	return slot, free
}

// handle makes the handle of the run that the slot hosts.
func (l *Lane) handle(slot int) (r *Run) {
	l.d.View(func(w *machine.World) { r = l.look(w, slot) })
	return r
}

func (l *Lane) look(w *machine.World, slot int) *Run {
	r := &Run{l: l, ref: w.Ref(l.at.run.ID(), slot)}
	fact := func(f machine.FactID) uint64 { v, _ := w.Fact(r.ref, f); return v }
	r.id = Identity{RunEpoch: fact(l.at.identity[0]), Generation: fact(l.at.identity[1]), Dispatch: fact(l.at.identity[2]), Slot: slot}
	r.permit = fact(l.at.permit)
	return r
}

// Identity returns the run's identity.
func (r *Run) Identity() Identity { return r.id }

// start fires the first event of one of the run's operations.
func (r *Run) start(ctx context.Context, m *machine.Machine, more ...uint64) (machine.Reply, error) {
	if err := r.l.admit(); err != nil {
		return machine.Reply{}, err
	}
	args := [machine.MaxArgs]uint64{uint64(r.l.process), r.id.RunEpoch, r.id.Generation, r.id.Dispatch}
	n := 4 + copy(args[4:], more)
	return r.l.start(ctx, m, r.id.Slot, args[:n]...)
}

// Launch submits the run's two kernels, each followed by its boundary, AICore
// first. A return without error means both are enqueued; the device's verdict
// is Wait's to give (F21).
//
// Errors: [ErrNotStarted] and [ErrEventCreate] (nothing was submitted),
// [ErrPartial] (something may be: admission is closed until Wait proves it
// over), each a [*machine.FailureError] with the call's code;
// [ErrNotPrepared]; [ErrStaleIdentity]; [ErrAdmissionClosed];
// [ErrExecutionContextRefused] and [ErrContextQuery] (retry with the same
// handle); [ErrForeignProcess].
func (r *Run) Launch(ctx context.Context) (Receipt, error) {
	if err := r.l.admit(); err != nil {
		return Receipt{}, err
	}
	if err := r.l.hear(ctx); err != nil {
		return Receipt{}, err
	}
	permit := r.permit
	if permit == 0 {
		permit = r.l.handle(r.id.Slot).permit // a retry brought it
	}
	reply, err := r.start(ctx, r.l.at.launch, permit)
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Identity: r.id, Arming: reply.Value}, nil
}

// Poll asks, without waiting, whether both boundaries have completed. A fault
// that no synchronize materialised is invisible to it: Complete is completion,
// not success (F119).
//
// Errors: [ErrQueryFailed], [ErrStreamError], each with its code;
// [ErrNotLaunched]; [ErrStaleIdentity]; [ErrExecutionContextRefused] and
// [ErrContextQuery] (retry); [ErrForeignProcess].
func (r *Run) Poll(ctx context.Context) (backend.Status, error) {
	reply, err := r.start(ctx, r.l.at.poll)
	if err != nil {
		return backend.NotReady, err
	}
	return backend.Status(reply.Value), nil
}

// Wait waits for the run, each device wait bounded by Config.Timeout, and
// returns nil if the device is content with it. After that, and after
// [ErrRunFailed], the run is proven over and may be finalized.
//
// Errors: [ErrRunFailed] with the device's code; [ErrPartial] for a partial
// launch that is now proven over, with the launch's code; [ErrWaitTimeout],
// which proves nothing: the run is as it was; [ErrUnproven]: it could not be
// proven over, and is kept; [ErrNotLaunched]; [ErrStaleIdentity];
// [ErrExecutionContextRefused] and [ErrContextQuery] (retry);
// [ErrForeignProcess].
func (r *Run) Wait(ctx context.Context) error {
	_, err := r.start(ctx, r.l.at.drain)
	return err
}

// Finalize lets the slot go and releases what the run held. It is for a run
// that is proven over or was never submitted. The handle is stale afterwards.
//
// Errors: [ErrUnproven] (nothing is freed), [ErrReferenceHeld], [ErrRelease]
// (may be retried), [ErrStaleIdentity], [ErrExecutionContextRefused] and
// [ErrContextQuery] (retry), [ErrForeignProcess].
func (r *Run) Finalize(ctx context.Context) error {
	if _, err := r.start(ctx, r.l.at.final); err != nil {
		return err
	}
	if err := r.l.d.Drop(r.ref); err != nil && !errors.Is(err, machine.ErrStale) {
		return err
	}
	return nil
}

// State returns the name of the run's state, or "(stale)" once it is
// finalized. A foreign process is refused before any lock (F55).
func (r *Run) State() (string, error) {
	if err := r.l.admit(); err != nil {
		return "", err
	}
	var s string
	r.l.d.View(func(w *machine.World) { s = w.StateName(r.ref) })
	return s, nil
}
