package invariants_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
	"github.com/runfence/runfence/states"
)

var (
	lanePools         = map[string]int{"slot": 2, "token": 2, "callable": 3, "watched": 4}
	orchestratorPools = map[string]int{"work": 2, "resource": 2, "domain": 3, "task": 2, "endpoint": 2}
)

const (
	core, cpu             = 0, 1 // boundaries
	coreStream, cpuStream = 0, 1 // streams that wait
)

// drives lead a world to where the rule that an invariant catches makes a
// difference.
var drives = map[string]func(r *rig){
	"events-kept-in-use": func(r *rig) {
		r.open(1)
		r.run(0)
		r.reserve(0, core, coreStream, 1)
		r.wait(0)
		r.fire("run", 0, "retire", r.ids(0)...)
	},
	"not-recorded-under-a-wait": func(r *rig) {
		r.open(1)
		r.hold("SubmitCPU")
		r.run(0)
		r.reserve(0, core, coreStream, 1)
		r.resume("SubmitCPU")
	},
	"boundary-by-its-own-proof": func(r *rig) {
		r.open(1)
		r.run(0)
		r.wait(0)
	},
	"quiet-is-proven": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("WaitCPU", ends(machine.Failed))
		r.next("SyncCPU", ends(machine.Failed))
		r.wait(0)
	},
	"timeout-proves-nothing": func(r *rig) {
		r.open(1)
		r.eager(0)
		r.next("WaitTail", ends(machine.TimedOut))
		r.wait(0)
	},
	"fence-stands-for-its-run": func(r *rig) {
		r.open(1)
		r.whole(0)
	},
	"retired-is-proven": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("QueryCPU", value(0))
		r.poll(0)
		r.fire("run", 0, "drained", append(r.ids(0), 0, 0)...)
		r.finalize(0)
	},
	"reset-is-confirmed": func(r *rig) {
		r.open(1)
		r.next("SubmitCPU", ends(machine.Failed))
		r.run(0)
		r.next("ResetDevice", value(0))
		r.recover()
	},

	"tokens-equal-counts": func(r *rig) {
		r.open(1)
		r.run(0)
		r.reserve(0, core, coreStream, 1)
		r.fire("token", 0, "revoke")
	},
	"counts-drop-by-proof": func(r *rig) {
		r.open(1)
		r.run(0)
		r.reserve(0, core, coreStream, 1)
		r.fire("token", 0, "commit")
		r.fire("token", 0, "release", cpuStream)
	},
	"join-ends-by-proof": func(r *rig) {
		r.open(2)
		r.eager(0)
		r.eager(1, 0)
		r.wait(1)
	},
	"caller-held-until-tail": func(r *rig) {
		r.open(1)
		r.eager(0)
		r.next("WaitTail", ends(machine.Failed))
		r.wait(0)
	},
	"drained-is-discharged": func(r *rig) {
		r.open(1)
		r.eager(0)
		r.wait(0)
	},
	"record-before-wait": func(r *rig) {
		r.open(1)
		r.hold("RecordCore")
		r.run(0)
		r.reserve(0, core, coreStream, 1)
	},
	"wait-after-record": func(r *rig) {
		r.open(1)
		r.eager(0)
	},
	"reserved-before-queued": func(r *rig) {
		r.open(2)
		r.eager(0)
		r.eager(1, 0)
	},
	"token-names-one-reference": func(r *rig) {
		r.open(1)
		r.run(0)
		r.reserve(0, core, coreStream, 1)
		r.op("token", 0, "queue")
	},
	"own-tokens-only": func(r *rig) {
		r.open(1)
		r.run(0)
		r.reserve(0, core, coreStream, 1)
		r.recover() // takes the count along
		r.fire("token", 0, "discard", r.ref("fence", 1).Pack())
	},
	"no-wait-cycle": func(r *rig) {
		r.open(1)
		r.run(0)
		f := r.ref("fence", 0).Pack()
		r.fire("join", 0, "plan", append(append([]uint64{f}, r.ids(0)...), r.fact("fence", 0, "arming"), f)...)
		r.fire("join", 0, "reserve")
	},

	"permit-bears-run": func(r *rig) {
		r.open(1)
		r.prepare(0)
		r.op("launch", 0, "start", r.mine(0, r.fact("run", 0, "permit")+1)...)
	},
	"launch-order": func(r *rig) {
		r.open(1)
		r.run(0)
	},
	"fork-before-kernels": func(r *rig) {
		r.open(1)
		r.eager(0)
	},
	"published-before-kernels": func(r *rig) {
		r.open(1)
		r.run(0)
	},
	"capture-is-refused": func(r *rig) {
		r.open(1)
		r.next("CaptureStatus", value(1))
		r.eager(0)
	},
	"not-started-is-proven": func(r *rig) {
		r.open(1)
		r.whole(0)
		r.next("SubmitCore", machine.Result{Outcome: machine.Refused, Accepted: true})
		r.run(0)
	},
	"acceptance-is-both": func(r *rig) {
		r.open(1)
		r.run(0)
	},
	"launch-and-run-agree": func(r *rig) {
		r.open(1)
		r.next("SubmitCore", ends(machine.Failed))
		r.run(0)
	},
	"depth": func(r *rig) {
		r.open(1)
		r.prepare(0)
		r.prepare(1)
		r.hold("CurrentContext")
		r.launch(1) // it is let in, and another is faster
		r.launch(0)
		r.resume("CurrentContext", value(ourContext))
	},
	"prepare-submits-nothing": func(r *rig) {
		r.open(1)
		r.prepare(0)
	},
	"refused-by-its-marker": func(r *rig) {
		r.open(1)
		r.next("PrepareRun", ends(machine.Failed))
		r.next("RollBack", value(12345))
		r.prepare(0)
	},

	"partial-closes-admission": func(r *rig) {
		r.open(1)
		r.next("SubmitCore", ends(machine.Failed))
		r.run(0)
	},
	"closed-admits-nothing": func(r *rig) {
		r.open(1)
		r.whole(0)
		r.prepare(0)
		r.hold("CurrentContext")
		r.launch(0)
		r.op("health", 0, "notice", 0, 10)
		r.resume("CurrentContext", value(ourContext))
	},
	"runs-are-counted": func(r *rig) {
		r.open(1)
		r.next("PrepareRun", ends(machine.Refused))
		r.prepare(0)
	},
	"unproven-is-kept": func(r *rig) {
		r.open(1)
		r.next("PrepareRun", ends(machine.Failed))
		r.next("RollBack", value(0))
		r.prepare(0)
		r.recover()
	},
	"streams-bound-at-launch": func(r *rig) {
		r.open(1)
		r.next("MakeEvents", ends(machine.Failed))
		r.run(0)
	},
	"launch-code-kept": func(r *rig) {
		r.open(1)
		r.next("SubmitCPU", ends(machine.Failed))
		r.run(0)
		r.wait(0)
	},
	"finalized-leaves-nothing": func(r *rig) {
		r.open(1)
		r.whole(0)
	},

	"both-boundaries": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("WaitCPU", ends(machine.Failed))
		r.wait(0)
	},
	"certified-when-complete": func(r *rig) {
		r.open(1)
		r.run(0)
		r.fire("outcome", 0, "decide", 0, 1, 1, 1, 1)
	},
	"untrusted-never-certifies": func(r *rig) {
		r.open(1)
		r.run(0)
		r.fire("region", 0, "forget")
		r.wait(0)
	},
	"no-record-certifies-nothing": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("ReadRecord", value(0))
		r.wait(0)
	},
	"own-record-only": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("ReadRecord", value(12345))
		r.wait(0)
	},
	"diagnosis-stands": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("ReadRecord", machine.Result{Value: r.fact("run", 0, "run_epoch"), Codes: machine.Codes{Code: 1}})
		r.wait(0)
	},
	"verdict-is-the-outcome": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("ReadRecord", value(0))
		r.next("SyncCPU", ends(machine.Failed))
		r.wait(0)
	},
	"partial-never-succeeds": func(r *rig) {
		r.open(1)
		r.next("SubmitCPU", ends(machine.Failed))
		r.run(0)
		r.wait(0)
	},
	"verdict-never-changes": func(r *rig) {
		r.open(2)
		r.run(0)
		r.wait(0)
		r.next("SubmitCPU", ends(machine.Failed))
		r.run(1)
		r.recover()
	},

	"initialised-by-publication": func(r *rig) {
		r.open(1)
		r.next("PublishRegion", ends(machine.Refused))
		r.run(0)
	},
	"source-kept": func(r *rig) {
		r.open(1)
		r.next("PublishRegion", ends(machine.Failed))
		r.run(0)
	},

	"notice-only-refuses": func(r *rig) {
		r.open(1)
		r.run(0)
		r.op("health", 0, "notice", 0, 10)
	},
	"only-a-match-suspects": func(r *rig) {
		r.open(2)
		r.run(0)
		r.run(1) // four streams, and room for three
		r.op("health", 0, "notice", 0, 99)
	},
	"suspicion-ends-by-reset": func(r *rig) {
		r.open(1)
		r.run(0)
		r.op("health", 0, "notice", 0, 10)
		r.next("ResetDevice", value(0))
		r.recover()
	},
	"borrowed-never-resets": func(r *rig) {
		r.borrow(5)
		r.run(0)
		r.recover()
	},

	"identity-is-whole": func(r *rig) { r.borrow(0) },
	"identity-until-teardown": func(r *rig) {
		r.open(1)
		r.next("Teardown", ends(machine.Failed))
		r.close()
	},
	"foreign-enters-nothing": func(r *rig) {
		r.open(1)
		r.run(0)
		args := r.mine(0)
		args[0] = ourProcess + 1
		r.op("poll", 0, "start", args...)
	},
	"wrong-context-does-nothing": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("CurrentContext", value(ourContext+1))
		r.poll(0)
	},
	"claimed-in-context": func(r *rig) {
		r.open(1)
		r.next("CurrentContext", value(ourContext+1))
		r.close()
	},
	"quarantine-keeps": func(r *rig) {
		r.open(1)
		r.hold("CurrentContext")
		r.close()
		r.fire("lane", 0, "quarantine")
		r.resume("CurrentContext", value(ourContext))
	},
	"closed-is-clean": func(r *rig) {
		r.open(1)
		r.next("Teardown", ends(machine.Failed))
		r.close()
	},
	"freed-when-over": func(r *rig) {
		r.open(1)
		r.prepare(0)
		r.op("lane", 0, "shut")
	},

	"stale-changes-nothing": func(r *rig) {
		r.open(1)
		r.run(0)
		args := r.mine(0)
		args[1]++
		r.op("poll", 0, "start", args...)
	},
	"poll-says-what-is": func(r *rig) {
		r.open(1)
		r.run(0)
		r.next("QueryCPU", value(0))
		r.poll(0)
	},

	"latch-never-changes": func(r *rig) {
		r.fire("latch", 0, "claim", 0)
		r.fire("latch", 0, "begin")
		r.fire("latch", 0, "fail")
	},
	"again-by-cleanup-proof": func(r *rig) {
		r.fire("latch", 0, "claim", 0)
		r.fire("latch", 0, "begin")
		r.fire("latch", 0, "succeed")
		r.fire("latch", 0, "finalise", 0)
		r.fire("latch", 0, "begin")
	},
	"occupancy-is-new": func(r *rig) {
		r.worker()
		r.register(5)
	},
	"leaves-by-its-occupancy": func(r *rig) {
		r.worker()
		r.register(5)
		r.unregister(0, 999)
	},
	"one-registration-at-a-time": func(r *rig) {
		r.worker()
		r.register(5)
		r.register(5)
	},
	"shared-image-stays": func(r *rig) {
		r.worker()
		r.register(5)
		r.register(5)
		r.unregister(1, r.fact("callable", 1, "occupancy"))
	},
	"registered-is-uploaded": func(r *rig) {
		r.worker()
		r.next("Upload", ends(machine.Failed))
		r.register(5)
	},
	"packet-checked-first": func(r *rig) { r.fire("invocation", 0, "check", 1, 0, 5, 6) },
	"view-dropped-first": func(r *rig) {
		r.fire("invocation", 0, "check", 1, 1, 5, 6)
		r.fire("invocation", 0, "store")
		r.fire("invocation", 0, "lend")
		r.fire("invocation", 0, "give_back")
	},

	"one-building": func(r *rig) {
		r.build()
		r.resume("Build")
	},
	"one-run-at-a-time": func(r *rig) {
		r.build()
		r.resume("Build")
		r.build()
	},
	"charged-to-the-building": func(r *rig) {
		r.build()
		r.resume("Build")
		r.fire("resource", 0, "charge", 0, 8)
	},
	"owner-is-kept": func(r *rig) {
		r.build()
		r.op("domain", 0, "allocate", 2)
		r.resume("Build")
		r.op("resources", 0, "fence")
	},
	"nothing-stranded": func(r *rig) {
		r.build()
		r.fire("resource", 0, "charge", 0, 8)
		r.hold("AllocateDomain")
		r.op("domain", 0, "allocate", 2)
		r.resume("Build")
		r.hold("ReleaseResource")
		r.op("resources", 0, "fence")
		r.resume("AllocateDomain") // it is in no list of the run's
		r.op("domain", 0, "release")
		r.resume("ReleaseResource")
	},
	"one-release-under-way": func(r *rig) {
		r.build()
		r.op("domain", 0, "allocate", 2)
		r.resume("Build")
		r.op("resources", 0, "fence")
	},
	"one-release": func(r *rig) {
		r.build()
		r.op("domain", 0, "allocate", 2)
		r.resume("Build")
		r.next("ReleaseDomain", ends(machine.Failed))
		r.op("resources", 0, "fence")
	},
	"freed-is-executed": func(r *rig) {
		r.build()
		r.op("domain", 0, "allocate", 2)
		r.resume("Build")
		r.next("ReleaseDomain", ends(machine.Failed))
		r.op("resources", 0, "fence")
	},
	"lives-until-the-fence": func(r *rig) {
		r.build()
		r.op("domain", 0, "allocate", 2)
		r.resume("Build")
		r.op("domain", 0, "release")
	},
	"retired-owns-nothing": func(r *rig) {
		r.build()
		r.fire("resource", 0, "charge", 0, 8)
		r.resume("Build")
		r.op("resources", 0, "fence")
	},
	"tasks-are-counted": func(r *rig) {
		r.build()
		r.fire("task", 0, "add", 0)
		r.resume("Build")
		r.op("task", 0, "done", 0, 0)
	},
	"first-error-wins": func(r *rig) {
		r.build()
		r.fire("task", 0, "add", 0)
		r.fire("task", 1, "add", 0)
		r.resume("Build")
		r.op("task", 0, "done", 1, 7)
		r.op("task", 1, "done", 1, 8)
	},
	"endpoint-told": func(r *rig) {
		r.build()
		r.fire("endpoint", 0, "open")
		r.fire("task", 0, "add_on", r.w.Ref(r.w.Rules().Machine("endpoint").ID(), 0).Pack())
		r.op("endpoint", 0, "fail", 7)
		r.resume("Build")
	},
	"teardown-last": func(r *rig) {
		r.build()
		r.hold("AllocateDomain")
		r.op("domain", 0, "allocate", 2)
		r.resume("Build")
		r.op("resources", 0, "fence")
		r.resume("AllocateDomain")
		r.op("ending", 0, "start")
	},
	"residue-is-told": func(r *rig) {
		r.build()
		r.fire("resource", 0, "charge", 0, 8)
		r.resume("Build")
		r.next("ReleaseResource", ends(machine.Failed))
		r.op("resources", 0, "fence")
		r.op("ending", 0, "start")
	},
}

