package explore_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

// seen leaves out of a result what may differ from one search to the next.
var seen = cmpopts.IgnoreFields(explore.Result{}, "Elapsed", "TableBytes", "FrontierBytes", "DiskBytes")

func search(t require.TestingT, sys explore.System, o explore.Options) *explore.Result {
	r, err := explore.Search(context.Background(), sys, o)
	require.NoError(t, err)
	return r
}

func TestSearchVisitsEveryState(t *testing.T) {
	for _, c := range []struct {
		sys            *small
		states, edges  uint64
		depth, deepest int
	}{
		{counters(3, 4), 125, 3 * 4 * 25, 13, 12},
		{counters(5, 9), 100_000, 5 * 9 * 10_000, 46, 45},
		// Multisets of 5 out of 10; nine tenths of their counters may count.
		{alike(counters(5, 9)), 2002, 5 * 2002 * 9 / 10, 46, 45},
		{puzzle("123456780", ""), 181_440, 483_840, 32, 31},
		{jugs(), 16, 0, 0, 0},
	} {
		t.Run(c.sys.name, func(t *testing.T) {
			r := search(t, c.sys, explore.Options{KeepGoing: true})
			if c.sys.name == "jugs" {
				// A finding is not gone on from: the states with four gallons are left out.
				require.Len(t, r.Findings, 1)
				assert.Len(t, r.Findings[0].Moves, 6)
				return
			}
			assert.Equal(t, c.states, r.States)
			assert.Equal(t, c.edges, r.Edges)
			assert.Equal(t, c.depth, r.Depth)
			assert.Equal(t, c.deepest, r.Deepest)
			assert.True(t, r.Finished)
			assert.Zero(t, r.Frontier)
			assert.Empty(t, r.Findings)
		})
	}
}

func TestSearchFindsAShortestWay(t *testing.T) {
	// The two that are farthest from the order take 31 moves.
	for _, start := range []string{"867254301", "647850321"} {
		r := search(t, puzzle(start, "123456780"), explore.Options{})
		require.Len(t, r.Findings, 1)
		f := r.Findings[0]
		assert.Equal(t, explore.Finding{Kind: "solved", Detail: "123456780"}, f.Finding)
		assert.Len(t, f.Moves, 31)
		assert.Equal(t, uint64(2), f.Count, "both states next to the order are 30 moves off")
		assert.True(t, f.Last)
		assert.Equal(t, explore.AtFinding, r.Stopped)
		assert.False(t, r.Finished)

		// The way can be walked.
		s := puzzle(start, "123456780").New()
		for i, m := range f.Moves {
			require.Contains(t, s.Moves(nil), m)
			require.Equal(t, fmt.Sprintf("%v takes %d", s.AppendBinary(nil), m), f.Texts[i])
			require.Equal(t, i == 30, s.Take(m) != nil)
		}
	}
}

// The jugs as TLC tells of them: six moves to four gallons.
func TestSearchStopsAtTheFirstLevelWithAFinding(t *testing.T) {
	r := search(t, jugs(), explore.Options{})
	require.Len(t, r.Findings, 1)
	assert.Equal(t, []explore.Move{1, 5, 2, 5, 1, 5}, r.Findings[0].Moves)
	assert.Equal(t, 6, r.Depth)
	on := search(t, jugs(), explore.Options{KeepGoing: true})
	assert.True(t, on.Finished)
	assert.Equal(t, on.Findings[0].Moves, r.Findings[0].Moves)
	assert.Greater(t, on.Findings[0].Count, r.Findings[0].Count)
}

func TestSearchNamesRowsNeverTaken(t *testing.T) {
	r := search(t, counters(2, 3), explore.Options{Workers: 2})
	assert.Equal(t, 4, r.Rows)
	assert.Equal(t, []string{"count back"}, r.NeverFired)
	assert.Equal(t, []string{"count", "end", "count back"}, search(t, counters(1, 3), explore.Options{MaxDepth: 1}).NeverFired)
}

func TestSearchTellsOfPanics(t *testing.T) {
	sys := counters(3, 9)
	count := sys.take
	sys.take = func(v []byte, m explore.Move) *explore.Finding {
		if v[0] == 2 && v[1] == 1 {
			panic("out of paper")
		}
		return count(v, m)
	}
	r := search(t, sys, explore.Options{})
	require.Len(t, r.Findings, 1)
	assert.Equal(t, explore.KindPanic, r.Findings[0].Finding.Kind)
	assert.Contains(t, r.Findings[0].Finding.Detail, "out of paper")
	assert.Len(t, r.Findings[0].Moves, 4)
	assert.Equal(t, uint64(3), r.Findings[0].Count)
}

