package sim

import "github.com/runfence/runfence/backend"

// fill is what fresh memory holds unless residue is asked for: a byte that is
// neither zero nor a likely epoch.
const fill = 0xDB

// allocation is one slot of the memory table. A slot keeps its region of the
// arena for ever, so reusing the slot reuses the address: a write through a
// stale handle lands in whatever lives there now.
type allocation struct {
	gen    uint32
	state  slot
	place  backend.Place
	size   uint64
	freed  uint32 // when the slot became free; see Device.frees
	off    uint64 // into the arena
	region uint64 // bytes of the region
}

func (d *Device) memHandle(i int) backend.Memory {
	return backend.Memory(handle(KindMemory, i, d.mems[i].gen))
}

// alive reports whether the handle names an allocation that was not freed.
func (d *Device) alive(m backend.Memory) bool {
	i := indexOf(uint64(m))
	return kindOf(uint64(m)) == KindMemory && i < len(d.mems) &&
		d.mems[i].gen == genOf(uint64(m)) && d.mems[i].state == slotLive
}

// region is the memory behind a handle, freed or not.
func (d *Device) region(m backend.Memory) []byte {
	a := &d.mems[indexOf(uint64(m))]
	return d.arena[a.off : a.off+a.region]
}

// content is the memory of a live allocation.
func (d *Device) content(m backend.Memory) []byte {
	a := &d.mems[indexOf(uint64(m))]
	return d.arena[a.off : a.off+a.size]
}

// window returns b[off:off+n] if it is inside b.
func window(b []byte, off, n uint64) ([]byte, bool) {
	if off > uint64(len(b)) || n > uint64(len(b))-off {
		return nil, false
	}
	return b[off : off+n : off+n], true
}

func (d *Device) alloc(place backend.Place, size uint64) (backend.Memory, backend.Code) {
	if size == 0 {
		return 0, backend.InvalidParam
	}
	if size > d.cfg.MemoryLimit || d.allocated > d.cfg.MemoryLimit-size {
		return 0, backend.OutOfMemory
	}
	i := -1
	for j := range d.mems {
		if a := &d.mems[j]; a.state == slotFree && a.region >= size && canReuse(a.gen) && (i < 0 || a.freed < d.mems[i].freed) {
			i = j
		}
	}
	if i < 0 {
		if len(d.mems) >= maxSlots {
			return 0, backend.OutOfMemory
		}
		i = len(d.mems)
		d.mems = append(d.mems, allocation{off: uint64(len(d.arena)), region: size})
		d.arena = append(d.arena, make([]byte, size)...)
		if !d.cfg.Residue {
			paintOver(d.arena[d.mems[i].off:])
		}
	} else if !d.cfg.Residue {
		paintOver(d.arena[d.mems[i].off : d.mems[i].off+d.mems[i].region])
	}
	a := &d.mems[i]
	a.gen++
	a.state, a.place, a.size, a.freed = slotLive, place, size, 0
	d.allocated += size
	return d.memHandle(i), backend.Success
}

// free returns the allocation at once. It drains nothing; if the device still
// has work that names the memory, that is the host's fault and is reported.
func (d *Device) free(m backend.Memory) {
	for i := range d.entries {
		if e := &d.entries[i]; e.names(m) {
			d.violate(Violation{Kind: FreedWhileNamed, Memory: m, Stream: d.streamHandle(int(e.stream))})
			break
		}
	}
	for i := range d.pairs {
		// A kernel that no later launch can name as its partner any more.
		if p := &d.pairs[i]; p.serial != 0 && p.tag == m && !p.open() {
			*p = pair{}
		}
	}
	a := &d.mems[indexOf(uint64(m))]
	d.frees++
	a.state, a.freed = slotFree, d.frees
	d.allocated -= a.size
}

// overwrite reports a change of bytes that a queued copy has yet to read.
func (d *Device) overwrite(m backend.Memory, off, n uint64) {
	for i := range d.entries {
		e := &d.entries[i]
		if e.kind == EntryCopy && e.src.Mem == m && off < e.src.Offset+e.src.Size && e.src.Offset < off+n {
			d.violate(Violation{Kind: SourceOverwritten, Memory: m, Stream: d.streamHandle(int(e.stream))})
			return
		}
	}
}

// move carries out a queued copy on whatever is at its two addresses now.
func (d *Device) move(si int, e *entry) {
	for _, m := range [2]backend.Memory{e.src.Mem, e.dst.Mem} {
		if !d.alive(m) {
			d.violate(Violation{Kind: UseAfterFree, Memory: m, Stream: d.streamHandle(si)})
		}
	}
	// The spans were inside their allocations when the copy was queued, and a
	// region never shrinks.
	src, _ := window(d.region(e.src.Mem), e.src.Offset, e.src.Size)
	dst, _ := window(d.region(e.dst.Mem), e.dst.Offset, e.dst.Size)
	copy(dst, src)
}

// spans checks the two sides of a copy: live, inside, equally long.
func (d *Device) spans(dst, src backend.Span) Answer {
	if !d.alive(dst.Mem) || !d.alive(src.Mem) {
		return refused(backend.InvalidHandle)
	}
	if src.Size == 0 || src.Size != dst.Size {
		return failed(backend.InvalidParam)
	}
	if _, ok := window(d.content(dst.Mem), dst.Offset, dst.Size); !ok {
		return failed(backend.InvalidParam)
	}
	if _, ok := window(d.content(src.Mem), src.Offset, src.Size); !ok {
		return failed(backend.InvalidParam)
	}
	return Answer{}
}

// Peek returns the content of a live allocation, device memory included, and
// nil if it is not alive. The bytes belong to the device; no host could see
// them without a copy.
func (d *Device) Peek(m backend.Memory) []byte {
	if !d.alive(m) {
		return nil
	}
	return d.content(m)
}
