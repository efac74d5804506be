package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/replay"
	"github.com/runfence/runfence/machine/translog"
)

// recorded is how many records the log has that replays run.
const recorded = 12000

// recording is a log of transitions, refusals and changes of the fact, with no
// record shortened away.
func recording(t testing.TB, format translog.Format) []byte {
	t.Helper()
	var log bytes.Buffer
	w, err := translog.NewWriter(&log, machine.MustCompile(toggle()), translog.Options{Format: format, Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	i, _ := ours(t, w.World("toggle", nil, 0))
	ev, lock, ctx := toggles(i.Machine()), i.Machine().MustEvent("lock"), context.Background()
	fire := func(taken bool, e machine.EventID, args ...uint64) {
		if _, err := i.Fire(ctx, e, args...); (err == nil) != taken {
			t.Fatal(err)
		}
	}
	for range recorded / 12 {
		fire(true, ev[0]) // two records, as each transition with a command
		fire(false, ev[0])
		fire(true, ev[1])
		fire(true, lock, 1)
		fire(false, ev[0])
		fire(true, lock, 0)
		fire(true, ev[0])
		fire(true, ev[1])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

// replays runs a recording again; an iteration is all of it.
func replays(format translog.Format) func(*testing.B) {
	return func(b *testing.B) {
		log, rules := recording(b, format), machine.MustCompile(toggle())
		b.SetBytes(int64(len(log)))
		m := measured(b)
		for b.Loop() {
			res, err := replay.Run(bytes.NewReader(log), rules, replay.Options{})
			if err != nil || res.Records != recorded {
				b.Fatalf("%d records, %v", res.Records, err)
			}
		}
		m.stop()
		b.ReportMetric(recorded*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	}
}

// replayOfBinary must do two million records a second.
func replayOfBinary() row {
	return row{
		name:   "replay of a binary log",
		ours:   replays(translog.Binary),
		per:    recorded,
		within: time.Second / 2_000_000,
		allocs: -1,
	}
}

// replayOfJSON is held against reading the same lines and doing nothing more.
func replayOfJSON() row {
	return row{
		name:   "replay of JSON Lines",
		ours:   replays(translog.JSONLines),
		per:    recorded,
		allocs: -1,
		peers: []peer{{"encoding/json", func(b *testing.B) {
			log := recording(b, translog.JSONLines)
			lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
			b.SetBytes(int64(len(log)))
			m := measured(b)
			for b.Loop() {
				for _, line := range lines {
					var m map[string]any
					if err := json.Unmarshal(line, &m); err != nil {
						b.Fatal(err)
					}
				}
			}
			m.stop()
		}, 3}},
	}
}
