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
