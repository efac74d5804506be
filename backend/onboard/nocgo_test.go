//go:build !cgo || !linux

package onboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend/onboard"
)

func TestWithoutCgo(t *testing.T) {
	require.False(t, onboard.Supported)
	d, err := onboard.Open(onboard.Config{})
	require.Nil(t, d)
	require.ErrorIs(t, err, onboard.ErrNoCgo)
	require.ErrorContains(t, err, "CGO_ENABLED=1")
	l, err := onboard.Load("")
	require.Nil(t, l)
	require.ErrorIs(t, err, onboard.ErrNoCgo)
	g := onboard.Diagnose(onboard.DiagnoseOptions{SelfTest: true})
	require.False(t, g.OK())
	require.Len(t, g.Problems, 1)
	require.Contains(t, g.Problems[0].What, "without cgo")
	require.Contains(t, g.Problems[0].Advice, "CGO_ENABLED=1")
}
