package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// rawVerbs call the device itself, past all rules: to show what the rules keep
// from happening.
var rawVerbs = []verb{
	{name: "dev stream", run: raw((*session).devStream), params: []param{newName("stream"), {name: "class", kind: word, words: []string{"core", "cpu"}}}},
	{name: "dev event", run: raw((*session).devEvent), params: []param{newName("event")}},
	{name: "dev alloc", run: raw((*session).devAlloc), params: []param{
		newName("memory"),
		{name: "size", kind: count, need: true, max: 1 << 20},
		{name: "place", kind: word, words: []string{"device", "pinned"}},
	}},
	{name: "dev submit", run: raw((*session).devSubmit), params: []param{
		newName("stream"),
		{name: "kernel", kind: name, need: true},
		{name: "class", kind: word, words: []string{"core", "cpu"}},
		{name: "args", kind: name},
	}},
	{name: "dev record", run: raw((*session).devRecord), params: []param{newName("event"), {name: "on", kind: name, need: true}}},
	{name: "dev queuewait", run: raw((*session).devQueueWait), params: []param{newName("stream"), {name: "on", kind: name, need: true}}},
	{name: "dev query", run: raw((*session).devQuery), params: []param{newName("handle"), {name: "last"}}},
	{name: "dev wait", run: raw((*session).devWait), params: []param{newName("event"), {name: "timeout", kind: duration}, {name: "last"}}},
	{name: "dev sync", run: raw((*session).devSync), params: []param{newName("stream"), {name: "timeout", kind: duration}, {name: "last"}}},
	{name: "dev write", run: raw((*session).devWrite), params: []param{newName("memory"), {name: "text", kind: text, need: true}, {name: "at", kind: count}}},
	{name: "dev read", run: raw((*session).devRead), params: []param{newName("memory"), {name: "size", kind: count, need: true, max: 256}, {name: "at", kind: count}}},
	{name: "dev peek", sim: true, run: raw((*session).devPeek), params: []param{newName("memory"), {name: "size", kind: count, need: true, max: 256}, {name: "at", kind: count}}},
	{name: "dev copy", run: raw((*session).devCopy), params: []param{
		newName("memory"),
		{name: "from", kind: name, need: true},
		{name: "size", kind: count, need: true, max: 1 << 20},
		{name: "on", kind: name},
	}},
	{name: "dev free", run: raw((*session).devFree), params: []param{newName("memory")}},
	{name: "dev destroy", run: raw((*session).devDestroy), params: []param{newName("handle")}},
	{name: "dev capture", sim: true, run: raw((*session).devCapture), params: []param{newName("stream"), {name: "status", kind: word, need: true, words: []string{"none", "active", "invalid"}}}},
	{name: "dev notices", run: raw((*session).devNotices)},
	{name: "dev reset", run: raw((*session).devReset)},
}

func newName(n string) param { return param{name: n, kind: name, place: true, need: true} }

// raw makes a verb of a call of the device; a panic of the device is its answer.
func raw(f func(s *session, c *call, d *Device) error) func(*session, *call) error {
	return func(s *session, c *call) (err error) {
		d, err := s.device()
		if err != nil {
			return err
		}
		if s.pure != nil {
			return errors.New(c.name + `: there is no device in the pure world; leave it with "pure end"`)
		}
		defer func() {
			switch p := recover().(type) {
			case nil:
			case *sim.Panic:
				s.answer(c, "panicked: %v", p)
			default:
				panic(p)
			}
		}()
		return f(s, c, d)
	}
}

// told answers with ok, or with how the call failed.
func (s *session) told(c *call, r backend.Result, ok string) {
	if !r.Ok() {
		ok = r.Outcome.String()
		if r.Code != 0 {
			ok += " " + r.Code.Brief()
		}
		if r.Accepted {
			ok += ", accepted"
		}
	}
	if c.has("last") {
		ok += ", last error " + r.LastError.Brief()
	}
	s.answer(c, "%s", ok)
}

// fresh says if a name is taken.
func (s *session) fresh(n string) error {
	if h, taken := s.naming.handles[n]; taken {
		return fmt.Errorf("there is a %s %s already", h.kind, n)
	}
	return nil
}

