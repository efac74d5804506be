package promela

import (
	"fmt"

	"github.com/runfence/runfence/machine"
)

// hostWriter lists the moves of the device and the host, in the order of
// run.pml.tmpl.
type hostWriter struct {
	m     *RunModel
	moves []move
}

func (m *RunModel) host() []move {
	h := &hostWriter{m: m}
	h.device()
	for slot := range m.shape.Slots {
		h.runs(slot)
	}
	if m.shape.Join {
		for slot := range m.shape.Slots {
			h.joins(slot)
		}
	}
	if m.shape.Caller {
		for slot := range m.shape.Slots {
			h.caller(slot)
		}
	}
	for t := range m.shape.Tokens {
		h.tokens(t)
	}
	if m.shape.Quarantine {
		h.fire(h.m.lane, 0, "to_quarantined", nil, h.admitted, nil)
	}
	if m.shape.Resets > 0 {
		h.reset()
	}
	return h.moves
}

func (h *hostWriter) add(v move) { h.moves = append(h.moves, v) }

func (h *hostWriter) fire(m *machine.Machine, slot int, event string, args []uint64, may func(*state) bool, do func(*state) broken) {
	h.add(move{
		text:  fmt.Sprintf("%s[%d] %s %v", m.Name(), slot, event, args),
		may:   may,
		fires: []fire{{ref: h.ref(m, slot), ev: m.MustEvent(event), args: args}},
		do:    do,
	})
}

func (h *hostWriter) ref(m *machine.Machine, slot int) machine.Ref {
	return machine.Ref{Machine: m.ID(), Slot: uint16(slot)}
}

func (h *hostWriter) admitted(s *state) bool {
	st, _, _ := s.w.State(h.ref(h.m.lane, 0))
	return st != h.m.is.quarantined
}

func (s *state) fact(m *machine.Machine, slot int, f machine.FactID) uint64 {
	v, _ := s.w.Fact(s.at(m, slot), f)
	return v
}

// at is the present occupant of a slot. Only tokens are ever dropped.
func (s *state) at(m *machine.Machine, slot int) machine.Ref {
	if m == s.m.token {
		return s.w.Ref(m.ID(), slot)
	}
	return machine.Ref{Machine: m.ID(), Slot: uint16(slot)}
}

func slotOf(ref uint64) int { return int(machine.UnpackRef(ref).Slot) }

// device lets the first entry of a stream take effect.
func (h *hostWriter) device() {
	events := 2 * h.m.shape.Slots
	for i := range events + 1 {
		if i < events {
			h.add(move{
				text: fmt.Sprintf("stream %d: the kernel ends", i),
				may: func(s *state) bool {
					return s.d.head(i) == kernelEntry && (s.d.met[i/2] || s.d.head(i^1) == kernelEntry)
				},
				do: func(s *state) broken {
					s.d.pop(i)
					s.d.kernels[i]--
					s.d.met[i/2] = true
					return ""
				},
			})
			h.add(move{
				text: fmt.Sprintf("stream %d: the record takes effect", i),
				may:  func(s *state) bool { return s.d.head(i) == recordEntry },
				do: func(s *state) broken {
					s.d.pop(i)
					s.d.records[i]--
					s.d.done[i] = true
					return ""
				},
			})
		}
		h.add(move{
			text: fmt.Sprintf("stream %d: the wait passes", i),
			may:  func(s *state) bool { e := s.d.head(i); return e >= waitEntry && s.d.done[e-waitEntry] },
			do: func(s *state) broken {
				e := s.d.head(i) - waitEntry
				s.d.pop(i)
				s.d.waits[e]--
				return ""
			},
		})
	}
}

