package bench

import (
	"context"

	"github.com/qmuntal/stateless"
)

// statelessToggle is the shape in qmuntal/stateless: a guard on each permitted
// trigger, and the command on exit, where its error would keep the state. The
// firing mode is the default one, which alone lets goroutines share a machine.
func statelessToggle() (sm *stateless.StateMachine, locked *bool, worked *int) {
	locked, worked = new(bool), new(int)
	guard := func(context.Context, ...any) bool { return !*locked }
	work := func(context.Context, ...any) error { *worked++; return nil }
	sm = stateless.NewStateMachine("off")
	sm.Configure("off").Permit("start", "on", guard).OnExit(work)
	sm.Configure("on").Permit("stop", "off", guard).OnExit(work)
	return sm, locked, worked
}
