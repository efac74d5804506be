package scenario

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// naming gives names to what rules and devices count: handles, contexts,
// processes, identities. Answers show names, so that they read, and stay the
// same when something else takes a number more.
type naming struct {
	handles   map[string]handle // by name
	names     map[handle]string
	contexts  map[string]backend.Context
	processes map[string]uint64
	// incarnations are those of environments without a lane, in the order in
	// which the script came to see them: their numbers are the process's own.
	incarnations map[uint64]uint64
}

// handle is a stream, an event or a memory of the device.
type handle struct {
	kind   sim.Kind
	number uint64
}

func newNaming() naming {
	return naming{
		handles: map[string]handle{}, names: map[handle]string{},
		contexts:  map[string]backend.Context{"none": 0},
		processes: map[string]uint64{"parent": 1}, incarnations: map[uint64]uint64{},
	}
}

// add names a handle.
func (n *naming) add(name string, k sim.Kind, number uint64) {
	h := handle{k, number}
	n.handles[name], n.names[h] = h, name
}

// gone frees a handle's name for another. What is told of the old one later
// still has it.
func (n *naming) gone(k sim.Kind, number uint64) {
	h := handle{k, number}
	if name, ok := n.names[h]; ok && n.handles[name] == h {
		delete(n.handles, name)
	}
}

// of returns the name of a handle.
func (n *naming) of(k sim.Kind, number uint64) string {
	if name, ok := n.names[handle{k, number}]; ok {
		return name
	}
	return sim.HandleName(number)
}

func (n *naming) stream(s backend.Stream) string { return n.of(sim.KindStream, uint64(s)) }

// find returns the handle of that name and kind.
func (n *naming) find(k sim.Kind, name string) (uint64, error) {
	if h, ok := n.handles[name]; ok && h.kind == k {
		return h.number, nil
	}
	var known []string
	for other, h := range n.handles {
		if h.kind == k {
			known = append(known, other)
		}
	}
	return 0, fmt.Errorf("%s", machine.Unknown(k.String(), name, known))
}

// context returns the name of a context.
func (n *naming) context(c backend.Context) string {
	for name, x := range n.contexts {
		if x == c {
			return name
		}
	}
	return sim.HandleName(uint64(c))
}

// incarnation numbers an incarnation by its first appearance.
func (n *naming) incarnation(v uint64) uint64 {
	if n.incarnations[v] == 0 {
		n.incarnations[v] = uint64(len(n.incarnations) + 1)
	}
	return n.incarnations[v]
}

func (n *naming) process(p uint64) string {
	for name, x := range n.processes {
		if x == p {
			return name
		}
	}
	return fmt.Sprint(p)
}

var handleWord = regexp.MustCompile(`\b[sem][0-9]+(\.[0-9]+)?\b`)

// text puts names for the handles in what the simulator says.
func (n *naming) text(s string) string {
	s = handleWord.ReplaceAllStringFunc(s, func(w string) string {
		number, err := sim.ParseHandle(w)
		if err != nil {
			return w
		}
		for _, k := range []sim.Kind{sim.KindStream, sim.KindEvent, sim.KindMemory} {
			if name, ok := n.names[handle{k, number}]; ok {
				return name
			}
		}
		return w
	})
	return strings.ReplaceAll(s, "µs", "us")
}

// violation is a misuse of the device in one line.
func (s *session) violation(v sim.Violation) string {
	t := v.Kind.String()
	if v.During != sim.OpNone {
		t += " in " + v.During.String()
	}
	sep := ": "
	for _, h := range []struct {
		k sim.Kind
		n uint64
	}{{sim.KindMemory, uint64(v.Memory)}, {sim.KindEvent, uint64(v.Event)}, {sim.KindStream, uint64(v.Stream)}} {
		if h.n != 0 {
			t += sep + h.k.String() + " " + s.naming.of(h.k, h.n)
			sep = ", "
		}
	}
	return t + ", at " + us(v.Time)
}
