package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a script.
const (
	maxBytes = 1 << 20
	maxLine  = 8 << 10 // bytes of one line, and of one joined by backslashes
)

// separator divides commands and what they answered.
const separator = "----"

// part is a stretch of a file: lines that are no block, or one block.
type part struct {
	// raw has the lines as they stand; of a block, those before the separator.
	raw []string
	// end has the blank line that ends an answer, if there is one.
	end []string
	// patches change the rules, at the head of the file.
	patches []patched
	*Block
}

// Block is some commands and what they answered together.
type Block struct {
	// Line is that of the first command, counted from 1.
	Line int
	// Commands are the command lines, comments left out and backslashes resolved.
	Commands []Command
	// Expected is the answer in the file, each line with its end. Answered
	// tells no answer from an empty one.
	Expected string
	Answered bool
	// Actual is the answer of this run. Ran is false for a block that was not
	// reached.
	Actual string
	Ran    bool
}

// Command is one command line.
type Command struct {
	Line int
	Text string
}

// reader reads a file line by line.
type reader struct {
	file  string
	lines []string
	at    int // lines read
}

func (r *reader) fail(line int, format string, args ...any) error {
	return &Error{File: r.file, Line: line, Err: fmt.Errorf(format, args...)}
}

// read cuts a file into parts. It looks at no command.
func read(file string, src []byte) ([]part, error) {
	r := &reader{file: file}
	if len(src) > maxBytes {
		return nil, r.fail(1, "%d bytes: at most %d: %w", len(src), maxBytes, ErrTooLarge)
	}
	for i, l := range bytes.Split(src, []byte("\n")) {
		switch l = bytes.TrimRight(l, "\r"); {
		case len(l) > maxLine:
			return nil, r.fail(i+1, "a line of %d bytes: at most %d: %w", len(l), maxLine, ErrTooLarge)
		case bytes.IndexByte(l, 0) >= 0:
			return nil, r.fail(i+1, "a NUL byte: this is no text")
		case !utf8.Valid(l):
			return nil, r.fail(i+1, "not UTF-8: this is no text")
		}
		r.lines = append(r.lines, string(l))
	}
	if n := len(r.lines); r.lines[n-1] == "" {
		r.lines = r.lines[:n-1] // the end of the last line is no line
	}
	var parts []part
	commanded := false
	for r.at < len(r.lines) {
		from := r.at
		for r.at < len(r.lines) && idle(r.lines[r.at]) {
			r.at++
		}
		if r.at > from {
			parts = append(parts, part{raw: r.lines[from:r.at]})
		}
		if r.at == len(r.lines) {
			break
		}
		if line := r.lines[r.at]; isPatch(line) && !commanded {
			p, err := patchLine(file, r.at+1, line)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{raw: r.lines[r.at : r.at+1], patches: []patched{p}})
			r.at++
			continue
		}
		commanded = true
		b, err := r.block()
		if err != nil {
			return nil, err
		}
		parts = append(parts, b)
	}
	return parts, nil
}

// idle reports that a line is blank or a comment.
func idle(l string) bool {
	l = strings.TrimSpace(l)
	return l == "" || l[0] == '#'
}

// block reads one block, whose first line is a command.
func (r *reader) block() (part, error) {
	b := &Block{Line: r.at + 1}
	from := r.at
	for r.at < len(r.lines) && r.lines[r.at] != separator && strings.TrimSpace(r.lines[r.at]) != "" {
		line, text := r.at+1, strings.TrimSpace(r.lines[r.at])
		r.at++
		if text[0] == '#' {
			continue
		}
		for strings.HasSuffix(text, `\`) {
			if r.at == len(r.lines) {
				return part{}, r.fail(r.at, "nothing follows the backslash")
			}
			text = strings.TrimSuffix(text, `\`) + " " + strings.TrimSpace(r.lines[r.at])
			r.at++
			if len(text) > maxLine {
				return part{}, r.fail(line, "a command of more than %d bytes: %w", maxLine, ErrTooLarge)
			}
		}
		b.Commands = append(b.Commands, Command{line, text})
	}
	p := part{raw: r.lines[from:r.at], Block: b}
	if len(b.Commands) == 0 || r.at == len(r.lines) || r.lines[r.at] != separator {
		if len(b.Commands) == 0 {
			return part{}, r.fail(from+1, "an answer without a command")
		}
		return p, nil
	}
	r.at++
	b.Answered = true
	var err error
	if b.Expected, err = r.answer(); err != nil {
		return part{}, err
	}
	if r.at < len(r.lines) {
		if strings.TrimSpace(r.lines[r.at]) != "" {
			return part{}, r.fail(r.at+1, "a blank line must follow an answer")
		}
		p.end = r.lines[r.at : r.at+1]
		r.at++
	}
	return p, nil
}

var errUnended = errors.New(`the answer begins with a second "----" and does not end with two of them`)

// answer reads what stands after the separator: up to a blank line or, if a
// second separator follows at once, up to two more of them.
func (r *reader) answer() (string, error) {
	var out strings.Builder
	if r.at < len(r.lines) && r.lines[r.at] == separator {
		opened := r.at + 1
		for r.at++; ; r.at++ {
			if r.at+1 >= len(r.lines) {
				return "", r.fail(opened, "%w", errUnended)
			}
			if r.lines[r.at] == separator && r.lines[r.at+1] == separator {
				r.at += 2
				break
			}
			out.WriteString(r.lines[r.at] + "\n")
		}
	} else {
		for ; r.at < len(r.lines) && strings.TrimSpace(r.lines[r.at]) != ""; r.at++ {
			out.WriteString(r.lines[r.at] + "\n")
		}
	}
	return out.String(), nil
}

// write puts a file together again with the actual answers. Blocks that were
// not reached keep what they had.
func write(parts []part) []byte {
	var out bytes.Buffer
	for _, p := range parts {
		for _, l := range p.raw {
			out.WriteString(l + "\n")
		}
		if p.Block == nil {
			continue
		}
		answer := p.Actual
		if !p.Ran {
			answer = p.Expected
		}
		if p.Ran || p.Answered {
			out.WriteString(separator + "\n")
			if ambiguous(answer) {
				answer = separator + "\n" + answer + separator + "\n" + separator + "\n"
			}
			out.WriteString(answer)
		}
		for _, l := range p.end {
			out.WriteString(l + "\n")
		}
	}
	return out.Bytes()
}

// ambiguous reports an answer that [reader.answer] would take for a shorter
// one, or for one between two separators.
func ambiguous(answer string) bool {
	for i, l := range strings.Split(strings.TrimSuffix(answer, "\n"), "\n") {
		if answer != "" && (strings.TrimSpace(l) == "" || i == 0 && l == separator) {
			return true
		}
	}
	return false
}
