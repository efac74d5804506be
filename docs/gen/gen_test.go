package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

func tree(t *testing.T) string {
	t.Helper()
	root, err := top()
	require.NoError(t, err)
	return root
}

func TestPagesAreUpToDate(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(tree(t), true, &out), "run make docs: %s", &out)
}

// copied makes a tree that generate works on, from what is in the repository.
func copied(t *testing.T) (string, map[string][]byte) {
	t.Helper()
	files, err := generate(os.DirFS(tree(t)))
	require.NoError(t, err)
	dir := t.TempDir()
	needed := append(slices.Collect(maps.Keys(files)), "states/example_test.go", "invariants/lanetest/example_test.go", proseDir+"/README.md", ofCatalogue)
	code, err := filepath.Glob(filepath.Join(tree(t), statesDir, "*.go"))
	require.NoError(t, err)
	for _, path := range code {
		needed = append(needed, statesDir+"/"+filepath.Base(path))
	}
	for _, d := range append(states.Definitions(), states.OrchestratorDefinitions()...) {
		needed = append(needed, proseDir+"/"+d.Name+".md")
	}
	scripts, err := filepath.Glob(filepath.Join(tree(t), scenariosDir, "*.txt"))
	require.NoError(t, err)
	for _, path := range scripts {
		needed = append(needed, scenariosDir+"/"+filepath.Base(path))
	}
	for _, name := range needed {
		text, err := os.ReadFile(filepath.Join(tree(t), name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o666))
	}
	return dir, files
}

// A check names what is out of date and leaves it; a run puts it right.
func TestCheckWritesNothing(t *testing.T) {
	dir, files := copied(t)
	require.NoError(t, run(dir, false, new(bytes.Buffer)))
	require.NoError(t, run(dir, true, new(bytes.Buffer)))
	stale := rulesDir + "/fence.md"
	gone := rulesDir + "/nothing.md"
	require.NoError(t, os.WriteFile(filepath.Join(dir, stale), []byte("old"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, gone), []byte("of no machine"), 0o666))
	require.NoError(t, os.Remove(filepath.Join(dir, rulesDir, "token.md")))
	var out bytes.Buffer
	require.ErrorIs(t, run(dir, true, &out), errStale)
	require.Equal(t, stale+"\n"+gone+" (of no lifecycle)\n"+rulesDir+"/token.md\n", out.String())
	text, err := os.ReadFile(filepath.Join(dir, stale))
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	require.NoFileExists(t, filepath.Join(dir, rulesDir, "token.md"))

	require.NoError(t, run(dir, false, &out))
	require.NoFileExists(t, filepath.Join(dir, gone))
	text, err = os.ReadFile(filepath.Join(dir, stale))
	require.NoError(t, err)
	require.Equal(t, string(files[stale]), string(text))
	require.NoError(t, run(dir, true, new(bytes.Buffer)))
}

// The index shows every lifecycle once.
func TestGroupsAreAllThereIs(t *testing.T) {
	var shown, all []string
	for _, g := range groups {
		shown = append(shown, g.machines...)
	}
	for _, d := range append(states.Definitions(), states.OrchestratorDefinitions()...) {
		all = append(all, d.Name)
	}
	require.ElementsMatch(t, all, shown)
}

// A page shows every state, event, fact, view and row of its Definition.
func TestPageLeavesNothingOut(t *testing.T) {
	names, err := readReasons(os.DirFS(tree(t)))
	require.NoError(t, err)
	var machines []*machine.Machine
	for _, w := range worlds {
		for _, name := range w.rules().Machines() {
			machines = append(machines, w.rules().Machine(name))
		}
	}
	for _, m := range machines {
		d := m.Definition()
		text, err := page(m, "lane", "prose", names)
		require.NoError(t, err)
		tables := text[strings.Index(text, "## States"):]
		has := func(format string) { t.Helper(); require.Contains(t, tables, cell(format), d.Name) }
		for _, s := range d.States {
			has(code(s.Name))
		}
		for _, f := range d.Facts {
			require.Contains(t, tables, code(f.Name)+" | "+cell(code(f.Type)))
		}
		for _, v := range d.Views {
			has(code("view." + v.Name))
		}
		for _, e := range d.Events {
			has("### " + e.Name)
		}
		for i := range d.Rows {
			r := &d.Rows[i]
			has(code(r.ID))
			if r.Refuse != "" {
				require.NotEmpty(t, names[r.Refuse], "%q has no name", r.Refuse)
				has(code(names[r.Refuse]))
			}
			for _, x := range r.Then {
				for _, send := range append(append([]string(nil), x.With...), x.Emit...) {
					has(code(send))
				}
			}
		}
	}
}