// changedDefs makes a change, given as text, in definitions.
func changedDefs(t *testing.T, defs []*machine.Definition, change string) []*machine.Definition {
	p, err := patch.Parse(change)
	require.NoError(t, err)
	defs, err = patch.Apply(defs, p)
	require.NoError(t, err)
	return defs
}

// drive plays the drive of an invariant under rules that a change was made in.
func drive(t *testing.T, in *invariants.Invariant, change string) []*invariants.Finding {
	defs, pools := states.Definitions(), lanePools
	if in.Of == invariants.OfOrchestrator {
		defs, pools = states.OrchestratorDefinitions(), orchestratorPools
	}
	if in.ID == "only-a-match-suspects" {
		pools = map[string]int{"slot": 2, "token": 2, "callable": 3, "watched": 3}
	}
	if change != "" {
		defs = changedDefs(t, defs, change)
	}
	r := newRig(t, defs, pools)
	drives[in.ID](r)
	return r.found
}

// Each invariant notices the change of a rule that the catalogue names for it,
// and is the only one that does at that point; without the change nothing is
// wrong.
func TestEachInvariantCatches(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range invariants.All() {
		t.Run(in.ID, func(t *testing.T) {
			require.False(t, seen[in.ID], "two of this id")
			seen[in.ID] = true
			require.NotEmpty(t, in.Sentence)
			require.NotEmpty(t, in.Source)
			if in.Held != "" {
				require.Zero(t, in.Catches)
				require.NotContains(t, drives, in.ID)
				return
			}
			if in.Needs == invariants.NeedsDevice {
				require.NotContains(t, drives, in.ID)
				return // see TestDeviceInvariantCatches
			}
			require.Contains(t, drives, in.ID)
			for _, f := range drive(t, &in, "") {
				t.Errorf("with the rules as they are: %v", f)
			}
			found := drive(t, &in, in.Catches)
			require.NotEmpty(t, found, "%s is not noticed", in.Catches)
			for _, f := range found {
				require.Equal(t, in.ID, f.Invariant.ID, "%s: %v", in.Catches, f)
			}
		})
	}
}

// A launch that broke off ahead of both kernels has no boundary to ask: it is
// complete for a poll only when its streams are empty.
func TestPollOfALaunchWithoutBoundaries(t *testing.T) {
	for stream, complete := range map[string]bool{"QueryCPUStream": false, "QueryCoreStream": false, "": true} {
		r := newRig(t, states.Definitions(), lanePools)
		r.open(1)
		r.next("PublishRegion", ends(machine.Failed))
		r.run(0)
		r.next(stream, value(0))
		r.poll(0)
		for _, f := range r.found {
			t.Errorf("%q is not empty: %v", stream, f)
		}
		require.Equal(t, "partial", r.state("run", 0))
		require.Equal(t, complete, r.fact("poll", 0, "pending") == 0)
	}
}
