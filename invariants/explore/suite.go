package explore

// Model is a named set of bounds to be explored.
type Model struct {
	Name string
	// About says what it is for.
	About  string
	Bounds string // as [model.ParseConfig] reads them
	// Long models are left to make explore.
	Long bool
}

// Models are what is explored of the lifecycles of a lane. Each is a part of
// what a host can do, with as much of the rest as can be visited whole.
var Models = []Model{
	{Name: "plain", About: "two runs, one after the other", Bounds: "runs=2 polls=1 spare=1 expiries=1"},
	{Name: "plain-fault", About: "any call, kernel or notice goes wrong once; recovery", Bounds: "runs=2 polls=1 spare=2 expiries=1 recoveries=1 faults=1"},
	{Name: "records", About: "the kernels report, and runs are certified without a synchronize", Bounds: "runs=2 records polls=1 spare=1 faults=1 recoveries=1"},
	{Name: "caller", About: "runs ordered against a caller's stream, on a borrowed device", Bounds: "runs=2 caller async borrowed spare=1 polls=1 recoveries=1 faults=1"},
	{Name: "opening", About: "opening, closing and giving up, each at any time", Bounds: "opening runs=1 close detach spare=3 faults=1"},
	{Name: "strangers", About: "a foreign process and stale identities try everything", Bounds: "runs=2 slots=2 depth=2 strangers quarantine close spare=1"},
	{Name: "threads", About: "two operations at a time, poll beside wait, close beside launch", Bounds: "runs=1 threads=2 polls=1 close spare=1 expiries=1"},
	{Name: "slots", About: "two slots and two threads", Bounds: "runs=2 slots=2 threads=2 polls=1"},
	{Name: "joined", About: "two runs on the device, the second behind the first", Bounds: "runs=2 slots=2 depth=2 submit caller expiries=1 polls=1 spare=1"},
	{Name: "tokens", About: "wait references across slots", Bounds: "runs=2 slots=2 depth=2 tokens=1 spare=3"},
	{Name: "joined-fault", About: "the same, and anything goes wrong once", Bounds: "runs=2 slots=2 depth=2 submit caller spare=1 faults=1", Long: true},
	{Name: "joined-recovery", About: "and the host asks for recovery", Bounds: "runs=2 slots=2 depth=2 submit spare=2 recoveries=1 faults=1", Long: true},
	{Name: "threads-fault", About: "two operations at a time, and anything goes wrong once", Bounds: "runs=1 threads=2 polls=1 recoveries=1 spare=1 faults=1", Long: true},
	{Name: "tokens-fault", About: "wait references, and anything goes wrong once", Bounds: "runs=2 slots=2 depth=2 tokens=1 spare=3 recoveries=1 faults=1", Long: true},
	{Name: "two-faults", About: "anything goes wrong twice", Bounds: "runs=1 spare=2 recoveries=2 expiries=1 faults=2", Long: true},
	{Name: "wide", About: "two slots, two operations at a time, and anything goes wrong once", Bounds: "runs=2 slots=2 depth=2 threads=2 faults=1 spare=1", Long: true},
	{Name: "three-runs", About: "a slot is used again beside one that is in use", Bounds: "runs=3 slots=2 depth=2 submit caller spare=1", Long: true},
}
