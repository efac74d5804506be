package machine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// firer is what a driver's instance and an instance alone have in common.
type firer interface {
	Fire(ctx context.Context, ev machine.EventID, args ...uint64) (machine.Reply, error)
	Can(ev machine.EventID, args ...uint64) bool
	Available() []machine.EventID
	StateName() string
	InFlight() bool
}

// driven is one instance of a driver.
type driven struct {
	d   *machine.Driver
	ref machine.Ref
}

func (x driven) Fire(ctx context.Context, ev machine.EventID, args ...uint64) (machine.Reply, error) {
	return x.d.Fire(ctx, x.ref, ev, args...)
}
func (x driven) Can(ev machine.EventID, args ...uint64) bool { return x.d.Can(x.ref, ev, args...) }
func (x driven) Available() []machine.EventID                { return x.d.Available(x.ref) }

func (x driven) StateName() (name string) {
	x.d.View(func(w *machine.World) { name = w.StateName(x.ref) })
	return name
}

func (x driven) InFlight() bool {
	_, inFlight, _ := x.d.State(x.ref)
	return inFlight
}

// eachWay runs a test with the definition under a driver, and alone.
func eachWay(t *testing.T, d *machine.Definition, p machine.PerformerFunc, f func(t *testing.T, x firer, m *machine.Machine)) {
	rules := compile(t, d)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { f(t, way(t, rules, p), rules.At(0)) })
	}
}

// eachWayInABubble is eachWay with a clock that only waiting moves. The
// performer may use channels that f makes.
func eachWayInABubble(t *testing.T, d *machine.Definition, p machine.PerformerFunc, f func(t *testing.T, x firer, m *machine.Machine)) {
	rules := compile(t, d)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, way(t, rules, p), rules.At(0)) })
		})
	}
}

var ways = map[string]func(testing.TB, *machine.Rules, machine.PerformerFunc) firer{
	"driver": func(t testing.TB, r *machine.Rules, p machine.PerformerFunc) firer {
		d, err := machine.NewDriver(newWorld(t, r, machine.Config{}), machine.DriverConfig{Performer: p})
		require.NoError(t, err)
		return driven{d, d.Ref(0, 0)}
	},
	"alone": func(t testing.TB, r *machine.Rules, p machine.PerformerFunc) firer {
		i, err := r.NewInstance(machine.InstanceConfig{Performer: p})
		require.NoError(t, err)
		return i
	},
	"alone with a log": func(t testing.TB, r *machine.Rules, p machine.PerformerFunc) firer {
		i, err := r.NewInstance(machine.InstanceConfig{Performer: p, Recorder: counter{new(int)}})
		require.NoError(t, err)
		return i
	},
}

// counter counts records.
type counter struct{ n *int }

func (c counter) Record(*machine.Record) { *c.n++ }

func ok(context.Context, *machine.Command) machine.Result { return machine.Result{} }

