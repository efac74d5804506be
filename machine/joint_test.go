package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// convoy is a leader that takes a list of events along, before its command and
// at its target, and emits others. A car counts to 2 and can be shut.
func convoy(with, emit []string) []*machine.Definition {
	car := func(name string) *machine.Definition {
		return &machine.Definition{
			Name: name, States: states("open", "shut"),
			Events: []machine.Event{event("move"), event("shut"), event("call"), event("note"), event("mint"), event("none")},
			Facts:  named("n:int 2", "t:id token", "l:ref leader"),
			Rows: []machine.Row{
				{ID: "move", From: "open", Event: "move", Then: do("n++")},
				{ID: "move-low", From: "shut", Event: "move", Guard: "n == 2", Refuse: "shut and full"},
				{ID: "move-high", From: "shut", Event: "move", Guard: "n == 1 && t == none", Refuse: "shut and half"},
				{ID: "move-rest", From: "shut", Event: "move", Guard: "else", Refuse: "shut"},
				{ID: "shut", From: "open", Event: "shut", Then: to("shut")},
				{ID: "call", From: "open", Event: "call", Command: "Call()", Then: do("")},
				{ID: "note", From: "open|shut", Event: "note", Then: []machine.Target{{Emit: []string{"self.shut()"}}}},
				{ID: "mint", From: "open|shut", Event: "mint", Then: do("t = fresh()")},
				{ID: "none", From: "open|shut", Event: "none", Then: []machine.Target{{With: []string{"l.back(0)"}}}},
			},
		}
	}
	return []*machine.Definition{
		{
			Name: "leader", States: states("here", "there"), Events: []machine.Event{event("move"), event("back", "n:int 9"), event("run")},
			Facts: named("k:int 9", "t:id token"),
			Rows: []machine.Row{
				{ID: "move", From: "here", Event: "move", Then: []machine.Target{{To: "there", Do: "k++; t = fresh()", With: with, Emit: emit}}},
				{ID: "back", From: "there", Event: "back", Then: []machine.Target{{To: "here", Do: "k = arg.n"}}},
				{ID: "run", From: "here", Event: "run", Before: "k++", With: with, Command: "Run(k)", Then: []machine.Target{
					{On: "ok", To: "there", With: with, Emit: emit}, {},
				}},
			},
		},
		car("a"), car("b"),
	}
}

func TestJointStepIsAtomic(t *testing.T) {
	for _, ev := range []string{"move", "run"} {
		t.Run(ev, func(t *testing.T) {
			rec := &log{}
			l := newLane(t, machine.Config{Recorder: rec}, convoy([]string{"a.mint()", "a.note()", "a.move()", "b.move()"}, nil)...)
			leader, b := l.ref("leader", 0), l.ref("b", 0)
			l.takes(b, "shut")
			before := l.Words()
			err := l.refuses(leader, ev)
			assert.Equal(t, machine.ByJoint, err.Kind)
			assert.ErrorIs(t, err, machine.Reason("shut"))
			assert.Equal(t, []string{"n == 2", "n == 1 && t == none"}, err.Guards())
			assert.EqualError(t, err, `leader: `+ev+` refused in state "here" (row `+ev+`): shut: b, to be taken along, refuses move in state "shut" (row move-rest); said no: n == 2, n == 1 && t == none; accepts move, run`)
			assert.Equal(t, before, l.Words())
			require.Len(t, rec.records, 2, "the shut and the refusal; nothing of what was undone")
			assert.Equal(t, machine.Rejected, rec.records[1].Kind)
			assert.EqualValues(t, 2, rec.records[1].Seq)
			assert.Equal(t, b, rec.records[1].By)
		})
	}
}

func TestJointStepOutOfRangeIsAtomic(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy([]string{"a.mint()", "a.move()", "b.move()"}, nil)...)
	leader, b := l.ref("leader", 0), l.ref("b", 0)
	l.takes(b, "move")
	l.takes(b, "move")
	before := l.Words()
	err := l.refuses(leader, "move")
	assert.ErrorIs(t, err, machine.ErrOutOfRange)
	assert.ErrorContains(t, err, `b, to be taken along, refuses move in state "open" (row move): fact n would leave its range`)
	assert.Equal(t, before, l.Words())
}

