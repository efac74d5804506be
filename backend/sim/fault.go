package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runfence/runfence/backend"
)

// FaultKind says what goes wrong, and when.
type FaultKind uint8

const (
	// Refuse: the call is not attempted.
	Refuse FaultKind = iota + 1
	// FailBefore: the call is attempted, has no effect, and fails.
	FailBefore
	// FailAfter: the call takes effect and fails, and does not say that it was accepted.
	FailAfter
	// FailAccepted: the call takes effect, is known to be accepted, and fails.
	FailAccepted
	// PanicBefore: the call panics with a [*Panic] and has no effect.
	PanicBefore
	// PanicAfter: the call takes effect and panics with a [*Panic].
	PanicAfter
	// Hang: a bounded wait is not answered until it expires.
	Hang
	// KernelFatal: the submitted kernel returns a fatal status.
	KernelFatal
	// KernelHang: the submitted kernel never returns. It publishes its flag.
	KernelHang
	// NoticeLate: the notice of the submitted kernel's fatal status comes Delay after it.
	NoticeLate
	// NoticeLost: the submitted kernel's fatal status posts no notice.
	NoticeLost
	// Unconfirmed: a reset has no effect and is not confirmed. Without a code
	// the call itself still reports success.
	Unconfirmed

	numFaults = int(Unconfirmed) + 1
)

var faultNames = [numFaults]string{
	"", "refuse", "fail-before", "fail-after", "fail-accepted", "panic-before", "panic-after",
	"hang", "kernel-fatal", "kernel-hang", "notice-late", "notice-lost", "unconfirmed",
}

// String returns the kind's name, such as "fail-after".
func (k FaultKind) String() string {
	if k > 0 && int(k) < numFaults {
		return faultNames[k]
	}
	return "fault(" + strconv.Itoa(int(k)) + ")"
}

// ParseFaultKind is the inverse of [FaultKind.String].
func ParseFaultKind(s string) (FaultKind, error) {
	for i := 1; i < numFaults; i++ {
		if faultNames[i] == s {
			return FaultKind(i), nil
		}
	}
	return 0, fmt.Errorf("sim: unknown fault %q: want one of %s", s, strings.Join(faultNames[1:], " "))
}

// fits reports whether the fault can strike a call of kind op.
func (k FaultKind) fits(op OpKind) bool {
	switch k {
	case Refuse, FailBefore, FailAfter, PanicBefore, PanicAfter:
		return op != OpNone && op != OpNotices
	case FailAccepted:
		return op.Enqueues()
	case Hang:
		return op.Blocking()
	case KernelFatal, KernelHang, NoticeLate, NoticeLost:
		return op == OpSubmitAICore || op == OpSubmitAICPU
	case Unconfirmed:
		return op == OpReset
	}
	return false
}

// Fault is one entry of a fault plan: which call, which of them, what happens.
type Fault struct {
	Op OpKind
	// Nth counts the calls of kind Op from 1; zero strikes each of them.
	Nth  uint32
	Kind FaultKind
	// Code is the code reported; zero picks the usual one: for a kernel the
	// exception of its class, for a call [backend.InternalError].
	Code backend.Code
	// Delay is for NoticeLate.
	Delay time.Duration
}

// String writes the fault as [ParseFault] reads it: "RecordEvent#2 fail-after
// 507000", "SubmitAICPU#1 notice-late 16s", "QueryStream#* refuse".
func (f Fault) String() string {
	nth := "*"
	if f.Nth > 0 {
		nth = strconv.FormatUint(uint64(f.Nth), 10)
	}
	s := f.Op.String() + "#" + nth + " " + f.Kind.String()
	if f.Code != 0 {
		s += " " + strconv.Itoa(int(f.Code))
	}
	if f.Delay != 0 {
		s += " " + f.Delay.String()
	}
	return s
}

