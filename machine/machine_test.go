package machine_test

import (
	"context"
	"testing"

	"github.com/runfence/runfence/machine"
)

func door() *machine.Definition {
	return &machine.Definition{
		Name:   "door",
		States: []machine.State{{Name: "closed"}, {Name: "open"}},
		Events: []machine.Event{{Name: "open"}, {Name: "close"}},
		Facts:  []machine.Fact{{Name: "locked", Type: "bool"}},
		Rows: []machine.Row{
			{ID: "open", From: "closed", Event: "open", Guard: "!locked", Command: "Motor()", Then: []machine.Target{{On: "ok", To: "open"}, {Error: "motor failed"}}},
			{ID: "locked", From: "closed", Event: "open", Guard: "else", Refuse: "door is locked"},
			{ID: "close", From: "open", Event: "close", Guard: "!locked", Command: "Motor()", Then: []machine.Target{{On: "ok", To: "closed"}, {Error: "motor failed"}}},
			{ID: "locked-open", From: "open", Event: "close", Guard: "else", Refuse: "door is locked"},
		},
	}
}

func BenchmarkInstance(b *testing.B) {
	r := machine.MustCompile(door())
	p := machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })
	inst, err := r.NewInstance(machine.InstanceConfig{Performer: p})
	if err != nil {
		b.Fatal(err)
	}
	open, cl := inst.Machine().MustEvent("open"), inst.Machine().MustEvent("close")
	ctx := context.Background()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		e := open
		if n&1 == 1 {
			e = cl
		}
		if _, err := inst.Fire(ctx, e); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

func BenchmarkRefusal(b *testing.B) {
	r := machine.MustCompile(door())
	p := machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })
	inst, err := r.NewInstance(machine.InstanceConfig{Performer: p})
	if err != nil {
		b.Fatal(err)
	}
	cl := inst.Machine().MustEvent("close")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := inst.Fire(ctx, cl); err == nil {
			b.Fatal(err)
		}
	}
	_, err = inst.Fire(ctx, cl)
	b.Log(err)
}

func BenchmarkDriver(b *testing.B) {
	r := machine.MustCompile(door())
	p := machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })
	w, err := r.NewWorld(machine.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ref := w.Ref(0, 0)
	d, err := machine.NewDriver(w, machine.DriverConfig{Performer: p})
	if err != nil {
		b.Fatal(err)
	}
	m := r.At(0)
	open, cl := m.MustEvent("open"), m.MustEvent("close")
	ctx := context.Background()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		e := open
		if n&1 == 1 {
			e = cl
		}
		if _, err := d.Fire(ctx, ref, e); err != nil {
			b.Fatal(err)
		}
		n++
	}
}
