package machine

import "slices"

// Occupant returns the present occupant of a slot: its control state and its
// facts, by [FactID]. The facts are the world's own words, not a copy: they must
// not be changed, and they change with the world. It allocates nothing, for
// those who look at millions of worlds. It panics if there is no such machine
// or slot, as indexing does.
func (w *World) Occupant(m MachineID, slot int) (StateID, []uint64) {
	p := &w.pools[m]
	if slot < 0 || slot >= p.capacity {
		panic("machine: no such slot")
	}
	b := p.at + slot*p.stride
	n := b + atFacts + len(w.rules.machines[m].factTy)
	return StateID(w.words[b]), w.words[b+atFacts : n : n]
}

// Same reports whether all instances of a machine are as they are in o:
// occupancy, state, facts and command in flight. Both worlds must be of the same
// rules and the same [Config].
func (w *World) Same(o *World, m MachineID) bool {
	p, size := &w.pools[m], w.rules.machines[m].size
	for b, n := p.at, p.capacity; n > 0; b, n = b+p.stride, n-1 {
		if !slices.Equal(w.words[b:b+size], o.words[b:b+size]) {
			return false
		}
	}
	return true
}

// Fresh returns a world of the same rules and the same [Config], as it began. It
// has no recorder.
func (w *World) Fresh() *World {
	c := w.Clone()
	clear(c.words)
	c.seq, c.flying = 0, 0
	return c
}
