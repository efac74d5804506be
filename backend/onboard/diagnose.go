package onboard

import "runtime"

// DiagnoseOptions says how far a diagnosis goes.
type DiagnoseOptions struct {
	// Library is as in [Config].
	Library string
	// SelfTest has the device carry out a small run.
	SelfTest bool
	// Device is the one that does.
	Device int32
}

// Diagnosis is what a machine has for running on a device.
type Diagnosis struct {
	// Platform is the system and the processor that this program is for.
	Platform string `json:"platform"`
	// Attempts are the places where the library was looked for.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Library is the file that was loaded.
	Library string `json:"library,omitempty"`
	// Version is that of its interface.
	Version string `json:"version,omitempty"`
	// Package is what the installed software says of its version.
	Package string `json:"package,omitempty"`
	// Symbols are the functions that are used.
	Symbols []Symbol `json:"symbols,omitempty"`
	// Chip names the kind of device.
	Chip string `json:"chip,omitempty"`
	// Devices are the ids of the devices there are.
	Devices []int32 `json:"devices"`
	// SelfTest are the steps of the self-test, if there was one.
	SelfTest []Step `json:"selfTest,omitempty"`
	// Problems are what stands in the way.
	Problems []Problem `json:"problems,omitempty"`
}

// Symbol is one function of the library.
type Symbol struct {
	Name    string `json:"name"`
	Present bool   `json:"present"`
	// Needed says that nothing works without it.
	Needed bool `json:"needed"`
	// Or names the function that will do instead.
	Or string `json:"or,omitempty"`
}

// Step is one step of a self-test.
type Step struct {
	Name string `json:"name"`
	// Failure is what went wrong; empty if nothing did.
	Failure string `json:"failure,omitempty"`
}

// Problem is something that stands in the way, and what to do about it.
type Problem struct {
	What   string `json:"what"`
	Advice string `json:"advice"`
}

// OK reports that nothing stands in the way.
func (d *Diagnosis) OK() bool { return len(d.Problems) == 0 }

func (d *Diagnosis) problem(what, advice string) {
	d.Problems = append(d.Problems, Problem{what, advice})
}

// Diagnose looks at what the machine has. It works on one that has nothing, and
// says so.
func Diagnose(o DiagnoseOptions) *Diagnosis {
	d := &Diagnosis{Platform: runtime.GOOS + "/" + runtime.GOARCH, Devices: []int32{}}
	diagnose(d, o)
	return d
}
