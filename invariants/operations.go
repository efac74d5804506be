package invariants

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/machine"
)

// What holds of every operation of a host's.
var ofOperations = []Invariant{
	{
		ID: "refusal-changes-nothing", Sentence: "A refused event changes nothing.",
		Source: "F59, F122, F141", Needs: NeedsStep,
		Held: "The engine takes a refused step back; no rule has a say in it.",
		step: func(n *names) stepPredicate {
			n.refused()
			return func(s step) error {
				for id := range s.after.Rules().NumMachines() {
					if m := machine.MachineID(id); !s.before.Same(s.after, m) {
						return fmt.Errorf("%s changed by a refusal of %s", s.after.Rules().At(m).Name(), s.after.Rules().RefName(s.rec.Ref))
					}
				}
				return nil
			}
		},
	},
	{
		ID: "stale-changes-nothing", Sentence: "Whoever bears the identity of another run than the slot's reads and changes nothing of it.",
		Source: "F122, F138", Needs: NeedsStep,
		Catches: `poll/start-stale: row drop`,
		step: func(n *names) stepPredicate {
			run, fence := n.kind("run"), n.kind("fence")
			its, of := run.identity(), fence.identity()
			// begin and arm make an occupant; a token and a join name another slot's.
			bearing := n.look(taken, n.rows(func(m *machine.Machine, id machine.RowID) int {
				d := m.Definition()
				e := d.Events[m.RowEvent(id)]
				switch d.Name + "." + e.Name {
				case "run.begin", "fence.arm":
					return -1
				}
				if d.Name == "token" || d.Name == "join" || !run.there || d.Pool != run.n.Definition().Pool {
					return -1
				}
				return slices.IndexFunc(e.Args, func(a machine.Fact) bool { return a.Name == "run_epoch" })
			}))
			return func(s step) error {
				i := bearing.at(s.rec)
				bears, have := [3]uint64(s.rec.Args[i:i+3]), its.of(run.at(s.before, s.slot()))
				if s.rec.Ref.Machine == fence.id {
					// Within the step that arms it, the fence is asked as it is then.
					if have = of.of(fence.at(s.before, s.slot())); have == [3]uint64{} {
						have = of.of(fence.at(s.after, s.slot()))
					}
				}
				if bears != have {
					return fmt.Errorf("%s: takes an event for another run than its own", s.after.Rules().RefName(s.rec.Ref))
				}
				return nil
			}
		},
	},
	{
		ID: "poll-says-what-is", Sentence: "A poll says complete only of a run whose recorded boundaries have completed and whose caller's wait is over; without a boundary to ask, or with a kernel whose boundary is not recorded, only if both streams are empty.",
		Source: "F28, F40, F97, F98, F119, F130", Needs: NeedsStep,
		Catches: `poll/cpu: then[4].do drop "pending = true"`,
		step: func(n *names) stepPredicate {
			poll, fence, caller := n.kind("poll"), n.kind("fence"), n.maybe("caller_order")
			pending, quiet := poll.is("pending", "true"), fence.is("quiet", "true")
			core, cpu := fence.is("core", "missing", "complete"), fence.is("cpu", "missing", "complete")
			half := [2]test{fence.is("core", "submitted"), fence.is("cpu", "submitted")}
			none := [2]test{fence.is("core", "missing"), fence.is("cpu", "missing")}
			tail, free := caller.is("tail", "on_stream"), caller.is("held", "no_wait")
			streams, last := n.answered("QueryCPUStream", "QueryCoreStream"), n.calling("QueryCoreStream")
			return func(s step) error {
				if !s.answerOf(streams) || s.rec.Result.Outcome != machine.OK || s.after.Rules().ReasonAt(s.rec.Reason) != "" || pending.holds(poll.at(s.after, s.slot())) {
					return nil
				}
				f := fence.at(s.before, s.slot())
				if quiet.holds(f) {
					return nil // synchronised since it was asked
				}
				unfenced := half[0].holds(f) || half[1].holds(f) || none[0].holds(f) && none[1].holds(f)
				switch {
				case !s.answerOf(last) && !(unfenced && s.rec.Result.Value != 1):
					return nil // it goes on
				case unfenced && s.rec.Result.Value != 1:
					return poll.fail(s.after, s.slot(), "says complete of a run without boundaries, with a stream that is not empty")
				case !unfenced && !(core.holds(f) && cpu.holds(f)):
					return poll.fail(s.after, s.slot(), "says complete of a run with a boundary that is not")
				case caller.there && tail.holds(caller.at(s.before, s.slot())) && !free.holds(caller.at(s.before, s.slot())):
					return poll.fail(s.after, s.slot(), "says complete while the caller's wait is not over")
				}
				return nil
			}
		},
	},
}
