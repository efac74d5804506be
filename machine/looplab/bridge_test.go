package looplab_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/looplab/fsm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/looplab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// valve has a command whose answers split, a row taken beside it, a row that
// stays where it is, and one that waits.
func valve() *machine.Definition {
	return &machine.Definition{
		Name:   "valve",
		States: []machine.State{{Name: "shut"}, {Name: "wide open"}, {Name: "stuck", Terminal: true}},
		Events: []machine.Event{{Name: "open", Args: []machine.Fact{{Name: "turns", Type: "int 9"}}}, {Name: "shut"}, {Name: "tap"}, {Name: "drain"}},
		Facts:  []machine.Fact{{Name: "turns", Type: "int 9"}, {Name: "taps", Type: "int 9"}},
		Rows: []machine.Row{
			{ID: "open", From: "shut", Event: "open", Guard: "arg.turns > 0", Before: "turns = arg.turns", Command: "Turn(turns)", Then: []machine.Target{
				{On: "ok", When: "res.accepted", To: "wide open", Code: "res.code"},
				{On: "ok failed", Do: "turns = 0", Error: "did not turn"},
				{On: "panicked", To: "stuck", Error: "broke"},
				{Do: "turns = 0"},
			}},
			{ID: "open-none", From: "shut", Event: "open", Guard: "else", Refuse: "no turns"},
			{ID: "shut", From: "wide open", Event: "shut", Then: []machine.Target{{When: "taps > 2", To: "stuck"}, {To: "shut"}}},
			{ID: "tap", From: "shut|wide open", Event: "tap", Then: []machine.Target{{Do: "taps++"}}},
			{ID: "tap-beside", From: "shut▸open", Event: "tap", Then: []machine.Target{{Do: "taps++"}}},
			{ID: "drain", From: "shut", Event: "drain", Defer: true},
			{ID: "drain-open", From: "wide open", Event: "drain", Then: []machine.Target{{}}},
		},
	}
}

type perform func(ctx context.Context, c *machine.Command) machine.Result

func (p perform) Perform(ctx context.Context, c *machine.Command) machine.Result { return p(ctx, c) }

func turned(context.Context, *machine.Command) machine.Result {
	return machine.Result{Accepted: true, Codes: machine.Codes{Code: 5}}
}

func newBridge(t *testing.T, p perform, callbacks fsm.Callbacks) *looplab.Bridge {
	b, err := looplab.New(machine.MustCompile(valve()), looplab.Config{Performer: p, Callbacks: callbacks})
	require.NoError(t, err)
	return b
}

func TestTable(t *testing.T) {
	at := map[[2]string]string{}
	for _, e := range looplab.Events(machine.MustCompile(valve()).At(0)) {
		key := [2]string{e.Src[0], e.Name}
		assert.NotContains(t, at, key, "the last of two would win without a word")
		at[key] = e.Dst
	}
	assert.Equal(t, map[[2]string]string{
		{"shut", "open#open"}:               "shut▸open",
		{"shut▸open", "open#open:ok.0"}:     "wide open",
		{"shut▸open", "open#open:ok.1"}:     "shut",
		{"shut▸open", "open#open:failed"}:   "shut",
		{"shut▸open", "open#open:refused"}:  "shut",
		{"shut▸open", "open#open:panicked"}: "stuck",
		{"shut▸open", "open#open:timedout"}: "shut",
		{"wide open", "shut#shut:ok.0"}:     "stuck",
		{"wide open", "shut#shut:ok.1"}:     "shut",
		{"shut", "tap#tap"}:                 "shut",
		{"wide open", "tap#tap"}:            "wide open",
		{"shut▸open", "tap#tap-beside"}:     "shut▸open",
		{"wide open", "drain#drain-open"}:   "wide open",
	}, at)
}

