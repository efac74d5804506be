package states

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// device carries out the commands of the rules on a backend. It decides
// nothing: it only knows which handles a slot has. The rules see to it that a
// slot's handles are written by one command while no other reads them.
type device struct {
	b       backend.Backend
	timeout time.Duration
	slots   []slot
	calls   []func(d *device, ctx context.Context, c *machine.Command) machine.Result

	mu     sync.Mutex
	works  map[uint64]Work
	images map[uint64]*image
	nextID uint64
	// again: work stays when a run was prepared of it; see Commands.
	again bool

	// skipped and lost are the notices that a confirmed reset found in the
	// ring, and those that the ring had no room for.
	skipped, lost atomic.Uint64
}

// slot is what belongs to a pipeline slot and outlives its runs.
type slot struct {
	core, cpu         backend.Stream
	coreDone, cpuDone backend.Event
	caller            backend.Stream // of the present run, or zero
	start, fork, tail backend.Event
	coreID, cpuID     int32 // under which notices name the streams
	args, pinned      backend.Memory
	argsSize          uint64
	region, source    backend.Memory
	record            [recordSize]byte
	head              [ArgsOffset]byte
	work              Work
	workID            uint64
}

// Work is what a run executes: two kernels and the bytes that both are given.
type Work struct {
	Core, CPU backend.Kernel
	// Blocks of the AICore kernel; 0 means 1.
	Blocks uint32
	// Args are copied to pinned memory while the run is prepared, behind the
	// head that [ArgsOffset] describes. They must not change until Prepare returns.
	Args []byte
	// Caller is the stream that the run is ordered against; zero is none. It
	// must live until the run is finalized (F20).
	Caller backend.Stream
	// Async publishes the argument block on the AICPU stream at launch instead
	// of while the run is prepared (F31).
	Async bool
}

var calls = map[string]func(d *device, ctx context.Context, c *machine.Command) machine.Result{
	"CurrentContext": (*device).currentContext,
	"CreateContext":  (*device).createContext,
	"Teardown":       (*device).teardown,
	"OpenSlots":      (*device).openSlots,
	"ReleaseSlots":   (*device).teardown,
	"PrepareRun":     (*device).prepareRun,
	"ReleaseRun":     (*device).releaseRun,
	"MakeEvents":     (*device).makeEvents,
	"SubmitCore": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return d.submit(ctx, s, s.core, backend.AICore, s.work.Core)
	},
	"SubmitCPU": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return d.submit(ctx, s, s.cpu, backend.AICPU, s.work.CPU)
	},
	"RecordCore": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.RecordEvent(ctx, s.coreDone, s.core), uint64(uint32(s.coreID)))
	},
	"RecordCPU": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.RecordEvent(ctx, s.cpuDone, s.cpu), uint64(uint32(s.cpuID)))
	},
	"QueryCore": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return status(d.b.QueryEvent(ctx, d.slots[c.Ref.Slot].coreDone))
	},
	"QueryCPU": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return status(d.b.QueryEvent(ctx, d.slots[c.Ref.Slot].cpuDone))
	},
	"QueryCoreStream": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return status(d.b.QueryStream(ctx, d.slots[c.Ref.Slot].core))
	},
	"QueryCPUStream": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return status(d.b.QueryStream(ctx, d.slots[c.Ref.Slot].cpu))
	},
	"WaitCore": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return answer(d.b.WaitEvent(ctx, d.slots[c.Ref.Slot].coreDone, d.timeout), 0)
	},
	"WaitCPU": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return answer(d.b.WaitEvent(ctx, d.slots[c.Ref.Slot].cpuDone, d.timeout), 0)
	},
	"SyncCore": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return answer(d.b.SynchronizeStream(ctx, d.slots[c.Ref.Slot].core, d.timeout), 0)
	},
	"SyncCPU": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return answer(d.b.SynchronizeStream(ctx, d.slots[c.Ref.Slot].cpu, d.timeout), 0)
	},
	"QueueWait":       (*device).queueWait,
	"AllocateRegion":  (*device).allocateRegion,
	"RollBack":        (*device).rollBack,
	"CheckCaller":     (*device).checkCaller,
	"CaptureStatus":   (*device).captureStatus,
	"MakeOrderEvents": (*device).makeOrderEvents,
	"PublishRegion":   (*device).publishRegion,
	"CopyDescriptor":  (*device).copyDescriptor,
	"ReadRecord":      (*device).readRecord,
	"DrainDevice":     (*device).drainDevice,
	"ResetDevice":     (*device).resetDevice,
	"Upload":          (*device).upload,
	"Remove":          (*device).removeImage,
	"QueueJoinCore": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return d.queueJoin(ctx, c, true)
	},
	"QueueJoinCPU": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return d.queueJoin(ctx, c, false)
	},
	"RecordStart": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.RecordEvent(ctx, s.start, s.caller), 0)
	},
	"WaitStart": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.StreamWaitEvent(ctx, s.cpu, s.start), 0)
	},
	"RecordFork": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.RecordEvent(ctx, s.fork, s.cpu), 0)
	},
	"WaitFork": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.StreamWaitEvent(ctx, s.core, s.fork), 0)
	},
	"WaitCoreDone": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.StreamWaitEvent(ctx, s.cpu, s.coreDone), 0)
	},
	"WaitCPUDone": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.StreamWaitEvent(ctx, s.caller, s.cpuDone), 0)
	},
	"RecordTail": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		s := &d.slots[c.Ref.Slot]
		return answer(d.b.RecordEvent(ctx, s.tail, s.caller), 0)
	},
	"QueryTail": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return status(d.b.QueryEvent(ctx, d.slots[c.Ref.Slot].tail))
	},
	"WaitTail": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return answer(d.b.WaitEvent(ctx, d.slots[c.Ref.Slot].tail, d.timeout), 0)
	},
	"SyncCaller": func(d *device, ctx context.Context, c *machine.Command) machine.Result {
		return answer(d.b.SynchronizeStream(ctx, d.slots[c.Ref.Slot].caller, d.timeout), 0)
	},
}

