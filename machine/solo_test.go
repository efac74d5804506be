package machine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// valve has, beside a bare row, one of each kind that an instance alone treats
// in a way of its own: arguments, a second row, changes before the command, a
// code and a value to report, and a target for each bad end.
func valve() *machine.Definition {
	moved := func(to string) []machine.Target {
		return []machine.Target{
			{On: "ok", To: to, Do: "worn = false", Code: "res.code", Return: "res.value"},
			{On: "panicked", To: "stuck", Do: "hot = true", Error: "valve panicked"},
			{Error: "valve failed", Code: "res.code"},
		}
	}
	return &machine.Definition{
		Name:   "valve",
		States: []machine.State{{Name: "shut"}, {Name: "open"}, {Name: "stuck"}},
		Events: []machine.Event{
			{Name: "open", Args: []machine.Fact{{Name: "key", Type: "id key"}}},
			{Name: "shut"},
			{Name: "free"},
			{Name: "pair", Args: []machine.Fact{{Name: "key", Type: "id key"}, {Name: "worn", Type: "bool"}}},
		},
		Facts: []machine.Fact{{Name: "key", Type: "id key"}, {Name: "worn", Type: "bool"}, {Name: "hot", Type: "bool"}},
		Rows: []machine.Row{
			{ID: "open", From: "shut", Event: "open", Guard: "arg.key == key", Before: "worn = true", Command: "Turn(key, worn)", Then: moved("open")},
			{ID: "open-any", From: "shut", Event: "open", Guard: "key == none", Command: "Turn(arg.key, false)", Then: moved("open")},
			{ID: "wrong-key", From: "shut", Event: "open", Guard: "else", Refuse: "wrong key"},
			{ID: "shut", From: "open", Event: "shut", Command: "Turn(key, worn)", Then: []machine.Target{{On: "ok", To: "shut"}, {On: "panicked", To: "stuck"}, {}}},
			{ID: "free", From: "stuck", Event: "free", Then: []machine.Target{{To: "shut", Do: "key = none; hot = false"}}},
			{ID: "free-open", From: "open", Event: "free", Then: []machine.Target{{Error: "free already"}}},
			{ID: "pair", From: "shut", Event: "pair", Then: []machine.Target{{Do: "key = arg.key; worn = arg.worn"}}},
		},
	}
}

type turner func(ctx context.Context, c *machine.Command) machine.Result

func (t turner) Perform(ctx context.Context, c *machine.Command) machine.Result { return t(ctx, c) }

func newValve(t *testing.T, rec machine.Recorder, p machine.Performer) (*machine.Instance, *machine.Machine) {
	t.Helper()
	i, err := machine.MustCompile(valve()).NewInstance(machine.InstanceConfig{Performer: p, Recorder: rec})
	require.NoError(t, err)
	return i, i.Machine()
}

// An instance alone takes its steps by itself or, if they are recorded, through
// its world. Both must do the same.
func TestInstance(t *testing.T) {
	for name, test := range map[string]func(*testing.T, machine.Recorder){
		"arguments and replies":    instanceArgumentsAndReplies,
		"bad ends":                 instanceBadEnds,
		"goexit":                   instanceGoexit,
		"reentry":                  instanceReentry,
		"reentry past its context": instanceReentryPastItsContext,
		"waiters":                  instanceWaiters,
		"any context":              instanceAnyContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, nil) })
		t.Run(name+" on record", func(t *testing.T) {
			var l log
			test(t, &l)
			require.NotEmpty(t, l.records)
		})
	}
}