// door is a machine with a row of each kind.
func door(t *testing.T) *machine.Machine {
	t.Helper()
	rules, err := machine.Compile(&machine.Definition{
		Name: "door", Doc: "A door.", Source: "nowhere",
		States: []machine.State{{Name: "shut", Doc: "It is shut."}, {Name: "wide open"}, {Name: "gone", Terminal: true, Kept: true}},
		Facts:  []machine.Fact{{Name: "pushes", Type: "int 9"}},
		Events: []machine.Event{{Name: "push", Doc: "Push it.", Args: []machine.Fact{{Name: "hard", Type: "bool"}}}, {Name: "knock"}, {Name: "take"}},
		Rows: []machine.Row{
			{ID: "push", From: "shut|wide open", Event: "push", Guard: "arg.hard || pushes == 3", Before: "pushes++", Command: "Push()", Source: "F1", Then: []machine.Target{
				{On: "ok", When: "res.value == 1", To: "wide open", Do: "pushes = 1", With: []string{"bell.ring()"}, Emit: []string{"self.knock()"}, Return: "1"},
				{On: "ok"},
				{Error: "stuck", Code: "res.code"},
			}},
			{ID: "push-not", From: "shut|wide open", Event: "push", Guard: "else", Refuse: "locked"},
			{ID: "knock", From: "shut", Event: "knock", Defer: true, Doc: "Later."},
			{ID: "take", From: "shut|wide open", Event: "take", Then: []machine.Target{{To: "gone"}}},
		},
	}, &machine.Definition{
		Name: "bell", States: []machine.State{{Name: "hung"}}, Events: []machine.Event{{Name: "ring"}},
		Rows: []machine.Row{{ID: "ring", From: "hung", Event: "ring", Then: []machine.Target{{}}}},
	})
	require.NoError(t, err)
	return rules.Machine("door")
}

func TestPage(t *testing.T) {
	text, err := page(door(t), "house", "Doors.", map[machine.Reason]string{"locked": "ErrLocked"})
	require.NoError(t, err)
	for _, line := range []string{
		"| `gone` |  | terminal, kept |",
		"Push it. Arguments: `hard: bool`.",
		"| 1 | `push` | `shut`, `wide open` | `arg.hard \\|\\| pushes == 3` | `pushes++` | `Push()` | ok `res.value == 1` | `wide open` | `pushes = 1`<br>takes along `bell.ring()`<br>emits `self.knock()` | returns `1` | F1 |",
		"|  |  |  |  |  |  | ok | stays |  |  |  |",
		"|  |  |  |  |  |  | any other | stays |  | stuck, code `res.code` |  |",
		"| `push` | 2 | `shut`, `wide open` | `else` | `ErrLocked` | `push-not` |  |  |",
		"| `knock` | 1 | `shut` |  | `knock` | Later. |",
		"No row takes it: it is refused or waits, as below.",
		"Source: nowhere. One for each house.",
		"Doors.",
	} {
		require.Contains(t, text, line+"\n")
	}
}

// What looplab draws line by line for each outcome is drawn once for each pair
// of states.
func TestDiagram(t *testing.T) {
	text, err := diagram(door(t))
	require.NoError(t, err)
	lines := strings.Split(text, "\n")
	require.Equal(t, "stateDiagram-v2", lines[0])
	require.Contains(t, lines, "    shut --> shut_push: push")
	require.Contains(t, lines, "    shut_push --> shut: push, failed ok panicked refused timedout")
	require.Contains(t, lines, "    shut_push --> wide_open: push, ok")
	require.Contains(t, lines, "    wide_open --> gone: take")
	require.Contains(t, lines, "    state \"shut▸push\" as shut_push")
}

