package explore

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
)

// WalkOptions say how to walk.
type WalkOptions struct {
	// Rules are the lifecycles; nil is states.Rules.
	Rules *machine.Rules
	// Bounds are those of every walk; nil lets each walk draw its own.
	Bounds *model.Config
	// Seed and a walk's number decide all that the walk does.
	Seed uint64
	// Walks is how many walks there are; 0 is as many as there is time for until
	// the context ends.
	Walks uint64
	// Moves is how many moves a walk has at most; 0 is 10,000. Every walk ends,
	// most after some hundreds.
	Moves int
	// Workers is how many goroutines walk; 0 is as many as GOMAXPROCS. Results do
	// not depend on it.
	Workers int
	// KeepGoing goes on behind a walk with a finding.
	KeepGoing bool
	// Progress, if not nil, is told how far the walks are, each Tick: 0 is once
	// a second. One call is made at a time.
	Progress func(WalkReport)
	Tick     time.Duration
}

// WalkReport says how far walks are.
type WalkReport struct {
	Walks, Moves, Findings uint64
	Elapsed                time.Duration
}

// WalkResult is what walks saw. All of it but Elapsed follows from rules, bounds,
// seed and the number of walks, on every machine.
type WalkResult struct {
	// Walks is how many walks there were, the first of them being number 0.
	Walks uint64
	// Moves is how many moves they took, Unchanged how many of them changed
	// nothing, Longest the most that one walk took.
	Moves, Unchanged, Longest uint64
	// Rows is how many rows the rules have, NeverTaken those of them that no walk
	// took.
	Rows       int
	NeverTaken []string
	// Findings has one finding of each kind, that of the first walk that had it.
	Findings []WalkFinding
	Elapsed  time.Duration
}

// WalkFinding is a finding, and a way to it.
type WalkFinding struct {
	Finding Finding
	// Count is how many walks ended with a finding of this kind.
	Count uint64
	// Walk is the number of the first that did, Config what its bounds were and
	// Acts all that happened in it.
	Walk   uint64
	Config model.Config
	Acts   []model.Act
}

const defaultMoves = 10_000

// Walk takes random walks through lanes and their devices. Unlike a search it
// does not see everything within its bounds, but the bounds are wide: many runs,
// slots and threads, several faults, hundreds of moves. Each walk draws its own
// bounds, faults and likings. Unless it is to keep going it ends with the first
// walk that has a finding: that of the lowest number.
//
// The end of ctx ends it after the walks that are under way, without an error.
// The error is one of [model.New], for the rules and bounds that are given or for
// bounds that a walk drew.
func Walk(ctx context.Context, o WalkOptions) (*WalkResult, error) {
	o.Workers = cmp.Or(max(o.Workers, 0), runtime.GOMAXPROCS(0))
	o.Moves = cmp.Or(o.Moves, defaultMoves)
	o.Tick = cmp.Or(o.Tick, time.Second)
	probe := model.Config{Rules: o.Rules}
	if o.Bounds != nil {
		probe = *o.Bounds
		probe.Rules = o.Rules
	}
	l, err := newLane(probe)
	if err != nil {
		return nil, err
	}
	w := &walking{o: o, base: l.System, names: l.names, first: l.first, started: time.Now()}
	w.last.Store(^uint64(0))
	if o.Walks > 0 {
		w.last.Store(o.Walks - 1)
	}
	defer w.ticking()()
	var wg sync.WaitGroup
	for range o.Workers {
		wg.Go(func() { w.work(ctx) })
	}
	wg.Wait()
	return w.result()
}

// walking is walks under way.
type walking struct {
	o WalkOptions
	// base has the rules.
	base  *model.System
	names []string // of rows
	first []int    // row of each machine

	next atomic.Uint64
	// last is the number of the last walk that counts.
	last atomic.Uint64

	walks, moves, found atomic.Uint64
	started             time.Time

	mu    sync.Mutex
	ended []walked
}

// walked is what came of one walk, or of several with no finding.
type walked struct {
	from, to                  uint64 // the numbers of the walks
	moves, unchanged, longest uint64
	rows                      *Rows
	finding                   *Finding
	err                       error
	config                    model.Config
	acts                      []model.Act
}

// plain reports whether there is nothing to be told of it.
func (x *walked) plain() bool { return x.finding == nil && x.err == nil }

// work walks until there is no walk left that counts.
func (w *walking) work(ctx context.Context) {
	fired := newRows(len(w.names))
	for ctx.Err() == nil {
		n := w.next.Add(1) - 1
		if n > w.last.Load() {
			return
		}
		x := w.walk(n, fired)
		w.walks.Add(1)
		w.moves.Add(x.moves)
		if !x.plain() {
			w.found.Add(1)
			if !w.o.KeepGoing || x.err != nil {
				for last := w.last.Load(); n < last && !w.last.CompareAndSwap(last, n); last = w.last.Load() {
				}
			}
		}
		w.keep(x)
	}
}

// keep files what came of a walk, with those that came right before or after.
func (w *walking) keep(x walked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, _ := slices.BinarySearchFunc(w.ended, x.from, func(e walked, n uint64) int { return cmp.Compare(e.from, n) })
	w.ended = slices.Insert(w.ended, i, x)
	for j := i; j <= i+1; j++ {
		if j == 0 || j >= len(w.ended) {
			continue
		}
		if a, b := &w.ended[j-1], &w.ended[j]; a.to+1 == b.from && a.plain() && b.plain() {
			a.add(b)
			w.ended = slices.Delete(w.ended, j, j+1)
			j--
		}
	}
}

