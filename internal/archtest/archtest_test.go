package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/runfence/runfence"

// rules is the import direction of the design: each layer sees those below it.
// The simulated device is for whoever scripts, explores or shows runs; the
// onboard device is for the command alone. Tests from the states upward may
// run on the simulated device.
var rules = []Rule{
	{Dirs: "."},
	{Dirs: "machine/...", Imports: []string{"machine/..."}},

	{Dirs: "backend", Imports: []string{"machine"}},
	{Dirs: "backend/backendtest", Imports: []string{"backend"}},
	{Dirs: "backend/sim/...", Imports: []string{"backend", "backend/sim/..."}, TestImports: []string{"backend/backendtest"}},
	{Dirs: "backend/onboard/...", Imports: []string{"backend", "backend/onboard/..."}, TestImports: []string{"backend/backendtest"}},

	{Dirs: "states/...", Imports: statesAndBelow, TestImports: device},
	{Dirs: "invariants/...", Imports: concat(invariantsAndBelow, simulator), TestImports: device},
	// Hosts import it, so it drags in no scripts and no explorers.
	{Dirs: "invariants/lanetest", Imports: concat(invariantsAndBelow, simulator)},
	{Dirs: "scenario/...", Imports: concat(scenarioAndBelow, simulator), TestImports: device},
	{Dirs: "invariants/explore/...", Imports: concat(exploreAndBelow, simulator), TestImports: device},

	{Dirs: "cmd/...", Imports: concat(exploreAndBelow, simulator, []string{"backend/onboard", "cmd/..."}), TestImports: device},
	{Dirs: "docs/gen", Imports: exploreAndBelow},
	{Dirs: "docs/verify", Imports: exploreAndBelow},

	{Dirs: "internal/archtest"},
	{Dirs: "internal/covertest", TestImports: statesAndBelow},
}

var (
	statesAndBelow     = []string{"states/...", "backend", "machine/..."}
	invariantsAndBelow = concat([]string{"invariants", "invariants/model"}, statesAndBelow)
	scenarioAndBelow   = concat([]string{"scenario/..."}, invariantsAndBelow)
	exploreAndBelow    = concat([]string{"invariants/explore/..."}, scenarioAndBelow)

	simulator = []string{"backend/sim/..."}
	device    = concat(simulator, []string{"backend/backendtest"})
)

