package machine

import (
	"slices"
	"strings"
)

// frame is what an expression sees: one instance, one event, one answer.
type frame struct {
	facts []uint64
	at    int // of the instance, in the world's words
	args  [MaxArgs]uint64
	views [MaxViews]uint64
	seen  uint16 // a bit for each view that was looked at
	res   Result
	state uint64
	self  Ref
	w     *World // for views and fresh; set once
	// outOfRange is 1 + the fact that an update would have pushed past its type.
	outOfRange int
	// said and during are what a refusal tells; see Step.
	said   uint64
	during RowID
}

type (
	boolFn   func(*frame) bool
	valueFn  func(*frame) uint64
	updateFn func(*frame)
)

// exprCompiler turns expressions into closures, in the scope of one row or view.
type exprCompiler struct {
	c        *compiler
	m        *Machine // whose facts bare names are; nil inside a view's outermost scope
	args     []Fact
	argTy    []Type
	views    map[string]*view
	cell     *cell
	reads    *uint16 // what is compiled reads these views after the step's first change; nil: before
	settling bool    // res may be read
	mints    bool    // an update made an identity
	viewing  bool    // facts of other instances may be read
	outer    *Machine
}

func (x *exprCompiler) parse(text string) *Expr {
	e, err := ParseExpr(text)
	if err != nil {
		x.c.fail("%v", err)
		return nil
	}
	return e
}

func (x *exprCompiler) boolText(text string) boolFn {
	e := x.parse(text)
	if e == nil {
		return nil
	}
	return x.boolean(e)
}

func (x *exprCompiler) valueText(text string, want Type) valueFn {
	e := x.parse(text)
	if e == nil {
		return nil
	}
	return x.value(e, want)
}

func (x *exprCompiler) anyText(text string) (valueFn, Type) {
	e := x.parse(text)
	if e == nil {
		return nil, Type{}
	}
	return x.any(e)
}

// any compiles an expression whose own form gives its type.
func (x *exprCompiler) any(e *Expr) (valueFn, Type) {
	ty, ok := x.typeOf(e)
	if !ok {
		x.explain(e)
		return nil, Type{}
	}
	return x.value(e, ty), ty
}

var bigInt = Type{Kind: Int, Max: 1<<63 - 1}

// typeOf returns the type of an expression that has one without context.
func (x *exprCompiler) typeOf(e *Expr) (Type, bool) {
	switch e.Op {
	case OpConst:
		return bigInt, true
	case OpName:
		switch e.Name {
		case "true", "false":
			return Type{Kind: Bool}, true
		case "self":
			if x.outer != nil {
				return Type{Kind: RefTo, Name: x.outer.def.Name, peer: x.outer.id}, true
			}
			return Type{Kind: RefTo, Name: x.m.def.Name, peer: x.m.id}, true
		case "state":
			return Type{Kind: stateOf, Name: x.m.def.Name}, true
		}
		if f, ok := x.m.facts[e.Name]; ok {
			return x.m.factTy[f], true
		}
	case OpField:
		switch e.Peer {
		case "arg":
			for i, a := range x.args {
				if a.Name == e.Name {
					return x.argTy[i], true
				}
			}
			return Type{}, false
		case "view":
			if v := x.views[e.Name]; v != nil {
				return v.ty, true
			}
			return Type{}, false
		case "res":
			switch e.Name {
			case "code", "last":
				return Type{Kind: Code}, true
			case "accepted":
				return Type{Kind: Bool}, true
			case "value":
				return bigInt, true
			}
			return Type{}, false
		}
		if p := x.peer(e.Peer); p != nil {
			if e.Name == "state" {
				return Type{Kind: stateOf, Name: p.def.Name}, true
			}
			if f, ok := p.facts[e.Name]; ok {
				return p.factTy[f], true
			}
		}
	case OpAnd, OpOr, OpNot, OpEq, OpLess:
		return Type{Kind: Bool}, true
	case OpCall:
		switch e.Name {
		case "any":
			return Type{Kind: Bool}, true
		case "count":
			return bigInt, true
		case "first":
			if len(e.Args) == 2 {
				return Type{Kind: RefTo, Name: e.Args[0].Name}, true
			}
		}
	}
	return Type{}, false
}

// isAnswer reports whether e is res.value, which is whatever type is wanted: the
// rules cannot know what a call brings.
func (e *Expr) isAnswer() bool { return e.Op == OpField && e.Peer == "res" && e.Name == "value" }

