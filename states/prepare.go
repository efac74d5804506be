package states

import "github.com/runfence/runfence/machine"

// prepare makes a run's resources on a slot, with nothing submitted and no
// stream selected or replaced (F13).
func prepare() *machine.Definition {
	return &machine.Definition{
		Name:   "prepare",
		Pool:   "slot",
		Doc:    "Host operation: admit a run to the slot and make its resources.",
		Source: "F, Borrowed caller ordering; Stream binding (F13, F38, F59, F69, F154)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "binding", Doc: "The run is admitted; its resources are being made."},
		},
		Facts:    withArgs(identityFacts, machine.Fact{Name: "work", Type: "id work", Doc: "What to run, in the host's table."}),
		Identity: identityNames,
		Views: []machine.View{
			{Name: "process", Expr: "lane.process"},
			{Name: "context", Expr: "environment.context"},
			{Name: "generation", Expr: "environment.generation"},
			detached,
			{Name: "new", Expr: `lane.state == "new"`, Doc: "The lane was not opened."},
			openView,
			{Name: "room", Expr: "lane.runs < lane.depth"},
			{Name: "vacant", Expr: `run.state == "idle"`},
		},
		Events: []machine.Event{
			{Name: "start", Args: withArgs(processArg, machine.Fact{Name: "work", Type: "id work", Doc: "What to run, in the host's table."})},
			{Name: "bind", Doc: "Make the run's resources."},
		},
		Rows: []machine.Row{
			{ID: "start-new", From: "ready", Event: "start", Guard: "view.new", Refuse: ErrNotInitialised},
			{ID: "start-foreign", From: "ready", Event: "start", Guard: "view.process != none && arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54, F55"},
			{ID: "start-detached", From: "ready", Event: "start", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
			{ID: "start-closed", From: "ready", Event: "start", Guard: "!view.open", Refuse: ErrAdmissionClosed, Source: "F63, F78, F154"},
			{ID: "start-occupied", From: "ready", Event: "start", Guard: "!view.vacant", Refuse: ErrSlotOccupied},
			{ID: "start-full", From: "ready", Event: "start", Guard: "!view.room", Refuse: ErrDepthReached, Source: "F43, F154"},
			{
				ID: "start", From: "ready", Event: "start", Guard: "else", Command: "CurrentContext()", Source: "F59, F157",
				Then: contextTargets(
					machine.Target{When: "!view.open", Error: ErrAdmissionClosed},
					machine.Target{When: "!view.vacant", Error: ErrSlotOccupied},
					machine.Target{When: "!view.room", Error: ErrDepthReached},
					machine.Target{
						To:   "binding",
						Do:   "run_epoch = fresh(); generation = view.generation; dispatch = fresh(); work = arg.work",
						With: []string{"run.begin(" + own + ")"},
						Emit: []string{"self.bind()"},
					},
				),
			},
			busy("binding"),
			{
				ID: "bind", From: "binding", Event: "bind", Command: "PrepareRun(work)", Source: "F69",
				Then: []machine.Target{
					{On: "ok", To: "ready", With: []string{"run.prepared()"}},
					{On: "refused", To: "ready", With: []string{"run.unprepared()"}, Error: ErrPreparationRefused, Code: "res.code"},
					{To: "ready", With: []string{"run.confused()"}, Error: ErrPreparationAmbiguous, Code: "res.code"},
				},
			},
		},
	}
}

// openView is admission, asked at prepare and again at launch. A close that was
// claimed has ended it, whatever became of the close (F63, F78, F154).
var openView = machine.View{
	Name: "open", Expr: `environment.state == "live" && lane.state == "open" && lane.unproven == 0 && !lane.poisoned`,
	Doc: "A run may come in, and may be launched.",
}
