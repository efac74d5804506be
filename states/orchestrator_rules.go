package states

import (
	"sync"

	"github.com/runfence/runfence/machine"
)

// OrchestratorDefinitions returns the lifecycles of an orchestrator, the layer
// above a lane, freshly made. They share no world with [Definitions].
func OrchestratorDefinitions() []*machine.Definition {
	return []*machine.Definition{orchestrator(), building(), resources(), resource(), domain(), freeLock(), endpoint(), task(), ending()}
}

var compiledOrchestrator = sync.OnceValues(func() (*machine.Rules, error) { return machine.Compile(OrchestratorDefinitions()...) })

// OrchestratorRules returns the compiled lifecycles of an orchestrator. They
// are immutable and shared.
func OrchestratorRules() *machine.Rules {
	r, err := compiledOrchestrator()
	if err != nil {
		panic("states: " + err.Error())
	}
	return r
}

// orchestrator holds the one pointer to the run that is being built, which is
// what everything that is made meanwhile is charged to (R1, R4).
func orchestrator() *machine.Definition {
	over := "closing|closed"
	return &machine.Definition{
		Name:   "orchestrator",
		Doc:    "Admission of runs, and the pointer to the one that is being built.",
		Source: "R, Ownership (R1, R3, R4, R19, R25)",
		States: []machine.State{
			{Name: "new", Doc: "Not initialised."},
			{Name: "open", Doc: "Takes runs."},
			{Name: "closing", Doc: "A close was claimed: it takes no new run, and may be closed again."},
			{Name: "closed", Terminal: true, Doc: "The workers below are closed."},
		},
		Facts: []machine.Fact{
			{Name: "level", Type: "int 16", Doc: "How far up the hierarchy it stands; communication domains need 3."},
			{Name: "building", Type: "ref resources", Doc: "The run whose graph is being built, if any."},
			{Name: "objects", Type: "ref resource", Doc: "The object charged to it last: the head of a list."},
		},
		Events: []machine.Event{
			{Name: "init", Args: []machine.Fact{{Name: "level", Type: "int 16"}}},
			{Name: "check", Doc: "May a run be submitted?"},
			{Name: "build", Doc: "The pointer moves to a run.", Args: []machine.Fact{{Name: "run", Type: "ref resources"}}},
			{Name: "built", Doc: "Its graph is built, or could not be."},
			{Name: "charge", Doc: "An object heads the list of the run being built.", Args: []machine.Fact{{Name: "object", Type: "ref resource"}}},
			{Name: "close", Doc: "Claim a close."},
			{Name: "closed"},
		},
		Rows: []machine.Row{
			{ID: "init", From: "new", Event: "init", Then: []machine.Target{{To: "open", Do: "level = arg.level"}}},
			{ID: "init-again", From: "open|" + over, Event: "init", Refuse: ErrAlreadyInitialised},
			{ID: "check", From: "open", Event: "check", Then: []machine.Target{{}}},
			{ID: "check-new", From: "new", Event: "check", Refuse: ErrNotInitialised},
			{ID: "check-over", From: over, Event: "check", Refuse: ErrOrchestratorClosed, Source: "R25"},
			{ID: "build", From: "open", Event: "build", Guard: "building == none", Source: "R4", Then: []machine.Target{{Do: "building = arg.run"}}},
			{ID: "build-second", From: "open", Event: "build", Guard: "else", Refuse: ErrBuilding, Source: "R4"},
			{ID: "built", From: "open|closing", Event: "built", Source: "R4", Then: []machine.Target{{Do: "building = none; objects = none"}}},
			{ID: "charge", From: "open|closing", Event: "charge", Source: "R1", Then: []machine.Target{{Do: "objects = arg.object"}}},
			{ID: "close", From: "open|closing|new", Event: "close", Source: "R25", Then: []machine.Target{{To: "closing"}}},
			{ID: "closed", From: "closing", Event: "closed", Source: "R25", Then: []machine.Target{{To: "closed"}}},
		},
	}
}

// building is a submission: the graph of one run is built by the host's code,
// as a command, while everything made is charged to it.
func building() *machine.Definition {
	end := func(on, failed string, err machine.Reason) machine.Target {
		t := machine.Target{On: on, With: []string{"run.built(" + failed + ", view.objects)", "orchestrator.built()"}, Error: err}
		if err != "" {
			t.Code = "res.code"
		}
		return t
	}
	return &machine.Definition{
		Name:   "building",
		Doc:    "Host operation: submit a run, by building its graph. One at a time.",
		Source: "R, Ownership (R1, R4, R19)",
		States: []machine.State{{Name: "ready", Doc: "No graph is being built, unless the command is under way."}},
		Facts:  []machine.Fact{{Name: "run", Type: "ref resources", Doc: "The run that is, or was last, built."}},
		Views: []machine.View{
			{Name: "new", Expr: `orchestrator.state == "new"`},
			{Name: "open", Expr: `orchestrator.state == "open"`},
			{Name: "objects", Expr: "orchestrator.objects"},
			{Name: "free", Expr: `first(resources, state == "free")`},
			{Name: "prior", Expr: `any(resources, state != "free" && state != "retired" && state != "gone")`, Doc: "A run before it has not come to its fence."},
		},
		Events: []machine.Event{{Name: "start"}},
		Rows: []machine.Row{
			{ID: "start-new", From: "ready", Event: "start", Guard: "view.new", Refuse: ErrNotInitialised},
			{ID: "start-closed", From: "ready", Event: "start", Guard: "!view.open", Refuse: ErrOrchestratorClosed, Source: "R25"},
			{ID: "start-prior", From: "ready", Event: "start", Guard: "view.prior", Refuse: ErrPriorRun, Source: "R4, R19", Doc: "Prior runs are drained before the pointer moves."},
			{ID: "start-full", From: "ready", Event: "start", Guard: "view.free == none", Refuse: ErrTooManyRuns},
			{
				ID: "start", From: "ready", Event: "start", Guard: "else", Source: "R1, R4",
				Doc:    "While it is under way, a submit or close of its own would wait for itself, and is refused; one of another caller waits.",
				Before: "run = view.free", With: []string{"run.open()", "orchestrator.build(run)"}, Command: "Build(run)",
				Then: []machine.Target{end("ok", "false", ""), end("", "true", ErrBuildFailed)},
			},
		},
	}
}

