//go:build cgo && linux

package onboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// The stand-in driver of these tests and what belongs to it.
var (
	library string
	driver  *standin.Driver
	images  string // the directory of the kernel images
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "onboard")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if library, err = standin.Build(dir, standin.Variant{Sanitizer: onboard.Sanitizer()}); err != nil {
		return 0, err
	}
	if driver, err = standin.Load(library); err != nil {
		return 0, err
	}
	images = dir
	for name, text := range map[string]string{"kernels.o": coreKernels, "kernels.json": cpuKernels} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// The images, in the stand-in driver's form. Virtual time: slow is slow by any
// clock of the tests, and costs none.
const (
	coreKernels = `# AICore kernels
kernel core class=core duration=10us paired
kernel slow_core class=core duration=20ms paired
kernel spin_core class=core duration=10us paired spin
`
	cpuKernels = `# AICPU kernels
kernel cpu class=cpu duration=15us paired
kernel slow_cpu class=cpu duration=20ms paired
kernel fatal_cpu class=cpu duration=15us paired exit=507018
kernel flag_cpu class=cpu duration=20ms paired flag=100us store=flag:63:1:1
`
)

func core(function string) onboard.Image {
	return onboard.Image{Class: backend.AICore, Path: filepath.Join(images, "kernels.o"), Function: function}
}

func cpu(function string) onboard.Image {
	return onboard.Image{Class: backend.AICPU, Path: filepath.Join(images, "kernels.json"), Function: function}
}

// fresh is a driver that was just loaded, and a device of it. It ends with the
// test, which must not have misused anything.
func fresh(t *testing.T, c onboard.Config) *onboard.Device {
	t.Helper()
	restart(t)
	c.Library = library
	d, err := onboard.Open(c)
	require.NoError(t, err)
	t.Cleanup(d.Detach)
	return d
}

func restart(t *testing.T) {
	t.Helper()
	restartDriver()
	t.Cleanup(func() { noMisuse(t) })
}

func restartDriver() { driver.Restart() }

func noMisuse(t *testing.T) {
	t.Helper()
	n, first := driver.Misuses()
	require.Zero(t, n, "the driver was misused: %s", first)
}

func load(t *testing.T, d *onboard.Device, i onboard.Image) backend.Kernel {
	t.Helper()
	k, err := d.Load(i)
	require.NoError(t, err)
	return k
}

// The library that answers is the one that was built for this job, compiled
// with the sanitizer that this program is compiled with, and the job is the one
// that its name says.
func TestTheLibraryReallyLoads(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 3})
	want := os.Getenv("ONBOARD_SANITIZER")
	if want == "" {
		want = onboard.Sanitizer()
	}
	require.Equal(t, want, onboard.Sanitizer(), "this program")
	require.Equal(t, want, driver.Sanitizer(), "the driver")
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.Contains(t, string(maps), library)
	before := driver.Calls()
	_, r := d.CreateEvent(t.Context())
	require.True(t, r.Ok())
	require.Greater(t, driver.Calls(), before, "the calls arrive there")
	if want != "none" {
		runtime := map[string]string{"address": "libasan", "thread": "libtsan"}[want]
		require.True(t, strings.Contains(string(maps), runtime) || staticSanitizer(), "the sanitizer's runtime is there")
	}
}

// staticSanitizer: a sanitizer's runtime may be linked into the program.
func staticSanitizer() bool { return onboard.Sanitizer() != "none" }

const (
	short   = 5 * time.Millisecond
	timeout = 100 * time.Millisecond
)
