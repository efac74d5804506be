package invariants

import (
	"github.com/runfence/runfence/machine"
)

// What a native handle has besides its lane: a mode, callables, invocations.
var ofWorker = []Invariant{
	{
		ID: "latch-never-changes", Sentence: "An execution mode that is claimed never changes, whatever fails or is finalised.",
		Source: "F89, F92–F94", Needs: NeedsStep,
		Catches: `latch/fail: to unclaimed`,
		step: func(n *names) stepPredicate {
			latch := n.kind("latch")
			unclaimed := latch.in("unclaimed")
			n.moved(latch)
			return func(s step) error {
				a, b := latch.at(s.before, 0), latch.at(s.after, 0)
				if !unclaimed.has(a) && a.state != b.state {
					return latch.fail(s.after, 0, "was %s and is %s", latch.show(a), latch.show(b))
				}
				return nil
			}
		},
	},
	{
		ID: "again-by-cleanup-proof", Sentence: "A handle that was finalised is initialised again only in PROGRAM mode and with the proof that its cleanup released everything, which is used up.",
		Source: "F91, F93", Needs: NeedsStep,
		Catches: `latch/begin-again: guard drop "retired"`,
		step: func(n *names) stepPredicate {
			latch := n.kind("latch")
			finalised, initialising := latch.is("phase", "finalised"), latch.is("phase", "initialising")
			retired, program := latch.is("retired", "true"), latch.in("program")
			n.moved(latch)
			return func(s step) error {
				a, b := latch.at(s.before, 0), latch.at(s.after, 0)
				if finalised.holds(a) && initialising.holds(b) && !(retired.holds(a) && program.has(a) && !retired.holds(b)) {
					return latch.fail(s.after, 0, "is initialised again without a cleanup proof")
				}
				return nil
			}
		},
	},
	{
		ID: "occupancy-is-new", Sentence: "Each registration of a callable has an occupancy that none other has, from its claim until its id is free again.",
		Source: "F84, F87, F146", Needs: NeedsStep,
		Catches: `callable/claim: do drop "occupancy = fresh()"`,
		step: func(n *names) stepPredicate {
			callable := n.kind("callable")
			free, occupancy, image := callable.in("free"), callable.fact("occupancy"), callable.fact("image")
			n.moved(callable)
			return func(s step) error {
				a, b := callable.at(s.before, s.slot()), callable.at(s.after, s.slot())
				switch {
				case free.has(b):
					return nil
				case !free.has(a):
					if occupancy.of(a) != occupancy.of(b) || image.of(a) != image.of(b) {
						return callable.fail(s.after, s.slot(), "changed its occupancy while it is %s", callable.show(b))
					}
					return nil
				case occupancy.of(b) == 0:
					return callable.fail(s.after, s.slot(), "is taken without an occupancy")
				}
				for i := range callable.count(s.after) {
					if i != s.slot() && occupancy.of(callable.at(s.after, i)) == occupancy.of(b) {
						return callable.fail(s.after, s.slot(), "has the occupancy of another")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "leaves-by-its-occupancy", Sentence: "A callable leaves only when asked for by its present occupancy: a bare id, used again since, does nothing.",
		Source: "F87, F146", Needs: NeedsStep,
		Catches: `registry/leave-stale: guard set "arg.occupancy == none"`,
		step: func(n *names) stepPredicate {
			callable, registry := n.kind("callable"), n.kind("registry")
			registered, leaving, occupancy := callable.in("registered"), callable.in("leaving"), callable.fact("occupancy")
			leave := n.eventRows(registry, "leave")
			n.moved(callable)
			return func(s step) error {
				a := callable.at(s.before, s.slot())
				if !registered.has(a) || !leaving.has(callable.at(s.after, s.slot())) || s.vouched() {
					return nil
				}
				if l := s.lead(); !leave.has(l) || l.Args[0] != occupancy.of(a) {
					return callable.fail(s.after, s.slot(), "leaves for another occupancy than its own")
				}
				return nil
			}
		},
	},
	{
		ID: "one-registration-at-a-time", Sentence: "One callable at most is being registered or unregistered, and only while the registry is at it.",
		Source: "F88", Needs: NeedsStep,
		Catches: `registry/upload-shared: then.with drop "slot.uploaded()"`,
		step: func(n *names) stepPredicate {
			callable, registry := n.kind("callable"), n.kind("registry")
			between, at := callable.in("claimed", "leaving"), registry.in("uploading", "removing")
			n.moved(registry)
			return func(s step) error {
				most := 0
				if at.has(registry.at(s.after, 0)) {
					most = 1
				}
				for i := range callable.count(s.after) {
					if between.has(callable.at(s.after, i)) {
						if most--; most < 0 {
							return callable.fail(s.after, i, "is %s, and the registry is %s", callable.show(callable.at(s.after, i)), registry.show(registry.at(s.after, 0)))
						}
					}
				}
				return nil
			}
		},
	},
	{
		ID: "shared-image-stays", Sentence: "An image is taken off the device only when no other callable has it.",
		Source: "F84, F85", Needs: NeedsStep,
		Catches: `registry/remove-shared: guard set "view.shared_still && !automatic"`,
		step: func(n *names) stepPredicate {
			callable := n.kind("callable")
			registered, image := callable.in("registered"), callable.fact("image")
			remove := n.issued("Remove")
			return func(s step) error {
				if s.rec.Kind != machine.Issued || !remove.has(s.rec) {
					return nil
				}
				for i := range callable.count(s.after) {
					if c := callable.at(s.after, i); registered.has(c) && image.of(c) == s.rec.CallArgs[0] {
						return callable.fail(s.after, i, "has an image that is taken off the device")
					}
				}
				return nil
			}
		},
	},
	{
		ID: "registered-is-uploaded", Sentence: "A callable may be invoked only when its image is on the device.",
		Source: "F84, F86", Needs: NeedsStep,
		Catches: `registry/upload: then[1].with set "slot.unclaim()" "slot.uploaded()"`,
		step: func(n *names) stepPredicate {
			callable := n.kind("callable")
			n.kind("registry")
			claimed, registered, uploaded, image := callable.in("claimed"), callable.in("registered"), callable.is("uploaded", "true"), callable.fact("image")
			upload := n.calling("Upload")
			n.moved(callable)
			return func(s step) error {
				a, b := callable.at(s.before, s.slot()), callable.at(s.after, s.slot())
				if !claimed.has(a) || !registered.has(b) || s.vouched() || s.answerOf(upload) && s.lead().Result.Outcome == machine.OK {
					return nil
				}
				for i := range callable.count(s.before) {
					if c := callable.at(s.before, i); uploaded.holds(c) && image.of(c) == image.of(b) {
						return nil // shared
					}
				}
				return callable.fail(s.after, s.slot(), "is registered, and its image is not on the device")
			}
		},
	},
	{
		ID: "packet-checked-first", Sentence: "Storage is made only of a packet that was checked whole, on a transport that permits it: there is no falling back to values that were not validated.",
		Source: "F147, F149, F153", Needs: NeedsStep,
		Catches: `invocation/invalid: guard drop "!arg.valid"`,
		step: func(n *names) stepPredicate {
			invocation := n.kind("invocation")
			none, checked, stored, lent := invocation.in("none"), invocation.in("checked"), invocation.in("stored"), invocation.in("lent")
			check := n.eventRows(invocation, "check")
			n.moved(invocation)
			return func(s step) error {
				a, b := invocation.at(s.before, s.slot()), invocation.at(s.after, s.slot())
				switch {
				case none.has(a) && checked.has(b):
					if !check.has(s.rec) || s.rec.Args[0] == 0 || s.rec.Args[1] == 0 {
						return invocation.fail(s.after, s.slot(), "takes a packet that was not validated")
					}
				case none.has(a) && !none.has(b), checked.has(a) && lent.has(b), stored.has(b) && !checked.has(a) && !stored.has(a) && !lent.has(a):
					return invocation.fail(s.after, s.slot(), "was %s and is %s", invocation.show(a), invocation.show(b))
				}
				return nil
			}
		},
	},
	{
		ID: "view-dropped-first", Sentence: "Argument storage is cleared only when orchestration's view of it has been dropped.",
		Source: "F148", Needs: NeedsStep,
		Catches: `invocation/give-back: to none`,
		step: func(n *names) stepPredicate {
			invocation := n.kind("invocation")
			lent, may := invocation.in("lent"), invocation.in("lent", "stored")
			n.moved(invocation)
			return func(s step) error {
				if b := invocation.at(s.after, s.slot()); lent.has(invocation.at(s.before, s.slot())) && !may.has(b) {
					return invocation.fail(s.after, s.slot(), "was lent and is %s", invocation.show(b))
				}
				return nil
			}
		},
	},
}
