package model

import (
	"fmt"
	"strings"

	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/states"
)

// MoveText writes a move as a scenario does: "start launch 0", "start stale
// wait 1", "device entry core0", "device fail launch[0].RecordEvent 507000".
func (s *System) MoveText(st *State, m Move) string {
	if m&hostBit == 0 {
		choices := st.dev.Choices(nil)
		if int(m) >= len(choices) {
			return fmt.Sprintf("device %d", m)
		}
		return "device " + st.choiceText(choices[m])
	}
	o := m.op()
	words := []string{"start"}
	if w := m.who(); w != themself {
		words = append(words, whoNames[w])
	}
	words = append(words, opNames[o])
	switch o {
	case opOpen, opRecover, opClose, opQuarantine, opDetach:
	case opReserve:
		words = append(words, fmt.Sprint(m.slot()), []string{"cpu_done", "core_done"}[m.variant()], fmt.Sprintf("of=%d by=%d", m.of(), m.by()))
	case opRelease:
		words = append(words, fmt.Sprint(m.slot()), []string{"core", "cpu"}[m.variant()])
	default:
		words = append(words, fmt.Sprint(m.slot()))
	}
	return strings.Join(words, " ")
}

// MoveOf returns the move of a state that has this text.
func (s *State) MoveOf(text string) (Move, bool) {
	for _, m := range s.Moves(nil) {
		if s.sys.MoveText(s, m) == text {
			return m, true
		}
	}
	return 0, false
}

func (s *State) choiceText(c sim.Choice) string {
	text := c.Kind.String() + " "
	switch c.Kind {
	case sim.ChooseNotice, sim.ChooseLose:
		text += fmt.Sprint(c.Target)
	default:
		text += s.handleText(c.Target)
	}
	if c.Code != 0 {
		text += fmt.Sprintf(" %d", c.Code)
	}
	return text
}

// handleText names a handle by what it is to its slot, and a call by whose it is.
func (s *State) handleText(h uint64) string {
	if h == uint64(s.caller) {
		return "caller"
	}
	for i := range s.calls {
		if uint64(s.calls[i].ticket) == h {
			op, _ := s.dev.Pending(s.calls[i].ticket)
			return s.sys.rules.RefName(s.calls[i].cmd.Ref) + "." + op.Kind.String()
		}
	}
	for slot := range s.sys.config.Slots {
		for name, v := range handleNames(s.cmd.Handles(slot)) {
			if v == h {
				return fmt.Sprintf("%s%d", name, slot)
			}
		}
	}
	return sim.HandleName(h)
}

func handleNames(h states.Handles) map[string]uint64 {
	return map[string]uint64{
		"core": uint64(h.Core), "cpu": uint64(h.CPU),
		"core_done": uint64(h.CoreDone), "cpu_done": uint64(h.CPUDone), "start": uint64(h.Start), "fork": uint64(h.Fork), "tail": uint64(h.Tail),
		"args": uint64(h.Args), "pinned": uint64(h.Pinned), "result": uint64(h.Region), "source": uint64(h.Source),
	}
}

func (s *State) violation(v sim.Violation) string {
	text := v.Kind.String()
	if v.During != sim.OpNone {
		text += " in " + v.During.String()
	}
	for _, h := range [...]uint64{uint64(v.Stream), uint64(v.Event), uint64(v.Memory)} {
		if h != 0 {
			text += " " + s.handleText(h)
		}
	}
	return text
}
