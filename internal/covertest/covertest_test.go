package covertest

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestClauses(t *testing.T) {
	want := map[string]bool{}
	for i := 1; i <= 172; i++ {
		want[fmt.Sprint("F", i)] = true
	}
	for i := 1; i <= 26; i++ {
		want[fmt.Sprint("R", i)] = true
	}
	got := map[string]bool{}
	for _, id := range Clauses() {
		got[id] = true
	}
	if diff := cmp.Diff(want, got); diff != "" || len(Clauses()) != len(want) {
		t.Errorf("%d clauses (-want +got):\n%s", len(Clauses()), diff)
	}
}

const page = "docs/coverage.md"

func tree(coverage string) fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		page:                                file(coverage),
		"docs/log.md":                       file("# The log\n\n```sh\n# not a heading\n```\n## `runfence log`, in short: Ünï_9-x\n#hash\n"),
		"states/arm_test.go":                file("package states\n\nfunc TestArm() {}\n\nfunc helper() {}\n\nfunc Testing() {}\n\nfunc (s suite) TestMethod() {}\n\ntype suite struct{}\n"),
		"backend/sim/sim_test.go":           file("package sim_test\n\nfunc TestFIFO() {}\n\nfunc FuzzSim() {}\n\nfunc Example() {}\n\nfunc Example_twoRuns() {}\n"),
		"backend/sim/sim.go":                file("package sim\n\nfunc TestNotInATest() {}\n"),
		"scenario/testdata/partial.txt":     file(""),
		"scenario/testdata/caller/tail.txt": file(""),
		"scenario/other.txt":                file(""),
	}
}

func hasRow(machine, row string) bool {
	return machine == "fence" && (row == "arm_ready" || row == "a|b")
}

func check(t *testing.T, coverage string, ids ...string) []string {
	t.Helper()
	problems, err := Check(Options{Tree: tree(coverage), Page: page, IDs: ids, HasRow: hasRow})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return texts
}

const header = "| id | clause (short) | covered by |\n|---|:---|---|\n"

func TestReferences(t *testing.T) {
	for ref, want := range map[string]string{
		"fence/arm_ready":      "",
		`fence/a\|b`:           "",
		"fence/none":           "names `fence/none`: there is no such row",
		"fences/arm_ready":     "names `fences/arm_ready`: there is no such row",
		"TestArm":              "",
		"TestArm/fresh/deep":   "",
		"states.TestArm":       "",
		"states.TestArm/fresh": "",
		"sim.TestFIFO":         "",
		"backend/sim.TestFIFO": "",
		"sim.TestArm":          "names `sim.TestArm`: package sim has no TestArm",
		"im.TestFIFO":          "names `im.TestFIFO`: package im has no TestFIFO",
		"TestNone":             "names `TestNone`: there is no TestNone",
		"TestNone/fresh":       "names `TestNone/fresh`: there is no TestNone",
		"TestMethod":           "names `TestMethod`: there is no TestMethod",
		"TestNotInATest":       "names `TestNotInATest`: there is no TestNotInATest",
		"Testing":              "names `Testing`: that is no row, test, scenario or page",
		"helper":               "names `helper`: that is no row, test, scenario or page",
		"FuzzSim":              "",
		"Example":              "",
		"Example_twoRuns":      "",
		"partial.txt":          "",
		"caller/tail.txt":      "",
		"tail.txt":             "names `tail.txt`: there is no such scenario",
		"other.txt":            "names `other.txt`: there is no such scenario",
		"docs/log.md":          "",
		"docs/log.md#the-log":  "",
		"docs/log.md#runfence-log-in-short-ünï_9-x": "",
		"docs/log.md#not-a-heading":                 "names `docs/log.md#not-a-heading`: the page has no such heading",
		"docs/log.md#hash":                          "names `docs/log.md#hash`: the page has no such heading",
		"docs/log.md#":                              "names `docs/log.md#`: the page has no such heading",
		"docs/none.md":                              "names `docs/none.md`: there is no such page",
		"docs/none.md#the-log":                      "names `docs/none.md#the-log`: there is no such page",
		page:                                        "names `" + page + "`: this page covers nothing",
		"":                                          "names ``: that is no row, test, scenario or page",
	} {
		var wants []string
		if want != "" {
			wants = []string{"line 3: F1 " + want}
		}
		if diff := cmp.Diff(wants, check(t, header+"| F1 | c | `"+ref+"` |\n", "F1")); diff != "" {
			t.Errorf("`%s` (-want +got):\n%s", ref, diff)
		}
	}
}

