package states

import (
	"context"
	"sync"

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
// wins and the other gets [ErrTokenEmpty].
type WaitRef struct {
	mu  sync.Mutex
	l   *Lane
	ref machine.Ref
}

// Reserve counts a wait, before it is queued, of a stream of the slot that by
// stands on, on a boundary of the run that the receipt is of.
//
// Errors: [ErrTokenHeld] if every token is in use, [ErrStaleIdentity],
// [ErrBoundaryOrder], [ErrNotArmed], [ErrForeignProcess].
func (l *Lane) Reserve(ctx context.Context, of Receipt, on Boundary, by *Run, waiter Waiter) (*WaitRef, error) {
	if err := l.admit(); err != nil {
		return nil, err
	}
	var ref, fence, holder machine.Ref
	l.d.View(func(w *machine.World) {
		m := l.at.token.ID()
		for s := range w.Capacity(m) {
			ref = w.Ref(m, s)
			if st, _, _ := w.State(ref); st == 0 {
				break
			}
		}
		fence = w.Ref(l.at.fence.ID(), of.Identity.Slot)
		holder = w.Ref(l.at.fence.ID(), by.id.Slot)
	})
	_, err := l.d.Fire(ctx, ref, l.at.token.MustEvent("reserve"),
		fence.Pack(), of.Identity.RunEpoch, of.Identity.Generation, of.Identity.Dispatch, of.Arming, uint64(on), uint64(waiter), holder.Pack())
	if err != nil {
		return nil, err
	}
	return &WaitRef{l: l, ref: ref}, nil
}

// Move empties the token and returns another that holds its reference. Error:
// [ErrTokenEmpty].
func (t *WaitRef) Move() (*WaitRef, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.l == nil {
		return nil, ErrTokenEmpty
	}
	n := &WaitRef{l: t.l, ref: t.ref}
	t.l = nil
	return n, nil
}

// fire sends the token an event. If the token is spent by it, the slot is
// free for another.
func (t *WaitRef) fire(ctx context.Context, event string, args ...uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.l == nil {
		return ErrTokenEmpty
	}
	if err := t.l.admit(); err != nil {
		return err
	}
	reply, err := t.l.d.Fire(ctx, t.ref, t.l.at.token.MustEvent(event), args...)
	if t.l.at.token.StateName(reply.State) == "spent" {
		if derr := t.l.d.Drop(t.ref); derr != nil && err == nil {
			err = derr
		}
		t.l = nil
	}
	return err
}

// Queue queues the wait on the device. Errors: [ErrNotCommitted] (not
// queued; the token is spent), [ErrWaitMaybeQueued] (the reference is kept),
// [ErrTokenHeld], [ErrTokenEmpty], [ErrStaleIdentity].
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
	t.mu.Lock()
	l := t.l
	t.mu.Unlock()
	if l == nil {
		return ErrTokenEmpty
	}
	var fence machine.Ref
	ok := true
	l.d.View(func(w *machine.World) {
		if ok = slot >= 0 && slot < w.Capacity(l.at.fence.ID()); ok {
			fence = w.Ref(l.at.fence.ID(), slot)
		}
	})
	if !ok {
		return ErrForeignToken
	}
	return t.fire(ctx, "discard", fence.Pack())
}
