package sim

import (
	"encoding/binary"

	"github.com/runfence/runfence/backend"
)

// writer appends numbers, most of which are small, to bytes.
type writer struct{ b []byte }

func (w *writer) u(v uint64) {
	if v < 0x80 {
		w.b = append(w.b, byte(v))
		return
	}
	w.b = binary.AppendUvarint(w.b, v)
}

func (w *writer) code(c backend.Code) { w.u(uint64(uint32(c))) }

// bit returns mask if the fact holds, else zero.
func bit(fact bool, mask uint64) uint64 {
	if fact {
		return mask
	}
	return 0
}
