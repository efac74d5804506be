package explore

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// KindPanic is the kind of a finding that is a panic of the system itself.
const KindPanic = "panic"

// Counterexample is a shortest way to a finding, from the state that everything
// begins with. Each of its moves can be taken as it stands: symmetry is not in
// it.
type Counterexample struct {
	Finding Finding
	// Count is how many moves, or states without a way on, had a finding of this
	// kind.
	Count uint64
	// Moves are the way there, Texts what they say. If Last is set the last of
	// them is what broke it; else it is the state that they lead to.
	Moves []Move
	Texts []string
	Last  bool
}

// ErrUnfaithful is matched by the error of a search whose system contradicts
// itself: a state that was written and read back has another fingerprint, or a
// way that was walked once cannot be walked again.
const ErrUnfaithful machine.Reason = "the system contradicts itself"

// tally is what is kept of the findings of one kind: how many, and where the
// first one is.
type tally struct {
	count uint64
	place
}

// place is where a finding is: in a state, or in a move from there. Which of the
// moves it was comes out when the way there is walked again.
type place struct {
	level int // of the state
	move  bool
	fp    machine.Fingerprint
	at    ref
}

func (p *place) length() int {
	if p.move {
		return p.level + 1
	}
	return p.level
}

// compare orders places: by the length of the way; of those that are equal in
// that, moves are found a level before the states that others lead to; then by
// fingerprint.
func (p *place) compare(o *place) int {
	return cmp.Or(
		cmp.Compare(p.length(), o.length()), cmp.Compare(p.level, o.level),
		cmp.Compare(p.fp.Hi, o.fp.Hi), cmp.Compare(p.fp.Lo, o.fp.Lo),
	)
}

func (t *tally) add(o *tally) {
	if t.count == 0 || o.compare(&t.place) < 0 {
		t.place = o.place
	}
	t.count += o.count
}

// take lets a move happen; a panic is a finding.
func take(s State, m Move) (f *Finding) {
	defer caught(&f)
	return s.Take(m)
}

// final asks a state what is wrong with it; a panic is a finding.
func final(s State) (f *Finding) {
	defer caught(&f)
	return s.Final()
}

func caught(f **Finding) {
	if p := recover(); p != nil {
		*f = &Finding{Kind: KindPanic, Detail: fmt.Sprintf("%v\n%s", p, strings.TrimSpace(string(debug.Stack())))}
	}
}

// counterexamples walks to the findings, the shortest first.
func (s *search) counterexamples() ([]Counterexample, error) {
	type found struct {
		Counterexample
		place
		position int
	}
	var all []found
	for kind, t := range s.findings {
		c, position, err := s.walk(kind, t)
		if err != nil {
			return nil, err
		}
		all = append(all, found{c, t.place, position})
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(a.place.compare(&b.place), cmp.Compare(a.position, b.position), cmp.Compare(a.Finding.Kind, b.Finding.Kind))
	})
	var out []Counterexample
	for _, f := range all {
		out = append(out, f.Counterexample)
	}
	return out, nil
}

// walk goes to a finding of some kind, and returns the position of the move
// that is its last, or -1.
func (s *search) walk(kind string, t *tally) (c Counterexample, position int, err error) {
	c.Count = t.count
	way, err := s.wayTo(t.at)
	if err != nil {
		return c, 0, err
	}
	now, next := s.sys.New(), s.sys.New()
	var moves []Move
	// step takes the first move that does as is asked.
	step := func(asked func(f *Finding) bool) (int, error) {
		moves = now.Moves(moves[:0])
		for i, m := range moves {
			next.CopyFrom(now)
			if f := take(next, m); asked(f) {
				c.Moves = append(c.Moves, m)
				c.Texts = append(c.Texts, s.sys.MoveText(now, m))
				now, next = next, now
				return i, nil
			}
		}
		return 0, fmt.Errorf("%w: on the way to %q, no move leads on after %d", ErrUnfaithful, kind, len(c.Moves))
	}
	if now.Fingerprint() != way[0] {
		return c, 0, fmt.Errorf("%w: the first state has another one now", ErrUnfaithful)
	}
	for _, fp := range way[1:] {
		if _, err := step(func(f *Finding) bool { return f == nil && next.Fingerprint() == fp }); err != nil {
			return c, 0, err
		}
	}
	if !t.move {
		f := final(now)
		if f == nil || f.Kind != kind {
			return c, 0, fmt.Errorf("%w: after %d moves there is no %q any more", ErrUnfaithful, len(c.Moves), kind)
		}
		c.Finding = *f
		return c, -1, nil
	}
	c.Last = true
	position, err = step(func(f *Finding) bool {
		if f == nil || f.Kind != kind {
			return false
		}
		c.Finding = *f
		return true
	})
	return c, position, err
}

// wayTo returns the fingerprints from the first state to that at r.
func (s *search) wayTo(r ref) ([]machine.Fingerprint, error) {
	var way []machine.Fingerprint
	for ; r != noRef; r = s.table.parent(r) {
		if len(way) > s.depth+1 {
			return nil, fmt.Errorf("%w: the way to a finding is too long", ErrUnfaithful)
		}
		way = append(way, s.table.fingerprint(r))
	}
	slices.Reverse(way)
	return way, nil
}
