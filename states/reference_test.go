package states

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// reserve takes a reference on the AICPU boundary, to be waited for by the
// AICore stream.
func (f *fixture) reserve(rc Receipt, by *Run) *WaitRef {
	f.Helper()
	t, err := f.lane.Reserve(ctx, rc, CPUDone, by, CoreStream)
	require.NoError(f, err)
	return t
}

func (f *fixture) refs() [2]string {
	return [2]string{f.fact("fence", 0, "core_refs"), f.fact("fence", 0, "cpu_refs")}
}

func TestReferenceProtocol(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	token := f.reserve(rc, r)
	require.Equal(t, [2]string{"0", "1"}, f.refs(), "counted before it is queued")
	require.ErrorIs(t, token.Release(ctx, CoreStream), ErrNotCommitted)
	require.NoError(t, token.Queue(ctx))
	require.ErrorIs(t, token.Queue(ctx), ErrTokenHeld)
	require.ErrorIs(t, token.Commit(ctx), ErrTokenHeld)
	require.ErrorIs(t, token.Revoke(ctx), ErrTokenHeld)
	require.NoError(t, r.Wait(ctx))
	require.ErrorIs(t, r.Finalize(ctx), ErrReferenceHeld)
	for _, other := range []Waiter{CPUStream, CallerStream} {
		require.ErrorIs(t, token.Release(ctx, other), ErrWrongWaiter, "the proof of a stream that holds no wait")
	}
	require.Equal(t, [2]string{"0", "1"}, f.refs())
	require.NoError(t, token.Release(ctx, CoreStream))
	require.Equal(t, [2]string{"0", "0"}, f.refs())
	require.ErrorIs(t, token.Release(ctx, CoreStream), ErrTokenEmpty, "once")
	require.NoError(t, r.Finalize(ctx))
	f.clean()
}

// A wait that the host queues itself is committed or revoked by it.
func TestCommitAndRevoke(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	revoked, committed := f.reserve(rc, r), f.reserve(rc, r)
	require.Equal(t, [2]string{"0", "2"}, f.refs())
	require.NoError(t, revoked.Revoke(ctx))
	require.ErrorIs(t, revoked.Commit(ctx), ErrTokenEmpty)
	require.NoError(t, committed.Commit(ctx))
	require.ErrorIs(t, committed.Revoke(ctx), ErrTokenHeld)
	require.Equal(t, [2]string{"0", "1"}, f.refs())
	require.NoError(t, committed.Release(ctx, CoreStream))
	require.Equal(t, [2]string{"0", "0"}, f.refs())
}

func TestQueueOutcomes(t *testing.T) {
	for way, want := range map[string]struct {
		err  error
		refs string
	}{
		"refuse":        {ErrNotCommitted, "0"},
		"fail-before":   {ErrWaitMaybeQueued, "1"},
		"fail-after":    {ErrWaitMaybeQueued, "1"},
		"fail-accepted": {ErrWaitMaybeQueued, "1"},
		"panic-before":  {ErrWaitMaybeQueued, "1"},
		"panic-after":   {ErrWaitMaybeQueued, "1"},
	} {
		f := opened(t, "StreamWaitEvent#1 "+way)
		r, rc := f.launch()
		token := f.reserve(rc, r)
		require.ErrorIs(t, token.Queue(ctx), want.err, way)
		require.Equal(t, want.refs, f.fact("fence", 0, "cpu_refs"), way)
		if want.refs == "1" {
			require.NoError(t, token.Release(ctx, CoreStream), "a proof of the stream covers what it may hold: "+way)
		} else {
			require.ErrorIs(t, token.Queue(ctx), ErrTokenEmpty, way)
		}
	}
}

// A wait that was accepted is queued, whatever the call goes on to say.
func TestAcceptedWaitIsKept(t *testing.T) {
	b := &refusingWaits{}
	f := unopened(t, Config{Backend: b})
	b.Backend = f.dev
	require.NoError(t, f.lane.Open(ctx))
	r, rc := f.launch()
	token := f.reserve(rc, r)
	err := token.Queue(ctx)
	require.ErrorIs(t, err, ErrWaitMaybeQueued)
	require.Equal(t, []int32{4242}, codes(err))
	require.Equal(t, "committed", f.state("token", 0))
	require.Equal(t, [2]string{"0", "1"}, f.refs())
	require.NoError(t, token.Release(ctx, CoreStream))
}

// refusingWaits queues a wait and then says that it did not.
type refusingWaits struct{ backend.Backend }

