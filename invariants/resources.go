package invariants

import (
	"fmt"

	"github.com/runfence/runfence/machine"
)

// What holds of an orchestrator's worlds, which are not the lane's.
var ofResources = []Invariant{
	{
		ID: "one-building", Of: OfOrchestrator, Sentence: "The pointer names the run that is being built, and there is no other.",
		Source: "R1, R4", Needs: NeedsWorld,
		Catches: `orchestrator/built: do drop "building = none"`,
		world: func(n *names) worldPredicate {
			runs, o := n.kind("resources"), n.kind("orchestrator")
			building, pointer := runs.in("building"), o.fact("building")
			return func(w *machine.World) error {
				p := pointer.of(o.at(w, 0))
				for slot := range runs.count(w) {
					if r := runs.at(w, slot); building.has(r) != (p == runs.pack(w, slot)) {
						return runs.fail(w, slot, "is %s, and the pointer is at %d", runs.show(r), p)
					}
				}
				return nil
			}
		},
	},
	{
		ID: "one-run-at-a-time", Of: OfOrchestrator, Sentence: "A run's graph is built only when every run before it has come to its fence.",
		Source: "R4, R19", Needs: NeedsWorld,
		Catches: `building/start-prior: row drop`,
		world: func(n *names) worldPredicate {
			runs := n.kind("resources")
			over := runs.in("free", "retired", "gone")
			return func(w *machine.World) error {
				have := 0
				for slot := range runs.count(w) {
					if !over.has(runs.at(w, slot)) {
						if have++; have > 1 {
							return runs.fail(w, slot, "is %s, and another run is under way", runs.show(runs.at(w, slot)))
						}
					}
				}
				return nil
			}
		},
	},
	{
		ID: "charged-to-the-building", Of: OfOrchestrator, Sentence: "What is made is charged to the run that is being built, and nothing can be made outside.",
		Source: "R1, R3, R5", Needs: NeedsStep,
		Catches: `resource/charge-outside: row drop`,
		step: func(n *names) stepPredicate {
			o := n.kind("orchestrator")
			pointer := o.fact("building")
			made := []struct {
				kind
				unused stateSet
				owner  fact
			}{{kind: n.kind("resource")}, {kind: n.kind("domain")}, {kind: n.kind("task")}}
			for i := range made {
				made[i].unused, made[i].owner = made[i].in("unused"), made[i].fact("owner")
				n.moved(made[i].kind)
			}
			return func(s step) error {
				for i := range made {
					m := &made[i]
					if m.id != s.rec.Ref.Machine || !m.unused.has(m.at(s.before, s.slot())) {
						continue
					}
					b := m.at(s.after, s.slot())
					if p := pointer.of(o.at(s.before, 0)); !m.unused.has(b) && (p == 0 || m.owner.of(b) != p) {
						return m.fail(s.after, s.slot(), "is made, and not charged to the run being built")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "owner-is-kept", Of: OfOrchestrator, Sentence: "What a run owns is its own to the end, whatever is being built later.",
		Source: "R2, R5", Needs: NeedsStep,
		Catches: `domain/free-live: do add "owner = none"`,
		step: func(n *names) stepPredicate {
			owned := []struct {
				kind
				held  stateSet
				owner fact
			}{{kind: n.kind("resource")}, {kind: n.kind("domain")}, {kind: n.kind("task")}}
			for i, list := range [][]string{{"charged"}, {"allocating", "live", "queued", "freeing"}, {"pending"}} {
				owned[i].held, owned[i].owner = owned[i].in(list...), owned[i].fact("owner")
				n.moved(owned[i].kind)
			}
			return func(s step) error {
				for i := range owned {
					o := &owned[i]
					if o.id != s.rec.Ref.Machine {
						continue
					}
					a, b := o.at(s.before, s.slot()), o.at(s.after, s.slot())
					if o.held.has(a) && o.held.has(b) && o.owner.of(a) != o.owner.of(b) {
						return o.fail(s.after, s.slot(), "changed its owner")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "fence-frees-its-own", Of: OfOrchestrator, Sentence: "A run's fence releases what that run owns, and nothing else.",
		Source: "R2, R5", Needs: NeedsStep,
		Held: "Twice: only one run at a time is under way (one-run-at-a-time), and the lists of what a run owns begin anew both when its graph is begun and when it is built.",
		step: func(n *names) stepPredicate {
			runs, resource, domain := n.kind("resources"), n.kind("resource"), n.kind("domain")
			owners := [2]fact{resource.fact("owner"), domain.fact("owner")}
			n.rooted(runs)
			return func(s step) error {
				if s.rec.Kind != machine.Issued {
					return nil
				}
				for i, k := range [2]kind{resource, domain} {
					if s.rec.Ref.Machine == k.id && owners[i].of(k.at(s.after, s.slot())) != s.rec.Root.Pack() {
						return k.fail(s.after, s.slot(), "is released at the fence of a run that does not own it")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "nothing-stranded", Of: OfOrchestrator, Sentence: "No release is put off to a run that has retired, and a run counts those that are put off to it.",
		Source: "R6–R9", Needs: NeedsWorld,
		Catches: `resources/retire-stragglers: guard set "queued == 4096"`,
		world: func(n *names) worldPredicate {
			runs, domain := n.kind("resources"), n.kind("domain")
			over, counts := runs.in("retired", "gone", "free"), runs.fact("queued")
			queued, owner := domain.in("queued"), domain.fact("owner")
			return func(w *machine.World) error {
				for slot := range runs.count(w) {
					r, self, have := runs.at(w, slot), runs.pack(w, slot), uint64(0)
					for i := range domain.count(w) {
						if d := domain.at(w, i); queued.has(d) && owner.of(d) == self {
							have++
						}
					}
					if have != counts.of(r) || have > 0 && over.has(r) {
						return runs.fail(w, slot, "is %s and counts %d releases put off, there are %d", runs.show(r), counts.of(r), have)
					}
				}
				return nil
			}
		},
	},
	{
		ID: "one-release-under-way", Of: OfOrchestrator, Sentence: "The lock is held exactly while one domain is being freed.",
		Source: "R11, R12, R22", Needs: NeedsWorld,
		Catches: `domain/free-live: then.with drop "free_lock.take()"`,
		world: func(n *names) worldPredicate {
			domain, lock := n.kind("domain"), n.kind("free_lock")
			freeing, held := domain.in("freeing"), lock.in("held")
			return func(w *machine.World) error {
				have, want := 0, 0
				for i := range domain.count(w) {
					if freeing.has(domain.at(w, i)) {
						have++
					}
				}
				if held.has(lock.at(w, 0)) {
					want = 1
				}
				if have != want {
					return lock.fail(w, 0, "is %s, and %d domains are being freed", lock.show(lock.at(w, 0)), have)
				}
				return nil
			}
		},
	},
	{
		ID: "one-release", Of: OfOrchestrator, Sentence: "The backend's release of an allocation is called once, whoever comes first; a failure is told again, and not tried again.",
		Source: "R11, R14, R17, R23", Needs: NeedsStep,
		Catches: `domain/execute: then[1].to live`,
		step: func(n *names) stepPredicate {
			domain := n.kind("domain")
			freeing, may := domain.in("freeing"), domain.in("live", "queued")
			over, end := domain.in("freed", "failed"), domain.in("freed", "failed", "gone")
			n.moved(domain)
			return func(s step) error {
				a, b := domain.at(s.before, s.slot()), domain.at(s.after, s.slot())
				if freeing.has(a) && !freeing.has(b) && !over.has(b) || over.has(a) && !end.has(b) || !freeing.has(a) && freeing.has(b) && !may.has(a) {
					return domain.fail(s.after, s.slot(), "was %s and is %s: it may be released again", domain.show(a), domain.show(b))
				}
				return nil
			}
		},
	},
	{
		ID: "freed-is-executed", Of: OfOrchestrator, Sentence: "A domain is freed only when the backend's release was executed.",
		Source: "R13, R14, R24", Needs: NeedsStep,
		Catches: `domain/execute: then[1].to freed`,
		step: func(n *names) stepPredicate {
			domain := n.kind("domain")
			freed, release := domain.in("freed"), n.calling("ReleaseDomain")
			n.moved(domain)
			return func(s step) error {
				if freed.has(domain.at(s.before, s.slot())) || !freed.has(domain.at(s.after, s.slot())) {
					return nil
				}
				if !s.answerOf(release) || s.rec.Result.Outcome != machine.OK {
					return domain.fail(s.after, s.slot(), "is called freed, and its release was not executed")
				}
				return nil
			}
		},
	},
	{
		ID: "lives-until-the-fence", Of: OfOrchestrator, Sentence: "Before its run retires, a release that its user asks for is put off: tasks that captured a domain still see live memory. After that it frees at once.",
		Source: "R7–R9", Needs: NeedsStep,
		Catches: `domain/release: guard set "view.deferring && view.building != none"`,
		step: func(n *names) stepPredicate {
			domain, runs := n.kind("domain"), n.kind("resources")
			live, queued, owner := domain.in("live"), domain.in("queued"), domain.fact("owner")
			before := runs.in("building", "running", "flushing", "sweeping", "releasing")
			release := n.look(taken, n.eventRows(domain, "release"))
			return func(s step) error {
				a := domain.at(s.before, s.slot())
				if s.rec.Kind != machine.Stepped || !release.has(s.rec) || !live.has(a) {
					return nil
				}
				off := false
				if o := owner.of(a); o != 0 {
					ref := machine.UnpackRef(o)
					off = s.before.Ref(ref.Machine, int(ref.Slot)) == ref && before.has(runs.at(s.before, int(ref.Slot)))
				}
				if b := domain.at(s.after, s.slot()); off != queued.has(b) {
					return domain.fail(s.after, s.slot(), "is %s by its user's release", domain.show(b))
				}
				return nil
			}
		},
	},
	{
		ID: "retired-owns-nothing", Of: OfOrchestrator, Sentence: "A run that has retired owns nothing but what could not be released.",
		Source: "R2, R14", Needs: NeedsWorld,
		Catches: `resources/fence-bare: guard drop "objects == none"`,
		world: func(n *names) worldPredicate {
			runs, resource := n.kind("resources"), n.kind("resource")
			retired, charged, owner := runs.in("retired"), resource.in("charged"), resource.fact("owner")
			return func(w *machine.World) error {
				for slot := range runs.count(w) {
					if !retired.has(runs.at(w, slot)) {
						continue
					}
					self := runs.pack(w, slot)
					for i := range resource.count(w) {
						if x := resource.at(w, i); charged.has(x) && owner.of(x) == self {
							return resource.fail(w, i, "is owned by a run that has retired")
						}
					}
				}
				return nil
			}
		},
	},
	{
		ID: "tasks-are-counted", Of: OfOrchestrator, Sentence: "A run counts the tasks of its own that are not over, and retires only with none.",
		Source: "R2, R19, R20", Needs: NeedsWorld,
		Catches: `resources/task-over: do drop "pending--"`,
		world: func(n *names) worldPredicate {
			runs, task := n.kind("resources"), n.kind("task")
			pending, counts, owner, gone := task.in("pending"), runs.fact("pending"), task.fact("owner"), runs.in("free")
			over := runs.in("flushing", "sweeping", "releasing", "retiring", "retired", "gone")
			return func(w *machine.World) error {
				for slot := range runs.count(w) {
					r, self, have := runs.at(w, slot), runs.pack(w, slot), uint64(0)
					if gone.has(r) {
						continue
					}
					for i := range task.count(w) {
						if t := task.at(w, i); pending.has(t) && owner.of(t) == self {
							have++
						}
					}
					if have != counts.of(r) || have > 0 && over.has(r) {
						return runs.fail(w, slot, "is %s and counts %d tasks, there are %d", runs.show(r), counts.of(r), have)
					}
				}
				return nil
			}
		},
	},
	{
		ID: "first-error-wins", Of: OfOrchestrator, Sentence: "A run that failed keeps the failure that came first, and whose it was.",
		Source: "R20", Needs: NeedsStep,
		Catches: `resources/task-failed: guard drop "!failed"`,
		step: func(n *names) stepPredicate {
			runs := n.kind("resources")
			failed := runs.is("failed", "true")
			parts := [...]fact{runs.fact("failed"), runs.fact("culprit"), runs.fact("code")}
			n.moved(runs)
			return func(s step) error {
				a, b := runs.at(s.before, s.slot()), runs.at(s.after, s.slot())
				for _, p := range parts {
					if failed.holds(a) && p.of(a) != p.of(b) {
						return runs.fail(s.after, s.slot(), "failed for another reason first")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "endpoint-told", Of: OfOrchestrator, Sentence: "No task is under way at an endpoint that failed, once those that were have been told.",
		Source: "R20", Needs: NeedsWorld,
		Catches: `endpoint/tell: guard set "view.under_way != none && code == 0"`,
		world: func(n *names) worldPredicate {
			endpoint, task := n.kind("endpoint"), n.kind("task")
			failed, pending, at := endpoint.in("failed", "gone", "unused"), task.in("pending"), task.fact("endpoint")
			return func(w *machine.World) error {
				for slot := range endpoint.count(w) {
					e, self := endpoint.at(w, slot), endpoint.pack(w, slot)
					if !failed.has(e) {
						continue
					}
					for i := range task.count(w) {
						if x := task.at(w, i); pending.has(x) && at.of(x) == self {
							return endpoint.fail(w, slot, "is %s with a task under way", endpoint.show(e))
						}
					}
				}
				return nil
			}
		},
	},
	{
		ID: "teardown-last", Of: OfOrchestrator, Sentence: "The workers are being closed, or are, only when no run is under way and nothing that can be released is left.",
		Source: "R15, R16, R25", Needs: NeedsWorld,
		Catches: `ending/sweep-domain: guard set "view.domain != none && attempted"`,
		world: func(n *names) worldPredicate {
			ending, runs, domain, resource := n.kind("ending"), n.kind("resources"), n.kind("domain"), n.kind("resource")
			closing := ending.in("tearing", "owed", "closed")
			left := []struct {
				kind
				in stateSet
			}{
				{runs, runs.in("building", "running", "flushing", "sweeping", "releasing", "retiring")},
				{domain, domain.in("allocating", "live", "queued", "freeing")},
				{resource, resource.in("charged")},
			}
			return func(w *machine.World) error {
				if !closing.has(ending.at(w, 0)) {
					return nil
				}
				for i := range left {
					for slot := range left[i].count(w) {
						if x := left[i].at(w, slot); left[i].in.has(x) {
							return left[i].fail(w, slot, "is %s, and the close is %s", left[i].show(x), ending.show(ending.at(w, 0)))
						}
					}
				}
				return nil
			}
		},
	},
	{
		ID: "residue-is-told", Of: OfOrchestrator, Sentence: "A close that leaves something which could not be released never ends clean: it says so, each time.",
		Source: "R14, R16", Needs: NeedsStep,
		Catches: `ending/teardown: then[0].when drop "view.stuck"`,
		step: func(n *names) stepPredicate {
			ending, domain, resource := n.kind("ending"), n.kind("domain"), n.kind("resource")
			closed, failed, stuck := ending.in("closed"), domain.in("failed"), resource.in("stuck")
			n.moved(ending)
			return func(s step) error {
				if !closed.has(ending.at(s.after, 0)) || s.after.Rules().ReasonAt(s.rec.Reason) != "" {
					return nil
				}
				for slot := range domain.count(s.after) {
					if failed.has(domain.at(s.after, slot)) {
						return domain.fail(s.after, slot, "could not be released, and the close is clean")
					}
				}
				for slot := range resource.count(s.after) {
					if stuck.has(resource.at(s.after, slot)) {
						return resource.fail(s.after, slot, "could not be released, and the close is clean")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "closed-takes-no-run", Of: OfOrchestrator, Sentence: "Once a close is claimed no run is taken.",
		Source: "R25", Needs: NeedsStep,
		Held: "Twice: a submission asks whether the orchestrator is open (building/start-closed), and the pointer moves in that state only (orchestrator/build).",
		step: func(n *names) stepPredicate {
			runs, o := n.kind("resources"), n.kind("orchestrator")
			building, open := runs.in("building"), o.in("open")
			n.moved(runs)
			return func(s step) error {
				if !building.has(runs.at(s.before, s.slot())) && building.has(runs.at(s.after, s.slot())) && !open.has(o.at(s.before, 0)) {
					return runs.fail(s.after, s.slot(), "is built, and the orchestrator is %s", o.show(o.at(s.before, 0)))
				}
				return nil
			}
		},
	},
}

// CheckResources tells every invariant of worlds that does not hold in an
// orchestrator's world, and how many predicates it looked at.
func CheckResources(w *machine.World) (findings []*Finding, checks int) {
	c := For(w.Rules())
	return c.World(w), len(c.worlds)
}

// ReleaseCounter counts, in a stream of records, the backend's releases of each
// allocation. It is not safe for concurrent use.
type ReleaseCounter struct {
	Rules *machine.Rules
	seen  map[uint64]bool
}

// Record takes the next record. It is an error if an allocation reaches the
// backend's release a second time (R11).
func (c *ReleaseCounter) Record(r *machine.Record) error {
	if r.Kind != machine.Issued || c.Rules.CallName(r.Call) != "ReleaseDomain" {
		return nil
	}
	if c.seen == nil {
		c.seen = map[uint64]bool{}
	}
	if a := r.CallArgs[0]; c.seen[a] {
		return fmt.Errorf("record %d: allocation %d is released again (R11)", r.Seq, a)
	}
	c.seen[r.CallArgs[0]] = true
	return nil
}
