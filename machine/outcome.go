package machine

import "fmt"

// Outcome is the class of answer a command got. A command has exactly one,
// and a row that names a command has a target for every one of them.
type Outcome uint8

const (
	// OK: the call was made and reported success.
	OK Outcome = iota
	// Refused: the call was not attempted. Nothing reached the device.
	Refused
	// Failed: the call was attempted and reported failure. Whether it took
	// effect is unknown: a failed enqueue may still be enqueued.
	Failed
	// Panicked: the code that carries out the command panicked. Whether the
	// call was attempted is unknown.
	Panicked
	// TimedOut: a bounded wait expired. It says the host stopped waiting and
	// nothing about the device.
	TimedOut

	// NumOutcomes is the number of outcome classes.
	NumOutcomes = int(TimedOut) + 1
)

var outcomeNames = [NumOutcomes]string{"ok", "refused", "failed", "panicked", "timedout"}

// String returns the name used in definitions, logs and scenarios.
func (o Outcome) String() string {
	if int(o) < NumOutcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// ParseOutcome is the inverse of [Outcome.String].
func ParseOutcome(s string) (Outcome, error) {
	for i, n := range outcomeNames {
		if n == s {
			return Outcome(i), nil
		}
	}
	return 0, fmt.Errorf("unknown outcome %q: want ok, refused, failed, panicked or timedout", s)
}
