package machine

// Words returns the whole state of a world but for its sequence number, for
// tests that assert that nothing changed.
func (w *World) Words() []uint64 {
	out := append([]uint64(nil), w.words[:w.entry(w.Queued())]...)
	return append(out, w.words[w.entry(w.queueCap+1):]...)
}

// Renamed returns a world that differs from w in names only: the slots of each
// pool are permuted (perms[p][slot] is the new slot), identities are renamed by
// id, and generations moved by gen. Events of different operations change places in
// the queue if turn is set.
func (w *World) Renamed(perms [][]int, id func(sort int, v uint64) uint64, gen func(uint32) uint32, turn bool) *World {
	c := w.Clone()
	slot := func(m MachineID, s int) int {
		if p := w.rules.poolOf[m]; p >= 0 && s < w.capacity(m) {
			return perms[p][s]
		}
		return s
	}
	ref := func(v uint64) uint64 {
		if v == 0 {
			return 0
		}
		r := UnpackRef(v)
		return Ref{Machine: r.Machine, Slot: uint16(slot(r.Machine, int(r.Slot))), Gen: gen(r.Gen)}.Pack()
	}
	values := func(tys []Type, words []uint64) {
		for i, t := range tys {
			switch {
			case t.Kind == ID && words[i] != 0:
				words[i] = id(t.sort, words[i])
			case t.Kind == RefTo:
				words[i] = ref(words[i])
			}
		}
	}
	for i, m := range w.rules.machines {
		for s := range w.pools[i].capacity {
			from := w.words[w.base(MachineID(i), uint16(s)):][:w.rules.machines[i].size]
			to := c.words[c.base(MachineID(i), uint16(slot(MachineID(i), s))):][:w.rules.machines[i].size]
			copy(to, from)
			h := unpackHeader(to[0])
			h.gen = gen(h.gen)
			to[0] = h.pack()
			values(m.factTy, to[atFacts:])
			if h.flight != 0 {
				r := &m.rows[h.flight-1]
				to[atRoot] = ref(to[atRoot])
				values(m.argTy[r.ev], to[atFacts+len(m.factTy):])
				values(r.callTy, to[atFacts+len(m.factTy)+m.maxArgs:])
			}
		}
	}
	n := w.Queued()
	for i := range n {
		e := c.words[c.entry(i):][:entryWords]
		m := w.rules.machines[UnpackRef(e[entryRef]).Machine]
		e[entryRoot], e[entryRef] = ref(e[entryRoot]), ref(e[entryRef])
		values(m.argTy[EventID(e[entryEvent])], e[entryArgs:])
	}
	if turn {
		for i := range max(n-1, 0) {
			a, b := c.words[c.entry(i):][:entryWords], c.words[c.entry(i+1):][:entryWords]
			p, q := UnpackRef(a[entryRoot]), UnpackRef(b[entryRoot])
			onePast := p.Machine == q.Machine && p.Slot == q.Slot && !c.current(p) && !c.current(q) // see AppendCanonical
			if a[entryRoot] != b[entryRoot] && !onePast {
				for j := range a {
					a[j], b[j] = b[j], a[j]
				}
			}
		}
	}
	for i := range c.rules.sorts {
		c.words[i] += 1000 // how far identities have been counted
	}
	c.seq += 77
	return c
}

