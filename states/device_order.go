package states

import (
	"context"
	"encoding/binary"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// The argument block of a run begins with what its kernels need to report:
//
//	offset 0   the result region's handle
//	offset 8   the run epoch
//	offset 16  the dispatch
//	offset 24  zero
//	offset 32  Work.Args
//
// and its result region begins with the run's own record: the run epoch it is
// of (8 bytes), then its class (4 bytes): 0 all is well, 1 a header failure, 2
// a participant failure, 3 not every participant claimed the audited path, 4
// an unmarked fallback.
const (
	ArgsOffset = 32
	regionSize = 64
	recordSize = 16
)

func (d *device) allocateRegion(ctx context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	var r backend.Result
	if s.region == 0 {
		if s.region, r = d.b.Alloc(ctx, backend.DeviceMemory, regionSize); !r.Ok() {
			return answer(r, 0)
		}
	}
	if s.source == 0 {
		if s.source, r = d.b.Alloc(ctx, backend.PinnedMemory, regionSize); !r.Ok() {
			return answer(r, 0)
		}
	}
	return answer(d.b.Write(ctx, s.source, 0, make([]byte, regionSize)), 0)
}

// rollBack gives back the blocks of a preparation that failed, which may be
// spoilt, and answers with the epoch as the release marker.
func (d *device) rollBack(ctx context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	for _, m := range []*backend.Memory{&s.args, &s.pinned} {
		if *m != 0 {
			if r := d.b.Free(ctx, *m); !gone(r) {
				return answer(r, 0)
			}
			*m = 0
		}
	}
	s.argsSize, s.work, s.caller, s.workID = 0, Work{}, 0, 0
	return machine.Result{Value: c.Args[0]}
}

func (d *device) checkCaller(ctx context.Context, c *machine.Command) machine.Result {
	d.mu.Lock()
	w := d.works[c.Args[0]]
	d.mu.Unlock()
	_, r := d.b.StreamID(ctx, w.Caller)
	return answer(r, 0)
}

func (d *device) captureStatus(ctx context.Context, c *machine.Command) machine.Result {
	st, r := d.b.CaptureStatus(ctx, d.slots[c.Ref.Slot].caller)
	return answer(r, uint64(st))
}

func (d *device) makeOrderEvents(ctx context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	return d.makeEach(ctx, &s.start, &s.fork, &s.tail)
}

// makeEach makes the events that are not there yet.
func (d *device) makeEach(ctx context.Context, events ...*backend.Event) machine.Result {
	for _, e := range events {
		if *e != 0 {
			continue
		}
		h, r := d.b.CreateEvent(ctx)
		if !r.Ok() {
			return answer(r, 0)
		}
		*e = h
	}
	return machine.Result{}
}

func (d *device) publishRegion(ctx context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	return answer(d.b.CopyAsync(ctx, backend.Span{Mem: s.region, Size: 8}, backend.Span{Mem: s.source, Size: 8}, s.cpu), 0)
}

func (d *device) copyDescriptor(ctx context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	n := ArgsOffset + uint64(len(s.work.Args))
	return answer(d.b.CopyAsync(ctx, backend.Span{Mem: s.args, Size: n}, backend.Span{Mem: s.pinned, Size: n}, s.cpu), 0)
}

// readRecord copies the run's own record back and answers with its epoch and,
// as the code of a success, its class.
func (d *device) readRecord(ctx context.Context, c *machine.Command) machine.Result {
	s := &d.slots[c.Ref.Slot]
	if s.region == 0 {
		return machine.Result{}
	}
	to, from := backend.Span{Mem: s.source, Offset: 16, Size: recordSize}, backend.Span{Mem: s.region, Size: recordSize}
	if r := d.b.Copy(ctx, to, from); !r.Ok() {
		return answer(r, 0)
	}
	r := d.b.Read(ctx, s.record[:], s.source, 16)
	res := answer(r, binary.LittleEndian.Uint64(s.record[:]))
	if r.Ok() {
		res.Code = int32(binary.LittleEndian.Uint32(s.record[8:]))
	}
	return res
}

// queueJoin queues a wait of a stream of this slot on a boundary of the
// predecessor's: which slot that is, the rules say.
func (d *device) queueJoin(ctx context.Context, c *machine.Command, core bool) machine.Result {
	by, on := &d.slots[c.Ref.Slot], &d.slots[machine.UnpackRef(c.Args[0]).Slot]
	if core {
		return answer(d.b.StreamWaitEvent(ctx, by.core, on.cpuDone), 0)
	}
	return answer(d.b.StreamWaitEvent(ctx, by.cpu, on.coreDone), 0)
}

// drainDevice synchronises every stream, each wait bounded. Its answer is for
// the log: what it fails to drain, a reset ends.
func (d *device) drainDevice(ctx context.Context, _ *machine.Command) machine.Result {
	var first backend.Result
	for i := range d.slots {
		for _, q := range []backend.Stream{d.slots[i].cpu, d.slots[i].core} {
			if q == 0 {
				continue
			}
			if r := d.b.SynchronizeStream(ctx, q, d.timeout); !r.Ok() && first.Ok() {
				first = r
			}
		}
	}
	return answer(first, 0)
}

// resetDevice resets the device. Only a confirmed reset took the events with it.
func (d *device) resetDevice(ctx context.Context, _ *machine.Command) machine.Result {
	confirmed, r := d.b.Reset(ctx)
	if r.Ok() && confirmed {
		for i := range d.slots {
			s := &d.slots[i]
			s.coreDone, s.cpuDone, s.start, s.fork, s.tail = 0, 0, 0, 0, 0
		}
		d.skip()
	}
	return answer(r, machine.BoolWord(confirmed))
}

// skip empties the ring of what a confirmed reset leaves behind. A notice that
// is delivered later counts to the new generation (F115).
func (d *device) skip() {
	var buf [8]backend.Notice
	for {
		n, dropped := d.b.Notices(buf[:])
		d.skipped.Add(uint64(n))
		d.lost.Add(dropped)
		if n < len(buf) {
			return
		}
	}
}

// image is a callable's image, uploaded at most once.
type image struct {
	bytes []byte
	// mem is the copy on the device, host the pinned source it was made from.
	// What could not be freed stays here, for the next try or the teardown (F86).
	mem, host backend.Memory
}

func (im *image) free(ctx context.Context, b backend.Backend, which ...*backend.Memory) backend.Result {
	for _, m := range which {
		if *m != 0 {
			if r := b.Free(ctx, *m); !gone(r) {
				return r
			}
			*m = 0
		}
	}
	return backend.Result{}
}

func (d *device) upload(ctx context.Context, c *machine.Command) machine.Result {
	d.mu.Lock()
	im := d.images[c.Args[0]]
	d.mu.Unlock()
	if im == nil || len(im.bytes) == 0 {
		return answer(backend.Result{Outcome: machine.Refused, Code: backend.InvalidParam}, 0)
	}
	// An earlier upload's residue goes first.
	if r := im.free(ctx, d.b, &im.host, &im.mem); !r.Ok() {
		return answer(r, 0)
	}
	size := uint64(len(im.bytes))
	var r backend.Result
	if im.mem, r = d.b.Alloc(ctx, backend.DeviceMemory, size); r.Ok() {
		im.host, r = d.b.Alloc(ctx, backend.PinnedMemory, size)
	}
	if r.Ok() {
		r = d.b.Write(ctx, im.host, 0, im.bytes)
	}
	if r.Ok() {
		r = d.b.Copy(ctx, backend.Span{Mem: im.mem, Size: size}, backend.Span{Mem: im.host, Size: size})
	}
	im.free(ctx, d.b, &im.host)
	if !r.Ok() {
		im.free(ctx, d.b, &im.mem)
		return answer(r, 0)
	}
	return machine.Result{}
}

func (d *device) removeImage(ctx context.Context, c *machine.Command) machine.Result {
	d.mu.Lock()
	im := d.images[c.Args[0]]
	d.mu.Unlock()
	if im == nil {
		return machine.Result{}
	}
	return answer(im.free(ctx, d.b, &im.host, &im.mem), 0)
}

// dropImage forgets an image that no callable has any more. It keeps, and says
// so, one of which something could not be freed.
func (d *device) dropImage(id uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if im := d.images[id]; im != nil && (im.mem != 0 || im.host != 0) {
		return false
	}
	delete(d.images, id)
	return true
}

func (d *device) addImage(id uint64, b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.images[id] = &image{bytes: append([]byte(nil), b...)}
}
