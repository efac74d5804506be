package machine_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/machinetest"
)

// What is parsed prints, and what is printed reads back as the same.
func TestRuleTextsPrintAndReadBack(t *testing.T) {
	expr := func(t *rapid.T, text string) string {
		if text == "" || text == "else" {
			return text
		}
		e, err := machine.ParseExpr(text)
		require.NoError(t, err)
		back, err := machine.ParseExpr(e.String())
		require.NoError(t, err, e.String())
		require.Equal(t, e, back, e.String())
		return e.String()
	}
	updates := func(t *rapid.T, text string) string {
		us, err := machine.ParseUpdates(text)
		require.NoError(t, err)
		back, err := machine.ParseUpdates(machine.FormatUpdates(us))
		require.NoError(t, err)
		require.Equal(t, us, back)
		return machine.FormatUpdates(us)
	}
	call := func(t *rapid.T, text string) string {
		if text == "" {
			return ""
		}
		c, err := machine.ParseInvocation(text)
		require.NoError(t, err)
		back, err := machine.ParseInvocation(c.String())
		require.NoError(t, err)
		require.Equal(t, c, back)
		return c.String()
	}
	calls := func(t *rapid.T, texts []string) {
		for i := range texts {
			texts[i] = call(t, texts[i])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		defs := []*machine.Definition{machinetest.Definition(t)}
		if rapid.IntRange(0, 4).Draw(t, "several") == 0 {
			defs = machinetest.Definitions(t)
		}
		hash := machine.MustCompile(defs...).Hash()
		for _, d := range defs {
			for i := range d.Views {
				d.Views[i].Expr = expr(t, d.Views[i].Expr)
			}
			for i := range d.Rows {
				r := &d.Rows[i]
				r.Guard, r.Before, r.Command = expr(t, r.Guard), updates(t, r.Before), call(t, r.Command)
				calls(t, r.With)
				for j := range r.Then {
					x := &r.Then[j]
					x.When, x.Do, x.Code, x.Return = expr(t, x.When), updates(t, x.Do), expr(t, x.Code), expr(t, x.Return)
					calls(t, x.With)
					calls(t, x.Emit)
				}
			}
		}
		require.Equal(t, hash, machine.MustCompile(defs...).Hash())
		text, err := machine.AppendJSON(nil, defs...)
		require.NoError(t, err)
		rules, err := machine.LoadRules(bytes.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, hash, rules.Hash())
		back, err := machine.ParseHash(hash.String())
		require.NoError(t, err)
		require.Equal(t, hash, back)
	})
	_, err := machine.ParseHash("abc")
	assert.EqualError(t, err, `hash "abc": want 32 hexadecimal digits`)
}

func TestExpressionsAsTheyPrint(t *testing.T) {
	for in, want := range map[string]string{
		"a&&b&&c":                             "a && b && c",
		"a && (b && c)":                       "a && (b && c)",
		"(a || b) && c || d":                  "(a || b) && c || d",
		"!(a == b)":                           "a != b",
		"!(a != b)":                           "!(a != b)",
		"!a == b":                             "!a == b",
		"a > b":                               "b < a",
		"a >= b":                              "a >= b",
		"a <= b":                              "b >= a",
		"!(a && b)":                           "!(a && b)",
		"(a < b) == (c < d)":                  "(a < b) == (c < d)",
		"n == -3":                             "n == -3",
		`state == "wide open"`:                `state == "wide open"`,
		"count(token, live && f == 0x10) < 2": "count(token, live && f == 16) < 2",
	} {
		e, err := machine.ParseExpr(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, e.String())
		back, err := machine.ParseExpr(e.String())
		require.NoError(t, err)
		assert.Equal(t, e, back)
	}
	us, err := machine.ParseUpdates(" a++ ;b-- ; c = d == 1 ")
	require.NoError(t, err)
	assert.Equal(t, "a++; b--; c = d == 1", machine.FormatUpdates(us))
}

func TestTypesAndValuesAsTexts(t *testing.T) {
	for _, text := range []string{"bool", "int 1", "int 9223372036854775807", "id epoch", "ref run", "enum red|green|blue", "code"} {
		ty, err := machine.ParseType(text)
		require.NoError(t, err)
		assert.Equal(t, text, ty.String())
	}
	ty, err := machine.ParseType("  enum  a | b ")
	require.NoError(t, err)
	assert.Equal(t, "enum a|b", ty.String())
	for _, c := range []struct {
		ty, text string
		word     uint64
	}{
		{"bool", "true", 1},
		{"bool", "false", 0},
		{"int 9", "9", 9},
		{"id epoch", "none", 0},
		{"id epoch", "18446744073709551615", math.MaxUint64},
		{"ref run", "none", 0},
		{"ref run", "2.513.70000", machine.Ref{Machine: 2, Slot: 513, Gen: 70000}.Pack()},
		{"enum red|green", "green", 1},
		{"code", "-1", machine.CodeWord(-1)},
		{"code", "507018", 507018},
	} {
		ty, err := machine.ParseType(c.ty)
		require.NoError(t, err)
		assert.Equal(t, c.text, ty.Format(c.word))
		w, err := ty.Parse(c.text)
		require.NoError(t, err)
		assert.Equal(t, c.word, w)
	}
	for _, c := range [][3]string{
		{"bool", "yes", `"yes": want true or false`},
		{"int 9", "10", `"10": want a number from 0 to 9`},
		{"int 9", "-1", `"-1": want a number from 0 to 9`},
		{"id epoch", "x", `"x": want a number or none`},
		{"ref run", "1.2", `"1.2": want machine.slot.generation or none`},
		{"ref run", "01.2.3", `"01.2.3": want machine.slot.generation or none`},
		{"ref run", "255.0.0", `"255.0.0": want machine.slot.generation or none`},
		{"ref run", "1.2.3.4", `"1.2.3.4": want machine.slot.generation or none`},
		{"enum red|green", "blue", `"blue": want one of red, green`},
		{"code", "2147483648", `"2147483648": want a 32-bit number`},
	} {
		ty, err := machine.ParseType(c[0])
		require.NoError(t, err)
		_, err = ty.Parse(c[1])
		assert.EqualError(t, err, c[2])
	}
}

func TestRefsPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := machine.Ref{
			Machine: machine.MachineID(rapid.IntRange(0, 199).Draw(t, "machine")),
			Slot:    rapid.Uint16().Draw(t, "slot"),
			Gen:     rapid.Uint32().Draw(t, "gen"),
		}
		require.NotZero(t, r.Pack())
		require.Equal(t, r, machine.UnpackRef(r.Pack()))
	})
}
