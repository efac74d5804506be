package sim

import "fmt"

// Raw returns the whole state of the device but for the clock, as its fields
// are: an account that owes nothing to AppendCanonical.
func (d *Device) Raw() string {
	c := d.Clone()
	c.now, c.violations, c.scratch = 0, nil, scratch{}
	if len(c.cfg.Plan) == 0 {
		c.nth = [numOps]uint32{}
	}
	for i := range c.streams {
		s := &c.streams[i]
		s.due, s.flagDue = sign(s.due), sign(s.flagDue)
		s.enqueued, s.executed, s.proven = 0, s.enqueued-s.executed, s.enqueued-s.proven
	}
	for i := range c.calls {
		c.calls[i].at, c.calls[i].deadline = 0, 0
	}
	for i := range c.posts {
		c.posts[i].due = 0
	}
	live := c.entries[:0]
	for si := range c.streams { // the queues themselves, not where the pool keeps them
		s := &c.streams[si]
		for i, left := s.first, s.n; left > 0; i, left = d.entries[i].next, left-1 {
			e := d.entries[i]
			e.next = 0
			live = append(live, e)
		}
		s.first, s.last = 0, 0
	}
	c.entries, c.freeEntry = live, 0
	return fmt.Sprintf("%+v", *c)
}

func sign(due int64) int64 {
	if due == never {
		return never
	}
	return 0
}

// Plain returns a copy of the value of the device, for comparison field by
// field: what AppendState must hold, down to what nobody can see.
func (d *Device) Plain() *Device {
	c := d.Clone()
	c.cfg, c.scratch = nil, scratch{}
	// Only the calls say where their data is.
	c.data = nil
	for i := range c.calls {
		k := &c.calls[i]
		k.op.Data, k.dataAt = append([]byte(nil), d.payload(k)...), 0
	}
	return c
}

// Tickets returns the calls that were begun and not taken.
func (d *Device) Tickets() (list []Ticket) {
	for i := range d.calls {
		if d.calls[i].phase != callFree {
			list = append(list, d.ticket(i))
		}
	}
	return list
}

// Handles returns what is alive.
func (d *Device) Handles() (list []uint64) {
	for i := range d.streams {
		if d.streams[i].state == slotLive {
			list = append(list, uint64(d.streamHandle(i)))
		}
	}
	for i := range d.events {
		if d.events[i].state == slotLive {
			list = append(list, uint64(d.eventHandle(i)))
		}
	}
	for i := range d.mems {
		if d.mems[i].state == slotLive {
			list = append(list, uint64(d.memHandle(i)))
		}
	}
	return list
}
