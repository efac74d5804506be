package invariants

import (
	"fmt"
	"sync"

	"github.com/runfence/runfence/machine"
)

// Watch is a recorder that checks a world while it runs: it plays the records
// on a world of its own and holds that to every invariant, step by step. It
// costs about as much as the step itself, under the world's lock. Findings and
// Standings may be called at any time, from any goroutine.
type Watch struct {
	mu       sync.Mutex
	next     machine.Recorder
	observer Observer
	own      *machine.World
	before   *machine.World
	made     []machine.Record // of the step that own took last
	behind   int              // how many of made the watched world has told
	findings []*Finding
	err      error
}

// NewWatch watches a world with that configuration, from its first record.
// Each record is handed on to c.Recorder, if there is one. Errors: those of
// [machine.Rules.NewWorld].
func NewWatch(rules *machine.Rules, c machine.Config) (*Watch, error) {
	w := &Watch{next: c.Recorder}
	c.Recorder, c.Clock = ownRecords{w}, nil
	var err error
	if w.own, err = rules.NewWorld(c); err != nil {
		return nil, err
	}
	w.before = w.own.Clone()
	return w, nil
}

// ownRecords takes the records of the watch's own world.
type ownRecords struct{ w *Watch }

func (c ownRecords) Record(r *machine.Record) { c.w.made = append(c.w.made, *r) }

// Record implements [machine.Recorder].
func (w *Watch) Record(r *machine.Record) {
	w.mu.Lock()
	w.take(r)
	w.mu.Unlock()
	if w.next != nil {
		w.next.Record(r)
	}
}

// Flush implements [machine.Flusher], for the recorder behind.
func (w *Watch) Flush() {
	if f, ok := w.next.(machine.Flusher); ok {
		f.Flush()
	}
}

func (w *Watch) take(r *machine.Record) {
	if w.err != nil {
		return
	}
	if w.behind == len(w.made) {
		w.before.CopyFrom(w.own)
		w.made, w.behind = w.made[:0], 0
		w.play(r)
		if w.observer.checker == nil {
			w.observer.begin(w.own, w.made0())
		}
		w.findings = append(w.findings, w.observer.look(w.before, w.own, w.made)...)
	}
	if w.behind >= len(w.made) || !sameStep(&w.made[w.behind], r) {
		w.err = fmt.Errorf("record %d of %s is not what the rules make of the records before it", r.Seq, w.own.Rules().RefName(r.Ref))
		return
	}
	w.behind++
}

func (w *Watch) made0() uint64 {
	if len(w.made) == 0 {
		return 0
	}
	return w.made[0].Seq
}

// play takes the step that a record begins.
func (w *Watch) play(r *machine.Record) {
	switch {
	case r.Kind == machine.Settled || r.Kind == machine.Holed:
		w.own.Settle(r.Ref, r.Result)
	case r.Kind == machine.Dropped:
		w.own.Drop(r.Ref)
	case r.Kind == machine.Reserved:
		if sorts := w.own.Rules().Sorts(); int(r.Event) < len(sorts) {
			w.own.ReserveIdentity(sorts[r.Event], r.Args[0])
		}
	case r.Via == machine.ViaQueue:
		w.own.Next(r.Root)
	default:
		w.own.Issue(r.Ref, r.Event, r.Args[:r.NArgs]...)
	}
}

// sameStep compares what makes two records those of one transition.
func sameStep(a, b *machine.Record) bool {
	return a.Seq == b.Seq && a.Kind == b.Kind && a.Ref == b.Ref && a.Row == b.Row && a.Target == b.Target && a.From == b.From && a.To == b.To
}

// Findings returns what does not hold, in order. The error says that the
// records cannot be followed any more: they are not of the rules, or some are
// missing; what came after is not checked.
func (w *Watch) Findings() ([]*Finding, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*Finding(nil), w.findings...), w.err
}

// Standings tells what is known of each invariant, as [Observer.Standings] does.
func (w *Watch) Standings() []Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.observer.Standings()
}

// View calls f with the world as its records have it, which is that of the watch:
// f may look at it until it returns, and must not change it.
func (w *Watch) View(f func(*machine.World)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.own)
}
