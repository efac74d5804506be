package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// recording keeps the log of a script, and what became of its runs.
type recording struct {
	*translog.Writer
	rules  *machine.Rules
	worlds int
	runs   []*verdict
	live   map[instance]*verdict
}

func newRecording(w *translog.Writer, rules *machine.Rules) *recording {
	return &recording{Writer: w, rules: rules, live: map[instance]*verdict{}}
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

// recorder returns the recorder for one more world.
func (r *recording) recorder(name string, pools map[string]int, queue int) machine.Recorder {
	rec := &runRecorder{Recorder: r.World(name, pools, queue), all: r, world: r.worlds, name: name, m: r.rules.Machine("run")}
	r.worlds++
	return rec
}

// runRecorder is the log's recorder of one world, and looks at its runs.
type runRecorder struct {
	*translog.Recorder
	all   *recording
	world int
	name  string
	m     *machine.Machine // nil if the rules have no runs
}

// Record implements [machine.Recorder].
func (r *runRecorder) Record(rec *machine.Record) {
	r.Recorder.Record(rec)
	if r.m != nil && rec.Ref.Machine == r.m.ID() {
		r.look(rec)
	}
}

func (r *runRecorder) look(rec *machine.Record) {
	at := instance{r.world, rec.Ref.Machine, rec.Ref.Slot}
	switch rec.Kind {
	case machine.Dropped:
		delete(r.all.live, at)
		return
	case machine.Stepped, machine.Settled:
	default:
		return
	}
	v := r.all.live[at]
	if v == nil {
		v = &verdict{World: r.world, Lane: r.name, Slot: int(rec.Ref.Slot)}
		r.all.live[at] = v
		r.all.runs = append(r.all.runs, v)
	}
	v.State, v.Time = r.m.StateName(rec.To), time.Duration(rec.Time)
	v.Over = r.m.Definition().States[rec.To].Terminal
	for i, f := range r.m.IdentityFacts() {
		if r.m.Definition().Facts[f].Name == "run_epoch" && i < int(rec.NIdentity) && rec.Identity[i] != 0 {
			v.Epoch = rec.Identity[i]
		}
	}
	row := r.m.Row(rec.Row)
	updates, _ := machine.ParseUpdates(row.Then[rec.Target].Do) // compiled rules parse
	for _, u := range updates {
		if u.Op != machine.Assign {
			continue
		}
		switch u.Fact {
		case "verdict":
			v.Verdict = u.Expr.String()
		case "fault":
			v.Fault = r.argument(rec, u.Expr)
		case "rc":
			v.Code = r.argument(rec, u.Expr)
		}
	}
	if rec.To == 0 {
		// Back where it began: what comes next is another run.
		delete(r.all.live, at)
	}
}

// argument evaluates an update that takes an argument of the event.
func (r *runRecorder) argument(rec *machine.Record, e *machine.Expr) int32 {
	if e.Op == machine.OpField && e.Peer == "arg" {
		for i, f := range r.m.Definition().Events[rec.Event].Args {
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
		what += ", the device reports " + codeText(v.Fault)
	}
	if v.Code != 0 {
		what += ", the launch reported " + codeText(v.Code)
	}
	last := v.State
	if !v.Over {
		last = s.yellow("left " + v.State)
	}
	return fmt.Sprintf("%s; %s at %s", what, last, virtual(v.Time))
}

// codeText is a return code by number and name.
func codeText(code int32) string {
	if name := backend.Code(code).Name(); name != "" {
		return fmt.Sprintf("%d %s", code, name)
	}
	return fmt.Sprint(code)
}

// virtual prints a virtual time as scenarios write it, in plain letters.
func virtual(t time.Duration) string { return strings.Replace(t.String(), "µ", "u", 1) }
