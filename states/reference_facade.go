package states

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/runfence/runfence/machine"
)

// Boundary is one of a run's two completion boundaries.
type Boundary uint8

// The boundaries.
const (
	CoreDone Boundary = iota
	CPUDone
)

// Waiter is a stream that holds a wait.
type Waiter uint8

// The streams that may hold a wait on a boundary.
const (
	CoreStream Waiter = iota
	CPUStream
	CallerStream
)

// WaitRef is a token for one wait on a boundary. It is moved, never copied: of
// two goroutines that use one token, or a token and what it was moved to, one
// wins and the other gets [ErrTokenEmpty]. [Lane.Reserve] makes it.
type WaitRef struct {
	l   *Lane
	ref machine.Ref

	empty atomic.Bool
}

// Reserve counts a wait, before it is queued, of a stream of the slot that by
// stands on, on a boundary of the run that the receipt is of.
//
// Errors: [ErrTokenHeld] if every token is in use; [ErrStaleIdentity] for a
// receipt or a run that is over, or is of another lane; [ErrBoundaryOrder],
// [ErrNotArmed], [ErrForeignProcess].
func (l *Lane) Reserve(ctx context.Context, of Receipt, on Boundary, by *Run, waiter Waiter) (*WaitRef, error) {
	if err := l.admit(); err != nil {
		return nil, err
	}
	if by == nil || by.l != l {
		return nil, fmt.Errorf("reserve: the run that holds the wait is not of lane %s: %w", l.config.Name, ErrStaleIdentity)
	}
	for {
		var ref, fence, holder machine.Ref
		free, known := false, false
		l.d.View(func(w *machine.World) {
			m := l.at.token.ID()
			for s := 0; s < w.Capacity(m) && !free; s++ {
				ref = w.Ref(m, s)
				st, _, _ := w.State(ref)
				free = st == 0
			}
			_, _, live := w.State(by.ref)
			if known = live && of.Identity.Slot >= 0 && of.Identity.Slot < w.Capacity(l.at.fence.ID()); known {
				fence, holder = w.Ref(l.at.fence.ID(), of.Identity.Slot), w.Ref(l.at.fence.ID(), by.id.Slot)
			}
		})
		if !known {
			return nil, fmt.Errorf("reserve: %w", ErrStaleIdentity)
		}
		_, err := l.d.Fire(ctx, ref, l.at.token.MustEvent("reserve"),
			fence.Pack(), of.Identity.RunEpoch, of.Identity.Generation, of.Identity.Dispatch, of.Arming, uint64(on), uint64(waiter), holder.Pack())
		if err == nil {
			return &WaitRef{l: l, ref: ref}, nil
		}
		// Somebody else took the token that was free: there may be another.
		if lost := errors.Is(err, ErrTokenHeld) || errors.Is(err, machine.ErrStale); !free || !lost {
			return nil, err
		}
	}
}

// Move empties the token and returns another that holds its reference.
// Errors: [ErrTokenEmpty], [ErrForeignProcess].
func (t *WaitRef) Move() (*WaitRef, error) {
	if err := t.l.admit(); err != nil {
		return nil, err
	}
	if t.empty.Swap(true) {
		return nil, ErrTokenEmpty
	}
	return &WaitRef{l: t.l, ref: t.ref}, nil
}

// fire sends the token an event. If the token is spent, its slot is free for
// another. No lock of its own is held: users of one token take turns as those
// of a run do, and whoever comes after it was spent finds another occupancy.
func (t *WaitRef) fire(ctx context.Context, event string, args ...uint64) error {
	if err := t.l.admit(); err != nil {
		return err
	}
	if t.empty.Load() {
		return ErrTokenEmpty
	}
	reply, err := t.l.d.Fire(ctx, t.ref, t.l.at.token.MustEvent(event), args...)
	if errors.Is(err, machine.ErrStale) {
		t.empty.Store(true)
		return ErrTokenEmpty
	}
	if t.l.at.token.StateName(reply.State) == "spent" {
		t.empty.Store(true)
		if derr := t.l.d.Drop(t.ref); derr != nil && !errors.Is(derr, machine.ErrStale) && err == nil {
			err = derr
		}
	}
	return err
}

// Queue queues the wait on the device. Errors: [ErrNotCommitted] (not
// queued; the token is spent), [ErrWaitMaybeQueued] (the reference is kept),
// [ErrExecutionContextRefused] and [ErrContextQuery] (retry with the same
// token), [ErrTokenHeld], [ErrTokenEmpty], [ErrStaleIdentity], [ErrDetached].
func (t *WaitRef) Queue(ctx context.Context) error { return t.fire(ctx, "queue") }

// Commit says that the host queued the wait itself. Errors: [ErrTokenHeld],
// [ErrTokenEmpty], [ErrStaleIdentity].
func (t *WaitRef) Commit(ctx context.Context) error { return t.fire(ctx, "commit") }

// Revoke says that the wait was not queued. Errors: [ErrTokenHeld] once it is
// committed, [ErrTokenEmpty], [ErrStaleIdentity].
func (t *WaitRef) Revoke(ctx context.Context) error { return t.fire(ctx, "revoke") }

// Release gives the reference back, on a completion proof that covers the
// stream that holds the wait. Errors: [ErrWrongWaiter], [ErrNotCommitted],
// [ErrTokenEmpty], [ErrStaleIdentity].
func (t *WaitRef) Release(ctx context.Context, proven Waiter) error {
	return t.fire(ctx, "release", uint64(proven))
}

// ReleaseOnQuiescence gives the reference up after a verified reset, or a
// declared quarantine, of the lane. Errors: [ErrNoQuiescence], [ErrTokenEmpty].
func (t *WaitRef) ReleaseOnQuiescence(ctx context.Context) error { return t.fire(ctx, "quiesce") }

// Discard drops a token that the fence of the slot no longer counts. Errors:
// [ErrForeignToken], [ErrTokenCurrent], [ErrTokenEmpty].
func (t *WaitRef) Discard(ctx context.Context, slot int) error {
	if err := t.l.admit(); err != nil {
		return err
	}
	fence := machine.Ref{Machine: t.l.at.fence.ID(), Slot: uint16(slot)}
	if slot < 0 || slot >= t.l.config.Pools()["slot"] {
		return fmt.Errorf("discard: there is no slot %d: %w", slot, ErrForeignToken)
	}
	return t.fire(ctx, "discard", fence.Pack())
}
