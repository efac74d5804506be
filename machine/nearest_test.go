package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/runfence/runfence/machine"
)

func TestNearestNameIsMeasuredInBytes(t *testing.T) {
	known := []string{"armed", "heiß, ☂", "done"}
	assert.Equal(t, `unknown state "alarmed": did you mean "armed"?`, machine.Unknown("state", "alarmed", known))
	assert.Equal(t, `unknown state "heiss, ☂": did you mean "heiß, ☂"?`, machine.Unknown("state", "heiss, ☂", known))
	assert.Equal(t, `unknown state "x": want one of ["armed" "done" "heiß, ☂"]`, machine.Unknown("state", "x", known))
}
