package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

func (a *app) logCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Print, convert and count transition logs",
		Long: `Log reads transition logs in either encoding, JSON Lines or binary, and finds out
which by itself. It needs no rules: a log brings the names of its own.`,
		Example: `  runfence log cat demo.log
  runfence log convert demo.log demo.jsonl
  runfence log stat demo.log`,
		Args: noCommand,
		RunE: needsCommand,
	}
	cmd.AddCommand(a.logCatCommand(), a.logConvertCommand(), a.logStatCommand())
	return cmd
}

func (a *app) logCatCommand() *cobra.Command {
	var (
		chosen selection
		long   bool
		allow  allowance
	)
	cmd := &cobra.Command{
		Use:   "cat LOG",
		Short: "Print a log, a line for each record",
		Long: `Cat prints a line for each record of a log: sequence, time, kind, instance, and
what happened. LOG is a file, or - for standard input. Filters may be combined;
what repeats is shown as one line. Before the instance, + marks a part of the
atomic step above, and > an event that an earlier step of the operation sent.

` + incompleteHelp,
		Example: `  runfence log cat demo.log
  runfence log cat demo.log --refused
  runfence log cat demo.log --machine fence,token --seq 20..60
  runfence log cat demo.log --run 2 --long
  zcat demo.log.gz | runfence log cat -`,
		Args: arguments(1, 1, "a LOG"),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := a.openLog(args[0])
			if err != nil {
				return err
			}
			defer l.close()
			if err := chosen.bind(l.Header()); err != nil {
				return err
			}
			ended := a.cat(l, &chosen, long)
			if a.out.broken() {
				return nil // whoever reads has had enough; the end is not known
			}
			judged := a.judge(l.ending(ended), allow)
			if unknown := chosen.known(l); unknown != nil {
				return unknown // a log that is incomplete is told of already
			}
			return judged
		},
	}
	chosen.flags(a, cmd)
	cmd.Flags().BoolVarP(&long, "long", "l", false, "also print identity, views, cause and call site")
	allow.flag(cmd)
	return cmd
}

// cat prints the chosen entries and returns the error that ended the reading.
func (a *app) cat(l *logFile, chosen *selection, long bool) error {
	n, s := &namer{l.Header()}, a.styled()
	who := n.longestRef()
	var e translog.Entry
	for !a.out.broken() {
		if err := l.next(&e); err != nil {
			return err
		}
		if !chosen.takes(&e) {
			continue
		}
		world := ""
		if len(l.worlds) > 1 {
			world = fmt.Sprintf("%2d ", e.World)
		}
		note := func(seq uint64, text string) {
			a.out.printf("%s%6d  %s\n", world, seq, s.dim(text))
		}
		switch e.Kind {
		case translog.WorldEntry:
			a.out.println(s.bold(fmt.Sprintf("world %d: %s", e.World, printable(e.Opened.Name))))
		case translog.RecordEntry:
			rec := &e.Record
			a.out.printf("%s%6d  %9s  %-6s %s %s  %s\n", world, rec.Seq, clock(rec.Time), rec.Kind, via(rec), pad(n.who(rec), who), n.line(rec, s))
			if long {
				for _, d := range n.details(&e) {
					a.out.println(s.dim("                          " + d))
				}
			}
		case translog.RepeatEntry:
			x := &e.Repeat
			note(x.First, fmt.Sprintf("%9s  the last %s again, %s, up to %d", clock(x.Time), several(x.Length, "record"), times(x.Count), x.First+x.Records()-1))
		case translog.GapEntry:
			note(e.Gap.First, fmt.Sprintf("lost: %s, up to %d", plural(e.Gap.Count, "record"), e.Gap.First+e.Gap.Count-1))
		case translog.EndEntry:
			a.out.println(s.dim(fmt.Sprintf("end: %s written, %d dropped", plural(e.End.Records, "record"), e.End.Dropped)))
		}
		if a.terminal {
			// What comes down a pipe is to be seen as it comes.
			a.out.Flush()
		}
	}
	return io.EOF
}

