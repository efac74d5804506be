package invariants

import "github.com/runfence/runfence/machine"

// What decides a run.
var ofOutcome = []Invariant{
	{
		ID: "both-boundaries", Sentence: "A run is over only when both of its boundaries completed or both of its streams are proven to hold nothing of it: one boundary, a handshake or a flag never completes it.",
		Source: "F97–F99, F104, F132", Needs: NeedsStep,
		Catches: `drain/core_sync: then[1].with drop "fence.quiesced(run_epoch, generation, dispatch)"`,
		step: func(n *names) stepPredicate {
			run, fence := n.kind("run"), n.kind("fence")
			drained, swept, quiet := run.in("drained"), run.is("verdict", "swept"), fence.is("quiet", "true")
			core, cpu := fence.is("core", "complete"), fence.is("cpu", "complete")
			n.moved(run)
			return func(s step) error {
				a, b := run.at(s.before, s.slot()), run.at(s.after, s.slot())
				if drained.has(a) || !drained.has(b) || swept.holds(b) || s.vouched() {
					return nil
				}
				if f := fence.at(s.after, s.slot()); !quiet.holds(f) && !(core.holds(f) && cpu.holds(f)) {
					return run.fail(s.after, s.slot(), "is over, and it is not proven of both of its boundaries or streams")
				}
				return nil
			}
		},
	},
	{
		ID: "certified-when-complete", Sentence: "A record certifies a run only when both of its boundaries completed.",
		Source: "F5, F105", Needs: NeedsStep,
		Catches: `outcome/certify: guard drop "arg.complete"`,
		step: certifying(func(n *names) func(w *machine.World, slot int) error {
			fence := n.kind("fence")
			core, cpu := fence.is("core", "complete"), fence.is("cpu", "complete")
			return func(w *machine.World, slot int) error {
				if f := fence.at(w, slot); !core.holds(f) || !cpu.holds(f) {
					return fence.fail(w, slot, "its run is certified with a boundary that is not complete")
				}
				return nil
			}
		}),
	},
	{
		ID: "untrusted-never-certifies", Sentence: "A record certifies a run only out of a result region whose marker was published: bytes that happen to equal the epoch certify nothing.",
		Source: "F4, F7", Needs: NeedsStep,
		Catches: `drain/read: then[1].when drop "view.trusted"`,
		step: certifying(func(n *names) func(w *machine.World, slot int) error {
			region := n.kind("region")
			initialised := region.in("initialised")
			return func(w *machine.World, slot int) error {
				if r := region.at(w, slot); !initialised.has(r) {
					return region.fail(w, slot, "is %s, and certifies a run", region.show(r))
				}
				return nil
			}
		}),
	},
	{
		ID: "no-record-certifies-nothing", Sentence: "Only a record that says all is well certifies; no record certifies nothing.",
		Source: "F105, F117, F166", Needs: NeedsStep,
		Catches: `outcome/certify: guard set "arg.complete && arg.transferred && arg.trusted"`,
		step: certifying(func(n *names) func(w *machine.World, slot int) error {
			outcome := n.kind("outcome")
			well := outcome.is("record", "all_ok")
			return func(w *machine.World, slot int) error {
				if !well.holds(outcome.at(w, slot)) {
					return outcome.fail(w, slot, "is certified without a record that says so")
				}
				return nil
			}
		}),
	},
	{
		ID: "own-record-only", Sentence: "A record counts for a run only if it was read without an error and bears the run's own epoch.",
		Source: "F10, F105, F145", Needs: NeedsStep,
		Catches: `drain/read: then[1].when drop "res.value == run_epoch"`,
		step: func(n *names) stepPredicate {
			outcome, run := n.kind("outcome"), n.kind("run")
			none, epoch := outcome.is("record", "absent"), run.fact("run_epoch")
			read := n.calling("ReadRecord")
			n.moved(outcome)
			return func(s step) error {
				a, b := outcome.at(s.before, s.slot()), outcome.at(s.after, s.slot())
				if !none.holds(a) || none.holds(b) || s.vouched() || s.answeredWell(read, epoch.of(run.at(s.before, s.slot()))) {
					return nil
				}
				return outcome.fail(s.after, s.slot(), "counts a record that is not the run's own")
			}
		},
	},
	{
		ID: "diagnosis-stands", Sentence: "A failure that the run's own record reports is never turned into a success: a device that is content does not override it.",
		Source: "F117, F118", Needs: NeedsStep,
		Catches: `outcome/diagnosis-unshared: to succeeded`,
		step: func(n *names) stepPredicate {
			outcome := n.kind("outcome")
			diagnosed, may := outcome.in("diagnosed", "failed"), outcome.in("diagnosed", "failed", "undecided")
			n.moved(outcome)
			return func(s step) error {
				a, b := outcome.at(s.before, s.slot()), outcome.at(s.after, s.slot())
				if diagnosed.has(a) && !may.has(b) {
					return outcome.fail(s.after, s.slot(), "was %s and is %s", outcome.show(a), outcome.show(b))
				}
				return nil
			}
		},
	},
	{
		ID: "verdict-is-the-outcome", Sentence: "A run's verdict says what its outcome says: success only if that is certified or the device was content, a fault only if the device reported one.",
		Source: "F104, F114", Needs: NeedsStep,
		Catches: `drain/settle: then[2].when set "view.succeeded || view.faulted"`,
		step: func(n *names) stepPredicate {
			run, outcome := n.kind("run"), n.kind("outcome")
			undecided := run.is("verdict", "undecided")
			well, fault := run.is("verdict", "succeeded"), run.is("verdict", "faulted")
			good, faulted := outcome.in("certified", "succeeded"), outcome.is("faulted", "true")
			n.moved(run)
			return func(s step) error {
				a, b, o := run.at(s.before, s.slot()), run.at(s.after, s.slot()), outcome.at(s.before, s.slot())
				switch {
				case !undecided.holds(a), s.vouched():
				case well.holds(b) && !good.has(o), fault.holds(b) && !faulted.holds(o):
					return run.fail(s.after, s.slot(), "has a verdict that its outcome, %s, does not give", outcome.show(o))
				}
				return nil
			}
		},
	},
	{
		ID: "partial-never-succeeds", Sentence: "A partial launch has no success to report, whatever its streams say.",
		Source: "F73, F130", Needs: NeedsStep,
		Catches: `run/proven: do set "verdict = broken" "verdict = succeeded"`,
		step: func(n *names) stepPredicate {
			run := n.kind("run")
			partial, well := run.in("partial"), run.is("verdict", "succeeded", "diagnosed")
			n.moved(run)
			return func(s step) error {
				if partial.has(run.at(s.before, s.slot())) && well.holds(run.at(s.after, s.slot())) {
					return run.fail(s.after, s.slot(), "was partial, and reports as a run that was launched")
				}
				return nil
			}
		},
	},
	{
		ID: "verdict-never-changes", Sentence: "A verdict stands: no later wait, reset or notice changes it while the run is there.",
		Source: "F104, F114", Needs: NeedsStep,
		Catches: `run/swept-drained: do add "verdict = swept"`,
		step: func(n *names) stepPredicate {
			run := n.kind("run")
			undecided, verdict, fault := run.is("verdict", "undecided"), run.fact("verdict"), run.fact("fault")
			n.moved(run)
			return func(s step) error {
				a, b := run.at(s.before, s.slot()), run.at(s.after, s.slot())
				if !undecided.holds(a) && (verdict.of(a) != verdict.of(b) || fault.of(a) != fault.of(b)) {
					return run.fail(s.after, s.slot(), "had another verdict")
				}
				return nil
			}
		},
	},
}