// ParseFault is the inverse of [Fault.String].
func ParseFault(s string) (Fault, error) {
	words := strings.Fields(s)
	if len(words) < 2 || len(words) > 4 {
		return Fault{}, fmt.Errorf("sim: fault %q: want CALL#NTH KIND [CODE] [DELAY]", s)
	}
	var f Fault
	call, nth, counted := strings.Cut(words[0], "#")
	var err error
	if f.Op, err = ParseOpKind(call); err != nil {
		return Fault{}, err
	}
	if !counted {
		return Fault{}, fmt.Errorf("sim: fault %q: want #NTH or #* after the call", s)
	}
	if nth != "*" {
		n, err := strconv.ParseUint(nth, 10, 32)
		if err != nil || n == 0 {
			return Fault{}, fmt.Errorf("sim: fault %q: %q counts no call: they are counted from 1", s, nth)
		}
		f.Nth = uint32(n)
	}
	if f.Kind, err = ParseFaultKind(words[1]); err != nil {
		return Fault{}, err
	}
	for _, w := range words[2:] {
		if c, err := strconv.ParseInt(w, 10, 32); err == nil {
			f.Code = backend.Code(c)
			continue
		}
		if f.Delay, err = time.ParseDuration(w); err != nil {
			return Fault{}, fmt.Errorf("sim: fault %q: %q is neither a code nor a duration", s, w)
		}
	}
	return f, f.validate()
}

func (f Fault) validate() error {
	if !f.Kind.fits(f.Op) {
		return fmt.Errorf("sim: fault %v cannot strike %v", f.Kind, f.Op)
	}
	if f.Delay < 0 || (f.Delay != 0 && f.Kind != NoticeLate) {
		return fmt.Errorf("sim: fault %v has a delay of %v", f, f.Delay)
	}
	return nil
}

// Panic is the value with which a call panics.
type Panic struct {
	Op OpKind
	// Took reports whether the call had taken effect.
	Took bool
}

// Error describes the panic.
func (p *Panic) Error() string {
	if p.Took {
		return "sim: injected panic after " + p.Op.String()
	}
	return "sim: injected panic before " + p.Op.String()
}

// FaultSet is a set of fault kinds.
type FaultSet uint16

// Faults returns the set of the given kinds.
func Faults(kinds ...FaultKind) FaultSet {
	var s FaultSet
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in the set.
func (s FaultSet) Has(k FaultKind) bool { return s&(1<<k) != 0 }

// strike is what the plan has for one call.
type strike struct {
	call   FaultKind // Refuse to Hang, or Unconfirmed; zero: none
	code   backend.Code
	hang   bool
	lost   bool
	fatal  backend.Code
	notice int64 // zero: as configured
	late   bool
}

// consult counts the call and looks it up in the plan. If several faults of
// the call itself fit, the first in the plan strikes.
func (d *Device) consult(op *Op) strike {
	d.nth[op.Kind]++
	var st strike
	for i := range d.cfg.Plan {
		f := &d.cfg.Plan[i]
		if f.Op != op.Kind || (f.Nth != 0 && f.Nth != d.nth[op.Kind]) {
			continue
		}
		switch f.Kind {
		case KernelFatal:
			if st.fatal = f.Code; st.fatal == 0 {
				st.fatal = defaultFatal(op.Launch.Class)
			}
		case KernelHang:
			st.hang = true
		case NoticeLate:
			st.late, st.notice = true, int64(f.Delay)
		case NoticeLost:
			st.lost = true
		default:
			if st.call == 0 {
				st.call, st.code = f.Kind, f.Code
				if st.code == 0 && f.Kind != Unconfirmed {
					st.code = backend.InternalError
				}
			}
		}
	}
	return st
}

// Inject adds a fault to the plan. Its Nth counts the calls from now on: 1 is
// the next. Clones made before do not have it.
func (d *Device) Inject(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	if f.Nth > 0 {
		f.Nth += d.nth[f.Op]
	}
	cfg := d.cfg.Config
	cfg.Plan = append(cfg.Plan[:len(cfg.Plan):len(cfg.Plan)], f)
	d.cfg = newSettings(cfg)
	return nil
}
