package scenario

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// packetVerbs make invocation packets, spoil them, and take them through their
// checks to storage and back.
var packetVerbs = []verb{
	{name: "packet encode", run: (*session).packetEncode, params: []param{
		newName("packet"),
		{name: "callable", kind: name, need: true},
		{name: "run", kind: name, need: true},
		{name: "tensors", kind: count},
		{name: "scalars", kind: count},
		{name: "runtime", kind: count},
	}},
	{name: "packet spoil", run: (*session).packetSpoil, params: []param{
		newName("packet"),
		{name: "field", kind: word, words: fieldNames()},
		{name: "at", kind: count},
		{name: "value", kind: count, max: math.MaxUint64},
		{name: "cut", kind: count},
	}},
	{name: "packet check", run: (*session).packetCheck, params: []param{newName("packet"), {name: "notransport"}}},
	{name: "packet store", run: (*session).packetStore, params: packetName},
	{name: "packet lend", run: onPacket("lend", "orchestration borrows the storage"), params: packetName},
	{name: "packet giveback", run: onPacket("give_back", "the view is dropped"), params: packetName},
	{name: "packet clear", run: onPacket("clear", "nothing is stored"), params: packetName},
}

var packetName = []param{newName("packet")}

// packet is an invocation's bytes, and what they were made for.
type packet struct {
	bytes []byte
	id    int // of the callable
	slot  int
}

// field is where a value stands in a packet; those of the first tensor follow
// the fixed part.
type field struct {
	name         string
	offset, size int
}

var fields = []field{
	{"magic", 0, 4},
	{"version", 4, 2},
	{"header", 6, 2},
	{"size", 8, 4},
	{"callable", 12, 4},
	{"generation", 16, 8},
	{"tensors", 24, 4},
	{"scalars", 28, 4},
	{"dispatch", 32, 8},
	{"runtime", 40, 8},
	{"epoch", 48, 8},
	{"address", 56, 8},
	{"bytes", 64, 8},
	{"type", 72, 2},
	{"rank", 74, 2},
	{"reserved", 76, 4},
	{"dimension", 80, 8},
	{"beyond", 136, 8}, // the eighth dimension
}

func fieldNames() (out []string) {
	for _, f := range fields {
		out = append(out, f.name)
	}
	return out
}

// packetEncode writes the packet of a call of a callable by a run. Each tensor
// is 4 by 8 Float32.
func (s *session) packetEncode(c *call) error {
	l, err := s.chip(c)
	if err != nil {
		return err
	}
	x, err := l.callable(c.args["callable"])
	if err != nil {
		return err
	}
	r, err := l.run(c.args["run"])
	if err != nil {
		return err
	}
	id := r.Identity()
	in := &states.Invocation{
		Callable: uint32(x.ID), Occupancy: x.Occupancy, Dispatch: id.Dispatch, RunEpoch: id.RunEpoch, Runtime: c.num("runtime", 4096),
		Scalars: make([]uint64, c.num("scalars", uint64(x.scalars))),
	}
	for i := range c.num("tensors", uint64(x.tensors)) {
		in.Tensors = append(in.Tensors, states.Tensor{
			Address: 4096 * (i + 1), Bytes: 128, Type: states.Float32, Rank: 2, Dims: [states.MaxRank]uint64{4, 8},
		})
	}
	b, err := states.AppendPacket(nil, in)
	if err != nil {
		s.answer(c, "refused: %s", flaw(err))
		return nil
	}
	l.packets[c.args["packet"]] = &packet{b, x.ID, id.Slot}
	s.answer(c, "%d bytes, a header of %d among them", len(b), states.PacketHeaderSize)
	return nil
}

// flaw says which check failed, and where. What was found is told of nothing
// that rules count, whose numbers mean nothing.
func flaw(err error) string {
	var e *states.PacketError
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := fmt.Sprintf("%s, byte %d", e.Check, e.Offset)
	if !slices.Contains([]string{"generation", "binding", "epoch"}, e.Check) {
		text += ": " + e.Detail
	}
	return text
}

// packet returns a packet of the present worker by name.
func (s *session) packet(c *call) (*lane, *packet, error) {
	l, err := s.chip(c)
	if err != nil {
		return nil, nil, err
	}
	p, err := lookup("packet", c.args["packet"], l.packets)
	return l, p, err
}

