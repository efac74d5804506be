package sim_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/sim"
)

// place is a device with the handles that a host has.
type place struct {
	d       *sim.Device
	w       toys
	tickets []sim.Ticket // by the number of the call that is under way
}

func (p place) copied() place {
	w := p.w
	w.streams, w.events, w.mems = slices.Clone(w.streams), slices.Clone(w.events), slices.Clone(w.mems)
	return place{d: p.d.Clone(), w: w, tickets: slices.Clone(p.tickets)}
}

var bisimSeed = maphash.MakeSeed()

// key is a hash of the canonical bytes.
func (p place) key() uint64 {
	n := p.w.naming()
	return maphash.Bytes(bisimSeed, p.d.AppendCanonical(nil, sim.Naming{Handle: func(k sim.Kind, h uint64) uint64 {
		if k == sim.KindCall {
			return find(p.tickets, sim.Ticket(h))
		}
		return n.Handle(k, h)
	}}))
}

// host makes call number i of the host on a copy, from beginning to end; a
// bounded wait that is not over at once stays under way.
func (p place) host(t *testing.T, i int, s step) (place, string) {
	q := p.copied()
	misused := len(q.d.Violations())
	op := q.w.op(s)
	k := q.d.Begin(op)
	require.NoError(t, q.d.Apply(sim.Choice{Kind: sim.ChooseEffect, Target: uint64(k)}))
	q.tickets[i] = k
	told := "under way"
	if err := q.d.Apply(sim.Choice{Kind: sim.ChooseReturn, Target: uint64(k)}); err == nil {
		a, _ := q.d.Take(k)
		told = fmt.Sprint(a.Result, a.Status, a.Capture, a.Confirmed, a.Data, a.Handle != 0)
		q.w.took(s, a)
		q.tickets[i] = 0
	}
	for _, v := range q.d.Violations()[misused:] {
		told += " " + v.Kind.String()
	}
	var n [4]backend.Notice
	got, dropped := q.d.Clone().TakeNotices(n[:])
	for _, x := range n[:got] {
		told += fmt.Sprint(" notice ", find(q.w.streams, stream(q, x.Stream)), x.Code)
	}
	return q, fmt.Sprintf("%s dropped %d", told, dropped)
}

// stream is the population's stream with the given id.
func stream(p place, id int32) backend.Stream {
	for _, s := range p.w.streams {
		if a := call(p.d.Clone(), sim.Op{Kind: sim.OpStreamID, Stream: s}); a.Ok() && a.ID == id {
			return s
		}
	}
	return 0
}

// bisimulate visits every state that choices and up to depth calls of the host
// lead to, and requires that states with the same bytes have the same future:
// whatever is called or chosen next gives the same answers, the same misuse,
// and the same bytes.
func bisimulate(t *testing.T, start place, calls []step, depth int) {
	type visit struct {
		at   place
		left int
	}
	type meeting struct{ future, path string }
	known := map[uint64]meeting{}
	visited := map[string]bool{} // by all that the device holds, so that nothing is taken on trust
	paths := map[*sim.Device]string{start.d: ""}
	level := []visit{{start, depth}}
	merged := 0
	for len(level) > 0 {
		var next []visit
		for _, v := range level {
			raw := v.at.d.Raw() + fmt.Sprint(v.at.w, v.at.tickets)
			if visited[raw] {
				continue
			}
			visited[raw] = true
			var lines []string
			var after []visit
			note := func(q place, what, told string, left int) {
				lines = append(lines, fmt.Sprintf("%s: %s > %x", what, told, q.key()))
				paths[q.d] = paths[v.at.d] + "; " + what
				after = append(after, visit{q, left})
			}
			for i, s := range calls {
				if v.at.tickets[i] != 0 || (s.kind == sim.OpCreateStream && alive(v.at.d, v.at.w.streams[s.stream])) {
					continue
				}
				q, told := v.at.host(t, i, s)
				note(q, fmt.Sprintf("call %d %v", i, s.kind), told, v.left-1)
			}
			for _, c := range v.at.d.Choices(nil) {
				q := v.at.copied()
				misused := len(q.d.Violations())
				require.NoError(t, q.d.Apply(c))
				told := ""
				for _, x := range q.d.Violations()[misused:] {
					told += " " + x.Kind.String()
				}
				for i, k := range q.tickets {
					if a, ok := q.d.Take(k); ok {
						told += fmt.Sprint(" ", a.Result)
						q.tickets[i] = 0
					}
				}
				note(q, logical(v.at, c), told, v.left)
			}
			slices.Sort(lines)
			future := strings.Join(lines, "\n")
			key := v.at.key()
			if m, met := known[key]; met {
				merged++
				if m.future != future {
					t.Fatalf("one state with two futures, reached by\n%s\nand by\n%s\n%s", m.path, paths[v.at.d], firstDifference(m.future, future))
				}
			} else {
				known[key] = meeting{future, paths[v.at.d]}
			}
			for _, a := range after {
				if a.left >= 0 {
					next = append(next, a)
				}
			}
		}
		level = next
	}
	require.GreaterOrEqual(t, merged, 20, "hardly any state has two guises")
	t.Logf("%d states in %d guises", len(known), len(visited))
}

