package states

import "github.com/runfence/runfence/machine"

// poll asks whether a run is complete, without waiting: its two boundaries,
// and the sticky error state of its streams (F119). A fault that no
// synchronize has materialised stays invisible to it. An Unfenced run has no
// boundaries to ask, so only its streams are (F130).
func poll() *machine.Definition {
	query := func(name, state, command, next string, done machine.Target, failed machine.Reason) machine.Row {
		pending := machine.Target{On: "ok", To: next, Do: "pending = true"}
		if next == "ready" {
			done.Return, pending.Return = "!pending", "!pending"
		} else {
			emit := []string{"self." + id2(next) + "()"}
			done.Emit, pending.Emit = emit, emit
		}
		done.On, done.To, done.When = "ok", next, "res.value == 1"
		return machine.Row{
			ID: name, From: state, Event: name, Command: command + "()", Source: "F119, F126, F128",
			Then: []machine.Target{
				{On: "ok", When: "!view.current", To: "ready", Error: ErrStaleIdentity},
				done, pending,
				{To: "ready", Error: failed, Code: "res.code"},
			},
		}
	}
	reached := func(b string) machine.Target {
		return machine.Target{With: []string{"fence.reached(" + own + ", " + b + ")"}}
	}
	rows := entry("ready", []machine.Row{
		{ID: "start-unlaunched", From: "ready", Event: "start", Guard: "!view.launched", Refuse: ErrNotLaunched},
	},
		machine.Target{When: "view.unfenced", To: "cpu stream", Do: remember + "; pending = false", Emit: []string{"self.cpu_stream()"}},
		machine.Target{To: "core", Do: remember + "; pending = false", Emit: []string{"self.core()"}},
	)
	rows = append(rows,
		busy("core|cpu|cpu stream|core stream"),
		query("core", "core", "QueryCore", "cpu", reached("core_done"), ErrQueryFailed),
		query("cpu", "cpu", "QueryCPU", "cpu stream", reached("cpu_done"), ErrQueryFailed),
		query("cpu_stream", "cpu stream", "QueryCPUStream", "core stream", machine.Target{}, ErrStreamError),
		query("core_stream", "core stream", "QueryCoreStream", "ready", machine.Target{}, ErrStreamError),
	)
	return &machine.Definition{
		Name:   "poll",
		Pool:   "slot",
		Doc:    "Host operation: ask, without waiting, whether a run is complete.",
		Source: "F, The question a stream cannot answer; Submitted work with no boundary; What this leaves open (F97, F119, F126–F130)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "core", Doc: "Asking the AICore boundary."},
			{Name: "cpu", Doc: "Asking the AICPU boundary."},
			{Name: "cpu stream", Doc: "Reading the AICPU stream's error state."},
			{Name: "core stream", Doc: "Reading the AICore stream's error state."},
		},
		Facts:    withArgs(identityFacts, machine.Fact{Name: "pending", Type: "bool", Doc: "Something asked so far is not complete."}),
		Identity: identityNames,
		Views:    append(append([]machine.View(nil), runViews...), launchedView, unfencedView, current),
		Events: []machine.Event{
			{Name: "start", Args: runArgs},
			{Name: "core"},
			{Name: "cpu"},
			{Name: "cpu_stream"},
			{Name: "core_stream"},
		},
		Rows: rows,
	}
}

var (
	launchedView = machine.View{Name: "launched", Expr: `run.state == "launched" || run.state == "partial"`}
	unfencedView = machine.View{
		Name: "unfenced", Expr: "fence.core == submitted || fence.cpu == submitted",
		Doc: "A kernel is on the device and its boundary is not recorded (F129).",
	}
)
