package promela

import (
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Fault is a mistake in the rules, made on purpose, that both searches must
// find.
type Fault struct {
	// Name says what the rules get wrong, Source which clauses forbid it.
	Name, Source string
	// Shape is the smallest model in which it shows.
	Shape Shape

	change func(defs []*machine.Definition)
}

// Rules compiles the lifecycles of the run model with the fault in them.
func (f *Fault) Rules(defs []*machine.Definition) (*machine.Rules, error) {
	return RunRules(defs, f.change)
}

// The shapes of faults: as little as each needs.
var (
	oneRun     = Shape{Name: "one run", Slots: 1, Runs: 1, Depth: 4, Faulty: true}
	oneToken   = Shape{Name: "one run, one token", Slots: 2, Runs: 1, Tokens: 1, Depth: 4}
	twoTokens  = Shape{Name: "one run, two tokens", Slots: 2, Runs: 1, Tokens: 2, Depth: 4}
	resetToken = Shape{Name: "one run, one token, a reset", Slots: 2, Runs: 1, Tokens: 1, Depth: 4, Faulty: true, Resets: 1}
	reused     = Shape{Name: "two runs on one slot", Slots: 1, Runs: 2, Depth: 4}
	joinOne    = Shape{Name: "one run, joined", Slots: 2, Runs: 1, Depth: 4, Join: true}
	called     = Shape{Name: "one run of a caller", Slots: 1, Runs: 1, Depth: 4, Caller: true}
)

// Faults are the mistakes, in the order of the tables. The large one takes
// minutes.
func Faults(large bool) []Fault {
	twoRuns := Shape{Name: "two runs, one token", Slots: 2, Runs: 2, Tokens: 1, Depth: 4}
	out := []Fault{
		{
			Name: "a revocation gives back the count of another token", Source: "F135, F138", Shape: twoTokens,
			change: edit("token", "revoke", func(r *machine.Row) { r.Then[0].With = []string{"fence.drop(core_done, arming)"} }),
		},
		{
			Name: "the proof of another stream releases a wait", Source: "F135", Shape: oneToken,
			change: remove("token", "release-other"),
		},
		{
			Name: "a wait is counted before its boundary is recorded", Source: "F134", Shape: oneToken,
			change: edit("fence", "reserve-core", func(r *machine.Row) { r.Guard = "arg.boundary == core_done" }),
		},
		{
			Name: "a run is joined behind itself", Source: "F134", Shape: joinOne,
			change: both(remove("join", "plan-self"), edit("join", "plan", func(r *machine.Row) { r.Guard = "" })),
		},
		{
			Name: "a join that is not queued any more is revoked", Source: "F135, F142", Shape: joinOne,
			change: edit("join", "revoked-core", func(r *machine.Row) { r.Guard = "core_wait != no_wait && view.standing" }),
		},
		{
			Name: "a stale arming is accepted", Source: "F138", Shape: twoRuns,
			change: remove("fence", "reserve-arming"),
		},
		{
			Name: "a fence is let go with waits counted", Source: "F139", Shape: oneToken,
			change: remove("fence", "retire-held"),
		},
		{
			Name: "one boundary completes a run", Source: "F97, F98", Shape: oneRun,
			change: edit("fence", "retire-proven", func(r *machine.Row) {
				r.Guard = "quiet || core == complete || cpu == complete || core == missing && cpu == missing"
			}),
		},
		{
			Name: "a record that failed is graded as nothing submitted", Source: "F129, F143", Shape: oneRun,
			change: edit("fence", "unrecorded-core", func(r *machine.Row) { r.Then[0].Do = "core = missing" }),
		},
		{
			Name: "a stale identity completes a boundary", Source: "F122", Shape: reused,
			change: remove("fence", "reached-stale"),
		},
		{
			Name: "a verified reset leaves the counts", Source: "F136, F140", Shape: resetToken,
			change: edit("fence", "abandon", func(r *machine.Row) {
				r.Then[0].Do = strings.ReplaceAll(r.Then[0].Do, "; core_refs = 0; cpu_refs = 0", "")
			}),
		},
		{
			Name: "a wait that was refused gives back what a reset took", Source: "F140", Shape: resetToken,
			change: edit("token", "enqueue", func(r *machine.Row) {
				r.Then = slices.DeleteFunc(slices.Clone(r.Then), func(t machine.Target) bool { return t.When == "!view.current" })
			}),
		},
		{
			Name: "a caller's order ends while its wait is counted", Source: "F29, F36", Shape: called,
			change: both(remove("caller_order", "end-held"), edit("caller_order", "end", func(r *machine.Row) { r.Guard = "" })),
		},
	}
	if large {
		out = append(out, Fault{
			Name: "two runs are joined behind one another", Source: "F134", Shape: Shape{Name: "two joined runs", Slots: 2, Runs: 2, Depth: 4, Join: true},
			change: remove("join", "cycle"),
		})
	}
	return out
}

func both(changes ...func([]*machine.Definition)) func([]*machine.Definition) {
	return func(defs []*machine.Definition) {
		for _, c := range changes {
			c(defs)
		}
	}
}

// edit changes a row; it panics if there is none, for a fault that is not made
// would be looked for in vain.
func edit(lifecycle, id string, change func(*machine.Row)) func([]*machine.Definition) {
	return func(defs []*machine.Definition) {
		d, i := find(defs, lifecycle, id)
		change(&d.Rows[i])
	}
}

func remove(lifecycle, id string) func([]*machine.Definition) {
	return func(defs []*machine.Definition) {
		d, i := find(defs, lifecycle, id)
		d.Rows = slices.Delete(d.Rows, i, i+1)
	}
}

func find(defs []*machine.Definition, lifecycle, id string) (*machine.Definition, int) {
	for _, d := range defs {
		if d.Name != lifecycle {
			continue
		}
		if i := slices.IndexFunc(d.Rows, func(r machine.Row) bool { return r.ID == id }); i >= 0 {
			return d, i
		}
	}
	panic("promela: there is no row " + id + " of " + lifecycle)
}
