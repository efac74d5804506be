package backend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

func TestCodeText(t *testing.T) {
	require.Equal(t, "507018 (ACL_ERROR_RT_AICPU_EXCEPTION)", backend.AICPUException.String())
	require.Equal(t, "107027 (ACL_ERROR_RT_STREAM_CAPTURED)", backend.StreamCaptured.String())
	require.Equal(t, "4711", backend.Code(4711).String(), "an unknown code is not guessed")
	require.Empty(t, backend.Code(4711).Name())
	require.Equal(t, "507018 AICPU_EXCEPTION", backend.AICPUException.Brief())
	require.Equal(t, "AICPU_EXCEPTION", backend.AICPUException.ShortName())
	require.Equal(t, "0", backend.Success.Brief(), "there is nothing to say of success")
	require.Equal(t, "4711", backend.Code(4711).Brief())
}

func TestNames(t *testing.T) {
	require.Equal(t, "core", backend.AICore.String())
	require.Equal(t, "cpu", backend.AICPU.String())
	require.Equal(t, "complete", backend.Complete.String())
	require.Equal(t, "not ready", backend.NotReady.String())
	require.True(t, backend.Result{}.Ok())
	require.False(t, backend.Result{Outcome: machine.Refused}.Ok())
}