// newDevice binds every command of the rules; a command that it does not know
// is an error, not a surprise in the middle of a run.
func newDevice(r *machine.Rules, b backend.Backend, slots int, timeout time.Duration) (*device, error) {
	d := &device{b: b, timeout: timeout, slots: make([]slot, slots), works: map[uint64]Work{}, images: map[uint64]*image{}}
	for _, name := range r.Calls() {
		f := calls[name]
		if f == nil {
			return nil, &UnknownCommandError{Command: name}
		}
		d.calls = append(d.calls, f)
	}
	return d, nil
}

// UnknownCommandError says that rules name a command that no backend call stands for.
type UnknownCommandError struct{ Command string }

// Error names the command.
func (e *UnknownCommandError) Error() string {
	return "states: no backend call stands for command " + e.Command
}

// Perform implements machine.Performer.
func (d *device) Perform(ctx context.Context, c *machine.Command) machine.Result {
	return d.calls[c.Call](d, ctx, c)
}

func answer(r backend.Result, value uint64) machine.Result {
	return machine.Result{
		Outcome: r.Outcome, Accepted: r.Accepted,
		Codes: machine.Codes{Code: int32(r.Code), Last: int32(r.LastError)},
		Value: value,
	}
}

func status(s backend.Status, r backend.Result) machine.Result { return answer(r, uint64(s)) }

func (d *device) currentContext(ctx context.Context, _ *machine.Command) machine.Result {
	c, r := d.b.CurrentContext(ctx)
	return answer(r, uint64(c))
}

// createContext: a backend of one's own is opened with its context, so this
// learns which it is and that it is of the device that is meant.
func (d *device) createContext(ctx context.Context, c *machine.Command) machine.Result {
	if uint64(d.b.Device()) != c.Args[0] {
		return answer(backend.Result{Outcome: machine.Refused, Code: backend.InvalidParam}, 0)
	}
	return d.currentContext(ctx, c)
}

func (d *device) openSlots(ctx context.Context, _ *machine.Command) machine.Result {
	for i := range d.slots {
		s := &d.slots[i]
		for _, q := range []struct {
			s  *backend.Stream
			id *int32
		}{{&s.core, &s.coreID}, {&s.cpu, &s.cpuID}} {
			if *q.s != 0 {
				continue
			}
			h, r := d.b.CreateStream(ctx)
			if !r.Ok() {
				return answer(r, 0)
			}
			*q.s = h
			if *q.id, r = d.b.StreamID(ctx, h); !r.Ok() {
				return answer(r, 0)
			}
		}
	}
	return machine.Result{}
}

// gone reports whether a destroyed handle names nothing any more. A destroy
// that was attempted and failed may have taken effect all the same: trying it
// again is then answered with InvalidHandle, and that is as good as a success.
func gone(r backend.Result) bool {
	return r.Ok() || (r.Outcome == machine.Refused && r.Code == backend.InvalidHandle)
}

// teardown gives back every handle the slots still have, events first, and then
// the callables' images. What fails stays where it is for the next try.
func (d *device) teardown(ctx context.Context, _ *machine.Command) machine.Result {
	for i := range d.slots {
		s := &d.slots[i]
		for _, e := range []*backend.Event{&s.coreDone, &s.cpuDone, &s.start, &s.fork, &s.tail} {
			if *e != 0 {
				if r := d.b.DestroyEvent(ctx, *e); !gone(r) {
					return answer(r, 0)
				}
				*e = 0
			}
		}
		for _, q := range []*backend.Stream{&s.core, &s.cpu} {
			if *q != 0 {
				if r := d.b.DestroyStream(ctx, *q); !gone(r) {
					return answer(r, 0)
				}
				*q = 0
			}
		}
		for _, m := range []*backend.Memory{&s.args, &s.pinned, &s.region, &s.source} {
			if *m != 0 {
				if r := d.b.Free(ctx, *m); !gone(r) {
					return answer(r, 0)
				}
				*m = 0
			}
		}
		s.argsSize = 0
	}
	d.mu.Lock()
	images := maps.Clone(d.images)
	d.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(images)) {
		im := images[id]
		if r := im.free(ctx, d.b, &im.host, &im.mem); !r.Ok() {
			return answer(r, 0)
		}
	}
	return machine.Result{}
}

