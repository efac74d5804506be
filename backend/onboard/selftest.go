//go:build cgo && linux

package onboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runfence/runfence/backend"
)

// selfTest lets a device carry out a run without kernels: bytes go to the
// device on one stream and come back on another that waits for the first, and
// the run is over when both boundaries are.
func (d *Diagnosis) selfTest(l *Library, device int32) {
	dev, err := l.Open(Config{Device: device})
	d.step(fmt.Sprintf("open device %d", device), err)
	if err == nil {
		if !d.run(dev) || !d.step("close", dev.Close()) {
			dev.Detach() // nothing is freed that may be in use
		}
	}
	for _, s := range d.SelfTest {
		if s.Failure != "" {
			d.problem("self-test: "+s.Name+": "+s.Failure, "the message tells what to look at; steps after it were not made")
		}
	}
}

func (d *Diagnosis) step(name string, err error) bool {
	s := Step{Name: name}
	if err != nil {
		s.Failure = err.Error()
	}
	d.SelfTest = append(d.SelfTest, s)
	return err == nil
}

// run reports whether the run is over and everything was given back.
func (d *Diagnosis) run(dev *Device) bool {
	const size, timeout = 4096, 10 * time.Second
	ctx := context.Background()
	var (
		in, out       backend.Stream
		there, back   backend.Event
		src, mid, dst backend.Memory
		sent, got     [size]byte
	)
	for i := range sent {
		sent[i] = byte(i*7 + 1)
	}
	span := func(m backend.Memory) backend.Span { return backend.Span{Mem: m, Size: size} }
	steps := []struct {
		name string
		do   func() backend.Result
	}{
		{"two streams", func() (r backend.Result) {
			if in, r = dev.CreateStream(ctx); r.Ok() {
				out, r = dev.CreateStream(ctx)
			}
			return r
		}},
		{"two completion events", func() (r backend.Result) {
			if there, r = dev.CreateEvent(ctx); r.Ok() {
				back, r = dev.CreateEvent(ctx)
			}
			return r
		}},
		{"device and pinned memory", func() (r backend.Result) {
			if src, r = dev.Alloc(ctx, backend.PinnedMemory, size); !r.Ok() {
				return r
			}
			if dst, r = dev.Alloc(ctx, backend.PinnedMemory, size); !r.Ok() {
				return r
			}
			mid, r = dev.Alloc(ctx, backend.DeviceMemory, size)
			return r
		}},
		{"write", func() backend.Result { return dev.Write(ctx, src, 0, sent[:]) }},
		{"copy to the device", func() backend.Result { return dev.CopyAsync(ctx, span(mid), span(src), in) }},
		{"record the first boundary", func() backend.Result { return dev.RecordEvent(ctx, there, in) }},
		{"let the other stream wait for it", func() backend.Result { return dev.StreamWaitEvent(ctx, out, there) }},
		{"copy from the device", func() backend.Result { return dev.CopyAsync(ctx, span(dst), span(mid), out) }},
		{"record the second boundary", func() backend.Result { return dev.RecordEvent(ctx, back, out) }},
		{"wait for the first boundary", func() backend.Result { return dev.WaitEvent(ctx, there, timeout) }},
		{"wait for the second boundary", func() backend.Result { return dev.WaitEvent(ctx, back, timeout) }},
		{"read the verdict of the first stream", func() backend.Result { return dev.SynchronizeStream(ctx, in, timeout) }},
		{"read the verdict of the second stream", func() backend.Result { return dev.SynchronizeStream(ctx, out, timeout) }},
		{"read", func() backend.Result { return dev.Read(ctx, got[:], dst, 0) }},
	}
	for _, s := range steps {
		if !d.step(s.name, asError(dev, s.do())) {
			return false
		}
	}
	if !bytes.Equal(sent[:], got[:]) {
		return d.step("compare", errors.New("the bytes that came back are not those that were sent"))
	}
	return d.step("compare", nil) && d.step("give back", asError(dev, giveBack(ctx, dev, in, out, there, back, src, mid, dst)))
}

func giveBack(ctx context.Context, dev *Device, handles ...any) (r backend.Result) {
	for _, h := range handles {
		switch h := h.(type) {
		case backend.Stream:
			r = dev.DestroyStream(ctx, h)
		case backend.Event:
			r = dev.DestroyEvent(ctx, h)
		case backend.Memory:
			r = dev.Free(ctx, h)
		}
		if !r.Ok() {
			return r
		}
	}
	return r
}

// asError puts the answer to a call into words.
func asError(dev *Device, r backend.Result) error {
	if r.Ok() {
		return nil
	}
	text := fmt.Sprintf("%v: %s", r.Outcome, Describe(r.Code))
	if f := dev.LatestFailure(); f != nil && f.Code == r.Code && f.Message != "" {
		text += "; the runtime says: " + f.Message
	}
	return errors.New(text)
}
