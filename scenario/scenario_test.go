package scenario

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScenarios holds every scenario against what it says; with -rewrite it
// writes what came out instead.
func TestScenarios(t *testing.T) {
	rewrite := flag.Lookup("rewrite").Value.String() == "true" // datadriven's
	for _, file := range files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src := read1(t, file)
			r, err := Run(file, src, Options{})
			require.NoError(t, err)
			if rewrite {
				require.NoError(t, os.WriteFile(file, r.Rewritten, 0o644))
				return
			}
			for _, m := range r.Mismatches {
				t.Error(m.Diff())
			}
			require.Equal(t, string(src), string(r.Rewritten), "what is as it should be is rewritten as it is")
		})
	}
}

// TestDatadriven has the runner of cockroachdb/datadriven read the same files:
// the format is its own, but for rules that are changed at the head of a file.
func TestDatadriven(t *testing.T) {
	for _, file := range files(t) {
		if bytes.Contains(read1(t, file), []byte("\npatch ")) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := newSession(optionsForTest())
			defer s.end()
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				line := d.Cmd
				for _, a := range d.CmdArgs {
					line += " " + a.String()
				}
				s.out.Reset()
				for _, l := range append([]string{line}, strings.Split(d.Input, "\n")...) {
					if idle(l) {
						continue
					}
					c, err := parse(l, s.opts.Rules)
					require.NoError(t, err)
					require.NoError(t, s.do(c))
				}
				return s.out.String()
			})
		})
	}
}

var (
	clause = regexp.MustCompile(`\b([FR])([0-9]+)\b`)
	topic  = regexp.MustCompile(`^(env|latch|launch|fence|waitref|run|device|registry|worker|packet|buffer|caller|join|region|outcome|health|recover|orch|model)-[a-z-]+\.txt$`)
)

// TestHeaders: each file says at its top what it shows and which clauses it
// proves, and is named by what it is about.
func TestHeaders(t *testing.T) {
	for _, file := range files(t) {
		require.Regexp(t, topic, filepath.Base(file))
		parts, err := read(file, read1(t, file))
		require.NoError(t, err)
		require.Nil(t, parts[0].Block, "%s: a comment comes first", file)
		header := strings.Join(parts[0].raw, "\n")
		_, proves, found := strings.Cut(header, "# Proves ")
		require.True(t, found, "%s: which clauses does it prove?", file)
		ids := clause.FindAllStringSubmatch(proves, -1)
		require.NotEmpty(t, ids, "%s: which clauses does it prove?", file)
		for _, id := range ids {
			n, err := strconv.Atoi(id[2])
			require.NoError(t, err)
			require.True(t, n >= 1 && n <= map[string]int{"F": 172, "R": 26}[id[1]], "%s: there is no %s", file, id[0])
		}
	}
}

func files(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(list), 30)
	return list
}

func read1(t testing.TB, file string) []byte {
	t.Helper()
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	return src
}