// peer finds the machine that a name before a dot stands for.
func (x *exprCompiler) peer(name string) *Machine {
	if x.m != nil {
		if f, ok := x.m.facts[name]; ok && x.m.factTy[f].Kind == RefTo {
			return x.c.rules.byName[x.m.factTy[f].Name]
		}
	}
	return x.c.rules.byName[name]
}

func (x *exprCompiler) boolean(e *Expr) boolFn { return x.test(e, true) }

// test compiles a condition, or its contrary if want is false.
func (x *exprCompiler) test(e *Expr, want bool) boolFn {
	switch e.Op {
	case OpNot:
		return x.test(e.Args[0], !want)
	case OpAnd, OpOr:
		return x.combine(e, want)
	case OpEq:
		return x.equal(e, want)
	case OpLess:
		a, at := x.any(e.Args[0])
		b, bt := x.any(e.Args[1])
		if a == nil || b == nil {
			return nil
		}
		if at.Kind != Int || bt.Kind != Int {
			x.c.fail("%s: < is only for int", e)
			return nil
		}
		return func(fr *frame) bool { return (a(fr) < b(fr)) == want }
	}
	v := x.value(e, Type{Kind: Bool})
	if v == nil {
		return nil
	}
	if o, ok := x.operand(e); ok {
		return o.is(0, !want)
	}
	return func(fr *frame) bool { return (v(fr) != 0) == want }
}

// combine compiles && and ||. Words of the world that stand together are gone
// through in one loop.
func (x *exprCompiler) combine(e *Expr, want bool) boolFn {
	and := (e.Op == OpAnd) == want
	var fs []boolFn
	var run []term
	for i, a := range e.Args {
		f := x.test(a, want)
		t, ok := x.term(a, want)
		if ok {
			run = append(run, t)
		}
		if len(run) > 0 && (!ok || i == len(e.Args)-1) {
			fs = append(fs, every(run, and))
			run = nil
		}
		if !ok {
			fs = append(fs, f)
		}
	}
	switch len(fs) {
	case 1:
		return fs[0]
	case 2:
		a, b := fs[0], fs[1]
		if and {
			return func(fr *frame) bool { return a(fr) && b(fr) }
		}
		return func(fr *frame) bool { return a(fr) || b(fr) }
	}
	return func(fr *frame) bool {
		for _, f := range fs {
			if f(fr) != and {
				return !and
			}
		}
		return and
	}
}

// term reports whether a condition that compiles is a term.
func (x *exprCompiler) term(e *Expr, want bool) (t term, ok bool) {
	for ; e.Op == OpNot; e = e.Args[0] {
		want = !want
	}
	c := uint64(0)
	if e.Op == OpEq {
		ty, ok := x.typeOf(e.Args[0])
		if !ok {
			return t, false
		}
		if c, ok = x.constant(e.Args[1], ty); !ok {
			return t, false
		}
		e = e.Args[0]
	} else {
		want = !want
	}
	if e.Op != OpField || e.Peer == "arg" || e.Peer == "res" || e.Peer == "view" || x.peer(e.Peer) == nil {
		return t, false
	}
	o, ok := x.operand(e)
	if !ok {
		return t, false
	}
	return o.term(c, want)
}

func (x *exprCompiler) equal(e *Expr, want bool) boolFn {
	l, r := e.Args[0], e.Args[1]
	ty, ok := x.typeOf(l)
	if !ok || l.Op == OpConst || l.isAnswer() {
		if rt, rok := x.typeOf(r); rok {
			ty, ok = rt, true
		}
	}
	if !ok {
		x.explain(l)
		return nil
	}
	a, b := x.value(l, ty), x.value(r, ty)
	if a == nil || b == nil {
		return nil
	}
	lc, lconst := x.constant(l, ty)
	rc, rconst := x.constant(r, ty)
	if !lconst {
		if o, ok := x.operand(l); ok {
			if rconst {
				return o.is(rc, want)
			}
			if p, ok := x.operand(r); ok {
				return o.same(p, want)
			}
		}
	} else if o, ok := x.operand(r); ok && !rconst {
		return o.is(lc, want)
	}
	return func(fr *frame) bool { return (a(fr) == b(fr)) == want }
}

func (x *exprCompiler) ownArg(e *Expr) (int, bool) {
	if e.Op == OpField && e.Peer == "arg" {
		for i, a := range x.args {
			if a.Name == e.Name {
				return i, true
			}
		}
	}
	return 0, false
}

