package states

import "github.com/runfence/runfence/machine"

// resources is what one run owns, and what its handle knows: the four groups
// are charged to it while its graph is built, and released at its fence.
//
// Retirement and a late release exclude one another because both are one step
// of one world: a release that comes before it is counted here and drained, one
// that comes after it sees the state and frees by itself (R9).
func resources() *machine.Definition {
	// Until it retires, a domain's release is put off to the fence.
	const before = "building|running|flushing|sweeping|releasing"
	const fencing = "flushing|sweeping|releasing|retiring"
	outcome := func(to string) []machine.Target {
		return []machine.Target{
			{When: "culprit != none", To: to, Error: ErrTaskFailed, Code: "code"},
			{When: "failed", To: to, Error: ErrBuildFailed},
			{To: to},
		}
	}
	return &machine.Definition{
		Name:   "resources",
		Pool:   "work",
		Doc:    "One run as its submitter sees it: its tasks, its outcome, and all that was made for it.",
		Source: "R, Ownership; Domains end at their run's fence; A release that arrives after its run retired (R1–R11, R19, R20)",
		States: []machine.State{
			{Name: "free", Doc: "No run."},
			{Name: "building", Doc: "What is made is charged to it."},
			{Name: "running", Doc: "Accepted: its tasks are under way, or over."},
			{Name: "flushing", Doc: "At its fence: the releases that were put off are being made."},
			{Name: "sweeping", Doc: "Its domains, as they were when the sweep began, are being released."},
			{Name: "releasing", Doc: "The other three groups are being released."},
			{Name: "retiring", Doc: "Retired, with stragglers: releases that came between the flush and the retirement."},
			{Name: "retired", Doc: "Over. Nothing is left behind which a release could be put off."},
			{Name: "gone", Terminal: true, Doc: "Its handle keeps the outcome."},
		},
		Facts: []machine.Fact{
			{Name: "objects", Type: "ref resource", Doc: "The last of the objects charged to it, which names the one before."},
			{Name: "domains", Type: "ref domain", Doc: "The last of its domains, likewise."},
			{Name: "queued", Type: "int 4096", Doc: "Releases of its domains that are put off."},
			{Name: "tasks", Type: "int 4096", Doc: "Tasks that it was given."},
			{Name: "pending", Type: "int 4096", Doc: "Tasks that are not over."},
			{Name: "failed", Type: "bool"},
			{Name: "culprit", Type: "ref task", Doc: "The task whose error came first."},
			{Name: "code", Type: "code", Doc: "Of that error."},
			{Name: "pulled", Type: "ref task", Doc: "The task that was waited for last."},
			{Name: "at", Type: "ref domain", Doc: "How far a walk over the domains has come."},
			{Name: "domain", Type: "ref domain", Doc: "Where it is."},
			{Name: "next", Type: "ref resource", Doc: "How far the walk over the objects has come."},
			{Name: "object", Type: "ref resource", Doc: "Where it is."},
		},
		Views: []machine.View{
			{Name: "pull", Expr: "first(task, state == \"pending\" && pulled && owner == self)", Doc: "A task that somebody has to wait for."},
			{Name: "at_queued", Expr: `at.state == "queued"`},
			{Name: "before", Expr: "at.prev"},
			{Name: "object_before", Expr: "next.prev"},
			{Name: "straggler", Expr: `first(domain, state == "queued" && owner == self)`},
			{Name: "drained", Expr: `ending.state == "draining"`, Doc: "A close goes over the runs. It may be one that was left half-way."},
		},
		Events: []machine.Event{
			{Name: "open", Doc: "A graph is begun."},
			{Name: "task_added"},
			{Name: "domain_added", Args: []machine.Fact{{Name: "domain", Type: "ref domain"}}},
			{Name: "built", Args: []machine.Fact{{Name: "failed", Type: "bool"}, {Name: "objects", Type: "ref resource"}}},
			{Name: "task_over", Args: []machine.Fact{{Name: "task", Type: "ref task"}, {Name: "failed", Type: "bool"}, {Name: "code", Type: "code"}}},
			{Name: "put_off", Doc: "A domain's release is put off to the fence."},
			{Name: "taken_up", Doc: "A release that was put off is made."},
			{Name: "await", Doc: "Wait until no task is pending."},
			{Name: "expired", Doc: "A bounded wait for a task expired."},
			{Name: "fence", Doc: "Every task is over: release what the run owns, and retire it."},
			{Name: "flush"},
			{Name: "sweep"},
			{Name: "release"},
			{Name: "straggle"},
			{Name: "forget", Doc: "The handle keeps the outcome."},
		},
		Rows: []machine.Row{
			{ID: "open", From: "free", Event: "open", Source: "R1", Then: []machine.Target{{To: "building"}}},
			{ID: "task-added", From: "building", Event: "task_added", Source: "R20", Then: []machine.Target{{Do: "tasks++; pending++"}}},
			{ID: "domain-added", From: "building|running", Event: "domain_added", Source: "R1, R5", Then: []machine.Target{{Do: "domains = arg.domain"}}},
			{ID: "unbuilt", From: "building", Event: "built", Guard: "arg.failed", Source: "R20", Then: []machine.Target{{To: "running", Do: "failed = true; objects = arg.objects"}}},
			{ID: "built", From: "building", Event: "built", Guard: "else", Source: "R4", Then: []machine.Target{{To: "running", Do: "objects = arg.objects"}}},
			{
				ID: "task-failed", From: "building|running", Event: "task_over", Guard: "arg.failed && !failed", Source: "R20", Doc: "The first error wins.",
				Then: []machine.Target{{Do: "pending--; failed = true; culprit = arg.task; code = arg.code"}},
			},
			{ID: "task-over", From: "building|running", Event: "task_over", Guard: "else", Source: "R20", Then: []machine.Target{{Do: "pending--"}}},

			{ID: "put-off", From: before, Event: "put_off", Source: "R7, R9", Then: []machine.Target{{Do: "queued++"}}},
			{ID: "taken-up", From: before + "|retiring", Event: "taken_up", Source: "R9", Then: []machine.Target{{Do: "queued--"}}},

			{ID: "await-building", From: "building", Event: "await", Refuse: ErrBuilding},
			{ID: "await-none", From: "free", Event: "await", Refuse: ErrNoRun},
			{ID: "await-over", From: "running", Event: "await", Guard: "pending == 0", Then: []machine.Target{{}}},
			{
				ID: "await-task", From: "running", Event: "await", Guard: "view.pull != none", Source: "R19",
				Then: []machine.Target{{Do: "pulled = view.pull", Emit: []string{"pulled.await()"}}},
			},
			{ID: "await", From: "running", Event: "await", Guard: "else", Defer: true},
			{ID: "await-fencing", From: fencing + "|retired", Event: "await", Then: []machine.Target{{}}},
			{ID: "expired", From: "running", Event: "expired", Source: "R16", Doc: "It proves nothing, and the run is as it was.", Then: []machine.Target{{Error: ErrRunWait}}},
			{ID: "expired-over", From: fencing + "|retired", Event: "expired", Doc: "Somebody else has waited with success.", Then: []machine.Target{{}}},

			{ID: "fence-building", From: "building", Event: "fence", Refuse: ErrBuilding},
			{ID: "fence-none", From: "free", Event: "fence", Refuse: ErrNoRun},
			{ID: "fence-pending", From: "running", Event: "fence", Guard: "pending != 0", Refuse: ErrTasksPending, Source: "R2"},
			{
				ID: "fence-bare", From: "running", Event: "fence", Guard: "objects == none && domains == none", Source: "R2",
				Doc: "It owns nothing.", Then: outcome("retired"),
			},
			{
				ID: "fence", From: "running", Event: "fence", Guard: "else", Source: "R2, R7",
				Then: []machine.Target{{To: "flushing", Do: "at = domains", Emit: []string{"self.flush()"}}},
			},
			{ID: "fence-busy", From: fencing, Event: "fence", Defer: true},
			{ID: "fence-again", From: "retired", Event: "fence", Source: "R20", Doc: "All who wait are told one outcome.", Then: outcome("")},

			{
				ID: "flush-queued", From: "flushing", Event: "flush", Guard: "view.at_queued", Source: "R7, R11",
				Then: []machine.Target{{Do: "domain = at; at = view.before", Emit: []string{"domain.free()", "self.flush()"}}},
			},
			{ID: "flush-skip", From: "flushing", Event: "flush", Guard: "at != none", Then: []machine.Target{{Do: "at = view.before", Emit: []string{"self.flush()"}}}},
			{
				ID: "flushed", From: "flushing", Event: "flush", Guard: "else", Source: "R10", Doc: "The sweep begins with the domains as they are now.",
				Then: []machine.Target{{To: "sweeping", Do: "at = domains", Emit: []string{"self.sweep()"}}},
			},
			{
				ID: "sweep", From: "sweeping", Event: "sweep", Guard: "at != none", Source: "R10, R11, R18, R23",
				Doc:  "Whatever became of it since: a domain that is gone is passed over, one that is being released is waited for, a failure is left as residue.",
				Then: []machine.Target{{Do: "domain = at; at = view.before", Emit: []string{"domain.free()", "self.sweep()"}}},
			},
			{ID: "swept", From: "sweeping", Event: "sweep", Guard: "else", Then: []machine.Target{{To: "releasing", Do: "next = objects", Emit: []string{"self.release()"}}}},
			{
				ID: "release", From: "releasing", Event: "release", Guard: "next != none", Source: "R2",
				Then: []machine.Target{{Do: "object = next; next = view.object_before", Emit: []string{"object.release()", "self.release()"}}},
			},
			{
				ID: "retire-stragglers", From: "releasing", Event: "release", Guard: "view.straggler != none", Source: "R9",
				Doc:  "With this step no release can be put off any more, so those that are put off are claimed by it.",
				Then: []machine.Target{{To: "retiring", Emit: []string{"self.straggle()"}}},
			},
			{ID: "retire", From: "releasing", Event: "release", Guard: "else", Source: "R9", Then: outcome("retired")},
			{
				ID: "straggle", From: "retiring", Event: "straggle", Guard: "view.straggler != none", Source: "R9, R18",
				Then: []machine.Target{{Do: "domain = view.straggler", Emit: []string{"domain.free()", "self.straggle()"}}},
			},
			{ID: "straggled", From: "retiring", Event: "straggle", Guard: "else", Source: "R9", Then: outcome("retired")},
			{ID: "forget-drained", From: "retired", Event: "forget", Guard: "view.drained", Refuse: ErrOwned, Source: "R16"},
			{ID: "forget", From: "retired", Event: "forget", Guard: "else", Then: []machine.Target{{To: "gone"}}},
		},
	}
}

