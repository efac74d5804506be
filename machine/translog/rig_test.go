package translog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// The rig: a run that takes a fence along, submits, polls and finishes, with a
// value of every type somewhere in its records.

func fact(name, ty string) machine.Fact { return machine.Fact{Name: name, Type: ty} }

func rig() []*machine.Definition {
	return []*machine.Definition{
		{
			Name: "run", Pool: "slot",
			States: []machine.State{{Name: "idle"}, {Name: "armed"}, {Name: "hot, ☂"}, {Name: "done", Terminal: true}},
			Events: []machine.Event{
				{Name: "arm", Args: []machine.Fact{fact("epoch", "id run_epoch"), fact("on", "ref fence"), fact("mode", "enum eager|lazy"), fact("limit", "int 1000000"), fact("seed", "code"), fact("quiet", "bool")}},
				{Name: "launch"},
				{Name: "poll"},
				{Name: "touch"},
				{Name: "finish"},
			},
			Facts:    []machine.Fact{fact("epoch", "id run_epoch"), fact("on", "ref fence"), fact("mode", "enum eager|lazy"), fact("polls", "int 1000000"), fact("code", "code"), fact("touched", "int 3")},
			Identity: []string{"epoch", "on", "mode"},
			Views:    []machine.View{{Name: "held", Expr: "on.held"}, {Name: "busy", Expr: "any(run, polls != 0)"}},
			Rows: []machine.Row{
				{ID: "arm", From: "idle", Event: "arm", Guard: "arg.epoch != none && !arg.quiet", Then: []machine.Target{{To: "armed", Do: "epoch = arg.epoch; on = arg.on; mode = arg.mode", With: []string{"on.take()"}}}},
				{ID: "arm-no", From: "idle", Event: "arm", Guard: "else", Refuse: "wants an epoch"},
				{ID: "launch", From: "armed", Event: "launch", Guard: "view.held < 2 || view.busy", Command: "Submit(epoch, on, mode, state, polls, code)", Then: []machine.Target{
					{On: "ok", To: "hot, ☂", Do: "code = res.code"},
					{On: "refused", Error: "not attempted"},
					{On: "failed timedout panicked", When: "res.last == 0", Do: "code = res.code", Error: "maybe \"attempted\""},
					{On: "failed timedout panicked", Do: "code = res.last", Error: "maybe \"attempted\""},
				}},
				{ID: "launch-no", From: "armed", Event: "launch", Guard: "else", Refuse: "the fence is held too often"},
				{ID: "poll", From: "hot, ☂", Event: "poll", Command: "Query(epoch)", Then: []machine.Target{
					{On: "ok", When: "res.value == 1", To: "done", Emit: []string{"self.finish()", "log.note(epoch, res.code)"}},
					{On: "ok"},
					{Error: "poll failed"},
				}},
				{ID: "touch", From: "hot, ☂▸poll", Event: "touch", Then: []machine.Target{{Do: "touched++"}}},
				{ID: "touch-not", From: "hot, ☂", Event: "touch", Refuse: "only beside a poll"},
				{ID: "finish", From: "done", Event: "finish", Refuse: "has finished"},
			},
		},
		{
			Name: "fence", Pool: "fence",
			States: []machine.State{{Name: "open"}},
			Events: []machine.Event{{Name: "take"}},
			Facts:  []machine.Fact{fact("held", "int 2")},
			Rows:   []machine.Row{{ID: "take", From: "open", Event: "take", Then: []machine.Target{{Do: "held++"}}}},
		},
		{
			Name:     "log",
			States:   []machine.State{{Name: "on"}},
			Events:   []machine.Event{{Name: "note", Args: []machine.Fact{fact("epoch", "id run_epoch"), fact("code", "code")}}, {Name: "mint"}},
			Facts:    []machine.Fact{fact("token", "id token")},
			Identity: []string{"token"},
			Rows: []machine.Row{
				{ID: "note", From: "on", Event: "note", Then: []machine.Target{{Code: "arg.code"}}},
				{ID: "mint", From: "on", Event: "mint", Then: []machine.Target{{Do: "token = fresh()"}}},
			},
		},
	}
}

var (
	pools = map[string]int{"slot": 3, "fence": 2}
	bg    = context.Background()
)

func rigRules(t testing.TB) *machine.Rules {
	t.Helper()
	r, err := machine.Compile(rig()...)
	require.NoError(t, err)
	return r
}

