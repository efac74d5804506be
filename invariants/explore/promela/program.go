package promela

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
)

//go:embed run.pml.tmpl
var runText string

// asserted are the invariants that both halves check, by their id in the
// catalogue.
var asserted = []string{"tokens-equal-counts", "record-before-wait", "events-kept-in-use", "counts-drop-by-proof", "retired-is-proven", "no-wait-cycle", "nothing-freed-in-use"}

// Program writes the run model of a shape in Promela.
func Program(rules *machine.Rules, s Shape) (string, error) {
	if err := s.validate(); err != nil {
		return "", err
	}
	x, err := New(rules, s.exportBounds(rules))
	if err != nil {
		return "", err
	}
	w, err := s.world(rules)
	if err != nil {
		return "", err
	}
	declarations, err := x.Declarations(w)
	if err != nil {
		return "", err
	}
	t, err := template.New("run.pml").Funcs(steps(x)).Parse(runText)
	if err != nil {
		return "", err
	}
	data := map[string]any{
		"Shape": s, "Declarations": declarations, "Temporaries": placeholder,
		"Slots": upTo(0, s.Slots), "Runs": upTo(1, s.Runs+1), "Tokens": upTo(0, s.Tokens),
		"Streams": 2*s.Slots + 1, "Caller": 2 * s.Slots, "StreamNumbers": upTo(0, 2*s.Slots+1), "EventNumbers": upTo(0, 2*s.Slots),
		"Generation": generation, "RightContext": rightContext, "WrongContext": wrongContext,
		"Edges": s.edges(), "Failures": []string{}, "Unsure": []string{}, "Invariants": sentences(),
		"TakeAll": takeAll(s), "Asserted": claims(),
	}
	if s.Faulty {
		data["Failures"] = []string{"refused", "failed", "panicked", "timedout"}
		data["Unsure"] = []string{"failed", "panicked", "timedout"}
	}
	if data["LetGo"], err = letGo(x, s); err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", err
	}
	return strings.Replace(b.String(), placeholder, x.Temporaries(), 1), nil
}

// placeholder stands for what is known only at the end.
const placeholder = "/* temporaries */"

func upTo(from, to int) []int {
	out := []int{}
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func sentences() []string {
	var out []string
	for _, in := range invariants.All() {
		if slices.Contains(asserted, in.ID) {
			out = append(out, in.ID+": "+in.Sentence)
		}
	}
	return out
}

// firstClaim is the number that stands for the first of claims in an assertion.
const firstClaim = 7000

// claims are what assertions name: the asserted invariants, as parts of Promela
// names.
func claims() []string {
	out := []string{"hole", "bounds"}
	for _, id := range asserted {
		out = append(out, strings.ReplaceAll(id, "-", "_"))
	}
	return out
}

// letGo is what a verified reset makes every slot do, in one step.
func letGo(x *Rules, s Shape) (Action, error) {
	var all []Action
	for slot := range s.Slots {
		for _, l := range []string{"caller_order", "join", "fence"} {
			a, err := x.Fire(l, slot, "abandon")
			if err != nil {
				return Action{}, err
			}
			all = append(all, a)
		}
	}
	return Action{func(p *path) []*path {
		paths := []*path{p}
		for _, a := range all {
			paths = onward(paths, a.paths)
		}
		return paths
	}}, nil
}

// takeAll is what a reset does to the device and to the host's calls.
func takeAll(s Shape) string {
	var does []string
	add := func(format string, args ...any) { does = append(does, fmt.Sprintf(format, args...)) }
	add("resets++")
	for i := range 2*s.Slots + 1 {
		add("do :: len(stream[%d]) > 0 -> stream[%d]?_ :: else -> break od", i, i)
	}
	for i := range 2 * s.Slots {
		add("done[%d] = false; kernels[%d] = 0; records[%d] = 0; waits[%d] = 0; call[%d] = QUIET", i, i, i, i, i)
		if s.Join {
			add("joined[%d] = false", i)
		}
	}
	for i := range s.Slots {
		add("made[%d] = false; met[%d] = false; drained[%d] = false", i, i, i)
		if s.Caller {
			add("held[%d] = false", i)
		}
	}
	for i := range s.Tokens {
		add("if :: token__state[%d] != TOKEN_FREE && token__state[%d] != TOKEN_SPENT -> queued[%d] = DEAD :: else fi", i, i, i)
	}
	return strings.Join(does, "; ")
}

// steps are the functions of the template.
func steps(x *Rules) template.FuncMap {
	return template.FuncMap{
		"fire": func(lifecycle string, slot int, event string, args ...any) (Action, error) {
			texts := make([]string, len(args))
			for i, a := range args {
				texts[i] = fmt.Sprint(a)
			}
			return x.Fire(lifecycle, slot, event, texts...)
		},
		"settle": func(lifecycle string, slot int, row, outcome, accepted string, value any) (Action, error) {
			o, err := machine.ParseOutcome(outcome)
			if err != nil {
				return Action{}, err
			}
			return x.Settle(lifecycle, slot, row, Answer{Outcome: o, Accepted: accepted, Value: fmt.Sprint(value)})
		},
		"claim":  func(i int) int { return firstClaim + i },
		"next":   x.Next,
		"drop":   x.Drop,
		"step":   x.Step,
		"stream": func(slot, boundary int) int { return 2*slot + boundary },
		"pair":   func(stream int) int { return stream ^ 1 },
		"slice":  func(all ...any) []any { return all },
		"div":    func(a, b int) int { return a / b },
		"inc":    func(a int) int { return a + 1 },
		"sub":    func(a, b int) int { return a - b },
		"upper":  func(s string) string { return strings.ToUpper(s) },
	}
}