// constant evaluates a literal of the type.
func (x *exprCompiler) constant(e *Expr, ty Type) (uint64, bool) {
	switch e.Op {
	case OpConst:
		switch {
		case ty.Kind == Int && e.Value >= 0 && uint64(e.Value) <= ty.Max:
			return uint64(e.Value), true
		case ty.Kind == Code && int64(int32(e.Value)) == e.Value:
			return CodeWord(int32(e.Value)), true
		}
	case OpName:
		switch {
		case ty.Kind == Bool && e.Name == "true":
			return 1, true
		case ty.Kind == Bool && e.Name == "false":
			return 0, true
		case (ty.Kind == ID || ty.Kind == RefTo) && e.Name == "none":
			return 0, true
		case ty.Kind == Enum:
			if x.m != nil {
				if _, isFact := x.m.facts[e.Name]; isFact {
					return 0, false
				}
			}
			for i, n := range ty.Names {
				if n == e.Name {
					return uint64(i), true
				}
			}
		}
	case OpText:
		if ty.Kind == stateOf {
			s, ok := x.c.rules.byName[ty.Name].states[e.Name]
			return uint64(s), ok
		}
	}
	return 0, false
}

// explain reports why an expression has no meaning here.
func (x *exprCompiler) explain(e *Expr) {
	switch {
	case e.Op == OpName && x.m != nil:
		x.c.fail("%s", unknown("fact", e.Name, x.m.facts))
	case e.Op == OpField && e.Peer == "arg":
		names := make([]string, len(x.args))
		for i, a := range x.args {
			names[i] = a.Name
		}
		x.c.fail("%s", Unknown("argument", e.Name, names))
	case e.Op == OpField && e.Peer == "view":
		x.c.fail("%s", unknown("view", e.Name, x.views))
	case e.Op == OpField && e.Peer == "res":
		x.c.fail("%s", Unknown("field of res", e.Name, []string{"code", "last", "accepted", "value"}))
	case e.Op == OpField && x.peer(e.Peer) == nil:
		x.c.fail("%s", unknown("machine", e.Peer, x.c.rules.byName))
	case e.Op == OpField:
		x.c.fail("%s", unknown("fact of "+e.Peer, e.Name, x.peer(e.Peer).facts))
	default:
		x.c.fail("%s has no meaning here", e)
	}
}

// value compiles an expression that must be of the type.
func (x *exprCompiler) value(e *Expr, want Type) valueFn {
	if c, ok := x.constant(e, want); ok {
		return func(*frame) uint64 { return c }
	}
	if e.Op == OpConst || e.Op == OpText {
		x.c.fail("%s is not a value of type %s", e, want)
		return nil
	}
	ty, ok := x.typeOf(e)
	if !ok {
		if want.Kind == Enum && e.Op == OpName {
			x.c.fail("%s", Unknown("name of "+want.String(), e.Name, want.Names))
		} else {
			x.explain(e)
		}
		return nil
	}
	if !ty.matches(want) && !e.isAnswer() {
		x.c.fail("%s is of type %s, not %s", e, ty, want)
		return nil
	}
	switch e.Op {
	case OpName:
		if e.Name == "self" {
			return func(fr *frame) uint64 { return fr.self.Pack() }
		}
		o, _ := x.operand(e)
		return o.value()
	case OpField:
		return x.field(e)
	case OpCall:
		return x.aggregate(e)
	}
	b := x.boolean(e)
	if b == nil {
		return nil
	}
	return func(fr *frame) uint64 { return BoolWord(b(fr)) }
}

func (x *exprCompiler) field(e *Expr) valueFn {
	switch e.Peer {
	case "arg", "view":
	case "res":
		if !x.settling {
			x.c.fail("%s: there is no answer yet; res belongs to the targets of a command", e)
			return nil
		}
		switch e.Name {
		case "code":
			return func(fr *frame) uint64 { return CodeWord(fr.res.Code) }
		case "last":
			return func(fr *frame) uint64 { return CodeWord(fr.res.Last) }
		case "accepted":
			return func(fr *frame) uint64 { return BoolWord(fr.res.Accepted) }
		}
		return func(fr *frame) uint64 { return fr.res.Value }
	default:
		if !x.viewing {
			x.c.fail("%s: facts of other instances are read through a view", e)
			return nil
		}
	}
	o, _ := x.operand(e)
	return o.value()
}

func (x *exprCompiler) scope() *Machine {
	if x.outer != nil {
		return x.outer
	}
	return x.m
}

