package machine

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Companion is a model that lives beside a world, such as a device. It lets
// [World.AppendCanonical] cover both under one naming.
type Companion struct {
	// Append appends what the companion holds. Where it would write a slot, an
	// identity or a Ref of the world, it writes the naming's number for it, and
	// where it goes through slots, it does so in the naming's order. It may be
	// called many times for one form.
	Append func(dst []byte, n *Naming) []byte
	// Holds returns a digest of what the companion holds for a slot of a pool
	// (a position in [Rules.Pools]): 0 for nothing, and equal for slots that
	// differ only by names. It may be nil; it makes the search for the form
	// shorter.
	Holds func(pool, slot int) uint64
}

// Fingerprint is a 128-bit hash of a canonical form. Two forms that differ
// share one by chance only; it is no protection against intent.
type Fingerprint struct{ Hi, Lo uint64 }

// Naming gives the names that a canonical form uses.
type Naming struct {
	w *World
	// order and place are inverse to one another, for each pool: the slot at a
	// position of the form, and the position of a slot.
	order, place [][]uint16
	// used is how many slots of each pool are in the form: those after them are
	// as they were at first, and nobody names them.
	used  []int
	names numbers
}

// Slot returns the position that a slot of a machine's pool has in the form.
func (n *Naming) Slot(m MachineID, slot int) int {
	p := n.w.rules.poolOf[m]
	if p < 0 || slot >= len(n.place[p]) {
		return slot
	}
	return int(n.place[p][slot])
}

// At is the inverse of [Naming.Slot].
func (n *Naming) At(m MachineID, position int) int {
	p := n.w.rules.poolOf[m]
	if p < 0 || position >= len(n.order[p]) {
		return position
	}
	return int(n.order[p][position])
}

// Identity returns the number of an identity of a sort, which is a position in
// [Rules.Sorts]: 0 for none, and else a count by first use in the form.
func (n *Naming) Identity(sort int, v uint64) uint64 {
	if v == 0 {
		return 0
	}
	return n.names.number(sort, v)
}

// Ref returns the name of a packed Ref: 0 for none. Refs to the present
// occupant of a slot have one name, and each of the past ones has its own.
func (n *Naming) Ref(packed uint64) uint64 {
	if packed == 0 {
		return 0
	}
	r := UnpackRef(packed)
	past := uint64(0)
	if !n.w.current(r) {
		past = n.names.number(len(n.w.rules.sorts), packed)
	}
	slot := uint64(r.Slot)
	if int(r.Machine) < len(n.w.rules.machines) {
		slot = uint64(n.Slot(r.Machine, int(r.Slot)))
	}
	return uint64(r.Machine) + 1 | slot<<8 | past<<24
}

// value returns the name of a value of a type.
func (n *Naming) value(t *Type, v uint64) uint64 {
	switch t.Kind {
	case ID:
		return n.Identity(t.sort, v)
	case RefTo:
		return n.Ref(v)
	}
	return v
}

// maxOrders bounds how many orders of slots one form looks at.
const maxOrders = 40320

// canonical is the working memory of AppendCanonical.
type canonical struct {
	naming    Naming
	now, best []byte
	sigs      signatures
	// groups are runs of slots of one pool that no signature tells apart.
	groups  []group
	roots   []rootOrder
	scratch []byte
}

type group struct{ pool, from, to int }

// rootOrder is the place of a queued event in the form.
type rootOrder struct {
	name  uint64
	entry int
}

