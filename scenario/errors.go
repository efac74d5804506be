package scenario

import (
	"errors"
	"fmt"
)

// ErrTooLarge is matched by the [*Error] of a script, or of what it does, that
// goes past a bound.
var ErrTooLarge = errors.New("too large")

// Error says what is wrong with a script, and where. What the rules refuse or
// the device fails is no error of the script: it is part of the output.
type Error struct {
	File string
	Line int // from 1
	Err  error
}

// Error returns "file:line: what".
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// SimulatorOnlyError says that a verb asks for something that only the
// simulated device can do, on a device that is another.
type SimulatorOnlyError struct{ Verb string }

// Error names the verb.
func (e *SimulatorOnlyError) Error() string {
	return e.Verb + " needs the simulated device"
}
