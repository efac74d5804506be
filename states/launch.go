package states

import "github.com/runfence/runfence/machine"

// launch is the launch transaction: a permit becomes NotStarted, Partial or
// Complete, and nothing else. A step that was attempted and failed may have
// taken effect all the same, so it is Partial; only a step refused before its
// attempt, with nothing submitted before it, is NotStarted (F34, F76, F80, F143).
//
// AICore goes first and the two submissions stay back to back, each followed
// by its own boundary and nothing between: either kernel may be spinning for
// the other (F96, F101).
func launch() *machine.Definition {
	const maybe = "failed timedout panicked"
	step := func(name, from, command, boundary, before, after string) machine.Row {
		return machine.Row{
			ID: name, From: from, Event: name, Command: command + "()",
			With: []string{"fence." + before + "(" + own + ", " + boundary + ")"},
			Then: []machine.Target{{On: "ok", With: []string{"fence." + after + "(" + own + ", " + boundary + ")"}}},
		}
	}
	partial := func(on, boundary, fact string) machine.Target {
		return machine.Target{
			On: on, To: "partial", Error: ErrPartial, Code: "res.code",
			With: []string{"fence." + fact + "(" + own + ", " + boundary + ")", "run.broken(res.code)"},
		}
	}
	submitCore := step("submit_core", "armed", "SubmitCore", "core_done", "submitting", "submitted")
	submitCore.Source = "F76, F96, F101, F143"
	submitCore.Then[0].To, submitCore.Then[0].Emit = "core submitted", []string{"self.record_core()"}
	// A mark of acceptance outlives whatever the call goes on to answer.
	accepted := func(boundary string) machine.Target {
		t := partial("refused", boundary, "submitted")
		t.When = "res.accepted"
		return t
	}
	submitCore.Then = append(submitCore.Then,
		accepted("core_done"),
		machine.Target{
			On: "refused", To: "not started", Error: ErrNotStarted, Code: "res.code",
			With: []string{"fence.unsubmitted(" + own + ", core_done)", "fence.disarm(" + own + ")", "run.unstarted(res.code)"},
		},
		partial(maybe, "core_done", "submitted"),
	)
	recordCore := step("record_core", "core submitted", "RecordCore", "core_done", "recording", "recorded")
	recordCore.Source = "F34, F96, F129, F143"
	recordCore.Then[0].To, recordCore.Then[0].Emit = "core recorded", []string{"self.submit_cpu()"}
	recordCore.Then = append(recordCore.Then, partial("", "core_done", "unrecorded"))

	submitCPU := step("submit_cpu", "core recorded", "SubmitCPU", "cpu_done", "submitting", "submitted")
	submitCPU.Source = "F96, F101, F129, F143"
	submitCPU.Then[0].To, submitCPU.Then[0].Emit = "cpu submitted", []string{"self.record_cpu()"}
	submitCPU.Then = append(submitCPU.Then, accepted("cpu_done"), partial("refused", "cpu_done", "unsubmitted"), partial(maybe, "cpu_done", "submitted"))

	recordCPU := step("record_cpu", "cpu submitted", "RecordCPU", "cpu_done", "recording", "recorded")
	recordCPU.Source = "F34, F96, F129, F143"
	recordCPU.Then[0].To = "complete"
	recordCPU.Then[0].With = append(recordCPU.Then[0].With, "run.accepted()")
	recordCPU.Then[0].Return = "view.arming"
	recordCPU.Then = append(recordCPU.Then, partial("", "cpu_done", "unrecorded"))

	const from, over = "idle|not started", "complete|partial"
	rows := entry(from, []machine.Row{
		{ID: "start-unprepared", From: from, Event: "start", Guard: "!view.prepared", Refuse: ErrNotPrepared},
		{ID: "start-closed", From: from, Event: "start", Guard: "!view.open", Refuse: ErrAdmissionClosed, Source: "F108, F154", Doc: "Admission is asked at prepare and again at launch."},
	}, machine.Target{
		To: "permitted", Do: remember + "; permit = arg.permit", Emit: []string{"self.arm()"},
	})
	for i := range stranger(from) {
		rows[i].From += "|" + over
	}
	rows = append(rows,
		busy("permitted|armed|core submitted|core recorded|cpu submitted"),
		machine.Row{ID: "start-done", From: over, Event: "start", Guard: "else", Refuse: ErrNotPrepared, Doc: "One permit, one launch."},

		machine.Row{
			ID: "arm-no-permit", From: "permitted", Event: "arm", Guard: "!(permit != none && permit == view.permit && view.free && view.open)", Source: "F76, F154",
			Doc:  "The permit does not bear this run, the fence cannot, or admission closed meanwhile: nothing is submitted.",
			Then: []machine.Target{{To: "not started", Error: ErrNotStarted, Code: "-1"}},
		},
		machine.Row{
			ID: "arm", From: "permitted", Event: "arm", Guard: "else", Command: "MakeEvents()", Source: "F12, F75, F123, F124",
			Doc:  "The streams are bound and the active owner installed before anything is called.",
			With: []string{"run.launching(" + own + ")", "fence.arm(" + own + ")"},
			Then: []machine.Target{
				{On: "ok", To: "armed", With: []string{"fence.made(" + own + ")"}, Emit: []string{"self.submit_core()"}},
				{To: "not started", With: []string{"fence.disarm(" + own + ")", "run.unstarted(res.code)"}, Error: ErrEventCreate, Code: "res.code"},
			},
		},
		submitCore, recordCore, submitCPU, recordCPU,
		machine.Row{ID: "reset-busy", From: "permitted|armed|core submitted|core recorded|cpu submitted", Event: "reset", Defer: true},
		machine.Row{
			ID: "reset", From: from + "|" + over, Event: "reset",
			Doc:  "The run is finalized; the slot is free for another.",
			Then: []machine.Target{{To: "idle", Do: "run_epoch = none; generation = none; dispatch = none; permit = none"}},
		},
	)
	return &machine.Definition{
		Name:   "launch",
		Pool:   "slot",
		Doc:    "Host operation: submit the two kernels of a run, each with its boundary, and know exactly what was accepted.",
		Source: "F, Borrowed caller ordering; The boundary; Submitted work with no boundary (F71–F80, F96–F101, F124, F129, F143)",
		States: []machine.State{
			{Name: "idle", Doc: "Not under way."},
			{Name: "permitted", Doc: "The context is the right one; the permit is being checked."},
			{Name: "armed", Doc: "The fence stands for the run; nothing is submitted."},
			{Name: "core submitted", Doc: "The AICore kernel is accepted."},
			{Name: "core recorded", Doc: "Its boundary is recorded."},
			{Name: "cpu submitted", Doc: "The AICPU kernel is accepted."},
			{Name: "complete", Doc: "Both boundaries are recorded: the receipt is minted."},
			{Name: "not started", Doc: "Proven: nothing was submitted."},
			{Name: "partial", Doc: "Something was or may have been submitted."},
		},
		Facts:    withArgs(identityFacts, machine.Fact{Name: "permit", Type: "id permit"}),
		Identity: identityNames,
		Views: append(append([]machine.View(nil), runViews...),
			machine.View{Name: "prepared", Expr: `run.state == "prepared"`},
			openView,
			machine.View{Name: "permit", Expr: "run.permit"},
			machine.View{Name: "free", Expr: `(fence.state == "bare" || fence.state == "idle") && fence.core_refs == 0 && fence.cpu_refs == 0`, Doc: "The fence can stand for a run."},
			machine.View{Name: "arming", Expr: "fence.arming"},
		),
		Events: []machine.Event{
			{Name: "start", Args: withArgs(runArgs, machine.Fact{Name: "permit", Type: "id permit"})},
			{Name: "arm"},
			{Name: "submit_core"},
			{Name: "record_core"},
			{Name: "submit_cpu"},
			{Name: "record_cpu"},
			{Name: "reset"},
		},
		Rows: rows,
	}
}
