package scenario

import (
	"context"
	"errors"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/states"
)

// bufferVerbs are sources of the present lane's environment, and buffers that
// they wrapped. The names of both are the script's, not a lane's: what is shown
// is a buffer of one environment in another.
var bufferVerbs = []verb{
	{name: "buffer source", run: (*session).bufferSource, params: []param{newName("source")}},
	{name: "buffer wrap", run: (*session).bufferWrap, params: []param{newName("buffer"), {name: "of", kind: name, need: true}, {name: "memory", kind: name, need: true}}},
	{name: "buffer validate", run: onBuffer("it is of this environment", func(_ context.Context, s *states.BufferSource, b states.Buffer) error {
		return s.Validate(b)
	}), params: bufferBy},
	{name: "buffer attach", run: onBuffer("its memory may be used", func(ctx context.Context, s *states.BufferSource, b states.Buffer) error {
		_, err := s.Attach(ctx, b)
		return err
	}), params: bufferBy},
}

var bufferBy = []param{newName("buffer"), {name: "by", kind: name, need: true}}

// lookup finds what a script named.
func lookup[T any](what, n string, in map[string]T) (T, error) {
	x, ok := in[n]
	if ok {
		return x, nil
	}
	var known []string
	for other := range in {
		known = append(known, other)
	}
	return x, errors.New(machine.Unknown(what, n, known))
}

func (s *session) bufferSource(c *call) error {
	return s.operate(c, func(_ context.Context, l *lane) func() {
		src, err := states.NewBufferSource(l.Environment())
		if err == nil {
			s.sources[c.args["source"]] = src
		}
		return func() { s.bufferResult(c, err, "the identity is captured") }
	})
}

func (s *session) bufferWrap(c *call) error {
	src, err := lookup("source", c.args["of"], s.sources)
	if err != nil {
		return err
	}
	m, err := s.named(c, "memory", sim.KindMemory)
	if err != nil {
		return err
	}
	return s.operate(c, func(context.Context, *lane) func() {
		b, err := src.Wrap(backend.Span{Mem: backend.Memory(m)})
		if err == nil {
			s.buffers[c.args["buffer"]] = b
		}
		return func() { s.bufferResult(c, err, "it bears the source's identity") }
	})
}

func onBuffer(ok string, f func(context.Context, *states.BufferSource, states.Buffer) error) func(*session, *call) error {
	return func(s *session, c *call) error {
		b, err := lookup("buffer", c.args["buffer"], s.buffers)
		if err != nil {
			return err
		}
		src, err := lookup("source", c.args["by"], s.sources)
		if err != nil {
			return err
		}
		return s.operate(c, func(context.Context, *lane) func() {
			err := f(free, src, b)
			return func() { s.bufferResult(c, err, ok) }
		})
	}
}

// bufferResult says of a foreign buffer no more than that: the identities are
// numbers of the process.
func (s *session) bufferResult(c *call, err error, ok string) {
	var foreign *states.SourceError
	switch {
	case !errors.As(err, &foreign):
		s.result(c, err, ok)
	case foreign.Now == (states.EnvironmentIdentity{}):
		s.answer(c, "refused: its environment is gone")
	default:
		s.answer(c, "refused: it is of another environment")
	}
}