// runs arms, launches and retires runs on a slot.
func (h *hostWriter) runs(slot int) {
	fence, shape := h.m.fence, h.m.shape
	core, cpu := 2*slot, 2*slot+1
	h.add(move{
		text:  fmt.Sprintf("fence[%d] arm", slot),
		may:   func(s *state) bool { return int(s.d.runs) < shape.Runs && h.admitted(s) },
		fires: []fire{{ref: h.ref(fence, slot), ev: fence.MustEvent("arm"), arm: true}},
		do: func(s *state) broken {
			s.d.runs++
			s.d.occupant[slot], s.d.drained[slot], s.d.met[slot] = s.d.runs, false, false
			s.d.call[core], s.d.call[cpu] = quietCall, quietCall
			return ""
		},
	})
	h.fire(fence, slot, "release", nil, h.admitted, func(s *state) broken {
		s.d.made[slot], s.d.done[core], s.d.done[cpu] = false, false, false
		return ""
	})
	for n := uint8(1); int(n) <= shape.Runs; n++ {
		id := []uint64{uint64(n), generation, uint64(n)}
		there := func(s *state) bool { return n <= s.d.runs }
		// claim is what a host may say: the truth of the slot's run, anything of
		// one that is over.
		claim := func(true_ func(s *state) bool) func(s *state) bool {
			return func(s *state) bool { return n <= s.d.runs && (n != s.d.occupant[slot] || true_(s)) }
		}
		h.fire(fence, slot, "made", id, there, func(s *state) broken { s.d.made[slot] = true; return "" })
		h.fire(fence, slot, "disarm", id, there, nil)
		h.fire(fence, slot, "retire", id, there, nil)
		h.fire(fence, slot, "quiesced", id, claim(func(s *state) bool {
			idle := func(c uint8) bool { return c == quietCall || c == overCall }
			return s.d.length[core] == 0 && s.d.length[cpu] == 0 && idle(s.d.call[core]) && idle(s.d.call[cpu])
		}), func(s *state) broken { s.d.drained[slot] = true; return "" })
		for b := range 2 {
			i, args := 2*slot+b, append(id[:3:3], uint64(b))
			call := func(from ...uint8) func(s *state) bool {
				return claim(func(s *state) bool {
					for _, c := range from {
						if s.d.call[i] == c {
							return true
						}
					}
					return false
				})
			}
			becomes := func(c uint8) func(s *state) broken {
				return func(s *state) broken { s.d.call[i] = c; return "" }
			}
			begins := claim(func(s *state) bool { return !s.d.drained[slot] && s.d.call[i] == quietCall })
			launching := func(s *state) bool { return h.admitted(s) && begins(s) }
			h.fire(fence, slot, "submitting", args, launching, becomes(submittingCall))
			if shape.Faulty {
				h.fire(fence, slot, "submitted", args, call(submittingCall, submittedCall), becomes(quietCall))
				h.fire(fence, slot, "unsubmitted", args, call(submittingCall), becomes(quietCall))
			} else {
				h.fire(fence, slot, "submitted", args, call(submittedCall), becomes(quietCall))
			}
			h.fire(fence, slot, "recording", args, launching, becomes(recordingCall))
			h.fire(fence, slot, "recorded", args, call(recordedCall), becomes(overCall))
			if shape.Faulty {
				h.fire(fence, slot, "unrecorded", args, call(recordingCall, recordedCall), becomes(overCall))
			}
			h.fire(fence, slot, "reached", args, claim(func(s *state) bool { return s.d.done[i] }), nil)
		}
	}
	for b := range 2 {
		i := 2*slot + b
		h.add(move{
			text: fmt.Sprintf("stream %d: the kernel is queued", i),
			may:  func(s *state) bool { return s.d.call[i] == submittingCall && s.d.room(i, shape.Depth) },
			do:   func(s *state) broken { s.d.call[i] = submittedCall; return s.d.enqueueKernel(i) },
		})
		h.add(move{
			text: fmt.Sprintf("stream %d: the record is queued", i),
			may:  func(s *state) bool { return s.d.call[i] == recordingCall && s.d.room(i, shape.Depth) },
			do:   func(s *state) broken { s.d.call[i] = recordedCall; return s.d.enqueueRecord(i) },
		})
	}
}

