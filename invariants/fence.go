package invariants

import (
	"errors"
	"strings"

	"github.com/runfence/runfence/machine"
)

// What the fence of a slot stands for, and what moves it.
var ofFence = []Invariant{
	{
		ID: "nothing-freed-in-use", Sentence: "No memory is freed or overwritten, and no event destroyed or recorded again, while the device or a queued wait may name it.",
		Source: "F6, F100, F132, F139", Needs: NeedsDevice,
		Catches: `token/release-other: row drop`,
		device: func(d Device) error {
			if b := d.Broken(); len(b) > 0 {
				return errors.New(strings.Join(b, "; "))
			}
			return nil
		},
	},
	{
		ID: "events-kept-in-use", Sentence: "Waits are counted only on a fence that stands for a run: it is neither let go nor armed for another under one, and its events are not destroyed.",
		Source: "F121, F139", Needs: NeedsWorld,
		Catches: `fence/retire-held: guard set "core_refs != 0 && cpu_refs != 0"`,
		world: func(n *names) worldPredicate {
			fence := n.kind("fence")
			armed, core, cpu := fence.in("armed"), fence.fact("core_refs"), fence.fact("cpu_refs")
			return func(w *machine.World) error {
				for slot := range fence.count(w) {
					f := fence.at(w, slot)
					if core.of(f)|cpu.of(f) != 0 && !armed.has(f) {
						return fence.fail(w, slot, "is %s with %d and %d waits counted", fence.show(f), core.of(f), cpu.of(f))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "not-recorded-under-a-wait", Sentence: "No boundary of a fence is recorded while a wait is counted on it.",
		Source: "F139", Needs: NeedsStep,
		Catches: `fence/recording-held: guard set "core_refs != 0 && cpu_refs != 0"`,
		step: func(n *names) stepPredicate {
			fence := n.kind("fence")
			recording := [2]test{fence.is("core", "recording"), fence.is("cpu", "recording")}
			core, cpu := fence.fact("core_refs"), fence.fact("cpu_refs")
			n.moved(fence)
			return func(s step) error {
				a, b := fence.at(s.before, s.slot()), fence.at(s.after, s.slot())
				for _, t := range recording {
					if !t.holds(a) && t.holds(b) && core.of(a)|cpu.of(a) != 0 {
						return fence.fail(s.after, s.slot(), "is recorded with %d and %d waits counted", core.of(a), cpu.of(a))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "boundary-by-its-own-proof", Sentence: "A boundary completes only by an answer about that very boundary: not by the other one, and not by what a kernel publishes before it returns.",
		Source: "F97–F99, F128", Needs: NeedsStep,
		Catches: `fence/reached-core: do add "cpu = complete"`,
		step: func(n *names) stepPredicate {
			fence := n.kind("fence")
			n.kind("drain")
			complete := [2]test{fence.is("core", "complete"), fence.is("cpu", "complete")}
			waits := [2]rows{n.calling("WaitCore"), n.calling("WaitCPU")}
			asks := [2]rows{n.calling("QueryCore"), n.calling("QueryCPU")}
			n.moved(fence)
			return func(s step) error {
				a, b := fence.at(s.before, s.slot()), fence.at(s.after, s.slot())
				for i, t := range complete {
					if t.holds(a) || !t.holds(b) || s.vouched() || s.expired() {
						continue
					}
					waited := s.answerOf(waits[i]) && s.lead().Result.Outcome == machine.OK
					if !waited && !s.answeredWell(asks[i], 1) || s.lead().Ref.Slot != s.rec.Ref.Slot {
						return fence.fail(s.after, s.slot(), "its %s boundary completed by something else", boundaryName(i))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "quiet-is-proven", Sentence: "The streams of a run are proven to hold nothing of it only by synchronising both; one that reports a fault, only together with its boundary.",
		Source: "F104, F130, F131", Needs: NeedsStep,
		Catches: `drain/core_sync: then[2].when set "view.core_complete"`,
		step: func(n *names) stepPredicate {
			fence, drain := n.kind("fence"), n.kind("drain")
			quiet, fatal := fence.is("quiet", "true"), drain.is("fatal", "true")
			core, cpu := fence.is("core", "complete"), fence.is("cpu", "complete")
			on, second := drain.in("core_sync"), n.calling("SyncCore")
			first := n.answered("SyncCPU")
			n.moved(fence)
			return func(s step) error {
				if s.answerOf(first) {
					switch s.lead().Result.Outcome {
					case machine.OK, machine.Failed, machine.TimedOut:
					default:
						if d := drain.at(s.after, s.slot()); on.has(d) {
							return drain.fail(s.after, s.slot(), "goes on although the AICPU stream was not synchronised")
						}
					}
					return nil
				}
				a, b := fence.at(s.before, s.slot()), fence.at(s.after, s.slot())
				if quiet.holds(a) || !quiet.holds(b) || s.vouched() || s.expired() {
					return nil
				}
				ok := false
				if s.answerOf(second) && s.lead().Ref.Slot == s.rec.Ref.Slot {
					fault := fatal.holds(drain.at(s.before, s.slot()))
					switch s.lead().Result.Outcome {
					case machine.OK:
						ok = !fault || cpu.holds(a)
					case machine.Failed:
						ok = core.holds(a) && (!fault || cpu.holds(a))
					}
				}
				if !ok {
					return fence.fail(s.after, s.slot(), "its streams are taken for empty unproven")
				}
				return nil
			}
		},
	},
	{
		ID: "timeout-proves-nothing", Sentence: "An expired wait ends the operation and nothing else: it completes no boundary, releases no reference and drains no run.",
		Source: "F100", Needs: NeedsStep,
		Catches: `drain/tail_wait: then[5].with add "caller_order.proven()"`,
		step: func(n *names) stepPredicate {
			drain := n.kind("drain")
			waits := n.answered("WaitCore", "WaitCPU", "SyncCPU", "SyncCore", "WaitTail", "SyncCaller")
			return func(s step) error {
				if !s.expired() || !waits.has(s.rec) {
					return nil
				}
				if len(s.recs) > 1 || s.after.Queued() > s.before.Queued() {
					return drain.fail(s.after, s.slot(), "goes on, or changes something, by a wait that expired")
				}
				return nil
			}
		},
	},
	{
		ID: "fence-stands-for-its-run", Sentence: "A fence is armed exactly while the run of its slot is being launched, is launched, partial or drained, and bears its identity.",
		Source: "F122, F123", Needs: NeedsWorld,
		Catches: `run/retire: then.with drop "fence.retire(run_epoch, generation, dispatch)"`,
		world: func(n *names) worldPredicate {
			fence, run := n.kind("fence"), n.kind("run")
			armed, must, may := fence.in("armed"), run.in("launching", "launched", "partial"), run.in("drained")
			its, of := fence.identity(), run.identity()
			return func(w *machine.World) error {
				for slot := range fence.count(w) {
					f, r := fence.at(w, slot), run.at(w, slot)
					switch {
					case armed.has(f) && !must.has(r) && !may.has(r), !armed.has(f) && must.has(r):
						return fence.fail(w, slot, "is %s while the run is %s", fence.show(f), run.show(r))
					case armed.has(f) && its.of(f) != of.of(r):
						return fence.fail(w, slot, "stands for another run")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "retired-is-proven", Sentence: "A fence lets go only of a run that is proven over: each boundary that was submitted has completed, or the streams hold nothing of it.",
		Source: "F97, F98, F100, F129, F132", Needs: NeedsStep,
		Catches: `fence/retire-proven: guard set "quiet || core == complete || cpu == complete"`,
		step: func(n *names) stepPredicate {
			fence := n.kind("fence")
			armed, quiet := fence.in("armed"), fence.is("quiet", "true")
			core, cpu := fence.is("core", "missing", "complete"), fence.is("cpu", "missing", "complete")
			// That a launch submitted nothing, and that a reset was confirmed, are
			// sentences of their own.
			reset, disarm := n.eventRows(fence, "abandon"), n.eventRows(fence, "disarm")
			untouched := [2]test{fence.is("core", "missing", "submitting"), fence.is("cpu", "missing", "submitting")}
			n.moved(fence)
			return func(s step) error {
				a, b := fence.at(s.before, s.slot()), fence.at(s.after, s.slot())
				if !armed.has(a) || armed.has(b) || s.takes(reset) || s.takes(disarm) && untouched[0].holds(a) && untouched[1].holds(a) {
					return nil
				}
				if !quiet.holds(a) && !(core.holds(a) && cpu.holds(a)) {
					return fence.fail(s.after, s.slot(), "lets go of a run that is not proven over")
				}
				return nil
			}
		},
	},
	{
		ID: "reset-is-confirmed", Sentence: "What stands for work on the device is let go without a proof only by a reset that confirmed: fence, edges, region and run.",
		Source: "F112, F132, F136, F140", Needs: NeedsStep,
		Catches: `recovery/reset: then[0].when drop`,
		step: func(n *names) stepPredicate {
			recovery, fence := n.kind("recovery"), n.kind("fence")
			sweeping, confirmed := recovery.in("sweeping"), n.calling("ResetDevice")
			gone := n.eventRows(fence, "abandon").join(
				n.eventRows(n.maybe("caller_order"), "abandon"), n.eventRows(n.maybe("join"), "abandon"),
				n.eventRows(n.maybe("region"), "forget"), n.eventRows(n.maybe("run"), "swept"),
			)
			n.look(taken, gone)
			n.moved(recovery)
			return func(s step) error {
				b := recovery.at(s.after, 0)
				switch a := recovery.at(s.before, 0); {
				case s.rec.Ref.Machine == recovery.id:
					if !sweeping.has(a) && sweeping.has(b) && !s.answeredWell(confirmed, 1) {
						return recovery.fail(s.after, 0, "sweeps after a reset that was not confirmed")
					}
				case !sweeping.has(a) && !s.vouched():
					return recovery.fail(s.after, 0, "is %s, and a reset is taken for done", recovery.show(a))
				}
				return nil
			}
		},
	},
}

func boundaryName(i int) string { return [...]string{"AICore", "AICPU"}[i] }
