package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// input is a file that is read. It can seek if the file can.
type input struct {
	io.Reader
	name  string // for messages
	close func() error
}

// openInput opens a file to read; "-" is standard input.
func (a *app) openInput(path string) (*input, error) {
	if path == "-" {
		return &input{a.stdin, "standard input", func() error { return nil }}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, near(path, err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s: is a directory: want a file", path)
	}
	return &input{f, path, f.Close}, nil
}

// near words the error of a file that cannot be opened, with the nearest name
// in its directory if it does not exist.
func near(path string, err error) error {
	var perr *os.PathError
	if errors.As(err, &perr) {
		err = perr.Err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, err)
	}
	dir, base := filepath.Split(path)
	var names []string
	if entries, derr := os.ReadDir(filepath.Clean(dir + ".")); derr == nil {
		for _, e := range entries {
			if !e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	if _, meant, ok := strings.Cut(machine.Unknown("file", base, names), ": did you mean "); ok {
		return fmt.Errorf("%s: %w: did you mean %s", path, err, meant)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// logFile is a log that is being read.
type logFile struct {
	*translog.Reader
	*input
	worlds []string // the names of those opened so far, by number
	lost   uint64   // records that gaps stand for
}

func (a *app) openLog(path string) (*logFile, error) {
	in, err := a.openInput(path)
	if err != nil {
		return nil, err
	}
	r, err := translog.NewReader(in)
	if err != nil {
		in.close()
		return nil, atPlace(in.name, err)
	}
	return &logFile{Reader: r, input: in}, nil
}

// next reads one entry, and returns io.EOF after the last.
func (l *logFile) next(e *translog.Entry) error {
	if err := l.Next(e); err != nil {
		if err != io.EOF {
			err = atPlace(l.name, err)
		}
		return err
	}
	switch e.Kind {
	case translog.WorldEntry:
		l.worlds = append(l.worlds, e.Opened.Name)
	case translog.GapEntry:
		l.lost += e.Gap.Count
	}
	return nil
}

// atPlace puts the file, and the line if there is one, before an error of a log.
func atPlace(name string, err error) error {
	var (
		torn    *translog.TornError
		corrupt *translog.CorruptError
		unknown *translog.NameError
		line    int
	)
	switch {
	case errors.As(err, &torn):
		line = torn.Place.Line
	case errors.As(err, &corrupt):
		line = corrupt.Place.Line
	case errors.As(err, &unknown):
		line = unknown.Place.Line
	}
	if line > 0 {
		name = fmt.Sprintf("%s:%d", name, line)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// asTorn returns the torn end that an error tells of, or nil.
func asTorn(err error) *translog.TornError {
	var torn *translog.TornError
	if errors.As(err, &torn) {
		return torn
	}
	return nil
}

// allowance is the flag that makes an incomplete log good enough.
type allowance struct{ incomplete bool }

func (w *allowance) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.incomplete, "allow-incomplete", false, "exit 0 though the log is torn, has gaps or was never closed")
}

const incompleteHelp = `A log that is torn, has gaps or was never closed is incomplete. That is said on
standard error and is a finding, exit 1, unless --allow-incomplete is given. A
log that is damaged is read as far as it is sound, and is exit 2.`

// ending is how the reading of a log ended.
type ending struct {
	name   string
	closed bool   // its writer came to its end
	lost   uint64 // records that gaps stand for
	err    error  // nil or io.EOF if nothing is wrong
}

func (l *logFile) ending(err error) ending { return ending{l.name, l.Closed(), l.lost, err} }

// judge turns the ending of a log into the command's error. A log that is
// torn, has gaps or was never closed is incomplete, which is a finding; one that
// is damaged or cannot be read any further is an error.
func (a *app) judge(e ending, w allowance) error {
	var incomplete []string
	var failed error
	switch {
	case asTorn(e.err) != nil:
		incomplete = append(incomplete, e.err.Error())
	case e.err != nil && e.err != io.EOF:
		failed = e.err
	case !e.closed:
		incomplete = append(incomplete, e.name+": the log was never closed: its writer was stopped, or is still writing")
	}
	if e.lost > 0 {
		incomplete = append(incomplete, fmt.Sprintf("%s: lost: %s, since the sink failed while the log was written", e.name, plural(e.lost, "record")))
	}
	for _, text := range incomplete {
		fmt.Fprintf(a.stderr, "runfence: %s\n", text)
	}
	switch {
	case failed != nil:
		return failed
	case len(incomplete) > 0 && !w.incomplete:
		return found("")
	}
	return nil
}
