package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// lane is a states.Lane of the script and what the script calls its parts.
type lane struct {
	*states.Lane
	name     string
	config   states.Config
	gate     *gate
	recorder *recorder
	runs     map[string]*run
	refs     map[string]*states.WaitRef

	chip      *states.ChipWorker // nil for a lane without a worker
	callables map[string]callable
	packets   map[string]*packet
}

// run is a run of the script.
type run struct {
	*states.Run
	permit, arming uint64
	receipt        *states.Receipt // of a complete launch
}

var laneVerbs = []verb{
	{name: "lane", run: (*session).laneVerb, params: append([]param{{name: "name", kind: name, place: true}}, laneParams...)},
	{name: "process", run: (*session).processVerb, params: []param{{name: "name", kind: name, place: true, need: true}}},
	{name: "open", run: (*session).open},
	{name: "close", run: (*session).closeLane},
	{name: "detach", run: (*session).detach},
	{name: "quarantine", run: (*session).quarantine},
	{name: "recover", run: (*session).recover},
	{name: "hear", run: (*session).hear},
	{name: "health", run: (*session).health},
	{name: "prepare", run: (*session).prepare, params: workParams},
	{name: "submit", run: (*session).submit, params: workParams},
	{name: "retry", run: onRun("prepared", (*states.Run).Retry), params: runName},
	{name: "abort", run: onRun("rolled back", (*states.Run).Abort), params: runName},
	{name: "enqueue", run: onRun("enqueued", (*states.Run).Advance), params: runName},
	{name: "launch", run: (*session).launch, params: runName},
	{name: "poll", run: (*session).poll, params: runName},
	{name: "wait", run: (*session).wait, params: runName},
	{name: "finalize", run: (*session).finalize, params: runName},
}

var laneParams = []param{
	{name: "slots", kind: count, max: 16},
	{name: "depth", kind: count, max: 8},
	{name: "tokens", kind: count, max: 64},
	{name: "timeout", kind: duration},
	{name: "borrowed"},
	{name: "generation", kind: count},
}

var workParams = []param{
	{name: "run", kind: name, place: true, need: true},
	{name: "core", kind: name},
	{name: "cpu", kind: name},
	{name: "blocks", kind: count, max: 4096},
	{name: "args", kind: count},
	{name: "caller", kind: name},
	{name: "async"},
}

var runName = []param{{name: "run", kind: name, place: true, need: true}}

// makeLane makes a lane, or the worker that a lane is part of.
func (s *session) makeLane(name string, c states.Config, w *states.WorkerConfig) error {
	d, err := s.device()
	if err != nil {
		return err
	}
	l := &lane{name: name, runs: map[string]*run{}, refs: map[string]*states.WaitRef{}, callables: map[string]callable{}, packets: map[string]*packet{}}
	l.recorder = &recorder{rules: s.opts.Rules, spend: s.spend}
	l.gate = &gate{s: s, l: l, b: d.Backend}
	c.Name, c.Rules, c.Backend, c.Recorder = name, s.opts.Rules, l.gate, l.recorder
	c.Incarnation = uint64(len(s.laneList) + 1)
	c.Process = func() int { return int(s.naming.processes[s.process]) }
	c.Clock = func() int64 { return int64(s.now()) }
	if s.opts.Recorder != nil {
		l.recorder.next = s.opts.Recorder(name, c.Pools(), 0)
	}
	l.config = c
	if w == nil {
		l.Lane, err = states.NewLane(c)
	} else {
		w.Config = c
		if l.chip, err = states.NewChipWorker(*w); err == nil {
			l.Lane = l.chip.Lane
		}
	}
	if err != nil {
		return err
	}
	s.lanes[name], s.lane = l, l
	s.laneList = append(s.laneList, l)
	return nil
}

const maxLanes = 16

func (s *session) laneVerb(c *call) error {
	n := c.str("name", "lane")
	if l := s.lanes[n]; l != nil {
		if len(c.args) > 1 || !c.has("name") {
			return fmt.Errorf("lane %s is made already", n)
		}
		s.lane = l
		s.printf("lane %s: present again", n)
		return nil
	}
	if len(s.lanes) == maxLanes {
		return fmt.Errorf("more than %d lanes: %w", maxLanes, ErrTooLarge)
	}
	if _, err := s.device(); err != nil {
		return err
	}
	cfg, err := laneConfig(c)
	if err != nil {
		return err
	}
	if err := s.makeLane(n, cfg, nil); err != nil {
		return err
	}
	s.printf("lane %s: %s", n, laneText(cfg))
	return nil
}