// owned says of an object, a domain or a task that its run has not retired.
// Until then its place is not made free: the run's walks go from one to the
// next, and its outcome names a task.
const owned = `(owner.state == "building" || owner.state == "running" || owner.state == "flushing" || owner.state == "sweeping" || owner.state == "releasing" || owner.state == "retiring")`

// resource is one object of three of the groups. What a run owns is a list
// through these, so a sweep that has begun is not changed by what comes after.
func resource() *machine.Definition {
	return &machine.Definition{
		Name:   "resource",
		Pool:   "resource",
		Doc:    "A remote slot reference, an L3–L2 region or a host-buffer registration. An object that is worked on by a run is in one place of the pool, so it is charged once.",
		Source: "R, Ownership (R1–R3, R26)",
		States: []machine.State{
			{Name: "unused", Doc: "No object."},
			{Name: "charged", Doc: "A run owns it."},
			{Name: "released", Doc: "Given back."},
			{Name: "stuck", Doc: "It could not be given back. No row leads out: close tells of it."},
			{Name: "gone", Terminal: true, Doc: "The place is free for another."},
		},
		Facts: []machine.Fact{
			{Name: "owner", Type: "ref resources", Doc: "The run that it is charged to."},
			{Name: "prev", Type: "ref resource", Doc: "The object charged to that run before it."},
			{Name: "group", Type: "enum slot_reference|region|host_buffer"},
			{Name: "key", Type: "id object"},
			{Name: "code", Type: "code", Doc: "Why it could not be given back."},
		},
		Identity: []string{"key"},
		Views: []machine.View{
			{Name: "building", Expr: "orchestrator.building"},
			{Name: "head", Expr: "orchestrator.objects"},
			{Name: "owned", Expr: owned, Doc: "Its run still goes over what it owns, one after the other."},
		},
		Events: []machine.Event{
			{Name: "charge", Args: []machine.Fact{{Name: "group", Type: "enum slot_reference|region|host_buffer"}, {Name: "key", Type: "id object"}}},
			{Name: "release"},
			{Name: "forget"},
		},
		Rows: []machine.Row{
			{ID: "charge-zero", From: "unused", Event: "charge", Guard: "arg.key == none", Refuse: ErrZeroIdentity},
			{ID: "charge-outside", From: "unused", Event: "charge", Guard: "view.building == none", Refuse: ErrNotBuilding, Source: "R3"},
			{
				ID: "charge", From: "unused", Event: "charge", Guard: "else", Source: "R1",
				Then: []machine.Target{{
					To: "charged", Do: "owner = view.building; prev = view.head; group = arg.group; key = arg.key",
					With: []string{"orchestrator.charge(self)"},
				}},
			},
			{ID: "charge-releasing", From: "charged▸release", Event: "charge", Refuse: ErrDuplicate, Source: "R2", Doc: "It is the run's until it has been given back. Nobody waits for that."},
			{ID: "charge-twice", From: "charged|released|stuck|gone", Event: "charge", Refuse: ErrDuplicate, Source: "R2"},
			{
				ID: "release", From: "charged", Event: "release", Command: "ReleaseResource(group, key)", Source: "R2",
				Then: []machine.Target{{On: "ok", To: "released"}, {To: "stuck", Do: "code = res.code", Error: ErrResourceRelease, Code: "res.code"}},
			},
			{ID: "release-again", From: "released", Event: "release", Source: "R10", Then: []machine.Target{{}}},
			{ID: "release-gone", From: "gone", Event: "release", Refuse: ErrGone, Source: "R17"},
			{ID: "release-stuck", From: "stuck", Event: "release", Source: "R14", Then: []machine.Target{{Error: ErrResourceRelease, Code: "code"}}},
			{ID: "forget-owned", From: "released", Event: "forget", Guard: "view.owned", Refuse: ErrOwned, Source: "R2"},
			{ID: "forget", From: "released", Event: "forget", Guard: "else", Then: []machine.Target{{To: "gone"}}},
		},
	}
}

