package states

import "github.com/runfence/runfence/machine"

// health is what the device's exception notices say about future admission,
// and about nothing else: a notice decides no run, drains, frees and resets
// nothing (F108, F114).
func health() *machine.Definition {
	const most = "int 1000000000000"
	count := func(name, fact, doc, source string) machine.Row {
		return machine.Row{ID: name, From: "trusted|suspect", Event: name, Doc: doc, Source: source, Then: []machine.Target{{Do: fact + "++"}}}
	}
	return &machine.Definition{
		Name:   "health",
		Doc:    "Whether the device admits new runs, from notices that name a stream of one's own.",
		Source: "F, Completion is not the verdict (F107–F116, F154, F155)",
		States: []machine.State{
			{Name: "trusted", Doc: "No notice of this generation matched. That is no proof of health."},
			{Name: "suspect", Doc: "A notice of this generation named a stream of one's own: no new run is admitted."},
		},
		Facts: []machine.Fact{
			{Name: "device", Type: "int 65535", Doc: "In the logical id space."},
			{Name: "generation", Type: "id devgen", Doc: "Of the device; retired only by a confirmed reset."},
			{Name: "overflowed", Type: "bool", Doc: "A stream identity could not be kept: absence proves nothing in this generation."},
			{Name: "stream", Type: "int 4294967295", Doc: "Under consideration."},
			{Name: "room", Type: "ref watched", Doc: "Where the stream under consideration is kept."},
			{Name: "named", Type: "int 65535", Doc: "The device that the notice under consideration names."},
			{Name: "matched", Type: most},
			{Name: "unattributed", Type: most},
			{Name: "undecided", Type: most},
			{Name: "lost", Type: most},
			{Name: "dropped", Type: most},
			{Name: "skipped", Type: most, Doc: "In the ring at a confirmed reset."},
		},
		Identity: []string{"generation"},
		Views: []machine.View{
			{Name: "mine", Expr: "any(watched, generation != none && generation == health.generation && stream == health.stream)"},
			{Name: "room", Expr: "first(watched, generation != health.generation)"},
		},
		Events: []machine.Event{
			{Name: "begin", Args: []machine.Fact{{Name: "device", Type: "int 65535"}}},
			{Name: "watch", Doc: "A run's boundary was recorded on this stream.", Args: []machine.Fact{{Name: "stream", Type: "int 4294967295"}}},
			{Name: "remember"},
			{Name: "notice", Args: []machine.Fact{{Name: "device", Type: "int 65535"}, {Name: "stream", Type: "int 4294967295"}}},
			{Name: "attribute"},
			{Name: "lose", Doc: "A notice is known to be missing."},
			{Name: "drop", Doc: "The ring was full."},
			{Name: "skip", Doc: "A notice was in the ring at a confirmed reset."},
			{Name: "reset", Args: []machine.Fact{{Name: "confirmed", Type: "bool"}}},
		},
		Rows: []machine.Row{
			{ID: "begin", From: "trusted", Event: "begin", Guard: "generation == none", Then: []machine.Target{{Do: "generation = fresh(); device = arg.device"}}},
			{ID: "begin-again", From: "trusted", Event: "begin", Guard: "else", Refuse: ErrAlreadyInitialised},

			{ID: "watch-unbegun", From: "trusted", Event: "watch", Guard: "generation == none", Refuse: ErrNotInitialised},
			{ID: "watch", From: "trusted", Event: "watch", Guard: "else", Source: "F110", Then: []machine.Target{{Do: "stream = arg.stream", Emit: []string{"self.remember()"}}}},
			{ID: "watch-suspect", From: "suspect", Event: "watch", Source: "F110", Then: []machine.Target{{Do: "stream = arg.stream", Emit: []string{"self.remember()"}}}},
			{ID: "remember-known", From: "trusted|suspect", Event: "remember", Guard: "view.mine", Then: []machine.Target{{}}},
			{
				ID: "remember-overflow", From: "trusted|suspect", Event: "remember", Guard: "view.room == none", Source: "F116",
				Then: []machine.Target{{Do: "overflowed = true"}},
			},
			{ID: "remember", From: "trusted|suspect", Event: "remember", Guard: "else", Source: "F110", Then: []machine.Target{{Do: "room = view.room", With: []string{"room.watch(generation, stream)"}}}},

			{
				ID: "notice", From: "trusted|suspect", Event: "notice", Source: "F107, F110",
				Then: []machine.Target{{Do: "stream = arg.stream; named = arg.device", Emit: []string{"self.attribute()"}}},
			},
			{ID: "another-device", From: "trusted|suspect", Event: "attribute", Guard: "named != device", Source: "F109, F110", Then: []machine.Target{{Do: "unattributed++"}}},
			{
				ID: "match", From: "trusted|suspect", Event: "attribute", Guard: "view.mine", Source: "F108, F110, F111, F155",
				Doc:  "Membership, not provenance: a late or recycled identity refuses work that the device would have served, and that is accepted.",
				Then: []machine.Target{{To: "suspect", Do: "matched++"}},
			},
			{
				ID: "undecided", From: "trusted|suspect", Event: "attribute", Guard: "overflowed", Source: "F116",
				Doc:  "The identity may have been one that could not be kept: undecided, rather than not one's own.",
				Then: []machine.Target{{Do: "undecided++"}},
			},
			{ID: "unattributed", From: "trusted|suspect", Event: "attribute", Guard: "else", Source: "F109", Then: []machine.Target{{Do: "unattributed++"}}},
			count("lose", "lost", "", "F109"),
			count("drop", "dropped", "", "F109"),
			count("skip", "skipped", "A fault from before the reset that is delivered after it counts to the new generation: the notice bears no time.", "F115"),

			{
				ID: "retire", From: "trusted|suspect", Event: "reset", Guard: "arg.confirmed", Source: "F112, F113",
				Then: []machine.Target{{To: "trusted", Do: "generation = fresh(); overflowed = false"}},
			},
			{ID: "not-retired", From: "trusted|suspect", Event: "reset", Guard: "else", Source: "F112, F113", Then: []machine.Target{{}}},
		},
	}
}

// watched is one stream identity that a run's boundaries were recorded on.
func watched() *machine.Definition {
	return &machine.Definition{
		Name:   "watched",
		Pool:   "watched",
		Doc:    "A stream identity that notices are matched against. One of an earlier device generation is free.",
		Source: "F, Completion is not the verdict (F110, F116)",
		States: []machine.State{{Name: "kept"}},
		Facts: []machine.Fact{
			{Name: "generation", Type: "id devgen"},
			{Name: "stream", Type: "int 4294967295"},
		},
		Events: []machine.Event{{Name: "watch", Args: []machine.Fact{{Name: "generation", Type: "id devgen"}, {Name: "stream", Type: "int 4294967295"}}}},
		Rows: []machine.Row{
			{ID: "watch", From: "kept", Event: "watch", Then: []machine.Target{{Do: "generation = arg.generation; stream = arg.stream"}}},
		},
	}
}
