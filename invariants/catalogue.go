package invariants

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// catalogue is every invariant, in the order of the page that is made of it.
var catalogue = []Invariant{
	{
		ID: "nothing-freed-in-use", Sentence: "No memory is freed or overwritten, and no event destroyed or recorded again, while the device or a queued wait may name it.",
		Source: "F6, F100, F132, F139", Needs: NeedsDevice,
		device: func(d Device) error {
			if b := d.Broken(); len(b) > 0 {
				return errors.New(strings.Join(b, "; "))
			}
			return nil
		},
	},
	{
		ID: "events-kept-in-use", Sentence: "A fence's events are let go only when it stands for no run and no wait is counted on it.",
		Source: "F121, F139", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("fence", func(f instance) error {
				if f.in("released") && (f.word("core_refs") != 0 || f.word("cpu_refs") != 0) {
					return f.fail("released with %d and %d waits counted", f.word("core_refs"), f.word("cpu_refs"))
				}
				return nil
			})
		},
	},
	{
		ID: "both-boundaries", Sentence: "A run succeeds only when both of its boundaries completed or both of its streams were synchronised: one boundary, or a flag from inside a kernel, never completes a run.",
		Source: "F97–F99, F104", Needs: NeedsStep,
		step: func(s *step) error {
			if s.machine() != "run" || !slices.Contains([]string{"drained"}, s.row()) || s.rec.Kind != machine.Stepped {
				return nil
			}
			f, ok := s.after.at("fence", int(s.rec.Ref.Slot))
			if !ok || f.is("quiet", "true") || (f.is("core", "complete") && f.is("cpu", "complete")) {
				return nil
			}
			return f.fail("its run succeeded with boundaries that are not complete")
		},
	},
	{
		ID: "timeout-proves-nothing", Sentence: "An expired wait completes no boundary, quiesces no fence, releases no reference and drains no run.",
		Source: "F100", Needs: NeedsStep,
		step: func(s *step) error {
			if s.rec.Kind != machine.Settled || s.rec.Result.Outcome != machine.TimedOut || s.machine() != "drain" {
				return nil
			}
			for slot := range s.after.w.Capacity(s.rules.Machine("fence").ID()) {
				a, _ := s.before.at("fence", slot)
				b, _ := s.after.at("fence", slot)
				for _, fact := range []string{"core", "cpu", "quiet"} {
					if a.word(fact) != b.word(fact) && (b.is(fact, "complete") || fact == "quiet") {
						return b.fail("%s changed by an expired %s", fact, s.call())
					}
				}
				if a.word("core_refs") > b.word("core_refs") || a.word("cpu_refs") > b.word("cpu_refs") {
					return b.fail("a count was dropped by an expired wait")
				}
				ra, _ := s.before.at("run", slot)
				rb, _ := s.after.at("run", slot)
				if !ra.in("drained") && rb.in("drained") {
					return rb.fail("drained by an expired wait")
				}
			}
			return nil
		},
	},
	{
		ID: "partial-closes-admission", Sentence: "While a launch is partial and unproven, admission is closed.",
		Source: "F78", Needs: NeedsWorld,
		world: func(v *view) error {
			partial := v.count("run", func(r instance) bool { return r.in("partial") })
			l, ok := v.at("lane", 0)
			if ok && l.word("unproven") != uint64(partial) {
				return l.fail("counts %d partial launches, there are %d", l.word("unproven"), partial)
			}
			return nil
		},
	},
	{
		ID: "acceptance-is-both", Sentence: "A launched run has a complete launch, whose receipt stands for both submissions and both records.",
		Source: "F76, F96, F97", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("run", func(r instance) error {
				if !r.in("launched") {
					return nil
				}
				l, ok := v.at("launch", int(r.ref.Slot))
				f, ok2 := v.at("fence", int(r.ref.Slot))
				if !ok || !ok2 {
					return nil
				}
				if !l.in("complete") || !f.is("core", "recorded", "complete") || !f.is("cpu", "recorded", "complete") {
					return r.fail("launched with launch %q and an incomplete fence", l.state())
				}
				if f.word("run_epoch") != r.word("run_epoch") || f.word("dispatch") != r.word("dispatch") {
					return r.fail("its fence stands for another run")
				}
				return nil
			})
		},
	},
	{
		ID: "tokens-equal-counts", Sentence: "The counts of a fence are the live references on it: tokens, joins and callers.",
		Source: "F27, F135–F142", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("fence", func(f instance) error {
				var core, cpu uint64
				arming := f.word("arming")
				_ = v.each("token", func(t instance) error {
					if t.in("reserved", "queueing", "committed") && t.word("fence") == f.ref.Pack() && t.word("arming") == arming && arming != 0 {
						if t.is("boundary", "core_done") {
							core++
						} else {
							cpu++
						}
					}
					return nil
				})
				_ = v.each("join", func(j instance) error {
					if j.word("pred") == f.ref.Pack() && j.word("arming") == arming && arming != 0 {
						if !j.is("core_wait", "no_wait") {
							cpu++
						}
						if !j.is("cpu_wait", "no_wait") {
							core++
						}
					}
					return nil
				})
				if c, ok := v.at("caller_order", int(f.ref.Slot)); ok && !c.is("held", "no_wait") {
					cpu++
				}
				if core != f.word("core_refs") || cpu != f.word("cpu_refs") {
					return f.fail("counts %d and %d, live are %d and %d", f.word("core_refs"), f.word("cpu_refs"), core, cpu)
				}
				return nil
			})
		},
	},
	{
		ID: "counts-drop-by-proof", Sentence: "No count is dropped without a proof of the stream that holds the wait, a wait that was never queued, a verified reset or a declared quarantine.",
		Source: "F36, F135, F136", Needs: NeedsStep,
		step: func(s *step) error {
			dropped := ""
			_ = s.after.each("fence", func(b instance) error {
				a, _ := s.before.at("fence", int(b.ref.Slot))
				if a.word("core_refs") > b.word("core_refs") || a.word("cpu_refs") > b.word("cpu_refs") {
					dropped = b.name()
				}
				return nil
			})
			if dropped == "" {
				return nil
			}
			if s.took("token", "release", "revoke", "enqueue", "quiesce-quarantine") ||
				s.took("join", "proven-core", "proven-cpu", "revoked-core", "revoked-cpu", "cancel-reserved") ||
				s.took("caller_order", "proven", "unhold") || s.took("fence", "abandon") {
				return nil
			}
			return fmt.Errorf("%s: a count was dropped by %s, row %s", dropped, s.machine(), s.row())
		},
	},
	{
		ID: "record-before-wait", Sentence: "A wait is counted only on a boundary that is recorded.",
		Source: "F134", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("fence", func(f instance) error {
				if f.word("core_refs") > 0 && !f.is("core", "recorded", "complete") || f.word("cpu_refs") > 0 && !f.is("cpu", "recorded", "complete") {
					return f.fail("a wait is counted on a boundary that is not recorded")
				}
				return nil
			})
		},
	},
	{
		ID: "no-wait-cycle", Sentence: "No run waits for a run that waits for it.",
		Source: "F134", Needs: NeedsWorld,
		world: func(v *view) error {
			return v.each("join", func(j instance) error {
				seen := map[uint64]bool{}
				for at := j; at.in("joining"); {
					if seen[at.word("home")] {
						return j.fail("its waits lead back to itself")
					}
					seen[at.word("home")] = true
					pred := at.word("pred")
					if pred == 0 {
						return nil
					}
					next, ok := v.at("join", int(machine.UnpackRef(pred).Slot))
					if !ok {
						return nil
					}
					at = next
				}
				return nil
			})
		},
	},
	{
		ID: "latch-never-changes", Sentence: "An execution mode that is claimed never changes.",
		Source: "F92", Needs: NeedsStep,
		step: func(s *step) error {
			a, ok := s.before.at("latch", 0)
			b, _ := s.after.at("latch", 0)
			if ok && !a.in("unclaimed") && a.state() != b.state() {
				return b.fail("was %s", a.state())
			}
			return nil
		},
	},
	{
		ID: "untrusted-never-certifies", Sentence: "A run is certified only by a record that says all is well, read from an initialised region when both boundaries are complete; no record certifies nothing.",
		Source: "F5, F7, F105, F117", Needs: NeedsStep,
		step: func(s *step) error {
			if s.machine() != "outcome" || s.row() != "certify" || s.rec.Kind != machine.Stepped {
				return nil
			}
			slot := int(s.rec.Ref.Slot)
			o, _ := s.after.at("outcome", slot)
			r, ok := s.before.at("region", slot)
			f, fenced := s.before.at("fence", slot)
			switch {
			case !o.is("record", "all_ok"):
				return o.fail("certified without such a record")
			case ok && !r.in("initialised"):
				return r.fail("it is %q", r.state())
			case fenced && !(f.is("core", "complete") && f.is("cpu", "complete")):
				return f.fail("its boundaries are not complete")
			}
			return nil
		},
	},
	{
		ID: "notice-only-refuses", Sentence: "A notice changes no run, frees and resets nothing: it can only close admission.",
		Source: "F108, F114", Needs: NeedsStep,
		step: func(s *step) error {
			if s.root() != "health" {
				return nil
			}
			if s.rec.Kind == machine.Issued {
				return fmt.Errorf("a notice led to %s", s.call())
			}
			for _, m := range s.changed() {
				if m != "health" && m != "watched" {
					return fmt.Errorf("a notice changed %s", m)
				}
			}
			return nil
		},
	},
	{
		ID: "borrowed-never-resets", Sentence: "A borrowed device is never reset, and never drained device-wide.",
		Source: "F15, F36", Needs: NeedsStep,
		step: func(s *step) error {
			if s.rec.Kind != machine.Issued || (s.call() != "ResetDevice" && s.call() != "DrainDevice") {
				return nil
			}
			if e, ok := s.after.at("environment", 0); ok && e.is("policy", "borrowed") {
				return e.fail("%s on a borrowed device", s.call())
			}
			return nil
		},
	},
	{
		ID: "refusal-changes-nothing", Sentence: "A refused event, a stale identity's included, changes nothing.",
		Source: "F122, F141", Needs: NeedsStep,
		step: func(s *step) error {
			if s.rec.Kind != machine.Rejected && s.rec.Kind != machine.Holed {
				return nil
			}
			if c := s.changed(); len(c) > 0 {
				return fmt.Errorf("%s changed by a refusal of %s", list(c), s.machine())
			}
			return nil
		},
	},
	{
		ID: "foreign-enters-nothing", Sentence: "No call is made for a process that did not make the environment.",
		Source: "F54, F55", Needs: NeedsStep,
		step: func(s *step) error {
			if s.rec.Kind != machine.Issued {
				return nil
			}
			e, ok := s.after.at("environment", 0)
			if !ok || e.word("process") == 0 {
				return nil
			}
			m := s.rules.At(s.rec.Ref.Machine)
			for i, a := range m.Definition().Events[s.rec.Event].Args {
				if a.Name == "process" && s.rec.Args[i] != e.word("process") {
					return e.fail("%s for process %d", s.call(), s.rec.Args[i])
				}
			}
			return nil
		},
	},
	{
		ID: "retired-is-proven", Sentence: "A fence lets go only of a run that is proven over.",
		Source: "F97, F100, F132", Needs: NeedsStep,
		step: func(s *step) error {
			if s.machine() != "fence" || s.row() != "retire-proven" || s.rec.Kind != machine.Stepped {
				return nil
			}
			f, _ := s.before.at("fence", int(s.rec.Ref.Slot))
			whole := func(b string) bool { return f.is(b, "missing", "complete") }
			if f.is("quiet", "true") || (whole("core") && whole("cpu")) {
				return nil
			}
			return f.fail("retired unproven")
		},
	},
	{
		ID: "closed-is-clean", Sentence: "A lane is closed only with nothing left: no run, no fence with events, no reference, no context.",
		Source: "F65, F121, F139", Needs: NeedsWorld,
		world: func(v *view) error {
			c, ok := v.at("closing", 0)
			if !ok || !c.in("closed") {
				return nil
			}
			e, _ := v.at("environment", 0)
			l, _ := v.at("lane", 0)
			if !e.in("torn down") || !l.in("shut") || l.word("runs") != 0 || l.word("unproven") != 0 {
				return c.fail("closed with environment %q, lane %q, %d runs", e.state(), l.state(), l.word("runs"))
			}
			return v.each("fence", func(f instance) error {
				if !f.in("released") || f.word("core_refs")+f.word("cpu_refs") != 0 {
					return f.fail("closed while the fence is %q with %d waits counted", f.state(), f.word("core_refs")+f.word("cpu_refs"))
				}
				return nil
			})
		},
	},
	{
		ID: "runs-are-counted", Sentence: "The lane counts the runs that are admitted and not finalized.",
		Source: "F78, F154", Needs: NeedsWorld,
		world: func(v *view) error {
			l, ok := v.at("lane", 0)
			n := v.count("run", func(r instance) bool { return !r.in("idle", "finalized") })
			if ok && l.word("runs") != uint64(n) {
				return l.fail("counts %d runs, there are %d", l.word("runs"), n)
			}
			return nil
		},
	},
	{
		ID: "unproven-is-kept", Sentence: "A run that left no evidence of its release is never let go, and admission stays closed.",
		Source: "F69, F132", Needs: NeedsStep,
		step: func(s *step) error {
			return s.before.each("run", func(a instance) error {
				b, _ := s.after.at("run", int(a.ref.Slot))
				if a.in("ambiguous") && (!b.in("ambiguous") || a.ref != b.ref) {
					return b.fail("was ambiguous")
				}
				return nil
			})
		},
	},
}
