package looplab_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/looplab"
	"github.com/runfence/runfence/machine/machinetest"
	"github.com/runfence/runfence/machine/naive"
)

// runner is one way to run a machine.
type runner interface {
	fire(ctx context.Context, ev machine.EventID, args []uint64) (machine.Reply, error)
	can(ev machine.EventID, args []uint64) (can, known bool)
	state() string
	facts() []uint64
}

type instance struct{ *machine.Instance }

func (x instance) fire(ctx context.Context, ev machine.EventID, args []uint64) (machine.Reply, error) {
	return x.Fire(ctx, ev, args...)
}

func (x instance) can(ev machine.EventID, args []uint64) (bool, bool) {
	return x.Can(ev, args...), true
}
func (x instance) state() string { return x.StateName() }

func (x instance) facts() (out []uint64) {
	for i := range x.Machine().Definition().Facts {
		v, _ := x.Fact(machine.FactID(i))
		out = append(out, v)
	}
	return out
}

type driver struct {
	*machine.Driver
	ref machine.Ref
}

func (x driver) fire(ctx context.Context, ev machine.EventID, args []uint64) (machine.Reply, error) {
	return x.Fire(ctx, x.ref, ev, args...)
}

func (x driver) can(ev machine.EventID, args []uint64) (bool, bool) {
	return x.Can(x.ref, ev, args...), true
}

func (x driver) state() (s string) {
	x.View(func(w *machine.World) { s = w.StateName(x.ref) })
	return s
}

func (x driver) facts() (out []uint64) {
	x.View(func(w *machine.World) { out = w.AppendFacts(nil, x.ref) })
	return out
}

type bridge struct {
	*looplab.Bridge
	m *machine.Machine
}

func (x bridge) fire(ctx context.Context, ev machine.EventID, args []uint64) (machine.Reply, error) {
	return x.Fire(ctx, x.m.EventName(ev), args...)
}
func (x bridge) can(machine.EventID, []uint64) (bool, bool) { return false, false }
func (x bridge) state() string                              { return x.State() }
func (x bridge) facts() []uint64                            { return x.Facts() }

// scene is one event with all that happens while its command is out, and what
// the reference makes of it.
type scene struct {
	ev     machine.EventID
	args   []uint64
	issue  naive.Step
	beside []scene // taken or refused in flight
	result machine.Result
	settle naive.Step
}

// rig runs the same scenes in every way.
type rig struct {
	*rapid.T
	m       *machine.Machine
	n       *naive.World
	runners map[string]runner
	// now is what the performer of each runner is to do.
	now  map[string]*scene
	seen map[string]int
}

func newRig(t *rapid.T, d *machine.Definition, seen map[string]int) *rig {
	rules, err := machine.Compile(d)
	require.NoError(t, err)
	n, err := naive.New(naive.Config{Queue: 16}, d)
	require.NoError(t, err)
	r := &rig{T: t, m: rules.At(0), n: n, runners: map[string]runner{}, now: map[string]*scene{}, seen: seen}
	i, err := rules.NewInstance(machine.InstanceConfig{Performer: r.performer("instance")})
	require.NoError(t, err)
	r.runners["instance"] = instance{i}
	w, err := rules.NewWorld(machine.Config{})
	require.NoError(t, err)
	drv, err := machine.NewDriver(w, machine.DriverConfig{Performer: r.performer("driver")})
	require.NoError(t, err)
	r.runners["driver"] = driver{drv, w.Ref(0, 0)}
	b, err := looplab.New(rules, looplab.Config{Performer: r.performer("looplab")})
	require.NoError(t, err)
	r.runners["looplab"] = bridge{b, rules.At(0)}
	return r
}

// performer answers as the scene says. On the way it fires, past its context
// and from another goroutine, the events that are taken or refused in flight.
func (r *rig) performer(name string) machine.Performer {
	return machine.PerformerFunc(func(_ context.Context, c *machine.Command) machine.Result {
		s := r.now[name]
		require.Equal(r, len(s.issue.Args), c.N)
		for i, a := range s.issue.Args {
			require.Equal(r, r.n.Word(a), c.Args[i], "%s: argument of %s", name, s.issue.Call)
		}
		for i := range s.beside {
			gone := make(chan string, 1)
			go func() {
				defer func() {
					if p := recover(); p != nil {
						gone <- fmt.Sprint(p)
					}
					close(gone)
				}()
				gone <- r.play(name, &s.beside[i])
			}()
			require.Empty(r, <-gone, "%s beside a command", name)
		}
		if s.result.Outcome == machine.Panicked {
			panic("as the scene says")
		}
		return s.result
	})
}

func (r *rig) values(ev machine.EventID, args []uint64) (out []naive.Value) {
	for i, ty := range r.m.EventArgs(ev) {
		out = append(out, r.n.FromWord(ty, args[i]))
	}
	return out
}

func (r *rig) words() (out []uint64) {
	for _, f := range r.m.Definition().Facts {
		out = append(out, r.n.Word(r.n.Fact(r.m.Name(), 0, f.Name)))
	}
	return out
}

