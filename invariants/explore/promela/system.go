package promela

import (
	"errors"
	"fmt"
	"slices"
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
	facts     [][]machine.Type
	instances []machine.Ref
	at        positions
	is        constants
}

// constants are the states and values that invariants and the host compare with.
type constants struct {
	armed, released, joining, quarantined, free, spent, reserved machine.StateID
	counted                                                      uint64 // the token's, as a set
	recorded, complete, noWait, waitReserved, waitQueued         uint64
	unheld, holding                                              uint64
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
	if err := s.validate(); err != nil {
		return nil, err
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
		{&p.fenceArming, m.fence, "arming"},
		{&p.fenceCore, m.fence, "core"},
		{&p.fenceCPU, m.fence, "cpu"},
		{&p.fenceCoreRefs, m.fence, "core_refs"},
		{&p.fenceCPURefs, m.fence, "cpu_refs"},
		{&p.tokenFence, m.token, "fence"},
		{&p.tokenArming, m.token, "arming"},
		{&p.tokenBoundary, m.token, "boundary"},
		{&p.tokenWaiter, m.token, "waiter"},
		{&p.tokenHolder, m.token, "holder"},
		{&p.joinPred, m.join, "pred"},
		{&p.joinArming, m.join, "arming"},
		{&p.joinHome, m.join, "home"},
		{&p.joinWait[0], m.join, "core_wait"},
		{&p.joinWait[1], m.join, "cpu_wait"},
		{&p.orderHeld, m.order, "held"},
	} {
		*f.to = f.m.MustFact(f.name)
	}
	m.bind()
	m.moves = m.host()
	for i := range m.moves {
		m.confine(&m.moves[i])
	}
	return m, nil
}

// bind lists the instances, and finds what invariants compare with.
func (m *RunModel) bind() {
	for id := range m.facts {
		for slot := range m.start.Capacity(machine.MachineID(id)) {
			m.instances = append(m.instances, machine.Ref{Machine: machine.MachineID(id), Slot: uint16(slot)})
		}
	}
	state := func(of *machine.Machine, name string) machine.StateID { id, _ := of.State(name); return id }
	value := func(of *machine.Machine, f machine.FactID, name string) uint64 {
		v, _ := of.FactType(f).Parse(name)
		return v
	}
	c := &m.is
	c.armed, c.released, c.joining = state(m.fence, "armed"), state(m.fence, "released"), state(m.join, "joining")
	c.quarantined = state(m.lane, "quarantined")
	for _, name := range []string{"reserved", "queueing", "committed"} {
		c.counted |= 1 << state(m.token, name)
	}
	c.free, c.spent, c.reserved = state(m.token, "free"), state(m.token, "spent"), state(m.token, "reserved")
	c.recorded, c.complete = value(m.fence, m.at.fenceCore, "recorded"), value(m.fence, m.at.fenceCore, "complete")
	c.noWait, c.waitReserved, c.waitQueued = value(m.join, m.at.joinWait[0], "no_wait"), value(m.join, m.at.joinWait[0], "reserved"), value(m.join, m.at.joinWait[0], "queued")
	c.unheld, c.holding = value(m.order, m.at.orderHeld, "no_wait"), value(m.order, m.at.orderHeld, "reserved")
}

