package machine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// A refusal names machine, instance, state, event, row, reason, each guard that
// said no and what the state accepts; the instance is untouched.
func TestRefusalSaysItAll(t *testing.T) {
	turnstile := &machine.Definition{
		Name: "turnstile", Pool: "gates", States: states("locked", "open", "gone!"),
		Events: []machine.Event{event("coin", "value:int 100"), event("pass"), event("end")},
		Facts:  named("jammed:bool", "coins:int 3", "by:id guest"),
		Rows: []machine.Row{
			{ID: "coin", From: "locked", Event: "coin", Guard: "!jammed && arg.value >= 50", Then: []machine.Target{{To: "open", Do: "coins++"}}},
			{ID: "coin-small", From: "locked", Event: "coin", Guard: "arg.value < 50 && coins == 3", Refuse: "full of change"},
			{ID: "coin-no", From: "locked", Event: "coin", Guard: "else", Refuse: "too little"},
			{ID: "pass", From: "open", Event: "pass", Then: to("locked")},
			{ID: "end", From: "locked|open", Event: "end", Then: to("gone")},
			{ID: "end-gone", From: "gone", Event: "end", Refuse: "gone already"},
		},
	}
	rec := &log{}
	l := newLane(t, machine.Config{Name: "hall", Pools: map[string]int{"gates": 3}, Recorder: rec}, turnstile)
	gate := l.ref("turnstile", 2)
	m := l.m("turnstile")
	before := l.Words()

	err := l.refuses(gate, "coin", 20)
	assert.Equal(t, gate, err.Ref)
	assert.Equal(t, "locked", m.StateName(err.State))
	assert.Equal(t, m.MustEvent("coin"), err.Event)
	assert.Equal(t, machine.ByRow, err.Kind)
	assert.Equal(t, machine.Reason("too little"), err.Reason)
	assert.Equal(t, "coin-no", err.Row())
	assert.Equal(t, []string{"!jammed && arg.value >= 50", "arg.value < 50 && coins == 3"}, err.Guards())
	assert.Equal(t, []string{"coin", "end"}, err.Accepts())
	assert.EqualError(t, err, `turnstile[2]: coin refused in state "locked" (row coin-no): too little; said no: !jammed && arg.value >= 50, arg.value < 50 && coins == 3; accepts coin, end`)
	assert.ErrorIs(t, err, machine.ErrRefused)
	assert.ErrorIs(t, err, machine.Reason("too little"))
	assert.NotErrorIs(t, err, machine.Reason("full of change"))
	assert.NotErrorIs(t, err, machine.ErrStale)
	assert.NotErrorIs(t, err, errors.New("too little"))
	assert.Equal(t, before, l.Words())

	err = l.refuses(gate, "pass")
	assert.Equal(t, machine.NoRow, err.Kind)
	assert.Empty(t, err.Row())
	assert.Empty(t, err.Guards())
	assert.EqualError(t, err, `turnstile[2]: pass refused in state "locked": no row takes it there; accepts coin, end`)

	for range 3 {
		l.takes(gate, "coin", 50)
		l.takes(gate, "pass")
	}
	err = l.refuses(gate, "coin", 20)
	assert.Equal(t, "coin-small", err.Row())
	assert.Equal(t, []string{"!jammed && arg.value >= 50"}, err.Guards(), "the row that refuses did not say no")
	err = l.refuses(gate, "coin", 99)
	assert.ErrorIs(t, err, machine.ErrOutOfRange)
	assert.EqualError(t, err, `turnstile[2]: coin refused in state "locked" (row coin): fact coins would leave its range; accepts coin, end`)
	err = l.refuses(gate, "coin", 101)
	assert.EqualError(t, err, `turnstile[2]: coin refused in state "locked": argument value is not of type int 100; accepts coin, end`)
	err = l.refuses(gate, "coin")
	assert.EqualError(t, err, `turnstile[2]: coin refused in state "locked": want 1 arguments; accepts coin, end`)

	l.takes(gate, "end")
	err = l.refuses(gate, "end")
	assert.EqualError(t, err, `turnstile[2]: end refused in state "gone" (row end-gone): gone already; accepts nothing`)
	require.Equal(t, machine.Accepted, l.Drop(gate).Status)
	err = l.refuses(gate, "end")
	assert.Equal(t, machine.StaleRef, err.Kind)
	assert.Empty(t, err.Accepts())
	assert.Empty(t, err.Guards())
	assert.EqualError(t, err, `turnstile[2]: end refused: stale reference: this occupancy has ended`)

	// Each refusal is on record, with what said no.
	var kinds []machine.RefusalKind
	for i, r := range rec.records {
		assert.EqualValues(t, i+1, r.Seq)
		if r.Kind == machine.Rejected {
			kinds = append(kinds, r.Refusal)
			assert.Equal(t, r.From, r.To)
		}
	}
	assert.Equal(t, []machine.RefusalKind{
		machine.ByRow, machine.NoRow, machine.ByRow, machine.OutOfRange, machine.BadArgument, machine.BadArgument, machine.ByRow, machine.StaleRef,
	}, kinds)
	assert.Equal(t, machine.Reason("too little"), l.Rules().ReasonAt(rec.records[0].Reason))
	assert.EqualValues(t, 20, rec.records[0].Args[0])
}

