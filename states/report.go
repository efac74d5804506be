package states

import "github.com/runfence/runfence/machine"

// RecordClass is what a run's own record said of it (F117, F166).
type RecordClass uint8

// The classes of a record.
const (
	// RecordAbsent: none was read, or none that could be trusted to be the run's.
	RecordAbsent RecordClass = iota
	// RecordOk: every participant reported success.
	RecordOk
	// RecordHeader: the header reports a failure.
	RecordHeader
	// RecordParticipant: a participant reports a failure.
	RecordParticipant
	// RecordUnclaimed: not every participant claimed the audited path.
	RecordUnclaimed
	// RecordUnmarked: an unmarked fallback.
	RecordUnmarked
)

// String returns the class as the rules write it.
func (c RecordClass) String() string {
	names := [...]string{"absent", "all_ok", "header_failed", "participant_failed", "unclaimed", "unmarked"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// Report is the evidence that decided a run: what its own record said, and what
// the device answered when its streams were synchronised.
type Report struct {
	Record RecordClass
	// Faulted: synchronising the streams failed, with Fault.
	Faulted bool
	Fault   int32
	// Disagreed: the record and the device contradict each other. It is told
	// and changes nothing: a failure that either of them reports stands (F118).
	Disagreed bool
}

// Report returns the evidence about a run between its Wait and its Finalize.
// Errors: [ErrStaleIdentity] for a run that was finalized, [ErrForeignProcess].
func (r *Run) Report() (Report, error) {
	if err := r.l.admit(); err != nil {
		return Report{}, err
	}
	var out Report
	err := error(ErrStaleIdentity)
	r.l.d.View(func(w *machine.World) {
		if r.l.look(w, r.id.Slot).id != r.id {
			return
		}
		m := r.l.config.Rules.Machine("outcome")
		ref := w.Ref(m.ID(), r.id.Slot)
		fact := func(n string) uint64 { v, _ := w.Fact(ref, m.MustFact(n)); return v }
		out = Report{Record: RecordClass(fact("record")), Faulted: fact("faulted") == 1, Fault: int32(uint32(fact("fault"))), Disagreed: fact("disagreed") == 1}
		err = nil
	})
	return out, err
}