// joins put a slot's run behind another.
func (h *hostWriter) joins(slot int) {
	join, shape, at := h.m.join, h.m.shape, &h.m.at
	fence := func(slot int) uint64 { return h.ref(h.m.fence, slot).Pack() }
	reserved, queued := h.m.is.waitReserved, h.m.is.waitQueued
	is := func(s *state) bool { st, _, _ := s.w.State(h.ref(join, slot)); return st == h.m.is.joining }
	for pred := range shape.Slots {
		for n := uint8(1); int(n) <= shape.Runs; n++ {
			id := uint64(n)
			h.fire(join, slot, "plan", []uint64{fence(pred), id, generation, id, id, fence(slot)}, func(s *state) bool { return n <= s.d.runs }, nil)
		}
	}
	h.fire(join, slot, "reserve", nil, nil, nil)
	h.fire(join, slot, "cancel", nil, func(s *state) bool { return !s.d.joined[2*slot] && !s.d.joined[2*slot+1] }, nil)
	h.fire(join, slot, "end", nil, nil, nil)
	for b, name := range []string{"core", "cpu"} {
		i, wait := 2*slot+b, at.joinWait[b]
		// The other boundary of the predecessor.
		event := func(s *state) int { return 2*slotOf(s.fact(join, slot, at.joinPred)) + 1 - b }
		h.add(move{
			text: fmt.Sprintf("stream %d: the join's wait is queued", i),
			may: func(s *state) bool {
				return is(s) && s.fact(join, slot, wait) == reserved && !s.d.joined[i] && s.d.room(i, shape.Depth)
			},
			do: func(s *state) broken { s.d.joined[i] = true; return s.d.enqueueWait(i, event(s)) },
		})
		may := func(s *state) bool { return s.d.joined[i] }
		if shape.Faulty {
			may = nil
		}
		h.fire(join, slot, "queued_"+name, nil, may, func(s *state) broken { s.d.joined[i] = false; return "" })
		h.fire(join, slot, "revoked_"+name, nil, func(s *state) bool { return !s.d.joined[i] }, nil)
		h.fire(join, slot, "proven_"+name, nil, func(s *state) bool {
			return !is(s) || s.fact(join, slot, wait) != queued || s.d.passed(i, event(s))
		}, nil)
	}
}

// caller orders a slot's run between its own work.
func (h *hostWriter) caller(slot int) {
	order, shape, at := h.m.order, h.m.shape, &h.m.at
	caller, cpu := 2*shape.Slots, 2*slot+1
	pending := func(s *state) bool { return s.fact(order, slot, at.orderHeld) == h.m.is.holding }
	for n := uint8(1); int(n) <= shape.Runs; n++ {
		h.fire(order, slot, "begin", []uint64{uint64(n), generation, uint64(n)}, func(s *state) bool { return n <= s.d.runs }, nil)
	}
	h.fire(order, slot, "made", nil, nil, nil)
	edges := order.EventArgs(order.MustEvent("attempt"))[0]
	for _, e := range shape.edges() {
		v, _ := edges.Parse(e)
		h.fire(order, slot, "attempt", []uint64{v}, nil, nil)
		h.fire(order, slot, "record", []uint64{v}, nil, nil)
	}
	h.fire(order, slot, "hold", nil, nil, nil)
	h.add(move{
		text: fmt.Sprintf("the caller's wait for slot %d is queued", slot),
		may:  func(s *state) bool { return pending(s) && !s.d.held[slot] && s.d.room(caller, shape.Depth) },
		do:   func(s *state) broken { s.d.held[slot] = true; return s.d.enqueueWait(caller, cpu) },
	})
	may := func(s *state) bool { return s.d.held[slot] }
	if shape.Faulty {
		may = nil
	}
	h.fire(order, slot, "queued", nil, may, func(s *state) broken { s.d.held[slot] = false; return "" })
	h.fire(order, slot, "unhold", nil, func(s *state) bool { return !s.d.held[slot] }, nil)
	h.fire(order, slot, "proven", nil, func(s *state) bool { return !pending(s) && s.d.passed(caller, cpu) }, nil)
	h.fire(order, slot, "end", nil, nil, nil)
}

