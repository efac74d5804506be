package states

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

func TestOneRun(t *testing.T) {
	dev, err := sim.New(sim.Config{Kernels: []sim.KernelSpec{
		{Class: backend.AICore, Duration: 40 * time.Microsecond},
		{Class: backend.AICPU, Duration: 50 * time.Microsecond},
	}})
	require.NoError(t, err)
	l, err := NewLane(Config{Backend: dev, Recorder: printer{t}})
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, l.Open(ctx))
	r, err := l.Prepare(ctx, Work{Core: 1, CPU: 2})
	require.NoError(t, err)
	rc, err := r.Launch(ctx)
	require.NoError(t, err)
	t.Log(rc)
	st, err := r.Poll(ctx)
	require.NoError(t, err)
	require.Equal(t, backend.NotReady, st)
	require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	require.ErrorIs(t, r.Wait(ctx), ErrStaleIdentity)
	require.NoError(t, l.Close(ctx))
}

type printer struct{ t *testing.T }

func (p printer) Record(r *machine.Record) {
	rules := Rules()
	m := rules.At(r.Ref.Machine)
	p.t.Logf("%3d %-6s %-5s %-12s %-12s %-16s %s -> %s %s %v %s", r.Seq, r.Kind, r.Via, rules.RefName(r.Ref), m.EventName(r.Event), m.RowID(r.Row), m.StateName(r.From), m.StateName(r.To), rules.CallName(r.Call), r.Result.Outcome, rules.ReasonAt(r.Reason))
}

// A façade fires the event that starts an operation without looking it up, so
// rules that have none are refused when the lane is made.
func TestLaneRefusesRulesWithoutAStart(t *testing.T) {
	defs := Definitions()
	for _, d := range defs {
		if d.Name != "poll" {
			continue
		}
		for i := range d.Events {
			if d.Events[i].Name == "start" {
				d.Events[i].Name = "begin"
			}
		}
		for i := range d.Rows {
			if d.Rows[i].Event == "start" {
				d.Rows[i].Event = "begin"
			}
		}
	}
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = NewLane(Config{Backend: dev, Rules: machine.MustCompile(defs...)})
	require.ErrorContains(t, err, `machine "poll" has no event start`)
}
