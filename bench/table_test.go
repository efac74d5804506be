package bench

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"
)

var rounds = flag.Int("rounds", 21, "how often the table measures each version; 0 prints no table")

// TestMain prints the table after the benchmarks, if any were asked for.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	pattern := flag.Lookup("test.bench").Value.String()
	if code == 0 && pattern != "" && *rounds > 0 {
		table(os.Stdout, chosen(rows(), pattern))
	}
	os.Exit(code)
}

// chosen returns the rows whose benchmarks the pattern of -bench chooses.
func chosen(rows []row, pattern string) []row {
	top, sub, _ := strings.Cut(pattern, "/")
	sub, _, _ = strings.Cut(sub, "/")
	var out []row
	for _, r := range rows {
		name := strings.ReplaceAll(r.name, " ", "_")
		if regexp.MustCompile(top).MatchString("BenchmarkSpeed") && regexp.MustCompile(sub).MatchString(name) {
			out = append(out, r)
		}
	}
	return out
}

// table measures the rows and prints a line for each requirement. It measures
// for less long than a benchmark and more often, all versions in turn, unless
// -benchtime says otherwise.
func table(w io.Writer, rows []row) {
	if len(rows) == 0 {
		return
	}
	if f := flag.Lookup("test.benchtime"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("40ms")
	}
	// What is measured is one goroutine. On a second processor the collector
	// would use time that is nobody's, and it would count.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	fmt.Fprintf(w, "\nWhat must be reached, and the median of %d rounds:\n\n", *rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	failed, held := 0, 0
	for _, r := range rows {
		var samples [][]sample
		for range *rounds {
			samples = append(samples, r.take())
		}
		for _, v := range r.judge(samples) {
			word := "PASS"
			if held++; !v.pass {
				word = "FAIL"
				failed++
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", word, v.row, v.needs, v.reached)
		}
	}
	t.Flush()
	fmt.Fprintf(w, "\n%d of %d requirements failed\n", failed, held)
}
