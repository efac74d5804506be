package main

import (
	"fmt"
	"sync"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// inspection is what replay --invariants prints: what does not hold, and how each
// sentence stands.
type inspection struct {
	// Holds: nothing is broken. What is unknown is no finding.
	Holds bool `json:"holds"`
	// Evaluated counts predicates, once for each step of a world.
	Evaluated int            `json:"evaluated"`
	Broken    []brokenAbout  `json:"broken"`
	Standings []standsAbout  `json:"standings"`
	Verdicts  map[string]int `json:"verdicts"`
}

type brokenAbout struct {
	Invariant string `json:"invariant"`
	Sentence  string `json:"sentence"`
	Source    string `json:"source"`
	World     int    `json:"world"`
	Seq       uint64 `json:"seq"`
	Record    string `json:"record"`
	Detail    string `json:"detail"`
}

type standsAbout struct {
	World     int    `json:"world"`
	Invariant string `json:"invariant"`
	Verdict   string `json:"verdict"`
	Evaluated uint64 `json:"evaluated"`
	Broken    uint64 `json:"broken"`
	Why       string `json:"why,omitempty"`
}

// mostBroken is how many findings are told one by one; the standings count all.
const mostBroken = 100

// inspector holds the worlds of a log to the invariants while it is replayed.
type inspector struct {
	text   func(*machine.Record) string
	worlds []*inspected
	broken []brokenAbout
}

// inspected is one world, with the records of the step that is not checked yet.
type inspected struct {
	observer invariants.Observer
	step     []machine.Record
}

func newInspector(rules *machine.Rules) *inspector {
	// The names are looked up when there is something to tell.
	header := sync.OnceValues(func() (*translog.Header, error) { return translog.HeaderOf(rules) })
	return &inspector{text: func(rec *machine.Record) string {
		h, err := header()
		if err != nil {
			return ""
		}
		return h.Text(rec)
	}}
}

// look takes the next record of a world.
func (x *inspector) look(world int, w *machine.World, rec *machine.Record) {
	for len(x.worlds) <= world {
		x.worlds = append(x.worlds, &inspected{})
	}
	in := x.worlds[world]
	x.tell(world, in, in.observer.Record(w, rec))
	if rec.Via != machine.ViaJoint {
		in.step = in.step[:0]
	}
	in.step = append(in.step, *rec)
}

// tell keeps what the step before broke, with the record that did.
func (x *inspector) tell(world int, in *inspected, found []*invariants.Finding) {
	for _, f := range found {
		if len(x.broken) == mostBroken {
			return
		}
		b := brokenAbout{Invariant: f.Invariant.ID, Sentence: f.Invariant.Sentence, Source: f.Invariant.Source, World: world, Seq: f.Seq, Detail: f.Detail}
		for i := range in.step {
			// A world is looked at after the last record of its step.
			if r := &in.step[i]; r.Seq == f.Seq || i == len(in.step)-1 && b.Record == "" {
				b.Record = x.text(r)
			}
		}
		x.broken = append(x.broken, b)
	}
}

// end checks what came last and says how each invariant stands.
func (x *inspector) end() *inspection {
	out := &inspection{Broken: []brokenAbout{}, Standings: []standsAbout{}, Verdicts: map[string]int{}}
	for n, in := range x.worlds {
		x.tell(n, in, in.observer.Flush())
		out.Evaluated += in.observer.Checks
		for _, s := range in.observer.Standings() {
			out.Verdicts[s.Verdict.String()]++
			out.Standings = append(out.Standings, standsAbout{n, s.Invariant.ID, s.Verdict.String(), s.Evaluated, s.Broken, s.Why})
		}
	}
	out.Broken = append(out.Broken, x.broken...)
	out.Holds = len(out.Broken) == 0
	return out
}

// printInvariants prints what does not hold, and what is unknown.
func (a *app) printInvariants(x *inspection) {
	s := a.styled()
	a.out.println("")
	for _, b := range x.Broken {
		a.out.println(s.red(fmt.Sprintf("%s, world %d: %s (%s)", b.Invariant, b.World, b.Sentence, b.Source)))
		a.out.println("  " + printable(b.Detail))
		a.out.println("  " + printable(b.Record))
	}
	if len(x.Broken) == mostBroken {
		a.out.println(s.yellow(fmt.Sprintf("more than %d findings: the rest are counted only", mostBroken-1)))
	}
	var unknown [][]string
	for _, st := range x.Standings {
		if st.Verdict == invariants.Unknown.String() {
			unknown = append(unknown, []string{st.Invariant, fmt.Sprintf("world %d", st.World), printable(st.Why)})
		}
	}
	if len(unknown) > 0 {
		a.out.println(s.yellow("Unknown, which is neither a pass nor a finding:"))
		a.out.table("  ", unknown)
	}
	count := func(v invariants.Verdict) int { return x.Verdicts[v.String()] }
	text := fmt.Sprintf("invariants: %d hold, %d broken, %d unknown, %d of other rules; %d predicates evaluated",
		count(invariants.Holds), count(invariants.Broken), count(invariants.Unknown), count(invariants.Vacuous), x.Evaluated)
	if x.Holds {
		a.out.println(s.green(text))
		return
	}
	a.out.println(s.red(text))
}
