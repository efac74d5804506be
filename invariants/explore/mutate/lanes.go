package mutate

import (
	"context"
	"errors"
	"fmt"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/invariants/model"
)

// Lanes is a [Killer]: lanes on a simulated device, within bounds as
// [model.ParseConfig] reads them, explored as far as Most states each.
type Lanes struct {
	Bounds []string
	Most   uint64
}

// SmallLanes are quick to explore.
func SmallLanes() Lanes {
	return Lanes{Most: 3_000, Bounds: []string{
		"runs=1 records expiries=1 polls=1",
		"runs=1 caller async strangers close",
		"runs=2 faults=1 spare=1",
		"runs=2 slots=2 depth=2 submit caller",
		"runs=1 recoveries=1 faults=2 kinds=fail-after,unconfirmed",
		"runs=1 borrowed recoveries=1 quarantine faults=1 kinds=fail-after",
	}}
}

// Name implements [Killer].
func (l Lanes) Name() string { return "lane" }

// Kill implements [Killer].
func (l Lanes) Kill(m *Mutant) (how string, killed bool, err error) {
	if m.Above {
		return "", false, nil
	}
	for _, b := range l.Bounds {
		if how, err := l.kill(b, m); how != "" || err != nil {
			return how, how != "", err
		}
	}
	return "", false, nil
}

func (l Lanes) kill(bounds string, m *Mutant) (how string, err error) {
	defer func() {
		if p := recover(); p != nil {
			how = fmt.Sprintf("%s: panic: %v", bounds, p)
		}
	}()
	sys, err := System(bounds, m)
	if errors.Is(err, model.ErrConfig) {
		return "", err
	}
	if err != nil {
		return fmt.Sprintf("%s: %v", bounds, err), nil // no lane comes up
	}
	r, err := explore.Search(context.Background(), sys, explore.Options{MaxStates: l.Most, Workers: 1})
	switch {
	case errors.Is(err, explore.ErrUnfaithful):
		return fmt.Sprintf("%s: %v", bounds, err), nil
	case err != nil:
		return "", err
	case len(r.Findings) > 0:
		return fmt.Sprintf("%s: %v", bounds, &r.Findings[0].Finding), nil
	}
	return "", nil
}
