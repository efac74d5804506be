package onboard_test

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
)

// A device of one's own.
func ExampleOpen() {
	d, err := onboard.Open(onboard.Config{Device: 0})
	if err != nil {
		fmt.Println(err) // says what was looked for, and where
		return
	}
	core, err := d.Load(onboard.Image{Class: backend.AICore, Path: "/opt/kernels/add.o", Function: "add"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	s, r := d.CreateStream(ctx)
	if !r.Ok() {
		fmt.Println(onboard.Describe(r.Code))
		return
	}
	d.Submit(ctx, s, backend.Launch{Class: backend.AICore, Kernel: core, Blocks: 8})
	d.SynchronizeStream(ctx, s, time.Second)
	d.DestroyStream(ctx, s)
	if err := d.Close(); err != nil {
		fmt.Println(err)
	}
}

// A device whose context the host lends. The host stays on the thread on which
// its context is current.
func ExampleOpen_borrowed() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Here the host makes its context current, through its own use of the runtime.
	d, err := onboard.Open(onboard.Config{Device: 0, Borrow: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, r := d.CreateStream(context.Background())
	if r.Code == backend.ContextNull || r.Code == backend.StreamContext {
		fmt.Println("restore the context, and call again")
	}
}
