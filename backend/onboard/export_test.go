//go:build cgo && linux

package onboard

// Sanitizer says what the C code is compiled with.
func Sanitizer() string { return sanitizer() }
