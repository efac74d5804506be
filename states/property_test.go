package states

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// script is what a host does to a lane, and with which luck.
type script struct {
	Seed   uint64 // of the device's choices
	Rare   int    // one choice in so many is a fault or an expiry, where there is one
	Faults uint8  // at most so many
	Calm   bool   // no fault strikes while the lane is opened
	Slots  int
	Depth  int
	// Borrowed: the context is a caller's.
	Borrowed bool
	Moves    []move
}

// move is one thing that the host does. A and B choose what it is done to.
type move struct {
	Do   string
	A, B int
}

var moves = []string{
	"onward", "onward", "onward", "onward", "onward", "onward", "onward", "onward",
	"prepare", "launch", "poll", "wait", "finalize",
	"reserve", "reserve", "queue", "queue", "commit", "revoke", "release", "release", "release-other", "quiesce", "discard", "move",
	"submit", "submit", "submit", "advance", "recover", "hear",
	"wrong-context", "foreign", "quarantine", "detach", "close", "open",
}

func scripts() *rapid.Generator[script] {
	return rapid.Custom(func(t *rapid.T) script {
		return script{
			Seed:   rapid.Uint64().Draw(t, "seed"),
			Rare:   rapid.IntRange(2, 40).Draw(t, "rare"),
			Faults: rapid.Uint8Range(0, 4).Draw(t, "faults"),
			Calm:   rapid.IntRange(0, 3).Draw(t, "calm") > 0,
			Slots:  rapid.IntRange(1, 3).Draw(t, "slots"),
			Depth:  rapid.IntRange(1, 3).Draw(t, "depth"),

			Borrowed: rapid.Bool().Draw(t, "borrowed"),
			Moves: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
				return move{rapid.SampledFrom(moves).Draw(t, "do"), rapid.IntRange(0, 4).Draw(t, "a"), rapid.IntRange(0, 4).Draw(t, "b")}
			}), 20, 80).Draw(t, "moves"),
		}
	})
}

// tester is what both testing.T and rapid.T are.
type tester interface {
	require.TestingT
	Helper()
}

// host plays a script, and knows of each run and token what a host can know,
// and of the device what no host can.
type host struct {
	tester
	dev     *sim.Device
	lane    *Lane
	log     *bytes.Buffer
	writer  *translog.Writer
	process int

	runs     []*Run
	receipts map[*Run]Receipt
	// ordered runs were submitted with a caller's stream.
	ordered map[*Run]bool
	caller  backend.Stream
	reset   bool // the host tried to reset the device
	tokens  []*heldToken
	// kernels on the device, and whether one ended badly, by stream.
	kernels map[backend.Stream]int
	fatal   map[backend.Stream]bool
	// doubtful handles: destroying them failed, and may have been done.
	doubtful map[uint64]bool
	asked    uint64 // the handle that is being destroyed
}

// heldToken is a token, with what the host knows of its wait.
type heldToken struct {
	*WaitRef
	holder, waiter int
	queued, proven bool
}

func newHost(t tester, s script) *host {
	h := &host{
		tester: t, process: 1, log: &bytes.Buffer{}, receipts: map[*Run]Receipt{}, ordered: map[*Run]bool{},
		kernels: map[backend.Stream]int{}, fatal: map[backend.Stream]bool{}, doubtful: map[uint64]bool{},
	}
	var err error
	h.dev, err = sim.New(sim.Config{
		Kernels: kernels(), Budget: s.Faults, Borrowed: s.Borrowed,
		Faults: sim.Faults(sim.Refuse, sim.FailBefore, sim.FailAfter, sim.FailAccepted, sim.PanicBefore, sim.PanicAfter, sim.KernelFatal, sim.KernelHang),
	})
	require.NoError(t, err)
	var r backend.Result
	h.caller, r = h.dev.CreateStream(ctx)
	require.True(t, r.Ok())
	if !s.Calm {
		h.dev.SetPolicy(sim.NewRandom(s.Seed, s.Rare))
	}
	h.writer, err = translog.NewWriter(h.log, Rules(), translog.Options{Format: translog.Binary})
	require.NoError(t, err)
	c := Config{
		Backend: h.dev, Slots: s.Slots, Incarnation: 1, Depth: min(s.Depth, s.Slots), Timeout: time.Second,
		Process: func() int { return h.process },
		Clock:   func() int64 { return int64(h.dev.Now()) },
	}
	if s.Borrowed {
		c.Borrowed, c.Generation = true, 99
	}
	c.Recorder = h.writer.World("lane", c.Pools(), 0)
	h.lane, err = NewLane(c)
	require.NoError(t, err)
	h.dev.Trace(h.watch)
	return h
}

