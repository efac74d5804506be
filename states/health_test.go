package states

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// notify passes the rules a notice, as the lane does.
func (f *fixture) notify(device, stream int) {
	f.Helper()
	require.NoError(f, f.fire("health", 0, "notice", uint64(device), uint64(stream)))
}

func (f *fixture) health() Health {
	f.Helper()
	h, err := f.lane.Health()
	require.NoError(f, err)
	return h
}

// A notice matches if it names this device and a stream that a run's boundaries
// were recorded on; nothing else refuses anything (F108–F110).
func TestNoticesAreAttributed(t *testing.T) {
	f := opened(t)
	ours := int(f.lane.dev.slots[0].coreID)
	f.notify(0, ours)
	require.Equal(t, Health{Unattributed: 1}, f.health(), "no boundary was recorded yet")
	r, _ := f.launch()
	f.notify(1, ours)
	f.notify(0, 999)
	require.Equal(t, Health{Unattributed: 3}, f.health())
	require.NoError(t, f.fire("health", 0, "lose"))
	require.NoError(t, f.fire("health", 0, "drop"))
	require.NoError(t, f.fire("health", 0, "skip"))
	require.Equal(t, Health{Unattributed: 3, Lost: 1, Dropped: 1, Skipped: 1}, f.health())
	f.notify(0, ours)
	require.Equal(t, Health{Suspect: true, Matched: 1, Unattributed: 3, Lost: 1, Dropped: 1, Skipped: 1}, f.health())

	// It refuses future admission, and does nothing else: the run keeps the
	// outcome that its own channels give it (F108, F114).
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	_, err = f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed, "a success does not make the device healthy")
	f.clean()
}

// Admission is asked at prepare and again at launch (F108).
func TestNoticeBetweenPrepareAndLaunch(t *testing.T) {
	f := warm(t)
	r := f.prepare()
	f.notify(0, int(f.lane.dev.slots[0].cpuID))
	_, err := r.Launch(ctx)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.Equal(t, "prepared", f.state("run", 0))
	require.NoError(t, r.Finalize(ctx))
}

// Admission returns only with a reset that confirms; that retires the
// generation, and a notice delivered after it counts to the new one (F112, F113, F115).
func TestOnlyAConfirmedResetRetiresAGeneration(t *testing.T) {
	f := warm(t)
	ours := int(f.lane.dev.slots[0].coreID)
	f.notify(0, ours)
	f.strike("Reset#1 unconfirmed")
	require.ErrorIs(t, f.lane.Recover(ctx), ErrDeviceUnusable)
	require.True(t, f.health().Suspect)
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.NoError(t, f.lane.Recover(ctx))
	require.False(t, f.health().Suspect)
	f.notify(0, ours)
	require.False(t, f.health().Suspect, "no boundary of the new generation was recorded on it")
	f.whole()
	f.notify(0, ours)
	require.True(t, f.health().Suspect, "late, but counted to the generation it arrives in")
}

// Stream identities are finite: what could not be kept is undecided, rather
// than not one's own (F116).
func TestStreamIdentitiesAreFinite(t *testing.T) {
	f := opened(t)
	n := f.lane.config.Pools()["watched"]
	for i := range n {
		require.NoError(t, f.fire("health", 0, "watch", uint64(1000+i)))
		require.NoError(t, f.fire("health", 0, "watch", uint64(1000+i)), "known already")
	}
	f.notify(0, 5)
	require.Equal(t, Health{Unattributed: 1}, f.health())
	require.NoError(t, f.fire("health", 0, "watch", 5))
	f.notify(0, 5)
	require.Equal(t, Health{Unattributed: 1, Undecided: 1}, f.health())
	f.notify(0, 1000)
	require.True(t, f.health().Suspect)
}

// The device's own notice of a fault reaches the rules where admission is asked.
func TestDeviceNoticesAreHeard(t *testing.T) {
	f := opened(t, "SubmitAICPU#1 kernel-fatal")
	r, _ := f.launch()
	require.ErrorIs(t, r.Wait(ctx), ErrRunFailed)
	require.NoError(t, r.Finalize(ctx))
	require.False(t, f.health().Suspect, "nobody asked yet")
	require.NoError(t, f.lane.Hear(ctx))
	require.True(t, f.health().Suspect)
	_, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrAdmissionClosed)
	require.NoError(t, f.lane.Recover(ctx))
	f.whole()
}

// Look-ups of the registry and of health make nothing.
func TestLookUpsAllocateNothing(t *testing.T) {
	f := opened(t)
	m := f.lane.at.prepare
	ref := f.ref("prepare", 0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !f.lane.d.Can(ref, m.MustEvent("start"), 1, 1, 0, 0) {
			t.Error("admission")
		}
	}))
}
