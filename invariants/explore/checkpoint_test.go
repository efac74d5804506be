package explore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants/explore"
)

// searchFor searches for some batches and then interrupts itself.
func searchFor(sys explore.System, o explore.Options, batch, batches int) (*explore.Result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var done atomic.Int64
	explore.SetBatch(&o, batch, func() {
		if done.Add(1) == int64(batches) {
			cancel()
		}
	})
	return explore.Search(ctx, sys, o)
}

// A search that is stopped again and again, at whatever place, says in the end
// what one says that never was; its states on disk or not.
func TestResumedSearchSaysTheSame(t *testing.T) {
	for _, c := range []struct {
		sys *small
		o   explore.Options
		// It is stopped after from batches; then again, after one more each, or
		// twice as many if it spills.
		batch, from int
		spills      bool
	}{
		{sys: quarrel(alike(counters(3, 4)), 3, 4), batch: 1, from: 1},
		{sys: quarrel(partly(counters(4, 4)), 4, 4), o: explore.Options{KeepGoing: true}, batch: 4, from: 1},
		{sys: heavy(quarrel(alike(counters(5, 6)), 5, 6), 10_000), o: explore.Options{KeepGoing: true, Workers: 3, Memory: 700 << 10}, batch: 3, from: 16, spills: true},
	} {
		want := search(t, c.sys, explore.Options{KeepGoing: c.o.KeepGoing, Workers: 1})
		require.NotEmpty(t, want.Findings)
		step := 1
		for batches := c.from; ; batches += step {
			c.o.Dir, c.o.Checkpoint, c.o.Resume = t.TempDir(), filepath.Join(t.TempDir(), "checkpoint"), false
			stops := 0
			for {
				r, err := searchFor(c.sys, c.o, c.batch, batches)
				require.NoError(t, err)
				left, err := os.ReadDir(c.o.Dir)
				require.NoError(t, err)
				require.Empty(t, left, "nothing is left on disk")
				if r.Stopped != explore.Interrupted {
					require.Empty(t, cmp.Diff(want, r, seen), "stopped %d times, after %d batches each", stops, batches)
					require.Equal(t, c.spills, r.DiskBytes > 0)
					break
				}
				stops++
				c.o.Resume = true
			}
			if stops == 0 {
				break
			}
			if c.spills {
				step = batches
			}
		}
	}
}

// interrupted leaves the checkpoint of a search that was stopped within a level,
// with something of everything in it, and returns the file.
func interrupted(t testing.TB, sys explore.System) string {
	file := filepath.Join(t.TempDir(), "checkpoint")
	r, err := searchFor(sys, explore.Options{Workers: 1, KeepGoing: true, Checkpoint: file}, 2, 12)
	require.NoError(t, err)
	require.Equal(t, explore.Interrupted, r.Stopped)
	require.NotEmpty(t, r.Findings)
	require.Greater(t, r.Deepest, r.Depth, "it is within a level")
	return file
}

func TestCheckpointRefusesWhatIsNone(t *testing.T) {
	sys := quarrel(alike(counters(3, 4)), 3, 4)
	file := interrupted(t, sys)
	good, err := os.ReadFile(file)
	require.NoError(t, err)

	refused := func(name string, sys explore.System, b []byte, reason error, detail string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, b, 0o600))
		r, err := explore.Search(context.Background(), sys, explore.Options{Workers: 1, Checkpoint: file, Resume: true})
		require.Nil(t, r)
		var c *explore.CheckpointError
		require.ErrorAs(t, err, &c, name)
		assert.Equal(t, file, c.File)
		assert.ErrorIs(t, err, reason, name)
		assert.ErrorContains(t, err, detail, name)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, b, after, "%s: the file is as it was", name)
	}
	for n := range good {
		refused("cut short", sys, good[:n], explore.ErrCheckpointTorn, "checkpoint: the checkpoint is cut short: ")
		flipped := append([]byte{}, good...)
		flipped[n] ^= 0x10
		reason := error(explore.ErrCheckpointCorrupt)
		if n < 4 {
			reason = explore.ErrCheckpointForeign
		}
		refused("changed", sys, flipped, reason, "checkpoint: ")
	}
	refused("too long", sys, append(good[:len(good):len(good)], 0), explore.ErrCheckpointCorrupt, "1 bytes too many")
	refused("something else", sys, []byte("package explore"), explore.ErrCheckpointForeign, "no checkpoint at all")
	newer := append([]byte{}, good...)
	newer[3] = 9
	refused("newer", sys, newer, explore.ErrCheckpointForeign, "version 9, not 1")
	refused("of another system", quarrel(alike(counters(4, 6)), 4, 6), good, explore.ErrCheckpointForeign, `it is of "3 counters to 4, alike, quarrelling"`)

	// What is not to be resumed is not written over.
	_, err = explore.Search(context.Background(), sys, explore.Options{Checkpoint: file})
	require.ErrorIs(t, err, explore.ErrCheckpointExists)
	_, err = explore.Search(context.Background(), sys, explore.Options{Checkpoint: file + "s", Resume: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A search whose checkpoint cannot be written says so, and what it saw.
func TestCheckpointThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nowhere", "checkpoint")
	r, err := explore.Search(context.Background(), counters(3, 9), explore.Options{MaxDepth: 3, Checkpoint: file})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "cannot write the checkpoint")
	require.Equal(t, explore.AtDepth, r.Stopped)
	require.Equal(t, uint64(20), r.States)
}

