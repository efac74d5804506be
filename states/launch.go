package states

import (
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
)

// launch is the launch transaction: a permit becomes NotStarted, Partial or
// Complete, and nothing else. A step that was attempted and failed may have
// taken effect all the same, so it is Partial; only a step refused before its
// attempt, with nothing enqueued before it, is NotStarted (F34, F76, F80, F143).
//
// AICore goes first and the two submissions stay back to back, each followed
// by its own boundary and nothing between: either kernel may be spinning for
// the other (F96, F101). What a run does not need is not enqueued: each step
// goes straight to the next one that its run has.
func launch() *machine.Definition {
	const from, over = "idle|not started", "complete|partial"
	rows := entry(from, []machine.Row{
		{ID: "start-unprepared", From: from, Event: "start", Guard: "!view.prepared", Refuse: ErrNotPrepared},
		{ID: "start-closed", From: from, Event: "start", Guard: "!view.open", Refuse: ErrAdmissionClosed, Source: "F108, F154", Doc: "Admission is asked at prepare and again at launch."},
		{ID: "start-full", From: from, Event: "start", Guard: "!view.room", Refuse: ErrDepthReached, Source: "F43", Doc: "A run that is prepared may wait; one that is launched is on the device."},
	},
		machine.Target{When: "view.eager", To: "permitted", Do: remember + "; permit = arg.permit; touched = false", Emit: []string{"self.capture()"}},
		machine.Target{To: "permitted", Do: remember + "; permit = arg.permit; touched = false", Emit: []string{"self.arm()"}},
	)
	for i := range stranger(from) {
		rows[i].From += "|" + over
	}
	rows = append(rows,
		busyEvent("start", "permitted|ordering|tying|joining core|joining cpu|starting|started|publishing|copying|forking|forked|armed|core submitted|core recorded|cpu submitted|core awaited|cpu recorded|caller waiting"),
		machine.Row{ID: "start-done", From: over, Event: "start", Guard: "else", Refuse: ErrNotPrepared, Doc: "One permit, one launch."},
		machine.Row{
			ID: "capture", From: "permitted", Event: "capture", Command: "CaptureStatus()", Source: "F17, F38",
			Doc: "Before anything is published. The run stays prepared.",
			Then: []machine.Target{
				{On: "ok", When: "res.value == 0", Emit: []string{"self.arm()"}},
				{On: "ok", To: "idle", Error: ErrCaptureActive},
				{To: "idle", Error: ErrCallerStream, Code: "res.code"},
			},
		},
		machine.Row{
			ID: "arm-no-permit", From: "permitted", Event: "arm", Guard: "!(permit != none && permit == view.permit && view.free && view.open && view.room)", Source: "F76, F154",
			Doc:  "The permit does not bear this run, the fence cannot, or admission closed meanwhile: nothing is submitted.",
			Then: []machine.Target{{To: "not started", Error: ErrNotStarted, Code: "-1"}},
		},
		machine.Row{
			ID: "arm", From: "permitted", Event: "arm", Guard: "else", Command: "MakeEvents()", Source: "F12, F75, F123, F124",
			Doc:  "The streams are bound and the active owner installed before anything is called.",
			With: []string{"run.launching(" + own + ")", "fence.arm(" + own + ")"},
			Then: append(
				next("", []string{"fence.made(" + own + ")"}),
				machine.Target{To: "not started", With: undone("run.unstarted(res.code)"), Error: ErrEventCreate, Code: "res.code"},
			),
		},
		machine.Row{
			ID: "tie-declined", From: "tying", Event: "tie", Guard: "view.declined", Source: "F43",
			Doc:  "Nothing was enqueued yet, so the predecessor can be drained and the run launched by itself.",
			Then: []machine.Target{{To: "not started", With: []string{"fence.disarm(" + own + ")", "caller_order.end()", "join.cancel()", "run.unjoined(permit)"}, Error: ErrJoinDeclined}},
		},
		machine.Row{ID: "tie", From: "tying", Event: "tie", Guard: "else", Then: []machine.Target{{To: "joining core", Emit: []string{"self.join_core()"}}}},
		busyEvent("reset", "permitted|ordering|tying|joining core|joining cpu|starting|started|publishing|copying|forking|forked|armed|core submitted|core recorded|cpu submitted|core awaited|cpu recorded|caller waiting"),
		machine.Row{
			ID: "reset", From: from + "|" + over, Event: "reset",
			Doc:  "The run is finalized; the slot is free for another.",
			Then: []machine.Target{{To: "idle", Do: "run_epoch = none; generation = none; dispatch = none; permit = none; touched = false"}},
		},
	)
	for i := range launchSteps {
		rows = append(rows, launchSteps[i].row())
	}
	states := []machine.State{
		{Name: "idle", Doc: "Not under way."},
		{Name: "permitted", Doc: "The context is the right one; the permit is being checked."},
		{Name: "tying", Doc: "The predecessor's boundaries are being counted."},
	}
	events := []machine.Event{
		{Name: "start", Args: withArgs(runArgs, machine.Fact{Name: "permit", Type: "id permit"})},
		{Name: "capture"},
		{Name: "arm"},
		{Name: "tie"},
		{Name: "reset"},
	}
	for _, s := range launchSteps {
		states = append(states, machine.State{Name: s.state, Doc: s.doc})
		events = append(events, machine.Event{Name: s.event})
	}
	states = append(states,
		machine.State{Name: "complete", Doc: "Everything is enqueued: the receipt is minted."},
		machine.State{Name: "not started", Doc: "Proven: nothing was submitted."},
		machine.State{Name: "partial", Doc: "Something was or may have been submitted."},
	)
	return &machine.Definition{
		Name:   "launch",
		Pool:   "slot",
		Doc:    "Host operation: enqueue a run, its two kernels each with its boundary and the edges that order it, and know exactly what was accepted.",
		Source: "F, Initial publication; Borrowed caller ordering; The boundary; Submitted work with no boundary; The cross-run join (F3, F8, F17, F22–F34, F38, F39, F71–F80, F96–F101, F124, F129, F133, F143)",
		States: states,
		Facts: withArgs(identityFacts,
			machine.Fact{Name: "permit", Type: "id permit"},
			machine.Fact{Name: "core_seen", Type: "id devgen", Doc: "The device generation that knows the slot's AICore stream."},
			machine.Fact{Name: "cpu_seen", Type: "id devgen", Doc: "The device generation that knows the slot's AICPU stream."},
			machine.Fact{Name: "touched", Type: "bool", Doc: "Something was enqueued: from now on a refusal is Partial."},
		),
		Identity: identityNames,
		Views: append(append([]machine.View(nil), runViews...),
			machine.View{Name: "prepared", Expr: `run.state == "prepared"`},
			openView,
			roomView,
			machine.View{Name: "permit", Expr: "run.permit"},
			machine.View{Name: "free", Expr: `(fence.state == "bare" || fence.state == "idle") && fence.core_refs == 0 && fence.cpu_refs == 0`, Doc: "The fence can stand for a run."},
			machine.View{Name: "arming", Expr: "fence.arming"},
			machine.View{Name: "devgen", Expr: "health.generation"},
			machine.View{Name: "eager", Expr: "run.eager"},
			machine.View{Name: "async", Expr: "run.async"},
			machine.View{Name: "staged", Expr: `region.state == "staged"`},
			machine.View{Name: "joined", Expr: `join.state == "planned"`},
			machine.View{Name: "pred", Expr: "join.pred"},
			machine.View{Name: "declined", Expr: `join.state == "declined"`},
		),
		Events: events,
		Rows:   rows,
	}
}

