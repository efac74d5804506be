package machine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// port is a lane of which a submit is in flight for long: a close is taken
// beside it, a poll waits for it, and a shut lane puts polls off until it is
// open again. Ships are what the lane works on.
func port() []*machine.Definition {
	return []*machine.Definition{
		{
			Name: "port", States: states("open", "closing", "shut"),
			Events: []machine.Event{event("submit", "n:int 9"), event("close"), event("poll"), event("reopen"), event("sail", "s:ref ship"), event("fleet"), event("signal"), event("done"), event("send", "s:ref ship"), event("voyage", "s:ref ship"), event("report"), event("stumble")},
			Facts:  named("closing:bool", "n:int 9", "s:ref ship", "polls:int 99"),
			Rows: []machine.Row{
				{ID: "submit", From: "open", Event: "submit", Guard: "!closing", Command: "Submit(arg.n)", Then: []machine.Target{
					{On: "ok", When: "closing", To: "closing", Do: "n = arg.n", Emit: []string{"self.done()"}, Return: "n", Code: "res.code"},
					{On: "ok", Do: "n = arg.n", Return: "n", Code: "res.code"},
					{Error: "not submitted"},
				}},
				{ID: "submit-closing", From: "open", Event: "submit", Guard: "else", Refuse: "closing"},
				{ID: "close-beside", From: "open▸submit", Event: "close", Guard: "!closing", Then: []machine.Target{{Do: "closing = true"}}},
				{ID: "close-twice", From: "open▸submit", Event: "close", Guard: "else", Refuse: "closing already"},
				{ID: "close", From: "open", Event: "close", Then: to("shut")},
				{ID: "poll", From: "open", Event: "poll", Then: do("polls++")},
				{ID: "poll-later", From: "shut", Event: "poll", Defer: true},
				{ID: "done", From: "closing", Event: "done", Then: to("shut")},
				{ID: "reopen", From: "shut", Event: "reopen", Then: []machine.Target{{To: "open", Do: "closing = false"}}},
				{ID: "sail", From: "open", Event: "sail", Then: []machine.Target{{Do: "s = arg.s", Emit: []string{"s.sail()", "self.poll()"}}}},
				{ID: "send", From: "open", Event: "send", Then: []machine.Target{{Do: "s = arg.s", Emit: []string{"s.sail()"}}}},
				{ID: "voyage", From: "open", Event: "voyage", Then: []machine.Target{{Do: "s = arg.s", Emit: []string{"s.sail()", "self.report()"}}}},
				{ID: "report", From: "open", Event: "report", Then: []machine.Target{{Error: "the voyage is off"}}},
				{ID: "stumble", From: "open", Event: "stumble", Then: []machine.Target{{Error: "stumbled", Emit: []string{"self.poll()"}}}},
				{ID: "signal", From: "open", Event: "signal", Then: []machine.Target{{Emit: []string{"s.sail()", "s.sail()"}}}},
				{ID: "fleet", From: "open", Event: "fleet", Then: []machine.Target{{Emit: []string{"s.sail()", "s.sail()", "self.poll()"}}}},
			},
		},
		{
			Name: "ship", Pool: "ships", States: states("moored", "at sea", "sunk!"),
			Events: []machine.Event{event("sail"), event("moor"), event("sink")},
			Rows: []machine.Row{
				{ID: "sail", From: "moored", Event: "sail", Command: "Sail(self)", Then: []machine.Target{{On: "ok", To: "at sea"}, {Error: "no wind"}}},
				{ID: "moor", From: "at sea", Event: "moor", Then: to("moored")},
				{ID: "sink", From: "at sea", Event: "sink", Then: to("sunk")},
			},
		},
	}
}

// quay is a driver of a port with a performer that the test controls.
type quay struct {
	*machine.Driver
	t       *testing.T
	rules   *machine.Rules
	port    machine.Ref
	started chan *machine.Command // each command as it starts
	answers chan machine.Result   // and what it is answered
}