// watch sees what the device does. A fence that stands for a run loses no
// handle, and a run that is not over loses no memory.
func (h *host) watch(e sim.TraceEvent) {
	switch e.Kind {
	case sim.TraceQueued:
		if e.Entry == sim.EntryKernel {
			h.kernels[e.Stream]++
		}
	case sim.TraceDone:
		if e.Entry == sim.EntryKernel {
			h.kernels[e.Stream]--
			h.fatal[e.Stream] = h.fatal[e.Stream] || e.Code != backend.Success
		}
	case sim.TraceDropped:
		if e.Entry == sim.EntryKernel {
			h.kernels[e.Stream]--
		}
	case sim.TraceReturn:
		if h.asked != 0 && e.Outcome != machine.OK {
			h.doubtful[h.asked] = true
		}
		h.asked = 0
	case sim.TraceCall:
		switch e.Op {
		case sim.OpDestroyEvent:
			h.asked = uint64(e.Event)
		case sim.OpDestroyStream:
			h.asked = uint64(e.Stream)
		case sim.OpFree:
			h.asked = uint64(e.Memory)
		}
		for slot := range h.lane.dev.slots {
			s := &h.lane.dev.slots[slot]
			switch e.Op {
			case sim.OpDestroyEvent:
				if e.Event == s.coreDone || e.Event == s.cpuDone {
					require.NotEqual(h, "armed", h.state("fence", slot), "an event is destroyed under its run")
				}
			case sim.OpDestroyStream:
				if e.Stream == s.core || e.Stream == s.cpu {
					require.NotEqual(h, "armed", h.state("fence", slot), "a stream is destroyed under its run")
				}
			case sim.OpFree:
				if e.Memory == s.args || e.Memory == s.pinned {
					require.NotEqual(h, "armed", h.state("fence", slot), "memory is freed under its run")
				}
			case sim.OpReset:
				require.True(h, h.reset, "nobody asked for a reset")
				require.False(h, h.lane.config.Borrowed, "a borrowed device is reset")
			}
		}
	}
}

func (h *host) ref(m string, slot int) machine.Ref {
	return h.lane.d.Ref(h.lane.config.Rules.Machine(m).ID(), slot)
}

func (h *host) state(m string, slot int) string {
	var s string
	r := h.ref(m, slot)
	h.lane.d.View(func(w *machine.World) { s = w.StateName(r) })
	return s
}

func (h *host) fact(m string, slot int, name string) uint64 {
	x := h.lane.config.Rules.Machine(m)
	v, _ := h.lane.d.Fact(h.ref(m, slot), x.MustFact(name))
	return v
}

func (h *host) enum(m string, slot int, name string) string {
	x := h.lane.config.Rules.Machine(m)
	return x.FactType(x.MustFact(name)).Format(h.fact(m, slot, name))
}

func (h *host) bytes() string { return (&fixture{lane: h.lane}).bytes() }

// run picks a handle, the latest for 0. There may be none.
func (h *host) run(i int) *Run {
	if len(h.runs) == 0 {
		return nil
	}
	return h.runs[len(h.runs)-1-i%len(h.runs)]
}

func (h *host) token(i int) *heldToken {
	if len(h.tokens) == 0 {
		return nil
	}
	return h.tokens[len(h.tokens)-1-i%len(h.tokens)]
}

// current reports whether the handle's run still has its slot.
func (h *host) current(r *Run) bool {
	var ok bool
	h.lane.d.View(func(w *machine.World) { _, _, ok = w.State(r.ref) })
	return ok
}

// outstanding counts the kernels that the device still has of a slot's run.
func (h *host) outstanding(slot int) int {
	s := &h.lane.dev.slots[slot]
	return h.kernels[s.core] + h.kernels[s.cpu]
}

