package machine

// source says where an operand is found.
type source uint8

const (
	ownFact source = iota
	ownState
	ofArg
	ofView
	onlyFact // of the only instance of a machine
	onlyState
	peerFact // of the instance side by side with self
	peerState
	namedFact // of the instance that a fact names
	namedState
)

// operand is a value that is read and not computed. What reads one, or holds one
// against a constant, is one closure instead of three.
type operand struct {
	from source
	i    int       // the fact, argument or view
	m    MachineID // of others' facts and states
	ref  FactID    // which fact names the instance
	view *view
}

// operand finds what an expression reads that is known to have a type.
func (x *exprCompiler) operand(e *Expr) (o operand, ok bool) {
	switch {
	case e.Op == OpName && x.m != nil:
		if e.Name == "state" {
			return operand{from: ownState}, true
		}
		f, ok := x.m.facts[e.Name]
		return operand{from: ownFact, i: int(f)}, ok
	case e.Op != OpField || e.Peer == "res":
		return o, false
	case e.Peer == "arg":
		i, ok := x.ownArg(e)
		return operand{from: ofArg, i: i}, ok
	case e.Peer == "view":
		v := x.views[e.Name]
		return operand{from: ofView, i: x.cellView(v), view: v}, true
	}
	p := x.peer(e.Peer)
	o.m = p.id
	if e.Name == "state" {
		o.from = onlyState
	} else {
		o.from, o.i = onlyFact, int(p.facts[e.Name])
	}
	if x.m != nil {
		if rf, ok := x.m.facts[e.Peer]; ok && x.m.factTy[rf].Kind == RefTo {
			o.ref = rf
			o.from += namedFact - onlyFact
			return o, true
		}
	}
	if !x.peerKind(x.scope(), p) {
		o.from += peerFact - onlyFact
	}
	return o, true
}

// see returns the value of a view of the row, which is looked at once a step.
func (f *frame) see(i int, v *view) uint64 {
	if f.seen>>i&1 == 0 {
		f.views[i] = v.eval(f)
		f.seen |= 1 << i
	}
	return f.views[i]
}

// named returns the place of the instance of a machine that a packed Ref names,
// or -1 for one that names nothing or an occupant that is gone.
func (w *World) named(packed uint64, m MachineID) int {
	p := &w.pools[m]
	slot := int(uint16(packed >> 8))
	if packed == 0 || slot >= p.capacity {
		return -1
	}
	b := p.at + slot*p.stride
	if w.words[b]>>32 != packed>>24 {
		return -1
	}
	return b
}

// value compiles an operand.
func (o operand) value() valueFn {
	i, m, ref := o.i, o.m, o.ref
	at := atFacts + i
	switch o.from {
	case ownFact:
		return func(fr *frame) uint64 { return fr.facts[i] }
	case ownState:
		return func(fr *frame) uint64 { return fr.state }
	case ofArg:
		return func(fr *frame) uint64 { return fr.args[i] }
	case ofView:
		v := o.view
		return func(fr *frame) uint64 { return fr.see(i, v) }
	case namedFact:
		return func(fr *frame) uint64 {
			b := fr.w.named(fr.facts[ref], m)
			if b < 0 {
				return 0
			}
			return fr.w.words[b+at]
		}
	case namedState:
		return func(fr *frame) uint64 {
			b := fr.w.named(fr.facts[ref], m)
			if b < 0 {
				return 0
			}
			return fr.w.words[b] & stateBits
		}
	}
	t, _ := o.term(0, true)
	return func(fr *frame) uint64 { return t.read(fr) }
}

// is compiles o == c, or its contrary if want is false.
func (o operand) is(c uint64, want bool) boolFn {
	i := o.i
	switch o.from {
	case ownFact:
		return func(fr *frame) bool { return (fr.facts[i] == c) == want }
	case ownState:
		return func(fr *frame) bool { return (fr.state == c) == want }
	case ofArg:
		return func(fr *frame) bool { return (fr.args[i] == c) == want }
	case ofView:
		v := o.view
		return func(fr *frame) bool { return (fr.see(i, v) == c) == want }
	case namedFact, namedState:
		v := o.value()
		return func(fr *frame) bool { return (v(fr) == c) == want }
	}
	t, _ := o.term(c, want)
	return func(fr *frame) bool { return t.holds(fr) }
}

// same compiles o == p, or its contrary if want is false.
func (o operand) same(p operand, want bool) boolFn {
	if o.from > p.from {
		o, p = p, o
	}
	i, j, v := o.i, p.i, p.view
	switch {
	case o.from == ownFact && p.from == ofArg:
		return func(fr *frame) bool { return (fr.facts[i] == fr.args[j]) == want }
	case o.from == ownFact && p.from == ofView:
		return func(fr *frame) bool { return (fr.facts[i] == fr.see(j, v)) == want }
	case o.from == ofArg && p.from == ofView:
		return func(fr *frame) bool { return (fr.args[i] == fr.see(j, v)) == want }
	}
	l, r := o.value(), p.value()
	return func(fr *frame) bool { return (l(fr) == r(fr)) == want }
}

// term is a word of the world held against a constant: of the only instance of
// a machine, or of the one side by side.
type term struct {
	m    MachineID
	want bool
	slot int // 1 side by side, 0 for the only instance
	at   int
	mask uint64
	c    uint64
}

// stateBits are the bits of a header that are the state.
const stateBits = 1<<16 - 1

// term makes one of o == c, if o is such a word.
func (o operand) term(c uint64, want bool) (t term, ok bool) {
	t = term{m: o.m, want: want, at: atFacts + o.i, mask: 1<<64 - 1, c: c}
	switch o.from {
	case onlyState, peerState:
		t.at, t.mask = atHeader, stateBits
	case onlyFact, peerFact:
	default:
		return t, false
	}
	if o.from == peerFact || o.from == peerState {
		t.slot = 1
	}
	return t, true
}

func (t *term) read(fr *frame) uint64 {
	w := fr.w
	p := &w.pools[t.m]
	return w.words[p.at+t.slot*int(fr.self.Slot)*p.stride+t.at] & t.mask
}

func (t *term) holds(fr *frame) bool { return (t.read(fr) == t.c) == t.want }

// every compiles terms of which all must hold, or any if and is false.
func every(ts []term, and bool) boolFn {
	if len(ts) == 1 {
		t := ts[0]
		return func(fr *frame) bool { return t.holds(fr) }
	}
	return func(fr *frame) bool {
		for i := range ts {
			if ts[i].holds(fr) != and {
				return !and
			}
		}
		return and
	}
}
