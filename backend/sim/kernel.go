package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/runfence/runfence/backend"
)

// Phase is a moment in a kernel's life at which it may store to memory.
type Phase uint8

const (
	// AtStart: the kernel has started and, if paired, reported in.
	AtStart Phase = iota
	// AtFlag: the kernel publishes its completion flag. It has not returned.
	AtFlag
	// AtExit: the kernel returns without an error.
	AtExit
	// AtFatal: the kernel returns a fatal status.
	AtFatal
)

// Store is one write of up to eight bytes, little endian, that a kernel does.
// Its target is the launch's argument memory or, with Through, the allocation
// whose handle the argument memory holds as eight bytes at offset Base.
type Store struct {
	When    Phase
	Through bool
	Base    uint64 // bytes into the arguments
	Offset  uint64 // bytes into the target
	Size    uint8  // 1 to 8 bytes
	// FromArgs copies the bytes at offset Value of the arguments; else Value
	// itself is stored.
	FromArgs bool
	Value    uint64
}

// KernelSpec describes a kernel image to the simulated device.
type KernelSpec struct {
	// Name is for people.
	Name  string
	Class backend.Class
	// Duration is how long the kernel works once its handshake is met, in
	// virtual time.
	Duration time.Duration
	// Paired kernels take part in the handshake. A paired AICPU kernel spins
	// until the AICore kernel of its launch has started; a paired AICore kernel
	// reports in by starting. Two launches are one pair if they name the same
	// argument memory: a launch pairs with the newest launch of the other class
	// that has the same Args and no partner yet.
	Paired bool
	// Spin makes a paired AICore kernel wait for its AICPU kernel in turn.
	Spin bool
	// Flag makes the kernel publish a completion flag FlagAfter into its work,
	// before it returns (F99). The stores of AtFlag happen then.
	Flag      bool
	FlagAfter time.Duration
	// Exit is the status the kernel returns: zero, or the code that a later
	// synchronize of its stream will report.
	Exit   backend.Code
	Stores []Store
}

// Define makes a kernel image known to the device and returns its name. Clones
// made before do not know it.
func (d *Device) Define(spec KernelSpec) backend.Kernel {
	cfg := d.cfg.Config
	cfg.Kernels = append(cfg.Kernels[:len(cfg.Kernels):len(cfg.Kernels)], spec)
	d.cfg = newSettings(cfg)
	return backend.Kernel(len(cfg.Kernels))
}

// Kernel returns what the device knows of a kernel.
func (d *Device) Kernel(k backend.Kernel) (KernelSpec, bool) {
	if k == 0 || int(k) > len(d.cfg.Kernels) {
		return KernelSpec{}, false
	}
	return d.cfg.Kernels[k-1], true
}

func (d *Device) spec(k backend.Kernel) *KernelSpec { return &d.cfg.Kernels[k-1] }

func defaultFatal(c backend.Class) backend.Code {
	if c == backend.AICore {
		return backend.AICoreException
	}
	return backend.AICPUException
}

// side is how far one kernel of a pair has come.
type side uint8

const (
	sideAbsent side = iota
	sideQueued
	sideStarted
	sideExited
)

// pair is the handshake of two launches with one argument memory.
type pair struct {
	serial uint32 // zero: free
	tag    backend.Memory
	side   [2]side  // by class
	stream [2]int32 // by class
}

// join gives a paired launch its place in a pair: the newest that lacks its
// class, else a new one.
func (d *Device) join(c backend.Class, tag backend.Memory, si int) int32 {
	best, free := int32(-1), int32(-1)
	for i := range d.pairs {
		p := &d.pairs[i]
		if p.serial == 0 {
			if free < 0 {
				free = int32(i)
			}
			continue
		}
		if p.tag == tag && p.side[c] == sideAbsent && (best < 0 || p.serial > d.pairs[best].serial) {
			best = int32(i)
		}
	}
	if best < 0 {
		if best = free; best < 0 {
			d.pairs = append(d.pairs, pair{})
			best = int32(len(d.pairs) - 1)
		}
		d.pairSerial++
		d.pairs[best] = pair{serial: d.pairSerial, tag: tag, stream: [2]int32{-1, -1}}
	}
	d.pairs[best].side[c] = sideQueued
	d.pairs[best].stream[c] = int32(si)
	return best
}

// met reports whether the handshake of the kernel at a head is met.
func (d *Device) met(e *entry, k *KernelSpec) bool {
	if e.pair < 0 {
		return true
	}
	p := &d.pairs[e.pair]
	if k.Class == backend.AICPU {
		return p.side[backend.AICore] >= sideStarted
	}
	return !k.Spin || p.side[backend.AICPU] >= sideStarted
}

