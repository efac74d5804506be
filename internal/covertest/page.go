package covertest

import (
	"strings"
	"unicode"
)

// entry is one row of a coverage table.
type entry struct {
	line        int
	id, covered string
	broken      bool // it does not have as many cells as the table
}

// entries reads the rows of every coverage table of a page.
func entries(page string) []entry {
	var found []entry
	inTable := false
	for i, line := range strings.Split(page, "\n") {
		cells := tableCells(line)
		switch {
		case cells == nil:
			inTable = false
		case !inTable:
			inTable = len(cells) == 3 && strings.EqualFold(cells[0], "id") && strings.EqualFold(cells[2], "covered by")
		case strings.Trim(cells[0], ":-") == "" && cells[0] != "":
			// the line under the header
		case len(cells) != 3:
			found = append(found, entry{line: i + 1, id: cells[0], broken: true})
		default:
			found = append(found, entry{line: i + 1, id: cells[0], covered: cells[2]})
		}
	}
	return found
}

// tableCells splits a table's line; it is nil for any other line.
func tableCells(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	const escaped = "\x00"
	line = strings.ReplaceAll(line, `\|`, escaped)
	cells := strings.Split(strings.TrimSuffix(line[1:], "|"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, escaped, "|"))
	}
	return cells
}

// headings lists the link targets of a page's headings.
func headings(page string) map[string]bool {
	found := map[string]bool{}
	fenced := false
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		text := strings.TrimLeft(line, "#")
		if level := len(line) - len(text); !fenced && level > 0 && strings.HasPrefix(text, " ") {
			found[anchor(strings.TrimSpace(text))] = true
		}
	}
	return found
}

// anchor is the link target that a page's reader makes of a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
