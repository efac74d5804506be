package sim

import (
	"bytes"
	"encoding/binary"
)

// Memory is mostly paint or zero, so AppendState writes it as runs. A run is a
// number, its length times three plus what it is made of, and for plainBytes
// the bytes.
const (
	zeroBytes = iota
	paintBytes
	plainBytes
	runKinds
)

const (
	// minRun is the shortest run that is worth its number.
	minRun = 4
	// maxRun bounds what a few bytes can make of themselves.
	maxRun = 4096
)

var (
	zeros [maxRun]byte
	paint = bytes.Repeat([]byte{fill}, maxRun)
)

// paintOver makes b what fresh memory is.
func paintOver(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, paint):]
	}
}

func appendRuns(dst, b []byte) []byte {
	for len(b) > 0 {
		n, kind := runLen(b), uint64(plainBytes)
		switch {
		case n < minRun:
			for n = max(n, 1); n < len(b) && n < maxRun && runLen(b[n:min(len(b), n+minRun)]) < minRun; n++ {
			}
		case b[0] == 0:
			kind = zeroBytes
		default:
			kind = paintBytes
		}
		dst = binary.AppendUvarint(dst, uint64(n)*runKinds+kind)
		if kind == plainBytes {
			dst = append(dst, b[:n]...)
		}
		b = b[n:]
	}
	return dst
}

// runLen returns how many bytes at the front are zero, or else paint, up to maxRun.
func runLen(b []byte) int {
	c := b[0]
	if c != 0 && c != fill {
		return 0
	}
	b = b[:min(len(b), maxRun)]
	n, word := 0, uint64(c)*(1<<64/255)
	for n+8 <= len(b) && binary.LittleEndian.Uint64(b[n:]) == word {
		n += 8
	}
	for n < len(b) && b[n] == c {
		n++
	}
	return n
}

// run reads one run of at most so many bytes into the arena.
func (r *stateReader) run(most uint64) {
	d, at := r.d, r.at
	v := r.u()
	n, kind := v/runKinds, v%runKinds
	switch {
	case r.err != nil:
	case n == 0 || n > min(most, maxRun):
		r.fail(at, "a run of %d bytes", n)
	case kind == zeroBytes:
		d.arena = append(d.arena, zeros[:n]...)
	case kind == paintBytes:
		d.arena = append(d.arena, paint[:n]...)
	case n > uint64(r.left()):
		r.fail(at, "a run of %d bytes, and %d are left", n, r.left())
	default:
		d.arena = append(d.arena, r.src[r.at:r.at+int(n)]...)
		r.at += int(n)
	}
}
