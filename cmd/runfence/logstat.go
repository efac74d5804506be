package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

func (a *app) logStatCommand() *cobra.Command {
	var allow allowance
	cmd := &cobra.Command{
		Use:   "stat LOG",
		Short: "Count what is in a log",
		Long: `Stat prints how many records a log has, of which machines and rows, with which
outcomes and refusals; its worlds with their sequence numbers and times; and what
is missing. Records that a repeat stands for are counted each.

` + incompleteHelp,
		Example: `  runfence log stat demo.log
  runfence log stat demo.log --json`,
		Args: arguments(1, 1, "a LOG"),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := a.openLog(args[0])
			if err != nil {
				return err
			}
			defer l.close()
			c := newCensus(l)
			ended := c.read(l)
			st := c.stat(l, ended)
			if a.json {
				if err := a.out.json(st); err != nil {
					return err
				}
			} else {
				a.printStat(st)
			}
			return a.judge(l.ending(ended), allow)
		},
	}
	a.jsonFlag(cmd)
	allow.flag(cmd)
	return cmd
}

// logStat is what stat prints.
type logStat struct {
	Log     string `json:"log"`
	Format  string `json:"format"`
	Schema  int    `json:"schema"`
	Rules   string `json:"rules"`
	Records uint64 `json:"records"`
	// Entries are what the log consists of; a repeat is one.
	Entries  uint64      `json:"entries"`
	Repeated uint64      `json:"repeated"`
	Lost     uint64      `json:"lost"`
	Closed   bool        `json:"closed"`
	Torn     *tornStat   `json:"torn,omitempty"`
	Damage   string      `json:"damage,omitempty"`
	Worlds   []worldStat `json:"worlds"`
	Kinds    []tally     `json:"kinds"`
	Machines []tally     `json:"machines"`
	Rows     []rowTally  `json:"rows"`
	Outcomes []callTally `json:"outcomes"`
	Refusals []whyTally  `json:"refusals"`
	Gaps     []gapStat   `json:"gaps"`
}

type tornStat struct {
	Offset int64 `json:"offset"`
	Line   int   `json:"line,omitempty"`
	Tail   int64 `json:"tail_bytes"`
	Zeros  bool  `json:"zeros,omitempty"`
}

type worldStat struct {
	World   int    `json:"world"`
	Name    string `json:"name"`
	Records uint64 `json:"records"`
	First   uint64 `json:"first_seq"`
	Last    uint64 `json:"last_seq"`
	// Start and End are the times of the first and the last record, in ns.
	Start int64 `json:"start_ns"`
	End   int64 `json:"end_ns"`
}

type gapStat struct {
	World int    `json:"world"`
	First uint64 `json:"first_seq"`
	Count uint64 `json:"count"`
}

type tally struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

type rowTally struct {
	Machine string `json:"machine"`
	From    string `json:"from"`
	Row     string `json:"row"`
	Count   uint64 `json:"count"`
}

type callTally struct {
	Command string `json:"command"`
	Outcome string `json:"outcome"`
	Code    int32  `json:"code"`
	Count   uint64 `json:"count"`
}

type whyTally struct {
	Machine string `json:"machine"`
	Event   string `json:"event"`
	Why     string `json:"why"`
	Count   uint64 `json:"count"`
}

// census counts the records of a log.
type census struct {
	n       *namer
	entries uint64
	records uint64
	again   uint64
	worlds  []worldStat
	gaps    []gapStat
	// kinds are the different things that were counted, counts how often.
	kinds  map[counted]int
	counts []uint64
	// recent has what was counted of the last records of each world, by
	// sequence, for the repeats that stand for them.
	recent [][translog.MaxRepeatLength]int32
	// calls has the command that each instance has in flight: its answer does
	// not name it.
	calls map[instance]machine.CallID
}

// maxCounted bounds how many different things are counted apart. No sound log
// comes near it.
const maxCounted = 1 << 16

// counted is what is counted of a record.
type counted struct {
	kind    machine.RecordKind
	machine machine.MachineID
	event   machine.EventID
	row     machine.RowID
	call    machine.CallID
	outcome machine.Outcome
	code    int32
	refusal machine.RefusalKind
	reason  uint16
	by      machine.MachineID
	byEvent machine.EventID
}

func newCensus(l *logFile) *census {
	return &census{
		n: &namer{l.Header()}, kinds: map[counted]int{}, calls: map[instance]machine.CallID{},
		worlds: []worldStat{}, gaps: []gapStat{},
	}
}

// number returns the number of a thing to count.
func (c *census) number(x counted) int {
	if i, ok := c.kinds[x]; ok {
		return i
	}
	if len(c.counts) >= maxCounted {
		x = counted{kind: x.kind, machine: x.machine, row: machine.NoRowID, call: machine.NoCall, reason: machine.NoReasonID}
		if i, ok := c.kinds[x]; ok {
			return i
		}
	}
	c.kinds[x] = len(c.counts)
	c.counts = append(c.counts, 0)
	return len(c.counts) - 1
}

