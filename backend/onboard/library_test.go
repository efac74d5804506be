//go:build cgo && linux

package onboard_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/backend/onboard/internal/standin"
)

// noVariables takes away what would tell where a library is.
func noVariables(t *testing.T) {
	t.Setenv(onboard.LibraryVariable, "")
	t.Setenv(onboard.HomeVariable, "")
}

func TestWhereTheLibraryIsLookedFor(t *testing.T) {
	there := filepath.Dir(library)
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "lib64"), 0o700))
	require.NoError(t, os.Symlink(library, filepath.Join(home, "lib64", onboard.LibraryName)))
	empty, broken := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, onboard.LibraryName), []byte("no library"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(broken, "lib64"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "lib64", onboard.LibraryName), []byte("no library"), 0o600))

	type place struct{ source, path string }
	inHome := func(home string) []place {
		return []place{
			{onboard.HomeVariable, filepath.Join(home, "lib64", onboard.LibraryName)},
			{onboard.HomeVariable, filepath.Join(home, "runtime/lib64", onboard.LibraryName)},
		}
	}
	loader := place{"loader", onboard.LibraryName}
	tests := map[string]struct {
		config, variable, home string
		found                  bool
		looked                 []place // where in vain
		why                    string  // in the last reason
	}{
		"a file by configuration":             {config: library, found: true},
		"a directory by configuration":        {config: there, found: true},
		"a file by variable":                  {variable: library, found: true},
		"a directory by variable":             {variable: there, found: true},
		"below the home":                      {home: home, found: true},
		"configuration goes first":            {config: library, variable: empty, home: broken, found: true},
		"the variable goes before the home":   {variable: library, home: broken, found: true},
		"nowhere":                             {looked: []place{loader}, why: onboard.LibraryName},
		"a home without it":                   {home: empty, looked: append(inHome(empty), loader), why: onboard.LibraryName},
		"named outright and not there":        {config: filepath.Join(empty, "x.so"), home: home, looked: []place{{"configuration", filepath.Join(empty, "x.so")}}, why: "no such file"},
		"a named directory without it":        {variable: empty, home: home, looked: []place{{onboard.LibraryVariable, filepath.Join(empty, onboard.LibraryName)}}, why: "no such file"},
		"named outright and no library":       {variable: broken, home: home, looked: []place{{onboard.LibraryVariable, filepath.Join(broken, onboard.LibraryName)}}, why: "too short"},
		"a home with a file that is none":     {home: broken, looked: inHome(broken)[:1], why: "too short"},
		"a relative path is made an absolute": {config: "no/such.so", looked: []place{{"configuration", absolute(t, "no/such.so")}}, why: "no such file"},
	}
	for name, x := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(onboard.LibraryVariable, x.variable)
			t.Setenv(onboard.HomeVariable, x.home)
			l, err := onboard.Load(x.config)
			if x.found {
				require.NoError(t, err)
				real, err := filepath.EvalSymlinks(l.Path())
				require.NoError(t, err)
				require.Equal(t, library, real)
				return
			}
			require.Nil(t, l)
			var e *onboard.LibraryError
			require.ErrorAs(t, err, &e)
			var looked []place
			for _, a := range e.Attempts {
				looked = append(looked, place{a.Source, a.Path})
				require.NotEmpty(t, a.Failure)
				require.ErrorContains(t, err, a.Path)
			}
			require.Equal(t, x.looked, looked)
			require.Contains(t, e.Attempts[len(e.Attempts)-1].Failure, x.why)
		})
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}

// build builds another driver.
func build(t *testing.T, v standin.Variant) string {
	t.Helper()
	v.Sanitizer = onboard.Sanitizer()
	path, err := standin.Build(t.TempDir(), v)
	require.NoError(t, err)
	return path
}

