package states

import "github.com/runfence/runfence/machine"

// finalize ends a run that is proven over, or was never submitted: the fence
// lets it go, then its resources are released. On an unproven path nothing is
// freed (F132).
func finalize() *machine.Definition {
	release := machine.Target{To: "releasing", Do: remember, Emit: []string{"self.release()"}}
	retire := release
	retire.With = []string{"run.retire(" + "arg.run_epoch, arg.generation, arg.dispatch)"}
	again := release
	again.When = "view.retired"
	rows := entry("ready", []machine.Row{
		{ID: "start-gone", From: "ready", Event: "start", Guard: "view.gone", Refuse: ErrStaleIdentity, Source: "F122"},
		{ID: "start-unproven", From: "ready", Event: "start", Guard: "view.unproven", Refuse: ErrUnproven, Source: "F100, F132"},
	},
		overtaken,
		machine.Target{When: "view.gone", Error: ErrStaleIdentity},
		machine.Target{When: "!view.over && !view.retired", Error: ErrUnproven},
		machine.Target{When: "view.held", Error: ErrReferenceHeld},
		again, retire,
	)
	rows = append(rows,
		busyEvent("start", "releasing"),
		machine.Row{
			ID: "release", From: "releasing", Event: "release", Command: "ReleaseRun()", Source: "F63, F132",
			Then: []machine.Target{
				{On: "ok", To: "ready", With: []string{"run.finalized(" + own + ")"}},
				{To: "ready", Error: ErrRelease, Code: "res.code"},
			},
		},
	)
	return &machine.Definition{
		Name:   "finalize",
		Pool:   "slot",
		Doc:    "Host operation: let a run go that is over, and release what it held.",
		Source: "F, Ownership; Submitted work with no boundary (F65, F71, F100, F121, F132, F139)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "releasing", Doc: "The fence let the run go; its resources are being released."},
		},
		Facts:    identityFacts,
		Identity: identityNames,
		Views: append(append([]machine.View(nil), runViews...),
			machine.View{Name: "unproven", Expr: `run.state == "launching" || run.state == "launched" || run.state == "partial" || run.state == "ambiguous" || run.state == "preparing"`},
			machine.View{Name: "over", Expr: `run.state == "prepared" || run.state == "not started" || run.state == "drained"`},
			machine.View{Name: "gone", Expr: `run.state == "finalized"`, Doc: "Another finalize got through first."},
			machine.View{Name: "retired", Expr: `run.state == "retired"`, Doc: "An earlier finalize got this far."},
			machine.View{Name: "held", Expr: `fence.core_refs != 0 || fence.cpu_refs != 0 || caller_order.held != no_wait || join.core_wait != no_wait || join.cpu_wait != no_wait`},
		),
		Events: []machine.Event{
			{Name: "start", Args: runArgs},
			{Name: "release"},
		},
		Rows: rows,
	}
}
