package states

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// holder is a resource backend that counts what it is asked for.
type holder struct {
	mu        sync.Mutex
	freed     map[uint64]int // releases of each allocation
	released  []object
	fails     map[uint64]error // by allocation
	stuck     map[uint64]error // by key
	unmade    error            // of the next allocation
	onRelease func(ctx context.Context, allocation uint64)
	// onAllocate is called in the middle of an allocation.
	onAllocate func()
	keepsTo    bool // to the context of a release
}

func newHolder() *holder {
	return &holder{
		freed: map[uint64]int{}, fails: map[uint64]error{}, stuck: map[uint64]error{},
	}
}

func (h *holder) ReleaseResource(ctx context.Context, g Group, key uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keepsTo && ctx.Err() != nil {
		return ctx.Err()
	}
	h.released = append(h.released, object{g, key})
	return h.stuck[key]
}

func (h *holder) AllocateDomain(context.Context, uint64, int) error {
	if h.onAllocate != nil {
		h.onAllocate()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.unmade
	h.unmade = nil
	return err
}

func (h *holder) ReleaseDomain(ctx context.Context, a uint64) error {
	h.mu.Lock()
	h.freed[a]++
	err, f := h.fails[a], h.onRelease
	if h.keepsTo && ctx.Err() != nil {
		err = ctx.Err()
	}
	h.mu.Unlock()
	if f != nil {
		f(ctx, a)
	}
	return err
}

// times is how often the backend was asked to release an allocation.
func (h *holder) times(d *Domain) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.freed[d.allocation]
}

// orch is an orchestrator on a holder.
type orch struct {
	*testing.T
	*Orchestrator
	h *holder
}

func newOrch(t *testing.T, c OrchestratorConfig) *orch {
	t.Helper()
	h := newHolder()
	c.Backend = h
	o, err := NewOrchestrator(c)
	require.NoError(t, err)
	return &orch{t, o, h}
}

// submit builds a run.
func (o *orch) submit(build func()) *RunHandle {
	o.Helper()
	h, err := o.Submit(ctx, func(context.Context) error {
		if build != nil {
			build()
		}
		return nil
	})
	require.NoError(o, err)
	return h
}

func (o *orch) domain() *Domain {
	o.Helper()
	d, err := o.AllocateDomain(ctx, 2)
	require.NoError(o, err)
	return d
}

func (o *orch) task(name string) *Task {
	o.Helper()
	t, err := o.AddTask(ctx, name)
	require.NoError(o, err)
	return t
}

// async runs f beside the test.
func async(f func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}
