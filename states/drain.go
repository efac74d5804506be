package states

import "github.com/runfence/runfence/machine"

// drain waits for a run and asks the device for its verdict. Completion comes
// from the run's own boundaries; the verdict comes from synchronising the pair
// of streams, which is what materialises a fault (F103, F104). The pair is
// always synchronised: no record is relied on (F106).
//
// An expired wait ends the operation and proves nothing; the run is as it was
// and may be waited for again (F100).
func drain() *machine.Definition {
	waitFor := func(name, command, boundary, waitable, next string) []machine.Row {
		return []machine.Row{
			{
				ID: name, From: name, Event: name, Guard: "view." + waitable, Command: command + "()", Source: "F97, F100, F127",
				Then: []machine.Target{
					{On: "ok", When: "!view.current", To: "ready", Error: ErrStaleIdentity},
					{On: "ok", To: next, With: []string{"fence.reached(" + own + ", " + boundary + ")"}, Emit: []string{"self." + next + "()"}},
					{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
					{To: next, Emit: []string{"self." + next + "()"}},
				},
			},
			{
				ID: name + "-none", From: name, Event: name, Guard: "else", Source: "F129",
				Doc:  "This boundary was not recorded, or has completed.",
				Then: []machine.Target{{To: next, Emit: []string{"self." + next + "()"}}},
			},
		}
	}
	rows := entry("ready", []machine.Row{
		{ID: "start-drained", From: "ready", Event: "start", Guard: "view.verdict != undecided", Source: "F104", Doc: "The verdict stands; it is told again.", Then: []machine.Target{{
			When: "view.verdict == faulted", Error: ErrRunFailed, Code: "view.fault",
		}, {When: "view.verdict == broken", Error: ErrPartial, Code: "view.rc"}, {}}},
		{ID: "start-unlaunched", From: "ready", Event: "start", Guard: "!view.launched", Refuse: ErrNotLaunched},
	},
		machine.Target{When: "view.unfenced", To: "cpu_sync", Do: remember + "; fatal = false; fault = 0", Emit: []string{"self.cpu_sync()"}},
		machine.Target{To: "core_wait", Do: remember + "; fatal = false; fault = 0", Emit: []string{"self.core_wait()"}},
	)
	rows = append(rows, busy("core_wait|cpu_wait|cpu_sync|core_sync"))
	rows = append(rows, waitFor("core_wait", "WaitCore", "core_done", "core_waitable", "cpu_wait")...)
	rows = append(rows, waitFor("cpu_wait", "WaitCPU", "cpu_done", "cpu_waitable", "cpu_sync")...)
	rows = append(rows,
		machine.Row{
			ID: "cpu_sync", From: "cpu_sync", Event: "cpu_sync", Command: "SyncCPU()", Source: "F103, F104, F106, F130",
			Then: []machine.Target{
				{On: "ok", To: "core_sync", Emit: []string{"self.core_sync()"}},
				{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
				{On: "failed", To: "core_sync", Do: "fatal = true; fault = res.code", Emit: []string{"self.core_sync()"}},
				{To: "ready", Error: ErrUnproven, Code: "res.code"},
			},
		},
		machine.Row{
			ID: "core_sync", From: "core_sync", Event: "core_sync", Command: "SyncCore()", Source: "F103, F104, F106, F130, F132",
			Then: []machine.Target{
				{On: "ok failed", When: "!view.current", To: "ready", Error: ErrStaleIdentity},
				{
					On: "ok", When: "!fatal && view.partial", To: "ready", Error: ErrPartial, Code: "view.rc",
					With: []string{"fence.quiesced(" + own + ")", "run.drained(" + own + ", false, 0)"},
				},
				{On: "ok", When: "!fatal", To: "ready", With: []string{"fence.quiesced(" + own + ")", "run.drained(" + own + ", false, 0)"}},
				{On: "ok", When: "view.proven", To: "ready", Error: ErrRunFailed, Code: "fault", With: []string{"run.drained(" + own + ", true, fault)"}},
				{On: "ok", To: "ready", Error: ErrUnproven, Code: "fault"},
				{On: "timedout", To: "ready", Error: ErrWaitTimeout, Code: "res.code"},
				{On: "failed", When: "view.proven && fatal", To: "ready", Error: ErrRunFailed, Code: "fault", With: []string{"run.drained(" + own + ", true, fault)"}},
				{On: "failed", When: "view.proven", To: "ready", Error: ErrRunFailed, Code: "res.code", With: []string{"run.drained(" + own + ", true, res.code)"}},
				{On: "failed", To: "ready", Error: ErrUnproven, Code: "res.code"},
				{To: "ready", Error: ErrUnproven, Code: "res.code"},
			},
		},
	)
	return &machine.Definition{
		Name:   "drain",
		Pool:   "slot",
		Doc:    "Host operation: wait for a run, bounded, and get the device's verdict.",
		Source: "F, Completion is not the verdict; Submitted work with no boundary (F97–F106, F127–F132)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "core_wait", Doc: "Waiting for the AICore boundary."},
			{Name: "cpu_wait", Doc: "Waiting for the AICPU boundary."},
			{Name: "cpu_sync", Doc: "Synchronising the AICPU stream: a fault materialises here."},
			{Name: "core_sync", Doc: "Synchronising the AICore stream."},
		},
		Facts: withArgs(identityFacts,
			machine.Fact{Name: "fatal", Type: "bool", Doc: "Synchronising the AICPU stream failed. The outcome says so, not the code."},
			machine.Fact{Name: "fault", Type: "code", Doc: "What it reported."},
		),
		Views: append(append([]machine.View(nil), runViews...), launchedView,
			unfencedView, current,
			machine.View{Name: "partial", Expr: `run.state == "partial"`},
			machine.View{Name: "rc", Expr: "run.rc"},
			machine.View{Name: "fault", Expr: "run.fault"},
			machine.View{Name: "verdict", Expr: "run.verdict"},
			machine.View{Name: "core_waitable", Expr: "fence.core == recorded"},
			machine.View{Name: "cpu_waitable", Expr: "fence.cpu == recorded"},
			machine.View{Name: "proven", Expr: "(fence.core == missing || fence.core == complete) && (fence.cpu == missing || fence.cpu == complete)", Doc: "Every boundary that was recorded has completed, and none is missing its record."},
		),
		Identity: identityNames,
		Events: []machine.Event{
			{Name: "start", Args: runArgs},
			{Name: "core_wait"},
			{Name: "cpu_wait"},
			{Name: "cpu_sync"},
			{Name: "core_sync"},
		},
		Rows: rows,
	}
}
