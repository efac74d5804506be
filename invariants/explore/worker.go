package explore

import (
	"context"
	"fmt"
)

// worker expands states, a batch at a time. It keeps what it needs for that, so
// that an expansion allocates nothing.
type worker struct {
	s          *search
	now, after State
	moves      []Move
	batch      []byte

	out        []byte // records for the next level
	outRecords int

	fired    *Rows
	findings map[string]*tally

	// Since the last batch ended.
	edges, added, expanded, found uint64
}

func newWorker(s *search) *worker {
	w := &worker{s: s, fired: newRows(len(s.rowNames)), findings: map[string]*tally{}}
	w.now = s.sys.New()
	w.renew()
	return w
}

// renew gives the worker a new state to move: a panic may damage the old one.
func (w *worker) renew() {
	w.after = w.s.sys.New()
	if m, ok := w.after.(Marker); ok && len(w.s.rowNames) > 0 {
		m.MarkIn(w.fired)
	}
}

// run expands batches until the level has no more or the search is to stop.
func (w *worker) run(ctx context.Context) {
	err := w.batches(ctx)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		w.s.failure.CompareAndSwap(nil, &err)
	}
}

func (w *worker) batches(ctx context.Context) error {
	for w.s.goesOn(ctx) {
		if more, err := w.expandBatch(); !more || err != nil {
			return err
		}
		if w.s.o.batchDone != nil {
			w.s.o.batchDone()
		}
	}
	return nil
}

func (w *worker) expandBatch() (more bool, err error) {
	var n int
	w.batch, n, err = w.s.now.take(w.batch[:0], w.s.batch)
	if n == 0 || err != nil {
		return false, err
	}
	for rest := w.batch; len(rest) > 0; {
		var r record
		if r, rest, err = nextRecord(rest); err != nil {
			return false, err
		}
		if w.s.table.parent(r.at) != r.parent {
			continue
		}
		if err := w.now.SetBinary(r.state); err != nil {
			return false, fmt.Errorf("cannot read back a state that was written here: %w", err)
		}
		if err := w.expand(r.at); err != nil {
			return false, err
		}
		w.expanded++
	}
	w.s.edges.Add(w.edges)
	w.s.found.Add(w.found)
	w.s.states.Add(w.added)
	w.s.expanded.Add(w.expanded)
	w.edges, w.found, w.added, w.expanded = 0, 0, 0, 0
	return true, nil
}

// expand takes every move of the state now.
func (w *worker) expand(at ref) error {
	fp := w.now.Fingerprint()
	if fp != w.s.table.fingerprint(at) {
		return fmt.Errorf("%w: a state that was written and read back has another one", ErrUnfaithful)
	}
	w.moves = w.now.Moves(w.moves[:0])
	changes := false
	for _, m := range w.moves {
		w.after.CopyFrom(w.now)
		w.edges++
		if f := take(w.after, m); f != nil {
			changes = true
			w.finding(f, place{w.s.depth, true, fp, at})
			continue
		}
		next := w.after.Fingerprint()
		if next == fp {
			continue
		}
		changes = true
		r, did := w.s.table.add(next, at, fp)
		if did == isNew {
			w.added++
		}
		if did != knew {
			if err := w.put(r, at); err != nil {
				return err
			}
		}
	}
	if !changes {
		if f := final(w.now); f != nil {
			w.finding(f, place{w.s.depth, false, fp, at})
		}
	}
	return nil
}

func (w *worker) finding(f *Finding, at place) {
	w.found++
	known := w.findings[f.Kind]
	if known == nil {
		known = &tally{}
		w.findings[f.Kind] = known
	}
	known.add(&tally{1, at})
	if f.Kind == KindPanic {
		w.renew()
	}
}

// put adds the state after to the next level.
func (w *worker) put(r, parent ref) error {
	if w.out == nil {
		w.out = w.s.store.buffer()
	}
	before := len(w.out)
	w.out = appendRecord(w.out, r, parent, w.after)
	w.outRecords++
	size := len(w.out) - before
	if size > recordMost {
		return fmt.Errorf("a state takes %d bytes: at most %d", size-recordHead, recordMost-recordHead)
	}
	if len(w.out)+size > chunkBytes {
		return w.flush()
	}
	return nil
}

// flush gives the next level what there is for it.
func (w *worker) flush() error {
	if w.outRecords == 0 {
		return nil
	}
	out, n := w.out, w.outRecords
	w.out, w.outRecords = nil, 0
	return w.s.next.put(out, n)
}
