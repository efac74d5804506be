package machine_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
)

// harbour has all that a canonical form must see: two pools, one of machines
// side by side, identities, refs that can go stale, commands in flight, events
// that wait.
func harbour() []*machine.Definition {
	return []*machine.Definition{
		{
			Name: "lane", States: states("open", "shut"), Facts: named("last:id epoch", "n:int 3", "front:ref run"),
			Events: []machine.Event{event("note", "r:ref run", "e:id epoch"), event("shut"), event("open")},
			Rows: []machine.Row{
				{ID: "note", From: "open", Event: "note", Then: []machine.Target{{Do: "last = arg.e; front = arg.r", Emit: []string{"self.shut()"}}}},
				{ID: "note-shut", From: "shut", Event: "note", Refuse: "shut"},
				{ID: "shut", From: "open|shut", Event: "shut", Then: []machine.Target{{To: "shut"}}},
				{ID: "open", From: "open|shut", Event: "open", Then: []machine.Target{{To: "open", Do: "n = 0"}}},
			},
		},
		{
			Name: "run", Pool: "runs", States: states("idle", "live", "over!"), Identity: []string{"epoch"},
			Facts:  named("epoch:id epoch", "peer:ref run", "big:bool"),
			Events: []machine.Event{event("start", "e:id epoch", "n:int 3"), event("mint"), event("link", "r:ref run"), event("tell"), event("end")},
			Rows: []machine.Row{
				{ID: "start", From: "idle", Event: "start", Guard: "arg.n != 3", Command: "Start(arg.e, peer)", Then: []machine.Target{{On: "ok", To: "live", Do: "epoch = arg.e"}, {To: "over"}}},
				{ID: "start-big", From: "idle", Event: "start", Guard: "else", Command: "Start(arg.e, self)", Then: []machine.Target{{On: "ok", To: "live", Do: "epoch = arg.e"}, {To: "over"}}},
				{ID: "mint", From: "idle|live", Event: "mint", Then: do("epoch = fresh()")},
				{ID: "link", From: "idle|live", Event: "link", Then: do("peer = arg.r; big = true")},
				{ID: "tell", From: "live", Event: "tell", Then: []machine.Target{{Emit: []string{"lane.note(peer, epoch)", "fence.arm(epoch)"}}}},
				{ID: "end", From: "live", Event: "end", Then: to("over")},
			},
		},
		{
			Name: "fence", Pool: "runs", States: states("bare", "armed"), Facts: named("who:id epoch"),
			Events: []machine.Event{event("arm", "e:id epoch"), event("clear")},
			Rows: []machine.Row{
				{ID: "arm", From: "bare|armed", Event: "arm", Then: []machine.Target{{To: "armed", Do: "who = arg.e"}}},
				{ID: "clear", From: "armed", Event: "clear", Then: []machine.Target{{To: "bare", Do: "who = none"}}},
			},
		},
		{
			Name: "token", Pool: "tokens", States: states("free", "held", "gone!"), Facts: named("run:ref run", "id:id token"),
			Events: []machine.Event{event("take", "r:ref run"), event("give")},
			Rows: []machine.Row{
				{ID: "take", From: "free", Event: "take", Then: []machine.Target{{To: "held", Do: "run = arg.r; id = fresh()"}}},
				{ID: "give", From: "held", Event: "give", Then: to("gone")},
			},
		},
	}
}

// walk takes random steps in a world of any rules, mostly such as it accepts.
func walk(t *rapid.T, w *machine.World, steps int) {
	type choice struct {
		what string
		ref  machine.Ref
		ev   machine.EventID
	}
	r := w.Rules()
	for range steps {
		var all []choice
		for i := range r.NumMachines() {
			for s := range w.Capacity(machine.MachineID(i)) {
				ref := w.Ref(machine.MachineID(i), s)
				for _, ev := range w.Available(ref) {
					all = append(all, choice{"issue", ref, ev})
				}
				if _, inFlight, _ := w.State(ref); inFlight {
					all = append(all, choice{"settle", ref, 0})
				}
				if w.HasNext(ref) {
					all = append(all, choice{"next", ref, 0})
				}
				if st, _, _ := w.State(ref); r.At(ref.Machine).Definition().States[st].Terminal {
					all = append(all, choice{"drop", ref, 0})
				}
			}
		}
		c := rapid.SampledFrom(all).Draw(t, "step")
		switch c.what {
		case "next":
			w.Next(c.ref)
		case "settle":
			w.Settle(c.ref, machine.Result{Outcome: machine.Outcome(rapid.IntRange(0, 4).Draw(t, "outcome"))})
		case "drop":
			w.Drop(c.ref)
		default:
			var args []uint64
			for _, ty := range r.At(c.ref.Machine).EventArgs(c.ev) {
				args = append(args, anyValue(t, w, ty))
			}
			w.Issue(c.ref, c.ev, args...)
		}
	}
}

