package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// Each misuse is named once, when it happens, with what it concerns; the device
// goes on.
func TestViolations(t *testing.T) {
	ctx := context.Background()
	slow := sim.KernelSpec{Name: "slow", Class: backend.AICore, Duration: time.Millisecond}
	launch := func(r *rig) backend.Launch {
		return backend.Launch{Class: backend.AICore, Kernel: 1, Args: r.args, Blocks: 1}
	}
	busy := func(r *rig) { r.d.Submit(ctx, r.coreS, launch(r)) }
	for _, x := range []struct {
		name string
		cfg  sim.Config
		do   func(*rig)
		want []string
	}{
		{"memory freed under a kernel", sim.Config{}, func(r *rig) {
			busy(r)
			r.d.Free(ctx, r.args)
		}, []string{"freed-while-named in Free: memory m0, stream s0, at 0s"}},
		{"memory freed under a queued kernel, which then starts", sim.Config{}, func(r *rig) {
			busy(r)
			m, _ := r.d.Alloc(ctx, backend.DeviceMemory, 8)
			l := launch(r)
			l.Args = m
			r.d.Submit(ctx, r.coreS, l)
			r.d.Free(ctx, m)
			r.d.Advance(time.Second)
		}, []string{
			"freed-while-named in Free: memory m1, stream s0, at 0s",
			"use-after-free: memory m1, stream s0, at 1ms",
		}},
		{"memory freed under a copy, which then writes", sim.Config{CopyTime: time.Microsecond}, func(r *rig) {
			m, _ := r.d.Alloc(ctx, backend.PinnedMemory, 64)
			r.d.CopyAsync(ctx, backend.Span{Mem: r.args, Size: 8}, backend.Span{Mem: m, Size: 8}, r.cpuS)
			r.d.Free(ctx, m)
			r.d.Advance(time.Second)
		}, []string{
			"freed-while-named in Free: memory m1, stream s1, at 0s",
			"use-after-free: memory m1, stream s1, at 1µs",
		}},
		{"second destroy", sim.Config{}, func(r *rig) {
			r.d.DestroyEvent(ctx, r.coreE)
			r.d.DestroyEvent(ctx, r.coreE)
			r.d.DestroyStream(ctx, r.coreS)
			r.d.DestroyStream(ctx, r.coreS)
			r.d.Free(ctx, r.args)
			r.d.Free(ctx, r.args)
			r.d.Free(ctx, 0)
		}, []string{
			"double-destroy in DestroyEvent: event e0, at 0s",
			"double-destroy in DestroyStream: stream s0, at 0s",
			"double-destroy in Free: memory m0, at 0s",
		}},
		{"event destroyed under a queued wait and record", sim.Config{}, func(r *rig) {
			busy(r)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
			r.d.DestroyEvent(ctx, r.coreE)
		}, []string{
			"event-destroyed-waited in DestroyEvent: event e0, at 0s",
			"event-destroyed-pending in DestroyEvent: event e0, at 0s",
		}},
		{"re-record while a queued wait names the event", sim.Config{}, func(r *rig) {
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			busy2 := launch(r)
			r.d.Submit(ctx, r.cpuS, busy2)
			r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
		}, []string{"re-record-waited in RecordEvent: event e0, stream s0, at 0s"}},
		{"re-record while the record is pending", sim.Config{}, func(r *rig) {
			busy(r)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			r.d.RecordEvent(ctx, r.coreE, r.cpuS)
		}, []string{"re-record-pending in RecordEvent: event e0, stream s1, at 0s"}},
		{"re-record of what the host never saw complete", sim.Config{}, func(r *rig) {
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			r.d.Advance(time.Second)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
		}, []string{"re-record-unproven in RecordEvent: event e0, stream s0, at 1s"}},
		{"the same, not looked for", sim.Config{NoProofs: true}, func(r *rig) {
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			r.d.Advance(time.Second)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
		}, nil},
		{"waits before any record", sim.Config{}, func(r *rig) {
			r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
			r.d.WaitEvent(ctx, r.cpuE, time.Second)
		}, []string{
			"wait-before-record in StreamWaitEvent: event e0, stream s1, at 0s",
			"wait-before-record in WaitEvent: event e1, at 0s",
		}},
		{"source overwritten before the copy", sim.Config{CopyTime: time.Microsecond}, func(r *rig) {
			m, _ := r.d.Alloc(ctx, backend.PinnedMemory, 64)
			r.d.CopyAsync(ctx, backend.Span{Mem: r.args, Size: 8}, backend.Span{Mem: m, Offset: 8, Size: 8}, r.cpuS)
			r.d.Write(ctx, m, 0, make([]byte, 8))
			r.d.Write(ctx, m, 16, make([]byte, 8))
			r.d.Write(ctx, m, 15, make([]byte, 8))
			r.d.Copy(ctx, backend.Span{Mem: m, Offset: 8, Size: 1}, backend.Span{Mem: r.args, Size: 1})
			r.d.Advance(time.Second)
			r.d.Write(ctx, m, 8, make([]byte, 8))
		}, []string{
			"source-overwritten in Write: memory m1, stream s1, at 0s",
			"source-overwritten in Copy: memory m1, stream s1, at 0s",
		}},
		{"stream destroyed with work in it", sim.Config{}, func(r *rig) {
			busy(r)
			r.d.DestroyStream(ctx, r.coreS)
		}, []string{"stream-destroyed-busy in DestroyStream: stream s0, at 0s"}},
		{"eager work under capture", sim.Config{}, func(r *rig) {
			r.d.SetCapture(r.coreS, backend.CaptureActive)
			busy(r)
			r.d.RecordEvent(ctx, r.coreE, r.coreS)
			r.d.StreamWaitEvent(ctx, r.coreS, r.coreE)
			r.d.CopyAsync(ctx, backend.Span{Mem: r.args, Size: 8}, backend.Span{Mem: r.args, Offset: 8, Size: 8}, r.coreS)
			if r.d.Busy() {
				panic("captured work runs on no stream")
			}
		}, []string{
			"captured-work in SubmitAICore: stream s0, at 0s",
			"captured-work in RecordEvent: stream s0, at 0s",
			"captured-work in StreamWaitEvent: stream s0, at 0s",
			"captured-work in CopyAsync: stream s0, at 0s",
		}},
		{"another device's context", sim.Config{}, func(r *rig) {
			r.d.SetCurrent(r.d.NewContext(false))
			r.d.QueryStream(ctx, r.coreS)
		}, []string{"foreign-context in QueryStream: stream s0, at 0s"}},
		{"reset of a borrowed device", sim.Config{Borrowed: true}, func(r *rig) {
			r.d.Reset(ctx)
		}, []string{"borrowed-reset in Reset: at 0s"}},
		{"stores outside of every allocation", sim.Config{Kernels: []sim.KernelSpec{{
			Class: backend.AICore,
			Stores: []sim.Store{
				{When: sim.AtStart, Offset: 60, Size: 8},
				{When: sim.AtExit, Through: true, Size: 1},
			},
		}}}, func(r *rig) {
			l := launch(r)
			l.Kernel = 2
			r.d.Submit(ctx, r.coreS, l)
			r.d.Advance(time.Second)
		}, []string{
			"wild-store in SubmitAICore: memory m0, stream s0, at 0s",
			"wild-store: memory ?0xdbdbdbdbdbdbdbdb, stream s0, at 0s",
		}},
		{"nothing, in a run that is done right, over and over", sim.Config{}, func(r *rig) {
			for range 3 {
				r.run(ctx)
			}
		}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.cfg.Kernels = append([]sim.KernelSpec{slow}, x.cfg.Kernels...)
			r := newRig(t, x.cfg)
			x.do(r)
			var got []string
			for _, v := range r.d.Violations() {
				got = append(got, v.String())
			}
			require.Equal(t, x.want, got)
		})
	}
}

