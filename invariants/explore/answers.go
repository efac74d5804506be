package explore

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/machine"
)

// Call is an event that a host fires.
type Call struct {
	Machine string
	Slot    int
	Event   string
	Args    []uint64
}

// AnswersConfig bounds a system of rules against a device that may answer
// anything. It knows no device, so it visits more than any device leads to:
// what holds here holds on all of them.
type AnswersConfig struct {
	// Name says what it is; it and the rules are the system's hash.
	Name  string
	Rules *machine.Rules
	Pools map[string]int
	// Begin brings a new world to where the host begins; nil begins there.
	Begin func(w *machine.World) error
	// Host lists what the host may start. It follows from the world alone.
	Host func(w *machine.World) []Call
	// Lenient names the machines whose operations look at what came of the events
	// that they send; of any other, one that is refused is a hole.
	Lenient []string
	// Bad is how many answers on the way may be others than what was hoped for.
	Bad int
	// Unchecked leaves the invariants out: for hosts that do what no host does.
	Unchecked bool
	// Also, if not nil, says what else is wrong with a step. It follows from its
	// arguments alone.
	Also func(before, after *machine.World, recs []machine.Record) *Finding
	// Observe, if not nil, is told of every step: of any State, so it must be
	// safe for concurrent use if they are used so.
	Observe func(before *machine.World, s *machine.Step, recs []machine.Record)
}

// Answers makes a [System] of rules alone. Moves are the next step of an
// operation, an answer to a call in flight, and what the host starts; each
// reaches every interleaving. The error is that of Begin.
func Answers(c AnswersConfig) (System, error) {
	s := &answers{AnswersConfig: c, check: invariants.For(c.Rules)}
	for i := range c.Rules.NumMachines() {
		s.calls = append(s.calls, callsOf(c.Rules.At(machine.MachineID(i))))
	}
	w, err := c.Rules.NewWorld(machine.Config{Name: "lane", Pools: c.Pools})
	if err != nil {
		return nil, err
	}
	if c.Begin != nil {
		if err := c.Begin(w); err != nil {
			return nil, err
		}
	}
	s.start = w
	return s, nil
}

type answers struct {
	AnswersConfig
	check *invariants.Checker
	start *machine.World
	// calls has the command of each row of each machine.
	calls [][]string
}

func callsOf(m *machine.Machine) []string {
	out := make([]string, m.NumRows())
	for r := range out {
		out[r], _, _ = strings.Cut(m.Row(machine.RowID(r)).Command, "(")
	}
	return out
}

// Name implements [System].
func (s *answers) Name() string { return s.AnswersConfig.Name }

// Hash implements [System].
func (s *answers) Hash() machine.Fingerprint {
	h := s.Rules.Hash()
	text := fmt.Sprintf("%x %s %d", h[:], s.AnswersConfig.Name, s.Bad)
	var d xxhash.Digest
	d.ResetWithSeed(1)
	_, _ = d.WriteString(text)
	return machine.Fingerprint{Hi: d.Sum64(), Lo: xxhash.Sum64String(text)}
}

// New implements [System].
func (s *answers) New() State {
	return &answersState{sys: s, w: s.start.Clone(), before: s.start.Clone()}
}

// MoveText implements [System].
func (s *answers) MoveText(st State, m Move) string {
	x := st.(*answersState)
	switch m >> moveKind {
	case moveNext:
		return "next of " + s.Rules.RefName(x.w.QueuedRoot(int(low(m))))
	case moveAnswer:
		ref, res := x.answer(m)
		return fmt.Sprintf("%s of %s: %v %d", x.w.StateName(ref), s.Rules.RefName(ref), res.Outcome, res.Value)
	}
	c := x.calls()[low(m)]
	return fmt.Sprintf("%s[%d] %s%v", c.Machine, c.Slot, c.Event, c.Args)
}

