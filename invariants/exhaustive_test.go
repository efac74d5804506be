package invariants

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// full explores with a bad answer on the way where the default has none: some
// 400,000 worlds, minutes of work. make explore sets it.
var full = flag.Bool("full", false, "explore the larger models with a bad answer on the way")

func budget() int {
	if *full {
		return 1
	}
	return 0
}

// An explorer of the rules alone, against a device that may answer anything:
// breadth first over what a host may start, what an operation does next, and
// every answer to every call in flight. It knows no device, so it visits more
// than any device does; what holds here holds on all of them.
type explorer struct {
	t     *testing.T
	rules *machine.Rules
	// hosts lists what a host may start in a world.
	hosts func(w *machine.World) []event
	most  int
	// budget bounds the bad answers on the way to a world.
	budget int

	seen   map[key]bool
	queue  []node
	states int
	steps  int
	fired  map[string]bool // machine/row
}

type key struct {
	machine.Fingerprint
	bad int
}

type node struct {
	w    *machine.World
	path *path
	// bad counts the answers so far that were not what was hoped for.
	bad int
}

type path struct {
	before *path
	what   string
}

func (p *path) String() string {
	var all []string
	for ; p != nil; p = p.before {
		all = append([]string{p.what}, all...)
	}
	return strings.Join(all, "\n")
}

type event struct {
	machine string
	slot    int
	name    string
	args    []uint64
}

type capture struct{ records []machine.Record }

func (c *capture) Record(r *machine.Record) { c.records = append(c.records, *r) }

const context, process = 77, 1

func (x *explorer) run(pools map[string]int, start func(w *machine.World) *machine.World) {
	w, err := x.rules.NewWorld(machine.Config{Name: "lane", Pools: pools})
	require.NoError(x.t, err)
	x.seen, x.fired = map[key]bool{}, map[string]bool{}
	x.visit(start(w), nil, "", 0)
	for len(x.queue) > 0 && x.states < x.most {
		n := x.queue[0]
		x.queue = x.queue[1:]
		x.expand(n)
	}
}

func (x *explorer) visit(w *machine.World, before *path, what string, bad int) {
	f := key{w.Fingerprint(nil), bad}
	if x.seen[f] {
		return
	}
	x.seen[f] = true
	x.states++
	p := &path{before, what}
	for _, finding := range Check(w) {
		x.t.Fatalf("%v\n%v", finding, p)
	}
	x.queue = append(x.queue, node{w, p, bad})
}

// try takes a step on a copy, checks it, and visits where it leads.
func (x *explorer) try(n node, what string, bad int, step func(w *machine.World) *machine.Step) {
	if bad += n.bad; bad > x.budget {
		return
	}
	w := n.w.Clone()
	c := &capture{}
	w.Observe(c)
	s := step(w)
	if s == nil {
		return
	}
	x.steps++
	w.Observe(nil)
	if s.Status == machine.Hole {
		x.t.Fatalf("a hole in the rules: %v\n%v\n%s", w.RefusalError(s), n.path, what)
	}
	for i := range c.records {
		r := &c.records[i]
		x.fired[x.rules.At(r.Ref.Machine).Name()+"/"+x.rules.At(r.Ref.Machine).RowID(r.Row)] = true
	}
	for _, finding := range CheckStep(n.w, w, c.records) {
		x.t.Fatalf("%v\n%v\n%s", finding, n.path, what)
	}
	// Submission looks at what came of the operations that it starts.
	if s.Status == machine.StepRefused && s.Root != s.Ref && x.rules.At(s.Root.Machine).Name() != "submit" {
		x.t.Fatalf("an emitted event is refused: %v\n%v\n%s", w.RefusalError(s), n.path, what)
	}
	x.visit(w, n.path, what, bad)
}

func (x *explorer) expand(n node) {
	for i := range n.w.Queued() {
		root := n.w.QueuedRoot(i)
		x.try(n, "next of "+x.rules.RefName(root), 0, func(w *machine.World) *machine.Step { return w.Next(root) })
	}
	for id := range x.rules.NumMachines() {
		m := x.rules.At(machine.MachineID(id))
		for slot := range n.w.Capacity(m.ID()) {
			ref := n.w.Ref(m.ID(), slot)
			if _, out, _ := n.w.State(ref); out {
				_, row, _ := strings.Cut(n.w.StateName(ref), "▸")
				for i, res := range answers(command(m, row)) {
					x.try(n, fmt.Sprintf("%s: %v %d", n.w.StateName(ref), res.Outcome, res.Value), min(i, 1), func(w *machine.World) *machine.Step { return w.Settle(ref, res) })
				}
			}
		}
	}
	for _, e := range x.hosts(n.w) {
		m := x.rules.Machine(e.machine)
		ref := n.w.Ref(m.ID(), e.slot)
		x.try(n, fmt.Sprintf("%s[%d] %s", e.machine, e.slot, e.name), 0, func(w *machine.World) *machine.Step {
			return w.Issue(ref, m.MustEvent(e.name), e.args...)
		})
	}
}

