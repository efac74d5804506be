package states

import "github.com/runfence/runfence/machine"

// latch is the execution mode of one native handle. Which mode, how far its
// initialisation is, and whether its resources are retired are three facts
// that no one of the others implies (F91).
func latch() *machine.Definition {
	return &machine.Definition{
		Name:   "latch",
		Doc:    "Whether a native handle executes programs or kernels. Claimed once, by nothing undone.",
		Source: "F, Callable registration and execution mode identity (F89–F95)",
		States: []machine.State{
			{Name: "unclaimed", Doc: "No identity yet. It is not PROGRAM."},
			{Name: "program", Doc: "Latched to PROGRAM."},
			{Name: "kernel", Doc: "Latched to KERNEL."},
		},
		Facts: []machine.Fact{
			{Name: "phase", Type: "enum uninitialised|initialising|initialised|finalised"},
			{Name: "retired", Type: "bool", Doc: "The cleanup proof: finalisation released every resource."},
		},
		Events: []machine.Event{
			{Name: "claim", Args: []machine.Fact{{Name: "mode", Type: "enum to_program|to_kernel"}}},
			{Name: "begin", Doc: "Start initialising."},
			{Name: "succeed", Doc: "Initialisation is complete."},
			{Name: "fail", Doc: "Initialisation failed."},
			{Name: "finalise", Args: []machine.Fact{{Name: "proof", Type: "bool", Doc: "Cleanup released everything."}}},
		},
		Rows: []machine.Row{
			{ID: "claim-program", From: "unclaimed", Event: "claim", Guard: "arg.mode == to_program", Source: "F89, F94", Then: []machine.Target{{To: "program"}}},
			{ID: "claim-kernel", From: "unclaimed", Event: "claim", Guard: "else", Source: "F89, F94", Then: []machine.Target{{To: "kernel"}}},
			{ID: "same-program", From: "program", Event: "claim", Guard: "arg.mode == to_program", Source: "F94, F95", Then: []machine.Target{{}}},
			{ID: "switch-to-kernel", From: "program", Event: "claim", Guard: "else", Refuse: ErrModeLatched, Source: "F92, F93"},
			{ID: "same-kernel", From: "kernel", Event: "claim", Guard: "arg.mode == to_kernel", Source: "F94, F95", Then: []machine.Target{{}}},
			{ID: "switch-to-program", From: "kernel", Event: "claim", Guard: "else", Refuse: ErrModeLatched, Source: "F92, F93"},

			{ID: "begin-unclaimed", From: "unclaimed", Event: "begin", Refuse: ErrModeUnclaimed, Source: "F90"},
			{ID: "begin", From: "program|kernel", Event: "begin", Guard: "phase == uninitialised", Source: "F91", Then: []machine.Target{{Do: "phase = initialising"}}},
			{
				ID: "begin-again", From: "program", Event: "begin", Guard: "phase == finalised && retired", Source: "F93",
				Doc:  "Only a PROGRAM handle, and only with the cleanup proof, which is used up.",
				Then: []machine.Target{{Do: "phase = initialising; retired = false"}},
			},
			{ID: "begin-refused", From: "program|kernel", Event: "begin", Guard: "else", Refuse: ErrPhase, Source: "F93"},

			{ID: "succeed", From: "program|kernel", Event: "succeed", Guard: "phase == initialising", Then: []machine.Target{{Do: "phase = initialised"}}},
			{ID: "succeed-refused", From: "program|kernel", Event: "succeed", Guard: "else", Refuse: ErrPhase},
			{
				ID: "fail", From: "program|kernel", Event: "fail", Guard: "phase == initialising", Source: "F92",
				Doc:  "The claim stays.",
				Then: []machine.Target{{Do: "phase = uninitialised"}},
			},
			{ID: "fail-refused", From: "program|kernel", Event: "fail", Guard: "else", Refuse: ErrPhase},
			{ID: "finalise", From: "program|kernel", Event: "finalise", Guard: "phase == initialised", Source: "F91, F92", Then: []machine.Target{{Do: "phase = finalised; retired = arg.proof"}}},
			{ID: "finalise-refused", From: "program|kernel", Event: "finalise", Guard: "else", Refuse: ErrPhase},
			{ID: "nothing-begun", From: "unclaimed", Event: "succeed", Refuse: ErrModeUnclaimed, Source: "F90"},
			{ID: "nothing-to-fail", From: "unclaimed", Event: "fail", Refuse: ErrModeUnclaimed, Source: "F90"},
			{ID: "nothing-to-end", From: "unclaimed", Event: "finalise", Refuse: ErrModeUnclaimed, Source: "F90"},
		},
	}
}
