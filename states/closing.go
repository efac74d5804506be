package states

import "github.com/runfence/runfence/machine"

// closing gives everything back: the claim first, which a wrong context
// rejects with nothing changed, then what the slots own, then the native
// context. What fails stays owed, and closing again goes on from there (F62, F63).
func closing() *machine.Definition {
	return &machine.Definition{
		Name:   "closing",
		Doc:    "Host operation: close the lane and tear the environment down.",
		Source: "F, Borrowed caller ordering; Ownership (F53, F62–F66, F121)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "claiming", Doc: "The context is being checked; nothing is claimed yet."},
			{Name: "releasing", Doc: "The fences are being let go."},
			{Name: "shutting", Doc: "The slots' events, streams and memory are being released."},
			{Name: "tearing", Doc: "The native context is being given back."},
			{Name: "closed", Terminal: true, Doc: "Nothing is left."},
		},
		Facts: []machine.Fact{{Name: "process", Type: "id process"}, {Name: "a_fence", Type: "ref fence", Doc: "Being let go."}},
		Views: []machine.View{
			{Name: "a_fence", Expr: `first(fence, state == "bare" || state == "idle")`},
			{Name: "held", Expr: `any(fence, state == "armed" || core_refs != 0 || cpu_refs != 0)`},
			{Name: "registering", Expr: `registry.state != "open" && registry.state != "finalized"`, Doc: "A callable is being put on the device, or taken off it."},
			{Name: "opening", Expr: `opening.state != "ready" && opening.state != "open"`},
			{Name: "recovering", Expr: `recovery.state != "ready" && recovery.state != "unusable"`},
			{Name: "process", Expr: "environment.process"},
			{Name: "absent", Expr: `environment.state == "absent"`},
			{Name: "over", Expr: `environment.state == "torn down" || environment.state == "detached"`},
			{Name: "claimed", Expr: `environment.state == "closing"`},
			{Name: "gone", Expr: `environment.state == "torn down"`},
			{Name: "live_runs", Expr: "lane.runs != 0"},
			{Name: "poisoned", Expr: "lane.poisoned || lane.unproven != 0"},
			{Name: "shut", Expr: `lane.state == "shut"`},
			{Name: "quarantined", Expr: `lane.state == "quarantined"`},
		},
		Events: []machine.Event{
			{Name: "start", Args: processArg},
			{Name: "claimed"},
			{Name: "let_go", Doc: "Let the next fence go."},
			{Name: "slots_shut"},
			{Name: "torn"},
		},
		Rows: []machine.Row{
			{ID: "start-opening", From: "ready", Event: "start", Guard: "view.opening", Defer: true, Doc: "What is being opened is let finish."},
			{ID: "start-absent", From: "ready", Event: "start", Guard: "view.absent", Refuse: ErrNotInitialised},
			{ID: "start-over", From: "ready", Event: "start", Guard: "view.over", Refuse: ErrFinalized, Source: "F65, F66"},
			{ID: "start-foreign", From: "ready", Event: "start", Guard: "arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54, F56"},
			{ID: "start-recovering", From: "ready", Event: "start", Guard: "view.recovering", Defer: true, Source: "F14", Doc: "A recovery that is under way is let finish: it may reset what a close would free."},
			{ID: "start-live", From: "ready", Event: "start", Guard: "view.live_runs && !view.poisoned", Refuse: ErrRunLive},
			{ID: "start-poisoned", From: "ready", Event: "start", Guard: "view.poisoned", Refuse: ErrUnproven, Source: "F132", Doc: "Nothing is freed on an unproven path: detach, or quarantine."},
			{ID: "start-quarantined", From: "ready", Event: "start", Guard: "view.quarantined", Refuse: ErrUnproven, Source: "F36, F132", Doc: "Kept for the life of the process: only detach is left."},
			{
				ID: "start-claimed-shut", From: "ready", Event: "start", Guard: "view.claimed && view.shut", Source: "F63",
				Doc:  "Only the teardown is owed.",
				Then: []machine.Target{{To: "tearing", Do: "process = arg.process", Emit: []string{"environment.teardown(process)", "self.torn()"}}},
			},
			{
				ID: "start-claimed", From: "ready", Event: "start", Guard: "view.claimed", Source: "F63",
				Doc:  "A close was claimed before; what it owes is tried again.",
				Then: []machine.Target{{To: "releasing", Do: "process = arg.process", Emit: []string{"self.let_go()"}}},
			},
			{
				ID: "start", From: "ready", Event: "start", Guard: "else", Source: "F62",
				Then: []machine.Target{{To: "claiming", Do: "process = arg.process", Emit: []string{"environment.close(arg.process)", "self.claimed()"}}},
			},
			busyEvent("start", "claiming|releasing|shutting|tearing"),
			{ID: "start-closed", From: "closed", Event: "start", Refuse: ErrFinalized, Source: "F65"},
			{
				ID: "claimed-shut", From: "claiming", Event: "claimed", Guard: "view.claimed && view.shut", Source: "F63",
				Doc:  "An earlier close got as far as the teardown, which failed.",
				Then: []machine.Target{{To: "tearing", Emit: []string{"environment.teardown(process)", "self.torn()"}}},
			},
			{
				ID: "claimed", From: "claiming", Event: "claimed", Guard: "view.claimed",
				Then: []machine.Target{{To: "releasing", Emit: []string{"self.let_go()"}}},
			},
			{ID: "let-go-amid", From: "releasing", Event: "let_go", Guard: "view.registering", Defer: true, Source: "F88", Doc: "A registration that is under way is let finish: what it put on the device is freed with the slots."},
			{ID: "let-go-recovering", From: "releasing", Event: "let_go", Guard: "view.recovering", Defer: true, Source: "F14", Doc: "So is one that began before the claim."},
			{
				ID: "let-go-quarantined", From: "releasing", Event: "let_go", Guard: "view.quarantined", Source: "F36, F132",
				Doc:  "Quarantined since the close began: nothing is let go, and the claim stays.",
				Then: []machine.Target{{To: "ready", Error: ErrTeardown}},
			},
			{
				ID: "let-go", From: "releasing", Event: "let_go", Guard: "!view.held && view.a_fence != none", Source: "F121, F139",
				Doc:  "One fence after the other: each refuses for itself.",
				Then: []machine.Target{{Do: "a_fence = view.a_fence", With: []string{"a_fence.release()"}, Emit: []string{"self.let_go()"}}},
			},
			{
				ID: "let-go-all", From: "releasing", Event: "let_go", Guard: "else",
				Then: []machine.Target{{To: "shutting", Emit: []string{"lane.shut()", "self.slots_shut()"}}},
			},
			{ID: "not-claimed", From: "claiming", Event: "claimed", Guard: "else", Source: "F62", Then: []machine.Target{{To: "ready", Error: ErrCloseRejected}}},
			{
				ID: "slots-shut", From: "shutting", Event: "slots_shut", Guard: "view.shut",
				Then: []machine.Target{{To: "tearing", Emit: []string{"environment.teardown(process)", "self.torn()"}}},
			},
			{
				ID: "slots-not-shut", From: "shutting", Event: "slots_shut", Guard: "else", Source: "F63",
				Doc:  "The claim stays; the debt may be paid by closing again.",
				Then: []machine.Target{{To: "ready", Error: ErrTeardown}},
			},
			{ID: "torn", From: "tearing", Event: "torn", Guard: "view.gone", Source: "F65", Then: []machine.Target{{To: "closed"}}},
			{ID: "not-torn", From: "tearing", Event: "torn", Guard: "else", Source: "F53, F63", Then: []machine.Target{{To: "ready", Error: ErrTeardown}}},
		},
	}
}