// launchStep is one call of the launch: what is counted before it, and what is
// known after each way it may end.
type launchStep struct {
	event, state, doc, command, source string
	// need is the condition under which a run has the step; "" is every run.
	need string
	// with is taken along before the call, ok after its success, refused when
	// it was not made, and maybe when it failed and may have taken effect.
	with, ok, refused, maybe []string
	// harmless calls enqueue nothing, so their failure leaves nothing.
	harmless bool
	// first is a step that never has anything enqueued before it.
	first bool
	// behind is a step that always has something enqueued before it, so it cannot
	// leave the launch not started.
	behind  bool
	failure machine.Reason
	// seen is the fact that says for which device generation the stream of the
	// boundary is known.
	seen string
}

func boundaryStep(event, state, doc, command, source, boundary, before, after, not, maybe string) launchStep {
	f := func(what string) []string { return []string{"fence." + what + "(" + own + ", " + boundary + ")"} }
	return launchStep{
		event: event, state: state, doc: doc, command: command, source: source,
		with: f(before), ok: f(after), refused: f(not), maybe: f(maybe), behind: event != "submit_core",
		seen: map[string]string{"record_core": "core_seen", "record_cpu": "cpu_seen"}[event],
	}
}

func edgeStep(event, state, doc, command, source, need, edge string) launchStep {
	s := launchStep{event: event, state: state, doc: doc, command: command, source: source, need: need}
	// Fork stands behind Start or behind the copy.
	s.behind = need == follows || event == "await_core" || event == "record_fork"
	if edge != "" {
		s.with, s.ok = []string{"caller_order.attempt(" + edge + ")"}, []string{"caller_order.record(" + edge + ")"}
	}
	return s
}

