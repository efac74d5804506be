package machine

import "slices"

// decision says which of several cases holds first: of the rows of a state and
// event, or of the targets of an answer. It is a list of tests, each of which
// says which one to go on with, always one that comes later.
type decision struct {
	tests []test
	fns   []func(*frame) bool // of tests that are none of the common ones
	rest  int32               // the case that holds if no test comes out for another
}

// test holds a value against c, or against the argument at c for wordIsArg. What
// is computed is the answer itself: of fns[at]. yes and no are the test to go on
// with, or ^k for case k, or 0 for the test right after this one: what is at hand
// need not be looked up.
type test struct {
	kind    valueKind
	base    uint8 // see value, as for at
	at      int32
	yes, no int32
	c       uint64
}

// first returns the first case that holds.
func (d *decision) first(fr *frame) int {
	if len(d.tests) == 0 {
		return int(d.rest)
	}
	return d.walk(fr)
}

func (d *decision) walk(fr *frame) int {
	for i := int32(0); ; {
		t := &d.tests[i]
		var is bool
		switch t.kind {
		case word:
			is = fr.words[int(t.at)+fr.base[t.base%numBases]] == t.c
		case wordIsArg:
			is = fr.words[int(t.at)+fr.base[t.base%numBases]] == fr.args[t.c%MaxArgs]
		case peerState:
			is = fr.words[int(t.at)+fr.base[t.base%numBases]]&stateBits == t.c
		case selfState:
			is = fr.state == t.c
		case argument:
			is = fr.args[uint32(t.at)%MaxArgs] == t.c
		case computed:
			is = d.fns[t.at](fr)
		}
		to := t.no
		if is {
			to = t.yes
		}
		switch {
		case to == 0:
			i++
		case to < 0:
			return int(^to)
		default:
			i = to
		}
	}
}

// A condition is a decision between two cases. next stands for the test that
// comes after those that are added.
const (
	yes  = ^int32(0)
	no   = ^int32(1)
	next = -1 << 31
)

// add adds a condition: y and n are what to go on with if it holds, and if not.
func (d *decision) add(c *decision, y, n int32) {
	tests, fns := int32(len(d.tests)), int32(len(d.fns))
	link := func(to int32) int32 {
		switch to {
		case yes:
			to = y
		case no:
			to = n
		default:
			return tests + to
		}
		if to == next {
			return tests + int32(len(c.tests))
		}
		return to
	}
	for _, t := range c.tests {
		t.yes, t.no = link(t.yes), link(t.no)
		if t.kind == computed {
			t.at += fns
		}
		d.tests = append(d.tests, t)
	}
	d.fns = append(d.fns, c.fns...)
}

// otherwise ends a decision: case k holds if no case before it does. See
// maxThreading for work.
func (d *decision) otherwise(k int, work *int) {
	d.relink(func(_ int, to *int32) {
		if int(*to) == len(d.tests) {
			*to = int32(^k)
		}
	})
	d.rest = int32(k)
	d.thread(work)
	d.relink(func(i int, to *int32) {
		if int(*to) == i+1 {
			*to = 0
		}
	})
}

// relink goes through what each test goes on with.
func (d *decision) relink(f func(i int, to *int32)) {
	for i := range d.tests {
		f(i, &d.tests[i].yes)
		f(i, &d.tests[i].no)
	}
}

// What is more than this takes the longer way.
const (
	maxThreaded  = 512     // tests of a decision that is threaded
	maxThreading = 1 << 26 // steps of threading all decisions of some rules
)

// thread lets each test go on past those whose answer is known by then, as rows
// that begin alike ask the same again.
func (d *decision) thread(work *int) {
	if len(d.tests) > maxThreaded {
		return
	}
	known := make([][]answered, len(d.tests)) // on every way to a test
	met := make([]bool, len(d.tests))         // some way leads to it
	for i := range d.tests {
		t := &d.tests[i]
		if i > 0 && !met[i] {
			continue
		}
		if *work > maxThreading {
			return
		}
		for _, is := range []bool{true, false} {
			to := &t.no
			if is {
				to = &t.yes
			}
			now := append(slices.Clip(known[i]), answered{t, is})
			for *to >= 0 {
				u := &d.tests[*to]
				is, ok := implied(now, u)
				*work += len(now)
				if !ok {
					break
				}
				*to = u.no
				if is {
					*to = u.yes
				}
			}
			if j := *to; j >= 0 {
				if met[j] {
					*work += len(now) * len(known[j])
					now = slices.DeleteFunc(known[j], func(a answered) bool { is, ok := implied(now, a.t); return !ok || is != a.is })
				}
				known[j], met[j] = now, true
			}
		}
	}
}

