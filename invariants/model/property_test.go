package model_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// wide are bounds that no search comes to the end of.
var wide = []string{
	"runs=6 slots=3 depth=2 threads=2 faults=2 spare=4 polls=3 expiries=1",
	"runs=5 slots=2 depth=2 submit caller async records faults=2 spare=2 recoveries=1",
	"runs=4 slots=3 depth=3 tokens=2 spare=6 expiries=1",
	"runs=4 borrowed threads=3 polls=4 strangers records faults=1",
	"runs=3 opening close detach quarantine faults=1 spare=2",
}

var systems = map[string]*model.System{}

func drawSystem(t *rapid.T) *model.System {
	text := rapid.SampledFrom(wide).Draw(t, "bounds")
	if systems[text] == nil {
		systems[text] = system(t, text)
	}
	return systems[text]
}

func texts(sys *model.System, s *model.State) (out []string) {
	for _, m := range s.Moves(nil) {
		out = append(out, sys.MoveText(s, m))
	}
	return out
}

// alike fails unless two states are the same in all that can be seen of them.
func alike(t *rapid.T, sys *model.System, a, b *model.State) {
	require.Equal(t, a.Fingerprint(), b.Fingerprint())
	require.Equal(t, texts(sys, a), texts(sys, b))
	require.Equal(t, a.AppendBinary(nil), b.AppendBinary(nil))
	require.Equal(t, a.Final(), b.Final())
}

// TestStates: whatever happens, invariants hold, and a state is the same however
// it was copied, and has the same future.
func TestStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sys := drawSystem(t)
		now, other := sys.New(), sys.New()
		// later takes the same moves as now, by Step and not by Take.
		later := sys.New()
		move := func(t *rapid.T) {
			moves := now.Moves(nil)
			if len(moves) == 0 {
				now, later = sys.New(), sys.New()
				return
			}
			m := rapid.SampledFrom(moves).Draw(t, "move")
			text := sys.MoveText(now, m)
			before := now.Fingerprint()
			same, ok := later.MoveOf(text)
			require.True(t, ok)
			require.Equal(t, m, same)
			p, f := later.Step(same)
			require.Nil(t, f, text)
			require.Nil(t, now.Take(m), text)
			switch p {
			case model.Unchanged:
				require.Equal(t, before, now.Fingerprint(), text)
			case model.Nearer:
				require.NotEqual(t, before, now.Fingerprint(), text)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"move": move,
			"moves": func(t *rapid.T) {
				for range 10 {
					move(t)
				}
			},
			"copy": func(t *rapid.T) {
				other.CopyFrom(now)
				now, other = other, now
			},
			"clone": func(*rapid.T) { now = now.Clone() },
			"binary": func(t *rapid.T) {
				require.NoError(t, other.SetBinary(now.AppendBinary(nil)))
				now, other = other, now
			},
			"": func(t *rapid.T) { alike(t, sys, now, later) },
		})
	})
}

// TestNames: a move, its act and its text name one another, and no two moves of
// a state share any of them.
func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sys := drawSystem(t)
		now := sys.New()
		t.Repeat(map[string]func(*rapid.T){
			"move": func(t *rapid.T) {
				moves := now.Moves(nil)
				if len(moves) == 0 {
					now = sys.New()
					return
				}
				m := rapid.SampledFrom(moves).Draw(t, "move")
				back, ok := now.MoveOf(sys.MoveText(now, m))
				require.True(t, ok)
				require.Equal(t, m, back)
				require.Nil(t, now.Take(m))
			},
			"": func(t *rapid.T) {
				named := map[string]model.Move{}
				acts := map[model.Act]model.Move{}
				for _, m := range now.Moves(nil) {
					text, a := sys.MoveText(now, m), now.Act(m)
					require.NotContains(t, named, text)
					named[text] = m
					require.NotContains(t, acts, a, text)
					acts[a] = m
					require.Less(t, a.Class(), model.Class(model.NumClasses))
					require.Equal(t, strings.HasPrefix(text, "start foreign") || strings.HasPrefix(text, "start stale"), a.Class().Stranger(), text)
				}
				for a, m := range acts {
					back, ok := now.Offered(a)
					require.True(t, ok)
					require.Equal(t, m, back)
				}
				_, ok := now.MoveOf("start nothing 0")
				require.False(t, ok)
			},
		})
	})
}

