package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
	"github.com/runfence/runfence/scenario"
)

// demo is the script that run plays when it is given none.
//
//go:embed demo.txt
var demo []byte

// runFlags are the flags of run.
type runFlags struct {
	check, rewrite bool
	log            string
	seed           number
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [FILE...]",
		Short: "Play a scripted run on the simulated device",
		Long: `Run plays a scenario on the simulated device and draws what happens as a
timeline: the host's operations and calls, and what each stream of the device
does, with kernels as spans. What the script's commands answered stands behind
an equals sign. After it come the verdict of each run, and the log.

Without a FILE it plays a demonstration: two runs, a fault in one of them. FILE
may be - for standard input. Whatever is played is recorded, and the record is
replayed under the same rules; --log keeps it. What becomes of the runs does not
matter to the exit code.

With --check nothing is drawn: the answers are compared with those in the files,
and a difference is a finding, exit 1. With --rewrite the files get the actual
answers. Both take several files, and patterns such as 'testdata/*.txt'.`,
		Example: `  runfence run
  runfence run --log demo.log
  runfence run scenario/testdata/run-two-runs.txt
  runfence run --check 'scenario/testdata/*.txt'
  runfence run --rewrite my.txt
  runfence run --seed 7 my.txt`,
		ValidArgsFunction: cobra.FixedCompletions([]string{"txt"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.check && f.rewrite:
				return misused(cmd, "--check and --rewrite exclude each other")
			case (f.check || f.rewrite) && f.seed.given:
				return misused(cmd, "--seed has no answers to compare: only without it are they those of the file")
			case (f.check || f.rewrite) && f.log != "":
				return misused(cmd, "--log is for one scenario that is played; it goes with neither --check nor --rewrite")
			case (f.check || f.rewrite) && len(args) == 0:
				return misused(cmd, "--check and --rewrite need a FILE")
			case f.rewrite && slices.Contains(args, "-"):
				return misused(cmd, "--rewrite needs a file to write to: standard input is none")
			case a.json && !f.check && !f.rewrite:
				return misused(cmd, "--json goes with --check or --rewrite")
			case a.device.misused(cmd, f) != nil:
				return a.device.misused(cmd, f)
			case f.check || f.rewrite:
				return a.checkAll(args, f.rewrite)
			case len(args) > 1:
				return misused(cmd, "run plays one FILE at a time: %q is one too many; --check takes several", args[1])
			}
			return a.play(args, f)
		},
	}
	cmd.Flags().BoolVar(&f.check, "check", false, "compare the answers with those in the files")
	cmd.Flags().BoolVar(&f.rewrite, "rewrite", false, "put the actual answers into the files")
	cmd.Flags().StringVar(&f.log, "log", "", "keep the transition log: JSON Lines if the name ends in .jsonl, else binary; - is standard output instead of the timeline")
	cmd.Flags().Var(&f.seed, "seed", "let chance, seeded with this number, decide what happens next on the device")
	must(cmd.RegisterFlagCompletionFunc("seed", cobra.NoFileCompletions))
	a.device.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

// readScript reads a scenario; without a path, the demonstration.
func (a *app) readScript(paths []string) (name string, src []byte, err error) {
	if len(paths) == 0 {
		return "demo.txt", demo, nil
	}
	in, err := a.openInput(paths[0])
	if err != nil {
		return "", nil, err
	}
	defer in.close()
	// A byte more than a scenario may have: enough to be told it is too long.
	src, err = io.ReadAll(io.LimitReader(in, maxScript))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return in.name, src, nil
}

// played is a scenario that was run.
type played struct {
	*scenario.Result
	src  []byte
	runs []*verdict
	log  []byte // binary
	// records is how many the log has.
	records uint64
	// rules are those that the scenario asks for.
	rules *machine.Rules
}

// playScript runs a scenario and records it.
func (a *app) playScript(name string, src []byte, seed uint64) (*played, error) {
	var log bytes.Buffer
	rules, err := scenario.Rules(name, src, a.rules())
	if err != nil {
		return nil, err
	}
	w, err := translog.NewWriter(&log, rules, translog.Options{})
	if err != nil {
		return nil, err
	}
	p := &played{src: src, rules: rules}
	rec := &recording{Writer: w, verdicts: newVerdicts(rules)}
	rec.count = &p.records
	rec.verdicts.begun = func(v *verdict) { p.runs = append(p.runs, v) }
	p.Result, err = scenario.Run(name, src, scenario.Options{Seed: seed, Rules: a.rules(), Recorder: rec.recorder, Device: a.device.maker()})
	p.Mismatches = a.device.compared(p.Result)
	a.device.end()
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	p.log = log.Bytes()
	return p, err
}

// play runs a scenario and draws it.
func (a *app) play(args []string, f runFlags) error {
	name, src, err := a.readScript(args)
	if err != nil {
		return err
	}
	format, err := a.logFormat(f.log, "")
	if err != nil {
		return err
	}
	p, failed := a.playScript(name, src, f.seed.n)
	if p == nil || len(p.Blocks) == 0 || !p.Blocks[0].Ran {
		return failed
	}
	if f.log != "" {
		if err := a.keep(p.log, f.log, format); err != nil {
			return err
		}
	}
	again := a.replays(p)
	if f.log != "-" {
		a.drawn(p, f.log, again)
	}
	return cmp.Or(failed, again)
}

// keep writes a log to where it is wanted.
func (a *app) keep(log []byte, path string, format translog.Format) error {
	sink, err := a.createLog(path, format)
	if err != nil {
		return err
	}
	err = translog.Convert(sink, format, bytes.NewReader(log))
	if err := errors.Join(err, sink.Close()); err != nil {
		return fmt.Errorf("%s: %w", sink.name, err)
	}
	return nil
}

