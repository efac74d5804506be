package states

import "github.com/runfence/runfence/machine"

// recovery is what is done about work that cannot be proven over. On an owned
// device: a bounded drain of the device, then a reset, and only a reset that
// confirms lets anything go. On a borrowed one the lane is poisoned and the
// caller recovers: never a device-wide drain, never a reset (F14, F15, F132).
//
// A recovery that fails discards neither the runs nor their return codes (F79).
func recovery() *machine.Definition {
	sweep := func(kind, fact string, act string) machine.Row {
		return machine.Row{
			ID: "sweep-" + id2(kind), From: "sweeping", Event: "sweep", Guard: "view.a_" + fact + " != none", Source: "F136, F140",
			Then: []machine.Target{{Do: "a_" + fact + " = view.a_" + fact, With: []string{"a_" + fact + "." + act + "()"}, Emit: []string{"self.sweep()"}}},
		}
	}
	return &machine.Definition{
		Name:   "recovery",
		Doc:    "Host operation: make a device admit runs again, or declare it unusable.",
		Source: "F, Stream binding; Submitted work with no boundary; Completion is not the verdict (F14, F15, F79, F112, F113, F132, F136, F140)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "checking", Doc: "Admission is closed; the context is being checked."},
			{Name: "draining", Doc: "Every stream of the device is being synchronised, bounded. Its answer decides nothing."},
			{Name: "resetting", Doc: "The device is being reset by force."},
			{Name: "sweeping", Doc: "The reset is confirmed: what stood for work on the device is let go, slot by slot."},
			{Name: "unusable", Doc: "The reset was not confirmed. It may be tried again."},
		},
		Facts: []machine.Fact{
			{Name: "process", Type: "id process"},
			{Name: "a_run", Type: "ref run"},
			{Name: "a_fence", Type: "ref fence"},
			{Name: "a_caller", Type: "ref caller_order"},
			{Name: "a_join", Type: "ref join"},
			{Name: "a_region", Type: "ref region"},
		},
		Views: []machine.View{
			{Name: "process", Expr: "lane.process"},
			{Name: "context", Expr: "environment.context"},
			{Name: "borrowed", Expr: "environment.policy == borrowed"},
			{Name: "live", Expr: `environment.state == "live" && lane.state == "open"`},
			{Name: "needed", Expr: `lane.unproven != 0 || lane.poisoned || lane.faulted || health.state == "suspect" || any(run, state == "launched" || state == "partial")`},
			{Name: "busy", Expr: `any(drain, state != "ready") || any(launch, state != "idle" && state != "complete" && state != "partial" && state != "not started")`, Doc: "An operation is in the middle of the device."},
			{Name: "a_run", Expr: `first(run, state == "launched" || state == "partial" || state == "drained" && !reset)`},
			{Name: "a_fence", Expr: `first(fence, state == "armed" || handles)`},
			{Name: "a_caller", Expr: `first(caller_order, state == "ordering" || handles)`},
			{Name: "a_join", Expr: `first(join, state != "apart")`},
			{Name: "a_region", Expr: `first(region, state == "initialised")`},
			{Name: "standing", Expr: `a_run.state == "launched" || a_run.state == "partial" || a_run.state == "drained"`},
			{Name: "run_epoch", Expr: "a_run.run_epoch"},
			{Name: "generation", Expr: "a_run.generation"},
			{Name: "dispatch", Expr: "a_run.dispatch"},
		},
		Events: []machine.Event{
			{Name: "start", Args: processArg},
			{Name: "check"},
			{Name: "drain"},
			{Name: "reset"},
			{Name: "sweep"},
			{Name: "let_go", Doc: "Let the run go that the sweep found."},
		},
		Rows: []machine.Row{
			{ID: "start-foreign", From: "ready|unusable", Event: "start", Guard: "view.process != none && arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "start-closed", From: "ready|unusable", Event: "start", Guard: "!view.live", Refuse: ErrNotInitialised},
			{ID: "start-healthy", From: "ready|unusable", Event: "start", Guard: "!view.needed", Refuse: ErrNothingToRecover},
			{
				ID: "start-borrowed", From: "ready|unusable", Event: "start", Guard: "view.borrowed", Source: "F15, F40",
				Then: []machine.Target{{With: []string{"lane.poison()"}, Error: ErrBorrowedDevice}},
			},
			{
				ID: "start", From: "ready|unusable", Event: "start", Guard: "else", Source: "F14",
				Doc:  "From now on no run is admitted or launched.",
				Then: []machine.Target{{To: "checking", Do: "process = arg.process", Emit: []string{"self.check()"}}},
			},
			{ID: "check-amid", From: "checking", Event: "check", Guard: "view.busy", Defer: true, Doc: "What is being launched or waited for is let finish."},
			{
				ID: "check", From: "checking", Event: "check", Guard: "else", Command: "CurrentContext()", Source: "F59",
				Then: []machine.Target{
					{On: "ok", When: "res.value != view.context", To: "ready", Error: ErrExecutionContextRefused},
					{On: "ok", To: "draining", Emit: []string{"self.drain()"}},
					{To: "ready", Error: ErrContextQuery, Code: "res.code"},
				},
			},
			busyEvent("start", "checking|draining|resetting|sweeping"),
			{
				ID: "drain", From: "draining", Event: "drain", Command: "DrainDevice()", Source: "F14",
				Then: []machine.Target{{To: "resetting", Emit: []string{"self.reset()"}}},
			},
			{
				ID: "reset", From: "resetting", Event: "reset", Command: "ResetDevice()", Source: "F14, F112, F113, F136",
				Then: []machine.Target{
					{On: "ok", When: "res.value == 1", To: "sweeping", With: []string{"health.reset(true)"}, Emit: []string{"self.sweep()"}},
					{On: "ok refused failed panicked timedout", To: "unusable", With: []string{"health.reset(false)", "lane.poison()"}, Error: ErrDeviceUnusable, Code: "res.code"},
				},
			},
			{
				ID: "sweep-run", From: "sweeping", Event: "sweep", Guard: "view.a_run != none", Source: "F14, F132",
				Then: []machine.Target{{Do: "a_run = view.a_run", Emit: []string{"self.let_go()"}}},
			},
			sweep("fence", "fence", "abandon"),
			sweep("caller", "caller", "abandon"),
			sweep("join", "join", "abandon"),
			sweep("region", "region", "forget"),
			{
				ID: "swept", From: "sweeping", Event: "sweep", Guard: "else", Source: "F112",
				Then: []machine.Target{{To: "ready", With: []string{"lane.recovered()"}}},
			},
			{
				ID: "let-go-overtaken", From: "sweeping", Event: "let_go", Guard: "!view.standing", Source: "F14",
				Doc:  "It was proven over, and finalized, since the sweep found it.",
				Then: []machine.Target{{Emit: []string{"self.sweep()"}}},
			},
			{
				ID: "let_go", From: "sweeping", Event: "let_go", Guard: "else", Source: "F14, F132",
				Then: []machine.Target{{With: []string{"a_run.swept(view.run_epoch, view.generation, view.dispatch)"}, Emit: []string{"self.sweep()"}}},
			},
		},
	}
}