func TestBridgeRunsTheRules(t *testing.T) {
	var visited []string
	b := newBridge(t, turned, fsm.Callbacks{
		"enter_state":      func(_ context.Context, e *fsm.Event) { visited = append(visited, e.Dst) },
		"before_open#open": func(_ context.Context, e *fsm.Event) { assert.Equal(t, []any{uint64(3)}, e.Args) },
	})
	ctx := context.Background()
	r, err := b.Fire(ctx, "open", 3)
	require.NoError(t, err)
	assert.EqualValues(t, 5, r.Code)
	assert.Equal(t, []string{"shut▸open", "wide open"}, visited)
	assert.Equal(t, "wide open", b.State())
	assert.Equal(t, "wide open", b.FSM().Current())
	assert.Equal(t, []uint64{3, 0}, b.Facts())
	for range 3 {
		_, err = b.Fire(ctx, "tap") // from a state to itself is no error
		require.NoError(t, err)
	}
	_, err = b.Fire(ctx, "shut")
	require.NoError(t, err)
	assert.Equal(t, "stuck", b.State(), "a target that taps > 2 chose")

	_, err = b.Fire(ctx, "shut")
	assert.EqualError(t, err, `valve: shut refused in state "stuck": no row takes it there; accepts nothing`)
	_, err = b.Fire(ctx, "opne", 3)
	assert.ErrorIs(t, err, machine.ErrBadArgument)
	assert.EqualError(t, err, `valve: unknown event "opne": did you mean "open"?: bad argument`)
}

func TestBridgeRefusesAndFails(t *testing.T) {
	answer := machine.Result{}
	b := newBridge(t, func(context.Context, *machine.Command) machine.Result { return answer }, nil)
	ctx := context.Background()
	_, err := b.Fire(ctx, "open", 0)
	assert.ErrorIs(t, err, machine.Reason("no turns"))
	assert.ErrorContains(t, err, "said no: arg.turns > 0")
	_, err = b.Fire(ctx, "open")
	assert.ErrorIs(t, err, machine.ErrBadArgument)
	_, err = b.Fire(ctx, "open", 10)
	assert.ErrorIs(t, err, machine.ErrBadArgument)
	assert.Equal(t, []uint64{0, 0}, b.Facts())

	_, err = b.Fire(ctx, "open", 3) // ok, but not accepted
	var failure *machine.FailureError
	require.ErrorAs(t, err, &failure)
	assert.EqualError(t, err, `valve: open: did not turn: now in state "shut" (row open)`)
	answer.Outcome = machine.TimedOut
	_, err = b.Fire(ctx, "open", 3)
	require.NoError(t, err, "the row has a target for it without an error")
	for range 9 {
		_, err = b.Fire(ctx, "tap")
		require.NoError(t, err)
	}
	_, err = b.Fire(ctx, "tap")
	assert.ErrorIs(t, err, machine.ErrOutOfRange)
	assert.Equal(t, []uint64{0, 9}, b.Facts())

	answer.Outcome = 99
	_, err = b.Fire(ctx, "open", 3)
	assert.ErrorIs(t, err, machine.Reason("broke"))
	assert.ErrorContains(t, err, "a command was answered with outcome(99)")
	assert.Equal(t, "stuck", b.State())
}

func TestBridgeRefusesRulesItCannotRun(t *testing.T) {
	plain := valve()
	joint := valve()
	joint.Facts = append(joint.Facts, machine.Fact{Name: "other", Type: "ref valve"})
	joint.Rows[3].Then[0].With = []string{"other.shut()"}
	emitting := valve()
	emitting.Rows[3].Then[0].Emit = []string{"self.shut()"}
	pooled := valve()
	pooled.Pool = "valves"
	second := valve()
	second.Name = "second"
	for want, defs := range map[string][]*machine.Definition{
		`looplab cannot run these rules: valve/tap takes along 1 events and emits 0`:                               {joint},
		`looplab cannot run these rules: valve/tap takes along 0 events and emits 1`:                               {emitting},
		`looplab cannot run these rules: 1 machines ["valve"], pools ["valves"]: want one machine without a pool`:  {pooled},
		`looplab cannot run these rules: 2 machines ["valve" "second"], pools []: want one machine without a pool`: {plain, second},
	} {
		_, err := looplab.New(machine.MustCompile(defs...), looplab.Config{Performer: perform(turned)})
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, looplab.ErrUnsupported)
	}
	_, err := looplab.New(machine.MustCompile(plain), looplab.Config{})
	assert.EqualError(t, err, "looplab: nil performer")
}

