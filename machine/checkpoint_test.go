package machine_test

import (
	"encoding/binary"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
)

func TestCheckpointHoldsTheWholeWorld(t *testing.T) {
	rules := compile(t, harbour()...)
	rapid.Check(t, func(t *rapid.T) {
		w, err := rules.NewWorld(harbourSize)
		require.NoError(t, err)
		walk(t, w, rapid.IntRange(0, 40).Draw(t, "steps"))
		c, err := rules.NewWorld(harbourSize)
		require.NoError(t, err)
		walk(t, c, rapid.IntRange(0, 10).Draw(t, "steps of the other"))
		b := w.AppendBinary([]byte("before"))
		require.NoError(t, c.SetBinary(b[len("before"):]))
		require.Equal(t, w.Words(), c.Words())
		require.Equal(t, w.Seq(), c.Seq())
		// Both go on alike, what is in flight included.
		for m := range rules.NumMachines() {
			for s := range w.Capacity(machine.MachineID(m)) {
				ref := w.Ref(machine.MachineID(m), s)
				if x, y := w.Next(ref), c.Next(ref); x == nil || y == nil {
					require.Equal(t, x == nil, y == nil)
				} else {
					require.Equal(t, *x, *y)
				}
				require.Equal(t, *w.Settle(ref, machine.Result{}), *c.Settle(ref, machine.Result{}))
				for w.HasNext(ref) {
					x, y := w.Next(ref), c.Next(ref)
					require.Equal(t, x, y)
					if x == nil || x.Status == machine.Deferred {
						break
					}
				}
			}
		}
		require.Equal(t, w.Words(), c.Words())
	})
}

// busy is a world with something of everything.
func busy(t testing.TB) lane {
	l := newLane(t, harbourSize, harbour()...)
	l.takes(l.ref("run", 0), "start", 1, 1)
	l.Settle(l.ref("run", 0), machine.Result{})
	l.takes(l.ref("run", 0), "link", l.ref("run", 1).Pack())
	l.takes(l.ref("run", 0), "tell")
	l.takes(l.ref("run", 1), "start", 2, 2)
	l.takes(l.ref("token", 0), "take", l.ref("run", 1).Pack())
	return l
}

// sealed gives bytes the checksum they need.
func sealed(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b[:len(b):len(b)], xxhash.Sum64(b))
}

func TestCheckpointRefusesWhatIsNone(t *testing.T) {
	l := busy(t)
	good := l.AppendBinary(nil)
	before := l.Words()
	refused := func(name string, b []byte, want string) {
		t.Helper()
		err := l.SetBinary(b)
		var c *machine.CheckpointError
		require.ErrorAs(t, err, &c, name)
		assert.ErrorContains(t, err, want, name)
		assert.Equal(t, before, l.Words(), "%s: the world is as it was", name)
	}
	for n := range len(good) {
		refused("cut short", good[:n], "checkpoint: byte")
		flipped := append([]byte{}, good...)
		flipped[n] ^= 0x40
		refused("changed", flipped, "checkpoint: byte")
	}
	refused("empty", nil, "not a world of a version that is known here")
	refused("too long", sealed(append(append([]byte{}, good[:len(good)-8]...), 0)), "1 bytes too many")

	other := newWorld(t, compile(t, minter()), machine.Config{})
	err := other.SetBinary(good)
	assert.ErrorIs(t, err, machine.ErrOtherRules)
	assert.ErrorContains(t, err, l.Rules().Hash().String())
	var c *machine.CheckpointError
	assert.ErrorAs(t, err, &c)

	larger := newWorld(t, l.Rules(), machine.Config{Pools: map[string]int{"runs": 4, "tokens": 2}, Queue: 4})
	assert.ErrorContains(t, larger.SetBinary(good), "it has 3 of run, this world 4")
	longer := newWorld(t, l.Rules(), machine.Config{Pools: map[string]int{"runs": 3, "tokens": 2}, Queue: 5})
	assert.ErrorContains(t, longer.SetBinary(good), "its queue holds 4, this one 5")
}

// Whatever a checkpoint with a right checksum holds, the world takes it whole
// or not at all, and then goes on without a panic.
func FuzzCheckpoint(f *testing.F) {
	l := busy(f)
	good := l.AppendBinary(nil)
	f.Add(good[:len(good)-8])
	f.Add(newLane(f, harbourSize, harbour()...).AppendBinary(nil)[:len(good)-20])
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWorld(t, l.Rules(), harbourSize)
		fresh := w.Words()
		if err := w.SetBinary(sealed(b)); err != nil {
			require.Equal(t, fresh, w.Words())
			return
		}
		require.NoError(t, newWorld(t, l.Rules(), harbourSize).SetBinary(w.AppendBinary(nil)))
		w.Fingerprint(nil)
		for m := range l.Rules().NumMachines() {
			id := machine.MachineID(m)
			for s := range w.Capacity(id) {
				ref := w.Ref(id, s)
				w.Settle(ref, machine.Result{})
				w.Next(ref)
				for ev := range l.Rules().At(id).NumEvents() {
					w.Issue(ref, machine.EventID(ev), make([]uint64, len(l.Rules().At(id).EventArgs(machine.EventID(ev))))...)
				}
				w.Drop(ref)
			}
		}
	})
}

// Each number of a checkpoint, made too large, is noticed or harmless.
func TestCheckpointWithEachNumberChanged(t *testing.T) {
	l := busy(t)
	good := l.AppendBinary(nil)
	body := good[:len(good)-8]
	refused := map[string]bool{}
	for at := 20; at < len(body); {
		_, n := binary.Uvarint(body[at:])
		for _, v := range []uint64{0, 1, 2, 3, 9, 200, 1 << 20, 1 << 40, 1<<64 - 1} {
			b := binary.AppendUvarint(append([]byte{}, body[:at]...), v)
			b = append(b, body[at+n:]...)
			w := newWorld(t, l.Rules(), harbourSize)
			fresh := w.Words()
			if err := w.SetBinary(sealed(b)); err != nil {
				var c *machine.CheckpointError
				require.ErrorAs(t, err, &c)
				require.Equal(t, fresh, w.Words())
				refused[c.Msg] = true
				continue
			}
			w.Fingerprint(nil)
			w.Next(l.ref("run", 0))
			w.Settle(l.ref("run", 1), machine.Result{})
		}
		at += n
	}
	for _, want := range []string{
		"it has 200 of run, this world 3",
		"the number of events in the queue is 200: at most 4",
		"the root of a queued event names no instance",
		"a queued event's instance names no instance",
		"lane has no event 200 with 0 arguments",
		"a queued event's parent is 200: at most 6",
		"lane has no state 9",
		"run cannot be in flight on row 15 in state \"idle\"",
		"the sequence number of an issue is 200: at most 6",
		"lane: fact 1 is 9, not of type int 3",
		"run: argument 1 is 200, not of type int 3",
		"run: argument of a command 1 is 9, not of type ref run",
	} {
		assert.True(t, refused[want], want)
	}
}