func (x *walked) add(b *walked) {
	x.to = b.to
	x.moves += b.moves
	x.unchanged += b.unchanged
	x.longest = max(x.longest, b.longest)
	x.rows.take(b.rows)
}

func (w *walking) result() (*WalkResult, error) {
	r := &WalkResult{Rows: len(w.names), Elapsed: time.Since(w.started)}
	sum := walked{rows: newRows(len(w.names))}
	kinds := map[string]int{}
	for i := range w.ended {
		x := &w.ended[i]
		if x.from > w.last.Load() {
			break
		}
		if x.err != nil {
			return nil, fmt.Errorf("walk %d, %s: %w", x.from, x.config.String(), x.err)
		}
		r.Walks += x.to - x.from + 1
		sum.add(x)
		if x.finding == nil {
			continue
		}
		at, known := kinds[x.finding.Kind]
		if !known {
			at = len(r.Findings)
			kinds[x.finding.Kind] = at
			r.Findings = append(r.Findings, WalkFinding{Finding: *x.finding, Walk: x.from, Config: x.config, Acts: x.acts})
		}
		r.Findings[at].Count++
	}
	r.Moves, r.Unchanged, r.Longest = sum.moves, sum.unchanged, sum.longest
	for i, name := range w.names {
		if !sum.rows.has(i) {
			r.NeverTaken = append(r.NeverTaken, name)
		}
	}
	return r, nil
}

// walk takes one walk, from its number alone.
func (w *walking) walk(n uint64, fired *Rows) walked {
	r := rand.New(rand.NewPCG(w.o.Seed, n))
	x := walked{from: n, to: n, rows: newRows(len(w.names))}
	if x.config = drawConfig(r); w.o.Bounds != nil {
		x.config = *w.o.Bounds
	}
	x.config.Rules = w.base.Rules()
	how := drawSwarm(r)
	var sys *model.System
	if sys, x.err = w.base.Bounded(x.config); x.err != nil {
		return x
	}
	s := &walker{sys: sys, now: sys.New(), how: &how, rand: r}
	s.now.Seen(func(rec *machine.Record) {
		if rec.Row != machine.NoRowID {
			fired.Mark(w.first[rec.Ref.Machine] + int(rec.Row))
		}
	})
	x.finding = s.walk(w.o.Moves)
	x.moves, x.unchanged, x.longest = s.moves, s.unchanged, s.moves
	x.rows.take(fired)
	if x.finding != nil {
		x.acts = s.acts
	}
	return x
}

// walker is one walk under way.
type walker struct {
	sys  *model.System
	now  *model.State
	how  *swarm
	rand *rand.Rand

	acts             []model.Act // that changed something, and the last
	moves, unchanged uint64
	// left are the moves of the present state that were not tried in vain.
	left []candidate
	all  []Move
}

type candidate struct {
	move   Move
	act    model.Act
	weight int
}

// walk goes on until something is found, nothing changes any more, or most moves
// are taken.
func (w *walker) walk(most int) (f *Finding) {
	defer panicked(&f)
	w.look()
	for range most {
		if len(w.left) == 0 {
			return w.now.Final()
		}
		i := w.pick()
		c := w.left[i]
		w.acts = append(w.acts, c.act)
		w.moves++
		p, f := w.now.Step(c.move)
		if p == model.Unsure && f == nil {
			p, f = w.surely()
		}
		switch {
		case f != nil:
			return f
		case p == model.Unchanged:
			w.unchanged++
			w.acts = w.acts[:len(w.acts)-1]
			w.left = slices.Delete(w.left, i, i+1)
		default:
			w.look()
		}
	}
	return nil
}

// panicked makes a panic a finding, which says the same wherever it happens.
func panicked(f **Finding) {
	if p := recover(); p != nil {
		*f = &Finding{Kind: KindPanic, Detail: fmt.Sprint(p)}
	}
}

// look finds out what may happen next.
func (w *walker) look() {
	w.left = w.left[:0]
	w.all = w.now.Moves(w.all[:0])
	for _, m := range w.all {
		a := w.now.Act(m)
		w.left = append(w.left, candidate{m, a, w.how.weight(a)})
	}
}

// pick chooses one of what is left.
func (w *walker) pick() int {
	total := 0
	for i := range w.left {
		total += w.left[i].weight
	}
	if total == 0 {
		return w.rand.IntN(len(w.left))
	}
	at := w.rand.IntN(total)
	for i := range w.left {
		if at -= w.left[i].weight; at < 0 {
			return i
		}
	}
	panic("explore: weights that do not add up")
}

// surely takes the way again to see what its last act does.
func (w *walker) surely() (model.Progress, *Finding) { return again(w.sys.New(), w.acts) }

// again takes acts from a state, and sees what the last of them does.
func again(s *model.State, acts []model.Act) (model.Progress, *Finding) {
	last := len(acts) - 1
	for _, a := range acts[:last] {
		if m, ok := s.Offered(a); ok {
			s.Step(m)
		}
	}
	before := s.Fingerprint()
	m, ok := s.Offered(acts[last])
	if !ok {
		panic("the same moves do not lead to the same state")
	}
	f := s.Take(m)
	if s.Fingerprint() == before {
		return model.Unchanged, f
	}
	return model.Nearer, f
}

// ticking reports now and then until what it returns is called.
func (w *walking) ticking() (stop func()) {
	if w.o.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(w.o.Tick)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				w.o.Progress(WalkReport{w.walks.Load(), w.moves.Load(), w.found.Load(), time.Since(w.started)})
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// String says where the finding was made.
func (f *WalkFinding) String() string {
	return strings.TrimSpace(fmt.Sprintf("walk %d: %v", f.Walk, &f.Finding))
}