// draw lets the reference play a scene. It returns nil if the event must wait.
func (r *rig) draw(w *machine.World, beside bool) *scene {
	s := &scene{ev: machine.EventID(rapid.IntRange(0, r.m.NumEvents()-1).Draw(r.T, "event"))}
	s.args = machinetest.Args(r.T, w, r.m, s.ev)
	s.issue = r.n.Issue(r.n.At(r.m.Name(), 0), r.m.EventName(s.ev), r.values(s.ev, s.args)...)
	r.seen[s.issue.Status.String()]++
	switch {
	case s.issue.Status == machine.Deferred:
		return nil
	case beside && s.issue.Refusal == machine.BadArgument:
		return nil // an instance that takes nothing beside a command looks at it later
	case s.issue.Status != machine.InFlight:
		if beside {
			r.seen["beside a command: "+s.issue.Status.String()]++
		}
		return s
	}
	for range rapid.IntRange(0, 2).Draw(r.T, "events beside the command") {
		if b := r.draw(w, true); b != nil {
			s.beside = append(s.beside, *b)
		}
	}
	s.result = machinetest.Result(r.T)
	if s.result.Outcome == machine.Panicked {
		s.result = machine.Result{Outcome: machine.Panicked}
	}
	s.settle = r.n.Settle(r.n.At(r.m.Name(), 0), s.result)
	r.seen["settled: "+s.settle.Status.String()]++
	return s
}

// play plays a scene in one way, and says what is not as the reference has it.
func (r *rig) play(name string, s *scene) string {
	x := r.runners[name]
	if can, known := x.can(s.ev, s.args); known && can != (s.issue.Status == machine.Accepted || s.issue.Status == machine.InFlight) {
		return fmt.Sprintf("can: %v", can)
	}
	if s.issue.Status == machine.InFlight {
		r.now[name] = s
	}
	reply, err := x.fire(context.Background(), s.ev, s.args)
	got := r.account(reply, err)
	if want := r.want(s); got != want {
		return fmt.Sprintf("got  %s\nwant %s\n%v", got, want, err)
	}
	return ""
}

// want is the account that a scene asks for; account is that of a Fire.
func (r *rig) want(s *scene) string {
	n := s.issue
	if n.Status == machine.InFlight {
		n = s.settle
	}
	switch n.Status {
	case machine.Accepted:
		ret := uint64(0)
		if n.Return.V != nil {
			ret = r.n.Word(n.Return)
		}
		return fmt.Sprintf("%s %s code %d value %d failed %q panicked %v", n.Row, n.State, n.Code, ret, n.Reason, n.Reason != "" && s.result.Outcome == machine.Panicked && s.issue.Status == machine.InFlight)
	case machine.Hole:
		return "hole: " + n.Refusal.String()
	}
	var said []string
	for _, id := range n.Said {
		for _, row := range r.m.Definition().Rows {
			if row.ID == id {
				said = append(said, row.Guard)
			}
		}
	}
	return fmt.Sprintf("refused %s %s %q %q", n.State, n.Refusal, n.Reason, said)
}

func (r *rig) account(reply machine.Reply, err error) string {
	switch e := err.(type) {
	case *machine.RefusalError:
		return fmt.Sprintf("refused %s %s %q %q", r.m.StateName(e.State), e.Kind, e.Reason, e.Guards())
	case *machine.HoleError:
		return "hole: " + e.Refusal.Kind.String()
	case *machine.FailureError:
		return fmt.Sprintf("%s %s code %d value %d failed %q panicked %v", r.m.RowID(reply.Row), r.m.StateName(e.State), e.Code, reply.Value, e.Reason, e.Panic != nil)
	case nil:
		return fmt.Sprintf("%s %s code %d value %d failed %q panicked false", r.m.RowID(reply.Row), r.m.StateName(reply.State), reply.Code, reply.Value, "")
	}
	return err.Error()
}

// An instance, a driver, looplab's FSM and the reference, given the same
// definition, events and answers, come to the same states, facts, refusals and
// codes at every step.
func TestAllFourAgree(t *testing.T) {
	seen := map[string]int{}
	property := func(t *rapid.T) {
		d := machinetest.Definition(t)
		r := newRig(t, d, seen)
		w, err := machine.MustCompile(d).NewWorld(machine.Config{}) // for values to fit
		require.NoError(t, err)
		for range 30 {
			s := r.draw(w, false)
			if s == nil {
				continue
			}
			for name := range r.runners {
				require.Empty(t, r.play(name, s), name)
			}
			if s.settle.Status == machine.Hole {
				return // nobody can go on from there
			}
			for name, x := range r.runners {
				require.Equal(t, r.n.State(d.Name, 0), x.state(), name)
				require.Equal(t, r.words(), x.facts(), name)
			}
		}
	}
	what := []string{
		"accepted", "in flight", "refused", "deferred", "settled: accepted", "settled: hole in the rules",
		"beside a command: accepted", "beside a command: refused",
	}
	for range 20 { // until each has been seen
		rapid.Check(t, property)
		what = slices.DeleteFunc(what, func(w string) bool { return seen[w] > 0 })
		if len(what) == 0 {
			return
		}
	}
	t.Errorf("never seen: %q; seen: %v", what, seen)
}
