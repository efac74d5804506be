package bench

import (
	"context"
	"errors"

	"github.com/looplab/fsm"
)

var errLocked = errors.New("locked")

// looplabToggle is the shape in looplab/fsm: the guard cancels before the
// event, and the command runs on leaving, where it could still cancel.
func looplabToggle() (f *fsm.FSM, locked *bool, worked *int) {
	locked, worked = new(bool), new(int)
	guard := func(_ context.Context, e *fsm.Event) {
		if *locked {
			e.Cancel(errLocked)
		}
	}
	work := func(context.Context, *fsm.Event) { *worked++ }
	f = fsm.NewFSM("off",
		fsm.Events{{Name: "start", Src: []string{"off"}, Dst: "on"}, {Name: "stop", Src: []string{"on"}, Dst: "off"}},
		fsm.Callbacks{"before_start": guard, "before_stop": guard, "leave_off": work, "leave_on": work},
	)
	return f, locked, worked
}
