package explore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

// small is a system whose state is a few bytes.
type small struct {
	name  string
	start []byte
	moves func(v []byte, dst []explore.Move) []explore.Move
	// take changes v; nil is no finding.
	take  func(v []byte, m explore.Move) *explore.Finding
	final func(v []byte) *explore.Finding
	// form turns v into what all states that look like it turn into; nil is v as
	// it is.
	form func(v []byte)
	// write changes what AppendBinary wrote; nil is not at all.
	write func(v []byte)
	rows  []string
	// row says which row a move takes.
	row func(v []byte, m explore.Move) int
}

func (s *small) New() explore.State { return &smallState{sys: s, v: slices.Clone(s.start)} }
func (s *small) Name() string       { return s.name }
func (s *small) Hash() machine.Fingerprint {
	return machine.Fingerprint{Hi: xxhash.Sum64String(s.name), Lo: 1}
}

func (s *small) MoveText(st explore.State, m explore.Move) string {
	return fmt.Sprintf("%v takes %d", st.(*smallState).v, m)
}

func (s *small) RowNames() []string { return s.rows }

type smallState struct {
	sys     *small
	v, work []byte
	fired   *explore.Rows
}

func (s *smallState) Moves(dst []explore.Move) []explore.Move { return s.sys.moves(s.v, dst) }

func (s *smallState) Take(m explore.Move) *explore.Finding {
	if s.sys.row != nil {
		s.fired.Mark(s.sys.row(s.v, m))
	}
	return s.sys.take(s.v, m)
}

func (s *smallState) Final() *explore.Finding {
	if s.sys.final == nil {
		return nil
	}
	return s.sys.final(s.v)
}

func (s *smallState) Fingerprint() machine.Fingerprint {
	s.work = append(s.work[:0], s.v...)
	if s.sys.form != nil {
		s.sys.form(s.work)
	}
	return fingerprint(s.work)
}

func fingerprint(b []byte) machine.Fingerprint {
	h := xxhash.Sum64(b)
	return machine.Fingerprint{Hi: bits.RotateLeft64(h, 32) * 0xd6e8feb86659fd93, Lo: h}
}

func (s *smallState) AppendBinary(dst []byte) []byte {
	dst = append(dst, s.v...)
	if s.sys.write != nil {
		s.sys.write(dst[len(dst)-len(s.v):])
	}
	return dst
}

func (s *smallState) SetBinary(src []byte) error {
	if len(src) != len(s.sys.start) {
		return errors.New("a state of another size")
	}
	copy(s.v, src)
	return nil
}

func (s *smallState) CopyFrom(o explore.State)  { copy(s.v, o.(*smallState).v) }
func (s *smallState) MarkIn(rows *explore.Rows) { s.fired = rows }

// counters are some that each count to most, one at a time: (most+1)^n states,
// a level for each sum. The first and the last move are taken by rows of their
// own; a row for counting back is never taken.
func counters(n, most int) *small {
	return &small{
		name:  fmt.Sprintf("%d counters to %d", n, most),
		start: make([]byte, n),
		moves: func(v []byte, dst []explore.Move) []explore.Move {
			for i, x := range v {
				if int(x) < most {
					dst = append(dst, explore.Move(i))
				}
			}
			return dst
		},
		take: func(v []byte, m explore.Move) *explore.Finding {
			v[m]++
			return nil
		},
		rows: []string{"begin", "count", "end", "count back", "count", "count back"},
		row: func(v []byte, m explore.Move) int {
			switch int(v[m]) {
			case 0:
				return 0
			case most - 1:
				return 2
			}
			return 1
		},
	}
}

// alike makes counters ones that cannot be told from one another.
func alike(s *small) *small {
	s.name += ", alike"
	s.form = slices.Sort[[]byte]
	return s
}

// partly makes counters ones of which only some that look alike are taken for
// the same, as a form does that does not try every order.
func partly(s *small) *small {
	s.name += ", partly alike"
	s.form = func(v []byte) {
		for i := range v[1:] {
			if v[i] > v[i+1] {
				v[i], v[i+1] = v[i+1], v[i]
				return
			}
		}
	}
	return s
}