// TestSlotsAreAlike: what happens in one slot and what happens in another have
// one name, if nothing else tells the slots apart: the numbers of their streams
// do, once the lane watches them for notices. States that are named by all they
// hold have two.
func TestSlotsAreAlike(t *testing.T) {
	const bounds = "runs=2 slots=2 threads=2 polls=2 faults=1 spare=2 expiries=1"
	alike, exact := system(t, bounds), system(t, bounds+" exact")
	watched, compared := alike.Rules().Machine("watched"), 0
	both := func(sys *model.System) *model.State {
		s := sys.New()
		for slot := range 2 {
			m, ok := s.MoveOf([]string{"start prepare 0", "start prepare 1"}[slot])
			require.True(t, ok)
			require.Nil(t, s.Take(m))
			for going := true; going; {
				going = false
				for _, m := range s.Moves(nil) {
					if a := s.Act(m); a.Whom() != 0 && !a.Class().Fault() {
						require.Nil(t, s.Take(m))
						going = true
						break
					}
				}
			}
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, x, y := both(alike), both(alike), both(exact), both(exact)
		apart := false
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			moves := a.Moves(nil)
			if len(moves) == 0 {
				break
			}
			act := a.Act(rapid.SampledFrom(moves).Draw(t, "move"))
			other, before := alike.Swap(act, 0, 1), a.Fingerprint()
			require.Equal(t, act, alike.Swap(other, 0, 1))
			for _, s := range []struct {
				s *model.State
				a model.Act
			}{{a, act}, {b, other}, {x, act}, {y, other}} {
				m, ok := s.s.Offered(s.a)
				require.True(t, ok)
				require.Nil(t, s.s.Take(m))
			}
			if generation, _ := a.World().Fact(a.World().Ref(watched.ID(), 0), watched.MustFact("generation")); generation != 0 {
				break
			}
			compared++
			require.Equal(t, a.Fingerprint(), b.Fingerprint())
			apart = apart || x.Fingerprint() != y.Fingerprint()
			if other != act && a.Fingerprint() != before {
				require.True(t, apart, "states that are named by all they hold tell slots apart")
			}
		}
	})
	require.Greater(t, compared, 200)
}

// TestEveryPrefixIsNone: what is cut short is an error, and leaves a state that
// can be set again.
func TestEveryPrefixIsNone(t *testing.T) {
	sys := system(t, wide[1])
	s, other := sys.New(), sys.New()
	for _, text := range []string{"start submit 0", "device effect prepare[0].CurrentContext", "device return prepare[0].CurrentContext"} {
		m, ok := s.MoveOf(text)
		require.True(t, ok, text)
		require.Nil(t, s.Take(m))
	}
	whole := s.AppendBinary(nil)
	for n := range whole {
		require.Error(t, other.SetBinary(whole[:n]), "%d of %d bytes", n, len(whole))
	}
	require.Error(t, other.SetBinary(append(whole[:len(whole):len(whole)], 0)), "a byte too many")
	require.NoError(t, other.SetBinary(whole))
	require.Equal(t, whole, other.AppendBinary(nil))
}

// FuzzSetBinary: bytes from anywhere are an error, or a state like any other.
func FuzzSetBinary(f *testing.F) {
	sys := system(f, wide[0])
	s := sys.New()
	for range 40 {
		f.Add(s.AppendBinary(nil))
		for _, m := range s.Moves(nil) {
			if s.Act(m).Whom() != 0 || len(s.Moves(nil)) == 1 {
				s.Take(m)
				break
			}
		}
		if m, ok := s.MoveOf("start launch 0"); ok {
			s.Take(m)
		} else if m, ok := s.MoveOf("start prepare 1"); ok {
			s.Take(m)
		} else if m, ok := s.MoveOf("start prepare 0"); ok {
			s.Take(m)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		a, b := sys.New(), sys.New()
		if a.SetBinary(src) != nil {
			return
		}
		texts(sys, a)
		b.CopyFrom(a)
		require.Equal(t, a.AppendBinary(nil), b.AppendBinary(nil))
		require.NoError(t, b.SetBinary(a.AppendBinary(nil)))
		require.Equal(t, a.AppendBinary(nil), b.AppendBinary(nil))
		require.Equal(t, texts(sys, a), texts(sys, b))
	})
}

