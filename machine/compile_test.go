package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// gate is a definition that compiles, for tests to spoil.
func gate() *machine.Definition {
	return &machine.Definition{
		Name: "gate", States: states("shut", "open", "gone!"),
		Events: []machine.Event{event("open", "key:id key", "n:int 9"), event("shut"), event("end"), event("poke")},
		Facts:  named("key:id key", "n:int 7", "color:enum red|green", "last:code", "up:bool", "tok:ref token"),
		Views:  []machine.View{{Name: "v", Expr: "n"}},
		Rows: []machine.Row{
			{ID: "open", From: "shut", Event: "open", Guard: "!up", Command: "Open(arg.key)", Then: []machine.Target{{On: "ok", To: "open"}, {}}},
			{ID: "open-up", From: "shut", Event: "open", Guard: "else", Refuse: "is up"},
			{ID: "shut", From: "open", Event: "shut", Then: to("shut")},
			{ID: "end", From: "open|shut", Event: "end", Then: to("gone")},
			{ID: "poke", From: "shut▸open", Event: "poke", Then: do("n++")},
		},
	}
}

func token() *machine.Definition {
	return &machine.Definition{
		Name: "token", Pool: "tokens", States: states("on"), Facts: named("n:int 3", "g:ref gate"),
		Events: []machine.Event{event("take", "n:int 3"), event("call"), event("tell")},
		Rows: []machine.Row{
			{ID: "take", From: "on", Event: "take", Then: do("n = arg.n")},
			{ID: "call", From: "on", Event: "call", Command: "Call()", Then: do("")},
			{ID: "tell", From: "on", Event: "tell", Then: do("")},
		},
	}
}

