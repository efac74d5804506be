package naive_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/naive"
)

func till() *machine.Definition {
	return &machine.Definition{
		Name: "till", States: []machine.State{{Name: "shut"}, {Name: "open"}},
		Events: []machine.Event{{Name: "pay", Args: []machine.Fact{{Name: "coin", Type: "int 50"}}}, {Name: "shut"}},
		Facts:  []machine.Fact{{Name: "coins", Type: "int 2"}, {Name: "sale", Type: "id sale"}},
		Rows: []machine.Row{
			{ID: "pay", From: "shut", Event: "pay", Guard: "arg.coin >= 10", Before: "sale = fresh()", Command: "Ring(arg.coin, sale)", Then: []machine.Target{
				{On: "ok", To: "open", Do: "coins++", Return: "coins"}, {Do: "sale = none", Error: "no sale"},
			}},
			{ID: "pay-small", From: "shut", Event: "pay", Guard: "else", Refuse: "too small"},
			{ID: "shut", From: "open", Event: "shut", Then: []machine.Target{{To: "shut", Emit: []string{"self.pay(10)"}}}},
		},
	}
}

// A run worked out by hand, so that the reference does not lean on the engine
// that it is the reference for.
func TestByHand(t *testing.T) {
	w, err := naive.New(naive.Config{Queue: 1}, till())
	require.NoError(t, err)
	r := w.At("till", 0)
	coin := func(n uint64) naive.Value {
		return naive.Value{Type: machine.Type{Kind: machine.Int, Max: 50}, V: n}
	}
	s := w.Issue(r, "pay", coin(5))
	assert.Equal(t, machine.StepRefused, s.Status)
	assert.Equal(t, machine.Reason("too small"), s.Reason)
	assert.Equal(t, []string{"pay"}, s.Said)
	assert.Equal(t, machine.BadArgument, w.Issue(r, "pay", coin(51)).Refusal)
	assert.Equal(t, machine.BadArgument, w.Issue(r, "pay").Refusal)
	assert.Equal(t, machine.NoRow, w.Issue(r, "shut").Refusal)

	s = w.Issue(r, "pay", coin(10))
	assert.Equal(t, machine.InFlight, s.Status)
	assert.Equal(t, "Ring", s.Call)
	assert.Equal(t, []any{uint64(10), naive.ID(1)}, []any{s.Args[0].V, s.Args[1].V})
	assert.Equal(t, "shut▸pay", w.State("till", 0))
	assert.Equal(t, machine.Deferred, w.Issue(r, "pay", coin(10)).Status)
	s = w.Settle(r, machine.Result{Outcome: machine.TimedOut})
	assert.Equal(t, machine.Reason("no sale"), s.Reason)
	assert.Equal(t, naive.ID(0), w.Fact("till", 0, "sale").V)

	for n := range uint64(2) {
		w.Issue(r, "pay", coin(10))
		s = w.Settle(r, machine.Result{})
		assert.Equal(t, n+1, s.Return.V)
		assert.Equal(t, machine.Accepted, w.Issue(r, "shut").Status)
		if n == 0 {
			_, ok := w.Next(r)
			require.True(t, ok)
			w.Settle(r, machine.Result{Outcome: machine.Refused})
		}
	}
	assert.Equal(t, naive.ID(4), w.Fact("till", 0, "sale").V)
	_, ok := w.Next(r)
	require.True(t, ok)
	s = w.Settle(r, machine.Result{})
	assert.Equal(t, machine.Hole, s.Status, "coins would be 3")
	assert.Equal(t, machine.OutOfRange, s.Refusal)
	assert.Equal(t, "shut▸pay", w.State("till", 0))
	assert.False(t, w.HasNext(r))
}

func TestOpaqueDefinitionsAreRefused(t *testing.T) {
	d := till()
	d.Rows[0].GuardFunc = func(machine.Facts) bool { return true }
	_, err := naive.New(naive.Config{}, d)
	assert.EqualError(t, err, "till/pay is opaque")
}
