package mutate

import (
	"fmt"
	"slices"

	"github.com/runfence/runfence/invariants"
	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
)

// above is a host of an orchestrator with two runs, an object, a domain and a
// task: it builds graphs, and while one is built makes what a graph is made of;
// it waits for runs and comes to their fences, releases early, and closes.
func above(w *machine.World) []explore.Call {
	if w.Queued() > 6 {
		return nil
	}
	var out []explore.Call
	call := func(machine string, slot int, event string, args ...uint64) {
		out = append(out, explore.Call{Machine: machine, Slot: slot, Event: event, Args: args})
	}
	r := w.Rules()
	m := r.Machine("building")
	_, building := w.InFlight(w.Ref(m.ID(), 0))
	if !building && settled(w, "building", 0, "ready") && settled(w, "orchestrator", 0, "open") {
		call("building", 0, "start")
	}
	if building {
		if settled(w, "resource", 0, "unused") {
			call("resource", 0, "charge", 0, 1)
		}
		if settled(w, "domain", 0, "unused") {
			call("domain", 0, "allocate", 1)
		}
		if settled(w, "task", 0, "unused") {
			call("task", 0, "add", 1)
		}
	}
	if settled(w, "domain", 0, "live", "queued", "freeing", "failed") {
		call("domain", 0, "release")
	}
	if settled(w, "resource", 0, "charged") {
		if _, flying := w.InFlight(w.Ref(r.Machine("resource").ID(), 0)); !flying {
			call("resource", 0, "release")
		}
	}
	if settled(w, "task", 0, "pending") {
		if _, flying := w.InFlight(w.Ref(r.Machine("task").ID(), 0)); !flying {
			call("task", 0, "done", 0, 0)
		}
	}
	for slot := range 2 {
		if settled(w, "resources", slot, "running", "flushing", "sweeping", "releasing", "retiring") {
			call("resources", slot, "fence")
		}
	}
	if settled(w, "ending", 0, "ready", "owed") {
		call("ending", 0, "start")
	}
	return out
}

// resourcesHold looks for invariants of the orchestrator's world that a step
// broke, and for an allocation that is released twice.
func resourcesHold(before, after *machine.World, recs []machine.Record) *explore.Finding {
	if fs, _ := invariants.CheckResources(after); len(fs) > 0 {
		return &explore.Finding{Kind: fs[0].Invariant.ID, Detail: fs[0].Detail}
	}
	r := after.Rules()
	d := r.Machine("domain")
	for i := range recs {
		x := &recs[i]
		if x.Ref.Machine != d.ID() || x.Kind != machine.Issued || r.CallName(x.Call) != "ReleaseDomain" {
			continue
		}
		if s := before.StateName(x.Ref); !slices.Contains([]string{"freeing"}, s) {
			return &explore.Finding{Kind: "one-release", Detail: fmt.Sprintf("%s is released in %s", r.RefName(x.Ref), s)}
		}
	}
	return nil
}
