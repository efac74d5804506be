package mutate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// every is which of the mutants the sample has. All of them are make mutate's.
const every = 101

// least is how much of the sample the quick killers must notice. What they miss
// is equivalent within the bounds of larger models: make mutate says so.
const least = 0.97

// TestSample: of a fixed sample of all mutants, the quick killers notice as many
// as they did.
func TestSample(t *testing.T) {
	c := campaign(t)
	for i, p := range c.Rules.Mutants() {
		if i%every == 0 {
			c.Mutants = append(c.Mutants, p)
		}
	}
	out, err := c.Run(t.Context())
	require.NoError(t, err)
	count := map[Fate]int{}
	for _, o := range out {
		count[o.Fate]++
		if o.Fate == Hole || o.Fate == Equivalent {
			t.Logf("%s: %s: %s", o.Fate, o.ID, o.How)
		}
	}
	t.Logf("%d mutants: %v", len(out), count)
	require.GreaterOrEqual(t, float64(count[Killed])/float64(len(out)-count[Stillborn]), least)
}
