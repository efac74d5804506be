package machine

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// stateGroup is how many words share one byte that says which of them are not zero.
// A byte of zero is followed by how many groups more have no such word.
const stateGroup = 8

// AppendState appends the state of the world to dst, exactly, in the fewest
// bytes that one fast pass makes: what [World.SetState] reads back into a world
// of the same rules and Config. It is for an explorer that holds many states;
// what goes to a file is [World.AppendBinary]'s to write. Two worlds of equal
// state have equal bytes.
func (w *World) AppendState(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, w.seq)
	dst = binary.AppendUvarint(dst, uint64(w.flying))
	n := w.Queued()
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = appendWords(dst, w.words[:w.queueAt])
	return appendWords(dst, w.words[w.entry(0):w.entry(n)])
}

// SetState makes w the world that [World.AppendState] wrote, and allocates
// nothing after the first time. The caller answers for it that the bytes are of
// a world of the same rules and Config: what they hold is not checked, and a
// world made of other bytes may panic when it is used. Bytes of the wrong length
// are a [*CheckpointError], and w is as it was.
func (w *World) SetState(src []byte) error {
	if len(w.spare) != len(w.words) {
		w.spare = make([]uint64, len(w.words))
	}
	r := stateReader{src: src, ok: true}
	seq, flying, n := r.number(), r.number(), r.number()
	if n > uint64(w.queueCap) {
		return &CheckpointError{r.at, fmt.Sprintf("a queue of %d: this one holds %d", n, w.queueCap)}
	}
	words := w.spare
	r.words(words[:w.queueAt])
	words[w.queueAt] = n
	r.words(words[w.entry(0):w.entry(int(n))]) // past it nothing is read
	switch {
	case !r.ok:
		return &CheckpointError{r.at, "a state that is cut short"}
	case r.at != len(src):
		return &CheckpointError{r.at, fmt.Sprintf("%d bytes too many", len(src)-r.at)}
	}
	w.words, w.spare = words, w.words
	w.wire()
	w.seq, w.flying = seq, int(flying)
	return nil
}

func appendWords(dst []byte, words []uint64) []byte {
	empty := 0 // groups without a word
	for len(words) > 0 {
		var mask byte
		n := min(stateGroup, len(words))
		if n == stateGroup {
			g := (*[stateGroup]uint64)(words)
			if g[0]|g[1]|g[2]|g[3]|g[4]|g[5]|g[6]|g[7] == 0 && empty < 256 {
				empty++
				words = words[stateGroup:]
				continue
			}
		}
		if empty > 0 {
			dst = append(dst, 0, byte(empty-1))
			empty = 0
		}
		at := len(dst)
		dst = append(dst, 0)
		for i, v := range words[:n] {
			if v != 0 {
				mask |= 1 << i
				dst = binary.AppendUvarint(dst, v)
			}
		}
		if mask == 0 {
			dst = append(dst, 0)
		}
		dst[at] = mask
		words = words[n:]
	}
	if empty > 0 {
		dst = append(dst, 0, byte(empty-1))
	}
	return dst
}

type stateReader struct {
	src []byte
	at  int
	ok  bool
}

// number returns the next number, or 0 after a fault.
func (r *stateReader) number() uint64 {
	if r.at < len(r.src) && r.src[r.at] < 0x80 {
		r.at++
		return uint64(r.src[r.at-1])
	}
	v, n := binary.Uvarint(r.src[min(r.at, len(r.src)):])
	if n <= 0 {
		r.ok = false
		return 0
	}
	r.at += n
	return v
}

// words reads what appendWords wrote.
func (r *stateReader) words(dst []uint64) {
	for len(dst) > 0 {
		if r.at >= len(r.src) {
			r.ok = false
			return
		}
		mask := r.src[r.at]
		r.at++
		n := stateGroup
		if mask == 0 {
			if r.at >= len(r.src) {
				r.ok = false
				return
			}
			n *= int(r.src[r.at]) + 1
			r.at++
			r.ok = r.ok && n < len(dst)+stateGroup
		}
		n = min(n, len(dst))
		clear(dst[:n])
		for ; mask != 0; mask &= mask - 1 {
			v := r.number()
			if i := bits.TrailingZeros8(mask); i < n {
				dst[i] = v
			} else {
				r.ok = false
			}
		}
		dst = dst[n:]
	}
}
