package translog_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// childLog tells this test binary to be the writer that is killed: the log's
// path, format and batch.
const childLog = "TRANSLOG_TEST_CHILD"

func TestMain(m *testing.M) {
	if s := os.Getenv(childLog); s != "" {
		child(strings.Split(s, "|"))
	}
	goleak.VerifyTestMain(m)
}

// child writes as fast as it can, and says which record is the last that is safe
// by the promise of its mode: with batches of one, also from inside commands. It
// never ends by itself.
func child(args []string) {
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	f, err := os.Create(args[0])
	must(err)
	format, err := translog.ParseFormat(args[1])
	must(err)
	batch, err := strconv.Atoi(args[2])
	must(err)
	rules := machine.MustCompile(toggle())
	w, err := translog.NewWriter(f, rules, translog.Options{Format: format, Batch: batch, Exact: batch == 1})
	must(err)
	in, err := rules.NewInstance(machine.InstanceConfig{Recorder: w.World("child", nil, 0), Performer: machine.PerformerFunc(func(_ context.Context, c *machine.Command) machine.Result {
		if batch == 1 {
			_, err := fmt.Println(c.Seq)
			must(err)
		}
		return machine.Result{}
	})})
	must(err)
	for n := 1; ; n++ {
		_, err := in.Fire(bg, machine.EventID((n+1)&1))
		must(err)
		if batch != 1 {
			if n%7 != 0 {
				continue
			}
			must(w.Sync())
		}
		_, err = fmt.Println(2 * n)
		must(err)
	}
}

func TestKilledWriterLeavesWhatItPromised(t *testing.T) {
	for _, f := range formats {
		for _, batch := range []int{1, 0, 300} {
			for _, after := range []int{1, 40, 333} {
				t.Run(fmt.Sprintf("%v/batch %d/after %d", f, batch, after), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "log")
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%v|%d", childLog, path, f, batch))
					cmd.Stderr = os.Stderr
					out, err := cmd.StdoutPipe()
					require.NoError(t, err)
					require.NoError(t, cmd.Start())
					lines := bufio.NewScanner(out)
					safe := 0
					for said := 0; lines.Scan(); {
						n, err := strconv.Atoi(lines.Text())
						if err != nil {
							continue // the last line may be cut
						}
						safe = max(safe, n)
						if said++; said == after {
							require.NoError(t, cmd.Process.Kill())
						}
					}
					err = cmd.Wait()
					var exit *exec.ExitError
					require.ErrorAs(t, err, &exit)
					require.Equal(t, "signal: killed", exit.String())

					file, err := os.Open(path)
					require.NoError(t, err)
					defer file.Close()
					r, err := translog.NewReader(file)
					require.NoError(t, err)
					var e translog.Entry
					seq := uint64(0)
					for err = r.Next(&e); err == nil; err = r.Next(&e) {
						if e.Kind == translog.RecordEntry {
							seq++
							require.Equal(t, seq, e.Record.Seq)
						}
					}
					if err != io.EOF {
						var torn *translog.TornError
						require.True(t, errors.As(err, &torn), "%v", err)
						require.Equal(t, seq, torn.Place.Seq)
					}
					assert.False(t, r.Closed())
					assert.GreaterOrEqual(t, seq, uint64(safe), "what was promised to be safe is there")
				})
			}
		}
	}
}
