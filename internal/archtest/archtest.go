// Package archtest checks what a compiler does not: which of our packages may
// import which, and what may stand in a tracked file.
package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Rule says what the packages of some directories may import of their own
// module. A pattern is a directory, "." for the top, or "dir/..." for a
// directory and all below it.
type Rule struct {
	// Dirs is the pattern of the directories that the rule is for. Of two that
	// match a directory, the one of the deeper directory counts.
	Dirs string
	// Imports are the patterns that any file may import.
	Imports []string
	// TestImports are the patterns that test files may import besides.
	TestImports []string
}

// Violation is one import that no rule allows.
type Violation struct {
	File   string // relative to the top of the module
	Import string // the directory imported; empty if no rule is for the file's own
}

func (v Violation) String() string {
	if v.Import == "" {
		return fmt.Sprintf("%s: no rule says what packages in %s may import", v.File, path.Dir(v.File))
	}
	return fmt.Sprintf("%s: may not import %s", v.File, v.Import)
}

// Check holds every Go file of the module in fsys against the rules, whatever
// its build constraints. Nested modules and what the go command ignores are
// left out. The error is of a file that cannot be read or parsed.
func Check(fsys fs.FS, module string, rules []Rule) ([]Violation, error) {
	var found []Violation
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && ignored(fsys, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		imports, err := ours(fsys, name, module)
		if err != nil {
			return err
		}
		rule := ruleFor(rules, path.Dir(name))
		if rule == nil {
			found = append(found, Violation{File: name})
			return nil
		}
		allowed := rule.Imports
		if strings.HasSuffix(name, "_test.go") {
			// A test in package x_test imports the x beside it.
			allowed = slices.Concat(allowed, rule.TestImports, []string{path.Dir(name)})
		}
		for _, dir := range imports {
			if !slices.ContainsFunc(allowed, func(p string) bool { return match(p, dir) }) {
				found = append(found, Violation{name, dir})
			}
		}
		return nil
	})
	return found, err
}

func ignored(fsys fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

// ours lists the directories of the module that a file imports.
func ours(fsys fs.FS, name, module string) ([]string, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if p == module {
			dirs = append(dirs, ".")
		} else if dir, ok := strings.CutPrefix(p, module+"/"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

func ruleFor(rules []Rule, dir string) *Rule {
	var deepest *Rule
	for i, r := range rules {
		if match(r.Dirs, dir) && (deepest == nil || depth(r.Dirs) > depth(deepest.Dirs)) {
			deepest = &rules[i]
		}
	}
	return deepest
}

func depth(pattern string) int {
	return len(strings.TrimSuffix(pattern, "/..."))
}

func match(pattern, dir string) bool {
	top, below := strings.CutSuffix(pattern, "/...")
	return dir == top || below && strings.HasPrefix(dir, top+"/")
}