func newQuay(t *testing.T, c machine.Config) *quay {
	q := &quay{t: t, rules: compile(t, port()...), started: make(chan *machine.Command), answers: make(chan machine.Result)}
	c.Pools = map[string]int{"ships": 3}
	var err error
	q.Driver, err = machine.NewDriver(newWorld(t, q.rules, c), machine.DriverConfig{Performer: machine.PerformerFunc(func(_ context.Context, c *machine.Command) machine.Result {
		q.started <- c
		return <-q.answers
	})})
	require.NoError(t, err)
	q.port = q.Ref(0, 0)
	return q
}

type end struct {
	machine.Reply
	err error
}

// fire fires in a goroutine of its own.
func (q *quay) fire(ctx context.Context, r machine.Ref, ev string, args ...uint64) <-chan end {
	out := make(chan end, 1)
	go func() {
		reply, err := q.Fire(ctx, r, q.rules.At(r.Machine).MustEvent(ev), args...)
		out <- end{reply, err}
	}()
	return out
}

func (q *quay) state(r machine.Ref) (s string) {
	q.View(func(w *machine.World) { s = w.StateName(r) })
	return s
}

func (q *quay) fact(name string) uint64 {
	v, ok := q.Fact(q.port, q.rules.At(0).MustFact(name))
	require.True(q.t, ok)
	return v
}

func bubble(t *testing.T, f func(t *testing.T, q *quay)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newQuay(t, machine.Config{})) })
}

// A close that comes while a submit is in flight is taken beside it, and the
// submit's answer sees it.
func TestCloseDuringSubmit(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		ctx := context.Background()
		submit := q.fire(ctx, q.port, "submit", 7)
		c := <-q.started
		assert.EqualValues(t, 7, c.Args[0])
		assert.Equal(t, "open▸submit", q.state(q.port))
		assert.Equal(t, []machine.EventID{q.rules.At(0).MustEvent("close")}, q.Available(q.port))

		closed := <-q.fire(ctx, q.port, "close")
		require.NoError(t, closed.err)
		assert.Equal(t, "close-beside", q.rules.At(0).RowID(closed.Row))
		assert.Equal(t, "open▸submit", q.state(q.port))
		again := <-q.fire(ctx, q.port, "close")
		assert.EqualError(t, again.err, `port: close refused in state "open▸submit" (row close-twice): closing already; said no: !closing; accepts close`)

		q.answers <- machine.Result{Codes: machine.Codes{Code: -5}}
		done := <-submit
		require.NoError(t, done.err)
		assert.Equal(t, "shut", q.state(q.port), "through closing, by the event that the submit's end emitted")
		assert.Equal(t, "done", q.rules.At(0).RowID(done.Row), "the reply is of the last step of the port itself")
		assert.EqualValues(t, 7, q.fact("n"))
	})
}

// What the state in flight does not take waits, and is refused or accepted in
// the state that follows.
func TestEventWaitsForTheCommand(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		ctx := context.Background()
		submit := q.fire(ctx, q.port, "submit", 7)
		<-q.started
		poll, reopen := q.fire(ctx, q.port, "poll"), q.fire(ctx, q.port, "reopen")
		synctest.Wait()
		assert.Empty(t, poll)
		assert.Empty(t, reopen)
		assert.False(t, q.Can(q.port, q.rules.At(0).MustEvent("poll")))
		q.answers <- machine.Result{Codes: machine.Codes{Code: 3}}
		s := <-submit
		require.NoError(t, s.err)
		assert.EqualValues(t, 3, s.Code)
		assert.EqualValues(t, 7, s.Value)
		require.NoError(t, (<-poll).err)
		assert.EqualError(t, (<-reopen).err, `port: reopen refused in state "open": no row takes it there; accepts submit, close, poll, sail, fleet, signal, send, voyage, report, stumble`)
		assert.EqualValues(t, 1, q.fact("polls"))
	})
}