// peerKind checks that p is a single instance or stands side by side with m.
func (x *exprCompiler) peerKind(m, p *Machine) (single bool) {
	if p.def.Pool != "" && p.def.Pool != m.def.Pool {
		x.c.fail("%s is in pool %q: name an instance by a ref", p.def.Name, p.def.Pool)
	}
	return p.def.Pool == ""
}

// cellView gives a view its place among the views of the cell.
func (x *exprCompiler) cellView(v *view) int {
	i := slices.Index(x.cell.views, v)
	if i < 0 {
		i = len(x.cell.views)
		x.cell.views = append(x.cell.views, v)
	}
	if i >= MaxViews {
		return 0 // reported once the row is done
	}
	if x.reads != nil {
		*x.reads |= 1 << i
	}
	return i
}

// aggregate compiles any(machine, e), count(machine, e) and first(machine, e).
func (x *exprCompiler) aggregate(e *Expr) valueFn {
	if !x.viewing {
		x.c.fail("%s: other instances are read through a view", e)
		return nil
	}
	if len(e.Args) != 2 || e.Args[0].Op != OpName {
		x.c.fail("%s: want %s(machine, expression)", e, e.Name)
		return nil
	}
	p := x.c.rules.byName[e.Args[0].Name]
	if p == nil {
		x.c.fail("%s", unknown("machine", e.Args[0].Name, x.c.rules.byName))
		return nil
	}
	if x.outer != nil {
		x.c.fail("%s: no nesting", e)
		return nil
	}
	in := &exprCompiler{c: x.c, m: p, viewing: true, outer: x.m}
	cond, state := in.boolean(e.Args[1]), in.stateOf(e.Args[1])
	count, first, nf := e.Name == "count", e.Name == "first", len(p.factTy)
	return func(fr *frame) uint64 {
		var n uint64
		w := fr.w
		inner := &w.inner
		inner.self = fr.self
		at := &w.pools[p.id]
		for s, b := 0, at.at; s < at.capacity; s, b = s+1, b+at.stride {
			h := unpackHeader(w.words[b])
			if state >= 0 && int(h.state) != state {
				continue
			}
			inner.facts = w.words[b+atFacts : b+atFacts+nf]
			inner.state = uint64(h.state)
			if cond(inner) {
				if first {
					return Ref{Machine: p.id, Slot: uint16(s), Gen: h.gen}.Pack()
				}
				n++
				if !count {
					return 1
				}
			}
		}
		return n
	}
}

// stateOf returns the state that an instance must be in for a condition to
// hold, or -1: where a machine is gone through, most are told by it.
func (x *exprCompiler) stateOf(e *Expr) int {
	switch {
	case e.Op == OpAnd:
		for _, a := range e.Args {
			if s := x.stateOf(a); s >= 0 {
				return s
			}
		}
	case e.Op == OpEq && e.Args[0].Op == OpName && e.Args[0].Name == "state":
		if s, ok := x.constant(e.Args[1], Type{Kind: stateOf, Name: x.m.def.Name}); ok {
			return int(s)
		}
	}
	return -1
}

func (c *compiler) view(v View) *view {
	x := &exprCompiler{c: c, m: c.m, viewing: true}
	eval, ty := x.anyText(v.Expr)
	if ty.Kind == stateOf {
		c.fail("%s: compare the state with a name", v.Name)
	}
	return &view{name: v.Name, ty: ty, eval: eval}
}

