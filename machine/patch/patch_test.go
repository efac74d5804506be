package patch

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/machinetest"
)

// gate and lamp are two small machines with every kind of part in them.
func gate() []*machine.Definition {
	return []*machine.Definition{
		{
			Name:   "gate",
			States: []machine.State{{Name: "shut"}, {Name: "half open"}, {Name: "open"}},
			Events: []machine.Event{{Name: "pull", Args: []machine.Fact{{Name: "hard", Type: "bool"}}}, {Name: "push"}, {Name: "jam"}},
			Facts:  []machine.Fact{{Name: "pulls", Type: "int 9"}, {Name: "stuck", Type: "bool"}, {Name: "last", Type: "code"}},
			Rows: []machine.Row{
				{
					ID: "pull", From: "shut", Event: "pull", Guard: "arg.hard && (pulls == 0 || !stuck) && pulls == 0",
					Before: "pulls++", With: []string{"lamp.light(true)"}, Command: "Pull(pulls)",
					Then: []machine.Target{
						{On: "ok", When: "res.code == 0 && !stuck", To: "open", Do: "last = res.code; stuck = false", Emit: []string{"self.push()"}, Code: "res.code"},
						{On: "ok", To: "half open", With: []string{"lamp.light(stuck)"}},
						{On: "failed", To: "half open", Error: "broke"},
						{Error: "not pulled"},
					},
				},
				{ID: "pull-soft", From: "shut", Event: "pull", Guard: "else", Refuse: "pull harder"},
				{ID: "again", From: "half open|open", Event: "pull", Defer: true},
				{ID: "push", From: "half open|open|shut", Event: "push", Guard: "stuck", Refuse: "it is stuck"},
				{ID: "pushed", From: "half open|open|shut", Event: "push", Guard: "!stuck", Then: []machine.Target{{To: "shut", Do: "pulls = 0"}}},
				{ID: "jam", From: "shut|open|half open", Event: "jam", Then: []machine.Target{{Do: "stuck = true"}}},
			},
		},
		{
			Name:   "lamp",
			States: []machine.State{{Name: "dark"}, {Name: "lit"}},
			Events: []machine.Event{{Name: "light", Args: []machine.Fact{{Name: "bright", Type: "bool"}}}},
			Rows:   []machine.Row{{ID: "light", From: "dark|lit", Event: "light", Then: []machine.Target{{When: "arg.bright", To: "lit"}, {To: "dark"}}}},
		},
	}
}

func row(t *testing.T, defs []*machine.Definition, id string) machine.Row {
	t.Helper()
	i := slices.IndexFunc(defs[0].Rows, func(r machine.Row) bool { return r.ID == id })
	require.GreaterOrEqual(t, i, 0, id)
	return defs[0].Rows[i]
}

