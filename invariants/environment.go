package invariants

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
)

// Whose the environment is, and how it ends.
var ofEnvironment = []Invariant{
	{
		ID: "identity-is-whole", Sentence: "A live environment has a process, an incarnation, a generation and a context; the generation of a borrowed one is its caller's.",
		Source: "F48, F51, F52", Needs: NeedsWorld,
		Catches: `environment/create-borrowed-zero: row drop`,
		world: func(n *names) worldPredicate {
			env := n.kind("environment")
			live := env.in("live")
			parts := [...]fact{env.fact("process"), env.fact("incarnation"), env.fact("generation"), env.fact("context")}
			return func(w *machine.World) error {
				e := env.at(w, 0)
				for _, p := range parts {
					if live.has(e) && p.of(e) == 0 {
						return env.fail(w, 0, "is live without the whole of its identity")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "identity-until-teardown", Sentence: "The identity of an environment stands from its making to its successful teardown, whatever fails in between.",
		Source: "F51, F53, F64", Needs: NeedsStep,
		Catches: `environment/teardown: then[1].do add "incarnation = none"`,
		step: func(n *names) stepPredicate {
			env := n.kind("environment")
			gone := env.in("absent", "torn down")
			parts := [...]fact{env.fact("process"), env.fact("incarnation"), env.fact("generation"), env.fact("device"), env.fact("policy"), env.fact("context")}
			n.moved(env)
			return func(s step) error {
				a, b := env.at(s.before, 0), env.at(s.after, 0)
				if gone.has(a) || gone.has(b) {
					return nil
				}
				for _, p := range parts {
					if p.of(a) != p.of(b) {
						return env.fail(s.after, 0, "its identity changed while it is %s", env.show(b))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "foreign-enters-nothing", Sentence: "Nothing that a process asks which did not make the environment is taken, not even a question that needs no call.",
		Source: "F54–F56", Needs: NeedsStep,
		Catches: `poll/start-foreign: row drop`,
		step: func(n *names) stepPredicate {
			env := n.kind("environment")
			process := env.fact("process")
			by := n.look(taken, n.rows(func(m *machine.Machine, id machine.RowID) int {
				return slices.IndexFunc(m.Definition().Events[m.RowEvent(id)].Args, func(a machine.Fact) bool {
					return a.Name == "process" && a.Type == "id process"
				})
			}))
			return func(s step) error {
				made, asks := process.of(env.at(s.before, 0)), s.rec.Args[by.at(s.rec)]
				if made != 0 && asks != made {
					return fmt.Errorf("%s: takes an event of process %d", s.after.Rules().RefName(s.rec.Ref), asks)
				}
				return nil
			}
		},
	},
	{
		ID: "wrong-context-does-nothing", Sentence: "An operation whose context is not the current one ends there, with nothing changed.",
		Source: "F38, F59, F62, F156, F157", Needs: NeedsStep,
		Catches: `poll/start: then[0].when set "res.value == 0"`,
		step: func(n *names) stepPredicate {
			env := n.kind("environment")
			context := env.fact("context")
			asks := n.answered("CurrentContext")
			return func(s step) error {
				if !s.answerOf(asks) || s.rec.Result.Outcome != machine.OK {
					return nil
				}
				want := context.of(env.at(s.before, 0))
				if want == 0 || s.rec.Result.Value == want {
					return nil
				}
				if len(s.recs) > 1 || s.after.Queued() > s.before.Queued() {
					return fmt.Errorf("%s: goes on under another context", s.after.Rules().RefName(s.rec.Ref))
				}
				return nil
			}
		},
	},
	{
		ID: "claimed-in-context", Sentence: "A close is claimed only under the environment's own context, or of what is owed already.",
		Source: "F62, F63", Needs: NeedsStep,
		Catches: `environment/close: then[0].when drop`,
		step: func(n *names) stepPredicate {
			env := n.kind("environment")
			live, closing, context := env.in("live"), env.in("closing"), env.fact("context")
			ask := n.calling("CurrentContext")
			n.moved(env)
			return func(s step) error {
				a := env.at(s.before, 0)
				if live.has(a) && closing.has(env.at(s.after, 0)) && !s.answeredWell(ask, context.of(a)) {
					return env.fail(s.after, 0, "its close is claimed under another context")
				}
				return nil
			}
		},
	},
	{
		ID: "quarantine-keeps", Sentence: "A lane that is quarantined releases nothing: no event, stream or memory of its slots.",
		Source: "F36, F66, F132, F136", Needs: NeedsStep,
		Catches: `closing/let-go-quarantined: row drop`,
		step: func(n *names) stepPredicate {
			lane, fence := n.kind("lane"), n.kind("fence")
			quarantined, released := lane.in("quarantined"), fence.in("released")
			frees := n.issued("ReleaseSlots")
			n.moved(fence)
			return func(s step) error {
				if !quarantined.has(lane.at(s.before, 0)) {
					return nil
				}
				switch {
				case s.rec.Kind == machine.Issued && frees.has(s.rec):
					return lane.fail(s.after, 0, "is quarantined, and its slots are released")
				case s.rec.Ref.Machine == fence.id && !released.has(fence.at(s.before, s.slot())) && released.has(fence.at(s.after, s.slot())):
					return fence.fail(s.after, s.slot(), "is let go in a quarantine")
				}
				return nil
			}
		},
	},
	{
		ID: "closed-is-clean", Sentence: "A lane is closed only with nothing left: no run, no fence with events, no reference, no context.",
		Source: "F63, F65, F121, F139", Needs: NeedsWorld,
		Catches: `closing/not-torn: to closed`,
		world: func(n *names) worldPredicate {
			closing, env, lane, fence := n.kind("closing"), n.kind("environment"), n.kind("lane"), n.kind("fence")
			closed, torn, shut, released := closing.in("closed"), env.in("torn down"), lane.in("shut"), fence.in("released")
			runs, unproven := lane.fact("runs"), lane.fact("unproven")
			return func(w *machine.World) error {
				if !closed.has(closing.at(w, 0)) {
					return nil
				}
				e, l := env.at(w, 0), lane.at(w, 0)
				if !torn.has(e) || !shut.has(l) || runs.of(l)|unproven.of(l) != 0 {
					return closing.fail(w, 0, "is closed with an environment that is %s and a lane that is %s, with %d runs", env.show(e), lane.show(l), runs.of(l))
				}
				for slot := range fence.count(w) {
					if f := fence.at(w, slot); !released.has(f) {
						return fence.fail(w, slot, "is %s, and the lane is closed", fence.show(f))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "freed-when-over", Sentence: "The slots are released only with no run left and nothing that cannot be proven over.",
		Source: "F121, F132, F139", Needs: NeedsStep,
		Catches: `lane/shut-live: row drop`,
		step: func(n *names) stepPredicate {
			lane, run, fence := n.kind("lane"), n.kind("run"), n.kind("fence")
			gone, armed, poisoned := run.in("idle", "finalized"), fence.in("armed"), lane.is("poisoned", "true")
			core, cpu := fence.fact("core_refs"), fence.fact("cpu_refs")
			frees := n.issued("ReleaseSlots")
			return func(s step) error {
				if s.rec.Kind != machine.Issued || !frees.has(s.rec) {
					return nil
				}
				if poisoned.holds(lane.at(s.before, 0)) {
					return lane.fail(s.after, 0, "is poisoned, and its slots are released")
				}
				for slot := range run.count(s.before) {
					if f := fence.at(s.before, slot); armed.has(f) || core.of(f)|cpu.of(f) != 0 {
						return fence.fail(s.before, slot, "is %s, and the slots are released", fence.show(f))
					}
					if r := run.at(s.before, slot); !gone.has(r) {
						return run.fail(s.before, slot, "is %s, and the slots are released", run.show(r))
					}
				}
				return nil
			}
		},
	},
}
