package onboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/backend/onboard"
)

func TestExplain(t *testing.T) {
	known := []backend.Code{
		backend.InvalidParam, backend.InvalidHandle, backend.ContextNull, backend.StreamContext, backend.TaskAbort,
		backend.StreamCaptured, backend.FeatureNotSupported, backend.OutOfMemory, backend.InternalError, backend.AICoreTimeout,
		backend.AICoreException, backend.AICPUTimeout, backend.AICPUException, backend.StreamSyncTimeout, backend.EventSyncTimeout,
		backend.DriverInternalError,
	}
	for _, c := range known {
		e, ok := onboard.Explain(c)
		require.True(t, ok, c)
		require.NotEmpty(t, e.Meaning, c)
		require.NotEmpty(t, e.Next, c)
		require.NotEmpty(t, c.Name(), "a code that is explained has a name")
		require.Equal(t, c.String()+": "+e.Meaning+"; "+e.Next, onboard.Describe(c))
	}
	for _, c := range []backend.Code{123456, -1, 507019} {
		_, ok := onboard.Explain(c)
		require.False(t, ok, c)
		require.Equal(t, c.String(), onboard.Describe(c))
	}
	require.Equal(t, "507019", onboard.Describe(507019), "the number alone")
}
