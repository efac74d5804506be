//go:build cgo && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/states"
)

// standIn builds the stand-in driver and its kernels once, with the sanitizer
// that the job is for, and returns the library.
var standIn = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "runfence-standin")
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(dir, "kernels"), 0o700); err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"core.o":     "kernel core class=core duration=40us paired\n",
		"cpu.json":   "kernel cpu class=cpu duration=50us paired\n",
		"fatal.json": "kernel fatal class=cpu duration=50us paired exit=507018\n",
		"slow.json":  "kernel slow class=cpu duration=8ms paired\n",
		"README":     "no kernel\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "kernels", name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	sources, err := filepath.Glob("../../backend/onboard/testdata/standin/*.c")
	if err != nil {
		return "", err
	}
	library := filepath.Join(dir, "libascendcl.so")
	flags := []string{"-std=gnu11", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread", "-o", library}
	if s := os.Getenv("ONBOARD_SANITIZER"); s == "address" || s == "thread" {
		flags = append(flags, "-fsanitize="+s)
	}
	cc := exec.Command("cc", append(flags, sources...)...)
	cc.Stderr = os.Stderr
	return library, cc.Run()
})

func onboardLibrary(t *testing.T) string {
	t.Helper()
	library, err := standIn()
	require.NoError(t, err)
	return library
}

// own are what is a device's own: its time, what numbers it gives to its context
// and its streams, and what errors a thread had before.
var own = []*regexp.Regexp{
	regexp.MustCompile(`,"time":\d+`),
	regexp.MustCompile(`"context":\d+`),
	regexp.MustCompile(`"value":\d{6,}`),
	regexp.MustCompile(`"stream":\d+`),
	regexp.MustCompile(`("row":"record_c[a-z]+".*),"value":\d+`),
	regexp.MustCompile(`("outcome":"ok".*),"last":\d+`),
}

// transitions reads a log as JSON Lines, without the header, the checksums and
// what is a device's own.
func transitions(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for l := range strings.Lines(string(text)) {
		if strings.HasPrefix(l, `{"kind":"machine"`) || !strings.Contains(l, `"seq":`) {
			continue
		}
		l, _, _ = strings.Cut(l, `,"crc":`)
		for _, o := range own {
			l = o.ReplaceAllString(l, "$1")
		}
		lines = append(lines, l)
	}
	return lines
}

// One set of rules drives both devices: every scenario that needs nothing of
// the simulated one gives the same answers on the stand-in driver, its log is
// the same transition by transition, and it replays, as does the other.
func TestScenariosOnTheStandInDriver(t *testing.T) {
	library := onboardLibrary(t)
	files, err := filepath.Glob("../../scenario/testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	s := newShell(states.Rules())
	same := 0
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		if strings.Contains(string(text), "device borrowed") || patched(text) {
			continue // nobody lends a context here; other rules are no matter of devices
		}
		r := s.run("run", "--backend", "onboard", "--acl-lib", library, "--check", f)
		if strings.Contains(r.err, "needs the simulated device") {
			require.Equal(t, 2, r.code, name)
			continue
		}
		if s.run("run", "--check", f).code != 0 {
			continue // not so on the simulated one either, which is told elsewhere
		}
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 0, r.code, "%s%s", r.out, r.err)
			parity(t, s, library, f, f)
		})
		same++
	}
	require.GreaterOrEqual(t, same, 20, "most of the lifecycles are among them")
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.Contains(t, string(maps), library, "and it really was the driver that answered")
}

// parity plays two files on the two devices and compares what the rules did.
func parity(t *testing.T, s *shell, library, onSim, onOnboard string) {
	t.Helper()
	dir := t.TempDir()
	simulated, onboard := filepath.Join(dir, "sim.jsonl"), filepath.Join(dir, "onboard.jsonl")
	r := s.run("run", "--log", simulated, onSim)
	require.Equal(t, 0, r.code, r.err)
	r = s.run("run", "--backend", "onboard", "--acl-lib", library, "--log", onboard, onOnboard)
	require.Equal(t, 0, r.code, r.err)
	require.Empty(t, cmp.Diff(transitions(t, simulated), transitions(t, onboard)))
	for _, log := range []string{simulated, onboard} {
		if len(transitions(t, log)) == 0 {
			continue // a scenario without a lane records nothing
		}
		r := s.run("replay", log)
		require.Equal(t, 0, r.code, "%s%s", r.out, r.err)
	}
}

// The same for what the kernels of a script decide: on the simulated device the
// script defines them, on the other they are images.
func TestFaultsAndTimeoutsOnTheStandInDriver(t *testing.T) {
	library := onboardLibrary(t)
	const kernels = "kernel fatal class=cpu time=50us paired exit=507018\nkernel slow class=cpu time=8ms paired\n"
	for name, script := range map[string]string{
		"a fatal status is told by the synchronize": "open\nprepare a cpu=fatal\nlaunch a\nwait a\nwait a\nfinalize a\nprepare b\nclose\n",
		"an expired wait proves nothing":            "lane lane timeout=5ms\nopen\nprepare a cpu=slow\nlaunch a\nwait a\nfinalize a\nclose\nwait a\nfinalize a\nclose\n",
		"two runs and a fault in one":               "lane lane slots=2\nopen\nprepare a\nlaunch a\nwait a\nfinalize a\nprepare b cpu=fatal args=16\nlaunch b\nwait b\npoll b\nfinalize b\nclose\n",
		"raw calls":                                 "dev stream s\ndev event e\ndev alloc p size=8 place=pinned\ndev alloc d size=8\ndev write p text=12345678\ndev copy d from=p size=8 on=s\ndev record e on=s\ndev wait e\ndev copy p from=d size=8\ndev read p size=8\ndev sync s timeout=0s last\ndev free p\ndev free p\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			onSim, onOnboard := filepath.Join(dir, "sim.txt"), filepath.Join(dir, "onboard.txt")
			require.NoError(t, os.WriteFile(onSim, []byte(kernels+"\n"+script), 0o600))
			require.NoError(t, os.WriteFile(onOnboard, []byte(script), 0o600))
			s := newShell(states.Rules())
			parity(t, s, library, onSim, onOnboard)

			// The answers, too: those of the simulated device, without its times.
			rewritten := s.run("run", "--rewrite", onSim)
			require.Equal(t, 0, rewritten.code, rewritten.err)
			text, err := os.ReadFile(onSim)
			require.NoError(t, err)
			_, rest, ok := strings.Cut(string(text), "\n\n")
			require.True(t, ok)
			require.NoError(t, os.WriteFile(onOnboard, []byte(rest), 0o600))
			r := s.run("run", "--backend", "onboard", "--acl-lib", library, "--check", onOnboard)
			require.Equal(t, 0, r.code, "%s%s", r.out, r.err)

			require.NoError(t, os.WriteFile(onOnboard, []byte(strings.Replace(rest, "ok", "well", 1)+"\n"), 0o600))
			if strings.Contains(rest, "ok") {
				r = s.run("run", "--backend", "onboard", "--acl-lib", library, "--check", onOnboard)
				require.Equal(t, 1, r.code, "another answer is noticed")
			}
		})
	}
}

// A borrowed device needs a host, which the command line is not; the stand-in
// driver can act as one. Each time it is another process: a context may be left
// on a thread of this one.
func TestABorrowedDeviceOfTheCommandLine(t *testing.T) {
	library := onboardLibrary(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "borrowed.txt")
	require.NoError(t, os.WriteFile(script, []byte("device borrowed id=3\nlane lane borrowed generation=7\nopen\nprepare a\nlaunch a\nwait a\nfinalize a\nclose\n"), 0o600))
	logs := []string{filepath.Join(dir, "sim.jsonl"), filepath.Join(dir, "onboard.jsonl")}
	program := func(env string, args ...string) (string, int) {
		c := exec.Command(os.Args[0], append([]string{"run"}, append(args, script)...)...)
		c.Env = append(os.Environ(), asProgram+"=1", env)
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	onboard := []string{"--backend", "onboard", "--acl-lib", library, "--log", logs[1]}
	out, code := program("STANDIN_LENDS=", onboard...)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "no device context is current")
	out, code = program("STANDIN_LENDS=3", onboard...)
	require.Equal(t, 0, code, out)
	out, code = program("", "--log", logs[0])
	require.Equal(t, 0, code, out)
	require.Empty(t, cmp.Diff(transitions(t, logs[0]), transitions(t, logs[1])))
}

func TestOnboardFlags(t *testing.T) {
	library := onboardLibrary(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "a.txt")
	require.NoError(t, os.WriteFile(script, []byte("open\nprepare a\nlaunch a\n"), 0o600))
	s := newShell(states.Rules())
	for name, x := range map[string]struct {
		args []string
		says string
	}{
		"a library for the simulated device": {[]string{"--acl-lib", library}, "go with --backend onboard"},
		"kernels for the simulated device":   {[]string{"--kernels", dir}, "go with --backend onboard"},
		"a seed":                             {[]string{"--backend", "onboard", "--seed", "1"}, "--seed is for the simulated device"},
		"a rewrite":                          {[]string{"--backend", "onboard", "--rewrite"}, "--rewrite is for the simulated device"},
		"another backend":                    {[]string{"--backend", "onbord"}, "onboard"},
		"no library":                         {[]string{"--backend", "onboard", "--acl-lib", filepath.Join(dir, "none.so")}, "no such file"},
		"no directory of kernels":            {[]string{"--backend", "onboard", "--acl-lib", library, "--kernels", filepath.Join(dir, "none")}, "--kernels: open"},
		"no kernels":                         {[]string{"--backend", "onboard", "--acl-lib", library, "--kernels", dir}, "core"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run(append(append([]string{"run"}, x.args...), script)...)
			require.Equal(t, 2, r.code, r.out)
			require.Contains(t, r.err, x.says)
		})
	}
	twice := t.TempDir()
	for _, f := range []string{"core.o", "core.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(twice, f), []byte("kernel core class="+map[bool]string{true: "core", false: "cpu"}[f == "core.o"]+"\n"), 0o600))
	}
	r := s.run("run", "--backend", "onboard", "--acl-lib", library, "--kernels", twice, script)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "two images of core")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "core.o"), []byte("nonsense\n"), 0o600))
	r = s.run("run", "--backend", "onboard", "--acl-lib", filepath.Dir(library), "--kernels", dir, script)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "aclrtBinaryLoadFromFile failed: 107000")
}