// TestConfigText: bounds are what their text says.
func TestConfigText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var words []string
		for _, b := range rapid.Permutation(model.Bounds()).Draw(t, "order") {
			if !rapid.Bool().Draw(t, b.Name) {
				continue
			}
			switch {
			case b.Number && (b.Name == "slots" || b.Name == "threads"):
				words = append(words, b.Name+"="+rapid.SampledFrom([]string{"1", "2", "4"}).Draw(t, "n"))
			case b.Number && b.Name != "depth":
				words = append(words, b.Name+"="+rapid.SampledFrom([]string{"1", "3", "8"}).Draw(t, "n"))
			case b.Name == "kinds":
				words = append(words, "kinds=refuse,kernel-hang")
			case b.Name == "calls":
				words = append(words, "calls=RecordEvent,Reset")
			case !b.Number:
				words = append(words, b.Name)
			}
		}
		c, err := model.ParseConfig(strings.Join(words, " "))
		require.NoError(t, err)
		again, err := model.ParseConfig(c.String())
		require.NoError(t, err)
		require.Equal(t, c.String(), again.String())
		sys, err := model.New(again)
		require.NoError(t, err)
		require.Equal(t, c.String(), sys.Name())
		for _, w := range words {
			if c.Budget > 0 || !strings.Contains(w, ",") {
				if w != "slots=1" && w != "threads=1" {
					require.Contains(t, strings.Fields(c.String()), w)
				}
			}
		}

		// Made smaller as often as possible, nothing is left.
		for range 1000 {
			smaller := false
			for _, change := range c.Smaller() {
				before := c.String()
				if !change(&c) {
					require.Equal(t, before, c.String())
					continue
				}
				smaller = true
				_, err := model.ParseConfig(c.String())
				require.NoError(t, err)
				break
			}
			if !smaller {
				break
			}
		}
		require.Equal(t, "runs=1", c.String())
	})
}

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"rums=2":             `unknown bound "rums": did you mean "runs"?`,
		"slots":              `unknown bound "slots"`,
		"submitt":            `did you mean "submit"?`,
		"submit=1":           `unknown bound "submit"`,
		"runs=many":          "invalid syntax",
		"kinds=fail-befor":   `did you mean "fail-before"?`,
		"kinds=hang":         `unknown kind of fault "hang"`,
		"calls=RecordEvents": "RecordEvent",
		"slots=9":            "9 slots: want 1 to 8",
		"slots=2 depth=3":    "depth 3: want 1 to the number of slots",
		"threads=5":          "5 threads: want 1 to 4",
		"runs=201":           "over 200",
		"spare=-1":           "below zero",
		"tokens=9":           "over 8 tokens",
	} {
		_, err := model.ParseConfig(text)
		require.ErrorIs(t, err, model.ErrConfig, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := model.New(model.Config{Slots: 9})
	require.ErrorIs(t, err, model.ErrConfig)
	_, err = model.New(model.Config{Rules: states.OrchestratorRules()})
	require.ErrorContains(t, err, `the rules have no machine "`)

	// Rules under which a lane does not open are told of.
	defs := states.Definitions()
	for _, d := range defs {
		for i := range d.Rows {
			if d.Name == "lane" && d.Rows[i].ID == "open" {
				d.Rows[i].Then[0].Emit = append(d.Rows[i].Then[0].Emit, "self.quarantine()")
			}
		}
	}
	rules, err := machine.Compile(defs...)
	require.NoError(t, err)
	_, err = model.New(model.Config{Rules: rules})
	require.ErrorContains(t, err, "the rules do not open the lane: it is quarantined")
}