func TestEntries(t *testing.T) {
	for _, c := range []struct {
		name, page string
		want       []string
	}{
		{"nothing at all", "", []string{"F1 has no entry", "F2 has no entry"}},
		{"complete", header + "| F1 | c | `TestArm` |\n| F2 | c | `fence/arm_ready`, `partial.txt` |\n", nil},
		{"two tables, spelled otherwise", header + "| F1 | c | `TestArm` |\n\nmore\n\n|ID|What it says|Covered By\n|:--|--|--:|\n|F2|c|`TestArm`\n", nil},
		{"in another table", "| id | clause |\n|---|---|\n| F1 | `TestArm` |\n\n| id | covered by | note |\n|---|---|---|\n| F2 | `TestArm` | n |\n\n| name | clause | covered by |\n|---|---|---|\n| F1 | c | `TestArm` |\n", []string{"F1 has no entry", "F2 has no entry"}},
		{"after the table", header + "| F1 | c | `TestArm` |\n\n| F2 | c | `TestArm` |\n", []string{"F2 has no entry"}},
		{"every bad reference is told", header + "| F1 | c | `TestNo`, `TestArm`, `no.txt` |\n| F2 | c | `TestArm` |", []string{"line 3: F1 names `TestNo`: there is no TestNo", "line 3: F1 names `no.txt`: there is no such scenario"}},
		{"covered by words", header + "| F1 | `TestArm` | a test, surely |\n| F2 | c |  |", []string{"line 3: F1 is covered by nothing", "line 4: F2 is covered by nothing"}},
		{"excused", header + "| F1 | c | later: its lifecycle, `registry`, is not built |\n| F2 | c | not a host rule: the device's own |", nil},
		{"excused in part", header + "| F1 | c | `TestArm`; later: the rest |\n| F2 | c | `TestNo`; later: the rest |", []string{"line 4: F2 names `TestNo`: there is no TestNo"}},
		{"excused without a reason", header + "| F1 | c | later: |\n| F2 | c | `TestArm` not a host rule:  |", []string{`line 3: F1 gives no reason after "later"`, `line 4: F2 gives no reason after "not a host rule"`}},
		{"twice", header + "| F1 | c | `TestArm` |\n| F2 | c | `TestArm` |\n| F1 | c | `TestArm` |\n", []string{"line 5: F1 has an entry already, in line 3"}},
		{"ids of our own and no ids", header + "| F1 | c | `TestArm` |\n| F2 | c | `TestArm` |\n| F-join-3 | c | `TestArm` |\n| R-x | c | `TestNo` |\n| F3 | c | `TestArm` |\n| X-1 | c | `TestArm` |\n|  | c | `TestArm` |\n", []string{
			"line 6: R-x names `TestNo`: there is no TestNo", "line 7: F3 is no clause", "line 8: X-1 is no clause", "line 9:  is no clause",
		}},
		{"a bar that is not escaped", header + "| F1 | a | b | `TestArm` |\n| F2 | a \\| b | `TestArm` |\n", []string{"line 3: F1 does not have three cells", "F1 has no entry"}},
	} {
		if diff := cmp.Diff(c.want, check(t, c.page, "F1", "F2")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestCheckReportsWhatItCannotRead(t *testing.T) {
	if _, err := Check(Options{Tree: fstest.MapFS{}, Page: page}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v without a page", err)
	}
	broken := tree(header)
	broken["states/broken_test.go"] = &fstest.MapFile{Data: []byte("package")}
	if _, err := Check(Options{Tree: broken, Page: page}); err == nil || !regexp.MustCompile(`states/broken_test.go:1:\d`).MatchString(err.Error()) {
		t.Errorf("error %v names no place", err)
	}
}
