package states

import "github.com/runfence/runfence/machine"

// submit takes a run from the host's hands to the device, or as far as it is
// asked to: with a caller's stream a return means enqueued, without one it may
// mean prepared, and advance enqueues it when its turn comes (F42–F45).
//
// A run with a predecessor under way is joined behind it if it can be;
// otherwise the predecessor is drained first (F43).
func submit() *machine.Definition {
	args := []machine.Fact{
		{Name: "eager", Type: "bool"},
		{Name: "async", Type: "bool"},
		{Name: "pred", Type: "ref run", Doc: "The run to go behind, or none."},
		{Name: "pred_fence", Type: "ref fence", Doc: "Of the same slot."},
		{Name: "pred_drain", Type: "ref drain", Doc: "Of the same slot."},
		{Name: "home", Type: "ref fence", Doc: "Of this slot."},
	}
	const keep = "process = arg.process; pred = arg.pred; pred_fence = arg.pred_fence; pred_drain = arg.pred_drain; home = arg.home"
	// Only a launch that was joined can decline: one that is refused by itself is
	// not tried again, or the two would go round in a circle.
	const declined = "joined && view.unjoined && view.prepared && view.unlaunched"
	launch := machine.Target{To: "launching", Do: "joined = false", Emit: []string{"launch.start(process, view.run_epoch, view.generation, view.dispatch, view.permit)", "self.launched()"}}
	first := machine.Target{To: "draining", Emit: []string{"pred_drain.start(process, view.pred_epoch, view.pred_generation, view.pred_dispatch)", "self.drained()"}}
	joined := launch
	joined.Do = "joined = true"
	joined.With = []string{"join.plan(pred_fence, view.pred_epoch, view.pred_generation, view.pred_dispatch, view.pred_arming, home)"}
	enqueue := func(id, from, event, source string) []machine.Row {
		return []machine.Row{
			{ID: id + "-joined", From: from, Event: event, Guard: "view.under_way && view.deep", Source: "F19, F43", Then: []machine.Target{joined}},
			{ID: id + "-behind", From: from, Event: event, Guard: "view.under_way", Source: "F43", Doc: "As many runs as the depth allows are on the device: the predecessor is drained first.", Then: []machine.Target{first}},
			{ID: id, From: from, Event: event, Guard: "else", Source: source, Then: []machine.Target{launch}},
		}
	}
	rows := []machine.Row{
		{ID: "start-foreign", From: "ready", Event: "start", Guard: "view.process != none && arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54, F55"},
		{
			ID: "start", From: "ready", Event: "start", Guard: "else", Source: "F41, F42, F45, F50",
			Then: []machine.Target{{To: "preparing", Do: keep + "; eager = arg.eager; work = arg.work", Emit: []string{"prepare.start(arg.process, arg.work, arg.eager, arg.async)", "self.prepared()"}}},
		},
		{ID: "advance-foreign", From: "ready", Event: "advance", Guard: "arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54, F55"},
		{ID: "advance-stale", From: "ready", Event: "advance", Guard: notTheRuns, Refuse: ErrStaleIdentity, Source: "F122"},
		{ID: "advance-unprepared", From: "ready", Event: "advance", Guard: "!view.prepared", Refuse: ErrNotPrepared},
		{ID: "advance", From: "ready", Event: "advance", Guard: "else", Source: "F45", Then: []machine.Target{{To: "enqueueing", Do: keep, Emit: []string{"self.enqueue()"}}}},
		busyEvent("start", "preparing|enqueueing|launching|draining|giving up"),
		busyEvent("advance", "preparing|enqueueing|launching|draining|giving up"),

		{ID: "not-prepared", From: "preparing", Event: "prepared", Guard: "!view.its_own", Source: "F44, F122", Doc: "Refused or failed; another run may have the slot.", Then: []machine.Target{{To: "ready", Error: ErrSubmit}}},
		{ID: "prepared-only", From: "preparing", Event: "prepared", Guard: "!eager", Source: "F45", Then: []machine.Target{{To: "ready"}}},
		{ID: "prepared", From: "preparing", Event: "prepared", Guard: "else", Source: "F42", Then: []machine.Target{{To: "enqueueing", Emit: []string{"self.enqueue()"}}}},
	}
	rows = append(rows, enqueue("enqueue", "enqueueing", "enqueue", "F42")...)
	rows = append(rows,
		machine.Row{ID: "launched", From: "launching", Event: "launched", Guard: "view.launched", Source: "F42", Then: []machine.Target{{To: "ready"}}},
		machine.Row{
			ID: "declined", From: "launching", Event: "launched", Guard: declined + " && view.under_way", Source: "F43, F46",
			Doc: "The join was declined with nothing enqueued: the predecessor is drained, then the run is launched by itself.", Then: []machine.Target{first},
		},
		machine.Row{ID: "declined-alone", From: "launching", Event: "launched", Guard: declined, Source: "F43, F46", Then: []machine.Target{launch}},
		machine.Row{
			ID: "not-started", From: "launching", Event: "launched", Guard: "view.not_started", Source: "F71, F73, F159",
			Doc:  "Nothing was submitted: the run is given up, and the launch's own error is what is told.",
			Then: []machine.Target{{To: "giving up", Do: "rc = view.rc", Emit: []string{"finalize.start(process, view.run_epoch, view.generation, view.dispatch)", "self.given_up()"}}},
		},
		machine.Row{ID: "launch-refused", From: "launching", Event: "launched", Guard: "view.prepared", Source: "F44, F59", Doc: "Refused with nothing lost: the run stays prepared, and may be enqueued again, behind whichever run is there then.", Then: []machine.Target{{To: "ready", With: []string{"join.cancel()"}, Error: ErrSubmit}}},
		machine.Row{ID: "partial", From: "launching", Event: "launched", Guard: "else", Source: "F44, F74, F78", Then: []machine.Target{{To: "ready", Error: ErrPartial, Code: "view.rc"}}},
		machine.Row{ID: "drained-unproven", From: "draining", Event: "drained", Guard: "view.under_way", Source: "F43, F150", Doc: "The predecessor could not be proven over: nothing is queued behind it.", Then: []machine.Target{{To: "ready", Error: ErrSubmit}}},
		machine.Row{ID: "drained", From: "draining", Event: "drained", Guard: "else", Source: "F43", Then: []machine.Target{launch}},
		machine.Row{ID: "given-up", From: "giving up", Event: "given_up", Guard: "view.gone", Source: "F71, F159", Then: []machine.Target{{To: "ready", Error: ErrNotStarted, Code: "rc"}}},
		machine.Row{ID: "not-given-up", From: "giving up", Event: "given_up", Guard: "else", Source: "F74", Then: []machine.Target{{To: "ready", Error: ErrSubmit, Code: "rc"}}},
	)
	return &machine.Definition{
		Name:   "submit",
		Pool:   "slot",
		Doc:    "Host operation: prepare a run and, with a caller's stream, enqueue it behind the run before it.",
		Source: "F, Borrowed caller ordering (F19, F41–F46, F50, F71–F74, F159)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "preparing", Doc: "The run is being prepared."},
			{Name: "enqueueing", Doc: "It is prepared and is to be enqueued."},
			{Name: "launching", Doc: "It is being launched."},
			{Name: "draining", Doc: "The run before it is being drained."},
			{Name: "giving up", Doc: "Its launch submitted nothing; it is being finalized."},
		},
		Facts: append([]machine.Fact{
			{Name: "process", Type: "id process"},
			{Name: "rc", Type: "code", Doc: "The launch's own return code."},
			{Name: "work", Type: "id work", Doc: "What was submitted."},
			{Name: "joined", Type: "bool", Doc: "The launch was planned behind a predecessor."},
		}, args[0], args[2], args[3], args[4], args[5]),
		Views: []machine.View{
			{Name: "process", Expr: "lane.process"},
			{Name: "prepared", Expr: `run.state == "prepared"`},
			{Name: "its_own", Expr: `run.state == "prepared" && prepare.work == work && prepare.run_epoch == run.run_epoch`, Doc: "The prepared run is the one that was submitted."},
			{Name: "launched", Expr: `run.state == "launched"`},
			{Name: "not_started", Expr: `run.state == "not started"`},
			{Name: "gone", Expr: `run.state == "finalized"`},
			{Name: "unlaunched", Expr: `launch.state == "not started"`},
			{Name: "unjoined", Expr: `join.state == "apart"`, Doc: "No join is planned any more."},
			{Name: "rc", Expr: "run.rc"},
			{Name: "run_epoch", Expr: "run.run_epoch"},
			{Name: "generation", Expr: "run.generation"},
			{Name: "dispatch", Expr: "run.dispatch"},
			{Name: "permit", Expr: "run.permit"},
			{Name: "deep", Expr: roomView.Expr, Doc: roomView.Doc},
			{Name: "under_way", Expr: `pred != none && (pred.state == "launched" || pred.state == "partial")`},
			{Name: "pred_epoch", Expr: "pred.run_epoch"},
			{Name: "pred_generation", Expr: "pred.generation"},
			{Name: "pred_dispatch", Expr: "pred.dispatch"},
			{Name: "pred_arming", Expr: "pred_fence.arming"},
		},
		Events: []machine.Event{
			{Name: "start", Args: withArgs(append(processArg, machine.Fact{Name: "work", Type: "id work"}), args...)},
			{Name: "advance", Doc: "Enqueue a prepared run.", Args: withArgs(runArgs, args[2:]...)},
			{Name: "prepared"},
			{Name: "enqueue"},
			{Name: "launched"},
			{Name: "drained"},
			{Name: "given_up"},
		},
		Rows: rows,
	}
}
