package machine

import (
	"slices"
	"strings"
)

// frame is what an expression sees: one instance, one event, one answer.
type frame struct {
	words []uint64 // the world's
	facts []uint64
	base  [numBases]int // see fromStart and the others
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

// exprCompiler turns expressions into values and decisions, in the scope of one
// row or view.
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

func (x *exprCompiler) valueText(text string, want Type) value {
	e := x.parse(text)
	if e == nil {
		return value{}
	}
	return x.value(e, want)
}

func (x *exprCompiler) anyText(text string) (value, Type) {
	e := x.parse(text)
	if e == nil {
		return value{}, Type{}
	}
	return x.any(e)
}

// any compiles an expression whose own form gives its type.
func (x *exprCompiler) any(e *Expr) (value, Type) {
	ty, ok := x.typeOf(e)
	if !ok {
		x.explain(e)
		return value{}, Type{}
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
func (x *exprCompiler) value(e *Expr, want Type) value {
	if c, ok := x.constant(e, want); ok {
		return value{kind: constant, c: c}
	}
	if e.Op == OpConst || e.Op == OpText {
		x.c.fail("%s is not a value of type %s", e, want)
		return value{}
	}
	ty, ok := x.typeOf(e)
	if !ok {
		if want.Kind == Enum && e.Op == OpName {
			x.c.fail("%s", Unknown("name of "+want.String(), e.Name, want.Names))
		} else {
			x.explain(e)
		}
		return value{}
	}
	if !ty.matches(want) && !e.isAnswer() {
		x.c.fail("%s is of type %s, not %s", e, ty, want)
		return value{}
	}
	x, e = x.inPlace(e)
	if c, ok := x.constant(e, ty); ok {
		return value{kind: constant, c: c}
	}
	switch e.Op {
	case OpName:
		return x.name(e.Name)
	case OpField:
		return x.field(e)
	case OpCall:
		return x.aggregate(e)
	}
	d := x.condition(e)
	return compute(func(fr *frame) uint64 { return BoolWord(d.first(fr) == 0) })
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
func (x *exprCompiler) aggregate(e *Expr) value {
	if !x.viewing {
		x.c.fail("%s: other instances are read through a view", e)
		return value{}
	}
	if len(e.Args) != 2 || e.Args[0].Op != OpName {
		x.c.fail("%s: want %s(machine, expression)", e, e.Name)
		return value{}
	}
	p := x.c.rules.byName[e.Args[0].Name]
	if p == nil {
		x.c.fail("%s", unknown("machine", e.Args[0].Name, x.c.rules.byName))
		return value{}
	}
	if x.outer != nil {
		x.c.fail("%s: no nesting", e)
		return value{}
	}
	in := &exprCompiler{c: x.c, m: p, viewing: true, outer: x.m}
	cond, state := in.condition(e.Args[1]), in.stateOf(e.Args[1])
	count, first, nf := e.Name == "count", e.Name == "first", len(p.factTy)
	return compute(func(fr *frame) uint64 {
		var n uint64
		w := fr.w
		inner := &w.inner
		inner.self, inner.base[fromBeside] = fr.self, fr.base[fromBeside]
		at := &w.pools[p.id]
		for s, b := 0, at.at; s < at.capacity; s, b = s+1, b+at.stride {
			h := unpackHeader(w.words[b])
			if state >= 0 && int(h.state) != state {
				continue
			}
			inner.facts, inner.base[fromSelf] = w.words[b+atFacts:b+atFacts+nf], b
			inner.state = uint64(h.state)
			if cond.first(inner) == 0 {
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
	})
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
	e := x.parse(v.Expr)
	if e == nil {
		return &view{name: v.Name}
	}
	eval, ty := x.any(e)
	if ty.Kind == stateOf {
		c.fail("%s: compare the state with a name", v.Name)
	}
	if eval.kind == noValue {
		e = nil // its faults are told once
	}
	return &view{name: v.Name, ty: ty, eval: eval, expr: e}
}

// inPlace returns what a view looks at, and the scope to compile it in, where it
// may be looked at again instead of once a step: nothing has changed yet, and
// going through a machine would cost more than keeping what was found.
func (x *exprCompiler) inPlace(e *Expr) (*exprCompiler, *Expr) {
	if e.Op != OpField || e.Peer != "view" || x.reads != nil {
		return x, e
	}
	v := x.views[e.Name]
	if v == nil || v.expr == nil || v.expr.aggregates() {
		return x, e
	}
	x.cellView(v)
	return &exprCompiler{c: x.c, m: x.m, viewing: true}, v.expr
}

// aggregates reports whether an expression goes through a machine.
func (e *Expr) aggregates() bool {
	return e.Op == OpCall || slices.ContainsFunc(e.Args, (*Expr).aggregates)
}

// updates compiles a list of updates; an update past its type's range marks the frame.
func (x *exprCompiler) updates(text string) []update {
	us, err := ParseUpdates(text)
	if err != nil {
		x.c.fail("%v", err)
		return nil
	}
	var out []update
	for _, u := range us {
		f, ok := x.m.facts[u.Fact]
		if !ok {
			x.c.fail("%s", unknown("fact", u.Fact, x.m.facts))
			continue
		}
		if n, ok := x.update(f, u); ok {
			out = append(out, n)
		}
	}
	return out
}

func (x *exprCompiler) update(f FactID, u Update) (out update, ok bool) {
	out.fact = f
	ty := x.m.factTy[f]
	switch {
	case u.Op != Assign:
		if ty.Kind != Int {
			x.c.fail("%s: only an int can be counted", u)
			return out, false
		}
		x.m.careful = true
		end, by := ty.Max, uint64(1)
		if u.Op == Decrement {
			end, by = 0, ^uint64(0)
		}
		out.do = func(fr *frame) {
			if fr.facts[f] == end {
				fr.outOfRange = int(f) + 1
				return
			}
			fr.facts[f] += by
		}
		return out, true
	case u.Expr.Op == OpCall && u.Expr.Name == "fresh":
		if ty.Kind != ID || len(u.Expr.Args) > 0 {
			x.c.fail("%s: fresh() makes an identity", u)
			return out, false
		}
		x.mints = true
		out.do = func(fr *frame) { fr.facts[f] = fr.w.fresh(ty.sort) }
		return out, true
	}
	v := x.value(u.Expr, ty)
	if v.kind == noValue {
		return out, false
	}
	if out.to = v; x.fits(u.Expr, ty) && ty.Kind != Int || v.kind == constant {
		return out, true
	}
	x.m.careful = true
	within := ty.bounds()
	out.do = func(fr *frame) {
		n := v.of(fr)
		if !within.hold(n) {
			fr.outOfRange = int(f) + 1
			return
		}
		fr.facts[f] = n
	}
	return out, true
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
		if v.kind == noValue {
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
		if v.kind == noValue {
			return
		}
		r.callArgs = append(r.callArgs, v)
		r.callTy = append(r.callTy, ty)
	}
}
