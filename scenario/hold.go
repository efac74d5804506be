package scenario

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// hold says at which call of the device an operation is to stop, so that the
// script can do something else in between.
type hold struct {
	call  string // of the device, or of the rules
	nth   uint64 // counts down
	after bool   // the call has been made, its answer is not told yet
}

// operation is a host operation under way, on a goroutine of its own.
type operation struct {
	c *call
	l *lane
	// told has the operation stop: at a hold, or at its end.
	told   chan stop
	resume chan answer
	at     *stop
}

// stop is where an operation stopped.
type stop struct {
	tell func() // it ended: tell the answer
	hold *hold
	call string // the device's call that it is held at
	// issued is the command that the call belongs to.
	issued issued
	panics any
}

// answer is what a held call brings.
type answer struct {
	given  bool // by hand; else the call's own
	result backend.Result
	end    bool // the script is over
}

// handPanic is the panic that a script answers a call with.
type handPanic struct{ call string }

func (p handPanic) String() string { return "by hand, at " + p.call }

var holdVerbs = []verb{
	{name: "hold", run: (*session).holdVerb, params: []param{
		{name: "call", kind: word, place: true, need: true, from: heldCalls},
		{name: "nth", kind: count, max: 1000},
		{name: "after"},
	}},
	{name: "resume", run: (*session).resume, params: []param{
		{name: "operation", kind: word, place: true, need: true, words: operations},
		{name: "run", kind: name, place: true},
		{name: "outcome", kind: word, words: []string{"refused", "failed", "panicked", "timedout"}},
		{name: "code", kind: code},
		{name: "accepted"},
	}},
	{name: "crash", run: (*session).crash},
}

var operations = []string{"open", "close", "detach", "quarantine", "prepare", "submit", "retry", "abort", "enqueue", "launch", "poll", "wait", "finalize", "recover", "hear", "fire", "queue", "init", "register", "unregister", "attach"}

// heldCalls are the calls of the device and the commands of the rules.
func heldCalls(r *machine.Rules) []string { return append(deviceCalls(), r.Calls()...) }

func (s *session) holdVerb(c *call) error {
	h := &hold{call: c.args["call"], nth: max(1, c.num("nth", 1)), after: c.has("after")}
	s.holds = append(s.holds, h)
	s.printf("hold: %s %s", h.when(), h.call)
	return nil
}

func (h *hold) when() string {
	if h.after {
		return "after"
	}
	return "before"
}

// operate carries out an operation of the present lane. Its function does the
// operation, on another goroutine, and returns how to tell what came of it.
func (s *session) operate(c *call, f func(ctx context.Context, l *lane) func()) error {
	if s.pure != nil {
		return fmt.Errorf("%s: there is no device in the pure world; leave it with \"pure end\"", c.name)
	}
	l, err := s.present()
	if err != nil {
		return err
	}
	o := &operation{c: c, l: l, told: make(chan stop), resume: make(chan answer)}
	s.mark(c.String())
	s.running = o
	go func() {
		var st stop
		defer func() {
			st.panics = recover()
			o.told <- st
		}()
		st.tell = f(patience, l)
	}()
	s.await(o)
	return nil
}

// await waits until the operation that runs stops.
func (s *session) await(o *operation) {
	st := <-o.told
	s.running = nil
	if st.hold == nil {
		o.at = nil
		s.parked = slices.DeleteFunc(s.parked, func(x *operation) bool { return x == o })
		if st.panics != nil {
			panic(st.panics)
		}
		st.tell()
		return
	}
	if o.at == nil {
		s.parked = append(s.parked, o)
	}
	o.at = &st
	s.answer(o.c, "held %s %s (%s of %s)", st.hold.when(), st.call, st.issued.call, s.opts.Rules.RefName(st.issued.ref))
}

// pass makes a call of the device, unless a hold wants it.
func (s *session) pass(l *lane, call string, make func() backend.Result) backend.Result {
	o := s.running
	i := -1
	for j, h := range s.holds {
		if o == nil || (h.call != call && h.call != l.recorder.issued.call) {
			continue
		}
		if h.nth > 1 {
			h.nth--
		} else if i < 0 {
			i = j
		}
	}
	if i < 0 {
		return make()
	}
	h := s.holds[i]
	s.holds = slices.Delete(s.holds, i, i+1)
	var r backend.Result
	if h.after {
		r = make()
	}
	issued := l.recorder.issued
	o.told <- stop{hold: h, call: call, issued: issued}
	a := <-o.resume
	l.recorder.issued = issued
	switch {
	case a.end:
		runtime.Goexit()
	case !a.given && !h.after:
		return make()
	case !a.given:
		return r
	case a.result.Outcome == machine.Panicked:
		panic(handPanic{call})
	}
	return a.result
}

// kill ends a held operation without an answer.
func (o *operation) kill() {
	o.resume <- answer{end: true}
	<-o.told
}

func (s *session) resume(c *call) error {
	if s.pure != nil {
		return errors.New("resume: leave the pure world first, with \"pure end\"")
	}
	which := c.args["operation"]
	i := slices.IndexFunc(s.parked, func(o *operation) bool {
		_, last, of := strings.Cut(o.c.name, " ")
		if !of {
			last = o.c.name
		}
		return last == which && o.c.str("run", o.c.str("ref", o.c.str("callable", o.c.str("buffer", "")))) == c.str("run", "")
	})
	if i < 0 {
		return fmt.Errorf("resume: no such operation is held")
	}
	a := answer{given: c.has("outcome")}
	if !a.given && (c.has("code") || c.has("accepted")) {
		return errors.New("resume: a code is of an outcome that is given by hand; give outcome=… too")
	}
	if a.given {
		o, err := machine.ParseOutcome(c.args["outcome"])
		if err != nil {
			return err
		}
		a.result = backend.Result{Outcome: o, Code: c.code("code", 0), Accepted: c.has("accepted")}
		a.result.LastError = a.result.Code
	}
	o := s.parked[i]
	s.running = o
	o.resume <- a
	s.await(o)
	return nil
}
