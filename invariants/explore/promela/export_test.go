package promela

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

var golden = flag.Bool("golden", false, "write the golden files anew")

// small are definitions that have, between them, everything that is exported.
var small = map[string][]*machine.Definition{
	"counting": {{
		Name: "box", Pool: "place", Doc: "Counts, and passes values on.",
		States: []machine.State{{Name: "shut"}, {Name: "wide open"}, {Name: "gone", Terminal: true}},
		Facts: []machine.Fact{
			{Name: "a", Type: "int 2"},
			{Name: "b", Type: "int 2"},
			{Name: "c", Type: "int 2"},
			{Name: "owner", Type: "id who"},
			{Name: "lid", Type: "enum down|up"},
			{Name: "sealed", Type: "bool"},
		},
		Views: []machine.View{
			{Name: "others", Expr: `any(box, state == "wide open" && owner == box.owner)`},
			{Name: "crowd", Expr: "count(box, sealed)"},
			{Name: "spare", Expr: `first(box, state == "shut")`},
		},
		Events: []machine.Event{
			{Name: "open", Args: []machine.Fact{{Name: "lid", Type: "enum down|up"}}},
			{Name: "turn"},
			{Name: "seal"},
			{Name: "smash"},
		},
		Rows: []machine.Row{
			{ID: "open-own", From: "shut", Event: "open", Guard: "view.others || arg.lid == down", Refuse: "no"},
			{ID: "open", From: "shut", Event: "open", Guard: "else", Then: []machine.Target{{To: "wide open", Do: "owner = fresh(); lid = arg.lid; a++"}}},
			{ID: "open-again", From: "wide open|gone", Event: "open", Refuse: "no"},
			// What c takes is what a was before it changed.
			{ID: "turn", From: "wide open", Event: "turn", Guard: "a < 2", Then: []machine.Target{{Do: "c = a; a = b; b++"}}},
			{ID: "turn-back", From: "wide open", Event: "turn", Guard: "else", Then: []machine.Target{{To: "shut", Do: "a = 0; b = 0; c = 0; owner = none"}}},
			{ID: "turn-shut", From: "shut", Event: "turn", Defer: true},
			{ID: "turn-gone", From: "gone", Event: "turn", Refuse: "no"},
			{ID: "seal", From: "shut|wide open", Event: "seal", Guard: "view.crowd == 0 && view.spare != self", Then: []machine.Target{{Do: "sealed = true"}}},
			{ID: "seal-no", From: "shut|wide open", Event: "seal", Guard: "else", Refuse: "no"},
			{ID: "seal-gone", From: "gone", Event: "seal", Refuse: "no"},
			{ID: "smash", From: "shut|wide open", Event: "smash", Guard: "lid == up && !sealed", Then: []machine.Target{{To: "gone"}}},
			{ID: "smash-no", From: "shut|wide open", Event: "smash", Guard: "else", Refuse: "no"},
			{ID: "smash-gone", From: "gone", Event: "smash", Refuse: "no"},
		},
	}},
	"joint": {
		{
			Name: "shelf", Pool: "place", States: []machine.State{{Name: "empty"}, {Name: "laden"}},
			Facts:  []machine.Fact{{Name: "load", Type: "int 2"}, {Name: "fragile", Type: "bool"}},
			Events: []machine.Event{{Name: "put"}, {Name: "take"}, {Name: "warn"}},
			Rows: []machine.Row{
				{ID: "put", From: "empty|laden", Event: "put", Guard: "!fragile || load == 0", Then: []machine.Target{{To: "laden", Do: "load++"}}},
				{ID: "put-no", From: "empty|laden", Event: "put", Guard: "else", Refuse: "no"},
				{ID: "take-last", From: "laden", Event: "take", Guard: "load == 1", Then: []machine.Target{{To: "empty", Do: "load--"}}},
				{ID: "take", From: "laden", Event: "take", Guard: "else", Then: []machine.Target{{Do: "load--"}}},
				{ID: "take-none", From: "empty", Event: "take", Refuse: "no"},
				{ID: "warn", From: "empty", Event: "warn", Then: []machine.Target{{Do: "fragile = true"}}},
				{ID: "warn-late", From: "laden", Event: "warn", Refuse: "no"},
			},
		},
		{
			Name: "porter", States: []machine.State{{Name: "idle"}, {Name: "busy"}},
			Facts:  []machine.Fact{{Name: "at", Type: "ref shelf"}, {Name: "heavy", Type: "bool"}},
			Views:  []machine.View{{Name: "room", Expr: "at.load < 2"}},
			Events: []machine.Event{{Name: "visit", Args: []machine.Fact{{Name: "to", Type: "ref shelf"}}}, {Name: "carry"}, {Name: "leave"}},
			Rows: []machine.Row{
				// Two loads on one shelf: the second meets what the first left.
				{ID: "visit", From: "idle", Event: "visit", Then: []machine.Target{{To: "busy", Do: "at = arg.to", With: []string{"at.put()", "at.put()"}}}},
				{ID: "visit-busy", From: "busy", Event: "visit", Refuse: "no"},
				{ID: "carry", From: "busy", Event: "carry", Guard: "view.room", Then: []machine.Target{{With: []string{"at.put()"}}}},
				{ID: "carry-full", From: "busy", Event: "carry", Guard: "else", Then: []machine.Target{{With: []string{"at.take()"}}}},
				{ID: "carry-idle", From: "idle", Event: "carry", Refuse: "no"},
				{ID: "leave", From: "busy", Event: "leave", Then: []machine.Target{{To: "idle", Do: "at = none", With: []string{}}}},
				{ID: "leave-idle", From: "idle", Event: "leave", Refuse: "no"},
			},
		},
	},
	"commands": {{
		Name: "pump", Pool: "place",
		States: []machine.State{{Name: "off"}, {Name: "primed"}, {Name: "on"}, {Name: "dead", Terminal: true}},
		Facts:  []machine.Fact{{Name: "level", Type: "int 2"}, {Name: "asked", Type: "bool"}, {Name: "fault", Type: "code"}},
		Events: []machine.Event{
			{Name: "start", Args: []machine.Fact{{Name: "level", Type: "int 2"}}},
			{Name: "run", Args: []machine.Fact{{Name: "level", Type: "int 2"}}},
			{Name: "stop"},
		},
		Rows: []machine.Row{
			{
				ID: "start", From: "off", Event: "start", Guard: "arg.level != 0", Before: "asked = false", Command: "Prime(arg.level)",
				Then: []machine.Target{
					{On: "ok", When: "res.value == 1", To: "primed", Emit: []string{"self.run(arg.level)"}},
					{On: "ok", Do: "level = 0"},
					{On: "failed", To: "dead", Do: "fault = res.code"},
					{},
				},
			},
			{ID: "start-zero", From: "off", Event: "start", Guard: "else", Refuse: "no"},
			{ID: "start-on", From: "primed|on|dead", Event: "start", Refuse: "no"},
			{ID: "run", From: "primed", Event: "run", Guard: "!asked", Then: []machine.Target{{To: "on", Do: "level = arg.level"}}},
			// An event that waits and is refused is gone.
			{ID: "run-asked", From: "primed", Event: "run", Guard: "else", Refuse: "no"},
			{ID: "run-no", From: "off|on|dead", Event: "run", Refuse: "no"},
			{ID: "stop-starting", From: "off▸start", Event: "stop", Then: []machine.Target{{Do: "asked = true"}}},
			{ID: "stop-primed", From: "primed", Event: "stop", Defer: true},
			{ID: "stop", From: "on", Event: "stop", Then: []machine.Target{{To: "off", Do: "level = 0; asked = false"}}},
			{ID: "stop-off", From: "off|dead", Event: "stop", Refuse: "no"},
		},
	}},
}