func (b *refusingWaits) StreamWaitEvent(ctx context.Context, s backend.Stream, e backend.Event) backend.Result {
	r := b.Backend.StreamWaitEvent(ctx, s, e)
	r.Outcome, r.Code = backend.Refused, 4242
	return r
}

// A context that is not the lane's costs the token nothing (F59).
func TestQueueLooksAtTheContextFirst(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	token := f.reserve(rc, r)
	before := f.bytes()
	f.dev.SetCurrent(f.dev.NewContext(true))
	require.ErrorIs(t, token.Queue(ctx), ErrExecutionContextRefused)
	f.dev.SetCurrent(f.dev.Home())
	f.strike("CurrentContext#1 fail-before")
	require.ErrorIs(t, token.Queue(ctx), ErrContextQuery)
	require.Equal(t, before, f.bytes())
	require.NoError(t, token.Queue(ctx))
	f.clean()
}

func TestWaitNeedsItsRecord(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 refuse")
	r := f.prepare()
	_, err := f.lane.Reserve(ctx, Receipt{Identity: r.Identity()}, CoreDone, r, CPUStream)
	require.ErrorIs(t, err, ErrNotArmed)
	_, err = r.Launch(ctx)
	require.ErrorIs(t, err, ErrPartial)
	m := f.lane.at.fence
	arming, _ := f.lane.d.Fact(f.ref("fence", 0), m.MustFact("arming"))
	rc := Receipt{Identity: r.Identity(), Arming: arming}
	_, err = f.lane.Reserve(ctx, rc, CPUDone, r, CoreStream)
	require.ErrorIs(t, err, ErrBoundaryOrder, "that boundary was never recorded (F134)")
	_, err = f.lane.Reserve(ctx, rc, CoreDone, r, CPUStream)
	require.NoError(t, err)
}

// A fence that counts a reservation or a reference refuses to be armed,
// recorded, retired and released, and the lane to be shut (F139).
func TestHeldFenceRefuses(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	id := []uint64{rc.Identity.RunEpoch, rc.Identity.Generation, rc.Identity.Dispatch}
	hold := func(tokenState string) {
		before := f.bytes()
		for event, args := range map[string][]uint64{
			"recording": append(id[:3:3], 0),
			"retire":    id,
		} {
			require.ErrorIs(t, f.fire("fence", 0, event, args...), ErrReferenceHeld, event+" with a token "+tokenState)
		}
		require.ErrorIs(t, f.fire("fence", 0, "arm", 7, 7, 7), ErrNotRetired)
		require.ErrorIs(t, f.fire("fence", 0, "release"), ErrNotRetired)
		require.Equal(t, before, f.bytes())
	}
	token := f.reserve(rc, r)
	hold("reserved")
	require.NoError(t, token.Queue(ctx))
	hold("committed")

	// Nor where no run stands behind it any more, which no row leads to: this
	// is guarded, not trusted.
	for _, state := range []string{"idle", "bare"} {
		w := planted(t, state)
		refuses := func(machineName, event string, args ...uint64) {
			t.Helper()
			m := w.Rules().Machine(machineName)
			require.ErrorIs(t, w.RefusalError(w.Issue(w.Ref(m.ID(), 0), m.MustEvent(event), args...)), ErrReferenceHeld, machineName+" "+event)
		}
		refuses("fence", "arm", 7, 7, 7)
		if state == "idle" {
			refuses("fence", "release")
		}
		refuses("lane", "shut")
	}
}

// planted makes the world of an open lane whose fence counts a wait in a state
// that stands for no run, by rules that have one row more than ours.
func planted(t *testing.T, state string) *machine.World {
	t.Helper()
	defs := Definitions()
	for _, d := range defs {
		if d.Name == "fence" {
			d.Events = append(d.Events, machine.Event{Name: "planted"})
			d.Rows = append(d.Rows, machine.Row{ID: "planted", From: "bare", Event: "planted", Then: []machine.Target{{To: state, Do: "core_refs++"}}})
		}
	}
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	w, err := rules.NewWorld(machine.Config{Pools: Config{}.Pools()})
	require.NoError(t, err)
	fence, lane := rules.Machine("fence"), rules.Machine("lane")
	require.Equal(t, machine.Accepted, w.Issue(w.Ref(fence.ID(), 0), fence.MustEvent("planted")).Status)
	require.Equal(t, machine.InFlight, w.Issue(w.Ref(lane.ID(), 0), lane.MustEvent("open"), 1, 1).Status)
	require.Equal(t, machine.Accepted, w.Settle(w.Ref(lane.ID(), 0), machine.Result{}).Status)
	return w
}

