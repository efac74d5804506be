package states

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// The rows that guard what no façade does are held to their word here, by
// firing their events past the façades.

// boundarySteps is how far a boundary can be, in order, and the events that
// bring it from one to the next.
var boundarySteps = []struct{ state, event string }{
	{"missing", "submitting"}, {"submitting", "submitted"}, {"submitted", "recording"}, {"recording", "recorded"}, {"recorded", "reached"}, {"complete", ""},
}

// boundaryMoves says what each event makes of a boundary, for each way that it
// can be; what is not here is out of order.
var boundaryMoves = map[string]map[string]string{
	"submitting":  {"missing": "submitting"},
	"submitted":   {"submitting": "submitted"},
	"unsubmitted": {"submitting": "missing"},
	"recording":   {"submitted": "recording"},
	"recorded":    {"recording": "recorded"},
	"unrecorded":  {"recording": "submitted"},
	"reached":     {"recorded": "complete", "complete": "complete"},
}

// armed makes a lane whose fence stands for a run 7 7 7, with its events made.
func armed(t *testing.T) *fixture {
	t.Helper()
	f := opened(t)
	require.NoError(t, f.fire("fence", 0, "arm", 7, 7, 7))
	require.NoError(t, f.fire("fence", 0, "made", 7, 7, 7))
	return f
}

// bring brings a boundary (0 or 1) to a state.
func (f *fixture) bring(boundary uint64, to string) {
	f.Helper()
	for _, s := range boundarySteps {
		if s.state == to {
			return
		}
		require.NoError(f, f.fire("fence", 0, s.event, 7, 7, 7, boundary))
	}
}

// Each event at each stage of each boundary: the one way on, or a refusal that
// leaves all as it was. The other boundary feels nothing (F96, F98, F129).
func TestBoundarySteps(t *testing.T) {
	for boundary, name := range []string{"core", "cpu"} {
		other := []string{"cpu", "core"}[boundary]
		for _, at := range boundarySteps {
			for event, moves := range boundaryMoves {
				f := armed(t)
				f.bring(1-uint64(boundary), "recorded")
				f.bring(uint64(boundary), at.state)
				before := f.bytes()
				err := f.fire("fence", 0, event, 7, 7, 7, uint64(boundary))
				if to, ok := moves[at.state]; ok {
					require.NoError(t, err)
					require.Equal(t, to, f.fact("fence", 0, name), "%s at %s", event, at.state)
				} else {
					require.ErrorIs(t, err, ErrBoundaryOrder, "%s at %s", event, at.state)
					require.Equal(t, before, f.bytes())
				}
				require.Equal(t, "recorded", f.fact("fence", 0, other))
			}
		}
	}
}

// Nothing is submitted for a run whose slot has no events (F124).
func TestNoSubmissionWithoutEvents(t *testing.T) {
	f := opened(t)
	require.NoError(t, f.fire("fence", 0, "arm", 7, 7, 7))
	require.ErrorIs(t, f.fire("fence", 0, "submitting", 7, 7, 7, 0), ErrBoundaryOrder)
}

// TestRetireNeedsAProof goes through every pair of boundaries: the fence lets
// go if each is complete or was never submitted, or if both streams were
// synchronised (F97, F98, F129, F132).
func TestRetireNeedsAProof(t *testing.T) {
	over := []string{"missing", "complete"}
	for _, core := range boundarySteps {
		for _, cpu := range boundarySteps {
			f := armed(t)
			f.bring(0, core.state)
			f.bring(1, cpu.state)
			err := f.fire("fence", 0, "retire", 7, 7, 7)
			if slices.Contains(over, core.state) && slices.Contains(over, cpu.state) {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrUnproven, "core %s, cpu %s", core.state, cpu.state)
				require.NoError(t, f.fire("fence", 0, "quiesced", 7, 7, 7))
				require.NoError(t, f.fire("fence", 0, "retire", 7, 7, 7))
			}
			require.Equal(t, "idle", f.state("fence", 0))
			for _, fact := range []string{"run_epoch", "generation", "dispatch", "arming"} {
				require.Equal(t, "none", f.fact("fence", 0, fact))
			}
			require.Equal(t, [2]string{"missing", "missing"}, [2]string{f.fact("fence", 0, "core"), f.fact("fence", 0, "cpu")})
			require.Equal(t, "false", f.fact("fence", 0, "quiet"))
			require.Equal(t, "true", f.fact("fence", 0, "handles"), "handles belong to the slot")
		}
	}
}

