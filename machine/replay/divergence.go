package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// Divergence is the first place where the log and the rules part.
type Divergence struct {
	// World is the number of the world, and Name its name; World is -1 if it is
	// the whole log that does not add up.
	World int
	Name  string
	// Seq is of the record that is wrong or missing.
	Seq uint64
	// Place is where in the log it showed.
	Place translog.Place
	// Reason says in words what is wrong.
	Reason string
	// Differences are the parts in which Logged and Replayed differ.
	Differences []Difference
	// Logged is what the log has, Replayed what the rules make of the same
	// input; nil where there is none. Both hold positions of the given rules.
	Logged, Replayed *machine.Record
	// Before is the world before the step that went wrong.
	Before *machine.World
	// Chain leads from the host's event to the record: each is the parent of
	// the next. It begins later if Cut is set: the log could be read only once
	// and the parent was too long ago, or the log does not have it.
	Chain []Link
	Cut   bool
	// Err is why a record could not be read, or be turned into one of other rules.
	Err error

	parent  uint64
	given   *translog.Header
	involve []machine.Ref
}

// Difference is one part of a record that is not as it should be. A side that
// has no such part is empty.
type Difference struct {
	Field, Logged, Replayed string
}

// Link is one record of the chain of causes.
type Link struct {
	Seq  uint64
	Text string
}

// Error says where the two part and how, in one line.
func (d *Divergence) Error() string {
	where := fmt.Sprintf("world %d %q, record %d", d.World, d.Name, d.Seq)
	if d.World < 0 {
		where = "the log"
	}
	return fmt.Sprintf("%s: %s (%v)", where, d.Reason, d.Place)
}

// Unwrap returns Err.
func (d *Divergence) Unwrap() error { return d.Err }

