package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// A link's own text may be code.
	inline = regexp.MustCompile("`[^`]*`")
)

// TestLinksLeadSomewhere follows every link between pages, to headings too.
func TestLinksLeadSomewhere(t *testing.T) {
	root := tree(t)
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			rel, err := filepath.Rel(root, path)
			require.NoError(t, err)
			pages = append(pages, rel)
		}
	}
	require.Greater(t, len(pages), 20)
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(withoutCode(string(text)), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			path := filepath.Join(root, page)
			if target != "" {
				path = filepath.Join(root, filepath.Dir(page), target)
			}
			linked, err := os.ReadFile(path)
			if info, derr := os.Stat(path); derr == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if heading != "" && !headings(string(linked))[heading] {
				t.Errorf("%s: %s: there is no such heading", page, m[1])
			}
		}
	}
}

// withoutCode leaves out what a page shows as code, which has no links.
func withoutCode(text string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			b.WriteString(inline.ReplaceAllString(line, ""))
		}
	}
	return b.String()
}

// headings are the targets that links to a page can have.
func headings(text string) map[string]bool {
	found := map[string]bool{}
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if h := strings.TrimLeft(line, "#"); !fenced && h != line && strings.HasPrefix(h, " ") {
			found[strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(h))] = true
		}
	}
	return found
}
