package explore

import (
	"slices"

	"github.com/runfence/runfence/invariants/model"
)

// Shrunk is a short way to a finding.
type Shrunk struct {
	// Finding is of the kind of that which was shrunk.
	Finding Finding
	Config  model.Config
	// Pools are those of the world that a log of it has.
	Pools map[string]int
	// Moves are the way there: see [System.MoveText].
	Moves []string
	// Taken is how many moves were taken to find it. GaveUp: there were no more to
	// take, and there may be a shorter way that is like this one.
	Taken  uint64
	GaveUp bool
}

// Story tells a shrunk finding.
func (s *Shrunk) Story(about string) Story {
	return Story{Config: s.Config, About: about, Moves: s.Moves}
}

const mostShrinking = 5_000_000

// Shrink looks for a shorter way to a finding of the same kind, within smaller
// bounds: it leaves out what the host did for a run, and moves, many at a time at
// first, and makes the bounds smaller one by one, until none of that works any
// more or most moves are taken; 0 is five million. What it comes to follows from
// what it begins with. The error is one of [model.New].
func Shrink(f WalkFinding, most uint64) (*Shrunk, error) {
	if most == 0 {
		most = mostShrinking
	}
	sys, err := model.New(f.Config)
	if err != nil {
		return nil, err
	}
	s := &shrinking{kind: f.Finding.Kind, most: most, best: &way{sys: sys, config: f.Config, acts: f.Acts, finding: f.Finding}}
	if s.try(f.Config, f.Acts, 0) {
		s.shrink()
	}
	out := &Shrunk{Finding: s.best.finding, Config: s.best.config, Taken: s.taken, GaveUp: s.spent()}
	out.Moves, out.Pools = s.best.texts(), s.best.sys.Pools()
	return out, nil
}

// shrinking is a finding that is being shrunk.
type shrinking struct {
	kind        string
	most, taken uint64
	best        *way
}

func (s *shrinking) spent() bool { return s.taken >= s.most }

func (s *shrinking) shrink() {
	for again := true; again && !s.spent(); {
		again = s.fewerLives()
		again = s.fewerActs() || again
		again = s.smallerBounds() || again
	}
}

// fewerLives leaves out all that happened to one run from its beginning until
// the next one begins in its slot. Then later runs begin in other slots.
func (s *shrinking) fewerLives() (fewer bool) {
	for at := len(s.best.acts) - 1; at >= 0 && !s.spent(); at-- {
		at = min(at, len(s.best.acts)-1)
		if !s.best.acts[at].Begins() {
			continue
		}
		slot, _ := s.best.sys.SlotOf(s.best.acts[at])
		var rest []model.Act
		gone := false
		for i, a := range s.best.acts[at:] {
			of, ok := s.best.sys.SlotOf(a)
			gone = gone || i > 0 && of == slot && a.Begins()
			if gone || !ok || of != slot {
				rest = append(rest, a)
			}
		}
		for other := range s.best.config.Slots {
			acts := slices.Clone(s.best.acts[:at])
			for _, a := range rest {
				acts = append(acts, s.best.sys.Swap(a, slot, other))
			}
			if s.try(s.best.config, acts, at) {
				fewer = true
				break
			}
		}
	}
	return fewer
}

// fewerActs leaves acts out, in chunks that become smaller, until no single one
// can be left out any more.
func (s *shrinking) fewerActs() (fewer bool) {
	for chunk := max(1, len(s.best.acts)/2); !s.spent(); {
		shorter := false
		// From the end: what comes late depends on what came before.
		for to := len(s.best.acts); to > 0 && !s.spent(); to -= chunk {
			to = min(to, len(s.best.acts))
			from := max(0, to-chunk)
			shorter = s.try(s.best.config, slices.Concat(s.best.acts[:from], s.best.acts[to:]), from) || shorter
		}
		fewer = fewer || shorter
		if chunk == 1 && !shorter {
			break
		}
		if !shorter || chunk > len(s.best.acts) {
			chunk = max(1, min(chunk, len(s.best.acts))/2)
		}
	}
	return fewer
}