// drawn prints the timeline, the verdicts, and where the log is.
func (a *app) drawn(p *played, log string, again error) {
	s := a.styled()
	w := max(a.columns(), 80)
	newTimeline(a.out, s, w, p.Timeline).draw(p.src, p.Result)
	if p.records > 0 || log != "" || len(p.Violations) > 0 {
		a.out.println("")
	}
	var rows [][]string
	for _, v := range p.runs {
		who := fmt.Sprintf("run %d", v.Epoch)
		where := fmt.Sprintf("slot %d", v.Slot)
		if v.World > 0 || p.runs[len(p.runs)-1].World > 0 {
			where = v.Lane + " " + where
		}
		rows = append(rows, []string{s.bold(who), where, v.text(s)})
	}
	kept := "not kept; --log FILE keeps it"
	if log != "" {
		kept = "kept in " + log
	}
	if again == nil {
		kept = s.green("replayed: it holds") + "; " + kept
	}
	if p.records > 0 || log != "" {
		rows = append(rows, []string{s.bold("log"), plural(p.records, "record"), kept})
	}
	a.out.table("", rows)
	if n := len(p.Violations); n > 0 {
		a.out.println(s.red("The device was misused " + times(n) + "."))
	}
}

// expand replaces patterns by the files that they match, in order.
func expand(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || !strings.ContainsAny(arg, "*?[") {
			out = append(out, arg)
			continue
		}
		files, err := filepath.Glob(arg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s: no file matches", arg)
		}
		slices.Sort(files)
		out = append(out, files...)
	}
	return out, nil
}

// checked is what a check of one file brought.
type checked struct {
	File       string      `json:"file"`
	OK         bool        `json:"ok"`
	Blocks     int         `json:"blocks"`
	Mismatches []different `json:"mismatches"`
	// Error says why the file could not be checked.
	Error string `json:"error,omitempty"`
	// Replay says how the log of the run does not replay.
	Replay string `json:"replay,omitempty"`
}

type different struct {
	Line     int    `json:"line"`
	Command  string `json:"command"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
	Diff     string `json:"diff"`
}

// checkAll checks or rewrites files. It goes on after one that is wrong; the
// worst decides the exit code.
func (a *app) checkAll(args []string, rewrite bool) error {
	files, err := expand(args)
	if err != nil {
		return err
	}
	results := []checked{}
	var unreadable, findings int
	for _, path := range files {
		c := a.check(path, rewrite)
		results = append(results, c)
		switch {
		case c.Error != "":
			unreadable++
		case c.Replay != "" || !c.OK && !rewrite:
			findings++
		}
		if !a.json {
			a.told(c, rewrite)
		}
	}
	if a.json {
		if err := a.out.json(results); err != nil {
			return err
		}
	}
	switch {
	case unreadable > 0:
		return errors.New("") // each was told
	case findings > 0:
		return found("")
	}
	return nil
}

// check runs one file and compares, or rewrites it.
func (a *app) check(path string, rewrite bool) checked {
	c := checked{File: path, Mismatches: []different{}}
	name, src, err := a.readScript([]string{path})
	if err != nil {
		c.Error = err.Error()
		return c
	}
	p, err := a.playScript(name, src, 0)
	if err != nil {
		c.Error = err.Error()
		return c
	}
	c.Blocks = len(p.Blocks)
	for _, m := range p.Mismatches {
		c.Mismatches = append(c.Mismatches, different{m.Line, m.Command, m.Expected, m.Actual, m.Diff()})
	}
	c.OK = len(c.Mismatches) == 0
	var f *finding
	if err := a.replays(p); errors.As(err, &f) {
		c.OK, c.Replay = false, err.Error()
	} else if err != nil {
		c.Error = fmt.Sprintf("%s: its log: %v", name, err)
	}
	if rewrite && c.Error == "" && len(c.Mismatches) > 0 {
		if err := replaceFile(path, p.Rewritten); err != nil {
			c.Error = err.Error()
		}
	}
	return c
}

// told prints what came of one file.
func (a *app) told(c checked, rewrite bool) {
	s := a.styled()
	switch {
	case c.Error != "":
		fmt.Fprintf(a.stderr, "runfence: %s\n", c.Error)
	case rewrite && len(c.Mismatches) > 0:
		a.out.printf("%s  %s, %d of %d blocks\n", s.yellow("rewritten"), c.File, len(c.Mismatches), c.Blocks)
	case rewrite:
		a.out.printf("%s  %s\n", s.green("unchanged"), c.File)
	case c.OK:
		a.out.printf("%s    %s, %s\n", s.green("ok"), c.File, plural(c.Blocks, "block"))
	default:
		a.out.printf("%s  %s, %d of %d blocks\n", s.red("FAIL"), c.File, len(c.Mismatches), c.Blocks)
		for _, m := range c.Mismatches {
			a.out.println(a.diff(m.Diff))
		}
	}
	if c.Replay != "" {
		a.out.println(s.red(c.Replay))
	}
}

// diff colours a unified diff.
func (a *app) diff(text string) string {
	s := a.styled()
	var b strings.Builder
	for l := range strings.Lines(strings.TrimRight(text, " \n")) {
		l = printable(strings.TrimRight(l, "\n"))
		switch {
		case strings.HasPrefix(l, "-"):
			l = s.red(l)
		case strings.HasPrefix(l, "+"):
			l = s.green(l)
		case strings.HasPrefix(l, "@@"):
			l = s.cyan(l)
		}
		b.WriteString("  " + l + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// replaceFile puts new content into a file, or leaves it as it was.
func replaceFile(path string, content []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".runfence-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone once it is renamed
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Chmod(info.Mode().Perm()), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

func plural[N int | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// maxScript is more bytes than a scenario may have; its reader says so.
const maxScript = 2 << 20
