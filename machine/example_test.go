package machine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/runfence/runfence/machine"
)

// A host's own machine with its own backend: a valve that a motor turns.
func Example() {
	rules := machine.MustCompile(&machine.Definition{
		Name:   "valve",
		States: []machine.State{{Name: "shut"}, {Name: "open"}, {Name: "unknown", Terminal: true}},
		Events: []machine.Event{{Name: "open", Args: []machine.Fact{{Name: "turns", Type: "int 5"}}}, {Name: "shut"}},
		Rows: []machine.Row{
			{ID: "open", From: "shut", Event: "open", Guard: "arg.turns > 0", Command: "Turn(arg.turns)", Then: []machine.Target{
				{On: "ok", To: "open"}, {On: "refused"}, {To: "unknown", Error: "the motor did not answer"},
			}},
			{ID: "open-none", From: "shut", Event: "open", Guard: "else", Refuse: "no turns"},
			{ID: "shut", From: "open", Event: "shut", Then: []machine.Target{{To: "shut"}}},
		},
	})
	valve, err := rules.NewInstance(machine.InstanceConfig{
		Performer: machine.PerformerFunc(func(_ context.Context, c *machine.Command) machine.Result {
			fmt.Println("motor:", rules.CallName(c.Call), c.Args[:c.N])
			return machine.Result{Outcome: machine.OK}
		}),
	})
	if err != nil {
		panic(err)
	}
	open := valve.Machine().MustEvent("open")
	_, err = valve.Fire(context.Background(), open, 0)
	fmt.Println(err)
	_, err = valve.Fire(context.Background(), open, 3)
	fmt.Println(valve.StateName(), err)
	// Output:
	// valve: open refused in state "shut" (row open-none): no turns; said no: arg.turns > 0; accepts open
	// motor: Turn [3]
	// open <nil>
}

// A machine in a file.
func ExampleLoadRules() {
	f, err := os.Open("testdata/definitions/turnstile.json")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	rules, err := machine.LoadRules(f)
	fmt.Println(rules.Machines(), rules.Calls(), err)

	_, err = machine.LoadRules(strings.NewReader(`{
  "name": "lamp",
  "states": [{"name": "off"}, {"name": "on"}],
  "events": [{"name": "press"}],
  "rows": [
    {"id": "on", "from": "off", "event": "press", "then": [{"to": "onn"}]}
  ]
}`))
	fmt.Println(err)
	// Output:
	// [turnstile] [Release] <nil>
	// 6:5: lamp/on: then[0].to: unknown state "onn": did you mean "on"?
}

// The pure level: a step at a time, and a clone that goes another way.
func ExampleWorld() {
	rules := machine.MustCompile(door())
	w, err := rules.NewWorld(machine.Config{})
	if err != nil {
		panic(err)
	}
	door := w.Ref(0, 0)
	s := w.Issue(door, rules.At(0).MustEvent("open"))
	fmt.Println(s.Status, rules.CallName(s.Command.Call), w.StateName(door))
	other := w.Clone()
	w.Settle(door, machine.Result{Outcome: machine.OK})
	other.Settle(door, machine.Result{Outcome: machine.Failed})
	fmt.Println(w.StateName(door), other.StateName(door))
	// Output:
	// in flight Motor closed▸open
	// open closed
}

// What an error tells.
func ExampleRefusalError() {
	rules := machine.MustCompile(door())
	w, err := rules.NewWorld(machine.Config{})
	if err != nil {
		panic(err)
	}
	s := w.Issue(w.Ref(0, 0), rules.At(0).MustEvent("close"))
	var refused *machine.RefusalError
	if err := w.RefusalError(s); errors.As(err, &refused) {
		fmt.Println(errors.Is(err, machine.ErrRefused), refused.Accepts())
	}
	// Output:
	// true [open]
}
