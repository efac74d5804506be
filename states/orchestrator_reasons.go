package states

import "github.com/runfence/runfence/machine"

// Reasons of an orchestrator.
const (
	// ErrOrchestratorClosed: it was closed, or is being closed (R25).
	ErrOrchestratorClosed machine.Reason = "the orchestrator takes no run any more"
	// ErrBuilding: the run's graph is still being built.
	ErrBuilding machine.Reason = "a run is being built"
	// ErrNestedSubmit: a submit from inside of a build, which would wait for
	// itself (R4; the source blocks).
	ErrNestedSubmit machine.Reason = "a submit from inside of a build"
	// ErrPriorRun: a run before it has not come to its fence (R19).
	ErrPriorRun machine.Reason = "a prior run is not drained"
	// ErrTooManyRuns: no place for another run is free.
	ErrTooManyRuns machine.Reason = "as many runs as there are places"
	// ErrBuildFailed: the host's code that builds the graph failed or panicked.
	ErrBuildFailed machine.Reason = "the run's graph could not be built"
	// ErrNotBuilding: there is no run to charge to (R3).
	ErrNotBuilding machine.Reason = "only while a run's graph is being built"
	// ErrNoRun: there is no such run.
	ErrNoRun machine.Reason = "no run"
	// ErrTasksPending: a run with a task under way has not come to its fence (R2).
	ErrTasksPending machine.Reason = "tasks of the run are pending"
	// ErrTaskFailed: a task of the run failed, the first of those that did (R20).
	ErrTaskFailed machine.Reason = "a task of the run failed"
	// ErrTaskOver: the task reported its end already.
	ErrTaskOver machine.Reason = "the task is over"
	// ErrEndpointFailed: the endpoint failed, and carries out nothing more (R20).
	ErrEndpointFailed machine.Reason = "the endpoint failed"
	// ErrRunWait: a bounded wait for a run expired, and may be made again.
	ErrRunWait machine.Reason = "the wait for the run expired"
	// ErrDuplicate: the object is charged to a run already (R2).
	ErrDuplicate machine.Reason = "the object is charged already"
	// ErrPlaces: as many objects, domains or tasks as there are places.
	ErrPlaces machine.Reason = "no place for another"
	// ErrResourceRelease: an object could not be given back. It is not tried again.
	ErrResourceRelease machine.Reason = "the object could not be released"
	// ErrGone: it was given back, and its place is being made free.
	ErrGone machine.Reason = "given back and gone"
	// ErrOwned: it was given back or is over, but its run, or a close, has still
	// to come by; its place is not made free yet.
	ErrOwned machine.Reason = "its run or a close has still to come by"
	// ErrDomainRanks: a domain of no ranks.
	ErrDomainRanks machine.Reason = "a domain has ranks"
	// ErrLevel: communication domains need level 3 (R3).
	ErrLevel machine.Reason = "domains need an orchestrator of level 3"
	// ErrDomainAllocate: the domain could not be allocated.
	ErrDomainAllocate machine.Reason = "the domain could not be allocated"
	// ErrDomainRelease: the domain's one release failed, now or before (R14).
	ErrDomainRelease machine.Reason = "the domain could not be released"
	// ErrCloseBudget: accepted runs were not over within the close's budget. No
	// teardown was attempted; closing again goes on (R16).
	ErrCloseBudget machine.Reason = "the budget of the close is spent"
	// ErrResidue: closed, but something could not be released (R14).
	ErrResidue machine.Reason = "closed with residue"
)
