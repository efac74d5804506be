package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
)

func TestNewWorldRefusesBadSizes(t *testing.T) {
	rules := compile(t, harbour()...)
	for want, c := range map[string]machine.Config{
		`pool "runs" of 0: want 1 to 4096`:          {},
		`pool "tokens" of 4097: want 1 to 4096`:     {Pools: map[string]int{"runs": 1, "tokens": 4097}},
		`unknown pool "rums": did you mean "runs"?`: {Pools: map[string]int{"rums": 1, "tokens": 1}},
		`queue of -1: want 1 to 4096`:               {Queue: -1, Pools: map[string]int{"runs": 1, "tokens": 1}},
		`queue of 4097: want 1 to 4096`:             {Queue: 4097, Pools: map[string]int{"runs": 1, "tokens": 1}},
		`pool "runs" of -3: want 1 to 4096`:         {Pools: map[string]int{"runs": -3, "tokens": 1}},
	} {
		_, err := rules.NewWorld(c)
		assert.EqualError(t, err, want)
	}
}

// A clone made in the middle of an operation goes its own way.
func TestCloneInTheMiddleOfAnOperation(t *testing.T) {
	rec := &log{}
	l := newLane(t, machine.Config{Recorder: rec, Pools: map[string]int{"runs": 2, "tokens": 1}}, harbour()...)
	run := l.ref("run", 0)
	l.takes(run, "start", 4, 1)
	c := lane{t, l.Clone()}
	before := len(rec.records)
	require.Equal(t, machine.Accepted, c.Settle(run, machine.Result{Outcome: machine.Failed}).Status)
	assert.Equal(t, "over", c.StateName(run))
	assert.Equal(t, "idle▸start", l.StateName(run), "the origin is still in flight")
	assert.Len(t, rec.records, before, "a clone has no recorder")

	require.Equal(t, machine.Accepted, l.Settle(run, machine.Result{}).Status)
	l.takes(run, "tell") // two events wait
	c.CopyFrom(l.World)
	for l.HasNext(run) {
		require.Equal(t, machine.Accepted, l.Next(run).Status)
	}
	assert.Equal(t, 2, c.Queued())
	assert.Equal(t, "armed", l.StateName(l.ref("fence", 0)))
	assert.Equal(t, "bare", c.StateName(l.ref("fence", 0)))
	for c.HasNext(run) {
		require.Equal(t, machine.Accepted, c.Next(run).Status)
	}
	assert.Equal(t, l.Fingerprint(nil), c.Fingerprint(nil), "both have come to the same")
	assert.Equal(t, l.Seq(), c.Seq())
}

// The steps of a world and of a world without a recorder are the same, and
// records count from 1 without a gap.
func TestRecordsChangeNothing(t *testing.T) {
	rules := compile(t, harbour()...)
	rapid.Check(t, func(t *rapid.T) {
		rec := &log{}
		size := harbourSize
		size.Recorder = rec
		w, err := rules.NewWorld(size)
		require.NoError(t, err)
		steps := rapid.IntRange(0, 30).Draw(t, "steps")
		silent := w.Clone()
		walk(t, w, steps)
		for i, r := range rec.records {
			require.EqualValues(t, i+1, r.Seq)
			require.Less(t, r.Parent, r.Seq)
			if r.Kind == machine.Settled {
				issue := rec.records[r.Parent-1]
				require.Equal(t, machine.Issued, issue.Kind)
				require.Equal(t, issue.Ref, r.Ref)
			}
		}
		require.EqualValues(t, len(rec.records), w.Seq())
		// The records are enough to do it all again.
		for _, r := range rec.records {
			switch {
			case r.Kind == machine.Settled:
				silent.Settle(r.Ref, r.Result)
			case r.Kind == machine.Dropped:
				silent.Drop(r.Ref)
			case r.Kind == machine.Reserved:
				silent.ReserveIdentity(rules.Sorts()[r.Event], r.Args[0])
			case r.Via == machine.ViaHost:
				silent.Issue(r.Ref, r.Event, r.Args[:r.NArgs]...)
			case r.Via == machine.ViaQueue:
				require.NotNil(t, silent.Next(r.Root))
			}
			require.LessOrEqual(t, r.Seq, silent.Seq())
		}
		require.Equal(t, w.Words(), silent.Words())
	})
}

func TestCanForetells(t *testing.T) {
	rules := compile(t, harbour()...)
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w, err := rules.NewWorld(harbourSize)
		require.NoError(t, err)
		walk(t, w, rapid.IntRange(0, 20).Draw(t, "steps"))
		for m := range rules.NumMachines() {
			id := machine.MachineID(m)
			for s := range w.Capacity(id) {
				for e := range rules.At(id).NumEvents() {
					ev := machine.EventID(e)
					var args []uint64
					for _, ty := range rules.At(id).EventArgs(ev) {
						args = append(args, anyValue(t, w, ty))
					}
					before := w.Words()
					can := w.Can(w.Ref(id, s), ev, args...)
					require.Equal(t, before, w.Words(), "looking changes nothing")
					did := w.Clone().Issue(w.Ref(id, s), ev, args...).Status
					require.Equal(t, did == machine.Accepted || did == machine.InFlight, can)
					if can {
						yes++
					} else {
						no++
					}
				}
			}
		}
	})
	assert.Positive(t, yes)
	assert.Positive(t, no)
}

