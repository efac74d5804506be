package machine

import "math/bits"

// signatures tell the slots of a pool apart by what does not depend on their
// order: what they hold, whom they name and who names them, and whom they
// share identities with. Slots of all pools are counted through; a pool of one
// slot has no order, and its slot counts as what is in no pool.
type signatures struct {
	w *World
	// first has, for each pool, the place of its first slot, or -1.
	first []int
	// value has the signature of each slot.
	value, next, in []uint64
	// alone: the slot names nobody, nobody names it, and it holds no identity
	// and nothing of a companion's. Slots alone of one signature are the same.
	alone []bool
	// blank: the slot is alone and as it was at first.
	blank []bool
	// linked are the slots that are not alone.
	linked []int32
	links  []link

	ids   table    // numbers identities from 1, in order of first use
	sums  []uint64 // of each identity, over those that hold it
	count table
}

// maxRounds bounds how often signatures are refined by the signatures around them.
const maxRounds = 6

// link is an identity or a Ref that something holds.
type link struct {
	from int32 // the slot that holds it, or -1
	to   int32 // the slot that it names, or -1
	id   int32 // the number of the identity, or 0
	key  uint64
	v    uint64 // what can be told of a Ref without an order
}

func (s *signatures) compute(w *World, c *Companion) {
	s.w = w
	s.first = resize(s.first, len(w.rules.pools))
	n := 0
	for p := range s.first {
		s.first[p] = -1
		if size := w.poolSize(p); size > 1 {
			s.first[p] = n
			n += size
		}
	}
	s.value, s.next, s.in = resize(s.value, n), resize(s.next, n), resize(s.in, n)
	s.alone, s.blank = resize(s.alone, n), resize(s.blank, n)
	s.links, s.linked = s.links[:0], s.linked[:0]
	if n == 0 {
		return
	}
	s.hold(c)
	s.ids.reset()
	s.sums = s.sums[:0]
	s.instances()
	s.queue()
	s.meet()
	// Refining is for slots that are still alike, as long as it helps.
	kinds := s.kinds()
	for range maxRounds {
		if kinds == len(s.linked) {
			return
		}
		s.round()
		n := s.kinds()
		if n == kinds {
			return
		}
		kinds = n
	}
}

// hold begins signatures with what the companion holds.
func (s *signatures) hold(c *Companion) {
	clear(s.value)
	known := c == nil || c.Append == nil || c.Holds != nil
	for i := range s.alone {
		s.alone[i] = known
	}
	if c == nil || c.Holds == nil {
		return
	}
	for p, first := range s.first {
		if first < 0 {
			continue
		}
		for slot := range s.w.poolSize(p) {
			s.value[first+slot] = c.Holds(p, slot)
			s.alone[first+slot] = s.value[first+slot] == 0
		}
	}
}

// meet tells who is alone, once everybody was seen.
func (s *signatures) meet() {
	for p, first := range s.first {
		if first < 0 {
			continue
		}
		for i, last := first, first+s.w.poolSize(p); i < last; i++ {
			s.blank[i] = s.alone[i] && s.value[i] == 0
			if !s.alone[i] {
				s.linked = append(s.linked, int32(i))
				s.value[i] = mix(s.value[i], uint64(p)+1)
			}
		}
	}
}

// place returns the place of a slot of a machine, or -1 if it has no order.
func (s *signatures) place(m MachineID, slot int) int32 {
	p := s.w.rules.poolOf[m]
	if p < 0 || s.first[p] < 0 {
		return -1
	}
	return int32(s.first[p] + slot)
}

// target returns the place of the slot that a packed Ref names, or -1.
func (s *signatures) target(packed uint64) int32 {
	r := UnpackRef(packed)
	if !s.w.exists(r) {
		return -1
	}
	return s.place(r.Machine, int(r.Slot))
}

// scalar adds a value to the signature of its slot. A zero is told by what is not added.
func (s *signatures) scalar(at int32, key, v uint64) {
	s.value[at] = mix(mix(s.value[at], key), v)
}

// link notes an identity or a Ref, and who is not alone.
func (s *signatures) link(at int32, key uint64, t *Type, v uint64) {
	l := link{from: at, to: -1, key: key}
	if t.Kind == ID {
		n := s.ids.find(t.sort, v)
		if *n == 0 {
			s.sums = append(s.sums, 0)
			*n = uint64(len(s.sums))
		}
		l.id = int32(*n)
	} else {
		l.to = s.target(v)
		r := UnpackRef(v)
		l.v = mix(uint64(r.Machine)+1, BoolWord(s.w.current(r)))
		if l.to >= 0 {
			s.alone[l.to] = false
		}
	}
	if at >= 0 {
		s.alone[at] = false
	}
	s.links = append(s.links, l)
}

