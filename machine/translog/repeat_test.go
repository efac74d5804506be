package translog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// polls fires an event that is refused, n times.
func polls(t require.TestingT, in *machine.Instance, n int) {
	for range n {
		_, err := in.Fire(bg, 1)
		require.ErrorIs(t, err, machine.ErrRefused)
	}
}

func TestRepeatsAreBounded(t *testing.T) {
	var b bytes.Buffer
	w, rules := toggleWriter(t, &b, translog.Options{})
	q := newQuick(t, w, rules, "q")
	polls(t, q.in, 2*translog.MaxRepeatCount+6)
	require.NoError(t, w.Close())
	es, err := readAll(b.Bytes())
	require.NoError(t, err)
	var counts []int
	for _, e := range es {
		if e.Kind == translog.RepeatEntry {
			counts = append(counts, e.Repeat.Count)
		}
	}
	assert.Equal(t, []int{translog.MaxRepeatCount, translog.MaxRepeatCount, 5}, counts)
	recs, _ := expanded(es)
	sameRecords(t, q.tee.all, recs[0], nil)
}

// A repetition that is under way when everything must be written goes out as
// records, and what follows is in the middle of an operation.
func TestSyncInsideARepeatedOperation(t *testing.T) {
	for _, f := range formats {
		var b bytes.Buffer
		rules := machine.MustCompile(&machine.Definition{
			Name: "poller", States: []machine.State{{Name: "on"}}, Events: []machine.Event{{Name: "poll"}},
			Rows: []machine.Row{{ID: "poll", From: "on", Event: "poll", Command: "Query()", Then: []machine.Target{{Code: "res.code"}}}},
		})
		w, err := translog.NewWriter(&b, rules, translog.Options{Format: f})
		require.NoError(t, err)
		x := &tee{Recorder: w.World("w", nil, 0)}
		n := 0
		in, err := rules.NewInstance(machine.InstanceConfig{Recorder: x, Clock: func() int64 { n++; return int64(n) }, Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result {
			if n%7 == 5 {
				require.NoError(t, w.Sync())
				es, err := readAll(b.Bytes())
				require.NoError(t, err)
				recs, _ := expanded(es)
				require.Len(t, recs[0], len(x.all), "the issue of this very command is there")
			}
			return machine.Result{}
		})})
		require.NoError(t, err)
		for range 50 {
			_, err := in.Fire(bg, 0)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		recs, _ := expanded(es)
		sameRecords(t, x.all, recs[0], nil)
		other := translog.JSONLines - f
		assert.Equal(t, b.Bytes(), convert(t, convert(t, b.Bytes(), other), f))
	}
}

// A repeat has no gap before it or in it.
func TestRepeatNeedsTheNextSequence(t *testing.T) {
	var b bytes.Buffer
	w, _ := toggleWriter(t, &b, translog.Options{})
	rec := w.World("w", nil, 0)
	for _, seq := range []uint64{1, 2, 3, 9, 10, 12} {
		rec.Record(&machine.Record{Kind: machine.Rejected, Seq: seq, Row: machine.NoRowID, Call: machine.NoCall, Reason: machine.NoReasonID})
	}
	require.NoError(t, w.Close())
	es, err := readAll(b.Bytes())
	require.NoError(t, err)
	var got []string
	for _, e := range es[1:] {
		got = append(got, fmt.Sprint(e.Kind, " ", max(e.Record.Seq, e.Repeat.First), " ", e.Repeat.Count))
	}
	assert.Equal(t, []string{"record 1 0", "repeat 2 2", "record 9 0", "repeat 10 1", "record 12 0", "end 0 0"}, got)
}

// However operations repeat, break off and change, the log with repeats says
// what the log without them says.
func TestRepeatsSayWhatWasRecorded(t *testing.T) {
	rules := machine.MustCompile(rig()...)
	shortened := 0
	rapid.Check(t, func(t *rapid.T) {
		f := translog.Format(rapid.IntRange(0, 1).Draw(t, "format"))
		var b bytes.Buffer
		w, err := translog.NewWriter(&b, rules, translog.Options{Format: f})
		require.NoError(t, err)
		x := &tee{Recorder: w.World("w", nil, 0)}
		seq := uint64(0)
		shapes := [][]machine.Record{}
		for range rapid.IntRange(1, 3).Draw(t, "shapes") {
			var shape []machine.Record
			for i := range rapid.IntRange(1, 40).Draw(t, "length") {
				r := machine.Record{Kind: machine.Stepped, Via: machine.ViaQueue, Row: machine.NoRowID, Call: machine.NoCall, Reason: machine.NoReasonID}
				r.Event = machine.EventID(rapid.IntRange(0, 1).Draw(t, "event"))
				switch {
				case i == 0:
					r.Via = machine.ViaHost
				case rapid.Bool().Draw(t, "settles"):
					r.Kind, r.Via = machine.Settled, machine.ViaHost
				}
				shape = append(shape, r)
			}
			shapes = append(shapes, shape)
		}
		for range rapid.IntRange(1, 20).Draw(t, "runs") {
			shape := shapes[rapid.IntRange(0, len(shapes)-1).Draw(t, "shape")]
			for range rapid.IntRange(1, 5).Draw(t, "times") {
				first := seq + 1
				for i, r := range shape[:rapid.OneOf(rapid.Just(len(shape)), rapid.IntRange(1, len(shape))).Draw(t, "up to")] {
					seq++
					r.Seq, r.Time = seq, int64(seq)
					if i > 0 {
						r.Parent = first
					}
					x.Record(&r)
					if rapid.IntRange(0, 30).Draw(t, "sync") == 0 {
						require.NoError(t, w.Sync())
					}
				}
			}
		}
		require.NoError(t, w.Close())
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		recs, _ := expanded(es)
		sameRecords(t, x.all, recs[0], nil)
		shortened += len(x.all) - len(es)
		require.EqualValues(t, len(x.all), es[len(es)-1].End.Records)
	})
	assert.Positive(t, shortened)
}

// The header of large rules must not use up the memory for records.
func TestLimitLeavesRoomBehindTheHeader(t *testing.T) {
	d := toggle()
	for i := range 100 {
		d.Events = append(d.Events, machine.Event{Name: fmt.Sprintf("quite_a_long_name_of_an_event_%d", i)})
		d.Rows = append(d.Rows, machine.Row{ID: fmt.Sprintf("quite-a-long-name-of-a-row-%d", i), From: "on", Event: d.Events[i+2].Name, Refuse: "no"})
	}
	rules := machine.MustCompile(d)
	w, err := translog.NewWriter(io.Discard, rules, translog.Options{Batch: 1, Limit: 1})
	require.NoError(t, err)
	q := newQuick(t, w, rules, "q")
	q.step()
	require.NoError(t, w.Close())
}
