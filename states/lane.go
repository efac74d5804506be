package states

import "github.com/runfence/runfence/machine"

// lane decides who may come in. It is closed while any launch is partial and
// unproven, and for good once something could not be proven released (F78, F132).
func lane() *machine.Definition {
	live := "open"
	over := "shut|quarantined"
	const free = "unproven == 0 && !poisoned && !faulted"
	// What a run reports counts in a quarantine too: it may be declared while
	// runs are under way.
	count := func(name, do, source string) machine.Row {
		return machine.Row{ID: name, From: live + "|quarantined", Event: name, Source: source, Then: []machine.Target{{Do: do}}}
	}
	return &machine.Definition{
		Name:   "lane",
		Doc:    "Admission to the slots of one environment, and the streams that the slots own.",
		Source: "F, Stream binding; Submitted work with no boundary; Borrowed caller ordering (F12, F55, F78, F121, F132, F160)",
		States: []machine.State{
			{Name: "new", Doc: "No streams yet."},
			{Name: "open", Doc: "The slots have their streams."},
			{Name: "shut", Terminal: true, Doc: "Events, streams and memory of the slots are released."},
			{Name: "quarantined", Doc: "Something could not be proven over: everything is kept for the life of the process. No row leads out."},
		},
		Facts: []machine.Fact{
			{Name: "process", Type: "id process", Doc: "The creating process; immutable, and outlives the worker."},
			{Name: "depth", Type: "int 8", Doc: "How many runs may be launched and not drained at a time."},
			{Name: "runs", Type: "int 4096", Doc: "Runs admitted and not finalized."},
			{Name: "unproven", Type: "int 4096", Doc: "Partial launches without a proof."},
			{Name: "faulted", Type: "bool", Doc: "The device reported a fault: its streams may be in error."},
			{Name: "poisoned", Type: "bool", Doc: "Something failed without evidence of what it left."},
		},
		Identity: []string{"process"},
		Views: []machine.View{
			{Name: "ambiguous", Expr: `any(run, state == "ambiguous")`, Doc: "A preparation left no evidence of its release."},
			{Name: "held", Expr: `any(fence, state == "armed" || core_refs != 0 || cpu_refs != 0)`, Doc: "A fence stands for a run, or a queued wait may name its events."},
		},
		Events: []machine.Event{
			{Name: "open", Args: withArgs(processArg, machine.Fact{Name: "depth", Type: "int 8"})},
			{Name: "admit", Doc: "A run is being prepared."},
			{Name: "leave", Doc: "A run is gone."},
			{Name: "partial", Doc: "A launch is partial."},
			{Name: "proven", Doc: "A partial launch is proven over."},
			{Name: "fault", Doc: "The device reports a fault for a run."},
			{Name: "poison", Doc: "Something cannot be proven released."},
			{Name: "recovered", Doc: "A verified reset let everything go."},
			{Name: "shut", Doc: "Release what the slots own."},
			{Name: "quarantine", Doc: "Keep everything: declared, not concluded."},
		},
		Rows: []machine.Row{
			{
				ID: "open", From: "new", Event: "open", Command: "OpenSlots()", Source: "F121, F171",
				Then: []machine.Target{{On: "ok", To: "open", Do: "process = arg.process; depth = arg.depth"}, {Error: ErrStreams, Code: "res.code"}},
			},
			{ID: "open-again", From: live, Event: "open", Refuse: ErrAlreadyInitialised},
			{ID: "open-over", From: over, Event: "open", Refuse: ErrFinalized},

			{ID: "admit", From: live, Event: "admit", Guard: free, Source: "F78, F154", Then: []machine.Target{{Do: "runs++"}}},
			{ID: "admit-refused", From: live, Event: "admit", Guard: "else", Refuse: ErrAdmissionClosed, Source: "F78, F132"},
			{ID: "admit-over", From: "new|" + over, Event: "admit", Refuse: ErrAdmissionClosed},
			count("leave", "runs--", ""),
			count("partial", "unproven++", "F78"),
			count("proven", "unproven--", "F78"),
			{
				ID: "recovered-ambiguous", From: live + "|quarantined", Event: "recovered", Guard: "view.ambiguous", Source: "F69",
				Doc:  "A reset says nothing of what a preparation left on the host.",
				Then: []machine.Target{{Do: "faulted = false"}},
			},
			{ID: "recovered", From: live + "|quarantined", Event: "recovered", Guard: "else", Source: "F112", Then: []machine.Target{{Do: "poisoned = false; faulted = false"}}},
			count("fault", "faulted = true", "F14, F15"),
			count("poison", "poisoned = true", "F69, F132"),

			{ID: "shut-live", From: live, Event: "shut", Guard: "runs != 0", Refuse: ErrRunLive, Source: "F132"},
			{ID: "shut-poisoned", From: live, Event: "shut", Guard: "poisoned", Refuse: ErrUnproven, Source: "F132", Doc: "Nothing is freed on an unproven path."},
			{ID: "shut-held", From: live, Event: "shut", Guard: "view.held", Refuse: ErrReferenceHeld, Source: "F139", Doc: "Shutting destroys every fence's events: this is guarded, not trusted to the counts."},
			{
				ID: "shut", From: live, Event: "shut", Guard: "else", Command: "ReleaseSlots()", Source: "F121",
				Then: []machine.Target{{On: "ok", To: "shut"}, {Error: ErrStreams, Code: "res.code"}},
			},
			{ID: "shut-new", From: "new", Event: "shut", Then: []machine.Target{{To: "shut"}}},
			{ID: "shut-over", From: over, Event: "shut", Refuse: ErrFinalized},

			{ID: "quarantine", From: "new|open", Event: "quarantine", Source: "F36, F66, F136", Then: []machine.Target{{To: "quarantined"}}},
			{ID: "quarantine-over", From: over, Event: "quarantine", Refuse: ErrFinalized},
		},
	}
}
