//go:build !unix

package bench

import "time"

var began = time.Now()

// processor returns the time since the start, where processor time is not to
// be had simply.
func processor() time.Duration { return time.Since(began) }
