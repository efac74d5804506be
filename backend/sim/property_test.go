package sim_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

func genConfig() *rapid.Generator[sim.Config] {
	return rapid.Custom(func(t *rapid.T) sim.Config {
		return sim.Config{
			Kernels:    toyKernels(),
			Unrecorded: rapid.SampledFrom([]sim.Unrecorded{sim.PassesAtOnce, sim.Hangs}).Draw(t, "unrecorded"),
			CopyTime:   1000,
			QueryTime:  rapid.SampledFrom([]sim.Config{{}, {QueryTime: 700}}).Draw(t, "query").QueryTime,
			NoticeTime: 2500,
			NoticeRing: 2,
			NoProofs:   rapid.Bool().Draw(t, "noproofs"),
		}
	})
}

func device(t require.TestingT, cfg sim.Config) *sim.Device {
	d, err := sim.New(cfg)
	require.NoError(t, err)
	return d
}

// state is everything of a device that can be compared, time included.
func state(d *sim.Device, n sim.Naming) string {
	return fmt.Sprintf("%v %x %v", d.Now(), d.AppendCanonical(nil, n), d.Violations())
}

// The default policy without choice lists and the same policy over choice lists
// are one device.
func TestTheTwoTimedPathsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := genConfig().Draw(t, "config")
		a, b := device(t, cfg), device(t, cfg)
		b.SetPolicy(sim.Timed{})
		var ta, tb []string
		a.Trace(func(e sim.TraceEvent) { ta = append(ta, e.String()) })
		b.Trace(func(e sim.TraceEvent) { tb = append(tb, e.String()) })
		wa, wb := makeToys(a, nil, nil, nil), makeToys(b, nil, nil, nil)
		for i := range rapid.IntRange(0, 2).Draw(t, "faults") {
			f := genFault().Draw(t, fmt.Sprint("fault ", i))
			require.NoError(t, a.Inject(f))
			require.NoError(t, b.Inject(f))
		}
		for _, s := range rapid.SliceOfN(genStep(), 1, 40).Draw(t, "program") {
			ra, pa := guarded(a, wa.op(s))
			rb, pb := guarded(b, wb.op(s))
			if d := cmp.Diff(ra, rb); d != "" {
				t.Fatalf("%v answers differently (-direct +choices):\n%s", s.kind, d)
			}
			require.Equal(t, pa, pb)
			wa.took(s, ra)
			wb.took(s, rb)
			require.Equal(t, state(a, sim.Naming{}), state(b, sim.Naming{}), "after %v", s.kind)
			require.Equal(t, ta, tb)
		}
	})
}

// guarded is call, with an injected panic as its second result.
func guarded(b backend.Backend, op sim.Op) (a sim.Answer, p *sim.Panic) {
	defer func() {
		if r := recover(); r != nil {
			p = r.(*sim.Panic)
		}
	}()
	return call(b, op), nil
}

func genFault() *rapid.Generator[sim.Fault] {
	return rapid.Custom(func(t *rapid.T) sim.Fault {
		ops := []sim.OpKind{
			sim.OpSubmitAICore, sim.OpSubmitAICPU, sim.OpRecordEvent, sim.OpStreamWaitEvent, sim.OpCopyAsync,
			sim.OpQueryEvent, sim.OpWaitEvent, sim.OpSynchronizeStream, sim.OpReset, sim.OpAlloc,
		}
		f := sim.Fault{
			Op:   rapid.SampledFrom(ops).Draw(t, "op"),
			Nth:  rapid.Uint32Range(0, 2).Draw(t, "nth"),
			Code: rapid.SampledFrom([]backend.Code{0, 507899}).Draw(t, "code"),
		}
		var kinds []sim.FaultKind
		for k := sim.Refuse; k <= sim.Unconfirmed; k++ {
			f.Kind = k
			if _, err := sim.ParseFault(f.String()); err == nil {
				kinds = append(kinds, k)
			}
		}
		if f.Kind = rapid.SampledFrom(kinds).Draw(t, "fault"); f.Kind == sim.NoticeLate {
			f.Delay = 9000
		}
		return f
	})
}

