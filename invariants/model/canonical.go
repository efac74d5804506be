package model

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// naming gives names to what a state holds beside its world: handles by the
// slot and the part that they play in it, identities in memory as the world
// names them.
type naming struct {
	s         *State
	n         *machine.Naming
	companion machine.Companion
	device    sim.Naming
	handles   []named
	order     []int // of calls
	exact     []byte
}

type named struct {
	handle, number uint64
	part           part
}

// part is what a handle is to its slot.
type part uint8

const (
	partCore part = iota + 1
	partCPU
	partCoreDone
	partCPUDone
	partStart
	partFork
	partTail
	partArgs
	partPinned
	partRegion
	partSource
	parts
	partOther
)

func (x *naming) init(s *State) {
	x.s = s
	x.companion = machine.Companion{Append: x.append, Holds: x.holds}
	x.device = sim.Naming{Handle: x.handle, Memory: x.memory}
}

// Fingerprint names the state up to the names of identities and the order of
// slots or, if the system is exact, by all that it holds.
func (s *State) Fingerprint() machine.Fingerprint {
	if s.isNamed {
		return s.named
	}
	if s.sys.config.Exact {
		x := &s.naming
		x.exact = s.appendAll(x.exact[:0])
		var d xxhash.Digest
		d.ResetWithSeed(0x9e3779b97f4a7c15)
		_, _ = d.Write(x.exact)
		s.named = machine.Fingerprint{Hi: d.Sum64(), Lo: xxhash.Sum64(x.exact)}
	} else {
		s.named = s.w.Fingerprint(&s.naming.companion)
	}
	s.isNamed = true
	return s.named
}

// holds tells slots apart that the world alone does not.
func (x *naming) holds(pool, slot int) uint64 {
	s := x.s
	if pool != s.sys.at.slots || slot >= s.sys.config.Slots {
		return 0
	}
	return uint64(s.host.tried[slot])
}

// append is the companion's part of the canonical form.
func (x *naming) append(dst []byte, n *machine.Naming) []byte {
	s := x.s
	x.n = n
	u := func(v uint64) { dst = binary.AppendUvarint(dst, v) }
	h := &s.host
	dst = append(dst, h.runs, h.spare, h.polls, h.expiries, h.recoveries, h.flags())
	run := s.sys.at.run.ID()
	for at := range s.sys.config.Slots {
		dst = append(dst, h.tried[n.At(run, at)])
	}
	x.order = x.order[:0]
	for i := range s.calls {
		x.order = append(x.order, i)
	}
	if len(x.order) > 1 {
		slices.SortFunc(x.order, func(a, b int) int {
			return cmp.Compare(n.Ref(s.calls[a].cmd.Ref.Pack()), n.Ref(s.calls[b].cmd.Ref.Pack()))
		})
	}
	x.list()
	u(uint64(len(x.order)))
	for _, i := range x.order {
		c := &s.calls[i]
		u(n.Ref(c.cmd.Ref.Pack()))
		u(n.Ref(c.root.Pack()))
		u(uint64(len(c.answers))<<2 | uint64(bit(c.refused))<<1 | uint64(bit(c.due)))
		for j := range c.answers {
			a := &c.answers[j]
			u(uint64(a.Outcome))
			u(uint64(uint32(a.Code)))
			u(uint64(a.Status)<<8 | uint64(a.Capture)<<2 | uint64(bit(a.Accepted))<<1 | uint64(bit(a.Confirmed)))
		}
		if c.due {
			u(uint64(c.res.Outcome))
			u(uint64(uint32(c.res.Code)))
			u(c.res.Value)
		}
	}
	return s.dev.AppendCanonical(dst, x.device)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// list writes down the handles that have a name.
func (x *naming) list() {
	s := x.s
	x.handles = x.handles[:0]
	add := func(h uint64, number uint64, p part) {
		if h != 0 {
			x.handles = append(x.handles, named{h, number, p})
		}
	}
	run := s.sys.at.run.ID()
	for slot := range s.sys.config.Slots {
		h := s.cmd.Handles(slot)
		base := uint64(x.n.Slot(run, slot)) * uint64(parts)
		for p, v := range [...]uint64{
			partCore: uint64(h.Core), partCPU: uint64(h.CPU), partCoreDone: uint64(h.CoreDone), partCPUDone: uint64(h.CPUDone),
			partStart: uint64(h.Start), partFork: uint64(h.Fork), partTail: uint64(h.Tail),
			partArgs: uint64(h.Args), partPinned: uint64(h.Pinned), partRegion: uint64(h.Region), partSource: uint64(h.Source),
		} {
			add(v, base+uint64(p), part(p))
		}
	}
	add(uint64(s.caller), 1<<20, partOther)
	for at, i := range x.order {
		c := &s.calls[i]
		add(uint64(c.ticket), 1<<21+uint64(at), partOther)
		for j := range c.answers {
			// A destroyed handle is not answered; a context has no number.
			if h := c.answers[j].Handle; h != 0 && c.cmd.Call != s.sys.at.currentContext {
				add(h, 1<<22+uint64(at)<<8+uint64(j), partOther)
			}
		}
	}
}

func (x *naming) find(h uint64) *named {
	for i := range x.handles {
		if x.handles[i].handle == h {
			return &x.handles[i]
		}
	}
	return nil
}

func (x *naming) handle(k sim.Kind, h uint64) uint64 {
	if k == sim.KindContext {
		return 0
	}
	if n := x.find(h); n != nil {
		return n.number
	}
	return 0
}

// memory renames what of a slot's memory is a handle or an identity: see the
// layout of the argument block and of the result region in package states.
func (x *naming) memory(dst []byte, m backend.Memory, content []byte) []byte {
	n := x.find(uint64(m))
	if n == nil || len(content) < 24 {
		return append(dst, content...)
	}
	a := &x.s.sys.at
	le := binary.LittleEndian
	id := func(sort, at int) {
		dst = binary.AppendUvarint(dst, x.identity(sort, le.Uint64(content[at:])))
	}
	from := 0
	switch n.part {
	case partArgs, partPinned:
		region := le.Uint64(content)
		if r := x.find(region); r != nil {
			region = r.number
		}
		dst = binary.AppendUvarint(dst, region)
		id(a.epoch, 8)
		id(a.dispatch, 16)
		from = 24
	case partRegion:
		id(a.epoch, 0)
		from = 8
	case partSource:
		id(a.epoch, 0)
		dst = append(dst, content[8:16]...)
		id(a.epoch, 16)
		from = 24
	}
	return append(dst, content[from:]...)
}

// painted is what fresh memory holds.
const painted = 0xdbdbdbdbdbdbdbdb

// identity names an identity that memory holds, apart from what is none.
func (x *naming) identity(sort int, v uint64) uint64 {
	switch v {
	case 0:
		return 0
	case painted:
		return 1
	}
	return 1 + x.n.Identity(sort, v)
}
