package explore

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// note is a state that is nothing but its bytes.
type note struct {
	State
	text string
}

func (n note) AppendBinary(dst []byte) []byte { return append(dst, n.text...) }

// Whatever goes into a frontier, in memory or on disk, comes out of it once.
func TestFrontierGivesWhatItGot(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		room := int64(0)
		f := &frontier{store: &chunkStore{dir: dir, room: func() int64 { return room }}}
		for range 2 { // a frontier is used again when it has been emptied
			var put, got []string
			spilled := int64(0)
			for range rapid.IntRange(0, 6).Draw(t, "chunks") {
				b := f.store.buffer()
				n := rapid.IntRange(1, 5).Draw(t, "records")
				for range n {
					text := fmt.Sprint(len(put), " ", string(bytes.Repeat([]byte("x"), rapid.SampledFrom([]int{0, 1, 100, 30_000, 90_000}).Draw(t, "length"))))
					b = appendRecord(b, ref(len(put)), ref(1000+len(put)), note{text: text})
					put = append(put, text)
				}
				room = rapid.SampledFrom([]int64{0, 1 << 30}).Draw(t, "room")
				require.NoError(t, f.put(b, n))
				if room == 0 {
					spilled++
				}
			}
			require.Equal(t, spilled > 0, f.store.onDisk.Load() > 0)
			read := func(b []byte) {
				for len(b) > 0 {
					r, rest, err := nextRecord(b)
					require.NoError(t, err)
					require.Equal(t, ref(len(got)), r.at)
					require.Equal(t, ref(1000+len(got)), r.parent)
					got = append(got, string(r.state))
					b = rest
				}
			}
			for range rapid.IntRange(0, 20).Draw(t, "takes") {
				most := rapid.IntRange(1, 7).Draw(t, "at most")
				b, n, err := f.take(nil, most)
				require.NoError(t, err)
				require.LessOrEqual(t, n, most)
				before := len(got)
				read(b)
				require.Equal(t, n, len(got)-before)
				require.Equal(t, int64(len(put)-len(got)), f.records.Load())
				require.Equal(t, len(put) == before, n == 0)
			}
			chunks, want := 0, f.left()
			require.NoError(t, f.each(func(packed []byte) error {
				b, err := s2.Decode(nil, packed)
				require.NoError(t, err)
				chunks++
				read(b)
				return nil
			}))
			require.Equal(t, want, chunks)
			require.Equal(t, put, got)
			require.NoError(t, f.empty())
			require.Zero(t, f.store.inMemory.Load())
			require.Zero(t, f.store.onDisk.Load())
			_, n, err := f.take(nil, 1)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		require.NoError(t, f.close())
	})
}

// States that the disk gives back changed are an error, not other states.
func TestFrontierNoticesOtherBytes(t *testing.T) {
	dir := t.TempDir()
	f := &frontier{store: &chunkStore{dir: dir, room: func() int64 { return 0 }}}
	require.NoError(t, f.put(appendRecord(f.store.buffer(), 1, 2, note{text: "as it was written"}), 1))
	if runtime.GOOS != "windows" {
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "whatever ends the process leaves nothing behind")
	}
	b := make([]byte, f.end)
	_, err := f.file.ReadAt(b, 0)
	require.NoError(t, err)
	b[bytes.Index(b, []byte("was"))] ^= 1
	_, err = f.file.WriteAt(b, 0)
	require.NoError(t, err)
	_, _, err = f.take(nil, 1)
	require.ErrorContains(t, err, "has other bytes than were written")
	require.NoError(t, f.file.Truncate(3))
	_, _, err = f.take(nil, 1)
	require.ErrorContains(t, err, "cannot read states back")
	require.NoError(t, f.close())
}

// A frontier that has no place to put its states says so.
func TestFrontierWithoutAPlace(t *testing.T) {
	f := &frontier{store: &chunkStore{dir: t.TempDir() + "/none", room: func() int64 { return 0 }}}
	require.ErrorContains(t, f.put(appendRecord(nil, 1, 2, note{text: "x"}), 1), "cannot put states on disk")
	require.NoError(t, f.close())
}
