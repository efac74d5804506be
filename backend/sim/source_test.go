package sim_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wall are the functions of package time that read or wait for a real clock.
var wall = map[string]bool{
	"Sleep": true, "Now": true, "Since": true, "Until": true, "After": true,
	"AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true,
}

// breaches lists what a source file must not do: start goroutines, look at a
// real clock, or read randomness that follows from no seed.
func breaches(t *testing.T, name string, src any) (found []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, 0)
	require.NoError(t, err)
	clock := ""
	for _, imp := range f.Imports {
		path := strings.Trim(imp.Path.Value, `"`)
		switch path {
		case "time":
			clock = "time"
			if imp.Name != nil {
				clock = imp.Name.Name
			}
		case "math/rand", "crypto/rand", "unsafe", "runtime":
			found = append(found, "imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			found = append(found, "starts a goroutine at "+fset.Position(x.Pos()).String())
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok && clock != "" && id.Name == clock && wall[x.Sel.Name] {
				found = append(found, "calls time."+x.Sel.Name)
			}
		}
		return true
	})
	return found
}

func TestTheDeviceHasNoGoroutinesAndNoClock(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	files := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		files++
		require.Empty(t, breaches(t, e.Name(), nil), e.Name())
	}
	require.Greater(t, files, 10)
	require.Equal(t, []string{"imports runtime", "calls time.Now", "starts a goroutine at x.go:1:92", "calls time.Sleep"},
		breaches(t, "x.go", `package x; import "runtime"; import tm "time"; func f() { runtime.Gosched(); _ = tm.Now(); go f(); tm.Sleep(1) }`),
		"the check finds what it looks for")
}
