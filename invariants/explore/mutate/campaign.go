package mutate

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
)

// Fate is what became of a mutant.
type Fate string

// The fates.
const (
	// Stillborn: it does not compile. It is no part of the score.
	Stillborn Fate = "stillborn"
	// Killed: a killer noticed it.
	Killed Fate = "killed"
	// Equivalent: within its bounds, an exploration showed that it makes no difference.
	Equivalent Fate = "equivalent"
	// Hole: nobody noticed it.
	Hole Fate = "hole"
)

// Outcome is what became of one mutant.
type Outcome struct {
	Patch patch.Patch `json:"-"`
	ID    string      `json:"id"`
	Fate  Fate        `json:"fate"`
	// By is the killer; How is what it noticed, why the mutant does not compile,
	// in which bounds it makes no difference, or which difference nobody noticed.
	By  string `json:"by,omitempty"`
	How string `json:"how,omitempty"`
}

// Differ says whether a mutant makes any difference within its bounds. It is
// asked about those that no killer noticed, and is safe for concurrent use.
type Differ interface {
	// Same says within which bounds the mutant makes no difference; or that it
	// does, and which.
	Same(m *Mutant) (how string, same bool, err error)
}

// Campaign breaks rules and looks what becomes of it.
type Campaign struct {
	Rules   Rules
	Mutants []patch.Patch
	// Killers are asked in order: the cheapest first.
	Killers []Killer
	// Differ judges the survivors; nil takes all for holes.
	Differ Differ
	// Workers is how many goroutines there are; 0 is as many as GOMAXPROCS. What
	// comes out does not depend on it.
	Workers int
	// Progress, if not nil, is called after each mutant, by one goroutine at a time.
	Progress func(done int, o Outcome)
}

// Run returns an outcome for each mutant, in their order. It stops early if
// ctx ends, with its error.
func (c *Campaign) Run(ctx context.Context) ([]Outcome, error) {
	workers := c.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	out := make([]Outcome, len(c.Mutants))
	var (
		next   atomic.Int64
		group  sync.WaitGroup
		mu     sync.Mutex
		done   int
		failed error
	)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range workers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(c.Mutants) || ctx.Err() != nil {
					return
				}
				o, err := c.judge(c.Mutants[i])
				out[i] = o
				mu.Lock()
				if err != nil {
					failed = errors.Join(failed, err)
					stop()
				}
				if done++; c.Progress != nil && err == nil {
					c.Progress(done, o)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if failed != nil {
		return nil, failed
	}
	return out, ctx.Err()
}

// judge asks the killers about one mutant, and what difference it makes if none
// noticed it.
func (c *Campaign) judge(p patch.Patch) (Outcome, error) {
	o := Outcome{Patch: p, ID: p.String()}
	m, err := c.Rules.Mutant(p)
	var no *machine.DefinitionError
	switch {
	case errors.As(err, &no):
		o.Fate, o.How = Stillborn, no.Error()
		return o, nil
	case err != nil:
		return o, err
	}
	for _, k := range c.Killers {
		how, killed, err := k.Kill(m)
		if err != nil {
			return o, err
		}
		if killed {
			o.Fate, o.By, o.How = Killed, k.Name(), how
			return o, nil
		}
	}
	o.Fate = Hole
	if c.Differ != nil {
		how, same, err := c.Differ.Same(m)
		if err != nil {
			return o, err
		}
		if o.How = how; same {
			o.Fate = Equivalent
		}
	}
	return o, nil
}
