//go:build !cgo || !linux

package onboard

import "github.com/runfence/runfence/backend"

// Supported reports whether this program can load the runtime at all.
const Supported = false

// Library is the runtime's library, loaded. There is none in this program.
type Library struct{}

// Load answers with [ErrNoCgo].
func Load(string) (*Library, error) { return nil, ErrNoCgo }

// Open answers with [ErrNoCgo].
func (*Library) Open(Config) (*Device, error) { return nil, ErrNoCgo }

// Path returns "".
func (*Library) Path() string { return "" }

// Version returns the zero Version.
func (*Library) Version() Version { return Version{} }

// Missing returns nil.
func (*Library) Missing() []string { return nil }

// Finalize answers with [ErrNoCgo].
func (*Library) Finalize() error { return ErrNoCgo }

// Device is a device of the runtime. There is none in this program.
type Device struct{ backend.Backend }

// Open answers with [ErrNoCgo].
func Open(Config) (*Device, error) { return nil, ErrNoCgo }

// Load answers with [ErrNoCgo].
func (*Device) Load(Image) (backend.Kernel, error) { return 0, ErrNoCgo }

// LatestFailure answers with nil.
func (*Device) LatestFailure() *CallError { return nil }

// Detach does nothing.
func (*Device) Detach() {}

// Close answers with [ErrNoCgo].
func (*Device) Close() error { return ErrNoCgo }

// StrayNotices returns 0.
func StrayNotices() uint64 { return 0 }

func diagnose(d *Diagnosis, _ DiagnoseOptions) {
	d.problem("this program cannot load the Ascend runtime: it was built without cgo, or for another system than Linux",
		"build it with CGO_ENABLED=1 on Linux")
}