func TestJointStepIsOneRecordTree(t *testing.T) {
	rec := &log{}
	l := newLane(t, machine.Config{Recorder: rec}, convoy([]string{"a.move()", "b.mint()"}, nil)...)
	leader := l.ref("leader", 0)
	l.takes(leader, "move")
	require.Len(t, rec.records, 3)
	for i, r := range rec.records {
		assert.EqualValues(t, i+1, r.Seq)
		assert.Equal(t, leader, r.Root)
	}
	assert.Zero(t, rec.records[0].Parent)
	assert.EqualValues(t, 1, rec.records[1].Parent)
	assert.EqualValues(t, 1, rec.records[2].Parent)
	assert.Equal(t, machine.ViaJoint, rec.records[1].Via)
	there, _ := l.m("leader").State("there")
	assert.Equal(t, there, rec.records[0].To, "the record of the step itself says where it went")
}

func TestStepThatComesBackToItselfIsRefused(t *testing.T) {
	// The leader takes a along, which would take the leader along.
	l := newLane(t, machine.Config{}, convoy([]string{"a.none()"}, nil)...)
	leader := l.ref("leader", 0)
	a := l.m("a")
	require.NotNil(t, a)
	// a points at the leader.
	l2 := newLane(t, machine.Config{}, func() []*machine.Definition {
		ds := convoy([]string{"a.none()"}, nil)
		ds[1].Events = append(ds[1].Events, event("point", "l:ref leader"))
		ds[1].Rows = append(ds[1].Rows, machine.Row{ID: "point", From: "open|shut", Event: "point", Then: do("l = arg.l")})
		return ds
	}()...)
	l2.takes(l2.ref("a", 0), "point", l2.ref("leader", 0).Pack())
	for _, ev := range []string{"move", "run"} {
		before := l2.Words()
		err := l2.refuses(l2.ref("leader", 0), ev)
		assert.Equal(t, machine.ByJoint, err.Kind)
		assert.ErrorContains(t, err, "the step is changing it already")
		assert.Equal(t, before, l2.Words())
	}
	// And without the pointer, a names nothing.
	err := l.refuses(leader, "move")
	assert.ErrorIs(t, err, machine.ErrBadArgument)
	assert.ErrorContains(t, err, "names nothing")
}

func TestJointStepWaitsForACommand(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy([]string{"a.mint()", "b.move()"}, nil)...)
	leader, b := l.ref("leader", 0), l.ref("b", 0)
	require.Equal(t, machine.InFlight, l.takes(b, "call").Status)
	before := l.Words()
	require.Equal(t, machine.Deferred, l.issue(leader, "move").Status)
	assert.Equal(t, before, l.Words())
	assert.False(t, l.can(leader, "move"))
	require.Equal(t, machine.Accepted, l.Settle(b, machine.Result{}).Status)
	assert.True(t, l.can(leader, "move"))
	l.takes(leader, "move")
}

func TestSettleWaitsForACommand(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy([]string{"b.move()"}, nil)...)
	leader, b := l.ref("leader", 0), l.ref("b", 0)
	require.Equal(t, machine.InFlight, l.takes(leader, "run").Status)
	require.Equal(t, machine.InFlight, l.takes(b, "call").Status)
	before := l.Words()
	require.Equal(t, machine.Deferred, l.Settle(leader, machine.Result{}).Status)
	assert.Equal(t, before, l.Words(), "the leader's command is still out")
	require.Equal(t, machine.Accepted, l.Settle(b, machine.Result{}).Status)
	require.Equal(t, machine.Accepted, l.Settle(leader, machine.Result{}).Status)
	assert.EqualValues(t, 2, l.fact(b, "n"), "one before the command and one at its target")
}

