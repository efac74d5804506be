package translog

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/runfence/runfence/machine"
)

// Options sets up a [Writer].
type Options struct {
	Format Format
	// Batch is how many bytes are collected before they are given to the sink;
	// 0 means 64 KiB. 1 gives away each host operation as it ends, and what
	// comes before each command as it begins.
	Batch int
	// Limit bounds the bytes that wait for the sink; 0 means 4 MiB. From half
	// of it on, hosts wait for the sink at the end of their operations. Beyond
	// it, which only a sink that fails or hangs reaches, records are dropped
	// and counted. It is at least twice the Batch, and twice the header.
	Limit int
	// Exact writes every record as it comes, instead of one entry for repeated
	// operations.
	Exact bool
}

// Writer writes the transition log of any number of worlds to one sink. All
// methods are safe for concurrent use.
//
// A Writer never changes what a world does, and starts no goroutine. Records
// are encoded into memory under their world's lock; the sink is written to at
// the end of a host operation and before a command, without that lock. So a slow sink holds hosts
// back, and nothing else. A sink that fails is tried again as more records
// come. When the memory for them is used up, records are dropped, and once the
// sink recovers the log says which: a gap entry in their place, and [End]. A
// panic of the sink counts as a failure.
type Writer struct {
	sink  io.Writer
	batch int
	limit int
	exact bool

	// due: enough is collected to bother the sink.
	due atomic.Bool

	// io is full while someone writes to the sink. It is taken before mu.
	io   chan struct{}
	out  []byte // being written
	done int    // of out

	mu       sync.Mutex
	spelling *spelling
	sites    map[uintptr]uint32
	buf      []byte // collected
	kept     int    // bytes of out and buf that the sink does not have
	produced int    // bytes since the sink was last tried, dropped ones included
	worlds   int
	dirty    []*Recorder // those with something held back
	records  uint64
	dropped  uint64
	err      error // of the sink, the last time it was tried
	closed   bool
}

// NewWriter starts a log of worlds that run by the rules. The sink must not
// use those worlds. The error is for rules whose names a log cannot hold; the
// sink is not written to yet.
func NewWriter(sink io.Writer, rules *machine.Rules, o Options) (*Writer, error) {
	h, err := HeaderOf(rules)
	if err != nil {
		return nil, err
	}
	s, err := newSpelling(o.Format, h)
	if err != nil {
		return nil, err
	}
	w := &Writer{sink: sink, io: make(chan struct{}, 1), spelling: s, sites: map[uintptr]uint32{}, batch: o.Batch, limit: o.Limit, exact: o.Exact}
	if w.batch <= 0 {
		w.batch = 64 << 10
	}
	if w.limit <= 0 {
		w.limit = 4 << 20
	}
	w.buf, err = s.header(nil, h)
	if err != nil {
		return nil, err
	}
	w.limit = max(w.limit, 2*w.batch, 2*len(w.buf), 4<<10)
	w.added(0)
	return w, nil
}

// World opens a world in the log: the arguments are the Name, Pools and Queue
// of the [machine.Config] that the Recorder is for. A name is cut to 1 KiB and
// made valid UTF-8.
func (w *Writer) World(name string, pools map[string]int, queue int) *Recorder {
	if len(name) > maxSite {
		name = name[:maxSite]
	}
	name = strings.ToValidUTF8(name, "\uFFFD")
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &Recorder{w: w, world: w.worlds, next: 1}
	w.worlds++
	if !w.closed {
		before := len(w.buf)
		// Nothing in a World can fail to marshal.
		w.buf, _ = w.spelling.world(w.buf, r.world, World{Name: name, Pools: pools, Queue: queue})
		w.added(before)
	}
	return r
}

// added counts what was appended to buf. mu is held.
func (w *Writer) added(before int) {
	n := len(w.buf) - before
	w.kept += n
	w.press(n)
}

// press brings the next try of the sink nearer. mu is held.
func (w *Writer) press(n int) {
	w.produced += n
	if w.produced >= w.batch && !w.due.Load() {
		w.due.Store(true)
	}
}

// flush is what hosts do at the end of an operation.
func (w *Writer) flush() {
	if !w.due.Load() {
		return
	}
	select {
	case w.io <- struct{}{}:
	default:
		// Someone is writing. Wait only if too much has come up meanwhile.
		w.mu.Lock()
		over := w.kept > w.limit/2
		w.mu.Unlock()
		if !over {
			return
		}
		w.io <- struct{}{}
	}
	defer w.free()
	if w.due.Load() {
		_ = w.drain() // kept in w.err: the host must not notice
	}
}

// free lets the next one write to the sink.
func (w *Writer) free() { <-w.io }

// drain gives the sink what it has not got yet: what an earlier try left over,
// then what is collected. What comes up meanwhile waits for the next batch. io
// is held.
func (w *Writer) drain() error {
	if err := w.try(); err != nil {
		return err
	}
	w.mu.Lock()
	w.release()
	w.out, w.buf = w.buf, w.out
	w.rest()
	w.mu.Unlock()
	return w.try()
}

// try writes out to the sink, as far as it goes. io is held.
func (w *Writer) try() error {
	if len(w.out) == 0 {
		return nil
	}
	n, err := w.write(w.out[w.done:])
	w.done += n
	if err == nil {
		w.out, w.done = w.out[:0], 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept -= n
	w.err = err
	if err != nil {
		w.rest()
	}
	return err
}

// rest leaves the sink alone until another batch has come. mu is held.
func (w *Writer) rest() {
	w.produced = 0
	w.due.Store(false)
}

// release writes out what recorders hold back. mu is held.
func (w *Writer) release() {
	still := w.dirty[:0]
	for _, r := range w.dirty {
		r.release()
		if r.dirty = r.gap.Count > 0; r.dirty {
			still = append(still, r)
		}
	}
	clear(w.dirty[len(still):])
	w.dirty = still
}

// write is one try of the sink.
func (w *Writer) write(b []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = 0, fmt.Errorf("translog: the sink panicked: %v", p)
		}
	}()
	n, err = w.sink.Write(b)
	n = min(max(n, 0), len(b))
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Sync hands every record so far to the sink, operations that wait to be
// written as one entry included, and makes the sink durable if it has a method
// Sync, as files have. After it returns nil, those records are as safe as the
// sink makes them.
func (w *Writer) Sync() error {
	w.io <- struct{}{}
	defer w.free()
	for range 2 { // the second time there is room for gaps
		if err := w.drain(); err != nil {
			return fmt.Errorf("translog: %w", err)
		}
	}
	if s, ok := w.sink.(interface{ Sync() error }); ok {
		if err := s.Sync(); err != nil && !cannotSync(err) {
			return fmt.Errorf("translog: %w", err)
		}
	}
	return nil
}

// Close ends the log with an [End] entry and does what Sync does. It does not
// close the sink. If the sink fails, Close may be called again. Records that
// come after the first Close are dropped and counted.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.release()
		before := len(w.buf)
		w.buf = w.spelling.end(w.buf, End{Records: w.records, Dropped: w.dropped})
		w.added(before)
	}
	w.mu.Unlock()
	err := w.Sync()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.kept > 0 {
		err = fmt.Errorf("%w; %d bytes are not written", err, w.kept)
	}
	if w.dropped > 0 {
		err = errors.Join(err, fmt.Errorf("translog: %d records were dropped", w.dropped))
	}
	return err
}

// Err returns the error of the sink if it failed the last time it was tried.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Dropped returns how many records were dropped.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}
