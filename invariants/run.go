package invariants

import "github.com/runfence/runfence/machine"

// Admission, and what a run is while it has its slot.
var ofRun = []Invariant{
	{
		ID: "partial-closes-admission", Sentence: "The lane counts the launches that are partial and unproven, which closes admission.",
		Source: "F78", Needs: NeedsWorld,
		Catches: `run/broken: then.with drop "lane.partial()"`,
		world: func(n *names) worldPredicate {
			run, lane := n.kind("run"), n.kind("lane")
			partial, unproven := run.in("partial"), lane.fact("unproven")
			return func(w *machine.World) error {
				have := uint64(0)
				for slot := range run.count(w) {
					if partial.has(run.at(w, slot)) {
						have++
					}
				}
				if counts := unproven.of(lane.at(w, 0)); counts != have {
					return lane.fail(w, 0, "counts %d partial launches, there are %d", counts, have)
				}
				return nil
			}
		},
	},
	{
		ID: "closed-admits-nothing", Sentence: "No run is admitted or launched unless the environment is live and the lane open, with no launch unproven, nothing poisoned, no fault, no matched notice and no recovery under way.",
		Source: "F63, F78, F108, F150, F154", Needs: NeedsStep,
		Catches: `launch/arm-no-permit: guard drop "view.open"`,
		step: func(n *names) stepPredicate {
			run, lane, env := n.kind("run"), n.kind("lane"), n.kind("environment")
			health, recovery := n.kind("health"), n.kind("recovery")
			preparing, launching := run.in("preparing"), run.in("launching")
			open, live, trusted, ready := lane.in("open"), env.in("live"), health.in("trusted"), recovery.in("ready")
			unproven, poisoned, faulted := lane.fact("unproven"), lane.is("poisoned", "true"), lane.is("faulted", "true")
			n.moved(run)
			return func(s step) error {
				a, b := run.at(s.before, s.slot()), run.at(s.after, s.slot())
				if !(preparing.has(b) && !preparing.has(a)) && !(launching.has(b) && !launching.has(a)) {
					return nil
				}
				l := lane.at(s.before, 0)
				why := ""
				switch {
				case !live.has(env.at(s.before, 0)):
					why = "the environment is " + env.show(env.at(s.before, 0))
				case !open.has(l):
					why = "the lane is " + lane.show(l)
				case unproven.of(l) != 0:
					why = "a launch is partial and unproven"
				case poisoned.holds(l):
					why = "the lane is poisoned"
				case faulted.holds(l):
					why = "the device reported a fault"
				case !trusted.has(health.at(s.before, 0)):
					why = "a notice matched"
				case !ready.has(recovery.at(s.before, 0)):
					why = "the device is being recovered"
				default:
					return nil
				}
				return run.fail(s.after, s.slot(), "is let in although %s", why)
			}
		},
	},
	{
		ID: "runs-are-counted", Sentence: "The lane counts the runs that are admitted and not finalized.",
		Source: "F78, F154", Needs: NeedsWorld,
		Catches: `run/unprepared: then.with drop "lane.leave()"`,
		world: func(n *names) worldPredicate {
			run, lane := n.kind("run"), n.kind("lane")
			gone, runs := run.in("idle", "finalized"), lane.fact("runs")
			return func(w *machine.World) error {
				have := uint64(0)
				for slot := range run.count(w) {
					if !gone.has(run.at(w, slot)) {
						have++
					}
				}
				if counts := runs.of(lane.at(w, 0)); counts != have {
					return lane.fail(w, 0, "counts %d runs, there are %d", counts, have)
				}
				return nil
			}
		},
	},
	{
		ID: "unproven-is-kept", Sentence: "A run that left no evidence of its release keeps admission poisoned, whatever else is recovered.",
		Source: "F69, F132", Needs: NeedsWorld,
		Catches: `lane/recovered-ambiguous: guard set "view.ambiguous && unproven != 0"`,
		world: func(n *names) worldPredicate {
			run, lane := n.kind("run"), n.kind("lane")
			ambiguous, poisoned := run.in("ambiguous"), lane.is("poisoned", "true")
			return func(w *machine.World) error {
				for slot := range run.count(w) {
					if ambiguous.has(run.at(w, slot)) && !poisoned.holds(lane.at(w, 0)) {
						return run.fail(w, slot, "left no evidence, and the lane is not poisoned")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "ambiguous-stays", Sentence: "A run that left no evidence of its release is never let go.",
		Source: "F69, F132", Needs: NeedsStep,
		Held: "The state is terminal and kept: Compile refuses a row that leads out of it, and the engine a drop.",
		step: func(n *names) stepPredicate {
			run := n.kind("run")
			ambiguous := run.in("ambiguous")
			n.moved(run)
			return func(s step) error {
				if ambiguous.has(run.at(s.before, s.slot())) && !ambiguous.has(run.at(s.after, s.slot())) {
					return run.fail(s.after, s.slot(), "was ambiguous")
				}
				return nil
			}
		},
	},
	{
		ID: "streams-bound-at-launch", Sentence: "A run has its streams from its launch until it retires, and at no other time.",
		Source: "F12, F13, F75", Needs: NeedsWorld,
		Catches: `run/unstarted: do drop "bound = false"`,
		world: func(n *names) worldPredicate {
			run := n.kind("run")
			has, bound := run.in("launching", "launched", "partial", "drained"), run.is("bound", "true")
			return func(w *machine.World) error {
				for slot := range run.count(w) {
					if r := run.at(w, slot); has.has(r) != bound.holds(r) {
						return run.fail(w, slot, "is %s, bound: %t", run.show(r), bound.holds(r))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "launch-code-kept", Sentence: "The launch's own return code is not replaced by what cleanup, recovery or the drain say.",
		Source: "F73, F79", Needs: NeedsStep,
		Catches: `run/proven: do add "rc = 0"`,
		step: func(n *names) stepPredicate {
			run := n.kind("run")
			rc, over := run.fact("rc"), run.in("not started", "launched", "partial", "drained", "retired")
			n.moved(run)
			return func(s step) error {
				a, b := run.at(s.before, s.slot()), run.at(s.after, s.slot())
				if over.has(a) && rc.of(a) != rc.of(b) {
					return run.fail(s.after, s.slot(), "lost the code of its launch")
				}
				return nil
			}
		},
	},
	{
		ID: "finalized-leaves-nothing", Sentence: "When a run is finalized, its slot's launch, decision, edges and fence are free for another.",
		Source: "F65, F139", Needs: NeedsWorld,
		Catches: `run/finalized: then.with drop "launch.reset()"`,
		world: func(n *names) worldPredicate {
			run := n.kind("run")
			finalized := run.in("finalized")
			parts := []struct {
				kind
				free stateSet
			}{
				{kind: n.kind("launch")}, {kind: n.kind("outcome")}, {kind: n.kind("caller_order")}, {kind: n.kind("join")}, {kind: n.kind("fence")},
			}
			for i, free := range [][]string{{"idle"}, {"undecided"}, {"bare"}, {"apart"}, {"bare", "idle", "released"}} {
				parts[i].free = parts[i].in(free...)
			}
			return func(w *machine.World) error {
				for slot := range run.count(w) {
					if !finalized.has(run.at(w, slot)) {
						continue
					}
					for i := range parts {
						if p := &parts[i]; !p.free.has(p.at(w, slot)) {
							return p.fail(w, slot, "is %s, and its run is finalized", p.show(p.at(w, slot)))
						}
					}
				}
				return nil
			}
		},
	},
	{
		ID: "nothing-behind-partial", Sentence: "No run is queued behind one that is partial or Unfenced.",
		Source: "F43, F150", Needs: NeedsStep,
		Held: "Twice: a partial launch closes admission before another run is tied to it (closed-admits-nothing), and an Unfenced one has a boundary that is not recorded (record-before-wait).",
		step: func(n *names) stepPredicate {
			join, run := n.kind("join"), n.kind("run")
			joining, pred, whole := join.in("joining"), join.fact("pred"), run.in("launched", "drained")
			n.moved(join)
			return func(s step) error {
				a, b := join.at(s.before, s.slot()), join.at(s.after, s.slot())
				if joining.has(a) || !joining.has(b) || s.vouched() {
					return nil
				}
				if slot := int(machine.UnpackRef(pred.of(b)).Slot); !whole.has(run.at(s.before, slot)) {
					return join.fail(s.after, s.slot(), "is tied to a run that is %s", run.show(run.at(s.before, slot)))
				}
				return nil
			}
		},
	},
}