// operate does one operation on a run.
func (h *host) operate(do string, r *Run) error {
	var err error
	switch do {
	case "launch":
		var rc Receipt
		s := &h.lane.dev.slots[r.id.Slot]
		was := h.state("run", r.id.Slot)
		if was == "prepared" && h.current(r) {
			h.fatal[s.core], h.fatal[s.cpu] = false, false
		}
		if rc, err = r.Launch(ctx); err == nil {
			require.Equal(h, "prepared", was)
			require.Equal(h, r.id, rc.Identity)
			h.receipts[r] = rc
			require.Equal(h, "launched", h.state("run", r.id.Slot))
		} else {
			require.Zero(h, rc)
		}
	case "poll":
		var s backend.Status
		if s, err = r.Poll(ctx); err != nil {
			require.Equal(h, backend.NotReady, s)
		} else if s == backend.Complete {
			require.Zero(h, h.outstanding(r.id.Slot), "complete, says the poll, and a kernel is not over")
		}
	case "wait":
		undecided := h.enum("run", r.id.Slot, "verdict") == "undecided"
		err = r.Wait(ctx)
		s := &h.lane.dev.slots[r.id.Slot]
		if err == nil || errors.Is(err, ErrPartial) || errors.Is(err, ErrRunFailed) || errors.Is(err, ErrReset) {
			require.Zero(h, h.outstanding(r.id.Slot), "proven over, and a kernel is not")
		}
		if err == nil && undecided {
			require.False(h, h.fatal[s.core] || h.fatal[s.cpu], "a kernel ended badly, and the run succeeded")
		}
		if undecided && (err == nil || errors.Is(err, ErrPartial)) {
			// The synchronised pair is the proof of what it holds.
			for _, t := range h.tokens {
				t.proven = t.proven || t.queued && t.holder == r.id.Slot && t.waiter != int(CallerStream)
			}
		}
	case "finalize":
		was := h.state("run", r.id.Slot)
		if err = r.Finalize(ctx); err == nil {
			require.Contains(h, []string{"prepared", "not started", "drained", "retired"}, was)
			require.Zero(h, h.outstanding(r.id.Slot))
		}
	}
	return err
}

// onRun does an operation on a run, and holds it to what its error says.
func (h *host) onRun(do string, r *Run) {
	stale := !h.current(r)
	before := h.bytes()
	err := h.operate(do, r)
	if detached := h.state("environment", 0) == "detached"; stale || detached {
		want := error(ErrStaleIdentity)
		if detached {
			want = ErrDetached
		}
		require.ErrorIs(h, err, want)
		require.Equal(h, before, h.bytes(), "a handle of nothing changed something")
	}
	h.untouched(before, err)
}

// untouched holds an error to its word: what is refused, and what a wrong
// context stopped, changed nothing.
func (h *host) untouched(before string, err error) {
	h.Helper()
	var failure *machine.FailureError
	var hole *machine.HoleError
	require.False(h, errors.As(err, &hole), "a hole in the rules: %v", err)
	if errors.Is(err, machine.ErrRefused) && !errors.As(err, &failure) || errors.Is(err, ErrExecutionContextRefused) && !errors.Is(err, ErrCloseRejected) {
		require.Equal(h, before, h.bytes(), "refused, and yet: %v", err)
	}
}

