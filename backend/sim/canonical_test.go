package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// Everything that a later call could tell apart is in the bytes.
func TestCanonicalBytesTellApart(t *testing.T) {
	ctx := context.Background()
	base := func() *rig { return newRig(t, sim.Config{Unrecorded: sim.Hangs, NoticeRing: 1, NoticeTime: 7}) }
	asIs := sim.Naming{Handle: func(_ sim.Kind, h uint64) uint64 { return h }}
	same := func(r *rig) string { return string(r.d.AppendCanonical(nil, asIs)) }
	plain := same(base())
	require.Equal(t, plain, same(base()))
	seen := map[string]string{plain: "nothing"}
	for name, do := range map[string]func(*rig){
		"a kernel queued": func(r *rig) { r.d.Submit(ctx, r.coreS, r.core) },
		"a copy queued": func(r *rig) {
			r.d.CopyAsync(ctx, backend.Span{Mem: r.args, Size: 1}, backend.Span{Mem: r.args, Offset: 1, Size: 1}, r.coreS)
		},
		"a wait queued":         func(r *rig) { r.d.StreamWaitEvent(ctx, r.coreS, r.coreE) },
		"a record queued":       func(r *rig) { r.d.RecordEvent(ctx, r.coreE, r.coreS) },
		"a record of the other": func(r *rig) { r.d.RecordEvent(ctx, r.cpuE, r.coreS) },
		"a record elsewhere":    func(r *rig) { r.d.RecordEvent(ctx, r.coreE, r.cpuS) },
		"a record executed":     func(r *rig) { r.d.RecordEvent(ctx, r.coreE, r.coreS); r.d.Advance(1) },
		"a record proven":       func(r *rig) { r.d.RecordEvent(ctx, r.coreE, r.coreS); r.d.WaitEvent(ctx, r.coreE, 1) },
		"an unpartnered kernel": func(r *rig) { r.d.Submit(ctx, r.coreS, r.core); r.d.SynchronizeStream(ctx, r.coreS, time.Second) },
		"an error seen":         func(r *rig) { r.d.WaitEvent(ctx, r.coreE, 0) },
		"another thread":        func(r *rig) { r.d.SetThread(1) },
		"no context":            func(r *rig) { r.d.SetCurrent(0) },
		"a foreign context":     func(r *rig) { r.d.SetCurrent(r.d.NewContext(true)) },
		"a capture":             func(r *rig) { r.d.SetCapture(r.coreS, backend.CaptureActive) },
		"a stream more":         func(r *rig) { r.d.CreateStream(ctx) },
		"an event less":         func(r *rig) { r.d.DestroyEvent(ctx, r.coreE) },
		"other bytes": func(r *rig) {
			r.d.Peek(r.args)[3] = 1
		},
		"a call begun":       func(r *rig) { r.d.Begin(sim.Op{Kind: sim.OpQueryEvent, Event: r.coreE}) },
		"another call begun": func(r *rig) { r.d.Begin(sim.Op{Kind: sim.OpQueryEvent, Event: r.cpuE}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := base()
			do(r)
			if other, met := seen[same(r)]; met {
				t.Fatalf("cannot be told from: %s", other)
			}
			seen[same(r)] = name
		})
	}
}

// The clock and the violations are not in the bytes.
func TestCanonicalBytesLeaveOut(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, sim.Config{})
	before := string(r.d.AppendCanonical(nil, sim.Naming{}))
	r.d.Advance(time.Hour)
	r.d.Free(ctx, 0)
	r.d.SetCurrent(r.d.Home())
	require.Equal(t, before, string(r.d.AppendCanonical(nil, sim.Naming{})))
	e, _ := r.d.CreateEvent(ctx)
	r.d.DestroyEvent(ctx, e)
	r.d.DestroyEvent(ctx, e)
	require.Len(t, r.d.Violations(), 1)
	require.Equal(t, before, string(r.d.AppendCanonical(nil, sim.Naming{})))
}