// anyValue draws a value of a type that fits the world.
func anyValue(t *rapid.T, w *machine.World, ty machine.Type) uint64 {
	switch ty.Kind {
	case machine.ID:
		v := uint64(rapid.IntRange(0, 3).Draw(t, "id"))
		w.ReserveIdentity(ty.Name, v)
		return v
	case machine.RefTo:
		m := w.Rules().Machine(ty.Name).ID()
		s := rapid.IntRange(-1, w.Capacity(m)-1).Draw(t, "ref")
		if s < 0 {
			return 0
		}
		ref := w.Ref(m, s)
		if ref.Gen > 0 && rapid.Bool().Draw(t, "stale") {
			ref.Gen--
		}
		return ref.Pack()
	case machine.Enum:
		return uint64(rapid.IntRange(0, len(ty.Names)-1).Draw(t, "enum"))
	case machine.Int:
		return rapid.Uint64Range(0, min(ty.Max, 8)).Draw(t, "int")
	case machine.Code:
		return machine.CodeWord(rapid.SampledFrom([]int32{0, -1, 507018, 107000}).Draw(t, "code"))
	}
	return machine.BoolWord(rapid.Bool().Draw(t, "bool"))
}

var harbourSize = machine.Config{Pools: map[string]int{"runs": 3, "tokens": 2}, Queue: 4}

// perms lists the orders of n slots.
func perms(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range perms(n - 1) {
		for i := range n {
			out = append(out, append(append(append([]int{}, p[:i]...), n-1), p[i:]...))
		}
	}
	return out
}

func TestCanonicalFormIgnoresNames(t *testing.T) {
	rules := compile(t, harbour()...)
	rapid.Check(t, func(t *rapid.T) {
		w, err := rules.NewWorld(harbourSize)
		require.NoError(t, err)
		walk(t, w, rapid.IntRange(0, 60).Draw(t, "steps"))
		p := [][]int{rapid.SampledFrom(perms(3)).Draw(t, "runs"), rapid.SampledFrom(perms(2)).Draw(t, "tokens")}
		shift := rapid.Uint64Range(0, 50).Draw(t, "shift")
		other := w.Renamed(p,
			func(sort int, v uint64) uint64 { return 1 + (v*7+shift+uint64(sort)*3)%101 },
			func(g uint32) uint32 { return g*3 + uint32(shift) },
			rapid.Bool().Draw(t, "turn"))
		for name, c := range companions(w, other, p) {
			require.Equal(t, w.AppendCanonical(nil, c[0]), other.AppendCanonical(nil, c[1]), name)
			require.Equal(t, w.Fingerprint(c[0]), other.Fingerprint(c[1]), name)
		}
	})
}

// companions returns models to stand beside w and other: none, one that holds
// something for one run's slot and an identity, and the same with a digest.
func companions(w, other *machine.World, p [][]int) map[string][2]*machine.Companion {
	run := w.Rules().Machine("run").ID()
	beside := func(w *machine.World, slot int, holds bool) *machine.Companion {
		c := &machine.Companion{Append: func(dst []byte, n *machine.Naming) []byte {
			for at := range w.Capacity(run) {
				dst = append(dst, machineByte(n.At(run, at) == slot))
			}
			v, _ := w.Fact(w.Ref(run, slot), 0)
			dst = binary.AppendUvarint(dst, n.Identity(0, v))
			dst = binary.AppendUvarint(dst, n.Ref(w.Ref(run, slot).Pack()))
			return append(dst, byte(n.Slot(run, slot)))
		}}
		if holds {
			c.Holds = func(pool, s int) uint64 { return machine.BoolWord(pool == 0 && s == slot) }
		}
		return c
	}
	return map[string][2]*machine.Companion{
		"none":        {nil, nil},
		"one":         {beside(w, 1, false), beside(other, p[0][1], false)},
		"with digest": {beside(w, 1, true), beside(other, p[0][1], true)},
	}
}

