package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// Options sets up a run of a script. The zero value runs it on the simulated
// device, by the rules of package states.
type Options struct {
	// Seed, if it is not 0, lets chance decide which of the things that may
	// happen next on the simulated device does. Only Seed 0 gives the answers
	// that a file holds.
	Seed uint64
	// Rules are the lifecycles of lanes to run by; nil is [states.Rules]. The
	// patches that a script begins with change them; see [Rules].
	Rules *machine.Rules
	// Orchestrator are those of the layer above; nil is [states.OrchestratorRules].
	Orchestrator *machine.Rules
	// Recorder is asked for a recorder for each lane when the lane is made, with
	// the Name, Pools and Queue of the lane's world: what a log's writer wants to
	// know. Nil keeps no log. A crash in the script is the end of all of them.
	Recorder func(world string, pools map[string]int, queue int) machine.Recorder
	// Device makes the device; nil is the simulated one. Verbs that only the
	// simulated device can do end the run with a [*SimulatorOnlyError] then.
	Device func(DeviceSpec) (Device, error)
	// MaxSteps bounds the commands of a script; 0 means 10000.
	MaxSteps int
	// MaxTransitions bounds the transitions that all of a script's commands
	// make together, so that rules which never come to an end do; 0 means 1000000.
	MaxTransitions int
	// MaxOutput bounds the bytes that all answers take; 0 means 4 MiB.
	MaxOutput int
}

// DeviceSpec is what a script says about the device.
type DeviceSpec struct {
	ID       int32
	Borrowed bool
}

// Device is a device other than the simulated one.
type Device struct {
	backend.Backend
	// Kernels are the images that scripts name.
	Kernels map[string]backend.Kernel
	// Now is the time since the device was made; nil stands still.
	Now func() time.Duration
}

// Result is what a run of a script brought.
type Result struct {
	// Blocks are the blocks of the file with what they answered.
	Blocks []*Block
	// Rewritten is the file with the actual answers in place of the expected.
	// Blocks after an error keep what they had.
	Rewritten []byte
	// Mismatches are the blocks that answered otherwise than the file says.
	Mismatches []Mismatch
	// Timeline is what the host and the device did, in order.
	Timeline []Event
	// Violations are the misuses of the device, in order.
	Violations []string
}

// Mismatch is a block that answered otherwise than the file says.
type Mismatch struct {
	File string
	// Line is that of the block's first command.
	Line             int
	Command          string // the first
	Expected, Actual string
}

// Diff returns the difference as a unified diff without colours.
func (m Mismatch) Diff() string {
	d, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // no error: it writes to memory
		A: linesOf(m.Expected), B: linesOf(m.Actual),
		FromFile: "expected", ToFile: "actual", Context: 3,
	})
	return fmt.Sprintf("%s:%d: %s\n%s", m.File, m.Line, m.Command, d)
}

func linesOf(s string) []string {
	l := strings.SplitAfter(s, "\n")
	return l[:len(l)-1]
}

// Run runs a script. Its name is for messages.
//
// The error is an [*Error] with the line, for a script that says what cannot
// be: nothing was run if a command is misspelt, and the Result has what was
// done before it otherwise. It wraps [ErrTooLarge], or a [*SimulatorOnlyError],
// where that is the cause. Answers that differ from the file's are no error.
func Run(name string, src []byte, o Options) (*Result, error) {
	parts, err := read(name, src)
	if err == nil {
		err = o.fill(name, parts)
	}
	if err != nil {
		return &Result{}, err
	}
	r := &Result{}
	var calls [][]*call
	steps := 0
	for _, p := range parts {
		if p.Block == nil {
			continue
		}
		r.Blocks = append(r.Blocks, p.Block)
		var cs []*call
		for _, c := range p.Commands {
			parsed, err := parse(c.Text, o.Rules)
			if err != nil {
				return r, &Error{File: name, Line: c.Line, Err: err}
			}
			if steps++; steps > o.MaxSteps {
				return r, &Error{File: name, Line: c.Line, Err: fmt.Errorf("more than %d commands: %w", o.MaxSteps, ErrTooLarge)}
			}
			parsed.line = c.Line
			cs = append(cs, parsed)
		}
		calls = append(calls, cs)
	}
	s := newSession(o)
	defer s.end()
	var failed error
	for i, b := range r.Blocks {
		if failed = s.block(name, b, calls[i]); failed != nil {
			break
		}
	}
	r.Rewritten = write(parts)
	for _, b := range r.Blocks {
		if b.Ran && (b.Actual != b.Expected || !b.Answered) {
			r.Mismatches = append(r.Mismatches, Mismatch{
				File: name, Line: b.Line, Command: b.Commands[0].Text, Expected: b.Expected, Actual: b.Actual,
			})
		}
	}
	r.Timeline = s.timeline.events
	r.Violations = s.violations
	return r, failed
}

// block carries out the commands of a block.
func (s *session) block(name string, b *Block, calls []*call) error {
	s.out.Reset()
	for _, c := range calls {
		err := s.bounded(c)
		if err == nil && s.written+s.out.Len() > s.opts.MaxOutput {
			err = fmt.Errorf("answers of more than %d bytes: %w", s.opts.MaxOutput, ErrTooLarge)
		}
		if err != nil {
			return &Error{File: name, Line: c.line, Err: err}
		}
	}
	b.Actual, b.Ran = s.out.String(), true
	s.written += s.out.Len()
	return nil
}

// bounded carries out one command, and ends one that runs away.
func (s *session) bounded(c *call) (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case runaway:
			err = fmt.Errorf("more than %d transitions: %w", s.opts.MaxTransitions, ErrTooLarge)
		default:
			panic(x)
		}
	}()
	return s.do(c)
}

// printf adds a line to the answer of the present block.
func (s *session) printf(format string, args ...any) {
	l := strings.TrimRight(fmt.Sprintf(format, args...), " \n")
	if l != "" {
		s.out.WriteString(l)
		s.out.WriteByte('\n')
	}
}
