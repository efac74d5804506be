package translog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// A host records what a machine of its own does, and reads it back.
func Example() {
	valve := &machine.Definition{
		Name: "valve", States: []machine.State{{Name: "shut"}, {Name: "open"}},
		Events: []machine.Event{{Name: "turn"}},
		Rows: []machine.Row{
			{ID: "open", From: "shut", Event: "turn", Command: "Motor()", Then: []machine.Target{{On: "ok", To: "open"}, {Error: "stuck"}}},
			{ID: "shut", From: "open", Event: "turn", Then: []machine.Target{{To: "shut"}}},
		},
	}
	rules := machine.MustCompile(valve)
	var file bytes.Buffer // an *os.File in earnest
	log, err := translog.NewWriter(&file, rules, translog.Options{})
	if err != nil {
		panic(err)
	}
	v, err := rules.NewInstance(machine.InstanceConfig{
		Recorder: log.World("valve 3", nil, 0),
		Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result {
			return machine.Result{Outcome: machine.Failed, Codes: machine.Codes{Code: -5}}
		}),
	})
	if err != nil {
		panic(err)
	}
	_, err = v.Fire(context.Background(), v.Machine().MustEvent("turn"))
	fmt.Println(err != nil)
	if err := log.Close(); err != nil {
		panic(err)
	}

	r, err := translog.NewReader(&file)
	if err != nil {
		panic(err)
	}
	var e translog.Entry
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		if e.Kind == translog.RecordEntry {
			fmt.Println(e.Record.Seq, r.Header().Text(&e.Record))
		}
	}
	fmt.Println(err == io.EOF, r.Closed())
	// Output:
	// true
	// 1 issue valve turn(): shut [open] calls Motor()
	// 2 settle valve turn(): shut [open target 1] answered failed code=-5: stuck
	// true true
}