func TestWeave(t *testing.T) {
	source := fstest.MapFS{"a/x_test.go": {Data: []byte(`package x

func Example() {
	if true { // why
		print("a")
	}

	print(` + "`b\n\tc`" + `)
	// Output:
	// a
}

func Long() {
` + strings.Repeat("\tprint()\n", 30) + `}
`)}}
	const mark = "text\n<!-- example: a/x_test.go Example -->\n```go\nold\n```\nmore\n"
	woven, err := weave(source, mark)
	require.NoError(t, err)
	want := "text\n<!-- example: a/x_test.go Example -->\n```go\nif true { // why\n\tprint(\"a\")\n}\n\nprint(`b\n\tc`)\n// Output:\n// a\n```\nmore\n"
	require.Equal(t, want, woven)
	again, err := weave(source, woven)
	require.NoError(t, err)
	require.Equal(t, want, again)

	for bad, say := range map[string]string{
		strings.Replace(mark, "Example -->", "None -->", 1): "no function None",
		strings.Replace(mark, "x_test.go", "y_test.go", 1):  "y_test.go",
		strings.Replace(mark, "```go\n", "```\n", 1):        "0 of 1 marks",
		strings.Replace(mark, "Example -->", "Long -->", 1): "has 30 lines",
	} {
		_, err := weave(source, bad)
		require.ErrorContains(t, err, say)
	}
}

// The coverage page names the scenarios that say that they prove a clause.
func TestCite(t *testing.T) {
	table := func(rows ...string) string {
		return "| id | clause | covered by |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
	}
	scripts := fstest.MapFS{
		"scenario/testdata/a.txt":     {Data: []byte("# It does.\n#\n# Proves F1, F2,\n# F-own, F33; case 2 from the field.\n\nopen\n")},
		"scenario/testdata/sub/b.txt": {Data: []byte("# Proves F1.\n\nopen\n")},
		"scenario/testdata/notes.md":  {Data: []byte("# Proves F3.\n")},
		"scenario/testdata/plain.txt": {Data: []byte("open\n")},
	}
	got, err := cite(scripts, table(
		"| F1 | c | `run/over`, `a.txt`, `docs/x.md` |",
		"| F2 | c | `TestOne`, `TestTwo` (ours: not `a/b`) |",
		"| F3 | c | `TestOne` |",
		"| F33 | c | not a host rule: nothing does |",
		"| F-own | c | `TestOne` |",
	))
	require.NoError(t, err)
	require.Equal(t, table(
		"| F1 | c | `run/over`, `a.txt`, `sub/b.txt`, `docs/x.md` |",
		"| F2 | c | `TestOne`, `TestTwo`, `a.txt` (ours: not `a/b`) |",
		"| F3 | c | `TestOne` |",
		"| F33 | c | `a.txt`; not a host rule: nothing does |",
		"| F-own | c | `TestOne`, `a.txt` |",
	), got)
	again, err := cite(scripts, got)
	require.NoError(t, err)
	require.Equal(t, got, again)

	_, err = cite(scripts, table("| F1 | c | `a.txt` |", "| F2 | c | `plain.txt` |", "| F33 | c | `x/y` |"))
	require.EqualError(t, err, "docs/coverage.md: F2 cites plain.txt, which does not say that it proves it; a.txt says that it proves F-own, which the page has not")
}

func TestTableOfReasons(t *testing.T) {
	names := map[machine.Reason]string{"a": "ErrA", "b": "ErrB", "c": "ErrC"}
	rows := []machine.Reason{"a", "b"}
	const mark = "<!-- reasons -->\n"
	line := func(n string) string { return "| `" + n + "` | means |\n" }
	require.NoError(t, checkReasons(mark+line("ErrA")+line("ErrB"), names, rows), "no row names c")
	require.NoError(t, checkReasons(mark+line("ErrA")+line("ErrB")+line("ErrC"), names, rows))
	require.ErrorContains(t, checkReasons(line("ErrA")+line("ErrB"), names, rows), "not marked")
	err := checkReasons(mark+line("ErrA")+line("ErrA")+line("ErrC")+line("ErrC")+line("ErrD"), names, rows)
	require.ErrorContains(t, err, "ErrA has 2 lines; ErrB has 0 lines; ErrC has 2 lines; ErrD is no reason")
}

// The page of what must hold has a line for each invariant.
func TestInvariantsPageLeavesNothingOut(t *testing.T) {
	text := invariantsPage("prose")
	for _, in := range invariants.All() {
		require.Equal(t, 1, strings.Count(text, "\n| `"+in.ID+"` |"), in.ID)
		require.Contains(t, text, cell(in.Sentence))
	}
	require.NotContains(t, text, "becomes  |")
}
