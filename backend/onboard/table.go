//go:build cgo && linux

package onboard

import (
	"math"
	"sync"
	"unsafe"

	"github.com/runfence/runfence/backend"
)

// object is what a handle stands for: an opaque number of the runtime's, or
// memory.
type object struct {
	ref uintptr
	// mem is memory of the runtime, never of Go; it may be read and written
	// here if place is pinned.
	mem   unsafe.Pointer
	size  uint64
	place backend.Place
}

// table mints handles of one kind. A handle is a place and a generation of it,
// so none is minted twice.
type table struct {
	mu    sync.RWMutex
	slots []slot
	free  []uint32
	live  int
}

type slot struct {
	object
	gen   uint32
	state slotState
}

type slotState uint8

const (
	slotFree    slotState = iota
	slotLive              // names something
	slotClaimed           // is being destroyed
)

// put mints a handle.
func (t *table) put(o object) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.object, s.state = o, slotLive
	s.gen++
	t.live++
	return uint64(s.gen)<<32 | uint64(i+1)
}

// find returns the slot of a handle that names something. The lock is held.
func (t *table) find(h uint64, st slotState) *slot {
	i := uint32(h) - 1
	if uint64(i) >= uint64(len(t.slots)) {
		return nil
	}
	s := &t.slots[i]
	if s.gen != uint32(h>>32) || s.state != st {
		return nil
	}
	return s
}

// get returns what a handle names.
func (t *table) get(h uint64) (object, bool) {
	t.mu.RLock()
	s := t.find(h, slotLive)
	if s == nil {
		t.mu.RUnlock()
		return object{}, false
	}
	o := s.object
	t.mu.RUnlock()
	return o, true
}

// claim takes a handle out of use while it is being destroyed, so that it is
// destroyed once.
func (t *table) claim(h uint64) (object, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.find(h, slotLive)
	if s == nil {
		return object{}, false
	}
	s.state = slotClaimed
	return s.object, true
}

// settle ends a claim: the handle is gone, or stays for another try.
func (t *table) settle(h uint64, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.find(h, slotClaimed)
	switch {
	case s == nil: // the table was emptied meanwhile
	case gone:
		t.drop(uint32(h) - 1)
	default:
		s.state = slotLive
	}
}

func (t *table) drop(i uint32) {
	s := &t.slots[i]
	s.object, s.state = object{}, slotFree
	t.live--
	if s.gen != math.MaxUint32 { // a place whose generations are used up is left alone
		t.free = append(t.free, i)
	}
}

// count returns how many handles name something.
func (t *table) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.live
}

// empty makes every handle name nothing.
func (t *table) empty() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		if t.slots[i].state != slotFree {
			t.drop(uint32(i))
		}
	}
}

// replace gives every handle something else to name; one that make has nothing
// for names nothing from then on. It reports whether make had something for all.
func (t *table) replace(remake func(object) (object, bool)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := true
	for i := range t.slots {
		if t.slots[i].state == slotFree {
			continue
		}
		o, ok := remake(t.slots[i].object)
		if !ok {
			all = false
			t.drop(uint32(i))
			continue
		}
		t.slots[i].object = o
	}
	return all
}