func command(m *machine.Machine, row string) string {
	for i := range m.Definition().Rows {
		if r := &m.Definition().Rows[i]; r.ID == row {
			name, _, _ := strings.Cut(r.Command, "(")
			return name
		}
	}
	return ""
}

// answers are the ways in which a call may end, as far as the rules can tell.
// The first is the one that is hoped for.
func answers(call string) []machine.Result {
	bad := []machine.Result{
		{Outcome: machine.Refused, Codes: machine.Codes{Code: 1}},
		{Outcome: machine.Failed, Codes: machine.Codes{Code: 2}},
		{Outcome: machine.TimedOut, Codes: machine.Codes{Code: 3}},
	}
	good := func(rs ...machine.Result) []machine.Result { return append(rs, bad...) }
	switch call {
	case "CurrentContext", "CreateContext":
		return []machine.Result{{Value: context}, {Value: context + 1}, bad[1]}
	case "PrepareRun", "CaptureStatus":
		return good(machine.Result{}, machine.Result{Value: 1})
	case "QueryCore", "QueryCPU", "QueryTail", "QueryCoreStream", "QueryCPUStream", "ResetDevice":
		return good(machine.Result{Value: 1}, machine.Result{})
	case "ReadRecord":
		return good(machine.Result{Value: 1}, machine.Result{}, machine.Result{Value: 1, Codes: machine.Codes{Code: 1}})
	case "RollBack":
		return good(machine.Result{Value: 1}, machine.Result{})
	case "RecordCore":
		return good(machine.Result{Value: 10})
	case "RecordCPU":
		return good(machine.Result{Value: 11})
	}
	return good(machine.Result{})
}

// opened brings a world to an open lane, everything going well.
func opened(t *testing.T, depth uint64) func(w *machine.World) *machine.World {
	return func(w *machine.World) *machine.World {
		r := w.Rules()
		one := func(m string) machine.Ref { return w.Ref(r.Machine(m).ID(), 0) }
		opening := one("opening")
		require.Equal(t, machine.Accepted, w.Issue(opening, r.Machine("opening").MustEvent("start"), process, 0, 0, 0, depth).Status)
		for range 20 {
			s := w.Next(opening)
			if s == nil {
				break
			}
			if s.Status == machine.InFlight {
				w.Settle(s.Ref, machine.Result{Value: context})
			}
		}
		require.Equal(t, "open", w.StateName(one("lane")))
		return w
	}
}

// identity reads the identity that the slot's run has, for a host that has its handle.
func identity(w *machine.World, slot int) []uint64 {
	m := w.Rules().Machine("run")
	ref := w.Ref(m.ID(), slot)
	out := []uint64{process}
	for _, f := range m.IdentityFacts() {
		v, _ := w.Fact(ref, f)
		out = append(out, v)
	}
	return out
}

func in(w *machine.World, name string, slot int, states ...string) bool {
	m := w.Rules().Machine(name)
	s, _, _ := w.State(w.Ref(m.ID(), slot))
	return slices.Contains(states, m.StateName(s))
}

// host is one that uses a slot in every order, an operation at a time.
func host(slot int, eager, async uint64) func(w *machine.World) []event {
	return func(w *machine.World) []event {
		// One operation of the host's at a time, but a poll beside a wait.
		if !in(w, "prepare", slot, "ready", "waiting") || !in(w, "finalize", slot, "ready") || !in(w, "recovery", 0, "ready", "unusable") {
			return nil
		}
		if !in(w, "launch", slot, "idle", "not started", "complete", "partial") || w.Queued() > 2 {
			return nil
		}
		id := identity(w, slot)
		var out []event
		switch {
		case in(w, "run", slot, "idle"):
			m := w.Rules().Machine("run")
			if ref := w.Ref(m.ID(), slot); ref.Gen < 2 {
				out = append(out, event{"prepare", slot, "start", []uint64{process, 1, eager, async}})
			}
			return out
		case in(w, "run", slot, "prepared"):
			m := w.Rules().Machine("run")
			permit, _ := w.Fact(w.Ref(m.ID(), slot), m.MustFact("permit"))
			out = append(out, event{"launch", slot, "start", append(id, permit)})
		case in(w, "prepare", slot, "waiting"):
			return []event{{"prepare", slot, "retry", id}, {"prepare", slot, "abort", id}}
		}
		if in(w, "drain", slot, "ready") {
			out = append(out, event{"drain", slot, "start", id})
		}
		if in(w, "poll", slot, "ready") {
			out = append(out, event{"poll", slot, "start", id})
		}
		out = append(out, event{"finalize", slot, "start", id})
		if in(w, "run", slot, "partial") {
			out = append(out, event{"recovery", 0, "start", []uint64{process}})
		}
		return out
	}
}