// A move is its kind, and what it is of: the place in the queue, the machine,
// slot and answer, or the place in the host's list.
const (
	moveKind          = 56
	moveNext     Move = 0
	moveAnswer   Move = 1
	moveHost     Move = 2
	answerBits        = 8
	answerSlot        = 16
	answerMember      = answerBits + answerSlot
)

func low(m Move) Move { return m & (1<<moveKind - 1) }

type answersState struct {
	sys       *answers
	w, before *machine.World
	bad       int
	recs      []machine.Record
	// host is what the host may start in the state that src reads back as: the
	// list is dear, and is wanted again for each of its moves. moved says that
	// the state is another by now.
	host  []Call
	src   []byte
	moved bool
}

// Record implements [machine.Recorder].
func (x *answersState) Record(r *machine.Record) { x.recs = append(x.recs, *r) }

// calls is what the host may start.
func (x *answersState) calls() []Call {
	switch {
	case x.moved || len(x.src) == 0:
		return x.sys.Host(x.w)
	case x.host == nil:
		x.host = x.sys.Host(x.w)
	}
	return x.host
}

// Moves implements [State].
func (x *answersState) Moves(dst []Move) []Move {
	var roots []machine.Ref
	for i := range x.w.Queued() {
		if root := x.w.QueuedRoot(i); !slices.Contains(roots, root) {
			roots = append(roots, root)
			dst = append(dst, moveNext<<moveKind|Move(i))
		}
	}
	for id, calls := range x.sys.calls {
		for slot := range x.w.Capacity(machine.MachineID(id)) {
			ref := x.w.Ref(machine.MachineID(id), slot)
			row, flying := x.w.InFlight(ref)
			if !flying {
				continue
			}
			n := 1
			if x.bad < x.sys.Bad {
				n = len(answersTo(calls[row]))
			}
			for i := range n {
				dst = append(dst, moveAnswer<<moveKind|Move(id)<<answerMember|Move(slot)<<answerBits|Move(i))
			}
		}
	}
	if x.sys.Host != nil {
		for i := range x.calls() {
			dst = append(dst, moveHost<<moveKind|Move(i))
		}
	}
	return dst
}

func (x *answersState) answer(m Move) (machine.Ref, machine.Result) {
	m = low(m)
	id := machine.MachineID(m >> answerMember)
	ref := x.w.Ref(id, int(m>>answerBits&(1<<answerSlot-1)))
	row, _ := x.w.InFlight(ref)
	return ref, answersTo(x.sys.calls[id][row])[m&(1<<answerBits-1)]
}

// Take implements [State].
func (x *answersState) Take(m Move) *Finding {
	defer func() { x.moved = true }()
	x.before.CopyFrom(x.w)
	x.recs = x.recs[:0]
	x.w.Observe(x)
	var s *machine.Step
	switch m >> moveKind {
	case moveNext:
		s = x.w.Next(x.w.QueuedRoot(int(low(m))))
	case moveAnswer:
		ref, res := x.answer(m)
		if m&(1<<answerBits-1) != 0 {
			x.bad++
		}
		s = x.w.Settle(ref, res)
	default:
		c := x.calls()[low(m)]
		mc := x.sys.Rules.Machine(c.Machine)
		s = x.w.Issue(x.w.Ref(mc.ID(), c.Slot), mc.MustEvent(c.Event), c.Args...)
	}
	x.w.Observe(nil)
	if s == nil {
		return nil // it waits for a command of its operation
	}
	if x.sys.Observe != nil {
		x.sys.Observe(x.before, s, x.recs)
	}
	return x.judge(s, m>>moveKind == moveNext)
}