// What the host has proof of spreads over the waits that passed: the caller's
// edges are proven by the run's own boundaries.
func TestProofFollowsTheEdges(t *testing.T) {
	ctx := context.Background()
	type edges struct{ start, fork, tail backend.Event }
	submit := func(t *testing.T) (*rig, backend.Stream, edges) {
		r := newRig(t, sim.Config{})
		caller, _ := r.d.CreateStream(ctx)
		var e edges
		e.start, _ = r.d.CreateEvent(ctx)
		e.fork, _ = r.d.CreateEvent(ctx)
		e.tail, _ = r.d.CreateEvent(ctx)
		return r, caller, e
	}
	launch := func(r *rig, caller backend.Stream, e edges) {
		r.d.RecordEvent(ctx, e.start, caller)
		r.d.StreamWaitEvent(ctx, r.cpuS, e.start)
		r.d.RecordEvent(ctx, e.fork, r.cpuS)
		r.d.StreamWaitEvent(ctx, r.coreS, e.fork)
		r.d.Submit(ctx, r.coreS, r.core)
		r.d.RecordEvent(ctx, r.coreE, r.coreS)
		r.d.Submit(ctx, r.cpuS, r.cpu)
		r.d.StreamWaitEvent(ctx, r.cpuS, r.coreE)
		r.d.RecordEvent(ctx, r.cpuE, r.cpuS)
		r.d.StreamWaitEvent(ctx, caller, r.cpuE)
		r.d.RecordEvent(ctx, e.tail, caller)
	}
	again := func(r *rig, caller backend.Stream, e edges) (names []string) {
		launch(r, caller, e)
		for _, v := range r.d.Violations() {
			names = append(names, v.Kind.String()+" "+sim.HandleName(uint64(v.Event)))
		}
		return names
	}
	t.Run("the tail proves the whole run", func(t *testing.T) {
		r, caller, e := submit(t)
		launch(r, caller, e)
		require.True(t, r.d.WaitEvent(ctx, e.tail, time.Second).Ok())
		require.Empty(t, again(r, caller, e))
	})
	t.Run("the AICPU boundary proves all but the tail", func(t *testing.T) {
		r, caller, e := submit(t)
		launch(r, caller, e)
		require.True(t, r.d.WaitEvent(ctx, r.cpuE, time.Second).Ok())
		r.d.Advance(time.Second)
		require.Equal(t, []string{"re-record-unproven " + sim.HandleName(uint64(e.tail))}, again(r, caller, e))
	})
	t.Run("a drained stream proves its own entries and what they waited for", func(t *testing.T) {
		r, caller, e := submit(t)
		launch(r, caller, e)
		r.d.Advance(time.Second)
		st, _ := r.d.QueryStream(ctx, r.coreS)
		require.Equal(t, backend.Complete, st)
		require.Equal(t, []string{
			"re-record-unproven " + sim.HandleName(uint64(r.cpuE)),
			"re-record-unproven " + sim.HandleName(uint64(e.tail)),
		}, again(r, caller, e), "start, fork and core are proven")
	})
	t.Run("a timeout proves nothing", func(t *testing.T) {
		r, caller, e := submit(t)
		launch(r, caller, e)
		require.False(t, r.d.WaitEvent(ctx, e.tail, time.Microsecond).Ok())
		r.d.Advance(time.Second)
		require.Len(t, again(r, caller, e), 5)
	})
}