// laneConfig reads what the verbs for lanes and for workers have in common.
func laneConfig(c *call) (states.Config, error) {
	cfg := states.Config{
		Slots: int(c.num("slots", 1)), Depth: int(c.num("depth", 1)), Tokens: int(c.num("tokens", 4)), Timeout: c.dur("timeout", time.Second),
		Borrowed: c.has("borrowed"), Generation: c.num("generation", 0),
	}
	if cfg.Slots == 0 || cfg.Depth == 0 || cfg.Tokens == 0 || cfg.Timeout == 0 {
		return cfg, fmt.Errorf("%s: it needs a slot, a depth, a token, and a timeout that is not zero, which a device rejects", c.name)
	}
	if cfg.Depth > cfg.Slots {
		return cfg, fmt.Errorf("%s: a depth of %d needs as many slots", c.name, cfg.Depth)
	}
	return cfg, nil
}

func laneText(cfg states.Config) string {
	t := "owned"
	if cfg.Borrowed {
		t = fmt.Sprintf("borrowed, generation %d", cfg.Generation)
	}
	t += ", " + plural(cfg.Slots, "slot")
	if cfg.Depth > 1 {
		t += fmt.Sprintf(", depth %d", cfg.Depth)
	}
	return t + ", timeout " + us(cfg.Timeout)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// processVerb changes which process calls: a fork of the one that was, say.
func (s *session) processVerb(c *call) error {
	n := c.args["name"]
	if s.naming.processes[n] == 0 {
		s.naming.processes[n] = uint64(len(s.naming.processes) + 1)
	}
	s.process = n
	s.printf("process: %s", n)
	return nil
}

func (s *session) open(c *call) error {
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		err := l.Open(ctx)
		policy := "owned"
		if l.config.Borrowed {
			policy = "borrowed"
		}
		return func() { s.result(c, err, policy+", "+plural(max(1, l.config.Slots), "slot")) }
	})
}

func (s *session) closeLane(c *call) error {
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		err := l.Close(ctx)
		return func() { s.result(c, err, "closed") }
	})
}

func (s *session) detach(c *call) error {
	return s.operate(c, func(_ context.Context, l *lane) func() {
		l.Detach()
		return func() { s.answer(c, "nothing is released") }
	})
}

func (s *session) quarantine(c *call) error {
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		err := l.Quarantine(ctx)
		return func() { s.result(c, err, "declared; everything is kept") }
	})
}

func (s *session) recover(c *call) error {
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		err := l.Recover(ctx)
		return func() { s.result(c, err, "the device was reset, and the reset confirmed") }
	})
}

func (s *session) hear(c *call) error {
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		err := l.Hear(ctx)
		return func() { s.result(c, err, "the notices that waited are taken") }
	})
}

func (s *session) health(c *call) error {
	l, err := s.present()
	if err != nil {
		return err
	}
	h, err := l.Health()
	if err != nil {
		s.answer(c, "%s", s.said(s.opts.Rules, err))
		return nil
	}
	text := "nothing known against it"
	if h.Suspect {
		text = "suspect"
	}
	for _, n := range []struct {
		n    uint64
		what string
	}{
		{h.Matched, "matched"},
		{h.Unattributed, "unattributed"},
		{h.Undecided, "undecided"},
		{h.Lost, "lost"},
		{h.Dropped, "dropped"},
		{h.Skipped, "skipped"},
	} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	s.answer(c, "%s", text)
	return nil
}

// work is what a command says a run is to execute.
func (s *session) work(c *call) (w states.Work, err error) {
	if _, err := s.device(); err != nil {
		return w, err
	}
	w = states.Work{Blocks: uint32(c.num("blocks", 1)), Args: make([]byte, c.num("args", 0)), Async: c.has("async")}
	if w.Core, err = s.kernel(c.str("core", "core")); err != nil {
		return w, err
	}
	if w.CPU, err = s.kernel(c.str("cpu", "cpu")); err != nil {
		return w, err
	}
	if c.has("caller") {
		st, err := s.named(c, "caller", sim.KindStream)
		if err != nil {
			return w, err
		}
		w.Caller = backend.Stream(st)
	}
	return w, nil
}

