package explore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
)

func TestWalkHolds(t *testing.T) {
	r, err := explore.Walk(t.Context(), explore.WalkOptions{Walks: 300, Seed: 1, KeepGoing: true})
	require.NoError(t, err)
	t.Logf("%d walks, %d moves, %d unchanged, longest %d, %v, %d rows, %d never", r.Walks, r.Moves, r.Unchanged, r.Longest, r.Elapsed, r.Rows, len(r.NeverTaken))
	t.Log(r.NeverTaken)
	for _, f := range r.Findings {
		t.Errorf("%v; %d; %s; %d acts", &f, f.Count, f.Config.String(), len(f.Acts))
	}
}

func TestShrinkX(t *testing.T) {
	r, err := explore.Walk(t.Context(), explore.WalkOptions{Walks: 3000, Seed: 1, KeepGoing: true})
	require.NoError(t, err)
	t.Logf("%d walks, %d moves, %d unchanged, longest %d, %v, %d rows, %d never", r.Walks, r.Moves, r.Unchanged, r.Longest, r.Elapsed, r.Rows, len(r.NeverTaken))
	for _, f := range r.Findings {
		at := time.Now()
		s, err := explore.Shrink(f, 0)
		require.NoError(t, err)
		t.Logf("%v; %d; %s; %d acts", &f, f.Count, f.Config.String(), len(f.Acts))
		t.Logf("%v; %s; %d moves; taken %d, gave up %v, in %v", &s.Finding, s.Config.String(), len(s.Moves), s.Taken, s.GaveUp, time.Since(at))
		for _, m := range s.Moves {
			t.Log("   ", m)
		}
	}
}