func (h *host) move(m move) {
	r, t := h.run(m.A), h.token(m.A)
	before := h.bytes()
	var err error
	do := m.Do
	if do == "onward" {
		do, r = h.onward(m)
	}
	switch do {
	case "prepare":
		var made *Run
		w := work
		if m.B > 0 {
			w.Args = bytes.Repeat([]byte{byte(m.B)}, m.B)
		}
		if made, err = h.lane.Prepare(ctx, w); err == nil {
			require.NotContains(h, h.identities(), made.id, "an identity came again")
			h.runs = append(h.runs, made)
		}
	case "launch", "poll", "wait", "finalize":
		if r != nil {
			h.onRun(do, r)
		}
		return
	case "submit":
		var made *Run
		w := work
		if m.B > 0 {
			w.Caller, w.Async = h.caller, m.B > 2
		}
		if made, err = h.lane.Submit(ctx, w); made != nil {
			require.NotContains(h, h.identities(), made.id, "an identity came again")
			h.runs = append(h.runs, made)
			h.ordered[made] = w.Caller != 0
			if err == nil && w.Caller != 0 {
				require.Equal(h, "launched", h.state("run", made.id.Slot), "a return means enqueued")
			}
		}
	case "advance":
		if r == nil {
			return
		}
		stale := !h.current(r)
		if err = r.Advance(ctx); stale {
			require.Error(h, err)
			require.Equal(h, before, h.bytes(), "a stale handle enqueued something")
		}
		h.ordered[r] = h.ordered[r] || err == nil || !stale
	case "recover":
		h.reset = true
		if err = h.lane.Recover(ctx); err == nil {
			for slot := range h.lane.dev.slots {
				require.Zero(h, h.outstanding(slot), "recovered, and a kernel is not over")
				require.NotContains(h, []string{"launched", "partial"}, h.state("run", slot))
			}
		}
	case "hear":
		err = h.lane.Hear(ctx)
	case "reserve":
		if r == nil {
			return
		}
		by := h.run(m.B)
		waiter := m.A % 3
		var made *WaitRef
		if made, err = h.lane.Reserve(ctx, h.receipts[r], Boundary(m.B%2), by, Waiter(waiter)); err == nil {
			h.tokens = append(h.tokens, &heldToken{WaitRef: made, holder: by.id.Slot, waiter: waiter})
		}
	case "queue", "commit", "revoke", "release", "release-other", "quiesce", "discard", "move":
		if t == nil {
			return
		}
		err = h.onToken(m, t)
	case "wrong-context":
		if r == nil || h.state("environment", 0) != "live" {
			return
		}
		h.dev.SetCurrent([]backend.Context{0, h.other()}[m.B%2])
		h.onRun([]string{"launch", "poll", "wait", "finalize"}[m.B%4], r)
		if t := h.token(m.A); t != nil {
			again := h.bytes()
			h.untouched(again, t.Queue(ctx))
			require.Equal(h, again, h.bytes(), "a token was queued under another context")
		}
		_, err = h.lane.Prepare(ctx, work)
		require.Error(h, err)
		h.dev.SetCurrent(h.dev.Home())
		require.Equal(h, before, h.bytes(), "another context changed something")
		return
	case "foreign":
		h.foreign(r, t)
		require.Equal(h, before, h.bytes())
		return
	case "quarantine":
		if m.B == 0 {
			err = h.lane.Quarantine(ctx)
		}
	case "detach":
		if m.B == 0 && m.A == 0 {
			h.lane.Detach()
		}
	case "close":
		err = h.lane.Close(ctx)
	case "open":
		err = h.lane.Open(ctx)
	}
	h.untouched(before, err)
}

// onward is what would bring one of the runs on, if all goes well.
func (h *host) onward(m move) (string, *Run) {
	var live []*Run
	for _, r := range h.runs {
		if h.current(r) {
			live = append(live, r)
		}
	}
	if len(live) == 0 || m.B == 0 && len(live) < int(h.fact("lane", 0, "depth")) {
		return "prepare", nil
	}
	r := live[m.A%len(live)]
	switch h.state("run", r.id.Slot) {
	case "prepared":
		return "launch", r
	case "launched", "partial":
		return []string{"poll", "wait"}[m.B%2], r
	}
	return "finalize", r
}

// onToken uses a token, truthfully: it is released only once its wait is
// proven to be over.
func (h *host) onToken(m move, t *heldToken) error {
	waiter := Waiter(t.waiter)
	switch m.Do {
	case "queue":
		err := t.Queue(ctx)
		t.queued = t.queued || err == nil || errors.Is(err, ErrWaitMaybeQueued)
		return err
	case "commit":
		return t.Commit(ctx)
	case "revoke":
		return t.Revoke(ctx)
	case "release":
		if !t.queued || t.proven {
			return t.Release(ctx, waiter)
		}
	case "release-other":
		err := t.Release(ctx, (waiter+1)%3)
		require.Error(h, err, "the proof was of another stream")
		return err
	case "quiesce":
		return t.ReleaseOnQuiescence(ctx)
	case "discard":
		err := t.Discard(ctx, m.B)
		require.True(h, err != nil || h.reset, "no arming ends under its references but by a reset")
		return err
	case "move":
		moved, err := t.Move()
		if err == nil {
			require.ErrorIs(h, t.Commit(ctx), ErrTokenEmpty)
			t.WaitRef = moved
		}
		return err
	}
	return nil
}

// other is a context that is not the lane's.
func (h *host) other() backend.Context { return h.dev.NewContext(true) }