const (
	forked = "view.eager || view.async"
	// follows marks a step that a run has if it had the one before.
	follows = "-"
)

var launchSteps = []launchStep{
	{
		event: "order_events", state: "ordering", doc: "The slot's three ordering events are being made.", command: "MakeOrderEvents", source: "F26, F31",
		need: forked, with: []string{"caller_order.begin(" + own + ")"}, ok: []string{"caller_order.made()"}, harmless: true, failure: ErrOrderEvents,
	},
	{
		event: "join_core", state: "joining core", doc: "The AICore stream is about to wait for the predecessor's AICPU boundary.", command: "QueueJoinCore(view.pred)", source: "F133, F135",
		need: "view.joined", first: true, ok: []string{"join.queued_core()"}, maybe: []string{"join.queued_core()", "join.revoked_cpu()"},
	},
	{
		event: "join_cpu", state: "joining cpu", doc: "The AICPU stream is about to wait for the predecessor's AICore boundary.", command: "QueueJoinCPU(view.pred)", source: "F133, F135",
		need: follows, behind: true, ok: []string{"join.queued_cpu()"}, refused: []string{"join.revoked_cpu()"}, maybe: []string{"join.queued_cpu()"},
	},
	edgeStep("record_start", "starting", "The caller's earlier work is about to be marked.", "RecordStart", "F22, F34", "view.eager", "at_start"),
	edgeStep("wait_start", "started", "The AICPU stream is about to wait for it.", "WaitStart", "F22, F34", follows, ""),
	{
		event: "publish", state: "publishing", doc: "The metadata batch with the zero marker is about to be copied.", command: "PublishRegion", source: "F3, F4, F8, F39",
		need: "view.staged", ok: []string{"region.published()"}, refused: []string{"region.unpublished()"}, maybe: []string{"region.unpublished()"},
	},
	edgeStep("copy_descriptor", "copying", "The Runtime descriptor is about to be copied.", "CopyDescriptor", "F31, F34, F39, F152", "view.async", ""),
	edgeStep("record_fork", "forking", "The copies are about to be marked, ahead of the AICPU kernel.", "RecordFork", "F22, F23, F31", forked, "at_fork"),
	edgeStep("wait_fork", "forked", "The AICore stream is about to wait for them.", "WaitFork", "F22, F23", follows, ""),
	boundaryStep("submit_core", "armed", "Everything ahead of the kernels is enqueued; neither kernel is.", "SubmitCore", "F76, F96, F101, F143", "core_done", "submitting", "submitted", "unsubmitted", "submitted"),
	boundaryStep("record_core", "core submitted", "The AICore kernel is accepted.", "RecordCore", "F34, F96, F129, F143", "core_done", "recording", "recorded", "unrecorded", "unrecorded"),
	boundaryStep("submit_cpu", "core recorded", "Its boundary is recorded.", "SubmitCPU", "F96, F101, F129, F143", "cpu_done", "submitting", "submitted", "unsubmitted", "submitted"),
	edgeStep("await_core", "cpu submitted", "The AICPU kernel is accepted; its stream is about to wait for the AICore boundary.", "WaitCoreDone", "F22, F24, F25", "view.eager", ""),
	boundaryStep("record_cpu", "core awaited", "The AICPU boundary is about to be recorded.", "RecordCPU", "F24, F34, F96, F129, F143", "cpu_done", "recording", "recorded", "unrecorded", "unrecorded"),
	{
		event: "wait_cpu_done", state: "cpu recorded", doc: "The caller's stream is about to wait for the run.", command: "WaitCPUDone", source: "F22, F27, F34",
		need: "view.eager", behind: true, with: []string{"caller_order.hold()"}, ok: []string{"caller_order.queued()"}, refused: []string{"caller_order.unhold()"}, maybe: []string{"caller_order.queued()"},
	},
	edgeStep("record_tail", "caller waiting", "The caller's wait is about to be marked.", "RecordTail", "F22, F27", follows, "at_tail"),
}

// call is the step's command; most have no arguments.
func (s *launchStep) call() string {
	if strings.HasSuffix(s.command, ")") {
		return s.command
	}
	return s.command + "()"
}

