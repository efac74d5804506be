package states

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

func TestOrchestratorDefinitionsCompile(t *testing.T) {
	_, err := machine.Compile(OrchestratorDefinitions()...)
	require.NoError(t, err)
}
