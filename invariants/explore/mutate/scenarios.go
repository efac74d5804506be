package mutate

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/scenario"
)

// Scenarios is a [Killer]: scripts whose answers are known. An answer counts
// unless it prints the rules themselves, which notices any change and says
// nothing of what it does.
type Scenarios struct {
	scripts []*script
	// rows has, by "machine/row", the scripts that take the row, and events, by
	// "machine event", those in which a row of it is looked for, cheapest first.
	rows, events map[string][]*script
	// others look at rules in ways that leave no record.
	others []*script
}

type script struct {
	name        string
	src         []byte
	answers     []answer
	transitions int
	// changes are the "machine/row" of the rules that the script itself changes.
	changes map[string]bool
}

type answer struct {
	line int
	text string
}

// NewScenarios runs every *.txt of a directory once, by the rules as they are.
func NewScenarios(dir fs.FS, base *Mutant) (*Scenarios, error) {
	files, err := fs.Glob(dir, "*.txt")
	if err != nil {
		return nil, err
	}
	s := &Scenarios{rows: map[string][]*script{}, events: map[string][]*script{}}
	for _, name := range files {
		src, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		if err := s.learn(&script{name: name, src: src}, base); err != nil {
			return nil, err
		}
	}
	cheapest := func(list []*script) {
		slices.SortStableFunc(list, func(a, b *script) int { return a.transitions - b.transitions })
	}
	cheapest(s.others)
	for _, m := range []map[string][]*script{s.rows, s.events} {
		for _, list := range m {
			cheapest(list)
		}
	}
	return s, nil
}

// learn runs a script by the rules as they are and notes what it takes.
func (s *Scenarios) learn(x *script, base *Mutant) error {
	seen := map[string]bool{}
	note := func(in map[string][]*script, key string) {
		if !seen[key] {
			seen[key] = true
			in[key] = append(in[key], x)
		}
	}
	r, err := scenario.Run(x.name, x.src, scenario.Options{Rules: base.Lane, Orchestrator: base.Orchestrator, Recorder: func(string, map[string]int, int) machine.Recorder {
		return recorderFunc(func(r *machine.Record) {
			x.transitions++
			if r.Kind == machine.Reserved {
				return
			}
			m := base.Lane.At(r.Ref.Machine)
			if r.Row != machine.NoRowID {
				note(s.rows, m.Name()+"/"+m.RowID(r.Row))
			}
			note(s.events, m.Name()+" "+m.EventName(r.Event))
			if r.Refusal == machine.ByJoint {
				by := base.Lane.At(r.By.Machine)
				note(s.events, by.Name()+" "+by.EventName(r.ByEvent))
			}
		})
	}})
	if err != nil {
		return err
	}
	x.answers = answers(r)
	if x.changes, err = changes(x.src); err != nil {
		return err
	}
	s.scripts = append(s.scripts, x)
	for _, b := range r.Blocks {
		for _, c := range b.Commands {
			verb, _, _ := strings.Cut(c.Text, " ")
			if slices.Contains(unrecorded, verb) && !seen[verb] {
				seen[verb] = true
				if !slices.Contains(s.others, x) {
					s.others = append(s.others, x)
				}
			}
		}
	}
	return nil
}

// changes are the rows that a script changes at its head.
func changes(src []byte) (map[string]bool, error) {
	rows := map[string]bool{}
	for line := range strings.Lines(string(src)) {
		text, found := strings.CutPrefix(strings.TrimSpace(line), "patch ")
		if !found {
			continue
		}
		p, err := patch.Parse(text)
		if err != nil {
			return nil, err
		}
		rows[p.Machine+"/"+p.Row] = true
	}
	return rows, nil
}

// unrecorded are verbs that look at rules without leaving a record of it: in a
// world that is stepped by hand, of an environment alone, in a rehearsal, or
// where an event has to wait.
var unrecorded = []string{"pure", "crash", "outcomes", "can", "accepts", "orch", "env", "hold", "packet", "state"}

// telling are verbs that print rules.
var telling = []string{"explain", "why"}

type recorderFunc func(*machine.Record)

func (f recorderFunc) Record(r *machine.Record) { f(r) }

// answers are those that count.
func answers(r *scenario.Result) []answer {
	var out []answer
	for _, b := range r.Blocks {
		if b.Ran && !slices.ContainsFunc(b.Commands, func(c scenario.Command) bool {
			verb, _, _ := strings.Cut(c.Text, " ")
			return slices.Contains(telling, verb)
		}) {
			out = append(out, answer{b.Line, b.Actual})
		}
	}
	return out
}

// Name implements [Killer].
func (s *Scenarios) Name() string { return "scenario" }

// Kill implements [Killer]. Scripts that are known to take the row come first.
func (s *Scenarios) Kill(m *Mutant) (string, bool, error) {
	tried := map[*script]bool{}
	for _, list := range s.order(m) {
		for _, x := range list {
			if tried[x] {
				continue
			}
			tried[x] = true
			// Its own change of that row would not fit, which is no notice of the
			// mutant's.
			if slices.ContainsFunc(m.Patches, func(p patch.Patch) bool { return x.changes[p.Machine+"/"+p.Row] }) {
				continue
			}
			if how := x.notices(m); how != "" {
				return how, true, nil
			}
		}
	}
	return "", false, nil
}

func (s *Scenarios) order(m *Mutant) [][]*script {
	var out [][]*script
	for _, p := range m.Patches {
		out = append(out, s.rows[p.Machine+"/"+p.Row])
	}
	for i, p := range m.Patches {
		out = append(out, s.events[p.Machine+" "+m.rows[i].Event])
	}
	return append(out, s.others)
}

// notices runs the script by the mutant's rules and says what is different.
func (x *script) notices(m *Mutant) (how string) {
	defer func() {
		if p := recover(); p != nil {
			how = fmt.Sprintf("%s: panic: %v", x.name, p)
		}
	}()
	r, err := scenario.Run(x.name, x.src, scenario.Options{
		Rules: m.Lane, Orchestrator: m.Orchestrator, MaxTransitions: 4*x.transitions + 10_000,
	})
	got := answers(r)
	for i, a := range x.answers {
		if i >= len(got) {
			break
		}
		if got[i].text != a.text {
			return fmt.Sprintf("%s:%d", x.name, a.line)
		}
	}
	var e *scenario.Error
	switch {
	case errors.As(err, &e) && errors.Is(err, scenario.ErrTooLarge):
		return fmt.Sprintf("%s:%d: it never ends", x.name, e.Line)
	case err != nil:
		return err.Error()
	}
	return ""
}