// A launch is taken back only while nothing of it is on the device (F124).
func TestDisarm(t *testing.T) {
	f := armed(t)
	f.bring(0, "submitting")
	require.ErrorIs(t, f.fire("fence", 0, "disarm", 7, 7, 7), ErrUnproven)
	require.NoError(t, f.fire("fence", 0, "unsubmitted", 7, 7, 7, 0))
	require.NoError(t, f.fire("fence", 0, "disarm", 7, 7, 7))
	require.Equal(t, "idle", f.state("fence", 0), "the events were made, and stay")
	for _, fact := range []string{"run_epoch", "generation", "dispatch", "arming"} {
		require.Equal(t, "none", f.fact("fence", 0, fact))
	}

	f = opened(t)
	require.NoError(t, f.fire("fence", 0, "arm", 7, 7, 7))
	require.NoError(t, f.fire("fence", 0, "disarm", 7, 7, 7))
	require.Equal(t, "bare", f.state("fence", 0), "none were")
	for _, fact := range []string{"run_epoch", "generation", "dispatch", "arming"} {
		require.Equal(t, "none", f.fact("fence", 0, fact))
	}
	require.NoError(t, f.fire("fence", 0, "abandon"))
	require.Equal(t, "bare", f.state("fence", 0))
}

// A fence that stands for no run has no facts to change, in any of the states
// in which it does not.
func TestUnarmedFence(t *testing.T) {
	for state, reach := range map[string]func(f *fixture){
		"bare":     func(*fixture) {},
		"idle":     func(f *fixture) { launchedAndGone(f) },
		"released": func(f *fixture) { launchedAndGone(f); require.NoError(f, f.fire("fence", 0, "release")) },
	} {
		f := opened(t)
		reach(f)
		require.Equal(t, state, f.state("fence", 0))
		before := f.bytes()
		for _, event := range []string{"made", "disarm", "quiesced", "retire"} {
			require.ErrorIs(t, f.fire("fence", 0, event, 0, 0, 0), ErrNotArmed, event)
		}
		for event := range boundaryMoves {
			require.ErrorIs(t, f.fire("fence", 0, event, 0, 0, 0, 0), ErrNotArmed, event)
		}
		require.ErrorIs(t, f.fire("fence", 0, "reserve", 0, 0, 0, 0, 0), ErrNotArmed)
		require.ErrorIs(t, f.fire("fence", 0, "drop", 0, 0), ErrStaleIdentity)
		require.Equal(t, before, f.bytes())
	}
}

func launchedAndGone(f *fixture) {
	r := waited(f)
	require.NoError(f, r.Finalize(ctx))
}

func TestReleasedFence(t *testing.T) {
	f := opened(t)
	launchedAndGone(f)
	require.NoError(t, f.fire("fence", 0, "release"))
	require.Equal(t, "released", f.state("fence", 0))
	require.Equal(t, "false", f.fact("fence", 0, "handles"))
	require.ErrorIs(t, f.fire("fence", 0, "release"), ErrFenceReleased)
}

// No part of an identity is zero (F51, F122).
func TestZeroIdentity(t *testing.T) {
	f := opened(t)
	for i := range 3 {
		id := []uint64{7, 7, 7}
		id[i] = 0
		require.ErrorIs(t, f.fire("fence", 0, "arm", id...), ErrZeroIdentity)
		require.ErrorIs(t, f.fire("run", 0, "begin", append(id, 0, 0)...), ErrZeroIdentity)
	}
	require.Equal(t, "bare", f.state("fence", 0))
	require.Equal(t, "idle", f.state("run", 0))
}

// A run's own rows compare identities too, each part of them (F122).
func TestRunRefusesAStaleIdentity(t *testing.T) {
	try := func(f *fixture, event string, more ...uint64) {
		t.Helper()
		id := f.runIdentity()
		for i := range id {
			bad := slices.Clone(id)
			bad[i]++
			before := f.bytes()
			require.ErrorIs(t, f.fire("run", 0, event, append(bad, more...)...), ErrStaleIdentity, event)
			require.Equal(t, before, f.bytes())
		}
	}
	f := opened(t)
	r := f.prepare()
	try(f, "launching")
	try(f, "retire")
	_, err := r.Launch(ctx)
	require.NoError(t, err)
	try(f, "drained", 0, 0)
	require.NoError(t, r.Wait(ctx))
	try(f, "retire")
	require.NoError(t, f.fire("run", 0, "retire", f.runIdentity()...))
	require.Equal(t, "false", f.fact("run", 0, "bound"), "the streams are the slot's again")
	try(f, "finalized")

	f, _ = partialRun(t)
	try(f, "drained", 1, 0)
}

