package machine_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// everything uses each member of each part of a Definition.
func everything() []*machine.Definition {
	return []*machine.Definition{
		{
			Name: "gate", Doc: "a gate", Source: "G1", Pool: "gates", Identity: []string{"key"},
			States: []machine.State{{Name: "shut", Doc: "to begin with"}, {Name: "wide open"}, {Name: "gone", Terminal: true, Kept: true}},
			Events: []machine.Event{{Name: "open", Args: []machine.Fact{{Name: "key", Type: "id key", Doc: "whose"}}, Doc: "open it"}, {Name: "end"}, {Name: "hold"}},
			Facts:  named("key:id key", "n:int 7", "color:enum red|green", "last:code", "up:bool", "peer:ref gate"),
			Views:  []machine.View{{Name: "others", Expr: "count(gate, key == key)", Doc: "how many"}},
			Rows: []machine.Row{
				{
					ID: "open", From: "shut", Event: "open", Guard: "view.others < 3 && color == red", Before: "n++; color = green", With: []string{"peer.hold()"},
					Command: "Open(arg.key, n)", Doc: "opens", Source: "G2", Then: []machine.Target{
						{On: "ok", When: "res.code == 0 || res.accepted", To: "wide open", Do: "key = arg.key; last = res.code", Emit: []string{"self.end()"}, Code: "res.code", Return: "n"},
						{On: "ok failed", To: "gone", With: []string{"peer.hold()"}, Error: "did not open"},
						{},
					},
				},
				{ID: "open-no", From: "shut", Event: "open", Guard: "else", Refuse: "too many"},
				{ID: "end", From: "wide open|shut", Event: "end", Then: to("gone")},
				{ID: "hold", From: "wide open|shut", Event: "hold", Then: do("up = true")},
				{ID: "hold-gone", From: "gone", Event: "hold", Refuse: "gone"},
				{ID: "wait", From: "shut▸open", Event: "hold", Defer: true},
			},
		},
		minter(),
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for name, defs := range map[string][]*machine.Definition{"one": {minter()}, "several": everything(), "harbour": harbour()} {
		t.Run(name, func(t *testing.T) {
			text, err := machine.AppendJSON([]byte("// before\n"), defs...)
			require.NoError(t, err)
			text = bytes.TrimPrefix(text, []byte("// before\n"))
			back, err := machine.LoadDefinitions(bytes.NewReader(text))
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff(defs, back, cmpopts.EquateEmpty()))
			rules, err := machine.LoadRules(bytes.NewReader(text))
			require.NoError(t, err)
			assert.Equal(t, compile(t, defs...).Hash(), rules.Hash())
			again, err := machine.AppendJSON(nil, back...)
			require.NoError(t, err)
			assert.Equal(t, string(text), string(again))
		})
	}
}

// Each member that rules depend on counts for the hash, and each that is for
// readers does not.
func TestHashSeesEachMemberThatMatters(t *testing.T) {
	text, err := machine.AppendJSON(nil, everything()...)
	require.NoError(t, err)
	hash := compile(t, everything()...).Hash()
	for _, c := range []struct {
		old, new string
		same     bool
	}{
		{old: `"a gate"`, new: `"another"`, same: true},
		{old: `"to begin with"`, new: `"x"`, same: true},
		{old: `"G2"`, new: `"G3"`, same: true},
		{old: `"how many"`, new: `"x"`, same: true},
		{old: `"view.others < 3 && color == red"`, new: `"view.others<3&&(color==red)"`, same: true},
		{old: `"n++; color = green"`, new: `" n++;color=green"`, same: true},
		{old: `"Open(arg.key, n)"`, new: `"Open(arg.key,n)"`, same: true},
		{old: `view.others < 3`, new: `view.others < 4`},
		{old: `"n++; color = green"`, new: `"n++; color = red"`},
		{old: `"Open(arg.key, n)"`, new: `"Open(arg.key, 3)"`},
		{old: `"count(gate, key == key)"`, new: `"count(gate, n == n)"`},
		{old: `"gates"`, new: `"posts"`},
		{old: `"int 7"`, new: `"int 8"`},
		{old: `red|green"`, new: `red|green|blue"`},
		{old: `"kept": true`, new: `"kept": false`},
		{old: `"too many"`, new: `"too few"`},
		{old: `"did not open"`, new: `"did open"`},
		{old: `"open-no"`, new: `"open-nay"`},
		{old: `"wide open|shut"`, new: `"shut|wide open"`},
		{old: `"defer": true`, new: `"refuse": "wait"`},
		{old: `res.accepted"`, new: `!res.accepted"`},
		{old: `"self.end()"`, new: `"self.hold()"`},
		{old: `"return": "n"`, new: `"return": "3"`},
		{old: `"code": "res.code"`, new: `"code": "res.last"`},
		{old: `"ok failed"`, new: `"ok timedout"`},
		{old: `"identity": [` + "\n" + `      "key"` + "\n" + `    ],`, new: ``},
	} {
		require.True(t, strings.Contains(string(text), c.old), c.old)
		changed := strings.Replace(string(text), c.old, c.new, 1)
		rules, err := machine.LoadRules(strings.NewReader(changed))
		require.NoError(t, err, c.new)
		assert.Equal(t, c.same, hash == rules.Hash(), "%s => %s", c.old, c.new)
	}
}

