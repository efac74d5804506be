package states

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

// One test for each clause that has no other. What they have in common: a
// backend that runs something in the middle of a call.
type meddler struct {
	backend.Backend
	// before a call of the kind named, once.
	write, event, submit, reset func(ctx context.Context)
	notices                     []backend.Notice // beside the device's own
	live                        int              // blocks of memory
}

func once(f *func(context.Context), ctx context.Context) {
	if g := *f; g != nil {
		*f = nil
		g(ctx)
	}
}

func (b *meddler) Write(ctx context.Context, m backend.Memory, o uint64, src []byte) backend.Result {
	once(&b.write, ctx)
	return b.Backend.Write(ctx, m, o, src)
}

func (b *meddler) CreateEvent(ctx context.Context) (backend.Event, backend.Result) {
	once(&b.event, ctx)
	return b.Backend.CreateEvent(ctx)
}

func (b *meddler) Submit(ctx context.Context, s backend.Stream, l backend.Launch) backend.Result {
	once(&b.submit, ctx)
	return b.Backend.Submit(ctx, s, l)
}

func (b *meddler) Reset(ctx context.Context) (bool, backend.Result) {
	once(&b.reset, ctx)
	return b.Backend.Reset(ctx)
}

func (b *meddler) Notices(dst []backend.Notice) (int, uint64) {
	n := copy(dst, b.notices)
	b.notices = b.notices[n:]
	m, dropped := b.Backend.Notices(dst[n:])
	return n + m, dropped
}

func (b *meddler) Alloc(ctx context.Context, p backend.Place, n uint64) (backend.Memory, backend.Result) {
	m, r := b.Backend.Alloc(ctx, p, n)
	if r.Ok() {
		b.live++
	}
	return m, r
}

func (b *meddler) Free(ctx context.Context, m backend.Memory) backend.Result {
	r := b.Backend.Free(ctx, m)
	if r.Ok() {
		b.live--
	}
	return r
}

// meddled makes an initialised worker whose device can be meddled with.
func meddled(t *testing.T, c WorkerConfig, faults ...string) (*fixture, *ChipWorker, *meddler) {
	t.Helper()
	dev, err := sim.New(sim.Config{Kernels: kernels(), Plan: plan(t, faults...), Borrowed: c.Borrowed})
	require.NoError(t, err)
	b := &meddler{Backend: dev}
	c.Backend, c.Mode = b, Program
	w, err := NewChipWorker(c)
	require.NoError(t, err)
	require.NoError(t, w.Init(ctx))
	return &fixture{T: t, dev: dev, lane: w.Lane}, w, b
}

// A borrowed initialisation takes no option that only an owner may set (F49).
func TestBorrowingRejectsAnOwnersOptions(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for _, c := range []WorkerConfig{{SDMA: true}, {Simulator: true}} {
		c.Backend, c.Mode = dev, Program
		require.NoError(t, second(NewChipWorker(c)))
		c.Borrowed, c.Generation = true, 1
		require.ErrorIs(t, second(NewChipWorker(c)), ErrOptions)
	}
}

// A failed initialisation that was undone may be tried again; one that
// succeeded, or was closed, may not, whatever the latch would permit (F64, F65, F93).
func TestWorkerInitialisesOnce(t *testing.T) {
	for _, mode := range []Mode{Program, Kernel} {
		dev, err := sim.New(sim.Config{Kernels: kernels(), Plan: plan(t, "CreateStream#2 fail-before")})
		require.NoError(t, err)
		w, err := NewChipWorker(WorkerConfig{Config: Config{Backend: dev}, Mode: mode})
		require.NoError(t, err)
		require.ErrorIs(t, w.Init(ctx), ErrInitialisation)
		require.NoError(t, w.Init(ctx))
		require.ErrorIs(t, w.Init(ctx), ErrPhase)
		require.NoError(t, w.Close(ctx))
		require.ErrorIs(t, w.Init(ctx), ErrFinalized)
		require.ErrorIs(t, second(w.Prepare(ctx, work)), ErrAdmissionClosed)
		require.Equal(t, mode, latchState(t, w.mode).Mode, "the claim stands (F92)")
	}
}

