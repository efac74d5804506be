package states

import "github.com/runfence/runfence/machine"

// identityArgs bear the identity of a run; its slot is the instance's own.
var identityArgs = []machine.Fact{
	{Name: "run_epoch", Type: "id epoch"},
	{Name: "generation", Type: "id generation"},
	{Name: "dispatch", Type: "id dispatch"},
}

var identityFacts = []machine.Fact{
	{Name: "run_epoch", Type: "id epoch", Doc: "Of the run; never repeats."},
	{Name: "generation", Type: "id generation", Doc: "Of the environment the run belongs to."},
	{Name: "dispatch", Type: "id dispatch", Doc: "Of the submission."},
}

const (
	// mine: the arguments bear the identity of the present occupant.
	mine = "arg.run_epoch == run_epoch && arg.generation == generation && arg.dispatch == dispatch"
	// whole: no part of the identity is zero.
	whole = "arg.run_epoch != none && arg.generation != none && arg.dispatch != none"
	// notMine opens every row list that only the occupant may use.
	notMine  = "!(" + mine + ")"
	identity = "arg.run_epoch, arg.generation, arg.dispatch"
	own      = "run_epoch, generation, dispatch"
)

var identityNames = []string{"run_epoch", "generation", "dispatch"}

func withArgs(args []machine.Fact, more ...machine.Fact) []machine.Fact {
	return append(append([]machine.Fact(nil), args...), more...)
}

