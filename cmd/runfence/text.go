package main

import (
	"strings"
	"unicode/utf8"
)

// width is how many columns a text takes on a terminal, its colours left out.
// All letters that rules and logs print take one.
func width(s string) int {
	n := 0
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return n + utf8.RuneCountInString(s)
		}
		n += utf8.RuneCountInString(s[:i])
		end := strings.IndexByte(s[i:], 'm')
		if end < 0 {
			return n
		}
		s = s[i+end+1:]
	}
}

// pad fills a text up with spaces to a width.
func pad(s string, w int) string {
	if n := width(s); n < w {
		return s + strings.Repeat(" ", w-n)
	}
	return s
}

// wrap breaks a text at spaces into lines of at most w columns; a longer word
// stays whole. There is at least one line.
func wrap(s string, w int) []string {
	var lines []string
	line, have := "", 0
	for _, word := range strings.Fields(s) {
		n := width(word)
		switch {
		case line == "":
			line, have = word, n
		case have+1+n <= w:
			line, have = line+" "+word, have+1+n
		default:
			lines = append(lines, line)
			line, have = word, n
		}
	}
	return append(lines, line)
}

// printable replaces what a terminal would obey: logs and scenarios come from
// anywhere.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return '\ufffd'
		}
		return r
	}, s)
}