// Without the optional entry only automatic ids are missing (F82).
func TestMissingEntryTakesAwayAutomaticIDs(t *testing.T) {
	f, w, _ := meddled(t, WorkerConfig{NoAutomaticIDs: true})
	c, err := w.Register(ctx, []byte("image"))
	require.ErrorIs(t, err, ErrUnsupportedEntry)
	require.Equal(t, NoCallable, c.ID)
	c, err = w.RegisterAt(ctx, 5, []byte("image"))
	require.NoError(t, err)
	require.Equal(t, 5, c.ID)
	f.whole()
	require.NoError(t, w.Unregister(ctx, c))
	require.NoError(t, w.Close(ctx))
}

// Equal images have ids of their own and one copy, which goes with the last (F84, F85).
func TestEqualImagesAreUploadedOnce(t *testing.T) {
	f, w, b := meddled(t, WorkerConfig{})
	one, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.Equal(t, 1, b.live)
	calls := f.calls()
	two, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.Equal(t, []sim.OpKind{sim.OpCurrentContext}, *calls)
	require.NotEqual(t, one.ID, two.ID)
	require.Equal(t, 1, b.live)
	require.NoError(t, w.Unregister(ctx, one))
	require.Equal(t, 1, b.live)
	require.NoError(t, w.Unregister(ctx, two))
	require.Zero(t, b.live)
	require.NoError(t, second(w.Register(ctx, []byte("image"))))
	require.Equal(t, 1, b.live, "uploaded anew")
}

// Each call of an upload fails: the id is -1, the place is free, and what was
// allocated is freed, or is still somebody's to free (F86).
func TestFailedRegistrationLeavesNothing(t *testing.T) {
	for _, faults := range [][]string{
		{"Alloc#1 fail-before"},
		{"Alloc#2 refuse"},
		{"Write#1 fail-before"},
		{"Copy#1 panic-before"},
		{"Copy#1 fail-before", "Free#1 fail-before"},
		{"Copy#1 fail-before", "Free#1 fail-before", "Free#2 fail-before"},
	} {
		f, w, b := meddled(t, WorkerConfig{}, faults...)
		c, err := w.Register(ctx, []byte("image"))
		require.ErrorIs(t, err, ErrUpload, faults)
		require.Equal(t, NoCallable, c.ID)
		require.Equal(t, "free", f.state("callable", 0))
		c, err = w.Register(ctx, []byte("image"))
		require.NoError(t, err)
		require.Equal(t, 0, c.ID)
		require.Equal(t, 1, b.live, faults)
		require.NoError(t, w.Close(ctx))
		require.Zero(t, b.live, faults)
	}
}

// A callable whose removal fails stays registered (F86).
func TestFailedRemovalStaysRegistered(t *testing.T) {
	for _, fault := range []string{"Free#2 fail-before", "Free#2 refuse"} {
		_, w, b := meddled(t, WorkerConfig{}, fault)
		c, err := w.Register(ctx, []byte("image"))
		require.NoError(t, err)
		require.ErrorIs(t, w.Unregister(ctx, c), ErrUpload)
		require.True(t, w.Live(c))
		require.NoError(t, w.Unregister(ctx, c))
		require.False(t, w.Live(c))
		require.Zero(t, b.live)
	}
}