// TestWhatAPatchChanges: the change, and nothing else.
func TestWhatAPatchChanges(t *testing.T) {
	for _, c := range []struct {
		patch string
		row   string
		want  func(r *machine.Row)
	}{
		{`gate/pull: guard drop`, "pull", func(r *machine.Row) { r.Guard = "true" }},
		{`gate/pull: guard drop "arg.hard"`, "pull", func(r *machine.Row) { r.Guard = "(pulls == 0 || !stuck) && pulls == 0" }},
		{`gate/pull: guard drop "pulls == 0"`, "pull", func(r *machine.Row) { r.Guard = "arg.hard && !stuck && pulls == 0" }},
		{`gate/pull: guard drop "pulls == 0" nth 2`, "pull", func(r *machine.Row) { r.Guard = "arg.hard && (pulls == 0 || !stuck)" }},
		{`gate/pull: guard negate "!stuck"`, "pull", func(r *machine.Row) { r.Guard = "arg.hard && (pulls == 0 || stuck) && pulls == 0" }},
		{`gate/pull: guard negate`, "pull", func(r *machine.Row) { r.Guard = "!(arg.hard && (pulls == 0 || !stuck) && pulls == 0)" }},
		{`gate/pull: guard set "stuck"`, "pull", func(r *machine.Row) { r.Guard = "stuck" }},
		{`gate/push: guard negate`, "pushed", func(r *machine.Row) { r.Guard = "else" }},
		{`gate/push: row drop`, "pushed", func(r *machine.Row) { r.Guard = "" }},
		{`gate/pull: row drop`, "pull-soft", func(r *machine.Row) { r.Guard = "" }},
		{`gate/push: from drop "open"`, "push", func(r *machine.Row) { r.From = "half open|shut" }},
		{`gate/push: refuse drop`, "push", func(r *machine.Row) { r.Refuse, r.Then = "", []machine.Target{{}} }},
		{`gate/again: defer drop`, "again", func(r *machine.Row) { r.Defer, r.Then = false, []machine.Target{{}} }},
		{`gate/pull: before set "pulls++" "pulls--"`, "pull", func(r *machine.Row) { r.Before = "pulls--" }},
		{`gate/pull: before add "stuck = true"`, "pull", func(r *machine.Row) { r.Before = "pulls++; stuck = true" }},
		{`gate/pull: with drop "lamp.light(true)"`, "pull", func(r *machine.Row) { r.With = []string{} }},
		{`gate/pull: then[1].with set "lamp.light(stuck)" "lamp.light(!stuck)"`, "pull", func(r *machine.Row) { r.Then[1].With[0] = "lamp.light(!stuck)" }},
		{`gate/pull: then[0].when drop "res.code == 0"`, "pull", func(r *machine.Row) { r.Then[0].When = "!stuck" }},
		{`gate/pull: then[0].when drop`, "pull", func(r *machine.Row) { r.Then[0].When = "true" }},
		{`gate/pull: then[0].do drop "last = res.code"`, "pull", func(r *machine.Row) { r.Then[0].Do = "stuck = false" }},
		{`gate/pull: then[0].to "half open"`, "pull", func(r *machine.Row) { r.Then[0].To = "half open" }},
		{`gate/pull: then[0].emit drop "self.push()"`, "pull", func(r *machine.Row) { r.Then[0].Emit = []string{} }},
		{`gate/pull: then[0].code drop`, "pull", func(r *machine.Row) { r.Then[0].Code = "" }},
		{`gate/pull: then[2].error set "fell"`, "pull", func(r *machine.Row) { r.Then[2].Error = "fell" }},
		{`gate/pull: then[2] drop`, "pull", func(r *machine.Row) { r.Then = slices.Delete(r.Then, 2, 3) }},
		{`gate/pushed: to open`, "pushed", func(r *machine.Row) { r.Then[0].To = "open" }},
		{`gate/pull: outcome failed as ok`, "pull", func(r *machine.Row) {
			r.Then[0].On, r.Then[1].On, r.Then[3].On = "ok failed", "ok failed", "refused panicked timedout"
			r.Then = slices.Delete(r.Then, 2, 3)
		}},
		{`gate/pull: outcome timedout as failed`, "pull", func(r *machine.Row) {
			r.Then[2].On, r.Then[3].On = "failed timedout", "refused panicked"
		}},
		{`gate/pull: command drop`, "pull", func(r *machine.Row) {
			r.Command, r.Before, r.With = "", "", nil
			r.Then = []machine.Target{
				{When: "!stuck", To: "open", Do: "pulls++; stuck = false", With: []string{"lamp.light(true)"}, Emit: []string{"self.push()"}},
				{To: "half open", Do: "pulls++", With: []string{"lamp.light(true)", "lamp.light(stuck)"}},
			}
		}},
		{`gate/pull: command set "Push(pulls)"`, "pull", func(r *machine.Row) { r.Command = "Push(pulls)" }},
	} {
		p, err := Parse(c.patch)
		require.NoError(t, err, c.patch)
		require.Equal(t, c.patch, p.String())
		defs := gate()
		got, err := Apply(defs, p)
		require.NoError(t, err, c.patch)
		want := row(t, gate(), c.row)
		c.want(&want)
		require.Empty(t, cmp.Diff(want, row(t, got, c.row)), c.patch)
		require.Empty(t, cmp.Diff(gate(), defs), "%s: the originals are changed", c.patch)
		require.Same(t, defs[1], got[1])
		_, err = machine.Compile(got...)
		if stillborn := map[string]string{
			`gate/pull: row drop`:               "cannot be reached",
			`gate/push: from drop "open"`:       "must take what is left",
			`gate/pull: then[0].to "half open"`: "cannot be reached",
		}[c.patch]; stillborn != "" {
			require.ErrorContains(t, err, stillborn)
		} else {
			require.NoError(t, err, c.patch)
		}
	}
}

