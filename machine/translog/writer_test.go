package translog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// tee keeps records beside logging them.
type tee struct {
	*translog.Recorder
	all []machine.Record
}

func (x *tee) Record(r *machine.Record) {
	x.Recorder.Record(r)
	x.all = append(x.all, *r)
}

// expanded returns the records of each world, repeats expanded, and the gaps.
// The times of repeats are not known, but for the last.
func expanded(es []translog.Entry) (recs map[int][]machine.Record, gaps map[int][]translog.Gap) {
	recs, gaps = map[int][]machine.Record{}, map[int][]translog.Gap{}
	for _, e := range es {
		rs := recs[e.World]
		switch e.Kind {
		case translog.RecordEntry:
			rs = append(rs, e.Record)
		case translog.RepeatEntry:
			for i := range e.Repeat.Records() {
				r := rs[len(rs)-e.Repeat.Length]
				r.Seq += uint64(e.Repeat.Length)
				if r.Parent != 0 {
					r.Parent += uint64(e.Repeat.Length)
				}
				r.Time = 0
				if i == e.Repeat.Records()-1 {
					r.Time = e.Repeat.Time
				}
				rs = append(rs, r)
			}
		case translog.GapEntry:
			gaps[e.World] = append(gaps[e.World], e.Gap)
		}
		recs[e.World] = rs
	}
	return recs, gaps
}

// sameRecords compares what was made with what the log says, gaps left out and
// times where the log knows them. A log has no program counters.
func sameRecords(t require.TestingT, made, logged []machine.Record, gaps []translog.Gap) {
	missing := map[uint64]bool{}
	for _, g := range gaps {
		for i := range g.Count {
			missing[g.First+i] = true
		}
	}
	i := 0
	for _, r := range made {
		if missing[r.Seq] {
			continue
		}
		if i == len(logged) {
			require.Fail(t, "a record is neither in the log nor in a gap", "%d", r.Seq)
		}
		l := logged[i]
		if l.Time == 0 {
			l.Time = r.Time
		}
		r.Site = 0
		require.Equal(t, r, l)
		i++
	}
	require.Equal(t, len(logged), i, "the log has more than was made")
}

// quick is a world of one toggle, which moves fast.
type quick struct {
	t   require.TestingT
	tee *tee
	in  *machine.Instance
	n   int
}

func newQuick(t require.TestingT, w *translog.Writer, rules *machine.Rules, name string) *quick {
	q := &quick{t: t, tee: &tee{Recorder: w.World(name, nil, 0)}}
	var now int64
	var err error
	q.in, err = rules.NewInstance(machine.InstanceConfig{Performer: nothing, Recorder: q.tee, Clock: func() int64 { now++; return now }})
	require.NoError(t, err)
	return q
}

// step makes two records; nothing about the log may show in it.
func (q *quick) step() {
	_, err := q.in.Fire(bg, machine.EventID(q.n&1))
	require.NoError(q.t, err)
	q.n++
}

func toggleWriter(t require.TestingT, sink io.Writer, o translog.Options) (*translog.Writer, *machine.Rules) {
	rules, err := machine.Compile(toggle())
	require.NoError(t, err)
	w, err := translog.NewWriter(sink, rules, o)
	require.NoError(t, err)
	return w, rules
}

func TestBatches(t *testing.T) {
	for _, f := range formats {
		var b bytes.Buffer
		w, rules := toggleWriter(t, &b, translog.Options{Format: f, Batch: 2000})
		q := newQuick(t, w, rules, "q")
		writes := 0
		for range 200 {
			before := b.Len()
			q.step()
			if n := b.Len() - before; n > 0 {
				writes++
				assert.GreaterOrEqual(t, n, 2000)
			}
		}
		assert.Greater(t, writes, 2)
		before := b.Len()
		require.NoError(t, w.Sync())
		assert.Greater(t, b.Len(), before)
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		recs, _ := expanded(es)
		sameRecords(t, q.tee.all, recs[0], nil)
	}
}

