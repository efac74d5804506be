package states

import (
	"context"
	"fmt"

	"github.com/runfence/runfence/backend"
)

// BufferSource is where buffers come from: device memory of one environment. It
// captures the identity of the environment that it was made in, and compares it
// with the present one whenever a buffer is wrapped, validated or attached
// (F57). The identity has nothing to do with the generations of runs, leases or
// buffers.
//
// A match says that the buffer goes to the environment it came from. It does
// not say that no one reset the device meanwhile, nor that the memory is the
// caller's (F58).
type BufferSource struct {
	env  *EnvironmentView
	from EnvironmentIdentity
}

// Buffer is device memory with the identity of the source that wrapped it.
type Buffer struct {
	span backend.Span
	from EnvironmentIdentity
}

// Span returns the memory that the buffer describes.
func (b Buffer) Span() backend.Span { return b.span }

// SourceError says that a buffer or its source is of another environment.
type SourceError struct {
	// Source is the environment that was captured, Now the present one. It is
	// zero if there is none any more.
	Source, Now EnvironmentIdentity
}

// Error names both environments.
func (e *SourceError) Error() string {
	return fmt.Sprintf("buffer of environment %+v in environment %+v", e.Source, e.Now)
}

// Is reports whether the target is [ErrStaleIdentity].
func (e *SourceError) Is(target error) bool { return target == error(ErrStaleIdentity) }

// NewBufferSource captures the identity of the environment. Errors:
// [ErrNotInitialised] where there is none, [ErrForeignProcess].
func NewBufferSource(env *EnvironmentView) (*BufferSource, error) {
	id, err := env.Identity()
	if err != nil {
		return nil, err
	}
	if id == (EnvironmentIdentity{}) {
		return nil, ErrNotInitialised
	}
	return &BufferSource{env: env, from: id}, nil
}

// Wrap makes a buffer of memory of the source. Errors: a [*SourceError] if the
// source's environment is not the present one; [ErrForeignProcess].
func (s *BufferSource) Wrap(span backend.Span) (Buffer, error) {
	if err := s.same(s.from); err != nil {
		return Buffer{}, err
	}
	return Buffer{span: span, from: s.from}, nil
}

// Validate checks that a buffer is of the source's environment, and that this
// is the present one. Errors: those of Wrap.
func (s *BufferSource) Validate(b Buffer) error {
	if err := s.same(b.from); err != nil {
		return err
	}
	return s.same(s.from)
}

// Attach validates a buffer and returns its memory for use under the present
// context, which must be the environment's: nothing is entered before. Errors:
// those of Wrap and of [EnvironmentView.Check].
func (s *BufferSource) Attach(ctx context.Context, b Buffer) (backend.Span, error) {
	if err := s.Validate(b); err != nil {
		return backend.Span{}, err
	}
	if err := s.env.Check(ctx); err != nil {
		return backend.Span{}, err
	}
	return b.span, nil
}

func (s *BufferSource) same(id EnvironmentIdentity) error {
	now, err := s.env.Identity()
	if err != nil {
		return err
	}
	if now != id {
		return &SourceError{Source: id, Now: now}
	}
	return nil
}