// A token moves. What it was moved from is empty, and a live one is never
// overwritten (F137).
func TestTokenMoves(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	a := f.reserve(rc, r)
	b, err := a.Move()
	require.NoError(t, err)
	_, err = a.Move()
	require.ErrorIs(t, err, ErrTokenEmpty)
	for _, err := range []error{a.Queue(ctx), a.Commit(ctx), a.Revoke(ctx), a.Release(ctx, CoreStream), a.ReleaseOnQuiescence(ctx), a.Discard(ctx, 0)} {
		require.ErrorIs(t, err, ErrTokenEmpty)
	}
	require.Equal(t, [2]string{"0", "1"}, f.refs())
	err = f.fire("token", 0, "reserve", f.ref("fence", 0).Pack(), rc.Identity.RunEpoch, rc.Identity.Generation, rc.Identity.Dispatch, rc.Arming, 1, 0, f.ref("fence", 0).Pack())
	require.ErrorIs(t, err, ErrTokenHeld)
	require.NoError(t, b.Revoke(ctx))
}

func TestTokensAreBounded(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	var all []*WaitRef
	for range 4 {
		all = append(all, f.reserve(rc, r))
	}
	_, err := f.lane.Reserve(ctx, rc, CoreDone, r, CPUStream)
	require.ErrorIs(t, err, ErrTokenHeld)
	require.NoError(t, all[2].Revoke(ctx))
	f.reserve(rc, r)
}

// A failed proof alone drops nothing; a declared quarantine does, count by
// count, since it keeps the events for good (F36, F136).
func TestQuiescence(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 kernel-hang")
	r, rc := f.launch()
	reserved, committed := f.reserve(rc, r), f.reserve(rc, r)
	require.NoError(t, committed.Queue(ctx))
	require.ErrorIs(t, r.Wait(ctx), ErrWaitTimeout)
	for _, token := range []*WaitRef{reserved, committed} {
		require.ErrorIs(t, token.ReleaseOnQuiescence(ctx), ErrNoQuiescence)
	}
	require.Equal(t, [2]string{"0", "2"}, f.refs())
	require.NoError(t, f.lane.Quarantine(ctx))
	require.NoError(t, committed.ReleaseOnQuiescence(ctx))
	require.NoError(t, reserved.ReleaseOnQuiescence(ctx))
	require.Equal(t, [2]string{"0", "0"}, f.refs())
	require.ErrorIs(t, reserved.ReleaseOnQuiescence(ctx), ErrTokenEmpty)
	f.clean()
}

// A verified reset invalidates a fence's events, its arming and its counts at
// once. Tokens held against it are then stale: they touch no count, and their
// fence alone may judge them (F136, F138, F140, F141).
func TestAbandonedFence(t *testing.T) {
	f := unopened(t, Config{Slots: 2})
	require.NoError(t, f.lane.Open(ctx))
	r, rc := f.launch()
	var tokens []*WaitRef
	for range 4 {
		tokens = append(tokens, f.reserve(rc, r))
	}
	require.NoError(t, tokens[1].Queue(ctx))
	require.ErrorIs(t, tokens[0].Discard(ctx, 0), ErrTokenCurrent)
	require.ErrorIs(t, tokens[0].Discard(ctx, 1), ErrForeignToken)
	require.ErrorIs(t, tokens[0].Discard(ctx, 2), ErrForeignToken, "there is no such slot")
	require.ErrorIs(t, tokens[0].Discard(ctx, -1), ErrForeignToken)

	require.NoError(t, f.fire("fence", 0, "abandon"))
	require.Equal(t, "bare", f.state("fence", 0))
	require.Equal(t, [2]string{"0", "0"}, f.refs())
	require.Equal(t, "false", f.fact("fence", 0, "handles"))

	// Another run's arming on the same fence, with a count of its own.
	require.NoError(t, f.fire("fence", 0, "arm", 7, 7, 7))
	for _, step := range []string{"made", "submitting", "submitted", "recording", "recorded"} {
		args := []uint64{7, 7, 7}
		if step != "made" {
			args = append(args, 1)
		}
		require.NoError(t, f.fire("fence", 0, step, args...))
	}
	arming, _ := f.lane.d.Fact(f.ref("fence", 0), f.lane.at.fence.MustFact("arming"))
	require.NoError(t, f.fire("fence", 0, "reserve", 7, 7, 7, 1, arming))
	calls := f.calls()
	for _, err := range []error{
		tokens[0].Queue(ctx), tokens[0].Commit(ctx), tokens[0].Revoke(ctx), tokens[1].Release(ctx, CoreStream),
		f.fire("fence", 0, "drop", 1, rc.Arming),
		f.fire("fence", 0, "reserve", 7, 7, 7, 1, rc.Arming),
	} {
		require.ErrorIs(t, err, ErrStaleIdentity)
	}
	require.Empty(t, *calls, "the device is not even asked for its context")
	require.ErrorIs(t, tokens[0].Discard(ctx, 1), ErrForeignToken, "not mine is not stale")
	require.NoError(t, tokens[0].Discard(ctx, 0))
	require.NoError(t, tokens[1].Discard(ctx, 0))
	require.NoError(t, tokens[2].ReleaseOnQuiescence(ctx), "the reset took its count along")
	for _, token := range tokens[:3] {
		require.ErrorIs(t, token.Commit(ctx), ErrTokenEmpty)
	}
	require.Equal(t, [2]string{"0", "1"}, f.refs(), "of all that, the new arming's count felt nothing")
}

