package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
)

// subject is what explore searches.
type subject struct {
	explore.System
	// story writes a way through it as a scenario, which has the patches in it.
	story func(patches []string, about string, moves []string) ([]byte, error)
}

// lane is the subject that the words bound, a lane and its device.
func lane(rules *machine.Rules, bounds []string) (subject, error) {
	c, err := model.ParseConfig(strings.Join(bounds, " "))
	if err != nil {
		return subject{}, err
	}
	c.Rules = rules
	sys, err := explore.Lane(c)
	return subject{sys, func(patches []string, about string, moves []string) ([]byte, error) {
		return explore.Story{Config: c, Patches: patches, About: about, Moves: moves}.Scenario(nil)
	}}, err
}

// searched are the flags of explore.
type searched struct {
	explore.Options
	workers, maxDepth uint
	memory            bytesFlag
	rows              bool
	scenario          string
}

// bytesFlag is a flag that is an amount of memory.
type bytesFlag int64

// String implements pflag.Value.
func (b *bytesFlag) String() string { return humanize.IBytes(uint64(*b)) }

// Set implements pflag.Value.
func (b *bytesFlag) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if err != nil || n > math.MaxInt64 {
		return errors.New(`want an amount of memory, such as "4GiB"`)
	}
	*b = bytesFlag(n)
	return nil
}

// Type implements pflag.Value.
func (b *bytesFlag) Type() string { return "bytes" }

func (a *app) exploreCommand() *cobra.Command {
	o := searched{memory: 2 << 30}
	cmd := &cobra.Command{
		Use:   "explore [BOUND...]",
		Short: "Visit every state that the rules lead to within bounds",
		Long: `Explore takes a lane and a simulated device, and visits every state that they
can come to: whatever the host does next, whichever stream moves, whenever a
kernel ends, wherever a fault strikes. All states that some number of moves lead
to come before any that takes more, so that the way to what is found is a
shortest one. In each state the invariants must hold; where nothing can happen
any more, every run must have come to its end.

BOUNDs are what there is: runs=N slots=N depth=N threads=N spare=N polls=N
expiries=N recoveries=N tokens=N faults=N kinds=FAULT,... calls=CALL,... and
submit, caller, async, borrowed, records, opening, close, detach, quarantine,
strangers, exact.
None is one run in one slot.

Results do not depend on the number of workers. Two states are told apart by
fingerprints of 128 bits; the summary bounds the chance that two were not.

A search that --max-depth or --max-states ends holds as far as it went, exit 0.
One that is interrupted, or that needs more than --memory, has no answer, exit 2;
with --checkpoint it leaves a file that --resume goes on from to the same results.
States that wait do not count as memory: past the bound they go to files in --dir,
which are gone when the search ends, however it ends.

A finding is exit 1. Its moves are printed, one a line; --scenario keeps them as
a file that shows the finding again. --rules takes the rules from a file, and each
--patch changes them; the scenario has the patches in it, but not the file.`,
		Example: `  runfence explore runs=2 slots=2 depth=2 submit caller
  runfence explore runs=1 --patch 'run/drained: to launched' --scenario found.txt
  runfence explore runs=2 slots=2 faults=1 --memory 8GiB --checkpoint big.rfe
  runfence explore runs=2 slots=2 faults=1 --checkpoint big.rfe --resume`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, bounds []string) error {
			if o.Resume && o.Checkpoint == "" {
				return misused(cmd, "--resume goes with --checkpoint, the file to go on from")
			}
			if cmd.Flags().Changed("checkpoint-every") && o.Checkpoint == "" {
				return misused(cmd, "--checkpoint-every goes with --checkpoint")
			}
			if o.workers > math.MaxInt16 || o.maxDepth > math.MaxInt32 {
				return misused(cmd, "that many workers or moves are none")
			}
			rules, err := a.theRules()
			if err != nil {
				return err
			}
			sys, err := a.explored(rules, bounds)
			if err != nil {
				return misused(cmd, "%w", err)
			}
			o.Workers, o.MaxDepth, o.Memory = int(o.workers), int(o.maxDepth), int64(o.memory)
			return a.explore(sys, &o)
		},
	}
	f := cmd.Flags()
	f.UintVar(&o.workers, "workers", 0, "how many states to expand at a time (0: one for each processor)")
	f.Uint64Var(&o.MaxStates, "max-states", 0, "stop after so many states (0: no bound)")
	f.UintVar(&o.maxDepth, "max-depth", 0, "look at paths of so many moves (0: no bound)")
	f.Var(&o.memory, "memory", "memory for visited states and those that wait (0: no bound)")
	f.StringVar(&o.Dir, "dir", "", "`directory` for states that wait and have no place in memory")
	f.StringVar(&o.Checkpoint, "checkpoint", "", "`file` for what a search that is stopped leaves")
	f.DurationVar(&o.Every, "checkpoint-every", 10*time.Minute, "how often to write it while the search goes on (0: never)")
	f.BoolVar(&o.Resume, "resume", false, "go on from the checkpoint")
	f.BoolVar(&o.KeepGoing, "keep-going", false, "go on behind findings, and count them by kind")
	f.StringVar(&o.scenario, "scenario", "", "`file` for the way to the first finding, which runfence run --check walks")
	f.BoolVar(&o.rows, "rows", false, "list the rows that no move took")
	must(cmd.MarkFlagDirname("dir"))
	a.jsonFlag(cmd)
	a.rulesFlag(cmd)
	a.patchFlag(cmd)
	return cmd
}

