package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	coverage     = "docs/coverage.md"
	scenariosDir = "scenario/testdata"
)

var (
	proves   = regexp.MustCompile(`(?m)^# Proves (.*(?:\n# .+)*)`)
	clause   = regexp.MustCompile(`\b[FR](?:\d+|-[a-z][a-z-]*)\b`)
	covered  = regexp.MustCompile(`(?m)^\| ([FR][\w-]+) (\|.*\|) (.*) \|$`)
	cited    = regexp.MustCompile("`([^`]+\\.txt)`")
	inquotes = regexp.MustCompile("`[^`]+`")
	aside    = regexp.MustCompile(` \([^()]*\)$|; not a host rule:.*$`)
)

// claims lists the scenarios that say of themselves that they prove a clause.
func claims(tree fs.FS) (map[string][]string, error) {
	by := map[string][]string{}
	err := fs.WalkDir(tree, scenariosDir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".txt" {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if m := proves.FindSubmatch(text); m != nil {
			for _, id := range clause.FindAllString(string(m[1]), -1) {
				by[id] = append(by[id], strings.TrimPrefix(name, scenariosDir+"/"))
			}
		}
		return nil
	})
	return by, err
}

// cite has the coverage page name, for each clause, the scenarios that say that
// they prove it: behind the scenarios that stand there already, or else at the
// end, ahead of an aside. It is an error to cite a scenario that does not say so,
// and to prove a clause that the page has not.
func cite(tree fs.FS, page string) (string, error) {
	by, err := claims(tree)
	if err != nil {
		return "", err
	}
	var wrong []string
	page = covered.ReplaceAllStringFunc(page, func(line string) string {
		m := covered.FindStringSubmatch(line)
		id, by := m[1], by[m[1]]
		var there []string
		for _, c := range cited.FindAllStringSubmatch(m[3], -1) {
			there = append(there, c[1])
			if !slices.Contains(by, c[1]) {
				wrong = append(wrong, fmt.Sprintf("%s cites %s, which does not say that it proves it", id, c[1]))
			}
		}
		var add []string
		for _, name := range by {
			if !slices.Contains(there, name) {
				add = append(add, "`"+name+"`")
			}
		}
		return "| " + id + " " + m[2] + " " + insert(m[3], add) + " |"
	})
	for id, names := range by {
		if !strings.Contains(page, "\n| "+id+" |") {
			wrong = append(wrong, fmt.Sprintf("%s says that it proves %s, which the page has not", names[0], id))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return "", fmt.Errorf("%s: %s", coverage, strings.Join(wrong, "; "))
	}
	return page, nil
}

// insert puts names into a cell.
func insert(cell string, names []string) string {
	if len(names) == 0 {
		return cell
	}
	list := strings.Join(names, ", ")
	if at := cited.FindAllStringIndex(cell, -1); at != nil {
		end := at[len(at)-1][1]
		return cell[:end] + ", " + list + cell[end:]
	}
	end := len(cell)
	if at := aside.FindStringIndex(cell); at != nil {
		end = at[0]
	}
	if !inquotes.MatchString(cell[:end]) {
		return list + "; " + cell // nothing but a reason why nothing covers it
	}
	return cell[:end] + ", " + list + cell[end:]
}