func (s *session) devStream(c *call, d *Device) error {
	n := c.args["stream"]
	if err := s.fresh(n); err != nil {
		return err
	}
	h, r := d.CreateStream(free)
	if r.Ok() {
		s.naming.add(n, sim.KindStream, uint64(h))
		s.timeline.column(h, c.str("class", "core"))
	}
	s.told(c, r, "made")
	return nil
}

func (s *session) devEvent(c *call, d *Device) error {
	n := c.args["event"]
	if err := s.fresh(n); err != nil {
		return err
	}
	h, r := d.CreateEvent(free)
	if r.Ok() {
		s.naming.add(n, sim.KindEvent, uint64(h))
	}
	s.told(c, r, "made")
	return nil
}

func (s *session) devAlloc(c *call, d *Device) error {
	n := c.args["memory"]
	if err := s.fresh(n); err != nil {
		return err
	}
	place, where := backend.DeviceMemory, "device"
	if c.str("place", where) == "pinned" {
		place, where = backend.PinnedMemory, "pinned"
	}
	h, r := d.Alloc(free, place, c.num("size", 0))
	if r.Ok() {
		s.naming.add(n, sim.KindMemory, uint64(h))
	}
	s.told(c, r, fmt.Sprintf("%s, %s", plural(int(c.num("size", 0)), "byte"), where))
	return nil
}

// named finds the handle that a parameter names.
func (s *session) named(c *call, p string, k sim.Kind) (uint64, error) {
	return s.naming.find(k, c.args[p])
}

func (s *session) devSubmit(c *call, d *Device) error {
	st, err := s.named(c, "stream", sim.KindStream)
	if err != nil {
		return err
	}
	l := backend.Launch{Blocks: 1}
	if l.Kernel, err = s.kernel(c.args["kernel"]); err != nil {
		return err
	}
	if s.sim != nil {
		spec, _ := s.sim.Kernel(l.Kernel)
		l.Class = spec.Class
	}
	switch c.str("class", "") {
	case "core":
		l.Class = backend.AICore
	case "cpu":
		l.Class = backend.AICPU
	}
	if c.has("args") {
		m, err := s.named(c, "args", sim.KindMemory)
		if err != nil {
			return err
		}
		l.Args = backend.Memory(m)
	}
	s.told(c, d.Submit(free, backend.Stream(st), l), "kernel "+c.args["kernel"]+" queued")
	return nil
}

func (s *session) devRecord(c *call, d *Device) error {
	e, err := s.named(c, "event", sim.KindEvent)
	if err != nil {
		return err
	}
	st, err := s.named(c, "on", sim.KindStream)
	if err != nil {
		return err
	}
	s.told(c, d.RecordEvent(free, backend.Event(e), backend.Stream(st)), "queued on "+c.args["on"])
	return nil
}

func (s *session) devQueueWait(c *call, d *Device) error {
	st, err := s.named(c, "stream", sim.KindStream)
	if err != nil {
		return err
	}
	e, err := s.named(c, "on", sim.KindEvent)
	if err != nil {
		return err
	}
	s.told(c, d.StreamWaitEvent(free, backend.Stream(st), backend.Event(e)), "queued for "+c.args["on"])
	return nil
}

func (s *session) devQuery(c *call, d *Device) error {
	h, ok := s.naming.handles[c.args["handle"]]
	if !ok || h.kind == sim.KindMemory {
		var known []string
		for n, h := range s.naming.handles {
			if h.kind != sim.KindMemory {
				known = append(known, n)
			}
		}
		return errors.New(machine.Unknown("stream or event", c.args["handle"], known))
	}
	var st backend.Status
	var r backend.Result
	if h.kind == sim.KindStream {
		st, r = d.QueryStream(free, backend.Stream(h.number))
	} else {
		st, r = d.QueryEvent(free, backend.Event(h.number))
	}
	s.told(c, r, st.String())
	return nil
}

func (s *session) devWait(c *call, d *Device) error {
	e, err := s.named(c, "event", sim.KindEvent)
	if err != nil {
		return err
	}
	s.told(c, d.WaitEvent(free, backend.Event(e), c.dur("timeout", time.Second)), "ok")
	return nil
}