// read counts everything that can be read.
func (c *census) read(l *logFile) error {
	var e translog.Entry
	for {
		if err := l.next(&e); err != nil {
			return err
		}
		c.count(&e)
	}
}

func (c *census) count(e *translog.Entry) {
	c.entries++
	switch e.Kind {
	case translog.WorldEntry:
		c.worlds = append(c.worlds, worldStat{World: e.World, Name: printable(e.Opened.Name)})
		c.recent = append(c.recent, [translog.MaxRepeatLength]int32{})
	case translog.RecordEntry:
		i := c.number(c.of(e))
		c.counts[i]++
		c.recent[e.World][e.Record.Seq%translog.MaxRepeatLength] = int32(i) + 1
		c.span(e.World, e.Record.Seq, 1, e.Record.Time)
	case translog.RepeatEntry:
		x := &e.Repeat
		n, l := x.Records(), uint64(x.Length)
		var group [translog.MaxRepeatLength]int32
		for i := range l {
			group[i] = c.recent[e.World][(x.First-l+i)%translog.MaxRepeatLength]
			if group[i] > 0 { // else the record that it repeats is missing
				c.counts[group[i]-1] += uint64(x.Count)
			}
		}
		for i := range l {
			c.recent[e.World][(x.First+n-l+i)%translog.MaxRepeatLength] = group[i]
		}
		c.again += n
		c.span(e.World, x.First, n, x.Time)
	case translog.GapEntry:
		c.gaps = append(c.gaps, gapStat{World: e.World, First: e.Gap.First, Count: e.Gap.Count})
	}
}

func (c *census) span(world int, first, n uint64, t int64) {
	w := &c.worlds[world]
	if w.Records == 0 {
		w.First, w.Start = first, t
	}
	w.Records += n
	w.Last, w.End = first+n-1, t
	c.records += n
}

func (c *census) of(e *translog.Entry) counted {
	rec := &e.Record
	at := instance{e.World, rec.Ref.Machine, rec.Ref.Slot}
	x := counted{kind: rec.Kind, machine: rec.Ref.Machine, event: rec.Event, row: rec.Row, call: machine.NoCall, refusal: rec.Refusal, reason: rec.Reason}
	switch rec.Kind {
	case machine.Issued:
		c.calls[at] = rec.Call
	case machine.Settled, machine.Holed:
		x.call = rec.Call
		if call, ok := c.calls[at]; ok && x.call == machine.NoCall {
			x.call = call
		}
		x.outcome, x.code = rec.Result.Outcome, rec.Result.Code
	case machine.Rejected:
		if rec.Refusal == machine.ByJoint {
			x.by, x.byEvent = rec.By.Machine, rec.ByEvent
		}
	}
	return x
}

// sum adds up counts by some key of what was counted, most first. A list
// without anything in it is a list for scripts too.
func sum[K comparable, T any](c *census, key func(counted) (K, bool), compare func(a, b K) int, tallied func(K, uint64) T) []T {
	counts := map[K]uint64{}
	for x, i := range c.kinds {
		if k, ok := key(x); ok {
			counts[k] += c.counts[i]
		}
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), compare(a, b))
	})
	out := make([]T, 0, len(keys))
	for _, k := range keys {
		out = append(out, tallied(k, counts[k]))
	}
	return out
}

func (c *census) stat(l *logFile, ended error) *logStat {
	h := l.Header()
	st := &logStat{
		Log: l.name, Format: l.Format().String(), Schema: h.Schema, Rules: h.Rules,
		Records: c.records, Entries: c.entries, Repeated: c.again, Lost: l.lost, Closed: l.Closed(),
		Worlds: c.worlds, Gaps: c.gaps,
	}
	if torn := asTorn(ended); torn != nil {
		st.Torn = &tornStat{Offset: torn.Place.Offset, Line: torn.Place.Line, Tail: torn.Tail, Zeros: torn.Zeros}
	} else if ended != io.EOF {
		st.Damage = ended.Error()
	}
	named := func(name string, n uint64) tally { return tally{name, n} }
	st.Kinds = sum(c, func(x counted) (string, bool) { return x.kind.String(), true }, cmp.Compare[string], named)
	st.Machines = sum(c, func(x counted) (string, bool) {
		return c.machineName(x.machine), x.kind != machine.Reserved // which is of none
	}, cmp.Compare[string], named)
	st.Rows = sum(c, c.rowOf, func(a, b rowTally) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.From, b.From), cmp.Compare(a.Row, b.Row))
	}, func(t rowTally, n uint64) rowTally { t.Count = n; return t })
	st.Outcomes = sum(c, c.callOf, func(a, b callTally) int {
		return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Code, b.Code))
	}, func(t callTally, n uint64) callTally { t.Count = n; return t })
	st.Refusals = sum(c, c.whyOf, func(a, b whyTally) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Event, b.Event), cmp.Compare(a.Why, b.Why))
	}, func(t whyTally, n uint64) whyTally { t.Count = n; return t })
	return st
}

