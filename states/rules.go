package states

import (
	"sync"

	"github.com/runfence/runfence/machine"
)

// Definitions returns the lifecycles of a lane, freshly made: callers may
// change them, to mutate a rule or to add one, and compile the result.
func Definitions() []*machine.Definition {
	return []*machine.Definition{
		environment(), latch(), lane(), run(), fence(), token(),
		opening(), prepare(), launch(), poll(), drain(), finalize(), submit(), recovery(), closing(),
		region(), callerOrder(), join(), outcome(),
		registry(), callable(), health(), watched(), invocation(),
	}
}

var compiled = sync.OnceValues(func() (*machine.Rules, error) { return machine.Compile(Definitions()...) })

// Rules returns the compiled lifecycles of a lane. They are immutable and
// shared; a host that wants other rules passes its own to [Config].
func Rules() *machine.Rules {
	r, err := compiled()
	if err != nil {
		panic("states: " + err.Error())
	}
	return r
}
