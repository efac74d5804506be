package covertest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const scenarios = "scenario/testdata"

// known is what a reference may name.
type known struct {
	tests map[string][]string // functions of test files, and the directories that have them
	files map[string]bool     // scenarios, below their directory
	pages map[string]map[string]bool
}

func survey(tree fs.FS) (*known, error) {
	k := &known{map[string][]string{}, map[string]bool{}, map[string]map[string]bool{}}
	return k, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		scenario, inScenarios := strings.CutPrefix(name, scenarios+"/")
		switch {
		case inScenarios:
			k.files[scenario] = true
		case strings.HasSuffix(name, "_test.go"):
			return k.addFuncs(tree, name)
		case strings.HasPrefix(name, "docs/") && path.Ext(name) == ".md":
			page, err := fs.ReadFile(tree, name)
			k.pages[name] = headings(string(page))
			return err
		}
		return nil
	})
}

func (k *known) addFuncs(tree fs.FS, name string) error {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
			k.tests[f.Name.Name] = append(k.tests[f.Name.Name], path.Dir(name))
		}
	}
	return nil
}

// testRef follows the go command: what comes after Test is no lower-case letter.
var testRef = regexp.MustCompile(`^(?:([\w./-]+)\.)?((?:Test|Fuzz|Example)(?:[^\p{Ll}/]\w*)?)(?:/.+)?$`)

// lacks says what is wrong with a reference, or nothing.
func (k *known) lacks(ref string, o Options) string {
	if page, heading, hasHeading := strings.Cut(ref, "#"); strings.HasPrefix(ref, "docs/") {
		switch {
		case page == o.Page:
			return "this page covers nothing"
		case k.pages[page] == nil:
			return "there is no such page"
		case hasHeading && !k.pages[page][heading]:
			return "the page has no such heading"
		}
		return ""
	}
	if path.Ext(ref) == ".txt" {
		if !k.files[ref] {
			return "there is no such scenario"
		}
		return ""
	}
	if m := testRef.FindStringSubmatch(ref); m != nil {
		dirs, test := k.tests[m[2]], m[2]
		if len(dirs) == 0 {
			return "there is no " + test
		}
		if pkg := m[1]; pkg != "" && !slices.ContainsFunc(dirs, func(d string) bool { return d == pkg || strings.HasSuffix(d, "/"+pkg) }) {
			return "package " + pkg + " has no " + test
		}
		return ""
	}
	machine, row, isRow := strings.Cut(ref, "/")
	switch {
	case !isRow:
		return "that is no row, test, scenario or page"
	case !o.HasRow(machine, row):
		return "there is no such row"
	}
	return ""
}
