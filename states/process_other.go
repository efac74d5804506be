//go:build !linux

package states

import "os"

// callingProcess returns a function that reports the calling process.
func callingProcess() func() int { return os.Getpid }
