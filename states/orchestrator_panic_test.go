package states

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of an allocation that panicked nobody knows what it left: no close is clean.
func TestAllocationPanics(t *testing.T) {
	o := newOrch(t, OrchestratorConfig{})
	h := o.submit(func() {
		o.h.onAllocate = func() { panic("at the allocation") }
		_, err := o.AllocateDomain(ctx, 2)
		require.ErrorIs(t, err, ErrDomainAllocate)
		require.ErrorContains(t, err, "at the allocation")
		o.h.onAllocate = nil
		o.domain()
	})
	require.NoError(t, h.Wait(ctx))
	require.ErrorIs(t, o.Close(ctx), ErrResidue)
}

// shaky is work that ends well; the first of one call panics.
type shaky struct{ wait, finalize bool }

func (s *shaky) Wait(context.Context) error     { return atFirst(&s.wait) }
func (s *shaky) Finalize(context.Context) error { return atFirst(&s.finalize) }

func atFirst(panics *bool) error {
	if *panics {
		*panics = false
		panic("at the work")
	}
	return nil
}

// A wait that panicked does not prove that the work is over: what the run owns
// is not released, and the wait may be made again.
func TestTaskWaitPanics(t *testing.T) {
	for name, work := range map[string]*shaky{
		"wait":     {wait: true},
		"finalize": {finalize: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrch(t, OrchestratorConfig{})
			var d *Domain
			h := o.submit(func() {
				d = o.domain()
				_, err := o.Attach(ctx, "work", work)
				require.NoError(t, err)
			})
			err := h.Wait(ctx)
			require.ErrorIs(t, err, ErrRunWait)
			require.ErrorContains(t, err, "at the work")
			_, pending := h.Tasks()
			require.Equal(t, 1, pending)
			require.Zero(t, o.h.times(d))
			require.NoError(t, h.Wait(ctx))
			require.Equal(t, 1, o.h.times(d))
		})
	}
}