// task is one piece of a run's work that ends, well or not, on its own.
func task() *machine.Definition {
	over := func(on, failed, code string) machine.Target {
		return machine.Target{On: on, To: "over", With: []string{"owner.task_over(self, " + failed + ", " + code + ")"}, Emit: []string{"owner.await()"}}
	}
	return &machine.Definition{
		Name:   "task",
		Pool:   "task",
		Doc:    "A task of a run, or a run of a chip worker below it.",
		Source: "R, Failure propagation (R20)",
		States: []machine.State{
			{Name: "unused", Doc: "No task."},
			{Name: "pending", Doc: "Under way."},
			{Name: "over", Doc: "It ended."},
			{Name: "gone", Terminal: true, Doc: "The place is free for another."},
		},
		Facts: []machine.Fact{
			{Name: "owner", Type: "ref resources", Doc: "The run that it is of: its failure reaches that one."},
			{Name: "pulled", Type: "bool", Doc: "It does not report by itself: who waits for the run waits for it."},
			{Name: "endpoint", Type: "ref endpoint", Doc: "Where it is carried out, if its run has to be told when that fails."},
			{Name: "lost", Type: "bool", Doc: "It was ended by its endpoint's failure."},
		},
		Views: []machine.View{
			{Name: "building", Expr: "orchestrator.building"},
			{Name: "owned", Expr: owned, Doc: "Its run may still fail by it."},
		},
		Events: []machine.Event{
			{Name: "add", Args: []machine.Fact{{Name: "pulled", Type: "bool"}}},
			{Name: "add_on", Doc: "Add one that is carried out at an endpoint.", Args: []machine.Fact{{Name: "endpoint", Type: "ref endpoint"}}},
			{Name: "lost", Doc: "Its endpoint failed.", Args: []machine.Fact{{Name: "code", Type: "code"}}},
			{Name: "done", Doc: "It reports its end.", Args: []machine.Fact{{Name: "failed", Type: "bool"}, {Name: "code", Type: "code"}}},
			{Name: "await"},
			{Name: "forget"},
		},
		Rows: []machine.Row{
			{ID: "add-outside", From: "unused", Event: "add", Guard: "view.building == none", Refuse: ErrNotBuilding, Source: "R3"},
			{ID: "add", From: "unused", Event: "add", Guard: "else", Source: "R20", Then: []machine.Target{{To: "pending", Do: "owner = view.building; pulled = arg.pulled", With: []string{"owner.task_added()"}}}},
			{ID: "add-on-outside", From: "unused", Event: "add_on", Guard: "view.building == none", Refuse: ErrNotBuilding, Source: "R3"},
			{
				ID: "add-on", From: "unused", Event: "add_on", Guard: "else", Source: "R20",
				Then: []machine.Target{{To: "pending", Do: "owner = view.building; endpoint = arg.endpoint", With: []string{"endpoint.assign()", "owner.task_added()"}}},
			},
			{ID: "lost", From: "pending", Event: "lost", Source: "R20", Then: []machine.Target{{To: "over", Do: "lost = true", With: []string{"owner.task_over(self, true, arg.code)"}}}},
			{ID: "done", From: "pending", Event: "done", Source: "R20", Then: []machine.Target{{To: "over", With: []string{"owner.task_over(self, arg.failed, arg.code)"}}}},
			{ID: "done-again", From: "over|gone", Event: "done", Refuse: ErrTaskOver},
			{
				ID: "await", From: "pending", Event: "await", Command: "WaitTask()", Source: "R19, R20",
				Doc: "What expired, or could not be proven over, is not over; a wait that panicked proves nothing.",
				Then: []machine.Target{
					over("ok", "false", "0"), over("failed", "true", "res.code"),
					{Emit: []string{"owner.expired()"}, Error: ErrRunWait},
				},
			},
			{ID: "await-over", From: "over", Event: "await", Then: []machine.Target{{Emit: []string{"owner.await()"}}}},
			{ID: "forget-owned", From: "over", Event: "forget", Guard: "view.owned", Refuse: ErrOwned, Source: "R20"},
			{ID: "forget", From: "over", Event: "forget", Guard: "else", Then: []machine.Target{{To: "gone"}}},
		},
	}
}