func (s *session) prepare(c *call) error {
	w, err := s.work(c)
	if err != nil {
		return err
	}
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		r, err := l.Prepare(ctx, w)
		l.add(c.args["run"], r)
		if err != nil {
			return func() { s.result(c, err, "") }
		}
		return func() { s.answer(c, "on slot %d", r.Identity().Slot) }
	})
}

// submit takes a run as far as it can be: prepared or, with a caller's stream,
// enqueued.
func (s *session) submit(c *call) error {
	w, err := s.work(c)
	if err != nil {
		return err
	}
	return s.operate(c, func(ctx context.Context, l *lane) func() {
		r, err := l.Submit(ctx, w)
		l.add(c.args["run"], r)
		if err != nil {
			return func() { s.result(c, err, "") }
		}
		st, _ := r.State()
		return func() { s.answer(c, "%s on slot %d", st, r.Identity().Slot) }
	})
}

// add keeps a run under its name; nil is none.
func (l *lane) add(name string, r *states.Run) {
	if r != nil {
		l.runs[name] = &run{Run: r, permit: l.fact("run", r.Identity().Slot, "permit")}
	}
}

// onRun makes a verb of a method of runs.
func onRun(ok string, f func(*states.Run, context.Context) error) func(*session, *call) error {
	return func(s *session, c *call) error {
		return s.onRun(c, func(ctx context.Context, r *run) func() {
			err := f(r.Run, ctx)
			return func() { s.result(c, err, ok) }
		})
	}
}

// kernel returns an image by name.
func (s *session) kernel(n string) (backend.Kernel, error) {
	if k, ok := s.kernels[n]; ok {
		return k, nil
	}
	var known []string
	for other := range s.kernels {
		known = append(known, other)
	}
	return 0, errors.New(machine.Unknown("kernel", n, known))
}

// runs are those of the present lane, by name; there are none without one.
func (s *session) runs() map[string]*run {
	if s.lane == nil {
		return nil
	}
	return s.lane.runs
}

// run returns a run of the lane by name. A session without a lane knows none.
func (l *lane) run(n string) (*run, error) {
	if l == nil {
		return nil, errors.New(machine.Unknown("run", n, nil))
	}
	if r := l.runs[n]; r != nil {
		return r, nil
	}
	var known []string
	for other := range l.runs {
		known = append(known, other)
	}
	return nil, errors.New(machine.Unknown("run", n, known))
}

// onRun is operate for an operation on a run.
func (s *session) onRun(c *call, f func(ctx context.Context, r *run) func()) error {
	l, err := s.present()
	if err != nil {
		return err
	}
	r, err := l.run(c.args["run"])
	if err != nil {
		return err
	}
	return s.operate(c, func(ctx context.Context, _ *lane) func() { return f(ctx, r) })
}

func (s *session) launch(c *call) error {
	return s.onRun(c, func(ctx context.Context, r *run) func() {
		rc, err := r.Launch(ctx)
		if err == nil {
			r.receipt = &rc
		}
		return func() { s.result(c, err, "complete, both boundaries recorded") }
	})
}

func (s *session) poll(c *call) error {
	return s.onRun(c, func(ctx context.Context, r *run) func() {
		st, err := r.Poll(ctx)
		return func() { s.result(c, err, st.String()) }
	})
}

func (s *session) wait(c *call) error {
	return s.onRun(c, func(ctx context.Context, r *run) func() {
		err := r.Wait(ctx)
		return func() { s.result(c, err, "succeeded") }
	})
}

func (s *session) finalize(c *call) error {
	return s.onRun(c, func(ctx context.Context, r *run) func() {
		err := r.Finalize(ctx)
		return func() { s.result(c, err, fmt.Sprintf("slot %d is free", r.Identity().Slot)) }
	})
}

// learn finds out under which armings the fences stand for which runs, so that
// answers can name them.
func (l *lane) learn() {
	for _, r := range l.runs {
		if slot := r.Identity().Slot; r.arming == 0 && l.fact("fence", slot, "run_epoch") == r.Identity().RunEpoch {
			r.arming = l.fact("fence", slot, "arming")
		}
	}
}

// fact reads a fact of the machine on a slot.
func (l *lane) fact(m string, slot int, f string) uint64 {
	var v uint64
	l.Driver().View(func(w *machine.World) {
		x := w.Rules().Machine(m)
		if id, ok := x.Fact(f); ok {
			v, _ = w.Fact(w.Ref(x.ID(), slot), id)
		}
	})
	return v
}