// A row that defers lets its callers wait until the state has changed.
func TestDeferredEventWaitsForAnotherState(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		ctx := context.Background()
		require.NoError(t, (<-q.fire(ctx, q.port, "close")).err)
		poll := q.fire(ctx, q.port, "poll")
		synctest.Wait()
		assert.Empty(t, poll)
		require.NoError(t, (<-q.fire(ctx, q.port, "reopen")).err)
		require.NoError(t, (<-poll).err)
		assert.EqualValues(t, 1, q.fact("polls"))

		// Nobody changes the state: the bound ends the wait, and nothing has happened.
		require.NoError(t, (<-q.fire(ctx, q.port, "close")).err)
		began := time.Now()
		late := <-q.fire(ctx, q.port, "poll")
		assert.ErrorIs(t, late.err, machine.ErrBusy)
		assert.EqualError(t, late.err, "port in state shut: poll: busy until the driver's bound")
		assert.Equal(t, 30*time.Second, time.Since(began))
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		submit := q.fire(context.Background(), q.port, "submit", 7)
		<-q.started
		cause := errors.New("the harbour master went home")
		ctx, cancel := context.WithCancelCause(context.Background())
		poll := q.fire(ctx, q.port, "poll")
		synctest.Wait()
		cancel(cause)
		p := <-poll
		assert.ErrorIs(t, p.err, machine.ErrBusy)
		assert.ErrorIs(t, p.err, cause)
		assert.EqualError(t, p.err, "port in state open▸submit: poll: busy until the harbour master went home")
		q.answers <- machine.Result{}
		require.NoError(t, (<-submit).err)
		assert.Zero(t, q.fact("polls"), "a wait that ended changed nothing")
	})
}

// An operation whose caller gave up half-way is carried on by whoever comes next.
func TestLeftoverOperation(t *testing.T) {
	for _, how := range []string{"by the next event", "by Resume", "by two at once"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *quay) {
				ship := q.Ref(1, 0)
				sail := q.fire(context.Background(), ship, "sail")
				<-q.started
				ctx, cancel := context.WithCancel(context.Background())
				fleet := q.fire(ctx, q.port, "sail", ship.Pack()) // emits ship.sail, port.poll
				synctest.Wait()
				cancel()
				assert.ErrorIs(t, (<-fleet).err, machine.ErrBusy)
				q.answers <- machine.Result{}
				require.NoError(t, (<-sail).err)
				require.NoError(t, (<-q.fire(context.Background(), ship, "moor")).err)
				assert.Zero(t, q.fact("polls"))

				switch how {
				case "by the next event":
					next := q.fire(context.Background(), q.port, "poll")
					<-q.started
					q.answers <- machine.Result{}
					require.NoError(t, (<-next).err)
					assert.EqualValues(t, 2, q.fact("polls"), "that of the operation left, and then its own")
				case "by Resume":
					done := make(chan end, 1)
					go func() {
						r, err := q.Resume(context.Background(), q.port)
						done <- end{r, err}
					}()
					<-q.started
					nothing, err := q.Resume(context.Background(), q.port)
					require.NoError(t, err)
					assert.Equal(t, machine.Reply{}, nothing, "somebody is at it")
					q.answers <- machine.Result{}
					d := <-done
					require.NoError(t, d.err)
					assert.Equal(t, "poll", q.rules.At(0).RowID(d.Row))
					assert.EqualValues(t, 1, q.fact("polls"))
				case "by two at once":
					a, b := q.fire(context.Background(), q.port, "poll"), q.fire(context.Background(), q.port, "poll")
					<-q.started
					synctest.Wait()
					q.answers <- machine.Result{}
					require.NoError(t, (<-a).err)
					require.NoError(t, (<-b).err)
					assert.EqualValues(t, 3, q.fact("polls"), "the operation left went once")
				}
				assert.Equal(t, "at sea", q.state(ship))
			})
		})
	}
}

