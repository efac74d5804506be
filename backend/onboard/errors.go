package onboard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runfence/runfence/backend"
)

var (
	// ErrNoCgo: the program was built without cgo, or for another system than
	// Linux, so it cannot load the runtime.
	ErrNoCgo = errors.New("onboard: this program was built without cgo or not for Linux, and cannot load the Ascend runtime; build it with CGO_ENABLED=1 on Linux")
	// ErrClosed: the device was closed or detached.
	ErrClosed = errors.New("onboard: the device is closed")
	// ErrConfig: a [Config] or [Image] that describes nothing.
	ErrConfig = errors.New("onboard: impossible configuration")
)

// Attempt is one place where the library was looked for.
type Attempt struct {
	// Source says why there: a variable's name, "configuration" or "loader".
	Source string `json:"source"`
	// Path is the file, or a bare name that the loader resolves.
	Path string `json:"path"`
	// Failure is what was wrong with it; empty if it was loaded.
	Failure string `json:"failure,omitempty"`
}

// LibraryError says that the runtime's library was not found, or found and not
// loadable.
type LibraryError struct {
	// Attempts are the places, in order.
	Attempts []Attempt
}

// Error lists what was looked for and where.
func (e *LibraryError) Error() string {
	var b strings.Builder
	b.WriteString("onboard: no usable " + LibraryName + "; looked at")
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "\n\t%s (%s): %s", a.Path, a.Source, a.Failure)
	}
	return b.String()
}

// SymbolError says that a library lacks functions that this package cannot do
// without.
type SymbolError struct {
	Library string
	// Missing are their names. "a or b" means that either would do.
	Missing []string
}

// Error names the library and the functions.
func (e *SymbolError) Error() string {
	return fmt.Sprintf("onboard: %s lacks %s; it is too old, or not the Ascend runtime", e.Library, strings.Join(e.Missing, ", "))
}

// VersionError says that a library's interface is of a version that this
// package does not know.
type VersionError struct {
	Library string
	Got     Version
	// Want is the major version that is known.
	Want int32
}

// Error names the library, its version and the one that is wanted.
func (e *VersionError) Error() string {
	return fmt.Sprintf("onboard: %s has version %v of the interface; this program knows %d.x, and another major version means another interface", e.Library, e.Got, e.Want)
}

// Version is that of the runtime's programming interface.
type Version struct {
	Major, Minor, Patch int32
}

// String returns "major.minor.patch".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// CallError says that a call of opening, loading or closing failed.
type CallError struct {
	// Call is the runtime's function.
	Call string
	Code backend.Code
	// Message is the runtime's own description; often empty.
	Message string
}

// Error says what failed, what it means and what to look at next.
func (e *CallError) Error() string {
	s := fmt.Sprintf("onboard: %s failed: %s", e.Call, Describe(e.Code))
	if m := strings.TrimSpace(e.Message); m != "" {
		s += "\n\tthe runtime says: " + m
	}
	return s
}

// DeviceInUseError says that the process has the device open already.
type DeviceInUseError struct{ Device int32 }

// Error names the device.
func (e *DeviceInUseError) Error() string {
	return fmt.Sprintf("onboard: device %d is open in this process; its exception notices have one reader", e.Device)
}

// OtherLibraryError says that devices of another library are open. A process
// has one place for exception callbacks.
type OtherLibraryError struct{ Open, Wanted string }

// Error names both libraries.
func (e *OtherLibraryError) Error() string {
	return fmt.Sprintf("onboard: devices of %s are open; %s has to wait until they are closed", e.Open, e.Wanted)
}

// ContextDeviceError says that a borrowed context is of another device.
type ContextDeviceError struct{ Context, Wanted int32 }

// Error names both devices.
func (e *ContextDeviceError) Error() string {
	return fmt.Sprintf("onboard: the current context is of device %d, not %d", e.Context, e.Wanted)
}

// InUseError says that a device cannot be closed while streams, events or
// memory of it are alive: nothing is freed that may be in use.
type InUseError struct{ Streams, Events, Memory int }

// Error counts them.
func (e *InUseError) Error() string {
	return fmt.Sprintf("onboard: the device has %d streams, %d events and %d allocations that were not given back; destroy them, or detach the device and leave them", e.Streams, e.Events, e.Memory)
}