// values takes the words of one holder, whose keys follow one another.
func (s *signatures) values(at int32, key uint64, tys []Type, words []uint64) {
	for i, v := range words[:len(tys)] {
		if v == 0 {
			continue
		}
		if t := &tys[i]; t.Kind == ID || t.Kind == RefTo {
			s.link(at, key+uint64(i), t, v)
		} else if at >= 0 {
			s.scalar(at, key+uint64(i), v)
		}
	}
}

// instances takes the words of all instances, those of one slot in a fixed order.
func (s *signatures) instances() {
	w := s.w
	for i, m := range w.rules.machines {
		p := &w.pools[i]
		at := s.place(m.id, 0)
		for b, n := p.at, p.capacity; n > 0; b, n = b+p.stride, n-1 {
			key := uint64(i) << 32
			now := w.words[b] & stateAndFlight
			if now != 0 && at >= 0 {
				s.scalar(at, key, now)
			}
			s.values(at, key+1, m.factTy, w.words[b+atFacts:])
			if h := unpackHeader(now); h.flight != 0 {
				r := &m.rows[h.flight-1]
				key += 1 + uint64(len(m.factTy))
				s.link(at, key, &anyRef, w.words[b+atRoot])
				args := w.words[b+atFacts+len(m.factTy):]
				s.values(at, key+1, m.argTy[r.ev], args)
				s.values(at, key+1+MaxArgs, r.callTy, args[m.maxArgs:])
			}
			if at >= 0 {
				at++
			}
		}
	}
}

// queue takes the words of the events that wait, counted within each operation.
func (s *signatures) queue() {
	w := s.w
	s.count.reset()
	for i := range w.Queued() {
		e := w.words[w.entry(i):]
		nth := s.count.find(0, e[entryRoot])
		*nth++
		key := 1<<63 | *nth<<8
		at := int32(-1)
		if w.current(UnpackRef(e[entryRoot])) {
			// (The events of a past occupant have no order among those of the
			// present one.)
			at = s.target(e[entryRoot])
		}
		s.link(at, key, &anyRef, e[entryRoot])
		s.link(at, key+1, &anyRef, e[entryRef])
		ev := EventID(e[entryEvent])
		if at >= 0 {
			s.scalar(at, key+2, uint64(ev)+1)
		}
		s.values(at, key+3, w.rules.machines[UnpackRef(e[entryRef]).Machine].argTy[ev], e[entryArgs:])
	}
}

// kinds counts the signatures that slots have which are not alone.
func (s *signatures) kinds() int {
	if len(s.linked) < 2 {
		return len(s.linked)
	}
	n := 0
	s.count.reset()
	for _, i := range s.linked {
		if at := s.count.find(0, s.value[i]); *at == 0 {
			*at = 1
			n++
		}
	}
	return n
}

// round refines the signatures of slots that are not alone.
func (s *signatures) round() {
	for _, i := range s.linked {
		s.next[i], s.in[i] = mix(s.value[i], 1), 0
	}
	clear(s.sums)
	for i := range s.links {
		if l := &s.links[i]; l.id != 0 {
			s.sums[l.id-1] += mix(mix(l.key, s.before(l)), 1)
		}
	}
	for i := range s.links {
		l := &s.links[i]
		v := l.v
		if l.id != 0 {
			v = s.sums[l.id-1]
		} else if l.to >= 0 {
			s.in[l.to] += mix(mix(l.key, s.before(l)), v)
			v = mix(v, s.value[l.to])
		}
		if l.from >= 0 {
			s.next[l.from] = mix(mix(s.next[l.from], l.key), v)
		}
	}
	for _, i := range s.linked {
		s.value[i] = mix(s.next[i], s.in[i])
	}
}

// before is the signature so far of the slot that holds a link.
func (s *signatures) before(l *link) uint64 {
	if l.from < 0 {
		return 0
	}
	return s.value[l.from]
}

var anyRef = Type{Kind: RefTo}

func mix(h, v uint64) uint64 {
	h = (bits.RotateLeft64(h, 23) ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}
