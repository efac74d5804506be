package states

import "github.com/runfence/runfence/machine"

// prepare makes a run's resources on a slot, with nothing submitted and no
// stream selected or replaced (F13).
//
// A preparation that fails after an attempt is over only if its rollback says
// so, with this attempt's epoch: whatever else it says, or does not say, the
// borrows are kept and admission is poisoned (F67–F69).
func prepare() *machine.Definition {
	fail := []machine.Target{
		{On: "refused", To: "ready", With: []string{"run.unprepared()", "region.discard()"}, Error: ErrPreparationRefused, Code: "res.code"},
		{To: "rolling back", Do: "rc = res.code", Emit: []string{"self.roll_back()"}},
	}
	then := func(ok ...machine.Target) []machine.Target { return append(ok, fail...) }
	return &machine.Definition{
		Name:   "prepare",
		Pool:   "slot",
		Doc:    "Host operation: admit a run to the slot and make its resources.",
		Source: "F, Borrowed caller ordering; Initial publication; Stream binding (F1, F2, F13, F38, F41, F59, F67–F70, F108, F154)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "checking", Doc: "The caller's stream is being validated; nothing is admitted yet."},
			{Name: "binding", Doc: "The run is admitted; its region and resources are being made."},
			{Name: "waiting", Doc: "A resource is not to be had now. The plan is kept; this is not an end."},
			{Name: "rolling back", Doc: "Making the resources failed; what was made is being given back."},
		},
		Facts: withArgs(identityFacts,
			machine.Fact{Name: "process", Type: "id process"},
			machine.Fact{Name: "work", Type: "id work", Doc: "What to run, in the host's table."},
			machine.Fact{Name: "eager", Type: "bool", Doc: "A caller's stream orders the run."},
			machine.Fact{Name: "async", Type: "bool", Doc: "The descriptor is published asynchronously."},
			machine.Fact{Name: "rc", Type: "code", Doc: "Why preparation failed."},
		),
		Identity: identityNames,
		Views: []machine.View{
			{Name: "process", Expr: "lane.process"},
			{Name: "context", Expr: "environment.context"},
			{Name: "generation", Expr: "environment.generation"},
			detached,
			{Name: "new", Expr: `lane.state == "new"`, Doc: "The lane was not opened."},
			openView,
			{Name: "vacant", Expr: `run.state == "idle"`},
			{Name: "bare", Expr: `region.state == "unallocated"`},
		},
		Events: []machine.Event{
			{Name: "start", Args: withArgs(processArg,
				machine.Fact{Name: "work", Type: "id work", Doc: "What to run, in the host's table."},
				machine.Fact{Name: "eager", Type: "bool"},
				machine.Fact{Name: "async", Type: "bool"},
			)},
			{Name: "check", Doc: "Validate the caller's stream."},
			{Name: "admit", Doc: "Admit the run."},
			{Name: "allocate", Doc: "Make the slot's result region."},
			{Name: "bind", Doc: "Make the run's resources."},
			{Name: "retry", Doc: "Try again for a resource that was not to be had.", Args: runArgs},
			{Name: "abort", Doc: "Give up waiting for a resource.", Args: runArgs},
			{Name: "roll_back", Doc: "Give back what was made."},
		},
		Rows: []machine.Row{
			{ID: "start-new", From: "ready", Event: "start", Guard: "view.new", Refuse: ErrNotInitialised},
			{ID: "start-foreign", From: "ready", Event: "start", Guard: "view.process != none && arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54, F55"},
			{ID: "start-detached", From: "ready", Event: "start", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
			{ID: "start-closed", From: "ready", Event: "start", Guard: "!view.open", Refuse: ErrAdmissionClosed, Source: "F78, F108, F154"},
			{ID: "start-occupied", From: "ready", Event: "start", Guard: "!view.vacant", Refuse: ErrSlotOccupied},
			{
				ID: "start", From: "ready", Event: "start", Guard: "else", Command: "CurrentContext()", Source: "F59, F157",
				Then: contextTargets(
					machine.Target{When: "arg.eager", To: "checking", Do: begin, Emit: []string{"self.check()"}},
					machine.Target{To: "checking", Do: begin, Emit: []string{"self.admit()"}},
				),
			},
			busyEvent("start", "checking|binding|rolling back"),
			{ID: "start-waiting", From: "waiting", Event: "start", Refuse: ErrSlotOccupied},
			{
				ID: "check", From: "checking", Event: "check", Command: "CheckCaller(work)", Source: "F41",
				Then: []machine.Target{
					{On: "ok", Emit: []string{"self.admit()"}},
					{To: "ready", Error: ErrCallerStream, Code: "res.code"},
				},
			},
			{ID: "admit-closed", From: "checking", Event: "admit", Guard: "!view.open", Source: "F154", Then: []machine.Target{{To: "ready", Error: ErrAdmissionClosed}}},
			{ID: "admit-occupied", From: "checking", Event: "admit", Guard: "!view.vacant", Then: []machine.Target{{To: "ready", Error: ErrSlotOccupied}}},
			{
				ID: "admit-bare", From: "checking", Event: "admit", Guard: "view.bare", Source: "F1",
				Then: []machine.Target{{To: "binding", Do: newIdentity, With: []string{"run.begin(" + own + ", eager, async)"}, Emit: []string{"self.allocate()"}}},
			},
			{
				ID: "admit", From: "checking", Event: "admit", Guard: "else", Source: "F2, F10",
				Then: []machine.Target{{To: "binding", Do: newIdentity, With: []string{"run.begin(" + own + ", eager, async)", "region.stage()"}, Emit: []string{"self.bind()"}}},
			},
			{
				ID: "allocate", From: "binding", Event: "allocate", Command: "AllocateRegion()", Source: "F1",
				Then: then(machine.Target{On: "ok", With: []string{"region.allocated()", "region.stage()"}, Emit: []string{"self.bind()"}}),
			},
			{
				ID: "bind", From: "binding", Event: "bind", Command: "PrepareRun(work, run_epoch, dispatch)", Source: "F69, F70",
				Then: then(
					machine.Target{On: "ok", When: "res.value == 0", To: "ready", With: []string{"run.prepared()"}},
					machine.Target{On: "ok", To: "waiting", Error: ErrResourceWait},
				),
			},
			{ID: "retry-foreign", From: "waiting", Event: "retry", Guard: "arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "retry-stale", From: "waiting", Event: "retry", Guard: notMine, Refuse: ErrStaleIdentity, Source: "F122"},
			{
				ID: "retry", From: "waiting", Event: "retry", Guard: "else", Command: "CurrentContext()", Source: "F59, F70",
				Then: contextTargets(machine.Target{To: "binding", Emit: []string{"self.bind()"}}),
			},
			busyEvent("retry", "checking|binding|rolling back"),
			{ID: "retry-none", From: "ready", Event: "retry", Refuse: ErrNotPrepared},
			{ID: "abort-foreign", From: "waiting", Event: "abort", Guard: "arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54"},
			{ID: "abort-stale", From: "waiting", Event: "abort", Guard: notMine, Refuse: ErrStaleIdentity, Source: "F122"},
			{
				ID: "abort", From: "waiting", Event: "abort", Guard: "else", Command: "CurrentContext()", Source: "F9, F59, F70",
				Then: contextTargets(machine.Target{To: "rolling back", Emit: []string{"self.roll_back()"}}),
			},
			busyEvent("abort", "checking|binding|rolling back"),
			{ID: "abort-none", From: "ready", Event: "abort", Refuse: ErrNotPrepared},
			{
				ID: "roll-back", From: "rolling back", Event: "roll_back", Command: "RollBack(run_epoch)", Source: "F67–F69, F72",
				Doc: "The call answers with the epoch of the release marker. Only this attempt's own is evidence.",
				Then: []machine.Target{
					{On: "ok", When: "res.value == run_epoch", To: "ready", With: []string{"run.unprepared()", "region.discard()"}, Error: ErrRunPreparationRefused, Code: "rc"},
					{On: "ok refused failed panicked timedout", To: "ready", With: []string{"run.confused()"}, Error: ErrPreparationAmbiguous, Code: "rc"},
				},
			},
		},
	}
}

// begin forgets the identity of the run before: until the new one is admitted,
// the attempt stands for no run.
const begin = "process = arg.process; work = arg.work; eager = arg.eager; async = arg.async; rc = 0; run_epoch = none; generation = none; dispatch = none"

const newIdentity = "run_epoch = fresh(); generation = view.generation; dispatch = fresh()"

// openView is admission, asked at prepare and again at launch. A close that was
// claimed has ended it, whatever became of the close (F63, F78, F108, F154).
var openView = machine.View{
	Name: "open", Expr: `environment.state == "live" && lane.state == "open" && lane.unproven == 0 && !lane.poisoned && !lane.faulted && health.state == "trusted" && recovery.state == "ready"`,
	Doc: "A run may come in, and may be launched. While the device is being recovered, none may.",
}