// ending is the close: active operations, accepted runs, the sweep of what is
// left, and only then the workers that drive all of it (R15, R25).
func ending() *machine.Definition {
	return &machine.Definition{
		Name:   "ending",
		Doc:    "Host operation: close the orchestrator and the workers below it.",
		Source: "R, One allocation, one backend release; the review of the close (R14–R16, R25)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "draining", Doc: "Admission is closed. Active operations, then accepted runs, are waited for."},
			{Name: "sweeping", Doc: "What no run's fence released is released."},
			{Name: "tearing", Doc: "The workers are being closed."},
			{Name: "owed", Doc: "The workers could not be closed; nothing else is left."},
			{Name: "closed", Doc: "Over. What could not be released is told again and again."},
		},
		Facts: []machine.Fact{
			{Name: "run", Type: "ref resources"},
			{Name: "domain", Type: "ref domain"},
			{Name: "attempted", Type: "bool", Doc: "A teardown was attempted."},
		},
		Views: []machine.View{
			{Name: "building", Expr: "orchestrator.building != none"},
			{Name: "prior", Expr: `first(resources, state != "free" && state != "retired" && state != "gone")`},
			{Name: "over", Expr: `run.state == "retired"`},
			{Name: "domain", Expr: `first(domain, state == "live" || state == "freeing" || state == "allocating")`},
			{Name: "residue", Expr: `any(domain, state == "failed")`, Doc: "A domain that could not be released."},
			{Name: "stuck", Expr: `any(resource, state == "stuck")`, Doc: "Another object that could not be."},
		},
		Events: []machine.Event{{Name: "start"}, {Name: "quiet"}, {Name: "drain"}, {Name: "drained"}, {Name: "sweep"}, {Name: "teardown"}},
		Rows: []machine.Row{
			{ID: "start", From: "ready", Event: "start", Source: "R25", Then: []machine.Target{{To: "draining", With: []string{"orchestrator.close()"}, Emit: []string{"self.quiet()"}}}},
			{ID: "start-owed", From: "owed", Event: "start", Source: "R16", Then: []machine.Target{{To: "tearing", Emit: []string{"self.teardown()"}}}},
			busyEvent("start", "draining|sweeping|tearing"),
			{ID: "start-closed", From: "closed", Event: "start", Source: "R14", Doc: "Closing twice does nothing, and says again what is left.", Then: []machine.Target{
				{When: "view.residue || view.stuck", Error: ErrResidue}, {},
			}},
			{ID: "quiet-active", From: "draining", Event: "quiet", Guard: "view.building", Defer: true},
			{ID: "quiet", From: "draining", Event: "quiet", Guard: "else", Source: "R16, R25", Then: []machine.Target{{Emit: []string{"self.drain()"}}}},
			{
				ID: "drain", From: "draining", Event: "drain", Guard: "view.prior != none", Source: "R16, R25",
				Then: []machine.Target{{Do: "run = view.prior", Emit: []string{"run.await()", "run.fence()", "self.drained()"}}},
			},
			{ID: "drain-none", From: "draining", Event: "drain", Guard: "else", Source: "R15", Then: []machine.Target{{To: "sweeping", Emit: []string{"self.sweep()"}}}},
			{ID: "drained", From: "draining", Event: "drained", Guard: "view.over", Then: []machine.Target{{Emit: []string{"self.drain()"}}}},
			{
				ID: "not-drained", From: "draining", Event: "drained", Guard: "else", Source: "R16",
				Doc:  "No teardown is attempted; closing again goes on from here.",
				Then: []machine.Target{{To: "ready", Error: ErrCloseBudget}},
			},
			{
				ID: "sweep-domain", From: "sweeping", Event: "sweep", Guard: "view.domain != none", Source: "R2, R10, R15",
				Doc:  "A domain may outlive its run, if its allocation took longer; the other groups cannot, since every run has been fenced. It waits for a release that another caller is making, and goes on whatever that brings.",
				Then: []machine.Target{{Do: "domain = view.domain", Emit: []string{"domain.free()", "self.sweep()"}}},
			},
			{ID: "swept", From: "sweeping", Event: "sweep", Guard: "else", Source: "R15", Then: []machine.Target{{To: "tearing", Emit: []string{"self.teardown()"}}}},
			{
				ID: "teardown", From: "tearing", Event: "teardown", Before: "attempted = true", Command: "CloseWorkers()", Source: "R14, R15, R25",
				Then: []machine.Target{
					{On: "ok", When: "view.residue || view.stuck", To: "closed", With: []string{"orchestrator.closed()"}, Error: ErrResidue},
					{On: "ok", To: "closed", With: []string{"orchestrator.closed()"}},
					{To: "owed", Error: ErrTeardown, Code: "res.code"},
				},
			},
		},
	}
}
