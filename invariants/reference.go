package invariants

import (
	"fmt"

	"github.com/runfence/runfence/machine"
)

// holders are the machines that hold counts on a fence.
type holders struct {
	fence, token, join, caller kind
	arming                     fact
	counts                     [2]fact // core_refs, cpu_refs

	live                    stateSet
	tokenFence, tokenArming fact
	onCore                  test
	pred, joinArming        fact
	coreWait, cpuWait, held test
}

func newHolders(n *names) *holders {
	h := &holders{fence: n.kind("fence"), token: n.maybe("token"), join: n.maybe("join"), caller: n.maybe("caller_order")}
	h.arming = h.fence.fact("arming")
	h.counts = [2]fact{h.fence.fact("core_refs"), h.fence.fact("cpu_refs")}
	h.live = h.token.in("reserved", "queueing", "committed")
	h.tokenFence, h.tokenArming, h.onCore = h.token.fact("fence"), h.token.fact("arming"), h.token.is("boundary", "core_done")
	h.pred, h.joinArming = h.join.fact("pred"), h.join.fact("arming")
	h.coreWait, h.cpuWait = h.join.is("core_wait", "reserved", "queued"), h.join.is("cpu_wait", "reserved", "queued")
	h.held = h.caller.is("held", "reserved", "queued")
	return h
}

// of counts the live references on the two boundaries of a slot's fence.
func (h *holders) of(w *machine.World, slot int, f one) (core, cpu uint64) {
	arming, self := h.arming.of(f), h.fence.pack(w, slot)
	for i := range h.token.count(w) {
		if t := h.token.at(w, i); h.live.has(t) && h.tokenFence.of(t) == self && h.tokenArming.of(t) == arming {
			if h.onCore.holds(t) {
				core++
			} else {
				cpu++
			}
		}
	}
	for i := range h.join.count(w) {
		if j := h.join.at(w, i); h.pred.of(j) == self && h.joinArming.of(j) == arming {
			if h.coreWait.holds(j) { // the waits are crossed
				cpu++
			}
			if h.cpuWait.holds(j) {
				core++
			}
		}
	}
	if h.caller.there && h.held.holds(h.caller.at(w, slot)) {
		cpu++
	}
	return core, cpu
}

