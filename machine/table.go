package machine

// table maps pairs of a small number and a word to words, all zero at first.
// It keeps its memory from one use to the next.
type table struct {
	slots []tableSlot // a power of two
	used  int
	age   uint32 // slots of another age are free
}

type tableSlot struct {
	key, value uint64
	kind       int32
	age        uint32
}

func (t *table) reset() {
	t.used = 0
	if t.age++; t.age == 0 { // old marks would come to life again
		clear(t.slots)
		t.age = 1
	}
}

// find returns the place of a pair's word, valid until the next find.
func (t *table) find(kind int, key uint64) *uint64 {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for i := mix(uint64(kind), key) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.age != t.age {
			*s = tableSlot{key: key, kind: int32(kind), age: t.age}
			t.used++
			return &s.value
		}
		if s.key == key && s.kind == int32(kind) {
			return &s.value
		}
	}
}

func (t *table) grow() {
	if t.age == 0 {
		t.age = 1
	}
	old := t.slots
	t.slots = make([]tableSlot, max(64, 2*len(old)))
	t.used = 0
	for i := range old {
		if s := &old[i]; s.age == t.age {
			*t.find(int(s.kind), s.key) = s.value
		}
	}
}

// numbers gives pairs numbers, from 1 for each kind, in the order in which it
// meets them.
type numbers struct {
	table
	last []uint64
}

func (n *numbers) reset(kinds int) {
	n.table.reset()
	n.last = resize(n.last, kinds)
	clear(n.last)
}

func (n *numbers) number(kind int, key uint64) uint64 {
	at := n.find(kind, key)
	if *at == 0 {
		n.last[kind]++
		*at = n.last[kind]
	}
	return *at
}