// Explain writes all there is to know: both sides, the state before, and what
// led there.
func (d *Divergence) Explain(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", d)
	side := func(what string, r *machine.Record) {
		if r == nil {
			fmt.Fprintf(&b, "  %-9s nothing\n", what)
			return
		}
		fmt.Fprintf(&b, "  %-9s %d %s\n", what, r.Seq, d.given.Text(r))
	}
	if d.World >= 0 {
		side("logged", d.Logged)
		side("replayed", d.Replayed)
	}
	for _, x := range d.Differences {
		fmt.Fprintf(&b, "    %s: logged %s, replayed %s\n", x.Field, orNothing(x.Logged), orNothing(x.Replayed))
	}
	if d.Before != nil {
		b.WriteString("  state before\n")
		for _, line := range d.state() {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	if len(d.Chain) > 0 || d.Cut {
		b.WriteString("  led there by\n")
		if d.Cut {
			b.WriteString("    … (earlier records are not at hand)\n")
		}
		for _, l := range d.Chain {
			fmt.Fprintf(&b, "    %d %s\n", l.Seq, l.Text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// state describes the instances that the two records are about.
func (d *Divergence) state() []string {
	w := d.Before
	rules := w.Rules()
	var refs []machine.Ref
	add := func(r machine.Ref) {
		if int(r.Machine) < rules.NumMachines() && int(r.Slot) < w.Capacity(r.Machine) && !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	for _, r := range []*machine.Record{d.Logged, d.Replayed} {
		if r == nil || r.Kind == machine.Reserved {
			continue
		}
		add(r.Ref)
		add(r.Root)
		if r.Refusal == machine.ByJoint {
			add(r.By)
		}
	}
	for _, r := range d.involve {
		add(r)
	}
	// And those that they name.
	for _, r := range slices.Clone(refs) {
		m := rules.At(r.Machine)
		for i, v := range w.AppendFacts(nil, r) {
			if m.FactType(machine.FactID(i)).Kind == machine.RefTo && v != 0 {
				add(machine.UnpackRef(v))
			}
		}
	}
	var out []string
	for _, r := range refs {
		s := rules.RefName(r) + " in " + w.StateName(r)
		m := rules.At(r.Machine)
		for i, v := range w.AppendFacts(nil, r) {
			ty := m.FactType(machine.FactID(i))
			value := ty.Format(v)
			if ty.Kind == machine.RefTo && v != 0 {
				value = rules.RefName(machine.UnpackRef(v))
			}
			s += fmt.Sprintf(" %s=%s", m.Definition().Facts[i].Name, value)
		}
		out = append(out, s)
	}
	return out
}

// diverged makes a Divergence at the next record of a world; r, the log's side,
// may be nil.
func (p *player) diverged(w *world, r *machine.Record, reason string) *Divergence {
	d := &Divergence{World: w.Number, Name: w.Name, Seq: w.seq + 1, Place: p.place, Reason: reason, given: p.given}
	if r != nil {
		logged := *r
		d.Logged, d.Seq, d.parent = &logged, r.Seq, r.Parent
	}
	// In the middle of a step, the state before is that before the step.
	midway := w.next < len(w.made)
	if midway {
		replayed := w.made[w.next]
		d.Replayed, d.parent = &replayed, replayed.Parent
		d.involve = []machine.Ref{w.made[0].Ref}
	}
	d.Before = w.stateBefore(midway || w.panicked)
	return d
}

// differ explains a record that is not what the rules make.
func (p *player) differ(w *world, logged, replayed *machine.Record) error {
	d := p.diverged(w, logged, "")
	d.Differences = p.differences(logged, replayed)
	parts := make([]string, 0, 4)
	for i, x := range d.Differences {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(d.Differences)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s is %s in the log, %s in the replay", x.Field, orNothing(x.Logged), orNothing(x.Replayed)))
	}
	d.Reason = strings.Join(parts, "; ")
	return d
}

func (p *player) differences(logged, replayed *machine.Record) []Difference {
	var out []Difference
	theirs := p.given.Members(replayed)
	for _, m := range p.given.Members(logged) {
		other := ""
		for i, t := range theirs {
			if t.Name == m.Name {
				other = t.Value
				theirs = slices.Delete(theirs, i, i+1)
				break
			}
		}
		if other != m.Value {
			out = append(out, Difference{m.Name, m.Value, other})
		}
	}
	for _, t := range theirs {
		out = append(out, Difference{t.Name, "", t.Value})
	}
	if len(out) == 0 {
		// Positions that have the same name, or none that is told.
		out = append(out, Difference{"record", fmt.Sprintf("%+v", *logged), fmt.Sprintf("%+v", *replayed)})
	}
	return out
}

// ahead is how far the log is searched for a record that is not in its place.
const ahead = 1024

// outOfOrder explains a record whose sequence number is not the next.
func (p *player) outOfOrder(w *world, r *machine.Record) error {
	want := w.seq + 1
	if r.Seq <= w.seq {
		d := p.diverged(w, r, fmt.Sprintf("record %d comes after record %d", r.Seq, w.seq))
		return d
	}
	d := p.diverged(w, nil, fmt.Sprintf("record %d is missing: after %d comes %d", want, w.seq, r.Seq))
	var e translog.Entry
	for range ahead {
		if p.reader.Next(&e) != nil {
			break
		}
		if e.Kind != translog.RecordEntry || e.World != w.Number || e.Record.Seq != want {
			continue
		}
		if p.other == nil || p.other.Translate(&e) == nil {
			found := e.Record
			d.Logged = &found
			if d.Replayed == nil {
				d.parent = found.Parent
			}
		}
		d.Reason = fmt.Sprintf("record %d is out of order: it comes after record %d (%v)", want, r.Seq, e.Place)
		if r.Seq == want+1 {
			d.Reason = fmt.Sprintf("records %d and %d are swapped", want, r.Seq)
		}
		break
	}
	return d
}

// missing explains a step whose last records the log does not have.
func (p *player) missing(w *world) error {
	return p.diverged(w, nil, fmt.Sprintf("record %d is missing: the log ends after %d", w.seq+1, w.seq))
}
