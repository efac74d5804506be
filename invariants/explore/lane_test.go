package explore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/model"
)

func TestLane(t *testing.T) {
	for _, text := range []string{
		"runs=2 slots=2 depth=2 submit caller",
		"runs=1 caller faults=1 spare=1 recoveries=1",
	} {
		c, err := model.ParseConfig(text)
		require.NoError(t, err)
		sys, err := Lane(c)
		require.NoError(t, err)
		r, err := Search(t.Context(), sys, Options{})
		require.NoError(t, err)
		t.Logf("%s: %d states, %d edges, depth %d, %v, %.1f B/state, %.0f states/s", text, r.States, r.Edges, r.Depth, r.Elapsed, r.BytesPerState(), float64(r.States)/r.Elapsed.Seconds())
		for _, f := range r.Findings {
			t.Errorf("%+v", f)
		}
	}
}
