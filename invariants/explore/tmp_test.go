package explore

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/model"
)

func TestTmp(t *testing.T) {
	for _, m := range Models {
		if n := os.Getenv("ONLY"); n != "" && n != m.Name {
			continue
		}
		c, err := model.ParseConfig(m.Bounds)
		require.NoError(t, err)
		sys, err := Lane(c)
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
		r, err := Search(ctx, sys, Options{})
		stop()
		require.NoError(t, err)
		t.Logf("%s: %d states, %d edges, depth %d, %v, %.1f B/state, %.0f states/s %v never %d", m.Name, r.States, r.Edges, r.Depth, r.Elapsed, r.BytesPerState(), float64(r.States)/r.Elapsed.Seconds(), r.Stopped, len(r.NeverFired))
		for _, f := range r.Findings {
			t.Errorf("%v %d %v", f.Finding, len(f.Texts), f.Texts)
		}
	}
}
