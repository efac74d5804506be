package bench

import (
	"context"
	"testing"

	"github.com/runfence/runfence/machine"
)

// Every machine that is measured has this shape: two states, an event that
// leads from each to the other, a guard on each way that looks at one fact,
// and a command on each way that does nothing.
func toggle() *machine.Definition {
	to := func(state string) []machine.Target {
		return []machine.Target{{On: "ok", To: state}, {Error: "failed"}}
	}
	return &machine.Definition{
		Name:   "toggle",
		States: []machine.State{{Name: "off"}, {Name: "on"}},
		Events: []machine.Event{{Name: "start"}, {Name: "stop"}, {Name: "lock", Args: []machine.Fact{{Name: "yes", Type: "bool"}}}},
		Facts:  []machine.Fact{{Name: "locked", Type: "bool"}},
		Rows: []machine.Row{
			{ID: "start", From: "off", Event: "start", Guard: "!locked", Command: "Work()", Then: to("on")},
			{ID: "start-locked", From: "off", Event: "start", Guard: "else", Refuse: "locked"},
			{ID: "stop", From: "on", Event: "stop", Guard: "!locked", Command: "Work()", Then: to("off")},
			{ID: "stop-locked", From: "on", Event: "stop", Guard: "else", Refuse: "locked"},
			{ID: "lock", From: "off|on", Event: "lock", Then: []machine.Target{{Do: "locked = arg.yes"}}},
		},
	}
}

// subject is one library's machine of that shape, behind plain functions so
// that tests can hold the subjects against one another. Benchmarks call the
// libraries themselves.
type subject struct {
	start, stop func() error
	lock        func(bool)
	state       func() string
	worked      *int // how often the command ran
}

func ours(t testing.TB, recorder machine.Recorder) (*machine.Instance, *int) {
	t.Helper()
	worked := new(int)
	i, err := machine.MustCompile(toggle()).NewInstance(machine.InstanceConfig{
		Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result {
			*worked++
			return machine.Result{}
		}),
		Recorder: recorder,
	})
	if err != nil {
		t.Fatal(err)
	}
	return i, worked
}

// toggles are the events in turn.
func toggles(m *machine.Machine) [2]machine.EventID {
	return [2]machine.EventID{m.MustEvent("start"), m.MustEvent("stop")}
}
