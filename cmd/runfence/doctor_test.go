//go:build cgo && linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend/onboard"
	"github.com/runfence/runfence/states"
)

func TestDoctorWithoutTheSoftware(t *testing.T) {
	t.Setenv(onboard.LibraryVariable, "")
	t.Setenv(onboard.HomeVariable, t.TempDir())
	s := newShell(states.Rules())
	r := s.run("doctor")
	require.Equal(t, 1, r.code, "a finding")
	require.Empty(t, r.err)
	for _, want := range []string{
		"platform   linux/", "lib64/libascendcl.so (ASCEND_HOME_PATH): no such file\n", "libascendcl.so (loader): ",
		"\nthe Ascend runtime was not found", "  install the CANN toolkit", "RUNFENCE_ACL_LIB",
	} {
		require.Contains(t, r.out, want)
	}
	require.NotContains(t, r.out, "Nothing stands in the way")
	for l := range strings.Lines(r.out) {
		require.NotContains(t, l, "\t")
	}
}

func TestDoctor(t *testing.T) {
	library := onboardLibrary(t)
	s := newShell(states.Rules())
	r := s.run("doctor", "--acl-lib", library, "--self-test", "--device", "3")
	require.Equal(t, 0, r.code, "%s%s", r.out, r.err)
	for _, want := range []string{
		"library    " + library + " (configuration)\n", "interface  1.14.0 of CANN stand-in\n",
		"are there; done without: rtStreamQuery\n", "devices    0, 1, 2, 3, 4, 5, 6, 7 (Standin910)\n",
		"self-test  ok  open device 3\n           ok  two streams\n", "ok  close\n", "\nNothing stands in the way.\n",
	} {
		require.Contains(t, r.out, want)
	}
	r = s.run("doctor", "--acl-lib", library)
	require.Equal(t, 0, r.code)
	require.NotContains(t, r.out, "self-test", "only on request")

	r = s.run("doctor", "--acl-lib", library, "--json")
	require.Equal(t, 0, r.code)
	var d onboard.Diagnosis
	require.NoError(t, json.Unmarshal([]byte(r.out), &d))
	require.Equal(t, library, d.Library)
	require.Len(t, d.Devices, 8)
	require.True(t, d.OK())

	r = s.run("doctor", "--acl-lib", library, "--self-test", "--device", "12")
	require.Equal(t, 1, r.code, "there is no such device")
	require.Contains(t, r.out, "self-test  FAIL  open device 12\n")
	require.Contains(t, r.out, "self-test: open device 12: onboard: aclrtSetDevice failed: 107001")

	broken := filepath.Join(t.TempDir(), "x.so")
	require.NoError(t, os.WriteFile(broken, []byte("no library"), 0o600))
	r = s.run("doctor", "--acl-lib", broken, "--json")
	require.Equal(t, 1, r.code)
	require.NoError(t, json.Unmarshal([]byte(r.out), &d))
	require.NotEmpty(t, d.Problems)

	for _, args := range [][]string{{"doctor", "x"}, {"doctor", "--device", "1"}, {"doctor", "--device", "x"}} {
		require.Equal(t, 2, s.run(args...).code, args)
	}
}

func TestDoctorTellsWhatIsNeeded(t *testing.T) {
	symbols := []onboard.Symbol{
		{Name: "a", Present: true, Needed: true},
		{Name: "b", Needed: true},
		{Name: "c", Or: "d"},
		{Name: "d"},
		{Name: "e", Or: "f"},
		{Name: "f", Present: true},
		{Name: "g"},
	}
	require.Equal(t, "2 of 7 are there; needed: b, c or d; done without: e, g", functions(symbols))
}
