// Package covertest checks that docs/coverage.md maps every clause of the
// sources to something that exists.
//
// The page holds tables of three columns, "id", the clause in short and
// "covered by". The last names, in backticks, what covers the clause:
//
//	`fence/arm_ready`             a row of a machine
//	`TestArm`, `sim.TestFIFO`     a test, fuzz target or example, alone or after its package's directory
//	`TestArm/fresh`               a subtest; only the test is looked up
//	`partial.txt`                 a scenario, below scenario/testdata
//	`docs/log-format.md#records`  a page, or a heading of one
//
// or ends in "later: WHY" or "not a host rule: WHY" for what nothing covers.
package covertest

import (
	_ "embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed clauses.txt
var clauses string

// Clauses lists the ids that the page must have. It may have more, of the form
// F-name and R-name.
func Clauses() []string { return strings.Fields(clauses) }

// Options say what to check.
type Options struct {
	// Tree is the top of the repository.
	Tree fs.FS
	// Page is the path of the coverage page in Tree.
	Page string
	// IDs are the ids that must have an entry, as of [Clauses].
	IDs []string
	// HasRow reports whether that machine has a row of that id.
	HasRow func(machine, row string) bool
}

// Problem is one thing wrong with the page.
type Problem struct {
	Line int    // of the page, from 1; 0 for what it lacks
	ID   string // of the clause concerned
	Text string // what is wrong
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.ID + " " + p.Text
	}
	return fmt.Sprintf("line %d: %s %s", p.Line, p.ID, p.Text)
}

var (
	ownID     = regexp.MustCompile(`^[FR]-\w[\w-]*$`)
	reference = regexp.MustCompile("`([^`]*)`")
	excuse    = regexp.MustCompile(`\b(later|not a host rule):(.*)$`)
)

// Check lists what is wrong with the page: an id that lacks an entry, has two
// or is no clause; an entry that names nothing, or something that does not
// exist. The error is of a file that cannot be read or parsed.
func Check(o Options) ([]Problem, error) {
	page, err := fs.ReadFile(o.Tree, o.Page)
	if err != nil {
		return nil, err
	}
	tree, err := survey(o.Tree)
	if err != nil {
		return nil, err
	}
	required := map[string]bool{}
	for _, id := range o.IDs {
		required[id] = true
	}
	var found []Problem
	lineOf := map[string]int{}
	for _, e := range entries(string(page)) {
		report := func(format string, args ...any) {
			found = append(found, Problem{e.line, e.id, fmt.Sprintf(format, args...)})
		}
		if e.broken {
			report("does not have three cells")
			continue
		}
		if !required[e.id] && !ownID.MatchString(e.id) {
			report("is no clause")
		}
		if first, twice := lineOf[e.id]; twice {
			report("has an entry already, in line %d", first)
		}
		lineOf[e.id] = e.line

		covered := e.covered
		why := excuse.FindStringSubmatchIndex(covered)
		if why != nil {
			if strings.TrimSpace(covered[why[4]:why[5]]) == "" {
				report("gives no reason after %q", covered[why[2]:why[3]])
			}
			covered = covered[:why[0]]
		}
		refs := reference.FindAllStringSubmatch(covered, -1)
		if len(refs) == 0 && why == nil {
			report("is covered by nothing")
		}
		for _, ref := range refs {
			if wrong := tree.lacks(ref[1], o); wrong != "" {
				report("names `%s`: %s", ref[1], wrong)
			}
		}
	}
	for _, id := range o.IDs {
		if lineOf[id] == 0 {
			found = append(found, Problem{0, id, "has no entry"})
		}
	}
	return found, nil
}
