package states

import "github.com/runfence/runfence/machine"

// poll asks whether a run is complete, without waiting: its two boundaries,
// and the sticky error state of its streams (F119). A fault that no
// synchronize has materialised stays invisible to it. An Unfenced run has no
// boundaries to ask, so only its streams are (F130).
func poll() *machine.Definition {
	// onward makes targets go on to the next question, or end with the answer.
	onward := func(next string, ts ...machine.Target) []machine.Target {
		for i := range ts {
			ts[i].On, ts[i].To = "ok", next
			if next == "ready" {
				ts[i].Return = "!pending"
			} else {
				ts[i].Emit = []string{"self." + id2(next) + "()"}
			}
		}
		return ts
	}
	stale := machine.Target{On: "ok", When: "!view.current", To: "ready", Error: ErrStaleIdentity}
	unanswered := machine.Target{To: "ready", Error: ErrQueryFailed, Code: "res.code"}
	boundary := func(b, command, next string) []machine.Row {
		skip := onward(next, machine.Target{})
		skip[0].On = ""
		return []machine.Row{
			{
				ID: b, From: b, Event: b, Guard: "view." + b + "_recorded", Command: command + "()", Source: "F97, F119, F126, F128",
				Then: append(append([]machine.Target{stale}, onward(next,
					machine.Target{When: "res.value == 1", With: []string{"fence.reached(" + own + ", " + b + "_done)"}},
					machine.Target{Do: "pending = true"},
				)...), unanswered),
			},
			{
				ID: b + "-none", From: b, Event: b, Guard: "else", Source: "F129",
				Doc:  "Its kernel is not on the device. What the event says is of an earlier run.",
				Then: skip,
			},
		}
	}
	stream := func(name, state, command, next string) machine.Row {
		return machine.Row{
			ID: name, From: state, Event: name, Command: command + "()", Source: "F11, F119, F126, F130",
			Doc: "A stream that is not drained makes only an Unfenced run pending: the queue may hold more than this run.",
			Then: append(append([]machine.Target{stale}, onward(next,
				machine.Target{When: "res.value == 0 && view.unfenced", Do: "pending = true"},
				machine.Target{},
			)...), machine.Target{On: "failed", To: "ready", Error: ErrStreamError, Code: "res.code"}, unanswered),
		}
	}
	rows := entry("ready", []machine.Row{
		{ID: "start-unlaunched", From: "ready", Event: "start", Guard: "!view.launched", Refuse: ErrNotLaunched},
	},
		machine.Target{When: "view.unfenced", To: "cpu stream", Do: remember + "; pending = false", Emit: []string{"self.cpu_stream()"}},
		machine.Target{To: "core", Do: remember + "; pending = false", Emit: []string{"self.core()"}},
	)
	rows = append(rows,
		busy("core|cpu|cpu stream|core stream"),
	)
	rows = append(rows, boundary("core", "QueryCore", "cpu")...)
	rows = append(rows, boundary("cpu", "QueryCPU", "cpu stream")...)
	rows = append(rows,
		stream("cpu_stream", "cpu stream", "QueryCPUStream", "core stream"),
		stream("core_stream", "core stream", "QueryCoreStream", "ready"),
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
		Views: append(append([]machine.View(nil), runViews...), launchedView, unfencedView, current,
			machine.View{Name: "core_recorded", Expr: "fence.core == recorded || fence.core == complete"},
			machine.View{Name: "cpu_recorded", Expr: "fence.cpu == recorded || fence.cpu == complete"},
		),
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
