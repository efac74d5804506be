package states

import "github.com/runfence/runfence/machine"

// run is one run on its slot, from admission to the end. The operations
// prepare, launch, poll, drain and finalize move it; it moves none of them.
func run() *machine.Definition {
	stale := func(from, event string) machine.Row {
		return machine.Row{ID: event + "-stale", From: from, Event: event, Guard: notMine, Refuse: ErrStaleIdentity, Source: "F122"}
	}
	const forget = "run_epoch = none; generation = none; dispatch = none; permit = none; bound = false; eager = false; async = false"
	ids := func(name, doc string, more ...machine.Fact) machine.Event {
		return machine.Event{Name: name, Doc: doc, Args: withArgs(identityArgs, more...)}
	}
	code := machine.Fact{Name: "rc", Type: "code"}
	return &machine.Definition{
		Name:   "run",
		Pool:   "slot",
		Doc:    "One run of two kernels on one slot. A handle of an earlier run of the slot reads and changes nothing.",
		Source: "F, Stream binding; Borrowed caller ordering; Completion is not the verdict (F12, F71–F80, F100, F104, F122, F132)",
		States: []machine.State{
			{Name: "idle", Doc: "The slot hosts no run."},
			{Name: "preparing", Doc: "Admitted; its resources are being made."},
			{Name: "prepared", Doc: "Everything is made, nothing is submitted. A permit to launch is out."},
			{Name: "ambiguous", Terminal: true, Kept: true, Doc: "Preparation failed and left no evidence of its release: borrows are kept, admission is poisoned."},
			{Name: "launching", Doc: "Streams are bound and the active owner exists, before the backend is called."},
			{Name: "not started", Doc: "The launch is proven to have submitted nothing."},
			{Name: "launched", Doc: "Both kernels and both boundaries are accepted."},
			{Name: "partial", Doc: "Something is or may be submitted, and cannot be completed. Everything is kept."},
			{Name: "drained", Doc: "Proven over: nothing of the run is on the device. The verdict is known."},
			{Name: "retired", Doc: "The slot's fence let the run go; its resources are being released."},
			{Name: "finalized", Terminal: true, Doc: "Nothing of the run is left."},
		},
		Facts: append(withArgs(identityFacts),
			machine.Fact{Name: "permit", Type: "id permit", Doc: "Licence for one launch, used up by it."},
			machine.Fact{Name: "eager", Type: "bool", Doc: "A caller's stream orders the run; kept through a declined join."},
			machine.Fact{Name: "async", Type: "bool", Doc: "Its descriptor is published asynchronously."},
			machine.Fact{Name: "bound", Type: "bool", Doc: "The slot's streams are the run's until it retires."},
			machine.Fact{Name: "rc", Type: "code", Doc: "The launch's own return code, kept whatever cleanup says."},
			machine.Fact{Name: "verdict", Type: "enum undecided|succeeded|faulted|diagnosed|broken|swept", Doc: "diagnosed: the run's own record reports a failure. broken: a partial launch that the device has no fault to report of. swept: ended by a verified reset."},
			machine.Fact{Name: "reset", Type: "bool", Doc: "A verified reset ended it."},
			machine.Fact{Name: "fault", Type: "code", Doc: "What the pair synchronise reported."},
		),
		Identity: identityNames,
		Events: []machine.Event{
			ids("begin", "Admit and start preparing.", machine.Fact{Name: "eager", Type: "bool"}, machine.Fact{Name: "async", Type: "bool"}),
			{Name: "prepared", Doc: "Its resources are made."},
			{Name: "unprepared", Doc: "Preparation touched nothing."},
			{Name: "confused", Doc: "Preparation left no evidence."},
			ids("launching", "Bind the streams and install the active owner."),
			{Name: "unstarted", Doc: "Nothing was submitted.", Args: []machine.Fact{code}},
			{Name: "unjoined", Doc: "The join was declined before anything was submitted: the permit stands again.", Args: []machine.Fact{{Name: "permit", Type: "id permit"}}},
			{Name: "accepted", Doc: "Everything was submitted."},
			{Name: "broken", Doc: "The launch is partial.", Args: []machine.Fact{code}},
			ids("drained", "Proven over.", machine.Fact{Name: "how", Type: "enum well|fault_seen|self_diagnosed"}, machine.Fact{Name: "fault", Type: "code", Doc: "Of the device, if it was seen."}),
			ids("swept", "A verified reset took everything of the run off the device."),
			ids("retire", "The fence is let go, or was never needed."),
			ids("finalized", "Its resources are released."),
		},
		Rows: []machine.Row{
			{ID: "begin-zero", From: "idle", Event: "begin", Guard: "!(" + whole + ")", Refuse: ErrZeroIdentity},
			{
				ID: "begin", From: "idle", Event: "begin", Guard: "else", Source: "F154",
				Then: []machine.Target{{
					To:   "preparing",
					Do:   "run_epoch = arg.run_epoch; generation = arg.generation; dispatch = arg.dispatch; eager = arg.eager; async = arg.async",
					With: []string{"lane.admit()"},
				}},
			},
			{ID: "prepared", From: "preparing", Event: "prepared", Then: []machine.Target{{To: "prepared", Do: "permit = fresh()"}}},
			{
				ID: "unprepared", From: "preparing", Event: "unprepared", Source: "F68",
				Then: []machine.Target{{To: "idle", Do: forget, With: []string{"lane.leave()"}}},
			},
			{
				ID: "confused", From: "preparing", Event: "confused", Source: "F69",
				Then: []machine.Target{{To: "ambiguous", With: []string{"lane.poison()"}}},
			},

			stale("prepared", "launching"),
			{
				ID: "launching", From: "prepared", Event: "launching", Guard: "else", Source: "F12, F75",
				Then: []machine.Target{{To: "launching", Do: "bound = true; permit = none"}},
			},
			{
				ID: "unstarted", From: "launching", Event: "unstarted", Source: "F73, F76",
				Then: []machine.Target{{To: "not started", Do: "rc = arg.rc; bound = false"}},
			},
			{
				ID: "unjoined", From: "launching", Event: "unjoined", Source: "F43, F46",
				Then: []machine.Target{{To: "prepared", Do: "permit = arg.permit; bound = false"}},
			},
			{ID: "accepted", From: "launching", Event: "accepted", Then: []machine.Target{{To: "launched"}}},
			{
				ID: "broken", From: "launching", Event: "broken", Source: "F73, F76, F78",
				Then: []machine.Target{{To: "partial", Do: "rc = arg.rc", With: []string{"lane.partial()"}}},
			},

			stale("launched|partial", "drained"),
			{ID: "drained", From: "launched", Event: "drained", Guard: "arg.how == well", Source: "F104, F105", Then: []machine.Target{{To: "drained", Do: "verdict = succeeded"}}},
			{
				ID: "faulted", From: "launched", Event: "drained", Guard: "arg.how == fault_seen", Source: "F14, F15, F104, F151",
				Doc:  "A stream keeps its error: no run follows on it before a recovery, or it would be charged with this one's fault.",
				Then: []machine.Target{{To: "drained", Do: "verdict = faulted; fault = arg.fault", With: []string{"lane.fault()"}}},
			},
			{
				ID: "diagnosed", From: "launched", Event: "drained", Guard: "else", Source: "F114, F117",
				Doc:  "The run failed for reasons of its own, and can leave a healthy device.",
				Then: []machine.Target{{To: "drained", Do: "verdict = diagnosed"}},
			},
			{
				ID: "proven-faulted", From: "partial", Event: "drained", Guard: "arg.how == fault_seen", Source: "F14, F15, F104, F130",
				Then: []machine.Target{{To: "drained", Do: "verdict = faulted; fault = arg.fault", With: []string{"lane.proven()", "lane.fault()"}}},
			},
			{
				ID: "proven", From: "partial", Event: "drained", Guard: "else", Source: "F73, F130",
				Doc:  "A partial launch has no success to report, whatever the streams say.",
				Then: []machine.Target{{To: "drained", Do: "verdict = broken", With: []string{"lane.proven()"}}},
			},

			// The slot's fence and edges go in the same step: nothing of the run may
			// look as if it stood.
			stale("launched|partial|drained", "swept"),
			{
				ID: "swept-drained", From: "drained", Event: "swept", Guard: "else", Source: "F136, F140",
				Doc:  "Its verdict stands; the reset took its fence.",
				Then: []machine.Target{{Do: "reset = true", With: letGo}},
			},
			{
				ID: "swept", From: "launched", Event: "swept", Guard: "else", Source: "F14, F132",
				Then: []machine.Target{{To: "drained", Do: "verdict = swept; reset = true", With: letGo}},
			},
			{
				ID: "swept-partial", From: "partial", Event: "swept", Guard: "else", Source: "F14, F132",
				Then: []machine.Target{{To: "drained", Do: "verdict = swept; reset = true", With: append([]string{"lane.proven()"}, letGo...)}},
			},

			stale("prepared|not started|drained", "retire"),
			{
				ID: "retire-reset", From: "drained", Event: "retire", Guard: "reset", Source: "F136, F140",
				Doc:  "The reset let the fence and everything on it go.",
				Then: []machine.Target{{To: "retired", Do: "bound = false", With: []string{"region.retire()", "outcome.reset()"}}},
			},
			{
				ID: "retire", From: "drained", Event: "retire", Guard: "else", Source: "F132, F139",
				Then: []machine.Target{{To: "retired", Do: "bound = false", With: []string{"caller_order.end()", "join.end()", "fence.retire(" + own + ")", "region.retire()", "outcome.reset()"}}},
			},
			{
				ID: "give-up", From: "prepared|not started", Event: "retire", Guard: "else", Source: "F71, F159",
				Then: []machine.Target{{To: "retired", Do: "permit = none", With: []string{"region.discard()", "join.cancel()"}}},
			},

			stale("retired", "finalized"),
			{
				ID: "finalized", From: "retired", Event: "finalized", Guard: "else", Source: "F65",
				Then: []machine.Target{{To: "finalized", With: []string{"lane.leave()", "launch.reset()"}}},
			},
		},
	}
}

// letGo is what a verified reset takes from a slot.
var letGo = []string{"caller_order.abandon()", "join.abandon()", "fence.abandon()", "region.forget()"}