// Bounds leave a checkpoint that larger bounds go on from, and nothing else
// beside it.
func TestCheckpointAtBounds(t *testing.T) {
	want := search(t, counters(4, 9), explore.Options{})
	for name, o := range map[string]explore.Options{
		"depth":  {MaxDepth: 20},
		"states": {MaxStates: 5000},
		"memory": {Memory: 400 << 10},
	} {
		o.Checkpoint = filepath.Join(t.TempDir(), "checkpoint")
		r := search(t, counters(4, 9), o)
		require.Equal(t, name, string(r.Stopped))
		again := search(t, counters(4, 9), explore.Options{Checkpoint: o.Checkpoint, Resume: true, MaxDepth: o.MaxDepth, MaxStates: o.MaxStates, Memory: o.Memory})
		require.Empty(t, cmp.Diff(r, again, seen), "%s: the same bound adds nothing", name)
		require.Empty(t, cmp.Diff(want, search(t, counters(4, 9), explore.Options{Checkpoint: o.Checkpoint, Resume: true}), seen), name)
		files, err := os.ReadDir(filepath.Dir(o.Checkpoint))
		require.NoError(t, err)
		require.Len(t, files, 1, name)
	}
}

// A checkpoint that is written now and then holds a search that goes on alike.
func TestCheckpointWhileGoingOn(t *testing.T) {
	sys := counters(9, 200)
	dir := t.TempDir()
	o := explore.Options{Workers: 2, Checkpoint: filepath.Join(dir, "now"), Every: 1, MaxStates: 3_000_000}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	copied := filepath.Join(dir, "copied")
	var once atomic.Bool
	explore.SetBatch(&o, 3, func() {
		if b, err := os.ReadFile(o.Checkpoint); err == nil && !once.Swap(true) {
			assert.NoError(t, os.WriteFile(copied, b, 0o600))
			cancel()
		}
	})
	r, err := explore.Search(ctx, sys, o)
	require.NoError(t, err)
	require.Equal(t, explore.Interrupted, r.Stopped)
	deep := max(8, r.Depth+1)
	assert.Empty(t, cmp.Diff(
		search(t, sys, explore.Options{MaxDepth: deep}),
		search(t, sys, explore.Options{MaxDepth: deep, Checkpoint: copied, Resume: true}), seen))
}

// resumed goes on from a checkpoint with this body and right checksums. It is
// refused by name, or searched from.
func resumed(t *testing.T, sys explore.System, file string, body []byte) error {
	require.NoError(t, os.WriteFile(file, append(explore.Head(sys.Hash(), body), body...), 0o600))
	_, err := explore.Search(context.Background(), sys, explore.Options{Workers: 1, MaxDepth: 30, Checkpoint: file, Resume: true})
	var c *explore.CheckpointError
	if err != nil && !errors.Is(err, explore.ErrUnfaithful) && !errors.As(err, &c) {
		// A state is the system's own affair.
		require.ErrorContains(t, err, "a state of another size")
	}
	return err
}

// Each byte of a checkpoint, changed and given right checksums, is noticed or
// harmless.
func TestCheckpointWithEachByteChanged(t *testing.T) {
	sys := quarrel(alike(counters(3, 4)), 3, 4)
	file := interrupted(t, sys)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	good = good[explore.HeadBytes:]
	var refused strings.Builder
	for i := range good {
		for _, v := range []byte{0, good[i] + 1, 0x7f} {
			body := append([]byte{}, good...)
			body[i] = v
			if err := resumed(t, sys, file, body); err != nil {
				fmt.Fprintln(&refused, err)
			}
		}
	}
	for _, want := range []string{
		"the depth of a finding is",
		"the number of states is",
		"the number of earlier states is",
		"the number of chunks is",
		"the size of a chunk is",
		"what a finding is of is",
		"it has 127 words of rows, this system 1",
		"states do not make",
		"with 127 expanded",
		"a state is where it cannot be",
		"a state is named that there is not",
		"a chunk of states cannot be read",
		"a record of a state is cut short",
		"states were reached from none",
		"no number here",
		"the system contradicts itself",
		"bytes too many",
	} {
		assert.True(t, strings.Contains(refused.String(), want), want)
	}
}

// FuzzCheckpoint: whatever the body of a checkpoint with right checksums holds,
// it is refused by name, or searched from without a panic.
func FuzzCheckpoint(f *testing.F) {
	sys := quarrel(alike(counters(3, 3)), 3, 3)
	file := filepath.Join(f.TempDir(), "checkpoint")
	for _, batches := range []int{1, 4} {
		os.Remove(file)
		_, err := searchFor(sys, explore.Options{Workers: 1, KeepGoing: true, Checkpoint: file}, 2, batches)
		require.NoError(f, err)
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(b[explore.HeadBytes:])
	}
	f.Add([]byte{})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = resumed(t, sys, filepath.Join(dir, fmt.Sprint(os.Getpid())), body)
	})
}
