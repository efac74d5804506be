package sim

import (
	"time"

	"github.com/runfence/runfence/backend"
)

// posted is a notice on its way. A stream is remembered by its slot, which is
// the id that notices use: ids are recycled, as handles are not.
type posted struct {
	due    int64
	stream backend.Stream
	pos    uint32
	code   backend.Code
}

// post sends the notice of a kernel's fatal status on its way.
func (d *Device) post(si int, e *entry, code backend.Code) {
	if e.lost {
		return
	}
	d.posts = append(d.posts, posted{
		due: later(d.now, time.Duration(e.notice)), stream: d.streamHandle(si), pos: e.pos, code: code,
	})
}

// deliver moves a notice into the ring; a full ring drops it and counts it.
func (d *Device) deliver(i int) {
	p := d.posts[i]
	d.posts = append(d.posts[:i], d.posts[i+1:]...)
	p.due = 0
	if len(d.ring) >= d.cfg.NoticeRing {
		d.dropped++
	} else {
		d.ring = append(d.ring, p)
	}
	if d.trace != nil {
		d.trace(TraceEvent{Time: time.Duration(d.now), Kind: TraceNotice, Stream: p.stream, Code: p.code})
	}
}

// Notices implements [backend.Backend]. A notice's Task is the position of the
// kernel in its stream, and its Thread is zero.
func (d *Device) Notices(dst []backend.Notice) (n int, dropped uint64) {
	var a Answer
	d.run(&Op{Kind: OpNotices}, &a)
	return d.TakeNotices(dst)
}

// TakeNotices implements [Model]. Unlike Notices it lets nothing happen first.
func (d *Device) TakeNotices(dst []backend.Notice) (n int, dropped uint64) {
	n = min(len(dst), len(d.ring))
	for i, p := range d.ring[:n] {
		dst[i] = backend.Notice{
			Device: d.cfg.Device, Stream: int32(indexOf(uint64(p.stream))), Task: p.pos, Code: p.code,
		}
	}
	d.ring = append(d.ring[:0], d.ring[n:]...)
	dropped, d.dropped = d.dropped, 0
	return n, dropped
}
