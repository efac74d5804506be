package states

import "github.com/runfence/runfence/machine"

// registry registers and unregisters callables, one at a time: a scan for a
// free id and its claim are one step, and no other registration, unregistration
// or finalize comes between a claim and its upload (F88).
func registry() *machine.Definition {
	const (
		busyStates = "claiming|uploading|leaving|removing"
		// Before initialisation there is no process to compare with.
		foreign = "view.process != none && arg.process != view.process"
	)
	failed := func(on string, to machine.Reason, with string) machine.Target {
		return machine.Target{On: on, To: "open", With: []string{with}, Error: to, Code: "res.code"}
	}
	return &machine.Definition{
		Name:   "registry",
		Doc:    "Registration of callables: automatic and explicit ids share one namespace, one image cache and one table.",
		Source: "F, Callable registration and execution mode identity; Borrowed caller ordering (F81–F88, F156, F163)",
		States: []machine.State{
			{Name: "open", Doc: "Nothing is under way."},
			{Name: "claiming", Doc: "The context is the right one; an id is about to be taken."},
			{Name: "uploading", Doc: "The id is taken; its image is being put on the device, or shared."},
			{Name: "leaving", Doc: "The context is the right one; a callable is about to leave."},
			{Name: "removing", Doc: "A callable is being taken off the device."},
			{Name: "finalized", Terminal: true, Doc: "The table is cleared."},
		},
		Facts: []machine.Fact{
			{Name: "process", Type: "id process"},
			{Name: "slot", Type: "ref callable", Doc: "Of the registration under way."},
			{Name: "image", Type: "id image"},
			{Name: "automatic", Type: "bool"},
		},
		Views: []machine.View{
			{Name: "process", Expr: "environment.process"},
			{Name: "context", Expr: "environment.context"},
			{Name: "live", Expr: `environment.state == "live"`, Doc: "No close is claimed, and nothing is given up."},
			detached,
			{Name: "claimed", Expr: `latch.state != "unclaimed" && latch.phase == initialised`},
			{Name: "free", Expr: `first(callable, state == "free")`},
			{Name: "taken", Expr: `slot.state != "free"`},
			{Name: "occupancy", Expr: "slot.occupancy"},
			{Name: "shared", Expr: "any(callable, uploaded && image == registry.image)", Doc: "An equal image is on the device already."},
			{Name: "image", Expr: "slot.image"},
			{Name: "shared_still", Expr: `any(callable, state == "registered" && image == registry.image)`, Doc: "Another id has an equal image."},
		},
		Events: []machine.Event{
			{Name: "register", Doc: "Take the first free id.", Args: withArgs(processArg,
				machine.Fact{Name: "image", Type: "id image"},
				machine.Fact{Name: "supported", Type: "bool", Doc: "The runtime has the optional entry."},
			)},
			{Name: "register_at", Doc: "Take this id.", Args: withArgs(processArg,
				machine.Fact{Name: "image", Type: "id image"},
				machine.Fact{Name: "slot", Type: "ref callable"},
			)},
			{Name: "claim"},
			{Name: "upload"},
			{Name: "unregister", Args: withArgs(processArg,
				machine.Fact{Name: "slot", Type: "ref callable"},
				machine.Fact{Name: "occupancy", Type: "id occupancy"},
			)},
			{Name: "leave", Args: []machine.Fact{{Name: "occupancy", Type: "id occupancy"}}},
			{Name: "remove"},
			{Name: "finalize", Doc: "Clear the table; the same lock as registration."},
		},
		Rows: []machine.Row{
			{ID: "register-foreign", From: "open", Event: "register", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "register-unsupported", From: "open", Event: "register", Guard: "!arg.supported", Refuse: ErrUnsupportedEntry, Source: "F82, F163"},
			{ID: "register-detached", From: "open", Event: "register", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
			{ID: "register-uninitialised", From: "open", Event: "register", Guard: "!view.claimed || !view.live", Refuse: ErrInvalidState, Source: "F63, F81, F83"},
			{ID: "register-zero", From: "open", Event: "register", Guard: "arg.image == none", Refuse: ErrInvalidArgument},
			{ID: "register-full", From: "open", Event: "register", Guard: "view.free == none", Refuse: ErrInvalidState, Source: "F86"},
			{
				ID: "register", From: "open", Event: "register", Guard: "else", Command: "CurrentContext()", Source: "F81, F156",
				Then: contextTargets(machine.Target{To: "claiming", Do: "process = arg.process; image = arg.image; automatic = true; slot = none", Emit: []string{"self.claim()"}}),
			},
			{ID: "register-at-foreign", From: "open", Event: "register_at", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "register-at-detached", From: "open", Event: "register_at", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
			{ID: "register-at-uninitialised", From: "open", Event: "register_at", Guard: "!view.claimed || !view.live", Refuse: ErrInvalidState, Source: "F63, F81, F83"},
			{ID: "register-at-zero", From: "open", Event: "register_at", Guard: "arg.image == none || arg.slot == none", Refuse: ErrInvalidArgument},
			{
				ID: "register-at", From: "open", Event: "register_at", Guard: "else", Command: "CurrentContext()", Source: "F81, F156",
				Then: contextTargets(machine.Target{To: "claiming", Do: "process = arg.process; image = arg.image; automatic = false; slot = arg.slot", Emit: []string{"self.claim()"}}),
			},

			{
				ID: "claim-closed", From: "claiming", Event: "claim", Guard: "!view.live", Source: "F63, F66", Doc: "A close was claimed meanwhile.",
				Then: []machine.Target{{To: "open", Do: "slot = none", Error: ErrInvalidState}},
			},
			{
				ID: "claim-first", From: "claiming", Event: "claim", Guard: "automatic && view.free != none", Source: "F84, F88",
				Doc:  "The scan and the claim are one step.",
				Then: []machine.Target{{To: "uploading", Do: "slot = view.free", With: []string{"slot.claim(image)"}, Emit: []string{"self.upload()"}}},
			},
			{ID: "claim-full", From: "claiming", Event: "claim", Guard: "automatic", Source: "F86", Then: []machine.Target{{To: "open", Error: ErrInvalidState}}},
			{ID: "claim-taken", From: "claiming", Event: "claim", Guard: "view.taken", Source: "F81", Then: []machine.Target{{To: "open", Do: "slot = none", Error: ErrInvalidArgument}}},
			{
				ID: "claim-this", From: "claiming", Event: "claim", Guard: "else", Source: "F81, F88",
				Then: []machine.Target{{To: "uploading", With: []string{"slot.claim(image)"}, Emit: []string{"self.upload()"}}},
			},

			{
				ID: "upload-shared", From: "uploading", Event: "upload", Guard: "view.shared", Source: "F84, F85",
				Doc:  "Equal images have ids of their own and one copy on the device.",
				Then: []machine.Target{{To: "open", With: []string{"slot.uploaded()"}, Return: "view.occupancy"}},
			},
			{
				ID: "upload", From: "uploading", Event: "upload", Guard: "else", Command: "Upload(image)", Source: "F84, F86",
				Then: []machine.Target{
					{On: "ok", To: "open", With: []string{"slot.uploaded()"}, Return: "view.occupancy"},
					failed("", ErrUpload, "slot.unclaim()"),
				},
			},

			{ID: "unregister-foreign", From: "open", Event: "unregister", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "unregister-detached", From: "open", Event: "unregister", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
			{ID: "unregister-uninitialised", From: "open", Event: "unregister", Guard: "!view.claimed || !view.live", Refuse: ErrInvalidState, Source: "F63, F83"},
			{ID: "unregister-zero", From: "open", Event: "unregister", Guard: "arg.slot == none || arg.occupancy == none", Refuse: ErrInvalidArgument},
			{
				ID: "unregister", From: "open", Event: "unregister", Guard: "else", Command: "CurrentContext()", Source: "F87, F156",
				Then: contextTargets(machine.Target{To: "leaving", Do: "process = arg.process; slot = arg.slot", Emit: []string{"self.leave(arg.occupancy)"}}),
			},
			{ID: "leave-stale", From: "leaving", Event: "leave", Guard: "arg.occupancy != view.occupancy", Source: "F87, F146", Then: []machine.Target{{To: "open", Do: "slot = none", Error: ErrInvalidArgument}}},
			{
				ID: "leave", From: "leaving", Event: "leave", Guard: "else", Source: "F87",
				Then: []machine.Target{{To: "removing", Do: "image = view.image", With: []string{"slot.leave()"}, Emit: []string{"self.remove()"}}},
			},
			{
				ID: "remove-shared", From: "removing", Event: "remove", Guard: "view.shared_still", Source: "F84, F85",
				Doc:  "Another id has an equal image: the copy on the device stays.",
				Then: []machine.Target{{To: "open", With: []string{"slot.vacate()"}, Do: "image = none"}},
			},
			{
				ID: "remove", From: "removing", Event: "remove", Guard: "else", Command: "Remove(image)", Source: "F86, F87",
				Then: []machine.Target{
					{On: "ok", To: "open", Do: "image = none", With: []string{"slot.vacate()"}},
					failed("", ErrUpload, "slot.stay()"),
				},
			},
			busyEvent("register", busyStates), busyEvent("register_at", busyStates),
			busyEvent("unregister", busyStates), busyEvent("finalize", busyStates),

			{ID: "finalize", From: "open", Event: "finalize", Source: "F88", Then: []machine.Target{{To: "finalized"}}},
			refuse("finalized", "register", ErrFinalized), refuse("finalized", "register_at", ErrFinalized),
			refuse("finalized", "unregister", ErrFinalized), refuse("finalized", "finalize", ErrFinalized),
		},
	}
}

// busyEvent defers an event until what is under way is through.
func busyEvent(event, states string) machine.Row {
	return machine.Row{ID: event + "-busy", From: states, Event: event, Defer: true}
}

// refuse is a row that refuses an event in some states.
func refuse(from, event string, why machine.Reason) machine.Row {
	return machine.Row{ID: event + "-" + id(from), From: from, Event: event, Refuse: why}
}