func (f *fixture) runIdentity() []uint64 {
	m := f.lane.at.run
	var id []uint64
	for _, n := range identityNames {
		v, ok := f.lane.d.Fact(f.ref("run", 0), m.MustFact(n))
		require.True(f, ok)
		id = append(id, v)
	}
	return id
}

// A run that was only being prepared leaves nothing behind on its slot.
func TestUnpreparedRunForgetsItself(t *testing.T) {
	f := opened(t, "Alloc#1 refuse")
	require.ErrorIs(t, second(f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: []byte{1}})), ErrPreparationRefused)
	require.Equal(t, []uint64{0, 0, 0}, f.runIdentity())
	require.Equal(t, "none", f.fact("run", 0, "permit"))
}

// A launch that submitted nothing releases the streams and keeps its code.
func TestUnstartedRunKeepsItsCode(t *testing.T) {
	f := warm(t, "SubmitAICore#1 refuse 4242")
	r := f.prepare()
	require.ErrorIs(t, second(r.Launch(ctx)), ErrNotStarted)
	require.Equal(t, "4242", f.fact("run", 0, "rc"))
	require.Equal(t, "false", f.fact("run", 0, "bound"))
	require.Equal(t, "none", f.fact("run", 0, "permit"))
}

// The lane's own rows, in the states that no operation fires them in.
func TestLaneRows(t *testing.T) {
	f := unopened(t, Config{})
	require.ErrorIs(t, f.fire("lane", 0, "admit"), ErrAdmissionClosed)
	require.NoError(t, f.lane.Open(ctx))
	require.ErrorIs(t, f.fire("lane", 0, "open", 1, 1), ErrAlreadyInitialised)
	for _, close := range []string{"partial", "poison", "fault"} {
		f := opened(t)
		require.NoError(t, f.fire("lane", 0, "admit"))
		require.ErrorIs(t, f.fire("lane", 0, "shut"), ErrRunLive)
		require.NoError(t, f.fire("lane", 0, close))
		require.NoError(t, f.fire("lane", 0, "leave"))
		require.ErrorIs(t, f.fire("lane", 0, "admit"), ErrAdmissionClosed, close)
		switch close {
		case "poison":
			require.ErrorIs(t, f.fire("lane", 0, "shut"), ErrUnproven)
			continue
		case "partial":
			require.NoError(t, f.fire("lane", 0, "proven"))
		case "fault":
			require.NoError(t, f.fire("lane", 0, "recovered"))
		}
		require.NoError(t, f.fire("lane", 0, "admit"))
	}
	for over, event := range map[string]string{"shut": "shut", "quarantined": "quarantine"} {
		f := opened(t)
		require.NoError(t, f.fire("lane", 0, event))
		require.Equal(t, over, f.state("lane", 0))
		require.ErrorIs(t, f.fire("lane", 0, "admit"), ErrAdmissionClosed)
		require.ErrorIs(t, f.fire("lane", 0, "open", 1, 1), ErrFinalized)
		require.ErrorIs(t, f.fire("lane", 0, "shut"), ErrFinalized)
		require.ErrorIs(t, f.fire("lane", 0, "quarantine"), ErrFinalized)
	}
}

// The environment's rows likewise.
func TestEnvironmentRows(t *testing.T) {
	f := unopened(t, Config{})
	for _, event := range []string{"locate", "close", "check", "detach"} {
		require.ErrorIs(t, f.fire("environment", 0, event, 1), ErrNotInitialised, event)
	}
	require.NoError(t, f.lane.Open(ctx))
	require.ErrorIs(t, f.fire("environment", 0, "create", 1, 0, 0, 0), ErrAlreadyInitialised)
	require.NoError(t, f.lane.Close(ctx))
	require.Equal(t, "torn down", f.state("environment", 0))
	for _, event := range []string{"check", "teardown", "detach", "close", "locate"} {
		require.ErrorIs(t, f.fire("environment", 0, event, 1), ErrFinalized, event)
	}

	e := scripted(t, func(call string) machine.Result {
		if call == "Teardown" {
			return machine.Result{Outcome: machine.Failed}
		}
		return machine.Result{Value: 9}
	})
	require.NoError(t, e.Create(ctx, 0))
	require.ErrorIs(t, e.Rollback(ctx), ErrTeardown)
	require.ErrorIs(t, second(e.fire(ctx, "teardown")), ErrCleanupOwed, "it needs a close's claim first")
	require.ErrorIs(t, e.Close(ctx), ErrTeardown)
	closed, _ := e.d.Fact(e.d.Ref(e.m.ID(), 0), e.m.MustFact("closed"))
	require.Equal(t, uint64(1), closed, "CLOSED is kept")
	require.NoError(t, e.Detach(ctx))
	require.ErrorIs(t, second(e.fire(ctx, "teardown")), ErrDetached)
}