func (s *session) devSync(c *call, d *Device) error {
	st, err := s.named(c, "stream", sim.KindStream)
	if err != nil {
		return err
	}
	s.told(c, d.SynchronizeStream(free, backend.Stream(st), c.dur("timeout", time.Second)), "ok")
	return nil
}

func (s *session) devWrite(c *call, d *Device) error {
	m, err := s.named(c, "memory", sim.KindMemory)
	if err != nil {
		return err
	}
	s.told(c, d.Write(free, backend.Memory(m), c.num("at", 0), []byte(c.args["text"])), plural(len(c.args["text"]), "byte"))
	return nil
}

func (s *session) devRead(c *call, d *Device) error {
	m, err := s.named(c, "memory", sim.KindMemory)
	if err != nil {
		return err
	}
	dst := make([]byte, c.num("size", 0))
	r := d.Read(free, dst, backend.Memory(m), c.num("at", 0))
	s.told(c, r, fmt.Sprintf("%q", dst))
	return nil
}

// devPeek shows what no host could see without a copy.
func (s *session) devPeek(c *call, _ *Device) error {
	m, err := s.named(c, "memory", sim.KindMemory)
	if err != nil {
		return err
	}
	b := s.sim.Peek(backend.Memory(m))
	from := min(c.num("at", 0), uint64(len(b)))
	to := min(from+c.num("size", 0), uint64(len(b)))
	s.answer(c, "%q", b[from:to])
	return nil
}

func (s *session) devCopy(c *call, d *Device) error {
	dst, err := s.named(c, "memory", sim.KindMemory)
	if err != nil {
		return err
	}
	src, err := s.named(c, "from", sim.KindMemory)
	if err != nil {
		return err
	}
	to := backend.Span{Mem: backend.Memory(dst), Size: c.num("size", 0)}
	from := backend.Span{Mem: backend.Memory(src), Size: to.Size}
	if !c.has("on") {
		s.told(c, d.Copy(free, to, from), "copied from "+c.args["from"])
		return nil
	}
	st, err := s.named(c, "on", sim.KindStream)
	if err != nil {
		return err
	}
	s.told(c, d.CopyAsync(free, to, from, backend.Stream(st)), "copy from "+c.args["from"]+" queued on "+c.args["on"])
	return nil
}

func (s *session) devFree(c *call, d *Device) error {
	m, err := s.named(c, "memory", sim.KindMemory)
	if err != nil {
		return err
	}
	// The name stays: a use after this one is what a scenario may want to show.
	s.told(c, d.Free(free, backend.Memory(m)), "freed")
	return nil
}

func (s *session) devDestroy(c *call, d *Device) error {
	h, ok := s.naming.handles[c.args["handle"]]
	switch {
	case ok && h.kind == sim.KindStream:
		s.told(c, d.DestroyStream(free, backend.Stream(h.number)), "destroyed")
	case ok && h.kind == sim.KindEvent:
		s.told(c, d.DestroyEvent(free, backend.Event(h.number)), "destroyed")
	default:
		return fmt.Errorf("dev destroy: no stream and no event is called %s", c.args["handle"])
	}
	return nil
}

func (s *session) devCapture(c *call, _ *Device) error {
	st, err := s.named(c, "stream", sim.KindStream)
	if err != nil {
		return err
	}
	status := map[string]backend.Capture{"none": backend.CaptureNone, "active": backend.CaptureActive, "invalid": backend.CaptureInvalid}[c.args["status"]]
	s.sim.SetCapture(backend.Stream(st), status)
	s.answer(c, "%s", c.args["status"])
	return nil
}

func (s *session) devNotices(c *call, d *Device) error {
	var ring [64]backend.Notice
	n, dropped := d.Notices(ring[:])
	if n == 0 && dropped == 0 {
		s.answer(c, "none")
	}
	for _, x := range ring[:n] {
		s.printf("dev notices: device %d, stream id %d: %s", x.Device, x.Stream, x.Code.Brief())
	}
	if dropped > 0 {
		s.printf("dev notices: %d dropped", dropped)
	}
	return nil
}

func (s *session) devReset(c *call, d *Device) error {
	confirmed, r := d.Reset(free)
	text := "not confirmed"
	if confirmed {
		text = "confirmed"
	}
	s.told(c, r, text)
	return nil
}

// words of a list, for an answer.
func words(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
