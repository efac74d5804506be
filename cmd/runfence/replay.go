package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

func (a *app) replayCommand() *cobra.Command {
	var (
		otherRules, inspect bool
		allow               allowance
	)
	cmd := &cobra.Command{
		Use:   "replay LOG",
		Short: "Run a log through the rules again, and find where the two part",
		Long: `Replay gives the rules everything that came from outside when the log was
recorded, and compares what they make of it, record by record, with what the log
says. LOG is a file in either encoding, or - for standard input.

The first divergence is a finding, exit 1. It is explained: what the log has and
what the rules make, the state before it, and the chain of causes that led there.
From a pipe, a cause that is too long ago is not at hand.

A log of other rules is not replayed, exit 2, unless --other-rules is given; then
names are matched, and what differs in effect is a divergence. --rules takes the
rules from a file, and each --patch changes them, as the patches do that the
recorded scenario began with.

With --invariants each step is held to what must hold whatever happens, see
docs/invariants.md. What does not hold is a finding, exit 1, and is printed with
the record after which it does not. What a log cannot tell is unknown.

` + incompleteHelp + `
Behind a gap, what its world did is not replayed.`,
		Example: `  runfence replay demo.log
  runfence replay demo.jsonl --json
  runfence replay demo.log --invariants
  runfence replay old.log --other-rules
  runfence replay broken.log --patch 'run/drained: to launched'
  runfence run --log - | runfence replay -`,
		Args: arguments(1, 1, "a LOG"),
		RunE: func(_ *cobra.Command, args []string) error { return a.replay(args[0], otherRules, inspect, allow) },
	}
	cmd.Flags().BoolVar(&otherRules, "other-rules", false, "replay although the log was recorded under other rules")
	cmd.Flags().BoolVar(&inspect, "invariants", false, "hold each step to the invariants")
	allow.flag(cmd)
	a.jsonFlag(cmd)
	a.rulesFlag(cmd)
	a.patchFlag(cmd)
	return cmd
}

// replayed is what replay prints.
type replayed struct {
	Log string `json:"log"`
	// Holds: every record that was replayed is what the rules make of it.
	// Complete: that is all there was to record.
	Holds    bool `json:"holds"`
	Complete bool `json:"complete"`
	// Rules is the hash of the log's rules; OtherRules says how they differ.
	Rules      string           `json:"rules"`
	OtherRules string           `json:"other_rules,omitempty"`
	Records    uint64           `json:"records"`
	Repeated   uint64           `json:"repeated"`
	Refusals   uint64           `json:"refusals"`
	Gaps       int              `json:"gaps"`
	Lost       uint64           `json:"lost"`
	Skipped    uint64           `json:"skipped"`
	Closed     bool             `json:"closed"`
	Error      string           `json:"error,omitempty"`
	Runs       map[string]int   `json:"runs"`
	Worlds     []replayedWorld  `json:"worlds"`
	Divergence *divergenceAbout `json:"divergence,omitempty"`
	// Invariants is there if they were asked for.
	Invariants *inspection `json:"invariants,omitempty"`

	divergence *replay.Divergence
}

type replayedWorld struct {
	World   int    `json:"world"`
	Name    string `json:"name"`
	Records uint64 `json:"records"`
	// Missing counts records of the last step that a log that was not closed
	// does not have.
	Missing   int             `json:"missing"`
	Instances []instanceAbout `json:"instances"`
}

type instanceAbout struct {
	Instance string `json:"instance"`
	State    string `json:"state"`

	machine string
}

type divergenceAbout struct {
	World       int              `json:"world"`
	Seq         uint64           `json:"seq"`
	Offset      int64            `json:"offset"`
	Line        int              `json:"line,omitempty"`
	Reason      string           `json:"reason"`
	Logged      string           `json:"logged,omitempty"`
	Replayed    string           `json:"replayed,omitempty"`
	Differences []differentField `json:"differences"`
	Chain       []linkAbout      `json:"chain"`
	Cut         bool             `json:"chain_cut,omitempty"`
	Explained   string           `json:"explained"`
}