// Whoever meets a registration waits for its end, here in vain: a scan and an
// explicit claim of one place cannot both have it, and no table is cleared
// under a registration (F88).
func TestRegistrationsTakeTurns(t *testing.T) {
	f, w, b := meddled(t, WorkerConfig{Config: Config{Bound: time.Nanosecond}})
	b.write = func(context.Context) {
		past := context.Background()
		require.ErrorIs(t, second(w.RegisterAt(past, 0, []byte("other"))), machine.ErrBusy)
		require.ErrorIs(t, second(w.Register(past, []byte("other"))), machine.ErrBusy)
		require.ErrorIs(t, w.Unregister(past, Callable{ID: 0, Occupancy: 1}), machine.ErrBusy)
		require.ErrorIs(t, f.fire("registry", 0, "finalize"), machine.ErrBusy)
	}
	c, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.True(t, w.Live(c))
	require.ErrorIs(t, second(w.RegisterAt(ctx, c.ID, []byte("other"))), ErrInvalidArgument)

	// Between its steps too.
	s := f.stepping()
	process := s.fact("environment", "process")
	s.issue("registry", "register", process, 1, 1)
	s.settle("registry", s.context())
	require.Equal(t, "claiming", s.state("registry"))
	m := s.rules.Machine("registry")
	for event, args := range map[string][]uint64{"register": {process, 1, 1}, "register_at": {process, 1, 0}, "unregister": {process, 0, 1}, "finalize": nil} {
		require.Equal(t, machine.Deferred, s.w.Clone().Issue(s.ref("registry"), m.MustEvent(event), args...).Status, event)
	}
}

// A close that is claimed, or a lane that is given up, between the check of the
// context and the claim of an id: no id is taken (F63, F66).
func TestNoIDIsTakenAfterTheEnd(t *testing.T) {
	for _, event := range []string{"register", "register_at"} {
		f, w, _ := meddled(t, WorkerConfig{})
		_, err := w.Register(ctx, []byte("image"))
		require.NoError(t, err)
		s := f.stepping()
		args := []uint64{s.fact("environment", "process"), 1, 1}
		if event == "register_at" {
			args[2] = s.w.Ref(s.rules.Machine("callable").ID(), 3).Pack()
		}
		s.issue("registry", event, args...)
		s.settle("registry", s.context())
		s.fire("environment", "detach", args[0])
		s.next("registry")
		require.Equal(t, "open", s.state("registry"))
		require.Equal(t, "free", s.w.StateName(s.w.Ref(s.rules.Machine("callable").ID(), 3)))
		require.Equal(t, "free", s.w.StateName(s.w.Ref(s.rules.Machine("callable").ID(), 1)))
	}
}

// Under another context nothing is taken and nothing is called (F156).
func TestRegistryChecksTheContextFirst(t *testing.T) {
	f, w, _ := meddled(t, WorkerConfig{})
	c, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	f.dev.SetCurrent(f.dev.NewContext(true))
	before, calls := f.bytes(), f.calls()
	require.ErrorIs(t, second(w.Register(ctx, []byte("b"))), ErrExecutionContextRefused)
	require.ErrorIs(t, second(w.RegisterAt(ctx, 7, []byte("b"))), ErrExecutionContextRefused)
	require.ErrorIs(t, w.Unregister(ctx, c), ErrExecutionContextRefused)
	require.Equal(t, []sim.OpKind{sim.OpCurrentContext, sim.OpCurrentContext, sim.OpCurrentContext}, *calls)
	require.Equal(t, before, f.bytes())
	f.dev.SetCurrent(f.dev.Home())
	require.NoError(t, w.Unregister(ctx, c))
}

// After a claimed close, and after giving up, nobody registers (F63, F66); the
// images go with the teardown (F121).
func TestRegistryEndsWithTheLane(t *testing.T) {
	f, w, b := meddled(t, WorkerConfig{}, "DestroyStream#1 fail-before")
	c, err := w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	require.ErrorIs(t, w.Close(ctx), ErrTeardown)
	calls := f.calls()
	require.ErrorIs(t, second(w.Register(ctx, []byte("b"))), ErrInvalidState)
	require.ErrorIs(t, second(w.RegisterAt(ctx, 3, []byte("b"))), ErrInvalidState)
	require.ErrorIs(t, w.Unregister(ctx, c), ErrInvalidState)
	require.Empty(t, *calls)
	require.NoError(t, w.Close(ctx))
	require.Zero(t, b.live)
	require.ErrorIs(t, second(w.Register(ctx, []byte("b"))), ErrFinalized)

	_, w, b = meddled(t, WorkerConfig{})
	c, err = w.Register(ctx, []byte("image"))
	require.NoError(t, err)
	w.Detach()
	require.ErrorIs(t, second(w.Register(ctx, []byte("b"))), ErrDetached)
	require.ErrorIs(t, second(w.RegisterAt(ctx, 3, []byte("b"))), ErrDetached)
	require.ErrorIs(t, w.Unregister(ctx, c), ErrDetached)
	require.Equal(t, 1, b.live, "kept for the life of the process")
}