func TestAnswerThatCannotBeTakenIsAHole(t *testing.T) {
	rec := &log{}
	l := newLane(t, machine.Config{Recorder: rec}, convoy([]string{"b.move()"}, nil)...)
	leader, b := l.ref("leader", 0), l.ref("b", 0)
	l.takes(leader, "run")
	l.takes(b, "shut")
	before := l.Words()
	s := *l.Settle(leader, machine.Result{Value: 7})
	require.Equal(t, machine.Hole, s.Status)
	err := l.RefusalError(&s)
	assert.ErrorContains(t, err, `leader: run refused in state "here" (row run): shut and half: b, to be taken along, refuses move`)
	assert.Equal(t, before, l.Words(), "the command is still in flight")
	last := rec.records[len(rec.records)-1]
	assert.Equal(t, machine.Holed, last.Kind)
	assert.EqualValues(t, 7, last.Result.Value)
	assert.Equal(t, machine.ByJoint, last.Refusal)
	require.Equal(t, machine.Accepted, l.Settle(leader, machine.Result{Outcome: machine.Failed}).Status, "another answer has a way on")
}

func TestJointDepth(t *testing.T) {
	chain := func(n int, circle bool) []*machine.Definition {
		var ds []*machine.Definition
		for i := range n {
			var with []string
			if i+1 < n {
				with = []string{"m" + string(rune('a'+i+1)) + ".e()"}
			} else if circle {
				with = []string{"ma.e()"}
			}
			ds = append(ds, &machine.Definition{
				Name: "m" + string(rune('a'+i)), States: states("on"), Events: []machine.Event{event("e")}, Facts: named("n:int 1"),
				Rows: []machine.Row{{ID: "e", From: "on", Event: "e", Then: []machine.Target{{Do: "n++", With: with}}}},
			})
		}
		return ds
	}
	l := newLane(t, machine.Config{}, chain(6, false)...)
	l.takes(l.ref("ma", 0), "e")
	assert.EqualValues(t, 1, l.fact(l.ref("mf", 0), "n"))
	err := l.refuses(l.ref("ma", 0), "e")
	assert.ErrorIs(t, err, machine.ErrOutOfRange, "the first to leave its range is the outermost")

	_, cerr := machine.Compile(chain(7, false)...)
	assert.ErrorContains(t, cerr, "ma: with: e takes along events more than 6 deep, or in a circle")
	_, cerr = machine.Compile(chain(3, true)...)
	assert.ErrorContains(t, cerr, "ma: with: e takes along events more than 6 deep, or in a circle")
	assert.Equal(t, 3, strings.Count(cerr.Error(), "in a circle"))
}

func TestQueueHoldsWhatItSays(t *testing.T) {
	l := newLane(t, machine.Config{Queue: 2}, convoy(nil, []string{"a.note()", "b.shut()"})...)
	leader, a := l.ref("leader", 0), l.ref("a", 0)
	l.takes(leader, "move")
	require.Equal(t, 2, l.Queued())
	// a.note emits one: the event being taken makes room for it.
	s := l.Next(leader)
	require.Equal(t, machine.Accepted, s.Status, "%v", l.RefusalError(s))
	require.Equal(t, 2, l.Queued())
	// A third does not fit, and then nothing has changed.
	before := l.Words()
	err := l.refuses(a, "note")
	assert.ErrorIs(t, err, machine.ErrQueueFull)
	assert.ErrorContains(t, err, "the queue is full")
	assert.Equal(t, before, l.Words())
	require.Equal(t, machine.Accepted, l.Next(leader).Status)
	require.Equal(t, machine.Accepted, l.Next(leader).Status)
	require.Nil(t, l.Next(leader))
	assert.Equal(t, "shut", l.StateName(a))
	assert.Equal(t, "shut", l.StateName(l.ref("b", 0)))
}

