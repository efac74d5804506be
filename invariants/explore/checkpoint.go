package explore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"

	"github.com/runfence/runfence/machine"
)

// What is wrong with a checkpoint; a [*CheckpointError] matches one of them.
const (
	// ErrCheckpointExists: the file is there already, and was not to be resumed.
	ErrCheckpointExists machine.Reason = "there is a checkpoint already"
	// ErrCheckpointForeign: it is of another system or another version, or it is
	// no checkpoint.
	ErrCheckpointForeign machine.Reason = "not a checkpoint of this search"
	// ErrCheckpointTorn: its end is missing.
	ErrCheckpointTorn machine.Reason = "the checkpoint is cut short"
	// ErrCheckpointCorrupt: it has other bytes than were written.
	ErrCheckpointCorrupt machine.Reason = "the checkpoint is damaged"
)

// CheckpointError says why a search cannot begin from a checkpoint. The file is
// as it was.
type CheckpointError struct {
	File   string
	Reason machine.Reason // one of those above
	Detail string         // or empty
}

// Error says which file it is, and what is wrong with it.
func (e *CheckpointError) Error() string {
	text := e.File + ": " + string(e.Reason)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the reason.
func (e *CheckpointError) Unwrap() error { return e.Reason }

// A checkpoint is a head of fixed size, little-endian, and a body:
//
//	head    mark 4, hash of the system 16, length of the body 8,
//	        xxhash of the body 8, xxhash of the head so far 8
//	body    name of the system; level; edges, expanded, findings, elapsed, three
//	        peaks;
//	        rows that were taken; findings by kind; the table, shard by shard;
//	        the two frontiers, chunk by chunk, compressed
//
// Numbers in the body are varints, texts have their length before them.
const (
	checkpointMark    = "rfe"
	checkpointVersion = 1
	checkpointHead    = 44
)

func headOf(hash machine.Fingerprint, length, sum uint64) []byte {
	b := append([]byte(checkpointMark), checkpointVersion)
	for _, v := range []uint64{hash.Hi, hash.Lo, length, sum} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// writeCheckpoint puts the search, which stands still, into its file, in place
// of what was there.
func (s *search) writeCheckpoint() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write the checkpoint: %w", err)
		}
	}()
	dir, name := filepath.Split(s.o.Checkpoint)
	dir = filepath.Clean(dir)
	f, err := os.CreateTemp(dir, name+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	// The head is known last; until then there is none.
	if _, err := f.Write(make([]byte, checkpointHead)); err != nil {
		return err
	}
	w := &bodyWriter{sum: xxhash.New(), out: bufio.NewWriterSize(f, 1<<20)}
	s.writeBody(w)
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err != nil {
		return w.err
	}
	if _, err := f.WriteAt(headOf(s.sys.Hash(), w.n, w.sum.Sum64()), 0); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), s.o.Checkpoint); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// bodyWriter counts and sums what it writes, and keeps the first error.
type bodyWriter struct {
	out *bufio.Writer
	sum *xxhash.Digest
	n   uint64
	err error
	buf []byte
}

func (w *bodyWriter) bytes(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
	}
	w.sum.Write(b)
	w.n += uint64(len(b))
}

func (w *bodyWriter) number(v uint64) {
	w.buf = binary.AppendUvarint(w.buf[:0], v)
	w.bytes(w.buf)
}

func (w *bodyWriter) text(s string) {
	w.number(uint64(len(s)))
	w.bytes([]byte(s))
}

func (s *search) writeBody(w *bodyWriter) {
	w.text(s.sys.Name())
	for _, v := range []uint64{
		uint64(s.depth), s.edges.Load(), s.expanded.Load(), s.found.Load(), uint64(s.elapsed()),
		uint64(s.table.peak.Load()), uint64(s.store.peakMemory.Load()), uint64(s.store.toDisk.Load()),
	} {
		w.number(v)
	}
	w.number(uint64(len(s.fired.words)))
	for _, v := range s.fired.words {
		w.number(v)
	}
	w.number(uint64(len(s.findings)))
	for kind, t := range s.findings {
		move := uint64(0)
		if t.move {
			move = 1
		}
		w.text(kind)
		for _, v := range []uint64{t.count, uint64(t.level), move, t.fp.Hi, t.fp.Lo, uint64(t.at)} {
			w.number(v)
		}
	}
	for i := range s.table.shards {
		writeShard(w, &s.table.shards[i])
	}
	for _, f := range []*frontier{s.now, s.next} {
		w.number(uint64(f.left()))
		if err := f.each(func(packed []byte) error {
			w.number(uint64(len(packed)))
			w.bytes(packed)
			return w.err
		}); err != nil && w.err == nil {
			w.err = err
		}
	}
}

// entryBytes is what a state takes in a checkpoint: its fingerprint and its
// parent.
const entryBytes = 20

