package states

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Two goroutines bring a run each to a lane with two slots, and look for a
// free one at the same time: both find the first. The one that comes second
// goes on to the other slot.
func TestTwoFindASlotEach(t *testing.T) {
	for name, bring := range map[string]func(*Lane) (*Run, error){
		"prepare": func(l *Lane) (*Run, error) { return l.Prepare(ctx, work) },
		"submit":  func(l *Lane) (*Run, error) { return l.Submit(ctx, work) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &asked{}
				f := unopened(t, Config{Backend: b, Slots: 2, Depth: 2})
				b.Backend = f.dev
				require.NoError(t, f.lane.Open(ctx))
				var second *Run
				done := make(chan error, 1)
				b.during = func() {
					go func() {
						var err error
						second, err = bring(f.lane)
						done <- err
					}()
					synctest.Wait()
				}
				first, err := bring(f.lane)
				require.NoError(t, err)
				require.NoError(t, <-done)
				require.Equal(t, 0, first.Identity().Slot)
				require.Equal(t, 1, second.Identity().Slot)
				_, err = bring(f.lane)
				require.ErrorIs(t, err, ErrSlotOccupied)
			})
		})
	}
}

// A handle is safe for concurrent use because nothing in it changes: not by the
// retry that makes its run ready either.
func TestRetryChangesNoHandle(t *testing.T) {
	f := opened(t, "Alloc#3 fail-before 207001")
	r, err := f.lane.Prepare(ctx, work)
	require.ErrorIs(t, err, ErrResourceWait)
	before := *r
	require.NoError(t, r.Retry(ctx))
	require.True(t, before == *r, "the handle changed")
	_, err = r.Launch(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
}