// A naming renames contexts, calls and the identities that memory holds.
func TestNamingOfEveryKind(t *testing.T) {
	type world struct {
		d     *sim.Device
		names map[uint64]uint64
	}
	build := func(swap bool, epoch byte) world {
		d := device(t, sim.Config{})
		w := world{d: d, names: map[uint64]uint64{}}
		x := [2]backend.Context{d.NewContext(true), d.NewContext(true)}
		m := backend.Memory(call(d, sim.Op{Kind: sim.OpAlloc, Place: backend.PinnedMemory, Size: 1}).Handle)
		call(d, sim.Op{Kind: sim.OpWrite, Memory: m, Data: []byte{epoch}})
		first, second := 0, 1
		if swap {
			first, second = 1, 0
		}
		d.SetCurrent(x[first])
		ops := [2]sim.Op{{Kind: sim.OpCurrentContext}, {Kind: sim.OpCreateEvent}}
		var k [2]sim.Ticket
		k[first] = d.Begin(ops[first])
		k[second] = d.Begin(ops[second])
		w.names[uint64(x[first])], w.names[uint64(x[second])] = 5, 9
		w.names[uint64(k[0])], w.names[uint64(k[1])] = 1, 2
		w.names[uint64(m)] = 3
		return w
	}
	bytes := func(w world, epoch byte) string {
		return string(w.d.AppendCanonical(nil, sim.Naming{
			Handle: func(_ sim.Kind, h uint64) uint64 { return w.names[h] },
			Memory: func(dst []byte, _ backend.Memory, content []byte) []byte {
				if content[0] == epoch {
					return append(dst, 1) // the first epoch
				}
				return append(dst, 2)
			},
		}))
	}
	a, b := build(false, 77), build(true, 200)
	require.Equal(t, bytes(a, 77), bytes(b, 200))
	require.NotEqual(t, bytes(a, 77), bytes(b, 77))
}

// Numbers count themselves, not only their order: a handle that another state
// of the same world lacks is missed.
func TestNumbersCount(t *testing.T) {
	r := newRig(t, sim.Config{})
	k := r.d.Begin(sim.Op{Kind: sim.OpCurrentContext})
	x := r.d.NewContext(true)
	bytes := func(of, number uint64) string {
		return string(r.d.AppendCanonical(nil, sim.Naming{Handle: func(_ sim.Kind, h uint64) uint64 {
			if h == of {
				return number
			}
			return 0
		}}))
	}
	for _, h := range []uint64{uint64(r.coreS), uint64(r.coreE), uint64(r.args), uint64(k), uint64(x)} {
		require.Equal(t, bytes(h, 2), bytes(h, 2))
		require.NotEqual(t, bytes(h, 2), bytes(h, 3), "%s", sim.HandleName(h))
	}
}