func instanceArgumentsAndReplies(t *testing.T, rec machine.Recorder) {
	var got []machine.Command
	answer := machine.Result{Codes: machine.Codes{Code: 7}, Value: 9}
	i, m := newValve(t, rec, turner(func(_ context.Context, c *machine.Command) machine.Result {
		got = append(got, *c)
		return answer
	}))
	ctx := context.Background()
	open, shut, pair := m.MustEvent("open"), m.MustEvent("shut"), m.MustEvent("pair")

	r, err := i.Fire(ctx, open, 5)
	require.NoError(t, err)
	require.Equal(t, "open-any", m.RowID(r.Row))
	require.Equal(t, int32(7), r.Code)
	require.Equal(t, uint64(9), r.Value)
	_, err = i.Fire(ctx, shut)
	require.NoError(t, err)
	_, err = i.Fire(ctx, pair, 3, 0)
	require.NoError(t, err)

	_, err = i.Fire(ctx, open, 4)
	require.ErrorIs(t, err, machine.Reason("wrong key"))
	var refused *machine.RefusalError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []string{"arg.key == key", "key == none"}, refused.Guards())
	_, err = i.Fire(ctx, pair, 3, 2)
	require.ErrorIs(t, err, machine.ErrBadArgument)
	_, err = i.Fire(ctx, pair, 3)
	require.ErrorIs(t, err, machine.ErrBadArgument)
	_, err = i.Fire(ctx, machine.EventID(99))
	require.ErrorIs(t, err, machine.ErrBadArgument)

	r, err = i.Fire(ctx, open, 3)
	require.NoError(t, err)
	require.Equal(t, "open", m.RowID(r.Row))
	args := make([][2]uint64, len(got))
	for k, c := range got {
		require.Equal(t, 2, c.N)
		args[k] = [2]uint64{c.Args[0], c.Args[1]}
	}
	// The changes before the command show in its arguments.
	require.Equal(t, [][2]uint64{{5, 0}, {0, 0}, {3, 1}}, args)
	worn, ok := i.Fact(m.MustFact("worn"))
	require.True(t, ok)
	require.Zero(t, worn)

	// A failure that a target names, without a command.
	r, err = i.Fire(ctx, m.MustEvent("free"))
	require.ErrorIs(t, err, machine.Reason("free already"))
	require.Equal(t, "open", m.StateName(r.State))
}

// An instance alone refuses as the world does, in every state.
func TestInstanceRefusesAsTheWorldDoes(t *testing.T) {
	rules := machine.MustCompile(valve())
	m := rules.At(0)
	path := []struct {
		event string
		args  []uint64
	}{{"pair", []uint64{4, 0}}, {"open", []uint64{4}}, {"shut", nil}, {"pair", []uint64{4, 1}}, {"open", []uint64{4}}}
	for n := range path {
		ok := turner(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })
		i, err := rules.NewInstance(machine.InstanceConfig{Performer: ok})
		require.NoError(t, err)
		w, err := rules.NewWorld(machine.Config{Name: "valve"})
		require.NoError(t, err)
		d, err := machine.NewDriver(w, machine.DriverConfig{Performer: ok})
		require.NoError(t, err)
		for _, x := range path[:n] {
			_, err := i.Fire(context.Background(), m.MustEvent(x.event), x.args...)
			require.NoError(t, err)
			_, err = d.Fire(context.Background(), d.Ref(0, 0), m.MustEvent(x.event), x.args...)
			require.NoError(t, err)
		}
		refusals := 0
		for ev := range machine.EventID(m.NumEvents() + 1) {
			for _, args := range [][]uint64{nil, {9}, {9, 0}, {9, 5}, {4, 0, 1}} {
				if i.Can(ev, args...) {
					continue
				}
				refusals++
				got, err := i.Fire(context.Background(), ev, args...)
				want, wanted := d.Fire(context.Background(), d.Ref(0, 0), ev, args...)
				require.Equal(t, want, got)
				require.EqualError(t, err, wanted.Error())
				var a, b *machine.RefusalError
				require.ErrorAs(t, err, &a)
				require.ErrorAs(t, wanted, &b)
				require.Equal(t, []any{b.Ref, b.State, b.Event, b.Kind, b.Reason, b.Row(), b.Guards(), b.Accepts()},
					[]any{a.Ref, a.State, a.Event, a.Kind, a.Reason, a.Row(), a.Guards(), a.Accepts()})
			}
		}
		require.Greater(t, refusals, 15)
	}
}