// certifying makes a predicate of what must hold when an outcome becomes certified.
func certifying(of func(*names) func(w *machine.World, slot int) error) func(*names) stepPredicate {
	return func(n *names) stepPredicate {
		outcome := n.kind("outcome")
		certified := outcome.in("certified")
		n.moved(outcome)
		holds := of(n)
		return func(s step) error {
			if certified.has(outcome.at(s.before, s.slot())) || !certified.has(outcome.at(s.after, s.slot())) {
				return nil
			}
			return holds(s.after, s.slot())
		}
	}
}

// What the bytes are worth that a run reports in.
var ofRegion = []Invariant{
	{
		ID: "initialised-by-publication", Sentence: "A result region becomes initialised only by a publication that succeeded.",
		Source: "F4, F7", Needs: NeedsStep,
		Catches: `region/unpublished: to initialised`,
		step: func(n *names) stepPredicate {
			region := n.kind("region")
			n.kind("launch")
			initialised, publish := region.in("initialised"), n.calling("PublishRegion")
			n.moved(region)
			return func(s step) error {
				if initialised.has(region.at(s.before, s.slot())) || !initialised.has(region.at(s.after, s.slot())) || s.vouched() {
					return nil
				}
				if !s.answerOf(publish) || s.lead().Result.Outcome != machine.OK {
					return region.fail(s.after, s.slot(), "is initialised by no successful publication")
				}
				return nil
			}
		},
	},
	{
		ID: "source-kept", Sentence: "The pinned source of a publication lives until its run retires, failed enqueues included.",
		Source: "F6, F152", Needs: NeedsWorld,
		Catches: `region/unpublished: do add "source = false"`,
		world: func(n *names) worldPredicate {
			region, run := n.kind("region"), n.kind("run")
			source, needed := region.is("source", "true"), run.in("prepared", "launching", "launched", "partial", "drained")
			return func(w *machine.World) error {
				for slot := range run.count(w) {
					if needed.has(run.at(w, slot)) && !source.holds(region.at(w, slot)) {
						return region.fail(w, slot, "its source is gone, and the run is %s", run.show(run.at(w, slot)))
					}
				}
				return nil
			}
		},
	},
}