// fence is the completion fence of a slot: two events that the slot keeps, and
// the facts of the run that it stands for, which go with the run (F121, F123).
//
// A run is device-complete when both boundaries that it recorded have
// completed (F97). A boundary that was submitted and not recorded makes the
// run Unfenced: its own events cannot decide it (F129).
func fence() *machine.Definition {
	boundary := machine.Fact{Name: "boundary", Type: "enum core_done|cpu_done"}
	free := "core_refs == 0 && cpu_refs == 0"
	var rows []machine.Row
	// side adds the rows of an event for each boundary: what the boundary must
	// be, and what it becomes.
	side := func(name, need, become, source string, alsoNeed string) {
		for _, b := range []string{"core", "cpu"} {
			guard := "arg.boundary == " + b + "_done && " + sprintBoundary(need, b)
			if alsoNeed != "" {
				guard += " && " + alsoNeed
			}
			rows = append(rows, machine.Row{
				ID: name + "-" + b, From: "armed", Event: name, Guard: guard, Source: source,
				Then: []machine.Target{{Do: b + " = " + become}},
			})
		}
	}
	guarded := func(name string) {
		rows = append(rows,
			machine.Row{ID: name + "-unarmed", From: "bare|idle|released", Event: name, Refuse: ErrNotArmed},
			machine.Row{ID: name + "-stale", From: "armed", Event: name, Guard: notMine, Refuse: ErrStaleIdentity, Source: "F122"},
		)
	}
	out := func(name string) {
		rows = append(rows, machine.Row{ID: name + "-order", From: "armed", Event: name, Guard: "else", Refuse: ErrBoundaryOrder, Source: "F96, F134"})
	}

	rows = append(rows,
		machine.Row{ID: "arm-zero", From: "bare|idle", Event: "arm", Guard: "!(" + whole + ")", Refuse: ErrZeroIdentity},
		machine.Row{ID: "arm-held", From: "bare|idle", Event: "arm", Guard: "core_refs != 0 || cpu_refs != 0", Refuse: ErrReferenceHeld, Source: "F139"},
		machine.Row{
			ID: "arm", From: "bare|idle", Event: "arm", Guard: "else", Source: "F122, F123",
			Doc: "The facts of the run before are dropped, the handles are kept.",
			Then: []machine.Target{{
				To: "armed",
				Do: "run_epoch = arg.run_epoch; generation = arg.generation; dispatch = arg.dispatch; arming = fresh(); core = missing; cpu = missing; quiet = false",
			}},
		},
		machine.Row{ID: "arm-busy", From: "armed", Event: "arm", Refuse: ErrNotRetired, Source: "F122, F139"},
		machine.Row{ID: "arm-released", From: "released", Event: "arm", Refuse: ErrFenceReleased},
	)
	guarded("made")
	rows = append(rows, machine.Row{ID: "made", From: "armed", Event: "made", Guard: "else", Source: "F124, F125", Then: []machine.Target{{Do: "handles = true"}}})
	guarded("disarm")
	rows = append(rows,
		machine.Row{ID: "disarm-late", From: "armed", Event: "disarm", Guard: "!(core == missing && cpu == missing)", Refuse: ErrUnproven, Doc: "A wait can only be counted on a boundary that is recorded, so this refuses a held fence too."},
		machine.Row{ID: "disarm-kept", From: "armed", Event: "disarm", Guard: "handles", Source: "F123, F124", Then: []machine.Target{{To: "idle", Do: forgetRun}}},
		machine.Row{ID: "disarm-bare", From: "armed", Event: "disarm", Guard: "else", Source: "F124", Then: []machine.Target{{To: "bare", Do: forgetRun}}},
	)

	guarded("submitting")
	side("submitting", "%s == missing", "submitting", "F96, F101", "handles")
	out("submitting")
	guarded("submitted")
	side("submitted", "%s == submitting", "submitted", "F129, F143", "")
	out("submitted")
	guarded("unsubmitted")
	side("unsubmitted", "%s == submitting", "missing", "F129", "")
	out("unsubmitted")
	guarded("recording")
	rows = append(rows, machine.Row{ID: "recording-held", From: "armed", Event: "recording", Guard: "!(" + free + ")", Refuse: ErrReferenceHeld, Source: "F139"})
	side("recording", "%s == submitted", "recording", "F96", "")
	out("recording")
	guarded("recorded")
	side("recorded", "%s == recording", "recorded", "F96, F134", "")
	out("recorded")
	guarded("unrecorded")
	side("unrecorded", "%s == recording", "submitted", "F129, F143", "")
	out("unrecorded")
	guarded("reached")
	for _, b := range []string{"core", "cpu"} {
		rows = append(rows, machine.Row{
			ID: "reached-" + b, From: "armed", Event: "reached", Source: "F97, F98",
			Guard: "arg.boundary == " + b + "_done && (" + b + " == recorded || " + b + " == complete)",
			Then:  []machine.Target{{Do: b + " = complete"}},
		})
	}
	out("reached")
	guarded("quiesced")
	rows = append(rows, machine.Row{
		ID: "quiesced", From: "armed", Event: "quiesced", Guard: "else", Source: "F104, F130",
		Doc:  "Each bound stream was synchronised with success, or faulted with its boundary complete: nothing of the run is left on them.",
		Then: []machine.Target{{Do: "quiet = true"}},
	})

	guarded("reserve")
	rows = append(rows,
		machine.Row{ID: "reserve-arming", From: "armed", Event: "reserve", Guard: "arg.arming != arming", Refuse: ErrStaleIdentity, Source: "F138"},
		machine.Row{
			ID: "reserve-core", From: "armed", Event: "reserve", Guard: "arg.boundary == core_done && (core == recorded || core == complete)", Source: "F134, F135",
			Doc: "A boundary that is not recorded yet cannot be waited for.", Then: []machine.Target{{Do: "core_refs++"}},
		},
		machine.Row{
			ID: "reserve-cpu", From: "armed", Event: "reserve", Guard: "arg.boundary == cpu_done && (cpu == recorded || cpu == complete)", Source: "F134, F135",
			Then: []machine.Target{{Do: "cpu_refs++"}},
		},
	)
	out("reserve")
	rows = append(rows,
		machine.Row{ID: "drop-stale", From: "armed", Event: "drop", Guard: "arg.arming != arming", Refuse: ErrStaleIdentity, Source: "F138"},
		machine.Row{ID: "drop-core", From: "armed", Event: "drop", Guard: "arg.boundary == core_done", Source: "F135", Then: []machine.Target{{Do: "core_refs--"}}},
		machine.Row{ID: "drop-cpu", From: "armed", Event: "drop", Guard: "else", Source: "F135", Then: []machine.Target{{Do: "cpu_refs--"}}},
		machine.Row{ID: "drop-unarmed", From: "bare|idle|released", Event: "drop", Refuse: ErrStaleIdentity, Source: "F138, F140"},
	)

	guarded("retire")
	rows = append(rows,
		machine.Row{ID: "retire-held", From: "armed", Event: "retire", Guard: "!(" + free + ")", Refuse: ErrReferenceHeld, Source: "F139"},
		machine.Row{
			ID: "retire-proven", From: "armed", Event: "retire", Source: "F97, F129, F132",
			Guard: "quiet || (core == missing || core == complete) && (cpu == missing || cpu == complete)",
			Then:  []machine.Target{{To: "idle", Do: forgetRun}},
		},
		machine.Row{ID: "retire-unproven", From: "armed", Event: "retire", Guard: "else", Refuse: ErrUnproven, Source: "F98, F100, F132"},

		machine.Row{ID: "release-armed", From: "armed", Event: "release", Refuse: ErrNotRetired, Source: "F139"},
		machine.Row{
			ID: "release-held", From: "idle", Event: "release", Guard: "!(" + free + ")", Refuse: ErrReferenceHeld, Source: "F139",
			Doc: "The last place where an event could be destroyed under a wait, so it is guarded rather than trusted. Handles and counts stay.",
		},
		machine.Row{
			ID: "release", From: "idle", Event: "release", Guard: "else", Source: "F121, F139",
			Then: []machine.Target{{To: "released", Do: "handles = false"}},
		},
		machine.Row{ID: "release-bare", From: "bare", Event: "release", Then: []machine.Target{{To: "released"}}},
		machine.Row{ID: "release-again", From: "released", Event: "release", Refuse: ErrFenceReleased},

		machine.Row{
			ID: "abandon", From: "idle|armed", Event: "abandon", Source: "F136, F140",
			Doc:  "A verified reset invalidates events, generation and counts together.",
			Then: []machine.Target{{To: "bare", Do: forgetRun + "; handles = false; core_refs = 0; cpu_refs = 0"}},
		},
		machine.Row{ID: "abandon-bare", From: "bare", Event: "abandon", Then: []machine.Target{{}}},
		machine.Row{ID: "abandon-released", From: "released", Event: "abandon", Refuse: ErrFenceReleased},
	)

	ids := func(name, doc string, more ...machine.Fact) machine.Event {
		return machine.Event{Name: name, Doc: doc, Args: withArgs(identityArgs, more...)}
	}
	const steps = "enum missing|submitting|submitted|recording|recorded|complete"
	return &machine.Definition{
		Name:   "fence",
		Pool:   "slot",
		Doc:    "The two boundaries of one run on one slot. Handles belong to the slot, facts to the run.",
		Source: "F, The boundary; Ownership; Submitted work with no boundary; The cross-run join (F96–F100, F121–F142)",
		States: []machine.State{
			{Name: "bare", Doc: "The slot has no events yet, or a verified reset took them."},
			{Name: "idle", Doc: "The slot has its events and stands for no run."},
			{Name: "armed", Doc: "The fence stands for one run."},
			{Name: "released", Terminal: true, Doc: "The events are destroyed."},
		},
		Facts: append(withArgs(identityFacts),
			machine.Fact{Name: "arming", Type: "id arming", Doc: "Names this arming; a token of another one is stale."},
			machine.Fact{Name: "core", Type: steps, Doc: "How far the AICore boundary is. missing: its kernel is not on the device."},
			machine.Fact{Name: "cpu", Type: steps, Doc: "How far the AICPU boundary is."},
			machine.Fact{Name: "quiet", Type: "bool", Doc: "The bound streams were synchronised, and nothing of the run is left on them."},
			machine.Fact{Name: "handles", Type: "bool", Doc: "The slot's events exist."},
			machine.Fact{Name: "core_refs", Type: "int 64", Doc: "Reserved or committed waits on the AICore boundary."},
			machine.Fact{Name: "cpu_refs", Type: "int 64", Doc: "Reserved or committed waits on the AICPU boundary."},
		),
		Identity: identityNames,
		Events: []machine.Event{
			ids("arm", "Stand for a run."),
			ids("made", "The slot's events exist."),
			ids("disarm", "The launch submitted nothing after all."),
			ids("submitting", "A kernel is about to be submitted.", boundary),
			ids("submitted", "The kernel is, or may be, on the device.", boundary),
			ids("unsubmitted", "The kernel was not submitted.", boundary),
			ids("recording", "The boundary is about to be recorded.", boundary),
			ids("recorded", "The boundary is recorded.", boundary),
			ids("unrecorded", "The boundary is not, or may not be, recorded.", boundary),
			ids("reached", "The recorded boundary has completed.", boundary),
			ids("quiesced", "The bound streams are proven to hold nothing of the run."),
			ids("reserve", "Count a wait before it is queued.", boundary, machine.Fact{Name: "arming", Type: "id arming"}),
			{Name: "drop", Doc: "A counted wait is over.", Args: []machine.Fact{boundary, {Name: "arming", Type: "id arming"}}},
			ids("retire", "The run is over; let the slot go."),
			{Name: "release", Doc: "The events are about to be destroyed."},
			{Name: "abandon", Doc: "A reset of the device was verified."},
		},
		Rows: rows,
	}
}

const forgetRun = "run_epoch = none; generation = none; dispatch = none; arming = none; core = missing; cpu = missing; quiet = false"