func instanceBadEnds(t *testing.T, rec machine.Recorder) {
	for name, x := range map[string]struct {
		end   func() machine.Result
		state string
		hot   uint64
		says  string
	}{
		"panic":      {func() machine.Result { panic("spring broke") }, "stuck", 1, "command panicked: spring broke"},
		"no outcome": {func() machine.Result { return machine.Result{Outcome: 200} }, "stuck", 1, "command panicked: machine: a command was answered with outcome(200)"},
		"failed":     {func() machine.Result { return machine.Result{Outcome: machine.Failed, Codes: machine.Codes{Code: -3}} }, "shut", 0, "code -3"},
	} {
		t.Run(name, func(t *testing.T) {
			end := x.end
			i, m := newValve(t, rec, turner(func(context.Context, *machine.Command) machine.Result { return end() }))
			r, err := i.Fire(context.Background(), m.MustEvent("open"), 1)
			var failure *machine.FailureError
			require.ErrorAs(t, err, &failure)
			require.ErrorContains(t, err, x.says)
			require.Equal(t, x.state, m.StateName(r.State))
			require.Equal(t, x.state, i.StateName())
			require.False(t, i.InFlight())
			hot, _ := i.Fact(m.MustFact("hot"))
			require.Equal(t, x.hot, hot)

			// What one event panicked with is not told of the next.
			end = func() machine.Result { return machine.Result{Outcome: machine.Failed} }
			if x.state == "stuck" {
				_, err = i.Fire(context.Background(), m.MustEvent("free"))
				require.NoError(t, err)
			}
			_, err = i.Fire(context.Background(), m.MustEvent("open"), 1)
			require.ErrorAs(t, err, &failure)
			require.Nil(t, failure.Panic)
		})
	}
}

func instanceGoexit(t *testing.T, rec machine.Recorder) {
	for _, event := range []string{"open", "shut"} { // a target with changes, and a bare one
		exit := false
		i, m := newValve(t, rec, turner(func(context.Context, *machine.Command) machine.Result {
			if exit {
				runtime.Goexit()
			}
			return machine.Result{}
		}))
		args := []uint64{1}
		if event == "shut" {
			_, err := i.Fire(context.Background(), m.MustEvent("open"), 1)
			require.NoError(t, err)
			args = nil
		}
		exit = true
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = i.Fire(context.Background(), m.MustEvent(event), args...)
		}()
		<-gone
		require.Equal(t, "stuck", i.StateName())
		require.False(t, i.InFlight())
		hot, _ := i.Fact(m.MustFact("hot"))
		require.Equal(t, event == "open", hot == 1)
		_, err := i.Fire(context.Background(), m.MustEvent("free"))
		require.NoError(t, err)
	}
}

func instanceReentry(t *testing.T, rec machine.Recorder) {
	synctest.Test(t, func(t *testing.T) {
		var i *machine.Instance
		var m *machine.Machine
		var inside, derived, leaked error
		var kept context.Context
		i, m = newValve(t, rec, turner(func(ctx context.Context, _ *machine.Command) machine.Result {
			kept = ctx
			_, inside = i.Fire(ctx, m.MustEvent("shut"))
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			_, derived = i.Fire(child, m.MustEvent("shut"))
			return machine.Result{}
		}))
		_, err := i.Fire(context.Background(), m.MustEvent("open"), 1)
		require.NoError(t, err)
		_, leaked = i.Fire(kept, m.MustEvent("shut"))
		for _, err := range []error{inside, derived, leaked} {
			require.ErrorIs(t, err, machine.ErrReentrant)
		}
		require.Equal(t, "open", i.StateName())
	})
}

// Past its context, firing from inside a command is a wait that the bound ends.
func instanceReentryPastItsContext(t *testing.T, rec machine.Recorder) {
	synctest.Test(t, func(t *testing.T) {
		var i *machine.Instance
		var m *machine.Machine
		var inside error
		i, m = newValve(t, rec, turner(func(context.Context, *machine.Command) machine.Result {
			_, inside = i.Fire(context.Background(), m.MustEvent("shut"))
			return machine.Result{}
		}))
		_, err := i.Fire(context.Background(), m.MustEvent("open"), 1)
		require.NoError(t, err)
		require.ErrorIs(t, inside, machine.ErrBusy)
		require.ErrorContains(t, inside, "the driver's bound")
	})
}

