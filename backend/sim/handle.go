package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kind says what a handle names.
type Kind uint8

const (
	// KindContext is a [backend.Context].
	KindContext Kind = iota + 1
	// KindStream is a [backend.Stream].
	KindStream
	// KindEvent is a [backend.Event].
	KindEvent
	// KindMemory is a [backend.Memory].
	KindMemory
	// KindCall is a [Ticket].
	KindCall
)

const kindLetters = "?xsemc"

// String returns "context", "stream", "event", "memory" or "call".
func (k Kind) String() string {
	switch k {
	case KindContext:
		return "context"
	case KindStream:
		return "stream"
	case KindEvent:
		return "event"
	case KindMemory:
		return "memory"
	case KindCall:
		return "call"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// A handle is kind (8 bits), generation (32 bits) and slot index (24 bits). A
// slot is reused under the next generation, so a value is minted once.
const (
	indexBits = 24
	maxSlots  = 1<<indexBits - 1
)

func handle(k Kind, index int, gen uint32) uint64 {
	return uint64(k)<<56 | uint64(gen)<<indexBits | uint64(index)
}

func kindOf(h uint64) Kind    { return Kind(h >> 56) }
func indexOf(h uint64) int    { return int(h & maxSlots) }
func genOf(h uint64) uint32   { return uint32(h >> indexBits) }
func canReuse(g uint32) bool  { return g != math.MaxUint32 }
func isHandle(h uint64) bool  { return h != 0 }
func kindOfLetter(c byte) int { return strings.IndexByte(kindLetters, c) }

// HandleName writes a handle as people read it: a letter for its kind (x
// context, s stream, e event, m memory, c call), its slot, and its generation
// where the slot was used before: "s0", "e3.2". Zero is "-", and a number that
// no device mints is "?0x" and its digits.
func HandleName(h uint64) string {
	if !isHandle(h) {
		return "-"
	}
	b := make([]byte, 0, 16)
	return string(appendHandle(b, h))
}

func appendHandle(b []byte, h uint64) []byte {
	k := kindOf(h)
	if k < KindContext || k > KindCall { // no handle at all: a stray number
		return strconv.AppendUint(append(b, "?0x"...), h, 16)
	}
	b = append(b, kindLetters[k])
	b = strconv.AppendUint(b, uint64(indexOf(h)), 10)
	if g := genOf(h); g != 1 {
		b = append(b, '.')
		b = strconv.AppendUint(b, uint64(g), 10)
	}
	return b
}

// ParseHandle is the inverse of [HandleName].
func ParseHandle(s string) (uint64, error) {
	if s == "-" {
		return 0, nil
	}
	bad := func() (uint64, error) {
		return 0, fmt.Errorf("sim: %q names no handle: want a letter of x s e m c, a slot, and a generation such as in e3.2", s)
	}
	if len(s) < 2 {
		return bad()
	}
	k := kindOfLetter(s[0])
	if k < 1 {
		return bad()
	}
	slot, gen, dotted := strings.Cut(s[1:], ".")
	i, err := strconv.ParseUint(slot, 10, indexBits)
	if err != nil {
		return bad()
	}
	g := uint64(1)
	if dotted {
		if g, err = strconv.ParseUint(gen, 10, 32); err != nil || g == 0 {
			return bad()
		}
	}
	h := handle(Kind(k), int(i), uint32(g))
	if HandleName(h) != s { // "e3.1" and "e03" are not what HandleName writes
		return bad()
	}
	return h, nil
}

// slot is the life of one entry of a handle table.
type slot uint8

const (
	slotFree slot = iota
	slotLive
	// slotZombie: destroyed for the host, but the device still has work that
	// names it. Destroying drains nothing.
	slotZombie
)
