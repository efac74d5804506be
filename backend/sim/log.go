package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/runfence/runfence/backend"
)

// StepKind says what a [Step] is.
type StepKind uint8

const (
	// StepBegin: a call of Thread began.
	StepBegin StepKind = iota
	// StepChoice: Choice happened.
	StepChoice
	// StepTake: the call Ticket was given Answer.
	StepTake
	// StepCurrent: Context became current on Thread.
	StepCurrent
	// StepNotices: Thread took up to Size notices.
	StepNotices
	// StepAdvance: Time passed.
	StepAdvance
)

// Step is one entry of a [Host]'s log.
type Step struct {
	Kind    StepKind
	Thread  int
	Size    int
	Op      *Op
	Choice  Choice
	Ticket  Ticket
	Answer  *Answer
	Context backend.Context
	Time    time.Duration
}

// String returns the step as a line to read.
func (s Step) String() string {
	switch s.Kind {
	case StepBegin:
		return fmt.Sprintf("begin thread %d %s", s.Thread, s.Op.Kind)
	case StepChoice:
		return s.Choice.String()
	case StepTake:
		return fmt.Sprintf("take %s %s %s", s.Ticket, s.Answer.Outcome, s.Answer.Code)
	case StepCurrent:
		return fmt.Sprintf("current thread %d %s", s.Thread, HandleName(uint64(s.Context)))
	case StepNotices:
		return fmt.Sprintf("notices thread %d up to %d", s.Thread, s.Size)
	}
	return "advance " + s.Time.String()
}

// ErrDiverged reports a replay in which the device did not do what was logged.
var ErrDiverged = errors.New("sim: replay diverged")

// Replay carries out the steps of a log on a device in the state in which the
// log begins. The error wraps [ErrDiverged] and names the step.
func Replay(d *Device, log []Step) error {
	for i, s := range log {
		d.SetThread(s.Thread)
		switch s.Kind {
		case StepBegin:
			d.Begin(*s.Op)
		case StepChoice:
			if err := d.Apply(s.Choice); err != nil {
				return fmt.Errorf("%w: step %d: %w", ErrDiverged, i, err)
			}
		case StepTake:
			a, ok := d.Take(s.Ticket)
			a.Data = nil
			if !ok || !sameAnswer(&a, s.Answer) {
				return fmt.Errorf("%w: step %d: %v, but the call ended %s %s", ErrDiverged, i, s, a.Outcome, a.Code)
			}
		case StepCurrent:
			d.SetCurrent(s.Context)
		case StepNotices:
			d.TakeNotices(make([]backend.Notice, s.Size))
		case StepAdvance:
			d.Advance(s.Time)
		}
	}
	return nil
}

func sameAnswer(a, b *Answer) bool {
	return a.Result == b.Result && a.Status == b.Status && a.Capture == b.Capture &&
		a.ID == b.ID && a.Handle == b.Handle && a.Confirmed == b.Confirmed
}
