package states

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// queued calls the host back while a wait is being queued.
type queued struct {
	backend.Backend
	during func(context.Context)
}

func (b *queued) StreamWaitEvent(ctx context.Context, s backend.Stream, e backend.Event) backend.Result {
	b.during(ctx)
	return b.Backend.StreamWaitEvent(ctx, s, e)
}

// A token is used from inside its own command: through the command's context
// that is refused at once, past it the lane's bound, or the caller's own
// context, ends the wait.
func TestTokenReentry(t *testing.T) {
	b := &queued{}
	f := unopened(t, Config{Backend: b, Bound: time.Nanosecond})
	b.Backend = f.dev
	require.NoError(t, f.lane.Open(ctx))
	r, rc := f.launch()
	token := f.reserve(rc, r)
	var through, past, gone error
	b.during = func(ctx context.Context) {
		through = token.Queue(ctx)
		past = token.Release(context.Background(), CPUStream)
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		gone = token.Revoke(cancelled)
	}
	require.NoError(t, token.Queue(ctx))
	require.ErrorIs(t, through, machine.ErrReentrant)
	require.ErrorIs(t, past, machine.ErrBusy)
	require.ErrorIs(t, gone, machine.ErrBusy)
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, token.Release(ctx, CoreStream))
	require.ErrorIs(t, token.Release(ctx, CoreStream), ErrTokenEmpty)
	require.NoError(t, r.Finalize(ctx))
	f.clean()
}

// A host that asks for notices from inside a command is refused, and the notice
// is still there for whoever may hear it.
func TestNoticeOutlivesReentry(t *testing.T) {
	b := &reentrant{}
	f := unopened(t, Config{Backend: b, Slots: 2, Depth: 2}, "SubmitAICPU#1 kernel-fatal")
	b.Backend = f.dev
	require.NoError(t, f.lane.Open(ctx))
	f.launch()
	second := f.prepare()
	var through error
	b.during = func(ctx context.Context) {
		f.dev.Advance(time.Second)
		through = f.lane.Hear(ctx)
	}
	_, err := second.Launch(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, through, machine.ErrReentrant)
	require.NoError(t, f.lane.Hear(ctx))
	h, err := f.lane.Health()
	require.NoError(t, err)
	require.True(t, h.Suspect)
}
