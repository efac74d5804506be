package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// output is standard output. It collects what is printed and keeps the first
// error, so that printing needs no checks and a reader that went away is
// noticed once.
type output struct {
	w   *bufio.Writer
	err error
}

func newOutput(w io.Writer) *output { return &output{w: bufio.NewWriterSize(w, 64<<10)} }

// Write implements io.Writer. It takes everything; see Flush for the error.
func (o *output) Write(p []byte) (int, error) {
	if o.err == nil {
		_, o.err = o.w.Write(p)
	}
	return len(p), nil
}

func (o *output) printf(format string, args ...any) { fmt.Fprintf(o, format, args...) }

func (o *output) println(text string) {
	io.WriteString(o, text)
	io.WriteString(o, "\n")
}

// broken reports whether printing more is of no use.
func (o *output) broken() bool { return o.err != nil }

// Flush writes what is collected. A reader that went away is no error.
func (o *output) Flush() error {
	if o.err == nil {
		o.err = o.w.Flush()
	}
	if o.err != nil && !errors.Is(o.err, syscall.EPIPE) && !errors.Is(o.err, os.ErrClosed) && !errors.Is(o.err, io.ErrClosedPipe) {
		return fmt.Errorf("cannot write the output: %w", o.err)
	}
	return nil
}

// json prints a value as scripts read it.
func (o *output) json(v any) error {
	e := json.NewEncoder(o)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows with their columns aligned, two spaces apart.
func (o *output) table(indent string, rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(c))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, c := range r {
			b.WriteString(c)
			b.WriteString(strings.Repeat(" ", widths[i]-width(c)+2))
		}
		o.println(strings.TrimRight(b.String(), " "))
	}
}
