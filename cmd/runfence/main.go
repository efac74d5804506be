// Command runfence runs, replays and explains accelerator runs as declared
// state machines. "runfence help" lists what it does.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"github.com/runfence/runfence/states"
)

func main() {
	// A reader that goes away, as head does, ends the printing; what the
	// command found still decides its exit code.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(execute(os.Args[1:], system()))
}

// system is the process that main runs in, as an environment.
func system() environment {
	e := environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv,
		rules:  states.Rules, explored: lane,
		interruptible: func() (context.Context, context.CancelFunc) {
			return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		},
		console: term.IsTerminal(int(os.Stderr.Fd())),
	}
	e.build, _ = debug.ReadBuildInfo()
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		e.terminal = true
		e.width, _, _ = term.GetSize(fd)
	}
	return e
}
