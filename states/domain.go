package states

import "github.com/runfence/runfence/machine"

// domain is one communication domain: it ends at the fence of the run that
// allocated it, and its memory is given back once, whoever comes first (R11).
func domain() *machine.Definition {
	const alive = `(owner.state == "building" || owner.state == "running" || owner.state == "flushing" || owner.state == "sweeping" || owner.state == "releasing")`
	free := func(id, from, event, guard string, with ...string) machine.Row {
		return machine.Row{
			ID: id, From: from, Event: event, Guard: guard, Source: "R8, R11, R22, R23, R24",
			Doc:  "Claimed in one step with the lock. Whoever comes after waits, and is told what this one is told.",
			Then: []machine.Target{{To: "freeing", With: append([]string{"free_lock.take()"}, with...), Emit: []string{"self.execute()"}}},
		}
	}
	failure := machine.Target{Error: ErrDomainRelease, Code: "code"}
	return &machine.Definition{
		Name:   "domain",
		Pool:   "domain",
		Doc:    "A communication domain, from its allocation by a run to the backend's release of it.",
		Source: "R, Domains end at their run's fence; A release that arrives after its run retired; One allocation, one backend release (R3, R5–R18, R22–R24)",
		States: []machine.State{
			{Name: "unused", Doc: "No domain."},
			{Name: "allocating", Doc: "Being allocated for the run whose graph was being built."},
			{Name: "live", Doc: "Its memory may be used."},
			{Name: "queued", Doc: "Released by its user; its memory lives until the fence, for the tasks that captured it."},
			{Name: "freeing", Doc: "Claimed: its one release is about to be made, or under way. It is not freed yet."},
			{Name: "freed", Doc: "The backend's release was executed."},
			{Name: "failed", Doc: "The release failed. It is told to whoever asks and never tried again; close tells of what is left. No row leads out."},
			{Name: "gone", Terminal: true, Doc: "Freed, and its place is free for another."},
		},
		Facts: []machine.Fact{
			{Name: "owner", Type: "ref resources", Doc: "The run that allocated it, whatever is being built later."},
			{Name: "allocation", Type: "id allocation"},
			{Name: "ranks", Type: "int 1024"},
			{Name: "prev", Type: "ref domain", Doc: "The domain that the run got before it."},
			{Name: "code", Type: "code", Doc: "What a failed release answered."},
		},
		Identity: []string{"allocation"},
		Views: []machine.View{
			{Name: "new", Expr: `orchestrator.state == "new"`},
			{Name: "level", Expr: "orchestrator.level"},
			{Name: "building", Expr: "orchestrator.building"},
			{Name: "listed", Expr: `owner.state == "building" || owner.state == "running"`, Doc: "The sweep of its run is still to begin."},
			{Name: "deferring", Expr: alive, Doc: "Its run has not retired. A run that is gone reads as retired."},
			{Name: "before", Expr: "owner.domains"},
			{Name: "owned", Expr: owned, Doc: "Its run still goes over what it owns, one after the other."},
			{Name: "swept", Expr: `ending.state == "sweeping"`, Doc: "A close goes over what is left. It may be one that was left half-way."},
		},
		Events: []machine.Event{
			{Name: "allocate", Args: []machine.Fact{{Name: "ranks", Type: "int 1024"}}},
			{Name: "make"},
			{Name: "release", Doc: "Its user is done with it."},
			{Name: "free", Doc: "Release it now: the fence, a sweep or close."},
			{Name: "execute"},
			{Name: "forget"},
		},
		Rows: []machine.Row{
			{ID: "allocate-empty", From: "unused", Event: "allocate", Guard: "arg.ranks == 0", Refuse: ErrDomainRanks, Source: "R3"},
			{ID: "allocate-new", From: "unused", Event: "allocate", Guard: "view.new", Refuse: ErrNotInitialised, Source: "R3"},
			{ID: "allocate-level", From: "unused", Event: "allocate", Guard: "view.level < 3", Refuse: ErrLevel, Source: "R3"},
			{
				ID: "allocate-outside", From: "unused", Event: "allocate", Guard: "view.building == none", Refuse: ErrNotBuilding, Source: "R3, R6",
				Doc: "After the other validations, which depend on no run. Nobody would free it.",
			},
			{
				ID: "allocate", From: "unused", Event: "allocate", Guard: "else", Source: "R1, R5",
				Then: []machine.Target{{To: "allocating", Do: "owner = view.building; allocation = fresh(); ranks = arg.ranks", Emit: []string{"self.make()"}}},
			},
			{
				ID: "make", From: "allocating", Event: "make", Command: "AllocateDomain(allocation, ranks)", Source: "R1, R5, R14",
				Doc: "Of an allocation that panicked, or does not end, nobody knows what it left, so it is residue like one that says so.",
				Then: []machine.Target{
					{On: "ok", When: "view.listed", To: "live", Do: "prev = view.before", With: []string{"owner.domain_added(self)"}},
					{On: "ok", To: "live"},
					{On: "panicked timedout", To: "failed", Do: "code = res.code", Error: ErrDomainAllocate, Code: "res.code"},
					{When: "res.accepted", To: "failed", Do: "code = res.code", Error: ErrDomainAllocate, Code: "res.code"},
					{To: "unused", Do: "owner = none; allocation = none; ranks = 0", Error: ErrDomainAllocate, Code: "res.code"},
				},
			},

			{
				ID: "release", From: "live", Event: "release", Guard: "view.deferring", Source: "R5, R7, R9",
				Doc:  "In one step with the run's count: the run has not retired, and now cannot without taking this up.",
				Then: []machine.Target{{To: "queued", With: []string{"owner.put_off()"}}},
			},
			free("release-late", "live", "release", "else"),
			{ID: "release-queued", From: "queued", Event: "release", Source: "R17", Then: []machine.Target{{}}},
			{ID: "release-freeing", From: "allocating|freeing", Event: "release", Defer: true, Source: "R12"},
			{ID: "release-freed", From: "freed", Event: "release", Source: "R17, R23", Then: []machine.Target{{}}},
			{ID: "release-gone", From: "gone", Event: "release", Refuse: ErrGone, Source: "R17"},
			{ID: "release-failed", From: "failed", Event: "release", Source: "R14", Then: []machine.Target{failure}},

			free("free-live", "live", "free", ""),
			free("free-queued", "queued", "free", "", "owner.taken_up()"),
			{ID: "free-freeing", From: "allocating|freeing", Event: "free", Defer: true, Source: "R10, R12"},
			{ID: "free-freed", From: "freed", Event: "free", Source: "R10, R11", Then: []machine.Target{{}}},
			{ID: "free-failed", From: "failed", Event: "free", Source: "R14", Then: []machine.Target{failure}},
			{ID: "free-unused", From: "unused", Event: "free", Doc: "Its allocation, which a sweep waited for, failed.", Then: []machine.Target{{}}},

			{
				ID: "execute", From: "freeing", Event: "execute", Command: "ReleaseDomain(allocation)", Source: "R11, R13, R14, R22",
				Then: []machine.Target{
					{On: "ok", To: "freed", With: []string{"free_lock.give()"}},
					{To: "failed", Do: "code = res.code", With: []string{"free_lock.give()"}, Error: ErrDomainRelease, Code: "res.code"},
				},
			},
			{ID: "forget-owned", From: "freed", Event: "forget", Guard: "view.owned || view.swept", Refuse: ErrOwned, Source: "R2, R16"},
			{ID: "forget", From: "freed", Event: "forget", Guard: "else", Then: []machine.Target{{To: "gone"}}},
		},
	}
}

// freeLock makes the backend's releases of all allocations take turns: frees
// are rare, and close must find none under way (R22).
func freeLock() *machine.Definition {
	return &machine.Definition{
		Name:   "free_lock",
		Doc:    "One at a time releases a domain, whichever domain it is.",
		Source: "R, One allocation, one backend release (R12, R22)",
		States: []machine.State{
			{Name: "open", Doc: "No release is being made."},
			{Name: "held", Doc: "One is."},
		},
		Events: []machine.Event{{Name: "take"}, {Name: "give"}},
		Rows: []machine.Row{
			{ID: "take", From: "open", Event: "take", Source: "R22", Then: []machine.Target{{To: "held"}}},
			{ID: "take-held", From: "held", Event: "take", Defer: true, Source: "R12, R22"},
			{ID: "give", From: "held", Event: "give", Source: "R22", Then: []machine.Target{{To: "open"}}},
		},
	}
}
