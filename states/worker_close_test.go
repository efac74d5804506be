package states

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// gated stops the copy of an upload half-way.
type gated struct {
	backend.Backend
	reached, release chan struct{}
}

func (g *gated) Copy(ctx context.Context, dst, src backend.Span) backend.Result {
	close(g.reached)
	<-g.release
	return g.Backend.Copy(ctx, dst, src)
}

// CurrentContext answers callers without patience, too.
func (g *gated) CurrentContext(context.Context) (backend.Context, backend.Result) {
	return g.Backend.CurrentContext(ctx)
}

// A close waits for the upload that is under way, since its teardown frees the
// images: the registration is whole, and then everything is gone (F88).
func TestCloseWaitsForAnUpload(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	g := &gated{dev, make(chan struct{}), make(chan struct{})}
	w, err := NewChipWorker(WorkerConfig{Config: Config{Backend: g}, Mode: Program})
	require.NoError(t, err)
	require.NoError(t, w.Init(ctx))
	registered := make(chan error, 1)
	go func() { _, err := w.Register(ctx, []byte("image")); registered <- err }()
	<-g.reached
	expired, cancel := context.WithCancel(ctx)
	cancel()
	var busy *machine.BusyError
	require.ErrorAs(t, w.Close(expired), &busy, "there is something to wait for")
	close(g.release)
	require.NoError(t, <-registered)
	require.NoError(t, w.Close(ctx))
	require.Empty(t, dev.Violations())
}

// A cleanup that a failed initialisation owes is paid by a close, which then
// succeeds although the latch never counted the worker as initialised (F63, F64).
func TestCloseOfHalfAWorker(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	w, err := NewChipWorker(WorkerConfig{Config: Config{Backend: dev}, Mode: Program})
	require.NoError(t, err)
	for _, f := range []string{"CreateStream#2 fail-before 507899", "DestroyStream#1 fail-before 507899"} {
		require.NoError(t, dev.Inject(plan(t, f)[0]))
	}
	require.ErrorIs(t, w.Init(ctx), ErrInitialisation)
	require.ErrorIs(t, w.Init(ctx), ErrCleanupOwed)
	require.NoError(t, w.Close(ctx))
	require.ErrorIs(t, w.Init(ctx), ErrFinalized)
}

// A worker that was closed refuses to initialise before its latch is asked: the
// permission that the latch has for a released PROGRAM handle stays (F93).
func TestInitAfterCloseLeavesTheLatch(t *testing.T) {
	_, w := worker(t)
	c, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.True(t, w.Live(c))
	require.NoError(t, w.Close(ctx))
	require.False(t, w.Live(c), "the table is gone")
	before, err := w.Mode().State()
	require.NoError(t, err)
	require.True(t, before.Retired)
	require.ErrorIs(t, w.Init(ctx), ErrFinalized)
	after, err := w.Mode().State()
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.ErrorIs(t, w.Close(ctx), ErrFinalized)
}

// Detached, no callable is live, whatever the table says (F66).
func TestDetachedCallables(t *testing.T) {
	_, w := worker(t)
	c, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	w.Detach()
	require.False(t, w.Live(c))
}
