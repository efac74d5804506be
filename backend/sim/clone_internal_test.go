package sim

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/runfence/runfence/backend"
)

// No slice of a clone shares memory with the original's, whatever fields are
// added to the device.
func TestAClonesSlicesAreItsOwn(t *testing.T) {
	ctx := context.Background()
	fatal := KernelSpec{Class: backend.AICore, Exit: 1, Paired: true, Duration: 1}
	d, err := New(Config{Kernels: []KernelSpec{fatal}, NoticeTime: 100})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := d.CreateStream(ctx)
	other, _ := d.CreateStream(ctx)
	e, _ := d.CreateEvent(ctx)
	m, _ := d.Alloc(ctx, backend.DeviceMemory, 8)
	l := backend.Launch{Class: backend.AICore, Kernel: 1, Args: m, Blocks: 1}
	d.Submit(ctx, s, l)
	d.RecordEvent(ctx, e, s)
	d.StreamWaitEvent(ctx, other, e)
	d.Advance(150)
	d.Submit(ctx, s, l)
	d.Advance(10 * time.Nanosecond)
	d.Submit(ctx, s, l)
	d.Free(ctx, m)
	d.Begin(Op{Kind: OpReset})
	d.Begin(Op{Kind: OpWrite, Data: []byte{1}})

	c := d.Clone()
	a, b := reflect.ValueOf(d).Elem(), reflect.ValueOf(c).Elem()
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if f.Type.Kind() != reflect.Slice {
			continue
		}
		if a.Field(i).Len() == 0 {
			t.Errorf("%s is empty: the test does not show anything about it", f.Name)
		}
		if a.Field(i).Pointer() == b.Field(i).Pointer() {
			t.Errorf("%s is shared", f.Name)
		}
	}
	d.SetPolicy(Timed{})
	d.Trace(func(TraceEvent) {})
	d.CloneInto(c)
	if c.policy != nil || c.trace != nil {
		t.Error("a clone has the policy or the trace hook of its original")
	}
}
