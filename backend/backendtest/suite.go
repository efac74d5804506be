package backendtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
)

// test is one subtest of the suite.
type test struct {
	name  string
	needs []Capability
	run   func(*bench)
}

// Run runs the suite; fresh makes a harness with a fresh device for each
// subtest, and frees it with t.Cleanup. Run returns the capabilities that were
// not offered, each once; their subtests appear as "not offered: ...".
func Run(t *testing.T, fresh func(t *testing.T) Harness) []Capability {
	t.Helper()
	var missing []Capability
	seen := map[Capability]bool{}
	for _, x := range tests() {
		h := fresh(t)
		h.complete(t)
		lacks := Capability("")
		for _, c := range x.needs {
			if !h.Offers(c) {
				lacks = c
				if !seen[c] {
					seen[c] = true
					missing = append(missing, c)
				}
			}
		}
		if lacks != "" {
			t.Run(x.name+"/not offered: "+string(lacks), func(t *testing.T) {
				t.Logf("the harness does not offer: %s", lacks)
			})
			continue
		}
		t.Run(x.name, func(t *testing.T) { x.run(newBench(t, h)) })
	}
	return missing
}

func tests() []test {
	var all []test
	for _, group := range [][]test{tableTests(), orderTests(), timeTests(), faultTests(), handleTests(), memoryTests(), hostTests(), resetTests()} {
		all = append(all, group...)
	}
	return all
}

// bench is what a subtest works with: the harness, and a run's streams, events
// and arguments.
type bench struct {
	*testing.T
	Harness
	ctx          context.Context
	coreS, cpuS  backend.Stream
	coreE, cpuE  backend.Event
	args, pinned backend.Memory
}

func newBench(t *testing.T, h Harness) *bench {
	t.Helper()
	b := &bench{T: t, Harness: h, ctx: context.Background()}
	b.coreS, b.cpuS = b.stream(), b.stream()
	b.coreE, b.cpuE = b.event(), b.event()
	b.args = b.alloc(backend.DeviceMemory, ArgsSize)
	b.pinned = b.alloc(backend.PinnedMemory, ArgsSize)
	b.fillWith(b.args, 0)
	return b
}

func (b *bench) stream() backend.Stream {
	b.Helper()
	s, r := b.Backend.CreateStream(b.ctx)
	b.ok(r)
	require.NotZero(b, s)
	return s
}

func (b *bench) event() backend.Event {
	b.Helper()
	e, r := b.Backend.CreateEvent(b.ctx)
	b.ok(r)
	require.NotZero(b, e)
	return e
}

func (b *bench) alloc(p backend.Place, size uint64) backend.Memory {
	b.Helper()
	m, r := b.Backend.Alloc(b.ctx, p, size)
	b.ok(r)
	require.NotZero(b, m)
	return m
}

func (b *bench) ok(r backend.Result) {
	b.Helper()
	require.Equal(b, backend.OK, r.Outcome, "code %v", r.Code)
	require.Equal(b, backend.Success, r.Code)
}

// ends checks outcome and code, and that the last error is that of this call.
func (b *bench) ends(o backend.Outcome, c backend.Code, r backend.Result) {
	b.Helper()
	require.Equal(b, o, r.Outcome, "code %v", r.Code)
	require.Equal(b, c, r.Code)
	if o != backend.Refused {
		require.Equal(b, c, r.LastError, "the last error is read in the same breath")
	}
}

func (b *bench) eventStatus(e backend.Event) backend.Status {
	b.Helper()
	s, r := b.Backend.QueryEvent(b.ctx, e)
	b.ok(r)
	return s
}

func (b *bench) streamStatus(s backend.Stream) backend.Status {
	b.Helper()
	st, r := b.Backend.QueryStream(b.ctx, s)
	b.ok(r)
	return st
}

func (b *bench) submit(s backend.Stream, c backend.Class, k backend.Kernel) {
	b.Helper()
	r := b.Backend.Submit(b.ctx, s, b.launch(c, k))
	b.ok(r)
	require.True(b, r.Accepted, "a submission that succeeds is accepted")
}

func (b *bench) launch(c backend.Class, k backend.Kernel) backend.Launch {
	l := backend.Launch{Class: c, Kernel: k, Args: b.args}
	if c == backend.AICore {
		l.Blocks = 1
	}
	return l
}

func (b *bench) record(e backend.Event, s backend.Stream) {
	b.Helper()
	r := b.Backend.RecordEvent(b.ctx, e, s)
	b.ok(r)
	require.True(b, r.Accepted, "a record that succeeds is accepted")
}

func (b *bench) wait(s backend.Stream, e backend.Event) {
	b.Helper()
	r := b.Backend.StreamWaitEvent(b.ctx, s, e)
	b.ok(r)
	require.True(b, r.Accepted, "a wait that succeeds is accepted")
}

// launchRun submits a run the way runs are submitted: AICore first, back to
// back, each followed by its boundary.
func (b *bench) launchRun(core, cpu backend.Kernel) {
	b.Helper()
	b.submit(b.coreS, backend.AICore, core)
	b.record(b.coreE, b.coreS)
	b.submit(b.cpuS, backend.AICPU, cpu)
	b.record(b.cpuE, b.cpuS)
}

// finishRun waits for both boundaries of the run.
func (b *bench) finishRun() {
	b.Helper()
	b.ok(b.Backend.WaitEvent(b.ctx, b.coreE, b.Timeout))
	b.ok(b.Backend.WaitEvent(b.ctx, b.cpuE, b.Timeout))
}

func whole(m backend.Memory) backend.Span { return backend.Span{Mem: m, Size: ArgsSize} }

// fillWith fills an allocation of ArgsSize bytes.
func (b *bench) fillWith(m backend.Memory, v byte) {
	b.Helper()
	var data [ArgsSize]byte
	for i := range data {
		data[i] = v
	}
	p := b.alloc(backend.PinnedMemory, ArgsSize)
	b.ok(b.Backend.Write(b.ctx, p, 0, data[:]))
	b.ok(b.Backend.Copy(b.ctx, whole(m), whole(p)))
	b.ok(b.Backend.Free(b.ctx, p))
}

// bytes reads an allocation of ArgsSize bytes.
func (b *bench) bytes(m backend.Memory) []byte {
	b.Helper()
	p := b.alloc(backend.PinnedMemory, ArgsSize)
	b.ok(b.Backend.Copy(b.ctx, whole(p), whole(m)))
	data := make([]byte, ArgsSize)
	b.ok(b.Backend.Read(b.ctx, data, p, 0))
	b.ok(b.Backend.Free(b.ctx, p))
	return data
}

// holds reports whether all of an allocation is the byte v.
func (b *bench) holds(m backend.Memory, v byte) bool {
	b.Helper()
	for _, x := range b.bytes(m) {
		if x != v {
			return false
		}
	}
	return true
}

// queueMark queues a copy that will fill a fresh allocation with v, and returns it.
// It holds zero until the copy executes.
func (b *bench) queueMark(s backend.Stream, v byte) backend.Memory {
	b.Helper()
	dst, src := b.alloc(backend.DeviceMemory, ArgsSize), b.alloc(backend.PinnedMemory, ArgsSize)
	b.fillWith(dst, 0)
	b.fillWith(src, v)
	r := b.Backend.CopyAsync(b.ctx, whole(dst), whole(src), s)
	b.ok(r)
	require.True(b, r.Accepted, "a copy that is queued is accepted")
	return dst
}