var smallBounds = Bounds{Pools: map[string]int{"place": 2}, Identities: map[string]int{"who": 3}}

// free is a host that fires every event with every argument, and answers every
// command in every way: as a model, and as moves of a world.
type free struct {
	rules *machine.Rules
	x     *Rules
	start *machine.World
	text  strings.Builder
	moves []func(w *machine.World) bool
}

func newFree(t *testing.T, defs []*machine.Definition) *free {
	t.Helper()
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	pools := map[string]int{}
	for _, p := range rules.Pools() {
		pools[p] = smallBounds.Pools[p]
	}
	w, err := rules.NewWorld(machine.Config{Pools: pools})
	require.NoError(t, err)
	x, err := New(rules, smallBounds)
	require.NoError(t, err)
	f := &free{rules: rules, x: x, start: w}
	for i := range rules.NumMachines() {
		m := rules.At(machine.MachineID(i))
		for slot := range w.Capacity(m.ID()) {
			f.instance(t, m, slot)
		}
	}
	return f
}

func (f *free) step(t *testing.T, a Action, err error, guard string, move func(w *machine.World) bool) {
	t.Helper()
	require.NoError(t, err)
	text, err := f.x.Step(guard, "", a)
	require.NoError(t, err)
	f.text.WriteString(text)
	f.moves = append(f.moves, move)
}