func TestPatchesFollowOneAnother(t *testing.T) {
	one, err := Parse(`gate/pushed: to "half open"`)
	require.NoError(t, err)
	two, err := Parse(`gate/pushed: to open`)
	require.NoError(t, err)
	got, err := Apply(gate(), one, two)
	require.NoError(t, err)
	require.Equal(t, "open", row(t, got, "pushed").Then[0].To)
}

// TestErrorsNameTheNearestWord: of patches when they are read, of rules when
// they are applied.
func TestErrorsNameTheNearestWord(t *testing.T) {
	for _, c := range []struct{ patch, want string }{
		{``, `want MACHINE/ROW: FIELD VERB`},
		{`gate: row drop`, `want MACHINE/ROW: FIELD VERB`},
		{`gate/pull`, `want MACHINE/ROW: FIELD VERB`},
		{`gate/a b: row drop`, `want MACHINE/ROW: FIELD VERB`},
		{`gate/pull:`, `gate/pull: what of it? want one of`},
		{`gate/pull: gaurd drop`, `unknown field "gaurd": did you mean "guard"?`},
		{`gate/pull: guard`, `guard what? want one of`},
		{`gate/pull: guard dorp`, `guard: unknown verb "dorp": did you mean "drop"?`},
		{`gate/pull: guard add "x"`, `guard: unknown verb "add": `},
		{`gate/pull: guard drop "x" "y"`, `guard drop: 2 texts: want 0 to 1`},
		{`gate/pull: guard set`, `guard set: 0 texts: want 1`},
		{`gate/pull: guard drop ""`, `an empty text`},
		{`gate/pull: guard drop "x`, `a quote that does not end`},
		{`gate/pull: guard drop "x" nth 1`, `nth 1: want a number from 2`},
		{`gate/pull: guard set "x" nth 2`, `nth of what?`},
		{`gate/pull: then[x].to open`, `want then[N], counted from 0`},
		{`gate/pull: then[0].ot open`, `then[0]: unknown field "ot": did you mean`},
		{`gate/pull: outcome failed ok`, `want outcome A as B`},
		{`gate/pull: outcome faild as ok`, `unknown outcome "faild": did you mean "failed"?`},
		{`gaet/pull: row drop`, `unknown machine "gaet": did you mean "gate"?`},
		{`gate/pul: row drop`, `unknown row of gate "pul": did you mean "pull"?`},
		{`gate/pull: to open`, `the row has 4 targets: say which`},
		{`gate/pull: then[4].to open`, `the row has 4 targets`},
		{`gate/pushed: to "half opn"`, `unknown state of gate "half opn": did you mean "half open"?`},
		{`gate/pull: guard drop "arg.hrad"`, `unknown part "arg.hrad": did you mean "arg.hard"?`},
		{`gate/pull: guard drop "arg.hard" nth 2`, `unknown part "arg.hard"`},
		{`gate/pull: guard drop "("`, `column`},
		{`gate/pull: before drop "pulls--"`, `unknown update "pulls--": did you mean "pulls++"?`},
		{`gate/pull: before add "x++; y++"`, `want one update`},
		{`gate/pull: with drop "lamp.light(false)"`, `unknown event "lamp.light(false)": did you mean "lamp.light(true)"?`},
		{`gate/pull: refuse drop`, `the row refuses nothing`},
		{`gate/pull: defer drop`, `the row defers nothing`},
		{`gate/pushed: command drop`, `the row has no command`},
		{`gate/pushed: outcome failed as ok`, `the row has no command, and so no outcomes`},
		{`gate/pushed: when drop`, `the target has no when`},
		{`gate/pushed: error drop`, `there is none`},
		{`gate/jam: guard drop`, `the row has no guard of its own`},
		{`gate/jam: from drop "closed"`, `unknown state "closed"`},
		{`gate/pull: from drop "shut"`, `the only state`},
	} {
		p, err := Parse(c.patch)
		if err == nil {
			_, err = Apply(gate(), p)
		}
		require.ErrorContains(t, err, c.want, c.patch)
	}
}

