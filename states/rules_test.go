package states

import (
	"testing"

	"github.com/runfence/runfence/machine"
)

func TestDefinitionsCompile(t *testing.T) {
	if _, err := machine.Compile(Definitions()...); err != nil {
		t.Fatal(err)
	}
}