// AppendCanonical appends a form that two worlds of the same rules and [Config]
// share exactly if they differ in nothing that rules can tell: identities,
// generations and slots of one pool are equal or not, and have no order. Not
// part of it are the sequence numbers and how far each sort of identity has
// been counted; so an identity that came from outside must have been reserved
// with [World.ReserveIdentity]. c may be nil.
//
// The form is the smallest one over the orders of each pool's slots that keep
// slots of different signatures apart; a signature is what can be told of a
// slot without an order. Two worlds that differ only in names may still have
// different forms, never the other way round, in two cases: more than 40320
// orders are left, and the rest is decided by the slots' numbers; or events of
// two past occupants of one slot wait, and are taken in the order they are in.
//
// Rules with a view first(…) choose by the order of slots. For them the form
// says what it should only if the instances that such a view chooses among
// differ in names only, as free slots do.
func (w *World) AppendCanonical(dst []byte, c *Companion) []byte {
	if w.canon == nil {
		w.canon = &canonical{}
	}
	k := w.canon
	k.arrange(w, c)
	k.best = k.form(k.best[:0], c)
	if k.orders() <= maxOrders {
		k.search(0, c)
	}
	return append(dst, k.best...)
}

// Fingerprint hashes the canonical form; see [World.AppendCanonical]. It
// allocates nothing once it has been called for a world of the same size.
func (w *World) Fingerprint(c *Companion) Fingerprint {
	if w.canon == nil {
		w.canon = &canonical{}
	}
	w.canon.scratch = w.AppendCanonical(w.canon.scratch[:0], c)
	b := w.canon.scratch
	var d xxhash.Digest
	d.ResetWithSeed(0x9e3779b97f4a7c15)
	d.Write(b)
	return Fingerprint{Hi: d.Sum64(), Lo: xxhash.Sum64(b)}
}

// arrange sorts the slots of each pool by signature and finds the groups that
// are left to be ordered.
func (k *canonical) arrange(w *World, c *Companion) {
	n := &k.naming
	n.w = w
	pools := len(w.rules.pools)
	n.order, n.place, n.used = resize(n.order, pools), resize(n.place, pools), resize(n.used, pools)
	k.groups = k.groups[:0]
	k.sigs.compute(w, c)
	for p := range pools {
		size := w.poolSize(p)
		n.order[p], n.place[p] = resize(n.order[p], size), resize(n.place[p], size)
		if size == 1 {
			n.order[p][0], n.place[p][0], n.used[p] = 0, 0, 1
			continue
		}
		k.pool(p, k.sigs.first[p], size)
	}
}

// pool sorts the slots of one pool, those that hold nothing last.
func (k *canonical) pool(p, first, size int) {
	n, alone, blank := &k.naming, k.sigs.alone[first:first+size], k.sigs.blank[first:first+size]
	sig, order := k.sigs.value[first:first+size], n.order[p]
	used := 0
	for s := range size {
		if !blank[s] {
			order[used] = uint16(s)
			used++
		}
	}
	last := used
	for s := range size {
		if blank[s] {
			order[last] = uint16(s)
			last++
		}
	}
	n.used[p] = used
	slices.SortStableFunc(order[:used], func(a, b uint16) int { return cmp.Compare(sig[a], sig[b]) })
	for i, s := range order {
		n.place[p][s] = uint16(i)
	}
	for from := 0; from < used; {
		s := order[from]
		to := from + 1
		for to < used && sig[order[to]] == sig[s] && alone[order[to]] == alone[s] {
			to++
		}
		if to-from > 1 && !alone[s] {
			k.groups = append(k.groups, group{p, from, to})
		}
		from = to
	}
}

// orders returns how many orders the groups have, or maxOrders + 1 if more.
func (k *canonical) orders() int {
	n := 1
	for _, g := range k.groups {
		for i := 2; i <= g.to-g.from; i++ {
			if n *= i; n > maxOrders {
				return maxOrders + 1
			}
		}
	}
	return n
}

// search goes through the orders of the groups from the g-th on and keeps the
// smallest form in best.
func (k *canonical) search(g int, c *Companion) {
	if g == len(k.groups) {
		k.now = k.form(k.now[:0], c)
		if bytes.Compare(k.now, k.best) < 0 {
			k.now, k.best = k.best, k.now
		}
		return
	}
	k.permute(g, k.groups[g].from, c)
}