// The budget counts what is registered, and owned and borrowed devices take it
// alike (F170).
func TestBudget(t *testing.T) {
	for _, c := range []Config{{}, {Borrowed: true, Generation: 1}} {
		f, w, _ := meddled(t, WorkerConfig{Config: c, Budget: 10})
		four, err := w.Register(ctx, []byte("4444"))
		require.NoError(t, err)
		require.NoError(t, second(w.Register(ctx, []byte("4444"))), "an equal image takes nothing more")
		none, err := w.Register(ctx, []byte("7777777"))
		require.ErrorIs(t, err, ErrBudget)
		require.Equal(t, NoCallable, none.ID)
		f.strike("Copy#1 fail-before")
		require.ErrorIs(t, second(w.Register(ctx, []byte("666666"))), ErrUpload)
		six, err := w.Register(ctx, []byte("666666"))
		require.NoError(t, err, "a failed one took nothing")
		require.NoError(t, w.Unregister(ctx, four))
		require.ErrorIs(t, second(w.Register(ctx, []byte("7777777"))), ErrBudget, "its equal is registered still")
		require.NoError(t, w.Unregister(ctx, six))
		require.NoError(t, second(w.Register(ctx, []byte("555555"))))
		require.NoError(t, w.Close(ctx))
	}
}

// A close from inside one of the worker's own commands is refused: that is
// what stands for a check of the owner's thread (F161).
func TestCloseFromInsideIsRefused(t *testing.T) {
	f, w, b := meddled(t, WorkerConfig{})
	r := f.prepare()
	var inside error
	b.submit = func(ctx context.Context) { inside = w.Close(ctx) }
	require.NoError(t, second(r.Launch(ctx)))
	require.ErrorIs(t, inside, machine.ErrReentrant)
	require.Equal(t, "live", f.state("environment", 0))
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
	require.NoError(t, w.Close(ctx))
}

// A confirmed reset skips what the ring holds: it is counted, and no notice of
// the new generation (F115).
func TestResetSkipsTheRing(t *testing.T) {
	f, _, b := meddled(t, WorkerConfig{})
	f.whole()
	ours := f.lane.dev.slots[0].cpuID
	f.notify(0, int(ours))
	b.reset = func(context.Context) { b.notices = make([]backend.Notice, 9); b.notices[8].Stream = ours }
	require.NoError(t, f.lane.Recover(ctx))
	require.Equal(t, uint64(9), f.health().Skipped)
	f.whole()
	require.False(t, f.health().Suspect)
}

// A recovery that fails discards neither the owner nor the launch's code (F79).
func TestFailedRecoveryKeepsOwnerAndCode(t *testing.T) {
	f := opened(t, "RecordEvent#2 fail-before 4242", "Reset#1 unconfirmed", "Reset#2 panic-before")
	r := f.prepare()
	require.ErrorIs(t, second(r.Launch(ctx)), ErrPartial)
	for range 2 {
		require.ErrorIs(t, f.lane.Recover(ctx), ErrDeviceUnusable)
		require.Equal(t, [4]string{"partial", "true", "4242", "armed"}, [4]string{f.state("run", 0), f.fact("run", 0, "bound"), f.fact("run", 0, "rc"), f.state("fence", 0)})
		require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	}
	require.NoError(t, f.lane.Recover(ctx))
	require.ErrorIs(t, r.Wait(ctx), ErrReset)
	require.NoError(t, r.Finalize(ctx))
}