// Handles created in another order are the same world under the names that go
// with them.
func TestCanonicalBytesDoNotDependOnCreationOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := genConfig().Draw(t, "config")
		cfg.Residue = rapid.Bool().Draw(t, "residue")
		cfg.Budget, cfg.Faults = 2, sim.Faults(sim.FailAfter, sim.KernelFatal, sim.NoticeLost, sim.KernelHang)
		a, b := device(t, cfg), device(t, cfg)
		wa := makeToys(a, nil, nil, nil)
		wb := makeToys(b,
			rapid.Permutation([]int{0, 1, 2}).Draw(t, "streams"),
			rapid.Permutation([]int{0, 1, 2}).Draw(t, "events"),
			rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "mems"))
		same := func(what any) {
			x, y := a.AppendCanonical(nil, wa.naming()), b.AppendCanonical(nil, wb.naming())
			if !bytes.Equal(x, y) {
				t.Fatalf("after %v:\n%x\n%x", what, x, y)
			}
		}
		same("creation")
		pending := map[sim.Ticket]step{} // tickets are the same in both
		twins := map[uint64]uint64{}
		for i, s := range wa.streams {
			twins[uint64(s)] = uint64(wb.streams[i])
		}
		translate := func(c sim.Choice) sim.Choice {
			if s, ok := twins[c.Target]; ok {
				c.Target = s
			}
			return c
		}
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			choices := a.Choices(nil)
			if len(choices) == 0 || rapid.IntRange(0, 2).Draw(t, "begin") == 0 {
				s := genStep().Draw(t, "step")
				if s.kind == sim.OpCreateStream && alive(a, wa.streams[s.stream]) {
					continue // streams without a name are told apart by slot
				}
				pending[a.Begin(wa.op(s))] = s
				b.Begin(wb.op(s))
				same(s.kind)
				continue
			}
			c := rapid.SampledFrom(choices).Draw(t, "choice")
			require.NoError(t, a.Apply(c))
			require.NoError(t, b.Apply(translate(c)))
			if s, ok := pending[sim.Ticket(c.Target)]; ok {
				if x, ended := a.Take(sim.Ticket(c.Target)); ended {
					y, _ := b.Take(sim.Ticket(c.Target))
					require.Equal(t, x.Result, y.Result)
					wa.took(s, x)
					wb.took(s, y)
					if s.kind == sim.OpCreateStream && x.Ok() {
						twins[x.Handle] = y.Handle
					}
				}
			}
			same(c)
		}
	})
}

// alive reports whether a stream's handle names something.
func alive(d *sim.Device, s backend.Stream) bool {
	return call(d.Clone(), sim.Op{Kind: sim.OpStreamID, Stream: s}).Ok()
}

// A clone and its original go separate ways, and the same way if driven alike.
func TestCloneIsIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := genConfig().Draw(t, "config")
		cfg.Budget, cfg.Faults = 3, ^sim.FaultSet(0)
		d := device(t, cfg)
		w := makeToys(d, nil, nil, nil)
		wander(t, d, &w, "before")
		before := state(d, w.naming())
		c := d.Clone()
		require.Equal(t, before, state(c, w.naming()))
		var kept sim.Device
		d.CloneInto(&kept)
		d.CloneInto(&kept) // into used memory, too
		w2 := toys{append([]backend.Stream(nil), w.streams...), append([]backend.Event(nil), w.events...), append([]backend.Memory(nil), w.mems...), w.kernels}
		trail := wander(t, c, &w2, "after")
		require.Equal(t, before, state(d, w.naming()), "driving a clone moved the original")
		for _, x := range trail {
			if x.choice.Kind == 0 {
				kept.Begin(x.op)
			} else {
				require.NoError(t, kept.Apply(x.choice))
			}
		}
		require.Equal(t, state(c, w2.naming()), state(&kept, w2.naming()))
	})
}

type trailStep struct {
	op     sim.Op
	ticket sim.Ticket
	choice sim.Choice
}

// wander drives a device at random: calls are begun, choices applied.
func wander(t *rapid.T, d *sim.Device, w *toys, label string) (trail []trailStep) {
	for range rapid.IntRange(0, 40).Draw(t, label) {
		choices := d.Choices(nil)
		if len(choices) == 0 || rapid.IntRange(0, 2).Draw(t, "begin") == 0 {
			op := w.op(genStep().Draw(t, "step"))
			trail = append(trail, trailStep{op: op, ticket: d.Begin(op)})
			continue
		}
		c := rapid.SampledFrom(choices).Draw(t, "choice")
		require.NoError(t, d.Apply(c))
		trail = append(trail, trailStep{choice: c})
	}
	return trail
}

// A seed decides everything: the choices, their text, and where they lead; and
// the recorded choices lead there again.
func TestASeedDecidesEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := genConfig().Draw(t, "config")
		cfg.Budget, cfg.Faults = 2, sim.Faults(sim.FailAfter, sim.FailBefore, sim.Refuse, sim.KernelFatal, sim.NoticeLost)
		seed := rapid.Uint64().Draw(t, "seed")
		program := rapid.SliceOfN(genStep(), 1, 30).Draw(t, "program")
		run := func(p sim.Policy) (string, []sim.Choice) {
			d := device(t, cfg)
			w := makeToys(d, nil, nil, nil)
			rec := &sim.Recording{Policy: p}
			d.SetPolicy(rec)
			for _, s := range program {
				w.took(s, call(d, w.op(s)))
			}
			return state(d, w.naming()), rec.Choices
		}
		s1, c1 := run(sim.NewRandom(seed, 5))
		s2, c2 := run(sim.NewRandom(seed, 5))
		require.Equal(t, c1, c2)
		require.Equal(t, s1, s2)

		parsed := make([]sim.Choice, len(c1))
		for i, c := range c1 {
			var err error
			parsed[i], err = sim.ParseChoice(c.String())
			require.NoError(t, err)
		}
		replay := sim.NewRecorded(parsed)
		s3, c3 := run(replay)
		require.NoError(t, replay.Err())
		require.Zero(t, replay.Left())
		require.Equal(t, c1, c3)
		require.Equal(t, s1, s3)
	})
}
