package promela

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

// RunModel is the run model of a shape as a system to be explored: the rules as
// hosts run them, and around them what run.pml.tmpl says. Its states are
// exact: nothing is renamed and no symmetry is used, so that they can be
// counted against SPIN's.
type RunModel struct {
	shape Shape
	rules *machine.Rules
	start *machine.World
	moves []move

	fence, token, join, order, lane *machine.Machine
	// facts has the kinds of each machine's facts, for the encoding.
	facts [][]machine.Type
	at    positions
}

// positions are where the facts are that invariants and the host read.
type positions struct {
	fenceArming, fenceCore, fenceCPU, fenceCoreRefs, fenceCPURefs machine.FactID
	tokenFence, tokenArming, tokenBoundary, tokenWaiter, tokenHolder,
	joinPred, joinArming, joinHome machine.FactID
	joinWait  [2]machine.FactID
	orderHeld machine.FactID
}

var _ explore.System = (*RunModel)(nil)

// NewRunModel makes the model of a shape under some rules, which are those of
// [RunRules] or a change of them.
func NewRunModel(rules *machine.Rules, s Shape) (*RunModel, error) {
	if s.Slots < 1 || s.Slots > mostSlots || s.Depth < 1 || s.Depth > mostDepth || s.Tokens > mostTokens || s.Runs < 1 || s.Edges < 0 || s.Edges > 3 {
		return nil, fmt.Errorf("%s: want at most %d slots, %d entries in a stream, %d tokens and 3 edges", s, mostSlots, mostDepth, mostTokens)
	}
	w, err := s.world(rules)
	if err != nil {
		return nil, err
	}
	m := &RunModel{
		shape: s, rules: rules, start: w,
		fence: rules.Machine("fence"), token: rules.Machine("token"), join: rules.Machine("join"), order: rules.Machine("caller_order"), lane: rules.Machine("lane"),
	}
	for i := range rules.NumMachines() {
		x := rules.At(machine.MachineID(i))
		var tys []machine.Type
		for f := range x.Definition().Facts {
			tys = append(tys, x.FactType(machine.FactID(f)))
		}
		m.facts = append(m.facts, tys)
	}
	p := &m.at
	for _, f := range []struct {
		to   *machine.FactID
		m    *machine.Machine
		name string
	}{
		{&p.fenceArming, m.fence, "arming"}, {&p.fenceCore, m.fence, "core"}, {&p.fenceCPU, m.fence, "cpu"},
		{&p.fenceCoreRefs, m.fence, "core_refs"}, {&p.fenceCPURefs, m.fence, "cpu_refs"},
		{&p.tokenFence, m.token, "fence"}, {&p.tokenArming, m.token, "arming"}, {&p.tokenBoundary, m.token, "boundary"},
		{&p.tokenWaiter, m.token, "waiter"}, {&p.tokenHolder, m.token, "holder"},
		{&p.joinPred, m.join, "pred"}, {&p.joinArming, m.join, "arming"}, {&p.joinHome, m.join, "home"},
		{&p.joinWait[0], m.join, "core_wait"}, {&p.joinWait[1], m.join, "cpu_wait"},
		{&p.orderHeld, m.order, "held"},
	} {
		*f.to = f.m.MustFact(f.name)
	}
	m.moves = m.host()
	return m, nil
}

// Name says what the model is and how it is bounded.
func (m *RunModel) Name() string { return "run model, " + m.shape.String() }

// Hash names the rules and the bounds.
func (m *RunModel) Hash() machine.Fingerprint {
	h := m.rules.Hash()
	text := m.shape.String()
	return machine.Fingerprint{Hi: xxhash.Sum64(h[:]), Lo: xxhash.Sum64String(text + string(h[:]))}
}

// MoveText writes a move.
func (m *RunModel) MoveText(_ explore.State, at explore.Move) string { return m.moves[at].text }

// New returns the state that everything begins with: every instance in its
// first state, every stream empty.
func (m *RunModel) New() explore.State { return m.newState() }

func (m *RunModel) newState() *state { return &state{m: m, w: m.start.Clone()} }

// state is one state of a RunModel.
type state struct {
	m     *RunModel
	w     *machine.World
	d     around
	bytes []byte
	words []uint64
}

// move is one thing that may happen: under may, the events fired in turn, and
// then what else it does.
type move struct {
	text string
	may  func(s *state) bool
	// fires are the events; none is a move of the device or the host alone.
	fires []fire
	// settle is the answer to a command in flight, next takes what waits, and
	// drop ends a token.
	settle     *machine.Result
	next, drop bool
	at         machine.Ref
	row        string
	do         func(s *state) broken
}

type fire struct {
	ref  machine.Ref
	ev   machine.EventID
	args []uint64
	// arm puts the next run's number where its identity goes.
	arm bool
}

// Moves lists what may happen.
func (s *state) Moves(dst []explore.Move) []explore.Move {
	for i := range s.m.moves {
		if s.offers(&s.m.moves[i]) {
			dst = append(dst, explore.Move(i))
		}
	}
	return dst
}

func (s *state) offers(v *move) bool {
	if v.may != nil && !v.may(s) {
		return false
	}
	switch {
	case v.settle != nil:
		_, flying, _ := s.w.State(s.now(v.at))
		return flying && s.w.StateName(s.now(v.at)) == v.row
	case v.next:
		_, flying, _ := s.w.State(s.now(v.at))
		return !flying && s.w.HasNext(s.now(v.at))
	case v.drop:
		st, _, _ := s.w.State(s.now(v.at))
		return s.m.token.Definition().States[st].Terminal
	}
	for i := range v.fires {
		f := &v.fires[i]
		if !s.w.Can(s.now(f.ref), f.ev, s.args(f)...) {
			return false
		}
	}
	return true
}

