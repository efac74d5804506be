package machine

// value says where a word comes from. The common places are looked up in it:
// whatever is read in most steps then lies together.
type value struct {
	kind valueKind
	base uint8 // where at is counted from: an index into frame.base
	at   int32
	c    uint64
	fn   func(*frame) uint64
}

type valueKind uint8

const (
	noValue   valueKind = iota // of what does not compile
	word                       // of the world
	wordIsArg                  // of a test only: the same, held against an argument
	peerState                  // the state of another instance
	argument                   // the event's argument at at
	selfState                  // the state of the instance
	computed                   // by fn
	constant                   // c
)

// Where a word is counted from.
const (
	fromStart  = iota // of the world
	fromSelf          // the instance whose facts have bare names
	fromBeside        // the instance that others are side by side with
	_                 // (A power of two: then an index needs no check. MaxArgs is one too.)
	numBases
)

// stateBits are the bits of a header that are the state.
const stateBits = 1<<16 - 1

// of returns the value.
func (v *value) of(fr *frame) uint64 {
	switch v.kind {
	case constant:
		return v.c
	case argument:
		return fr.args[uint32(v.at)%MaxArgs]
	case word:
		return fr.words[int(v.at)+fr.base[v.base%numBases]]
	case peerState:
		return fr.words[int(v.at)+fr.base[v.base%numBases]] & stateBits
	case selfState:
		return fr.state
	}
	return v.fn(fr)
}

// compute makes a value of a function.
func compute(fn func(*frame) uint64) value { return value{kind: computed, fn: fn} }

// name compiles a fact, or one of the words that stand alone.
func (x *exprCompiler) name(name string) value {
	switch name {
	case "self":
		return compute(func(fr *frame) uint64 { return fr.self.Pack() })
	case "state":
		return value{kind: selfState}
	}
	return value{kind: word, base: fromSelf, at: atFacts + int32(x.m.facts[name])}
}

// field compiles what stands behind a dot.
func (x *exprCompiler) field(e *Expr) value {
	switch e.Peer {
	case "arg":
		i, _ := x.ownArg(e)
		return value{kind: argument, at: int32(i)}
	case "view":
		v := x.views[e.Name]
		i := x.cellView(v)
		return compute(func(fr *frame) uint64 { return fr.see(i, v) })
	case "res":
		return x.answer(e)
	}
	if !x.viewing {
		x.c.fail("%s: facts of other instances are read through a view", e)
		return value{}
	}
	p := x.peer(e.Peer)
	at, isState := int32(atHeader), e.Name == "state"
	if !isState {
		at = atFacts + int32(p.facts[e.Name])
	}
	if x.m != nil {
		if f, ok := x.m.facts[e.Peer]; ok && x.m.factTy[f].Kind == RefTo {
			return named(f, p.id, int(at), isState)
		}
	}
	v := value{kind: word, base: fromStart, at: int32(p.off) + at}
	if isState {
		v.kind = peerState
	}
	if !x.peerKind(x.scope(), p) {
		v.base = fromBeside
		v.at -= int32(x.scope().off)
	}
	return v
}

// answer compiles a field of res.
func (x *exprCompiler) answer(e *Expr) value {
	if !x.settling {
		x.c.fail("%s: there is no answer yet; res belongs to the targets of a command", e)
		return value{}
	}
	switch e.Name {
	case "code":
		return compute(func(fr *frame) uint64 { return CodeWord(fr.res.Code) })
	case "last":
		return compute(func(fr *frame) uint64 { return CodeWord(fr.res.Last) })
	case "accepted":
		return compute(func(fr *frame) uint64 { return BoolWord(fr.res.Accepted) })
	}
	return compute(func(fr *frame) uint64 { return fr.res.Value })
}

// named is a word of the instance of a machine that a fact names; 0 if it names
// nothing, or an occupant that is gone.
func named(ref FactID, m MachineID, at int, isState bool) value {
	mask := ^uint64(0)
	if isState {
		mask = stateBits
	}
	return compute(func(fr *frame) uint64 {
		b := fr.w.named(fr.facts[ref], m)
		if b < 0 {
			return 0
		}
		return fr.words[b+at] & mask
	})
}

// see returns the value of a view of the row, which is looked at once a step.
func (f *frame) see(i int, v *view) uint64 {
	if f.seen>>i&1 == 0 {
		f.views[i] = v.eval.of(f)
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

// update changes a fact: to the value of to, or as do says.
type update struct {
	fact FactID
	to   value
	do   func(*frame) // of what may leave the range of the fact, or makes an identity
}

func change(us []update, f *frame) {
	for i := range us {
		switch u := &us[i]; {
		case u.do != nil:
			u.do(f)
		case u.to.kind == constant:
			f.facts[u.fact] = u.to.c
		default:
			f.facts[u.fact] = u.to.of(f)
		}
	}
}