// Nothing is queued behind a Partial run, although a successor was prepared
// before it became one (F150).
func TestNothingIsQueuedBehindAPartialRun(t *testing.T) {
	f := unopened(t, Config{Slots: 2, Depth: 2})
	require.NoError(t, f.lane.Open(ctx))
	f.whole()
	broken := f.prepare()
	next, err := f.lane.Submit(ctx, work)
	require.NoError(t, err)
	f.strike("RecordEvent#2 fail-before")
	require.ErrorIs(t, second(broken.Launch(ctx)), ErrPartial)
	calls := f.calls()
	require.ErrorIs(t, next.Advance(ctx), ErrAdmissionClosed)
	require.NotContains(t, *calls, sim.OpStreamWaitEvent)
	require.NotContains(t, *calls, sim.OpSubmitAICore)
	require.Equal(t, "prepared", f.state("run", 1))
	require.ErrorIs(t, broken.Wait(ctx), ErrPartial)
	require.NoError(t, next.Advance(ctx))
	require.NoError(t, next.Wait(ctx))
}

// A predecessor that is gone when its successor would join it: the successor
// is launched by itself, and its caller's stream orders it still (F43, F46).
func TestDeclinedJoinKeepsTheCaller(t *testing.T) {
	dev, err := sim.New(sim.Config{Kernels: kernels()})
	require.NoError(t, err)
	b := &meddler{Backend: dev}
	l, err := NewLane(Config{Backend: b, Slots: 2, Depth: 2})
	require.NoError(t, err)
	f := &fixture{T: t, dev: dev, lane: l}
	require.NoError(t, l.Open(ctx))
	first, _ := f.launch()
	b.event = func(context.Context) {
		require.NoError(t, first.Wait(context.Background()))
		require.NoError(t, first.Finalize(context.Background()))
	}
	next, err := l.Submit(ctx, f.called())
	require.NoError(t, err)
	require.Equal(t, "apart", f.state("join", 1))
	require.Equal(t, "true", f.fact("run", 1, "eager"))
	require.Equal(t, "on_stream", f.fact("caller_order", 1, "tail"))
	require.NoError(t, next.Wait(ctx))
	require.NoError(t, next.Finalize(ctx))
	f.clean()
}

// The caller's wait is queued and Tail is not recorded: the bound streams are
// synchronised, the caller's too, and until that succeeds the reference stays (F35, F36).
func TestWithoutATailTheCallersStreamProves(t *testing.T) {
	f := opened(t, "RecordEvent#5 fail-before")
	r, err := f.lane.Submit(ctx, f.called())
	require.ErrorIs(t, err, ErrPartial, "the caller may not go by its output (F37)")
	for i, fault := range []string{"SynchronizeStream#3 fail-before", "SynchronizeStream#1 hang", "SynchronizeStream#1 refuse", "SynchronizeStream#1 panic-before"} {
		f.strike(fault) // once the pair has answered, only the caller's stream is left to ask
		require.ErrorIs(t, r.Wait(ctx), []error{ErrUnproven, ErrWaitTimeout, ErrUnproven, ErrUnproven}[i], fault)
		require.Equal(t, [3]string{"partial", "queued", "1"}, [3]string{f.state("run", 0), f.fact("caller_order", 0, "held"), f.fact("fence", 0, "cpu_refs")}, fault)
		require.ErrorIs(t, r.Finalize(ctx), ErrUnproven)
	}
	require.ErrorIs(t, r.Wait(ctx), ErrPartial)
	require.Equal(t, "0", f.fact("fence", 0, "cpu_refs"))
	require.NoError(t, r.Finalize(ctx))
	f.clean()
}

// An active capture is rejected before anything is published, and the run goes
// on once the capture is over (F17, F38).
func TestCaptureIsRejectedBeforePublication(t *testing.T) {
	f := opened(t)
	w := f.called()
	require.True(t, f.dev.SetCapture(w.Caller, backend.CaptureActive))
	r, err := f.lane.Prepare(ctx, w)
	require.NoError(t, err, "preparing is outside of the capture")
	calls := f.calls()
	require.ErrorIs(t, second(r.Launch(ctx)), ErrCaptureActive)
	require.Equal(t, []sim.OpKind{sim.OpCurrentContext, sim.OpCaptureStatus}, *calls)
	require.Equal(t, "staged", f.state("region", 0))
	require.True(t, f.dev.SetCapture(w.Caller, backend.CaptureNone))
	require.NoError(t, second(r.Launch(ctx)))
	require.NoError(t, r.Wait(ctx))
	require.NoError(t, r.Finalize(ctx))
}

