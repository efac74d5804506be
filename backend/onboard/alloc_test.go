//go:build cgo && linux && !asan

package onboard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
)

// Poll, record, query and wait allocate nothing.
func TestCallsAllocateNothing(t *testing.T) {
	d := fresh(t, onboard.Config{})
	b := newBench(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k, c := load(t, d, core("core")), load(t, d, cpu("cpu"))
	var dst [4]backend.Notice
	for name, f := range map[string]func(){
		"query event":  func() { d.QueryEvent(ctx, b.coreE) },
		"query stream": func() { d.QueryStream(ctx, b.coreS) },
		"record":       func() { d.RecordEvent(ctx, b.coreE, b.coreS) },
		"wait":         func() { d.WaitEvent(ctx, b.coreE, timeout) },
		"synchronize":  func() { d.SynchronizeStream(ctx, b.coreS, timeout) },
		"stream wait":  func() { d.StreamWaitEvent(ctx, b.cpuS, b.coreE) },
		"submit": func() {
			d.Submit(ctx, b.coreS, backend.Launch{Class: backend.AICore, Kernel: k, Args: b.args, Blocks: 1})
			d.Submit(ctx, b.cpuS, backend.Launch{Class: backend.AICPU, Kernel: c, Args: b.args})
		},
		"notices":         func() { d.Notices(dst[:]) },
		"current context": func() { d.CurrentContext(ctx) },
	} {
		require.Zero(t, testing.AllocsPerRun(50, f), name)
	}
}
