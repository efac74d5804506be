package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

type path struct {
	before *path
	what   string
}

func (p *path) list() []string {
	if p == nil {
		return nil
	}
	return append(p.before.list(), p.what)
}

// breadth visits every state of a system.
func breadth(t *testing.T, text string, most int) (states, edges int) {
	t.Helper()
	c, err := ParseConfig(text)
	require.NoError(t, err)
	sys, err := New(c)
	require.NoError(t, err)
	type node struct {
		s *State
		p *path
	}
	first := sys.New()
	seen := map[machine.Fingerprint]bool{first.Fingerprint(): true}
	queue := []node{{first, nil}}
	for len(queue) > 0 && len(seen) < most {
		n := queue[0]
		queue = queue[1:]
		stutter := true
		for _, m := range n.s.Moves(nil) {
			edges++
			what := sys.MoveText(n.s, m)
			s := n.s.Clone()
			if f := s.Take(m); f != nil {
				for _, l := range (&path{n.p, what}).list() {
					t.Log(l)
				}
				t.Fatal(f)
			}
			fp := s.Fingerprint()
			if fp != n.s.Fingerprint() {
				stutter = false
			}
			if !seen[fp] {
				seen[fp] = true
				queue = append(queue, node{s, &path{n.p, what}})
			}
		}
		if stutter {
			if f := n.s.Final(); f != nil {
				for _, l := range n.p.list() {
					t.Log(l)
				}
				t.Fatal(f)
			}
		}
	}
	t.Logf("%s: %d states, %d edges, %d left", text, len(seen), edges, len(queue))
	return len(seen), edges
}

func TestBreadth(t *testing.T) {
	for _, text := range []string{
		"opening runs=1",
		"opening runs=1 faults=1 spare=1",
		"opening runs=1 faults=1 close spare=2 borrowed",
		"runs=1 faults=1 detach",
	} {
		t.Run(text, func(t *testing.T) { breadth(t, text, 300000) })
	}
}