// An asynchronous descriptor brings the fork along without a caller, ahead of
// both kernels; without either there is neither (F31, F32).
func TestAsynchronousDescriptorForks(t *testing.T) {
	for _, async := range []bool{false, true} {
		f := warm(t)
		r, err := f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Async: async})
		require.NoError(t, err)
		calls := f.calls()
		require.NoError(t, second(r.Launch(ctx)))
		kernels := []sim.OpKind{sim.OpSubmitAICore, sim.OpRecordEvent, sim.OpSubmitAICPU, sim.OpRecordEvent}
		want := append([]sim.OpKind{sim.OpCurrentContext}, kernels...)
		if async {
			want = slices.Concat([]sim.OpKind{
				sim.OpCurrentContext, sim.OpCreateEvent, sim.OpCreateEvent, sim.OpCreateEvent,
				sim.OpCopyAsync, sim.OpRecordEvent, sim.OpStreamWaitEvent,
			}, kernels)
		}
		require.Equal(t, want, *calls)
		require.NoError(t, r.Wait(ctx))
	}
}

// The descriptor's source is a snapshot: what the host does to its bytes after
// Prepare reaches no kernel, although the copy is queued later (F152).
func TestDescriptorSourceIsASnapshot(t *testing.T) {
	f := opened(t)
	var block backend.Memory
	f.dev.Trace(func(e sim.TraceEvent) {
		if e.Kind == sim.TraceStart && e.Entry == sim.EntryKernel {
			block = e.Memory
		}
	})
	args := []byte("what was meant")
	want := bytes.Clone(args)
	r, err := f.lane.Prepare(ctx, Work{Core: 1, CPU: 2, Args: args, Async: true})
	require.NoError(t, err)
	clear(args)
	require.NoError(t, second(r.Launch(ctx)))
	require.Equal(t, "true", f.fact("run", 0, "bound"))
	require.NoError(t, r.Wait(ctx))
	host, res := f.dev.Alloc(ctx, backend.PinnedMemory, 64)
	require.True(t, res.Ok())
	n := uint64(len(want))
	require.True(t, f.dev.Copy(ctx, backend.Span{Mem: host, Size: n}, backend.Span{Mem: block, Offset: ArgsOffset, Size: n}).Ok())
	got := make([]byte, n)
	require.True(t, f.dev.Read(ctx, got, host, 0).Ok())
	require.Equal(t, want, got)
	require.NoError(t, r.Finalize(ctx))
}

// The pinned source of a publication whose enqueue failed is live until the run
// retires, and nothing is freed meanwhile (F6); the next run stages a marker anew (F7).
func TestPinnedSourceOutlivesAFailedEnqueue(t *testing.T) {
	for _, how := range []string{"fail-before", "fail-after"} {
		f := opened(t, "CopyAsync#1 "+how)
		r := f.prepare()
		calls := f.calls()
		require.ErrorIs(t, second(r.Launch(ctx)), ErrPartial)
		require.NotContains(t, *calls, sim.OpSubmitAICore, "no kernel follows (F8)")
		require.Equal(t, [2]string{"untrusted", "true"}, [2]string{f.state("region", 0), f.fact("region", 0, "source")}, how)
		require.ErrorIs(t, r.Wait(ctx), ErrPartial)
		require.Equal(t, "true", f.fact("region", 0, "source"))
		require.NoError(t, r.Finalize(ctx))
		require.Equal(t, "false", f.fact("region", 0, "source"))
		require.NotContains(t, *calls, sim.OpFree)
		f.prepare()
		require.Equal(t, "staged", f.state("region", 0))
	}
}

