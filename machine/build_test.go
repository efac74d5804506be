package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// Short forms for definitions in tests.

func states(names ...string) []machine.State {
	out := make([]machine.State, len(names))
	for i, n := range names {
		name, terminal := strings.CutSuffix(n, "!")
		out[i] = machine.State{Name: name, Terminal: terminal}
	}
	return out
}

// named reads "name:type" texts, for facts and arguments.
func named(texts ...string) []machine.Fact {
	out := make([]machine.Fact, len(texts))
	for i, t := range texts {
		n, ty, _ := strings.Cut(t, ":")
		out[i] = machine.Fact{Name: n, Type: ty}
	}
	return out
}

func event(name string, args ...string) machine.Event {
	return machine.Event{Name: name, Args: named(args...)}
}

// to is a row's only target.
func to(state string) []machine.Target { return []machine.Target{{To: state}} }

func do(updates string) []machine.Target { return []machine.Target{{Do: updates}} }

func compile(t testing.TB, defs ...*machine.Definition) *machine.Rules {
	t.Helper()
	r, err := machine.Compile(defs...)
	require.NoError(t, err)
	return r
}

func newWorld(t testing.TB, r *machine.Rules, c machine.Config) *machine.World {
	t.Helper()
	w, err := r.NewWorld(c)
	require.NoError(t, err)
	return w
}

// lane is a world with names instead of positions.
type lane struct {
	testing.TB
	*machine.World
}

func newLane(t testing.TB, c machine.Config, defs ...*machine.Definition) lane {
	t.Helper()
	return lane{t, newWorld(t, compile(t, defs...), c)}
}

func (l lane) m(name string) *machine.Machine {
	m := l.Rules().Machine(name)
	require.NotNil(l, m, name)
	return m
}

func (l lane) ref(name string, slot int) machine.Ref { return l.Ref(l.m(name).ID(), slot) }

func (l lane) issue(r machine.Ref, ev string, args ...uint64) machine.Step {
	l.Helper()
	return *l.Issue(r, l.Rules().At(r.Machine).MustEvent(ev), args...)
}

// takes issues an event that must be accepted.
func (l lane) takes(r machine.Ref, ev string, args ...uint64) machine.Step {
	l.Helper()
	s := l.issue(r, ev, args...)
	require.Contains(l, []machine.Status{machine.Accepted, machine.InFlight}, s.Status, "%v", l.RefusalError(&s))
	return s
}

// refuses issues an event that must be refused, and returns why.
func (l lane) refuses(r machine.Ref, ev string, args ...uint64) *machine.RefusalError {
	l.Helper()
	s := l.issue(r, ev, args...)
	require.Equal(l, machine.StepRefused, s.Status)
	return l.RefusalError(&s).(*machine.RefusalError)
}

func (l lane) can(r machine.Ref, ev string, args ...uint64) bool {
	return l.Can(r, l.Rules().At(r.Machine).MustEvent(ev), args...)
}

func (l lane) fact(r machine.Ref, name string) uint64 {
	l.Helper()
	v, ok := l.Fact(r, l.Rules().At(r.Machine).MustFact(name))
	require.True(l, ok)
	return v
}

// log collects records.
type log struct{ records []machine.Record }

func (l *log) Record(r *machine.Record) { l.records = append(l.records, *r) }
