package states

import "github.com/runfence/runfence/machine"

// callerOrder orders a run between the caller's earlier and later work: Start
// before the run, Fork between the run's own streams, Tail after it. From the
// wait that the caller queues on the run's AICPU boundary until Tail proves
// that wait consumed, it holds a reference on the boundary (F22, F27).
func callerOrder() *machine.Definition {
	edge := machine.Fact{Name: "edge", Type: "enum at_start|at_fork|at_tail"}
	var rows []machine.Row
	for _, e := range []string{"start", "fork", "tail"} {
		rows = append(rows,
			machine.Row{
				ID: "attempt-" + e, From: "ordering", Event: "attempt", Guard: "arg.edge == at_" + e + " && " + e + " == unrecorded",
				Source: "F34", Then: []machine.Target{{Do: e + " = attempted"}},
			},
		)
	}
	rows = append(rows, machine.Row{ID: "attempt-twice", From: "ordering", Event: "attempt", Guard: "else", Refuse: ErrBoundaryOrder, Source: "F22"})
	for _, e := range []string{"start", "fork", "tail"} {
		rows = append(rows, machine.Row{
			ID: "record-" + e, From: "ordering", Event: "record", Guard: "arg.edge == at_" + e + " && " + e + " == attempted",
			Source: "F22", Then: []machine.Target{{Do: e + " = on_stream"}},
		})
	}
	rows = append(rows,
		machine.Row{ID: "record-unattempted", From: "ordering", Event: "record", Guard: "else", Refuse: ErrBoundaryOrder, Source: "F22"},

		machine.Row{ID: "made", From: "bare|ordering", Event: "made", Source: "F26", Then: []machine.Target{{Do: "handles = true"}}},
		machine.Row{
			ID: "begin", From: "bare", Event: "begin", Source: "F26",
			Doc:  "The events are the slot's and are recorded again; what they mean is the run's.",
			Then: []machine.Target{{To: "ordering", Do: "run_epoch = arg.run_epoch; generation = arg.generation; dispatch = arg.dispatch; arming = view.arming; " + noEdges}},
		},
		machine.Row{ID: "begin-busy", From: "ordering", Event: "begin", Refuse: ErrNotRetired},

		machine.Row{
			ID: "hold", From: "ordering", Event: "hold", Guard: "held == no_wait", Source: "F27",
			Then: []machine.Target{{Do: "held = reserved", With: []string{"fence.reserve(" + own + ", cpu_done, arming)"}}},
		},
		machine.Row{ID: "hold-twice", From: "ordering", Event: "hold", Guard: "else", Refuse: ErrTokenHeld},
		machine.Row{ID: "queued", From: "ordering", Event: "queued", Guard: "held == reserved", Source: "F27, F34", Then: []machine.Target{{Do: "held = queued"}}},
		machine.Row{ID: "queued-unheld", From: "ordering", Event: "queued", Guard: "else", Refuse: ErrNotCommitted},
		machine.Row{
			ID: "unhold", From: "ordering", Event: "unhold", Guard: "held == reserved", Source: "F135",
			Then: []machine.Target{{Do: "held = no_wait", With: []string{"fence.drop(cpu_done, arming)"}}},
		},
		machine.Row{ID: "unhold-queued", From: "ordering", Event: "unhold", Guard: "else", Refuse: ErrTokenHeld},

		machine.Row{
			ID: "proven", From: "ordering", Event: "proven", Guard: "held != no_wait", Source: "F27, F29, F35",
			Doc:  "Tail completed, or the caller's stream was synchronised: the wait is consumed.",
			Then: []machine.Target{{Do: "held = no_wait; consumed = true", With: []string{"fence.drop(cpu_done, arming)"}}},
		},
		machine.Row{ID: "proven-again", From: "ordering", Event: "proven", Guard: "else", Then: []machine.Target{{Do: "consumed = true"}}},
		machine.Row{ID: "proven-none", From: "bare", Event: "proven", Then: []machine.Target{{}}},

		machine.Row{ID: "end-held", From: "ordering", Event: "end", Guard: "held != no_wait", Refuse: ErrReferenceHeld, Source: "F29, F36"},
		machine.Row{ID: "end", From: "ordering", Event: "end", Guard: "else", Source: "F29", Then: []machine.Target{{To: "bare", Do: noCaller}}},
		machine.Row{ID: "end-none", From: "bare", Event: "end", Then: []machine.Target{{}}},
		machine.Row{
			ID: "abandon", From: "bare|ordering", Event: "abandon", Source: "F136, F140",
			Then: []machine.Target{{To: "bare", Do: noCaller + "; handles = false"}},
		},
	)
	const steps = "enum unrecorded|attempted|on_stream"
	return &machine.Definition{
		Name:   "caller_order",
		Pool:   "slot",
		Doc:    "The three events that order a run against its caller's stream, and the reference they hold.",
		Source: "F, Borrowed caller ordering (F18–F37, F133–F139)",
		States: []machine.State{
			{Name: "bare", Doc: "No run of the slot is being ordered."},
			{Name: "ordering", Doc: "The events stand for one run."},
		},
		Facts: append(withArgs(identityFacts),
			machine.Fact{Name: "arming", Type: "id arming"},
			machine.Fact{Name: "start", Type: steps, Doc: "On the caller's stream, before the run."},
			machine.Fact{Name: "fork", Type: steps, Doc: "On the AICPU stream, before its kernel."},
			machine.Fact{Name: "tail", Type: steps, Doc: "On the caller's stream, after its wait for the run."},
			machine.Fact{Name: "held", Type: "enum no_wait|reserved|queued", Doc: "The reference on the AICPU boundary."},
			machine.Fact{Name: "consumed", Type: "bool", Doc: "The caller's wait is proven consumed."},
			machine.Fact{Name: "handles", Type: "bool", Doc: "The slot's three events exist."},
		),
		Identity: identityNames,
		Views:    []machine.View{{Name: "arming", Expr: "fence.arming"}},
		Events: []machine.Event{
			{Name: "begin", Args: identityArgs},
			{Name: "made", Doc: "The slot's three events exist."},
			{Name: "attempt", Args: []machine.Fact{edge}, Doc: "A record is about to be enqueued."},
			{Name: "record", Args: []machine.Fact{edge}},
			{Name: "hold", Doc: "The caller is about to wait for the run."},
			{Name: "queued", Doc: "Its wait is, or may be, queued."},
			{Name: "unhold", Doc: "Its wait was not queued."},
			{Name: "proven"},
			{Name: "end", Doc: "The run retires."},
			{Name: "abandon", Doc: "A reset of the device was verified."},
		},
		Rows: rows,
	}
}

const (
	noEdges  = "start = unrecorded; fork = unrecorded; tail = unrecorded; held = no_wait; consumed = false"
	noCaller = "run_epoch = none; generation = none; dispatch = none; arming = none; " + noEdges
)
