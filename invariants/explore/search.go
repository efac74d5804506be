package explore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runfence/runfence/machine"
)

// batchStates is how many states a worker takes at a time, unless a level has so
// few that others would have none.
const batchStates = 64

// Search visits every state of a system within the bounds, level by level: all
// states that some number of moves lead to before any that takes more. So the
// first finding is a shortest one. What it finds does not depend on the number
// of workers; see [Result].
//
// A search that a bound or the end of ctx stops has no error: the result says
// what was seen, and the checkpoint, if one is asked for, has the rest. Errors
// are of files, [*CheckpointError] for a checkpoint, or match [ErrUnfaithful].
func Search(ctx context.Context, sys System, o Options) (_ *Result, err error) {
	o.Workers = cmp.Or(max(o.Workers, 0), runtime.GOMAXPROCS(0))
	o.Tick = cmp.Or(o.Tick, time.Second)
	s := &search{sys: sys, o: o, table: newTable(), findings: map[string]*tally{}, started: time.Now()}
	s.store = &chunkStore{dir: o.Dir, room: func() int64 { return math.MaxInt64 }}
	if o.Memory > 0 {
		s.store.room = func() int64 { return o.Memory - s.table.bytes.Load() }
	}
	s.now, s.next = &frontier{store: s.store}, &frontier{store: s.store}
	defer func() { err = errors.Join(err, s.now.close(), s.next.close()) }()
	if n, ok := sys.(RowNamer); ok {
		s.rowNames = n.RowNames()
	}
	s.fired = newRows(len(s.rowNames))
	for range o.Workers {
		s.workers = append(s.workers, newWorker(s))
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	return s.run(ctx)
}

// search is one under way.
type search struct {
	sys      System
	o        Options
	rowNames []string

	table     *table
	store     *chunkStore
	now, next *frontier // the level that is expanded, and what it leads to
	depth     int       // of the states of now
	reached   uint64    // the states of now and of all levels before
	batch     int       // how many of them a worker takes at a time
	workers   []*worker

	states, edges, expanded, found atomic.Uint64

	findings map[string]*tally
	fired    *Rows

	// before is the time spent before the checkpoint that was resumed.
	before  time.Duration
	started time.Time

	// pausing asks workers to stop after their batches, for a checkpoint.
	pausing atomic.Bool
	// failure is the first error of a worker.
	failure atomic.Pointer[error]
	// telling is held while Progress is told, and while a level ends.
	telling sync.Mutex
}

// begin puts the first state into the frontier, or what a checkpoint has.
func (s *search) begin() error {
	if s.o.Resume {
		return s.resume()
	}
	if s.o.Checkpoint != "" {
		if _, err := os.Stat(s.o.Checkpoint); !errors.Is(err, os.ErrNotExist) {
			if err != nil {
				return err
			}
			return &CheckpointError{s.o.Checkpoint, ErrCheckpointExists, ""}
		}
	}
	first := s.sys.New()
	r, _ := s.table.add(first.Fingerprint(), noRef, machine.Fingerprint{})
	s.table.endLevel()
	s.states.Store(1)
	s.reached = 1
	return s.now.put(appendRecord(s.store.buffer(), r, noRef, first), 1)
}

func (s *search) run(ctx context.Context) (*Result, error) {
	defer s.ticking()()
	why := NotStopped
	for s.now.records.Load() > 0 {
		if why = s.why(ctx); why != NotStopped {
			break
		}
		if s.o.MaxDepth > 0 && s.depth >= s.o.MaxDepth {
			why = AtDepth
			break
		}
		if err := s.level(ctx); err != nil {
			return nil, err
		}
		if s.now.records.Load() > 0 {
			if s.pausing.Swap(false) {
				if err := s.writeCheckpoint(); err != nil {
					return nil, err
				}
			}
			continue
		}
		if err := s.endLevel(); err != nil {
			return nil, err
		}
		if len(s.findings) > 0 && !s.o.KeepGoing {
			why = AtFinding
			break
		}
	}
	r, err := s.result(why)
	if err == nil && why != NotStopped && why != AtFinding && s.o.Checkpoint != "" {
		err = s.writeCheckpoint()
	}
	return r, err
}

// why says which bound the search has met.
func (s *search) why(ctx context.Context) Stop {
	switch {
	case ctx.Err() != nil:
		return Interrupted
	case s.o.MaxStates > 0 && s.states.Load() >= s.o.MaxStates:
		return AtStates
	case s.o.Memory > 0 && s.table.bytes.Load() > s.o.Memory:
		return AtMemory
	case s.table.full.Load():
		return AtTable
	}
	return NotStopped
}

// level expands what is left of a level, or until it is to stop.
func (s *search) level(ctx context.Context) error {
	records := int(s.now.records.Load())
	s.batch = cmp.Or(s.o.batch, min(batchStates, max(1, records/(4*len(s.workers)))))
	workers := s.workers[:min(len(s.workers), records)]
	var wg sync.WaitGroup
	for _, w := range workers[1:] {
		wg.Go(func() { w.run(ctx) })
	}
	workers[0].run(ctx)
	wg.Wait()
	for _, w := range workers {
		s.fired.take(w.fired)
		for kind, t := range w.findings {
			if s.findings[kind] == nil {
				s.findings[kind] = &tally{}
			}
			s.findings[kind].add(t)
		}
		clear(w.findings)
	}
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// endLevel goes on to the next level.
func (s *search) endLevel() error {
	s.report()
	s.table.endLevel()
	s.telling.Lock()
	defer s.telling.Unlock()
	s.depth++
	s.reached = s.states.Load()
	s.now, s.next = s.next, s.now
	return s.next.empty()
}

// goesOn reports whether a worker is to take another batch.
func (s *search) goesOn(ctx context.Context) bool {
	return !s.pausing.Load() && s.failure.Load() == nil && s.why(ctx) == NotStopped
}

func (s *search) elapsed() time.Duration { return s.before + time.Since(s.started) }

// result says what was seen.
func (s *search) result(why Stop) (*Result, error) {
	r := &Result{
		Finished: why == NotStopped, Stopped: why,
		States: s.states.Load(), Edges: s.edges.Load(), Frontier: s.states.Load() - s.expanded.Load(), Depth: s.depth, Deepest: s.depth - 1,
		Elapsed:    s.elapsed(),
		TableBytes: s.table.peak.Load(), FrontierBytes: s.store.peakMemory.Load(), DiskBytes: s.store.toDisk.Load(),
	}
	switch {
	case r.States > s.reached:
		r.Deepest = s.depth + 1
	case r.Frontier > 0:
		r.Deepest = s.depth
	}
	r.NeverFired, r.Rows = s.fired.never(s.rowNames)
	var err error
	r.Findings, err = s.counterexamples()
	return r, err
}

// ticking reports now and then, and asks for checkpoints, until what it returns
// is called.
func (s *search) ticking() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	every := func(d time.Duration, do func()) {
		wg.Go(func() {
			t := time.NewTicker(d)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					do()
				case <-done:
					return
				}
			}
		})
	}
	if s.o.Progress != nil {
		every(s.o.Tick, s.report)
	}
	if s.o.Checkpoint != "" && s.o.Every > 0 {
		every(s.o.Every, func() { s.pausing.Store(true) })
	}
	return func() {
		close(done)
		wg.Wait()
	}
}

// report tells Progress how far the search is.
func (s *search) report() {
	if s.o.Progress == nil {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.o.Progress(Report{
		Depth: s.depth, States: s.states.Load(), Edges: s.edges.Load(), Findings: s.found.Load(),
		Left: s.reached - s.expanded.Load(), Next: s.states.Load() - s.reached,
		TableBytes: s.table.bytes.Load(), FrontierBytes: s.store.inMemory.Load(), DiskBytes: s.store.onDisk.Load(),
		Elapsed: s.elapsed(),
	})
}
