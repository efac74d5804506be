package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runfence/runfence/backend"
)

// Policy picks among what may happen next, while a call of the backend face is
// under way. Pick returns an index into the choices, which are never empty.
//
// A policy decides device moves, call effects, expiries and, within the
// [Config.Budget], faults.
type Policy interface {
	Pick(d *Device, choices []Choice) int
}

// SetPolicy sets the policy of the backend face; nil is the default, which is
// [Timed] without building choice lists.
func (d *Device) SetPolicy(p Policy) { d.policy = p }

// Due returns the virtual time at which a choice is due, and false for a fault,
// which is due at no time.
func (d *Device) Due(c Choice) (time.Duration, bool) {
	t := d.due(c)
	return time.Duration(t), t != never
}

// scratch is working memory, kept to allocate nothing.
type scratch struct {
	offered, picking []Choice
	canon            canon
	reading          []byte
}

// Timed picks what is due first. At one instant, calls that can return do so
// first; then the device moves, notices arrive, calls take effect, and waits
// expire, in this order. It injects no fault.
type Timed struct{}

// Pick implements [Policy].
func (Timed) Pick(d *Device, choices []Choice) int {
	best, at, rank := 0, int64(never), 0
	for i, c := range choices {
		if c.Kind.Fault() {
			continue
		}
		t, r := d.due(c), rankOf(c.Kind)
		if t < at || (t == at && r < rank) {
			best, at, rank = i, t, r
		}
	}
	return best
}

func rankOf(k ChoiceKind) int {
	switch k {
	case ChooseReturn:
		return 0
	case ChooseFlag, ChooseEntry:
		return 1
	case ChooseNotice:
		return 2
	case ChooseEffect:
		return 3
	}
	return 4
}

// Random picks with a seeded generator. One pick in Rare takes from the rare
// choices, expiries and faults, if there is any; the others do so only if there
// is nothing else.
type Random struct {
	rng  *rand.Rand
	rare int
}

// NewRandom returns a policy that follows from its seed alone. Rare must be at
// least 1.
func NewRandom(seed uint64, rare int) *Random {
	return &Random{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), rare: max(rare, 1)}
}

// Pick implements [Policy].
func (r *Random) Pick(_ *Device, choices []Choice) int {
	rare := 0
	for _, c := range choices {
		if isRare(c.Kind) {
			rare++
		}
	}
	common := len(choices) - rare
	wantRare := common == 0 || (rare > 0 && r.rng.IntN(r.rare) == 0)
	n := common
	if wantRare {
		n = rare
	}
	k := r.rng.IntN(n)
	for i, c := range choices {
		if isRare(c.Kind) != wantRare {
			continue
		}
		if k == 0 {
			return i
		}
		k--
	}
	panic("sim: counted choices are gone")
}

func isRare(k ChoiceKind) bool { return k == ChooseExpire || k.Fault() }

// Recorded replays a list of choices. Once the list ends, or names a choice
// that is not offered, it goes on as [Timed]; the latter is remembered in Err.
type Recorded struct {
	list []Choice
	next int
	err  error
}

// NewRecorded returns a policy that replays the list.
func NewRecorded(list []Choice) *Recorded { return &Recorded{list: list} }

// Pick implements [Policy].
func (r *Recorded) Pick(d *Device, choices []Choice) int {
	if r.err == nil && r.next < len(r.list) {
		want := r.list[r.next]
		for i, c := range choices {
			if c == want {
				r.next++
				return i
			}
		}
		r.err = fmt.Errorf("%w: choice %d of the recording, %v", ErrNotOffered, r.next, want)
	}
	return Timed{}.Pick(d, choices)
}

// Err returns the first choice that was not offered, wrapping [ErrNotOffered].
func (r *Recorded) Err() error { return r.err }

// Left returns how many recorded choices were not used.
func (r *Recorded) Left() int { return len(r.list) - r.next }

// Recording notes what another policy picks, for [NewRecorded].
type Recording struct {
	Policy  Policy
	Choices []Choice
}

// Pick implements [Policy].
func (r *Recording) Pick(d *Device, choices []Choice) int {
	i := r.Policy.Pick(d, choices)
	r.Choices = append(r.Choices, choices[i])
	return i
}

// chosen carries out a call under a policy.
func (d *Device) chosen(op *Op) Answer {
	t := d.Begin(*op)
	for {
		if c := &d.calls[indexOf(uint64(t))]; c.phase == callDone {
			took := c.strike.call == PanicAfter
			a, _ := d.Take(t)
			if a.Outcome == backend.Panicked {
				panic(&Panic{Op: op.Kind, Took: took})
			}
			return a
		}
		d.step()
	}
}

// step lets the policy pick one choice. There is always one: a call is under way.
func (d *Device) step() Choice {
	d.scratch.picking = d.Choices(d.scratch.picking[:0])
	c := d.scratch.picking[d.policy.Pick(d, d.scratch.picking)]
	d.apply(c)
	return c
}