// updates compiles a list of updates; an update past its type's range marks the frame.
func (x *exprCompiler) updates(text string) []updateFn {
	us, err := ParseUpdates(text)
	if err != nil {
		x.c.fail("%v", err)
		return nil
	}
	var out []updateFn
	for _, u := range us {
		f, ok := x.m.facts[u.Fact]
		if !ok {
			x.c.fail("%s", unknown("fact", u.Fact, x.m.facts))
			continue
		}
		ty := x.m.factTy[f]
		switch {
		case u.Op != Assign && ty.Kind != Int:
			x.c.fail("%s: only an int can be counted", u)
		case u.Op == Increment:
			x.m.careful = true
			most := ty.Max
			out = append(out, func(fr *frame) {
				if fr.facts[f] >= most {
					fr.outOfRange = int(f) + 1
					return
				}
				fr.facts[f]++
			})
		case u.Op == Decrement:
			x.m.careful = true
			out = append(out, func(fr *frame) {
				if fr.facts[f] == 0 {
					fr.outOfRange = int(f) + 1
					return
				}
				fr.facts[f]--
			})
		case u.Expr.Op == OpCall && u.Expr.Name == "fresh":
			if ty.Kind != ID || len(u.Expr.Args) > 0 {
				x.c.fail("%s: fresh() makes an identity", u)
				continue
			}
			x.mints = true
			out = append(out, func(fr *frame) { fr.facts[f] = fr.w.fresh(ty.sort) })
		default:
			if c, ok := x.constant(u.Expr, ty); ok {
				out = append(out, func(fr *frame) { fr.facts[f] = c })
				continue
			}
			v := x.value(u.Expr, ty)
			if v == nil {
				continue
			}
			if u.Expr.isAnswer() {
				x.m.careful = true
				out = append(out, func(fr *frame) {
					n := v(fr)
					if !ty.check(n) {
						fr.outOfRange = int(f) + 1
						return
					}
					fr.facts[f] = n
				})
				continue
			}
			if ty.Kind == Int {
				x.m.careful = true
				most := ty.Max
				out = append(out, func(fr *frame) {
					n := v(fr)
					if n > most {
						fr.outOfRange = int(f) + 1
						return
					}
					fr.facts[f] = n
				})
				continue
			}
			if i, ok := x.ownArg(u.Expr); ok {
				out = append(out, func(fr *frame) { fr.facts[f] = fr.args[i] })
				continue
			}
			out = append(out, func(fr *frame) { fr.facts[f] = v(fr) })
		}
	}
	return out
}

func (x *exprCompiler) sends(texts []string) []send {
	x.c.atMost(len(texts), maxSends, "events")
	var out []send
	for _, t := range texts {
		if s, ok := x.send(t); ok {
			out = append(out, s)
		}
	}
	return out
}

func (x *exprCompiler) send(text string) (send, bool) {
	inv, err := ParseInvocation(text)
	if err != nil {
		x.c.fail("%v", err)
		return send{}, false
	}
	if inv.Peer == "" {
		x.c.fail("%q: want peer.event(arguments)", text)
		return send{}, false
	}
	s := send{printed: strings.TrimSpace(text)}
	var to *Machine
	if inv.Peer == "self" {
		s.self, to = true, x.m
	} else {
		to = x.peer(inv.Peer)
		if to == nil {
			x.c.fail("%s", unknown("machine", inv.Peer, x.c.rules.byName))
			return send{}, false
		}
		if f, ok := x.m.facts[inv.Peer]; ok && x.m.factTy[f].Kind == RefTo {
			s.byRef, s.ref = true, f
		} else {
			x.peerKind(x.m, to)
		}
	}
	s.peer = to.id
	ev, ok := to.events[inv.Name]
	if !ok {
		x.c.fail("%s", unknown("event of "+to.def.Name, inv.Name, to.events))
		return send{}, false
	}
	s.ev = ev
	tys := to.argTy[ev]
	if len(tys) != len(inv.Args) {
		x.c.fail("%q: %d arguments, %s.%s takes %d", text, len(inv.Args), to.def.Name, inv.Name, len(tys))
		return send{}, false
	}
	s.fits = true
	for i, a := range inv.Args {
		v := x.value(a, tys[i])
		if v == nil {
			return send{}, false
		}
		s.fits = s.fits && x.fits(a, tys[i])
		s.args = append(s.args, v)
	}
	return s, true
}

// fits reports whether what an expression gives is of the type, whatever happens:
// a count may be too high for it, and an answer may be anything.
func (x *exprCompiler) fits(e *Expr, ty Type) bool {
	if _, ok := x.constant(e, ty); ok {
		return true
	}
	own, ok := x.typeOf(e)
	return ok && !e.isAnswer() && (ty.Kind != Int || own.Max <= ty.Max)
}

func (x *exprCompiler) command(r *row, text string) {
	inv, err := ParseInvocation(text)
	if err != nil {
		x.c.fail("%v", err)
		return
	}
	if inv.Peer != "" {
		x.c.fail("%q: want Name(arguments)", text)
		return
	}
	if len(inv.Args) > MaxArgs {
		x.c.fail("%q: at most %d arguments", text, MaxArgs)
		return
	}
	rs := x.c.rules
	id, ok := rs.callID[inv.Name]
	if !ok {
		id = CallID(len(rs.calls))
		rs.callID[inv.Name] = id
		rs.calls = append(rs.calls, inv.Name)
	}
	r.call = id
	for _, a := range inv.Args {
		v, ty := x.any(a)
		if v == nil {
			return
		}
		r.callArgs = append(r.callArgs, v)
		r.callTy = append(r.callTy, ty)
	}
	x.m.maxCall = max(x.m.maxCall, len(r.callArgs))
}