// Whatever is different about a call that is under way, or about its answer that
// has not been taken yet, is part of the state.
func TestCallsCount(t *testing.T) {
	ctx := context.Background()
	apply := func(r *rig, kind sim.ChoiceKind, k sim.Ticket, code backend.Code) {
		t.Helper()
		require.NoError(t, r.d.Apply(sim.Choice{Kind: kind, Target: uint64(k), Code: code}))
	}
	through := func(r *rig, k sim.Ticket) {
		apply(r, sim.ChooseEffect, k, 0)
		apply(r, sim.ChooseReturn, k, 0)
	}
	record := func(r *rig) sim.Op { return sim.Op{Kind: sim.OpRecordEvent, Event: r.coreE, Stream: r.coreS} }
	for name, ways := range map[string][2]func(*rig){
		"status": {
			func(r *rig) {
				k := r.d.Begin(sim.Op{Kind: sim.OpQueryEvent, Event: r.coreE})
				apply(r, sim.ChooseEffect, k, 0)
				r.d.RecordEvent(ctx, r.coreE, r.coreS)
				r.d.SynchronizeStream(ctx, r.coreS, 1)
			},
			func(r *rig) {
				k := r.d.Begin(sim.Op{Kind: sim.OpQueryEvent, Event: r.coreE})
				r.d.RecordEvent(ctx, r.coreE, r.coreS)
				r.d.SynchronizeStream(ctx, r.coreS, 1)
				apply(r, sim.ChooseEffect, k, 0)
			},
		},
		"acceptance": {
			func(r *rig) {
				k := r.d.Begin(record(r))
				apply(r, sim.ChooseEffect, k, 0)
				apply(r, sim.ChooseFail, k, backend.InternalError)
			},
			func(r *rig) {
				k := r.d.Begin(record(r))
				apply(r, sim.ChooseEffect, k, 0)
				apply(r, sim.ChooseFailAccepted, k, backend.InternalError)
			},
		},
		"last error": {
			func(r *rig) {
				through(r, r.d.Begin(sim.Op{Kind: sim.OpCurrentContext}))
				r.d.WaitEvent(ctx, r.coreE, 0)
			},
			func(r *rig) {
				r.d.WaitEvent(ctx, r.coreE, 0)
				through(r, r.d.Begin(sim.Op{Kind: sim.OpCurrentContext}))
			},
		},
		"handle": {
			func(r *rig) {
				k, l := r.d.Begin(sim.Op{Kind: sim.OpCreateEvent}), r.d.Begin(sim.Op{Kind: sim.OpCreateEvent})
				through(r, k)
				through(r, l)
			},
			func(r *rig) {
				k, l := r.d.Begin(sim.Op{Kind: sim.OpCreateEvent}), r.d.Begin(sim.Op{Kind: sim.OpCreateEvent})
				through(r, l)
				through(r, k)
			},
		},
		"timeout": {
			func(r *rig) { r.d.Begin(sim.Op{Kind: sim.OpSynchronizeStream, Stream: r.coreS}) },
			func(r *rig) { r.d.Begin(sim.Op{Kind: sim.OpSynchronizeStream, Stream: r.coreS, Timeout: 1}) },
		},
		"bytes to write": {
			func(r *rig) { r.d.Begin(sim.Op{Kind: sim.OpWrite, Memory: r.args, Data: []byte{1}}) },
			func(r *rig) { r.d.Begin(sim.Op{Kind: sim.OpWrite, Memory: r.args, Data: []byte{2}}) },
		},
		"thread": {
			func(r *rig) {
				r.d.SetThread(1)
				r.d.Begin(record(r))
				r.d.SetThread(0)
			},
			func(r *rig) {
				r.d.SetThread(1)
				r.d.SetThread(0)
				r.d.Begin(record(r))
			},
		},
		"phase": {
			func(r *rig) { apply(r, sim.ChooseEffect, r.d.Begin(sim.Op{Kind: sim.OpCurrentContext}), 0) },
			func(r *rig) { through(r, r.d.Begin(sim.Op{Kind: sim.OpCurrentContext})) },
		},
	} {
		seen := map[string]bool{}
		for _, way := range ways {
			r := newRig(t, sim.Config{Budget: 1, Faults: sim.Faults(sim.FailAfter, sim.FailAccepted)})
			way(r)
			asIs := sim.Naming{Handle: func(_ sim.Kind, h uint64) uint64 { return h }}
			seen[string(r.d.AppendCanonical(nil, asIs))] = true
		}
		require.Len(t, seen, 2, name)
	}
}

// Whether a kernel's flag is out counts, even if it stores nothing.
func TestAFlagCounts(t *testing.T) {
	r := newRig(t, sim.Config{Kernels: []sim.KernelSpec{{Class: backend.AICPU, Flag: true}}})
	r.d.Submit(context.Background(), r.cpuS, backend.Launch{Class: backend.AICPU, Kernel: 1})
	before := string(r.d.AppendCanonical(nil, sim.Naming{}))
	require.NoError(t, r.d.Apply(sim.Choice{Kind: sim.ChooseFlag, Target: uint64(r.cpuS)}))
	require.NotEqual(t, before, string(r.d.AppendCanonical(nil, sim.Naming{})))
}

// With residue, bytes behind the end of an allocation count: they are seen
// again once it is freed.
func TestResidueBehindTheEndCounts(t *testing.T) {
	ctx := context.Background()
	seen := map[string]bool{}
	for _, v := range []byte{1, 2} {
		d := device(t, sim.Config{Residue: true})
		m, _ := d.Alloc(ctx, backend.PinnedMemory, 8)
		require.True(t, d.Write(ctx, m, 7, []byte{v}).Ok())
		d.Free(ctx, m)
		d.Alloc(ctx, backend.PinnedMemory, 4)
		seen[string(d.AppendCanonical(nil, sim.Naming{}))] = true
	}
	require.Len(t, seen, 2)
}
