package machine_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// giverAndTaker is two machines. What the giver's command brings is taken by the taker
// in the same step, so a taker in flight holds up the giver's answer. A giver
// then emits an event to itself. A taker takes a nudge at any time; an overload
// takes it along twice, which is once too often.
func giverAndTaker() []*machine.Definition {
	giver := &machine.Definition{
		Name:   "giver",
		States: []machine.State{{Name: "idle"}, {Name: "given"}, {Name: "rested"}, {Name: "broken"}},
		Events: []machine.Event{{Name: "give"}, {Name: "rest"}, {Name: "mend"}, {Name: "nudge"}, {Name: "overload"}},
		Rows: []machine.Row{
			{ID: "give", From: "idle", Event: "give", Command: "Fetch()", Then: []machine.Target{
				{On: "ok", To: "given", With: []string{"taker.take()"}, Emit: []string{"self.rest()"}},
				{To: "broken", With: []string{"taker.take()"}, Emit: []string{"self.mend()"}, Error: "nothing to give"},
			}},
			{ID: "rest", From: "given", Event: "rest", Command: "Rest()", Then: []machine.Target{{To: "rested"}}},
			{ID: "again", From: "rested", Event: "rest", Then: []machine.Target{{To: "idle"}}},
			{ID: "mend", From: "broken", Event: "mend", Then: []machine.Target{{To: "idle", Error: "mended"}}},
			{ID: "nudge", From: "idle", Event: "nudge", Then: []machine.Target{{With: []string{"taker.nudge()"}}}},
			{ID: "overload", From: "idle", Event: "overload", Then: []machine.Target{{With: []string{"taker.nudge()", "taker.take()"}}}},
		},
	}
	taker := &machine.Definition{
		Name:   "taker",
		States: []machine.State{{Name: "ready"}, {Name: "full"}},
		Events: []machine.Event{{Name: "take"}, {Name: "work"}, {Name: "empty"}, {Name: "nudge"}},
		Facts:  []machine.Fact{{Name: "nudged", Type: "bool"}},
		Rows: []machine.Row{
			{ID: "take", From: "ready", Event: "take", Then: []machine.Target{{To: "full"}}},
			{ID: "take-full", From: "full", Event: "take", Refuse: "full"},
			{ID: "work", From: "ready", Event: "work", Command: "Work()", Then: []machine.Target{{}}},
			{ID: "empty", From: "full", Event: "empty", Then: []machine.Target{{To: "ready"}}},
			{ID: "nudge", From: "ready|full|ready▸work", Event: "nudge", Guard: "!nudged", Then: []machine.Target{{Do: "nudged = true"}}},
			{ID: "nudge-back", From: "ready|full|ready▸work", Event: "nudge", Guard: "else", Then: []machine.Target{{Do: "nudged = false"}}},
		},
	}
	return []*machine.Definition{giver, taker}
}

// barter is a driver of one pair, with a performer that a test can change.
type barter struct {
	*machine.Driver
	giver, taker    machine.Ref
	give, rest      machine.EventID
	take, work      machine.EventID
	rules           *machine.Rules
	fetch, do, idle func() machine.Result
}

func newBarter(t *testing.T) *barter {
	t.Helper()
	ok := func() machine.Result { return machine.Result{} }
	l := &barter{rules: machine.MustCompile(giverAndTaker()...), fetch: ok, do: ok, idle: ok}
	w, err := l.rules.NewWorld(machine.Config{})
	require.NoError(t, err)
	fetch, _ := l.rules.Call("Fetch")
	work, _ := l.rules.Call("Work")
	l.Driver, err = machine.NewDriver(w, machine.DriverConfig{Performer: turner(func(_ context.Context, c *machine.Command) machine.Result {
		switch c.Call {
		case fetch:
			return l.fetch()
		case work:
			return l.do()
		}
		return l.idle()
	})})
	require.NoError(t, err)
	l.giver, l.taker = l.Ref(0, 0), l.Ref(1, 0)
	g, k := l.rules.At(0), l.rules.At(1)
	l.give, l.rest, l.take, l.work = g.MustEvent("give"), g.MustEvent("rest"), k.MustEvent("take"), k.MustEvent("work")
	return l
}

func (l *barter) state(ref machine.Ref) string {
	var s string
	l.View(func(w *machine.World) { s = w.StateName(ref) })
	return s
}

// hold lets the taker go in flight; the function it returns lets it settle.
func (l *barter) hold() (release func()) {
	holding, hold, settled := make(chan struct{}), make(chan struct{}), make(chan struct{})
	l.do = func() machine.Result { close(holding); <-hold; return machine.Result{} }
	go func() {
		defer close(settled)
		_, _ = l.Fire(context.Background(), l.taker, l.work)
	}()
	<-holding
	return func() { close(hold); <-settled }
}

