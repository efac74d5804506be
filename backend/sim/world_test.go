package sim_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// toys is a small fixed population of handles, by logical number. Handles that
// were destroyed stay in it, so that programs use them too.
type toys struct {
	streams []backend.Stream
	events  []backend.Event
	mems    []backend.Memory
	kernels int
}

// Kernels that programs launch: paired, spinning, flagged, fatal, plain.
func toyKernels() []sim.KernelSpec {
	const us = time.Microsecond
	store := []sim.Store{{When: sim.AtFlag, Offset: 7, Size: 1, Value: 1}, {When: sim.AtExit, Offset: 6, Size: 1, Value: 2}}
	return []sim.KernelSpec{
		{Name: "core", Class: backend.AICore, Duration: 3 * us, Paired: true},
		{Name: "spin", Class: backend.AICore, Duration: 4 * us, Paired: true, Spin: true},
		{Name: "cpu", Class: backend.AICPU, Duration: 5 * us, Paired: true, Flag: true, FlagAfter: 2 * us, Stores: store},
		{Name: "fatal", Class: backend.AICPU, Duration: us, Exit: backend.AICPUException, Stores: []sim.Store{{When: sim.AtFatal, Offset: 5, Size: 1, Value: 9}}},
		{Name: "plain", Class: backend.AICore, Duration: 3 * us},
	}
}

var toyClass = []backend.Class{backend.AICore, backend.AICore, backend.AICPU, backend.AICPU, backend.AICore}

const (
	toyStreams = 3
	toyEvents  = 3
	toyMems    = 4 // the first two on the device, the others pinned
	toySize    = 8
)

// make creates the population on a backend in the order of the permutations,
// which may be nil.
func makeToys(b backend.Backend, streams, events, mems []int) toys {
	order := func(p []int, n int) []int {
		if p != nil {
			return p
		}
		for i := range n {
			p = append(p, i)
		}
		return p
	}
	w := toys{
		streams: make([]backend.Stream, toyStreams), events: make([]backend.Event, toyEvents),
		mems: make([]backend.Memory, toyMems), kernels: len(toyClass),
	}
	for _, i := range order(streams, toyStreams) {
		w.streams[i] = backend.Stream(call(b, sim.Op{Kind: sim.OpCreateStream}).Handle)
	}
	for _, i := range order(events, toyEvents) {
		w.events[i] = backend.Event(call(b, sim.Op{Kind: sim.OpCreateEvent}).Handle)
	}
	for _, i := range order(mems, toyMems) {
		place := backend.DeviceMemory
		if i >= 2 {
			place = backend.PinnedMemory
		}
		w.mems[i] = backend.Memory(call(b, sim.Op{Kind: sim.OpAlloc, Place: place, Size: toySize}).Handle)
	}
	return w
}

// naming numbers the population by its logical numbers.
func (w *toys) naming() sim.Naming {
	return sim.Naming{Handle: func(k sim.Kind, h uint64) uint64 {
		switch k {
		case sim.KindStream:
			return find(w.streams, backend.Stream(h))
		case sim.KindEvent:
			return find(w.events, backend.Event(h))
		case sim.KindMemory:
			return find(w.mems, backend.Memory(h))
		}
		return 0
	}}
}

func find[H comparable](list []H, h H) uint64 {
	for i, x := range list {
		if x == h {
			return uint64(i + 1)
		}
	}
	return 0
}

// step is one op in logical numbers.
type step struct {
	kind         sim.OpKind
	stream       int
	event        int
	mem, other   int
	offset, size uint64
	kernel       int
	timeout      time.Duration
	data         byte
}