// A reset may come between a token's look at the context and its wait: then
// nothing is queued, and the token is where it was.
func TestResetWhileQueueing(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	f.reserve(rc, r)
	s := f.stepping()
	s.issue("token", "queue")
	s.settle("token", s.context())
	require.Equal(t, "queueing", s.state("token"))
	s.fire("fence", "abandon")
	require.Equal(t, machine.Accepted, s.next("token"))
	require.Equal(t, "reserved", s.state("token"))
	step := s.w.Issue(s.ref("token"), s.rules.Machine("token").MustEvent("queue"))
	require.ErrorIs(t, s.w.RefusalError(step), ErrStaleIdentity)
}

// A token that is spent, or was never reserved, is used by nobody; the spent
// one not even for another reservation.
func TestEmptyToken(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	fence := f.ref("fence", 0).Pack()
	unused := func(state string) {
		t.Helper()
		require.Equal(t, state, f.state("token", 0))
		for event, args := range map[string][]uint64{"queue": nil, "commit": nil, "revoke": nil, "release": {0}, "quiesce": nil, "discard": {fence}} {
			require.ErrorIs(t, f.fire("token", 0, event, args...), ErrTokenEmpty, event)
		}
	}
	unused("free")
	f.reserve(rc, r)
	require.NoError(t, f.fire("token", 0, "revoke"))
	unused("spent")
	require.ErrorIs(t, f.fire("token", 0, "reserve", fence, rc.Identity.RunEpoch, rc.Identity.Generation, rc.Identity.Dispatch, rc.Arming, 1, 0, fence), ErrTokenEmpty)
}

func TestStaleFenceAfterRelease(t *testing.T) {
	f := opened(t)
	require.ErrorIs(t, f.fire("fence", 0, "drop", 0, 1), ErrStaleIdentity)
	require.NoError(t, f.fire("fence", 0, "release"))
	for event, want := range map[string]error{"release": ErrFenceReleased, "abandon": ErrFenceReleased} {
		require.ErrorIs(t, f.fire("fence", 0, event), want)
	}
	require.ErrorIs(t, f.fire("fence", 0, "arm", 1, 1, 1), ErrFenceReleased)
	require.ErrorIs(t, f.fire("fence", 0, "drop", 0, 1), ErrStaleIdentity)
}

// Reserve is for runs of this lane that are not over, and names no slot that
// there is not.
func TestReserveIsForLiveRuns(t *testing.T) {
	f, other := opened(t), opened(t)
	old, _ := f.launch()
	require.NoError(t, old.Wait(ctx))
	require.NoError(t, old.Finalize(ctx))
	r, rc := f.launch()
	foreign, _ := other.launch()
	before := f.bytes()
	out := rc
	out.Identity.Slot = 9
	stale := rc
	stale.Identity.RunEpoch = old.Identity().RunEpoch
	rearmed := rc
	rearmed.Arming++
	for _, c := range []struct {
		of Receipt
		by *Run
	}{{rc, nil}, {rc, old}, {rc, foreign}, {out, r}, {stale, r}, {rearmed, r}, {Receipt{}, r}} {
		_, err := f.lane.Reserve(ctx, c.of, CoreDone, c.by, CPUStream)
		require.ErrorIs(t, err, ErrStaleIdentity)
	}
	_, err := f.lane.Reserve(ctx, rc, 2, r, CPUStream)
	require.ErrorIs(t, err, machine.ErrBadArgument)
	require.Equal(t, before, f.bytes())
}

