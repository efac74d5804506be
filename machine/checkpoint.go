package machine

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// ErrOtherRules is matched by the error of [World.SetBinary] for a world that
// was written under other rules.
const ErrOtherRules Reason = "written under other rules"

// checkpointMark begins every checkpoint; its last byte is the version.
const checkpointMark = "rfw\x01"

const checkpointSum = 8

// CheckpointError says what is wrong with the bytes given to [World.SetBinary].
type CheckpointError struct {
	Offset int
	Msg    string
}

// Error says what is wrong and at which byte.
func (e *CheckpointError) Error() string {
	return fmt.Sprintf("checkpoint: byte %d: %s", e.Offset, e.Msg)
}

// AppendBinary appends the whole state of the world to dst, in one pass, with
// a checksum: what [World.SetBinary] reads back.
func (w *World) AppendBinary(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, checkpointMark...)
	dst = append(dst, w.rules.hash[:]...)
	put := func(v uint64) { dst = binary.AppendUvarint(dst, v) }
	put(uint64(w.queueCap))
	for i := range w.rules.machines {
		put(uint64(w.pools[i].capacity))
	}
	put(w.seq)
	for _, v := range w.words[:len(w.rules.sorts)] {
		put(v)
	}
	n := w.Queued()
	put(uint64(n))
	for i := range n {
		at := w.entry(i)
		nargs := int(w.words[at+entryEvent] >> 16)
		for _, v := range w.words[at : at+entryArgs+nargs] {
			put(v)
		}
	}
	for i, m := range w.rules.machines {
		for s := range w.pools[i].capacity {
			b := w.base(MachineID(i), uint16(s))
			h := unpackHeader(w.words[b])
			put(w.words[b])
			words := w.words[b+atFacts : b+m.size]
			if h.flight == 0 {
				words = words[:len(m.factTy)]
			} else {
				put(w.words[b+atIssue])
				put(w.words[b+atRoot])
			}
			for _, v := range words {
				put(v)
			}
		}
	}
	return binary.BigEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// SetBinary makes w the world that [World.AppendBinary] wrote. It returns a
// [*CheckpointError], and w is as it was, if the bytes are cut short or
// changed, if they were written under other rules (which matches
// [ErrOtherRules]), for a world of another [Config], or if they hold what no
// world of these rules can hold.
func (w *World) SetBinary(src []byte) error {
	r := checkpointReader{w: w, src: src, words: make([]uint64, len(w.words))}
	if err := r.read(); err != nil {
		return err
	}
	copy(w.words, r.words)
	w.seq, w.flying = r.seq, r.flying
	return nil
}

type checkpointReader struct {
	w     *World
	src   []byte
	at    int
	words []uint64
	seq   uint64
	err   error

	flying int
}

func (r *checkpointReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &CheckpointError{r.at, fmt.Sprintf(format, args...)}
	}
}

// otherRules is a CheckpointError that matches ErrOtherRules.
type otherRules struct{ CheckpointError }

func (e *otherRules) Is(target error) bool { return target == ErrOtherRules }

func (e *otherRules) Unwrap() error { return &e.CheckpointError }

// next returns the next number, or 0 after a fault.
func (r *checkpointReader) next() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.src[r.at:])
	if n <= 0 {
		r.fail("no number here")
		return 0
	}
	r.at += n
	return v
}

// upTo returns the next number, which is bounded.
func (r *checkpointReader) upTo(most uint64, what string) uint64 {
	at := r.at
	v := r.next()
	if r.err == nil && v > most {
		r.at = at
		r.fail("%s is %d: at most %d", what, v, most)
		return 0
	}
	return v
}

