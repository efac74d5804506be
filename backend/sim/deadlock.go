package sim

import (
	"fmt"
	"strings"

	"github.com/runfence/runfence/backend"
)

// Deadlock explains what can never move, or returns "". It looks at what would
// be left if everything that can happen did, with no further call of the host:
// one line for each stream that is stuck, naming its first entry and what that
// waits for. A stream that another submission, record or notice of the host
// could still release is said to be open; streams that wait for one another in
// a circle are released by nothing.
//
// A run that is half submitted is stuck in this sense. The answer is about now:
// ask when the host is about to wait.
func (d *Device) Deadlock() string {
	c := d.Clone()
	for at, m, i := c.next(); at != never; at, m, i = c.next() {
		c.now = max(c.now, at)
		c.move1(m, i)
	}
	var b strings.Builder
	for i := range c.streams {
		if c.streams[i].n == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		e := c.head(i)
		why, _ := c.obstacle(i)
		fmt.Fprintf(&b, "stream %s: %s %s", HandleName(uint64(c.streamHandle(i))), c.describe(e), why)
		if behind := c.streams[i].n - 1; behind > 0 {
			fmt.Fprintf(&b, "; %d behind it", behind)
		}
		if loop := c.circle(i); loop != "" {
			fmt.Fprintf(&b, "; circle %s", loop)
		}
	}
	return b.String()
}

// Stuck reports whether a stream holds an entry that nothing on the device will
// ever let finish, without further calls of the host.
func (d *Device) Stuck() bool {
	c := d.Clone()
	for at, m, i := c.next(); at != never; at, m, i = c.next() {
		c.now = max(c.now, at)
		c.move1(m, i)
	}
	return c.Busy()
}

func (d *Device) describe(e *entry) string {
	switch e.kind {
	case EntryKernel:
		name := d.spec(e.kernel).Name
		if name == "" {
			name = fmt.Sprintf("%d", uint64(e.kernel))
		}
		class := "AICore"
		if e.class == backend.AICPU {
			class = "AICPU"
		}
		return fmt.Sprintf("%s kernel %s (entry %d)", class, name, e.pos)
	case EntryCopy:
		return fmt.Sprintf("copy of %s to %s (entry %d)", HandleName(uint64(e.src.Mem)), HandleName(uint64(e.dst.Mem)), e.pos)
	}
	return fmt.Sprintf("%s of event %s (entry %d)", e.kind, HandleName(uint64(e.event)), e.pos)
}

// obstacle says what the head of a stuck stream waits for, and which stream
// that is behind; -1 if it is behind none, because it was never submitted.
func (d *Device) obstacle(si int) (string, int) {
	e := d.head(si)
	switch {
	case e.kind == EntryWait:
		for i := range d.entries {
			r := &d.entries[i]
			if r.kind == EntryRecord && r.event == e.event && r.seq == e.seq {
				return fmt.Sprintf("waits for its record, which is entry %d of stream %s",
					r.pos, HandleName(uint64(d.streamHandle(int(r.stream))))), int(r.stream)
			}
		}
		return "waits for a record that was never made (open)", -1
	case e.hang:
		return "hangs", -1
	case e.pair >= 0:
		p := &d.pairs[e.pair]
		other := 1 - e.class
		if p.side[other] == sideAbsent {
			if e.class == backend.AICPU {
				return "spins for an AICore kernel that was not submitted (open)", -1
			}
			return "spins for an AICPU kernel that was not submitted (open)", -1
		}
		o := int(p.stream[other])
		return fmt.Sprintf("spins for its partner, which has not started on stream %s",
			HandleName(uint64(d.streamHandle(o)))), o
	}
	return "cannot move", -1
}

// circle returns the streams of the circle that a stuck stream is in, or "".
func (d *Device) circle(si int) string {
	names := HandleName(uint64(d.streamHandle(si)))
	at := si
	for range d.streams {
		_, next := d.obstacle(at)
		if next < 0 || d.streams[next].n == 0 {
			return ""
		}
		names += " > " + HandleName(uint64(d.streamHandle(next)))
		if next == si {
			return names
		}
		at = next
	}
	return ""
}
