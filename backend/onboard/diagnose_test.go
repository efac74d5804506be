//go:build cgo && linux

package onboard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

func failures(d *onboard.Diagnosis) (names []string) {
	for _, s := range d.SelfTest {
		if s.Failure != "" {
			names = append(names, s.Name)
		}
	}
	return names
}

func TestDiagnoseWithoutTheSoftware(t *testing.T) {
	noVariables(t)
	d := onboard.Diagnose(onboard.DiagnoseOptions{SelfTest: true})
	require.False(t, d.OK())
	require.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, d.Platform)
	require.Len(t, d.Attempts, 1)
	require.Empty(t, d.Library)
	require.Empty(t, d.Devices)
	require.Len(t, d.Problems, 1)
	require.Contains(t, d.Problems[0].What, "not found")
	require.Contains(t, d.Problems[0].Advice, "set_env.sh")
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.Contains(t, string(text), `"devices":[]`, "a list that is empty is a list")
}

func TestDiagnoseWhatIsThere(t *testing.T) {
	restart(t)
	d := onboard.Diagnose(onboard.DiagnoseOptions{Library: library, SelfTest: true, Device: 7})
	require.True(t, d.OK(), "%+v", d.Problems)
	require.Equal(t, library, d.Library)
	require.Equal(t, "1.14.0", d.Version)
	require.Equal(t, "stand-in", d.Package)
	require.Equal(t, "Standin910", d.Chip)
	require.Equal(t, []int32{0, 1, 2, 3, 4, 5, 6, 7}, d.Devices)
	require.Empty(t, failures(d))
	require.Equal(t, "give back", d.SelfTest[len(d.SelfTest)-2].Name)
	require.Equal(t, standin.Live{}, driver.Live(), "nothing stays behind")
	present := map[string]bool{}
	for _, s := range d.Symbols {
		present[s.Name] = s.Present
	}
	require.True(t, present["aclrtRecordEvent"])
	require.False(t, present["rtStreamQuery"])

	var back onboard.Diagnosis
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, *d, back)
}

func TestDiagnoseWhatStandsInTheWay(t *testing.T) {
	lacking := build(t, standin.Variant{Hide: []string{"aclrtRecordEvent"}})
	later := build(t, standin.Variant{Major: 3})
	broken := filepath.Join(t.TempDir(), onboard.LibraryName)
	require.NoError(t, os.WriteFile(broken, []byte("no library"), 0o600))
	for name, x := range map[string]struct {
		library string
		fail    string
		code    backend.Code
		none    bool // no device
		what    string
		advice  string
	}{
		"no such file":  {library: broken + ".none", what: "not found", advice: onboard.LibraryVariable},
		"no library":    {library: broken, what: "no usable", advice: onboard.LibraryVariable},
		"functions":     {library: lacking, what: "aclrtRecordEvent", advice: "newer"},
		"version":       {library: later, what: "3.14.0", advice: "release"},
		"init":          {library: library, fail: "aclInit", code: backend.DriverInternalError, what: "aclInit", advice: "dmesg"},
		"unknown code":  {library: library, fail: "aclInit", code: 500123, what: "500123", advice: "npu-smi"},
		"count":         {library: library, fail: "aclrtGetDeviceCount", code: backend.DriverInternalError, what: "aclrtGetDeviceCount", advice: "dmesg"},
		"finalize":      {library: library, fail: "aclFinalize", code: 500123, what: "aclFinalize", advice: "not in doubt"},
		"no device":     {library: library, none: true, what: "no device", advice: "npu-smi"},
		"version query": {library: library, fail: "aclrtGetVersion", code: backend.InternalError, what: "aclrtGetVersion", advice: "log"},
	} {
		t.Run(name, func(t *testing.T) {
			restart(t)
			if x.fail != "" {
				driver.Fail(x.fail, 1, standin.Before, int32(x.code), 0)
			}
			if x.none {
				driver.Configure(standin.Settings{})
			}
			d := onboard.Diagnose(onboard.DiagnoseOptions{Library: x.library})
			require.Len(t, d.Problems, 1, "%+v", d.Problems)
			require.Contains(t, d.Problems[0].What, x.what)
			require.Contains(t, d.Problems[0].Advice, x.advice)
		})
	}
}

// Whatever call of the self-test fails is found and named, and what may be in
// use then is not freed.
func TestDiagnoseASelfTestThatFails(t *testing.T) {
	for call, step := range map[string]string{
		"aclrtSetDevice":                    "open device 0",
		"aclrtCreateStreamWithConfig":       "two streams",
		"aclrtCreateEventExWithFlag":        "two completion events",
		"aclrtMalloc":                       "device and pinned memory",
		"aclrtMallocHost":                   "device and pinned memory",
		"aclrtMemcpyAsync":                  "copy to the device",
		"aclrtRecordEvent":                  "record the first boundary",
		"aclrtStreamWaitEvent":              "let the other stream wait for it",
		"aclrtSynchronizeEventWithTimeout":  "wait for the first boundary",
		"aclrtSynchronizeStreamWithTimeout": "read the verdict of the first stream",
		"aclrtDestroyStream":                "give back",
		"aclrtDestroyContext":               "close",
	} {
		t.Run(call, func(t *testing.T) {
			restart(t)
			driver.Fail(call, 1, standin.Before, int32(backend.DriverInternalError), 0)
			d := onboard.Diagnose(onboard.DiagnoseOptions{Library: library, SelfTest: true})
			require.Equal(t, []string{step}, failures(d))
			last := d.SelfTest[len(d.SelfTest)-1]
			require.Equal(t, step, last.Name, "no step is made after it")
			require.Contains(t, last.Failure, "507899")
			require.Contains(t, last.Failure, "the driver failed inside")
			require.Contains(t, last.Failure, "stand-in: "+call, "the runtime's own words")
			require.True(t, strings.HasPrefix(d.Problems[0].What, "self-test: "+step))
		})
	}
}

// A device that moves bytes wrongly is found out.
func TestDiagnoseADeviceThatLosesBytes(t *testing.T) {
	restart(t)
	// The second copy is said to be accepted, and is never made.
	driver.Fail("aclrtMemcpyAsync", 2, standin.Skip, 0, 0)
	d := onboard.Diagnose(onboard.DiagnoseOptions{Library: library, SelfTest: true})
	require.Equal(t, []string{"compare"}, failures(d))
}