func TestSearchWithinADepth(t *testing.T) {
	r := search(t, counters(3, 9), explore.Options{MaxDepth: 4})
	assert.Equal(t, explore.AtDepth, r.Stopped)
	assert.False(t, r.Finished)
	assert.Equal(t, 4, r.Depth)
	assert.Equal(t, 4, r.Deepest)
	// C(n+2, 2) states have the sum n.
	assert.Equal(t, uint64(1+3+6+10+15), r.States)
	assert.Equal(t, uint64(15), r.Frontier)
	assert.Equal(t, uint64(3*(1+3+6+10)), r.Edges)
}

func TestSearchWithinAnAmount(t *testing.T) {
	r := search(t, counters(5, 9), explore.Options{MaxStates: 50_000, Workers: 2})
	assert.Equal(t, explore.AtStates, r.Stopped)
	assert.GreaterOrEqual(t, r.States, uint64(50_000))
	assert.Less(t, r.States, uint64(51_000), "it stops soon after")
	assert.Positive(t, r.Frontier)
}

func TestSearchWithinMemory(t *testing.T) {
	r := search(t, counters(5, 9), explore.Options{Memory: 1 << 20})
	assert.Equal(t, explore.AtMemory, r.Stopped)
	assert.Greater(t, r.TableBytes, int64(1<<20))
	assert.Less(t, r.TableBytes, int64(1<<20+1<<19), "it stops soon after")
}

func TestCollisionBound(t *testing.T) {
	r := &explore.Result{States: 1 << 32}
	assert.Equal(t, math.Exp2(-65), r.CollisionBound())
}

// Whatever the number of workers and the size of batches, a search says the
// same: symmetric states, where which of them comes first is a matter of luck,
// and findings of several kinds at one depth included.
func TestSearchDoesNotDependOnWorkers(t *testing.T) {
	for _, sys := range []*small{quarrel(alike(counters(5, 6)), 5, 6), quarrel(partly(counters(5, 6)), 5, 6)} {
		for _, keepGoing := range []bool{false, true} {
			want := search(t, sys, explore.Options{Workers: 1, KeepGoing: keepGoing})
			require.Len(t, want.Findings[0].Moves, 10)
			require.Len(t, want.Findings, map[bool]int{false: 2, true: 4}[keepGoing])
			for _, workers := range []int{1, 2, 5} {
				for _, batch := range []int{1, 9} {
					o := explore.Options{Workers: workers, KeepGoing: keepGoing}
					// Others overtake now and then.
					explore.SetBatch(&o, batch, func() {
						for range rand.IntN(5) {
							runtime.Gosched()
						}
					})
					require.Empty(t, cmp.Diff(want, search(t, sys, o), seen))
				}
			}
		}
	}
}

// drawGraph draws a graph where several ways lead to most nodes.
func drawGraph(t *rapid.T) *graph {
	n := rapid.IntRange(1, 60).Draw(t, "nodes")
	g := &graph{broken: map[[2]int]string{}, stuck: map[int]string{}}
	node := rapid.IntRange(0, n-1)
	kind := rapid.SampledFrom([]string{"", "", "", "", "", "", "a", "b"})
	for from := range n {
		to := rapid.SliceOfN(node, 0, 4).Draw(t, "to")
		g.edges = append(g.edges, to)
		for i := range to {
			if k := kind.Draw(t, "broken"); k != "" {
				g.broken[[2]int{from, i}] = k
			}
		}
		if k := kind.Draw(t, "stuck"); k != "" {
			g.stuck[from] = k
		}
	}
	return g
}

