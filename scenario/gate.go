package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/states"
)

// gate is the device as a lane sees it: every call passes the holds, and what
// it makes is named. The context that a call comes with is left out: it only
// bounds the patience of the caller, and the script has none.
type gate struct {
	s *session
	l *lane
	b backend.Backend
}

var free = context.Background()

// deviceCalls are the names of the device's calls that a hold or a fault can name.
func deviceCalls() []string {
	var out []string
	for k := sim.OpCurrentContext; k <= sim.OpReset; k++ {
		out = append(out, k.String())
	}
	return out
}

func (g *gate) pass(op sim.OpKind, make func() backend.Result) backend.Result {
	return g.s.pass(g.l, op.String(), make)
}

// name gives a handle the first name of a list that is free.
func (g *gate) name(k sim.Kind, number uint64, names ...string) {
	for _, n := range names {
		if len(g.s.laneList) > 0 && g.s.laneList[0] != g.l {
			n = g.l.name + "." + n
		}
		if _, taken := g.s.naming.handles[n]; !taken {
			g.s.naming.add(n, k, number)
			return
		}
	}
}

// slotted adds the slot to a name, unless the lane has one slot only.
func (g *gate) slotted(n string, slot int) string {
	if g.l.config.Slots <= 1 {
		return n
	}
	return fmt.Sprintf("%s%d", n, slot)
}

// slot is that of the command under way.
func (g *gate) slot() int { return int(g.l.recorder.issued.ref.Slot) }

// Device implements [backend.Backend].
func (g *gate) Device() int32 { return g.b.Device() }

// CurrentContext implements [backend.Backend].
func (g *gate) CurrentContext(context.Context) (c backend.Context, r backend.Result) {
	r = g.pass(sim.OpCurrentContext, func() (r backend.Result) { c, r = g.b.CurrentContext(free); return r })
	return c, r
}

// CreateStream implements [backend.Backend]. A lane makes the streams of its
// slots in order, AICore first.
func (g *gate) CreateStream(context.Context) (st backend.Stream, r backend.Result) {
	r = g.pass(sim.OpCreateStream, func() (r backend.Result) {
		if st, r = g.b.CreateStream(free); r.Ok() {
			var names []string
			for i := range max(1, g.l.config.Slots) {
				names = append(names, g.slotted("core", i), g.slotted("cpu", i))
			}
			g.name(sim.KindStream, uint64(st), names...)
			g.s.timeline.column(st, g.s.naming.stream(st))
		}
		return r
	})
	return st, r
}

// DestroyStream implements [backend.Backend].
func (g *gate) DestroyStream(_ context.Context, st backend.Stream) backend.Result {
	r := g.pass(sim.OpDestroyStream, func() backend.Result { return g.b.DestroyStream(free, st) })
	if r.Ok() {
		g.s.naming.gone(sim.KindStream, uint64(st))
	}
	return r
}

// StreamID implements [backend.Backend].
func (g *gate) StreamID(_ context.Context, st backend.Stream) (id int32, r backend.Result) {
	r = g.pass(sim.OpStreamID, func() (r backend.Result) { id, r = g.b.StreamID(free, st); return r })
	return id, r
}

// QueryStream implements [backend.Backend].
func (g *gate) QueryStream(_ context.Context, st backend.Stream) (x backend.Status, r backend.Result) {
	r = g.pass(sim.OpQueryStream, func() (r backend.Result) { x, r = g.b.QueryStream(free, st); return r })
	return x, r
}

// SynchronizeStream implements [backend.Backend].
func (g *gate) SynchronizeStream(_ context.Context, st backend.Stream, t time.Duration) backend.Result {
	return g.pass(sim.OpSynchronizeStream, func() backend.Result { return g.b.SynchronizeStream(free, st, t) })
}

// CaptureStatus implements [backend.Backend].
func (g *gate) CaptureStatus(_ context.Context, st backend.Stream) (c backend.Capture, r backend.Result) {
	r = g.pass(sim.OpCaptureStatus, func() (r backend.Result) { c, r = g.b.CaptureStatus(free, st); return r })
	return c, r
}

// CreateEvent implements [backend.Backend]. The events of a slot are made in
// order.
func (g *gate) CreateEvent(context.Context) (e backend.Event, r backend.Result) {
	slot := g.slot()
	r = g.pass(sim.OpCreateEvent, func() (r backend.Result) {
		if e, r = g.b.CreateEvent(free); r.Ok() {
			names := []string{"core_done", "cpu_done"}
			if g.l.recorder.issued.call == "MakeOrderEvents" {
				names = []string{"start", "fork", "tail"}
			}
			for i := range names {
				names[i] = g.slotted(names[i], slot)
			}
			g.name(sim.KindEvent, uint64(e), names...)
		}
		return r
	})
	return e, r
}