func TestBatchOfOneGivesAwayEachOperation(t *testing.T) {
	for _, f := range formats {
		var b bytes.Buffer
		w, rules := toggleWriter(t, &b, translog.Options{Format: f, Batch: 1, Exact: true})
		q := newQuick(t, w, rules, "q")
		for i := range 20 {
			q.step()
			es, err := readAll(b.Bytes())
			require.NoError(t, err)
			recs, _ := expanded(es)
			require.Len(t, recs[0], 2*i+2)
		}
	}
}

// sinkFunc is a function as a sink.
type sinkFunc func([]byte) (int, error)

func (f sinkFunc) Write(b []byte) (int, error) { return f(b) }

// syncSink has a method Sync.
type syncSink struct {
	io.Writer
	err    error
	synced int
}

func (s *syncSink) Sync() error { s.synced++; return s.err }

func TestSync(t *testing.T) {
	var b bytes.Buffer
	s := &syncSink{Writer: &b}
	w, rules := toggleWriter(t, s, translog.Options{})
	q := newQuick(t, w, rules, "q")
	poll, err := q.in.Machine().Event("stop")
	require.True(t, err)
	for range 5 {
		_, err := q.in.Fire(bg, poll)
		require.ErrorIs(t, err, machine.ErrRefused)
	}
	assert.Zero(t, b.Len())
	require.NoError(t, w.Sync())
	assert.Equal(t, 1, s.synced)
	es, rerr := readAll(b.Bytes())
	require.NoError(t, rerr)
	require.Len(t, es, 3, "world, record, repeat")
	assert.Equal(t, translog.Repeat{First: 2, Length: 1, Count: 4, Time: 5}, es[2].Repeat)

	_, ferr := q.in.Fire(bg, poll)
	require.ErrorIs(t, ferr, machine.ErrRefused)
	s.err = errors.New("disk gone")
	assert.ErrorIs(t, w.Sync(), s.err)
	s.err = nil
	require.NoError(t, w.Sync())
	es, rerr = readAll(b.Bytes())
	require.NoError(t, rerr)
	require.Len(t, es, 4)
	assert.Equal(t, translog.Repeat{First: 6, Length: 1, Count: 1, Time: 6}, es[3].Repeat, "a repeat goes on after Sync")
}

// A sink that hangs holds back hosts, but not the worlds' locks, and loses nothing.
func TestSlowSinkHoldsHostsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		gate := make(chan struct{})
		w, rules := toggleWriter(t, sinkFunc(func(p []byte) (int, error) {
			<-gate
			return b.Write(p)
		}), translog.Options{Batch: 1 << 10, Limit: 16 << 10})
		const ops = 2000
		var hosts [3]*quick
		var done [3]int
		var wg sync.WaitGroup
		for i := range hosts {
			hosts[i] = newQuick(t, w, rules, fmt.Sprint(i))
			wg.Go(func() {
				for range ops {
					hosts[i].step()
					done[i]++
				}
			})
		}
		synctest.Wait() // all wait for the sink
		for i, n := range done {
			assert.Less(t, n, ops, "host %d must be held back", i)
			// It waits before its command or at its end, and not under the lock.
			want := machine.StateID((n + 1) & 1)
			if hosts[i].in.InFlight() {
				want = machine.StateID(n & 1)
			}
			assert.Equal(t, want, hosts[i].in.State())
		}
		assert.Greater(t, done[0]+done[1]+done[2], 60, "half of the memory is used first")
		assert.Zero(t, w.Dropped())
		assert.NoError(t, w.Err())
		close(gate)
		wg.Wait()
		require.NoError(t, w.Close())
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		recs, gaps := expanded(es)
		assert.Empty(t, gaps)
		for i := range hosts {
			require.Len(t, recs[i], 2*ops)
			sameRecords(t, hosts[i].tee.all, recs[i], nil)
		}
	})
}

