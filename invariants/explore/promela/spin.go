package promela

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ErrNoSpin is matched by the error of [FindSpin] where SPIN or a C compiler is
// not installed.
var ErrNoSpin = errors.New("SPIN is not installed")

// Spin is the model checker, and the C compiler that it needs.
type Spin struct{ spin, cc string }

// FindSpin looks for SPIN and a C compiler on the path. The error matches
// [ErrNoSpin] and says how to install them.
func FindSpin() (Spin, error) {
	s, err := exec.LookPath("spin")
	if err != nil {
		return Spin{}, fmt.Errorf("%w: it is the Debian package spin (apt-get install spin gcc libc6-dev)", ErrNoSpin)
	}
	cc, err := exec.LookPath("gcc")
	if err != nil {
		return Spin{}, fmt.Errorf("%w: it needs a C compiler (apt-get install gcc libc6-dev)", ErrNoSpin)
	}
	return Spin{s, cc}, nil
}

// Verdict is what SPIN says of a model.
type Verdict struct {
	// States is how many were stored, Edges how many transitions were taken.
	States, Edges uint64
	// Broken is the id of the invariant that an assertion found broken, "hole"
	// or "bounds", or "" if none is. Depth is how many steps led there.
	Broken string
	Depth  int
	// Wall is the time that the search took, CPU what it used of a processor.
	Wall, CPU time.Duration
	// StateBytes is the memory of the stored states, for each of them, without
	// the table that finds them, whose size is fixed beforehand.
	StateBytes float64
}

// Check searches a model, in a directory of its own below the system's. A
// search for the shortest way to a fault goes breadth first and does not
// optimise the checker, which takes longer to make than to run.
func (s Spin) Check(ctx context.Context, model string, shortest bool) (_ Verdict, err error) {
	dir, err := os.MkdirTemp("", "runfence-spin-")
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "model.pml"), []byte(model), 0o600); err != nil {
		return Verdict{}, err
	}
	run := func(name string, args ...string) (string, *os.ProcessState, error) {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out), c.ProcessState, err
	}
	// SPIN would leave variables that nothing reads out of the state (-o2), and
	// reduce the search (NOREDUCE): then it would count other states than we do.
	if _, _, err := run(s.spin, "-a", "-o2", "model.pml"); err != nil {
		return Verdict{}, err
	}
	build := []string{"-O2", "-w", "-DNOREDUCE", "-DSAFETY", "-DNOFAIR", "-DMEMLIM=6000", "-o", "pan", "pan.c"}
	args := []string{"-n", "-m100000", "-w24"}
	if shortest {
		build[0] = "-O0"
		build = append([]string{"-DBFS"}, build...)
	}
	if _, _, err := run(s.cc, build...); err != nil {
		return Verdict{}, err
	}
	begun := time.Now()
	out, ps, err := run(filepath.Join(dir, "pan"), args...)
	if err != nil {
		return Verdict{}, err
	}
	v, err := parseVerdict(out)
	v.Wall, v.CPU = time.Since(begun), ps.UserTime()+ps.SystemTime()
	return v, err
}

var (
	storedLine   = regexp.MustCompile(`(?m)^\s*([0-9.e+]+) states, stored`)
	movesLine    = regexp.MustCompile(`(?m)^\s*([0-9.e+]+) states, matched`)
	usageLine    = regexp.MustCompile(`(?m)^\s*([0-9.]+)\s+actual memory usage for states`)
	equalLine    = regexp.MustCompile(`(?m)^\s*([0-9.]+)\s+equivalent memory usage for states`)
	violatedLine = regexp.MustCompile(`assertion violated (.*) \(at depth (\d+)\)`)
	claimNumber  = regexp.MustCompile(`\((7\d\d\d)==0\)`)
)

// parseVerdict reads the report of a checker.
func parseVerdict(out string) (Verdict, error) {
	bad := func(why string) (Verdict, error) { return Verdict{}, fmt.Errorf("spin: %s:\n%s", why, out) }
	number := func(re *regexp.Regexp) float64 {
		if m := re.FindStringSubmatch(out); m != nil {
			f, _ := strconv.ParseFloat(m[1], 64)
			return f
		}
		return 0
	}
	var v Verdict
	switch {
	case strings.Contains(out, "max search depth too small"), strings.Contains(out, "Search not completed") && !strings.Contains(out, "assertion violated"):
		return bad("the search was not completed")
	case strings.Contains(out, "errors: 0") == strings.Contains(out, "assertion violated"):
		return bad("an error that is no assertion")
	}
	if m := violatedLine.FindStringSubmatch(out); m != nil {
		n := claimNumber.FindStringSubmatch(m[1])
		if n == nil {
			return bad("an assertion without a number")
		}
		i, _ := strconv.Atoi(n[1])
		if i -= firstClaim; i >= len(claims()) {
			return bad("an assertion of another number")
		}
		v.Broken = strings.ReplaceAll(claims()[i], "_", "-")
		v.Depth, _ = strconv.Atoi(m[2])
		v.Depth++ // it counts the steps before the one that failed
	}
	v.States = uint64(number(storedLine))
	v.Edges = v.States + uint64(number(movesLine))
	if v.States == 0 {
		return bad("no states")
	}
	v.Edges-- // the first state is stored, and nothing led to it
	used := number(usageLine)
	if used == 0 {
		used = number(equalLine)
	}
	v.StateBytes = used * (1 << 20) / float64(v.States)
	return v, nil
}
