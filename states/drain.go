package states

import "github.com/runfence/runfence/machine"

// drain waits for a run and decides it. Completion comes from the run's own
// boundaries, bounded and whatever is queued behind them. If both complete and
// the run's own record certifies success, that is the verdict; every other
// shape asks the device by synchronising the pair of streams, which is what
// materialises a fault (F103–F106). Then the caller's reference is discharged,
// ahead of retirement (F29).
//
// An expired wait ends the operation and proves nothing; the run is as it was
// and may be waited for again (F100).
func drain() *machine.Definition {
	to := func(state string) machine.Target {
		return machine.Target{To: state, Emit: []string{"self." + state + "()"}}
	}
	on := func(outcome, when string, t machine.Target) machine.Target { t.On, t.When = outcome, when; return t }
	waitFor := func(name, command, boundary, proven, waitable, next string) []machine.Row {
		reached := to(next)
		reached.With = []string{"fence.reached(" + own + ", " + boundary + ")", "join." + proven + "()"}
		return []machine.Row{
			{
				ID: name, From: name, Event: name, Guard: "view." + waitable, Command: command + "()", Source: "F97, F100, F127",
				Then: []machine.Target{
					{On: "ok", When: "!view.current", To: "ready", Error: ErrStaleIdentity},
					on("ok", "", reached),
					{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
					on("", "", to(next)),
				},
			},
			{
				ID: name + "-none", From: name, Event: name, Guard: "else", Source: "F129",
				Doc:  "This boundary was not recorded, or has completed.",
				Then: []machine.Target{to(next)},
			},
		}
	}
	const told = "!(view.current)"
	ask := func(complete, transferred, trusted, own, record string) string {
		return "outcome.decide(" + complete + ", " + transferred + ", " + trusted + ", " + own + ", " + record + ")"
	}
	with := func(t machine.Target, w ...string) machine.Target { t.With = w; return t }
	// Record classes by the code that reading one answers with.
	var read []machine.Target
	read = append(read, machine.Target{On: "ok refused failed panicked timedout", When: told, To: "ready", Error: ErrStaleIdentity})
	for _, c := range []struct{ code, record string }{{"0", "all_ok"}, {"1", "header_failed"}, {"2", "participant_failed"}, {"3", "unclaimed"}, {"4", "unmarked"}} {
		cond := "res.value == run_epoch && res.code == " + c.code
		if c.record == "all_ok" {
			read = append(read, on("ok", cond+" && view.complete && view.trusted", with(to("settle"), ask("true", "true", "true", "true", "all_ok"))))
		}
		read = append(read, on("ok", cond, with(to("cpu_sync"), ask("view.complete", "true", "view.trusted", "true", c.record))))
	}
	read = append(read,
		on("ok", "", with(to("cpu_sync"), ask("view.complete", "true", "view.trusted", "false", "absent"))),
		on("refused failed panicked timedout", "", with(to("cpu_sync"), ask("view.complete", "false", "view.trusted", "false", "absent"))),
	)
	// A stream that faults is proven over by its boundary; one that does not, by
	// its synchronize. That covers the wait for a predecessor which it may hold.
	quiesced := "fence.quiesced(" + own + ")"
	quiet := []string{"outcome.synchronised(false, 0)", quiesced, "join.proven_core()", "join.proven_cpu()"}
	faulted := func(fault, proven string) []string {
		return []string{"outcome.synchronised(true, " + fault + ")", quiesced, "join." + proven + "()"}
	}

	rows := entry("ready", []machine.Row{
		{ID: "start-drained", From: "ready", Event: "start", Guard: "view.verdict != undecided", Source: "F104", Doc: "The verdict stands; it is told again.", Then: []machine.Target{
			{When: "view.verdict == faulted", Error: ErrRunFailed, Code: "view.fault"},
			{When: "view.verdict == diagnosed", Error: ErrDiagnosed},
			{When: "view.verdict == broken", Error: ErrPartial, Code: "view.rc"},
			{When: "view.verdict == swept", Error: ErrReset},
			{},
		}},
		{ID: "start-unlaunched", From: "ready", Event: "start", Guard: "!view.launched", Refuse: ErrNotLaunched},
	},
		overtaken,
		// A reset may have ended the run while the context was asked for. What is
		// decided from here on is decided of a run that is there.
		machine.Target{When: "view.verdict == swept", Error: ErrReset},
		machine.Target{When: "!view.launched", Error: ErrStaleIdentity},
		machine.Target{When: "view.decided", To: "settle", Do: remember, Emit: []string{"self.settle()"}},
		machine.Target{When: "view.asking && view.unfenced", To: "cpu_sync", Do: remember + "; fatal = false; fault = 0", Emit: []string{"self.cpu_sync()"}},
		machine.Target{
			When: "view.unfenced", To: "cpu_sync", Do: remember + "; fatal = false; fault = 0",
			With: []string{ask("false", "false", "false", "false", "absent")}, Emit: []string{"self.cpu_sync()"},
		},
		machine.Target{To: "core_wait", Do: remember + "; fatal = false; fault = 0", Emit: []string{"self.core_wait()"}},
	)
	rows = append(rows, busyEvent("start", "core_wait|cpu_wait|read|cpu_sync|core_sync|settle|tail_wait|caller_sync"))
	rows = append(rows, waitFor("core_wait", "WaitCore", "core_done", "proven_core", "core_waitable", "cpu_wait")...)
	rows = append(rows, waitFor("cpu_wait", "WaitCPU", "cpu_done", "proven_cpu", "cpu_waitable", "read")...)
	rows = append(rows,
		machine.Row{
			ID: "read-asked", From: "read", Event: "read", Guard: "view.asking", Source: "F104, F106",
			Doc:  "An earlier drain read the record. Its boundaries are waited for again: one that could not be may be what the verdict lacks.",
			Then: []machine.Target{to("cpu_sync")},
		},
		machine.Row{
			ID: "read", From: "read", Event: "read", Guard: "view.complete", Command: "ReadRecord()", Source: "F5, F105, F106, F117, F166",
			Doc:  "The record's epoch and class are read back only after both boundaries completed.",
			Then: read,
		},
		machine.Row{
			ID: "read-none", From: "read", Event: "read", Guard: "else", Source: "F5, F106",
			Then: []machine.Target{
				{When: told, To: "ready", Error: ErrStaleIdentity},
				with(to("cpu_sync"), ask("false", "false", "view.trusted", "false", "absent")),
			},
		},
		machine.Row{
			ID: "cpu_sync", From: "cpu_sync", Event: "cpu_sync", Command: "SyncCPU()", Source: "F103, F104, F106, F130",
			Then: []machine.Target{
				on("ok", "", to("core_sync")),
				{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
				{On: "failed", To: "core_sync", Do: "fatal = true; fault = res.code", Emit: []string{"self.core_sync()"}},
				{To: "ready", Error: ErrUnproven, Code: "res.code"},
			},
		},
		machine.Row{
			ID: "core_sync", From: "core_sync", Event: "core_sync", Command: "SyncCore()", Source: "F103, F104, F106, F130, F132",
			Then: []machine.Target{
				{On: "ok failed", When: told, To: "ready", Error: ErrStaleIdentity},
				on("ok", "!fatal", with(to("settle"), quiet...)),
				on("ok", "view.cpu_complete", with(to("settle"), faulted("fault", "proven_core")...)),
				{On: "ok", To: "ready", Error: ErrUnproven, Code: "fault"},
				{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
				on("failed", "fatal && view.complete", with(to("settle"), faulted("fault", "proven_core")...)),
				on("failed", "!fatal && view.core_complete", with(to("settle"), faulted("res.code", "proven_cpu")...)),
				{On: "failed", To: "ready", Error: ErrUnproven, Code: "res.code"},
				{To: "ready", Error: ErrUnproven, Code: "res.code"},
			},
		},
		machine.Row{
			ID: "settle-tail", From: "settle", Event: "settle", Guard: "view.held && view.tail", Source: "F27, F29",
			Then: []machine.Target{to("tail_wait")},
		},
		machine.Row{
			ID: "settle-caller", From: "settle", Event: "settle", Guard: "view.ordered && !view.tail", Source: "F35",
			Doc:  "No Tail was recorded: the caller's stream itself is the fallback proof.",
			Then: []machine.Target{to("caller_sync")},
		},
		machine.Row{ID: "settle", From: "settle", Event: "settle", Guard: "else", Source: "F29, F104, F105, F117", Then: verdicts("ok")},
		machine.Row{
			ID: "tail_wait", From: "tail_wait", Event: "tail_wait", Command: "WaitTail()", Source: "F27, F29, F127",
			Then: append(verdicts("ok", "caller_order.proven()"),
				machine.Target{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
				on("", "", to("caller_sync")),
			),
		},
		machine.Row{
			ID: "caller_sync", From: "caller_sync", Event: "caller_sync", Command: "SyncCaller()", Source: "F35, F36",
			Then: append(verdicts("ok", "caller_order.proven()"),
				machine.Target{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
				machine.Target{To: "ready", Error: ErrUnproven, Code: "res.code"},
			),
		},
	)
	return &machine.Definition{
		Name:   "drain",
		Pool:   "slot",
		Doc:    "Host operation: wait for a run, bounded, and decide it.",
		Source: "F, Borrowed caller ordering; Completion is not the verdict; Submitted work with no boundary (F5, F27–F36, F97–F106, F117, F127–F132)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "core_wait", Doc: "Waiting for the AICore boundary."},
			{Name: "cpu_wait", Doc: "Waiting for the AICPU boundary."},
			{Name: "read", Doc: "Reading the run's own record back."},
			{Name: "cpu_sync", Doc: "Synchronising the AICPU stream: a fault materialises here."},
			{Name: "core_sync", Doc: "Synchronising the AICore stream."},
			{Name: "settle", Doc: "Decided; the caller's reference, if there is one, is discharged first."},
			{Name: "tail_wait", Doc: "Waiting for Tail: the caller consumed its wait."},
			{Name: "caller_sync", Doc: "Synchronising the caller's stream, for want of a Tail."},
		},
		Facts: withArgs(identityFacts,
			machine.Fact{Name: "fatal", Type: "bool", Doc: "Synchronising the AICPU stream failed. The outcome says so, not the code."},
			machine.Fact{Name: "fault", Type: "code", Doc: "What it reported."},
		),
		Views: append(append([]machine.View(nil), runViews...), launchedView,
			machine.View{Name: "verdict", Expr: "run.verdict"},
			unfencedView, current,
			machine.View{Name: "partial", Expr: `run.state == "partial"`},
			machine.View{Name: "rc", Expr: "run.rc"},
			machine.View{Name: "fault", Expr: "run.fault"},
			machine.View{Name: "core_waitable", Expr: "fence.core == recorded"},
			machine.View{Name: "cpu_waitable", Expr: "fence.cpu == recorded"},
			machine.View{Name: "complete", Expr: "fence.core == complete && fence.cpu == complete"},
			machine.View{Name: "core_complete", Expr: "fence.core == complete"},
			machine.View{Name: "cpu_complete", Expr: "fence.cpu == complete"},
			machine.View{Name: "trusted", Expr: `region.state == "initialised"`},
			machine.View{Name: "decided", Expr: `outcome.state == "certified" || outcome.state == "succeeded" || outcome.state == "failed"`, Doc: "An earlier drain got as far as the verdict."},
			machine.View{Name: "asking", Expr: `outcome.state == "asking" || outcome.state == "diagnosed"`, Doc: "An earlier drain got as far as the question."},
			machine.View{Name: "succeeded", Expr: `outcome.state == "certified" || outcome.state == "succeeded"`},
			machine.View{Name: "faulted", Expr: "outcome.faulted"},
			machine.View{Name: "device_fault", Expr: "outcome.fault"},
			machine.View{Name: "tail", Expr: "caller_order.tail == on_stream"},
			machine.View{Name: "held", Expr: "caller_order.held != no_wait"},
			machine.View{Name: "ordered", Expr: `run.eager && caller_order.state == "ordering" && !caller_order.consumed`},
		),
		Identity: identityNames,
		Events: []machine.Event{
			{Name: "start", Args: runArgs},
			{Name: "core_wait"},
			{Name: "cpu_wait"},
			{Name: "read"},
			{Name: "cpu_sync"},
			{Name: "core_sync"},
			{Name: "settle"},
			{Name: "tail_wait"},
			{Name: "caller_sync"},
		},
		Rows: rows,
	}
}

// verdicts are where a decided run goes: it is proven over.
func verdicts(on string, with ...string) []machine.Target {
	v := func(when, drained string, err machine.Reason, code string) machine.Target {
		return machine.Target{
			On: on, When: when, To: "ready", Error: err, Code: code,
			With: append(append([]string(nil), with...), "run.drained("+own+", "+drained+")"),
		}
	}
	return []machine.Target{
		{On: on, When: "!view.current", To: "ready", Error: ErrStaleIdentity},
		v("view.partial && !view.faulted", "well, 0", ErrPartial, "view.rc"),
		v("view.succeeded", "well, 0", "", ""),
		v("view.faulted", "fault_seen, view.device_fault", ErrRunFailed, "view.device_fault"),
		v("", "self_diagnosed, 0", ErrDiagnosed, ""),
	}
}