// RecordEvent implements [backend.Backend].
func (g *gate) RecordEvent(_ context.Context, e backend.Event, st backend.Stream) backend.Result {
	return g.pass(sim.OpRecordEvent, func() backend.Result { return g.b.RecordEvent(free, e, st) })
}

// QueryEvent implements [backend.Backend].
func (g *gate) QueryEvent(_ context.Context, e backend.Event) (x backend.Status, r backend.Result) {
	r = g.pass(sim.OpQueryEvent, func() (r backend.Result) { x, r = g.b.QueryEvent(free, e); return r })
	return x, r
}

// WaitEvent implements [backend.Backend].
func (g *gate) WaitEvent(_ context.Context, e backend.Event, t time.Duration) backend.Result {
	return g.pass(sim.OpWaitEvent, func() backend.Result { return g.b.WaitEvent(free, e, t) })
}

// StreamWaitEvent implements [backend.Backend].
func (g *gate) StreamWaitEvent(_ context.Context, st backend.Stream, e backend.Event) backend.Result {
	return g.pass(sim.OpStreamWaitEvent, func() backend.Result { return g.b.StreamWaitEvent(free, st, e) })
}

// DestroyEvent implements [backend.Backend].
func (g *gate) DestroyEvent(_ context.Context, e backend.Event) backend.Result {
	r := g.pass(sim.OpDestroyEvent, func() backend.Result { return g.b.DestroyEvent(free, e) })
	if r.Ok() {
		g.s.naming.gone(sim.KindEvent, uint64(e))
	}
	return r
}

// imageNames are for the copies of images on the device.
var imageNames = func() (n []string) {
	for i := range states.MaxCallables {
		n = append(n, fmt.Sprintf("image%d", i))
	}
	return n
}()

// Alloc implements [backend.Backend].
func (g *gate) Alloc(_ context.Context, p backend.Place, size uint64) (m backend.Memory, r backend.Result) {
	slot := g.slot()
	r = g.pass(sim.OpAlloc, func() (r backend.Result) {
		if m, r = g.b.Alloc(free, p, size); r.Ok() {
			n := [...]string{backend.DeviceMemory: "args", backend.PinnedMemory: "pinned"}[p]
			if g.l.recorder.issued.call == "AllocateRegion" {
				n = [...]string{backend.DeviceMemory: "result", backend.PinnedMemory: "source"}[p]
			}
			if g.l.recorder.issued.call == "Upload" {
				g.name(sim.KindMemory, uint64(m), imageNames...)
				return r
			}
			g.name(sim.KindMemory, uint64(m), g.slotted(n, slot))
		}
		return r
	})
	return m, r
}

// Free implements [backend.Backend].
func (g *gate) Free(_ context.Context, m backend.Memory) backend.Result {
	r := g.pass(sim.OpFree, func() backend.Result { return g.b.Free(free, m) })
	if r.Ok() {
		g.s.naming.gone(sim.KindMemory, uint64(m))
	}
	return r
}

// Write implements [backend.Backend].
func (g *gate) Write(_ context.Context, m backend.Memory, offset uint64, src []byte) backend.Result {
	return g.pass(sim.OpWrite, func() backend.Result { return g.b.Write(free, m, offset, src) })
}

// Read implements [backend.Backend].
func (g *gate) Read(_ context.Context, dst []byte, m backend.Memory, offset uint64) backend.Result {
	return g.pass(sim.OpRead, func() backend.Result { return g.b.Read(free, dst, m, offset) })
}

// Copy implements [backend.Backend].
func (g *gate) Copy(_ context.Context, dst, src backend.Span) backend.Result {
	return g.pass(sim.OpCopy, func() backend.Result { return g.b.Copy(free, dst, src) })
}

// CopyAsync implements [backend.Backend].
func (g *gate) CopyAsync(_ context.Context, dst, src backend.Span, st backend.Stream) backend.Result {
	return g.pass(sim.OpCopyAsync, func() backend.Result { return g.b.CopyAsync(free, dst, src, st) })
}

// Submit implements [backend.Backend].
func (g *gate) Submit(_ context.Context, st backend.Stream, l backend.Launch) backend.Result {
	op := sim.OpSubmitAICore
	if l.Class == backend.AICPU {
		op = sim.OpSubmitAICPU
	}
	return g.pass(op, func() backend.Result { return g.b.Submit(free, st, l) })
}

// Notices implements [backend.Backend].
func (g *gate) Notices(dst []backend.Notice) (int, uint64) { return g.b.Notices(dst) }

// Reset implements [backend.Backend].
func (g *gate) Reset(context.Context) (ok bool, r backend.Result) {
	r = g.pass(sim.OpReset, func() (r backend.Result) { ok, r = g.b.Reset(free); return r })
	return ok, r
}
