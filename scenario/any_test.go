package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/states"
)

// anyCommand draws a command of any verb with values that often mean something.
func anyCommand(t *rapid.T) string {
	all := make([]string, 0, len(verbs))
	for n := range verbs {
		all = append(all, n)
	}
	slices.Sort(all)
	// Those that carry a script on come more often.
	for range 12 {
		all = append(all, "open", "prepare", "launch", "wait", "finalize", "poll", "resume", "hold", "fault", "ref reserve", "ref queue", "submit", "enqueue", "retry", "abort", "recover", "issue", "settle", "step")
	}
	v := verbs[rapid.SampledFrom(all).Draw(t, "verb")]
	instances := []string{"lane", "environment", "opening", "closing", "fence[0]", "fence[1]", "launch[0]", "launch[a]", "poll[0]", "drain[0]", "finalize[0]", "prepare[0]", "run[0]", "run[b]", "token[0]", "token[1]", "latch"}
	line := v.name
	instance := ""
	for _, p := range v.params {
		if !p.need && rapid.IntRange(0, 2).Draw(t, "leave out "+p.name) > 0 {
			continue
		}
		value := ""
		switch p.kind {
		case toggle:
			line += " " + p.name
			continue
		case name:
			pool := []string{"a", "b"}
			switch p.name {
			case "core", "cpu", "kernel":
				pool = []string{"core", "cpu"}
			case "on", "caller", "handle", "stream", "event", "memory", "from":
				pool = []string{"core", "cpu", "core_done", "cpu_done", "args", "pinned", "s", "e", "m"}
			}
			if p.name == "event" && instance != "" {
				pool = nil
				for _, d := range states.Definitions() {
					if m, _, _ := strings.Cut(instance, "["); d.Name == m {
						for _, e := range d.Events {
							pool = append(pool, e.Name)
						}
					}
				}
			}
			value = rapid.SampledFrom(pool).Draw(t, p.name)
		case word:
			known := slices.Clone(p.words)
			if p.from != nil {
				known = append(known, p.from(states.Rules())...)
			}
			value = rapid.SampledFrom(known).Draw(t, p.name)
		case count:
			value = fmt.Sprint(rapid.IntRange(0, 5).Draw(t, p.name))
		case duration:
			value = rapid.SampledFrom([]string{"0s", "1us", "40us", "1ms", "1s"}).Draw(t, p.name)
		case code:
			value = rapid.SampledFrom([]string{"0", "507018", "-1", "DRV_INTERNAL_ERROR"}).Draw(t, p.name)
		case text:
			switch p.name {
			case "instance":
				instance = rapid.SampledFrom(instances).Draw(t, p.name)
				value = instance
			case "value":
				value = rapid.SampledFrom([]string{"home", "none", "complete", "not_ready"}).Draw(t, p.name)
			default:
				value = rapid.SampledFrom([]string{"next", "10us", "idle", "x"}).Draw(t, p.name)
			}
		case names:
			value = "(run, fence)"
		}
		if p.place {
			line += " " + value
		} else {
			line += " " + p.name + "=" + value
		}
	}
	if v.open {
		line += eventText(t, line)
	}
	return line
}

// eventText draws the arguments of the event that a line names.
func eventText(t *rapid.T, line string) (out string) {
	w := strings.Fields(line)
	m, _, _ := strings.Cut(w[1], "[")
	for _, d := range states.Definitions() {
		for _, e := range d.Events {
			if d.Name != m || len(w) < 3 || e.Name != w[2] {
				continue
			}
			for _, a := range e.Args {
				pool := []string{"0", "1", "a", "b", "none"}
				switch kind, rest, _ := strings.Cut(a.Type, " "); kind {
				case "enum":
					pool = strings.Split(rest, "|")
				case "ref":
					pool = []string{"fence[0]", "fence[1]"}
				case "bool":
					pool = []string{"true", "false"}
				case "code", "int":
					pool = []string{"0", "1", "2"}
				}
				out += " " + a.Name + "=" + rapid.SampledFrom(pool).Draw(t, a.Name)
			}
		}
	}
	return out
}

// TestAnyScript: whatever is said in whatever order, in a lane and in its pure
// world, is answered or is an error with a line; and the same is answered again.
func TestAnyScript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := rapid.SampledFrom([]string{"", "dev stream s\nlane slots=3 depth=2\nopen\nsubmit a caller=s\nsubmit b caller=s\n", "lane slots=2\nopen\nprepare a\n", "lane lane timeout=1ms\nopen\nprepare a\nlaunch a\n", "lane borrowed generation=7\nopen\nprepare a args=8\nhold SubmitCPU\nlaunch a\n", "open\nprepare a\npure begin\nissue launch[a] start run=a permit=a\n"}).Draw(t, "head")
		// A command that cannot be said where it stands ends a script, so each is
		// tried on what was said before it.
		script := head
		for range rapid.IntRange(1, 25).Draw(t, "commands") {
			longer := script + anyCommand(t) + "\n"
			r, err := Run("any", []byte(longer), Options{})
			if err == nil {
				script = longer
				continue
			}
			var e *Error
			require.True(t, errors.As(err, &e) && e.Line > 0, "%v", err)
			require.NotNil(t, r)
		}
		one, err := Run("any", []byte(script), Options{})
		require.NoError(t, err)
		two, err := Run("any", one.Rewritten, Options{})
		require.NoError(t, err)
		require.Empty(t, two.Mismatches)
		for _, b := range one.Blocks {
			if !strings.Contains(script, "fire") && !strings.Contains(script, "issue") {
				// Operations of hosts never come to a place where the rules end.
				require.NotContains(t, b.Actual, "hole in the rules", "%s", script)
			}
			require.NotContains(t, "\n"+b.Actual, "\n\n")
		}
	})
}