func TestFailingSink(t *testing.T) {
	for _, f := range formats {
		var b bytes.Buffer
		down, tries := true, 0
		full := errors.New("disk full")
		w, rules := toggleWriter(t, sinkFunc(func(p []byte) (int, error) {
			tries++
			if down {
				n, _ := b.Write(p[:min(len(p), 7)]) // takes a little of it each time
				return n, full
			}
			return b.Write(p)
		}), translog.Options{Format: f, Batch: 1 << 10, Limit: 8 << 10})
		q := newQuick(t, w, rules, "q")
		for w.Dropped() == 0 {
			q.step()
		}
		assert.ErrorIs(t, w.Err(), full)
		assert.Greater(t, tries, 2)
		kept := len(q.tee.all) - 1
		tries = 0
		for range 1000 {
			q.step()
		}
		assert.Less(t, tries, 200, "a sink that fails is not tried at every operation")
		assert.ErrorIs(t, w.Sync(), full)
		dropped := w.Dropped()
		assert.Greater(t, dropped, uint64(1900))

		down = false
		for range 200 {
			q.step()
		}
		assert.NoError(t, w.Err())
		assert.Less(t, w.Dropped(), dropped+500, "once the sink has recovered nothing is dropped")
		dropped = w.Dropped()
		for range 20 {
			q.step()
		}
		assert.Equal(t, dropped, w.Dropped())
		err := w.Close()
		assert.ErrorContains(t, err, fmt.Sprintf("%d records were dropped", dropped))
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		recs, gaps := expanded(es)
		require.NotEmpty(t, gaps[0])
		assert.InDelta(t, kept, gaps[0][0].First, 3)
		sum := uint64(0)
		for _, g := range gaps[0] {
			sum += g.Count
		}
		assert.Equal(t, dropped, sum)
		sameRecords(t, q.tee.all, recs[0], gaps[0])
		assert.Equal(t, translog.End{Records: uint64(len(q.tee.all)) - dropped, Dropped: dropped}, es[len(es)-1].End)
	}
}

// Without another record, it is Sync or Close that writes the gap, also when
// memory was full to the last byte.
func TestGapIsWrittenWithoutAnotherRecord(t *testing.T) {
	for i, batch := range []int{1 << 10, 1 << 10, 1, 1} {
		closes := i&1 == 1
		var b bytes.Buffer
		down := false
		w, rules := toggleWriter(t, sinkFunc(func(p []byte) (int, error) {
			if down {
				return 0, io.ErrClosedPipe
			}
			return b.Write(p)
		}), translog.Options{Batch: batch, Limit: 8 << 10})
		q := newQuick(t, w, rules, "q")
		require.NoError(t, w.Sync())
		down = true
		for w.Dropped() < 10 {
			q.step()
		}
		down = false
		if closes {
			assert.ErrorContains(t, w.Close(), "records were dropped")
		} else {
			require.NoError(t, w.Sync())
		}
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		_, gaps := expanded(es)
		assert.Equal(t, []translog.Gap{{First: uint64(len(q.tee.all)) + 1 - w.Dropped(), Count: w.Dropped()}}, gaps[0])
	}
}

func TestPanickingSinkIsAFailingSink(t *testing.T) {
	var b bytes.Buffer
	down := true
	w, rules := toggleWriter(t, sinkFunc(func(p []byte) (int, error) {
		if down {
			panic("sink is unwell")
		}
		return b.Write(p)
	}), translog.Options{Batch: 1})
	q := newQuick(t, w, rules, "q")
	q.step()
	assert.ErrorContains(t, w.Err(), "sink is unwell")
	down = false
	q.step()
	require.NoError(t, w.Close())
	es, err := readAll(b.Bytes())
	require.NoError(t, err)
	recs, _ := expanded(es)
	sameRecords(t, q.tee.all, recs[0], nil)
}

// A sink that lies about what it wrote is not believed.
func TestShortWriteIsAFailure(t *testing.T) {
	for _, n := range []int{-5, 0, 3, 1 << 30} {
		w, _ := toggleWriter(t, sinkFunc(func(p []byte) (int, error) { return n, nil }), translog.Options{})
		err := w.Sync()
		if n > 3 {
			assert.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, io.ErrShortWrite)
		}
	}
}

