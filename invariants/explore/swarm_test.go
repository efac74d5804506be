package explore

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/model"
)

// What is drawn for a walk is the same on every machine and in every version.
func TestDrawnForGood(t *testing.T) {
	for walk, want := range []string{
		"runs=1 slots=4 spare=3 polls=10 recoveries=1 tokens=2 faults=6 submit borrowed records kinds=refuse,fail-before,fail-after,fail-accepted,kernel-fatal,kernel-hang,notice-lost calls=RecordEvent,WaitEvent",
		"runs=26 spare=1 polls=3 expiries=1 recoveries=3 tokens=2 faults=3 submit async records strangers kinds=fail-before,fail-after,fail-accepted,panic-before,panic-after,kernel-hang,notice-lost calls=RecordEvent,Alloc",
		"runs=24 threads=2 spare=9 polls=1 recoveries=1 tokens=2 submit borrowed records",
	} {
		r := rand.New(rand.NewPCG(1, uint64(walk)))
		c := drawConfig(r)
		require.Equal(t, want, c.String())
	}
}

// Everything that may be drawn is drawn now and then, and is possible.
func TestDrawnBounds(t *testing.T) {
	most := model.Config{}
	var some model.Config
	for walk := range uint64(3000) {
		c := drawConfig(rand.New(rand.NewPCG(2, walk)))
		parsed, err := model.ParseConfig(c.String())
		require.NoError(t, err, c.String())
		require.Equal(t, c.String(), parsed.String())
		most.Runs, most.Slots, most.Depth = max(most.Runs, c.Runs), max(most.Slots, c.Slots), max(most.Depth, c.Depth)
		most.Threads, most.Spare, most.Polls = max(most.Threads, c.Threads), max(most.Spare, c.Spare), max(most.Polls, c.Polls)
		most.Expiries, most.Recoveries, most.Tokens = max(most.Expiries, c.Expiries), max(most.Recoveries, c.Recoveries), max(most.Tokens, c.Tokens)
		most.Budget = max(most.Budget, c.Budget)
		some.Submit, some.Caller, some.Async = some.Submit || c.Submit, some.Caller || c.Caller, some.Async || c.Async
		some.Borrowed, some.Records = some.Borrowed || c.Borrowed, some.Records || c.Records
		some.Opening, some.Close, some.Quarantine = some.Opening || c.Opening, some.Close || c.Close, some.Quarantine || c.Quarantine
		some.Detach, some.Strangers = some.Detach || c.Detach, some.Strangers || c.Strangers
		some.Faults, some.FaultOps = some.Faults|c.Faults, some.FaultOps|c.FaultOps
	}
	require.Equal(t, "runs=30 slots=4 depth=4 threads=3 spare=12 polls=20 expiries=4 recoveries=5 tokens=3 faults=8 kinds=", most.String())
	require.Equal(t, model.EveryFault, some.Faults)
	require.True(t, some.Submit && some.Caller && some.Async && some.Borrowed && some.Records && some.Opening && some.Close && some.Quarantine && some.Detach && some.Strangers)
}

// What weighs nothing is only done if there is nothing else; the rest by weight.
func TestPick(t *testing.T) {
	w := walker{rand: rand.New(rand.NewPCG(1, 1)), left: []candidate{{weight: 0}, {weight: 3}, {weight: 1}}}
	var count [3]int
	for range 4000 {
		count[w.pick()]++
	}
	require.Zero(t, count[0])
	require.InDelta(t, 3000, count[1], 150)
	w.left = []candidate{{}, {}}
	count = [3]int{}
	for range 1000 {
		count[w.pick()]++
	}
	require.InDelta(t, 500, count[0], 100)
}
