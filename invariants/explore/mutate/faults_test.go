package mutate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeededFaults: each is found by the exploration that it names.
func TestSeededFaults(t *testing.T) {
	for _, f := range Faults {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			found, err := f.Find(t.Context(), Ours(), 20_000)
			require.NoError(t, err)
			require.NotNil(t, found, "nothing is found")
			t.Logf("%v, after %d moves", &found.Finding, len(found.Moves))
		})
	}
}
