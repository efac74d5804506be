package model

import (
	"encoding/binary"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// AppendBinary appends the state, exactly, to dst.
func (s *State) AppendBinary(dst []byte) []byte {
	f := s.Fingerprint()
	dst = binary.LittleEndian.AppendUint64(dst, f.Hi)
	dst = binary.LittleEndian.AppendUint64(dst, f.Lo)
	return s.appendAll(dst)
}

// appendAll appends everything but the fingerprint.
func (s *State) appendAll(dst []byte) []byte {
	part := func(f func([]byte) []byte) {
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = f(dst)
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	u := func(v uint64) { dst = binary.AppendUvarint(dst, v) }
	part(s.w.AppendState)
	part(s.dev.AppendState)
	dst = s.cmd.AppendState(dst)
	h := &s.host
	dst = append(dst, h.runs, h.spare, h.polls, h.expiries, h.recoveries, h.flags())
	dst = append(dst, h.tried[:s.sys.config.Slots]...)
	u(uint64(len(s.calls)))
	for i := range s.calls {
		c := &s.calls[i]
		u(c.cmd.Ref.Pack())
		u(c.root.Pack())
		u(uint64(c.cmd.Call))
		u(c.cmd.Seq)
		u(uint64(c.row))
		u(uint64(c.cmd.N))
		for _, v := range c.cmd.Args[:c.cmd.N] {
			u(v)
		}
		u(uint64(c.ticket))
		u(uint64(len(c.answers))<<2 | uint64(bit(c.refused))<<1 | uint64(bit(c.due)))
		for j := range c.answers {
			dst = appendAnswer(dst, &c.answers[j])
		}
		if c.due {
			u(uint64(c.res.Outcome)<<1 | uint64(bit(c.res.Accepted)))
			u(uint64(uint32(c.res.Code))<<32 | uint64(uint32(c.res.Last)))
			u(c.res.Value)
		}
	}
	return dst
}

func (h *host) flags() (f byte) {
	for i, on := range h.toggles() {
		f |= bit(*on) << i
	}
	return f
}

func (h *host) setFlags(f byte) {
	for i, on := range h.toggles() {
		*on = f>>i&1 != 0
	}
}

func (h *host) toggles() [5]*bool {
	return [...]*bool{&h.opened, &h.closed, &h.quarantined, &h.detached, &h.gaveUp}
}

func appendAnswer(dst []byte, a *sim.Answer) []byte {
	dst = append(dst, byte(a.Outcome), byte(a.Status), byte(a.Capture), bit(a.Accepted)|bit(a.Confirmed)<<1)
	for _, v := range [...]uint64{uint64(uint32(a.Code)), uint64(uint32(a.LastError)), uint64(uint32(a.ID)), a.Handle, uint64(len(a.Data))} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(dst, a.Data...)
}

// reader takes apart what AppendBinary wrote. Its first error stays.
type reader struct {
	src []byte
	err error
}

func (r *reader) u() uint64 {
	v, n := binary.Uvarint(r.src)
	if n <= 0 {
		r.err, n = errState, 0
	}
	r.src = r.src[n:]
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.src)) {
		r.err = errState
		return make([]byte, min(n, 64))
	}
	b := r.src[:n]
	r.src = r.src[n:]
	return b
}

func (r *reader) part() []byte {
	return r.bytes(uint64(binary.LittleEndian.Uint32(r.bytes(4))))
}

// count reads how many of something there are.
func (r *reader) count(most uint64) uint64 {
	n := r.u()
	if n > most {
		r.err = errState
		return 0
	}
	return n
}

// SetBinary reads back what a state of the same system wrote. After an error
// the state is good for nothing but another SetBinary or CopyFrom.
func (s *State) SetBinary(src []byte) error {
	r := &reader{src: src}
	name := r.bytes(16)
	s.named = machine.Fingerprint{Hi: binary.LittleEndian.Uint64(name), Lo: binary.LittleEndian.Uint64(name[8:])}
	if err := s.w.SetState(r.part()); err != nil {
		return err
	}
	if err := s.dev.SetState(r.part()); err != nil {
		return err
	}
	rest, err := s.cmd.SetState(r.src)
	if err != nil {
		return err
	}
	r.src = rest
	h := r.bytes(6)
	s.host = host{runs: h[0], spare: h[1], polls: h[2], expiries: h[3], recoveries: h[4]}
	s.host.setFlags(h[5])
	copy(s.host.tried[:], r.bytes(uint64(s.sys.config.Slots)))
	s.calls = resize(s.calls, int(r.count(64)))
	for i := range s.calls {
		r.call(s, &s.calls[i])
	}
	if r.err == nil && len(r.src) > 0 {
		r.err = errState
	}
	s.isNamed = r.err == nil
	return r.err
}

func (r *reader) call(s *State, c *call) {
	answers := c.answers[:0]
	*c = call{}
	c.cmd.Ref, c.root = machine.UnpackRef(r.u()), machine.UnpackRef(r.u())
	c.cmd.Call = machine.CallID(r.u())
	c.cmd.Seq = r.u()
	c.row = machine.RowID(r.u())
	c.cmd.N = int(r.count(machine.MaxArgs))
	for i := range c.cmd.N {
		c.cmd.Args[i] = r.u()
	}
	if rules := s.sys.rules; int(c.cmd.Ref.Machine) >= rules.NumMachines() || int(c.root.Machine) >= rules.NumMachines() || int(c.cmd.Call) >= s.sys.calls ||
		int(c.row) >= rules.At(c.cmd.Ref.Machine).NumRows() {
		r.err = errState
		c.cmd.Ref, c.root, c.cmd.Call, c.row = machine.Ref{}, machine.Ref{}, 0, 0
	}
	c.ticket = sim.Ticket(r.u())
	n := r.count(1 << 12)
	for range n >> 2 {
		if r.err != nil {
			break
		}
		answers = append(answers, r.answer())
	}
	c.answers, c.refused, c.due = answers, n&2 != 0, n&1 != 0
	if c.due {
		v := r.u()
		c.res.Outcome, c.res.Accepted = machine.Outcome(v>>1), v&1 != 0
		v = r.u()
		c.res.Code, c.res.Last = int32(uint32(v>>32)), int32(uint32(v))
		c.res.Value = r.u()
	}
}

func (r *reader) answer() (a sim.Answer) {
	h := r.bytes(4)
	a.Outcome, a.Accepted, a.Confirmed = machine.Outcome(h[0]), h[3]&1 != 0, h[3]&2 != 0
	a.Status, a.Capture = backend.Status(h[1]), backend.Capture(h[2])
	a.Code, a.LastError, a.ID = backend.Code(uint32(r.u())), backend.Code(uint32(r.u())), int32(uint32(r.u()))
	a.Handle = r.u()
	if n := r.count(1 << 16); n > 0 {
		a.Data = append([]byte(nil), r.bytes(n)...)
	}
	return a
}