// Of goroutines that use one token at a time, one wins (F137).
func TestOneTokenManyUsers(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	token := f.reserve(rc, r)
	require.NoError(t, token.Commit(ctx))
	errs := make(chan error)
	for range 4 {
		go func() { errs <- token.Release(ctx, CoreStream) }()
	}
	won := 0
	for range 4 {
		if err := <-errs; err == nil {
			won++
		} else {
			require.ErrorIs(t, err, ErrTokenEmpty)
		}
	}
	require.Equal(t, 1, won)
	require.Equal(t, [2]string{"0", "0"}, f.refs())
}

// Goroutines that reserve at a time get a token each, as long as there are any.
func TestManyReserve(t *testing.T) {
	f := opened(t)
	r, rc := f.launch()
	errs := make(chan error)
	for range 4 {
		go func() {
			_, err := f.lane.Reserve(ctx, rc, CoreDone, r, CPUStream)
			errs <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
	require.Equal(t, [2]string{"4", "0"}, f.refs())
}

// A run whose own kernels never launched can still have a wait queued on
// another's boundary: giving that run up drops no count (F142).
func TestNotStartedDropsNoReference(t *testing.T) {
	f := unopened(t, Config{Slots: 2, Depth: 2})
	require.NoError(t, f.lane.Open(ctx))
	var warm []*Run
	for range 2 {
		r, _ := f.launch()
		warm = append(warm, r)
	}
	for _, r := range warm {
		require.NoError(t, r.Wait(ctx))
		require.NoError(t, r.Finalize(ctx))
	}
	first, rc := f.launch()
	second := f.prepare()
	require.Equal(t, 1, second.Identity().Slot)
	token := f.reserve(rc, second)
	require.NoError(t, token.Queue(ctx))
	f.strike("SubmitAICore#1 refuse")
	_, err := second.Launch(ctx)
	require.ErrorIs(t, err, ErrNotStarted)
	require.NoError(t, second.Finalize(ctx))
	require.Equal(t, [2]string{"0", "1"}, f.refs())
	require.NoError(t, first.Wait(ctx))
	require.ErrorIs(t, first.Finalize(ctx), ErrReferenceHeld)
	require.NoError(t, token.Release(ctx, CoreStream))
	require.NoError(t, first.Finalize(ctx))
	f.clean()
}

// A verified reset may come while the device is asked to queue a wait. If it
// then answers that it queued nothing, the token is spent, and there is no count
// left to be given back (F140).
func TestResetWhileAWaitIsBeingQueued(t *testing.T) {
	rules := Rules()
	w, err := rules.NewWorld(machine.Config{Pools: map[string]int{"slot": 1, "token": 1, "callable": 1, "watched": 2}})
	require.NoError(t, err)
	fence, token := w.Ref(rules.Machine("fence").ID(), 0), w.Ref(rules.Machine("token").ID(), 0)
	fire := func(ref machine.Ref, event string, want machine.Status, args ...uint64) {
		t.Helper()
		s := w.Issue(ref, rules.At(ref.Machine).MustEvent(event), args...)
		require.Equal(t, want, s.Status, "%s: %v", event, w.RefusalError(s))
	}
	id, core := []uint64{1, 1, 1}, uint64(CoreDone)
	fire(fence, "arm", machine.Accepted, id...)
	fire(fence, "made", machine.Accepted, id...)
	for _, event := range []string{"submitting", "submitted", "recording", "recorded"} {
		fire(fence, event, machine.Accepted, append(id, core)...)
	}
	arming, _ := w.Fact(fence, rules.Machine("fence").MustFact("arming"))
	fire(token, "reserve", machine.Accepted, fence.Pack(), 1, 1, 1, arming, core, uint64(CPUStream), fence.Pack())
	fire(token, "queue", machine.InFlight)
	require.Equal(t, machine.Accepted, w.Settle(token, machine.Result{}).Status)
	require.Equal(t, machine.InFlight, w.Next(token).Status)
	fire(fence, "abandon", machine.Accepted)
	s := w.Settle(token, machine.Result{Outcome: machine.Refused})
	require.Equal(t, machine.Accepted, s.Status, "a hole: %v", w.RefusalError(s))
	require.Equal(t, ErrNotCommitted, s.Reason)
	require.Equal(t, "spent", w.StateName(token))
}