type differentField struct {
	Field    string `json:"field"`
	Logged   string `json:"logged"`
	Replayed string `json:"replayed"`
}

type linkAbout struct {
	Seq  uint64 `json:"seq"`
	Text string `json:"text"`
}

func (a *app) replay(path string, otherRules, inspect bool, allow allowance) error {
	rules, err := a.theRules()
	if err != nil {
		return err
	}
	in, err := a.openInput(path)
	if err != nil {
		return err
	}
	defer in.close()

	runs := map[string]int{}
	vs := newVerdicts(rules)
	vs.over = func(v *verdict) { runs[cmp.Or(v.Verdict, v.State)]++ }
	numbers := map[*machine.World]int{}
	var inspected *inspector
	if inspect {
		inspected = newInspector(rules)
	}
	r, err := replay.Run(in.Reader, rules, replay.Options{
		AllowOtherRules: otherRules, SkipGaps: true,
		Observer: func(w *machine.World, rec *machine.Record) error {
			n, ok := numbers[w]
			if !ok {
				n = len(numbers)
				numbers[w] = n
			}
			vs.look(n, w.Name(), rec)
			if inspected != nil {
				inspected.look(n, w, rec)
			}
			return nil
		},
	})
	var other *replay.RulesError
	switch {
	case r == nil:
		return atPlace(in.name, err)
	case errors.As(err, &other):
		return fmt.Errorf("%s: %w; --other-rules replays it nevertheless", in.name, other)
	}
	for _, v := range vs.live {
		runs["left "+v.State]++
	}
	x := aboutReplay(in.name, rules, r, err)
	x.Runs = runs
	if inspected != nil {
		x.Invariants = inspected.end()
	}
	var failed error
	if err != nil && x.divergence == nil {
		failed = atPlace(in.name, err)
		x.Error = failed.Error()
	}
	if a.json {
		if err := a.out.json(x); err != nil {
			return err
		}
	} else {
		a.printReplay(x)
		if x.Invariants != nil {
			a.printInvariants(x.Invariants)
		}
	}
	if x.divergence != nil || x.Invariants != nil && !x.Invariants.Holds {
		return found("")
	}
	return a.judge(ending{in.name, r.Closed, r.Lost, failed}, allow)
}

func aboutReplay(name string, rules *machine.Rules, r *replay.Result, err error) *replayed {
	x := &replayed{
		Log: name, Rules: r.Header.Rules, Records: r.Records, Repeated: r.Repeated, Refusals: r.Refusals,
		Gaps: r.Gaps, Lost: r.Lost, Skipped: r.Skipped, Closed: r.Closed, Holds: err == nil || asTorn(err) != nil,
		Complete: err == nil && r.Closed && r.Lost == 0,
		Worlds:   []replayedWorld{},
	}
	if given := rules.Hash().String(); given != x.Rules {
		x.OtherRules = given
	}
	for _, w := range r.Worlds {
		about := replayedWorld{World: w.Number, Name: printable(w.Name), Records: w.Records, Missing: w.Missing, Instances: []instanceAbout{}}
		for _, i := range w.Instances() {
			if !i.Untouched {
				about.Instances = append(about.Instances, instanceAbout{Instance: i.Name, State: i.State, machine: rules.At(i.Ref.Machine).Name()})
			}
		}
		x.Worlds = append(x.Worlds, about)
	}
	if errors.As(err, &x.divergence) {
		x.Divergence = aboutDivergence(rules, x.divergence)
	}
	return x
}

