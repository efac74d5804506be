package mutate

import (
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

// toldEarly finds somebody who is told that a domain is released while that is
// under way (R12).
func toldEarly(_, after *machine.World, recs []machine.Record) *explore.Finding {
	r := after.Rules()
	d := r.Machine("domain")
	for i := range recs {
		x := &recs[i]
		if x.Ref.Machine != d.ID() || x.Kind != machine.Stepped {
			continue
		}
		event, from := d.EventName(x.Event), d.StateName(x.From)
		if (event == "free" || event == "release") && (from == "freeing" || from == "allocating") {
			return &explore.Finding{Kind: "told-early", Detail: r.RefName(x.Ref) + ": " + event + " is over while it is " + from}
		}
	}
	return nil
}