func TestCompileRefuses(t *testing.T) {
	row := func(i int, f func(*machine.Row)) func(*machine.Definition) {
		return func(d *machine.Definition) { f(&d.Rows[i]) }
	}
	add := func(r machine.Row) func(*machine.Definition) {
		return func(d *machine.Definition) { d.Rows = append(d.Rows, r) }
	}
	guard := func(g string) func(*machine.Definition) {
		return row(0, func(r *machine.Row) { r.Guard = g })
	}
	ok := func(f func(*machine.Target)) func(*machine.Definition) {
		return row(0, func(r *machine.Row) { f(&r.Then[0]) })
	}
	// update spoils a target without a command, so that res has no meaning.
	update := func(u string) func(*machine.Definition) {
		return row(2, func(r *machine.Row) { r.Then[0].Do = u })
	}
	emit := func(e string) func(*machine.Definition) {
		return row(2, func(r *machine.Row) { r.Then[0].Emit = []string{e} })
	}
	with := func(e string) func(*machine.Definition) {
		return row(2, func(r *machine.Row) { r.Then[0].With = []string{e} })
	}
	view := func(e string) func(*machine.Definition) {
		return func(d *machine.Definition) { d.Views[0].Expr = e }
	}
	fact := func(name, ty string) func(*machine.Definition) {
		return func(d *machine.Definition) { d.Facts = append(d.Facts, machine.Fact{Name: name, Type: ty}) }
	}
	long := strings.Repeat("x", 201)
	for _, c := range []struct {
		name  string
		spoil func(*machine.Definition)
		want  string
	}{
		// Names.
		{"no name", func(d *machine.Definition) { d.Name = "" }, `: name "": want an identifier that is not a word of the rules`},
		{"name of two words", func(d *machine.Definition) { d.Name = "a gate" }, `a gate: name "a gate": want an identifier`},
		{"name is a word of the rules", func(d *machine.Definition) { d.Name = "self" }, `self: name "self": want an identifier`},
		{"blank name", func(d *machine.Definition) { d.Name = "_" }, `name "_": want an identifier`},
		{"long name", func(d *machine.Definition) { d.Name = long }, `: want an identifier`},
		{"name twice", func(d *machine.Definition) { d.Name = "token" }, "token: two machines of this name"},
		{"pool with a line", func(d *machine.Definition) { d.Pool = "a\nb" }, `gate: pool: pool "a\nb": want a name without control characters or outer spaces`},
		{"no states", func(d *machine.Definition) { d.States = nil }, "gate: states: no states: want at least one"},
		{"state twice", func(d *machine.Definition) { d.States[1].Name = "shut" }, `gate: states: state "shut": want a fresh name`},
		{"state with a bar", func(d *machine.Definition) { d.States[1].Name = "a|b" }, `state "a|b": want a fresh name without | # : ▸ quotes, control characters or outer spaces`},
		{"state with a mark", func(d *machine.Definition) { d.States[1].Name = "a▸b" }, `state "a▸b": want a fresh name`},
		{"state with outer spaces", func(d *machine.Definition) { d.States[1].Name = " a" }, `state " a": want a fresh name`},
		{"state with NUL", func(d *machine.Definition) { d.States[1].Name = "a\x00" }, `state "a\x00": want a fresh name`},
		{"state that is no UTF-8", func(d *machine.Definition) { d.States[1].Name = "a\xff" }, `state "a\xff": want a fresh name`},
		{"kept but not terminal", func(d *machine.Definition) { d.States[1].Kept = true }, `state "open": only a terminal state is kept`},
		{"fact twice", fact("n", "bool"), `gate: facts: fact "n": want a fresh identifier`},
		{"fact is a word of the rules", fact("state", "bool"), `fact "state": want a fresh identifier that is not a word of the rules`},
		{"event twice", func(d *machine.Definition) { d.Events[1].Name = "open" }, `gate: events: event "open": want a fresh identifier`},
		{"event is a keyword", func(d *machine.Definition) { d.Events[1].Name = "go" }, `event "go": want a fresh identifier`},
		{"argument twice", func(d *machine.Definition) { d.Events[0].Args[1].Name = "key" }, `event open: argument "key": want a fresh identifier`},
		{"identity of no fact", func(d *machine.Definition) { d.Identity = []string{"kye"} }, `gate: identity: unknown fact "kye": did you mean "key"?`},
		{"view twice", func(d *machine.Definition) { d.Views = append(d.Views, d.Views[0]) }, `gate: views: view "v": want a fresh identifier`},

		// Types.
		{"no type", fact("x", ""), `x: type "": want bool, int N, id SORT, ref MACHINE, enum a|b or code`},
		{"unknown type", fact("x", "float"), `x: type "float": want bool,`},
		{"int without a bound", fact("x", "int"), `x: type "int": want int N with N from 1`},
		{"int 0", fact("x", "int 0"), `want int N with N from 1`},
		{"int past 63 bits", fact("x", "int 9223372036854775808"), `want int N with N from 1`},
		{"bool with more", fact("x", "bool yes"), `bool takes nothing after it`},
		{"id without a sort", fact("x", "id"), `want id NAME`},
		{"ref to two words", fact("x", "ref a b"), `want ref NAME`},
		{"ref to no machine", fact("x", "ref tokne"), `gate: facts: x: unknown machine "tokne": did you mean "token"?`},
		{"argument ref to no machine", func(d *machine.Definition) { d.Events[0].Args[1].Type = "ref tokne" }, `gate: events: open: argument n: unknown machine "tokne": did you mean "token"?`},
		{"enum name twice", fact("x", "enum a|a"), `"a" is not a fresh name`},
		{"enum of nothing", fact("x", "enum"), `"" is not a fresh name`},
		{"enum of none", fact("x", "enum a|none"), `"none" is not a fresh name`},
		{"long type", fact("x", "enum "+strings.Repeat("a|", 3000)), `type of 6005 bytes: at most 4096`},

		// Rows.
		{"row without id", row(0, func(r *machine.Row) { r.ID = "" }), `gate: id: "": want letters, digits, _ and -`},
		{"row id with a space", row(0, func(r *machine.Row) { r.ID = "a b" }), `gate/a b: id: "a b": want letters, digits, _ and -`},
		{"row twice", row(1, func(r *machine.Row) { r.ID = "open" }), `gate/open: id: two rows of this id`},
		{"row of no event", row(2, func(r *machine.Row) { r.Event = "shot" }), `gate/shut: event: unknown event "shot": did you mean "shut"?`},
		{"row from no state", row(2, func(r *machine.Row) { r.From = "opne" }), `gate/shut: from: unknown state "opne": did you mean "open"?`},
		{"row from one state twice", row(3, func(r *machine.Row) { r.From = "open|open" }), `gate/end: from: "open" is there twice`},
		{"row from nowhere", row(3, func(r *machine.Row) { r.From = "" }), `gate/end: from: unknown state ""`},
		{"row during no row", row(4, func(r *machine.Row) { r.From = "shut▸opne" }), `gate/poke: from: no row "opne" with a command from "shut"`},
		{"row during a row of another state", row(4, func(r *machine.Row) { r.From = "open▸open" }), `gate/poke: from: no row "open" with a command from "open"`},
		{"row during a row without a command", row(4, func(r *machine.Row) { r.From = "open▸shut" }), `gate/poke: from: no row "shut" with a command from "open"`},
		{"row of nothing", row(2, func(r *machine.Row) { r.Then = nil }), `gate/shut: want one of refuse, defer and then`},
		{"row of two things", row(2, func(r *machine.Row) { r.Refuse = "no" }), `gate/shut: want one of refuse, defer and then`},
		{"refusal that does something", row(1, func(r *machine.Row) { r.Command = "Open()" }), `gate/open-up: a row that refuses or defers does nothing else`},
		{"refusal with an update", row(1, func(r *machine.Row) { r.Before = "n++" }), `a row that refuses or defers does nothing else`},
		{"refusal with a function", row(1, func(r *machine.Row) { r.DoFunc = func(machine.Facts) {} }), `a row that refuses or defers does nothing else`},
		{"row from a terminal state", add(machine.Row{ID: "x", From: "gone", Event: "shut", Then: do("")}), `gate/x: "gone" is terminal: only refusals`},
		{"wait in a terminal state", add(machine.Row{ID: "x", From: "gone", Event: "shut", Defer: true}), `gate/x: "gone" is terminal: nothing that waits there is ever taken`},
		{"before without a command", row(2, func(r *machine.Row) { r.Before = "n++" }), `gate/shut: with: before and with belong to a row with a command; use then`},
		{"with without a command", row(2, func(r *machine.Row) { r.With = []string{"tok.tell()"} }), `before and with belong to a row with a command; use then`},
		{"command during a command", row(4, func(r *machine.Row) { r.Command = "Poke()" }), `gate/poke: command: a row taken while a command is in flight has none of its own`},
		{"move during a command", row(4, func(r *machine.Row) { r.Then[0].To = "open" }), `gate/poke: then[0].to: a row taken in flight stays where it is`},
		{"target of no state", ok(func(t *machine.Target) { t.To = "opne" }), `gate/open: then[0].to: unknown state "opne": did you mean "open"?`},
		{"reason with a line", row(1, func(r *machine.Row) { r.Refuse = "a\nb" }), `gate/open-up: reason "a\nb": want at most 200 bytes without control characters`},
		{"long reason", ok(func(t *machine.Target) { t.Error = machine.Reason(long) }), `want at most 200 bytes without control characters`},

		// Outcomes.
		{"outcome without a target", row(0, func(r *machine.Row) { r.Then = r.Then[:1] }), `gate/open: then: no target for outcome refused`},
		{"unknown outcome", ok(func(t *machine.Target) { t.On = "ok fialed" }), `gate/open: then[0].on: unknown outcome "fialed": want ok, refused, failed, panicked or timedout`},
		{"outcome of no command", row(2, func(r *machine.Row) { r.Then[0].On = "failed" }), `gate/shut: then[0].on: a row without a command has only the outcome ok`},
		{"target never used", ok(func(t *machine.Target) { t.On = "ok refused failed panicked timedout" }), `gate/open: then: a target without on is never used: every outcome is named`},
		{"split without an end", ok(func(t *machine.Target) { t.When = "res.accepted" }), `gate/open: then: outcome ok: every target but the last has a when, and the last has none`},
		{"two ends", row(0, func(r *machine.Row) { r.Then = append(r.Then, machine.Target{To: "open"}) }), `outcome refused: every target but the last has a when, and the last has none`},

		// Cases.
		{"case left open", guard("n < 3"), ``},
		{"last row leaves a case open", func(d *machine.Definition) { d.Rows[1].Guard = "up && n < 3" }, `gate/open-up: guard: the last row of "shut" and open must take what is left: guard else`},
		{"only row leaves a case open", func(d *machine.Definition) { d.Rows[2].Guard = "up" }, `gate/shut: guard: the last row of "open" and shut must take what is left: guard else`},
		{"row never reached", guard(""), `gate/open: guard: row open-up after it can never be chosen`},
		{"else before another", guard("else"), `gate/open: guard: row open-up after it can never be chosen`},
		{"else alone", row(2, func(r *machine.Row) { r.Guard = "else" }), `gate/shut: guard: else without a row before it`},
		{"function and else", row(1, func(r *machine.Row) { r.GuardFunc = func(machine.Facts) bool { return true } }), `gate/open-up: guard: else and GuardFunc exclude each other`},
		{"function and its negation in text", func(d *machine.Definition) {
			d.Rows[0].GuardFunc = func(machine.Facts) bool { return true }
			d.Rows[1].Guard = "up"
		}, `gate/open-up: guard: the last row of "shut" and open must take what is left: guard else`},
		{"state not reached", func(d *machine.Definition) { d.States = append(d.States, states("island!")...) }, `gate: states: "island" cannot be reached from "shut"`},
		{"state not left", func(d *machine.Definition) { d.States[2].Terminal = false }, `gate: states: no row takes anything in "gone": mark it terminal`},
		{"event not taken", func(d *machine.Definition) { d.Events = append(d.Events, event("nap")) }, `gate: events: nap: no row takes it`},

		// Expressions.
		{"no expression", guard("n <"), `gate/open: guard: "n <": column 4: expected operand, found 'EOF'`},
		{"arithmetic", guard("n + 1 == 2"), `gate/open: guard: "n + 1 == 2": column 1: unknown operator +`},
		{"arithmetic inside", guard("up || n + 1 == 2"), `gate/open: guard: "up || n + 1 == 2": column 7: unknown operator +`},
		{"fraction", guard("n < 2.5"), `column 5: 2.5: want a whole number or a quoted name`},
		{"path of three", guard("a.b.c"), `column 1: want name.name`},
		{"index", guard("n[0]"), `column 1: not an expression that rules may use`},
		{"long expression", guard("up" + strings.Repeat(" || up", 1000)), `expression of 6002 bytes: at most 4096`},
		{"deep expression", guard(strings.Repeat("(", 65) + "up" + strings.Repeat(")", 65)), `expression nested 65 deep: at most 64`},
		{"deep negation", guard(strings.Repeat("!", 65) + "up"), `expression nested 65 deep: at most 64`},
		{"unknown fact", guard("upp"), `gate/open: guard: unknown fact "upp": did you mean "up"?`},
		{"unknown argument", guard("arg.kye == key"), `unknown argument "kye": did you mean "key"?`},
		{"unknown view", guard("view.w == 1"), `unknown view "w": want one of ["v"]`},
		{"answer in a guard", guard("res.code == 0"), `res.code: there is no answer yet; res belongs to the targets of a command`},
		{"answer without a command", update("last = res.code"), `gate/shut: then[0].do: res.code: there is no answer yet`},
		{"unknown field of an answer", ok(func(t *machine.Target) { t.Do = "last = res.cod" }), `unknown field of res "cod": did you mean "code"?`},
		{"not a truth value", guard("n"), `n is of type int 7, not bool`},
		{"types that do not match", guard("key == n"), `n is of type int 7, not id key`},
		{"identity and number", guard("key == 3"), `3 is not a value of type id key`},
		{"order of identities", guard("key < arg.key"), `key < arg.key: < is only for int`},
		{"order of colors", guard("color < color"), `color < color: < is only for int`},
		{"unknown color", guard("color == blue"), `unknown name of enum red|green "blue": want one of ["green" "red"]`},
		{"number past the type", guard("n == 8"), `8 is not a value of type int 7`},
		{"negative number", guard("n == -1"), `-1 is not a value of type int 7`},
		{"unknown state in a guard", guard(`state == "opne"`), `"opne" is not a value of type state of gate`},
		{"two constants", guard(`"a" == "b"`), `"a" has no meaning here`},
		{"fact of another in a guard", guard("tok.n == 1"), `tok.n: facts of other instances are read through a view`},
		{"any in a guard", guard("any(token, n == 1)"), `any(token, n == 1): other instances are read through a view`},
		{"unknown function", guard("max(n, 1) == 1"), `max(n, 1) has no meaning here`},
		{"fresh in a guard", guard("key == fresh()"), `gate/open: guard: fresh() has no meaning here`},

		// Updates.
		{"no update", update("n"), `gate/shut: then[0].do: "n": column 1: want fact = expression, fact++ or fact--`},
		{"update of an unknown fact", update("m++"), `unknown fact "m": want one of`},
		{"two values", update("n, up = 1, true"), `column 1: want fact = expression`},
		{"sum", update("n = n + 1"), `column 5: unknown operator +`},
		{"second update is bad", update("n++; up = 1.5"), `column 11: 1.5: want a whole number or a quoted name`},
		{"update that is not closed", update("n = (1"), `not a list of updates (name = expr; name++; name--): column 7`},
		{"update with a brace", update("n++ } //"), `not a list of updates: it has a brace too many`},
		{"counting a truth value", update("up++"), `up++: only an int can be counted`},
		{"fresh number", update("n = fresh()"), `n = fresh(): fresh() makes an identity`},
		{"fresh with an argument", update("key = fresh(1)"), `key = fresh(1): fresh() makes an identity`},
		{"identity from a truth value", update("key = up"), `up is of type bool, not id key`},
		{"argument of another event", update("key = arg.key"), `unknown argument "key": there are none`},

		// Commands and sends.
		{"command without arguments", row(0, func(r *machine.Row) { r.Command = "Open" }), `gate/open: command: "Open": want name(arguments)`},
		{"command of a peer", row(0, func(r *machine.Row) { r.Command = "tok.Open()" }), `"tok.Open()": want Name(arguments)`},
		{"command with nine arguments", row(0, func(r *machine.Row) { r.Command = "Open(n, n, n, n, n, n, n, n, n)" }), `at most 8 arguments`},
		{"command with a bad argument", row(0, func(r *machine.Row) { r.Command = "Open(m)" }), `gate/open: command: unknown fact "m": want one of`},
		{"send to nobody", emit("shut()"), `gate/shut: then[0].emit: "shut()": want peer.event(arguments)`},
		{"send to an unknown machine", emit("tokne.take(1)"), `unknown machine "tokne": did you mean "token"?`},
		{"send to a pool", emit("token.take(1)"), `token is in pool "tokens": name an instance by a ref`},
		{"send of an unknown event", emit("tok.taek(1)"), `unknown event of token "taek": did you mean "take"?`},
		{"send with too few arguments", emit("tok.take()"), `"tok.take()": 0 arguments, token.take takes 1`},
		{"send of another type", emit("tok.take(up)"), `up is of type bool, not int 3`},
		{"taking itself along", with("self.end()"), `gate/shut: with: self.end(): an instance cannot take itself along; emit it`},
		{"taking a command along", with("tok.call()"), `gate/shut: with: tok.call(): row call of it has a command`},

		// Views.
		{"view of a state", view("state"), `gate: views: v: compare the state with a name`},
		{"view of an unknown machine", view("tokne.n"), `unknown machine "tokne": did you mean "token"?`},
		{"view of an unknown fact", view("tok.m"), `unknown fact of tok "m": want one of`},
		{"view of a pool", view("token.n"), `token is in pool "tokens": name an instance by a ref`},
		{"view of a view", view("view.v"), `gate: views: unknown view "v": there are none`},
		{"any with one argument", view("any(token)"), `any(token): want any(machine, expression)`},
		{"any of an unknown machine", view("any(tokne, n == 1)"), `unknown machine "tokne": did you mean "token"?`},
		{"any within any", view("any(token, any(token, n == 1))"), `any(token, n == 1): no nesting`},
		{"count of something", view("count(token, n)"), `n is of type int 3, not bool`},

		// Bounds.
		{"states", func(d *machine.Definition) { d.States = append(d.States, make([]machine.State, 1000)...) }, `gate: states: 1003 states: at most 1000`},
		{"facts", func(d *machine.Definition) { d.Facts = append(d.Facts, make([]machine.Fact, 64)...) }, `gate: facts: 70 facts: at most 64`},
		{"events", func(d *machine.Definition) { d.Events = append(d.Events, make([]machine.Event, 256)...) }, `gate: events: 260 events: at most 256`},
		{"arguments", func(d *machine.Definition) { d.Events[0].Args = make([]machine.Fact, 9) }, `gate: events: 9 arguments of open: at most 8`},
		{"identity", func(d *machine.Definition) { d.Identity = make([]string, 5) }, `gate: identity: 5 facts: at most 4`},
		{"views", func(d *machine.Definition) { d.Views = make([]machine.View, 257) }, `gate: views: 257 views: at most 256`},
		{"targets", row(0, func(r *machine.Row) { r.Then = make([]machine.Target, 65) }), `gate/open: then: 65 targets: at most 64`},
		{"sends", row(2, func(r *machine.Row) { r.Then[0].Emit = make([]string, 33) }), `gate/shut: then[0].emit: 33 events: at most 32`},
		{"views of one event", func(d *machine.Definition) {
			d.Rows[0].Guard = "false"
			for i := range machine.MaxViews + 1 {
				d.Views = append(d.Views, machine.View{Name: fmt.Sprintf("v%d", i), Expr: "n"})
				d.Rows[0].Guard += fmt.Sprintf(" || view.v%d == 1", i)
			}
		}, fmt.Sprintf("gate/open: guard: rows of this state and event read %d views: at most %d", machine.MaxViews+1, machine.MaxViews)},
		{"rows of one state and event", func(d *machine.Definition) {
			d.Rows[0].Guard = "up"
			for i := range 65 {
				d.Rows = append(d.Rows, machine.Row{ID: fmt.Sprintf("r%d", i), From: "shut", Event: "open", Guard: "up", Refuse: "no"})
			}
		}, `gate/r62: from: more than 64 rows of "shut" and open`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := gate()
			c.spoil(d)
			_, err := machine.Compile(d, token())
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			var fault *machine.DefinitionError
			require.ErrorAs(t, err, &fault)
			assert.Zero(t, fault.Line, "it was not read from a file")
		})
	}
}