// foreign tries everything from another process, while somebody has the lock.
func (h *host) foreign(r *Run, t *heldToken) {
	h.process = 2
	defer func() { h.process = 1 }()
	h.lane.d.View(func(*machine.World) {
		var errs []error
		note := func(_ any, err error) { errs = append(errs, err) }
		note(h.lane.Prepare(ctx, work))
		note(h.lane.Environment().State())
		note(h.lane.Mode().State())
		errs = append(errs, h.lane.Open(ctx), h.lane.Close(ctx), h.lane.Quarantine(ctx))
		if r != nil {
			note(r.Launch(ctx))
			note(r.Poll(ctx))
			note(r.State())
			errs = append(errs, r.Wait(ctx), r.Finalize(ctx))
		}
		if t != nil {
			errs = append(errs, t.Queue(ctx), t.Revoke(ctx), t.Discard(ctx, 0))
		}
		for _, err := range errs {
			require.ErrorIs(h, err, ErrForeignProcess)
		}
		h.lane.Detach()
	})
}

func (h *host) identities() []Identity {
	var all []Identity
	for _, r := range h.runs {
		all = append(all, r.id)
	}
	return all
}

// invariants holds the world together, after every move.
func (h *host) invariants() {
	for _, v := range h.dev.Violations() {
		// What may not have been destroyed is destroyed again, and that is all
		// that a host can do.
		again := v.Kind == sim.DoubleDestroy && (h.doubtful[uint64(v.Event)] || h.doubtful[uint64(v.Stream)] || h.doubtful[uint64(v.Memory)])
		require.True(h, again, "%v", v)
	}
	var queued int
	h.lane.d.View(func(w *machine.World) { queued = w.Queued() })
	require.Zero(h, queued, "an operation was left half-way")

	partial, ambiguous, live, vacant := uint64(0), false, uint64(0), -1
	for slot := range h.lane.dev.slots {
		run := h.state("run", slot)
		switch run {
		case "partial":
			partial++
		case "ambiguous":
			ambiguous = true
		case "idle":
			vacant = slot
		}
		if run != "idle" && run != "finalized" {
			live++
		}
		h.fence(slot, run)
	}
	require.Equal(h, live, h.fact("lane", 0, "runs"))
	require.Equal(h, partial, h.fact("lane", 0, "unproven"))
	if !h.reset {
		require.Equal(h, ambiguous, h.fact("lane", 0, "poisoned") == 1)
	}
	ambiguous = h.fact("lane", 0, "poisoned") == 1
	if vacant >= 0 {
		m := h.lane.at.prepare
		open := h.state("environment", 0) == "live" && h.state("lane", 0) == "open" && partial == 0 && !ambiguous && h.state("health", 0) == "trusted" && h.fact("lane", 0, "faulted") == 0
		require.Equal(h, open, h.lane.d.Can(h.ref("prepare", vacant), m.MustEvent("start"), 1, 1, 0, 0), "admission")
	}
	h.counts()
}

// fence compares a fence's facts with the run it stands for, and with the
// receipt that the host has.
func (h *host) fence(slot int, run string) {
	core, cpu := h.enum("fence", slot, "core"), h.enum("fence", slot, "cpu")
	armed := h.state("fence", slot) == "armed"
	if h.fact("run", slot, "reset") == 1 {
		require.False(h, armed, "a reset took the run and not its fence")
		return
	}
	onDevice := run == "launched" || run == "partial" || run == "drained"
	require.Equal(h, onDevice, armed, "run %s, fence %s", run, h.state("fence", slot))
	if !armed {
		require.Equal(h, [2]string{"missing", "missing"}, [2]string{core, cpu})
		require.Zero(h, h.fact("fence", slot, "arming"))
		return
	}
	var of *Run
	for _, r := range h.runs {
		if r.id.Slot == slot && h.current(r) {
			of = r
		}
	}
	require.NotNil(h, of)
	require.Equal(h, [3]uint64{of.id.RunEpoch, of.id.Generation, of.id.Dispatch},
		[3]uint64{h.fact("fence", slot, "run_epoch"), h.fact("fence", slot, "generation"), h.fact("fence", slot, "dispatch")})
	rc, accepted := h.receipts[of]
	if accepted {
		require.Equal(h, rc.Arming, h.fact("fence", slot, "arming"))
		require.Subset(h, []string{"recorded", "complete"}, []string{core, cpu}, "a receipt, and a boundary that is not recorded")
		require.NotEqual(h, "partial", run)
	} else if !h.ordered[of] {
		require.NotEqual(h, "launched", run, "launched without a receipt")
		require.False(h, recorded(core) && recorded(cpu), "both boundaries, and no receipt")
	}
}