func instanceWaiters(t *testing.T, rec machine.Recorder) {
	synctest.Test(t, func(t *testing.T) {
		hold, holding := make(chan struct{}), make(chan struct{})
		i, m := newValve(t, rec, turner(func(_ context.Context, c *machine.Command) machine.Result {
			if c.Args[0] == 1 {
				close(holding)
				<-hold
			}
			return machine.Result{}
		}))
		first := make(chan error, 1)
		go func() { _, err := i.Fire(context.Background(), m.MustEvent("open"), 1); first <- err }()
		<-holding
		require.True(t, i.InFlight())
		require.Empty(t, i.Available())

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := i.Fire(ctx, m.MustEvent("shut"))
		require.ErrorIs(t, err, machine.ErrBusy)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		// Those who still wait are taken, or refused, in the new state.
		type end struct {
			r   machine.Reply
			err error
		}
		shut, open := make(chan end, 1), make(chan end, 1)
		go func() { r, err := i.Fire(context.Background(), m.MustEvent("shut")); shut <- end{r, err} }()
		synctest.Wait()
		close(hold)
		require.NoError(t, <-first)
		got := <-shut
		require.NoError(t, got.err)
		require.Equal(t, "shut", i.StateName())
		go func() { r, err := i.Fire(context.Background(), m.MustEvent("shut")); open <- end{r, err} }()
		require.ErrorIs(t, (<-open).err, machine.ErrRefused)
	})
}

// uncomparable is a context whose values cannot be compared with ==, although
// its type can.
type uncomparable struct {
	context.Context
	bag any
}

func instanceAnyContext(t *testing.T, rec machine.Recorder) {
	i, m := newValve(t, rec, turner(func(context.Context, *machine.Command) machine.Result { return machine.Result{} }))
	for range 2 {
		for _, ctx := range []context.Context{
			uncomparable{context.Background(), []int{1}}, uncomparable{context.Background(), 1}, context.Background(),
		} {
			_, err := i.Fire(ctx, m.MustEvent("open"), 1)
			require.NoError(t, err)
			_, err = i.Fire(ctx, m.MustEvent("shut"))
			require.NoError(t, err)
		}
	}
}

func TestInstanceAllocatesNothing(t *testing.T) {
	i, m := newValve(t, nil, turner(func(context.Context, *machine.Command) machine.Result { return machine.Result{} }))
	ctx := context.Background()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, err1 := i.Fire(ctx, m.MustEvent("open"), 1)
		_, err2 := i.Fire(ctx, m.MustEvent("shut"))
		if err := errors.Join(err1, err2); err != nil {
			panic(err)
		}
	}))
}

// However many fire, one command runs at a time, and every event is taken or
// refused in a state that is nobody else's.
func TestInstanceOneAtATime(t *testing.T) {
	for _, rec := range []machine.Recorder{nil, &log{}} {
		inside, opened := 0, 0 // only the command touches them: the race detector watches
		i, m := newValve(t, rec, turner(func(context.Context, *machine.Command) machine.Result {
			if inside++; inside != 1 {
				panic("two commands at a time")
			}
			runtime.Gosched()
			opened++
			inside--
			return machine.Result{}
		}))
		open, shut := m.MustEvent("open"), m.MustEvent("shut")
		var taken [2]atomic.Int64
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				for n := range 200 {
					way := (g + n) % 2
					var err error
					if way == 0 {
						_, err = i.Fire(context.Background(), open, 1)
					} else {
						_, err = i.Fire(context.Background(), shut)
					}
					switch {
					case err == nil:
						taken[way].Add(1)
					case !errors.Is(err, machine.ErrRefused):
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		opens, shuts := taken[0].Load(), taken[1].Load()
		require.Equal(t, map[string]int64{"open": 1, "shut": 0}[i.StateName()], opens-shuts)
		require.Equal(t, int64(opened), opens+shuts)
	}
}
