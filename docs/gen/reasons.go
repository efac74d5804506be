package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"

	"github.com/runfence/runfence/machine"
)

// readReasons finds the Go name of each reason, for readers who match it.
func readReasons(tree fs.FS) (map[machine.Reason]string, error) {
	src, err := fs.ReadFile(tree, reasonsGo)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), reasonsGo, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[machine.Reason]string{}
	for _, decl := range file.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				lit, ok := v.Values[i].(*ast.BasicLit)
				if !ok {
					continue
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					return nil, err
				}
				names[machine.Reason(text)] = name.Name
			}
		}
	}
	return names, nil
}
