package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

func TestDeadlockIsExplained(t *testing.T) {
	ctx := context.Background()
	spin := sim.KernelSpec{Name: "spin", Class: backend.AICore, Paired: true, Spin: true, Duration: time.Microsecond}
	for _, x := range []struct {
		name string
		cfg  sim.Config
		do   func(*rig)
		want string
	}{
		{"nothing is stuck", sim.Config{}, func(r *rig) {
			r.d.Submit(ctx, r.coreS, r.core)
			r.d.Submit(ctx, r.cpuS, r.cpu)
		}, ""},
		{"an AICore kernel without its AICPU kernel", sim.Config{}, func(r *rig) {
			r.d.Submit(ctx, r.coreS, backend.Launch{Class: backend.AICore, Kernel: 1, Args: r.args, Blocks: 1})
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
		}, "stream s0: AICore kernel spin (entry 1) spins for an AICPU kernel that was not submitted (open); 1 behind it"},
		{"an AICPU kernel without its AICore kernel", sim.Config{}, func(r *rig) {
			r.d.Submit(ctx, r.cpuS, r.cpu)
		}, "stream s1: AICPU kernel cpu (entry 1) spins for an AICore kernel that was not submitted (open)"},
		{"a fork behind the AICPU kernel", sim.Config{}, func(r *rig) {
			r.d.Submit(ctx, r.cpuS, r.cpu)
			r.d.RecordEvent(ctx, r.cpuE, r.cpuS)
			r.d.StreamWaitEvent(ctx, r.coreS, r.cpuE)
			r.d.Submit(ctx, r.coreS, r.core)
		}, "stream s0: wait of event e1 (entry 1) waits for its record, which is entry 2 of stream s1; 1 behind it; circle s0 > s1 > s0\n" +
			"stream s1: AICPU kernel cpu (entry 1) spins for its partner, which has not started on stream s0; 1 behind it; circle s1 > s0 > s1"},
		{"a stream behind a circle is not in it", sim.Config{}, func(r *rig) {
			r.d.Submit(ctx, r.cpuS, r.cpu)
			r.d.RecordEvent(ctx, r.cpuE, r.cpuS)
			r.d.StreamWaitEvent(ctx, r.coreS, r.cpuE)
			r.d.Submit(ctx, r.coreS, r.core)
			third, _ := r.d.CreateStream(ctx)
			r.d.StreamWaitEvent(ctx, third, r.cpuE)
		}, "stream s0: wait of event e1 (entry 1) waits for its record, which is entry 2 of stream s1; 1 behind it; circle s0 > s1 > s0\n" +
			"stream s1: AICPU kernel cpu (entry 1) spins for its partner, which has not started on stream s0; 1 behind it; circle s1 > s0 > s1\n" +
			"stream s2: wait of event e1 (entry 1) waits for its record, which is entry 2 of stream s1"},
		{"waits that cross back", sim.Config{}, func(r *rig) {
			third, _ := r.d.CreateEvent(ctx)
			r.d.Submit(ctx, r.cpuS, r.cpu) // holds both records back until its partner comes
			r.d.RecordEvent(ctx, third, r.cpuS)
			r.d.StreamWaitEvent(ctx, r.coreS, third)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
			r.d.Submit(ctx, r.coreS, r.core)
		}, "stream s0: wait of event e2 (entry 1) waits for its record, which is entry 2 of stream s1; 2 behind it; circle s0 > s1 > s0\n" +
			"stream s1: AICPU kernel cpu (entry 1) spins for its partner, which has not started on stream s0; 2 behind it; circle s1 > s0 > s1"},
		{"a wait before its record, on a device where it hangs", sim.Config{Unrecorded: sim.Hangs}, func(r *rig) {
			r.d.StreamWaitEvent(ctx, r.coreS, r.coreE)
		}, "stream s0: wait of event e0 (entry 1) waits for a record that was never made (open)"},
		{"a wait before its record, on a device where it passes", sim.Config{}, func(r *rig) {
			r.d.StreamWaitEvent(ctx, r.coreS, r.coreE)
		}, ""},
		{"a kernel that hangs", sim.Config{Plan: []sim.Fault{{Op: sim.OpSubmitAICore, Nth: 1, Kind: sim.KernelHang}}}, func(r *rig) {
			r.d.Submit(ctx, r.coreS, r.core)
		}, "stream s0: AICore kernel core (entry 1) hangs"},
		{"a wait behind another stream's kernel that hangs", sim.Config{Plan: []sim.Fault{{Op: sim.OpSubmitAICore, Nth: 1, Kind: sim.KernelHang}}}, func(r *rig) {
			r.d.Submit(ctx, r.coreS, r.core)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
			r.d.CopyAsync(ctx, backend.Span{Mem: r.args, Size: 1}, backend.Span{Mem: r.args, Offset: 1, Size: 1}, r.cpuS)
		}, "stream s0: AICore kernel core (entry 1) hangs; 1 behind it\n" +
			"stream s1: wait of event e0 (entry 1) waits for its record, which is entry 2 of stream s0; 1 behind it"},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.cfg.Kernels = []sim.KernelSpec{spin}
			r := newRig(t, x.cfg)
			x.do(r)
			before := state(r.d, sim.Naming{})
			require.Equal(t, x.want, r.d.Deadlock())
			require.Equal(t, x.want != "", r.d.Stuck())
			require.Equal(t, before, state(r.d, sim.Naming{}), "looking changes nothing")
		})
	}
}