func TestALibraryWithoutWhatIsNeeded(t *testing.T) {
	noVariables(t)
	path := build(t, standin.Variant{Hide: []string{"aclrtRecordEvent", "aclrtStreamQuery", "aclrtCreateStreamWithConfig", "aclrtStreamGetId"}})
	_, err := onboard.Load(path)
	var e *onboard.SymbolError
	require.ErrorAs(t, err, &e)
	require.Equal(t, path, e.Library)
	require.Equal(t, []string{"aclrtStreamQuery or rtStreamQuery", "aclrtRecordEvent"}, e.Missing,
		"what can be done without, or by another, is not among them")
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "aclrtRecordEvent")
}

func TestAnInterfaceOfAnotherVersion(t *testing.T) {
	path := build(t, standin.Variant{Major: 2})
	_, err := onboard.Load(path)
	var e *onboard.VersionError
	require.ErrorAs(t, err, &e)
	require.Equal(t, &onboard.VersionError{Library: path, Got: onboard.Version{Major: 2, Minor: 14}, Want: 1}, e)
	require.ErrorContains(t, err, "2.14.0")
}

// other opens a device of another driver, alone in the process.
func other(t *testing.T, v standin.Variant) (*onboard.Device, *standin.Driver) {
	t.Helper()
	path := build(t, v)
	c, err := standin.Load(path)
	require.NoError(t, err)
	d, err := onboard.Open(onboard.Config{Library: path, Device: 1})
	require.NoError(t, err)
	t.Cleanup(func() {
		d.Detach()
		n, first := c.Misuses()
		require.Zero(t, n, first)
		c.Restart()
	})
	return d, c
}

// What a library lacks and can be done without is refused by the name of the
// reason, and everything else works.
func TestALibraryWithLess(t *testing.T) {
	hide := []string{
		"aclrtStreamGetId", "aclmdlRICaptureGetInfo", "aclrtResetDeviceForce", "aclGetRecentErrMsg", "aclrtGetSocName",
		"aclrtGetLastError", "aclsysGetCANNVersion", "aclrtGetDevice", "aclrtBinaryUnLoad", "aclrtRegisterCpuFunc",
		"aclrtSetExceptionInfoCallback", "aclrtExceptionInfoCallbackRegister", "aclrtCreateStreamWithConfig",
	}
	d, _ := other(t, standin.Variant{Hide: hide})
	ctx := t.Context()
	s, r := d.CreateStream(ctx)
	require.True(t, r.Ok(), "by the older function")
	unsupported := backend.Result{Outcome: backend.Refused, Code: backend.FeatureNotSupported}
	_, r = d.StreamID(ctx, s)
	require.Equal(t, unsupported, r)
	_, r = d.CaptureStatus(ctx, s)
	require.Equal(t, unsupported, r)
	confirmed, r := d.Reset(ctx)
	require.False(t, confirmed)
	require.Equal(t, unsupported, r)
	_, err := d.Load(onboard.Image{Class: backend.AICPU, Path: cpu("cpu").Path, Function: "cpu", OpType: "Op"})
	var e *onboard.CallError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "aclrtRegisterCpuFunc", e.Call)
	require.Equal(t, backend.FeatureNotSupported, e.Code)

	r = d.SynchronizeStream(ctx, s, 0)
	require.Equal(t, backend.InvalidParam, r.Code)
	require.Nil(t, d.LatestFailure(), "it has no words")
	n, dropped := d.Notices(make([]backend.Notice, 1))
	require.Zero(t, n)
	require.Zero(t, dropped)
	load(t, d, core("core"))
	require.True(t, d.DestroyStream(ctx, s).Ok())
	require.NoError(t, d.Close())
}

func TestMissing(t *testing.T) {
	l, err := onboard.Load(library)
	require.NoError(t, err)
	require.Equal(t, []string{"rtStreamQuery"}, l.Missing(), "the driver has everything that has no other name")
	require.Equal(t, onboard.Version{Major: 1, Minor: 14}, l.Version())
	again, err := onboard.Load(library)
	require.NoError(t, err)
	require.Same(t, l, again, "a file is one library")
}

