package states

import (
	"context"
	"errors"
	"fmt"

	"github.com/runfence/runfence/machine"
)

// Group is one of the three groups of objects that a run owns besides its
// communication domains (R1).
type Group uint8

// The groups.
const (
	SlotReference Group = iota // a reference to a slot of a remote worker
	Region                     // an L3–L2 region
	HostBuffer                 // a registration of a host buffer
)

// Resource is an object that is charged to a run.
type Resource struct {
	o   *Orchestrator
	ref machine.Ref
}

// Charge has the run that is being built own an object, which is given back at
// that run's fence. Keys are the caller's, from 1, unique in their group.
//
// Errors, in this order: [ErrPlaces]; [ErrDuplicate] if a run owns it already;
// [ErrZeroIdentity]; [ErrNotBuilding].
func (o *Orchestrator) Charge(ctx context.Context, g Group, key uint64) (*Resource, error) {
	obj := object{g, key}
	// The key and its place are looked up and charged in one go; the rules say
	// whether somebody has it.
	o.mu.Lock()
	defer o.mu.Unlock()
	ref, known := o.objects[obj]
	if known {
		// What was given back is nobody's, though its place be not free yet.
		st, _, current := o.d.State(ref)
		known = current && st != o.at.released && st != o.at.goneObject
	}
	if !known {
		var err error
		if ref, err = o.takePlace(o.at.resource); err != nil {
			return nil, err
		}
	}
	if _, err := o.d.Fire(ctx, ref, o.at.charge, uint64(g), key); err != nil {
		if !known {
			o.free[ref.Machine] = append(o.free[ref.Machine], ref)
		}
		return nil, err
	}
	o.objects[obj] = ref
	return &Resource{o, ref}, nil
}

// Release gives the object back ahead of its run's fence; after it, it does
// nothing. Errors: [ErrResourceRelease], each time.
func (r *Resource) Release(ctx context.Context) error {
	_, err := r.o.d.Fire(ctx, r.ref, r.o.at.releaseResource)
	if outlived(err) {
		return nil
	}
	return err
}

// outlived reports whether a handle outlived what it names: only what was given
// back makes its place free for another (R17).
func outlived(err error) bool { return errors.Is(err, machine.ErrStale) || errors.Is(err, ErrGone) }

// Domain is a communication domain. It lives until the fence of the run that
// allocated it, and must not be used after.
type Domain struct {
	o          *Orchestrator
	ref        machine.Ref
	allocation uint64
}

// AllocateDomain makes a communication domain for the run that is being built.
//
// Errors, in this order: [ErrPlaces]; [ErrDomainRanks]; [ErrLevel];
// [ErrNotBuilding]; [ErrDomainAllocate].
func (o *Orchestrator) AllocateDomain(ctx context.Context, ranks int) (*Domain, error) {
	ref, err := o.place(o.at.domain)
	if err != nil {
		return nil, err
	}
	if ranks < 0 || ranks > 1024 {
		ranks = 0
	}
	if _, err := o.d.Fire(ctx, ref, o.at.allocate, uint64(ranks)); err != nil {
		if st, _, ok := o.d.State(ref); ok && st == 0 {
			o.vacate(ref)
		}
		return nil, err
	}
	a, _ := o.d.Fact(ref, o.at.domain.MustFact("allocation"))
	return &Domain{o, ref, a}, nil
}

// Allocation is the domain's number, which the backend knows it by.
func (d *Domain) Allocation() uint64 { return d.allocation }

// Release says that its user is done with the domain. Before its run's fence
// that puts the release off to the fence, so that tasks which captured it see
// live memory (R7); after it the domain is freed at once (R8). While it is
// being freed, Release waits for that and tells its outcome (R12).
//
// Errors: [ErrDomainRelease] with the cause if the one release failed, now or
// before; [machine.ErrBusy].
func (d *Domain) Release(ctx context.Context) error {
	reply, err := d.o.d.Fire(ctx, d.ref, d.o.at.releaseDomain)
	switch {
	case outlived(err):
		return nil
	case errors.Is(err, ErrDomainRelease):
		d.o.mu.Lock()
		cause := d.o.failures[d.allocation]
		d.o.mu.Unlock()
		if cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
	case err == nil && reply.State == d.o.at.freed:
		d.o.recycle()
	}
	return err
}

// Freed reports whether the backend's release was executed, with success. It
// is false while the release is under way (R13, R24).
func (d *Domain) Freed() bool {
	st, _, current := d.o.d.State(d.ref)
	return !current || st == d.o.at.freed || st == d.o.at.gone
}

// Residue lists the allocations whose release failed (R14).
func (o *Orchestrator) Residue() []uint64 {
	m := o.at.domain
	failed, _ := m.State("failed")
	var out []uint64
	o.d.View(func(w *machine.World) {
		for s := range w.Capacity(m.ID()) {
			if st, _, _ := w.State(w.Ref(m.ID(), s)); st == failed {
				a, _ := w.Fact(w.Ref(m.ID(), s), m.MustFact("allocation"))
				out = append(out, a)
			}
		}
	})
	return out
}