// permute goes through the orders of a group's slots from position i on.
func (k *canonical) permute(g, i int, c *Companion) {
	p, to := k.groups[g].pool, k.groups[g].to
	if i == to-1 {
		k.search(g+1, c)
		return
	}
	for j := i; j < to; j++ {
		k.swap(p, i, j)
		k.permute(g, i+1, c)
		k.swap(p, i, j)
	}
}

func (k *canonical) swap(p, i, j int) {
	o, at := k.naming.order[p], k.naming.place[p]
	o[i], o[j] = o[j], o[i]
	at[o[i]], at[o[j]] = uint16(i), uint16(j)
}

// form appends the world and its companion under the present order of slots.
func (k *canonical) form(dst []byte, c *Companion) []byte {
	n := &k.naming
	n.names.reset(len(n.w.rules.sorts) + 1)
	for _, used := range n.used {
		dst = binary.AppendUvarint(dst, uint64(used))
	}
	for i, p := range n.w.rules.poolOf {
		id, count := MachineID(i), 1
		if p >= 0 {
			count = n.used[p]
		}
		for at := range count {
			dst = n.instance(dst, id, uint16(n.At(id, at)))
		}
	}
	dst = k.queue(dst)
	if c != nil && c.Append != nil {
		dst = c.Append(dst, n)
	}
	return dst
}

func (n *Naming) instance(dst []byte, id MachineID, slot uint16) []byte {
	w, m := n.w, n.w.rules.machines[id]
	b := w.base(id, slot)
	h := unpackHeader(w.words[b])
	dst = binary.AppendUvarint(dst, uint64(h.state))
	dst = binary.AppendUvarint(dst, uint64(h.flight))
	at := b + atFacts
	dst = n.values(dst, m.factTy, w.words[at:])
	if h.flight == 0 {
		return dst
	}
	r := &m.rows[h.flight-1]
	dst = binary.AppendUvarint(dst, n.Ref(w.words[b+atRoot]))
	at += len(m.factTy)
	dst = n.values(dst, m.argTy[r.ev], w.words[at:])
	return n.values(dst, r.callTy, w.words[at+m.maxArgs:])
}

func (n *Naming) values(dst []byte, tys []Type, words []uint64) []byte {
	for i, v := range words[:len(tys)] {
		switch t := &tys[i]; {
		case v == 0:
			dst = append(dst, 0)
		case t.Kind == ID || t.Kind == RefTo || v >= 0x80:
			dst = binary.AppendUvarint(dst, n.value(t, v))
		default:
			dst = append(dst, byte(v))
		}
	}
	return dst
}

// queue appends the events that wait. Those of different operations have no
// order among them.
func (k *canonical) queue(dst []byte) []byte {
	n, w := &k.naming, k.naming.w
	k.roots = k.roots[:0]
	for i := range w.Queued() {
		k.roots = append(k.roots, rootOrder{n.Ref(w.words[w.entry(i)+entryRoot]), i})
	}
	slices.SortStableFunc(k.roots, func(a, b rootOrder) int { return cmp.Compare(a.name, b.name) })
	dst = binary.AppendUvarint(dst, uint64(len(k.roots)))
	for _, r := range k.roots {
		e := w.words[w.entry(r.entry):]
		to, ev := UnpackRef(e[entryRef]), EventID(e[entryEvent])
		dst = binary.AppendUvarint(dst, r.name)
		dst = binary.AppendUvarint(dst, n.Ref(e[entryRef]))
		dst = binary.AppendUvarint(dst, uint64(ev))
		dst = n.values(dst, w.rules.machines[to.Machine].argTy[ev], e[entryArgs:])
	}
	return dst
}

// poolSize returns the capacity of a pool.
func (w *World) poolSize(pool int) int {
	return w.pools[w.rules.firstOf[pool]].capacity
}

// resize returns a slice of n elements, over the same memory if it fits.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)
	}
	return s[:n]
}
