package promela

import ("testing";"context";"time";"github.com/runfence/runfence/states")

func TestFaultsZZ(t *testing.T) {
	defs := states.Definitions()
	for _, f := range Faults() {
		r, err := f.Rules(defs)
		if err != nil { t.Error(f.Name, err); continue }
		start := time.Now()
		o, err := Search(context.Background(), r, f.Shape)
		t.Logf("%s: %v err %v %v", f.Name, o, err, time.Since(start))
	}
}
