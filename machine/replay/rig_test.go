package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

// The rig: jobs that take a token of a gate along, submit, poll, and report to
// a desk when they are over.

func fact(name, ty string) machine.Fact { return machine.Fact{Name: name, Type: ty} }

func rig() []*machine.Definition {
	return []*machine.Definition{
		{
			Name: "job", Pool: "slot",
			States: []machine.State{{Name: "idle"}, {Name: "ready"}, {Name: "running"}, {Name: "done", Terminal: true}, {Name: "lost", Terminal: true}},
			Events: []machine.Event{
				{Name: "prepare", Args: []machine.Fact{fact("epoch", "id epoch"), fact("gate", "ref gate"), fact("size", "int 1000"), fact("mode", "enum eager|lazy"), fact("tag", "code"), fact("d1", "bool"), fact("d2", "bool"), fact("d3", "bool")}},
				{Name: "submit"},
				{Name: "poll"},
				{Name: "nudge"},
				{Name: "finish"},
			},
			Facts:    []machine.Fact{fact("epoch", "id epoch"), fact("gate", "ref gate"), fact("size", "int 1000"), fact("mode", "enum eager|lazy"), fact("fault", "code"), fact("nudges", "int 9")},
			Identity: []string{"epoch"},
			Views:    []machine.View{{Name: "held", Expr: "gate.held"}, {Name: "others", Expr: "count(job, state == \"running\")"}},
			Rows: []machine.Row{
				{ID: "prepare", From: "idle", Event: "prepare", Guard: "arg.epoch != none && arg.size > 0 && arg.size <= 512", Then: []machine.Target{{To: "ready", Do: "epoch = arg.epoch; gate = arg.gate; size = arg.size; mode = arg.mode", With: []string{"gate.enter(arg.epoch)"}}}},
				{ID: "prepare-no", From: "idle", Event: "prepare", Guard: "else", Refuse: "wants an epoch and a size"},
				{ID: "submit", From: "ready", Event: "submit", Guard: "view.held > 0 && view.others < 3", Command: "Submit(epoch, gate, size)", Then: []machine.Target{
					{On: "ok", To: "running"},
					{On: "refused", Error: "not attempted"},
					{On: "failed timedout panicked", To: "lost", Do: "fault = res.code", Emit: []string{"gate.leave()"}, Error: "may be attempted"},
				}},
				{ID: "submit-no", From: "ready", Event: "submit", Guard: "else", Refuse: "too many"},
				{ID: "poll", From: "running", Event: "poll", Command: "Query(epoch)", Then: []machine.Target{
					{On: "ok", When: "res.value == 1", To: "done", Emit: []string{"gate.leave()", "desk.report(epoch, fault)", "self.finish()"}},
					{On: "ok"},
					{To: "lost", Do: "fault = res.code", Emit: []string{"gate.leave()", "desk.report(epoch, fault)"}, Code: "res.code", Error: "poll failed"},
				}},
				{ID: "nudge", From: "running▸poll", Event: "nudge", Then: []machine.Target{{Do: "nudges++"}}},
				{ID: "nudge-no", From: "running", Event: "nudge", Refuse: "only beside a poll"},
				{ID: "finish", From: "done", Event: "finish", Refuse: "is over"},
			},
		},
		{
			Name: "gate", Pool: "gate",
			States: []machine.State{{Name: "open"}},
			Events: []machine.Event{{Name: "enter", Args: []machine.Fact{fact("epoch", "id epoch")}}, {Name: "leave"}},
			Facts:  []machine.Fact{fact("held", "int 2"), fact("last", "id epoch")},
			Rows: []machine.Row{
				{ID: "enter", From: "open", Event: "enter", Then: []machine.Target{{Do: "held++; last = arg.epoch"}}},
				{ID: "leave", From: "open", Event: "leave", Then: []machine.Target{{Do: "held--"}}},
			},
		},
		{
			Name:   "desk",
			States: []machine.State{{Name: "on"}},
			Events: []machine.Event{{Name: "report", Args: []machine.Fact{fact("epoch", "id epoch"), fact("fault", "code")}}, {Name: "mint"}},
			Facts:  []machine.Fact{fact("token", "id token"), fact("reports", "int 100000"), fact("fault", "code")},
			Rows: []machine.Row{
				{ID: "report", From: "on", Event: "report", Then: []machine.Target{{Do: "reports++; fault = arg.fault; token = fresh()", Emit: []string{"self.mint()"}}}},
				{ID: "mint", From: "on", Event: "mint", Then: []machine.Target{{Do: "token = fresh()"}}},
			},
		},
	}
}

var (
	pools = map[string]int{"slot": 4, "gate": 2}
	bg    = context.Background()
)

func compiled(t testing.TB, defs ...*machine.Definition) *machine.Rules {
	t.Helper()
	r, err := machine.Compile(defs...)
	require.NoError(t, err)
	return r
}

// host drives a world of the rig.
type host struct {
	t      testing.TB
	d      *machine.Driver
	rules  *machine.Rules
	answer machine.Result
	inside func() // called once inside the next command
}

func newHost(t testing.TB, rules *machine.Rules, rec machine.Recorder) *host {
	t.Helper()
	return newHostWithQueue(t, rules, rec, 0)
}