// plainly explores a graph in the plainest way.
func plainly(g *graph, keepGoing bool) *explore.Result {
	fp := func(n int) machine.Fingerprint { return fingerprint([]byte{byte(n >> 8), byte(n)}) }
	less := func(a, b int) bool {
		x, y := fp(a), fp(b)
		return x.Hi < y.Hi || x.Hi == y.Hi && x.Lo < y.Lo
	}
	r := &explore.Result{Finished: true, States: 1}
	parent := map[int]int{0: -1}
	type hit struct {
		explore.Counterexample
		from, position int
	}
	best := map[string]*hit{}
	level := []int{0}
	for ; len(level) > 0; r.Depth++ {
		if len(best) > 0 && !keepGoing {
			r.Finished, r.Stopped = false, explore.AtFinding
			break
		}
		// In the order of fingerprints, the first that reaches a node is its parent.
		slices.SortFunc(level, func(a, b int) int {
			if less(a, b) {
				return -1
			}
			return 1
		})
		r.Deepest = r.Depth
		var next []int
		finds := map[int][]hit{} // by the length of the way
		for _, n := range level {
			way := []int{n}
			for parent[way[0]] >= 0 {
				way = append([]int{parent[way[0]]}, way...)
			}
			var c explore.Counterexample
			walk := func(from, m int) {
				c.Moves = append(c.Moves, explore.Move(m))
				c.Texts = append(c.Texts, fmt.Sprintf("%v takes %d", []byte{byte(from >> 8), byte(from)}, m))
			}
			for i := range way[1:] {
				for m, to := range g.edges[way[i]] {
					if to == way[i+1] && g.broken[[2]int{way[i], m}] == "" {
						walk(way[i], m)
						break
					}
				}
			}
			stays := true
			for m, to := range g.edges[n] {
				r.Edges++
				if k := g.broken[[2]int{n, m}]; k != "" {
					stays = false
					h := hit{c, n, m}
					h.Moves, h.Texts = slices.Clone(c.Moves), slices.Clone(c.Texts)
					h.Moves = append(h.Moves, explore.Move(m))
					h.Texts = append(h.Texts, fmt.Sprintf("%v takes %d", []byte{byte(n >> 8), byte(n)}, m))
					h.Finding, h.Last = explore.Finding{Kind: k, Detail: fmt.Sprint(n, " to ", to)}, true
					finds[1] = append(finds[1], h)
					continue
				}
				stays = stays && to == n
				if _, ok := parent[to]; !ok {
					parent[to] = n
					next = append(next, to)
					r.States++
				}
			}
			if k := g.stuck[n]; stays && k != "" {
				h := hit{c, n, -1}
				h.Finding = explore.Finding{Kind: k, Detail: fmt.Sprint("in ", n)}
				finds[0] = append(finds[0], h)
			}
		}
		for _, h := range append(finds[0], finds[1]...) {
			if best[h.Finding.Kind] == nil {
				best[h.Finding.Kind] = &h
			}
			best[h.Finding.Kind].Count++
		}
		level = next
		r.Frontier = uint64(len(level))
		if len(level) > 0 {
			r.Deepest = r.Depth + 1
		}
	}
	var all []*hit
	for _, h := range best {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *hit) int {
		switch {
		case len(a.Moves) != len(b.Moves):
			return len(a.Moves) - len(b.Moves)
		case a.Last != b.Last && a.Last:
			return -1 // it was found a level earlier
		case a.Last != b.Last:
			return 1
		case a.from != b.from && less(a.from, b.from):
			return -1
		case a.from != b.from:
			return 1
		}
		return a.position - b.position
	})
	for _, h := range all {
		r.Findings = append(r.Findings, h.Counterexample)
	}
	if len(best) > 0 && !keepGoing {
		r.Finished, r.Stopped = false, explore.AtFinding
	}
	return r
}

// Search and a plain search say the same of any graph.
func TestSearchAgainstAPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		keepGoing := rapid.Bool().Draw(t, "keep going")
		o := explore.Options{Workers: rapid.IntRange(1, 3).Draw(t, "workers"), KeepGoing: keepGoing}
		explore.SetBatch(&o, rapid.IntRange(1, 5).Draw(t, "batch"), nil)
		if diff := cmp.Diff(plainly(g, keepGoing), search(t, g.system(), o), seen); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What a search allocates is for chunks: hardly anything for a state.
func TestSearchAllocatesNothingForAState(t *testing.T) {
	few := search(t, counters(5, 9), explore.Options{Workers: 1}).States
	allocs := testing.AllocsPerRun(1, func() { search(t, counters(5, 9), explore.Options{Workers: 1}) })
	assert.Less(t, allocs/float64(few), 0.03)
}

func TestSearchNoticesASystemThatContradictsItself(t *testing.T) {
	forgets := counters(2, 5)
	forgets.write = func(v []byte) { v[1] = 0 }
	_, err := explore.Search(context.Background(), forgets, explore.Options{})
	require.ErrorIs(t, err, explore.ErrUnfaithful)
	require.ErrorContains(t, err, "written and read back")

	for name, once := range map[string]func() *explore.Finding{
		"a move":  func() *explore.Finding { return &explore.Finding{Kind: "once"} },
		"another": func() *explore.Finding { panic("once") },
	} {
		moody := counters(2, 5)
		count, done := moody.take, false
		moody.take = func(v []byte, m explore.Move) *explore.Finding {
			if v[0] == 2 && !done {
				done = true
				return once()
			}
			return count(v, m)
		}
		r, err := explore.Search(context.Background(), moody, explore.Options{Workers: 1})
		require.ErrorIs(t, err, explore.ErrUnfaithful, name)
		require.ErrorContains(t, err, "no move leads on after 2", name)
		require.Equal(t, explore.AtFinding, r.Stopped, "what was seen is told")
	}
}