// Record and device contradict each other: a host can read that, and the
// failure stands (F117, F118).
func TestDisagreementIsReported(t *testing.T) {
	for class, want := range map[uint64]Report{
		0: {Record: RecordOk},
		1: {Record: RecordHeader, Disagreed: true},
		2: {Record: RecordParticipant, Disagreed: true},
		3: {Record: RecordUnclaimed},
		4: {Record: RecordUnmarked},
		5: {},
	} {
		dev, err := sim.New(sim.Config{Kernels: reporting(class)})
		require.NoError(t, err)
		l, err := NewLane(Config{Backend: dev})
		require.NoError(t, err)
		require.NoError(t, l.Open(ctx))
		r, err := l.Prepare(ctx, work)
		require.NoError(t, err)
		require.NoError(t, second(r.Launch(ctx)))
		err = r.Wait(ctx)
		require.Equal(t, want.Disagreed, err != nil, class)
		got, err := r.Report()
		require.NoError(t, err)
		require.Equal(t, want, got, class)
		require.NoError(t, r.Finalize(ctx))
		require.ErrorIs(t, second(r.Report()), ErrStaleIdentity)
	}
	f := opened(t, "SubmitAICPU#1 kernel-fatal")
	r, _ := f.launch()
	require.ErrorIs(t, r.Wait(ctx), ErrRunFailed)
	got, err := r.Report()
	require.NoError(t, err)
	require.Equal(t, Report{Faulted: true, Fault: int32(backend.AICPUException)}, got)
	f.process = 2
	require.ErrorIs(t, second(r.Report()), ErrForeignProcess)
}

// A successor is queued behind a run by waits, on streams of its own slot: the
// pair that is synchronised for a run carries no fault of the run behind it (F151).
func TestSuccessorsFaultIsItsOwn(t *testing.T) {
	for _, fault := range []string{"SubmitAICPU#1 kernel-fatal", "SubmitAICore#1 kernel-fatal"} {
		f, first, next, err := pair(t, fault)
		require.NoError(t, err)
		require.NotEqual(t, f.lane.dev.slots[0].cpu, f.lane.dev.slots[1].cpu)
		for f.dev.AdvanceToNext() { // both are over, and the successor's stream is in error
		}
		calls := f.calls()
		require.NoError(t, first.Wait(ctx))
		require.Contains(t, *calls, sim.OpSynchronizeStream)
		got, err := first.Report()
		require.NoError(t, err)
		require.Equal(t, Report{}, got)
		require.ErrorIs(t, next.Wait(ctx), ErrRunFailed)
		f.ends(next, first)
	}
}

// A buffer is compared with the environment when it is wrapped, when it is
// validated and when it is attached (F57).
func TestBufferSource(t *testing.T) {
	f, other := opened(t), unopened(t, Config{Borrowed: true, Generation: 7})
	require.ErrorIs(t, second(NewBufferSource(other.lane.Environment())), ErrNotInitialised)
	require.NoError(t, other.lane.Open(ctx))
	source, err := NewBufferSource(f.lane.Environment())
	require.NoError(t, err)
	foreign, err := NewBufferSource(other.lane.Environment())
	require.NoError(t, err)
	m, res := f.dev.Alloc(ctx, backend.DeviceMemory, 64)
	require.True(t, res.Ok())
	span := backend.Span{Mem: m, Size: 64}
	buffer, err := source.Wrap(span)
	require.NoError(t, err)
	require.Equal(t, span, buffer.Span())

	f.whole() // runs have generations of their own
	require.NoError(t, source.Validate(buffer))
	got, err := source.Attach(ctx, buffer)
	require.NoError(t, err)
	require.Equal(t, span, got)

	var e *SourceError
	require.ErrorAs(t, foreign.Validate(buffer), &e)
	require.NotEqual(t, e.Source, e.Now)
	require.ErrorIs(t, second(foreign.Attach(ctx, buffer)), ErrStaleIdentity)
	require.ErrorAs(t, source.Validate(Buffer{span: span}), &e, "of no source")
	require.Contains(t, e.Error(), "environment")

	f.dev.SetCurrent(f.dev.NewContext(true))
	require.NoError(t, source.Validate(buffer), "the identity is the host's")
	require.ErrorIs(t, second(source.Attach(ctx, buffer)), ErrExecutionContextRefused)
	f.dev.SetCurrent(f.dev.Home())

	f.process = 2
	require.ErrorIs(t, second(source.Wrap(span)), ErrForeignProcess)
	f.process = 1
	require.NoError(t, f.lane.Close(ctx))
	require.ErrorAs(t, second(source.Wrap(span)), &e, "the environment is gone")
	require.ErrorAs(t, source.Validate(buffer), &e)
	require.ErrorAs(t, second(source.Attach(ctx, buffer)), &e)
}

