package states

import "github.com/runfence/runfence/machine"

// poll asks whether a run is complete, without waiting: its two boundaries,
// the caller's Tail if it has one, and the sticky error state of its streams
// (F28, F119). A fault that no synchronize has materialised stays invisible to
// it. An Unfenced run has no boundaries to ask, so only its streams are (F130);
// nor has one whose launch broke off ahead of both kernels, with a copy or a
// wait that may be queued (F40).
func poll() *machine.Definition {
	query := func(name, state, command, source string, next []machine.Target, reached []string, failed machine.Reason) machine.Row {
		stream := failed == ErrStreamError
		var then []machine.Target
		then = append(then, machine.Target{On: "ok", When: "!view.current", To: "ready", Error: ErrStaleIdentity})
		for _, n := range next {
			done := n
			done.On, done.With = "ok", reached
			done.When = "res.value == 1"
			if n.When != "" {
				done.When += " && " + n.When
			}
			then = append(then, done)
		}
		if stream {
			// With its boundaries recorded, the run is complete or not by them: a
			// queue may be busy with a successor (F11). Only its errors count.
			for _, n := range next {
				n.On, n.When = "ok", "!view.unfenced"
				then = append(then, n)
			}
		}
		for _, n := range next {
			// Without a value the last returns zero, which is not complete.
			n.On, n.Do, n.Return = "ok", "pending = true", ""
			then = append(then, n)
		}
		if stream {
			then = append(then, machine.Target{On: "failed", To: "ready", Error: failed, Code: "res.code"})
		}
		then = append(then, machine.Target{To: "ready", Error: ErrQueryFailed, Code: "res.code"})
		return machine.Row{ID: name, From: state, Event: name, Command: command + "()", Source: source, Then: then}
	}
	to := func(state, event string) machine.Target {
		return machine.Target{To: state, Emit: []string{"self." + event + "()"}}
	}
	when := func(t machine.Target, cond string) machine.Target { t.When = cond; return t }
	reached := func(b, proven string) []string {
		return []string{"fence.reached(" + own + ", " + b + ")", "join." + proven + "()"}
	}
	rows := entry("ready", []machine.Row{
		{ID: "start-drained", From: "ready", Event: "start", Guard: "view.drained", Source: "F104", Doc: "Complete stays complete.", Then: []machine.Target{{Return: "true"}}},
		{ID: "start-unlaunched", From: "ready", Event: "start", Guard: "!view.launched", Refuse: ErrNotLaunched},
	},
		overtaken,
		machine.Target{When: "view.unfenced", To: "cpu stream", Do: remember + "; pending = false", Emit: []string{"self.cpu_stream()"}},
		machine.Target{To: "core", Do: remember + "; pending = false", Emit: []string{"self.core()"}},
	)
	rows = append(rows,
		busyEvent("start", "core|cpu|tail|cpu stream|core stream"),
		machine.Row{ID: "core-none", From: "core", Event: "core", Guard: "!view.core_recorded", Source: "F129", Then: []machine.Target{to("cpu", "cpu")}},
	)
	core := query("core", "core", "QueryCore", "F97, F119, F126, F128", []machine.Target{to("cpu", "cpu")}, reached("core_done", "proven_core"), ErrQueryFailed)
	core.Guard = "else"
	cpu := query("cpu", "cpu", "QueryCPU", "F97, F119, F126, F128", []machine.Target{when(to("tail", "tail"), "view.tail"), to("cpu stream", "cpu_stream")}, reached("cpu_done", "proven_cpu"), ErrQueryFailed)
	cpu.Guard = "else"
	rows = append(rows, core,
		machine.Row{ID: "cpu-none", From: "cpu", Event: "cpu", Guard: "!view.cpu_recorded", Source: "F129", Then: []machine.Target{to("cpu stream", "cpu_stream")}},
		cpu,
		query("tail", "tail", "QueryTail", "F27, F28", []machine.Target{to("cpu stream", "cpu_stream")}, []string{"caller_order.proven()"}, ErrQueryFailed),
		query("cpu_stream", "cpu stream", "QueryCPUStream", "F119, F130", []machine.Target{to("core stream", "core_stream")}, nil, ErrStreamError),
		query("core_stream", "core stream", "QueryCoreStream", "F119, F130", []machine.Target{{To: "ready", Return: "!pending"}}, nil, ErrStreamError),
	)
	return &machine.Definition{
		Name:   "poll",
		Pool:   "slot",
		Doc:    "Host operation: ask, without waiting, whether a run is complete.",
		Source: "F, The question a stream cannot answer; Borrowed caller ordering; Submitted work with no boundary; What this leaves open (F11, F28, F97, F119, F126–F130)",
		States: []machine.State{
			{Name: "ready", Doc: "Not under way."},
			{Name: "core", Doc: "Asking the AICore boundary."},
			{Name: "cpu", Doc: "Asking the AICPU boundary."},
			{Name: "tail", Doc: "Asking whether the caller's wait is consumed."},
			{Name: "cpu stream", Doc: "Reading the AICPU stream's error state."},
			{Name: "core stream", Doc: "Reading the AICore stream's error state."},
		},
		Facts:    withArgs(identityFacts, machine.Fact{Name: "pending", Type: "bool", Doc: "Something asked so far is not complete."}),
		Identity: identityNames,
		Views: append(append([]machine.View(nil), runViews...), launchedView,
			machine.View{Name: "drained", Expr: `run.state == "drained"`}, current,
			machine.View{
				Name: "unfenced", Expr: unfencedView.Expr + ` || run.state == "partial" && fence.core == missing && fence.cpu == missing`,
				Doc: "A kernel is on the device and its boundary is not recorded, or what is there is ahead of both kernels (F39, F40, F129).",
			},
			machine.View{Name: "core_recorded", Expr: "fence.core == recorded || fence.core == complete"},
			machine.View{Name: "cpu_recorded", Expr: "fence.cpu == recorded || fence.cpu == complete"},
			machine.View{Name: "tail", Expr: "caller_order.tail == on_stream"},
		),
		Events: []machine.Event{
			{Name: "start", Args: runArgs},
			{Name: "core"},
			{Name: "cpu"},
			{Name: "tail"},
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
