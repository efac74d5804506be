package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
)

func TestStateHoldsTheWholeWorld(t *testing.T) {
	rules := compile(t, harbour()...)
	rapid.Check(t, func(t *rapid.T) {
		w, err := rules.NewWorld(harbourSize)
		require.NoError(t, err)
		walk(t, w, rapid.IntRange(0, 40).Draw(t, "steps"))
		c, err := rules.NewWorld(harbourSize)
		require.NoError(t, err)
		walk(t, c, rapid.IntRange(0, 10).Draw(t, "steps of the other"))
		b := w.AppendState([]byte("before"))[len("before"):]
		own := c.AppendState(nil)
		for range 2 { // the second time over the remains of the first
			require.NoError(t, c.SetState(own))
			require.NoError(t, c.SetState(b))
		}
		// (A checkpoint counts commands in flight, which Words does not.)
		require.Equal(t, w.AppendBinary(nil), c.AppendBinary(nil))
		require.Equal(t, b, c.AppendState(nil), "equal worlds have equal bytes")
		for m := range rules.NumMachines() {
			for s := range w.Capacity(machine.MachineID(m)) {
				ref := w.Ref(machine.MachineID(m), s)
				require.Equal(t, w.Next(ref), c.Next(ref))
				require.Equal(t, *w.Settle(ref, machine.Result{}), *c.Settle(ref, machine.Result{}))
			}
		}
		require.Equal(t, w.AppendState(nil), c.AppendState(nil))
		require.NoError(t, w.SetState(b))
		require.Equal(t, b, w.AppendState(nil))
	})
}

// Runs of words that are zero are of any length: at the ends and between, of
// part of a group, and of more groups than one byte counts.
func TestStateOfWordsFarApart(t *testing.T) {
	d := &machine.Definition{
		Name: "cell", Pool: "cell", States: []machine.State{{Name: "on"}},
		Facts:  []machine.Fact{{Name: "v", Type: "code"}},
		Events: []machine.Event{{Name: "set", Args: []machine.Fact{{Name: "v", Type: "code"}}}},
		Rows:   []machine.Row{{ID: "set", From: "on", Event: "set", Then: []machine.Target{{Do: "v = arg.v"}}}},
	}
	rules := compile(t, d)
	for n := range 32 {
		size := machine.Config{Pools: map[string]int{"cell": 1 + n*37}}
		w, err := rules.NewWorld(size)
		require.NoError(t, err)
		c, err := rules.NewWorld(size)
		require.NoError(t, err)
		same := func() {
			t.Helper()
			require.NoError(t, c.SetState(w.AppendState(nil)))
			require.Equal(t, w.Words(), c.Words())
		}
		same()
		for _, at := range []int{0, n * 36, n * 37} {
			require.Equal(t, machine.Accepted, w.Issue(w.Ref(0, at), 0, machine.CodeWord(-1)).Status)
			same()
		}
	}
}

func TestStateOfTheWrongLength(t *testing.T) {
	l := busy(t)
	good := l.AppendState(nil)
	before := l.AppendBinary(nil)
	refused := func(b []byte, want string) {
		t.Helper()
		var c *machine.CheckpointError
		err := l.SetState(b)
		require.ErrorAs(t, err, &c)
		assert.ErrorContains(t, err, want)
		require.Equal(t, before, l.AppendBinary(nil), "the world is as it was")
	}
	for n := range len(good) {
		refused(good[:n], "cut short")
	}
	refused(append(good[:len(good):len(good)], 0), "1 bytes too many")
	refused([]byte{0, 0, 17}, "a queue of 17")
	require.NoError(t, l.SetState(good))
}

func TestStateAllocatesNothing(t *testing.T) {
	l := busy(t)
	b := l.AppendState(nil)
	require.NoError(t, l.SetState(b))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b = l.AppendState(b[:0])
		if err := l.SetState(b); err != nil {
			t.Fatal(err)
		}
	}))
}

// Whatever the bytes are, they are taken or refused, and a world that was set
// writes what sets it again.
func FuzzSetState(f *testing.F) {
	good := busy(f).AppendState(nil)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := compile(t, harbour()...).NewWorld(harbourSize)
		require.NoError(t, err)
		if w.SetState(b) != nil {
			require.Zero(t, w.Seq())
			return
		}
		again := w.AppendState(nil)
		require.NoError(t, w.SetState(again))
		require.Equal(t, again, w.AppendState(nil))
	})
}