func TestOpaqueDefinitionHasNoJSON(t *testing.T) {
	d := minter()
	d.Rows[1].DoFunc = func(machine.Facts) {}
	text, err := machine.AppendJSON([]byte("x"), door(), d)
	assert.ErrorIs(t, err, machine.ErrOpaque)
	assert.EqualError(t, err, "minter/burst: a Go function has no JSON form")
	assert.Equal(t, "x", string(text))
	d.Rows[1].DoFunc, d.Rows[0].GuardFunc = nil, func(machine.Facts) bool { return true }
	_, err = machine.AppendJSON(nil, d)
	assert.EqualError(t, err, "minter/mint: a Go function has no JSON form")
}

func TestLoadRefusesWhatIsNoDefinition(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "1:1: the file is empty"},
		{"blank", " \n\n ", "1:1: the file is empty"},
		{"cut short", `{"name":"a"`, "1:12: the file ends too early"},
		{"not JSON", "name: a", "1:2: invalid character 'a' in literal null (expecting 'u')"},
		{"NUL", "\x00", `1:1: invalid character '\x00' at start of value`},
		{"NUL in a string", "{\"name\":\"a\x00b\"}", `1:11: /name: invalid character '\x00' in string (expecting non-control character)`},
		{"no UTF-8", "{\"name\":\"\xff\"}", "1:10: /name: invalid UTF-8"},
		{"two values", "{}\n{}", "2:1: invalid character '{' after top-level value"},
		{"a number", "3", "1:1: want an object, not a number"},
		{"a list of numbers", "[3]", "1:2: /0: want an object, not a number"},
		{"null", `{"pool":null}`, "1:9: /pool: null: leave the member out"},
		{"unknown member", "{\n \"rows\": [\n  {\"id\":\"a\"},\n  {\"gaurd\":\"x\"}]}", `4:4: /rows/1/gaurd: unknown member "gaurd": did you mean "guard"?`},
		{"other case", `{"Name":"a"}`, `1:2: /Name: unknown member "Name": did you mean "name"?`},
		{"a Go function", `{"rows":[{"GuardFunc":"x"}]}`, `1:11: /rows/0/GuardFunc: unknown member "GuardFunc": want one of`},
		{"doubled member", `{"name":"a","name":"b"}`, "1:13: /name: a member that is there already"},
		{"string for a list", `{"states":"a"}`, "1:11: /states: want a list, not a string"},
		{"list for a string", `{"rows":[{"then":[{},{"on":["ok"]}]}]}`, "1:28: /rows/0/then/1/on: want a string, not a list"},
		{"object for a string", `{"name":{}}`, "1:9: /name: want a string, not an object"},
		{"number for a bool", `{"states":[{"terminal":1}]}`, "1:24: /states/0/terminal: want true or false, not a number"},
		{"deep", strings.Repeat("[", 1<<20), "1:17: nested more than 16 deep"},
		{"deep objects", strings.Repeat(`{"a":`, 1<<20), "1:81: nested more than 16 deep"},
		{"large", `{"doc":"` + strings.Repeat("x", 10<<20), "1:8388609: the file has more than 8388608 bytes"},
		{"many rows", `{"rows":[{}` + strings.Repeat(",{}", 1<<20) + "]}", "/rows/131071: more than 131072 states, events, facts, views, rows and targets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := machine.LoadRules(strings.NewReader(c.text))
			var f *machine.FileError
			require.ErrorAs(t, err, &f)
			assert.ErrorContains(t, err, c.want)
			assert.Less(t, len(err.Error()), 500)
			line := strings.Count(c.text[:f.Offset], "\n") + 1
			assert.Equal(t, line, f.Line)
			assert.EqualValues(t, f.Offset-int64(strings.LastIndex(c.text[:f.Offset], "\n")), f.Column)
		})
	}
}

