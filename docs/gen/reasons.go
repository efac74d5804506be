package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runfence/runfence/machine"
)

// readReasons finds the Go name of each reason, for readers who match it.
func readReasons(tree fs.FS) (map[machine.Reason]string, error) {
	files, err := fs.Glob(tree, statesDir+"/*.go")
	if err != nil {
		return nil, err
	}
	names := map[machine.Reason]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.CONST {
				if err := addReasons(names, g); err != nil {
					return nil, err
				}
			}
		}
	}
	return names, nil
}

// addReasons adds the constants of type machine.Reason in a declaration.
func addReasons(names map[machine.Reason]string, g *ast.GenDecl) error {
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		if t, ok := v.Type.(*ast.SelectorExpr); !ok || t.Sel.Name != "Reason" {
			continue
		}
		for i, name := range v.Names {
			lit, ok := v.Values[i].(*ast.BasicLit)
			if !ok {
				return fmt.Errorf("%s is not a plain text", name.Name)
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return err
			}
			names[machine.Reason(text)] = name.Name
		}
	}
	return nil
}

// reasonRow is a line of the table of reasons, and the names at its head.
var reasonRow = regexp.MustCompile("(?m)^\\| `(Err\\w+)` \\|.*$")

// checkReasons holds the table of a page to the reasons: each that a row names
// has one line, any other at most one, and nothing else has one.
func checkReasons(page string, names map[machine.Reason]string, rows []machine.Reason) error {
	_, table, found := strings.Cut(page, "<!-- reasons -->")
	if !found {
		return fmt.Errorf("the table of reasons is not marked")
	}
	lines := map[string]int{}
	for _, m := range reasonRow.FindAllStringSubmatch(table, -1) {
		lines[m[1]]++
	}
	var wrong []string
	for reason, name := range names {
		if n := lines[name]; n > 1 || n == 0 && slices.Contains(rows, reason) {
			wrong = append(wrong, fmt.Sprintf("%s has %d lines", name, n))
		}
		delete(lines, name)
	}
	for name := range lines {
		wrong = append(wrong, name+" is no reason")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("the table of reasons: %s", strings.Join(wrong, "; "))
	}
	return nil
}
