package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What Occupant shows is what the slower look-ups say, and Same sees any word
// that an instance has.
func TestOccupantAndSame(t *testing.T) {
	rules, err := Compile(&Definition{
		Name: "cell", Pool: "cell",
		States: []State{{Name: "empty"}, {Name: "full"}},
		Facts:  []Fact{{Name: "n", Type: "int 9"}, {Name: "who", Type: "id who"}},
		Events: []Event{{Name: "fill"}, {Name: "ask"}},
		Rows: []Row{
			{ID: "fill", From: "empty|full", Event: "fill", Then: []Target{{To: "full", Do: "n++; who = fresh()"}}},
			{ID: "ask", From: "empty|full", Event: "ask", Command: "Ask()", Then: []Target{{}}},
		},
	})
	require.NoError(t, err)
	w, err := rules.NewWorld(Config{Pools: map[string]int{"cell": 2}})
	require.NoError(t, err)
	m := rules.Machine("cell")
	before := w.Clone()
	require.True(t, w.Same(before, m.ID()))
	require.Equal(t, Accepted, w.Issue(w.Ref(m.ID(), 1), m.MustEvent("fill")).Status)
	require.False(t, w.Same(before, m.ID()))

	for slot := range 2 {
		state, facts := w.Occupant(m.ID(), slot)
		want, _, _ := w.State(w.Ref(m.ID(), slot))
		require.Equal(t, want, state)
		require.Equal(t, w.AppendFacts(nil, w.Ref(m.ID(), slot)), facts)
	}

	before.CopyFrom(w)
	require.Equal(t, InFlight, w.Issue(w.Ref(m.ID(), 0), m.MustEvent("ask")).Status)
	require.False(t, w.Same(before, m.ID()), "a command in flight")
	state, _ := w.Occupant(m.ID(), 0)
	require.Equal(t, StateID(0), state)
	fresh, err := rules.NewWorld(Config{Pools: map[string]int{"cell": 2}})
	require.NoError(t, err)
	require.True(t, w.Fresh().Same(fresh, m.ID()))
	require.Equal(t, fresh.Fingerprint(nil), w.Fresh().Fingerprint(nil))
	require.Zero(t, w.Fresh().Seq())
	require.NotEqual(t, fresh.Fingerprint(nil), w.Fingerprint(nil), "the world itself is as it was")
	require.Panics(t, func() { w.Occupant(m.ID(), 2) })
	require.Zero(t, testing.AllocsPerRun(10, func() { w.Occupant(m.ID(), 1); w.Same(before, m.ID()) }))
}
