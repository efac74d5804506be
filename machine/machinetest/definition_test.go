package machinetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/machinetest"
)

func TestAllThatIsDrawnCompiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, err := machine.Compile(machinetest.Definition(t))
		require.NoError(t, err)
		_, err = machine.Compile(machinetest.Definitions(t)...)
		require.NoError(t, err)
	})
}