// Looking at an instance disturbs no other look (looplab/fsm 105).
func TestCanIsTrueForAllWhoAskAtOnce(t *testing.T) {
	eachWay(t, door(), ok, func(t *testing.T, x firer, m *machine.Machine) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5000 {
					if !x.Can(m.MustEvent("open")) || len(x.Available()) != 1 || x.InFlight() || x.StateName() != "closed" {
						t.Error("a look was disturbed by another")
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// While one looks, nothing is being carried out, and others may look.
func TestLookDuringALook(t *testing.T) {
	inside, hold := make(chan struct{}), make(chan struct{})
	block := false
	d := door()
	d.Rows[0].GuardFunc = func(machine.Facts) bool {
		if block {
			inside <- struct{}{}
			<-hold
		}
		return true
	}
	i, err := compile(t, d).NewInstance(machine.InstanceConfig{Performer: machine.PerformerFunc(ok)})
	require.NoError(t, err)
	open := i.Machine().MustEvent("open")
	block = true
	first, second := make(chan bool, 1), make(chan bool, 1)
	go func() { first <- i.Can(open) }()
	<-inside
	assert.False(t, i.InFlight())
	assert.Equal(t, []machine.EventID{open}, i.Available())
	assert.Equal(t, "closed", i.StateName())
	go func() { second <- i.Can(open) }()
	hold <- struct{}{}
	assert.True(t, <-first)
	<-inside
	hold <- struct{}{}
	assert.True(t, <-second)
}

// Two callers pass the same "may I?": one wins, the other is refused in the
// state that the first has brought about (looplab/fsm 15).
func TestTwoCallersWhoMayOneWhoDoes(t *testing.T) {
	var inside, hold chan struct{}
	p := func(context.Context, *machine.Command) machine.Result {
		inside <- struct{}{}
		<-hold
		return machine.Result{}
	}
	eachWayInABubble(t, door(), p, func(t *testing.T, x firer, m *machine.Machine) {
		inside, hold = make(chan struct{}, 2), make(chan struct{})
		open := m.MustEvent("open")
		asked, act := make(chan bool), make(chan struct{})
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				asked <- x.Can(open)
				<-act
				_, err := x.Fire(context.Background(), open)
				errs <- err
			}()
		}
		assert.True(t, <-asked)
		assert.True(t, <-asked)
		close(act)
		<-inside
		synctest.Wait() // the other waits
		assert.Empty(t, inside)
		assert.False(t, x.Can(open))
		hold <- struct{}{}
		first, second := <-errs, <-errs
		if first != nil {
			first, second = second, first
		}
		require.NoError(t, first)
		var refused *machine.RefusalError
		require.ErrorAs(t, second, &refused)
		assert.Equal(t, "open", m.StateName(refused.State))
		assert.EqualError(t, second, `door: open refused in state "open": no row takes it there; accepts close`)
	})
}

// State, Can, Available and facts may be looked at beside transitions.
func TestLooksBesideTransitions(t *testing.T) {
	d := door()
	d.Facts = append(d.Facts, named("n:int 1000000")...)
	d.Rows[0].Then[0].Do = "n++"
	eachWay(t, d, ok, func(t *testing.T, x firer, m *machine.Machine) {
		done := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					x.Can(m.MustEvent("open"))
					for _, ev := range x.Available() {
						m.EventName(ev)
					}
					if s := x.StateName(); s != "closed" && s != "open" && s != "closed▸open" && s != "open▸close" {
						t.Error(s)
					}
				}
			})
		}
		for range 2000 {
			for _, ev := range []string{"open", "close"} {
				if _, err := x.Fire(context.Background(), m.MustEvent(ev)); err != nil {
					t.Fatal(err)
				}
			}
		}
		close(done)
		wg.Wait()
		assert.Equal(t, "closed", x.StateName())
	})
}

// bell rings: its row ends in the state it started in, which is where an event
// fired from inside deadlocks elsewhere (looplab/fsm 102).
func bell() *machine.Definition {
	return &machine.Definition{
		Name: "bell", States: states("up"), Events: []machine.Event{event("ring"), event("fix")},
		Rows: []machine.Row{
			{ID: "ring", From: "up", Event: "ring", Command: "Ring()", Then: []machine.Target{{On: "ok"}, {Error: "did not ring"}}},
			{ID: "fix", From: "up", Event: "fix", Then: do("")},
		},
	}
}

