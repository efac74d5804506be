package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// maxExample bounds the code of an example: a use that needs more is not one
// that a reader takes in.
const maxExample = 30

// marker says which function the code block below it is the body of.
var marker = regexp.MustCompile("(?m)^<!-- example: (\\S+) (\\w+) -->\n```go\n((?s:.*?))^```$")

// weave puts the bodies of Examples into a page's code blocks, so that what the
// page shows is what the tests run.
func weave(tree fs.FS, page string) (string, error) {
	var failed error
	found := 0
	woven := marker.ReplaceAllStringFunc(page, func(block string) string {
		found++
		m := marker.FindStringSubmatch(block)
		body, err := example(tree, m[1], m[2])
		if err != nil && failed == nil {
			failed = err
		}
		return fmt.Sprintf("<!-- example: %s %s -->\n```go\n%s```", m[1], m[2], body)
	})
	if failed == nil && found != strings.Count(page, "<!-- example:") {
		failed = fmt.Errorf("%d of %d marks are followed by a block of Go", found, strings.Count(page, "<!-- example:"))
	}
	return woven, failed
}

// example returns the body of a function of a test file, unindented.
func example(tree fs.FS, file, name string) (string, error) {
	src, err := fs.ReadFile(tree, file)
	if err != nil {
		return "", err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Name.Name != name {
			continue
		}
		body := src[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset]
		text, err := format.Source(append(bytes.TrimSpace(body), '\n'))
		if err != nil {
			return "", err
		}
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		used := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "// Output:") })
		if used < 0 {
			used = len(lines)
		}
		if used >= maxExample {
			return "", fmt.Errorf("%s: %s has %d lines, and fewer than %d are promised", file, name, used, maxExample)
		}
		return strings.Join(lines, "\n") + "\n", nil
	}
	return "", fmt.Errorf("%s: there is no function %s", file, name)
}
