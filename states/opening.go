package states

import "github.com/runfence/runfence/machine"

// opening makes an environment and the lane in it, or undoes what it made.
func opening() *machine.Definition {
	environmentArgs := environment().Events[0].Args
	return &machine.Definition{
		Name:   "opening",
		Doc:    "Host operation: make or adopt the native context, then the slots' streams; undo the first if the second fails.",
		Source: "F, Borrowed caller ordering (F48–F53, F64)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "creating", Doc: "The native context is being made or adopted."},
			{Name: "slots", Doc: "The slots' streams are being made."},
			{Name: "undoing", Doc: "Initialisation failed; what was made is given back."},
			{Name: "open", Terminal: true, Doc: "The lane is open."},
		},
		Facts: []machine.Fact{{Name: "process", Type: "id process"}, {Name: "depth", Type: "int 8"}},
		Views: []machine.View{
			{Name: "over", Expr: `environment.state == "torn down"`},
			detached,
			{Name: "quarantined", Expr: `lane.state == "quarantined"`},
			{Name: "absent", Expr: `environment.state == "absent" && lane.state == "new"`},
			{Name: "live", Expr: `environment.state == "live"`},
			{Name: "half_made", Expr: `environment.state == "half made"`},
			{Name: "owed", Expr: `environment.state == "cleanup owed" || environment.state == "half made"`},
			{Name: "open", Expr: `lane.state == "open"`},
			{Name: "device", Expr: "environment.device"},
		},
		Events: []machine.Event{
			{Name: "start", Args: withArgs(environmentArgs, machine.Fact{Name: "depth", Type: "int 8", Doc: "How many runs the lane admits at a time."})},
			{Name: "created"},
			{Name: "opened"},
			{Name: "undone"},
		},
		Rows: []machine.Row{
			{ID: "start-over", From: "ready|open", Event: "start", Guard: "view.over", Refuse: ErrFinalized, Source: "F65"},
			{ID: "start-detached", From: "ready|open", Event: "start", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
			{ID: "start-quarantined", From: "ready", Event: "start", Guard: "view.quarantined", Refuse: ErrDetached, Source: "F66", Doc: "Given up before it was opened."},
			{ID: "start-owed", From: "ready", Event: "start", Guard: "view.owed", Refuse: ErrCleanupOwed, Source: "F64"},
			{ID: "start-again", From: "ready", Event: "start", Guard: "!view.absent", Refuse: ErrAlreadyInitialised},
			{
				ID: "start", From: "ready", Event: "start", Guard: "else", Source: "F48, F51, F52",
				Then: []machine.Target{{
					To: "creating", Do: "process = arg.process; depth = arg.depth",
					Emit: []string{"environment.create(arg.process, arg.device, arg.policy, arg.generation)", "self.created()"},
				}},
			},
			busyEvent("start", "creating|slots|undoing"),
			{ID: "start-open", From: "open", Event: "start", Guard: "else", Refuse: ErrAlreadyInitialised},
			{
				ID: "created", From: "creating", Event: "created", Guard: "view.live",
				Then: []machine.Target{{To: "slots", Emit: []string{"lane.open(process, depth)", "self.opened()"}}},
			},
			{
				ID: "created-half", From: "creating", Event: "created", Guard: "view.half_made", Source: "F53, F64",
				Then: []machine.Target{{To: "undoing", Emit: []string{"environment.rollback(process)", "self.undone()"}}},
			},
			{ID: "not-created", From: "creating", Event: "created", Guard: "else", Then: []machine.Target{{To: "ready", Error: ErrInitialisation}}},
			{
				ID: "opened", From: "slots", Event: "opened", Guard: "view.open && view.live", Source: "F62, F66",
				Doc:  "The environment may have been given up, or its close claimed, meanwhile.",
				Then: []machine.Target{{To: "open", With: []string{"environment.complete()", "health.begin(view.device)"}}},
			},
			{
				ID: "not-opened", From: "slots", Event: "opened", Guard: "else", Source: "F64",
				Then: []machine.Target{{To: "undoing", Emit: []string{"environment.rollback(process)", "self.undone()"}}},
			},
			{
				ID: "undone", From: "undoing", Event: "undone", Source: "F53, F64",
				Doc:  "Undone: initialisation may be retried. Not undone: the environment owes its cleanup and refuses.",
				Then: []machine.Target{{To: "ready", Error: ErrInitialisation}},
			},
		},
	}
}