// What looplab's callbacks object to does not happen, in the rules either.
func TestCallbacksThatObject(t *testing.T) {
	no := errors.New("not on a Sunday")
	cancel := func(_ context.Context, e *fsm.Event) { e.Cancel(no) }
	report := func(_ context.Context, e *fsm.Event) { e.Err = no }
	ctx := context.Background()
	t.Run("before", func(t *testing.T) {
		b := newBridge(t, turned, fsm.Callbacks{"before_open#open": cancel, "before_tap#tap": cancel})
		for _, ev := range []string{"open", "tap"} { // to another state, and to the same
			args := map[string][]uint64{"open": {3}}[ev]
			_, err := b.Fire(ctx, ev, args...)
			assert.ErrorIs(t, err, looplab.ErrCallback)
			assert.ErrorIs(t, err, no)
			assert.Equal(t, "shut", b.State())
			assert.Equal(t, []uint64{0, 0}, b.Facts())
		}
	})
	t.Run("leave", func(t *testing.T) {
		b := newBridge(t, turned, fsm.Callbacks{"leave_shut": cancel})
		_, err := b.Fire(ctx, "open", 3)
		assert.ErrorIs(t, err, no)
		assert.Equal(t, []uint64{0, 0}, b.Facts())
		_, err = b.Fire(ctx, "tap")
		require.NoError(t, err, "it is not left in the middle")
	})
	t.Run("enter", func(t *testing.T) { // too late: the command goes on, and the error is reported
		b := newBridge(t, turned, fsm.Callbacks{"enter_shut▸open": report})
		r, err := b.Fire(ctx, "open", 3)
		assert.ErrorIs(t, err, looplab.ErrCallback)
		assert.ErrorIs(t, err, no)
		assert.EqualValues(t, 5, r.Code)
		assert.Equal(t, "wide open", b.State())
	})
	t.Run("enter, and then a failure", func(t *testing.T) {
		b := newBridge(t, func(context.Context, *machine.Command) machine.Result { return machine.Result{} }, fsm.Callbacks{"enter_shut▸open": report})
		_, err := b.Fire(ctx, "open", 3)
		assert.ErrorIs(t, err, no)
		assert.ErrorIs(t, err, machine.Reason("did not turn"))
	})
	t.Run("outcome", func(t *testing.T) {
		b := newBridge(t, turned, fsm.Callbacks{"before_open#open:ok.0": cancel})
		_, err := b.Fire(ctx, "open", 3)
		assert.ErrorIs(t, err, no)
		assert.Equal(t, "shut▸open", b.State(), "its answer was not taken")
		_, err = b.Fire(ctx, "tap")
		require.NoError(t, err, "what is taken beside the command still is")
	})
	t.Run("asynchronous", func(t *testing.T) {
		b := newBridge(t, turned, fsm.Callbacks{"leave_shut": func(_ context.Context, e *fsm.Event) { e.Async() }})
		_, err := b.Fire(ctx, "open", 3)
		require.NoError(t, err)
		assert.Equal(t, "wide open", b.State())
	})
	t.Run("panic before", func(t *testing.T) {
		boom := true
		b := newBridge(t, turned, fsm.Callbacks{"before_open#open": func(context.Context, *fsm.Event) {
			if boom {
				panic("boom")
			}
		}})
		assert.PanicsWithValue(t, "boom", func() { _, _ = b.Fire(ctx, "open", 3) })
		assert.Equal(t, []uint64{0, 0}, b.Facts())
		boom = false
		_, err := b.Fire(ctx, "open", 3)
		require.NoError(t, err)
	})
	t.Run("panic after", func(t *testing.T) {
		b := newBridge(t, turned, fsm.Callbacks{"enter_wide open": func(context.Context, *fsm.Event) { panic("boom") }})
		assert.PanicsWithValue(t, "boom", func() { _, _ = b.Fire(ctx, "open", 3) })
		assert.Equal(t, "wide open", b.State())
		_, err := b.Fire(ctx, "tap")
		require.NoError(t, err)
	})
}