// An older runtime says with a code of rtStreamQuery, in a library of its own,
// what a newer one says with a status.
func TestStreamQueryOfTheOtherLibrary(t *testing.T) {
	d, c := other(t, standin.Variant{Hide: []string{"aclrtStreamQuery"}, Runtime: true})
	ctx := t.Context()
	s, r := d.CreateStream(ctx)
	require.True(t, r.Ok())
	st, r := d.QueryStream(ctx, s)
	require.True(t, r.Ok())
	require.Equal(t, backend.Complete, st)

	k := load(t, d, cpu("slow_cpu"))
	args, r := d.Alloc(ctx, backend.DeviceMemory, 64)
	require.True(t, r.Ok())
	require.True(t, d.Submit(ctx, s, backend.Launch{Class: backend.AICPU, Kernel: k, Args: args}).Ok())
	st, r = d.QueryStream(ctx, s)
	require.True(t, r.Ok(), "that it is not drained is no failure")
	require.Equal(t, backend.NotReady, st)

	c.Fail("rtStreamQuery", 1, standin.Before, int32(backend.DriverInternalError), 0)
	st, r = d.QueryStream(ctx, s)
	require.Equal(t, backend.Failed, r.Outcome)
	require.Equal(t, backend.DriverInternalError, r.Code)
	require.Equal(t, backend.NotReady, st)
}

// With the older way of listening there is one place for a callback.
func TestNoticesByTheOlderFunction(t *testing.T) {
	d, c := other(t, standin.Variant{Hide: []string{"aclrtExceptionInfoCallbackRegister"}})
	c.Shout(1, 1, 1)
	var dst [2]backend.Notice
	n, _ := d.Notices(dst[:])
	require.Equal(t, 1, n)
	require.Equal(t, backend.Notice{Device: 1, Stream: 1, Code: backend.AICPUException}, dst[0])
}

func TestOpenSaysWhatFailed(t *testing.T) {
	restart(t)
	open := func(c onboard.Config) error {
		c.Library = library
		d, err := onboard.Open(c)
		if err == nil {
			d.Detach()
		}
		return err
	}
	for _, c := range []onboard.Config{{Device: -1}, {Device: onboard.MaxDevices}, {Notices: -1}, {Notices: onboard.MaxNotices + 1}} {
		require.ErrorIs(t, open(c), onboard.ErrConfig, "%+v", c)
	}
	for _, call := range []string{"aclInit", "aclrtSetDevice", "aclrtCreateContext", "aclrtExceptionInfoCallbackRegister"} {
		driver.Fail(call, 1, standin.Before, int32(backend.DriverInternalError), 0)
		err := open(onboard.Config{Device: 2})
		var e *onboard.CallError
		require.ErrorAs(t, err, &e, call)
		require.Equal(t, call, e.Call)
		require.Equal(t, backend.DriverInternalError, e.Code)
		require.Contains(t, e.Message, call, "the driver's own words, from the thread that failed")
		for _, part := range []string{"507899", "ACL_ERROR_RT_DRV_INTERNAL_ERROR", "the driver failed inside", "dmesg", e.Message} {
			require.ErrorContains(t, err, part)
		}
		require.Equal(t, standin.Live{}, driver.Live(), "what was made before is given back: %s", call)
	}
	require.Error(t, open(onboard.Config{Device: 60}), "there is no such device")
	require.NoError(t, open(onboard.Config{Device: 2}), "nothing stays behind")
}

func TestAnUnknownCodeIsShownAsANumber(t *testing.T) {
	restart(t)
	driver.Fail("aclrtSetDevice", 1, standin.Before, 123456, 0)
	_, err := onboard.Open(onboard.Config{Library: library})
	require.ErrorContains(t, err, "aclrtSetDevice failed: 123456\n")
}