type brokenReader struct{}

var errBroken = errors.New("broken")

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestLoadPassesOnErrorsOfTheReader(t *testing.T) {
	_, err := machine.LoadDefinitions(brokenReader{})
	assert.ErrorIs(t, err, errBroken)
}

func TestFaultsOfDefinitionsHaveAPlaceInTheFile(t *testing.T) {
	const text = `[
  {"name": "a", "states": [{"name": "on"}], "events": [{"name": "e"}], "facts": [{"name": "n", "type": "int 1"}], "rows": [
    {"id": "ok", "from": "on", "event": "e", "guard": "n == 0", "then": [{"do": "n++"}]},
    {"id": "bad", "from": "on", "event": "e", "guard": "else", "then": [{"do": "m++"}]}
  ]},
  {"name": "b", "states": [{"name": "on"}, {"name": "off"}], "events": [{"name": "e"}], "rows": [
    {"id": "bad", "from": "on",
     "event": "e", "then": [{"to": "of"}]}
  ]}
]`
	_, err := machine.LoadRules(strings.NewReader(text))
	require.Error(t, err)
	var all []*machine.DefinitionError
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		d := &machine.DefinitionError{}
		require.ErrorAs(t, e, &d)
		all = append(all, d)
	}
	require.NotEmpty(t, all)
	assert.EqualError(t, all[0], `4:5: a/bad: then[0].do: unknown fact "m": want one of ["n"]`)
	assert.EqualError(t, all[1], `7:5: b/bad: then[0].to: unknown state "of": did you mean "off"?`)
	assert.True(t, strings.HasPrefix(text[all[0].Offset:], `{"id": "bad", "from": "on", "event"`))
	assert.True(t, strings.HasPrefix(text[all[1].Offset:], "{\"id\": \"bad\", \"from\": \"on\",\n"))

	_, err = machine.LoadRules(strings.NewReader("\n  {\"name\": \"a b\"}"))
	assert.ErrorContains(t, err, `2:3: a b: name "a b": want an identifier`)
}