func writeShard(w *bodyWriter, s *shard) {
	w.number(uint64(s.n))
	w.number(uint64(s.level))
	buf := make([]byte, 0, chunkStates*entryBytes)
	for k, c := range *s.chunks.Load() {
		buf = buf[:0]
		for i := range min(chunkStates, int(s.n)-k*chunkStates) {
			buf = binary.LittleEndian.AppendUint64(buf, c.fp[i].Hi)
			buf = binary.LittleEndian.AppendUint64(buf, c.fp[i].Lo)
			buf = binary.LittleEndian.AppendUint32(buf, uint32(c.parent[i]))
		}
		w.bytes(buf)
	}
}

// resume makes the search what its checkpoint has.
func (s *search) resume() error {
	f, err := os.Open(s.o.Checkpoint)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return s.read(f, info.Size())
}

// read makes the search, which has not begun, what a checkpoint has. The whole
// of it is held against its checksum before anything is taken from it.
func (s *search) read(src io.ReaderAt, size int64) error {
	fail := func(why machine.Reason, format string, args ...any) error {
		return &CheckpointError{s.o.Checkpoint, why, fmt.Sprintf(format, args...)}
	}
	head := make([]byte, checkpointHead)
	n, err := src.ReadAt(head, 0)
	head = head[:n]
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case len(head) > 0 && string(head[:min(n, len(checkpointMark))]) != checkpointMark[:min(n, len(checkpointMark))]:
		return fail(ErrCheckpointForeign, "it is no checkpoint at all")
	case n < checkpointHead:
		return fail(ErrCheckpointTorn, "it has %d bytes, not even a head", n)
	case head[len(checkpointMark)] != checkpointVersion:
		return fail(ErrCheckpointForeign, "it is of version %d, not %d", head[len(checkpointMark)], checkpointVersion)
	case xxhash.Sum64(head[:checkpointHead-8]) != binary.LittleEndian.Uint64(head[checkpointHead-8:]):
		return fail(ErrCheckpointCorrupt, "the checksum of its head is wrong")
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(head[4+8*i:]) }
	length, have := at(2), uint64(size-checkpointHead)
	switch {
	case have < length:
		return fail(ErrCheckpointTorn, "%d of %d bytes are missing", length-have, length)
	case have > length:
		return fail(ErrCheckpointCorrupt, "it has %d bytes too many", have-length)
	}
	body := func() io.Reader { return io.NewSectionReader(src, checkpointHead, int64(length)) }
	sum := xxhash.New()
	if _, err := io.CopyBuffer(sum, body(), make([]byte, 1<<20)); err != nil {
		return err
	}
	if sum.Sum64() != at(3) {
		return fail(ErrCheckpointCorrupt, "the checksum of its body is wrong")
	}
	r := &bodyReader{in: bufio.NewReaderSize(body(), 1<<20), left: length}
	if name, hash := r.text(), (machine.Fingerprint{Hi: at(0), Lo: at(1)}); hash != s.sys.Hash() {
		return fail(ErrCheckpointForeign, "it is of %q, hash %016x%016x", name, hash.Hi, hash.Lo)
	}
	s.readBody(r)
	if r.err == nil && r.left > 0 {
		r.fail("%d bytes too many", r.left)
	}
	var malformed malformed
	if errors.As(r.err, &malformed) {
		return fail(ErrCheckpointCorrupt, "%s, %d bytes before its end", string(malformed), r.left)
	}
	return r.err
}

// malformed says what is wrong with the body of a checkpoint.
type malformed string

func (m malformed) Error() string { return string(m) }

// bodyReader keeps the first error; after it, all that it reads is zero.
type bodyReader struct {
	in   *bufio.Reader
	left uint64
	err  error
	buf  []byte
}

func (r *bodyReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(fmt.Sprintf(format, args...))
	}
}

// ReadByte implements io.ByteReader.
func (r *bodyReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.left--
	}
	return b, err
}

func (r *bodyReader) number() uint64 {
	if r.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(r)
	if err != nil {
		r.fail("no number here")
		return 0
	}
	return v
}

func (r *bodyReader) upTo(most uint64, what string) uint64 {
	v := r.number()
	if v > most {
		r.fail("%s is %d: at most %d", what, v, most)
		return 0
	}
	return v
}

// bytes returns the next n, until the next call; or nil after an error.
func (r *bodyReader) bytes(n uint64) []byte {
	if n > r.left {
		r.fail("%d bytes are wanted, %d are left", n, r.left)
	}
	if r.err != nil {
		return nil
	}
	r.buf = slices.Grow(r.buf[:0], int(n))[:n]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		r.err = err
		return nil
	}
	r.left -= n
	return r.buf
}

func (r *bodyReader) text() string { return string(r.bytes(r.number())) }