func concat(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func TestImportDirection(t *testing.T) {
	found, err := Check(os.DirFS(top(t)), module, rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// top is the top of the module.
func top(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(mod), "\n"); first != "module "+module {
		t.Fatalf("%s is not the top of %s", dir, module)
	}
	return dir
}

// Each import of a tree that follows the design, and one step against it.
func TestRulesOfTheDesign(t *testing.T) {
	for _, c := range []struct {
		file, imports string
		allowed       bool
	}{
		{"machine/a.go", "machine/log", true},
		{"machine/a.go", "backend", false},
		{"machine/log/a.go", "machine", true},
		{"machine/log/a.go", "states", false},
		{"machine/a_test.go", "backend/sim", false},
		{"backend/a.go", "machine", true},
		{"backend/a.go", "machine/log", false},
		{"backend/a.go", "backend/sim", false},
		{"backend/backendtest/a.go", "backend", true},
		{"backend/backendtest/a.go", "backend/sim", false},
		{"backend/sim/a.go", "backend", true},
		{"backend/sim/a.go", "machine", false},
		{"backend/sim/a.go", "backend/onboard", false},
		{"backend/sim/a.go", "backend/backendtest", false},
		{"backend/sim/a_test.go", "backend/backendtest", true},
		{"backend/onboard/a.go", "backend", true},
		{"backend/onboard/a.go", "backend/sim", false},
		{"backend/onboard/a_test.go", "backend/backendtest", true},
		{"states/a.go", "backend", true},
		{"states/a.go", "machine", true},
		{"states/a.go", "backend/sim", false},
		{"states/a.go", "invariants", false},
		{"states/a_test.go", "backend/sim", true},
		{"states/a_test.go", "backend/backendtest", true},
		{"states/a_test.go", "backend/onboard", false},
		{"states/a_test.go", "scenario", false},
		{"states/a_test.go", "states", true},
		{"invariants/a.go", "states", true},
		{"invariants/a.go", "backend/sim", true},
		{"invariants/a.go", "scenario", false},
		{"invariants/lanetest/a.go", "invariants", true},
		{"invariants/lanetest/a.go", "backend/sim", true},
		{"invariants/lanetest/a.go", "invariants/explore", false},
		{"invariants/lanetest/a_test.go", "scenario", false},
		{"invariants/a.go", "invariants/explore", false},
		{"scenario/a.go", "invariants", true},
		{"scenario/a.go", "backend/sim", true},
		{"scenario/a.go", "invariants/explore", false},
		{"scenario/a.go", "backend/onboard", false},
		{"invariants/explore/a.go", "scenario", true},
		{"invariants/explore/a.go", "backend/sim", true},
		{"invariants/explore/a.go", "cmd/runfence", false},
		{"cmd/runfence/a.go", "invariants/explore", true},
		{"cmd/runfence/a.go", "backend/onboard", true},
		{"cmd/runfence/a.go", "backend/sim", true},
		{"cmd/runfence/a.go", "backend/backendtest", false},
		{"docs/gen/a.go", "states", true},
		{"docs/gen/a.go", "backend/onboard", false},
		{"internal/covertest/a.go", "states", false},
		{"internal/covertest/a_test.go", "states", true},
		{"a.go", "machine", false},
	} {
		tree := fstest.MapFS{c.file: source(module + "/" + c.imports)}
		found, err := Check(tree, module, rules)
		if err != nil {
			t.Fatal(err)
		}
		if allowed := len(found) == 0; allowed != c.allowed {
			t.Errorf("%s imports %s: allowed %v, want %v", c.file, c.imports, allowed, c.allowed)
		}
	}
}

func TestCheck(t *testing.T) {
	tree := fstest.MapFS{
		"low/low.go":             source("fmt", "m/low/deep", "mm/high"),
		"low/up.go":              source("m/high", "m"),
		"low/constrained.go":     {Data: []byte("//go:build never\n\npackage low\n\nimport _ \"m/high\"\n")},
		"low/low_test.go":        source("m/low", "m/help", "m/high"),
		"low/testdata/t.go":      source("m/high"),
		"low/own/own.go":         source("m/low"),
		"low/deep/deep.go":       source("m/low", "m/help"),
		"high/high.go":           source("m/low"),
		"high/high_test.go":      source("m/high"),
		"lower/lower.go":         source("fmt"),
		"high/below/below.go":    source("m/low"),
		"nested/go.mod":          {},
		"nested/n.go":            source("m/high"),
		"_off/off.go":            source("m/high"),
		".hidden/h.go":           source("m/high"),
		"unruled/sub/unruled.go": source("fmt"),
		"low/notes.txt":          {Data: []byte(`import "m/high"`)},
	}
	found, err := Check(tree, "m", []Rule{
		{Dirs: "low/...", Imports: []string{"low/..."}, TestImports: []string{"help"}},
		{Dirs: "low/own"},
		{Dirs: "high", Imports: []string{"low"}},
		{Dirs: "unruled"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Violation{
		{"high/below/below.go", ""},
		{"low/constrained.go", "high"},
		{"low/deep/deep.go", "help"},
		{"low/low_test.go", "high"},
		{"low/own/own.go", "low"},
		{"low/up.go", "high"},
		{"low/up.go", "."},
		{"lower/lower.go", ""},
		{"unruled/sub/unruled.go", ""},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestCheckReportsWhatItCannotParse(t *testing.T) {
	_, err := Check(fstest.MapFS{"low/low.go": {Data: []byte("package")}}, "m", nil)
	if err == nil || !strings.Contains(err.Error(), "low/low.go:1:8") {
		t.Errorf("error %v names no place", err)
	}
	if _, err := Check(os.DirFS(filepath.Join(t.TempDir(), "none")), "m", nil); !os.IsNotExist(err) {
		t.Errorf("error %v for a tree that is not there", err)
	}
}

func source(imports ...string) *fstest.MapFile {
	text := "package p\n"
	for _, path := range imports {
		text += "\nimport _ \"" + path + "\"\n"
	}
	return &fstest.MapFile{Data: []byte(text)}
}