func machineByte(b bool) byte { return byte(machine.BoolWord(b)) }

func TestCanonicalFormsAreEqualOnlyForWorldsThatDifferInNames(t *testing.T) {
	rules := compile(t, harbour()...)
	equal, different := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a, err := rules.NewWorld(harbourSize)
		require.NoError(t, err)
		walk(t, a, rapid.IntRange(0, 40).Draw(t, "steps"))
		b := a.Clone()
		// Two short ways on from one world: often to the same, under other names.
		walk(t, a, 1)
		walk(t, b, 1)
		if words := b.Typed(); rapid.Bool().Draw(t, "change a word") && len(words) > 0 {
			x := rapid.SampledFrom(words).Draw(t, "word")
			b.CopyFrom(a)
			b.SetWord(x, anyValue(t, b, x.Type))
		}
		if pastOperations(a) || pastOperations(b) {
			t.Skip("which of two past occupants of a slot is which, is told by the queue")
		}
		same := false
		for _, p := range perms(3) {
			for _, q := range perms(2) {
				same = same || machine.Isomorphic(a, b, [][]int{p, q})
			}
		}
		if same {
			equal++
		} else {
			different++
		}
		require.Equal(t, same, a.Fingerprint(nil) == b.Fingerprint(nil))
		require.Equal(t, same, string(a.AppendCanonical(nil, nil)) == string(b.AppendCanonical(nil, nil)))
	})
	assert.Positive(t, equal)
	assert.Positive(t, different)
}

// pastOperations reports whether events of two past occupants of one slot wait.
func pastOperations(w *machine.World) bool {
	past := map[machine.Ref]machine.Ref{}
	for i := range w.Queued() {
		r := w.QueuedRoot(i)
		slot := machine.Ref{Machine: r.Machine, Slot: r.Slot}
		if r == w.Ref(r.Machine, int(r.Slot)) {
			continue
		}
		if other, ok := past[slot]; ok && other != r {
			return true
		}
		past[slot] = r
	}
	return false
}

func TestCanonicalFormSeesEachPart(t *testing.T) {
	l := newLane(t, harbourSize, harbour()...)
	seen := map[machine.Fingerprint]string{}
	look := func(what string) {
		t.Helper()
		f := l.Fingerprint(nil)
		assert.NotContains(t, seen, f, what)
		seen[f] = what
	}
	same := func(what string) {
		t.Helper()
		assert.Contains(t, seen, l.Fingerprint(nil), what)
	}
	look("at first")
	l.takes(l.ref("run", 0), "mint")
	look("an identity")
	l.takes(l.ref("run", 0), "mint")
	same("another identity instead")
	l.takes(l.ref("run", 1), "mint")
	look("two identities")
	l.takes(l.ref("run", 1), "link", l.ref("run", 0).Pack())
	look("a ref")
	l.takes(l.ref("run", 1), "link", l.ref("run", 2).Pack())
	look("a ref to another kind of slot")
	l.takes(l.ref("run", 2), "start", 2, 1)
	look("in flight")
	l.Settle(l.ref("run", 2), machine.Result{})
	look("settled")
	l.takes(l.ref("run", 2), "tell")
	look("events waiting")
	l.Next(l.ref("run", 2))
	look("one less")
	for l.Next(l.ref("run", 2)) != nil {
	}
	look("none")
	l.takes(l.ref("run", 2), "end")
	l.Drop(l.ref("run", 2))
	look("a stale ref")
}