// row is the step as a row of the transaction.
func (s *launchStep) row() machine.Row {
	r := machine.Row{ID: s.event, From: s.state, Event: s.event, Command: s.call(), With: s.with, Source: s.source}
	r.Then = next(s.event, s.ok)
	if s.seen != "" {
		// A stream that this device generation does not know yet is remembered,
		// for notices to be matched against (F110).
		var known []machine.Target
		for _, t := range r.Then {
			k := t
			k.When = s.seen + " == view.devgen"
			if t.When != "" {
				k.When += " && (" + t.When + ")"
			}
			known = append(known, k)
		}
		for i := range r.Then {
			t := &r.Then[i]
			t.Do = strings.TrimPrefix(t.Do+"; "+s.seen+" = view.devgen", "; ")
			t.With = append(slices.Clone(t.With), "health.watch(res.value)")
		}
		r.Then = append(known, r.Then...)
	}
	if s.harmless {
		r.Then = append(r.Then, machine.Target{To: "not started", With: undone("run.unstarted(res.code)"), Error: s.failure, Code: "res.code"})
		return r
	}
	partial := machine.Target{To: "partial", Error: ErrPartial, Code: "res.code"}
	refused, maybe := partial, partial
	refused.On, refused.With = "refused", append(slices.Clone(s.refused), "run.broken(res.code)")
	maybe.With = append(slices.Clone(s.maybe), "run.broken(res.code)")
	accepted := maybe
	accepted.On, accepted.When = "refused", "res.accepted" // a mark of acceptance outlives whatever the call goes on to answer
	if s.behind && slices.Equal(s.refused, s.maybe) {
		r.Then = append(r.Then, maybe)
		return r
	}
	r.Then = append(r.Then, accepted)
	if !s.behind {
		nothing := machine.Target{
			On: "refused", When: "!touched", To: "not started", Error: ErrNotStarted, Code: "res.code",
			With: append(slices.Clone(s.refused), undone("run.unstarted(res.code)")...),
		}
		if s.first {
			nothing.When = ""
			r.Then = append(r.Then, nothing, maybe)
			return r
		}
		r.Then = append(r.Then, nothing)
	}
	r.Then = append(r.Then, refused, maybe)
	return r
}

// undone lists what is given back when nothing was submitted.
func undone(run string) []string {
	return []string{"fence.disarm(" + own + ")", "caller_order.end()", "join.cancel()", "region.discard()", run}
}

// implied lists the conditions that hold of a run which has a step.
func implied(step int) []string {
	for launchSteps[step].need == follows {
		step--
	}
	need := launchSteps[step].need
	if need == "view.eager" || need == "view.async" {
		return []string{need, forked}
	}
	return []string{need}
}

// next makes the targets of a step's success: the first later step that the
// run has, or the end. event is "" for the arming before all steps.
func next(event string, with []string) []machine.Target {
	i := 1 + slices.IndexFunc(launchSteps, func(s launchStep) bool { return s.event == event })
	do, known := "", []string{}
	if i > 0 {
		if s := launchSteps[i-1]; !s.harmless && !s.behind {
			do = "touched = true"
		}
		known = implied(i - 1)
	}
	taken := map[string]bool{} // the conditions that went before
	var out []machine.Target
	for j, s := range launchSteps[i:] {
		t := machine.Target{On: "ok", To: s.state, Do: do, With: with, Emit: []string{"self." + s.event + "()"}}
		if s.event == "join_core" {
			t.To, t.With, t.Emit = "tying", append(slices.Clone(with), "join.reserve()"), []string{"self.tie()"}
		}
		switch s.need {
		case "":
			return append(out, t)
		case follows:
			if j == 0 && i > 0 {
				return append(out, t)
			}
		default:
			switch {
			case slices.Contains(known, s.need), slices.Contains(known, forked) && (s.need == "view.async" && taken["view.eager"]):
				return append(out, t)
			case taken[s.need], taken[forked] && (s.need == "view.eager" || s.need == "view.async"), s.need == forked && taken["view.eager"] && taken["view.async"]:
				continue // whoever has it went elsewhere
			}
			taken[s.need] = true
			t.When = s.need
			out = append(out, t)
		}
	}
	return append(out, machine.Target{
		On: "ok", To: "complete", Do: do, Return: "view.arming",
		With: append(slices.Clone(with), "run.accepted()"),
	})
}

// roomView is the depth: how many runs may be on the device at a time (F43).
var roomView = machine.View{
	Name: "room", Expr: `count(run, state == "launching" || state == "launched" || state == "partial") < lane.depth`,
	Doc: "Fewer runs are on the device than the lane's depth.",
}
