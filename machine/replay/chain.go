package replay

import (
	"io"
	"slices"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// maxChain bounds how many causes are told, maxPasses how often the log is
// read to find those that are far apart.
const (
	maxChain  = 64
	maxPasses = 16
)

// recent is a ring of the last records, of all worlds.
type recent struct {
	records []machine.Record
	worlds  []int
	next    int
}

func newRecent(n int) *recent { return &recent{records: make([]machine.Record, 0, n)} }

func (c *recent) add(world int, r *machine.Record) {
	if len(c.records) < cap(c.records) {
		c.records, c.worlds = append(c.records, *r), append(c.worlds, world)
		return
	}
	c.records[c.next], c.worlds[c.next] = *r, world
	c.next = (c.next + 1) % len(c.records)
}

// find returns a record, or nil if it is not among them any more.
func (c *recent) find(world int, seq uint64) *machine.Record {
	for i := range c.records {
		if c.worlds[i] == world && c.records[i].Seq == seq {
			return &c.records[i]
		}
	}
	return nil
}

// explain adds the chain of causes.
func (p *player) explain(d *Divergence) {
	if d.World < 0 || d.parent == 0 {
		return
	}
	seq, from := d.parent, d.Seq
	header, ring := p.given, p.recent
	for pass := 0; seq != 0; {
		// A cause is before its effect; anything else is not believed.
		var r *machine.Record
		if ring != nil && seq < from {
			r = ring.find(d.World, seq)
		}
		if r == nil && p.seeker != nil && seq < from && pass < maxPasses {
			pass++
			header = p.result.Header
			ring = p.again(d.World, seq)
			r = ring.find(d.World, seq)
		}
		if r == nil || len(d.Chain) == maxChain {
			d.Cut = true
			break
		}
		d.Chain = append(d.Chain, Link{Seq: r.Seq, Text: header.Text(r)})
		seq, from = r.Parent, r.Seq
	}
	slices.Reverse(d.Chain)
}

// again reads the log once more, up to a record of a world, and returns what
// led up to it. What cannot be read leaves the chain cut.
func (p *player) again(world int, seq uint64) *recent {
	c := newRecent(p.o.Recent)
	if _, err := p.seeker.Seek(p.start, io.SeekStart); err != nil {
		return c
	}
	r, err := translog.NewReader(p.seeker)
	if err != nil {
		return c
	}
	var group []machine.Record
	var e translog.Entry
	for r.Next(&e) == nil {
		if e.World != world {
			continue
		}
		switch e.Kind {
		case translog.RecordEntry:
			if starts(&e.Record) {
				group = group[:0]
			}
			if len(group) <= translog.MaxRepeatLength {
				group = append(group, e.Record)
			}
			c.add(world, &e.Record)
			if e.Record.Seq == seq {
				return c
			}
		case translog.RepeatEntry:
			next := e.Repeat.First
			for i := 0; i < int(e.Repeat.Records()) && len(group) == e.Repeat.Length; i++ {
				x := group[i%len(group)]
				if x.Parent != 0 {
					x.Parent += next - x.Seq
				}
				x.Seq, x.Time = next, e.Repeat.Time
				c.add(world, &x)
				if next == seq {
					return c
				}
				next++
			}
		}
	}
	return c
}
