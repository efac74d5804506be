package states

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// meddling calls the host from inside the first stream's creation.
type meddling struct {
	backend.Backend
	during func()
}

func (m *meddling) CreateStream(ctx context.Context) (backend.Stream, backend.Result) {
	if f := m.during; f != nil {
		m.during = nil
		f()
	}
	return m.Backend.CreateStream(ctx)
}

// What is given up, or closed, while it is being opened fails to open, and
// leaves no hole (F62, F66).
func TestOpenThatIsMeddledWith(t *testing.T) {
	for name, meddle := range map[string]func(l *Lane){
		"detach": func(l *Lane) { l.Detach() },
		"close":  func(l *Lane) { _ = l.Close(context.Background()) },
	} {
		m := &meddling{}
		f := unopened(t, Config{Backend: m, Bound: time.Nanosecond})
		m.Backend = f.dev
		m.during = func() { meddle(f.lane) }
		err := f.lane.Open(ctx)
		require.NotErrorIs(t, err, machine.ErrRuleHole, name)
		if name == "detach" {
			require.ErrorIs(t, err, ErrInitialisation)
			require.Equal(t, "detached", f.state("environment", 0))
			continue
		}
		require.NoError(t, err, "a close waits for what is being opened")
		require.NoError(t, f.lane.Close(ctx))
	}
}