// A source outlives the environment it captured no more than a buffer does,
// although an environment is there again.
func TestBufferSourceOfAnEarlierEnvironment(t *testing.T) {
	e := scripted(t, func(string) machine.Result { return machine.Result{Value: 9} })
	require.NoError(t, e.Create(ctx, 0))
	old, err := NewBufferSource(&e.EnvironmentView)
	require.NoError(t, err)
	require.NoError(t, e.Rollback(ctx))
	require.NoError(t, e.Create(ctx, 0))
	now, err := NewBufferSource(&e.EnvironmentView)
	require.NoError(t, err)
	buffer, err := now.Wrap(backend.Span{})
	require.NoError(t, err)
	require.NoError(t, now.Validate(buffer))
	var s *SourceError
	require.ErrorAs(t, old.Validate(buffer), &s)
	require.ErrorAs(t, second(old.Wrap(backend.Span{})), &s)
}

// An invocation goes from checked to stored to lent and back; the view is
// dropped before the storage, and a packet that the transport does not permit,
// or that fails a check, gets none (F147, F148, F149, F153).
func TestInvocationOrder(t *testing.T) {
	f := opened(t)
	step := func(event string, args ...uint64) error { return f.fire("invocation", 0, event, args...) }
	require.ErrorIs(t, step("check", 0, 1, 1, 1), ErrTransport)
	for _, args := range [][]uint64{{1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}} {
		require.ErrorIs(t, step("check", args...), ErrPacket)
		require.ErrorIs(t, step("store"), ErrPacket, "nothing to fall back to")
		require.ErrorIs(t, step("lend"), ErrPacket)
	}
	for range 2 {
		require.NoError(t, step("check", 1, 1, 3, 4))
		require.ErrorIs(t, step("lend"), ErrPacket, "not stored")
		require.NoError(t, step("store"))
		require.NoError(t, step("lend"))
		require.ErrorIs(t, step("clear"), ErrLent)
		require.ErrorIs(t, step("check", 1, 1, 3, 4), ErrSlotOccupied)
		require.NoError(t, step("give_back"))
		require.NoError(t, step("clear"))
		require.Equal(t, "none", f.fact("invocation", 0, "occupancy"))
	}
}

// A launch that is refused before it began forgets which run it was to follow:
// the same handle is enqueued once the context is restored, behind the run that
// is there by then, or behind none (F59).
func TestRefusedAdvanceMayBeTriedAgain(t *testing.T) {
	for _, alone := range []bool{false, true} {
		f := unopened(t, Config{Slots: 2, Depth: 2})
		require.NoError(t, f.lane.Open(ctx))
		first, _ := f.launch()
		next, err := f.lane.Submit(ctx, work)
		require.NoError(t, err)
		f.dev.SetCurrent(f.dev.NewContext(true))
		require.ErrorIs(t, next.Advance(ctx), ErrExecutionContextRefused)
		require.Equal(t, [2]string{"prepared", "apart"}, [2]string{f.state("run", 1), f.state("join", 1)})
		f.dev.SetCurrent(f.dev.Home())
		if alone {
			require.NoError(t, first.Wait(ctx))
			require.NoError(t, first.Finalize(ctx))
		}
		require.NoError(t, next.Advance(ctx))
		require.Equal(t, map[bool]string{false: "joining", true: "apart"}[alone], f.state("join", 1))
		require.NoError(t, next.Wait(ctx))
		require.NoError(t, next.Finalize(ctx))
		f.clean()
	}
}
