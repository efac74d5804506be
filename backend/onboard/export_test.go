//go:build cgo && linux

package onboard

import "time"

// Sanitizer says what the C code is compiled with.
func Sanitizer() string { return sanitizer() }

// Millis is a timeout as the device gets it.
func Millis(d time.Duration) int32 { return int32(millis(d)) }
