package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

func TestReservedIdentitiesAreOnRecord(t *testing.T) {
	var log log
	l := newLane(t, machine.Config{Recorder: &log, Clock: func() int64 { return 7 }}, minter())
	l.ReserveIdentity("token", 5)
	l.ReserveIdentity("token", 5) // changes nothing
	l.ReserveIdentity("token", 3)
	l.ReserveIdentity("no such sort", 3)
	l.takes(l.ref("minter", 0), "mint")
	require.Len(t, log.records, 2, "one record for what changed, one for the step")
	assert.Equal(t, machine.Record{
		Kind: machine.Reserved, Seq: 1, Time: 7, Args: [machine.MaxArgs]uint64{5}, NArgs: 1,
		Row: machine.NoRowID, Call: machine.NoCall, Reason: machine.NoReasonID,
	}, log.records[0])
	assert.EqualValues(t, 2, log.records[1].Seq)
	assert.EqualValues(t, 6, l.fact(l.ref("minter", 0), "token"))
}
