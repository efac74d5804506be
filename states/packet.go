package states

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The invocation packet of an eager call, version 1, little endian:
//
//	offset  bytes
//	0       4      magic "RFIP"
//	4       2      version, 1
//	6       2      header size, 40
//	8       4      total size, header included
//	12      4      callable id
//	16      8      callable occupancy generation, not 0
//	24      4      number of tensors
//	28      4      number of scalars
//	32      8      run binding: the dispatch the packet was made for, not 0
//	40      8      device Runtime address, not 0
//	48      8      run epoch, not 0
//	56      88 ×   tensor descriptors
//	…       8 ×    scalars
//
// A tensor descriptor is: device address (8), size in bytes (8), element type
// (2), rank (2), zero (4), eight dimensions (8 × 8) of which those past the
// rank are zero. A rank of 0 is a single element.
//
// Everything is checked before any of it is given storage (F145, F147), and a
// packet that fails a check is refused whole: its values are never used (F149).
const (
	PacketHeaderSize = 40
	packetFixed      = PacketHeaderSize + 16
	packetTensor     = 88
	packetVersion    = 1
	packetMagic      = 'R' | 'F'<<8 | 'I'<<16 | 'P'<<24
	// MaxTensors and MaxScalars bound a packet's counts.
	MaxTensors = 1 << 12
	MaxScalars = 1 << 12
	// MaxRank bounds a tensor's dimensions.
	MaxRank = 8
)

// ElementType is the type of a tensor's elements.
type ElementType uint16

// The element types.
const (
	Int8 ElementType = iota + 1
	Int16
	Int32
	Int64
	Float16
	BFloat16
	Float32
	Float64
)

// Size returns the bytes of an element, or 0 for an unknown type.
func (t ElementType) Size() uint64 {
	sizes := [...]uint64{Int8: 1, Int16: 2, Int32: 4, Int64: 8, Float16: 2, BFloat16: 2, Float32: 4, Float64: 8}
	if int(t) < len(sizes) {
		return sizes[t]
	}
	return 0
}

// Tensor describes device memory that a callable reads or writes.
type Tensor struct {
	Address uint64
	Bytes   uint64
	Type    ElementType
	Rank    uint16
	Dims    [MaxRank]uint64
}

// Invocation is the decoded form of a packet.
type Invocation struct {
	Callable  uint32
	Occupancy uint64
	Dispatch  uint64
	Runtime   uint64
	RunEpoch  uint64
	Tensors   []Tensor
	Scalars   []uint64
}

// PacketError says which check a packet failed, and where.
type PacketError struct {
	// Check is framing, count, generation, binding, epoch, runtime or geometry.
	Check  string
	Offset int
	Detail string
}

// Error names the check, the byte offset and what was found.
func (e *PacketError) Error() string {
	return fmt.Sprintf("invocation packet: %s: byte %d: %s", e.Check, e.Offset, e.Detail)
}

// Expected is what the registry and the run say of an invocation; a packet
// must agree with all of it.
type Expected struct {
	Callable  uint32
	Occupancy uint64
	Dispatch  uint64
	RunEpoch  uint64
	Tensors   uint32
	Scalars   uint32
}

// AppendPacket appends the packet of an invocation. It refuses what
// [ParsePacket] would refuse, with the same [*PacketError], and then appends
// nothing.
func AppendPacket(dst []byte, in *Invocation) ([]byte, error) {
	start := len(dst)
	size := packetFixed + packetTensor*len(in.Tensors) + 8*len(in.Scalars)
	if len(in.Tensors) > MaxTensors || len(in.Scalars) > MaxScalars {
		return dst, &PacketError{"count", 24, fmt.Sprintf("%d tensors and %d scalars: at most %d and %d", len(in.Tensors), len(in.Scalars), MaxTensors, MaxScalars)}
	}
	le := binary.LittleEndian
	out := le.AppendUint32(dst, packetMagic)
	out = le.AppendUint16(out, packetVersion)
	out = le.AppendUint16(out, PacketHeaderSize)
	out = le.AppendUint32(out, uint32(size))
	out = le.AppendUint32(out, in.Callable)
	out = le.AppendUint64(out, in.Occupancy)
	out = le.AppendUint32(out, uint32(len(in.Tensors)))
	out = le.AppendUint32(out, uint32(len(in.Scalars)))
	out = le.AppendUint64(out, in.Dispatch)
	out = le.AppendUint64(out, in.Runtime)
	out = le.AppendUint64(out, in.RunEpoch)
	for i := range in.Tensors {
		t := &in.Tensors[i]
		out = le.AppendUint64(out, t.Address)
		out = le.AppendUint64(out, t.Bytes)
		out = le.AppendUint16(out, uint16(t.Type))
		out = le.AppendUint16(out, t.Rank)
		out = le.AppendUint32(out, 0)
		for _, d := range t.Dims {
			out = le.AppendUint64(out, d)
		}
	}
	for _, s := range in.Scalars {
		out = le.AppendUint64(out, s)
	}
	if err := CheckPacket(out[start:], Expected{
		Callable: in.Callable, Occupancy: in.Occupancy, Dispatch: in.Dispatch, RunEpoch: in.RunEpoch,
		Tensors: uint32(len(in.Tensors)), Scalars: uint32(len(in.Scalars)),
	}); err != nil {
		return dst, err
	}
	return out, nil
}