// A write through a freed address lands in whatever lives there now.
func TestUseAfterFreeReachesTheNextOwner(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{CopyTime: time.Millisecond})
	old, _ := r.d.Alloc(ctx, backend.DeviceMemory, 8)
	src, _ := r.d.Alloc(ctx, backend.PinnedMemory, 8)
	r.d.Write(ctx, src, 0, []byte("overdue!"))
	r.d.CopyAsync(ctx, backend.Span{Mem: old, Size: 8}, backend.Span{Mem: src, Size: 8}, r.coreS)
	r.d.Free(ctx, old)
	next, _ := r.d.Alloc(ctx, backend.DeviceMemory, 8)
	require.NotEqual(t, old, next)
	require.NotEqual(t, "overdue!", string(r.d.Peek(next)))
	r.d.Advance(time.Second)
	require.Equal(t, "overdue!", string(r.d.Peek(next)))
	require.Nil(t, r.d.Peek(old))
}

// With residue, fresh memory holds what the address held: bytes that happen to
// be right certify nothing (F7).
func TestResidue(t *testing.T) {
	ctx := context.Background()
	for _, residue := range []bool{true, false} {
		d := device(t, sim.Config{Residue: residue})
		m, _ := d.Alloc(ctx, backend.PinnedMemory, 4)
		d.Write(ctx, m, 0, []byte("mark"))
		d.Free(ctx, m)
		m, _ = d.Alloc(ctx, backend.PinnedMemory, 4)
		require.Equal(t, residue, string(d.Peek(m)) == "mark")
	}
}
