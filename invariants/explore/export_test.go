package explore

import (
	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/machine"
)

// SetBatch makes batches of n states, and calls done after each.
func SetBatch(o *Options, n int, done func()) { o.batch, o.batchDone = n, done }

// Head returns the head of a checkpoint with this body, of a system of this hash.
func Head(hash machine.Fingerprint, body []byte) []byte {
	return headOf(hash, uint64(len(body)), xxhash.Sum64(body))
}

// HeadBytes is the size of a checkpoint's head.
const HeadBytes = checkpointHead