func genStep() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		kinds := []sim.OpKind{
			sim.OpSubmitAICore, sim.OpSubmitAICore, sim.OpSubmitAICore, sim.OpRecordEvent, sim.OpRecordEvent,
			sim.OpStreamWaitEvent, sim.OpStreamWaitEvent, sim.OpCopyAsync, sim.OpQueryEvent, sim.OpQueryStream,
			sim.OpWaitEvent, sim.OpSynchronizeStream, sim.OpWrite, sim.OpRead, sim.OpCopy, sim.OpFree, sim.OpAlloc,
			sim.OpDestroyEvent, sim.OpCreateEvent, sim.OpDestroyStream, sim.OpCreateStream, sim.OpReset,
			sim.OpCaptureStatus, sim.OpCurrentContext,
		}
		return step{
			kind:    rapid.SampledFrom(kinds).Draw(t, "kind"),
			stream:  rapid.IntRange(0, toyStreams-1).Draw(t, "stream"),
			event:   rapid.IntRange(0, toyEvents-1).Draw(t, "event"),
			mem:     rapid.IntRange(0, toyMems-1).Draw(t, "mem"),
			other:   rapid.IntRange(0, toyMems-1).Draw(t, "other"),
			offset:  rapid.Uint64Range(0, 5).Draw(t, "offset"),
			size:    rapid.Uint64Range(0, 4).Draw(t, "size"),
			kernel:  rapid.IntRange(0, len(toyClass)-1).Draw(t, "kernel"),
			timeout: rapid.SampledFrom([]time.Duration{-1, 0, 1, 2000, 20000}).Draw(t, "timeout"),
			data:    rapid.Byte().Draw(t, "data"),
		}
	})
}

// op is the step in the handles of a population.
func (w *toys) op(s step) sim.Op {
	op := sim.Op{Kind: s.kind}
	switch s.kind {
	case sim.OpSubmitAICore, sim.OpSubmitAICPU:
		l := backend.Launch{Class: toyClass[s.kernel], Kernel: backend.Kernel(s.kernel + 1), Args: w.mems[s.mem%2], Blocks: 1}
		return sim.SubmitOp(w.streams[s.stream], l)
	case sim.OpRecordEvent, sim.OpStreamWaitEvent:
		op.Stream, op.Event = w.streams[s.stream], w.events[s.event]
	case sim.OpQueryEvent, sim.OpDestroyEvent:
		op.Event = w.events[s.event]
	case sim.OpQueryStream, sim.OpDestroyStream, sim.OpCaptureStatus:
		op.Stream = w.streams[s.stream]
	case sim.OpWaitEvent:
		op.Event, op.Timeout = w.events[s.event], s.timeout
	case sim.OpSynchronizeStream:
		op.Stream, op.Timeout = w.streams[s.stream], s.timeout
	case sim.OpWrite:
		op.Memory, op.Offset, op.Data = w.mems[s.mem], s.offset, []byte{s.data, s.data}
	case sim.OpRead:
		op.Memory, op.Offset, op.Size = w.mems[s.mem], s.offset, s.size
	case sim.OpCopy, sim.OpCopyAsync:
		op.Dst = backend.Span{Mem: w.mems[s.mem], Offset: s.offset, Size: s.size}
		op.Src = backend.Span{Mem: w.mems[s.other], Offset: s.offset, Size: s.size}
		if s.kind == sim.OpCopyAsync {
			op.Stream = w.streams[s.stream]
		}
	case sim.OpFree:
		op.Memory = w.mems[s.mem]
	case sim.OpAlloc:
		op.Size = toySize
		if s.mem >= 2 {
			op.Place = backend.PinnedMemory
		}
	}
	return op
}

// took puts a handle that a step minted into its place in the population.
func (w *toys) took(s step, a sim.Answer) {
	if a.Handle == 0 {
		return
	}
	switch s.kind {
	case sim.OpCreateStream:
		w.streams[s.stream] = backend.Stream(a.Handle)
	case sim.OpCreateEvent:
		w.events[s.event] = backend.Event(a.Handle)
	case sim.OpAlloc:
		w.mems[s.mem] = backend.Memory(a.Handle)
	}
}