// Isomorphic reports whether a, with its slots permuted, differs from b in
// nothing but the names of identities and generations. It goes through the
// worlds word by word and knows nothing of canonical forms.
func Isomorphic(a, b *World, perms [][]int) bool {
	same := func(_ int, v uint64) uint64 { return v }
	a = a.Renamed(perms, same, func(g uint32) uint32 { return g }, false)
	type key struct {
		kind int
		v    uint64
	}
	there, back := map[key]uint64{}, map[key]uint64{}
	pair := func(kind int, x, y uint64) bool {
		p, q := key{kind, x}, key{kind, y}
		v, ok1 := there[p]
		u, ok2 := back[q]
		if !ok1 && !ok2 {
			there[p], back[q] = y, x
			return true
		}
		return ok1 && ok2 && v == y && u == x
	}
	for i := range a.rules.machines {
		for s := range a.pools[i].capacity {
			pair(-1, a.Ref(MachineID(i), s).Pack(), b.Ref(MachineID(i), s).Pack())
		}
	}
	ref := func(x, y uint64) bool {
		if x == 0 || y == 0 {
			return x == y
		}
		p, q := UnpackRef(x), UnpackRef(y)
		return p.Machine == q.Machine && p.Slot == q.Slot && pair(-1, x, y)
	}
	values := func(tys []Type, x, y []uint64) bool {
		for i, t := range tys {
			ok := x[i] == y[i]
			switch t.Kind {
			case ID:
				ok = (x[i] == 0) == (y[i] == 0) && (x[i] == 0 || pair(t.sort, x[i], y[i]))
			case RefTo:
				ok = ref(x[i], y[i])
			}
			if !ok {
				return false
			}
		}
		return true
	}
	for i, m := range a.rules.machines {
		for s := range a.pools[i].capacity {
			x, y := a.words[a.base(MachineID(i), uint16(s)):], b.words[b.base(MachineID(i), uint16(s)):]
			h, g := unpackHeader(x[0]), unpackHeader(y[0])
			if h.state != g.state || h.flight != g.flight || !values(m.factTy, x[atFacts:], y[atFacts:]) {
				return false
			}
			if h.flight != 0 {
				r, n := &m.rows[h.flight-1], atFacts+len(m.factTy)
				if !ref(x[atRoot], y[atRoot]) || !values(m.argTy[r.ev], x[n:], y[n:]) || !values(r.callTy, x[n+m.maxArgs:], y[n+m.maxArgs:]) {
					return false
				}
			}
		}
	}
	if a.Queued() != b.Queued() {
		return false
	}
	// Operation by operation: the k-th event of one is the k-th of the other.
	taken := make([]bool, b.Queued())
next:
	for i := range a.Queued() {
		x := a.words[a.entry(i):]
		for j := range b.Queued() {
			y := b.words[b.entry(j):]
			if taken[j] || !ref(x[entryRoot], y[entryRoot]) {
				continue
			}
			tys := a.rules.machines[UnpackRef(x[entryRef]).Machine].argTy
			if !ref(x[entryRef], y[entryRef]) || x[entryEvent] != y[entryEvent] || !values(tys[EventID(x[entryEvent])], x[entryArgs:], y[entryArgs:]) {
				return false
			}
			taken[j] = true
			continue next
		}
		return false
	}
	return true
}

// Word is a typed word of a world that a canonical form covers.
type Word struct {
	At   int
	Type Type
}

// Typed lists the words of instances and of waiting events that have a type.
func (w *World) Typed() []Word {
	var out []Word
	add := func(at int, tys []Type) {
		for i, t := range tys {
			out = append(out, Word{at + i, t})
		}
	}
	for i, m := range w.rules.machines {
		for s := range w.pools[i].capacity {
			b := w.base(MachineID(i), uint16(s))
			add(b+atFacts, m.factTy)
			if h := unpackHeader(w.words[b]); h.flight != 0 {
				r, n := &m.rows[h.flight-1], b+atFacts+len(m.factTy)
				add(n, m.argTy[r.ev])
				add(n+m.maxArgs, r.callTy)
			}
		}
	}
	for i := range w.Queued() {
		e := w.entry(i)
		m := w.rules.machines[UnpackRef(w.words[e+entryRef]).Machine]
		add(e+entryArgs, m.argTy[EventID(w.words[e+entryEvent])])
	}
	return out
}

// SetWord changes a word.
func (w *World) SetWord(x Word, v uint64) { w.words[x.At] = v }

// Entry is an event that waits.
type Entry struct {
	Root, Ref Ref
	Event     EventID
	NArgs     int
}

// Entry returns the i-th event that waits.
func (w *World) Entry(i int) Entry {
	e := w.words[w.entry(i):]
	return Entry{UnpackRef(e[entryRoot]), UnpackRef(e[entryRef]), EventID(e[entryEvent]), int(e[entryEvent] >> 16)}
}