// An event fired from inside a command is an error at once in each position
// that its context reaches, and the transition goes on unharmed.
func TestReentry(t *testing.T) {
	for _, d := range []*machine.Definition{bell(), door()} {
		t.Run(d.Name, func(t *testing.T) {
			var fire func(ctx context.Context) error
			errs := map[string]error{}
			var kept context.Context
			p := func(ctx context.Context, _ *machine.Command) machine.Result {
				kept = ctx
				errs["the context"] = fire(ctx)
				child, cancel := context.WithCancel(context.WithValue(ctx, bellKey{}, 1))
				errs["one made from it"] = fire(child)
				cancel()
				errs["one made from it that outlives it"] = fire(context.WithoutCancel(ctx))
				gone := make(chan error)
				go func() { gone <- fire(ctx) }()
				errs["the context in another goroutine"] = <-gone
				// Through the command of another instance, back to the first.
				other, err := machine.MustCompile(bell()).NewInstance(machine.InstanceConfig{
					Performer: machine.PerformerFunc(func(ctx context.Context, _ *machine.Command) machine.Result {
						errs["another's command"] = fire(ctx)
						return machine.Result{}
					}),
				})
				if err == nil {
					_, err = other.Fire(ctx, other.Machine().MustEvent("ring"))
				}
				if err != nil {
					panic(err)
				}
				return machine.Result{}
			}
			eachWay(t, d, p, func(t *testing.T, x firer, m *machine.Machine) {
				clear(errs)
				fire = func(ctx context.Context) error {
					_, err := x.Fire(ctx, machine.EventID(0))
					return err
				}
				_, err := x.Fire(context.Background(), machine.EventID(0))
				require.NoError(t, err)
				errs["the context after the command"] = fire(kept)
				assert.Len(t, errs, 6)
				for where, err := range errs {
					assert.ErrorIs(t, err, machine.ErrReentrant, where)
					assert.ErrorContains(t, err, m.EventName(0)+": fired from inside a command of the same world", where)
				}
				assert.False(t, x.InFlight())
			})
		})
	}
}

type bellKey struct{}

// Past the command's context, an event fired from inside is a wait that the
// caller's context or the bound ends: never a deadlock.
func TestReentryPastTheContextMeetsABound(t *testing.T) {
	var x firer
	var bound, ended error
	cause := errors.New("enough")
	p := func(context.Context, *machine.Command) machine.Result {
		_, bound = x.Fire(context.Background(), 0)
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Hour, cause)
		defer cancel()
		_, ended = x.Fire(ctx, 0)
		return machine.Result{}
	}
	eachWayInABubble(t, bell(), p, func(t *testing.T, y firer, m *machine.Machine) {
		x = y
		began := time.Now()
		_, err := x.Fire(context.Background(), 0)
		require.NoError(t, err)
		for _, err := range []error{bound, ended} {
			var busy *machine.BusyError
			require.ErrorAs(t, err, &busy)
			assert.ErrorIs(t, err, machine.ErrBusy)
			assert.Equal(t, "ring", busy.Event)
			assert.Contains(t, busy.Where, "bell in state up")
		}
		assert.ErrorContains(t, bound, "ring: busy until the driver's bound")
		assert.ErrorIs(t, ended, cause)
		assert.Equal(t, 30*time.Second+time.Hour, time.Since(began), "of the bubble's time, which only waiting moves")
		assert.False(t, x.InFlight())
	})
}

// A command that panics has the outcome panicked, and is over.
func TestPanicIsAnOutcome(t *testing.T) {
	cause := errors.New("clapper broke")
	p := func(context.Context, *machine.Command) machine.Result { panic(cause) }
	eachWay(t, bell(), p, func(t *testing.T, x firer, m *machine.Machine) {
		_, err := x.Fire(context.Background(), m.MustEvent("ring"))
		var failure *machine.FailureError
		require.ErrorAs(t, err, &failure)
		assert.ErrorIs(t, err, machine.Reason("did not ring"))
		assert.Equal(t, cause, failure.Panic)
		assert.EqualError(t, err, `bell: ring: did not ring: now in state "up" (row ring): command panicked: clapper broke`)
		assert.False(t, x.InFlight())
		_, err = x.Fire(context.Background(), m.MustEvent("fix"))
		require.NoError(t, err)
	})
}