func explore(t *testing.T, pools map[string]int, depth uint64, budget, most int, hosts func(w *machine.World) []event) *explorer {
	t.Helper()
	x := &explorer{t: t, rules: states.Rules(), hosts: hosts, budget: budget, most: most}
	x.run(pools, opened(t, depth))
	t.Logf("%d worlds, %d steps, %d left, %d rows taken", x.states, x.steps, len(x.queue), len(x.fired))
	require.Empty(t, x.queue, "the bounds were not finished")
	return x
}

func pools(slots int) map[string]int {
	return map[string]int{"slot": slots, "token": 1, "callable": 1, "watched": 2 * slots}
}

func (x *explorer) took(rows ...string) {
	x.t.Helper()
	for _, r := range rows {
		require.True(x.t, x.fired[r], "%s was never taken", r)
	}
}

func TestEveryAnswerToAPlainRun(t *testing.T) {
	x := explore(t, pools(1), 1, 1, 200_000, host(0, 0, 0))
	x.took("outcome/certify", "outcome/diagnose", "recovery/swept", "run/broken", "run/drained", "finalize/release")
}

func TestEveryAnswerToACallersRun(t *testing.T) {
	x := explore(t, pools(1), 1, budget(), 400_000, host(0, 1, 1))
	x.took("caller_order/proven", "drain/tail_wait", "launch/record_tail")
	if *full {
		x.took("drain/caller_sync", "caller_order/unhold", "recovery/swept")
	}
}

// pair is a host that submits two runs, the second behind the first, and
// waits for and finalizes them in every order.
func pair(w *machine.World) []event {
	busy := func(slot int) bool {
		return !in(w, "submit", slot, "ready") || !in(w, "prepare", slot, "ready") || !in(w, "finalize", slot, "ready") ||
			!in(w, "launch", slot, "idle", "not started", "complete", "partial") || !in(w, "drain", slot, "ready")
	}
	if w.Queued() > 0 || busy(0) || busy(1) || !in(w, "recovery", 0, "ready", "unusable") {
		return nil
	}
	fence := func(slot int) uint64 { return w.Ref(w.Rules().Machine("fence").ID(), slot).Pack() }
	run := w.Ref(w.Rules().Machine("run").ID(), 0)
	drain := w.Ref(w.Rules().Machine("drain").ID(), 0)
	var out []event
	if in(w, "run", 0, "idle") && run.Gen == 0 {
		return []event{{"submit", 0, "start", []uint64{process, 1, 1, 0, 0, 0, 0, fence(0)}}}
	}
	if second := w.Ref(run.Machine, 1); in(w, "run", 1, "idle") && second.Gen == 0 {
		args := []uint64{process, 2, 1, 0, 0, 0, 0, fence(1)}
		if in(w, "run", 0, "launched", "partial") {
			args[4], args[5], args[6] = run.Pack(), fence(0), drain.Pack()
		}
		out = append(out, event{"submit", 1, "start", args})
	}
	for slot := range 2 {
		if in(w, "run", slot, "launched", "partial") {
			out = append(out, event{"drain", slot, "start", identity(w, slot)})
		}
		if in(w, "run", slot, "drained", "not started", "retired") {
			out = append(out, event{"finalize", slot, "start", identity(w, slot)})
		}
	}
	if in(w, "run", 0, "partial") || in(w, "run", 1, "partial") {
		out = append(out, event{"recovery", 0, "start", []uint64{process}})
	}
	return out
}

func TestEveryAnswerToTwoJoinedRuns(t *testing.T) {
	x := explore(t, pools(2), 2, budget(), 1_000_000, pair)
	x.took("join/reserve", "join/proven-core", "join/proven-cpu")
	if *full {
		x.took("recovery/swept", "join/revoked-cpu", "join/cancel-reserved")
	}
}
