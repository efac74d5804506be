package states

import "github.com/runfence/runfence/machine"

// outcome joins what a run's own record says and what the device says into one
// result. It is pure: it calls nothing and looks at nothing but its arguments
// (F167). Only one shape succeeds without asking the device (F105); a record
// can diagnose a failure on any shape, and certify success on one (F117).
func outcome() *machine.Definition {
	return &machine.Definition{
		Name:   "outcome",
		Pool:   "slot",
		Doc:    "The pure decision: which evidence decides a run, and whether the pair synchronise is still needed.",
		Source: "F, Completion is not the verdict; What this leaves open (F104–F106, F117, F118, F166, F167)",
		States: []machine.State{
			{Name: "undecided", Doc: "No evidence yet."},
			{Name: "certified", Doc: "The run's own record certifies success: the streams need not be synchronised."},
			{Name: "diagnosed", Doc: "The record diagnoses a failure. The streams are still synchronised, but cannot turn it into success."},
			{Name: "asking", Doc: "The record decides nothing; the pair synchronise will."},
			{Name: "succeeded", Doc: "The device, asked, is content."},
			{Name: "failed", Doc: "The run failed."},
		},
		Facts: []machine.Fact{
			{Name: "faulted", Type: "bool", Doc: "The pair synchronise failed. The outcome says so, not the code."},
			{Name: "fault", Type: "code", Doc: "What it reported."},
			{Name: "record", Type: recordType, Doc: "What the record said, if it could be trusted."},
			{Name: "disagreed", Type: "bool", Doc: "Record and device disagree: logged, never overriding."},
		},
		Events: []machine.Event{
			{Name: "decide", Args: []machine.Fact{
				{Name: "complete", Type: "bool", Doc: "Both boundaries completed."},
				{Name: "transferred", Type: "bool", Doc: "Reading the record back reported nothing."},
				{Name: "trusted", Type: "bool", Doc: "The result region is initialised."},
				{Name: "own", Type: "bool", Doc: "The record bears this run's epoch."},
				{Name: "record", Type: recordType},
			}},
			{Name: "synchronised", Args: []machine.Fact{{Name: "faulted", Type: "bool"}, {Name: "fault", Type: "code"}}},
			{Name: "reset"},
		},
		Rows: []machine.Row{
			{
				ID: "certify", From: "undecided", Event: "decide", Source: "F105",
				Guard: "arg.complete && arg.transferred && arg.trusted && arg.own && arg.record == all_ok",
				Then:  []machine.Target{{To: "certified", Do: "record = arg.record"}},
			},
			{
				ID: "diagnose", From: "undecided", Event: "decide", Source: "F117",
				Guard: "arg.transferred && arg.trusted && arg.own && (arg.record == header_failed || arg.record == participant_failed)",
				Then:  []machine.Target{{To: "diagnosed", Do: "record = arg.record"}},
			},
			{
				ID: "withhold", From: "undecided", Event: "decide", Guard: "arg.transferred && arg.trusted && arg.own", Source: "F106, F117, F166",
				Doc:  "Not every participant claimed the audited path, an unmarked fallback, or boundaries that are not complete: the success is withheld, not the question.",
				Then: []machine.Target{{To: "asking", Do: "record = arg.record"}},
			},
			{
				ID: "no-record", From: "undecided", Event: "decide", Guard: "else", Source: "F7, F106, F117",
				Doc:  "No record, one of another epoch, or an untrusted region certifies nothing.",
				Then: []machine.Target{{To: "asking", Do: "record = absent"}},
			},
			{ID: "decide-twice", From: "certified|diagnosed|asking|succeeded|failed", Event: "decide", Refuse: ErrDecided},

			{ID: "synchronised-first", From: "undecided|certified|succeeded|failed", Event: "synchronised", Refuse: ErrDecided},
			{
				ID: "content", From: "asking", Event: "synchronised", Guard: "!arg.faulted", Source: "F104, F117",
				Then: []machine.Target{{To: "succeeded"}},
			},
			{
				ID: "denied", From: "asking", Event: "synchronised", Guard: "record == all_ok", Source: "F104, F118",
				Then: []machine.Target{{To: "failed", Do: "faulted = true; fault = arg.fault; disagreed = true"}},
			},
			{ID: "faulted", From: "asking", Event: "synchronised", Guard: "else", Source: "F104", Then: []machine.Target{{To: "failed", Do: "faulted = true; fault = arg.fault"}}},
			{
				ID: "diagnosis-unshared", From: "diagnosed", Event: "synchronised", Guard: "!arg.faulted", Source: "F117, F118",
				Doc:  "The device is content and the run's own record is not: the run failed.",
				Then: []machine.Target{{To: "failed", Do: "disagreed = true"}},
			},
			{ID: "diagnosis-shared", From: "diagnosed", Event: "synchronised", Guard: "else", Source: "F117", Then: []machine.Target{{To: "failed", Do: "faulted = true; fault = arg.fault"}}},

			{
				ID: "reset", From: "undecided|certified|diagnosed|asking|succeeded|failed", Event: "reset",
				Then: []machine.Target{{To: "undecided", Do: "faulted = false; fault = 0; record = absent; disagreed = false"}},
			},
		},
	}
}

const recordType = "enum absent|all_ok|header_failed|participant_failed|unclaimed|unmarked"