// tokens use one wait reference.
func (h *hostWriter) tokens(t int) {
	token, shape, at := h.m.token, h.m.shape, &h.m.at
	fence := func(slot int) uint64 { return h.ref(h.m.fence, slot).Pack() }
	stream := func(s *state) int {
		return 2*slotOf(s.fact(token, t, at.tokenHolder)) + int(s.fact(token, t, at.tokenWaiter))
	}
	event := func(s *state) int {
		return 2*slotOf(s.fact(token, t, at.tokenFence)) + int(s.fact(token, t, at.tokenBoundary))
	}
	idle := func(s *state) bool {
		st, flying, _ := s.w.State(s.now(h.ref(token, t)))
		return st == h.m.is.reserved && !flying && !s.w.HasNext(s.now(h.ref(token, t)))
	}
	is := func(v uint8) func(s *state) bool { return func(s *state) bool { return s.d.queued[t] == v } }
	isNot := func(v uint8) func(s *state) bool { return func(s *state) bool { return s.d.queued[t] != v } }
	enqueue := func(s *state) broken {
		s.d.queued[t] = queuedWait
		return s.d.enqueueWait(stream(s), event(s))
	}
	for f := range shape.Slots {
		for n := uint8(1); int(n) <= shape.Runs; n++ {
			for a := uint8(1); int(a) <= shape.Runs; a++ {
				for b := range uint64(2) {
					for w := range uint64(2) {
						for holder := range shape.Slots {
							if holder == f {
								continue
							}
							h.fire(token, t, "reserve", []uint64{fence(f), uint64(n), generation, uint64(n), uint64(a), b, w, fence(holder)},
								func(s *state) bool { return n <= s.d.runs && a <= s.d.runs },
								func(s *state) broken { s.d.queued[t] = unqueuedWait; return "" })
						}
					}
				}
			}
		}
	}
	h.fire(token, t, "queue", nil, isNot(queuedWait), nil)
	settle := func(row string, may func(*state) bool, r machine.Result) {
		for i := range token.Definition().Rows {
			if x := &token.Definition().Rows[i]; x.ID == row {
				h.add(move{text: fmt.Sprintf("token[%d]▸%s: %v", t, row, r.Outcome), may: may, settle: &r, at: h.ref(token, t), row: x.From + "▸" + row})
			}
		}
	}
	settle("queue", nil, machine.Result{Value: rightContext})
	settle("queue", nil, machine.Result{Value: wrongContext})
	if shape.Faulty {
		for _, o := range []machine.Outcome{machine.Refused, machine.Failed, machine.Panicked, machine.TimedOut} {
			settle("queue", nil, machine.Result{Outcome: o})
		}
	}
	h.add(move{text: fmt.Sprintf("token[%d]: what waits for its turn", t), next: true, at: h.ref(token, t)})
	h.add(move{
		text: fmt.Sprintf("token[%d]: its wait is queued", t),
		may: func(s *state) bool {
			ref := s.now(h.ref(token, t))
			_, flying, _ := s.w.State(ref)
			return flying && s.d.queued[t] == unqueuedWait && s.w.StateName(ref) == "queueing▸enqueue" && s.d.room(stream(s), shape.Depth)
		},
		do: enqueue,
	})
	settle("enqueue", is(queuedWait), machine.Result{})
	if shape.Faulty {
		settle("enqueue", is(queuedWait), machine.Result{Outcome: machine.Refused, Accepted: true})
		settle("enqueue", isNot(queuedWait), machine.Result{Outcome: machine.Refused})
		for _, o := range []machine.Outcome{machine.Failed, machine.Panicked, machine.TimedOut} {
			settle("enqueue", nil, machine.Result{Outcome: o})
		}
	}
	h.add(move{
		text: fmt.Sprintf("the host queues the wait of token[%d]", t),
		may: func(s *state) bool {
			return idle(s) && s.d.queued[t] == unqueuedWait && s.d.room(stream(s), shape.Depth)
		},
		do: enqueue,
	})
	h.fire(token, t, "commit", nil, is(queuedWait), nil)
	h.fire(token, t, "revoke", nil, isNot(queuedWait), nil)
	for w := range uint64(2) {
		h.fire(token, t, "release", []uint64{w}, func(s *state) bool {
			return s.fact(token, t, at.tokenFence) == 0 || s.d.passed(2*slotOf(s.fact(token, t, at.tokenHolder))+int(w), event(s))
		}, nil)
	}
	h.fire(token, t, "quiesce", nil, nil, nil)
	for f := range shape.Slots {
		h.fire(token, t, "discard", []uint64{fence(f)}, nil, nil)
	}
	h.add(move{
		text: fmt.Sprintf("token[%d] is dropped", t), drop: true, at: h.ref(token, t),
		do: func(s *state) broken { s.d.queued[t] = unqueuedWait; return "" },
	})
}

// reset is a verified reset of the device.
func (h *hostWriter) reset() {
	shape := h.m.shape
	v := move{
		text: "a reset is verified",
		may:  func(s *state) bool { return int(s.d.resets) < shape.Resets },
		do: func(s *state) broken {
			d := &s.d
			for t := range shape.Tokens {
				if st, _, _ := s.w.State(s.now(h.ref(h.m.token, t))); st != h.m.is.free && st != h.m.is.spent {
					d.queued[t] = deadWait
				}
			}
			*d = around{runs: d.runs, occupant: d.occupant, queued: d.queued, resets: d.resets + 1}
			return ""
		},
	}
	for slot := range shape.Slots {
		for _, m := range []*machine.Machine{h.m.order, h.m.join, h.m.fence} {
			v.fires = append(v.fires, fire{ref: h.ref(m, slot), ev: m.MustEvent("abandon")})
		}
	}
	h.add(v)
}
