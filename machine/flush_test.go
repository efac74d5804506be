package machine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// flushed counts how many records there were at the last Flush.
type flushed struct {
	log
	upTo int
}

func (f *flushed) Flush() { f.upTo = len(f.records) }

func TestIssueIsFlushedBeforeItsCommand(t *testing.T) {
	f := &flushed{}
	inside := -1
	in, err := compile(t, door()).NewInstance(machine.InstanceConfig{Recorder: f, Performer: machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result {
		inside = f.upTo
		return machine.Result{}
	})})
	require.NoError(t, err)
	_, err = in.Fire(context.Background(), in.Machine().MustEvent("open"))
	require.NoError(t, err)
	assert.Equal(t, 1, inside, "a crash while the command runs must find the issue on record")
	assert.Equal(t, 2, f.upTo)
}
