package machine

import (
	"errors"
	"fmt"
	"go/token"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Positions of the named parts of a compiled machine. They are dense and
// stable for one [Rules] value, and mean nothing in another.
type (
	StateID uint16
	EventID uint16
	FactID  uint16
	// RowID counts rows per from-state: a row from three states is three.
	RowID uint16
	// CallID is the position of a command's name among the Rules' commands.
	CallID uint16
)

// inFlightMark joins a state and a row: the state while the row's command is
// out. It is not a legal character of either.
const inFlightMark = "▸"

// What keeps a hostile Definition from making Compile large or slow. Lists of
// states and rows multiply: a row from 100 states is compiled 100 times.
const (
	maxDefinitions = 200
	maxStates      = 1000
	maxEvents      = 256
	maxFacts       = 64
	maxViewsNamed  = 256
	maxTargets     = 64
	maxSends       = 32
	maxName        = 200      // bytes of a name, a reason or a row's id
	maxRows        = 1 << 14  // of all machines, a row of several states counting once for each
	maxCells       = 1 << 20  // pairs of a state, or a row in flight, and an event
	maxCompiled    = 16 << 20 // bytes of text, a row of several states counting once for each
	maxFaults      = 50
	// maxGuards is how many guards a refusal can name.
	maxGuards = 64
)

// DefinitionError says what is wrong with a Definition and where.
type DefinitionError struct {
	Machine string
	Row     string // empty if the fault is not in a row
	Field   string // guard, command, then[1].do, …
	Msg     string
	// Offset is the place of the row, or of the machine, in the file that the
	// Definition was read from: bytes from the start; Line and Column count
	// from 1. Line is 0 if it was not read from a file.
	Offset       int64
	Line, Column int

	machine, row int // positions; row is -1 if the fault is not in a row
	reason       Reason
}

// Is matches [ErrOpaque], in an error of [AppendJSON].
func (e *DefinitionError) Is(target error) bool { return e.reason != "" && target == e.reason }

// Error returns "line:column: machine/row: field: message".
func (e *DefinitionError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", e.Line, e.Column)
	}
	b.WriteString(e.Machine)
	if e.Row != "" {
		b.WriteString("/" + e.Row)
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	b.WriteString(": " + e.Msg)
	return b.String()
}

// Machine is one compiled Definition. It is immutable and safe for concurrent use.
type Machine struct {
	cells  []cell // state*len(events)+event
	argTy  [][]Type
	factTy []Type
	// argBounds are those of argTy.
	argBounds        [][]bounds
	maxArgs, maxCall int
	// An instance has size words. The only one begins at off among a world's
	// words, and one of a pool begins there among those of its slot.
	off, size int
	// careful: a step may have to be undone, for a count out of range or an
	// opaque function that panics.
	careful bool
	rows    []row
	ident   []FactID

	def    *Definition
	id     MachineID
	rules  *Rules
	states map[string]StateID
	events map[string]EventID
	facts  map[string]FactID

	hashed sync.Once
	hash   Hash
}

// cell lists the rows of one state and event, in order.
type cell struct {
	which decision // which of the rows; none of them is the case after the last
	rows  []*row
	views []*view
}

// choose returns the row to take, or nil.
func (c *cell) choose(f *frame) *row {
	if n := c.which.first(f); n < len(c.rows) {
		return c.rows[n]
	}
	return nil
}

type rowKind uint8

const (
	transition rowKind = iota
	refusal
	deferral
)

// row is a row from one state. What each step reads lies together, since the
// rules of a lane are larger than the nearest cache.
type row struct {
	guard   func(*frame) bool // nil: always; for an instance by itself, see Instance.Fire
	kind    rowKind
	hasCall bool
	// plain rows touch only their own instance: no With, no Emit, no views.
	plain bool
	// mints: it makes an identity, so that undoing it must give it back.
	mints bool
	idx   RowID
	nth   int // of the rows of its cell
	// views has a bit for each view of the cell that is read by what comes
	// before the command, if there is one.
	views  uint16
	only   [NumOutcomes]*target // the target, where an outcome has just one
	before []update
	with   []send

	call     CallID
	from     StateID
	ev       EventID
	callArgs []value
	cell     *cell
	inFlight []cell // per event, nil if no row is accepted during this row's command
	targets  [NumOutcomes]*choice
	then     []*target // all of them
	reason   Reason

	id        string
	def       int  // position in Definition.Rows
	during    *row // accepted while during's command is in flight
	guardText string
	callTy    []Type
}

// choice is among the targets of an outcome.
type choice struct {
	which   decision
	targets []*target
}

type target struct {
	to     StateID
	views  uint16 // of the cell, read by what is done here
	idx    uint8
	do     []update
	with   []send
	emit   []send
	reason Reason
	code   value
	ret    value
	when   *decision // nil: always
	doFunc func(Facts)
}

type send struct {
	self    bool
	peer    MachineID
	ref     FactID
	byRef   bool
	ev      EventID
	args    []value
	fits    bool // the arguments are of their types, whatever happens
	printed string
}

type view struct {
	name string
	ty   Type
	eval value
	expr *Expr
}

// Rules is a compiled set of Definitions: everything a world needs to run by.
// It is immutable and safe for concurrent use; a process may hold many.
type Rules struct {
	machines []*Machine
	byName   map[string]*Machine
	calls    []string
	callID   map[string]CallID
	sorts    []string
	sortID   map[string]int
	reasons  []Reason
	reasonID map[Reason]uint16
	pools    []string
	poolOf   []int       // per machine; -1 for a single instance
	firstOf  []MachineID // per pool, a machine of it
	singles  int         // words of a world before its pools
	blocks   []int       // per pool, words of a slot
	hash     Hash
	opaque   bool
}

// Compile checks the Definitions of one world and makes them runnable. It
// refuses, with one [DefinitionError] for each fault, joined:
// names that are unknown, doubled or of the wrong type; rows of a state and
// event that leave a case open or can never be reached; a command without a
// target for some outcome; states that cannot be reached or left; events no
// row takes; more of anything than a world can hold. After 50 faults it stops
// looking. The Definitions must not be changed from then on.
func Compile(defs ...*Definition) (*Rules, error) {
	if len(defs) == 0 || len(defs) > maxDefinitions {
		return nil, fmt.Errorf("%d definitions: want 1 to %d", len(defs), maxDefinitions)
	}
	for i, d := range defs {
		if d == nil {
			return nil, fmt.Errorf("definition %d is nil", i)
		}
	}
	c := &compiler{said: map[DefinitionError]bool{}, rules: &Rules{
		byName: map[string]*Machine{}, callID: map[string]CallID{},
		sortID: map[string]int{}, reasonID: map[Reason]uint16{},
	}}
	c.all(defs)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	c.rules.opaque = c.rules.Opaque()
	c.rules.hash = hashRules(c.rules)
	return c.rules, nil
}

// enough ends the work of a compiler that has found too much wrong.
type enough struct{}

// all goes through the stages of compilation as far as they make sense.
func (c *compiler) all(defs []*Definition) {
	defer func() {
		if r := recover(); r != nil && r != (enough{}) {
			panic(r)
		}
	}()
	pools := map[string]int{}
	for i, d := range defs {
		c.declare(MachineID(i), d)
		p := -1
		if d.Pool != "" {
			var seen bool
			if p, seen = pools[d.Pool]; !seen {
				p = len(c.rules.pools)
				pools[d.Pool] = p
				c.rules.pools = append(c.rules.pools, d.Pool)
				c.rules.firstOf = append(c.rules.firstOf, MachineID(i))
			}
		}
		c.rules.poolOf = append(c.rules.poolOf, p)
	}
	if len(c.errs) > 0 {
		return
	}
	for _, m := range c.rules.machines {
		c.peers(m)
	}
	if len(c.errs) > 0 {
		return
	}
	c.layout()
	for _, m := range c.rules.machines {
		c.link(m)
	}
	if len(c.errs) > 0 {
		return
	}
	c.jointsEnd()
}

// MustCompile is Compile for Definitions that are part of a program: it panics on a fault.
func MustCompile(defs ...*Definition) *Rules {
	r, err := Compile(defs...)
	if err != nil {
		panic("machine: " + err.Error())
	}
	return r
}

type compiler struct {
	rules *Rules
	errs  []error
	said  map[DefinitionError]bool
	m     *Machine
	row   int // position in the machine's Definition.Rows; -1 outside the rows
	field string

	rows, cells, text int // see maxRows, maxCells and maxCompiled
	threading         int // see maxThreading
}

func (c *compiler) fail(format string, args ...any) {
	e := DefinitionError{Machine: c.m.def.Name, Field: c.field, Msg: fmt.Sprintf(format, args...), machine: int(c.m.id), row: c.row}
	if c.row >= 0 {
		e.Row = c.m.def.Rows[c.row].ID
	}
	if c.said[e] {
		return // a row from several states has its faults once
	}
	c.said[e] = true
	c.errs = append(c.errs, &e)
	if len(c.errs) == maxFaults {
		c.errs = append(c.errs, fmt.Errorf("too many faults: the rest is not shown"))
		panic(enough{})
	}
}

// grow counts towards one of the bounds of the whole set of Definitions. It
// stops at once, before the memory is taken.
func (c *compiler) grow(what string, have *int, n, most int) {
	if *have += n; *have > most {
		c.fail("the definitions have more than %d %s in all", most, what)
		panic(enough{})
	}
}

// badName reports whether a text cannot be a name, for reasons of form.
func badName(s string) bool {
	return s == "" || len(s) > maxName || !utf8.ValidString(s) || strings.TrimSpace(s) != s || strings.ContainsFunc(s, unicode.IsControl)
}

func identifier(s string) bool { return len(s) <= maxName && token.IsIdentifier(s) && s != "_" }

// declare reads names and types, so that machines can refer to one another in any order.
func (c *compiler) declare(id MachineID, d *Definition) {
	m := &Machine{
		def: d, id: id, rules: c.rules,
		states: map[string]StateID{}, events: map[string]EventID{}, facts: map[string]FactID{},
	}
	c.rules.machines = append(c.rules.machines, m)
	c.m, c.row, c.field = m, -1, ""
	if !identifier(d.Name) || reserved[d.Name] {
		c.fail("name %q: want an identifier that is not a word of the rules", d.Name)
	}
	if c.rules.byName[d.Name] != nil {
		c.fail("two machines of this name")
	}
	c.rules.byName[d.Name] = m
	c.field = "pool"
	if d.Pool != "" && badName(d.Pool) {
		c.fail("pool %q: want a name without control characters or outer spaces", d.Pool)
	}

	c.field = "states"
	c.atMost(len(d.States), maxStates, "states")
	if len(d.States) == 0 {
		c.fail("no states: want at least one")
	}
	for i, s := range d.States {
		if _, dup := m.states[s.Name]; dup || badName(s.Name) || strings.ContainsAny(s.Name, "|#:\"") || strings.Contains(s.Name, inFlightMark) {
			c.fail("state %q: want a fresh name without | # : %s quotes, control characters or outer spaces", s.Name, inFlightMark)
		}
		if s.Kept && !s.Terminal {
			c.fail("state %q: only a terminal state is kept", s.Name)
		}
		m.states[s.Name] = StateID(i)
	}
	c.field = "facts"
	c.atMost(len(d.Facts), maxFacts, "facts")
	for i, f := range d.Facts {
		m.factTy = append(m.factTy, c.typed(f))
		if _, dup := m.facts[f.Name]; dup || !identifier(f.Name) || reserved[f.Name] {
			c.fail("fact %q: want a fresh identifier that is not a word of the rules", f.Name)
		}
		m.facts[f.Name] = FactID(i)
	}
	c.field = "events"
	c.atMost(len(d.Events), maxEvents, "events")
	for i, e := range d.Events {
		if _, dup := m.events[e.Name]; dup || !identifier(e.Name) {
			c.fail("event %q: want a fresh identifier", e.Name)
		}
		m.events[e.Name] = EventID(i)
		var tys []Type
		c.atMost(len(e.Args), MaxArgs, "arguments of "+e.Name)
		names := map[string]bool{}
		for _, a := range e.Args {
			if names[a.Name] || !identifier(a.Name) {
				c.fail("event %s: argument %q: want a fresh identifier", e.Name, a.Name)
			}
			names[a.Name] = true
			tys = append(tys, c.typed(a))
		}
		m.maxArgs = max(m.maxArgs, len(tys))
		m.argTy = append(m.argTy, tys)
	}
	for i := range d.Rows {
		if d.Rows[i].Command == "" {
			continue
		}
		if inv, err := ParseInvocation(d.Rows[i].Command); err == nil { // else command tells
			m.maxCall = max(m.maxCall, min(len(inv.Args), MaxArgs))
		}
	}
	c.field = "identity"
	c.atMost(len(d.Identity), MaxIdentity, "facts")
	for _, n := range d.Identity {
		f, ok := m.facts[n]
		if !ok {
			c.fail("%s", unknown("fact", n, m.facts))
		}
		m.ident = append(m.ident, f)
	}
}

// atMost bounds a list. It stops at once, before the list is gone through.
func (c *compiler) atMost(have, most int, what string) {
	if have > most {
		c.fail("%d %s: at most %d", have, what, most)
		panic(enough{})
	}
}

// reserved words cannot name machines or facts.
var reserved = map[string]bool{
	"true": true, "false": true, "none": true, "self": true, "state": true, "else": true,
	"arg": true, "view": true, "res": true, "any": true, "count": true, "first": true, "fresh": true,
}

func (c *compiler) typed(f Fact) Type {
	t, err := ParseType(f.Type)
	if err != nil {
		c.fail("%s: %v", f.Name, err)
	}
	if t.Kind == ID {
		if _, ok := c.rules.sortID[t.Name]; !ok {
			c.rules.sortID[t.Name] = len(c.rules.sorts)
			c.rules.sorts = append(c.rules.sorts, t.Name)
		}
		t.sort = c.rules.sortID[t.Name]
	}
	return t
}

// layout gives every machine its place: the only instances first, and what is
// side by side in one block. So where a rule reads is known before it runs.
func (c *compiler) layout() {
	r := c.rules
	r.singles, r.blocks = len(r.sorts), make([]int, len(r.pools))
	for i, m := range r.machines {
		end := &r.singles
		if p := r.poolOf[i]; p >= 0 {
			end = &r.blocks[p]
		}
		m.size = atFacts + len(m.factTy) + m.maxArgs + m.maxCall
		m.off, *end = *end, *end+m.size
	}
}

// peers finds the machines that types name.
func (c *compiler) peers(m *Machine) {
	c.m, c.row = m, -1
	find := func(name string, ty *Type) {
		if ty.Kind != RefTo {
			return
		}
		p := c.rules.byName[ty.Name]
		if p == nil {
			c.fail("%s: %s", name, unknown("machine", ty.Name, c.rules.byName))
			return
		}
		ty.peer = p.id
	}
	c.field = "facts"
	for i := range m.factTy {
		find(m.def.Facts[i].Name, &m.factTy[i])
	}
	c.field = "events"
	for i, tys := range m.argTy {
		bs := make([]bounds, len(tys))
		for j := range tys {
			find(m.def.Events[i].Name+": argument "+m.def.Events[i].Args[j].Name, &tys[j])
			bs[j] = tys[j].bounds()
		}
		m.argBounds = append(m.argBounds, bs)
	}
}

// link compiles views and rows and checks the whole machine.
func (c *compiler) link(m *Machine) {
	c.m, c.row = m, -1
	d := m.def
	views := map[string]*view{}
	c.field = "views"
	c.atMost(len(d.Views), maxViewsNamed, "views")
	for _, v := range d.Views {
		if views[v.Name] != nil || !identifier(v.Name) {
			c.fail("view %q: want a fresh identifier", v.Name)
		}
		views[v.Name] = c.view(v)
	}
	c.grow("pairs of state and event", &c.cells, len(d.States)*len(d.Events), maxCells)
	m.cells = make([]cell, len(d.States)*len(d.Events))
	ids := map[string]int{}
	byRowFrom := map[string]*row{} // "state▸row"
	for i := range d.Rows {
		r := &d.Rows[i]
		c.row, c.field = i, "id"
		if !identifier(strings.ReplaceAll(r.ID, "-", "_")) {
			c.fail("%q: want letters, digits, _ and -", r.ID)
		}
		if _, dup := ids[r.ID]; dup {
			c.fail("two rows of this id")
		}
		ids[r.ID] = i
		c.field = "event"
		ev, ok := m.events[r.Event]
		if !ok {
			c.fail("%s", unknown("event", r.Event, m.events))
			continue
		}
		c.field = "from"
		text := r.size()
		froms := map[string]bool{}
		for f := range strings.SplitSeq(r.From, "|") {
			c.grow("rows", &c.rows, 1, maxRows)
			c.grow("bytes of rows", &c.text, text, maxCompiled)
			name, during, isDuring := strings.Cut(f, inFlightMark)
			from, ok := m.states[name]
			if !ok {
				c.fail("%s", unknown("state", name, m.states))
				continue
			}
			if froms[f] {
				c.fail("%q is there twice", f)
				continue
			}
			froms[f] = true
			n := row{id: r.ID, idx: RowID(len(m.rows)), def: i, from: from, ev: ev}
			if isDuring {
				n.during = &row{id: during} // resolved below, when every row is known
			}
			m.rows = append(m.rows, n)
			byRowFrom[name+inFlightMark+r.ID] = nil
		}
	}
	for i := range m.rows {
		r := &m.rows[i]
		byRowFrom[d.States[r.from].Name+inFlightMark+r.id] = r
	}
	// Cells first: a row's expressions index the views of its cell.
	for i := range m.rows {
		r := &m.rows[i]
		c.row, c.field = r.def, "from"
		if r.during != nil {
			of := byRowFrom[d.States[r.from].Name+inFlightMark+r.during.id]
			if of == nil || d.Rows[of.def].Command == "" {
				c.fail("no row %q with a command from %q", r.during.id, d.States[r.from].Name)
				r.during = nil
				continue
			}
			r.during = of
			if of.inFlight == nil {
				c.grow("pairs of state and event", &c.cells, len(d.Events), maxCells)
				of.inFlight = make([]cell, len(d.Events))
			}
			r.cell = &of.inFlight[r.ev]
		} else {
			r.cell = &m.cells[int(r.from)*len(d.Events)+int(r.ev)]
		}
		r.nth = len(r.cell.rows)
		r.cell.rows = append(r.cell.rows, r)
		if len(r.cell.rows) == maxGuards+1 {
			c.fail("more than %d rows of %q and %s", maxGuards, m.def.States[r.from].Name, m.def.Events[r.ev].Name)
		}
	}
	for i := range m.rows {
		if m.rows[i].cell != nil {
			c.compileRow(&m.rows[i], &d.Rows[m.rows[i].def], views)
		}
	}
	if len(c.errs) > 0 {
		return
	}
	for i := range m.cells {
		c.closed(&m.cells[i])
	}
	for i := range m.rows {
		for j := range m.rows[i].inFlight {
			c.closed(&m.rows[i].inFlight[j])
		}
	}
	c.reachable()
}

func (c *compiler) compileRow(r *row, d *Row, views map[string]*view) {
	c.row = r.def
	x := &exprCompiler{c: c, m: c.m, args: c.m.def.Events[r.ev].Args, argTy: c.m.argTy[r.ev], views: views, cell: r.cell}
	c.field = "guard"
	r.guardText = strings.TrimSpace(d.Guard)
	if g := c.guard(x, r, d.GuardFunc); g != nil {
		r.guard = g.function()
		r.cell.which.add(g, int32(^r.nth), next)
	}
	if r.nth == len(r.cell.rows)-1 {
		rest := r.nth
		if r.guard != nil {
			rest++
		}
		r.cell.which.otherwise(rest, &c.threading)
	}
	c.m.careful = c.m.careful || d.GuardFunc != nil || d.DoFunc != nil
	kinds := 0
	for _, is := range []bool{d.Refuse != "", d.Defer, len(d.Then) > 0} {
		if is {
			kinds++
		}
	}
	c.field = ""
	if kinds != 1 {
		c.fail("want one of refuse, defer and then")
		return
	}
	if d.Refuse != "" || d.Defer {
		if d.Command != "" || d.Before != "" || len(d.With) > 0 || d.DoFunc != nil {
			c.fail("a row that refuses or defers does nothing else")
		}
		r.kind, r.reason = refusal, d.Refuse
		if d.Defer {
			r.kind = deferral
			if c.m.def.States[r.from].Terminal {
				c.fail("%q is terminal: nothing that waits there is ever taken", c.m.def.States[r.from].Name)
			}
		} else {
			c.reason(d.Refuse)
		}
		return
	}
	if c.m.def.States[r.from].Terminal {
		c.fail("%q is terminal: only refusals", c.m.def.States[r.from].Name)
	}
	x.reads = &r.views
	c.field = "before"
	r.before = x.updates(d.Before)
	c.field = "with"
	r.with = x.sends(d.With)
	if d.Command != "" {
		c.field = "command"
		if r.during != nil {
			c.fail("a row taken while a command is in flight has none of its own")
		}
		r.hasCall = true
		x.command(r, d.Command)
	} else if d.Before != "" || len(d.With) > 0 {
		c.fail("before and with belong to a row with a command; use then")
	}
	r.plain = len(r.with) == 0 && len(r.cell.views) == 0
	c.field = "then"
	c.atMost(len(d.Then), maxTargets, "targets")
	var named [NumOutcomes][]*target
	var later []*target // targets for every outcome not named
	for i := range d.Then {
		t := &d.Then[i]
		field := func(f string) { c.field = fmt.Sprintf("then[%d].%s", i, f) }
		tg := &target{idx: uint8(i), to: r.from, doFunc: d.DoFunc, reason: t.Error}
		r.then = append(r.then, tg)
		field("to")
		if t.To != "" {
			to, ok := c.m.states[t.To]
			if !ok {
				c.fail("%s", unknown("state", t.To, c.m.states))
			}
			tg.to = to
			if r.during != nil && to != r.from {
				c.fail("a row taken in flight stays where it is")
			}
		}
		x.settling = r.hasCall
		field("when")
		x.reads = nil
		if t.When != "" {
			if e := x.parse(t.When); e != nil {
				tg.when = x.condition(e)
			}
		}
		x.reads = &tg.views
		field("do")
		tg.do = x.updates(t.Do)
		field("with")
		tg.with = x.sends(t.With)
		field("emit")
		tg.emit = x.sends(t.Emit)
		field("code")
		if t.Code != "" {
			tg.code = x.valueText(t.Code, Type{Kind: Code})
		}
		field("return")
		if t.Return != "" {
			tg.ret, _ = x.anyText(t.Return)
		}
		x.settling = false
		if t.Error != "" {
			c.reason(t.Error)
		}
		if len(tg.with) > 0 || len(tg.emit) > 0 {
			r.plain = false
		}
		field("on")
		if strings.TrimSpace(t.On) == "" {
			later = append(later, tg)
			continue
		}
		if !r.hasCall && strings.TrimSpace(t.On) != "ok" {
			c.fail("a row without a command has only the outcome ok")
		}
		for _, name := range strings.Fields(t.On) {
			o, err := ParseOutcome(name)
			if err != nil {
				c.fail("%v", err)
				continue
			}
			named[o] = append(named[o], tg)
		}
	}
	r.mints = x.mints
	if len(r.cell.views) > MaxViews {
		c.field = "guard"
		c.fail("rows of this state and event read %d views: at most %d", len(r.cell.views), MaxViews)
	}
	r.plain = r.plain && len(r.cell.views) == 0
	c.field = "then"
	n := 1
	if r.hasCall {
		n = NumOutcomes
	}
	var rest *choice
	for o := range n {
		ts := named[o]
		if ts == nil {
			if rest == nil {
				rest = c.choice(Outcome(o), later)
			}
			r.targets[o] = rest
		} else {
			r.targets[o] = c.choice(Outcome(o), ts)
		}
		if x := r.targets[o]; x != nil && len(x.targets) == 1 {
			r.only[o] = x.targets[0]
		}
	}
	if len(later) > 0 && rest == nil {
		c.fail("a target without on is never used: every outcome is named")
	}
}

// choice compiles the choice among the targets of an outcome.
func (c *compiler) choice(o Outcome, ts []*target) *choice {
	if len(ts) == 0 {
		c.fail("no target for outcome %s", o)
		return nil
	}
	x := &choice{targets: ts}
	last := len(ts) - 1
	for i, t := range ts {
		if (i == last) != (t.when == nil) {
			c.fail("outcome %s: every target but the last has a when, and the last has none", o)
			break
		}
		if i < last {
			x.which.add(t.when, int32(^i), next)
		}
	}
	x.which.otherwise(last, &c.threading)
	return x
}

// guard compiles the condition that a row is taken on; nil if it takes what is left.
func (c *compiler) guard(x *exprCompiler, r *row, opaque func(Facts) bool) *decision {
	var e *Expr
	switch r.guardText {
	case "":
	case "else":
		if opaque != nil {
			c.fail("else and GuardFunc exclude each other")
		}
	default:
		if e = x.parse(r.guardText); e == nil {
			return &decision{}
		}
	}
	var d *decision
	if e != nil {
		d = x.condition(e)
	}
	if opaque == nil {
		return d
	}
	says := calls(func(fr *frame) bool { return opaque(fr.w.lend(fr.facts)) })
	if d == nil {
		r.guardText = "(opaque)"
		return says
	}
	both := &decision{}
	both.add(d, next, no)
	both.add(says, yes, no)
	return both
}

// size is how much text of a row there is to compile.
func (r *Row) size() int {
	n := len(r.Guard) + len(r.Before) + len(r.Command)
	sends := func(list []string) {
		for _, s := range list {
			n += len(s) + 1
		}
	}
	sends(r.With)
	for i := range r.Then {
		t := &r.Then[i]
		n += len(t.On) + len(t.When) + len(t.Do) + len(t.Code) + len(t.Return) + 1
		sends(t.With)
		sends(t.Emit)
	}
	return n
}

func (c *compiler) reason(r Reason) {
	if len(r) > maxName || !utf8.ValidString(string(r)) || strings.ContainsFunc(string(r), unicode.IsControl) {
		c.fail("reason %q: want at most %d bytes without control characters", r, maxName)
		return
	}
	if _, ok := c.rules.reasonID[r]; !ok {
		c.rules.reasonID[r] = uint16(len(c.rules.reasons))
		c.rules.reasons = append(c.rules.reasons, r)
	}
}

// closed checks that the rows of one state and event leave no case open.
func (c *compiler) closed(cl *cell) {
	for i, r := range cl.rows {
		c.row, c.field = r.def, "guard"
		last := i == len(cl.rows)-1
		switch {
		case r.guard == nil && !last:
			c.fail("row %s after it can never be chosen", cl.rows[i+1].id)
		case r.guard != nil && last && !(i == 1 && c.complements(cl.rows[0], r)):
			c.fail("the last row of %q and %s must take what is left: guard else", c.m.def.States[r.from].Name, c.m.def.Events[r.ev].Name)
		case r.guardText == "else" && i == 0:
			c.fail("else without a row before it")
		}
	}
}

func (c *compiler) complements(a, b *row) bool {
	for _, r := range []*row{a, b} {
		if c.m.def.Rows[r.def].GuardFunc != nil {
			return false // it says no to more than the text does
		}
	}
	x, err1 := ParseExpr(a.guardText)
	y, err2 := ParseExpr(b.guardText)
	if err1 != nil || err2 != nil {
		return false
	}
	return x.Op == OpNot && x.Args[0].equal(y) || y.Op == OpNot && y.Args[0].equal(x)
}

// reachable checks that every state can be reached and left and every event is taken somewhere.
func (c *compiler) reachable() {
	m := c.m
	c.row = -1
	from := make([][]*row, len(m.def.States))
	for i := range m.rows {
		r := &m.rows[i]
		from[r.from] = append(from[r.from], r)
	}
	seen := make([]bool, len(m.def.States))
	seen[0] = true
	for todo := []StateID{0}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, r := range from[s] {
			for _, t := range r.then {
				if !seen[t.to] {
					seen[t.to] = true
					todo = append(todo, t.to)
				}
			}
		}
	}
	leaves := make([]bool, len(m.def.States))
	taken := make([]bool, len(m.def.Events))
	for i := range m.rows {
		r := &m.rows[i]
		taken[r.ev] = true
		leaves[r.from] = leaves[r.from] || r.kind == transition
	}
	c.field = "states"
	for i, s := range m.def.States {
		if !seen[i] {
			c.fail("%q cannot be reached from %q", s.Name, m.def.States[0].Name)
		}
		if !leaves[i] && !s.Terminal {
			c.fail("no row takes anything in %q: mark it terminal", s.Name)
		}
	}
	c.field = "events"
	for i, e := range m.def.Events {
		if !taken[i] {
			c.fail("%s: no row takes it", e.Name)
		}
	}
}

