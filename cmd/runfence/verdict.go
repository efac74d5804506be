package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// verdicts looks at the transitions of runs, and learns what became of them.
// Runs are the instances of a machine named run; rules without one have none.
type verdicts struct {
	m    *machine.Machine // or nil
	live map[instance]*verdict
	// begun is called for each run that is admitted, over for each that has
	// left its place.
	begun, over func(*verdict)
}

func newVerdicts(rules *machine.Rules) *verdicts {
	ignore := func(*verdict) {}
	return &verdicts{m: rules.Machine("run"), live: map[instance]*verdict{}, begun: ignore, over: ignore}
}

// verdict is what became of a run.
type verdict struct {
	World int    `json:"world"`
	Lane  string `json:"lane"`
	Slot  int    `json:"slot"`
	// Epoch is the run's run_epoch.
	Epoch uint64 `json:"run_epoch"`
	// Verdict is succeeded or faulted, or empty while it is not decided.
	Verdict string `json:"verdict,omitempty"`
	// Fault is the device's code, Code the launch's own.
	Fault int32 `json:"fault,omitempty"`
	Code  int32 `json:"code,omitempty"`
	// State is the last that the run was in, since Time.
	State string        `json:"state"`
	Time  time.Duration `json:"time_ns"`
	// Over says that the state is the last there is.
	Over bool `json:"over"`
}

// recording is the log of a script, and what became of its runs.
type recording struct {
	*translog.Writer
	verdicts *verdicts
	worlds   int
	count    *uint64 // of records
}

// recorder returns the recorder for one more world.
func (r *recording) recorder(name string, pools map[string]int, queue int) machine.Recorder {
	rec := &runRecorder{Recorder: r.World(name, pools, queue), all: r, world: r.worlds, name: name}
	r.worlds++
	return rec
}

// runRecorder is the log's recorder of one world, and looks at its runs.
type runRecorder struct {
	*translog.Recorder
	all   *recording
	world int
	name  string
}

// Record implements [machine.Recorder].
func (r *runRecorder) Record(rec *machine.Record) {
	r.Recorder.Record(rec)
	*r.all.count++
	r.all.verdicts.look(r.world, r.name, rec)
}

// look takes notice of a record of a world.
func (vs *verdicts) look(world int, name string, rec *machine.Record) {
	if vs.m == nil || rec.Kind == machine.Reserved || rec.Ref.Machine != vs.m.ID() {
		return
	}
	at := instance{world, rec.Ref.Machine, rec.Ref.Slot}
	v := vs.live[at]
	switch rec.Kind {
	case machine.Dropped:
		if v != nil {
			delete(vs.live, at)
			vs.over(v)
		}
		return
	case machine.Stepped, machine.Settled:
	default:
		return
	}
	if v == nil {
		v = &verdict{World: world, Lane: name, Slot: int(rec.Ref.Slot)}
		vs.live[at] = v
		vs.begun(v)
	}
	v.State, v.Time = vs.m.StateName(rec.To), time.Duration(rec.Time)
	v.Over = vs.m.Definition().States[rec.To].Terminal
	for i, f := range vs.m.IdentityFacts() {
		if vs.m.Definition().Facts[f].Name == "run_epoch" && i < int(rec.NIdentity) && rec.Identity[i] != 0 {
			v.Epoch = rec.Identity[i]
		}
	}
	updates, _ := machine.ParseUpdates(vs.m.Row(rec.Row).Then[rec.Target].Do) // compiled rules parse
	for _, u := range updates {
		if u.Op != machine.Assign {
			continue
		}
		switch u.Fact {
		case "verdict":
			v.Verdict = u.Expr.String()
		case "fault":
			v.Fault = vs.argument(rec, u.Expr)
		case "rc":
			v.Code = vs.argument(rec, u.Expr)
		}
	}
	if rec.To == 0 {
		// Back where it began: what comes next is another run.
		delete(vs.live, at)
		vs.over(v)
	}
}

// argument evaluates an update that takes an argument of the event.
func (vs *verdicts) argument(rec *machine.Record, e *machine.Expr) int32 {
	if e.Op == machine.OpField && e.Peer == "arg" {
		for i, f := range vs.m.Definition().Events[rec.Event].Args {
			if f.Name == e.Name && i < int(rec.NArgs) {
				return int32(uint32(rec.Args[i]))
			}
		}
	}
	return 0
}

// text is the verdict in one line.
func (v *verdict) text(s style) string {
	what := s.yellow("undecided")
	switch v.Verdict {
	case "":
	case "succeeded":
		what = s.green(v.Verdict)
	default:
		what = s.red(v.Verdict)
	}
	if v.Fault != 0 {
		what += ": the device reports " + backend.Code(v.Fault).Brief()
	}
	if v.Code != 0 {
		what += ", the launch reported " + backend.Code(v.Code).Brief()
	}
	last := v.State
	if !v.Over {
		last = s.yellow("left " + v.State)
	}
	return fmt.Sprintf("%s; %s at %s", what, last, virtual(v.Time))
}

// virtual prints a virtual time as scenarios write it, in plain letters.
func virtual(t time.Duration) string { return strings.Replace(t.String(), "µ", "u", 1) }