// explored is what explore prints.
type explored struct {
	System   string `json:"system"`
	Hash     string `json:"hash"`
	Finished bool   `json:"finished"`
	// Stopped is why not: finding, depth, states, memory, table, interrupted.
	Stopped         string         `json:"stopped,omitempty"`
	States          uint64         `json:"states"`
	Edges           uint64         `json:"edges"`
	Depth           int            `json:"depth"`
	Deepest         int            `json:"deepest"`
	Frontier        uint64         `json:"frontier"`
	Seconds         float64        `json:"seconds"`
	StatesPerSecond float64        `json:"states_per_second"`
	TableBytes      int64          `json:"table_bytes"`
	BytesPerState   float64        `json:"bytes_per_state"`
	FrontierBytes   int64          `json:"frontier_bytes"`
	DiskBytes       int64          `json:"disk_bytes"`
	CollisionBound  float64        `json:"collision_bound"`
	Rows            int            `json:"rows"`
	NeverTaken      []string       `json:"rows_never_taken"`
	Findings        []foundExample `json:"findings"`
}

type foundExample struct {
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
	Count  uint64 `json:"count"`
	// AtMove: the last move broke it; else it is the state that it leads to.
	AtMove bool     `json:"at_move"`
	Moves  []string `json:"moves"`
}

func (a *app) explore(sys subject, o *searched) error {
	ctx, stop := a.interruptible()
	defer stop()
	// Whoever interrupts a second time does not want to wait.
	defer context.AfterFunc(ctx, stop)()
	p := a.newProgress(o.MaxStates)
	o.Progress = p.tell
	r, err := explore.Search(ctx, sys.System, o.Options)
	p.end()
	if r == nil {
		return a.cannotExplore(err)
	}
	x := aboutSearch(sys, r)
	if a.json {
		if jerr := a.out.json(x); jerr != nil {
			return jerr
		}
	} else {
		a.printSearch(x, r.Elapsed, o.rows)
	}
	switch {
	case err != nil:
		return err
	case len(r.Findings) > 0:
		if o.scenario != "" {
			if err := a.writeStory(o.scenario, sys, &r.Findings[0]); err != nil {
				return err
			}
		}
		return found("")
	case r.Finished || r.Stopped == explore.AtDepth || r.Stopped == explore.AtStates:
		return nil
	}
	return errors.New(stoppedText(r.Stopped, o.Checkpoint))
}

// writeStory writes the way to a finding as a scenario.
func (a *app) writeStory(file string, sys subject, c *explore.Counterexample) error {
	what, _, _ := strings.Cut(c.Finding.Detail, "\n")
	b, err := sys.story(a.patches, fmt.Sprintf("%s: %s\nExplored: %s.", c.Finding.Kind, what, sys.Name()), c.Texts)
	if err != nil {
		return fmt.Errorf("cannot tell the way to the finding as a scenario: %w", err)
	}
	return os.WriteFile(file, b, 0o666)
}