// host drives a world of the rig.
type host struct {
	t     testing.TB
	d     *machine.Driver
	rules *machine.Rules
	// answer is what the next commands get.
	answer machine.Result
	inside func(*host) // called inside every command
}

func newHost(t testing.TB, rules *machine.Rules, rec machine.Recorder) *host {
	t.Helper()
	h := &host{t: t, rules: rules}
	var now int64
	w, err := rules.NewWorld(machine.Config{Name: "lane", Pools: pools, Recorder: rec, Clock: func() int64 { now += 10; return now }})
	require.NoError(t, err)
	h.d, err = machine.NewDriver(w, machine.DriverConfig{Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result {
		if h.inside != nil {
			h.inside(h)
		}
		return h.answer
	})})
	require.NoError(t, err)
	return h
}

func (h *host) ref(m string, slot int) machine.Ref { return h.d.Ref(h.rules.Machine(m).ID(), slot) }

// fire lets an event happen; refusals and failures are as good as anything for a log.
func (h *host) fire(r machine.Ref, ev string, args ...uint64) {
	h.t.Helper()
	_, err := h.d.Fire(bg, r, h.rules.At(r.Machine).MustEvent(ev), args...)
	var hole *machine.HoleError
	if err != nil && !errors.Is(err, machine.ErrRefused) && !errors.As(err, new(*machine.FailureError)) && !errors.As(err, &hole) {
		require.NoError(h.t, err)
	}
}

func (h *host) arm(slot int, epoch uint64) {
	h.fire(h.ref("run", slot), "arm", epoch, h.ref("fence", slot&1).Pack(), 1, 12, machine.CodeWord(-7), 0)
}

// session makes a log with every kind of record in it.
func (h *host) session() {
	run := h.ref("run", 0)
	h.d.View(func(w *machine.World) { w.ReserveIdentity("token", 41) })
	h.fire(h.ref("log", 0), "mint")
	h.arm(0, 0) // refused
	h.arm(0, 5)
	h.fire(run, "poll") // no row
	_, err := h.d.Fire(bg, run, 99)
	require.ErrorIs(h.t, err, machine.ErrBadArgument)
	_, err = h.d.Fire(bg, run, 0, 1, 2, 3)
	require.ErrorIs(h.t, err, machine.ErrBadArgument)
	_, err = h.d.Fire(bg, run, 0, 5, 5, 5, 5, 5, 5)
	require.ErrorIs(h.t, err, machine.ErrBadArgument)
	_, err = h.d.Fire(bg, machine.Ref{Machine: 77, Slot: 9, Gen: 3}, 2)
	require.ErrorIs(h.t, err, machine.ErrBadArgument)
	h.answer = machine.Result{Outcome: machine.Failed, Codes: machine.Codes{Code: 507899, Last: -3}}
	h.fire(run, "launch")
	h.answer = machine.Result{Outcome: machine.OK, Accepted: true, Value: 1 << 60}
	h.fire(run, "launch")
	h.fire(run, "touch") // refused by a row
	h.answer = machine.Result{}
	for range 5 {
		h.fire(run, "poll")
	}
	h.inside = func(h *host) { h.inside = nil; h.fire(run, "touch") }
	h.fire(run, "poll")
	h.answer = machine.Result{Value: 1, Codes: machine.Codes{Code: 3}}
	h.fire(run, "poll") // finish is emitted, and refused
	require.NoError(h.t, h.d.Drop(run))
	h.fire(run, "poll") // stale
	h.arm(0, 6)
	for i := range uint64(4) {
		h.arm(1, 7+i) // the fourth and on: refused
	}
	h.arm(2, 9) // refused by the fence, which is held twice
	h.arm(2, 10)
}

// record makes a log of a session.
func record(t testing.TB, o translog.Options) []byte {
	t.Helper()
	rules := rigRules(t)
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, o)
	require.NoError(t, err)
	newHost(t, rules, w.World("lane", pools, 0)).session()
	newHost(t, rules, w.World("other \"lane\" ☂", pools, 3)).arm(1, 1)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// readAll reads entries until the end or an error; places are left out.
func readAll(b []byte) ([]translog.Entry, error) {
	r, err := translog.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	var out []translog.Entry
	for {
		var e translog.Entry
		if err := r.Next(&e); err == io.EOF {
			return out, nil
		} else if err != nil {
			return out, err
		}
		e.Place = translog.Place{}
		out = append(out, e)
	}
}

func convert(t testing.TB, b []byte, f translog.Format) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, translog.Convert(&out, f, bytes.NewReader(b)))
	return out.Bytes()
}
