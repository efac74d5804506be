package main

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

const (
	rulesDir  = "docs/rules"
	proseDir  = rulesDir + "/prose"
	embedding = "docs/embedding.md"
	statesDir = "states"
)

// group is a part of the index.
type group struct {
	title, intro string
	machines     []string
}

// groups put the lifecycles in the order in which they are best read. A test
// holds them to be all that there are.
var groups = []group{
	{
		"Lifecycles",
		"What exists, and what may happen to it. The launch is an operation as well; it is here because it is the transaction that the rest is about.",
		[]string{"environment", "latch", "lane", "run", "launch", "fence", "token", "join", "caller_order", "region", "outcome", "health", "watched", "registry", "callable", "invocation"},
	},
	{
		"Operations",
		"What a host calls. Each is a lifecycle too: its state is how far it has come.",
		[]string{"opening", "prepare", "submit", "poll", "drain", "finalize", "recovery", "closing"},
	},
	{
		"The orchestrator",
		"The layer above the lane, in a world of its own: runs whose resources are their own, and the close that ends everything.",
		[]string{"orchestrator", "building", "resources", "task", "endpoint", "resource", "domain", "free_lock", "ending"},
	},
}

// worlds are the sets of rules that have a world each, and what it is of.
var worlds = []struct {
	of, reasons string
	rules       func() *machine.Rules
}{
	{"lane", embedding, states.Rules},
	{"orchestrator", proseDir + "/orchestrator.md", states.OrchestratorRules},
}

// generate returns the generated files by path. A nil one should not be there.
func generate(tree fs.FS) (map[string][]byte, error) {
	defs := map[string]*machine.Definition{}
	names, err := readReasons(tree)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	old, err := fs.Glob(tree, rulesDir+"/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		files[name] = nil
	}
	for _, w := range worlds {
		rules := w.rules()
		for _, name := range rules.Machines() {
			defs[name] = rules.Machine(name).Definition()
			prose, err := fs.ReadFile(tree, path.Join(proseDir, name+".md"))
			if err != nil {
				return nil, fmt.Errorf("every lifecycle has a text that teaches it: %w", err)
			}
			text, err := page(rules.Machine(name), w.of, strings.TrimSpace(string(prose)), names)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			files[path.Join(rulesDir, name+".md")] = []byte(text)
		}
		text, err := fs.ReadFile(tree, w.reasons)
		if err != nil {
			return nil, err
		}
		if err := checkReasons(string(text), names, rules.Reasons()); err != nil {
			return nil, fmt.Errorf("%s: %w", w.reasons, err)
		}
	}
	intro, err := fs.ReadFile(tree, path.Join(proseDir, "README.md"))
	if err != nil {
		return nil, err
	}
	files[path.Join(rulesDir, "README.md")] = []byte(index(defs, strings.TrimSpace(string(intro))))
	prose, err := fs.ReadFile(tree, ofCatalogue)
	if err != nil {
		return nil, err
	}
	files[catalogue] = []byte(invariantsPage(strings.TrimSpace(string(prose))))
	text, err := fs.ReadFile(tree, embedding)
	if err != nil {
		return nil, err
	}
	woven, err := weave(tree, string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", embedding, err)
	}
	files[embedding] = []byte(woven)
	if text, err = fs.ReadFile(tree, coverage); err != nil {
		return nil, err
	}
	page, err := cite(tree, string(text))
	if err != nil {
		return nil, err
	}
	files[coverage] = []byte(page)
	return files, nil
}

// index is the page that lists the others.
func index(defs map[string]*machine.Definition, intro string) string {
	var b strings.Builder
	b.WriteString(generated + "# The rules\n\n" + intro + "\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| page | what it is | source |\n|---|---|---|\n", g.title, g.intro)
		for _, name := range g.machines {
			d := defs[name]
			doc := strings.TrimPrefix(d.Doc, "Host operation: ")
			fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", name, name, cell(upper(doc)), cell(d.Source))
		}
	}
	return b.String()
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
