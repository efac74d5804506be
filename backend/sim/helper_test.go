package sim_test

import (
	"context"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// call makes the call that an op describes on any backend.
func call(b backend.Backend, op sim.Op) (a sim.Answer) {
	ctx := context.Background()
	switch op.Kind {
	case sim.OpCurrentContext:
		h, r := b.CurrentContext(ctx)
		return sim.Answer{Result: r, Handle: uint64(h)}
	case sim.OpCreateStream:
		h, r := b.CreateStream(ctx)
		return sim.Answer{Result: r, Handle: uint64(h)}
	case sim.OpDestroyStream:
		a.Result = b.DestroyStream(ctx, op.Stream)
	case sim.OpStreamID:
		a.ID, a.Result = b.StreamID(ctx, op.Stream)
	case sim.OpQueryStream:
		a.Status, a.Result = b.QueryStream(ctx, op.Stream)
	case sim.OpSynchronizeStream:
		a.Result = b.SynchronizeStream(ctx, op.Stream, op.Timeout)
	case sim.OpCaptureStatus:
		a.Capture, a.Result = b.CaptureStatus(ctx, op.Stream)
	case sim.OpCreateEvent:
		h, r := b.CreateEvent(ctx)
		return sim.Answer{Result: r, Handle: uint64(h)}
	case sim.OpRecordEvent:
		a.Result = b.RecordEvent(ctx, op.Event, op.Stream)
	case sim.OpQueryEvent:
		a.Status, a.Result = b.QueryEvent(ctx, op.Event)
	case sim.OpWaitEvent:
		a.Result = b.WaitEvent(ctx, op.Event, op.Timeout)
	case sim.OpStreamWaitEvent:
		a.Result = b.StreamWaitEvent(ctx, op.Stream, op.Event)
	case sim.OpDestroyEvent:
		a.Result = b.DestroyEvent(ctx, op.Event)
	case sim.OpAlloc:
		h, r := b.Alloc(ctx, op.Place, op.Size)
		return sim.Answer{Result: r, Handle: uint64(h)}
	case sim.OpFree:
		a.Result = b.Free(ctx, op.Memory)
	case sim.OpWrite:
		a.Result = b.Write(ctx, op.Memory, op.Offset, op.Data)
	case sim.OpRead:
		a.Data = make([]byte, op.Size)
		a.Result = b.Read(ctx, a.Data, op.Memory, op.Offset)
	case sim.OpCopy:
		a.Result = b.Copy(ctx, op.Dst, op.Src)
	case sim.OpCopyAsync:
		a.Result = b.CopyAsync(ctx, op.Dst, op.Src, op.Stream)
	case sim.OpSubmitAICore, sim.OpSubmitAICPU:
		a.Result = b.Submit(ctx, op.Stream, op.Launch)
	case sim.OpReset:
		a.Confirmed, a.Result = b.Reset(ctx)
	default:
		panic("no such call")
	}
	return a
}
