package invariants

import (
	"fmt"

	"github.com/runfence/runfence/machine"
)

// What a launch may do, in which order, and what is known when it ends.
var ofLaunch = []Invariant{
	{
		ID: "permit-bears-run", Sentence: "A launch goes ahead only with the permit of the run that its slot has, and uses it up.",
		Source: "F76", Needs: NeedsStep,
		Catches: `launch/arm-no-permit: guard drop "permit == view.permit"`,
		step: func(n *names) stepPredicate {
			launch, run := n.kind("launch"), n.kind("run")
			permit, its := launch.fact("permit"), run.fact("permit")
			arm := n.issued("MakeEvents")
			return func(s step) error {
				if s.rec.Kind != machine.Issued || !arm.has(s.rec) {
					return nil
				}
				r := its.of(run.at(s.before, s.slot()))
				switch {
				case r == 0 || permit.of(launch.at(s.before, s.slot())) != r:
					return launch.fail(s.after, s.slot(), "goes ahead without the run's permit")
				case its.of(run.at(s.after, s.slot())) != 0:
					return launch.fail(s.after, s.slot(), "leaves its permit standing")
				}
				return nil
			}
		},
	},
	{
		ID: "launch-order", Sentence: "AICore is submitted first, each kernel is followed by its own record, and each is announced to the fence before it is attempted.",
		Source: "F96, F101", Needs: NeedsStep,
		Catches: `launch/submit_core: command set "SubmitCPU()"`,
		step: func(n *names) stepPredicate {
			fence := n.kind("fence")
			order := []struct {
				call      rows
				core, cpu test
			}{
				{n.issued("SubmitCore"), fence.is("core", "submitting"), fence.is("cpu", "missing")},
				{n.issued("RecordCore"), fence.is("core", "recording"), fence.is("cpu", "missing")},
				{n.issued("SubmitCPU"), fence.is("core", "recorded", "complete"), fence.is("cpu", "submitting")},
				{n.issued("RecordCPU"), fence.is("core", "recorded", "complete"), fence.is("cpu", "recording")},
			}
			return func(s step) error {
				if s.rec.Kind != machine.Issued {
					return nil
				}
				f := fence.at(s.after, s.slot())
				for i := range order {
					if o := &order[i]; o.call.has(s.rec) && !(o.core.holds(f) && o.cpu.holds(f)) {
						return fence.fail(s.after, s.slot(), "%s comes out of its turn", s.after.Rules().CallName(s.rec.Call))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "fork-before-kernels", Sentence: "Where a caller or an asynchronous copy orders a run, its Fork is recorded ahead of either kernel.",
		Source: "F22, F23, F31", Needs: NeedsStep,
		Catches: `launch/publish: then[1].when drop "view.eager"`,
		step: func(n *names) stepPredicate {
			run, caller := n.kind("run"), n.kind("caller_order")
			eager, async := run.is("eager", "true"), run.is("async", "true")
			fork := caller.is("fork", "on_stream")
			kernels := n.issued("SubmitCore", "SubmitCPU")
			return func(s step) error {
				if s.rec.Kind != machine.Issued || !kernels.has(s.rec) {
					return nil
				}
				if r := run.at(s.after, s.slot()); (eager.holds(r) || async.holds(r)) && !fork.holds(caller.at(s.after, s.slot())) {
					return caller.fail(s.after, s.slot(), "a kernel is submitted ahead of the Fork")
				}
				return nil
			}
		},
	},
	{
		ID: "published-before-kernels", Sentence: "No kernel is submitted before the marker of its result region is published.",
		Source: "F3, F8", Needs: NeedsStep,
		Catches: `launch/arm: then[2].when set "view.staged && view.async"`,
		step: func(n *names) stepPredicate {
			region := n.kind("region")
			initialised, kernels := region.in("initialised"), n.issued("SubmitCore", "SubmitCPU")
			return func(s step) error {
				if s.rec.Kind == machine.Issued && kernels.has(s.rec) {
					if r := region.at(s.after, s.slot()); !initialised.has(r) {
						return region.fail(s.after, s.slot(), "is %s, and a kernel is submitted", region.show(r))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "capture-is-refused", Sentence: "A launch goes on only when the caller's stream is known not to be capturing.",
		Source: "F17, F38", Needs: NeedsStep,
		Catches: `launch/capture: then[0].when drop`,
		step: func(n *names) stepPredicate {
			launch := n.kind("launch")
			ask := n.answered("CaptureStatus")
			return func(s step) error {
				if s.answerOf(ask) && !s.answeredWell(ask, 0) && s.after.Queued() > s.before.Queued() {
					return launch.fail(s.after, s.slot(), "goes on with a stream that may be capturing")
				}
				return nil
			}
		},
	},
	{
		ID: "not-started-is-proven", Sentence: "A launch counts as not started only if nothing was enqueued and the call that ended it was refused before its attempt: an error, an exception or a missing receipt is no proof.",
		Source: "F34, F72, F76, F80, F143", Needs: NeedsStep,
		Catches: `launch/submit_core: then[1].when set "res.accepted && touched"`,
		step: func(n *names) stepPredicate {
			run, launch := n.kind("run"), n.kind("launch")
			launching, not := run.in("launching"), run.in("not started", "prepared")
			touched := launch.is("touched", "true")
			harmless := n.calling("MakeEvents", "MakeOrderEvents")
			asks := n.rows(func(m *machine.Machine, r machine.RowID) int {
				return position(m.Name() == "launch" && callOf(m, r) != "")
			})
			n.moved(run)
			return func(s step) error {
				if !launching.has(run.at(s.before, s.slot())) || !not.has(run.at(s.after, s.slot())) || s.vouched() {
					return nil
				}
				refused := s.answerOf(asks) && !mayBeQueued(s.lead())
				switch {
				case touched.holds(launch.at(s.before, s.slot())):
					return run.fail(s.after, s.slot(), "is taken for not started after something was enqueued")
				case s.answerOf(asks) && !refused && !s.answerOf(harmless):
					return run.fail(s.after, s.slot(), "is taken for not started although the call may have taken effect")
				}
				return nil
			}
		},
	},
	{
		ID: "acceptance-is-both", Sentence: "A launched run has a complete launch and its receipt stands for both submissions and both records.",
		Source: "F76, F96, F97", Needs: NeedsWorld,
		Catches: `launch/record_cpu: then[3].with drop "fence.recorded(run_epoch, generation, dispatch, cpu_done)"`,
		world: func(n *names) worldPredicate {
			run, launch, fence := n.kind("run"), n.kind("launch"), n.kind("fence")
			launched, complete := run.in("launched"), launch.in("complete")
			core, cpu := fence.is("core", "recorded", "complete"), fence.is("cpu", "recorded", "complete")
			its, of := launch.identity(), run.identity()
			return func(w *machine.World) error {
				for slot := range run.count(w) {
					r := run.at(w, slot)
					if !launched.has(r) {
						continue
					}
					l, f := launch.at(w, slot), fence.at(w, slot)
					switch {
					case !complete.has(l) || its.of(l) != of.of(r):
						return run.fail(w, slot, "is launched, and its launch is %s", launch.show(l))
					case !core.holds(f) || !cpu.holds(f):
						return run.fail(w, slot, "is launched, and a boundary of its is not recorded")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "launch-and-run-agree", Sentence: "Run and launch are partial together, and a launch that is complete belongs to a run that was accepted: no launch ends without its owner knowing how.",
		Source: "F75, F76, F80", Needs: NeedsWorld,
		Catches: `launch/submit_core: then[4].with drop "run.broken(res.code)"`,
		world: func(n *names) worldPredicate {
			run, launch := n.kind("run"), n.kind("launch")
			partial, ended := launch.in("partial"), launch.in("complete", "partial")
			broken, over := run.in("partial", "drained", "retired", "finalized"), run.in("launched", "partial", "drained", "retired", "finalized")
			is := run.in("partial")
			return func(w *machine.World) error {
				for slot := range run.count(w) {
					r, l := run.at(w, slot), launch.at(w, slot)
					if partial.has(l) && !broken.has(r) || ended.has(l) && !over.has(r) || is.has(r) && !partial.has(l) {
						return launch.fail(w, slot, "is %s, and the run is %s", launch.show(l), run.show(r))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "depth", Sentence: "No more runs are on the device than the lane's depth.",
		Source: "F43", Needs: NeedsWorld,
		Catches: `launch/arm-no-permit: guard drop "view.room"`,
		world: func(n *names) worldPredicate {
			run, lane := n.kind("run"), n.kind("lane")
			on, depth := run.in("launching", "launched", "partial"), lane.fact("depth")
			return func(w *machine.World) error {
				have := uint64(0)
				for slot := range run.count(w) {
					if on.has(run.at(w, slot)) {
						have++
					}
				}
				if most := depth.of(lane.at(w, 0)); have > most {
					return lane.fail(w, 0, "has %d runs on the device, its depth is %d", have, most)
				}
				return nil
			}
		},
	},
	{
		ID: "prepare-submits-nothing", Sentence: "Preparing a run submits, copies and records nothing, and selects or replaces no stream.",
		Source: "F2, F13", Needs: NeedsStep,
		Catches: `prepare/bind: command set "PublishRegion()"`,
		step: func(n *names) stepPredicate {
			prepare := n.kind("prepare")
			allowed := n.calling("CurrentContext", "CheckCaller", "AllocateRegion", "PrepareRun", "RollBack")
			n.look(issued, n.rows(func(m *machine.Machine, r machine.RowID) int {
				return position(prepare.there && m == prepare.n && callOf(m, r) != "")
			}))
			return func(s step) error {
				if !allowed.has(s.rec) {
					return prepare.fail(s.after, s.slot(), "makes the call %s", s.after.Rules().CallName(s.rec.Call))
				}
				return nil
			}
		},
	},
	{
		ID: "refused-by-its-marker", Sentence: "A preparation is refused, and its run let go, only by a call that was not attempted or by a rollback that answers with this attempt's own release marker.",
		Source: "F67–F69, F74", Needs: NeedsStep,
		Catches: `prepare/roll-back: then[0].when drop`,
		step: func(n *names) stepPredicate {
			run := n.kind("run")
			n.kind("prepare")
			preparing, idle, epoch := run.in("preparing"), run.in("idle"), run.fact("run_epoch")
			attempts, undo := n.calling("AllocateRegion", "PrepareRun"), n.calling("RollBack")
			n.moved(run)
			return func(s step) error {
				a := run.at(s.before, s.slot())
				if !preparing.has(a) || !idle.has(run.at(s.after, s.slot())) || s.vouched() {
					return nil
				}
				if s.answerOf(attempts) && s.lead().Result.Outcome == machine.Refused || s.answeredWell(undo, epoch.of(a)) {
					return nil
				}
				return run.fail(s.after, s.slot(), "is let go without this attempt's release marker")
			}
		},
	},
	{
		ID: "end-frees-its-own", Sentence: "The end of a run changes nothing of another slot: it frees its own resources only.",
		Source: "F121, F122, R2", Needs: NeedsStep,
		Held: "A row reaches another slot only by a reference, and the one that a run has, to its predecessor, is empty before the end takes anything along.",
		step: func(n *names) stepPredicate {
			finalize := n.kind("finalize")
			pooled := make([]bool, n.rules.NumMachines())
			for i := range pooled {
				m := n.rules.At(machine.MachineID(i))
				pooled[i] = finalize.there && m.Definition().Pool == finalize.n.Definition().Pool
			}
			n.rooted(finalize)
			return func(s step) error {
				switch s.rec.Kind {
				case machine.Stepped, machine.Issued, machine.Settled:
					if pooled[s.rec.Ref.Machine] && s.rec.Ref.Slot != s.rec.Root.Slot {
						return fmt.Errorf("%s changes %s", s.after.Rules().RefName(s.rec.Root), s.after.Rules().RefName(s.rec.Ref))
					}
				}
				return nil
			}
		},
	},
}
