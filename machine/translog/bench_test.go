package translog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// toggle is the shape that peers are measured with: one guard, and one command
// that does nothing.
func toggle() *machine.Definition {
	go_ := []machine.Target{{On: "ok", To: "on"}, {Error: "failed"}}
	back := []machine.Target{{On: "ok", To: "off"}, {Error: "failed"}}
	return &machine.Definition{
		Name: "toggle", States: []machine.State{{Name: "off"}, {Name: "on"}},
		Events: []machine.Event{{Name: "start"}, {Name: "stop"}},
		Facts:  []machine.Fact{fact("locked", "bool")},
		Rows: []machine.Row{
			{ID: "start", From: "off", Event: "start", Guard: "!locked", Command: "Nothing()", Then: go_},
			{ID: "start-no", From: "off", Event: "start", Guard: "else", Refuse: "locked"},
			{ID: "stop", From: "on", Event: "stop", Guard: "!locked", Command: "Nothing()", Then: back},
			{ID: "stop-no", From: "on", Event: "stop", Guard: "else", Refuse: "locked"},
		},
	}
}

var nothing = machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })

// BenchmarkAccepted is a whole accepted transition, issue and settle, logged.
func BenchmarkAccepted(b *testing.B) {
	rules := machine.MustCompile(toggle())
	run := func(b *testing.B, rec machine.Recorder, w *translog.Writer) {
		in, err := rules.NewInstance(machine.InstanceConfig{Performer: nothing, Recorder: rec})
		require.NoError(b, err)
		ev := [2]machine.EventID{in.Machine().MustEvent("start"), in.Machine().MustEvent("stop")}
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if _, err := in.Fire(bg, ev[n&1]); err != nil {
				b.Fatal(err)
			}
			n++
		}
		if w != nil {
			require.NoError(b, w.Close())
			require.Zero(b, w.Dropped())
		}
	}
	b.Run("no log", func(b *testing.B) { run(b, nil, nil) })
	b.Run("records made", func(b *testing.B) { run(b, ignore{}, nil) })
	for _, f := range []translog.Format{translog.Binary, translog.JSONLines} {
		b.Run(f.String()+" memory", func(b *testing.B) {
			w, err := translog.NewWriter(io.Discard, rules, translog.Options{Format: f})
			require.NoError(b, err)
			run(b, w.World("w", nil, 0), w)
		})
		b.Run(f.String()+" file", func(b *testing.B) {
			file, err := os.Create(filepath.Join(b.TempDir(), "log"))
			require.NoError(b, err)
			defer file.Close()
			w, err := translog.NewWriter(file, rules, translog.Options{Format: f})
			require.NoError(b, err)
			run(b, w.World("w", nil, 0), w)
		})
	}
}

type ignore struct{}

func (ignore) Record(*machine.Record) {}

// BenchmarkRecord is the recorder alone: the two records of a transition.
func BenchmarkRecord(b *testing.B) {
	rules := machine.MustCompile(toggle())
	var recs keep
	in, err := rules.NewInstance(machine.InstanceConfig{Performer: nothing, Recorder: &recs})
	require.NoError(b, err)
	for _, ev := range []string{"start", "stop"} {
		_, err := in.Fire(bg, in.Machine().MustEvent(ev))
		require.NoError(b, err)
	}
	for _, f := range []translog.Format{translog.Binary, translog.JSONLines} {
		b.Run(f.String(), func(b *testing.B) {
			w, err := translog.NewWriter(io.Discard, rules, translog.Options{Format: f})
			require.NoError(b, err)
			rec := w.World("w", nil, 0)
			b.ReportAllocs()
			var seq uint64
			for b.Loop() {
				// Two of the four, in turn, as they would come.
				for range 2 {
					r := recs[seq%4]
					seq++
					r.Seq = seq
					if r.Parent != 0 {
						r.Parent = seq - 1
					}
					rec.Record(&r)
				}
				rec.Flush()
			}
			require.Zero(b, w.Dropped())
		})
	}
}

type keep []machine.Record

func (k *keep) Record(r *machine.Record) { *k = append(*k, *r) }

// manyRecords makes a log of about n records that differ.
func manyRecords(b *testing.B, n int, f translog.Format) []byte {
	rules := machine.MustCompile(rig()...)
	var buf bytes.Buffer
	w, err := translog.NewWriter(&buf, rules, translog.Options{Format: f, Exact: true})
	require.NoError(b, err)
	h := newHost(b, rules, w.World("lane", pools, 0))
	for n > 0 {
		n -= 50
		h.session()
		h = newHost(b, rules, w.World("lane", pools, 0))
	}
	require.NoError(b, w.Close())
	return buf.Bytes()
}

func BenchmarkRead(b *testing.B) {
	for _, f := range []translog.Format{translog.Binary, translog.JSONLines} {
		b.Run(f.String(), func(b *testing.B) {
			log := manyRecords(b, 20000, f)
			b.SetBytes(int64(len(log)))
			n := 0
			for b.Loop() {
				r, err := translog.NewReader(bytes.NewReader(log))
				require.NoError(b, err)
				var e translog.Entry
				for err = r.Next(&e); err == nil; err = r.Next(&e) {
					n++
				}
				require.Equal(b, io.EOF, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/entry")
		})
	}
	b.Run("encoding-json map", func(b *testing.B) {
		log := manyRecords(b, 20000, translog.JSONLines)
		lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
		b.SetBytes(int64(len(log)))
		n := 0
		for b.Loop() {
			for _, l := range lines {
				var m map[string]any
				if err := json.Unmarshal(l, &m); err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/entry")
	})
}