// now is the present occupant of a slot.
func (s *state) now(r machine.Ref) machine.Ref { return s.w.Ref(r.Machine, int(r.Slot)) }

func (s *state) args(f *fire) []uint64 {
	if f.arm {
		n := uint64(s.d.runs) + 1
		f = &fire{args: []uint64{n, generation, n}}
	}
	return f.args
}

// Take lets a move happen and looks at what it broke.
func (s *state) Take(at explore.Move) *explore.Finding {
	v := &s.m.moves[at]
	switch {
	case v.settle != nil:
		if step := s.w.Settle(s.now(v.at), *v.settle); step.Status == machine.Hole {
			return &explore.Finding{Kind: "hole", Detail: s.w.RefusalError(step).Error()}
		}
	case v.next:
		s.w.Next(s.now(v.at))
	case v.drop:
		s.w.Drop(s.now(v.at))
	}
	for i := range v.fires {
		f := &v.fires[i]
		if step := s.w.Issue(s.now(f.ref), f.ev, s.args(f)...); step.Status > machine.InFlight {
			return &explore.Finding{Kind: "hole", Detail: fmt.Sprintf("%s: %v", v.text, s.w.RefusalError(step))}
		}
	}
	if v.do != nil {
		if id := v.do(s); id != "" {
			return &explore.Finding{Kind: string(id), Detail: v.text}
		}
	}
	if id := s.check(); id != "" {
		return &explore.Finding{Kind: string(id), Detail: "after " + v.text}
	}
	return nil
}

// Final finds nothing wrong with a state in which nothing can happen: the
// model is about safety.
func (s *state) Final() *explore.Finding { return nil }

// exact appends the state without what the rules cannot tell: sequence
// numbers, and generations of tokens, which nothing refers to.
func (s *state) exact(dst []byte) []byte {
	for id, tys := range s.m.facts {
		mid := machine.MachineID(id)
		for slot := range s.w.Capacity(mid) {
			ref := s.w.Ref(mid, slot)
			st, flying, _ := s.w.State(ref)
			b := byte(st) << 2
			if flying {
				b |= 1
			}
			if mid == s.m.token.ID() && s.w.HasNext(ref) {
				b |= 2
			}
			dst = append(dst, b)
			s.words = s.w.AppendFacts(s.words[:0], ref)
			for i, v := range s.words {
				if tys[i].Kind == machine.RefTo && v != 0 {
					v = uint64(machine.UnpackRef(v).Slot) + 1
				}
				dst = append(dst, byte(v))
			}
		}
	}
	return s.d.append(dst)
}

func (a *around) append(dst []byte) []byte {
	for i := range a.stream {
		dst = append(dst, a.length[i])
		dst = append(dst, a.stream[i][:]...)
	}
	for _, list := range [][]bool{a.done[:], a.made[:], a.met[:], a.drained[:], a.joined[:], a.held[:]} {
		for _, b := range list {
			dst = append(dst, byte(machine.BoolWord(b)))
		}
	}
	for _, list := range [][]uint8{a.kernels[:], a.records[:], a.waits[:], a.occupant[:], a.call[:], a.queued[:]} {
		dst = append(dst, list...)
	}
	return append(dst, a.runs, a.resets)
}

func (a *around) read(src []byte) {
	next := func() byte { b := src[0]; src = src[1:]; return b }
	for i := range a.stream {
		a.length[i] = next()
		for j := range a.stream[i] {
			a.stream[i][j] = next()
		}
	}
	for _, list := range [][]bool{a.done[:], a.made[:], a.met[:], a.drained[:], a.joined[:], a.held[:]} {
		for i := range list {
			list[i] = next() != 0
		}
	}
	for _, list := range [][]uint8{a.kernels[:], a.records[:], a.waits[:], a.occupant[:], a.call[:], a.queued[:]} {
		for i := range list {
			list[i] = next()
		}
	}
	a.runs, a.resets = next(), next()
}

// Fingerprint hashes the state, exactly.
func (s *state) Fingerprint() machine.Fingerprint {
	s.bytes = s.exact(s.bytes[:0])
	var d xxhash.Digest
	d.ResetWithSeed(0x9e3779b97f4a7c15)
	d.Write(s.bytes)
	return machine.Fingerprint{Hi: d.Sum64(), Lo: xxhash.Sum64(s.bytes)}
}

var aroundSize = len((&around{}).append(nil))

// AppendBinary appends the state.
func (s *state) AppendBinary(dst []byte) []byte {
	return s.w.AppendBinary(s.d.append(dst))
}

// SetBinary reads back what AppendBinary wrote.
func (s *state) SetBinary(src []byte) error {
	if len(src) < aroundSize {
		return errors.New("promela: a state that is cut short")
	}
	s.d.read(src)
	return s.w.SetBinary(src[aroundSize:])
}

// CopyFrom makes the state a copy of another.
func (s *state) CopyFrom(o explore.State) {
	from := o.(*state)
	s.w.CopyFrom(from.w)
	s.d = from.d
}

// String writes the state, for findings.
func (s *state) String() string {
	var b strings.Builder
	for id := range s.m.facts {
		m := s.m.rules.At(machine.MachineID(id))
		for slot := range s.w.Capacity(m.ID()) {
			ref := s.w.Ref(m.ID(), slot)
			fmt.Fprintf(&b, "%s[%d] %s %v\n", m.Name(), slot, s.w.StateName(ref), s.w.AppendFacts(nil, ref))
		}
	}
	fmt.Fprintf(&b, "%+v\n", s.d)
	return b.String()
}

var _ = binary.AppendUvarint
