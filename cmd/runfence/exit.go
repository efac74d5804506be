package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitHolds   = 0
	exitFinding = 1
	exitUsage   = 2 // or input that cannot be read
)

// finding is an error that is the answer to what was asked, not a failure to
// ask it: a divergence, a scenario that does not match, a log that is torn. An
// empty text says that the answer has been printed.
type finding struct{ text string }

func (e *finding) Error() string { return e.text }

func found(format string, args ...any) error {
	return &finding{text: fmt.Sprintf(format, args...)}
}

// usageError says that the command was asked wrongly; it points to its help.
type usageError struct {
	cmd *cobra.Command
	err error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v\nTry '%s --help'.", e.err, e.cmd.CommandPath())
}

func (e *usageError) Unwrap() error { return e.err }

func misused(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd: cmd, err: fmt.Errorf(format, args...)}
}

// report prints what ended a command, and returns its exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitHolds
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(a.stderr, "runfence: %s\n", text)
	}
	var f *finding
	if errors.As(err, &f) {
		return exitFinding
	}
	return exitUsage
}
