package explore

import (
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

// buffer returns an empty one to write a chunk into.
func (s *chunkStore) buffer() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, chunkBytes)
}

func (s *chunkStore) recycle(b []byte) {
	const most = 64
	if cap(b) != chunkBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < most {
		s.free = append(s.free, b)
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

// chunk is some records: in memory, or compressed in the file.
type chunk struct {
	data []byte
	sum  uint64 // of the records, if they are in the file
	at   int64
	size int32
	raw  int32
}

// put adds the records of b, which is the frontier's from then on.
func (f *frontier) put(b []byte, records int) error {
	c := chunk{data: b, raw: int32(len(b))}
	if f.store.inMemory.Load()+int64(cap(b)) > f.store.room() {
		if err := f.spill(&c); err != nil {
			return err
		}
		f.store.recycle(b)
	} else {
		n := f.store.inMemory.Add(int64(cap(b)))
		for {
			peak := f.store.peakMemory.Load()
			if n <= peak || f.store.peakMemory.CompareAndSwap(peak, n) {
				break
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chunks = append(f.chunks, c)
	f.records.Add(int64(records))
	return nil
}

// spill moves a chunk to the file.
func (f *frontier) spill(c *chunk) error {
	packed := s2.Encode(nil, c.data)
	c.sum, c.size = xxhash.Sum64(c.data), int32(len(packed))
	c.data = nil
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
	c.at = f.end
	if _, err := f.file.WriteAt(packed, c.at); err != nil {
		return fmt.Errorf("cannot put states on disk: %w", err)
	}
	f.end += int64(len(packed))
	f.store.onDisk.Add(int64(len(packed)))
	f.store.toDisk.Add(int64(len(packed)))
	return nil
}

// load reads a chunk of the file into dst.
func (f *frontier) load(dst []byte, c *chunk) ([]byte, error) {
	f.packed = slices.Grow(f.packed[:0], int(c.size))[:c.size]
	if _, err := f.file.ReadAt(f.packed, c.at); err != nil {
		return nil, fmt.Errorf("cannot read states back: %w", err)
	}
	dst, err := s2.Decode(dst[:cap(dst)], f.packed)
	if err != nil || xxhash.Sum64(dst) != c.sum {
		return nil, fmt.Errorf("cannot read states back: %s has other bytes than were written", f.file.Name())
	}
	return dst, nil
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
	if c.data == nil {
		b, err := f.load(f.store.buffer(), c)
		if err != nil {
			return err
		}
		f.buf = b
	} else {
		f.buf, c.data = c.data, nil
		f.store.inMemory.Add(-int64(cap(f.buf)))
	}
	f.open = f.buf
	f.next++
	return nil
}

// each gives f what take has not given out, chunk by chunk. It must not run at
// the same time as take or put.
func (f *frontier) each(give func(records []byte) error) error {
	if len(f.open) > 0 {
		if err := give(f.open); err != nil {
			return err
		}
	}
	var buf []byte
	for i := f.next; i < len(f.chunks); i++ {
		c := &f.chunks[i]
		b := c.data
		if b == nil {
			var err error
			if buf, err = f.load(buf, c); err != nil {
				return err
			}
			b = buf
		}
		if err := give(b); err != nil {
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
		if c.data != nil {
			f.store.inMemory.Add(-int64(cap(c.data)))
			f.store.recycle(c.data)
		}
	}
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
