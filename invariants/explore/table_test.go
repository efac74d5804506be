package explore

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// live returns how many bytes of the heap are in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTableTakesAtMost48BytesAState(t *testing.T) {
	before := live()
	tb := newTable()
	r := rand.New(rand.NewPCG(1, 2))
	const million = 1_000_000
	checked := 0
	for n := 1; n <= 2*million; n++ {
		tb.add(machine.Fingerprint{Hi: r.Uint64(), Lo: r.Uint64()}, 0, machine.Fingerprint{})
		// What it took while it grew counts as well.
		if peak := tb.peak.Load(); n >= million/4 && peak > int64(48*n) {
			t.Fatalf("%d states took %d bytes", n, peak)
		}
		if n%million == 0 {
			checked++
			require.InEpsilon(t, tb.bytes.Load(), live()-before, 0.02, "what it says and what Go says with %d states", n)
		}
	}
	require.Equal(t, 2, checked)
	t.Logf("%.1f bytes a state in the end, %.1f at most", float64(tb.bytes.Load())/2/million, float64(tb.peak.Load())/2/million)
	runtime.KeepAlive(tb)
}

// Fingerprints that differ in few bits, or in one half alone, are told apart and
// spread over all shards.
func TestTableSpreadsPoorFingerprints(t *testing.T) {
	for name, fp := range map[string]func(i uint64) machine.Fingerprint{
		"low":      func(i uint64) machine.Fingerprint { return machine.Fingerprint{Lo: i} },
		"high":     func(i uint64) machine.Fingerprint { return machine.Fingerprint{Hi: i} },
		"top bits": func(i uint64) machine.Fingerprint { return machine.Fingerprint{Hi: i << 40, Lo: i << 40} },
	} {
		tb := newTable()
		const n = 20_000
		for i := range uint64(n) {
			_, did := tb.add(fp(i), 0, machine.Fingerprint{})
			require.Equal(t, isNew, did, name)
		}
		for i := range uint64(n) {
			r, did := tb.add(fp(i), 0, machine.Fingerprint{})
			require.NotEqual(t, isNew, did, name)
			require.Equal(t, fp(i), tb.fingerprint(r))
		}
		if name != "low" {
			for i := range tb.shards {
				assert.Less(t, tb.shards[i].n, uint32(3*n/shardCount), name)
			}
		}
	}
}

// Many goroutines that add the same states agree on each, and the parent that a
// state ends up with is the smallest of its level.
func TestTableInParallel(t *testing.T) {
	tb := newTable()
	const parents, states = 100, 20_000
	fp := func(i int) machine.Fingerprint {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(i))
		r := rand.NewChaCha8([32]byte(append(b[:], make([]byte, 24)...)))
		return machine.Fingerprint{Hi: r.Uint64(), Lo: r.Uint64()}
	}
	var refs []ref
	for i := range parents {
		r, did := tb.add(fp(i), noRef, machine.Fingerprint{})
		require.Equal(t, isNew, did)
		refs = append(refs, r)
	}
	tb.endLevel()
	smallest := map[int]int{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	added := 0
	for g := range 4 {
		r := rand.New(rand.NewPCG(uint64(g), 0))
		var work [][2]int
		for range states {
			w := [2]int{r.IntN(parents), parents + r.IntN(states)}
			if p, ok := smallest[w[1]]; !ok || less(fp(w[0]), fp(p)) {
				smallest[w[1]] = w[0]
			}
			work = append(work, w)
		}
		wg.Go(func() {
			n := 0
			for _, w := range work {
				if _, did := tb.add(fp(w[1]), refs[w[0]], fp(w[0])); did == isNew {
					n++
				}
			}
			mu.Lock()
			added += n
			mu.Unlock()
		})
	}
	wg.Wait()
	assert.Equal(t, len(smallest), added)
	all, earlier := tb.count()
	assert.Equal(t, uint64(parents+len(smallest)), all)
	assert.Equal(t, uint64(parents), earlier)
	check := func(note string) {
		for state, p := range smallest {
			r, did := tb.add(fp(state), refs[0], machine.Fingerprint{Hi: 1<<64 - 1})
			require.Equal(t, knew, did)
			require.Equal(t, refs[p], tb.parent(r), note)
		}
	}
	check("in the level")
	// A later level changes nothing, however small its fingerprints.
	tb.endLevel()
	for state := range smallest {
		tb.add(fp(state), refs[0], machine.Fingerprint{})
	}
	check("after the level")
}

func TestTableSaysWhenItIsNearlyFull(t *testing.T) {
	tb := newTable()
	tb.limit = 1000
	n := 0
	for ; !tb.full.Load(); n++ {
		tb.add(machine.Fingerprint{Hi: rand.Uint64(), Lo: uint64(n)}, 0, machine.Fingerprint{})
	}
	for i := range tb.shards {
		assert.LessOrEqual(t, tb.shards[i].n, uint32(500))
	}
	assert.Greater(t, n, 20_000)
}
