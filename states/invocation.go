package states

import "github.com/runfence/runfence/machine"

// invocation is one call of a callable on a slot: its packet is checked whole
// before any storage is made of it, and the view that orchestration borrows is
// dropped before the storage is cleared (F147, F148).
func invocation() *machine.Definition {
	return &machine.Definition{
		Name:   "invocation",
		Pool:   "slot",
		Doc:    "From a packet to argument storage that orchestration borrows, and back to nothing.",
		Source: "F, Borrowed TMR eager invocation ownership (F145–F149, F153)",
		States: []machine.State{
			{Name: "none", Doc: "The slot has no invocation."},
			{Name: "checked", Doc: "Framing, counts, generation, binding and geometry agree; nothing is stored yet."},
			{Name: "stored", Doc: "The executor owns the argument storage."},
			{Name: "lent", Doc: "Orchestration borrows a view of it."},
		},
		Facts: []machine.Fact{
			{Name: "occupancy", Type: "id occupancy", Doc: "The callable generation that the packet was checked against."},
			{Name: "dispatch", Type: "id dispatch"},
		},
		Identity: []string{"dispatch", "occupancy"},
		Events: []machine.Event{
			{Name: "check", Args: []machine.Fact{
				{Name: "transport", Type: "bool", Doc: "The transport permits kernel packets."},
				{Name: "valid", Type: "bool", Doc: "Every check of the packet holds."},
				{Name: "occupancy", Type: "id occupancy"},
				{Name: "dispatch", Type: "id dispatch"},
			}},
			{Name: "store"},
			{Name: "lend"},
			{Name: "give_back", Doc: "The view is dropped."},
			{Name: "clear"},
		},
		Rows: []machine.Row{
			{ID: "no-transport", From: "none", Event: "check", Guard: "!arg.transport", Refuse: ErrTransport, Source: "F153"},
			{ID: "invalid", From: "none", Event: "check", Guard: "!arg.valid || arg.occupancy == none || arg.dispatch == none", Refuse: ErrPacket, Source: "F147, F149", Doc: "There is no falling back to values that were not validated."},
			{ID: "check", From: "none", Event: "check", Guard: "else", Source: "F147", Then: []machine.Target{{To: "checked", Do: "occupancy = arg.occupancy; dispatch = arg.dispatch"}}},
			{ID: "check-busy", From: "checked|stored|lent", Event: "check", Refuse: ErrSlotOccupied},

			{ID: "store", From: "checked", Event: "store", Source: "F147", Then: []machine.Target{{To: "stored"}}},
			{ID: "store-unchecked", From: "none", Event: "store", Refuse: ErrPacket, Source: "F147, F149"},
			{ID: "lend", From: "stored", Event: "lend", Source: "F148", Then: []machine.Target{{To: "lent"}}},
			{ID: "lend-unstored", From: "none|checked", Event: "lend", Refuse: ErrPacket, Source: "F149"},
			{ID: "give-back", From: "lent", Event: "give_back", Source: "F148", Then: []machine.Target{{To: "stored"}}},
			{ID: "clear-lent", From: "lent", Event: "clear", Refuse: ErrLent, Source: "F148"},
			{ID: "clear", From: "checked|stored", Event: "clear", Source: "F148", Then: []machine.Target{{To: "none", Do: "occupancy = none; dispatch = none"}}},
			{ID: "clear-none", From: "none", Event: "clear", Then: []machine.Target{{}}},
		},
	}
}
