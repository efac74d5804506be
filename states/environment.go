package states

import "github.com/runfence/runfence/machine"

// environment is the identity of the place where runs execute: which process
// made it, which incarnation of it, under which generation of which device's
// context, owned or borrowed. It exists from the making of the native context
// to its successful teardown, whatever fails in between (F51, F53).
//
// It associates handles with the environment that validates them. It does not
// notice an external reset and proves no ownership of memory (F58).
func environment() *machine.Definition {
	const foreign = "arg.process != process"
	forget := "process = none; incarnation = none; generation = none; device = 0; policy = owned; context = none; closed = false; ready = false"
	remember := "process = arg.process; incarnation = fresh(); device = arg.device; policy = arg.policy; "
	return &machine.Definition{
		Name:   "environment",
		Doc:    "Who may use this device context: process, incarnation, generation, device, and whether the context is owned or borrowed.",
		Source: "F, Borrowed caller ordering (F48–F66, F157, F170)",
		States: []machine.State{
			{Name: "absent", Doc: "There is no native context. Initialisation may be tried, and tried again."},
			{Name: "live", Doc: "The context is made or adopted; the identity stands."},
			{Name: "half made", Doc: "Making the context failed after the attempt: something may exist, so identity and binding are kept for cleanup."},
			{Name: "closing", Doc: "A close was accepted. There is no way back."},
			{Name: "cleanup owed", Doc: "A teardown failed. Identity, binding, library and storage are kept; only cleanup may be tried again."},
			{Name: "torn down", Terminal: true, Doc: "Teardown succeeded. Terminal: no reinitialisation."},
			{Name: "detached", Terminal: true, Kept: true, Doc: "Destroyed without completing a close: safe reclamation cannot be proven, so storage, context and library stay for the life of the process."},
		},
		Facts: []machine.Fact{
			{Name: "process", Type: "id process", Doc: "The process that made it; immutable."},
			{Name: "incarnation", Type: "id incarnation", Doc: "Never repeats."},
			{Name: "generation", Type: "id generation", Doc: "Of the context: the caller's if borrowed, the incarnation's if owned."},
			{Name: "device", Type: "int 65535"},
			{Name: "policy", Type: "enum owned|borrowed"},
			{Name: "context", Type: "id context", Doc: "The context that must be current."},
			{Name: "closed", Type: "bool", Doc: "A close was accepted; kept through a failed teardown."},
			{Name: "ready", Type: "bool", Doc: "Initialisation is complete: from now on it is closed, not rolled back."},
		},
		Identity: []string{"process", "incarnation", "generation"},
		Events: []machine.Event{
			{Name: "create", Doc: "Make or adopt the native context.", Args: []machine.Fact{
				{Name: "process", Type: "id process"},
				{Name: "device", Type: "int 65535"},
				{Name: "policy", Type: "enum owned|borrowed"},
				{Name: "generation", Type: "id generation", Doc: "Of a borrowed context; none for an owned one."},
			}},
			{Name: "complete", Doc: "Everything else that initialisation makes is made."},
			{Name: "rollback", Doc: "Undo an initialisation that failed later on.", Args: processArg},
			{Name: "check", Doc: "Validate the current context, before an operation's body.", Args: processArg},
			{Name: "locate", Doc: "Ask for the device; opts out of the context check.", Args: processArg},
			{Name: "close", Doc: "Claim the close. Checked before it claims anything.", Args: processArg},
			{Name: "teardown", Doc: "Destroy or give back the native context.", Args: processArg},
			{Name: "detach", Doc: "The handle is destroyed without a completed close.", Args: processArg},
		},
		Rows: []machine.Row{
			{ID: "create-zero-process", From: "absent", Event: "create", Guard: "arg.process == none", Refuse: ErrZeroIdentity, Source: "F51"},
			{ID: "create-borrowed-zero", From: "absent", Event: "create", Guard: "arg.policy == borrowed && arg.generation == none", Refuse: ErrGenerationRequired, Source: "F48"},
			{ID: "create-owned-generation", From: "absent", Event: "create", Guard: "arg.policy == owned && arg.generation != none", Refuse: ErrGenerationNotAccepted, Source: "F52"},
			{
				ID: "borrow", From: "absent", Event: "create", Guard: "arg.policy == borrowed", Command: "CurrentContext()", Source: "F48, F51, F170",
				Doc: "Borrowing only looks: it makes nothing, so a failure leaves nothing.",
				Then: []machine.Target{
					{On: "ok", When: "res.value == 0", Error: ErrNoCurrentContext},
					{On: "ok", To: "live", Do: remember + "generation = arg.generation; context = res.value"},
					{Error: ErrInitialisation, Code: "res.code"},
				},
			},
			{
				ID: "own", From: "absent", Event: "create", Guard: "else", Command: "CreateContext(arg.device)", Source: "F48, F51, F52",
				Doc: "A context of one's own that is not current is none: every later check would compare with nothing.",
				Then: []machine.Target{
					{On: "ok", When: "res.value == 0", Error: ErrNoCurrentContext},
					{On: "ok", To: "live", Do: remember + "generation = fresh(); context = res.value"},
					{On: "refused", Error: ErrInitialisation, Code: "res.code"},
					{To: "half made", Do: remember + "generation = fresh()", Error: ErrInitialisation, Code: "res.code"},
				},
			},
			refuse("live", "create", ErrAlreadyInitialised),
			refuse("half made|cleanup owed", "create", ErrCleanupOwed),
			refuse("closing", "create", ErrClosing),
			refuse("torn down", "create", ErrFinalized),
			refuse("detached", "create", ErrDetached),

			{ID: "complete", From: "live", Event: "complete", Then: []machine.Target{{Do: "ready = true"}}},

			{ID: "rollback-foreign", From: "live|half made", Event: "rollback", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "rollback-ready", From: "live|half made", Event: "rollback", Guard: "ready", Refuse: ErrAlreadyInitialised, Doc: "What was initialised is closed, with a close's checks."},
			{
				ID: "rollback", From: "live|half made", Event: "rollback", Guard: "else", Command: "Teardown(policy)", Source: "F53, F64",
				Doc: "A failed initialisation closes explicitly before anything is destroyed.",
				Then: []machine.Target{
					{On: "ok", To: "absent", Do: forget},
					{To: "cleanup owed", Error: ErrTeardown, Code: "res.code"},
				},
			},

			refuse("absent", "rollback", ErrNotInitialised),
			refuse("cleanup owed", "rollback", ErrCleanupOwed),
			refuse("closing", "rollback", ErrClosing),
			refuse("torn down", "rollback", ErrFinalized),
			refuse("detached", "rollback", ErrDetached),

			{ID: "check-foreign", From: "live", Event: "check", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54, F55"},
			{
				ID: "check", From: "live", Event: "check", Guard: "else", Command: "CurrentContext()", Source: "F59, F157",
				Then: []machine.Target{
					{On: "ok", When: "res.value == context"},
					{On: "ok", Error: ErrExecutionContextRefused},
					{Error: ErrContextQuery, Code: "res.code"},
				},
			},
			refuse("absent", "check", ErrNotInitialised),
			refuse("half made|cleanup owed", "check", ErrCleanupOwed),
			refuse("closing", "check", ErrClosing),
			refuse("torn down", "check", ErrFinalized),
			refuse("detached", "check", ErrDetached),

			{ID: "locate-foreign", From: "live|half made|closing|cleanup owed", Event: "locate", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "locate", From: "live|half made|closing|cleanup owed", Event: "locate", Guard: "else", Source: "F61", Then: []machine.Target{{Return: "device"}}},
			refuse("absent", "locate", ErrNotInitialised),
			refuse("torn down", "locate", ErrFinalized),
			refuse("detached", "locate", ErrDetached),

			{ID: "close-foreign", From: "live|half made|cleanup owed", Event: "close", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54"},
			{
				ID: "close", From: "live", Event: "close", Guard: "else", Command: "CurrentContext()", Source: "F62",
				Doc: "The check comes before the claim, so a rejected close leaves everything as it was.",
				Then: []machine.Target{
					{On: "ok", When: "res.value == context", To: "closing", Do: "closed = true"},
					{On: "ok", Error: ErrExecutionContextRefused},
					{Error: ErrContextQuery, Code: "res.code"},
				},
			},
			{ID: "close-again", From: "half made|cleanup owed", Event: "close", Guard: "else", Source: "F63, F64", Then: []machine.Target{{To: "closing", Do: "closed = true"}}},
			refuse("absent", "close", ErrNotInitialised),
			refuse("closing", "close", ErrClosing),
			refuse("torn down", "close", ErrFinalized),
			refuse("detached", "close", ErrDetached),

			{ID: "teardown-foreign", From: "closing", Event: "teardown", Guard: foreign, Refuse: ErrForeignProcess, Source: "F54"},
			{
				ID: "teardown", From: "closing", Event: "teardown", Guard: "else", Command: "Teardown(policy)", Source: "F53, F63, F65",
				Then: []machine.Target{
					{On: "ok", To: "torn down", Do: forget},
					{To: "cleanup owed", Error: ErrTeardown, Code: "res.code"},
				},
			},

			refuse("torn down", "teardown", ErrFinalized),
			refuse("cleanup owed", "teardown", ErrCleanupOwed),
			refuse("detached", "teardown", ErrDetached),

			{ID: "detach-foreign", From: "live|half made|closing|cleanup owed", Event: "detach", Guard: foreign, Refuse: ErrForeignProcess, Source: "F56, F160"},
			{ID: "detach", From: "live|half made|closing|cleanup owed", Event: "detach", Guard: "else", Source: "F66", Then: []machine.Target{{To: "detached"}}},
			refuse("absent", "detach", ErrNotInitialised),
			refuse("torn down", "detach", ErrFinalized),
			refuse("detached", "detach", ErrDetached),
		},
	}
}

var processArg = []machine.Fact{{Name: "process", Type: "id process", Doc: "The caller's."}}