// judge says what is wrong with a step, which an event led to that the rules
// sent, or that came from outside.
func (x *answersState) judge(s *machine.Step, sent bool) *Finding {
	rules := x.sys.Rules
	switch {
	case x.sys.Unchecked:
		return nil
	case s.Status == machine.Hole:
		return &Finding{Kind: "hole", Detail: x.w.RefusalError(s).Error()}
	case s.Status == machine.StepRefused && sent && !slices.Contains(x.sys.Lenient, rules.At(s.Root.Machine).Name()):
		return &Finding{Kind: "hole", Detail: "an event that the rules send is refused: " + x.w.RefusalError(s).Error()}
	}
	for _, f := range x.sys.check.Step(x.before, x.w, x.recs) {
		return &Finding{Kind: f.Invariant.ID, Detail: f.Detail}
	}
	for _, f := range x.sys.check.World(x.w) {
		return &Finding{Kind: f.Invariant.ID, Detail: f.Detail}
	}
	if x.sys.Also != nil {
		return x.sys.Also(x.before, x.w, x.recs)
	}
	return nil
}

// Final implements [State].
func (x *answersState) Final() *Finding {
	if x.w.Queued() > 0 {
		return &Finding{Kind: "deadlock", Detail: "events wait, and nothing can happen"}
	}
	return nil
}

// Fingerprint implements [State].
func (x *answersState) Fingerprint() machine.Fingerprint {
	f := x.w.Fingerprint(nil)
	f.Lo ^= uint64(x.bad) * 0x9e3779b97f4a7c15
	return f
}

// AppendBinary implements [State].
func (x *answersState) AppendBinary(dst []byte) []byte {
	return x.w.AppendState(append(dst, byte(x.bad)))
}

// SetBinary implements [State].
func (x *answersState) SetBinary(src []byte) error {
	if len(src) == 0 {
		return fmt.Errorf("a state of no bytes")
	}
	if x.moved = false; !bytes.Equal(src, x.src) {
		x.src, x.host = append(x.src[:0], src...), nil
	}
	x.bad = int(src[0])
	return x.w.SetState(src[1:])
}

// CopyFrom implements [State].
func (x *answersState) CopyFrom(o State) {
	y := o.(*answersState)
	x.w.CopyFrom(y.w)
	x.bad, x.moved = y.bad, true
}

// Context is the execution context that answers name when all is well.
const Context = 77

var badAnswers = []machine.Result{
	{Outcome: machine.Refused, Codes: machine.Codes{Code: 1}},
	{Outcome: machine.Failed, Codes: machine.Codes{Code: 2}},
	{Outcome: machine.TimedOut, Codes: machine.Codes{Code: 3}},
	{Outcome: machine.Panicked},
	{Outcome: machine.Refused, Codes: machine.Codes{Code: 4}, Accepted: true},
}

// Hoped is the answer to a call that is hoped for.
func Hoped(call string) machine.Result { return answersTo(call)[0] }

// answersTo are the ways in which a call may end, as far as the rules can tell.
// The first is the one that is hoped for.
func answersTo(call string) []machine.Result {
	if out, ok := knownAnswers[call]; ok {
		return out
	}
	return otherAnswers
}

var (
	otherAnswers = append([]machine.Result{{}}, badAnswers...)
	knownAnswers = func() map[string][]machine.Result {
		good := func(rs ...machine.Result) []machine.Result { return append(rs, badAnswers...) }
		value := func(v uint64) machine.Result { return machine.Result{Value: v} }
		coded := func(v uint64, c int32) machine.Result { return machine.Result{Value: v, Codes: machine.Codes{Code: c}} }
		out := map[string][]machine.Result{
			"ReadRecord": good(value(1), value(0), coded(1, 1), coded(1, 2), coded(1, 3), coded(1, 4)),
			"RollBack":   good(value(1), value(0)),
			"RecordCore": good(value(10), value(12)),
			"RecordCPU":  good(value(11), value(12)),
		}
		for _, c := range []string{"CurrentContext", "CreateContext"} {
			out[c] = good(value(Context), value(Context+1))
		}
		for _, c := range []string{"PrepareRun", "CaptureStatus"} {
			out[c] = good(value(0), value(1))
		}
		for _, c := range []string{"QueryCore", "QueryCPU", "QueryTail", "QueryCoreStream", "QueryCPUStream", "ResetDevice"} {
			out[c] = good(value(1), value(0))
		}
		return out
	}()
)