// An environment that somebody else made is not made again, and one that is
// open is not rolled back.
func TestOpeningRows(t *testing.T) {
	f := unopened(t, Config{})
	require.NoError(t, f.fire("environment", 0, "create", 1, 0, 0, 0))
	require.ErrorIs(t, f.lane.Open(ctx), ErrAlreadyInitialised)
	require.NoError(t, f.fire("environment", 0, "rollback", 1))
	require.NoError(t, f.lane.Open(ctx))
	require.ErrorIs(t, f.fire("environment", 0, "rollback", 1), ErrAlreadyInitialised)
}

// A rolled back environment remembers nothing of itself.
func TestRolledBackEnvironmentForgets(t *testing.T) {
	e := scripted(t, func(string) machine.Result { return machine.Result{Value: 9} })
	require.NoError(t, e.Create(ctx, 3))
	require.NoError(t, e.Rollback(ctx))
	require.Zero(t, identity_(t, &e.EnvironmentView))
	e.d.View(func(w *machine.World) {
		for _, v := range w.AppendFacts(nil, w.Ref(e.m.ID(), 0)) {
			require.Zero(t, v)
		}
	})
}

// Every failure carries the code of the call that failed.
func TestFailuresCarryTheirCode(t *testing.T) {
	open := func(f *fixture) error { return f.lane.Open(ctx) }
	prepare := func(f *fixture) error { return second(f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: []byte{1}})) }
	launch := func(f *fixture) error { return second(f.prepare().Launch(ctx)) }
	check := func(f *fixture) error { return f.lane.Environment().Check(ctx) }
	closing := func(f *fixture) error { return f.lane.Close(ctx) }
	for _, c := range []struct {
		fault string
		open  bool
		do    func(f *fixture) error
	}{
		{"CurrentContext#1 fail-before", false, open},
		{"CurrentContext#1 refuse", false, open},
		{"CreateStream#1 fail-before", false, open},
		{"CurrentContext#1 fail-before", true, check},
		{"CurrentContext#1 fail-before", true, closing},
		{"DestroyStream#1 fail-before", true, closing},
		{"CurrentContext#1 fail-before", true, prepare},
		{"Alloc#1 fail-before", true, prepare},
		{"Alloc#1 refuse", true, prepare},
		{"CreateEvent#1 fail-before", true, launch},
		{"SubmitAICore#1 refuse", true, launch},
		{"StreamWaitEvent#1 refuse", true, queueing},
		{"StreamWaitEvent#1 fail-before", true, queueing},
		{"CurrentContext#3 fail-before", true, queueing},
		{"QueryEvent#1 fail-before", true, func(f *fixture) error { r, _ := f.launch(); return second(r.Poll(ctx)) }},
		{"QueryStream#1 fail-before", true, func(f *fixture) error { r, _ := f.launch(); return second(r.Poll(ctx)) }},
		{"SynchronizeStream#1 fail-before", true, func(f *fixture) error { r, _ := f.launch(); return r.Wait(ctx) }},
		{"SynchronizeStream#2 refuse", true, func(f *fixture) error { r, _ := f.launch(); return r.Wait(ctx) }},
	} {
		f := unopened(t, Config{})
		if c.open {
			require.NoError(t, f.lane.Open(ctx))
		}
		f.strike(c.fault + " 4242")
		err := c.do(f)
		require.Error(t, err, c.fault)
		require.Contains(t, codes(err), int32(4242), c.fault)
	}
	f := unopened(t, Config{Borrowed: true, Generation: 1}, "CurrentContext#1 fail-before 4242")
	require.Contains(t, codes(f.lane.Open(ctx)), int32(4242))
	e := scripted(t, func(call string) machine.Result {
		if call == "Teardown" {
			return machine.Result{Outcome: machine.Failed, Codes: machine.Codes{Code: 4242}}
		}
		return machine.Result{Value: 9}
	})
	require.NoError(t, e.Create(ctx, 0))
	require.Contains(t, codes(e.Rollback(ctx)), int32(4242))
}

func queueing(f *fixture) error {
	r, rc := f.launch()
	return f.reserve(rc, r).Queue(ctx)
}

// codes are all codes that an error carries.
func codes(err error) []int32 {
	var all []int32
	for f := (*machine.FailureError)(nil); errors.As(err, &f); err = f.Cause {
		all = append(all, f.Code)
	}
	return all
}
