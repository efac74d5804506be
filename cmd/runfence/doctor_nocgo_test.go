//go:build !cgo || !linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/states"
)

// Without cgo the program says that it cannot look, and what to do.
func TestDoctorWithoutCgo(t *testing.T) {
	s := newShell(states.Rules())
	r := s.run("doctor")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.out, "without cgo")
	require.Contains(t, r.out, "CGO_ENABLED=1")
	r = s.run("run", "--backend", "onboard")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "CGO_ENABLED=1")
}
