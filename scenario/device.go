package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
)

var deviceVerbs = []verb{
	{name: "device", run: (*session).deviceVerb, params: []param{
		{name: "id", kind: count},
		{name: "borrowed"},
		{name: "unrecorded", kind: word, words: []string{"passes", "hangs"}},
		{name: "copytime", kind: duration},
		{name: "querytime", kind: duration},
		{name: "noticetime", kind: duration},
		{name: "ring", kind: count, max: 1024},
		{name: "memory", kind: count, max: 64 << 20},
		{name: "residue"},
	}},
	{name: "kernel", sim: true, run: (*session).kernelVerb, params: []param{
		{name: "name", kind: name, place: true, need: true},
		{name: "class", kind: word, need: true, words: []string{"core", "cpu"}},
		{name: "time", kind: duration},
		{name: "paired"},
		{name: "spin"},
		{name: "flag", kind: duration},
		{name: "exit", kind: code},
		{name: "store", kind: word, words: []string{"start", "flag", "exit", "fatal"}},
		{name: "value", kind: count, max: 255},
		{name: "record", kind: word, words: recordClasses},
	}},
	{name: "fault", sim: true, run: (*session).fault, params: []param{
		{name: "call", kind: word, place: true, need: true, from: func(*machine.Rules) []string { return deviceCalls() }},
		{name: "kind", kind: word, place: true, need: true, words: faultKinds()},
		{name: "nth", kind: count, max: 1000},
		{name: "each"},
		{name: "code", kind: code},
		{name: "delay", kind: duration},
	}},
	{name: "context", sim: true, run: (*session).contextVerb, params: []param{{name: "name", kind: name, place: true, need: true}}},
	{name: "thread", sim: true, run: (*session).thread, params: []param{{name: "number", kind: count, place: true, need: true, max: 7}}},
	{name: "advance", sim: true, run: (*session).advance, params: []param{{name: "by", kind: text, place: true, need: true}}},
	{name: "now", sim: true, run: (*session).nowVerb},
}

func faultKinds() []string {
	var out []string
	for k := sim.Refuse; k <= sim.Unconfirmed; k++ {
		out = append(out, k.String())
	}
	return out
}

func (s *session) deviceVerb(c *call) error {
	if s.dev != nil {
		return errors.New("device: there is one already; say what it is before anything uses it")
	}
	cfg := sim.Config{
		Device: int32(c.num("id", 0)), Borrowed: c.has("borrowed"), Residue: c.has("residue"),
		CopyTime: c.dur("copytime", 0), QueryTime: c.dur("querytime", 0), NoticeTime: c.dur("noticetime", 0),
		NoticeRing: int(c.num("ring", 0)), MemoryLimit: c.num("memory", 0),
	}
	if c.str("unrecorded", "") == "hangs" {
		cfg.Unrecorded = sim.Hangs
	}
	if _, err := s.makeDevice(cfg); err != nil {
		return err
	}
	if s.sim == nil {
		for _, p := range c.params {
			if c.has(p.name) && p.name != "id" && p.name != "borrowed" {
				return &SimulatorOnlyError{Verb: "device " + p.name}
			}
		}
	}
	policy := "owned"
	if cfg.Borrowed {
		policy = "borrowed"
	}
	s.printf("device %d: %s", cfg.Device, policy)
	return nil
}

const maxKernels = 256

// recordClasses are what a run's own record may say, in the order of their numbers.
var recordClasses = []string{"ok", "header", "participant", "unclaimed", "unmarked"}

