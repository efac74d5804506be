package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

func subjects(t *testing.T) map[string]subject {
	ctx := context.Background()
	i, worked := ours(t, nil)
	ev, lock := toggles(i.Machine()), i.Machine().MustEvent("lock")
	fire := func(e machine.EventID) func() error {
		return func() error { _, err := i.Fire(ctx, e); return err }
	}
	f, fLocked, fWorked := looplabToggle()
	s, sLocked, sWorked := statelessToggle()
	return map[string]subject{
		"runfence": {
			fire(ev[0]), fire(ev[1]),
			func(yes bool) { _, err := i.Fire(ctx, lock, machine.BoolWord(yes)); require.NoError(t, err) },
			i.StateName, worked,
		},
		"looplab": {
			func() error { return f.Event(ctx, "start") }, func() error { return f.Event(ctx, "stop") },
			func(yes bool) { *fLocked = yes }, f.Current, fWorked,
		},
		"stateless": {
			func() error { return s.FireCtx(ctx, "start") }, func() error { return s.FireCtx(ctx, "stop") },
			func(yes bool) { *sLocked = yes }, func() string { return s.MustState().(string) }, sWorked,
		},
	}
}

// What is measured is the same work: a guard asked, a command run, a state
// changed; and the same two refusals, by the state and by the guard.
func TestSubjectsDoTheSame(t *testing.T) {
	for name, s := range subjects(t) {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "off", s.state())
			require.Error(t, s.stop())
			require.NoError(t, s.start())
			require.Equal(t, "on", s.state())
			require.NoError(t, s.stop())
			require.Equal(t, "off", s.state())
			require.Equal(t, 2, *s.worked)
			s.lock(true)
			require.Error(t, s.start())
			require.Equal(t, "off", s.state())
			require.Equal(t, 2, *s.worked)
			s.lock(false)
			require.NoError(t, s.start())
		})
	}
}