func TestClose(t *testing.T) {
	var b bytes.Buffer
	down := true
	w, rules := toggleWriter(t, sinkFunc(func(p []byte) (int, error) {
		if down {
			return 0, io.ErrClosedPipe
		}
		return b.Write(p)
	}), translog.Options{})
	q := newQuick(t, w, rules, "q")
	q.step()
	err := w.Close()
	assert.ErrorIs(t, err, io.ErrClosedPipe)
	assert.ErrorContains(t, err, "bytes are not written")
	down = false
	require.NoError(t, w.Close(), "Close may be called again")
	n := b.Len()
	require.NoError(t, w.Close())
	assert.Equal(t, n, b.Len(), "and writes nothing twice")
	es, err := readAll(b.Bytes())
	require.NoError(t, err)
	assert.Equal(t, translog.End{Records: 2}, es[len(es)-1].End)

	q.step()
	w.World("late", nil, 0).Record(&machine.Record{Seq: 1})
	assert.EqualValues(t, 3, w.Dropped(), "what comes after Close is counted")
	assert.ErrorContains(t, w.Close(), "3 records were dropped")
	assert.Equal(t, n, b.Len())
}

func TestNamesOfWorldsAreMadeFit(t *testing.T) {
	var b bytes.Buffer
	w, _ := toggleWriter(t, &b, translog.Options{})
	w.World("a\xffb", nil, 0)
	w.World(string(bytes.Repeat([]byte("é"), 3000))[1:], nil, 0)
	require.NoError(t, w.Close())
	es, err := readAll(b.Bytes())
	require.NoError(t, err)
	assert.Equal(t, "a\uFFFDb", es[0].Opened.Name)
	assert.LessOrEqual(t, len(es[1].Opened.Name), 1030)
}

func TestWriterRefusesRulesALogCannotHold(t *testing.T) {
	const n = 100
	long := strings.Repeat("x", 190)
	d := &machine.Definition{Name: "long"}
	var all []string
	for i := range n {
		s := fmt.Sprintf("s%d", i)
		all = append(all, s)
		d.States = append(d.States, machine.State{Name: s})
		ev := fmt.Sprintf("e%d", i)
		d.Events = append(d.Events, machine.Event{Name: ev})
		d.Rows = append(d.Rows, machine.Row{ID: "go-" + s, From: s, Event: "e0", Then: []machine.Target{{To: fmt.Sprintf("s%d", (i+1)%n)}}})
	}
	for i := 1; i < n; i++ {
		d.Rows = append(d.Rows, machine.Row{ID: fmt.Sprintf("%s%d", long, i), From: strings.Join(all, "|"), Event: fmt.Sprintf("e%d", i), Refuse: "no"})
	}
	rules, err := machine.Compile(d)
	require.NoError(t, err)
	_, err = translog.NewWriter(io.Discard, rules, translog.Options{})
	assert.ErrorIs(t, err, translog.ErrTooLong)
	assert.ErrorContains(t, err, "the names of machine long take")

	_, err = translog.NewWriter(io.Discard, machine.MustCompile(toggle()), translog.Options{Format: 9})
	assert.ErrorContains(t, err, "unknown format")
}