// via marks where a record's event came from.
func via(rec *machine.Record) string {
	switch {
	case rec.Kind == machine.Settled || rec.Kind == machine.Holed:
		return " "
	case rec.Via == machine.ViaQueue:
		return ">"
	case rec.Via == machine.ViaJoint:
		return "+"
	}
	return " "
}

func several(n int, what string) string {
	if n == 1 {
		return what
	}
	return plural(n, what)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return plural(n, "time")
}

func (a *app) logConvertCommand() *cobra.Command {
	var allow allowance
	to := option{what: "log format", words: []string{"binary", "json"}}
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Copy a log from one encoding to the other",
		Long: `Convert copies a log without loss. The encoding of OUT is that of its name,
.jsonl is JSON Lines and anything else binary, unless --to says otherwise. IN and
OUT may be -, for standard input and output; binary is not written to a terminal.

What of a torn or damaged log can be read is copied.

` + incompleteHelp,
		Example: `  runfence log convert demo.log demo.jsonl
  runfence log convert demo.jsonl demo.log
  runfence log convert demo.log - --to json | grep '"kind":"refuse"'`,
		Args: arguments(2, 2, "IN and OUT"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.convert(args[0], args[1], to.value, allow)
		},
	}
	cmd.Flags().Var(&to, "to", "the encoding of OUT")
	must(cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(to.words, cobra.ShellCompDirectiveNoFileComp)))
	allow.flag(cmd)
	return cmd
}

func (a *app) convert(from, to, encoding string, allow allowance) error {
	format, err := a.logFormat(to, encoding)
	if err != nil {
		return err
	}
	l, err := a.openLog(from)
	if err != nil {
		return err
	}
	defer l.close()
	if from != "-" && sameFile(from, to) {
		return fmt.Errorf("%s: cannot convert a log onto itself", to)
	}
	sink, err := a.createLog(to, format)
	if err != nil {
		return err
	}
	copied, ended := a.copyLog(l, sink)
	if err := errors.Join(copied, sink.Close()); err != nil {
		return fmt.Errorf("%s: %w", sink.name, err)
	}
	if sink.broken() {
		return nil
	}
	return a.judge(l.ending(ended), allow)
}

// copyLog copies every entry that can be read. It returns the error of the
// sink, and the one that ended the reading.
func (a *app) copyLog(l *logFile, sink *logSink) (copied, ended error) {
	enc, err := translog.NewEncoder(sink, sink.format, l.Header())
	if err != nil {
		return err, nil
	}
	var e translog.Entry
	for {
		if err := l.next(&e); err != nil {
			return enc.Flush(), err
		}
		if err := enc.Encode(&e); err != nil {
			return err, nil
		}
		if sink.broken() {
			return nil, io.EOF
		}
	}
}

// logSink is where a log is written to.
type logSink struct {
	io.Writer
	name   string
	format translog.Format
	file   *os.File // nil for standard output
	broken func() bool
}

// Close closes the file; what was not written is an error.
func (s *logSink) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// logFormat decides on the encoding of a log to be written: what is asked for,
// or what its name says.
func (a *app) logFormat(path, encoding string) (translog.Format, error) {
	format := translog.Binary
	switch ext := filepath.Ext(path); {
	case encoding != "":
		var err error
		if format, err = translog.ParseFormat(encoding); err != nil {
			return 0, err
		}
	case ext == ".jsonl" || ext == ".json":
		format = translog.JSONLines
	}
	if path == "-" && format == translog.Binary && a.terminal {
		return 0, errors.New("a binary log is not for a terminal: redirect it")
	}
	return format, nil
}

// createLog makes the file for a log, or takes standard output for "-".
func (a *app) createLog(path string, format translog.Format) (*logSink, error) {
	s := &logSink{name: path, format: format, broken: func() bool { return false }}
	if path == "-" {
		s.name, s.Writer, s.broken = "standard output", a.out, a.out.broken
		return s, nil
	}
	f, err := os.Create(path)
	if err != nil {
		var perr *os.PathError
		if errors.As(err, &perr) {
			err = perr.Err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.file, s.Writer = f, f
	return s, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