// startKernel starts the kernel at the head of stream si.
func (d *Device) startKernel(si int) {
	e := d.head(si)
	k := d.spec(e.kernel)
	if isHandle(uint64(e.args)) && !d.alive(e.args) {
		d.violate(Violation{Kind: UseAfterFree, Memory: e.args, Stream: d.streamHandle(si)})
	}
	d.stores(si, e, AtStart)
	if e.pair >= 0 {
		d.pairs[e.pair].side[k.Class] = sideStarted
	}
	if d.met(e, k) {
		d.work(si)
	}
	if e.pair < 0 {
		return
	}
	// The partner may have been spinning for this start.
	other := d.pairs[e.pair].stream[1-k.Class]
	if other < 0 || d.streams[other].n == 0 || d.streams[other].working {
		return
	}
	if o := d.head(int(other)); o.kind == EntryKernel && o.pair == e.pair && o.class != k.Class && d.met(o, d.spec(o.kernel)) {
		d.work(int(other))
	}
}

// work lets a kernel whose handshake is met run down its duration.
func (d *Device) work(si int) {
	s := &d.streams[si]
	e := d.head(si)
	k := d.spec(e.kernel)
	s.working = true
	if k.Flag {
		s.flagDue = later(d.now, min(k.FlagAfter, k.Duration))
	}
	if !e.hang {
		s.due = later(d.now, k.Duration)
	}
}

// publish lets the kernel at the head of stream si publish its flag.
func (d *Device) publish(si int) {
	d.streams[si].flagDue = never
	e := d.head(si)
	d.stores(si, e, AtFlag)
	d.traceEntry(TraceFlag, si, e, backend.Success)
}

// exit ends the kernel at the head of stream si with a status.
func (d *Device) exit(si int, code backend.Code) {
	s := &d.streams[si]
	e := d.head(si)
	if code == backend.Success {
		if s.flagDue != never {
			d.publish(si)
		}
		d.stores(si, e, AtExit)
	} else { // it may have died before it came to its flag
		d.stores(si, e, AtFatal)
		if s.fault == backend.Success {
			s.fault = code
		}
		d.post(si, e, code)
	}
	if e.pair >= 0 {
		p := &d.pairs[e.pair]
		p.side[e.class] = sideExited
		if p.side[1-e.class] == sideExited {
			*p = pair{}
		}
	}
}

func (d *Device) stores(si int, e *entry, when Phase) {
	k := d.spec(e.kernel)
	for i := range k.Stores {
		st := &k.Stores[i]
		if st.When != when || !isHandle(uint64(e.args)) {
			continue
		}
		args := d.region(e.args)
		target := e.args
		if st.Through {
			p, ok := window(args, st.Base, 8)
			if !ok {
				continue
			}
			target = backend.Memory(binary.LittleEndian.Uint64(p))
			if kindOf(uint64(target)) != KindMemory || indexOf(uint64(target)) >= len(d.mems) {
				d.violate(Violation{Kind: WildStore, Memory: target, Stream: d.streamHandle(si)})
				continue
			}
		}
		n := uint64(st.Size)
		dst, ok := window(d.region(target), st.Offset, n)
		if !ok {
			d.violate(Violation{Kind: WildStore, Memory: target, Stream: d.streamHandle(si)})
			continue
		}
		if !d.alive(target) {
			d.violate(Violation{Kind: UseAfterFree, Memory: target, Stream: d.streamHandle(si)})
		}
		if st.FromArgs {
			if src, ok := window(args, st.Value, n); ok {
				copy(dst, src)
			}
			continue
		}
		var v [8]byte
		binary.LittleEndian.PutUint64(v[:], st.Value)
		copy(dst, v[:])
	}
}

func (k *KernelSpec) validate() error {
	switch {
	case k.Class > backend.AICPU:
		return errKernel("class", int64(k.Class))
	case k.Duration < 0 || k.FlagAfter < 0 || k.FlagAfter > k.Duration:
		return errKernel("time", int64(k.FlagAfter))
	}
	for _, s := range k.Stores {
		if s.Size == 0 || s.Size > 8 || s.When > AtFatal {
			return errKernel("store size", int64(s.Size))
		}
	}
	return nil
}

func errKernel(what string, n int64) error { return fmt.Errorf("impossible %s %d", what, n) }

// open reports whether a kernel of the pair is queued or running.
func (p *pair) open() bool {
	for _, s := range p.side {
		if s == sideQueued || s == sideStarted {
			return true
		}
	}
	return false
}