// A goroutine that ends inside a command leaves the instance settled.
func TestGoexitIsAnOutcome(t *testing.T) {
	p := func(context.Context, *machine.Command) machine.Result { runtime.Goexit(); return machine.Result{} }
	d := door()
	d.Rows[0].Then = []machine.Target{{On: "ok", To: "open"}, {On: "panicked", Do: "locked = true"}, {}}
	eachWay(t, d, p, func(t *testing.T, x firer, m *machine.Machine) {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = x.Fire(context.Background(), m.MustEvent("open"))
			t.Error("it came back")
		}()
		<-gone
		assert.False(t, x.InFlight())
		assert.Equal(t, "closed", x.StateName())
		_, err := x.Fire(context.Background(), m.MustEvent("open"))
		assert.ErrorIs(t, err, machine.Reason("door is locked"), "the target of panicked was taken")
	})
}

// An opaque function that panics leaves the instance as it was.
func TestOpaqueFunctionThatPanics(t *testing.T) {
	boom := false
	d := door()
	d.Facts = append(d.Facts, named("n:int 9")...)
	d.Rows[0].Command, d.Rows[0].Then = "", []machine.Target{{To: "open", Do: "n++"}}
	d.Rows[0].DoFunc = func(f machine.Facts) {
		f[1] = 7
		if boom {
			panic("do")
		}
	}
	d.Rows[2].GuardFunc = func(f machine.Facts) bool {
		f[1] = 8 // a guard's writes are lost
		if boom {
			panic("guard")
		}
		return true
	}
	fact := func(x firer) uint64 {
		if i, alone := x.(*machine.Instance); alone {
			v, _ := i.Fact(1)
			return v
		}
		v, _ := x.(driven).d.Fact(x.(driven).ref, 1)
		return v
	}
	eachWay(t, d, ok, func(t *testing.T, x firer, m *machine.Machine) {
		open, cl := m.MustEvent("open"), m.MustEvent("close")
		boom = true
		assert.PanicsWithValue(t, "do", func() { _, _ = x.Fire(context.Background(), open) })
		assert.PanicsWithValue(t, "do", func() { x.Can(open) })
		assert.Equal(t, "closed", x.StateName())
		assert.Zero(t, fact(x))
		boom = false
		_, err := x.Fire(context.Background(), open)
		require.NoError(t, err)
		assert.EqualValues(t, 7, fact(x))
		boom = true
		assert.PanicsWithValue(t, "guard", func() { _, _ = x.Fire(context.Background(), cl) })
		assert.Equal(t, "open", x.StateName())
		boom = false
		_, err = x.Fire(context.Background(), cl)
		require.NoError(t, err)
		assert.EqualValues(t, 7, fact(x))
	})
}

// An opaque function cannot put a fact out of its range.
func TestOpaqueFunctionOutOfRange(t *testing.T) {
	d := door()
	d.Rows[0].Command, d.Rows[0].Then = "", to("open")
	d.Rows[0].DoFunc = func(f machine.Facts) { f[0] = 2 }
	eachWay(t, d, ok, func(t *testing.T, x firer, m *machine.Machine) {
		_, err := x.Fire(context.Background(), m.MustEvent("open"))
		assert.ErrorIs(t, err, machine.ErrOutOfRange)
		assert.ErrorContains(t, err, "fact locked would leave its range")
		assert.Equal(t, "closed", x.StateName())
	})
}

func TestNilPerformer(t *testing.T) {
	_, err := machine.NewDriver(newWorld(t, compile(t, door()), machine.Config{}), machine.DriverConfig{})
	assert.ErrorContains(t, err, "nil performer")
	_, err = compile(t, door()).NewInstance(machine.InstanceConfig{})
	assert.ErrorContains(t, err, "nil performer")
	i, err := compile(t, minter()).NewInstance(machine.InstanceConfig{})
	require.NoError(t, err, "no row has a command")
	_, err = i.Fire(context.Background(), i.Machine().MustEvent("mint"))
	require.NoError(t, err)
}