func TestSomebodyElseSetsTheState(t *testing.T) {
	b := newBridge(t, turned, nil)
	b.FSM().SetState("wide open")
	_, err := b.Fire(context.Background(), "shut")
	assert.ErrorIs(t, err, looplab.ErrDiverged)
	assert.ErrorContains(t, err, `"wide open", not "shut"`)
	b.FSM().SetState("shut")
	_, err = b.Fire(context.Background(), "open", 3)
	require.NoError(t, err)
}

// A context that ends does not leave looplab in transition for ever.
func TestContextThatEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := newBridge(t, func(ctx context.Context, c *machine.Command) machine.Result { cancel(); return turned(ctx, c) }, nil)
	_, err := b.Fire(ctx, "open", 3)
	require.NoError(t, err)
	_, err = b.Fire(ctx, "shut")
	require.NoError(t, err)
	assert.Equal(t, "shut", b.State())
}

// Firing from inside a command or a callback is an error at once through its
// context, and a bounded wait past it (looplab/fsm 36 and 102).
func TestBridgeReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *looplab.Bridge
		through, past := map[string]error{}, map[string]error{}
		try := func(where string, ctx context.Context) {
			_, through[where] = b.Fire(ctx, "tap")
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, past[where] = b.Fire(short, "drain")
		}
		callback := func(where string) fsm.Callback {
			return func(ctx context.Context, _ *fsm.Event) { try(where, ctx) }
		}
		b = newBridge(t, func(ctx context.Context, c *machine.Command) machine.Result {
			try("command", ctx)
			_, err := b.Fire(context.Background(), "tap")
			assert.NoError(t, err, "past its context, what is taken beside a command is taken")
			return turned(ctx, c)
		}, fsm.Callbacks{
			"before_open#open": callback("before"), "leave_shut": callback("leave"),
			"enter_shut▸open": callback("enter"), "after_open#open": callback("after"), "after_tap#tap-beside": callback("after a row that stays"),
		})
		began := time.Now()
		_, err := b.Fire(context.Background(), "open", 3)
		require.NoError(t, err)
		assert.Len(t, through, 6)
		for where := range through {
			assert.ErrorIs(t, through[where], machine.ErrReentrant, where)
			assert.ErrorIs(t, past[where], machine.ErrBusy, where)
			assert.ErrorIs(t, past[where], context.DeadlineExceeded, where)
		}
		assert.Equal(t, 6*time.Second, time.Since(began))
		assert.Equal(t, []uint64{3, 1}, b.Facts())
	})
}

func TestBridgeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside, hold := make(chan struct{}), make(chan struct{})
		b := newBridge(t, func(ctx context.Context, c *machine.Command) machine.Result {
			inside <- struct{}{}
			<-hold
			return turned(ctx, c)
		}, nil)
		fire := func(ev string, args ...uint64) <-chan error {
			c := make(chan error, 1)
			go func() { _, err := b.Fire(context.Background(), ev, args...); c <- err }()
			return c
		}
		drain := fire("drain") // deferred by the state
		synctest.Wait()
		assert.Empty(t, drain)
		open := fire("open", 3)
		<-inside
		again := fire("open", 4)
		synctest.Wait()
		assert.Empty(t, again)
		assert.Equal(t, "shut▸open", b.State())
		hold <- struct{}{}
		require.NoError(t, <-open)
		require.NoError(t, <-drain, "taken once it is open")
		var refused *machine.RefusalError
		require.ErrorAs(t, <-again, &refused)
		assert.ErrorContains(t, refused, `open refused in state "wide open"`)

		require.NoError(t, <-fire("shut"))
		began := time.Now()
		err := <-fire("drain")
		assert.ErrorIs(t, err, machine.ErrBusy)
		assert.Equal(t, 30*time.Second, time.Since(began))
		assert.EqualError(t, err, "valve in state shut: drain: busy until the driver's bound")
	})
}

func TestBridgeGoexit(t *testing.T) {
	b := newBridge(t, func(context.Context, *machine.Command) machine.Result { runtime.Goexit(); return machine.Result{} }, nil)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = b.Fire(context.Background(), "open", 3)
		t.Error("it came back")
	}()
	<-gone
	assert.Equal(t, "stuck", b.State())
}
