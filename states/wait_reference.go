package states

import "github.com/runfence/runfence/machine"

// token is one wait reference: a count on a boundary of a fence, held for as
// long as a queued wait may name the boundary's event (F135–F141).
//
// A count goes wrong when somebody gives back what somebody else holds. So a
// token bears the fence and the arming it was minted against, and every use of
// it checks both, under the lock that also moves the count.
func token() *machine.Definition {
	const boundaryType, waiterType = "enum core_done|cpu_done", "enum core_stream|cpu_stream|caller_stream"
	dropOne := []string{"fence.drop(boundary, arming)"}
	live := "reserved|queueing|committed"
	stands := "reserved|committed"
	var rows []machine.Row
	underWay := func(events ...string) {
		for _, e := range events {
			rows = append(rows, machine.Row{ID: e + "-busy", From: "queueing", Event: e, Defer: true})
		}
	}
	empty := func(events ...string) {
		for _, e := range events {
			rows = append(rows, machine.Row{ID: e + "-empty", From: "free|spent", Event: e, Refuse: ErrTokenEmpty, Source: "F137"})
		}
	}
	rows = append(rows,
		machine.Row{
			ID: "reserve", From: "free", Event: "reserve", Source: "F135",
			Doc: "Reserving before the wait is queued is what makes a failed queueing decidable.",
			Then: []machine.Target{{
				To:   "reserved",
				Do:   "fence = arg.fence; arming = arg.arming; boundary = arg.boundary; waiter = arg.waiter; holder = arg.holder",
				With: []string{"fence.reserve(" + identity + ", arg.boundary, arg.arming)"},
			}},
		},
		machine.Row{ID: "reserve-held", From: live, Event: "reserve", Refuse: ErrTokenHeld, Source: "F137"},
		machine.Row{ID: "reserve-spent", From: "spent", Event: "reserve", Refuse: ErrTokenEmpty, Source: "F137"},

		machine.Row{ID: "queue-stale", From: "reserved", Event: "queue", Guard: "!view.current", Refuse: ErrStaleIdentity, Source: "F138"},
		machine.Row{ID: "queue-detached", From: "reserved", Event: "queue", Guard: "view.detached", Refuse: ErrDetached, Source: "F66"},
		machine.Row{
			ID: "queue", From: "reserved", Event: "queue", Guard: "else", Command: "CurrentContext()", Source: "F59, F156, F157",
			Doc:  "Under another context the device would refuse the wait, and nobody could tell that from a wait that is queued all the same.",
			Then: contextTargets(machine.Target{To: "queueing", Emit: []string{"self.enqueue()"}}),
		},
		machine.Row{ID: "enqueue-stale", From: "queueing", Event: "enqueue", Guard: "!view.current", Source: "F138", Then: []machine.Target{{To: "reserved", Error: ErrStaleIdentity}}},
		machine.Row{
			ID: "enqueue", From: "queueing", Event: "enqueue", Guard: "else", Command: "QueueWait(holder, waiter, fence, boundary)", Source: "F34, F135",
			Then: []machine.Target{
				{On: "ok", To: "committed"},
				{On: "refused", When: "res.accepted", To: "committed", Error: ErrWaitMaybeQueued, Code: "res.code"},
				{On: "refused", When: "!view.current", To: "spent", Error: ErrNotCommitted, Code: "res.code"}, // a verified reset took the count meanwhile (F140)
				{On: "refused", To: "spent", With: dropOne, Error: ErrNotCommitted, Code: "res.code"},
				{To: "committed", Error: ErrWaitMaybeQueued, Code: "res.code"},
			},
		},
		machine.Row{ID: "queue-twice", From: "committed", Event: "queue", Refuse: ErrTokenHeld},

		machine.Row{ID: "commit-stale", From: "reserved", Event: "commit", Guard: "!view.current", Refuse: ErrStaleIdentity, Source: "F138"},
		machine.Row{ID: "commit", From: "reserved", Event: "commit", Guard: "else", Source: "F135", Then: []machine.Target{{To: "committed"}}},
		machine.Row{ID: "commit-twice", From: "committed", Event: "commit", Refuse: ErrTokenHeld},

		machine.Row{ID: "revoke-stale", From: "reserved", Event: "revoke", Guard: "!view.current", Refuse: ErrStaleIdentity, Source: "F138"},
		machine.Row{ID: "revoke", From: "reserved", Event: "revoke", Guard: "else", Source: "F135", Then: []machine.Target{{To: "spent", With: dropOne}}},
		machine.Row{ID: "revoke-late", From: "committed", Event: "revoke", Refuse: ErrTokenHeld, Source: "F135", Doc: "The wait is queued: only a proof releases it."},

		machine.Row{ID: "release-reserved", From: "reserved", Event: "release", Refuse: ErrNotCommitted, Source: "F135"},
		machine.Row{ID: "release-stale", From: "committed", Event: "release", Guard: "!view.current", Refuse: ErrStaleIdentity, Source: "F138"},
		machine.Row{ID: "release-other", From: "committed", Event: "release", Guard: "arg.proven != waiter", Refuse: ErrWrongWaiter, Source: "F135"},
		machine.Row{ID: "release", From: "committed", Event: "release", Guard: "else", Source: "F135", Then: []machine.Target{{To: "spent", With: dropOne}}},

		machine.Row{
			ID: "quiesce-reset", From: stands, Event: "quiesce", Guard: "!view.current", Source: "F136, F140",
			Doc:  "A verified reset took the count along with the arming.",
			Then: []machine.Target{{To: "spent"}},
		},
		machine.Row{
			ID: "quiesce-quarantine", From: stands, Event: "quiesce", Guard: "view.quarantined", Source: "F136",
			Doc:  "A declared quarantine keeps the events for the life of the process, so no count needs to.",
			Then: []machine.Target{{To: "spent", With: dropOne}},
		},
		machine.Row{ID: "quiesce-unproven", From: stands, Event: "quiesce", Guard: "else", Refuse: ErrNoQuiescence, Source: "F36, F136"},

		machine.Row{ID: "discard-foreign", From: stands, Event: "discard", Guard: "arg.fence != fence", Refuse: ErrForeignToken, Source: "F141"},
		machine.Row{ID: "discard-current", From: stands, Event: "discard", Guard: "view.current", Refuse: ErrTokenCurrent, Source: "F141"},
		machine.Row{ID: "discard", From: stands, Event: "discard", Guard: "else", Source: "F140, F141", Then: []machine.Target{{To: "spent"}}},
	)
	underWay("queue", "commit", "revoke", "release", "quiesce", "discard")
	empty("queue", "commit", "revoke", "release", "quiesce", "discard")
	return &machine.Definition{
		Name:   "token",
		Pool:   "token",
		Doc:    "One wait reference: reserved before a stream wait is queued, committed or revoked after, released once.",
		Source: "F, The cross-run join (F133–F142)",
		States: []machine.State{
			{Name: "free", Doc: "Holds nothing."},
			{Name: "reserved", Doc: "Counted; the wait is not queued yet."},
			{Name: "queueing", Doc: "Counted; the context is the right one, and the wait is being queued."},
			{Name: "committed", Doc: "Counted; the wait is, or may be, queued."},
			{Name: "spent", Terminal: true, Doc: "Emptied: released, revoked or discarded."},
		},
		Facts: []machine.Fact{
			{Name: "fence", Type: "ref fence", Doc: "Who minted it."},
			{Name: "arming", Type: "id arming", Doc: "The arming it was minted against."},
			{Name: "boundary", Type: boundaryType, Doc: "The boundary that the wait names."},
			{Name: "waiter", Type: waiterType, Doc: "The stream that holds the wait."},
			{Name: "holder", Type: "ref fence", Doc: "The slot whose stream that is."},
		},
		Views: []machine.View{
			{Name: "current", Expr: "arming != none && fence.arming == arming", Doc: "The fence still stands for the arming."},
			{Name: "quarantined", Expr: `lane.state == "quarantined"`},
			detached,
			{Name: "context", Expr: "environment.context"},
		},
		Events: []machine.Event{
			{Name: "reserve", Args: []machine.Fact{
				{Name: "fence", Type: "ref fence"},
				identityArgs[0], identityArgs[1], identityArgs[2],
				{Name: "arming", Type: "id arming"},
				{Name: "boundary", Type: boundaryType},
				{Name: "waiter", Type: waiterType},
				{Name: "holder", Type: "ref fence"},
			}},
			{Name: "queue", Doc: "Queue the stream wait."},
			{Name: "enqueue"},
			{Name: "commit", Doc: "The host queued the wait itself, with success."},
			{Name: "revoke", Doc: "The wait was not queued."},
			{Name: "release", Doc: "A completion proof covers a stream.", Args: []machine.Fact{{Name: "proven", Type: waiterType}}},
			{Name: "quiesce", Doc: "Drop it on the strength of a verified reset or a declared quarantine."},
			{Name: "discard", Doc: "Drop a token that its fence no longer counts.", Args: []machine.Fact{{Name: "fence", Type: "ref fence", Doc: "The fence that is asked."}}},
		},
		Rows: rows,
	}
}
