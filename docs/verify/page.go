package main

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/invariants/explore"
)

// curve is how many states there are as something grows.
type curve struct {
	about  string
	points []explored
}

var curveBounds = []struct {
	about  string
	bounds []string
}{
	{"what each feature adds to one run in one slot", []string{
		"runs=1", "runs=1 async", "runs=1 records", "runs=1 caller", "runs=1 polls=1", "runs=1 expiries=1", "runs=1 spare=1", "runs=1 close",
		"runs=1 strangers", "runs=1 threads=2", "runs=1 faults=1", "runs=1 faults=1 recoveries=1 spare=1", "opening runs=1",
	}},
	{"how many runs", []string{"runs=1 polls=1 faults=1", "runs=2 polls=1 faults=1", "runs=3 polls=1 faults=1"}},
	{"how many slots", []string{
		"runs=2 slots=1 submit caller", "runs=2 slots=2 depth=2 submit caller", "runs=3 slots=3 depth=3 submit caller", "runs=4 slots=4 depth=4 submit caller",
	}},
	{"how many operations at a time", []string{"runs=1 polls=2 spare=1", "runs=1 polls=2 spare=1 threads=2", "runs=1 polls=2 spare=1 threads=3"}},
	{"how many faults", []string{
		"runs=1 spare=1 recoveries=1", "runs=1 spare=1 recoveries=1 faults=1", "runs=1 spare=1 recoveries=1 faults=2", "runs=1 spare=1 recoveries=1 faults=3",
	}},
}

// line says in short what came of it.
func (e *explored) line() string {
	r := e.result
	return fmt.Sprintf("%s states, %s edges, %d moves deep, %s, %s states/s, %.1f bytes a state: %s",
		count(r.States), count(r.Edges), r.Deepest, spent(r.Elapsed), count(uint64(rate(r))), r.BytesPerState(), e.verdict())
}

func (e *explored) verdict() string {
	r := e.result
	switch {
	case len(r.Findings) > 0:
		return fmt.Sprintf("%s after %d moves", r.Findings[0].Finding.Kind, len(r.Findings[0].Moves))
	case !r.Finished:
		return fmt.Sprintf("**not finished**: %s states wait (%s)", count(r.Frontier), r.Stopped)
	}
	return "holds"
}

func rate(r *explore.Result) float64 { return float64(r.States) / max(r.Elapsed.Seconds(), 1e-3) }

func count(n uint64) string { return humanize.Comma(int64(n)) }

func spent(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second / 10).String()
}

const head = `# Verification

What ` + "`make explore`" + ` visited: each model is a host, its lane and a simulated device that move by choices
(package ` + "`invariants/model`" + `), within the bounds that it states. Every state within them is visited, each step of the rules is
held against %d invariants ([invariants.md](invariants.md)), and these are findings too:

- **device**: freed memory, a recorded event or a foreign context is misused;
- **verdict**: a run succeeded because the device was asked, and a kernel of it had failed;
- **deadlock**: nothing can happen any more and an operation is under way;
- **unfinished**: nothing can happen any more, no fault struck, and a run is not finalized or not admitted;
- **unranked**: a step that does not bring the end nearer. Each state has a rank: what the host has left to do, the weight of the
  events and commands under way, the calls under way, what the device has left to do. Every move that changes a state must lower
  it. So there is no way to go on for ever, and what holds where nothing can happen any more holds in the end;
- **hole**, **refused**: an answer that no target takes; an event that the rules send themselves and nobody answers for;
- **intruder**: a foreign process, or a stale identity, got something.

States are told apart by 128-bit fingerprints of their canonical form: identities by first appearance, slots in no order. The
chance that two states share one is at most states²/2¹²⁹.

Bounds are written as ` + "`runfence explore`" + ` and the scenarios' ` + "`model begin`" + ` read them. Made with %s on %d processors (%s/%s);
times are of one run there, beside whatever else it did.

`

func write(all, answers []explored, curves []curve, limit time.Duration) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, head, len(invariants.All()), runtime.Version(), runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH)
	b.WriteString("## Models\n\n| model | bounds | states | edges | moves to the farthest | time | states a second | bytes a state | verdict |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range all {
		e := &all[i]
		r := e.result
		fmt.Fprintf(&b, "| **%s**: %s | `%s` | %s | %s | %d | %s | %s | %.1f | %s |\n",
			e.Name, e.About, e.Bounds, count(r.States), count(r.Edges), r.Deepest, spent(r.Elapsed), count(uint64(rate(r))), r.BytesPerState(), e.verdict())
	}
	largest(&b, all, limit)
	b.WriteString("## Rules against any answers\n\nThe same rules without a device: whatever call is in flight may be answered in every way that the rules can tell apart,\nas often as the model says in one that is not hoped for. So they are visited in more states than any device brings them to.\n\n| model | unhoped for | states | edges | time | verdict |\n|---|---|---|---|---|---|\n")
	for i := range answers {
		e := &answers[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.Name, e.About, count(e.result.States), count(e.result.Edges), spent(e.result.Elapsed), e.verdict())
	}
	b.WriteString("\n")
	b.WriteString("## How the number of states grows\n\n")
	for _, c := range curves {
		fmt.Fprintf(&b, "By %s:\n\n| bounds | states | edges | time | verdict |\n|---|---|---|---|---|\n", c.about)
		for i := range c.points {
			e := &c.points[i]
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Bounds, count(e.result.States), count(e.result.Edges), spent(e.result.Elapsed), e.verdict())
		}
		b.WriteString("\n")
	}
	rows(&b, all)
	return b.Bytes()
}

// largest names the largest model that was finished.
func largest(b *bytes.Buffer, all []explored, limit time.Duration) {
	var most *explored
	worst := 0.0
	for i := range all {
		e := &all[i]
		worst = max(worst, e.result.CollisionBound())
		if e.result.Finished && (most == nil || e.result.States > most.result.States) {
			most = e
		}
	}
	if most == nil {
		return
	}
	fmt.Fprintf(b, "\nA model is given up after %v. The largest that was finished is **%s**, `%s`: %s states in %s.\n", limit, most.Name, most.Bounds, count(most.result.States), spent(most.result.Elapsed))
	fmt.Fprintf(b, "The chance that any of these searches took two states for one is at most 2^%.0f for the largest.\n\n", math.Log2(worst))
}

// rows tells which events no model ever let happen.
func rows(b *bytes.Buffer, all []explored) {
	never := map[string]int{}
	for i := range all {
		for _, r := range all[i].result.NeverFired {
			never[r]++
		}
	}
	names := all[0].rows
	var left []string
	for _, r := range names {
		if never[r] == len(all) {
			left = append(left, r)
		}
	}
	fmt.Fprintf(b, "## Rows\n\nThe models took %d of the %d rows of a lane's lifecycles. Those that none took are refusals that a host which goes through its\nlane is never given, and what lies outside of these models: callables, the mode latch, packets. They are taken by scenarios and by\nexplorations of single lifecycles. By machine:\n\n| machine | rows that no model took |\n|---|---|\n", len(names)-len(left), len(names))
	by := map[string][]string{}
	for _, r := range left {
		m, row, _ := strings.Cut(r, "/")
		by[m] = append(by[m], "`"+row+"`")
	}
	var machines []string
	for m := range by {
		machines = append(machines, m)
	}
	slices.Sort(machines)
	for _, m := range machines {
		fmt.Fprintf(b, "| `%s` | %s |\n", m, strings.Join(by[m], " "))
	}
}
