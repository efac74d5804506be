//go:build !unix

package promela

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