// Fire returns when what it started is over, also when another operation of
// the same instance is under way.
func TestOperationsOfOneInstanceAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		a, b := q.Ref(1, 0), q.Ref(1, 1)
		first := q.fire(context.Background(), q.port, "sail", a.Pack())
		c := <-q.started
		assert.Equal(t, a, c.Ref)
		second := q.fire(context.Background(), q.port, "sail", b.Pack())
		synctest.Wait()
		assert.Empty(t, second, "its own events wait behind those of the first")
		assert.Equal(t, b.Pack(), q.fact("s"), "its own step does not")
		q.answers <- machine.Result{}
		c = <-q.started
		assert.Equal(t, b, c.Ref)
		synctest.Wait()
		assert.Empty(t, second)
		q.answers <- machine.Result{}
		require.NoError(t, (<-first).err)
		require.NoError(t, (<-second).err)
		assert.Equal(t, "at sea", q.state(b))
		assert.EqualValues(t, 2, q.fact("polls"))
	})
}

// Also when it is the other caller that carries its events on.
func TestOperationThatAnotherCarriesOn(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		a, b := q.Ref(1, 0), q.Ref(1, 1)
		first := q.fire(context.Background(), q.port, "send", a.Pack())
		<-q.started
		second := q.fire(context.Background(), q.port, "send", b.Pack())
		synctest.Wait()
		q.answers <- machine.Result{}
		c := <-q.started
		assert.Equal(t, b, c.Ref)
		synctest.Wait()
		assert.Empty(t, first)
		assert.Empty(t, second)
		q.answers <- machine.Result{}
		require.NoError(t, (<-first).err)
		require.NoError(t, (<-second).err)
	})
}

// What another instance failed at, or refused, is the cause of the operation's
// own failure.
func TestFailureTellsItsCause(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		ctx, ship := context.Background(), q.Ref(1, 0)
		voyage := q.fire(ctx, q.port, "voyage", ship.Pack())
		<-q.started
		q.answers <- machine.Result{Outcome: machine.Failed}
		err := (<-voyage).err
		assert.ErrorIs(t, err, machine.Reason("the voyage is off"))
		assert.ErrorIs(t, err, machine.Reason("no wind"))
		assert.EqualError(t, err, `port: report: the voyage is off: now in state "open" (row report): ship[0]: sail: no wind: now in state "moored" (row sail)`)

		sail := q.fire(ctx, ship, "sail")
		<-q.started
		q.answers <- machine.Result{}
		require.NoError(t, (<-sail).err)
		err = (<-q.fire(ctx, q.port, "voyage", ship.Pack())).err
		assert.ErrorIs(t, err, machine.Reason("the voyage is off"))
		assert.ErrorIs(t, err, machine.ErrRefused)
		assert.NotErrorIs(t, err, machine.ErrRuleHole, "the operation has noticed by itself")

		err = (<-q.fire(ctx, q.port, "report")).err
		assert.NotErrorIs(t, err, machine.ErrRefused, "the cause was another operation's")
	})
}

// The last target of the operation's own instance decides whether it failed.
func TestOperationThatRecovers(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		r := <-q.fire(context.Background(), q.port, "stumble")
		require.NoError(t, r.err)
		assert.Equal(t, "poll", q.rules.At(0).RowID(r.Row))
	})
}

func TestOperationBehindOneThatEndsInARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		ctx, ship := context.Background(), q.Ref(1, 0)
		sail := q.fire(ctx, q.port, "sail", ship.Pack())
		<-q.started
		q.answers <- machine.Result{Outcome: machine.Failed}
		require.NoError(t, (<-sail).err)
		began := time.Now()
		signal := q.fire(ctx, q.port, "signal")
		<-q.started
		poll := q.fire(ctx, q.port, "poll")
		synctest.Wait()
		assert.Empty(t, poll)
		q.answers <- machine.Result{}
		ends := []end{<-signal, <-poll}
		assert.Zero(t, time.Since(began))
		if ends[0].err == nil { // either may have met the refusal
			ends[0], ends[1] = ends[1], ends[0]
		}
		assert.ErrorIs(t, ends[0].err, machine.ErrRuleHole)
		assert.NoError(t, ends[1].err)
	})
}