// answered is a test and how it came out.
type answered struct {
	t  *test
	is bool
}

// implied returns how a test must come out after others, if they tell.
func implied(known []answered, t *test) (is, ok bool) {
	for _, k := range known {
		if k.t.kind != t.kind || k.t.base != t.base || k.t.at != t.at || t.kind == computed {
			continue
		}
		switch {
		case k.t.c == t.c:
			return k.is, true
		case k.is && t.kind != wordIsArg:
			return false, true
		}
	}
	return false, false
}

// calls returns the condition that a function is.
func calls(f func(*frame) bool) *decision {
	return &decision{tests: []test{{kind: computed, yes: yes, no: no}}, fns: []func(*frame) bool{f}}
}

// function returns a condition as a function. What an instance by itself asks
// most, one of its facts, has a function of its own.
func (d *decision) function() func(*frame) bool {
	if len(d.tests) == 1 && d.tests[0].kind == word && d.tests[0].base == fromSelf {
		i, c, want := int(d.tests[0].at)-atFacts, d.tests[0].c, d.tests[0].yes == yes
		return func(fr *frame) bool { return (fr.facts[i] == c) == want }
	}
	return func(fr *frame) bool { return d.first(fr) == 0 }
}

// condition compiles a condition.
func (x *exprCompiler) condition(e *Expr) *decision {
	x, e = x.inPlace(e)
	switch e.Op {
	case OpNot:
		d := &decision{}
		d.add(x.condition(e.Args[0]), no, yes)
		return d
	case OpAnd, OpOr:
		d := &decision{}
		for i, a := range e.Args {
			c := x.condition(a)
			switch {
			case i == len(e.Args)-1:
				d.add(c, yes, no)
			case e.Op == OpAnd:
				d.add(c, next, no)
			default:
				d.add(c, yes, next)
			}
		}
		return d
	case OpEq:
		return x.equal(e.Args[0], e.Args[1])
	case OpLess:
		a, at := x.any(e.Args[0])
		b, bt := x.any(e.Args[1])
		if a.kind != noValue && b.kind != noValue && (at.Kind != Int || bt.Kind != Int) {
			x.c.fail("%s: < is only for int", e)
		}
		return calls(func(fr *frame) bool { return a.of(fr) < b.of(fr) })
	}
	v := x.value(e, Type{Kind: Bool})
	if t, ok := equal(v, value{kind: constant}); ok {
		t.yes, t.no = no, yes
		return &decision{tests: []test{t}}
	}
	return calls(func(fr *frame) bool { return v.of(fr) != 0 })
}

// equal compiles l == r.
func (x *exprCompiler) equal(l, r *Expr) *decision {
	ty, ok := x.typeOf(l)
	if !ok || l.Op == OpConst || l.isAnswer() {
		if rt, rok := x.typeOf(r); rok {
			ty, ok = rt, true
		}
	}
	if !ok {
		x.explain(l)
		return &decision{}
	}
	a, b := x.value(l, ty), x.value(r, ty)
	if t, ok := equal(a, b); ok {
		t.yes, t.no = yes, no
		if ty.Kind == Bool && t.kind != wordIsArg && t.c == 1 {
			t.c, t.yes, t.no = 0, no, yes // as the bare name of it is tested
		}
		return &decision{tests: []test{t}}
	}
	return calls(func(fr *frame) bool { return a.of(fr) == b.of(fr) })
}

// equal returns the test of a == b, if it is one of the common ones.
func equal(a, b value) (t test, ok bool) {
	if a.kind == constant || a.kind == argument && b.kind != constant {
		a, b = b, a
	}
	t = test{kind: a.kind, base: a.base, at: a.at, c: b.c}
	if b.kind == argument && a.kind == word {
		t.kind, t.c = wordIsArg, uint64(b.at)
		return t, true
	}
	switch a.kind {
	case word, peerState, selfState, argument:
		return t, b.kind == constant
	}
	return t, false
}