func (f *free) instance(t *testing.T, m *machine.Machine, slot int) {
	ref := func(w *machine.World) machine.Ref { return w.Ref(m.ID(), slot) }
	var sent []string
	for _, r := range m.Definition().Rows {
		for _, tg := range r.Then {
			for _, e := range tg.Emit {
				name, _, _ := strings.Cut(strings.TrimPrefix(e, "self."), "(")
				sent = append(sent, name)
			}
		}
	}
	for ev, e := range m.Definition().Events {
		if slices.Contains(sent, e.Name) {
			continue // from the instance itself alone: one may wait at a time
		}
		id := machine.EventID(ev)
		f.every(m.EventArgs(id), nil, nil, func(args []uint64, texts []string) {
			guard := ""
			if mints := slices.ContainsFunc(m.Definition().Rows, func(r machine.Row) bool {
				return r.Event == e.Name && slices.ContainsFunc(r.Then, func(t machine.Target) bool { return strings.Contains(t.Do, "fresh") })
			}); mints {
				guard = "_fresh_who < 3"
			}
			a, err := f.x.Fire(m.Name(), slot, e.Name, texts...)
			f.step(t, a, err, guard, func(w *machine.World) bool {
				if guard != "" && minted(w) >= 3 {
					return false
				}
				s := w.Issue(ref(w), id, args...)
				return s.Status <= machine.InFlight
			})
		})
	}
	for _, r := range m.Definition().Rows {
		if r.Command == "" {
			continue
		}
		for o := range machine.Outcome(machine.NumOutcomes) {
			for v := range uint64(2) {
				a, err := f.x.Settle(m.Name(), slot, r.ID, Answer{Outcome: o, Value: fmt.Sprint(v), Code: "7"})
				f.step(t, a, err, "", func(w *machine.World) bool {
					if w.StateName(ref(w)) != r.From+"▸"+r.ID {
						return false
					}
					return w.Settle(ref(w), machine.Result{Outcome: o, Value: v, Codes: machine.Codes{Code: 7}}).Status == machine.Accepted
				})
			}
		}
	}
	if len(sent) > 0 {
		a, err := f.x.Next(m.Name(), slot)
		f.step(t, a, err, "", func(w *machine.World) bool {
			s := w.Next(ref(w))
			return s != nil && s.Status != machine.Deferred
		})
	}
	if a, err := f.x.Drop(m.Name(), slot); err == nil {
		f.step(t, a, err, "", func(w *machine.World) bool { return w.Drop(ref(w)).Status == machine.Accepted })
	}
}

// every lists the values of some types, and their texts.
func (f *free) every(tys []machine.Type, args []uint64, texts []string, do func(args []uint64, texts []string)) {
	if len(tys) == 0 {
		do(slices.Clone(args), slices.Clone(texts))
		return
	}
	value := func(v uint64, text string) { f.every(tys[1:], append(args, v), append(texts, text), do) }
	switch ty := tys[0]; ty.Kind {
	case machine.Enum:
		for i, n := range ty.Names {
			value(uint64(i), n)
		}
	case machine.RefTo:
		m := f.rules.Machine(ty.Name)
		for slot := range f.start.Capacity(m.ID()) {
			value(f.start.Ref(m.ID(), slot).Pack(), fmt.Sprint(slot+1))
		}
	case machine.Int:
		for v := range ty.Max + 1 {
			value(v, fmt.Sprint(v))
		}
	default:
		panic(ty.String())
	}
}

func minted(w *machine.World) (n uint64) {
	w = w.Clone()
	w.Observe(recorder(func(r *machine.Record) { n = r.Args[0] }))
	for v := uint64(1); n == 0; v++ {
		w.ReserveIdentity("who", v)
	}
	return n - 1
}

func (f *free) program(t *testing.T) string {
	t.Helper()
	decl, err := f.x.Declarations(f.start)
	require.NoError(t, err)
	return decl + "#define broken_hole (7000 == 0)\n#define broken_bounds (7001 == 0)\n#define CHECK skip\n" + f.x.Temporaries() +
		"active proctype model() {\nend:\tdo\n" + f.text.String() + "\tod\n}\n"
}

// count visits every state of the world under the free host.
func (f *free) count() (states, edges uint64) {
	exact := func(w *machine.World) string {
		var b []byte
		for i := range f.rules.NumMachines() {
			for slot := range w.Capacity(machine.MachineID(i)) {
				ref := w.Ref(machine.MachineID(i), slot)
				b = fmt.Append(b, w.StateName(ref), w.AppendFacts(nil, ref), w.HasNext(ref), ";")
			}
		}
		if _, is := f.rules.Sort("who"); is {
			b = fmt.Append(b, minted(w))
		}
		return string(b) + waitingArgs(w)
	}
	seen := map[string]bool{exact(f.start): true}
	for todo := []*machine.World{f.start}; len(todo) > 0; todo = todo[1:] {
		for _, move := range f.moves {
			w := todo[0].Clone()
			if !move(w) {
				continue
			}
			edges++
			if k := exact(w); !seen[k] {
				seen[k] = true
				todo = append(todo, w)
			}
		}
	}
	return uint64(len(seen)), edges
}

