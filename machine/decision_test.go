package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// door has rows that begin alike, and a view that is a constant.
func door() *Definition {
	row := func(id, guard string) Row {
		return Row{ID: id, From: "here", Event: "knock", Guard: guard, Then: []Target{{To: "here", Do: "heard = " + id}}}
	}
	return &Definition{
		Name: "door", States: []State{{Name: "here"}},
		Facts: []Fact{{Name: "shut", Type: "bool"}, {Name: "sign", Type: "enum none_up|red|green"}, {Name: "heard", Type: "enum nobody|guest|friend|red_one|green_one|rest"}},
		Views: []View{{Name: "always", Expr: "true"}},
		Events: []Event{
			{Name: "knock", Args: []Fact{{Name: "who", Type: "id person"}}},
			{Name: "set", Args: []Fact{{Name: "shut", Type: "bool"}, {Name: "sign", Type: "enum none_up|red|green"}}},
		},
		Rows: []Row{
			row("guest", "shut == view.always && arg.who != none && sign == none_up"),
			row("friend", "shut == view.always && arg.who != none && !(sign == red || sign == green)"),
			row("red_one", "shut == view.always && sign == red"),
			row("green_one", "sign == green && (shut || arg.who == none)"),
			row("rest", "else"),
			{ID: "set", From: "here", Event: "set", Then: []Target{{To: "here", Do: "shut = arg.shut; sign = arg.sign"}}},
		},
	}
}

// knocks are worlds of a door, who knocks, the row that is taken, and how many
// tests that takes: rows that begin alike do not ask the same again, nor what an
// answer implies. Where two ways meet, what only one of them knows is asked again.
var knocks = []struct {
	shut, sign, who uint64
	heard           string
	tests           int
}{
	{1, 0, 7, "guest", 3},
	{1, 0, 0, "rest", 4},
	{1, 1, 7, "red_one", 4},
	{1, 1, 0, "red_one", 3},
	{1, 2, 7, "green_one", 5},
	{0, 2, 0, "green_one", 4},
	{0, 2, 7, "rest", 4},
	{0, 0, 7, "rest", 2},
}

func TestDecision(t *testing.T) {
	rules, err := Compile(door())
	require.NoError(t, err)
	w, err := rules.NewWorld(Config{})
	require.NoError(t, err)
	m := rules.At(0)
	d, names := &m.cells[m.MustEvent("knock")].which, m.factTy[2].Names
	for _, c := range knocks {
		require.Equal(t, Accepted, w.Issue(w.Ref(0, 0), m.MustEvent("set"), c.shut, c.sign).Status)
		require.Equal(t, Accepted, w.Issue(w.Ref(0, 0), m.MustEvent("knock"), c.who).Status)
		heard, _ := w.Fact(w.Ref(0, 0), m.MustFact("heard"))
		require.Equal(t, c.heard, names[heard], "%+v", c)
		require.Equal(t, c.tests, asked(d, &w.frames[0]), "%+v", c)
	}
}

// asked returns how many tests a decision takes.
func asked(d *decision, fr *frame) int {
	n := 0
	for i := int32(0); i >= 0; n++ {
		t := d.tests[i]
		one := test{kind: t.kind, base: t.base, at: t.at, c: t.c, yes: yes, no: no}
		to := t.no
		if (&decision{tests: []test{one}, fns: d.fns}).first(fr) == 0 {
			to = t.yes
		}
		if i++; to != 0 {
			i = to
		}
	}
	return n
}
