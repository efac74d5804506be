package states

import "github.com/runfence/runfence/machine"

// What the operations of a host have in common. Each is a Definition whose
// state is its program counter: a step's last act is to emit the next event,
// so an operation may be interleaved with others, and cloned, at every step.

// runArgs bear the caller's process and the identity of the run it means.
var runArgs = withArgs(processArg, identityArgs...)

// runViews are what every operation on a run looks at before it starts.
var runViews = []machine.View{
	{Name: "process", Expr: "lane.process"},
	detached,
	{Name: "context", Expr: "environment.context"},
	{Name: "run_epoch", Expr: "run.run_epoch"},
	{Name: "generation", Expr: "run.generation"},
	{Name: "dispatch", Expr: "run.dispatch"},
}

const notTheRuns = "!(arg.run_epoch == view.run_epoch && arg.generation == view.generation && arg.dispatch == view.dispatch)"

// detached is the view by which a handle sees that its lane was given up.
var detached = machine.View{Name: "detached", Expr: `environment.state == "detached"`, Doc: "The lane was given up without a close."}

// entry returns the rows that every operation on a run begins with, in the
// order in which refusals must come: foreign process before anything is
// entered, then a lane that was given up, then a stale identity, then the
// operation's own refusals, then the context check, whose mismatch loses
// nothing (F54, F59, F66, F122).
func entry(from string, refusals []machine.Row, then ...machine.Target) []machine.Row {
	rows := append(stranger(from), refusals...)
	return append(rows, machine.Row{
		ID: "start", From: from, Event: "start", Guard: "else", Command: "CurrentContext()", Source: "F59, F157",
		Then: contextTargets(then...),
	})
}

// overtaken is where an operation ends whose run was let go while the context
// was asked for, when the slot has another: the answer is not for that one. A
// launch needs no such end, because finalizing a run waits for its launch.
var overtaken = machine.Target{When: notTheRuns, Error: ErrStaleIdentity}

// stranger refuses whoever has no say in the run at all.
func stranger(from string) []machine.Row {
	return []machine.Row{
		{ID: "start-foreign", From: from, Event: "start", Guard: "arg.process != view.process", Refuse: ErrForeignProcess, Source: "F54, F55"},
		{ID: "start-detached", From: from, Event: "start", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
		{ID: "start-stale", From: from, Event: "start", Guard: notTheRuns, Refuse: ErrStaleIdentity, Source: "F122"},
	}
}

// contextTargets are where the answer of CurrentContext leads.
func contextTargets(then ...machine.Target) []machine.Target {
	out := []machine.Target{{On: "ok", When: "res.value != view.context", Error: ErrExecutionContextRefused}}
	for _, t := range then {
		t.On = "ok"
		out = append(out, t)
	}
	return append(out, machine.Target{Error: ErrContextQuery, Code: "res.code"})
}

const remember = "run_epoch = arg.run_epoch; generation = arg.generation; dispatch = arg.dispatch"

// current is the view by which an operation under way sees that the fence
// still stands for its run.
var current = machine.View{
	Name: "current", Expr: "fence.run_epoch == run_epoch && fence.generation == generation && fence.dispatch == dispatch",
	Doc: "The fence still stands for this run.",
}