// An emitted event that is refused is a hole in the rules; the rest of the
// operation still happens.
func TestEmittedEventThatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		ship := q.Ref(1, 0)
		sail := q.fire(context.Background(), q.port, "sail", ship.Pack())
		<-q.started
		q.answers <- machine.Result{}
		require.NoError(t, (<-sail).err)
		fleet := <-q.fire(context.Background(), q.port, "fleet")
		var hole *machine.HoleError
		require.ErrorAs(t, fleet.err, &hole)
		assert.False(t, hole.Settling)
		assert.ErrorIs(t, fleet.err, machine.ErrRuleHole)
		assert.ErrorIs(t, fleet.err, machine.ErrRefused)
		assert.EqualError(t, fleet.err, `hole in the rules: an emitted event is not taken: ship[0]: sail refused in state "at sea": no row takes it there; accepts moor, sink`)
		assert.EqualValues(t, 2, q.fact("polls"))
	})
}

// A failure of another instance on the way is the cause of the operation's own.
func TestDropAndStaleReferences(t *testing.T) {
	bubble(t, func(t *testing.T, q *quay) {
		ctx, ship := context.Background(), q.Ref(1, 2)
		err := q.Drop(ship)
		assert.ErrorIs(t, err, machine.ErrNotTerminal)
		assert.ErrorContains(t, err, `ship[2]:`)
		assert.ErrorContains(t, err, `refused in state "moored": only an instance in a terminal state can be dropped`)
		sail := q.fire(ctx, ship, "sail")
		<-q.started
		q.answers <- machine.Result{}
		require.NoError(t, (<-sail).err)
		require.NoError(t, (<-q.fire(ctx, ship, "sink")).err)
		require.NoError(t, q.Drop(ship))
		assert.Equal(t, "ship[2]~1", q.rules.RefName(q.Ref(1, 2)))

		stale := <-q.fire(ctx, ship, "sail")
		assert.ErrorIs(t, stale.err, machine.ErrStale)
		assert.ErrorIs(t, stale.err, machine.ErrRefused)
		assert.EqualError(t, stale.err, "ship[2]: sail refused: stale reference: this occupancy has ended")
		assert.ErrorIs(t, q.Drop(ship), machine.ErrStale)
		_, _, exists := q.State(ship)
		assert.False(t, exists)
		_, exists = q.Fact(ship, 0)
		assert.False(t, exists)
		assert.Empty(t, q.Available(ship))
		assert.False(t, q.Can(ship, 0))
		assert.Equal(t, "(stale)", q.state(ship))
		assert.Equal(t, "moored", q.state(q.Ref(1, 2)))

		for _, none := range []machine.Ref{{Machine: 1, Slot: 77}, {Machine: 9}} {
			_, err := q.Fire(ctx, none, 0)
			assert.ErrorIs(t, err, machine.ErrBadArgument)
			assert.Error(t, q.Drop(none))
			assert.False(t, q.Can(none, 0))
			assert.Empty(t, q.Available(none))
			_, err = q.Resume(ctx, none)
			assert.NoError(t, err, "there is nothing to carry on")
		}
		assert.Panics(t, func() { q.Ref(1, 3) })
	})
}

// sink is a recorder that does I/O, which it does without the world's lock.
type sinkRecorder struct {
	log
	q       *quay
	flushed int
}

func (s *sinkRecorder) Flush() {
	s.flushed++
	s.q.state(s.q.port) // would deadlock under the lock
}

func TestFlushAfterEachOperationWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sinkRecorder{}
		q := newQuay(t, machine.Config{Recorder: s, Clock: func() int64 { return 42 }})
		s.q = q
		require.NoError(t, (<-q.fire(context.Background(), q.port, "poll")).err)
		assert.Equal(t, 1, s.flushed)
		assert.Error(t, (<-q.fire(context.Background(), q.port, "reopen")).err)
		assert.Equal(t, 2, s.flushed)
		assert.Error(t, q.Drop(q.port))
		assert.Equal(t, 3, s.flushed)
		require.Len(t, s.records, 2)
		assert.EqualValues(t, 42, s.records[0].Time)
		assert.Equal(t, machine.Rejected, s.records[1].Kind)
		assert.Equal(t, machine.NoRow, s.records[1].Refusal)
	})
}