func TestADeviceIsOpenOnce(t *testing.T) {
	d := fresh(t, onboard.Config{Device: 5})
	_, err := onboard.Open(onboard.Config{Library: library, Device: 5})
	var used *onboard.DeviceInUseError
	require.ErrorAs(t, err, &used)
	require.Equal(t, int32(5), used.Device)

	path := build(t, standin.Variant{})
	_, err = onboard.Open(onboard.Config{Library: path, Device: 6})
	var two *onboard.OtherLibraryError
	require.ErrorAs(t, err, &two)
	require.Equal(t, &onboard.OtherLibraryError{Open: library, Wanted: path}, two)

	l, err := onboard.Load(library)
	require.NoError(t, err)
	require.ErrorAs(t, l.Finalize(), &used, "not while a device is open")

	require.NoError(t, d.Close())
	d, err = onboard.Open(onboard.Config{Library: library, Device: 5})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, l.Finalize())
	require.NoError(t, l.Finalize(), "once is enough")
}

func TestErrorsSayWhatTheyAreAbout(t *testing.T) {
	for want, err := range map[string]error{
		"5":                                     &onboard.DeviceInUseError{Device: 5},
		"b":                                     &onboard.OtherLibraryError{Open: "a", Wanted: "b"},
		"7":                                     &onboard.ContextDeviceError{Context: 6, Wanted: 7},
		"1 streams, 2 events and 3 allocations": &onboard.InUseError{Streams: 1, Events: 2, Memory: 3},
	} {
		require.ErrorContains(t, err, want)
		require.False(t, errors.Is(err, onboard.ErrClosed))
	}
}

func TestWhatNoImageIs(t *testing.T) {
	d := fresh(t, onboard.Config{})
	for _, i := range []onboard.Image{
		{Class: backend.AICore, Path: "relative.o", Function: "core"},
		{Class: backend.AICore, Path: core("core").Path},
		{Class: backend.AICPU + 1, Path: core("core").Path, Function: "core"},
		{Class: backend.AICore, Path: core("core").Path, Function: "core", OpType: "x"},
		{Class: backend.AICore, Path: core("core").Path, Function: "core", UserLibrary: true},
		{Class: backend.AICore, Path: core("core").Path, Function: "co\x00re"},
	} {
		k, err := d.Load(i)
		require.ErrorIs(t, err, onboard.ErrConfig, "%+v", i)
		require.Zero(t, k)
	}
	for call, i := range map[string]onboard.Image{
		"aclrtBinaryLoadFromFile": {Class: backend.AICore, Path: "/no/such/file.o", Function: "core"},
		"aclrtBinaryGetFunction":  core("no_such_kernel"),
		"aclrtRegisterCpuFunc":    {Class: backend.AICPU, Path: cpu("cpu").Path, Function: "no_such_kernel", OpType: "Op"},
	} {
		_, err := d.Load(i)
		var e *onboard.CallError
		require.ErrorAs(t, err, &e)
		require.Equal(t, call, e.Call)
	}
	_, err := d.Load(onboard.Image{Class: backend.AICPU, Path: core("core").Path, Function: "core"})
	require.Error(t, err, "an image for the AICore is none for the AICPU: the loader is told which it is")
}

// A kernel runs, however it was found.
func TestAICPUKernelsAreFoundInEachWay(t *testing.T) {
	d := fresh(t, onboard.Config{})
	ctx := t.Context()
	q, r := d.CreateStream(ctx)
	require.True(t, r.Ok())
	p, r := d.CreateStream(ctx)
	require.True(t, r.Ok())
	ck := load(t, d, core("core"))
	for _, i := range []onboard.Image{
		cpu("cpu"),
		{Class: backend.AICPU, Path: cpu("cpu").Path, Function: "cpu", OpType: "RunfenceCpu"},
		{Class: backend.AICPU, Path: cpu("cpu").Path, Function: "cpu", UserLibrary: true},
	} {
		k := load(t, d, i)
		require.True(t, d.Submit(ctx, p, backend.Launch{Class: backend.AICore, Kernel: ck, Blocks: 2}).Ok())
		require.True(t, d.Submit(ctx, q, backend.Launch{Class: backend.AICPU, Kernel: k}).Ok())
		require.True(t, d.SynchronizeStream(ctx, q, time.Second).Ok())
		require.Equal(t, backend.Failed, d.Submit(ctx, q, backend.Launch{Class: backend.AICore, Kernel: k, Blocks: 1}).Outcome,
			"a kernel has one class")
	}
}