func TestRefusalOfNothing(t *testing.T) {
	l := newLane(t, machine.Config{}, door())
	for _, c := range []struct {
		ref  machine.Ref
		ev   machine.EventID
		want string
	}{
		{machine.Ref{Machine: 7}, 0, "refused: no machine 7"},
		{machine.Ref{Slot: 3}, 0, "door: open refused: the reference names nothing"},
		{machine.Ref{}, 99, `door: (no event) refused in state "closed": no such event; accepts open`},
	} {
		err := l.RefusalError(l.Issue(c.ref, c.ev))
		assert.EqualError(t, err, c.want)
		assert.ErrorIs(t, err, machine.ErrBadArgument)
	}
	s := l.Issue(l.ref("door", 0), 0)
	assert.NoError(t, l.RefusalError(s), "it was accepted")

	for _, s := range []*machine.Step{
		l.Settle(machine.Ref{Machine: 7}, machine.Result{}),
		l.Settle(machine.Ref{Slot: 3}, machine.Result{}),
		l.Settle(machine.Ref{Gen: 3}, machine.Result{}),
		l.Settle(l.ref("door", 0), machine.Result{Outcome: 99}),
	} {
		assert.Equal(t, machine.StepRefused, s.Status)
		assert.NotEmpty(t, l.RefusalError(s).Error())
	}
	require.Equal(t, machine.Accepted, l.Settle(l.ref("door", 0), machine.Result{}).Status, "none of them was its answer")
	again := l.Settle(l.ref("door", 0), machine.Result{})
	assert.ErrorContains(t, l.RefusalError(again), "it has no command in flight")
}

func TestRefusalOfOneTakenAlong(t *testing.T) {
	// Of a stale one: the fence's holder is gone.
	l := newLane(t, machine.Config{Pools: map[string]int{"p": 1, "q": 2}}, pairWithEnds()...)
	u, large := l.ref("user", 0), l.ref("large", 1)
	l.takes(u, "use", large.Pack())
	l.takes(large, "end")
	err := l.refuses(u, "look")
	assert.EqualError(t, err, `user: look refused in state "on" (row look-else): large[1], to be taken along, refuses touch in state "over": no row takes it there; said no: view.c; accepts use, look`)
	l.Drop(large)
	err = l.refuses(u, "look")
	assert.ErrorIs(t, err, machine.ErrStale)
	assert.EqualError(t, err, `user: look refused in state "on" (row look-else): large[1], to be taken along, refuses touch: stale reference: that occupancy has ended; said no: view.c; accepts use, look`)
	l.takes(u, "use", 0)
	err = l.refuses(u, "look")
	assert.Equal(t, machine.BadRef, err.Kind)
	assert.EqualError(t, err, `user: look refused in state "on" (row look-else): a reference that the step needs names nothing; said no: view.c; accepts use, look`)
}

func pairWithEnds() []*machine.Definition {
	ds := pair()
	ds[1].States = states("on", "over!")
	ds[1].Events = append(ds[1].Events, event("end"))
	ds[1].Rows = append(ds[1].Rows, machine.Row{ID: "end", From: "on", Event: "end", Then: to("over")})
	return ds
}

func TestDropKeepsWhatIsKept(t *testing.T) {
	d := &machine.Definition{
		Name: "m", States: states("on", "kept!", "gone!"), Events: []machine.Event{event("keep"), event("end")},
		Rows: []machine.Row{{ID: "keep", From: "on", Event: "keep", Then: to("kept")}, {ID: "end", From: "on", Event: "end", Then: to("gone")}},
	}
	d.States[1].Kept = true
	l := newLane(t, machine.Config{}, d)
	l.takes(l.ref("m", 0), "keep")
	s := l.Drop(l.ref("m", 0))
	assert.ErrorIs(t, l.RefusalError(s), machine.ErrNotTerminal)
	assert.Equal(t, "kept", l.StateName(l.ref("m", 0)))
}

func TestNamesOfKinds(t *testing.T) {
	for k := range machine.NumRefusalKinds {
		if name := machine.RefusalKind(k).String(); k > 0 {
			assert.NotEmpty(t, name)
			assert.NotEqual(t, "unknown refusal", name)
		}
	}
	assert.Equal(t, "unknown refusal", machine.RefusalKind(200).String())
	assert.Equal(t, "unknown", machine.RecordKind(200).String())
	assert.Equal(t, "unknown", machine.Via(200).String())
	assert.Equal(t, "outcome(200)", machine.Outcome(200).String())
	for o := range machine.NumOutcomes {
		back, err := machine.ParseOutcome(machine.Outcome(o).String())
		require.NoError(t, err)
		assert.EqualValues(t, o, back)
	}
	_, err := machine.ParseOutcome("okay")
	assert.Error(t, err)
}