// CheckPacket makes every check, in this order: framing, counts, generation,
// binding, epoch, Runtime address, geometry. It allocates nothing unless it
// fails, and touches no storage. Its error is a [*PacketError].
func CheckPacket(p []byte, want Expected) error {
	le := binary.LittleEndian
	if len(p) < packetFixed {
		return &PacketError{"framing", len(p), fmt.Sprintf("%d bytes: a packet has at least %d", len(p), packetFixed)}
	}
	bad := func(check string, offset int, what string, got, want any) error {
		return &PacketError{check, offset, fmt.Sprintf("%s is %v, want %v", what, got, want)}
	}
	if m := le.Uint32(p); m != packetMagic {
		return bad("framing", 0, "magic", fmt.Sprintf("%#x", m), fmt.Sprintf("%#x", packetMagic))
	}
	if v := le.Uint16(p[4:]); v != packetVersion {
		return bad("framing", 4, "version", v, packetVersion)
	}
	if h := le.Uint16(p[6:]); h != PacketHeaderSize {
		return bad("framing", 6, "header size", h, PacketHeaderSize)
	}
	tensors, scalars := le.Uint32(p[24:]), le.Uint32(p[28:])
	if n := le.Uint32(p[8:]); uint64(n) != uint64(len(p)) {
		return bad("framing", 8, "total size", n, len(p))
	}
	if tensors > MaxTensors || scalars > MaxScalars {
		return bad("count", 24, "counts", fmt.Sprintf("%d and %d", tensors, scalars), fmt.Sprintf("at most %d and %d", MaxTensors, MaxScalars))
	}
	if need := packetFixed + packetTensor*int(tensors) + 8*int(scalars); need != len(p) {
		return bad("framing", 8, "total size", len(p), need)
	}
	if id := le.Uint32(p[12:]); id != want.Callable {
		return bad("binding", 12, "callable", id, want.Callable)
	}
	if tensors != want.Tensors {
		return bad("count", 24, "number of tensors", tensors, want.Tensors)
	}
	if scalars != want.Scalars {
		return bad("count", 28, "number of scalars", scalars, want.Scalars)
	}
	if g := le.Uint64(p[16:]); g != want.Occupancy || g == 0 {
		return bad("generation", 16, "callable generation", g, want.Occupancy)
	}
	if d := le.Uint64(p[32:]); d != want.Dispatch || d == 0 {
		return bad("binding", 32, "dispatch", d, want.Dispatch)
	}
	if e := le.Uint64(p[48:]); e != want.RunEpoch || e == 0 {
		return bad("epoch", 48, "run epoch", e, want.RunEpoch)
	}
	if le.Uint64(p[40:]) == 0 {
		return bad("runtime", 40, "Runtime address", 0, "not 0")
	}
	for i := range int(tensors) {
		at := packetFixed + packetTensor*i
		if err := checkTensor(p[at:at+packetTensor], at); err != nil {
			return err
		}
	}
	return nil
}

func checkTensor(p []byte, at int) error {
	le := binary.LittleEndian
	bad := func(offset int, format string, args ...any) error {
		return &PacketError{"geometry", at + offset, fmt.Sprintf(format, args...)}
	}
	address, size := le.Uint64(p), le.Uint64(p[8:])
	element := ElementType(le.Uint16(p[16:])).Size()
	rank := int(le.Uint16(p[18:]))
	switch {
	case element == 0:
		return bad(16, "element type %d is unknown", le.Uint16(p[16:]))
	case rank > MaxRank:
		return bad(18, "rank %d: at most %d", rank, MaxRank)
	case le.Uint32(p[20:]) != 0:
		return bad(20, "reserved bytes are not zero")
	case address == 0:
		return bad(0, "address is 0")
	case address%element != 0:
		return bad(0, "address %#x is not aligned to %d bytes", address, element)
	case address+size < address:
		return bad(8, "address %#x and size %d wrap around", address, size)
	}
	total := element
	for d := range MaxRank {
		n := le.Uint64(p[24+8*d:])
		if d >= rank {
			if n != 0 {
				return bad(24+8*d, "dimension %d past the rank is not zero", d)
			}
			continue
		}
		if n == 0 {
			return bad(24+8*d, "dimension %d is zero", d)
		}
		hi, lo := bits.Mul64(total, n)
		if hi != 0 {
			return bad(24+8*d, "the dimensions overflow 64 bits")
		}
		total = lo
	}
	if total != size {
		return bad(8, "size is %d bytes, the dimensions want %d", size, total)
	}
	return nil
}

// ParsePacket checks a packet and then copies it into an Invocation of its
// own. Its error is that of [CheckPacket], and then nothing was allocated for
// the invocation.
func ParsePacket(p []byte, want Expected) (*Invocation, error) {
	if err := CheckPacket(p, want); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	in := &Invocation{
		Callable: le.Uint32(p[12:]), Occupancy: le.Uint64(p[16:]), Dispatch: le.Uint64(p[32:]),
		Runtime: le.Uint64(p[40:]), RunEpoch: le.Uint64(p[48:]),
		Tensors: make([]Tensor, want.Tensors), Scalars: make([]uint64, want.Scalars),
	}
	at := packetFixed
	for i := range in.Tensors {
		t := &in.Tensors[i]
		t.Address, t.Bytes = le.Uint64(p[at:]), le.Uint64(p[at+8:])
		t.Type, t.Rank = ElementType(le.Uint16(p[at+16:])), le.Uint16(p[at+18:])
		for d := range t.Dims {
			t.Dims[d] = le.Uint64(p[at+24+8*d:])
		}
		at += packetTensor
	}
	for i := range in.Scalars {
		in.Scalars[i] = le.Uint64(p[at:])
		at += 8
	}
	return in, nil
}