// waitingArgs is the canonical form of a world with its slots told apart: it
// has what commands in flight and waiting events bear.
func waitingArgs(w *machine.World) string {
	return string(w.AppendCanonical(nil, &machine.Companion{
		Holds: func(_, slot int) uint64 { return uint64(slot) + 1 },
		Append: func(dst []byte, n *machine.Naming) []byte {
			for i := range w.Rules().NumMachines() {
				for slot := range w.Capacity(machine.MachineID(i)) {
					dst = append(dst, byte(n.Slot(machine.MachineID(i), slot)))
				}
			}
			return dst
		},
	}))
}

func TestGoldenModels(t *testing.T) {
	for name, defs := range small {
		t.Run(name, func(t *testing.T) {
			got := newFree(t, defs).program(t)
			file := filepath.Join("testdata", name+".pml")
			if *golden {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")))
		})
	}
}

// SPIN counts as many states and transitions as the engine, for rules that have
// everything that is exported.
func TestSpinCountsWhatTheEngineDoes(t *testing.T) {
	spin := installed(t)
	for name, defs := range small {
		t.Run(name, func(t *testing.T) {
			f := newFree(t, defs)
			v, err := spin.Check(context.Background(), f.program(t), true)
			require.NoError(t, err)
			states, edges := f.count()
			require.Empty(t, v.Broken)
			require.Equal(t, [2]uint64{states, edges}, [2]uint64{v.States, v.Edges})
			require.Greater(t, states, uint64(20), "there is too little to count")
		})
	}
}

func installed(t *testing.T) Spin {
	t.Helper()
	spin, err := FindSpin()
	if err != nil {
		t.Skip(err)
	}
	return spin
}

func TestWhatHasNoFormIsRefusedByName(t *testing.T) {
	base := func() *machine.Definition {
		return &machine.Definition{
			Name: "m", States: []machine.State{{Name: "s"}, {Name: "over", Terminal: true}},
			Events: []machine.Event{{Name: "move"}},
			Rows: []machine.Row{
				{ID: "row", From: "s", Event: "move", Then: []machine.Target{{To: "over"}}},
				{ID: "late", From: "over", Event: "move", Refuse: "no"},
			},
		}
	}
	for want, change := range map[string]func(d *machine.Definition){
		"m, row row: an opaque Go function":            func(d *machine.Definition) { d.Rows[0].DoFunc = func(machine.Facts) {} },
		"m.wide counts to 4294967296: no variable":     func(d *machine.Definition) { d.Facts = []machine.Fact{{Name: "wide", Type: "int 4294967296"}} },
		`identities of sort "x" have no bound`:         func(d *machine.Definition) { d.Facts = []machine.Fact{{Name: "f", Type: "id x"}} },
		"m, row row: it emits 2 events in one step":    func(d *machine.Definition) { d.Rows[0].Then[0].Emit = []string{"self.move()", "self.move()"} },
		"m, row row: it emits other.move() to another": func(d *machine.Definition) { d.Rows[0].Then[0].Emit = []string{"other.move()"} },
		"m.move: i counts to 9007199254740993: no variable": func(d *machine.Definition) {
			d.Events[0].Args = []machine.Fact{{Name: "i", Type: "int 9007199254740993"}}
		},
	} {
		d, other := base(), base()
		other.Name = "other"
		change(d)
		rules, err := machine.Compile(d, other)
		require.NoError(t, err, want)
		_, err = New(rules, Bounds{})
		require.ErrorContains(t, err, want)
	}
}

func TestInstancesThatAreReferredToCannotBeDropped(t *testing.T) {
	f := newFree(t, small["joint"])
	_, err := f.x.Drop("shelf", 0)
	require.ErrorContains(t, err, "porter.at refers to it")
}

// A name that two constants would have is refused: the model would mean
// something else.
func TestConstantsOfOneNameAreRefused(t *testing.T) {
	d := &machine.Definition{
		Name: "m", States: []machine.State{{Name: "a b"}, {Name: "a-b"}},
		Events: []machine.Event{{Name: "move"}},
		Rows:   []machine.Row{{ID: "move", From: "a b|a-b", Event: "move", Then: []machine.Target{{To: "a-b"}}}},
	}
	rules, err := machine.Compile(d)
	require.NoError(t, err)
	x, err := New(rules, Bounds{})
	require.NoError(t, err)
	w, err := rules.NewWorld(machine.Config{})
	require.NoError(t, err)
	_, err = x.Declarations(w)
	require.ErrorContains(t, err, "would both be called M_A_B")
}
