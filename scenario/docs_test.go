package scenario

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/states"
)

// TestReference: docs/scenarios.md has a section for every verb, with every
// parameter and every word that a parameter takes, and no section of another.
func TestReference(t *testing.T) {
	page := string(read1(t, "../docs/scenarios.md"))
	heading := regexp.MustCompile("(?m)^### `([^`]+)`$")
	found := heading.FindAllStringSubmatchIndex(page, -1)
	sections := map[string]string{}
	for i, f := range found {
		end := len(page)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		n := page[f[2]:f[3]]
		require.NotContains(t, sections, n, "two sections of one verb")
		sections[n] = page[f[1]:end]
	}
	for n := range sections {
		require.Contains(t, verbs, n, "the page has a verb that is none")
	}
	for n, v := range verbs {
		s, ok := sections[n]
		require.True(t, ok, "%s has no section", n)
		for _, p := range v.params {
			said := strings.Contains(s, "`"+p.name+"`") || strings.Contains(s, "`"+p.name+"=")
			for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(s, -1) {
				said = said || strings.Contains(code, " "+p.name+"=") || p.place && strings.Contains(code, " "+strings.ToUpper(p.name))
			}
			require.True(t, said, "%s: %s is not there", n, p.name)
			known := p.words
			if p.from != nil {
				known = p.from(states.Rules())
			}
			for _, w := range known {
				if n == "hold" && slices.Contains(deviceCalls(), w) {
					continue // "as for fault"
				}
				if n == "outcomes" || n == "dev sync" {
					continue
				}
				require.True(t, strings.Contains(s, "`"+w+"`") || strings.Contains(s, p.name+"="+w+"`") || strings.Contains(s, " "+p.name+"="+w), "%s: %s=%s is not there", n, p.name, w)
			}
		}
		require.Equal(t, v.sim, strings.Contains(s, "*Simulator.*"), "%s: is the simulated device needed?", n)
	}
}

// TestReferenceExamples runs the examples of the page: each answers as it says.
// Those on a lane stand after a run a has been prepared, and some launched.
func TestReferenceExamples(t *testing.T) {
	page := string(read1(t, "../docs/scenarios.md"))
	n := 0
	for _, ex := range regexp.MustCompile(`(?m)(?:^    .*\n)+`).FindAllString(page, -1) {
		ex = regexp.MustCompile(`(?m)^    `).ReplaceAllString(ex, "")
		if !strings.Contains(ex, separator) {
			continue
		}
		n++
		if strings.HasPrefix(ex, "# ") {
			ex = ex[strings.Index(ex, "\n\n")+2:]
		}
		setup := ""
		switch {
		case strings.HasPrefix(ex, "poll a"), strings.HasPrefix(ex, "launch a\nwhy"), strings.HasPrefix(ex, "ref "):
			setup = "open\nprepare a\nlaunch a\n\n"
		case strings.HasPrefix(ex, "hold "), strings.HasPrefix(ex, "pure "):
			setup = "open\nprepare a\n\n"
		case strings.HasPrefix(ex, "dev submit core kernel=spinner"):
			setup = "kernel spinner class=core paired spin\ndev stream core\n\n"
		}
		r, err := Run("page", []byte(setup+ex), Options{})
		require.NoError(t, err, ex)
		last := r.Blocks[len(r.Blocks)-1]
		require.Equal(t, last.Expected, last.Actual, ex)
	}
	require.GreaterOrEqual(t, n, 14)
}