// logical writes a choice in the population's numbers.
func logical(p place, c sim.Choice) string {
	for i, s := range p.w.streams {
		if uint64(s) == c.Target {
			return fmt.Sprint(c.Kind, " stream ", i, " ", c.Code)
		}
	}
	if i := find(p.tickets, sim.Ticket(c.Target)); i > 0 {
		return fmt.Sprint(c.Kind, " call ", i-1, " ", c.Code)
	}
	return c.String()
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return fmt.Sprint(len(x), " against ", len(y), " next steps")
}

func TestTheSameBytesHaveTheSameFuture(t *testing.T) {
	submit := func(kernel, stream, args int) step {
		return step{kind: sim.OpSubmitAICore, kernel: kernel, stream: stream, mem: args}
	}
	on := func(k sim.OpKind, stream, event int) step {
		return step{kind: k, stream: stream, event: event, timeout: time.Second}
	}
	const core, spin, cpu, fatal, plain = 0, 1, 2, 3, 4
	for _, x := range []struct {
		name  string
		cfg   sim.Config
		calls []step
		depth int
	}{
		{"faults", sim.Config{NoticeRing: 1, Budget: 1, Faults: sim.Faults(sim.KernelHang, sim.KernelFatal, sim.NoticeLost)}, []step{
			submit(plain, 0, 0), submit(fatal, 0, 0), on(sim.OpSynchronizeStream, 0, 0), on(sim.OpQueryStream, 0, 0),
		}, 3},
		{"faults of the plan", sim.Config{Plan: []sim.Fault{
			{Op: sim.OpSubmitAICore, Nth: 1, Kind: sim.KernelHang}, {Op: sim.OpSynchronizeStream, Nth: 2, Kind: sim.Hang},
		}}, []step{
			submit(plain, 0, 0), submit(plain, 1, 0), on(sim.OpSynchronizeStream, 1, 0), on(sim.OpQueryStream, 0, 0), on(sim.OpReset, 0, 0),
		}, 4},
		{"a kernel that hangs later", sim.Config{Plan: []sim.Fault{{Op: sim.OpSubmitAICore, Nth: 2, Kind: sim.KernelHang}}}, []step{
			submit(plain, 0, 0), submit(plain, 1, 0),
		}, 4},
		{"a kernel that is fatal", sim.Config{Plan: []sim.Fault{{Op: sim.OpSubmitAICore, Nth: 2, Kind: sim.KernelFatal}}}, []step{
			submit(plain, 0, 0), submit(plain, 1, 0),
		}, 3},
		{"a notice that is lost", sim.Config{Plan: []sim.Fault{{Op: sim.OpSubmitAICPU, Nth: 2, Kind: sim.NoticeLost}}}, []step{
			submit(fatal, 0, 0), submit(fatal, 1, 0),
		}, 3},
		{"a fault of a stream that is gone", sim.Config{NoProofs: true, Plan: []sim.Fault{{Op: sim.OpSubmitAICPU, Kind: sim.NoticeLost}}}, []step{
			submit(fatal, 0, 0), submit(plain, 0, 0), on(sim.OpSynchronizeStream, 0, 0), on(sim.OpDestroyStream, 0, 0), on(sim.OpCreateStream, 0, 0),
		}, 4},
		{"records", sim.Config{NoProofs: true}, []step{
			submit(plain, 0, 0), submit(plain, 1, 0), on(sim.OpRecordEvent, 0, 0), on(sim.OpRecordEvent, 1, 0), on(sim.OpQueryEvent, 0, 0),
		}, 4},
		{"events, waits pass", sim.Config{}, []step{
			submit(plain, 0, 0), on(sim.OpRecordEvent, 0, 0), on(sim.OpRecordEvent, 1, 0), on(sim.OpStreamWaitEvent, 1, 0),
			on(sim.OpQueryEvent, 0, 0), on(sim.OpWaitEvent, 0, 0),
		}, 3},
		{"events, waits hang", sim.Config{Unrecorded: sim.Hangs}, []step{
			submit(plain, 0, 0), on(sim.OpRecordEvent, 0, 0), on(sim.OpStreamWaitEvent, 1, 0),
			on(sim.OpQueryEvent, 0, 0), on(sim.OpDestroyEvent, 0, 0), on(sim.OpCreateEvent, 0, 0),
		}, 3},
		{"edges", sim.Config{}, []step{
			on(sim.OpRecordEvent, 0, 0), on(sim.OpStreamWaitEvent, 1, 0), on(sim.OpRecordEvent, 1, 1),
			on(sim.OpQueryEvent, 0, 1), submit(plain, 1, 0),
		}, 4},
		{"arguments", sim.Config{NoProofs: true}, []step{
			submit(plain, 0, 0), submit(plain, 0, 1), {kind: sim.OpFree, mem: 0},
		}, 3},
		{"handshake", sim.Config{NoProofs: true}, []step{
			submit(core, 0, 0), submit(spin, 0, 0), submit(spin, 2, 0), submit(cpu, 1, 0), submit(cpu, 1, 1),
		}, 4},
		{"handshake of two", sim.Config{NoProofs: true}, []step{
			submit(core, 0, 0), submit(core, 0, 1), submit(cpu, 1, 0), submit(cpu, 1, 1),
		}, 3},
		{"handshake with resets", sim.Config{NoProofs: true}, []step{
			submit(core, 0, 0), submit(spin, 0, 0), submit(cpu, 1, 0), on(sim.OpReset, 0, 0), on(sim.OpQueryStream, 1, 0),
		}, 4},
		{"memory", sim.Config{NoProofs: true}, []step{
			{kind: sim.OpCopyAsync, mem: 0, other: 2, size: 4},
			{kind: sim.OpWrite, mem: 2, data: 7},
			{kind: sim.OpRead, mem: 2, size: 4},
			{kind: sim.OpFree, mem: 0},
			{kind: sim.OpAlloc, mem: 0},
			{kind: sim.OpCopy, mem: 2, other: 0, size: 4},
		}, 4},
		{"residue", sim.Config{NoProofs: true, Residue: true}, []step{
			{kind: sim.OpWrite, mem: 2, data: 7},
			{kind: sim.OpWrite, mem: 2, data: 8},
			{kind: sim.OpRead, mem: 2, size: 4},
			{kind: sim.OpFree, mem: 2},
			{kind: sim.OpAlloc, mem: 2},
			{kind: sim.OpCopyAsync, mem: 0, other: 2, size: 2},
		}, 4},
		{"streams", sim.Config{NoProofs: true}, []step{
			submit(fatal, 0, 0), on(sim.OpDestroyStream, 0, 0), on(sim.OpCreateStream, 0, 0), on(sim.OpQueryStream, 0, 0),
			on(sim.OpSynchronizeStream, 0, 0), on(sim.OpReset, 0, 0),
		}, 4},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.cfg.Kernels = toyKernels()
			d := device(t, x.cfg)
			bisimulate(t, place{d, makeToys(d, nil, nil, nil), make([]sim.Ticket, len(x.calls))}, x.calls, x.depth)
		})
	}
}
