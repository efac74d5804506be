package scenario

import (
	"context"

	"github.com/runfence/runfence/states"
)

// latchVerbs drive the execution-mode latch of the lane's handle.
var latchVerbs = []verb{
	{name: "latch claim", run: (*session).latchClaim, params: []param{{name: "mode", kind: word, place: true, need: true, words: []string{"PROGRAM", "KERNEL"}}}},
	{name: "latch begin", run: onLatch("initialising", (*states.ModeLatch).Begin)},
	{name: "latch succeed", run: onLatch("initialised", (*states.ModeLatch).Succeed)},
	{name: "latch fail", run: onLatch("uninitialised again; the claim stays", (*states.ModeLatch).Fail)},
	{name: "latch finalise", run: (*session).latchFinalise, params: []param{{name: "proof"}}},
	{name: "latch show", run: (*session).latchShow},
}

// onLatch makes a verb of a method of latches.
func onLatch(ok string, f func(*states.ModeLatch) error) func(*session, *call) error {
	return func(s *session, c *call) error {
		return s.operate(c, func(_ context.Context, l *lane) func() {
			err := f(l.Mode())
			return func() { s.result(c, err, ok) }
		})
	}
}

func (s *session) latchClaim(c *call) error {
	m := states.Program
	if c.args["mode"] == "KERNEL" {
		m = states.Kernel
	}
	return onLatch("latched to "+m.String(), func(l *states.ModeLatch) error { return l.Claim(m) })(s, c)
}

func (s *session) latchFinalise(c *call) error {
	ok := "finalised, without proof that everything was released"
	if c.has("proof") {
		ok = "finalised, everything proven released"
	}
	return onLatch(ok, func(l *states.ModeLatch) error { return l.Finalise(c.has("proof")) })(s, c)
}

func (s *session) latchShow(c *call) error {
	l, err := s.present()
	if err != nil {
		return err
	}
	st, err := l.Mode().State()
	if err != nil {
		s.answer(c, "%s", s.said(s.opts.Rules, err))
		return nil
	}
	phase := [...]string{"uninitialised", "initialising", "initialised", "finalised"}[st.Phase]
	retired := "not retired"
	if st.Retired {
		retired = "retired"
	}
	s.answer(c, "%s, %s, %s", st.Mode, phase, retired)
	return nil
}