// confine finds the states in which a move may happen at all: what is refused
// in all others need not be tried.
func (m *RunModel) confine(v *move) {
	at := v.at
	switch {
	case v.settle != nil:
		v.from = 1 << inFlight
	case v.next:
		v.from = 1<<inFlight - 1
	case v.drop:
		for i, st := range m.token.Definition().States {
			if st.Terminal && !st.Kept {
				v.from |= 1 << i
			}
		}
	case len(v.fires) > 0:
		at = v.fires[0].ref
		of := m.rules.At(at.Machine)
		for st := range of.NumStates() {
			if slices.Contains(of.Accepts(machine.StateID(st), machine.NoRowID), v.fires[0].ev) {
				v.from |= 1 << st
			}
		}
		for _, r := range of.Definition().Rows {
			if strings.Contains(r.From, "▸") {
				v.from |= 1 << inFlight
			}
		}
	}
	v.of = slices.Index(m.instances, at)
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

func (m *RunModel) newState() *state {
	return &state{m: m, w: m.start.Clone(), states: make([]uint64, len(m.instances))}
}

// state is one state of a RunModel.
type state struct {
	m *RunModel
	w *machine.World
	d around
	// Working memory.
	bytes    []byte
	words    []uint64
	states   []uint64 // of each instance, as a set of one
	identity [3]uint64
}

// inFlight stands for every state with a command in flight, in a set of states.
const inFlight = 63

// move is one thing that may happen: under may, the events fired in turn, and
// then what else it does.
type move struct {
	text string
	may  func(s *state) bool
	// from is the set of states of instance of in which it may happen at all;
	// empty says nothing.
	from uint64
	of   int
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
	for i, at := range s.m.instances {
		st, flying, _ := s.w.State(s.now(at))
		s.states[i] = 1 << st
		if flying {
			s.states[i] = 1 << inFlight
		}
	}
	for i := range s.m.moves {
		v := &s.m.moves[i]
		if v.from != 0 && v.from&s.states[v.of] == 0 || v.may != nil && !v.may(s) {
			continue
		}
		if v.next && !s.w.HasNext(s.now(v.at)) || v.settle != nil && s.w.StateName(s.now(v.at)) != v.row || !s.accepts(v) {
			continue
		}
		dst = append(dst, explore.Move(i))
	}
	return dst
}

func (s *state) accepts(v *move) bool {
	for i := range v.fires {
		f := &v.fires[i]
		if !s.w.Can(s.now(f.ref), f.ev, s.args(f)...) {
			return false
		}
	}
	return true
}

// now is the present occupant of a slot.
func (s *state) now(r machine.Ref) machine.Ref {
	if r.Machine == s.m.token.ID() {
		return s.w.Ref(r.Machine, int(r.Slot))
	}
	return r
}

func (s *state) args(f *fire) []uint64 {
	if f.arm {
		n := uint64(s.d.runs) + 1
		s.identity = [3]uint64{n, generation, n}
		return s.identity[:]
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
	token := s.m.token.ID()
	for _, at := range s.m.instances {
		if s.m.constant(at) {
			continue
		}
		ref := s.now(at)
		st, flying, _ := s.w.State(ref)
		b := byte(st) << 2
		if flying {
			b |= 1
		}
		if at.Machine == token && s.w.HasNext(ref) {
			b |= 2
		}
		dst = append(dst, b)
		s.words = s.w.AppendFacts(s.words[:0], ref)
		tys := s.m.facts[at.Machine]
		for i, v := range s.words {
			if v != 0 && tys[i].Kind == machine.RefTo {
				v = uint64(machine.UnpackRef(v).Slot) + 1
			}
			dst = append(dst, byte(v))
		}
	}
	return s.d.append(dst)
}

// constant reports whether nothing that may happen reaches an instance.
func (m *RunModel) constant(at machine.Ref) bool {
	switch at.Machine {
	case m.token.ID():
		return m.shape.Tokens == 0
	case m.join.ID():
		return !m.shape.Join && m.shape.Resets == 0
	case m.order.ID():
		return !m.shape.Caller && m.shape.Resets == 0
	case m.lane.ID():
		return !m.shape.Quarantine
	}
	return at.Machine != m.fence.ID()
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
	return s.w.AppendState(s.d.append(dst))
}

// SetBinary reads back what AppendBinary wrote.
func (s *state) SetBinary(src []byte) error {
	if len(src) < aroundSize {
		return errors.New("promela: a state that is cut short")
	}
	s.d.read(src)
	return s.w.SetState(src[aroundSize:])
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