func TestInstanceWantsOneMachine(t *testing.T) {
	_, err := compile(t, harbour()...).NewInstance(machine.InstanceConfig{Performer: machine.PerformerFunc(ok)})
	assert.EqualError(t, err, "machine: NewInstance wants rules of one machine without a pool; these have 4")
}

func TestMisuseOfArguments(t *testing.T) {
	d := &machine.Definition{
		Name: "m", States: states("on"),
		Events: []machine.Event{event("e", "b:bool", "n:int 3", "c:enum x|y", "r:code", "i:id s")},
		Rows:   []machine.Row{{ID: "e", From: "on", Event: "e", Then: do("")}},
	}
	eachWay(t, d, ok, func(t *testing.T, x firer, m *machine.Machine) {
		good := []uint64{1, 3, 1, machine.CodeWord(-1), 1<<64 - 1}
		_, err := x.Fire(context.Background(), 0, good...)
		require.NoError(t, err)
		for i, want := range []string{"argument b is not of type bool", "argument n is not of type int 3", "argument c is not of type enum x|y", "argument r is not of type code"} {
			bad := append([]uint64{}, good...)
			bad[i] = 1 << 40
			_, err := x.Fire(context.Background(), 0, bad...)
			assert.ErrorIs(t, err, machine.ErrBadArgument)
			assert.ErrorContains(t, err, want)
			assert.False(t, x.Can(0, bad...))
		}
		for _, n := range []int{0, 4} {
			_, err := x.Fire(context.Background(), 0, good[:n]...)
			assert.ErrorContains(t, err, "want 5 arguments")
		}
		_, err = x.Fire(context.Background(), 0, make([]uint64, 100)...)
		assert.ErrorContains(t, err, "want 5 arguments")
		_, err = x.Fire(context.Background(), 9)
		assert.ErrorIs(t, err, machine.ErrBadArgument)
		assert.ErrorContains(t, err, "no such event")
	})
}

func TestAllocations(t *testing.T) {
	eachWay(t, door(), ok, func(t *testing.T, x firer, m *machine.Machine) {
		open, cl, ctx := m.MustEvent("open"), m.MustEvent("close"), context.Background()
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			if _, err := x.Fire(ctx, open); err != nil {
				panic(err)
			}
			if _, err := x.Fire(ctx, cl); err != nil {
				panic(err)
			}
		}))
		assert.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			if _, err := x.Fire(ctx, cl); err == nil {
				panic("taken")
			}
		}), 1.0)
		assert.Zero(t, testing.AllocsPerRun(200, func() { x.Can(open) }))
	})
}

// An answer that the rules have no way to take is a hole: the command stays in
// flight, and whoever comes next waits and gives up.
func TestHoleLeavesTheCommandInFlight(t *testing.T) {
	d := bell()
	d.Facts = named("rung:int 1")
	d.Rows[0].Then[0].Do = "rung++"
	eachWayInABubble(t, d, ok, func(t *testing.T, x firer, m *machine.Machine) {
		ring, ctx := m.MustEvent("ring"), context.Background()
		_, err := x.Fire(ctx, ring)
		require.NoError(t, err)
		_, err = x.Fire(ctx, ring)
		var hole *machine.HoleError
		require.ErrorAs(t, err, &hole)
		assert.True(t, hole.Settling)
		assert.ErrorIs(t, err, machine.ErrRuleHole)
		assert.ErrorIs(t, err, machine.ErrOutOfRange)
		assert.EqualError(t, err, `hole in the rules: an answer cannot be taken: bell: ring refused in state "up" (row ring): fact rung would leave its range; accepts ring, fix`)
		assert.True(t, x.InFlight())
		assert.False(t, x.Can(m.MustEvent("fix")))
		assert.Empty(t, x.Available())
		began := time.Now()
		_, err = x.Fire(ctx, ring)
		assert.ErrorIs(t, err, machine.ErrBusy)
		assert.Equal(t, 30*time.Second, time.Since(began))
	})
}
