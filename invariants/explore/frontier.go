package explore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
)

// A frontier is a list of records, in chunks: a state's ref, that of the state
// it was reached from, its length, four bytes each, and the state as
// AppendBinary wrote it.
//
// A state has another record for each better parent that it got, and only that
// of the parent it has in the end counts. So it does not depend on luck which
// of the states that look alike is the one that is gone on from.
const (
	recordHead = 12
	// chunkBytes is the size of a chunk, unless a single record is larger.
	chunkBytes = 64 << 10
	// recordMost bounds a record, so that a checkpoint that is not to be trusted
	// cannot ask for any amount of memory.
	recordMost = 16 << 20
)

type record struct {
	at, parent ref
	state      []byte
}

// appendRecord appends a state to a chunk.
func appendRecord(dst []byte, at, parent ref, s State) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, recordHead)...)
	dst = s.AppendBinary(dst)
	binary.LittleEndian.PutUint32(dst[start:], uint32(at))
	binary.LittleEndian.PutUint32(dst[start+4:], uint32(parent))
	binary.LittleEndian.PutUint32(dst[start+8:], uint32(len(dst)-start-recordHead))
	return dst
}

var errRecord = errors.New("a record of a state is cut short")

// nextRecord returns the first record of b, and what is behind it.
func nextRecord(b []byte) (r record, rest []byte, err error) {
	if len(b) < recordHead {
		return r, nil, errRecord
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if uint64(n) > uint64(len(b)-recordHead) {
		return r, nil, errRecord
	}
	r.at, r.parent = ref(binary.LittleEndian.Uint32(b)), ref(binary.LittleEndian.Uint32(b[4:]))
	r.state = b[recordHead : recordHead+n]
	return r, b[recordHead+n:], nil
}

// chunkStore is the memory that the chunks of both frontiers share: past its
// bound they go to files.
type chunkStore struct {
	dir string
	// room is how many bytes of chunks memory may hold now.
	room func() int64

	inMemory, onDisk   atomic.Int64
	peakMemory, toDisk atomic.Int64

	mu   sync.Mutex
	free [][]byte
}

// bufferBytes is enough for the records of a chunk, and for what they become
// when they are packed.
const bufferBytes = chunkBytes + chunkBytes/16

// buffer returns an empty one for a chunk.
func (s *chunkStore) buffer() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, bufferBytes)
}

func (s *chunkStore) recycle(b []byte) {
	const most = 64
	if cap(b) != bufferBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < most {
		s.free = append(s.free, b)
	}
}

// kept accounts for so many bytes in memory.
func (s *chunkStore) kept(n int64) {
	now := s.inMemory.Add(n)
	for {
		peak := s.peakMemory.Load()
		if now <= peak || s.peakMemory.CompareAndSwap(peak, now) {
			return
		}
	}
}

// frontier holds the records of one level that wait for being expanded. Its
// methods are safe for concurrent use, except where they say otherwise.
type frontier struct {
	store *chunkStore
	// records counts those that take has not given out yet.
	records atomic.Int64

	mu     sync.Mutex
	chunks []chunk
	next   int    // the first chunk that has not been opened
	buf    []byte // the chunk that is open
	open   []byte // what is left of it
	file   *os.File
	end    int64 // of the file
	packed []byte
}

// chunk is some records, packed; in memory, or in the file.
type chunk struct {
	packed []byte
	at     int64
	size   int32
	sum    uint64 // of the bytes in the file
}