func (s *session) packetSpoil(c *call) error {
	_, p, err := s.packet(c)
	if err != nil {
		return err
	}
	if c.has("cut") {
		p.bytes = p.bytes[:min(len(p.bytes), int(c.num("cut", 0)))]
		s.answer(c, "%d bytes are left", len(p.bytes))
		return nil
	}
	f := field{"byte " + c.str("at", ""), int(c.num("at", 0)), 1}
	if i := slices.Index(fieldNames(), c.str("field", "")); i >= 0 {
		f = fields[i]
	}
	switch {
	case c.has("at") == c.has("field") || !c.has("value"):
		return errors.New("packet spoil: give cut=…, or value=… with either field=… or at=…")
	case f.offset+f.size > len(p.bytes):
		return fmt.Errorf("packet spoil: %s ends at byte %d, the packet at %d", f.name, f.offset+f.size, len(p.bytes))
	}
	var v [8]byte
	binary.LittleEndian.PutUint64(v[:], c.num("value", 0))
	copy(p.bytes[f.offset:], v[:f.size])
	s.answer(c, "%s is %d", f.name, c.num("value", 0)&(math.MaxUint64>>(64-8*f.size)))
	return nil
}

// expected is what the registry and the slot's run say of the packet, whatever
// it says of itself.
func (l *lane) expected(p *packet) states.Expected {
	e := states.Expected{
		Callable: uint32(p.id), Occupancy: l.fact("callable", p.id, "occupancy"),
		Dispatch: l.fact("run", p.slot, "dispatch"), RunEpoch: l.fact("run", p.slot, "run_epoch"),
	}
	for _, x := range l.callables {
		if x.ID == p.id && x.Occupancy == e.Occupancy {
			e.Tensors, e.Scalars = x.tensors, x.scalars
		}
	}
	return e
}

func (s *session) packetCheck(c *call) error {
	l, p, err := s.packet(c)
	if err != nil {
		return err
	}
	e := l.expected(p)
	bad := states.CheckPacket(p.bytes, e)
	return s.invoke(c, p, "check", func(err error) string {
		switch {
		case err == nil:
			return "every check holds"
		case bad != nil && !c.has("notransport"):
			return s.said(s.opts.Rules, err) + ": " + flaw(bad)
		}
		return s.said(s.opts.Rules, err)
	}, machine.BoolWord(!c.has("notransport")), machine.BoolWord(bad == nil), e.Occupancy, e.Dispatch)
}

// packetStore copies what the packet holds into storage, if it was checked.
func (s *session) packetStore(c *call) error {
	l, p, err := s.packet(c)
	if err != nil {
		return err
	}
	in, bad := states.ParsePacket(p.bytes, l.expected(p))
	if m := s.opts.Rules.Machine("invocation"); bad != nil && l.Driver().Can(machine.Ref{Machine: m.ID(), Slot: uint16(p.slot)}, m.MustEvent("store")) {
		s.answer(c, "refused: the packet was changed after its check: %s", flaw(bad))
		return nil
	}
	return s.invoke(c, p, "store", func(err error) string {
		if err != nil {
			return s.said(s.opts.Rules, err)
		}
		return fmt.Sprintf("%s, %s", plural(len(in.Tensors), "tensor"), plural(len(in.Scalars), "scalar"))
	})
}

// onPacket makes a verb of an event of a slot's invocation.
func onPacket(event, ok string) func(*session, *call) error {
	return func(s *session, c *call) error {
		_, p, err := s.packet(c)
		if err != nil {
			return err
		}
		return s.invoke(c, p, event, func(err error) string {
			if err != nil {
				return s.said(s.opts.Rules, err)
			}
			return ok
		})
	}
}

// invoke lets an event happen to the invocation of the packet's slot.
func (s *session) invoke(c *call, p *packet, event string, tell func(error) string, args ...uint64) error {
	return s.onChip(c, func(ctx context.Context, l *lane) func() {
		m := s.opts.Rules.Machine("invocation")
		_, err := l.Driver().Fire(ctx, machine.Ref{Machine: m.ID(), Slot: uint16(p.slot)}, m.MustEvent(event), args...)
		return func() { s.answer(c, "%s", tell(err)) }
	})
}
