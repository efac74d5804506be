package states

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The coverage page lists each mutation of the orchestrator's rules with the
// race that notices it, and cites no race that is none.
func TestMutationsAreListed(t *testing.T) {
	page, err := os.ReadFile("../docs/coverage.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "| what is broken | noticed by | in the source |\n|---|---|---|\n")
	require.True(t, ok)
	listed, source := map[string]string{}, 0
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		cells := strings.Split(line, " | ")
		require.Len(t, cells, 3, line)
		listed[strings.TrimPrefix(cells[0], "| ")] = cells[1]
		if strings.Trim(cells[2], " |") != "" {
			source++
		}
	}
	want := map[string]string{}
	for name, m := range mutations {
		require.Contains(t, races, m.race)
		want[name] = m.race
	}
	require.Equal(t, want, listed)
	require.Equal(t, 9, source, "the source lists nine (R21)")

	names := map[string]bool{}
	for name := range races {
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	for _, cited := range regexp.MustCompile("`TestRaces/([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		require.True(t, names[cited[1]], cited[1])
	}
}