func TestCompileRefusesBadSets(t *testing.T) {
	_, err := machine.Compile()
	assert.EqualError(t, err, "0 definitions: want 1 to 200")
	_, err = machine.Compile(make([]*machine.Definition, 201)...)
	assert.EqualError(t, err, "201 definitions: want 1 to 200")
	_, err = machine.Compile(gate(), nil)
	assert.EqualError(t, err, "definition 1 is nil")
	assert.PanicsWithValue(t, "machine: 0 definitions: want 1 to 200", func() { machine.MustCompile() })
}

func TestCompileReportsEachFault(t *testing.T) {
	d := gate()
	d.Rows[0].Guard = "upp"
	d.Rows[2].Then[0].To = "opne"
	d.Rows[3].Then[0].Do = "m++"
	_, err := machine.Compile(d, token())
	assert.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), 3)

	d = gate()
	for i := range 60 {
		d.Rows = append(d.Rows, machine.Row{ID: fmt.Sprintf("r%d", i), From: "shut", Event: "poke", Guard: "upp"})
	}
	_, err = machine.Compile(d, token())
	assert.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), 51)
	assert.ErrorContains(t, err, "too many faults: the rest is not shown")
}

// Small files that would become large are refused before they do.
func TestCompileBoundsWhatMultiplies(t *testing.T) {
	many := func(n int) *machine.Definition {
		d := &machine.Definition{Name: "m", Events: []machine.Event{event("e")}}
		for i := range n {
			d.States = append(d.States, machine.State{Name: fmt.Sprint("s", i)})
		}
		return d
	}
	all := func(d *machine.Definition) string {
		var names []string
		for _, s := range d.States {
			names = append(names, s.Name)
		}
		return strings.Join(names, "|")
	}
	chain := many(1000) // compiles: each state leads to the next
	for i := range 999 {
		chain.Rows = append(chain.Rows, machine.Row{ID: fmt.Sprint("r", 999-i), From: chain.States[998-i].Name, Event: "e", Then: to(chain.States[999-i].Name)})
	}
	chain.States[999].Terminal = true
	compile(t, chain)

	rows := many(1000)
	for i := range 17 {
		rows.Rows = append(rows.Rows, machine.Row{ID: fmt.Sprint("r", i), From: all(rows), Event: "e", Guard: "true", Refuse: "no"})
	}
	text := many(1000)
	text.Rows = []machine.Row{{ID: "r", From: all(text), Event: "e", Guard: "true" + strings.Repeat(" || true", 500), Then: make([]machine.Target, 64)}}
	for i := range text.Rows[0].Then {
		text.Rows[0].Then[i].Do = strings.Repeat(" ", 4000)
	}
	cells := *chain
	for i := range 255 {
		cells.Events = append(cells.Events, event(fmt.Sprint("e", i)))
		cells.Rows = append(cells.Rows, machine.Row{ID: fmt.Sprint("x", i), From: "s0", Event: fmt.Sprint("e", i), Refuse: "no"})
	}
	var sets []*machine.Definition
	for i := range 5 {
		d := cells
		d.Name = fmt.Sprint("m", i)
		sets = append(sets, &d)
	}
	flying := many(1000)
	flying.Events = cells.Events
	for i := range 8 {
		flying.Rows = append(flying.Rows, machine.Row{ID: fmt.Sprint("r", i), From: all(flying), Event: fmt.Sprint("e", i), Command: "C()", Then: do("")})
		flying.Rows = append(flying.Rows, machine.Row{ID: fmt.Sprint("f", i), From: strings.ReplaceAll(all(flying)+"|", "|", fmt.Sprintf("▸r%d|", i)), Event: "e", Then: do("")})
		last := &flying.Rows[len(flying.Rows)-1].From
		*last = strings.TrimSuffix(*last, "|")
	}
	joints := many(1)
	joints.Events = nil
	for i := range 60 { // a full graph of joint events: every way through it has 60! ends
		joints.Events = append(joints.Events, event(fmt.Sprint("e", i)))
		r := machine.Row{ID: fmt.Sprint("r", i), From: "s0", Event: fmt.Sprint("e", i), Then: []machine.Target{{}}}
		for j := range 32 {
			r.Then[0].With = append(r.Then[0].With, fmt.Sprintf("p.e%d()", (i+j)%60))
		}
		joints.Rows = append(joints.Rows, r)
	}
	joints.Facts = named("p:ref m")

	for name, c := range map[string]struct {
		defs []*machine.Definition
		want string
	}{
		"rows":         {[]*machine.Definition{rows}, "m/r16: from: the definitions have more than 16384 rows in all"},
		"text":         {[]*machine.Definition{text}, "m/r: from: the definitions have more than 16777216 bytes of rows in all"},
		"cells":        {sets, "m4: views: the definitions have more than 1048576 pairs of state and event in all"},
		"cells flying": {[]*machine.Definition{flying}, "from: the definitions have more than 1048576 pairs of state and event in all"},
		"joints":       {[]*machine.Definition{joints}, "m: with: e0 takes along events more than 6 deep, or in a circle"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := machine.Compile(c.defs...)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestComplementsCloseACase(t *testing.T) {
	for _, g := range [][2]string{{"up", "!up"}, {"!up", "up"}, {"n < 3", "n >= 3"}, {"n != 3", "n == 3"}, {"up && n == 1", "!(up && n == 1)"}} {
		d := gate()
		d.Rows[0].Guard, d.Rows[1].Guard = g[0], g[1]
		compile(t, d, token())
	}
}

func TestEnumNamesGiveWayToFacts(t *testing.T) {
	d := gate()
	d.Facts = append(d.Facts, machine.Fact{Name: "red", Type: "enum red|green"})
	d.Rows[0].Guard = "color == red && red == green"
	l := newLane(t, machine.Config{Pools: map[string]int{"tokens": 1}}, d, token())
	l.takes(l.ref("gate", 0), "end") // color == red, the fact, holds from the start; red == green does not
	err := lane{t, newWorld(t, l.Rules(), machine.Config{Pools: map[string]int{"tokens": 1}})}.refuses(l.ref("gate", 0), "open", 0, 0)
	assert.Equal(t, []string{"color == red && red == green"}, err.Guards())
}

func TestSeveralRulesInOneProcess(t *testing.T) {
	strict, lax := gate(), gate()
	lax.Rows[0].Guard = "!up || up"
	a, b := compile(t, strict, token()), compile(t, lax, token())
	assert.NotEqual(t, a.Hash(), b.Hash())
	assert.Equal(t, a.Hash(), compile(t, gate(), token()).Hash())
	assert.Equal(t, a.At(1).Hash(), b.At(1).Hash(), "one machine of them is the same")
	size := machine.Config{Pools: map[string]int{"tokens": 1}}
	for r, want := range map[*machine.Rules]string{a: "!up", b: "!up || up"} {
		l := lane{t, newWorld(t, r, size)}
		l.takes(l.ref("gate", 0), "open", 1, 1)
		assert.Equal(t, want, l.m("gate").Row(0).Guard)
	}
	assert.Panics(t, func() { newWorld(t, a, size).CopyFrom(newWorld(t, b, size)) })
}
