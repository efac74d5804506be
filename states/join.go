package states

import "github.com/runfence/runfence/machine"

// join orders a run behind the run before it, with two crossed waits: the
// successor's AICore stream waits for the predecessor's AICPU boundary and the
// other way round. Each stream already orders itself; together the edges put
// both kernels of the predecessor before either of the successor (F133).
func join() *machine.Definition {
	lend := func(b string) string {
		return "pred.reserve(pred_epoch, pred_generation, pred_dispatch, " + b + ", arming)"
	}
	const gone = "A verified reset took the count along with the arming."
	var rows []machine.Row
	// Each stream's wait names the other's boundary.
	for _, x := range [][2]string{{"core", "cpu_done"}, {"cpu", "core_done"}} {
		s, b := x[0], x[1]
		giveBack := []string{"pred.drop(" + b + ", arming)"}
		rows = append(rows,
			machine.Row{ID: "queued-" + s, From: "joining", Event: "queued_" + s, Guard: s + "_wait == reserved", Source: "F34, F135", Then: []machine.Target{{Do: s + "_wait = queued"}}},
			machine.Row{ID: "queued-" + s + "-unreserved", From: "joining", Event: "queued_" + s, Guard: "else", Refuse: ErrNotCommitted},
			machine.Row{ID: "revoked-" + s, From: "joining", Event: "revoked_" + s, Guard: s + "_wait == reserved && view.standing", Source: "F135", Then: []machine.Target{{Do: s + "_wait = no_wait", With: giveBack}}},
			machine.Row{ID: "revoked-" + s + "-gone", From: "joining", Event: "revoked_" + s, Guard: s + "_wait == reserved", Source: "F140", Doc: gone, Then: []machine.Target{{Do: s + "_wait = no_wait"}}},
			machine.Row{ID: "revoked-" + s + "-queued", From: "joining", Event: "revoked_" + s, Guard: "else", Refuse: ErrTokenHeld},
			machine.Row{
				ID: "proven-" + s, From: "joining", Event: "proven_" + s, Guard: s + "_wait == queued && view.standing", Source: "F135",
				Doc:  "A boundary of this run behind the wait, on the stream that holds it, has completed.",
				Then: []machine.Target{{Do: s + "_wait = no_wait", With: giveBack}},
			},
			machine.Row{ID: "proven-" + s + "-gone", From: "joining", Event: "proven_" + s, Guard: s + "_wait == queued", Source: "F140", Doc: gone, Then: []machine.Target{{Do: s + "_wait = no_wait"}}},
			machine.Row{ID: "proven-" + s + "-none", From: "joining", Event: "proven_" + s, Guard: "else", Then: []machine.Target{{}}},
			machine.Row{ID: "proven-" + s + "-apart", From: "apart|planned|declined", Event: "proven_" + s, Then: []machine.Target{{}}},
		)
	}
	rows = append(rows,
		machine.Row{ID: "plan-self", From: "apart|declined", Event: "plan", Guard: "arg.pred == arg.home", Refuse: ErrWaitCycle, Source: "F134"},
		machine.Row{
			ID: "plan", From: "apart|declined", Event: "plan", Guard: "else", Source: "F19",
			Then: []machine.Target{{
				To: "planned",
				Do: "pred = arg.pred; pred_epoch = arg.run_epoch; pred_generation = arg.generation; pred_dispatch = arg.dispatch; arming = arg.arming; home = arg.home",
			}},
		},
		machine.Row{ID: "plan-busy", From: "planned|joining", Event: "plan", Refuse: ErrTokenHeld},

		machine.Row{ID: "cycle", From: "planned", Event: "reserve", Guard: "view.back", Source: "F134", Doc: "The predecessor waits for this run: the pair would deadlock.", Then: []machine.Target{{To: "declined"}}},
		machine.Row{
			ID: "decline", From: "planned", Event: "reserve", Guard: "!view.recorded", Source: "F43, F134, F150",
			Doc:  "A wait may name only a boundary that is recorded, of a predecessor that is neither partial nor gone.",
			Then: []machine.Target{{To: "declined"}},
		},
		machine.Row{
			ID: "reserve", From: "planned", Event: "reserve", Guard: "else", Source: "F133, F135",
			Then: []machine.Target{{To: "joining", Do: "core_wait = reserved; cpu_wait = reserved", With: []string{lend("cpu_done"), lend("core_done")}}},
		},

		machine.Row{
			ID: "cancel-reserved", From: "joining", Event: "cancel", Guard: "core_wait == reserved && cpu_wait == reserved && view.standing", Source: "F135",
			Then: []machine.Target{{To: "apart", Do: "core_wait = no_wait; cpu_wait = no_wait", With: []string{"pred.drop(cpu_done, arming)", "pred.drop(core_done, arming)"}}},
		},
		machine.Row{ID: "cancel-gone", From: "joining", Event: "cancel", Guard: "core_wait == reserved && cpu_wait == reserved", Source: "F140", Doc: gone, Then: []machine.Target{{To: "apart", Do: noJoin}}},
		machine.Row{ID: "cancel-queued", From: "joining", Event: "cancel", Guard: "core_wait != no_wait || cpu_wait != no_wait", Refuse: ErrReferenceHeld, Source: "F142"},
		machine.Row{ID: "cancel-joining", From: "joining", Event: "cancel", Guard: "else", Then: []machine.Target{{To: "apart", Do: noPred}}},
		machine.Row{ID: "cancel", From: "apart|planned|declined", Event: "cancel", Then: []machine.Target{{To: "apart", Do: noPred}}},

		machine.Row{ID: "end-held", From: "joining", Event: "end", Guard: "core_wait != no_wait || cpu_wait != no_wait", Refuse: ErrReferenceHeld, Source: "F142"},
		machine.Row{ID: "end", From: "joining", Event: "end", Guard: "else", Then: []machine.Target{{To: "apart", Do: noPred}}},
		machine.Row{ID: "end-none", From: "apart|planned|declined", Event: "end", Then: []machine.Target{{To: "apart", Do: noPred}}},
		machine.Row{ID: "abandon", From: "apart|planned|joining|declined", Event: "abandon", Source: "F140", Then: []machine.Target{{To: "apart", Do: noJoin}}},
	)
	const waits = "enum no_wait|reserved|queued"
	return &machine.Definition{
		Name:   "join",
		Pool:   "slot",
		Doc:    "The crossed waits that put a run behind its predecessor, and the references they hold on it.",
		Source: "F, The cross-run join a later change will use (F19, F43, F133–F142, F150)",
		States: []machine.State{
			{Name: "apart", Doc: "The run follows nobody."},
			{Name: "planned", Doc: "A predecessor is named; nothing is counted yet."},
			{Name: "joining", Doc: "Both waits are counted; they are being, or are, queued."},
			{Name: "declined", Doc: "It cannot be joined: the predecessor must be drained first."},
		},
		Facts: []machine.Fact{
			{Name: "pred", Type: "ref fence", Doc: "The predecessor's fence."},
			{Name: "pred_epoch", Type: "id epoch"},
			{Name: "pred_generation", Type: "id generation"},
			{Name: "pred_dispatch", Type: "id dispatch"},
			{Name: "arming", Type: "id arming", Doc: "The predecessor's arming."},
			{Name: "home", Type: "ref fence", Doc: "The fence of this slot."},
			{Name: "core_wait", Type: waits, Doc: "Of this AICore stream, on the predecessor's AICPU boundary."},
			{Name: "cpu_wait", Type: waits, Doc: "Of this AICPU stream, on the predecessor's AICore boundary."},
		},
		Views: []machine.View{
			{Name: "recorded", Expr: "pred.arming == arming && arming != none && (pred.core == recorded || pred.core == complete) && (pred.cpu == recorded || pred.cpu == complete)"},
			{Name: "standing", Expr: "arming != none && pred.arming == arming", Doc: "The predecessor's fence still counts the waits."},
			{Name: "back", Expr: `any(join, state == "joining" && home == join.pred && pred == join.home)`, Doc: "The predecessor is queued behind this run."},
		},
		Events: []machine.Event{
			{Name: "plan", Args: []machine.Fact{
				{Name: "pred", Type: "ref fence"},
				identityArgs[0], identityArgs[1], identityArgs[2],
				{Name: "arming", Type: "id arming"},
				{Name: "home", Type: "ref fence"},
			}},
			{Name: "reserve"},
			{Name: "queued_core"},
			{Name: "revoked_core"},
			{Name: "proven_core"},
			{Name: "queued_cpu"},
			{Name: "revoked_cpu"},
			{Name: "proven_cpu"},
			{Name: "cancel", Doc: "The launch submitted nothing."},
			{Name: "end", Doc: "The run retires."},
			{Name: "abandon", Doc: "A reset of the device was verified."},
		},
		Rows: rows,
	}
}

const (
	noPred = "pred = none; pred_epoch = none; pred_generation = none; pred_dispatch = none; arming = none; home = none"
	// noJoin also forgets the waits, which only a join under way has.
	noJoin = noPred + "; core_wait = no_wait; cpu_wait = no_wait"
)
