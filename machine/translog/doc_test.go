package translog_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

var update = flag.Bool("update", false, "write the example of docs/log-format.md anew")

// The example of docs/log-format.md is what a writer makes.
func TestDocumentedExample(t *testing.T) {
	const page = "../../docs/log-format.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), "```jsonl\n")
	require.True(t, ok)
	example, after, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)

	lamp := &machine.Definition{
		Name: "lamp", States: []machine.State{{Name: "off"}, {Name: "on"}},
		Events: []machine.Event{{Name: "press", Args: []machine.Fact{fact("who", "id person")}}, {Name: "look"}},
		Facts:  []machine.Fact{fact("owner", "id person")}, Identity: []string{"owner"},
		Rows: []machine.Row{
			{ID: "press", From: "off", Event: "press", Guard: "arg.who != none", Command: "Power(arg.who)", Then: []machine.Target{
				{On: "ok", To: "on", Do: "owner = arg.who"},
				{Error: "no power"},
			}},
			{ID: "press-nobody", From: "off", Event: "press", Guard: "else", Refuse: "nobody there"},
			{ID: "release", From: "on", Event: "press", Then: []machine.Target{{To: "off", Do: "owner = none"}}},
			{ID: "look", From: "on", Event: "look", Then: []machine.Target{{}}},
		},
	}
	rules := machine.MustCompile(lamp)
	var b bytes.Buffer
	w, err := translog.NewWriter(&b, rules, translog.Options{Format: translog.JSONLines})
	require.NoError(t, err)
	now := int64(1000)
	in, err := rules.NewInstance(machine.InstanceConfig{Performer: nothing, Recorder: w.World("kitchen", nil, 0), Clock: func() int64 { now += 5; return now }})
	require.NoError(t, err)
	for _, who := range []uint64{0, 7} {
		if _, err := in.Fire(bg, 0, who); who == 0 {
			require.ErrorIs(t, err, machine.ErrRefused)
		} else {
			require.NoError(t, err)
		}
	}
	for range 41 {
		_, err := in.Fire(bg, 1)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+"```jsonl\n"+b.String()+"```\n"+after), 0o644))
		return
	}
	assert.Equal(t, b.String(), example, "go test -run Documented -update writes it anew")
}
