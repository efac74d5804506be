package states

import "github.com/runfence/runfence/machine"

// MaxCallables is the number of slots that automatic and explicit ids share;
// the slot number is the id (F84). It counts slots, not memory.
const MaxCallables = 64

// callable is one slot of the callable registry. Its occupancy generation, not
// its bare id, tells a stale user from a live one (F87, F146).
func callable() *machine.Definition {
	return &machine.Definition{
		Name:   "callable",
		Pool:   "callable",
		Doc:    "One of the slots that callables are registered in; the slot number is the callable's id.",
		Source: "F, Callable registration and execution mode identity; Borrowed TMR eager invocation ownership (F84–F88, F146)",
		States: []machine.State{
			{Name: "free", Doc: "No callable has this id."},
			{Name: "claimed", Doc: "The id is taken; the image is not on the device yet."},
			{Name: "registered", Doc: "The callable may be invoked."},
			{Name: "leaving", Doc: "Being unregistered: no new invocation may name it."},
		},
		Facts: []machine.Fact{
			{Name: "image", Type: "id image", Doc: "Equal images have equal values."},
			{Name: "occupancy", Type: "id occupancy", Doc: "New for each registration of the slot."},
			{Name: "uploaded", Type: "bool", Doc: "This slot's registration put the image on the device, or shares one that did."},
		},
		Identity: []string{"occupancy", "image"},
		Events: []machine.Event{
			{Name: "claim", Args: []machine.Fact{{Name: "image", Type: "id image"}}},
			{Name: "uploaded"},
			{Name: "unclaim", Doc: "The registration failed."},
			{Name: "leave"},
			{Name: "stay", Doc: "The unregistration failed."},
			{Name: "vacate"},
		},
		Rows: []machine.Row{
			{ID: "claim", From: "free", Event: "claim", Source: "F84, F146", Then: []machine.Target{{To: "claimed", Do: "image = arg.image; occupancy = fresh()"}}},
			{ID: "claim-taken", From: "claimed|registered|leaving", Event: "claim", Refuse: ErrInvalidArgument, Source: "F81"},
			{ID: "uploaded", From: "claimed", Event: "uploaded", Then: []machine.Target{{To: "registered", Do: "uploaded = true"}}},
			{ID: "unclaim", From: "claimed", Event: "unclaim", Source: "F86", Then: []machine.Target{{To: "free", Do: "image = none; occupancy = none"}}},
			{ID: "leave", From: "registered", Event: "leave", Source: "F87", Then: []machine.Target{{To: "leaving"}}},
			{ID: "leave-missing", From: "free|claimed|leaving", Event: "leave", Refuse: ErrInvalidArgument},
			{ID: "stay", From: "leaving", Event: "stay", Source: "F86", Then: []machine.Target{{To: "registered"}}},
			{ID: "vacate", From: "leaving", Event: "vacate", Source: "F87", Then: []machine.Target{{To: "free", Do: "image = none; occupancy = none; uploaded = false"}}},
		},
	}
}
