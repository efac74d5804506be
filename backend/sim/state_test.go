package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// mixed is a configuration with something of everything.
func mixed(t *rapid.T) sim.Config {
	cfg := genConfig().Draw(t, "config")
	cfg.Residue = rapid.Bool().Draw(t, "residue")
	cfg.Budget, cfg.Faults = 3, ^sim.FaultSet(0)
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		cfg.Plan = append(cfg.Plan, genFault().Filter(afterSetUp).Draw(t, "fault"))
	}
	return cfg
}

// afterSetUp: a population is made without faults.
func afterSetUp(f sim.Fault) bool { return f.Op != sim.OpAlloc }

// A state that was written and read back is the device: the same bytes, and the
// same future; whatever it was read into.
func TestAStateIsTheWholeDevice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := mixed(t)
		d := device(t, cfg)
		w := makeToys(d, nil, nil, nil)
		wander(t, d, &w, "before")
		const before = "before"
		written := d.AppendState([]byte(before))
		require.Equal(t, before, string(written[:len(before)]))
		written = written[len(before):]

		fresh, used := device(t, cfg), device(t, cfg)
		other := makeToys(used, nil, nil, nil)
		wander(t, used, &other, "other")
		twins := []*sim.Device{fresh, used}
		for _, x := range twins {
			require.NoError(t, x.SetState(written))
		}
		same := func() {
			for _, x := range twins {
				require.Equal(t, state(d, w.naming()), state(x, w.naming()))
				require.Equal(t, d.AppendState(nil), x.AppendState(nil))
				require.Equal(t, d.Plain(), x.Plain())
				require.Equal(t, d.Choices(nil), x.Choices(nil))
			}
		}
		same()
		for _, s := range wander(t, d, &w, "after") {
			for _, x := range twins {
				if s.choice.Kind == 0 {
					require.Equal(t, s.ticket, x.Begin(s.op))
					continue
				}
				require.NoError(t, x.Apply(s.choice))
			}
		}
		same()
		for _, k := range d.Tickets() {
			a, ok := d.Take(k)
			for _, x := range twins {
				b, ended := x.Take(k)
				require.Equal(t, ok, ended)
				require.Equal(t, a, b)
			}
		}
		same()
		for _, x := range append(twins, d) { // and under the clock
			x.Advance(time.Second)
		}
		same()
	})
}

func TestASetDeviceKeepsItsPolicyAndHook(t *testing.T) {
	d := device(t, sim.Config{})
	var seen []sim.TraceEvent
	d.Trace(func(e sim.TraceEvent) { seen = append(seen, e) })
	p := &sim.Recording{Policy: sim.Timed{}}
	d.SetPolicy(p)
	require.NoError(t, d.SetState(device(t, sim.Config{}).AppendState(nil)))
	d.CreateStream(context.Background())
	require.NotEmpty(t, seen)
	require.NotEmpty(t, p.Choices)
}

func TestAStateOfAnotherConfigurationIsRefused(t *testing.T) {
	d := device(t, sim.Config{Kernels: toyKernels()})
	written := d.AppendState(nil)
	for name, cfg := range map[string]sim.Config{
		"another time":  {Kernels: toyKernels(), CopyTime: 1},
		"fewer kernels": {Kernels: toyKernels()[1:]},
		"another fault": {Kernels: toyKernels(), Plan: []sim.Fault{{Op: sim.OpReset, Kind: sim.Refuse}}},
	} {
		require.ErrorIs(t, device(t, cfg).SetState(written), sim.ErrOtherConfig, name)
	}
	require.NoError(t, device(t, sim.Config{Kernels: toyKernels()}).SetState(written))
	d.Define(sim.KernelSpec{})
	require.ErrorIs(t, d.SetState(written), sim.ErrOtherConfig, "defined since")
	later := d.AppendState(nil)
	require.NoError(t, d.Inject(sim.Fault{Op: sim.OpReset, Kind: sim.Refuse}))
	require.ErrorIs(t, d.SetState(later), sim.ErrOtherConfig, "injected since")
}

