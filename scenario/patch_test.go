package scenario

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/states"
)

// TestPatchedRules: the changes at the head of a file are those it runs by, of
// lanes, of an environment alone and of the layer above.
func TestPatchedRules(t *testing.T) {
	for _, c := range []struct{ patch, script, as, becomes string }{
		{"run/drained: to launched", "open\nprepare a\nlaunch a\nwait a\nstate run[a]\n", "run[0]: drained", "run[0]: launched"},
		{`environment/create-owned-generation: guard set "true"`, "env create\nenv state\n", "live", "absent"},
		{`orchestrator/check: error set "not now"`, "orch begin\nissue orchestrator check\n", "check: open\n", "check: open; not now\n"},
	} {
		plain, err := play(t, c.script, Options{})
		require.NoError(t, err)
		require.Contains(t, plain, c.as)
		out, err := play(t, "# A comment may come first.\n\npatch "+c.patch+"\n"+c.script, Options{})
		require.NoError(t, err, c.patch)
		require.Contains(t, out, c.becomes, c.patch)
	}
}

func TestPatchesStandAtTheHead(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"# c\n\npatch run/drained: too launched\nopen", `t.txt:3: patch: run/drained: unknown field "too": did you mean "to"?`},
		{"patch run/drained", `t.txt:1: patch: "run/drained": want MACHINE/ROW`},
		{"patch run/drained: to launched\npatch rnu/drained: to launched\nopen", `t.txt:2: patch: unknown machine "rnu": did you mean "run"?`},
		{"patch run/drained: to launchd", `t.txt:1: patch: run/drained: to launchd: unknown state of run "launchd": did you mean "launched"?`},
		{"patch lane/open: row drop", `t.txt:1: the rules do not compile with the patches: lane: states: "open" cannot be reached`},
		{"open\npatch run/drained: to launched", `t.txt:2: patch: the rules cannot change any more; patches come before the first command`},
		{"open\n----\n\npatch run/drained: to launched", `t.txt:4: patch: the rules cannot change any more`},
	} {
		_, err := play(t, c.script, Options{})
		require.ErrorContains(t, err, c.want, c.script)
	}
}

// TestPatchesAreKept: a file that is rewritten keeps them, and checks again.
func TestPatchesAreKept(t *testing.T) {
	const src = "# c\npatch run/drained: to launched\n\nopen\nprepare a\nlaunch a\nwait a\nstate run[a]\n"
	r, err := Run("t.txt", []byte(src), Options{})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(r.Rewritten), src+separator+"\n"))
	again, err := Run("t.txt", r.Rewritten, Options{})
	require.NoError(t, err)
	require.Empty(t, again.Mismatches)

	rules, err := Rules("t.txt", []byte(src), nil)
	require.NoError(t, err)
	require.NotEqual(t, states.Rules().Hash(), rules.Hash())
	same, err := Rules("t.txt", []byte("open"), nil)
	require.NoError(t, err)
	require.Same(t, states.Rules(), same)
}

// TestRulesWithoutEnd: an operation that never ends by its rules is stopped
// after a number of transitions, on a lane and in a world stepped by hand.
func TestRulesWithoutEnd(t *testing.T) {
	for _, src := range []string{
		"patch drain/core_wait-none: to core_wait\npatch drain/core_wait-none: emit set \"self.cpu_wait()\" \"self.core_wait()\"\npatch drain/core_wait: then[2].to core_wait\npatch drain/core_wait: then[1].to core_wait\npatch drain/core_wait: then[1].emit set \"self.cpu_wait()\" \"self.core_wait()\"\n" +
			"open\nprepare a\nlaunch a\nhold WaitCore\nwait a\nresume wait a\n",
		"patch drain/core_wait: guard set \"false\"\npatch drain/core_wait-none: to core_wait\npatch drain/core_wait-none: emit set \"self.cpu_wait()\" \"self.core_wait()\"\n" +
			"open\nprepare a\nlaunch a\nwait a\n",
		"patch ending/quiet: emit set \"self.drain()\" \"self.quiet()\"\norch begin\nissue ending start\norch go ending\n",
	} {
		_, err := play(t, src, Options{MaxTransitions: 5000})
		require.ErrorIs(t, err, ErrTooLarge, src)
		require.ErrorContains(t, err, "more than 5000 transitions")
	}
}
