package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine/translog"
)

// walked are the flags of fuzz.
type walked struct {
	explore.WalkOptions
	bounds, out    string
	duration       time.Duration
	moves, workers uint
	rows           bool
	// patches made the rules of the program's own.
	patches []string
}

// defaultWalks are some seconds' worth.
const defaultWalks = 2000

func (a *app) fuzzCommand() *cobra.Command {
	var o walked
	cmd := &cobra.Command{
		Use:   "fuzz",
		Short: "Walk at random through what the rules lead to, far beyond what explore sees",
		Long: `Fuzz takes random walks through lanes and simulated devices: whatever the host
does next, whichever stream moves, whenever a kernel ends, wherever a fault
strikes. Each walk draws bounds of its own, up to 30 runs in 4 slots by 3 threads
with 8 faults, and its own likings: some starve a stream, some let calls hang
half-way, some have their faults early. In each state the invariants must hold;
where nothing can happen any more, every run must have come to its end.

A finding is made short: moves and bounds are left out as long as what is left
leads to a finding of the same kind. It is printed as a scenario that runfence
run --check reproduces; with --out it is kept there, beside its log, which
runfence replay accepts.

A seed and the number of walks decide everything, however many workers there
are. With --for, walks are taken until the time is over. --rules takes the rules
from a file, and each --patch changes them, as the patches do that the scenario
of a finding then begins with.`,
		Example: `  runfence fuzz
  runfence fuzz --seed 7 --walks 10000 --json
  runfence fuzz --for 10m --keep-going --out findings
  runfence fuzz --bounds "runs=20 slots=3 threads=2 faults=2 spare=4" --moves 500
  runfence fuzz --patch 'run/drained: to launched'`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := cmd.Flags().Changed
			switch {
			case given("for") && given("walks"):
				return misused(cmd, "--for and --walks exclude each other")
			case given("for") && o.duration <= 0, given("walks") && o.Walks == 0, given("moves") && o.moves == 0:
				return misused(cmd, "no time, no walks or no moves find nothing")
			case o.workers > math.MaxInt16 || o.moves > math.MaxInt32:
				return misused(cmd, "that many workers or moves are none")
			case given("for"):
				o.Walks = 0
			}
			if given("bounds") {
				c, err := model.ParseConfig(o.bounds)
				if err != nil {
					return misused(cmd, "--bounds: %w", err)
				}
				o.Bounds = &c
			}
			var err error
			if o.Rules, err = a.theRules(); err != nil {
				return err
			}
			o.Moves, o.Workers = int(o.moves), int(o.workers)
			if a.rulesFile == "" {
				o.patches = a.patches
			}
			return a.fuzz(o)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "what chance follows from")
	f.Uint64Var(&o.Walks, "walks", defaultWalks, "how many walks to take")
	f.DurationVar(&o.duration, "for", 0, "how long to walk, such as 10m, instead of how often")
	f.UintVar(&o.moves, "moves", 10_000, "how many moves a walk has at most")
	f.StringVar(&o.bounds, "bounds", "", "the `bounds` of every walk, as explore takes them, instead of drawing them")
	f.UintVar(&o.workers, "workers", 0, "how many walks to take at a time (0: one for each processor)")
	f.BoolVar(&o.KeepGoing, "keep-going", false, "go on behind findings, and count them by kind")
	f.StringVar(&o.out, "out", "", "`directory` to keep findings in: KIND.txt is a scenario, KIND.log its log")
	f.BoolVar(&o.rows, "rows", false, "list the rows that no walk took")
	must(cmd.MarkFlagDirname("out"))
	for _, name := range []string{"seed", "walks", "for", "moves", "bounds", "workers"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	a.jsonFlag(cmd)
	a.rulesFlag(cmd)
	a.patchFlag(cmd)
	return cmd
}

// fuzzed is what fuzz prints.
type fuzzed struct {
	Seed           uint64      `json:"seed"`
	Bounds         string      `json:"bounds,omitempty"`
	Walks          uint64      `json:"walks"`
	Moves          uint64      `json:"moves"`
	Unchanged      uint64      `json:"moves_that_change_nothing"`
	Longest        uint64      `json:"longest_walk"`
	Seconds        float64     `json:"seconds"`
	MovesPerSecond float64     `json:"moves_per_second"`
	Rows           int         `json:"rows"`
	NeverTaken     []string    `json:"rows_never_taken"`
	Findings       []foundWalk `json:"findings"`
}

type foundWalk struct {
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
	// Count is how many walks had a finding of the kind, Walk the first of them.
	Count uint64 `json:"count"`
	Walk  uint64 `json:"walk"`
	// From is how many moves it had before it was made short.
	From   int      `json:"moves_before"`
	Bounds string   `json:"bounds"`
	Moves  []string `json:"moves"`
	GaveUp bool     `json:"gave_up"`
	// Scenario reproduces it.
	Scenario string `json:"scenario"`
	// Files are the scenario and its log.
	Files []string `json:"files,omitempty"`

	log []byte
}

func (a *app) fuzz(o walked) error {
	ctx, stop := a.interruptible()
	defer stop()
	// Whoever interrupts a second time does not want to wait.
	defer context.AfterFunc(ctx, stop)()
	walking := ctx
	if o.duration > 0 {
		var cancel context.CancelFunc
		walking, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	p := a.newProgress(o.Walks)
	o.Progress, o.Tick = p.tellWalks, barEvery
	r, err := explore.Walk(walking, o.WalkOptions)
	p.end()
	if err != nil {
		return err
	}
	x := &fuzzed{
		Seed: o.Seed, Bounds: o.bounds, Walks: r.Walks, Moves: r.Moves, Unchanged: r.Unchanged, Longest: r.Longest,
		Seconds: r.Elapsed.Seconds(), MovesPerSecond: perSecond(r.Moves, r.Elapsed),
		Rows: r.Rows, NeverTaken: append([]string{}, r.NeverTaken...), Findings: []foundWalk{},
	}
	for i := range r.Findings {
		f, err := shorten(&r.Findings[i], o)
		if err == nil && o.out != "" {
			err = f.keep(o.out)
		}
		if err != nil {
			return err
		}
		x.Findings = append(x.Findings, *f)
	}
	if a.json {
		if err := a.out.json(x); err != nil {
			return err
		}
	} else {
		a.printWalks(x, r.Elapsed, o.rows)
	}
	switch {
	case len(x.Findings) > 0:
		return found("")
	case ctx.Err() != nil && o.Walks > 0 && r.Walks < o.Walks:
		return fmt.Errorf("interrupted after %s", plural(r.Walks, "walk"))
	}
	return nil
}

// shorten makes a finding short, and tells it.
func shorten(f *explore.WalkFinding, o walked) (*foundWalk, error) {
	s, err := explore.Shrink(*f, 0)
	if err != nil {
		return nil, err
	}
	x := &foundWalk{
		Kind: s.Finding.Kind, Detail: s.Finding.Detail, Count: f.Count, Walk: f.Walk,
		From: len(f.Acts), Bounds: s.Config.String(), Moves: append([]string{}, s.Moves...), GaveUp: s.GaveUp,
	}
	var log bytes.Buffer
	w, err := translog.NewWriter(&log, o.Rules, translog.Options{})
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("%s\nOf walk %d of seed %d, made short.", s.Finding.Error(), f.Walk, o.Seed)
	story := s.Story(about)
	story.Patches = o.patches
	text, err := story.Scenario(w.World(model.World, s.Pools, 0))
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("walk %d: %w", f.Walk, err)
	}
	x.Scenario, x.log = string(text), log.Bytes()
	return x, nil
}

// keep writes the scenario and the log of a finding to a directory.
func (x *foundWalk) keep(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, f := range []struct {
		ext  string
		data []byte
	}{{".txt", []byte(x.Scenario)}, {".log", x.log}} {
		path := filepath.Join(dir, x.Kind+f.ext)
		if err := os.WriteFile(path, f.data, 0o666); err != nil {
			return err
		}
		x.Files = append(x.Files, path)
	}
	return nil
}

// printWalks prints what was seen and what to think of it.
func (a *app) printWalks(x *fuzzed, elapsed time.Duration, rowsToo bool) {
	s := a.styled()
	comma := func(n uint64) string { return humanize.Comma(int64(n)) }
	rows := [][]string{
		{"seed", fmt.Sprint(x.Seed)},
		{"walks", fmt.Sprintf("%s, of %s moves; the longest of %s", comma(x.Walks), comma(x.Moves), comma(x.Longest))},
		{"unchanged", comma(x.Unchanged) + " moves were refused, and changed nothing"},
		{"time", fmt.Sprintf("%s, %s moves a second", elapsed.Round(10*time.Millisecond), comma(uint64(x.MovesPerSecond)))},
		{"rows", takenText(x.Rows, x.NeverTaken, rowsToo)},
	}
	if x.Bounds != "" {
		rows = append(rows, []string{"bounds", printable(x.Bounds)})
	}
	a.out.table("", rows)
	if rowsToo {
		a.printNeverTaken(s, x.NeverTaken)
	}
	for i := range x.Findings {
		a.printWalk(s, &x.Findings[i])
	}
	a.out.println("")
	if n := len(x.Findings); n > 0 {
		a.out.println(s.red(findingsText(n)))
	} else {
		a.out.println(s.green("holds in every state that was walked through"))
	}
}

func (a *app) printWalk(s style, f *foundWalk) {
	a.out.println("")
	a.out.println(s.red(printable(f.Kind)+": ") + printable(strings.ReplaceAll(f.Detail, "\n", "; ")))
	short := fmt.Sprintf("in walk %d; %s made %d", f.Walk, plural(f.From, "move"), len(f.Moves))
	if f.GaveUp {
		short += ", and there may be fewer"
	}
	if f.Count > 1 {
		short += "; in " + plural(f.Count, "walk") + " in all"
	}
	if len(f.Files) > 0 {
		short += "; kept in " + strings.Join(f.Files, " and ")
	}
	a.out.println(s.dim(short))
	a.out.println("")
	for l := range strings.Lines(f.Scenario) {
		a.out.println("  " + printable(strings.TrimRight(l, "\n")))
	}
}