// loaded is a device with something of everything.
func loaded(t testing.TB) *sim.Device {
	ctx := context.Background()
	cfg := sim.Config{
		Kernels: toyKernels(), CopyTime: 1000, NoticeTime: 2500, Budget: 2, Faults: ^sim.FaultSet(0), Unrecorded: sim.Hangs,
		Plan: []sim.Fault{{Op: sim.OpSubmitAICPU, Nth: 2, Kind: sim.NoticeLate, Delay: 9000}, {Op: sim.OpFree, Kind: sim.FailAfter}},
	}
	d := device(t, cfg)
	w := makeToys(d, nil, nil, nil)
	d.Submit(ctx, w.streams[0], backend.Launch{Class: backend.AICPU, Kernel: 4, Args: w.mems[0]})
	d.Submit(ctx, w.streams[1], backend.Launch{Class: backend.AICPU, Kernel: 4, Args: w.mems[1]})
	d.Advance(5 * time.Microsecond) // one notice has come, the other has not
	d.Submit(ctx, w.streams[0], backend.Launch{Class: backend.AICore, Kernel: 1, Args: w.mems[0], Blocks: 1})
	d.RecordEvent(ctx, w.events[0], w.streams[0])
	d.StreamWaitEvent(ctx, w.streams[1], w.events[0])
	d.StreamWaitEvent(ctx, w.streams[2], w.events[0])
	d.Submit(ctx, w.streams[2], backend.Launch{Class: backend.AICPU, Kernel: 3, Args: w.mems[0]})
	d.Advance(3 * time.Microsecond)
	for range 2 {
		d.CopyAsync(ctx, backend.Span{Mem: w.mems[1], Size: 4}, backend.Span{Mem: w.mems[2], Offset: 1, Size: 4}, w.streams[1])
	}
	d.RecordEvent(ctx, w.events[1], w.streams[1])
	d.StreamWaitEvent(ctx, w.streams[0], w.events[2])
	d.RecordEvent(ctx, w.events[0], w.streams[0])
	d.StreamWaitEvent(ctx, w.streams[2], w.events[0])
	d.DestroyStream(ctx, w.streams[1])
	d.Write(ctx, w.mems[3], 2, []byte{0, 0, 7})
	d.Free(ctx, w.mems[2])
	d.Free(ctx, w.mems[3])
	d.SetThread(1)
	d.SetCurrent(d.NewContext(true))
	d.CreateEvent(ctx)
	d.SetThread(0)
	begin := func(op sim.Op, do ...sim.ChoiceKind) {
		k := d.Begin(op)
		for _, c := range do {
			require.NoError(t, d.Apply(sim.Choice{Kind: c, Target: uint64(k)}))
		}
	}
	begin(sim.Op{Kind: sim.OpWrite, Memory: w.mems[2], Offset: 3, Data: []byte("data")})
	begin(sim.Op{Kind: sim.OpWaitEvent, Event: w.events[2], Timeout: time.Second}, sim.ChooseEffect)
	begin(sim.Op{Kind: sim.OpWaitEvent, Event: w.events[0], Timeout: time.Second}, sim.ChooseEffect)
	begin(sim.Op{Kind: sim.OpSynchronizeStream, Stream: w.streams[0], Timeout: time.Second}, sim.ChooseEffect)
	begin(sim.Op{Kind: sim.OpAlloc, Size: 6, Place: backend.PinnedMemory}, sim.ChooseEffect, sim.ChooseReturn)
	begin(sim.Op{Kind: sim.OpFree, Memory: w.mems[0]}, sim.ChooseEffect)
	begin(sim.SubmitOp(w.streams[0], backend.Launch{Class: backend.AICPU, Kernel: 3, Blocks: 2}))
	begin(sim.Op{Kind: sim.OpCopy, Dst: backend.Span{Mem: w.mems[1], Size: 2}, Src: backend.Span{Mem: w.mems[0], Size: 2}})
	for _, c := range d.Choices(nil) {
		if c.Kind == sim.ChooseEntry { // one entry is free
			require.NoError(t, d.Apply(c))
			break
		}
	}
	return d
}

func TestSetStateAllocatesNothing(t *testing.T) {
	d := loaded(t)
	x := d.Clone()
	written := d.AppendState(nil)
	n := testing.AllocsPerRun(100, func() {
		written = d.AppendState(written[:0])
		if err := x.SetState(written); err != nil {
			t.Fatal(err)
		}
	})
	require.Zero(t, n)
}