// Each word of a world full of everything, changed to each value it can have,
// changes the form, but for changes of names.
func TestCanonicalFormSeesEachWord(t *testing.T) {
	l := newLane(t, machine.Config{Pools: map[string]int{"runs": 3, "tokens": 3}}, harbour()...)
	old := l.ref("run", 0)
	for i := range 2 { // two past occupants, whom the tokens remember
		r := l.ref("run", 0)
		l.takes(l.ref("token", i), "take", r.Pack())
		l.takes(r, "start", 5, 0)
		l.Settle(r, machine.Result{Outcome: machine.Failed})
		require.Equal(t, machine.Accepted, l.Drop(r).Status)
	}
	l.takes(l.ref("run", 0), "link", old.Pack())
	l.takes(l.ref("run", 1), "start", 1, 1)
	l.Settle(l.ref("run", 1), machine.Result{})
	l.takes(l.ref("run", 1), "link", l.ref("run", 0).Pack())
	l.takes(l.ref("run", 1), "tell") // waiting: lane.note(peer, epoch), fence.arm(epoch)
	l.takes(l.ref("run", 0), "start", 2, 2)
	l.takes(l.ref("run", 2), "start", 3, 3)
	l.takes(l.ref("lane", 0), "note", l.ref("run", 1).Pack(), 1)

	orders := func(a, b *machine.World) bool {
		for _, p := range perms(3) {
			for _, q := range perms(3) {
				if machine.Isomorphic(a, b, [][]int{p, q}) {
					return true
				}
			}
		}
		return false
	}
	values := func(ty machine.Type) (out []uint64) {
		switch ty.Kind {
		case machine.RefTo:
			out = append(out, 0)
			for s := range 3 {
				m := l.m(ty.Name).ID()
				for g := range l.Ref(m, s).Gen + 1 {
					out = append(out, machine.Ref{Machine: m, Slot: uint16(s), Gen: g}.Pack())
				}
			}
		case machine.ID:
			out = []uint64{0, 1, 2, 3, 4, 99}
		case machine.Bool:
			out = []uint64{0, 1}
		default:
			out = []uint64{0, 1, 2, 3}
		}
		return out
	}
	a, b := l.Fingerprint(nil), l.Clone()
	changed, named := 0, 0
	for _, x := range l.Typed() {
		for _, v := range values(x.Type) {
			b.CopyFrom(l.World)
			b.SetWord(x, v)
			same := orders(l.World, b)
			require.Equal(t, same, a == b.Fingerprint(nil), "word %v to %d", x, v)
			if same {
				named++
			} else {
				changed++
			}
		}
	}
	assert.Positive(t, named)
	assert.Greater(t, changed, 100)
}

func TestCanonicalFormSeesTheRowInFlight(t *testing.T) {
	l := newLane(t, machine.Config{}, &machine.Definition{
		Name: "m", States: states("on"), Events: []machine.Event{event("set"), event("call")}, Facts: named("f:bool"),
		Rows: []machine.Row{
			{ID: "set", From: "on", Event: "set", Then: do("f = true")},
			{ID: "yes", From: "on", Event: "call", Guard: "f", Before: "f = false", Command: "Call()", Then: do("")},
			{ID: "no", From: "on", Event: "call", Guard: "!f", Command: "Call()", Then: do("f = true")},
		},
	})
	other := lane{t, l.Clone()}
	l.takes(l.ref("m", 0), "set")
	l.takes(l.ref("m", 0), "call")
	other.takes(l.ref("m", 0), "call")
	assert.NotEqual(t, l.Fingerprint(nil), other.Fingerprint(nil))
}

// A pool too large to order in every way still has one form for one world, and
// never one form for two.
func TestCanonicalFormOfLargePools(t *testing.T) {
	l := newLane(t, machine.Config{Pools: map[string]int{"runs": 2, "tokens": 100}}, harbour()...)
	for i := range 60 {
		l.takes(l.ref("token", i), "take", l.ref("run", i%2).Pack())
	}
	a := l.Fingerprint(nil)
	require.Equal(t, a, l.Clone().Fingerprint(nil))
	turned := make([]int, 100)
	for i := range turned {
		turned[i] = (i + 41) % 100
	}
	same := func(_ int, v uint64) uint64 { return v }
	other := l.Renamed([][]int{{1, 0}, turned}, same, func(g uint32) uint32 { return g }, false)
	assert.Equal(t, a, other.Fingerprint(nil), "signatures and symmetry make up for the orders not tried")
	l.takes(l.ref("token", 99), "take", l.ref("run", 0).Pack())
	assert.NotEqual(t, a, l.Fingerprint(nil))
}

