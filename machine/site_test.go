package machine_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runfence/runfence/machine"
)

// sites keeps the function that each record's event was fired from.
type sites []string

func (s *sites) Record(r *machine.Record) {
	f, _ := runtime.CallersFrames([]uintptr{r.Site}).Next()
	*s = append(*s, f.Function)
}

// A site is where the host called, whatever of ours stands between.
func TestSiteIsTheHosts(t *testing.T) {
	const here = "github.com/runfence/runfence/machine_test.TestSiteIsTheHosts"
	perform := machine.PerformerFunc(func(context.Context, *machine.Command) machine.Result { return machine.Result{} })

	var alone sites
	i, err := machine.MustCompile(door()).NewInstance(machine.InstanceConfig{Performer: perform, Recorder: &alone, Sites: true})
	require.NoError(t, err)
	_, err = i.Fire(context.Background(), i.Machine().MustEvent("open"))
	require.NoError(t, err)
	require.Equal(t, sites{here, ""}, alone) // the answer is fired by nobody

	var driven sites
	w, err := machine.MustCompile(door()).NewWorld(machine.Config{Recorder: &driven})
	require.NoError(t, err)
	d, err := machine.NewDriver(w, machine.DriverConfig{Performer: perform, Sites: true})
	require.NoError(t, err)
	_, err = d.Fire(context.Background(), d.Ref(0, 0), i.Machine().MustEvent("open"))
	require.NoError(t, err)
	require.Equal(t, sites{here, ""}, driven)
}