func (r *checkpointReader) read() error {
	w := r.w
	head := len(checkpointMark) + len(w.rules.hash)
	switch {
	case len(r.src) < head+checkpointSum || string(r.src[:len(checkpointMark)]) != checkpointMark:
		r.fail("not a world of a version that is known here")
		return r.err
	case xxhash.Sum64(r.src[:len(r.src)-checkpointSum]) != binary.BigEndian.Uint64(r.src[len(r.src)-checkpointSum:]):
		r.fail("the checksum is wrong")
		return r.err
	case string(r.src[len(checkpointMark):head]) != string(w.rules.hash[:]):
		var h Hash
		copy(h[:], r.src[len(checkpointMark):])
		return &otherRules{CheckpointError{len(checkpointMark), fmt.Sprintf("%s: %s, not %s", ErrOtherRules, h, w.rules.hash)}}
	}
	r.src, r.at = r.src[:len(r.src)-checkpointSum], head
	if c := r.next(); c != uint64(w.queueCap) {
		r.fail("its queue holds %d, this one %d", c, w.queueCap)
	}
	for i, m := range w.rules.machines {
		if c := r.next(); c != uint64(w.pools[i].capacity) {
			r.fail("it has %d of %s, this world %d", c, m.def.Name, w.pools[i].capacity)
		}
	}
	r.seq = r.next()
	for i := range w.rules.sorts {
		r.words[i] = r.next()
	}
	n := int(r.upTo(uint64(w.queueCap), "the number of events in the queue"))
	r.words[w.queueAt] = uint64(n)
	for i := range n {
		r.entry(w.entry(i))
	}
	for i := range w.rules.machines {
		for s := range w.pools[i].capacity {
			r.instance(MachineID(i), w.base(MachineID(i), uint16(s)))
			if r.err != nil {
				return r.err
			}
		}
	}
	if r.at != len(r.src) {
		r.fail("%d bytes too many", len(r.src)-r.at)
	}
	return r.err
}

// ref reads a Ref of a machine that there is, in a slot that there is if it
// must exist.
func (r *checkpointReader) ref(what string, must bool) uint64 {
	at := r.at
	v := r.next()
	ref := UnpackRef(v)
	if r.err == nil && (v == 0 || ref.Pack() != v || int(ref.Machine) >= len(r.w.rules.machines) || must && !r.w.exists(ref)) {
		r.at = at
		r.fail("%s names no instance", what)
		return 0
	}
	return v
}

func (r *checkpointReader) entry(at int) {
	root, to, ev := r.ref("the root of a queued event", true), r.ref("a queued event's instance", false), r.next()
	if r.err != nil {
		return
	}
	m := r.w.rules.machines[UnpackRef(to).Machine]
	id, n := ev&0xffff, ev>>16
	if id >= uint64(len(m.argTy)) || n != uint64(len(m.argTy[id])) {
		r.fail("%s has no event %d with %d arguments", m.def.Name, id, n)
		return
	}
	e := r.words[at : at+entryWords]
	e[entryRoot], e[entryRef], e[entryEvent], e[entryParent] = root, to, ev, r.upTo(r.seq, "a queued event's parent")
	for i := range int(n) {
		e[entryArgs+i] = r.next()
	}
}

func (r *checkpointReader) instance(id MachineID, b int) {
	m := r.w.rules.machines[id]
	word := r.next()
	h := unpackHeader(word)
	if r.err == nil && int(h.state) >= len(m.def.States) {
		r.fail("%s has no state %d", m.def.Name, h.state)
	}
	var flying *row
	if r.err == nil && h.flight != 0 {
		if int(h.flight) > len(m.rows) || !m.rows[h.flight-1].hasCall || m.rows[h.flight-1].from != h.state {
			r.fail("%s cannot be in flight on row %d in state %q", m.def.Name, h.flight-1, m.def.States[h.state].Name)
		} else {
			flying = &m.rows[h.flight-1]
		}
	}
	if r.err != nil {
		return
	}
	r.words[b] = word
	if flying != nil {
		r.flying++
		r.words[b+atIssue] = r.upTo(r.seq, "the sequence number of an issue")
		r.words[b+atRoot] = r.ref("the root of an operation in flight", true)
	}
	values := func(what string, at int, tys []Type) {
		for i, ty := range tys {
			v := r.next()
			if r.err == nil && !ty.check(v) {
				r.fail("%s: %s %d is %d, not of type %s", m.def.Name, what, i, v, ty)
			}
			r.words[at+i] = v
		}
	}
	zeros := func(n int) {
		for range n {
			r.upTo(0, "a word that is not used")
		}
	}
	at := b + atFacts
	values("fact", at, m.factTy)
	if flying == nil {
		return
	}
	at += len(m.factTy)
	values("argument", at, m.argTy[flying.ev])
	zeros(m.maxArgs - len(m.argTy[flying.ev]))
	at += m.maxArgs
	values("argument of a command", at, flying.callTy)
	zeros(m.maxCall - len(flying.callTy))
}