// All slots look alike from within, and there are too many to try every order.
func TestSlotsAreToldApartByTheirSurroundings(t *testing.T) {
	const heads = 5
	const n = heads + 0 + 1 + 2 + 3 + 4
	follow := func(f func(k, i int)) { // the k-th head has k followers
		next := heads
		for k := range heads {
			for range k {
				f(k, next)
				next++
			}
		}
	}
	for name, lay := range map[string]func(l lane){
		"who names them": func(l lane) {
			follow(func(k, i int) { l.takes(l.ref("run", i), "link", l.ref("run", k).Pack()) })
		},
		"whom they name": func(l lane) {
			for i := range heads {
				l.takes(l.ref("run", i), "link", l.ref("run", (i+1)%heads).Pack())
			}
			follow(func(k, i int) { l.takes(l.ref("run", i), "link", l.ref("run", k).Pack()) })
		},
		"whom they share an identity with": func(l lane) {
			for i := range heads {
				l.takes(l.ref("run", i), "mint")
			}
			follow(func(k, i int) { l.takes(l.ref("fence", i), "arm", l.fact(l.ref("run", k), "epoch")) })
		},
		"a ring among many that are alone": func(l lane) {
			for i := range 3 {
				l.takes(l.ref("run", i), "link", l.ref("run", (i+1)%3).Pack())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLane(t, machine.Config{Pools: map[string]int{"runs": n, "tokens": 1}}, harbour()...)
			lay(l)
			same := func(_ int, v uint64) uint64 { return v }
			for _, by := range []int{1, 4, 11} {
				p := make([]int, n)
				for i := range p {
					p[i] = (n + by - i) % n
				}
				other := l.Renamed([][]int{p, {0}}, same, func(g uint32) uint32 { return g }, false)
				require.Equal(t, l.AppendCanonical(nil, nil), other.AppendCanonical(nil, nil))
			}
		})
	}
}

// Slots that nothing is linked to need no order: what each holds is in the form,
// and which of them holds it is not.
func TestCanonicalFormOfSlotsAlone(t *testing.T) {
	seen := map[string]string{}
	for name, lay := range map[string]func(l lane, i int){
		"nothing": func(lane, int) {},
		"a fact":  func(l lane, i int) { l.takes(l.ref("run", i), "link", 0) },
		"a state": func(l lane, i int) {
			l.takes(l.ref("run", i), "start", 0, 0)
			l.Settle(l.ref("run", i), machine.Result{Outcome: machine.Failed})
		},
		"a state of its peer": func(l lane, i int) { l.takes(l.ref("fence", i), "arm", 0) },
		"two facts": func(l lane, i int) {
			l.takes(l.ref("run", i), "link", 0)
			l.takes(l.ref("run", (i+1)%3), "link", 0)
		},
	} {
		var first []byte
		for i := range 3 {
			l := newLane(t, harbourSize, harbour()...)
			lay(l, i)
			form := l.AppendCanonical(nil, nil)
			if i == 0 {
				first = form
			}
			require.Equal(t, first, form, "%s of slot %d", name, i)
		}
		require.Empty(t, seen[string(first)], name)
		seen[string(first)] = name
	}
}

// Which pool a slot is of is in the form, whatever else is alike.
func TestCanonicalFormTellsPoolsApart(t *testing.T) {
	cell := func(name string) *machine.Definition {
		return &machine.Definition{
			Name: name, Pool: name, States: states("on"), Facts: named("set:bool"), Events: []machine.Event{event("set")},
			Rows: []machine.Row{{ID: "set", From: "on", Event: "set", Then: do("set = true")}},
		}
	}
	forms := map[string]bool{}
	for _, name := range []string{"left", "right"} {
		l := newLane(t, machine.Config{Pools: map[string]int{"left": 2, "right": 2}}, cell("left"), cell("right"))
		l.takes(l.ref(name, 1), "set")
		forms[string(l.AppendCanonical(nil, nil))] = true
	}
	require.Len(t, forms, 2)
}

func TestFingerprintAllocatesNothing(t *testing.T) {
	l := newLane(t, harbourSize, harbour()...)
	for i := range 3 {
		l.takes(l.ref("run", i), "mint")
	}
	l.takes(l.ref("run", 0), "start", 9, 1)
	l.takes(l.ref("token", 0), "take", l.ref("run", 1).Pack())
	assert.Zero(t, testing.AllocsPerRun(100, func() { l.Fingerprint(nil) }))
	c := l.Clone()
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.CopyFrom(l.World) }))
}

func BenchmarkFingerprint(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("runs=%d", n), func(b *testing.B) {
			w := newWorld(b, compile(b, harbour()...), machine.Config{Pools: map[string]int{"runs": n, "tokens": 2 * n}})
			l := lane{b, w}
			for i := range n {
				l.takes(l.ref("run", i), "mint")
				l.takes(l.ref("token", i), "take", l.ref("run", i).Pack())
			}
			l.takes(l.ref("run", 0), "start", 9, 1)
			b.ReportAllocs()
			for b.Loop() {
				w.Fingerprint(nil)
			}
		})
	}
}