func aboutDivergence(rules *machine.Rules, d *replay.Divergence) *divergenceAbout {
	out := &divergenceAbout{
		World: d.World, Seq: d.Seq, Offset: d.Place.Offset, Line: d.Place.Line, Reason: d.Reason, Cut: d.Cut,
		Differences: []differentField{}, Chain: []linkAbout{},
	}
	h, err := translog.HeaderOf(rules)
	text := func(r *machine.Record) string {
		if r == nil || err != nil {
			return ""
		}
		return h.Text(r)
	}
	out.Logged, out.Replayed = text(d.Logged), text(d.Replayed)
	for _, x := range d.Differences {
		out.Differences = append(out.Differences, differentField(x))
	}
	for _, l := range d.Chain {
		out.Chain = append(out.Chain, linkAbout(l))
	}
	var b strings.Builder
	must(d.Explain(&b)) // it writes to memory
	out.Explained = b.String()
	return out
}

// printReplay prints the summary of a replay that ended as it should, or where
// it did not.
func (a *app) printReplay(x *replayed) {
	s := a.styled()
	records := fmt.Sprintf("%d replayed", x.Records)
	if x.Repeated > 0 {
		records += fmt.Sprintf(", %d of them repeats", x.Repeated)
	}
	records += ", " + plural(x.Refusals, "refusal")
	rows := [][]string{{"log", printable(x.Log)}, {"rules", x.Rules}, {"worlds", fmt.Sprint(len(x.Worlds))}, {"records", records}}
	if x.OtherRules != "" {
		rows[1][1] += s.yellow(", replayed under " + x.OtherRules)
	}
	if len(x.Runs) > 0 {
		total, parts := 0, []string{}
		for _, what := range slices.Sorted(maps.Keys(x.Runs)) {
			total += x.Runs[what]
			parts = append(parts, fmt.Sprintf("%d %s", x.Runs[what], what))
		}
		rows = append(rows, []string{"runs", fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))})
	}
	if x.Gaps > 0 {
		rows = append(rows, []string{"gaps", s.yellow(fmt.Sprintf("%d: lost %s, left out %d after them", x.Gaps, plural(x.Lost, "record"), x.Skipped))})
	}
	for _, w := range x.Worlds {
		if w.Missing > 0 {
			rows = append(rows, []string{"cut", s.yellow(fmt.Sprintf("world %d: the last step lacks %s", w.World, plural(w.Missing, "record")))})
		}
	}
	a.out.table("", rows)
	if x.divergence != nil {
		a.out.println("")
		a.out.println(s.red("The log and the rules part:"))
		for l := range strings.Lines(x.Divergence.Explained) {
			a.out.println(printable(strings.TrimRight(l, "\n")))
		}
		return
	}
	a.out.println("")
	for _, w := range x.Worlds {
		a.out.println(s.bold(fmt.Sprintf("Final states of world %d, %s", w.World, w.Name)))
		a.out.table("  ", finalStates(w.Instances))
	}
	switch {
	case !x.Complete:
		a.out.println(s.yellow("holds as far as it goes: what could be replayed is what the rules make of it"))
	default:
		a.out.println(s.green("holds: every record is what the rules make of it"))
	}
}

// finalStates groups instances by machine and state.
func finalStates(all []instanceAbout) [][]string {
	const most = 4 // names in a row
	var rows [][]string
	for len(all) > 0 {
		first := all[0]
		var names []string
		rest := all[:0:0]
		for _, i := range all {
			if i.machine == first.machine && i.State == first.State {
				names = append(names, i.Instance)
			} else {
				rest = append(rest, i)
			}
		}
		all = rest
		text := strings.Join(names[:min(most, len(names))], ", ")
		if n := len(names) - most; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		rows = append(rows, []string{text, first.State})
	}
	return rows
}

// replays replays the log of a scenario that was just run. A divergence is a
// finding: the rules do not do the same twice.
func (a *app) replays(p *played) error {
	_, err := replay.Run(bytes.NewReader(p.log), p.rules, replay.Options{})
	var d *replay.Divergence
	if errors.As(err, &d) {
		return found("the log does not replay: %s", aboutDivergence(p.rules, d).Explained)
	}
	return err
}
