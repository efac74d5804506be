package states

import "github.com/runfence/runfence/machine"

// region is a slot's run-result region: the device memory that a run's own
// record comes back in. Until its marker was published with success nothing in
// it can be trusted, not even bytes that happen to equal an epoch (F7).
func region() *machine.Definition {
	every := "unallocated|untrusted|staged|initialised"
	return &machine.Definition{
		Name:   "region",
		Pool:   "slot",
		Doc:    "Whether the bytes that a run reports in can be trusted.",
		Source: "F, Initial publication of the run-result region (F1–F10, F172)",
		States: []machine.State{
			{Name: "unallocated", Doc: "The slot has no region yet; it is made when one is first needed."},
			{Name: "untrusted", Doc: "There is memory, with anything in it."},
			{Name: "staged", Doc: "A zero marker is in the slot's pinned publication source; nothing was copied to the device."},
			{Name: "initialised", Doc: "The marker was published; from now on epochs tell results apart, and reuse copies no marker."},
		},
		Facts: []machine.Fact{
			{Name: "source", Type: "bool", Doc: "The pinned source is live: through retirement or quarantine, failed enqueues included."},
		},
		Events: []machine.Event{
			{Name: "allocated"},
			{Name: "stage", Doc: "Preparation snapshots the marker."},
			{Name: "published", Doc: "The marker's copy was enqueued ahead of the run's kernels."},
			{Name: "unpublished", Doc: "The copy failed, or may have."},
			{Name: "discard", Doc: "Preparation is aborted, or the launch submitted nothing."},
			{Name: "retire", Doc: "The run let the slot go."},
			{Name: "forget", Doc: "A reset of the device was verified."},
		},
		Rows: []machine.Row{
			{ID: "allocated", From: "unallocated", Event: "allocated", Source: "F1", Then: []machine.Target{{To: "untrusted"}}},
			{ID: "stage", From: "untrusted|staged", Event: "stage", Source: "F2, F9", Doc: "A later attempt stages a fresh marker.", Then: []machine.Target{{To: "staged", Do: "source = true"}}},
			{ID: "stage-warm", From: "initialised", Event: "stage", Source: "F10", Then: []machine.Target{{Do: "source = true"}}},
			{ID: "published", From: "staged", Event: "published", Source: "F3, F4", Then: []machine.Target{{To: "initialised"}}},
			{ID: "unpublished", From: "staged", Event: "unpublished", Source: "F6, F7", Then: []machine.Target{{To: "untrusted"}}},
			{ID: "discard", From: "staged", Event: "discard", Source: "F9", Then: []machine.Target{{To: "untrusted", Do: "source = false"}}},
			{ID: "discard-none", From: "unallocated|untrusted|initialised", Event: "discard", Source: "F9", Then: []machine.Target{{Do: "source = false"}}},
			{ID: "retire", From: every, Event: "retire", Source: "F6", Then: []machine.Target{{Do: "source = false"}}},
			{
				ID: "forget-staged", From: "initialised", Event: "forget", Guard: "source", Source: "F2, F3, F7",
				Doc:  "A run that is prepared and not launched yet has its marker in the source: its launch publishes it anew.",
				Then: []machine.Target{{To: "staged"}},
			},
			{ID: "forget", From: "initialised", Event: "forget", Guard: "else", Source: "F7", Then: []machine.Target{{To: "untrusted"}}},
			{ID: "forget-none", From: "unallocated|untrusted|staged", Event: "forget", Source: "F7", Doc: "Nothing on the device is trusted.", Then: []machine.Target{{}}},
		},
	}
}