func recorded(s string) bool { return s == "recorded" || s == "complete" }

// counts compares the fences' counters with the tokens that are live.
func (h *host) counts() {
	m, f := h.lane.at.token, h.lane.at.fence
	type place struct {
		fence    machine.Ref
		boundary uint64
	}
	want, got := map[place]uint64{}, map[place]uint64{}
	h.lane.d.View(func(w *machine.World) {
		fact := func(r machine.Ref, x *machine.Machine, n string) uint64 {
			v, _ := w.Fact(r, x.MustFact(n))
			return v
		}
		for s := range w.Capacity(m.ID()) {
			r := w.Ref(m.ID(), s)
			if n := w.StateName(r); n == "free" || n == "spent" {
				continue
			}
			fence := machine.UnpackRef(fact(r, m, "fence"))
			if fact(fence, f, "arming") != fact(r, m, "arming") {
				require.True(h, h.reset, "only a reset ends an arming under its tokens")
				continue
			}
			want[place{fence, fact(r, m, "boundary")}]++
		}
		rules := w.Rules()
		order, join := rules.Machine("caller_order"), rules.Machine("join")
		for s := range w.Capacity(f.ID()) {
			r := w.Ref(f.ID(), s)
			if fact(w.Ref(order.ID(), s), order, "held") != 0 {
				want[place{r, uint64(CPUDone)}]++
			}
			j := w.Ref(join.ID(), s)
			for wait, b := range map[string]Boundary{"core_wait": CPUDone, "cpu_wait": CoreDone} {
				if fact(j, join, wait) != 0 {
					want[place{machine.UnpackRef(fact(j, join, "pred")), uint64(b)}]++
				}
			}
			for b, n := range []string{"core_refs", "cpu_refs"} {
				if v := fact(r, f, n); v != 0 {
					got[place{r, uint64(b)}] = v
				}
			}
		}
	})
	require.Equal(h, want, got, "live tokens and counters")
}

// play does the script on a fresh lane and returns its log.
func play(t tester, s script) []byte {
	h := newHost(t, s)
	opened := h.lane.Open(ctx)
	h.untouched("", opened)
	if s.Calm {
		h.dev.SetPolicy(sim.NewRandom(s.Seed, s.Rare))
	}
	for i, m := range s.Moves {
		if opened != nil && i == 0 {
			_ = h.lane.Open(ctx)
		}
		h.move(m)
		h.invariants()
	}
	require.NoError(t, h.writer.Close())
	return h.log.Bytes()
}

// TestHostOperations plays random hosts against random devices and checks the
// lane after every operation. A script that is played again leaves the same
// record, byte for byte.
func TestHostOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scripts().Draw(t, "script")
		log := play(t, s)
		if s.Seed%4 == 0 { // each time would cost twice the time
			require.Equal(t, log, play(t, s), "the same script, another record")
		}
	})
}

const playSeed = "RUNFENCE_TEST_PLAY_SEED"

// seeded is a script that follows from its seed alone.
func seeded(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, seed))
	s := script{Seed: seed, Rare: 10 + r.IntN(20), Faults: 3, Calm: true, Slots: 2, Depth: 2}
	for range 200 {
		s.Moves = append(s.Moves, move{moves[r.IntN(len(moves)-6)], r.IntN(5), r.IntN(5)})
	}
	return s
}

func digest(t tester, seed uint64) string {
	h := fnv.New128a()
	h.Write(play(t, seeded(seed)))
	return hex.EncodeToString(h.Sum(nil))
}

// TestSameRecordInAnotherProcess starts this test again, in a process of its
// own, and compares what the same seeds recorded.
func TestSameRecordInAnotherProcess(t *testing.T) {
	var all []string
	for seed := range uint64(8) {
		all = append(all, digest(t, seed))
	}
	if os.Getenv(playSeed) != "" {
		fmt.Println("played", strings.Join(all, " "))
		return
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(exe, "-test.run=^TestSameRecordInAnotherProcess$")
	c.Env = append(os.Environ(), playSeed+"=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "played "+strings.Join(all, " ")+"\n")
	require.NotEqual(t, all[0], all[1])
}