// TestMutants: every mutant is read back from its text, applies, changes what
// is compiled if it compiles, and has a text of its own.
func TestMutants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		defs := machinetest.Definitions(t)
		rules, err := machine.Compile(defs...)
		require.NoError(t, err)
		before, err := machine.AppendJSON(nil, defs...)
		require.NoError(t, err)
		seen := map[string]bool{}
		all := Mutants(defs)
		for _, p := range all {
			text := p.String()
			require.False(t, seen[text], text)
			seen[text] = true
			back, err := Parse(text)
			require.NoError(t, err, text)
			require.Equal(t, p, back)
		}
		p := rapid.SampledFrom(all).Draw(t, "mutant")
		mutant, err := Apply(defs, p)
		require.NoError(t, err, "%v", p)
		if r, err := machine.Compile(mutant...); err == nil && p.Field != When && p.Field != Guard {
			require.NotEqual(t, rules.Hash(), r.Hash(), "%v", p)
		}
		after, err := machine.AppendJSON(nil, defs...)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
	})
}

func TestMutantsOfOneRow(t *testing.T) {
	var got []string
	for _, p := range Mutants(gate()) {
		if p.Row == "pull" {
			got = append(got, p.String()[len("gate/pull: "):])
		}
	}
	require.Equal(t, []string{
		`row drop`,
		`guard drop`, `guard negate`,
		`guard drop "arg.hard"`, `guard negate "arg.hard"`,
		`guard drop "pulls == 0 || !stuck"`, `guard negate "pulls == 0 || !stuck"`,
		`guard drop "pulls == 0"`, `guard negate "pulls == 0"`, `guard drop "!stuck"`, `guard negate "!stuck"`,
		`guard drop "pulls == 0" nth 2`, `guard negate "pulls == 0" nth 2`,
		`before drop "pulls++"`, `before set "pulls++" "pulls--"`,
		`with drop "lamp.light(true)"`, `with set "lamp.light(true)" "lamp.light(false)"`,
		`command drop`,
		`outcome ok as refused`, `outcome ok as failed`, `outcome refused as ok`, `outcome refused as failed`,
		`outcome failed as ok`, `outcome failed as refused`, `outcome panicked as ok`, `outcome panicked as failed`,
		`outcome timedout as ok`, `outcome timedout as failed`,
		`then[0] drop`, `then[0].to shut`, `then[0].to "half open"`,
		`then[0].when drop`, `then[0].when negate`, `then[0].when drop "res.code == 0"`, `then[0].when negate "res.code == 0"`,
		`then[0].when drop "!stuck"`, `then[0].when negate "!stuck"`,
		`then[0].do drop "last = res.code"`, `then[0].do set "last = res.code" "last = 0"`,
		`then[0].do drop "stuck = false"`, `then[0].do set "stuck = false" "stuck = true"`,
		`then[0].emit drop "self.push()"`, `then[0].code drop`,
		`then[1] drop`, `then[1].to shut`, `then[1].to open`, `then[1].with drop "lamp.light(stuck)"`, `then[1].with set "lamp.light(stuck)" "lamp.light(!stuck)"`,
		`then[2] drop`, `then[2].to shut`, `then[2].to open`, `then[2].error drop`,
		`then[3] drop`, `then[3].to "half open"`, `then[3].to open`, `then[3].error drop`,
	}, got)
}

// FuzzParse: what is read is written so that it reads the same, and applying
// it breaks nothing but the copy.
func FuzzParse(f *testing.F) {
	for _, p := range Mutants(gate()) {
		f.Add(p.String())
	}
	f.Add("gate/pull: guard drop `arg.hard`")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		back, err := Parse(p.String())
		require.NoError(t, err, p.String())
		require.Equal(t, p, back)
		defs := gate()
		if out, err := Apply(defs, p); err == nil {
			_, _ = machine.Compile(out...)
		}
		require.Empty(t, cmp.Diff(gate(), defs))
	})
}