// A state that is cut short or changed is refused at a byte, or is the state of
// some device; a refusal leaves a device that works.
func TestBrokenStates(t *testing.T) {
	d := loaded(t)
	good := d.AppendState(nil)
	x := d.Clone()
	initial := x.Clone()
	require.Error(t, initial.SetState(nil))
	for n := range len(good) {
		err := x.SetState(good[:n])
		var broken *sim.StateError
		require.ErrorAs(t, err, &broken, "cut at %d", n)
		require.LessOrEqual(t, broken.Offset, n)
		require.Equal(t, initial.AppendState(nil), x.AppendState(nil))
	}
	require.ErrorContains(t, x.SetState(append(good[:len(good):len(good)], 0)), "1 bytes too many")
	for n := 8; n < len(good); n++ {
		for _, v := range []byte{0, 1, 2, 3, 4, 5, 8, 0x10, 0x20, 0x40, 0x7f, 0xff} {
			b := append([]byte(nil), good...)
			b[n] = v
			exercise(t, x, b)
		}
	}
}

// exercise sets a state that may be broken. If it is taken, it is written and
// read alike, and the device goes on without a panic.
func exercise(t *testing.T, d *sim.Device, b []byte) {
	if err := d.SetState(b); err != nil {
		var broken *sim.StateError
		require.ErrorAs(t, err, &broken)
		b = d.AppendState(nil)
		require.NoError(t, d.SetState(b))
	}
	written := d.AppendState(nil)
	require.NoError(t, d.SetState(written))
	require.Equal(t, written, d.AppendState(nil))
	d.AppendCanonical(nil, sim.Naming{})
	d.Deadlock()
	for range 200 {
		choices := d.Choices(nil)
		if len(choices) == 0 {
			break
		}
		require.NoError(t, d.Apply(choices[len(written)%len(choices)]))
	}
	for _, k := range d.Tickets() {
		d.Take(k)
	}
	d.TakeNotices(make([]backend.Notice, 3))
	d.Advance(time.Second)
	ctx := context.Background()
	d.SetThread(0)
	d.SetCurrent(d.Home())
	for _, h := range d.Handles() {
		d.QueryStream(ctx, backend.Stream(h))
		d.QueryEvent(ctx, backend.Event(h))
		d.WaitEvent(ctx, backend.Event(h), 5)
		d.RecordEvent(ctx, backend.Event(h), backend.Stream(h))
		d.SynchronizeStream(ctx, backend.Stream(h), 5)
		d.Write(ctx, backend.Memory(h), 0, []byte{1})
		d.Free(ctx, backend.Memory(h))
	}
	d.Alloc(ctx, backend.DeviceMemory, 3)
	d.Advance(time.Second)
	d.Reset(ctx)
}

func FuzzState(f *testing.F) {
	d := loaded(f)
	good := d.AppendState(nil)
	f.Add(good[8:])
	idle := d.Clone()
	idle.SetState(nil)
	f.Add(idle.AppendState(nil)[8:])
	f.Fuzz(func(t *testing.T, b []byte) {
		exercise(t, d.Clone(), append(good[:8:8], b...))
	})
}

// The caller's buffer is its own again when Begin returns, and a clone's data
// is the clone's.
func TestBeginCopiesTheData(t *testing.T) {
	d := device(t, sim.Config{})
	w := makeToys(d, nil, nil, nil)
	buf := []byte("abc")
	write := func(m int, s string) sim.Ticket {
		return d.Begin(sim.Op{Kind: sim.OpWrite, Memory: w.mems[m], Data: buf[:copy(buf, s)]})
	}
	end := func(d *sim.Device, k sim.Ticket) {
		for _, c := range []sim.ChoiceKind{sim.ChooseEffect, sim.ChooseReturn} {
			require.NoError(t, d.Apply(sim.Choice{Kind: c, Target: uint64(k)}))
		}
		_, ok := d.Take(k)
		require.True(t, ok)
	}
	first, second, third := write(2, "one"), write(3, "to"), write(2, "end")
	copy(buf, "xyz")
	c := d.Clone()
	end(d, first)
	require.Equal(t, "one", string(d.Peek(w.mems[2])[:3]))
	fourth := write(2, "aft")
	end(d, second)
	require.Equal(t, "to", string(d.Peek(w.mems[3])[:2]))
	end(d, third)
	require.Equal(t, "end", string(d.Peek(w.mems[2])[:3]))
	end(d, fourth)
	require.Equal(t, "aft", string(d.Peek(w.mems[2])[:3]))
	end(c, second)
	end(c, first)
	require.Equal(t, "one", string(c.Peek(w.mems[2])[:3]))
	require.Equal(t, "to", string(c.Peek(w.mems[3])[:2]))
	op := sim.Op{Kind: sim.OpWrite, Memory: w.mems[2], Data: buf}
	require.Zero(t, testing.AllocsPerRun(100, func() { end(d, d.Begin(op)) }))
}
