package mutate

import (
	"context"
	"fmt"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine/patch"
)

// Fault is a mistake that was made once, or that the sources warn of, as a
// change of these rules.
type Fault struct {
	Name string
	// Source names the clauses that forbid it, What says what was done.
	Source, What string
	// Patches are the change.
	Patches []string
	// In is a model that finds it: the bounds of a lane on a simulated device, as
	// [model.ParseConfig] reads them, or "answers: NAME".
	In string
}

// mutant breaks the rules by the fault.
func (f Fault) mutant(r Rules) (*Mutant, error) {
	var ps []patch.Patch
	for _, text := range f.Patches {
		p, err := patch.Parse(text)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return r.Mutant(ps...)
}

// Find explores by the broken rules and returns the shortest way to what is
// wrong, or nil if the states that Most allows show nothing.
func (f Fault) Find(ctx context.Context, r Rules, most uint64) (*explore.Counterexample, error) {
	m, err := f.mutant(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	sys, err := System(f.In, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	res, err := explore.Search(ctx, sys, explore.Options{MaxStates: most})
	if err != nil || len(res.Findings) == 0 {
		return nil, err
	}
	return &res.Findings[0], nil
}

// answersPrefix begins the name of a model of rules alone.
const answersPrefix = "answers: "

// System makes a model by a mutant's rules: one of rules alone by its name, or
// that of a lane on a simulated device with these bounds.
func System(name string, m *Mutant) (explore.System, error) {
	for _, x := range Models() {
		if answersPrefix+x.Name == name {
			rules := m.Lane
			if x.Above {
				rules = m.Orchestrator
			}
			return x.system(rules, nil)
		}
	}
	c, err := model.ParseConfig(name)
	if err != nil {
		return nil, err
	}
	c.Rules = m.Lane
	return explore.Lane(c)
}

// Faults are the seeded ones.
var Faults = []Fault{
	{
		Name: "a wait on one boundary", Source: "F97, F99",
		What:    "The AICore boundary is taken for the run: the AICPU kernel is at work when its arguments are freed.",
		Patches: []string{`fence/reached-core: do add "cpu = complete"`},
		In:      "runs=1 records expiries=1 polls=1",
	},
	{
		Name: "freed after a timeout", Source: "F100, field case 5",
		What:    "A bounded wait that expires is taken for the end of what was waited for.",
		Patches: []string{`drain/core_wait: outcome timedout as ok`},
		In:      "answers: a run",
	},
	{
		Name: "no record is success", Source: "F106, F166",
		What:    "A run whose record could not be read is certified.",
		Patches: []string{`outcome/no-record: to certified`, `drain/read: then[8].to settle`, `drain/read: then[8].emit set "self.cpu_sync()" "self.settle()"`},
		In:      "answers: a run",
	},
	{
		Name: "a record certifies in an untrusted region", Source: "F5",
		What:    "Bytes that happen to equal the epoch decide.",
		Patches: []string{`outcome/certify: guard drop "arg.trusted"`, `drain/read: then[1].when drop "view.trusted"`, `launch/publish: then[2].with drop "region.published()"`},
		In:      "answers: a run",
	},
	{
		Name: "freed unproven", Source: "F130, F132",
		What:    "A synchronise that expired is taken for the end of the streams.",
		Patches: []string{`drain/core_sync: outcome timedout as ok`},
		In:      "runs=1 expiries=1 spare=1",
	},
	{
		Name: "a failed enqueue is none", Source: "F76, F80, F143",
		What:    "A submission that failed is taken not to have been made: the run is not started, and its arguments are freed.",
		Patches: []string{`launch/submit_core: outcome failed as refused`},
		In:      "runs=2 faults=1 kinds=fail-after calls=SubmitAICore",
	},
	{
		Name: "admission stays open", Source: "F78",
		What:    "After a partial launch the next run is admitted.",
		Patches: []string{`run/broken: then.with drop "lane.partial()"`},
		In:      "answers: a run",
	},
	{
		Name: "a boundary that is not recorded", Source: "F96, F101, F129",
		What:    "A record that failed is taken for one.",
		Patches: []string{`launch/record_core: outcome failed as ok`},
		In:      "runs=1 faults=1 kinds=fail-before calls=RecordEvent",
	},
	{
		Name: "released by any proof", Source: "F138",
		What:    "A wait reference is released by a proof of another stream.",
		Patches: []string{`token/release-other: row drop`},
		In:      "answers: references",
	},
	{
		Name: "another's count", Source: "F138, F139",
		What:    "A release lowers the count of the other boundary.",
		Patches: []string{`token/release: then.with set "fence.drop(boundary, arming)" "fence.drop(cpu_done, arming)"`},
		In:      "answers: references",
	},
	{
		Name: "release on a stale slot", Source: "F140, F141",
		What:    "A discard does not ask whether the reference is stale, and lowers the count of the slot's run.",
		Patches: []string{`token/discard-current: row drop`, `token/discard: then.with add "fence.drop(boundary, arming)"`},
		In:      "answers: references",
	},
	{
		Name: "recorded while a wait is held", Source: "F121, F139, field case 1",
		What:    "The slot's event is recorded again for the next run while a wait on its earlier record is counted.",
		Patches: []string{`fence/retire-held: row drop`, `fence/arm-held: row drop`, `fence/recording-held: row drop`},
		In:      "answers: references without a receipt",
	},
	{
		Name: "a wait before its record", Source: "F137, field case 2",
		What:    "A wait is counted on a boundary that is not recorded yet.",
		Patches: []string{`fence/reserve-core: guard drop "core == recorded || core == complete"`},
		In:      "answers: references without a receipt",
	},
	{
		Name: "a count dropped without proof", Source: "F140",
		What:    "References are released as quiescent without a verified reset or a declared quarantine.",
		Patches: []string{`token/quiesce-quarantine: guard drop`},
		In:      "answers: references",
	},
	{
		Name: "the caller's wait is not counted", Source: "F27, F29",
		What:    "The caller's stream waits for the AICPU boundary, and nothing keeps its event.",
		Patches: []string{`launch/wait_cpu_done: with drop "caller_order.hold()"`},
		In:      "runs=1 caller",
	},
	{
		Name: "fork after the AICPU kernel", Source: "F22, F23",
		What: "The mark that the AICore stream waits for stands behind the AICPU kernel, which waits for AICore.",
		Patches: []string{
			`launch/copy_descriptor: then[0].to "core recorded"`, `launch/copy_descriptor: then[0].emit set "self.record_fork()" "self.submit_cpu()"`,
			`launch/submit_cpu: then[1].to forking`, `launch/submit_cpu: then[1].emit set "self.record_cpu()" "self.record_fork()"`,
			`launch/record_core: then[0].to "core awaited"`, `launch/record_core: then[0].emit set "self.submit_cpu()" "self.record_cpu()"`,
			`launch/record_core: then[1].to "core awaited"`, `launch/record_core: then[1].emit set "self.submit_cpu()" "self.record_cpu()"`,
		},
		In: "runs=1 async",
	},
	{
		Name: "the reset of a borrowed device", Source: "F86, F130",
		What:    "Recovery drains and resets a device that is a caller's.",
		Patches: []string{`recovery/start-borrowed: row drop`},
		In:      "runs=1 borrowed recoveries=1 faults=1 kinds=fail-after calls=SubmitAICore",
	},
	{
		Name: "an unconfirmed reset", Source: "F109, F130",
		What:    "A reset that was not confirmed lets go of what the device may still use.",
		Patches: []string{`recovery/reset: then[0].when drop`},
		In:      "runs=1 recoveries=1 faults=2 kinds=fail-after,unconfirmed",
	},
	{
		Name: "a foreign process", Source: "F54, F55",
		What:    "A process that did not make the environment polls its runs.",
		Patches: []string{`poll/start-foreign: row drop`},
		In:      "runs=1 strangers polls=1",
	},
	{
		Name: "a stale identity", Source: "F122",
		What:    "A handle of a run that is gone waits for the slot's next one.",
		Patches: []string{`drain/start-stale: row drop`},
		In:      "runs=1 strangers",
	},
	{
		Name: "closed over runs", Source: "F93, F161",
		What:    "A close does not ask whether runs are finalized.",
		Patches: []string{`lane/shut-live: row drop`, `closing/start-live: row drop`},
		In:      "runs=1 close",
	},
	{
		Name: "claim and return", Source: "R11, R12",
		What:    "The second caller of a release returns while the first is at it, and the run retires.",
		Patches: []string{`domain/free-freeing: defer drop`, `domain/release-freeing: defer drop`},
		In:      "answers: an orchestrator's run",
	},
	{
		Name: "a fault nobody saw", Source: "F103, F104",
		What:    "The code that only a synchronize brings is dropped: a run whose kernel failed is a success.",
		Patches: []string{`drain/cpu_sync: outcome failed as ok`, `drain/core_sync: outcome failed as ok`},
		In:      "runs=1 faults=1 kinds=kernel-fatal",
	},
	{
		Name: "retired without the lock", Source: "R9",
		What:    "A release is put off to a run that is past looking for those that were.",
		Patches: []string{`resources/retire-stragglers: guard set "false"`},
		In:      "answers: an orchestrator's run",
	},
	{
		Name: "charged to the wrong run", Source: "R1, R4",
		What:    "The pointer to the run being built is not moved on when its graph is done.",
		Patches: []string{`building/start: then[0].with drop "orchestrator.built()"`},
		In:      "answers: an orchestrator's run",
	},
	{
		Name: "two releases at a time", Source: "R11, R22",
		What:    "The lock is not taken for a release.",
		Patches: []string{`domain/free-live: then.with drop "free_lock.take()"`},
		In:      "answers: an orchestrator's run",
	},
	{
		Name: "teardown before the sweep", Source: "R15",
		What:    "The workers are closed while domains are live.",
		Patches: []string{`ending/sweep-domain: row drop`},
		In:      "answers: an orchestrator's run",
	},
	{
		Name: "a second graph", Source: "R4, R19",
		What:    "A run is built before the one before it came to its fence.",
		Patches: []string{`building/start-prior: row drop`, `resources/fence-pending: row drop`},
		In:      "answers: an orchestrator's run",
	},
}