func newHostWithQueue(t testing.TB, rules *machine.Rules, rec machine.Recorder, queue int) *host {
	t.Helper()
	h := &host{t: t, rules: rules}
	var now int64
	w, err := rules.NewWorld(machine.Config{Name: "lane", Pools: pools, Queue: queue, Recorder: rec, Clock: func() int64 { now += 10; return now }})
	require.NoError(t, err)
	h.d, err = machine.NewDriver(w, machine.DriverConfig{Bound: 1, Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result {
		if f := h.inside; f != nil {
			h.inside = nil
			f()
		}
		return h.answer
	})})
	require.NoError(t, err)
	return h
}

func (h *host) ref(m string, slot int) machine.Ref { return h.d.Ref(h.rules.Machine(m).ID(), slot) }

// fire lets an event happen; refusals, failures, holes and giving up at once on
// a busy instance are as good as anything for a log.
func (h *host) fire(r machine.Ref, ev string, args ...uint64) {
	h.t.Helper()
	_, err := h.d.Fire(bg, r, h.rules.At(r.Machine).MustEvent(ev), args...)
	if err != nil && !errors.Is(err, machine.ErrRefused) && !errors.Is(err, machine.ErrBusy) && !errors.As(err, new(*machine.FailureError)) && !errors.As(err, new(*machine.HoleError)) {
		require.NoError(h.t, err)
	}
}

func (h *host) prepare(slot int, epoch, size uint64) {
	h.fire(h.ref("job", slot), "prepare", epoch, h.ref("gate", slot&1).Pack(), size, 1, 12, 0, 0, 0)
}

// job takes one job from start to end in a slot.
func (h *host) job(slot int, epoch uint64, polls int, end machine.Result) {
	h.answer = machine.Result{Outcome: machine.OK, Accepted: true}
	h.prepare(slot, epoch, 8)
	j := h.ref("job", slot)
	h.fire(j, "submit")
	h.answer = machine.Result{}
	for range polls {
		h.fire(j, "poll")
	}
	h.answer = end
	h.fire(j, "poll")
	h.fire(j, "poll") // refused: it is over
	require.NoError(h.t, h.d.Drop(j))
	h.fire(j, "nudge") // stale
}

var (
	well = machine.Result{Value: 1}
	ill  = machine.Result{Outcome: machine.Failed, Codes: machine.Codes{Code: 507018, Last: 507018}}
)

// session has a bit of everything.
func (h *host) session() {
	h.d.View(func(w *machine.World) { w.ReserveIdentity("token", 40) })
	h.job(0, 1, 4, well)
	h.prepare(1, 0, 8) // refused
	h.job(1, 2, 0, ill)
	h.prepare(0, 3, 8)
	h.prepare(2, 4, 8)
	h.prepare(2, 5, 8) // no row
	h.answer = machine.Result{Outcome: machine.TimedOut, Codes: machine.Codes{Code: 507047}}
	h.fire(h.ref("job", 2), "submit")
	h.answer = machine.Result{Outcome: machine.OK, Accepted: true}
	j := h.ref("job", 0)
	h.fire(j, "submit")
	h.answer = machine.Result{}
	h.inside = func() { h.fire(j, "nudge"); h.prepare(3, 6, 7) }
	h.fire(j, "poll")
	// One argument too many, and an event that is none.
	_, err := h.d.Fire(bg, h.ref("job", 1), 0, 9, h.ref("gate", 1).Pack(), 8, 1, 12, 0, 0, 0, 0)
	require.ErrorIs(h.t, err, machine.ErrBadArgument)
	_, err = h.d.Fire(bg, h.ref("job", 1), 77)
	require.ErrorIs(h.t, err, machine.ErrBadArgument)
	_, err = h.d.Fire(bg, machine.Ref{Machine: 99, Slot: 1}, 0)
	require.ErrorIs(h.t, err, machine.ErrBadArgument)
	h.fire(j, "nudge") // refused by a row
	h.prepare(1, 7, 8)
	h.fire(h.ref("job", 1), "submit")
}

// record makes a log of two worlds.
func record(t testing.TB, o translog.Options) []byte {
	t.Helper()
	rules := compiled(t, rig()...)
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, o)
	require.NoError(t, err)
	newHost(t, rules, w.World("lane", pools, 0)).session()
	newHost(t, rules, w.World("other", pools, 0)).job(0, 1, 2, well)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// edit rewrites a log entry by entry, with checksums that hold.
func edit(t testing.TB, log []byte, change func(es []translog.Entry) []translog.Entry) []byte {
	t.Helper()
	r, err := translog.NewReader(bytes.NewReader(log))
	require.NoError(t, err)
	var es []translog.Entry
	for {
		var e translog.Entry
		if err := r.Next(&e); err == io.EOF {
			break
		}
		require.NoError(t, err)
		es = append(es, e)
	}
	var b bytes.Buffer
	enc, err := translog.NewEncoder(&b, r.Format(), r.Header())
	require.NoError(t, err)
	for _, e := range change(es) {
		require.NoError(t, enc.Encode(&e))
	}
	require.NoError(t, enc.Flush())
	return b.Bytes()
}

// at finds the record of world 0 that is the n-th (from 0) of its kind to match.
func at(t testing.TB, es []translog.Entry, n int, match func(r *machine.Record) bool) int {
	t.Helper()
	for i := range es {
		if e := &es[i]; e.Kind == translog.RecordEntry && e.World == 0 && match(&e.Record) {
			if n == 0 {
				return i
			}
			n--
		}
	}
	require.Fail(t, "no such record")
	return 0
}

// pipe hides everything but Read.
type pipe struct{ io.Reader }

func run(log []byte, rules *machine.Rules, o replay.Options) (*replay.Result, error) {
	return replay.Run(bytes.NewReader(log), rules, o)
}