// put adds the records of b, which is the frontier's from then on.
func (f *frontier) put(b []byte, records int) error {
	scratch := f.store.buffer()
	packed := s2.Encode(scratch[:cap(scratch)], b)
	c := chunk{size: int32(len(packed))}
	if n := int64(len(packed)); f.store.inMemory.Load()+n > f.store.room() {
		if err := f.spill(&c, packed); err != nil {
			return err
		}
	} else {
		c.packed = bytes.Clone(packed)
		f.store.kept(n)
	}
	f.store.recycle(scratch)
	f.store.recycle(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chunks = append(f.chunks, c)
	f.records.Add(int64(records))
	return nil
}

// spill writes a chunk to the file.
func (f *frontier) spill(c *chunk, packed []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		file, err := os.CreateTemp(f.store.dir, "runfence-explore-*.frontier")
		if err != nil {
			return fmt.Errorf("cannot put states on disk: %w", err)
		}
		// Where a file that is open may be removed, it goes now: then nothing is
		// left behind whatever ends the process.
		_ = os.Remove(file.Name())
		f.file = file
	}
	c.at, c.sum = f.end, xxhash.Sum64(packed)
	if _, err := f.file.WriteAt(packed, c.at); err != nil {
		return fmt.Errorf("cannot put states on disk: %w", err)
	}
	f.end += int64(len(packed))
	f.store.onDisk.Add(int64(len(packed)))
	f.store.toDisk.Add(int64(len(packed)))
	return nil
}

// bytes returns a chunk as it is packed, until the next call.
func (f *frontier) bytes(c *chunk) ([]byte, error) {
	if c.packed != nil {
		return c.packed, nil
	}
	f.packed = slices.Grow(f.packed[:0], int(c.size))[:c.size]
	if _, err := f.file.ReadAt(f.packed, c.at); err != nil {
		return nil, fmt.Errorf("cannot read states back: %w", err)
	}
	if xxhash.Sum64(f.packed) != c.sum {
		return nil, fmt.Errorf("cannot read states back: %s has other bytes than were written", f.file.Name())
	}
	return f.packed, nil
}

// take appends at most n records to dst and returns how many they are; none
// are left if that is 0.
func (f *frontier) take(dst []byte, n int) (_ []byte, taken int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) == 0 {
		if err := f.turn(); err != nil {
			return dst, 0, err
		}
	}
	rest := f.open
	for taken < n && len(rest) > 0 {
		if _, rest, err = nextRecord(rest); err != nil {
			return dst, 0, err
		}
		taken++
	}
	dst = append(dst, f.open[:len(f.open)-len(rest)]...)
	f.open = rest
	f.records.Add(-int64(taken))
	return dst, taken, nil
}

// turn opens the next chunk, if there is one.
func (f *frontier) turn() error {
	f.store.recycle(f.buf)
	f.buf, f.open = nil, nil
	if f.next == len(f.chunks) {
		return nil
	}
	c := &f.chunks[f.next]
	packed, err := f.bytes(c)
	if err != nil {
		return err
	}
	b := f.store.buffer()
	if f.buf, err = s2.Decode(b[:cap(b)], packed); err != nil {
		return fmt.Errorf("cannot read states back: %w", err)
	}
	f.store.inMemory.Add(-int64(len(c.packed)))
	c.packed = nil
	f.open = f.buf
	f.next++
	return nil
}

// each gives what take has not given out, packed, chunk by chunk. It must not
// run at the same time as take or put.
func (f *frontier) each(give func(packed []byte) error) error {
	if len(f.open) > 0 {
		if err := give(s2.Encode(nil, f.open)); err != nil {
			return err
		}
	}
	for i := f.next; i < len(f.chunks); i++ {
		packed, err := f.bytes(&f.chunks[i])
		if err != nil {
			return err
		}
		if err := give(packed); err != nil {
			return err
		}
	}
	return nil
}

// left returns how many chunks each gives.
func (f *frontier) left() int {
	n := len(f.chunks) - f.next
	if len(f.open) > 0 {
		n++
	}
	return n
}

// empty makes the frontier one without states. It must not run at the same time
// as another method.
func (f *frontier) empty() error {
	f.store.recycle(f.buf)
	for _, c := range f.chunks[f.next:] {
		f.store.inMemory.Add(-int64(len(c.packed)))
	}
	clear(f.chunks)
	f.chunks, f.next, f.buf, f.open = f.chunks[:0], 0, nil, nil
	f.records.Store(0)
	if f.file == nil {
		return nil
	}
	f.store.onDisk.Add(-f.end)
	f.end = 0
	return f.file.Truncate(0)
}

// close lets go of everything.
func (f *frontier) close() error {
	err := f.empty()
	if f.file == nil {
		return err
	}
	err = errors.Join(err, f.file.Close())
	if rerr := os.Remove(f.file.Name()); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	f.file = nil
	return err
}
