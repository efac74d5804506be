package states

import (
	"context"
	"errors"

	"github.com/runfence/runfence/machine"
)

// hear passes the device's exception notices on to the rules. It is called
// where admission is asked, at prepare and at launch (F108); a host that wants
// them sooner calls [Lane.Hear].
func (l *Lane) hear(ctx context.Context) error {
	if st, _, _ := l.d.State(l.one(l.at.environment)); st != l.at.live {
		return nil // nobody asks for admission
	}
	// A notice is taken off the device once: not by a caller that may not pass
	// it on, since it calls from inside a command.
	if _, err := l.d.Resume(ctx, l.one(l.at.health)); err != nil {
		return err
	}
	l.hearing.Lock()
	defer l.hearing.Unlock()
	buf := l.heard[:]
	for {
		n, dropped := l.config.Backend.Notices(buf)
		if n == 0 && dropped == 0 {
			return nil
		}
		ref := l.one(l.at.health)
		for _, x := range buf[:n] {
			if _, err := l.d.Fire(ctx, ref, l.at.health.MustEvent("notice"), uint64(uint16(x.Device)), uint64(uint32(x.Stream))); err != nil {
				return err
			}
		}
		for range dropped {
			if _, err := l.d.Fire(ctx, ref, l.at.health.MustEvent("drop")); err != nil {
				return err
			}
		}
		if n < len(buf) {
			return nil
		}
	}
}

// Hear takes the device's pending exception notices into account. A notice
// that names a stream of the lane's own closes admission until a confirmed
// reset, and does nothing else: no run's outcome, no drain, no reset (F108).
// Errors: [ErrForeignProcess], [ErrNotInitialised].
func (l *Lane) Hear(ctx context.Context) error {
	if err := l.admit(); err != nil {
		return err
	}
	return l.hear(ctx)
}

// Health is what the notices of a device generation add up to.
type Health struct {
	// Suspect: a notice matched; no run is admitted. Not suspect is no proof of health.
	Suspect                                                  bool
	Matched, Unattributed, Undecided, Lost, Dropped, Skipped uint64
}

// Health returns the device's health. Error: [ErrForeignProcess].
func (l *Lane) Health() (Health, error) {
	if err := l.admit(); err != nil {
		return Health{}, err
	}
	var h Health
	l.d.View(func(w *machine.World) {
		ref, m := l.one(l.at.health), l.at.health
		st, _, _ := w.State(ref)
		fact := func(n string) uint64 { v, _ := w.Fact(ref, m.MustFact(n)); return v }
		h = Health{
			Suspect: m.StateName(st) == "suspect",
			Matched: fact("matched"), Unattributed: fact("unattributed"), Undecided: fact("undecided"),
			Lost: fact("lost"), Dropped: fact("dropped"), Skipped: fact("skipped"),
		}
	})
	return h, nil
}

// Recover makes an owned device admit runs again after work that could not be
// proven over, or a notice: a bounded drain of the device, then a reset, and
// only a confirmed one lets anything go. Runs that it ends report [ErrReset]
// and may be finalized. A borrowed device is its owner's to recover.
//
// Errors: [ErrNothingToRecover], [ErrBorrowedDevice] (the lane is poisoned),
// [ErrDeviceUnusable] (may be tried again), [ErrExecutionContextRefused] and
// [ErrContextQuery] (retry), [ErrNotInitialised], [ErrForeignProcess].
func (l *Lane) Recover(ctx context.Context) error {
	if err := l.admit(); err != nil {
		return err
	}
	if err := l.hear(ctx); err != nil {
		return err
	}
	_, err := l.start(ctx, l.at.recovery, 0, uint64(l.process))
	if serr := l.skipped(ctx); err == nil {
		err = serr
	}
	return err
}

// skipped counts the notices that a confirmed reset found in the ring (F115).
func (l *Lane) skipped(ctx context.Context) error {
	for event, n := range map[string]uint64{"skip": l.dev.skipped.Swap(0), "drop": l.dev.lost.Swap(0)} {
		for range n {
			if _, err := l.d.Fire(ctx, l.one(l.at.health), l.at.health.MustEvent(event)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Submit prepares a run and, if the work has a caller's stream, enqueues it:
// then a return without error means enqueued, behind the run before it (F42).
// Without one it may mean prepared, and [Run.Advance] enqueues it (F45).
//
// Errors: [ErrSubmit] with its cause, among them those of Prepare and Launch;
// [ErrNotStarted] with the launch's own code, the run being given up and its slot free;
// [ErrPartial] with a handle to Wait on; [ErrForeignProcess].
func (l *Lane) Submit(ctx context.Context, w Work) (*Run, error) {
	if err := l.admit(); err != nil {
		return nil, err
	}
	if err := l.hear(ctx); err != nil {
		return nil, err
	}
	work := l.dev.add(w)
	defer l.dev.remove(work)
	for {
		slot, free := l.vacant()
		had := l.handle(slot)
		args := [machine.MaxArgs]uint64{uint64(l.process), work, machine.BoolWord(w.Caller != 0), machine.BoolWord(w.Async)}
		l.before(slot, args[4:])
		_, err := l.start(ctx, l.at.submit, slot, args[:]...)
		if errors.Is(err, ErrSlotOccupied) {
			if free {
				continue // somebody else took it: there may be another
			}
			return nil, err
		}
		run := l.handle(slot)
		if err != nil && (run.id == had.id || run.id.RunEpoch == 0 || run.givenUp()) {
			return nil, err // there is no run, or only the one that had the slot before
		}
		return run, err
	}
}

// givenUp frees the slot of a run that was finalized because its launch
// submitted nothing (F159). It reports whether it was such a run.
func (r *Run) givenUp() bool {
	st, _, ok := r.l.d.State(r.ref)
	return ok && r.l.at.run.StateName(st) == "finalized" && r.l.d.Drop(r.ref) == nil
}

// Advance enqueues a prepared run, behind the run before it. Errors: those of
// Submit after preparation; [ErrNotPrepared]; [ErrStaleIdentity].
func (r *Run) Advance(ctx context.Context) error {
	if err := r.l.admit(); err != nil {
		return err
	}
	if err := r.l.hear(ctx); err != nil {
		return err
	}
	args := [machine.MaxArgs]uint64{uint64(r.l.process), r.id.RunEpoch, r.id.Generation, r.id.Dispatch}
	r.l.before(r.id.Slot, args[4:])
	m := r.l.at.submit
	_, err := r.l.d.Fire(ctx, machine.Ref{Machine: m.ID(), Slot: uint16(r.id.Slot)}, m.MustEvent("advance"), args[:]...)
	if err != nil {
		r.givenUp()
	}
	return err
}

// before fills in which run a run of the slot goes behind: the one that is on
// the device and is not of this slot.
func (l *Lane) before(slot int, args []uint64) {
	l.d.View(func(w *machine.World) {
		for s := range w.Capacity(l.at.run.ID()) {
			ref := w.Ref(l.at.run.ID(), s)
			st, _, _ := w.State(ref)
			if name := l.at.run.StateName(st); s != slot && (name == "launched" || name == "partial") {
				args[0] = ref.Pack()
				args[1] = w.Ref(l.at.fence.ID(), s).Pack()
				args[2] = w.Ref(l.at.drain.ID(), s).Pack()
			}
		}
		args[3] = w.Ref(l.at.fence.ID(), slot).Pack()
	})
}
