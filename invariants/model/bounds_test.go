package model_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
)

func system(t require.TestingT, text string) *model.System {
	c, err := model.ParseConfig(text)
	require.NoError(t, err)
	sys, err := model.New(c)
	require.NoError(t, err)
	return sys
}

// way is how a state was come to.
type way struct {
	before *way
	move   string
}

func (w *way) String() string {
	if w == nil {
		return ""
	}
	return fmt.Sprintf("%v\n%s", w.before, w.move)
}

// visit counts every state of a system and every move that is taken there, and
// fails if anything is wrong with one of them.
func visit(t *testing.T, sys *model.System) (states, moves int) {
	type place struct {
		state *model.State
		way   *way
	}
	seen := map[machine.Fingerprint]bool{}
	first := sys.New()
	seen[first.Fingerprint()] = true
	now := []place{{first, nil}}
	next := sys.New()
	for len(now) > 0 {
		var level []place
		for _, p := range now {
			changes := false
			for _, m := range p.state.Moves(nil) {
				moves++
				next.CopyFrom(p.state)
				w := &way{p.way, sys.MoveText(p.state, m)}
				if f := next.Take(m); f != nil {
					t.Fatalf("%v\n%v", w, f)
				}
				name := next.Fingerprint()
				changes = changes || name != p.state.Fingerprint()
				if !seen[name] {
					seen[name] = true
					level = append(level, place{next.Clone(), w})
				}
			}
			if !changes {
				if f := p.state.Final(); f != nil {
					t.Fatalf("%v\n%v", p.way, f)
				}
			}
		}
		now = level
	}
	return len(seen), moves
}

// TestBounds: within these bounds everything holds, in as many states.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bounds        string
		states, moves int
	}{
		{"runs=1", 132, 237},
		{"runs=2", 343, 647},
		{"runs=1 exact", 1452, 2437},
		{"runs=2 slots=2 depth=2 submit caller", 4085, 9372},
		{"runs=1 threads=2 polls=1", 3331, 9356},
		{"runs=1 faults=1", 1477, 3221},
		{"runs=1 close strangers quarantine", 246, 1028},
		{"runs=1 submit records expiries=1 borrowed recoveries=1", 338, 724},
	} {
		t.Run(c.bounds, func(t *testing.T) {
			states, moves := visit(t, system(t, c.bounds))
			require.Equal(t, [2]int{c.states, c.moves}, [2]int{states, moves})
		})
	}
}