func (c *census) machineName(id machine.MachineID) string {
	if m := c.n.machine(id); m != nil {
		return printable(m.Name)
	}
	return "#" + strconv.Itoa(int(id))
}

// rowOf counts a row when it is chosen.
func (c *census) rowOf(x counted) (rowTally, bool) {
	row := c.n.row(x.machine, x.row)
	if row == nil || x.kind == machine.Settled || x.kind == machine.Holed {
		return rowTally{}, false
	}
	return rowTally{Machine: c.machineName(x.machine), From: c.n.state(x.machine, row.From), Row: printable(row.ID)}, true
}

func (c *census) callOf(x counted) (callTally, bool) {
	if x.kind != machine.Settled && x.kind != machine.Holed {
		return callTally{}, false
	}
	name := "(not in this log)"
	if x.call != machine.NoCall {
		name = c.n.call(x.call)
	}
	return callTally{Command: name, Outcome: x.outcome.String(), Code: x.code}, true
}

func (c *census) whyOf(x counted) (whyTally, bool) {
	if x.kind != machine.Rejected {
		return whyTally{}, false
	}
	rec := machine.Record{Refusal: x.refusal, Reason: x.reason, By: machine.Ref{Machine: x.by}, ByEvent: x.byEvent}
	return whyTally{Machine: c.machineName(x.machine), Event: c.n.event(x.machine, x.event), Why: c.n.blame(&rec)}, true
}

func (a *app) printStat(st *logStat) {
	s := a.styled()
	rows := [][]string{
		{"log", printable(st.Log)},
		{"format", fmt.Sprintf("%s, schema %d", st.Format, st.Schema)},
		{"rules", st.Rules},
		{"records", fmt.Sprintf("%d, %d of them in repeats; %d entries", st.Records, st.Repeated, st.Entries)},
	}
	switch {
	case st.Torn != nil:
		what := "of an incomplete entry"
		if st.Torn.Zeros {
			what = "of zeros"
		}
		rows = append(rows, []string{"end", s.yellow(fmt.Sprintf("torn at byte %d: %d bytes %s follow", st.Torn.Offset, st.Torn.Tail, what))})
	case st.Damage != "":
		rows = append(rows, []string{"end", s.red("damaged: what follows is not counted")})
	case !st.Closed:
		rows = append(rows, []string{"end", s.yellow("never closed")})
	default:
		rows = append(rows, []string{"end", "closed by its writer"})
	}
	if st.Lost > 0 {
		rows = append(rows, []string{"lost", s.yellow(plural(st.Lost, "record"))})
	}
	a.out.table("", rows)

	section := func(title string, rows [][]string) {
		if len(rows) > 0 {
			a.out.println("")
			a.out.println(s.bold(title))
			a.out.table("  ", rows)
		}
	}
	rows = nil
	for _, w := range st.Worlds {
		if w.Records == 0 {
			rows = append(rows, []string{strconv.Itoa(w.World), w.Name, "no records"})
			continue
		}
		rows = append(rows, []string{
			strconv.Itoa(w.World), w.Name, plural(w.Records, "record"),
			fmt.Sprintf("seq %d..%d", w.First, w.Last), clock(w.Start) + " to " + clock(w.End),
		})
	}
	section("Worlds", rows)
	rows = nil
	for _, g := range st.Gaps {
		rows = append(rows, []string{fmt.Sprintf("world %d", g.World), fmt.Sprintf("seq %d..%d", g.First, g.First+g.Count-1), plural(g.Count, "record")})
	}
	section("Gaps", rows)
	section("Kinds", tallies(st.Kinds))
	section("Machines", tallies(st.Machines))
	rows = nil
	for _, r := range st.Rows {
		rows = append(rows, []string{count(r.Count), r.Machine, r.Row, s.dim("from " + r.From)})
	}
	section("Rows", rows)
	rows = nil
	for _, c := range st.Outcomes {
		what := c.Outcome
		if c.Code != 0 {
			what += fmt.Sprintf(" code %d", c.Code)
		}
		if c.Outcome != machine.OK.String() {
			what = s.red(what)
		}
		rows = append(rows, []string{count(c.Count), c.Command, what})
	}
	section("Answers of commands", rows)
	rows = nil
	for _, w := range st.Refusals {
		rows = append(rows, []string{count(w.Count), w.Machine, w.Event, s.yellow(w.Why)})
	}
	section("Refusals", rows)
}

func tallies(ts []tally) [][]string {
	var rows [][]string
	for _, t := range ts {
		rows = append(rows, []string{count(t.Count), t.Name})
	}
	return rows
}

// count prints a number so that a column of them is aligned.
func count(n uint64) string { return fmt.Sprintf("%8d", n) }
