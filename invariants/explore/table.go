package explore

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/runfence/runfence/machine"
)

// A ref names a visited state: the shard that holds it, and its place there.
type ref uint32

const (
	shardBits  = 6
	shardCount = 1 << shardBits
	placeBits  = 32 - shardBits
	placeMask  = 1<<placeBits - 1

	// noRef names no state: no shard has that many.
	noRef = ^ref(0)
	// shardFull is how many states a shard takes at most.
	shardFull = placeMask
)

func (r ref) shard() uint32 { return uint32(r) >> placeBits }
func (r ref) place() uint32 { return uint32(r) & placeMask }

// table holds the fingerprint of every visited state, and from which state it
// was first reached. Methods are safe for concurrent use, except where they
// say otherwise.
//
// States lie in chunks that never move, in the order in which they came: 20
// bytes each. An index of four bytes a slot finds them. Each shard's index
// grows by half when it is three quarters full, and for itself, so that growth
// neither doubles the table nor stops all workers.
type table struct {
	shards [shardCount]shard
	// bytes is what all shards hold; peak is the most that it has been.
	bytes, peak atomic.Int64
	// limit is how many states a shard may hold; full says that one is so close
	// to it that the search must stop.
	limit uint32
	full  atomic.Bool
}

type shard struct {
	mu sync.Mutex
	n  uint32
	// level is the place of the first state that the current level found.
	level uint32
	// index has, in each slot, a tag from the fingerprint and the place plus one;
	// or zero.
	index []uint32
	// chunks may be read without the lock as far as earlier levels filled them:
	// a longer list shares what it has with the one before.
	chunks atomic.Pointer[[]*stateChunk]

	_ [64]byte // the next shard's lock is on another cache line
}

// chunkStates makes a chunk fill one of the sizes that Go allocates.
const chunkStates = 512

type stateChunk struct {
	fp     [chunkStates]machine.Fingerprint
	parent [chunkStates]ref
}

const (
	stateChunkSize = int64(unsafe.Sizeof(stateChunk{}))
	firstIndex     = 64
	// spare is how many states a shard must still take when a search is told to
	// stop: more than all batches under way may add.
	spare = 1 << 16
)

func newTable() *table {
	t := &table{limit: shardFull}
	for i := range t.shards {
		t.shards[i].chunks.Store(new([]*stateChunk))
	}
	return t
}

// spread makes every bit of a fingerprint count in the upper ones.
func spread(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>32
}

func shardOf(fp machine.Fingerprint) uint32 {
	return uint32(spread(fp.Hi) * 0x9e3779b97f4a7c15 >> (64 - shardBits))
}

// slotOf returns where in an index of n slots a search for fp begins, and the
// tag that its slot bears.
func slotOf(fp machine.Fingerprint, n int) (slot, tag uint32) {
	h := spread(fp.Lo^bits.RotateLeft64(fp.Hi, 32)) * 0x9e3779b97f4a7c15
	hi, _ := bits.Mul64(h, uint64(n))
	return uint32(hi), uint32(h) << placeBits
}

// count returns how many states there are, and how many of them are of earlier
// levels. No add may be under way.
func (t *table) count() (all, earlier uint64) {
	for i := range t.shards {
		all += uint64(t.shards[i].n)
		earlier += uint64(t.shards[i].level)
	}
	return all, earlier
}

// fingerprint returns that of a state of an earlier level.
func (t *table) fingerprint(r ref) machine.Fingerprint {
	c, i := t.shards[r.shard()].at(r.place())
	return c.fp[i]
}

// parent returns from which state one of an earlier level was reached, or noRef.
func (t *table) parent(r ref) ref {
	c, i := t.shards[r.shard()].at(r.place())
	return c.parent[i]
}

func (s *shard) at(place uint32) (c *stateChunk, i uint32) {
	return (*s.chunks.Load())[place/chunkStates], place % chunkStates
}

// added says what add did.
type added uint8

const (
	knew     added = iota // nothing: it had been there
	reparent              // it had been there, and got another parent
	isNew
)

// add notes that the state fp was reached from the state from, whose
// fingerprint is fromFP. Of the states of one level that reach it, fp keeps the
// one of the smallest fingerprint as its parent, whoever comes first.
func (t *table) add(fp machine.Fingerprint, from ref, fromFP machine.Fingerprint) (r ref, did added) {
	number := shardOf(fp)
	s := &t.shards[number]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.index) == 0 || int(s.n) >= len(s.index)/4*3 {
		t.grow(s)
	}
	slot, tag := slotOf(fp, len(s.index))
	for s.index[slot] != 0 {
		if e := s.index[slot]; e&^placeMask == tag {
			place := e&placeMask - 1
			if c, i := s.at(place); c.fp[i] == fp {
				if place >= s.level && less(fromFP, t.fingerprint(c.parent[i])) {
					c.parent[i] = from
					did = reparent
				}
				return ref(number<<placeBits | place), did
			}
		}
		if slot++; int(slot) == len(s.index) {
			slot = 0
		}
	}
	place := s.n
	t.push(s, fp, from)
	s.index[slot] = tag | (place + 1)
	return ref(number<<placeBits | place), isNew
}

// push appends a state to a shard that is locked, and leaves its index alone.
func (t *table) push(s *shard, fp machine.Fingerprint, parent ref) {
	if s.n == t.limit {
		panic("explore: a shard is overfull")
	}
	if s.n%chunkStates == 0 {
		chunks := *s.chunks.Load()
		had := cap(chunks)
		chunks = append(chunks, new(stateChunk))
		s.chunks.Store(&chunks)
		t.account(stateChunkSize + int64(cap(chunks)-had)*int64(unsafe.Sizeof(chunks[0])))
	}
	c, i := s.at(s.n)
	c.fp[i], c.parent[i] = fp, parent
	if s.n++; s.n+min(spare, t.limit/2) >= t.limit {
		t.full.Store(true)
	}
}

// grow gives a shard a larger index.
func (t *table) grow(s *shard) {
	old := len(s.index)
	t.reindex(s, max(firstIndex, old/2*3))
	t.account(-4 * int64(old))
}

// reindex makes the index anew, with n slots. The old one stays in the account.
func (t *table) reindex(s *shard, n int) {
	s.index = nil // it may go before the new one comes
	index := make([]uint32, n)
	t.account(4 * int64(n))
	place := uint32(0)
	for _, c := range *s.chunks.Load() {
		for i := range min(chunkStates, s.n-place) {
			slot, tag := slotOf(c.fp[i], n)
			for index[slot] != 0 {
				if slot++; int(slot) == n {
					slot = 0
				}
			}
			place++
			index[slot] = tag | place
		}
	}
	s.index = index
}

func (t *table) account(n int64) {
	now := t.bytes.Add(n)
	for {
		peak := t.peak.Load()
		if now <= peak || t.peak.CompareAndSwap(peak, now) {
			return
		}
	}
}

// endLevel says that what is added from now on is of the next level. No add
// may be under way.
func (t *table) endLevel() {
	for i := range t.shards {
		t.shards[i].level = t.shards[i].n
	}
}

// less orders fingerprints.
func less(a, b machine.Fingerprint) bool {
	return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo
}
