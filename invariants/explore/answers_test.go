package explore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

// door is pulled open by a call that may fail, twice at most.
func door() *machine.Rules {
	return machine.MustCompile(&machine.Definition{
		Name:   "door",
		States: []machine.State{{Name: "shut"}, {Name: "open"}, {Name: "stuck", Terminal: true}},
		Events: []machine.Event{{Name: "pull"}, {Name: "creak"}},
		Facts:  []machine.Fact{{Name: "creaks", Type: "int 1"}},
		Rows: []machine.Row{
			{ID: "pull", From: "shut", Event: "pull", Command: "Pull()", Then: []machine.Target{
				{On: "ok", To: "open", Emit: []string{"self.creak()"}}, {On: "panicked", To: "stuck"}, {},
			}},
			{ID: "pull-open", From: "open|stuck", Event: "pull", Refuse: "it is open"},
			{ID: "creak", From: "open", Event: "creak", Guard: "creaks == 0", Then: []machine.Target{{Do: "creaks++"}}},
			{ID: "creak-again", From: "open", Event: "creak", Guard: "else", Refuse: "once only"},
		},
	})
}

func doorSystem(t *testing.T, rules *machine.Rules, bad int, host func(*machine.World) []explore.Call) explore.System {
	t.Helper()
	sys, err := explore.Answers(explore.AnswersConfig{Name: "door", Rules: rules, Bad: bad, Host: host})
	require.NoError(t, err)
	return sys
}

func pull(w *machine.World) []explore.Call {
	if w.StateName(w.Ref(0, 0)) != "shut" {
		return nil
	}
	return []explore.Call{{Machine: "door", Event: "pull"}}
}

// TestAnswers: counted by hand. All going well there are four worlds: shut,
// pulling, open with a creak due, and open. With one bad answer a pull may lead
// back to shut, and on as before with no bad answer left, or to stuck: five more.
func TestAnswers(t *testing.T) {
	for bad, want := range []uint64{4, 4 + 5} {
		r, err := explore.Search(t.Context(), doorSystem(t, door(), bad, pull), explore.Options{})
		require.NoError(t, err)
		require.Empty(t, r.Findings)
		require.Equal(t, want, r.States, "%d bad answers", bad)
	}
}

// TestAnswersFindWhatIsRefused: an event that the rules send and nobody takes is
// a hole in them, and the way to it is told.
func TestAnswersFindWhatIsRefused(t *testing.T) {
	twice := func(w *machine.World) []explore.Call {
		return append(pull(w), explore.Call{Machine: "door", Event: "creak"})
	}
	r, err := explore.Search(t.Context(), doorSystem(t, door(), 0, twice), explore.Options{})
	require.NoError(t, err)
	require.Len(t, r.Findings, 1)
	require.Equal(t, "hole", r.Findings[0].Finding.Kind)
	require.Contains(t, r.Findings[0].Finding.Detail, "once only")
	require.Equal(t, []string{"door[0] pull[]", "shut▸pull of door: ok 0", "door[0] creak[]", "next of door"}, r.Findings[0].Texts)
}

// TestAnswersStateAsBytes: what a state writes is read back, and taking a move
// there does the same.
func TestAnswersStateAsBytes(t *testing.T) {
	sys := doorSystem(t, door(), 1, pull)
	a, b := sys.New(), sys.New()
	for range 3 {
		moves := a.Moves(nil)
		require.NotEmpty(t, moves)
		require.NoError(t, b.SetBinary(a.AppendBinary(nil)))
		require.Equal(t, a.Fingerprint(), b.Fingerprint())
		require.Equal(t, moves, b.Moves(nil))
		m := moves[len(moves)-1]
		require.Nil(t, a.Take(m))
		require.Nil(t, b.Take(m))
		require.Equal(t, a.AppendBinary(nil), b.AppendBinary(nil))
	}
	require.Error(t, b.SetBinary(nil))
}

func TestAnswersThatDoNotBegin(t *testing.T) {
	_, err := explore.Answers(explore.AnswersConfig{Rules: door(), Begin: func(*machine.World) error { return machine.Reason("not today") }})
	require.ErrorIs(t, err, machine.Reason("not today"))
}