// jointsEnd checks that events taken along need no command, and take along no
// others without end: a joint step is over when it returns.
func (c *compiler) jointsEnd() {
	type node struct {
		m  MachineID
		ev EventID
	}
	commands := map[node]string{} // by machine and event: a row with a command
	for _, m := range c.rules.machines {
		for i := range m.rows {
			if r := &m.rows[i]; r.hasCall {
				commands[node{m.id, r.ev}] = r.id
			}
		}
	}
	next := map[node]map[node]bool{}
	var order []node
	for _, m := range c.rules.machines {
		c.m = m
		for i := range m.rows {
			r := &m.rows[i]
			c.row, c.field = r.def, "with"
			from := node{m.id, r.ev}
			sends := append([]send(nil), r.with...)
			for _, t := range r.then {
				sends = append(sends, t.with...)
			}
			for _, s := range sends {
				to := node{s.peer, s.ev}
				if s.self {
					c.fail("%s: an instance cannot take itself along; emit it", s.printed)
				}
				if id := commands[to]; id != "" {
					c.fail("%s: row %s of it has a command", s.printed, id)
				}
				if next[from] == nil {
					next[from] = map[node]bool{}
					order = append(order, from)
				}
				next[from][to] = true
			}
		}
	}
	// depth is the longest way from a node; a circle counts as too deep.
	known := map[node]int{}
	var depth func(n node) int
	depth = func(n node) int {
		if d, ok := known[n]; ok {
			return d
		}
		known[n] = maxJoint + 1 // until it is known
		d := 1
		for k := range next[n] {
			d = max(d, 1+depth(k))
		}
		known[n] = min(d, maxJoint+1)
		return known[n]
	}
	for _, n := range order {
		if depth(n) > maxJoint {
			c.m, c.row, c.field = c.rules.machines[n.m], -1, "with"
			c.fail("%s takes along events more than %d deep, or in a circle", c.m.EventName(n.ev), maxJoint)
		}
	}
}

// unknown words an unknown name, with the nearest known one.
func unknown[ID any](what, name string, known map[string]ID) string {
	names := make([]string, 0, len(known))
	for n := range known {
		names = append(names, n)
	}
	return Unknown(what, name, names)
}
