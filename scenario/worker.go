package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runfence/runfence/states"
)

// workerVerbs drive a worker: a lane with a mode and with callables.
var workerVerbs = []verb{
	{name: "worker new", run: (*session).workerNew, params: append([]param{
		{name: "name", kind: name, place: true},
		{name: "mode", kind: word, words: []string{"PROGRAM", "KERNEL"}},
		{name: "sdma"},
		{name: "simulator"},
		{name: "noauto"},
		{name: "budget", kind: count, max: 1 << 20},
	}, laneParams...)},
	{name: "worker init", run: (*session).workerInit},
	{name: "worker close", run: (*session).workerClose},
	{name: "worker register", run: (*session).register, params: []param{
		newName("callable"),
		{name: "image", kind: text},
		{name: "size", kind: count, max: 1 << 20},
		{name: "at", kind: count},
		{name: "times", kind: count, max: 100},
		{name: "tensors", kind: count},
		{name: "scalars", kind: count},
	}},
	{name: "worker unregister", run: (*session).unregister, params: []param{newName("callable")}},
	{name: "worker live", run: (*session).live, params: []param{newName("callable")}},
}

// callable is a registration as the script knows it: its counts are what the
// executor has on record for it.
type callable struct {
	states.Callable
	tensors, scalars uint32
}

func (s *session) workerNew(c *call) error {
	n := c.str("name", "worker")
	switch {
	case s.lanes[n] != nil:
		return fmt.Errorf("%s is made already; go back to it with \"lane %s\"", n, n)
	case len(s.lanes) == maxLanes:
		return fmt.Errorf("more than %d lanes: %w", maxLanes, ErrTooLarge)
	}
	d, err := s.device()
	if err != nil {
		return err
	}
	cfg, err := laneConfig(c)
	if err != nil {
		return err
	}
	w := states.WorkerConfig{
		Config: cfg, Mode: states.Program, SDMA: c.has("sdma"), Simulator: c.has("simulator"),
		NoAutomaticIDs: c.has("noauto"), Budget: c.num("budget", 0),
	}
	if c.str("mode", "") == "KERNEL" {
		w.Mode = states.Kernel
	}
	// Tried on its own first, so that options which are refused leave no lane.
	try := w
	try.Backend = d.Backend
	if _, err := states.NewChipWorker(try); err != nil {
		s.result(c, err, "")
		return nil
	}
	if err := s.makeLane(n, cfg, &w); err != nil {
		return err
	}
	s.printf("worker new %s: %s, %s", n, w.Mode, laneText(cfg))
	return nil
}

// chip returns the present worker.
func (s *session) chip(c *call) (*lane, error) {
	l, err := s.present()
	if err == nil && l.chip == nil {
		err = errors.New(c.name + `: the present lane is no worker's; make one with "worker new"`)
	}
	return l, err
}

// onChip is operate for an operation of the present worker.
func (s *session) onChip(c *call, f func(ctx context.Context, l *lane) func()) error {
	if _, err := s.chip(c); err != nil {
		return err
	}
	return s.operate(c, f)
}

func (s *session) workerInit(c *call) error {
	return s.onChip(c, func(ctx context.Context, l *lane) func() {
		err := l.chip.Init(ctx)
		return func() { s.result(c, err, "initialised") }
	})
}

func (s *session) workerClose(c *call) error {
	return s.onChip(c, func(ctx context.Context, l *lane) func() {
		err := l.chip.Close(ctx)
		return func() { s.result(c, err, "closed") }
	})
}

// register registers an image once, or several times under names that are
// numbered from 1.
func (s *session) register(c *call) error {
	image := []byte(c.str("image", c.args["callable"]))
	if size := int(c.num("size", 0)); size > 0 {
		image = []byte(strings.Repeat(string(image)+" ", size/(len(image)+1)+1)[:size])
	}
	return s.onChip(c, func(ctx context.Context, l *lane) func() {
		var got []states.Callable
		for i := range max(1, c.num("times", 1)) {
			n := c.args["callable"]
			if c.has("times") {
				n = fmt.Sprintf("%s%d", n, i+1)
			}
			var x states.Callable
			var err error
			if c.has("at") {
				x, err = l.chip.RegisterAt(ctx, int(c.num("at", 0)), image)
			} else {
				x, err = l.chip.Register(ctx, image)
			}
			if err != nil {
				return func() { s.answer(c, "%s; the id is %d", s.said(s.opts.Rules, err), x.ID) }
			}
			l.callables[n] = callable{x, uint32(c.num("tensors", 0)), uint32(c.num("scalars", 0))}
			got = append(got, x)
		}
		text := fmt.Sprintf("id %d", got[0].ID)
		if n := len(got); n > 1 {
			text = fmt.Sprintf("ids %d to %d", got[0].ID, got[n-1].ID)
		}
		return func() { s.answer(c, "%s", text) }
	})
}

// callable returns a callable of the present worker by name.
func (l *lane) callable(n string) (callable, error) { return lookup("callable", n, l.callables) }

// onCallable is onChip for an operation on a callable. Its name stays after it
// is unregistered, for a handle that is stale.
func (s *session) onCallable(c *call, f func(ctx context.Context, l *lane, x callable) func()) error {
	l, err := s.chip(c)
	if err != nil {
		return err
	}
	x, err := l.callable(c.args["callable"])
	if err != nil {
		return err
	}
	return s.operate(c, func(ctx context.Context, l *lane) func() { return f(ctx, l, x) })
}

func (s *session) unregister(c *call) error {
	return s.onCallable(c, func(ctx context.Context, l *lane, x callable) func() {
		err := l.chip.Unregister(ctx, x.Callable)
		return func() { s.result(c, err, fmt.Sprintf("id %d is free", x.ID)) }
	})
}

func (s *session) live(c *call) error {
	return s.onCallable(c, func(_ context.Context, l *lane, x callable) func() {
		text := fmt.Sprintf("no: id %d is not this callable's", x.ID)
		if l.chip.Live(x.Callable) {
			text = fmt.Sprintf("yes: id %d", x.ID)
		}
		return func() { s.answer(c, "%s", text) }
	})
}