func TestRefusedEventLeavesTheQueue(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy(nil, []string{"a.shut()", "b.mint()"})...)
	leader, a := l.ref("leader", 0), l.ref("a", 0)
	l.takes(a, "shut")
	l.takes(leader, "move")
	s := *l.Next(leader)
	require.Equal(t, machine.StepRefused, s.Status)
	assert.Equal(t, machine.NoRow, s.Refusal)
	require.Equal(t, machine.Accepted, l.Next(leader).Status, "the rest goes on")
	assert.EqualValues(t, 2, l.fact(l.ref("b", 0), "t"), "the leader made the first")
}

func TestOperationsHaveQueuesOfTheirOwn(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy(nil, []string{"a.mint()"})...)
	leader, b := l.ref("leader", 0), l.ref("b", 0)
	l.takes(b, "note")
	l.takes(leader, "move")
	assert.True(t, l.HasNext(b))
	assert.True(t, l.HasNext(leader))
	assert.False(t, l.HasNext(l.ref("a", 0)))
	assert.Equal(t, b, l.QueuedRoot(0))
	require.Equal(t, machine.Accepted, l.Next(leader).Status)
	assert.False(t, l.HasNext(leader))
	require.Nil(t, l.Next(leader))
	require.Equal(t, machine.Accepted, l.Next(b).Status)
	assert.Equal(t, "shut", l.StateName(b))
}

func TestOperationIsOneThread(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy(nil, []string{"b.call()", "a.mint()"})...)
	leader, b := l.ref("leader", 0), l.ref("b", 0)
	l.takes(leader, "move")
	require.Equal(t, machine.InFlight, l.Next(leader).Status)
	assert.True(t, l.HasNext(leader))
	require.Nil(t, l.Next(leader), "its command is in flight")
	copied := newWorld(t, l.Rules(), machine.Config{})
	copied.CopyFrom(l.World)
	require.Nil(t, copied.Next(leader))
	read := newWorld(t, l.Rules(), machine.Config{})
	require.NoError(t, read.SetBinary(l.AppendBinary(nil)))
	require.Nil(t, read.Next(leader))
	require.Nil(t, l.Clone().Next(leader))
	require.Equal(t, machine.Accepted, l.Settle(b, machine.Result{}).Status)
	require.Equal(t, machine.Accepted, l.Next(leader).Status)
}

// What a step of an operation starts is done before the operation goes on; what
// the host starts comes last.
func TestWhatAStepEmitsComesFirst(t *testing.T) {
	rec := &log{}
	l := newLane(t, machine.Config{Recorder: rec}, convoy(nil, []string{"a.note()", "b.mint()"})...)
	leader := l.ref("leader", 0)
	l.takes(leader, "move") // a.note, b.mint
	l.takes(leader, "back", 0)
	l.takes(leader, "move") // a.note, b.mint again, behind the first
	for l.HasNext(leader) {
		require.NotNil(t, l.Next(leader))
	}
	var got []string
	for _, r := range rec.records {
		if r.Via == machine.ViaQueue {
			got = append(got, l.Rules().RefName(r.Ref)+"."+l.Rules().At(r.Ref.Machine).EventName(r.Event)+" "+r.Kind.String())
		}
	}
	assert.Equal(t, []string{"a.note step", "a.shut step", "b.mint step", "a.note step", "a.shut refuse", "b.mint step"}, got)
}

func TestWhatASettledCommandEmitsComesFirst(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy(nil, []string{"a.note()"})...)
	leader, a := l.ref("leader", 0), l.ref("a", 0)
	l.takes(leader, "run")
	l.Settle(leader, machine.Result{}) // emits a.note
	l.takes(leader, "back", 0)
	l.takes(leader, "run")
	l.Settle(leader, machine.Result{}) // emits a.note, ahead of the first
	require.Equal(t, 2, l.Queued())
	before := l.Fingerprint(nil)
	require.Equal(t, machine.Accepted, l.Next(leader).Status)
	require.Equal(t, machine.Accepted, l.Next(leader).Status, "a.shut, which the first emitted")
	assert.Equal(t, "shut", l.StateName(a))
	require.Equal(t, machine.Accepted, l.Next(leader).Status)
	assert.NotEqual(t, before, l.Fingerprint(nil))
	assert.Equal(t, 1, l.Queued())
}