// puzzle is the one of eight tiles in a square with a hole, numbered 0. It has
// 9!/2 states, the farthest of them 31 moves off. A finding is where v is want.
func puzzle(start, want string) *small {
	return &small{
		name:  "puzzle from " + start,
		start: []byte(start),
		moves: func(v []byte, dst []explore.Move) []explore.Move {
			hole := bytes.IndexByte(v, '0')
			for _, d := range []struct{ can, to int }{{hole / 3, hole - 3}, {2 - hole/3, hole + 3}, {hole % 3, hole - 1}, {2 - hole%3, hole + 1}} {
				if d.can > 0 {
					dst = append(dst, explore.Move(d.to))
				}
			}
			return dst
		},
		take: func(v []byte, m explore.Move) *explore.Finding {
			hole := bytes.IndexByte(v, '0')
			v[hole], v[m] = v[m], '0'
			if string(v) == want {
				return &explore.Finding{Kind: "solved", Detail: string(v)}
			}
			return nil
		},
	}
}

// jugs hold three and five gallons; four are wanted. It is the example that
// every model checker has: 16 states, and six actions in each.
func jugs() *small {
	return &small{
		name:  "jugs",
		start: []byte{0, 0},
		moves: func(_ []byte, dst []explore.Move) []explore.Move { return append(dst, 0, 1, 2, 3, 4, 5) },
		take: func(v []byte, m explore.Move) *explore.Finding {
			pour := min(v[0], 5-v[1])
			back := min(v[1], 3-v[0])
			switch m {
			case 0:
				v[0] = 3
			case 1:
				v[1] = 5
			case 2:
				v[0] = 0
			case 3:
				v[1] = 0
			case 4:
				v[0], v[1] = v[0]-pour, v[1]+pour
			case 5:
				v[0], v[1] = v[0]+back, v[1]-back
			}
			if v[1] == 4 {
				return &explore.Finding{Kind: "four", Detail: "gallons"}
			}
			return nil
		},
	}
}

// graph is any graph: edges, of which some break something, and states that it
// is wrong to end in. Nodes are pairs of bytes.
type graph struct {
	edges [][]int
	// broken has the kind of what an edge breaks.
	broken map[[2]int]string
	// stuck has the kind of what is wrong with ending in a node.
	stuck map[int]string
}

func (g *graph) system() *small {
	node := func(v []byte) int { return int(v[0])<<8 | int(v[1]) }
	return &small{
		name:  "graph",
		start: []byte{0, 0},
		moves: func(v []byte, dst []explore.Move) []explore.Move {
			for i := range g.edges[node(v)] {
				dst = append(dst, explore.Move(i))
			}
			return dst
		},
		take: func(v []byte, m explore.Move) *explore.Finding {
			from := node(v)
			to := g.edges[from][m]
			v[0], v[1] = byte(to>>8), byte(to)
			if k := g.broken[[2]int{from, int(m)}]; k != "" {
				return &explore.Finding{Kind: k, Detail: fmt.Sprint(from, " to ", to)}
			}
			return nil
		},
		final: func(v []byte) *explore.Finding {
			if k := g.stuck[node(v)]; k != "" {
				return &explore.Finding{Kind: k, Detail: fmt.Sprint("in ", node(v))}
			}
			return nil
		},
	}
}

// quarrel makes n counters find things on their way, of several kinds and
// at several depths, both in moves and where nothing can move.
func quarrel(s *small, n, most int) *small {
	s.name += ", quarrelling"
	count := s.take
	s.take = func(v []byte, m explore.Move) *explore.Finding {
		count(v, m)
		sum, top := 0, byte(0)
		for _, x := range v {
			sum += int(x)
			top = max(top, x)
		}
		switch {
		case sum == 2*n && int(top) == most-3:
			return &explore.Finding{Kind: "near", Detail: fmt.Sprint(v)}
		case sum == 2*n && int(top) == most-2:
			return &explore.Finding{Kind: "far", Detail: fmt.Sprint(v)}
		case sum == 3*n && int(top) == most-3:
			return &explore.Finding{Kind: "late", Detail: fmt.Sprint(v)}
		}
		return nil
	}
	s.final = func(v []byte) *explore.Finding { return &explore.Finding{Kind: "full", Detail: fmt.Sprint(v)} }
	return s
}

// heavy makes states of a system take more bytes.
func heavy(s *small, n int) *small {
	s.name += fmt.Sprintf(", %d bytes", n)
	real := len(s.start)
	s.start = append(s.start, make([]byte, n)...)
	_, _ = rand.NewChaCha8([32]byte{}).Read(s.start[real:]) // which does not pack
	if moves := s.moves; moves != nil {
		s.moves = func(v []byte, dst []explore.Move) []explore.Move { return moves(v[:real], dst) }
	}
	if form := s.form; form != nil {
		s.form = func(v []byte) { form(v[:real]) }
	}
	return s
}
