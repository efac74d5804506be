package scenario

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScenarios holds every scenario against what it says; with -rewrite it
// writes what came out instead.
func TestScenarios(t *testing.T) {
	rewrite := flag.Lookup("rewrite").Value.String() == "true" // datadriven's
	for _, file := range files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			r, err := Run(file, src, Options{})
			require.NoError(t, err)
			if rewrite {
				require.NoError(t, os.WriteFile(file, r.Rewritten, 0o644))
				return
			}
			for _, m := range r.Mismatches {
				t.Error(m.Diff())
			}
		})
	}
}

func files(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}