// FuzzDefinition: whatever the bytes, loading and compiling end with rules or
// with an error that has a place, in bounded time and memory.
func FuzzDefinition(f *testing.F) {
	for _, defs := range [][]*machine.Definition{{door()}, {minter()}, everything(), harbour(), pair(), convoy([]string{"a.move()"}, []string{"b.mint()"})} {
		text, err := machine.AppendJSON(nil, defs...)
		require.NoError(f, err)
		f.Add(text)
	}
	files, err := filepath.Glob("testdata/definitions/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := machine.LoadRules(bytes.NewReader(text))
		if err != nil {
			var place *machine.FileError
			var fault *machine.DefinitionError
			if !errors.As(err, &place) && !errors.As(err, &fault) && !strings.Contains(err.Error(), "definitions: want 1 to 200") {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		defs, err := machine.LoadDefinitions(bytes.NewReader(text))
		require.NoError(t, err)
		back, err := machine.AppendJSON(nil, defs...)
		require.NoError(t, err)
		again, err := machine.LoadRules(bytes.NewReader(back))
		require.NoError(t, err)
		require.Equal(t, rules.Hash(), again.Hash())
		// What compiles, runs.
		size := machine.Config{Pools: map[string]int{}}
		for _, p := range rules.Pools() {
			size.Pools[p] = 2
		}
		w, err := rules.NewWorld(size)
		require.NoError(t, err)
		for m := range rules.NumMachines() {
			id := machine.MachineID(m)
			for ev := range rules.At(id).NumEvents() {
				args := make([]uint64, len(rules.At(id).EventArgs(machine.EventID(ev))))
				if s := w.Issue(w.Ref(id, 0), machine.EventID(ev), args...); s.Status == machine.StepRefused {
					require.NotEmpty(t, w.RefusalError(s).Error())
				}
				w.Settle(w.Ref(id, 0), machine.Result{})
				w.Next(w.Ref(id, 0))
				w.Fingerprint(nil)
			}
		}
	})
}

// FuzzRuleText: whatever is written where rules have expressions, compiling
// ends, and what compiles prints and reads back as the same rules, and runs.
func FuzzRuleText(f *testing.F) {
	f.Add("n < 3 && !up || color == red", "n++; key = fresh(); color = green", "Call(arg.key, n, self)", "count(peer, up && gate == self)", "int 7", "peer.take(arg.key)", "a|b▸call")
	f.Add("view.v < 2", "n = view.v; up = arg.up", "Call(state == \"b\")", "first(peer, state == \"on\")", "enum red|green", "self.back()", "b")
	f.Add("arg.key == key && key != none", "last = res.code; n--", "Call(last, -1)", "gate.n", "ref peer", "gate.take(none)", "a")
	f.Fuzz(func(t *testing.T, guard, updates, call, view, ty, send, from string) {
		d := &machine.Definition{
			Name: "gate", States: states("a", "b"),
			Events: []machine.Event{event("call", "key:id key", "up:bool"), event("back"), event("take", "key:id key")},
			Facts:  append(named("n:int 7", "up:bool", "key:id key", "color:enum red|green", "last:code", "gate:ref gate"), machine.Fact{Name: "extra", Type: ty}),
			Views:  []machine.View{{Name: "v", Expr: view}},
			Rows: []machine.Row{
				{ID: "call", From: "a", Event: "call", Guard: guard, Before: updates, Command: call, Then: []machine.Target{
					{On: "ok", When: guard, To: "b", Do: updates, Emit: []string{send}, Return: guard}, {On: "ok", Do: updates}, {Error: machine.Reason(guard)},
				}},
				{ID: "call-else", From: "a", Event: "call", Guard: "else", Refuse: "no"},
				{ID: "back", From: from, Event: "back", Then: []machine.Target{{With: []string{send}, Do: updates}}},
				{ID: "leave", From: "b", Event: "call", Then: to("a")},
				{ID: "take", From: "a|b", Event: "take", Then: do("key = arg.key")},
			},
		}
		peer := &machine.Definition{
			Name: "peer", Pool: "peers", States: states("on"), Events: []machine.Event{event("take", "key:id key")},
			Facts: named("up:bool", "gate:ref gate"),
			Rows:  []machine.Row{{ID: "take", From: "on", Event: "take", Then: do("up = true")}},
		}
		rules, err := machine.Compile(d, peer)
		if err != nil {
			var fault *machine.DefinitionError
			require.ErrorAs(t, err, &fault)
			return
		}
		text, err := machine.AppendJSON(nil, d, peer)
		require.NoError(t, err)
		again, err := machine.LoadRules(bytes.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, rules.Hash(), again.Hash())
		w, err := rules.NewWorld(machine.Config{Pools: map[string]int{"peers": 2}})
		require.NoError(t, err)
		gate := w.Ref(0, 0)
		for _, args := range [][]uint64{{0, 0}, {1, 1}, {1, 1}, {2, 0}} {
			w.Issue(gate, 0, args...)
			w.Issue(gate, 1)
			w.Settle(gate, machine.Result{Value: 3})
			for w.HasNext(gate) {
				if s := w.Next(gate); s == nil || s.Status == machine.Deferred {
					break
				}
			}
			w.Fingerprint(nil)
			require.NoError(t, w.SetBinary(w.AppendBinary(nil)), "a world holds only what its types allow")
		}
	})
}
