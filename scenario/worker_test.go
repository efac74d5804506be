package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// TestWorkerMistakes: what a script of workers and packets gets wrong is an
// error with its line, and names what there is.
func TestWorkerMistakes(t *testing.T) {
	const chip = "worker new\nworker init\nworker register f\nprepare a\npacket encode p callable=f run=a\n"
	for script, want := range map[string]string{
		"worker init":                                    `t.txt:1: worker init: the present lane is no worker's; make one with "worker new"`,
		"worker register f":                              `t.txt:1: worker register: the present lane is no worker's`,
		"packet check p":                                 `t.txt:1: packet check: the present lane is no worker's`,
		"worker new\nworker new":                         `t.txt:2: worker is made already; go back to it with "lane worker"`,
		"lane w\nworker new w":                           `t.txt:2: w is made already`,
		"worker new slots=0":                             "t.txt:1: worker new: it needs a slot",
		"worker new depth=2":                             "t.txt:1: worker new: a depth of 2 needs as many slots",
		"worker new mode=program":                        `t.txt:1: worker new: unknown mode "program"`,
		chip + "worker live g":                           `t.txt:6: unknown callable "g"`,
		chip + "worker unregister":                       "t.txt:6: worker unregister: callable is missing",
		chip + "packet check q":                          `t.txt:6: unknown packet "q"`,
		chip + "packet spoil p":                          "t.txt:6: packet spoil: give cut=…, or value=… with either field=… or at=…",
		chip + "packet spoil p at=1 field=magic value=2": "t.txt:6: packet spoil: give cut",
		chip + "packet spoil p field=magic":              "t.txt:6: packet spoil: give cut",
		chip + "packet spoil p field=address value=1":    "t.txt:6: packet spoil: address ends at byte 64, the packet at 56",
		chip + "packet spoil p at=56 value=1":            "t.txt:6: packet spoil: byte 56 ends at byte 57, the packet at 56",
		chip + "packet encode q callable=f run=b":        `t.txt:6: unknown run "b"`,
		chip + "packet encode q callable=g run=a":        `t.txt:6: unknown callable "g"`,
		chip + "pure begin\npacket store p":              `t.txt:7: packet store: there is no device in the pure world`,
	} {
		_, err := play(t, script, Options{})
		require.ErrorContains(t, err, want, script)
	}
}

// A worker that is refused leaves no lane behind: its name is free.
func TestRefusedWorkerLeavesNoLane(t *testing.T) {
	out, err := play(t, "device borrowed\nworker new w borrowed generation=1 sdma\nworker new w borrowed generation=1", Options{})
	require.NoError(t, err)
	require.Equal(t, `device 0: borrowed
worker new w: refused: a borrowed initialisation takes no SDMA and no simulator
worker new w: PROGRAM, borrowed, generation 1, 1 slot, timeout 1000000us
`, out)
}

// A worker's log is its lane's, under the name that the script gave it.
func TestWorkerHasALog(t *testing.T) {
	var count recordCount
	var names []string
	_, err := play(t, "worker new w\nworker init\nprepare a\nlaunch a\nwait a", Options{Recorder: func(n string, _ map[string]int, _ int) machine.Recorder {
		names = append(names, n)
		return &count
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"w"}, names)
	require.NotZero(t, count.time)
}
