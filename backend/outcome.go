package backend

import "github.com/runfence/runfence/machine"

// Outcome is the class of answer that a call gives, as the rules branch on it.
// A backend needs no more of the engine than these names.
type Outcome = machine.Outcome

// The outcome classes; see [machine.Outcome].
const (
	OK       = machine.OK
	Refused  = machine.Refused
	Failed   = machine.Failed
	Panicked = machine.Panicked
	TimedOut = machine.TimedOut
)