// Who may wait for a run, and when a wait is over.
var ofReferences = []Invariant{
	{
		ID: "tokens-equal-counts", Sentence: "The counts of a fence that stands for a run are the live references on it: tokens, joins and callers. While a confirmed reset is being swept up, slot by slot, they may still count references that it ended.",
		Source: "F27, F135–F142", Needs: NeedsWorld,
		Catches: `token/revoke: then.with drop "fence.drop(boundary, arming)"`,
		world: func(n *names) worldPredicate {
			h := newHolders(n)
			armed, recovery := h.fence.in("armed"), n.maybe("recovery")
			sweeping := recovery.in("sweeping")
			return func(w *machine.World) error {
				r, recovers := recovery.alone(w)
				swept := recovers && sweeping.has(r)
				for slot := range h.fence.count(w) {
					f := h.fence.at(w, slot)
					if !armed.has(f) {
						continue
					}
					if core, cpu := h.of(w, slot, f); core != h.counts[0].of(f) || cpu != h.counts[1].of(f) {
						if swept && core <= h.counts[0].of(f) && cpu <= h.counts[1].of(f) {
							continue
						}
						return h.fence.fail(w, slot, "counts %d and %d, live are %d and %d", h.counts[0].of(f), h.counts[1].of(f), core, cpu)
					}
				}
				return nil
			}
		},
	},
	{
		ID: "counts-drop-by-proof", Sentence: "A token's count is dropped only by a proof of the stream that holds the wait, for a wait that was never queued, or in a declared quarantine.",
		Source: "F36, F135, F136, F142", Needs: NeedsStep,
		Catches: `token/release-other: row drop`,
		step: func(n *names) stepPredicate {
			token, fence, lane := n.kind("token"), n.kind("fence"), n.maybe("lane")
			reserved, queueing, committed, spent := token.in("reserved"), token.in("queueing"), token.in("committed"), token.in("spent")
			waiter, of, arming, stands := token.fact("waiter"), token.fact("fence"), token.fact("arming"), fence.fact("arming")
			quarantined := lane.in("quarantined")
			release, quiesce, queue := n.eventRows(token, "release"), n.eventRows(token, "quiesce"), n.calling("QueueWait")
			n.moved(token)
			return func(s step) error {
				a, b := token.at(s.before, s.slot()), token.at(s.after, s.slot())
				if spent.has(a) || !spent.has(b) {
					return nil
				}
				// A token of an arming that is over holds no count any more.
				if f := of.of(a); f == 0 || stands.of(fence.at(s.before, int(machine.UnpackRef(f).Slot))) != arming.of(a) {
					return nil
				}
				l, laned := lane.alone(s.before)
				switch {
				case quiesce.has(s.rec) && laned && quarantined.has(l):
				case release.has(s.rec) && committed.has(a) && s.rec.Args[0] == waiter.of(a):
				case s.answerOf(queue) && queueing.has(a) && s.rec.Result.Outcome == machine.Refused && !s.rec.Result.Accepted:
				case reserved.has(a) && !quiesce.has(s.rec):
				default:
					return token.fail(s.after, s.slot(), "its count is dropped without a proof of the stream that holds its wait")
				}
				return nil
			}
		},
	},
	{
		ID: "join-ends-by-proof", Sentence: "The count that a joined run holds on its predecessor is dropped only when the stream with the wait is proven past it, or the wait was never queued.",
		Source: "F133, F135, F142", Needs: NeedsStep,
		Catches: `drain/core_wait: then[1].with add "join.proven_cpu()"`,
		step: func(n *names) stepPredicate {
			join, fence := n.kind("join"), n.kind("fence")
			pred, arming, stands := join.fact("pred"), join.fact("arming"), fence.fact("arming")
			waits := [2]fact{join.fact("core_wait"), join.fact("cpu_wait")}
			queued := [2]test{join.is("core_wait", "queued"), join.is("cpu_wait", "queued")}
			none := [2]test{join.is("core_wait", "no_wait"), join.is("cpu_wait", "no_wait")}
			complete := [2]test{fence.is("core", "complete"), fence.is("cpu", "complete")}
			quiet, abandon := fence.is("quiet", "true"), n.eventRows(join, "abandon")
			maybe := [2]rows{n.calling("QueueJoinCore"), n.calling("QueueJoinCPU")}
			n.moved(join)
			return func(s step) error {
				a, b := join.at(s.before, s.slot()), join.at(s.after, s.slot())
				if waits[0].of(a) == waits[0].of(b) && waits[1].of(a) == waits[1].of(b) || abandon.has(s.rec) || s.vouched() {
					return nil
				}
				if p := pred.of(a); p == 0 || stands.of(fence.at(s.before, int(machine.UnpackRef(p).Slot))) != arming.of(a) {
					return nil // a reset took the count along
				}
				own := fence.at(s.after, s.slot())
				for i := range waits {
					if none[i].holds(a) || !none[i].holds(b) {
						continue
					}
					// Whether the boundary or the quiet is proven is another sentence's.
					proven := queued[i].holds(a) && (complete[i].holds(own) || quiet.holds(own))
					never := !queued[i].holds(a) && !(s.answerOf(maybe[i]) && mayBeQueued(s.lead()))
					if !proven && !never {
						return join.fail(s.after, s.slot(), "its wait on the %s stream ends unproven", boundaryName(i))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "caller-held-until-tail", Sentence: "A caller's run holds its AICPU boundary until Tail, or its caller's stream, proves that the caller's wait is over.",
		Source: "F27, F35, F36", Needs: NeedsStep,
		Catches: `drain/tail_wait: then[6].with add "caller_order.proven()"`,
		step: func(n *names) stepPredicate {
			caller := n.kind("caller_order")
			queued, reserved, none := caller.is("held", "queued"), caller.is("held", "reserved"), caller.is("held", "no_wait")
			asked, waited, wait := n.calling("QueryTail"), n.calling("WaitTail", "SyncCaller"), n.calling("WaitCPUDone")
			abandon := n.eventRows(caller, "abandon")
			n.moved(caller)
			return func(s step) error {
				a, b := caller.at(s.before, s.slot()), caller.at(s.after, s.slot())
				if none.holds(a) || !none.holds(b) || abandon.has(s.rec) || s.vouched() || s.expired() {
					return nil
				}
				switch {
				case queued.holds(a) && s.answeredWell(asked, 1):
				case queued.holds(a) && s.answerOf(waited) && s.lead().Result.Outcome == machine.OK:
				case reserved.holds(a) && s.answerOf(wait) && !mayBeQueued(s.lead()):
				default:
					return caller.fail(s.after, s.slot(), "its reference is given back unproven")
				}
				return nil
			}
		},
	},
	{
		ID: "drained-is-discharged", Sentence: "When a run is drained, its caller's reference has been discharged.",
		Source: "F29", Needs: NeedsWorld,
		Catches: `drain/settle-tail: guard set "view.held && view.tail && view.partial"`,
		world: func(n *names) worldPredicate {
			run, caller := n.kind("run"), n.kind("caller_order")
			drained, none := run.in("drained", "retired", "finalized"), caller.is("held", "no_wait")
			return func(w *machine.World) error {
				for slot := range run.count(w) {
					if drained.has(run.at(w, slot)) && !none.holds(caller.at(w, slot)) {
						return caller.fail(w, slot, "its run is drained, and it holds a reference")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "record-before-wait", Sentence: "A wait is counted only on a boundary that is recorded.",
		Source: "F134", Needs: NeedsWorld,
		Catches: `fence/reserve-core: guard drop "core == recorded || core == complete"`,
		world: func(n *names) worldPredicate {
			fence := n.kind("fence")
			counts := [2]fact{fence.fact("core_refs"), fence.fact("cpu_refs")}
			recorded := [2]test{fence.is("core", "recorded", "complete"), fence.is("cpu", "recorded", "complete")}
			armed := fence.in("armed")
			return func(w *machine.World) error {
				for slot := range fence.count(w) {
					f := fence.at(w, slot)
					for i := range counts {
						if armed.has(f) && counts[i].of(f) > 0 && !recorded[i].holds(f) {
							return fence.fail(w, slot, "a wait is counted on its %s boundary, which is not recorded", boundaryName(i))
						}
					}
				}
				return nil
			}
		},
	},
	{
		ID: "wait-after-record", Sentence: "A wait is queued only behind a record that is on a stream already.",
		Source: "F22, F134", Needs: NeedsStep,
		Catches: `launch/record_start: then[0].with drop "caller_order.record(at_start)"`,
		step: func(n *names) stepPredicate {
			fence, caller := n.kind("fence"), n.maybe("caller_order")
			recorded := [2]test{fence.is("core", "recorded", "complete"), fence.is("cpu", "recorded", "complete")}
			edges := [2]test{caller.is("start", "on_stream"), caller.is("fork", "on_stream")}
			own := [2]rows{n.issued("WaitCoreDone"), n.issued("WaitCPUDone")}
			crossed := [2]rows{n.issued("QueueJoinCPU"), n.issued("QueueJoinCore")} // by the boundary that is waited for
			marks := [2]rows{n.issued("WaitStart"), n.issued("WaitFork")}
			queue := n.issued("QueueWait")
			late := func(s step, what string, i int) error {
				return fmt.Errorf("%s: waits for %s of slot %d, which is not recorded", s.after.Rules().RefName(s.rec.Ref), what, i)
			}
			return func(s step) error {
				if s.rec.Kind != machine.Issued {
					return nil
				}
				slot, on := s.slot(), -1
				for i := range own {
					switch {
					case own[i].has(s.rec):
						on = i
					case crossed[i].has(s.rec):
						slot, on = int(machine.UnpackRef(s.rec.CallArgs[0]).Slot), i
					}
				}
				if queue.has(s.rec) {
					slot, on = int(machine.UnpackRef(s.rec.CallArgs[2]).Slot), int(s.rec.CallArgs[3])
				}
				if on >= 0 && !recorded[on].holds(fence.at(s.after, slot)) {
					return late(s, "the "+boundaryName(on)+" boundary", slot)
				}
				for i := range marks {
					if caller.there && marks[i].has(s.rec) && !edges[i].holds(caller.at(s.after, slot)) {
						return late(s, [...]string{"Start", "Fork"}[i], slot)
					}
				}
				return nil
			}
		},
	},
	{
		ID: "reserved-before-queued", Sentence: "A wait on another run's boundary is queued only when it is counted already.",
		Source: "F135", Needs: NeedsStep,
		Catches: `launch/join_core: then[0].with add "join.revoked_cpu()"`,
		step: func(n *names) stepPredicate {
			join := n.kind("join")
			reserved := [2]test{join.is("core_wait", "reserved"), join.is("cpu_wait", "reserved")}
			calls := [2]rows{n.issued("QueueJoinCore"), n.issued("QueueJoinCPU")}
			return func(s step) error {
				for i := range calls {
					if s.rec.Kind == machine.Issued && calls[i].has(s.rec) && !reserved[i].holds(join.at(s.after, s.slot())) {
						return join.fail(s.after, s.slot(), "queues the wait of its %s stream, which is not counted", boundaryName(i))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "token-names-one-reference", Sentence: "A token that is live names the fence, arming, boundary and stream that it was minted for, and no other.",
		Source: "F137, F138", Needs: NeedsStep,
		Catches: `token/enqueue: then[0].do add "waiter = cpu_stream"`,
		step: func(n *names) stepPredicate {
			token := n.kind("token")
			live := token.in("reserved", "queueing", "committed")
			facts := [...]fact{token.fact("fence"), token.fact("arming"), token.fact("boundary"), token.fact("waiter"), token.fact("holder")}
			n.moved(token)
			return func(s step) error {
				a, b := token.at(s.before, s.slot()), token.at(s.after, s.slot())
				if !live.has(a) {
					return nil
				}
				for _, f := range facts {
					if f.of(a) != f.of(b) {
						return token.fail(s.after, s.slot(), "names another reference than it was minted for")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "own-tokens-only", Sentence: "Only the fence that minted a token may judge it stale, and only when it does not count it any more.",
		Source: "F141", Needs: NeedsStep,
		Catches: `token/discard-foreign: row drop`,
		step: func(n *names) stepPredicate {
			token, fence := n.kind("token"), n.kind("fence")
			of, arming, stands := token.fact("fence"), token.fact("arming"), fence.fact("arming")
			discard := n.look(taken, n.eventRows(token, "discard"))
			return func(s step) error {
				if s.rec.Kind != machine.Stepped || !discard.has(s.rec) {
					return nil
				}
				a := token.at(s.before, s.slot())
				f := of.of(a)
				switch {
				case s.rec.Args[0] != f:
					return token.fail(s.after, s.slot(), "is judged by a fence that did not mint it")
				case f != 0 && stands.of(fence.at(s.before, int(machine.UnpackRef(f).Slot))) == arming.of(a):
					return token.fail(s.after, s.slot(), "is discarded while its fence counts it")
				}
				return nil
			}
		},
	},
	{
		ID: "no-wait-cycle", Sentence: "No run waits for a run that waits for it.",
		Source: "F134", Needs: NeedsWorld,
		Catches: `join/plan-self: guard set "arg.pred == none"`,
		world: func(n *names) worldPredicate {
			join, fence := n.kind("join"), n.kind("fence")
			joining, pred, arming, stands := join.in("joining"), join.fact("pred"), join.fact("arming"), fence.fact("arming")
			core, cpu := join.is("core_wait", "no_wait"), join.is("cpu_wait", "no_wait")
			return func(w *machine.World) error {
				slots := join.count(w)
				for slot := range slots {
					at, far := slot, 0
					for ; far <= slots; far++ {
						j := join.at(w, at)
						p := pred.of(j)
						if !joining.has(j) || p == 0 || core.holds(j) && cpu.holds(j) {
							break
						}
						at = int(machine.UnpackRef(p).Slot)
						if stands.of(fence.at(w, at)) != arming.of(j) {
							break // it waited for an earlier run of that slot
						}
					}
					if far > slots {
						return join.fail(w, slot, "its waits lead back to themselves")
					}
				}
				return nil
			}
		},
	},
}

// mayBeQueued reports whether a call that was answered so may have taken effect.
func mayBeQueued(rec *machine.Record) bool {
	return rec.Result.Outcome != machine.Refused || rec.Result.Accepted
}