func (s *session) kernelVerb(c *call) error {
	if len(s.kernels) == maxKernels {
		return fmt.Errorf("more than %d kernels: %w", maxKernels, ErrTooLarge)
	}
	k := sim.KernelSpec{
		Name: c.args["name"], Duration: c.dur("time", 0), Paired: c.has("paired"), Spin: c.has("spin"),
		Flag: c.has("flag"), FlagAfter: c.dur("flag", 0), Exit: c.code("exit", 0),
	}
	if c.args["class"] == "cpu" {
		k.Class = backend.AICPU
	}
	if k.Spin && !k.Paired {
		return errors.New("kernel: only a paired kernel can spin")
	}
	if k.FlagAfter > k.Duration {
		return errors.New("kernel: the flag comes before the end")
	}
	if c.has("value") != c.has("store") {
		return errors.New("kernel: store=… says when, and value=… what; give both")
	}
	if c.has("store") {
		when := sim.Phase(slices.Index([]string{"start", "flag", "exit", "fatal"}, c.args["store"]))
		k.Stores = []sim.Store{{When: when, Size: 1, Value: c.num("value", 0)}}
	}
	if c.has("record") {
		class := slices.Index(recordClasses, c.args["record"])
		// The head of the arguments has the result region's handle and the epoch.
		k.Stores = append(k.Stores,
			sim.Store{When: sim.AtExit, Through: true, Size: 8, FromArgs: true, Value: 8},
			sim.Store{When: sim.AtExit, Through: true, Offset: 8, Size: 4, Value: uint64(class)})
	}
	s.kernels[k.Name] = s.sim.Define(k)
	text := "AICore"
	if k.Class == backend.AICPU {
		text = "AICPU"
	}
	text += ", " + us(k.Duration)
	for _, p := range []struct {
		on   bool
		text string
	}{
		{k.Paired, ", paired"},
		{k.Spin, ", spins for its partner"},
		{k.Flag, ", sets its flag after " + us(k.FlagAfter)},
		{c.has("record"), ", records " + c.str("record", "")},
		{k.Exit != 0, ", exits with " + k.Exit.Brief()},
	} {
		if p.on {
			text += p.text
		}
	}
	s.printf("kernel %s: %s", k.Name, text)
	return nil
}

func (s *session) fault(c *call) error {
	op, err := sim.ParseOpKind(c.args["call"])
	if err != nil {
		return err
	}
	k, err := sim.ParseFaultKind(c.args["kind"])
	if err != nil {
		return err
	}
	f := sim.Fault{Op: op, Kind: k, Nth: uint32(max(1, c.num("nth", 1))), Code: c.code("code", 0), Delay: c.dur("delay", 0)}
	which := "the next " + op.String()
	switch {
	case c.has("each") && c.has("nth"):
		return errors.New("fault: each and nth exclude each other")
	case c.has("each"):
		f.Nth, which = 0, "each "+op.String()
	case f.Nth > 1:
		which = fmt.Sprintf("the %s %s from now", ordinal(int(f.Nth)), op)
	}
	if err := s.sim.Inject(f); err != nil {
		return err
	}
	text := k.String()
	if f.Code != 0 {
		text += " " + f.Code.Brief()
	}
	if f.Delay != 0 {
		text += " " + us(f.Delay)
	}
	s.printf("fault: %s: %s", which, text)
	return nil
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

const maxContexts = 64

// contextVerb makes another context current on the present thread.
func (s *session) contextVerb(c *call) error {
	n := c.args["name"]
	x, ok := s.naming.contexts[n]
	if !ok {
		if len(s.naming.contexts) == maxContexts {
			return fmt.Errorf("more than %d contexts: %w", maxContexts, ErrTooLarge)
		}
		x = s.sim.NewContext(false)
		s.naming.contexts[n] = x
	}
	s.sim.SetCurrent(x)
	s.printf("context: %s is current", n)
	return nil
}

// thread changes the host thread that calls come from.
func (s *session) thread(c *call) error {
	s.sim.SetThread(int(c.num("number", 0)))
	s.printf("thread: %s", c.args["number"])
	return nil
}

func (s *session) advance(c *call) error {
	by := c.args["by"]
	if by == "next" {
		if !s.sim.AdvanceToNext() {
			s.answer(c, "nothing is due")
			return nil
		}
		s.printf("advance: now %s", us(s.now()))
		return nil
	}
	d, err := parseDuration(by)
	if err != nil {
		return fmt.Errorf("advance: %w, or next", err)
	}
	if s.now() > maxNow-d {
		return fmt.Errorf("advance: the clock would pass %v: %w", maxNow, ErrTooLarge)
	}
	s.sim.Advance(d)
	s.printf("advance: now %s", us(s.now()))
	return nil
}

const maxNow = 100 * 24 * time.Hour

func (s *session) nowVerb(*call) error {
	s.printf("now: %s", us(s.now()))
	return nil
}
