package states

import "github.com/runfence/runfence/machine"

// endpoint is where tasks are carried out. Its failure is notified to each task
// that is under way there, and by the task to the run that it is of (R20).
func endpoint() *machine.Definition {
	return &machine.Definition{
		Name:   "endpoint",
		Pool:   "endpoint",
		Doc:    "Where tasks are carried out, such as a worker process or the mailbox to one. Its failure is that of every task that is under way there, and of no other.",
		Source: "R, Failure propagation (R20)",
		States: []machine.State{
			{Name: "unused", Doc: "No endpoint."},
			{Name: "up", Doc: "It takes tasks."},
			{Name: "failing", Doc: "It failed, and its tasks are being told, one after another. It takes no more, so they come to an end."},
			{Name: "failed", Doc: "It failed, and every task of it has been told."},
			{Name: "gone", Terminal: true, Doc: "The place is free for another."},
		},
		Facts: []machine.Fact{
			{Name: "code", Type: "code", Doc: "Of its failure."},
			{Name: "task", Type: "ref task", Doc: "The task that was told last."},
		},
		Views: []machine.View{
			{Name: "under_way", Expr: `first(task, state == "pending" && endpoint == self)`, Doc: "A task that would never report."},
		},
		Events: []machine.Event{
			{Name: "open"},
			{Name: "assign", Doc: "A task is to be carried out here."},
			{Name: "fail", Doc: "It is known to have failed.", Args: []machine.Fact{{Name: "code", Type: "code"}}},
			{Name: "tell"},
			{Name: "forget"},
		},
		Rows: []machine.Row{
			{ID: "open", From: "unused", Event: "open", Then: []machine.Target{{To: "up"}}},
			{ID: "assign", From: "up", Event: "assign", Source: "R20", Then: []machine.Target{{}}},
			{ID: "assign-failed", From: "failing|failed|gone", Event: "assign", Refuse: ErrEndpointFailed, Source: "R20", Doc: "Nobody would ever tell it."},
			{
				ID: "fail", From: "up", Event: "fail", Source: "R20",
				Then: []machine.Target{{To: "failing", Do: "code = arg.code", Emit: []string{"self.tell()"}}},
			},
			{ID: "fail-telling", From: "failing", Event: "fail", Defer: true},
			{ID: "fail-again", From: "failed", Event: "fail", Source: "R20", Doc: "The first failure is the one.", Then: []machine.Target{{}}},
			{ID: "fail-gone", From: "gone", Event: "fail", Refuse: ErrGone},
			{
				ID: "tell", From: "failing", Event: "tell", Guard: "view.under_way != none", Source: "R20",
				Doc:  "In one step with the task's end and its run's count: a report that comes first stands, and one that comes after finds the task over.",
				Then: []machine.Target{{Do: "task = view.under_way", With: []string{"task.lost(code)"}, Emit: []string{"self.tell()"}}},
			},
			{ID: "told", From: "failing", Event: "tell", Guard: "else", Source: "R20", Then: []machine.Target{{To: "failed", Do: "task = none"}}},
			{ID: "forget", From: "failed", Event: "forget", Then: []machine.Target{{To: "gone"}}},
		},
	}
}
