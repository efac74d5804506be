package mutate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingIsFoundInTheRulesAsTheyAre: what a fault is found by holds without it.
func TestNothingIsFoundInTheRulesAsTheyAre(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Faults {
		if seen[f.In] {
			continue
		}
		seen[f.In] = true
		t.Run(f.In, func(t *testing.T) {
			t.Parallel()
			found, err := Fault{Name: "none", In: f.In}.Find(t.Context(), Ours(), 20_000)
			require.NoError(t, err)
			if found != nil {
				require.Fail(t, "the rules as they are are found fault with", "%v\n%s", &found.Finding, strings.Join(found.Texts, "\n"))
			}
		})
	}
}

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
