package states

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// Commands carries out the commands of a lane's rules as a [Lane] does, one
// call of the backend after the other, and can be copied: it is for whoever
// steps a world by hand, such as an explorer. Its state is the handles of the
// slots. It is not safe for concurrent use.
//
// Work stays defined however often a run is prepared of it. Callables' images
// are not carried: a registration is refused.
type Commands struct{ d *device }

// NewCommands returns the commands of a lane of so many slots that has no
// handles yet. Each device wait is bounded by timeout. The error is an
// [*UnknownCommandError].
func NewCommands(r *machine.Rules, b backend.Backend, slots int, timeout time.Duration) (*Commands, error) {
	d, err := newDevice(r, b, slots, timeout)
	if err != nil {
		return nil, err
	}
	d.again = true
	return &Commands{d}, nil
}

// Define makes work known and returns its identity, which the events that
// start a preparation take.
func (c *Commands) Define(w Work) uint64 { return c.d.add(w) }

// Perform implements [machine.Performer].
func (c *Commands) Perform(ctx context.Context, cmd *machine.Command) machine.Result {
	return c.d.Perform(ctx, cmd)
}

// Skipped returns, and forgets, how many notices a confirmed reset found in the
// device's ring, and how many the ring had no room for (F115).
func (c *Commands) Skipped() (found, dropped uint64) {
	return c.d.skipped.Swap(0), c.d.lost.Swap(0)
}

// CopyFrom makes the handles those of o, which has the same rules, backend,
// slots and work.
func (c *Commands) CopyFrom(o *Commands) {
	copy(c.d.slots, o.d.slots)
	c.d.skipped.Store(o.d.skipped.Load())
	c.d.lost.Store(o.d.lost.Load())
}

// Clone returns an independent copy that uses backend b. The work that is
// defined is shared.
func (c *Commands) Clone(b backend.Backend) *Commands {
	d := &device{
		b: b, timeout: c.d.timeout, slots: append([]slot(nil), c.d.slots...), calls: c.d.calls,
		works: c.d.works, nextID: c.d.nextID, images: map[uint64]*image{}, again: true,
	}
	return &Commands{d}
}

// Handles are the handles that a slot has; zero is none.
type Handles struct {
	Core, CPU, Caller                    backend.Stream
	CoreDone, CPUDone, Start, Fork, Tail backend.Event
	Args, Pinned, Region, Source         backend.Memory
}

// Handles returns the handles of a slot.
func (c *Commands) Handles(slot int) Handles {
	s := &c.d.slots[slot]
	return Handles{
		Core: s.core, CPU: s.cpu, Caller: s.caller,
		CoreDone: s.coreDone, CPUDone: s.cpuDone, Start: s.start, Fork: s.fork, Tail: s.tail,
		Args: s.args, Pinned: s.pinned, Region: s.region, Source: s.source,
	}
}

// words lists what of a slot outlives a command.
func (s *slot) words(f func(*uint64)) {
	for _, p := range [...]*uint64{
		(*uint64)(&s.core), (*uint64)(&s.cpu), (*uint64)(&s.coreDone), (*uint64)(&s.cpuDone),
		(*uint64)(&s.start), (*uint64)(&s.fork), (*uint64)(&s.tail),
		(*uint64)(&s.args), (*uint64)(&s.pinned), (*uint64)(&s.region), (*uint64)(&s.source),
		&s.argsSize, &s.workID,
	} {
		f(p)
	}
	ids := uint64(uint32(s.coreID))<<32 | uint64(uint32(s.cpuID))
	f(&ids)
	s.coreID, s.cpuID = int32(uint32(ids>>32)), int32(uint32(ids))
}

// errCommands reports bytes that AppendState did not write.
var errCommands = errors.New("states: not the state of these commands")

// AppendState appends the handles to dst, for [Commands.SetState].
func (c *Commands) AppendState(dst []byte) []byte {
	for i := range c.d.slots {
		c.d.slots[i].words(func(p *uint64) { dst = binary.AppendUvarint(dst, *p) })
	}
	dst = binary.AppendUvarint(dst, c.d.skipped.Load())
	return binary.AppendUvarint(dst, c.d.lost.Load())
}

// SetState reads what AppendState of such commands wrote and returns the rest.
func (c *Commands) SetState(src []byte) (rest []byte, err error) {
	take := func() (v uint64) {
		v, n := binary.Uvarint(src)
		if n <= 0 {
			err, n = errCommands, 0
		}
		src = src[n:]
		return v
	}
	for i := range c.d.slots {
		s := &c.d.slots[i]
		s.words(func(p *uint64) { *p = take() })
		s.work = c.d.works[s.workID]
		s.caller = s.work.Caller
	}
	c.d.skipped.Store(take())
	c.d.lost.Store(take())
	return src, err
}
