package invariants_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// wrongWaiter gives a token back on the strength of the other stream's proof,
// while the wait is still behind a long kernel, and records the boundary again.
func wrongWaiter(t *testing.T, rules *machine.Rules, rec machine.Recorder) *sim.Device {
	ctx := context.Background()
	dev, err := sim.New(sim.Config{Kernels: []sim.KernelSpec{
		{Name: "core", Class: backend.AICore, Duration: time.Microsecond},
		{Name: "cpu", Class: backend.AICPU, Duration: time.Microsecond},
		{Name: "long", Class: backend.AICore, Duration: time.Hour},
	}})
	require.NoError(t, err)
	lane, err := states.NewLane(states.Config{Backend: dev, Rules: rules, Slots: 2, Depth: 2, Incarnation: 1, Timeout: time.Second, Recorder: rec})
	require.NoError(t, err)
	require.NoError(t, lane.Open(ctx))
	begin := func(core backend.Kernel) (*states.Run, states.Receipt) {
		r, err := lane.Prepare(ctx, states.Work{Core: core, CPU: 2})
		require.NoError(t, err)
		receipt, err := r.Launch(ctx)
		require.NoError(t, err)
		return r, receipt
	}
	short, receipt := begin(1)
	long, _ := begin(3)
	token, err := lane.Reserve(ctx, receipt, states.CoreDone, long, states.CoreStream)
	require.NoError(t, err)
	require.NoError(t, token.Queue(ctx))
	require.NoError(t, short.Wait(ctx))
	if err := token.Release(ctx, states.CPUStream); err != nil {
		require.ErrorIs(t, err, states.ErrWrongWaiter)
		return dev
	}
	require.NoError(t, short.Finalize(ctx))
	begin(1)
	return dev
}

// changed compiles a lane's rules with a change.
func changed(t *testing.T, change string) *machine.Rules {
	rules, err := machine.Compile(changedDefs(t, states.Definitions(), change)...)
	require.NoError(t, err)
	return rules
}

// The simulated device sees what the changed rule does to it.
func TestDeviceInvariantCatches(t *testing.T) {
	some := false
	for _, in := range invariants.All() {
		if in.Needs != invariants.NeedsDevice {
			continue
		}
		some = true
		require.Empty(t, invariants.CheckDevice(invariants.Simulated{Device: wrongWaiter(t, states.Rules(), nil)}))
		found := invariants.CheckDevice(invariants.Simulated{Device: wrongWaiter(t, changed(t, in.Catches), nil)})
		require.Len(t, found, 1)
		require.Equal(t, in.ID, found[0].Invariant.ID)
	}
	require.True(t, some)
}