// prepareRun gives the run its argument block. The blocks belong to the slot
// and are made when one is first needed, or needed larger. Memory that is not
// to be had now is a resource to wait for, not a failure (F70).
func (d *device) prepareRun(ctx context.Context, c *machine.Command) machine.Result {
	d.mu.Lock()
	w := d.works[c.Args[0]]
	d.mu.Unlock()
	s := &d.slots[c.Ref.Slot]
	size := ArgsOffset + uint64(len(w.Args))
	if s.argsSize < size {
		if res, ok := d.enlarge(ctx, s, size); !ok {
			return res
		}
	}
	le := binary.LittleEndian
	le.PutUint64(s.head[0:], uint64(s.region))
	le.PutUint64(s.head[8:], c.Args[1])
	le.PutUint64(s.head[16:], c.Args[2])
	r := d.b.Write(ctx, s.pinned, 0, s.head[:])
	if r.Ok() && len(w.Args) > 0 {
		r = d.b.Write(ctx, s.pinned, ArgsOffset, w.Args)
	}
	if r.Ok() && !w.Async {
		r = d.b.Copy(ctx, backend.Span{Mem: s.args, Size: size}, backend.Span{Mem: s.pinned, Size: size})
	}
	if !r.Ok() {
		return answer(r, 0)
	}
	s.work, s.caller, s.workID = w, w.Caller, c.Args[0]
	if !d.again {
		d.remove(c.Args[0])
	}
	return machine.Result{}
}

// enlarge makes larger blocks for a slot. ok is false if the answer is to be
// given as it is.
func (d *device) enlarge(ctx context.Context, s *slot, size uint64) (res machine.Result, ok bool) {
	for _, m := range []*backend.Memory{&s.args, &s.pinned} {
		if *m != 0 {
			if r := d.b.Free(ctx, *m); !gone(r) {
				return answer(r, 0), false
			}
			*m = 0
		}
	}
	s.argsSize = 0
	var r backend.Result
	if s.args, r = d.b.Alloc(ctx, backend.DeviceMemory, size); r.Ok() {
		s.pinned, r = d.b.Alloc(ctx, backend.PinnedMemory, size)
	}
	switch {
	case r.Ok():
		s.argsSize = size
		return machine.Result{}, true
	case r.Code == backend.OutOfMemory:
		res = answer(r, 1)
		res.Outcome = machine.OK
		return res, false
	}
	return answer(r, 0), false
}

// releaseRun lets go of what was the run's. The slot's blocks stay for the next.
func (d *device) releaseRun(_ context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	s.work, s.caller, s.workID = Work{}, 0, 0
	return machine.Result{}
}

// makeEvents makes the slot's events once; later runs re-record them.
func (d *device) makeEvents(ctx context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	return d.makeEach(ctx, &s.coreDone, &s.cpuDone)
}

func (d *device) submit(ctx context.Context, s *slot, q backend.Stream, class backend.Class, k backend.Kernel) machine.Result {
	l := backend.Launch{Class: class, Kernel: k, Args: s.args, Blocks: 1}
	if class == backend.AICore && s.work.Blocks > 1 {
		l.Blocks = s.work.Blocks
	}
	return answer(d.b.Submit(ctx, q, l), 0)
}

// queueWait queues a wait of a stream of one slot on a boundary of another.
func (d *device) queueWait(ctx context.Context, c *machine.Command) machine.Result {
	holder, waiter := c.Args[0], Waiter(c.Args[1])
	fence, boundary := c.Args[2], Boundary(c.Args[3])
	by, on := &d.slots[machine.UnpackRef(holder).Slot], &d.slots[machine.UnpackRef(fence).Slot]
	q := [...]backend.Stream{CoreStream: by.core, CPUStream: by.cpu, CallerStream: by.caller}[waiter]
	e := [...]backend.Event{CoreDone: on.coreDone, CPUDone: on.cpuDone}[boundary]
	return answer(d.b.StreamWaitEvent(ctx, q, e), 0)
}

// add puts work where PrepareRun finds it.
func (d *device) add(w Work) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nextID++
	d.works[d.nextID] = w
	return d.nextID
}

// remove takes work back that was not prepared.
func (d *device) remove(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.works, id)
}