// Whatever the sink does, each record is in the log or in a gap, in order, and
// the host notices nothing.
func TestNoRecordIsLostSilently(t *testing.T) {
	var everDropped uint64
	defer func() { assert.NotZero(t, everDropped, "the sink was never bad enough") }()
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		up := false
		w, rules := toggleWriter(t, sinkFunc(func(p []byte) (int, error) {
			if up {
				return b.Write(p)
			}
			switch n := rapid.IntRange(0, len(p)).Draw(t, "takes"); rapid.IntRange(0, 3).Draw(t, "sink") {
			case 0:
				return b.Write(p)
			case 1:
				_, _ = b.Write(p[:n])
				return n, io.ErrClosedPipe
			case 2:
				_, _ = b.Write(p[:n])
				return n, nil
			}
			panic("no")
		}), translog.Options{
			Format: translog.Format(rapid.IntRange(0, 1).Draw(t, "format")),
			Batch:  rapid.SampledFrom([]int{1, 200, 1000}).Draw(t, "batch"), Limit: 1, Exact: rapid.Bool().Draw(t, "exact"),
		})
		qs := []*quick{newQuick(t, w, rules, "a"), newQuick(t, w, rules, "b")}
		var dropped uint64
		for range rapid.IntRange(1, 60).Draw(t, "ops") {
			q := qs[rapid.IntRange(0, 1).Draw(t, "world")]
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				_ = w.Sync()
			case 1:
				for range rapid.IntRange(1, 40).Draw(t, "polls") {
					_, err := q.in.Fire(bg, machine.EventID(1-q.n&1)) // refused
					require.ErrorIs(t, err, machine.ErrRefused)
				}
			default:
				for range rapid.IntRange(1, 40).Draw(t, "steps") {
					q.step()
				}
			}
			require.GreaterOrEqual(t, w.Dropped(), dropped)
			dropped = w.Dropped()
		}
		up = true
		everDropped += dropped
		if err := w.Close(); dropped == 0 {
			require.NoError(t, err)
		}
		require.NoError(t, w.Err())
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		recs, gaps := expanded(es)
		total, lost := 0, uint64(0)
		for i, q := range qs {
			sameRecords(t, q.tee.all, recs[i], gaps[i])
			total += len(recs[i])
			for _, g := range gaps[i] {
				lost += g.Count
			}
		}
		require.Equal(t, dropped, lost)
		require.Equal(t, translog.End{Records: uint64(total), Dropped: dropped}, es[len(es)-1].End)
	})
}

func TestManyHostsOneLog(t *testing.T) {
	for _, f := range formats {
		var b bytes.Buffer
		w, rules := toggleWriter(t, &b, translog.Options{Format: f, Batch: 500})
		var wg sync.WaitGroup
		var qs []*quick
		for i := range 3 {
			q := newQuick(t, w, rules, fmt.Sprint(i))
			qs = append(qs, q)
			for range 2 {
				wg.Go(func() {
					for j := range 300 {
						_, err := q.in.Fire(bg, machine.EventID(j&1))
						if err != nil {
							assert.ErrorIs(t, err, machine.ErrRefused)
						}
						if j%50 == 0 {
							assert.NoError(t, w.Sync())
						}
					}
				})
			}
		}
		wg.Wait()
		require.NoError(t, w.Close())
		es, err := readAll(b.Bytes())
		require.NoError(t, err)
		recs, gaps := expanded(es)
		assert.Empty(t, gaps)
		for i, q := range qs {
			sameRecords(t, q.tee.all, recs[i], nil)
		}
	}
}

// sited gives every record a site, as a driver that records sites would.
type sited struct {
	*translog.Recorder
	pcs [2]uintptr
}

func (x *sited) Record(r *machine.Record) {
	r.Site = x.pcs[r.Seq&1]
	x.Recorder.Record(r)
}

func TestRecordingAllocatesNothing(t *testing.T) {
	for _, f := range formats {
		w, rules := toggleWriter(t, io.Discard, translog.Options{Format: f, Batch: 4 << 10})
		x := &sited{Recorder: w.World("w", nil, 0)}
		require.Equal(t, 2, runtime.Callers(1, x.pcs[:]))
		in, err := rules.NewInstance(machine.InstanceConfig{Performer: nothing, Recorder: x})
		require.NoError(t, err)
		n := 0
		op := func() {
			if _, err := in.Fire(bg, machine.EventID(n&1)); err != nil {
				panic(err)
			}
			n++
		}
		for range 1000 {
			op() // buffers grow to their size
		}
		assert.Zero(t, testing.AllocsPerRun(1000, op), f)
	}
}
