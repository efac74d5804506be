package states

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

func newLatch(t *testing.T) *ModeLatch {
	t.Helper()
	l, err := NewModeLatch()
	require.NoError(t, err)
	return l
}

func latchState(t *testing.T, l *ModeLatch) LatchState {
	t.Helper()
	s, err := l.State()
	require.NoError(t, err)
	return s
}

func TestUnclaimedIsNotProgram(t *testing.T) {
	l := newLatch(t)
	require.Equal(t, LatchState{}, latchState(t, l))
	require.NotEqual(t, Program, latchState(t, l).Mode)
	for _, err := range []error{l.Begin(), l.Succeed(), l.Fail(), l.Finalise(true)} {
		require.ErrorIs(t, err, ErrModeUnclaimed)
	}
	require.ErrorIs(t, l.Claim(0), machine.ErrBadArgument)
	require.ErrorIs(t, l.Claim(3), machine.ErrBadArgument)
	require.Equal(t, "unclaimed", Mode(0).String())
}

func TestClaimIsUndoneByNothing(t *testing.T) {
	for mode, other := range map[Mode]Mode{Program: Kernel, Kernel: Program} {
		l := newLatch(t)
		claimed := func() {
			t.Helper()
			require.Equal(t, mode, latchState(t, l).Mode)
			require.ErrorIs(t, l.Claim(other), ErrModeLatched)
			require.NoError(t, l.Claim(mode), "claiming what is claimed confirms it")
		}
		require.NoError(t, l.Claim(mode))
		claimed()
		require.NoError(t, l.Begin())
		claimed()
		require.NoError(t, l.Fail())
		claimed()
		require.NoError(t, l.Begin(), "a failed initialisation may be tried again, in the same mode")
		require.NoError(t, l.Succeed())
		claimed()
		require.NoError(t, l.Finalise(true))
		claimed()
	}
}

func TestModePhaseAndRetirementAreThreeFacts(t *testing.T) {
	l := newLatch(t)
	require.NoError(t, l.Claim(Program))
	require.Equal(t, LatchState{Mode: Program}, latchState(t, l), "a claim begins nothing")
	require.ErrorIs(t, l.Succeed(), ErrPhase)
	require.ErrorIs(t, l.Fail(), ErrPhase)
	require.ErrorIs(t, l.Finalise(true), ErrPhase)
	require.NoError(t, l.Begin())
	require.ErrorIs(t, l.Begin(), ErrPhase)
	require.ErrorIs(t, l.Finalise(true), ErrPhase)
	require.NoError(t, l.Succeed())
	require.Equal(t, LatchState{Mode: Program, Phase: Initialised}, latchState(t, l))
	require.ErrorIs(t, l.Fail(), ErrPhase)
	require.NoError(t, l.Finalise(false))
	require.Equal(t, LatchState{Mode: Program, Phase: Finalised}, latchState(t, l), "finalised is not retired")
}

func TestOnlyAProvenProgramBeginsAgain(t *testing.T) {
	for _, c := range []struct {
		mode  Mode
		proof bool
		again error
	}{
		{Program, true, nil},
		{Program, false, ErrPhase},
		{Kernel, true, ErrPhase},
		{Kernel, false, ErrPhase},
	} {
		l := newLatch(t)
		require.NoError(t, l.Claim(c.mode))
		require.NoError(t, l.Begin())
		require.NoError(t, l.Succeed())
		require.NoError(t, l.Finalise(c.proof))
		err := l.Begin()
		if c.again != nil {
			require.ErrorIs(t, err, c.again, "%v with proof %v", c.mode, c.proof)
			continue
		}
		require.NoError(t, err)
		require.False(t, latchState(t, l).Retired, "the proof is used up")
	}
}

func TestConcurrentClaimsAgree(t *testing.T) {
	l := newLatch(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = l.Claim(Program + Mode(i%2)) })
	}
	wg.Wait()
	won := latchState(t, l).Mode
	for i, err := range errs {
		if Program+Mode(i%2) == won {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrModeLatched)
		}
	}
}

// The latch of a lane is of its native handle, and what it remembers is
// refused to a foreign process before any lock (F55, F89).
func TestLatchOfALane(t *testing.T) {
	f, other := opened(t), opened(t)
	require.NoError(t, f.lane.Mode().Claim(Kernel))
	require.NoError(t, other.lane.Mode().Claim(Program), "another handle, another latch")
	require.Equal(t, Kernel, latchState(t, f.lane.Mode()).Mode)
	r, _ := f.launch()
	require.NoError(t, r.Wait(ctx), "runs go through shared machinery whatever the mode (F95)")
	f.process = 2
	f.lane.d.View(func(*machine.World) {
		_, err := f.lane.Mode().State()
		require.ErrorIs(t, err, ErrForeignProcess)
		require.ErrorIs(t, f.lane.Mode().Claim(Kernel), ErrForeignProcess)
	})
}
