package invariants

import "github.com/runfence/runfence/backend/sim"

// Simulated is a simulated device as the invariants look into it: what it calls
// a violation is what must not be done to a device.
type Simulated struct{ *sim.Device }

// Broken implements [Device].
func (d Simulated) Broken() []string {
	var out []string
	for _, v := range d.Violations() {
		out = append(out, v.String())
	}
	return out
}
