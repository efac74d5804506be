package invariants

import (
	"fmt"

	"github.com/runfence/runfence/machine"
)

// What the device's notices may do, and what ends a device generation.
var ofHealth = []Invariant{
	{
		ID: "notice-only-refuses", Sentence: "A notice changes no run, and frees, drains and resets nothing: it can only close admission.",
		Source: "F108, F114", Needs: NeedsStep,
		Catches: `health/match: then.with add "lane.fault()"`,
		step: func(n *names) stepPredicate {
			health, watched := n.kind("health"), n.maybe("watched")
			n.rooted(health)
			return func(s step) error {
				at := s.rec.Ref.Machine
				switch {
				case s.rec.Kind == machine.Issued:
					return fmt.Errorf("a notice led to the call %s", s.after.Rules().CallName(s.rec.Call))
				case s.rec.Kind == machine.Stepped && at != health.id && !(watched.there && at == watched.id):
					return fmt.Errorf("a notice changed %s", s.after.Rules().RefName(s.rec.Ref))
				}
				return nil
			}
		},
	},
	{
		ID: "only-a-match-suspects", Sentence: "Only a notice that names this device and a stream of this generation closes admission; one that is unattributed, undecided, lost or dropped does not.",
		Source: "F109, F110, F115, F116", Needs: NeedsStep,
		Catches: `health/undecided: to suspect`,
		step: func(n *names) stepPredicate {
			health, watched := n.kind("health"), n.kind("watched")
			trusted, suspect := health.in("trusted"), health.in("suspect")
			device, named, stream, generation := health.fact("device"), health.fact("named"), health.fact("stream"), health.fact("generation")
			of, kept := watched.fact("generation"), watched.fact("stream")
			n.moved(health)
			return func(s step) error {
				a := health.at(s.before, 0)
				if !trusted.has(a) || !suspect.has(health.at(s.after, 0)) {
					return nil
				}
				for slot := range watched.count(s.before) {
					k := watched.at(s.before, slot)
					if of.of(k) == generation.of(a) && kept.of(k) == stream.of(a) && device.of(a) == named.of(a) {
						return nil
					}
				}
				return health.fail(s.after, 0, "is suspect by a notice that names no stream of its own")
			}
		},
	},
	{
		ID: "suspicion-ends-by-reset", Sentence: "A device generation ends, and admission returns after a matched notice, only by a reset that confirmed.",
		Source: "F112, F113", Needs: NeedsStep,
		Catches: `health/not-retired: to trusted`,
		step: func(n *names) stepPredicate {
			health := n.kind("health")
			suspect, generation := health.in("suspect"), health.fact("generation")
			reset := n.eventRows(health, "reset")
			n.moved(health)
			return func(s step) error {
				a, b := health.at(s.before, 0), health.at(s.after, 0)
				ended := suspect.has(a) && !suspect.has(b) || generation.of(a) != 0 && generation.of(a) != generation.of(b)
				if ended && !(reset.has(s.rec) && s.rec.Args[0] == 1) {
					return health.fail(s.after, 0, "takes the device for a new one without a confirmed reset")
				}
				return nil
			}
		},
	},
	{
		ID: "borrowed-never-resets", Sentence: "A borrowed device is never reset, and never drained device-wide.",
		Source: "F15, F36", Needs: NeedsStep,
		Catches: `recovery/start-borrowed: row drop`,
		step: func(n *names) stepPredicate {
			env := n.kind("environment")
			borrowed := env.is("policy", "borrowed")
			calls := n.issued("ResetDevice", "DrainDevice")
			return func(s step) error {
				if s.rec.Kind == machine.Issued && calls.has(s.rec) && borrowed.holds(env.at(s.after, 0)) {
					return env.fail(s.after, 0, "the call %s on a borrowed device", s.after.Rules().CallName(s.rec.Call))
				}
				return nil
			}
		},
	},
}