func TestIdentityOnRecord(t *testing.T) {
	rec := &log{}
	d := &machine.Definition{
		Name: "m", States: states("on", "off"), Identity: []string{"e"}, Facts: named("n:bool", "e:id epoch"),
		Events: []machine.Event{event("arm", "e:id epoch"), event("clear")},
		Rows: []machine.Row{
			{ID: "arm", From: "on", Event: "arm", Before: "e = arg.e", Command: "Arm()", Then: to("off")},
			{ID: "clear", From: "off", Event: "clear", Then: []machine.Target{{To: "on", Do: "e = none"}}},
		},
	}
	l := newLane(t, machine.Config{Recorder: rec}, d)
	l.takes(l.ref("m", 0), "arm", 6)
	l.Settle(l.ref("m", 0), machine.Result{})
	l.takes(l.ref("m", 0), "clear")
	var got []uint64
	for _, r := range rec.records {
		assert.EqualValues(t, 1, r.NIdentity)
		got = append(got, r.Identity[0])
	}
	assert.Equal(t, []uint64{6, 6, 0}, got, "an issue bears the identity that its command is for")
}

// A step's account and records cost nothing once warm.
func TestWorldAllocations(t *testing.T) {
	l := newLane(t, machine.Config{}, convoy([]string{"a.mint()", "b.mint()"}, []string{"self.back(0)"})...)
	leader := l.ref("leader", 0)
	run, move := l.m("leader").MustEvent("run"), l.m("leader").MustEvent("move")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if l.Issue(leader, run).Status != machine.InFlight || l.Settle(leader, machine.Result{}).Status != machine.Accepted || l.Next(leader).Status != machine.Accepted {
			panic("not taken")
		}
		l.Can(leader, move)
	}))

	// Nor does a view over other instances.
	views := []*machine.Definition{
		{
			Name: "v", States: states("on"), Events: []machine.Event{event("look")}, Facts: named("r:ref p"),
			Views: []machine.View{{Name: "n", Expr: "count(p, up)"}, {Name: "a", Expr: "any(p, !up)"}, {Name: "f", Expr: "first(p, !up)"}},
			Rows: []machine.Row{
				{ID: "look", From: "on", Event: "look", Guard: "view.n == 0 && view.a", Then: do("r = view.f")},
				{ID: "look-else", From: "on", Event: "look", Guard: "else", Then: do("")},
			},
		},
		{
			Name: "p", Pool: "ps", States: states("on"), Events: []machine.Event{event("up")}, Facts: named("up:bool"),
			Rows: []machine.Row{{ID: "up", From: "on", Event: "up", Then: do("up = true")}},
		},
	}
	v := newLane(t, machine.Config{Pools: map[string]int{"ps": 5}}, views...)
	look := v.m("v").MustEvent("look")
	v.takes(v.ref("v", 0), "look")
	assert.Equal(t, v.ref("p", 0).Pack(), v.fact(v.ref("v", 0), "r"))
	viewer := v.ref("v", 0)
	assert.Zero(t, testing.AllocsPerRun(100, func() { v.Issue(viewer, look) }))
}

func TestUnwindAfterAPanicInAJointStep(t *testing.T) {
	boom := true
	ds := convoy([]string{"a.note()", "a.mint()", "b.move()"}, nil)
	ds[2].Rows[0].DoFunc = func(machine.Facts) {
		if boom {
			panic("in b")
		}
	}
	rec := &log{}
	l := newLane(t, machine.Config{Recorder: rec}, ds...)
	leader := l.ref("leader", 0)
	before := l.Words()
	for _, step := range []func(){
		func() { l.Issue(leader, l.m("leader").MustEvent("move")) },
		func() { l.Can(leader, l.m("leader").MustEvent("run")) },
		func() { l.Issue(leader, l.m("leader").MustEvent("run")) },
	} {
		assert.PanicsWithValue(t, "in b", step)
		require.Equal(t, before, l.Words())
		assert.Zero(t, l.Seq())
		assert.Empty(t, rec.records)
	}
	boom = false
	l.takes(leader, "run")
	boom = true
	flying := l.Words()
	assert.PanicsWithValue(t, "in b", func() { l.Settle(leader, machine.Result{}) })
	require.Equal(t, flying, l.Words(), "the command is still in flight")
	boom = false
	require.Equal(t, machine.Accepted, l.Settle(leader, machine.Result{}).Status)
	for i, r := range rec.records {
		assert.EqualValues(t, i+1, r.Seq)
	}
}
