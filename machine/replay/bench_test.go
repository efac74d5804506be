package replay_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

// longLog is one world that goes through jobs, with polls that repeat but are
// written out one by one. It returns how many records there are.
func longLog(t testing.TB, jobs int, f translog.Format) ([]byte, uint64) {
	rules := compiled(t, rig()...)
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, translog.Options{Format: f, Exact: true})
	require.NoError(t, err)
	h := newHost(t, rules, w.World("lane", pools, 0))
	for i := range jobs {
		end := well
		if i%5 == 4 {
			end = ill
		}
		h.job(i%4, uint64(i)+1, 3, end)
	}
	require.NoError(t, w.Close())
	res, err := run(b.Bytes(), rules, replay.Options{})
	require.NoError(t, err)
	require.Zero(t, res.Repeated)
	return b.Bytes(), res.Records
}

// BenchmarkReplay runs a log of jobs with guards, arguments, commands, joint
// steps, queued events and polls, none of them shortened to a repeat.
func BenchmarkReplay(b *testing.B) {
	for _, f := range []translog.Format{translog.Binary, translog.JSONLines} {
		b.Run(f.String(), func(b *testing.B) {
			log, n := longLog(b, 2000, f)
			rules := compiled(b, rig()...)
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				res, err := run(log, rules, replay.Options{})
				if err != nil || res.Records != n {
					b.Fatal(err)
				}
			}
			total := float64(n) * float64(b.N)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/total, "ns/record")
			b.ReportMetric(total/b.Elapsed().Seconds(), "records/s")
		})
	}
	// What the JSON replay must be three times as fast as.
	b.Run("encoding-json into a map", func(b *testing.B) {
		log, n := longLog(b, 2000, translog.JSONLines)
		lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
		b.SetBytes(int64(len(log)))
		for b.Loop() {
			for _, l := range lines {
				var m map[string]any
				if err := json.Unmarshal(l, &m); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(n)*float64(b.N)), "ns/record")
	})
}
