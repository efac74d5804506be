package promela

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/states"
)

// mirror does on a simulated device what the device half of a model does.
type mirror struct {
	t       *testing.T
	d       *sim.Device
	streams []backend.Stream
	events  [mostEvents]backend.Event
	args    [mostSlots]backend.Memory
}

const (
	coreKernel = backend.Kernel(1)
	cpuKernel  = backend.Kernel(2)
)

func newMirror(t *testing.T, slots int) *mirror {
	d, err := sim.New(sim.Config{NoProofs: true, Kernels: []sim.KernelSpec{
		{Name: "core", Class: backend.AICore, Paired: true, Spin: true},
		{Name: "cpu", Class: backend.AICPU, Paired: true},
	}})
	require.NoError(t, err)
	m := &mirror{t: t, d: d}
	for range 2*slots + 1 {
		m.streams = append(m.streams, backend.Stream(m.call(sim.Op{Kind: sim.OpCreateStream}).Handle))
	}
	return m
}

// call makes a call that takes effect and returns, with nothing in between.
func (m *mirror) call(op sim.Op) sim.Answer {
	m.t.Helper()
	c := m.d.Begin(op)
	for _, k := range []sim.ChoiceKind{sim.ChooseEffect, sim.ChooseReturn} {
		require.NoError(m.t, m.d.Apply(sim.Choice{Kind: k, Target: uint64(c)}))
	}
	a, ended := m.d.Take(c)
	require.True(m.t, ended)
	require.True(m.t, a.Ok(), "%v: %+v", op.Kind, a)
	return a
}

// follow does what the device half did between two states.
func (m *mirror) follow(a, b *around) {
	m.t.Helper()
	for slot := range m.args {
		core, cpu := 2*slot, 2*slot+1
		switch {
		case b.runs > a.runs && a.occupant[slot] != b.occupant[slot]:
			// A block of its own tells the kernels of one run from those of another.
			m.args[slot] = backend.Memory(m.call(sim.Op{Kind: sim.OpAlloc, Place: backend.DeviceMemory, Size: 64}).Handle)
		case b.made[slot] && !a.made[slot]:
			for _, e := range []int{core, cpu} {
				m.events[e] = backend.Event(m.call(sim.Op{Kind: sim.OpCreateEvent}).Handle)
			}
		case a.made[slot] && !b.made[slot]:
			for _, e := range []int{core, cpu} {
				m.call(sim.Op{Kind: sim.OpDestroyEvent, Event: m.events[e]})
			}
		}
	}
	for i, s := range m.streams {
		switch {
		case b.length[i] < a.length[i]:
			require.NoError(m.t, m.d.Apply(sim.Choice{Kind: sim.ChooseEntry, Target: uint64(s)}))
		case b.length[i] > a.length[i]:
			switch entry := b.stream[i][b.length[i]-1]; {
			case entry == kernelEntry && i%2 == 0:
				m.call(sim.SubmitOp(s, backend.Launch{Class: backend.AICore, Kernel: coreKernel, Args: m.args[i/2], Blocks: 1}))
			case entry == kernelEntry:
				m.call(sim.SubmitOp(s, backend.Launch{Class: backend.AICPU, Kernel: cpuKernel, Args: m.args[i/2]}))
			case entry == recordEntry:
				m.call(sim.Op{Kind: sim.OpRecordEvent, Stream: s, Event: m.events[i]})
			default:
				m.call(sim.Op{Kind: sim.OpStreamWaitEvent, Stream: s, Event: m.events[entry-waitEntry]})
			}
		}
	}
}

// same holds what can be told of the device half against the simulated device:
// which streams can move, how much is queued, and which events are complete.
func (m *mirror) same(s *state) {
	m.t.Helper()
	moves := map[int]bool{}
	for _, v := range s.Moves(nil) {
		text := s.m.MoveText(s, v)
		for i := range m.streams {
			for _, what := range []string{"the kernel ends", "the record takes effect", "the wait passes"} {
				if text == "stream "+string(rune('0'+i))+": "+what {
					moves[i] = true
				}
			}
		}
	}
	can := map[int]bool{}
	for _, c := range m.d.Choices(nil) {
		for i, h := range m.streams {
			if c.Kind == sim.ChooseEntry && c.Target == uint64(h) {
				can[i] = true
			}
		}
	}
	require.Equal(m.t, can, moves, "%s", s)
	queued := 0
	for _, n := range s.d.length {
		queued += int(n)
	}
	left, _ := m.d.Left()
	require.Equal(m.t, left, 2*queued, "each entry counts two")
	for e, done := range s.d.done {
		if s.d.made[e/2] && (done || s.d.records[e] > 0) {
			a := m.call(sim.Op{Kind: sim.OpQueryEvent, Event: m.events[e]})
			require.Equal(m.t, a.Status == backend.Complete, done, "event %d of %s", e, s)
		}
	}
	require.Empty(m.t, m.d.Violations())
}

var toward = regexp.MustCompile(`queued|ends|effect|passes|submit|record|arm|reserve|plan|hold|begin`)

var away = regexp.MustCompile(`release \[\]|disarm|cancel|end \[\]|revoke|unrecorded|unsubmitted|unhold|discard|made|quiesced`)

// The device half of the model and the simulated device were written apart from
// each other. In whatever walks a host leads them, the same streams can move, as
// much is queued, and the same events are complete.
func TestSimulatedDeviceIsTheSame(t *testing.T) {
	rules, err := RunRules(states.Definitions(), nil)
	require.NoError(t, err)
	m, err := NewRunModel(rules, Shape{Name: "walk", Slots: 2, Runs: 4, Tokens: 2, Depth: 6, Faulty: true, Join: true, Caller: true, Edges: 1})
	require.NoError(t, err)
	did := map[string]bool{}
	for seed := range uint64(100) {
		choose := rand.New(rand.NewPCG(seed, 7))
		s, d := m.newState(), newMirror(t, 2)
		for range 400 {
			moves := s.Moves(nil)
			v := moves[choose.IntN(len(moves))]
			// Most of what a host may do leads away from the device.
			for range 4 {
				if text := m.MoveText(s, v); toward.MatchString(text) || !away.MatchString(text) && choose.IntN(3) == 0 {
					break
				}
				v = moves[choose.IntN(len(moves))]
			}
			if away.MatchString(m.MoveText(s, v)) && choose.IntN(20) > 0 {
				continue
			}
			before := s.d
			require.Nil(t, s.Take(v))
			d.follow(&before, &s.d)
			d.same(s)
			if before.length != s.d.length {
				did[m.MoveText(s, v)] = true
			}
		}
	}
	for _, text := range []string{
		"stream 0: the kernel ends", "stream 1: the kernel ends", "stream 0: the record takes effect",
		"stream 1: the wait passes", "stream 2: the join's wait is queued", "the host queues the wait of token[1]",
		"token[0]: its wait is queued", "the caller's wait for slot 0 is queued",
	} {
		require.True(t, did[text], "no walk came to: %s", text)
	}
}