// readBody reads what writeBody wrote.
func (s *search) readBody(r *bodyReader) {
	s.depth = int(r.upTo(math.MaxUint32, "the depth"))
	s.edges.Store(r.number())
	s.expanded.Store(r.number())
	s.found.Store(r.number())
	s.before = time.Duration(r.upTo(math.MaxInt64, "the time"))
	peak := int64(r.upTo(math.MaxInt64, "the size of the table"))
	s.store.peakMemory.Store(int64(r.upTo(math.MaxInt64, "the size of the frontier")))
	s.store.toDisk.Store(int64(r.upTo(math.MaxInt64, "what was on disk")))
	if n := r.number(); n != uint64(len(s.fired.words)) {
		r.fail("it has %d words of rows, this system %d", n, len(s.fired.words))
	}
	for i := range s.fired.words {
		s.fired.words[i] = r.number()
	}
	var places []ref
	for range r.upTo(r.left, "the number of findings") {
		kind := r.text()
		t := &tally{count: r.number()}
		t.level = int(r.upTo(uint64(s.depth), "the depth of a finding"))
		t.move = r.upTo(1, "what a finding is of") == 1
		t.fp = machine.Fingerprint{Hi: r.number(), Lo: r.number()}
		t.at = ref(r.upTo(math.MaxUint32, "where a finding is"))
		if r.err != nil {
			return
		}
		places = append(places, t.at)
		s.findings[kind] = t
	}
	roots := 0
	for i := range s.table.shards {
		roots += s.readShard(r, uint32(i))
	}
	if r.err == nil && roots != 1 {
		r.fail("%d states were reached from none", roots)
	}
	s.table.peak.Store(max(peak, s.table.peak.Load()))
	n, reached := s.table.count()
	s.states.Store(n)
	s.reached = reached
	if r.err == nil && (uint64(s.depth) > n || s.expanded.Load() > reached) {
		r.fail("%d states do not make %d levels, with %d expanded", n, s.depth, s.expanded.Load())
	}
	for i := range s.table.shards {
		s.checkParents(r, &s.table.shards[i])
	}
	for _, p := range places {
		s.mustExist(r, p)
	}
	for _, f := range []*frontier{s.now, s.next} {
		for range r.upTo(r.left, "the number of chunks") {
			if r.err != nil {
				return
			}
			s.readChunk(r, f)
		}
	}
}

// readShard returns how many of its states have no parent.
func (s *search) readShard(r *bodyReader, number uint32) (roots int) {
	sh := &s.table.shards[number]
	n := uint32(r.upTo(min(uint64(s.table.limit), r.left/entryBytes), "the number of states"))
	level := uint32(r.upTo(uint64(n), "the number of earlier states"))
	for sh.n < n {
		b := r.bytes(entryBytes * uint64(min(chunkStates, n-sh.n)))
		if b == nil {
			return roots
		}
		for ; len(b) > 0; b = b[entryBytes:] {
			fp := machine.Fingerprint{Hi: binary.LittleEndian.Uint64(b), Lo: binary.LittleEndian.Uint64(b[8:])}
			parent := ref(binary.LittleEndian.Uint32(b[16:]))
			if parent == noRef {
				roots++
			}
			if shardOf(fp) != number || parent == noRef && sh.n >= level {
				r.fail("a state is where it cannot be")
				return roots
			}
			s.table.push(sh, fp, parent)
		}
	}
	sh.level = level
	s.table.reindex(sh, max(firstIndex, int(uint64(n)*8/5)))
	return roots
}

func (s *search) mustExist(r *bodyReader, p ref) {
	if r.err == nil && p.place() >= s.table.shards[p.shard()].n {
		r.fail("a state is named that there is not")
	}
}

func (s *search) checkParents(r *bodyReader, sh *shard) {
	for place := range sh.n {
		if c, i := sh.at(place); c.parent[i] != noRef {
			s.mustExist(r, c.parent[i])
		}
	}
}

func (s *search) readChunk(r *bodyReader, f *frontier) {
	packed := r.bytes(r.upTo(r.left, "the size of a chunk"))
	if r.err != nil {
		return
	}
	if n, err := s2.DecodedLen(packed); err != nil || n > chunkBytes+recordMost {
		r.fail("a chunk of states cannot be read")
		return
	}
	b := s.store.buffer()
	b, err := s2.Decode(b[:cap(b)], packed)
	if err != nil {
		r.fail("a chunk of states cannot be read")
		return
	}
	n := 0
	for rest := b; len(rest) > 0; n++ {
		var rec record
		if rec, rest, err = nextRecord(rest); err != nil {
			r.fail("%s", err)
			return
		}
		s.mustExist(r, rec.at)
	}
	if r.err == nil {
		r.err = f.put(b, n)
	}
}
