package machine

import "math/bits"

// signatures tell the slots of a pool apart by what does not depend on their
// order: what they hold, whom they name and who names them, and whom they
// share identities with.
type signatures struct {
	w *World
	// value has, for each pool and slot, the signature of the last round.
	value, next, in [][]uint64
	// alone: the slot names nobody, nobody names it, and it holds no identity
	// and nothing of a companion's. Slots alone of one signature are the same.
	alone [][]bool

	ids   table // sums over those that hold an identity
	count table
}

// maxRounds bounds how often signatures are refined by the signatures around them.
const maxRounds = 6

// word is one value in a world: whose it is, its place there and its type.
type word struct {
	pool, slot int // pool is -1 for what is in none
	key        uint64
	t          *Type
	v          uint64
}

var scalar = Type{Kind: Int}

func (s *signatures) compute(w *World, c *Companion) {
	s.w = w
	pools := len(w.rules.pools)
	s.value, s.next, s.in, s.alone = resize(s.value, pools), resize(s.next, pools), resize(s.in, pools), resize(s.alone, pools)
	known := c == nil || c.Append == nil || c.Holds != nil
	for p := range pools {
		n := w.poolSize(p)
		s.value[p], s.next[p], s.in[p], s.alone[p] = resize(s.value[p], n), resize(s.next[p], n), resize(s.in[p], n), resize(s.alone[p], n)
		for i := range n {
			s.value[p][i] = 0
			if c != nil && c.Holds != nil {
				s.value[p][i] = c.Holds(p, i)
			}
			s.alone[p][i] = known && s.value[p][i] == 0
		}
	}
	s.walk(s.meet)
	kinds := 0
	for range maxRounds {
		s.round()
		if n := s.kinds(); n > kinds {
			kinds = n
			continue
		}
		return
	}
}

// meet notes who is not alone.
func (s *signatures) meet(x word) {
	if x.v == 0 || x.t.Kind != ID && x.t.Kind != RefTo {
		return
	}
	if x.pool >= 0 {
		s.alone[x.pool][x.slot] = false
	}
	if x.t.Kind == RefTo {
		if p, slot := s.target(x.v); p >= 0 {
			s.alone[p][slot] = false
		}
	}
}

// target returns the pool and slot that a packed Ref names, or -1.
func (s *signatures) target(packed uint64) (pool, slot int) {
	r := UnpackRef(packed)
	if !s.w.exists(r) || s.w.rules.poolOf[r.Machine] < 0 {
		return -1, 0
	}
	return s.w.rules.poolOf[r.Machine], int(r.Slot)
}

// kinds counts the signatures, slots alone counting one each.
func (s *signatures) kinds() int {
	n := 0
	s.count.reset()
	for p := range s.value {
		for i, v := range s.value[p] {
			if at := s.count.find(p, v); *at == 0 || s.alone[p][i] {
				*at = 1
				n++
			}
		}
	}
	return n
}

// round makes signatures from those of the round before.
func (s *signatures) round() {
	for p := range s.value {
		for i, v := range s.value[p] {
			s.next[p][i] = mix(v, BoolWord(s.alone[p][i]))
			s.in[p][i] = 0
		}
	}
	s.ids.reset()
	s.walk(s.share)
	s.walk(s.read)
	for p := range s.value {
		for i := range s.value[p] {
			s.value[p][i] = mix(s.next[p][i], s.in[p][i])
		}
	}
}

func (s *signatures) before(x word) uint64 {
	if x.pool < 0 {
		return 0
	}
	return s.value[x.pool][x.slot]
}

// share adds a holder to an identity.
func (s *signatures) share(x word) {
	if x.t.Kind == ID && x.v != 0 {
		*s.ids.find(x.t.sort, x.v) += mix(mix(x.key, s.before(x)), 1)
	}
}

// read adds a word to the signature of its slot, and to that of the slot it names.
func (s *signatures) read(x word) {
	v := x.v
	switch {
	case v == 0:
	case x.t.Kind == ID:
		v = *s.ids.find(x.t.sort, v) | 1
	case x.t.Kind == RefTo:
		r := UnpackRef(v)
		v = mix(uint64(r.Machine)+1, BoolWord(s.w.current(r)))
		if p, slot := s.target(x.v); p >= 0 {
			s.in[p][slot] += mix(mix(x.key, s.before(x)), v)
			v = mix(v, s.value[p][slot])
		}
	}
	if x.pool >= 0 {
		s.next[x.pool][x.slot] = mix(mix(s.next[x.pool][x.slot], x.key), v)
	}
}

// walk goes through the words of the world, those of one slot in a fixed order.
func (s *signatures) walk(visit func(word)) {
	w := s.w
	for i, m := range w.rules.machines {
		for slot := range w.pools[i].capacity {
			b := w.base(MachineID(i), uint16(slot))
			h := unpackHeader(w.words[b])
			x := word{pool: w.rules.poolOf[i], slot: slot, key: uint64(i) << 32}
			one := func(t *Type, v uint64) {
				x.t, x.v = t, v
				visit(x)
				x.key++
			}
			one(&scalar, uint64(h.state)|uint64(h.flight)<<16)
			at := b + atFacts
			for j := range m.factTy {
				one(&m.factTy[j], w.words[at+j])
			}
			if h.flight == 0 {
				continue
			}
			r := &m.rows[h.flight-1]
			one(&anyRef, w.words[b+atRoot])
			at += len(m.factTy)
			for j := range m.argTy[r.ev] {
				one(&m.argTy[r.ev][j], w.words[at+j])
			}
			for j := range r.callTy {
				one(&r.callTy[j], w.words[at+m.maxArgs+j])
			}
		}
	}
	s.count.reset()
	for i := range w.Queued() {
		e := w.words[w.entry(i):]
		nth := s.count.find(0, e[entryRoot])
		*nth++
		x := word{pool: -1, key: 1<<63 | *nth<<8}
		if p, slot := s.target(e[entryRoot]); p >= 0 && w.current(UnpackRef(e[entryRoot])) {
			// (The events of a past occupant have no order among those of the
			// present one.)
			x.pool, x.slot = p, slot
		}
		one := func(t *Type, v uint64) {
			x.t, x.v = t, v
			visit(x)
			x.key++
		}
		one(&anyRef, e[entryRoot])
		one(&anyRef, e[entryRef])
		ev := EventID(e[entryEvent])
		one(&scalar, uint64(ev))
		tys := w.rules.machines[UnpackRef(e[entryRef]).Machine].argTy[ev]
		for j := range tys {
			one(&tys[j], e[entryArgs+j])
		}
	}
}

var anyRef = Type{Kind: RefTo}

func mix(h, v uint64) uint64 {
	h = (bits.RotateLeft64(h, 23) ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}