// cannotExplore adds what to do about an error.
func (a *app) cannotExplore(err error) error {
	switch {
	case errors.Is(err, explore.ErrCheckpointExists):
		return fmt.Errorf("%w; --resume goes on with it, or remove it", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot explore: %w", err)
	}
	return err
}

func stoppedText(why explore.Stop, checkpoint string) string {
	text := map[explore.Stop]string{
		explore.Interrupted: "interrupted before the end",
		explore.AtMemory:    "stopped before the end: visited states alone take more than --memory",
		explore.AtTable:     "stopped before the end: there is no place for more states",
	}[why]
	switch {
	case checkpoint == "":
		return text + "; with --checkpoint there would be a file to go on from"
	case why == explore.AtTable:
		return text
	}
	return text + fmt.Sprintf("; --checkpoint %s --resume goes on", checkpoint)
}

func aboutSearch(sys explore.System, r *explore.Result) *explored {
	h := sys.Hash()
	x := &explored{
		System: sys.Name(), Hash: fmt.Sprintf("%016x%016x", h.Hi, h.Lo), Finished: r.Finished, Stopped: string(r.Stopped),
		States: r.States, Edges: r.Edges, Depth: r.Depth, Deepest: r.Deepest, Frontier: r.Frontier,
		Seconds: r.Elapsed.Seconds(), StatesPerSecond: perSecond(r.States, r.Elapsed),
		TableBytes: r.TableBytes, BytesPerState: r.BytesPerState(), FrontierBytes: r.FrontierBytes, DiskBytes: r.DiskBytes,
		CollisionBound: r.CollisionBound(), Rows: r.Rows, NeverTaken: append([]string{}, r.NeverFired...), Findings: []foundExample{},
	}
	for _, f := range r.Findings {
		x.Findings = append(x.Findings, foundExample{f.Finding.Kind, f.Finding.Detail, f.Count, f.Last, append([]string{}, f.Texts...)})
	}
	return x
}

// findingsText says of how many kinds the findings are; there is one at least.
func findingsText(kinds int) string {
	if kinds == 1 {
		return "a finding"
	}
	return plural(kinds, "kind") + " of findings"
}

// perSecond is a rate; that of no time is 0.
func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// printSearch prints what was seen and what to think of it.
func (a *app) printSearch(x *explored, elapsed time.Duration, rowsToo bool) {
	s := a.styled()
	comma := func(n uint64) string { return humanize.Comma(int64(n)) }
	depth := fmt.Sprintf("%s to the farthest state", plural(x.Deepest, "move"))
	if !x.Finished {
		depth = fmt.Sprintf("every path of %s, and some of %d", plural(x.Depth, "move"), x.Deepest)
		if x.Deepest <= x.Depth {
			depth = fmt.Sprintf("every path of %s", plural(x.Depth, "move"))
		}
	}
	frontier := "none left"
	if x.Frontier > 0 {
		frontier = fmt.Sprintf("%s visited and not gone on from", comma(x.Frontier))
	}
	rows := [][]string{
		{"system", printable(x.System)},
		{"states", fmt.Sprintf("%s visited, by %s moves", comma(x.States), comma(x.Edges))},
		{"depth", depth},
		{"frontier", frontier},
		{"time", fmt.Sprintf("%s, %s states a second", rounded(elapsed), comma(uint64(x.StatesPerSecond)))},
		{"memory", fmt.Sprintf("%s for visited states, %.1f bytes each; %s for the frontier", size(x.TableBytes), x.BytesPerState, size(x.FrontierBytes))},
		{"collision", fmt.Sprintf("two states taken for one: less than %.1g likely", x.CollisionBound)},
	}
	if x.DiskBytes > 0 {
		rows = append(rows, []string{"disk", size(x.DiskBytes) + " written, for the frontier"})
	}
	if x.Rows > 0 {
		rows = append(rows, []string{"rows", takenText(x.Rows, x.NeverTaken, rowsToo)})
	}
	a.out.table("", rows)
	if rowsToo {
		a.printNeverTaken(s, x.NeverTaken)
	}
	for i := range x.Findings {
		a.printExample(s, &x.Findings[i])
	}
	a.out.println("")
	within := "in every state that can be reached"
	if !x.Finished {
		within = "as far as it went"
	}
	switch {
	case len(x.Findings) > 0:
		a.out.println(s.red(findingsText(len(x.Findings))))
	case x.Finished:
		a.out.println(s.green("holds " + within))
	default:
		a.out.println(s.yellow("holds " + within + ": it was not finished, for " + stopWords[explore.Stop(x.Stopped)]))
	}
}

var stopWords = map[explore.Stop]string{
	explore.AtDepth:     "--max-depth is reached",
	explore.AtStates:    "--max-states is reached",
	explore.AtMemory:    "--memory is used up",
	explore.AtTable:     "there is no place for more states",
	explore.Interrupted: "it was interrupted",
}

// takenText says how many rows were taken, and how to see the others.
func takenText(rows int, never []string, listed bool) string {
	text := fmt.Sprintf("%d of %d taken", rows-len(never), rows)
	if len(never) > 0 && !listed {
		text += "; --rows lists the others"
	}
	return text
}

func (a *app) printNeverTaken(s style, never []string) {
	if len(never) == 0 {
		return
	}
	a.out.println("\n" + s.bold("Rows never taken"))
	for _, l := range wrap(printable(strings.Join(never, " ")), a.columns()-2) {
		a.out.println("  " + l)
	}
}

// printExample prints a finding and the way to it.
func (a *app) printExample(s style, f *foundExample) {
	a.out.println("")
	for i, l := range strings.Split(strings.TrimRight(f.Detail, "\n"), "\n") {
		if i == 0 {
			a.out.println(s.red(printable(f.Kind)+": ") + printable(l))
			continue
		}
		a.out.println("  " + printable(l))
	}
	where := "in the state that it begins with"
	switch {
	case f.AtMove:
		where = fmt.Sprintf("at move %d", len(f.Moves))
	case len(f.Moves) > 0:
		where = fmt.Sprintf("in the state after %s", plural(len(f.Moves), "move"))
	}
	a.out.println(s.dim(fmt.Sprintf("%s; no way is shorter; seen %s in all", where, plural(f.Count, "time"))))
	for i, m := range f.Moves {
		a.out.printf("%5d  %s\n", i+1, cmp.Or(printable(m), "-"))
	}
}

// rounded leaves a time the digits that matter.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// size writes an amount of memory.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
