package states

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// asked runs something once, when the backend is next asked for the context.
type asked struct {
	backend.Backend
	during func()
}

func (b *asked) CurrentContext(ctx context.Context) (backend.Context, backend.Result) {
	if f := b.during; f != nil {
		b.during = nil
		f()
	}
	return b.Backend.CurrentContext(ctx)
}

// Admission closes between a launch's first step and its second. The launch is
// refused with nothing submitted, and the submit that asked for it does not
// ask again: it would be refused in a circle (F44).
func TestRefusedLaunchIsNotAskedAgain(t *testing.T) {
	b := &asked{}
	f := unopened(t, Config{Backend: b})
	b.Backend = f.dev
	require.NoError(t, f.lane.Open(ctx))
	r, err := f.lane.Submit(ctx, work)
	require.NoError(t, err)
	b.during = f.lane.Detach
	err = r.Advance(ctx)
	require.ErrorIs(t, err, ErrSubmit)
	require.ErrorIs(t, err, ErrNotStarted)
	require.Equal(t, "ready", f.state("submit", 0))
	require.ErrorIs(t, r.Advance(ctx), ErrDetached)
	f.clean()
}
