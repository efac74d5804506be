package explore

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/scenario"
)

// Story is a way through a model, to be told as a scenario.
type Story struct {
	Config model.Config
	// Patches are the changes of the rules, as the verb patch reads them; the
	// rules of Config have them already.
	Patches []string
	// About is the comment that the scenario begins with.
	About string
	Moves []string // see [System.MoveText]
}

// Scenario writes the story as a scenario file, with what the moves answer:
// runfence run --check reproduces it. The recorder, if it is not nil, takes the
// records of the world: a log that replays. The error is one of
// [scenario.Run], for moves that the model does not have.
func (s Story) Scenario(recorder machine.Recorder) ([]byte, error) {
	var b bytes.Buffer
	for _, line := range strings.Split(strings.TrimSpace(s.About), "\n") {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	b.WriteByte('\n')
	for _, p := range s.Patches {
		fmt.Fprintf(&b, "patch %s\n", p)
	}
	fmt.Fprintf(&b, "model begin %s\n", listed(s.Config.String()))
	// A block for each operation of the host's.
	for i, m := range s.Moves {
		if i > 0 && strings.HasPrefix(m, "start ") {
			b.WriteString("----\n\n")
		}
		fmt.Fprintf(&b, "move %s\n", m)
	}
	b.WriteString("model end\n----\n")
	o := scenario.Options{MaxSteps: len(s.Moves) + len(s.Patches) + 10, MaxOutput: 64 << 20}
	if len(s.Patches) == 0 {
		o.Rules = s.Config.Rules
	}
	if recorder != nil {
		o.Recorder = func(string, map[string]int, int) machine.Recorder { return recorder }
	}
	r, err := scenario.Run("story", b.Bytes(), o)
	if err != nil {
		return nil, err
	}
	return r.Rewritten, nil
}

// listed puts the lists among bounds into the form that scenarios read.
func listed(bounds string) string {
	words := strings.Fields(bounds)
	for i, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok && strings.Contains(value, ",") {
			words[i] = name + "=(" + strings.ReplaceAll(value, ",", ", ") + ")"
		}
	}
	return strings.Join(words, " ")
}