func TestDriverOperation(t *testing.T) {
	l := newBarter(t)
	r, err := l.Fire(context.Background(), l.giver, l.give)
	require.NoError(t, err)
	require.Equal(t, "rested", l.rules.At(0).StateName(r.State))
	require.Equal(t, "full", l.state(l.taker))
}

// An answer that a busy instance holds up is not lost when its caller stops
// waiting: it is taken as soon as it can be.
func TestDriverAnswerOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBarter(t)
		release := l.hold()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := l.Fire(ctx, l.giver, l.give)
		require.ErrorIs(t, err, machine.ErrBusy)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "idle▸give", l.state(l.giver))
		release()
		require.Equal(t, "given", l.state(l.giver))
		require.Equal(t, "full", l.state(l.taker))

		// The rest of the operation goes first when the instance is used again.
		_, err = l.Fire(context.Background(), l.giver, l.give)
		require.ErrorIs(t, err, machine.ErrRefused)
		require.Equal(t, "rested", l.state(l.giver))
	})
}

func TestDriverResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBarter(t)
		release := l.hold()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := l.Fire(ctx, l.giver, l.give)
		require.ErrorIs(t, err, context.Canceled)
		release()
		r, err := l.Resume(context.Background(), l.giver)
		require.NoError(t, err)
		require.Equal(t, "rested", l.rules.At(0).StateName(r.State))
	})
}

// While one caller waits for its answer to be taken, it stays in flight for others.
func TestDriverWaitsToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBarter(t)
		release := l.hold()
		done := make(chan error, 1)
		go func() { _, err := l.Fire(context.Background(), l.giver, l.give); done <- err }()
		synctest.Wait()
		require.Equal(t, "idle▸give", l.state(l.giver))
		release()
		require.NoError(t, <-done)
		require.Equal(t, "rested", l.state(l.giver))
	})
}

func TestDriverGoexit(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newBarter(t)
			l.fetch = func() machine.Result { runtime.Goexit(); panic("not reached") }
			release := func() {}
			if busy { // the answer of the goroutine that ended cannot be taken at once
				release = l.hold()
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = l.Fire(context.Background(), l.giver, l.give)
			}()
			<-gone
			release()
			require.Equal(t, "broken", l.state(l.giver))
			require.Equal(t, "full", l.state(l.taker))
			_, err := l.Resume(context.Background(), l.giver)
			require.ErrorIs(t, err, machine.Reason("mended"))
		})
	}
}

func TestDriverBadEnds(t *testing.T) {
	for _, end := range []func() machine.Result{
		func() machine.Result { panic("no hands") },
		func() machine.Result { return machine.Result{Outcome: 77} },
	} {
		l := newBarter(t)
		l.fetch = end
		_, err := l.Fire(context.Background(), l.giver, l.give)
		require.ErrorIs(t, err, machine.Reason("mended"))
		require.Equal(t, "idle", l.state(l.giver))
	}
}

func TestDriverReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBarter(t)
		var inside, past error
		fetch, _ := l.rules.Call("Fetch")
		w, err := l.rules.NewWorld(machine.Config{})
		require.NoError(t, err)
		var d *machine.Driver
		d, err = machine.NewDriver(w, machine.DriverConfig{Performer: turner(func(ctx context.Context, c *machine.Command) machine.Result {
			if c.Call == fetch {
				_, inside = d.Fire(context.WithoutCancel(ctx), l.taker, l.work)
				_, past = d.Fire(context.Background(), l.giver, l.give)
			}
			return machine.Result{}
		})})
		require.NoError(t, err)
		_, err = d.Fire(context.Background(), l.giver, l.give)
		require.NoError(t, err)
		require.ErrorIs(t, inside, machine.ErrReentrant)
		require.ErrorIs(t, past, machine.ErrBusy)
	})
}

func TestDriverAnyContext(t *testing.T) {
	l := newBarter(t)
	for _, ctx := range []context.Context{
		uncomparable{context.Background(), []int{1}}, uncomparable{context.Background(), 1}, context.Background(), uncomparable{context.Background(), []int{1}},
	} {
		_, err := l.Fire(ctx, l.taker, l.work)
		require.NoError(t, err)
	}
}

func TestDriverAllocations(t *testing.T) {
	l := newBarter(t)
	ctx := context.Background()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := l.Fire(ctx, l.taker, l.work); err != nil {
			panic(err)
		}
	}))
	_, err := l.Fire(ctx, l.giver, l.give)
	require.NoError(t, err)
	// A refusal costs its error and nothing else.
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		if _, err := l.Fire(ctx, l.taker, l.take); err == nil {
			panic("taken")
		}
	}), 1.0)
}