// smallerBounds tries smaller bounds one after another.
func (s *shrinking) smallerBounds() (smaller bool) {
	for _, change := range s.best.config.Smaller() {
		if c := s.best.config; change(&c) {
			smaller = s.try(c, s.best.acts, 0) || smaller
		}
	}
	return smaller
}

// try takes a way that is that of the best one up to some act, and keeps it if
// it leads to a finding of the kind and is no longer than the best one.
func (s *shrinking) try(c model.Config, acts []model.Act, same int) bool {
	if s.spent() {
		return false
	}
	w := s.best.branch(c, same)
	if w == nil {
		return false
	}
	from := len(w.acts)
	f := w.take(acts[from:], s.kind)
	s.taken += w.taken
	if f == nil || f.Kind != s.kind || len(w.acts) > len(acts) {
		return false
	}
	w.finding = *f
	s.best = w
	return true
}

// way is a way through a model.
type way struct {
	sys     *model.System
	config  model.Config
	acts    []model.Act
	finding Finding
	taken   uint64 // moves
	now     *model.State
	// marks has the state before every so many acts.
	marks []*model.State
}

const markEvery = 16

// branch begins a way in the bounds c that shares acts with this one.
func (w *way) branch(c model.Config, same int) *way {
	b := &way{sys: w.sys, config: c}
	if same = min(same/markEvery, len(w.marks)-1); same > 0 {
		b.acts = slices.Clone(w.acts[:same*markEvery])
		b.marks = slices.Clone(w.marks[:same])
		b.now = w.marks[same].Clone()
		return b
	}
	if c != w.config {
		var err error
		if b.sys, err = w.sys.Bounded(c); err != nil {
			return nil
		}
	}
	b.now = b.sys.New()
	return b
}

// take takes those of the acts that are offered. If what is looked for may be
// wrong with a state, it goes on to an end, without the host and without faults.
func (w *way) take(acts []model.Act, kind string) (f *Finding) {
	defer panicked(&f)
	for _, a := range acts {
		if m, ok := w.now.Offered(a); ok {
			if f := w.step(a, m); f != nil {
				return f
			}
		}
	}
	if kind == model.Deadlock || kind == model.Unfinished {
		return w.end()
	}
	return nil
}

// step lets a move happen; it is no part of the way if it changes nothing.
func (w *way) step(a model.Act, m Move) *Finding {
	if len(w.acts) == len(w.marks)*markEvery {
		w.marks = append(w.marks, w.now.Clone())
	}
	w.taken++
	w.acts = append(w.acts, a)
	p, f := w.now.Step(m)
	if f == nil && p == model.Unsure {
		p, f = w.surely()
	}
	if f == nil && p == model.Unchanged {
		w.acts = w.acts[:len(w.acts)-1]
	}
	return f
}

// surely takes the last act again to see what it does.
func (w *way) surely() (model.Progress, *Finding) {
	at := len(w.marks) - 1
	return again(w.marks[at].Clone(), w.acts[at*markEvery:])
}

// end goes on until nothing changes any more.
func (w *way) end() *Finding {
	for {
		length := len(w.acts)
		for _, m := range w.now.Moves(nil) {
			a := w.now.Act(m)
			if a.Class().Fault() {
				continue
			}
			if f := w.step(a, m); f != nil {
				return f
			}
			if len(w.acts) != length {
				break
			}
		}
		if len(w.acts) == length {
			return w.now.Final()
		}
	}
}

// texts writes the acts as moves.
func (w *way) texts() (out []string) {
	now := w.sys.New()
	for _, a := range w.acts {
		m, ok := now.Offered(a)
		if !ok {
			continue
		}
		out = append(out, w.sys.MoveText(now, m))
		var f *Finding
		func() {
			defer panicked(&f)
			_, f = now.Step(m)
		}()
		if f != nil {
			break
		}
	}
	return out
}
