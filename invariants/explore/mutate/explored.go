package mutate

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/runfence/runfence/invariants/explore"
	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/patch"
)

// Explored is a [Killer] and a [Differ]: a model that was visited once by the
// rules as they are. A change of a row can only matter where an event was looked
// up among that row's neighbours; so only those moves are taken again by the
// mutant's rules. If each does what it did, the mutant leads to the same worlds
// by the same ways with the same answers: it makes no difference. If one does
// not, what it leads to is explored.
type Explored struct {
	model  *Model
	states [][]byte
	edges  int
	// whole: the model was visited to its end.
	whole bool
	// at has the moves by what was looked up: "machine event state", or "machine
	// event" where the state is not known.
	at map[string][]edge
	// taken has the rows that were, with their targets and outcomes: "machine/row",
	// "machine/row#1", "machine/row failed".
	taken map[string]bool
}

type edge struct {
	state int32
	move  explore.Move
	was   digest
}

// digest is what a move did: where it led, and what the host hears.
type digest struct {
	to    machine.Fingerprint
	heard uint64
}

// watched is what a system tells of its last step.
type watched struct {
	step  machine.Step
	recs  []machine.Record
	rules *machine.Rules
	seen  bool
}

func (v *watched) observe(_ *machine.World, s *machine.Step, recs []machine.Record) {
	v.step, v.recs, v.seen = *s, append(v.recs[:0], recs...), true
}

// heard hashes what the step tells.
func (v *watched) heard() uint64 {
	if !v.seen {
		return 0
	}
	s := &v.step
	b := []byte{byte(s.Status), byte(s.Refusal), byte(s.ByKind)}
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Code))
	b = binary.LittleEndian.AppendUint64(b, s.Return)
	if s.Status == machine.InFlight {
		b = append(b, v.rules.CallName(s.Command.Call)...)
		for _, a := range s.Command.Args[:s.Command.N] {
			b = binary.LittleEndian.AppendUint64(b, a)
		}
	}
	return xxhash.Sum64(append(b, s.Reason...))
}

// Explore visits a model by the rules as they are. The error says what is wrong
// with them: nobody can notice a mutant where the original is found fault with.
func Explore(model *Model, base *Mutant) (*Explored, error) {
	rules := base.Lane
	if model.Above {
		rules = base.Orchestrator
	}
	x := &Explored{model: model, at: map[string][]edge{}, taken: map[string]bool{}}
	v := &watched{rules: rules}
	sys, err := model.system(rules, v.observe)
	if err != nil {
		return nil, err
	}
	along := together(rules)
	seen := map[machine.Fingerprint]bool{}
	st := sys.New()
	visit := func() {
		if f := st.Fingerprint(); !seen[f] {
			seen[f] = true
			x.states = append(x.states, st.AppendBinary(nil))
		}
	}
	visit()
	var moves []explore.Move
	done := 0
	for ; done < len(x.states) && done < model.Most; done++ {
		if err := st.SetBinary(x.states[done]); err != nil {
			return nil, err
		}
		moves = st.Moves(moves[:0])
		for _, m := range moves {
			if err := st.SetBinary(x.states[done]); err != nil {
				return nil, err
			}
			v.seen = false
			if f := st.Take(m); f != nil {
				return nil, fmt.Errorf("%s: %w", model.Name, f)
			}
			x.edges++
			e := edge{int32(done), m, digest{st.Fingerprint(), v.heard()}}
			for k := range x.keys(v, along) {
				x.at[k] = append(x.at[k], e)
			}
			visit()
		}
	}
	x.whole = done == len(x.states)
	x.states = x.states[:done]
	return x, nil
}

// keys are what a step looked up.
func (x *Explored) keys(v *watched, along map[string][]string) map[string]bool {
	out := map[string]bool{}
	if !v.seen {
		return out
	}
	name := func(m machine.MachineID, e machine.EventID) string {
		return v.rules.At(m).Name() + " " + v.rules.At(m).EventName(e)
	}
	for i := range v.recs {
		r := &v.recs[i]
		m := v.rules.At(r.Ref.Machine)
		out[name(r.Ref.Machine, r.Event)+" "+m.StateName(r.From)] = true
		if r.Row != machine.NoRowID {
			row := m.Name() + "/" + m.RowID(r.Row)
			x.taken[row] = true
			switch r.Kind {
			case machine.Settled:
				x.taken[row+" "+r.Result.Outcome.String()] = true
				x.taken[fmt.Sprintf("%s#%d", row, r.Target)] = true
			case machine.Stepped:
				x.taken[fmt.Sprintf("%s#%d", row, r.Target)] = true
			}
		}
	}
	if s := &v.step; s.Status == machine.Deferred || s.Status == machine.Hole || s.Refusal == machine.ByJoint {
		// What was taken along before one refused left no record.
		for _, k := range along[name(s.Ref.Machine, s.Event)] {
			out[k] = true
		}
	}
	return out
}

// together lists, by "machine event", all that the rows of that may take along,
// itself first.
func together(rules *machine.Rules) map[string][]string {
	direct := map[string][]string{}
	for id := range rules.NumMachines() {
		m := rules.At(machine.MachineID(id))
		d := m.Definition()
		for _, r := range d.Rows {
			k := d.Name + " " + r.Event
			sends := slices.Clone(r.With)
			for _, t := range r.Then {
				sends = append(sends, t.With...)
			}
			for _, s := range sends {
				inv, err := machine.ParseInvocation(s)
				if err != nil {
					continue
				}
				peer := inv.Peer
				if f, ok := m.Fact(peer); ok {
					peer = m.FactType(f).Name
				}
				direct[k] = append(direct[k], peer+" "+inv.Name)
			}
			direct[k] = append(direct[k], []string{}...)
		}
	}
	out := map[string][]string{}
	for k := range direct {
		list := []string{k}
		for i := 0; i < len(list); i++ {
			for _, n := range direct[list[i]] {
				if !slices.Contains(list, n) {
					list = append(list, n)
				}
			}
		}
		out[k] = list
	}
	return out
}

// about lists the moves that a change of the row can matter to.
func (x *Explored) about(m *Mutant) []edge {
	var out []edge
	seen := map[[2]uint64]bool{}
	add := func(key string) {
		for _, e := range x.at[key] {
			if k := [2]uint64{uint64(e.state), uint64(e.move)}; !seen[k] {
				seen[k] = true
				out = append(out, e)
			}
		}
	}
	for i, p := range m.Patches {
		key := p.Machine + " " + m.rows[i].Event
		add(key)
		for from := range strings.SplitSeq(m.rows[i].From, "|") {
			from, _, _ = strings.Cut(from, "▸")
			add(key + " " + from)
		}
	}
	return out
}

// verdict is what taking the moves again came to.
type verdict struct {
	moves int
	// found is an invariant that broke; differs is a move that did something else.
	found, differs string
	// where the differing moves led, by the mutant's rules.
	led [][]byte
}

// Bounds on what is looked at of one mutant.
const (
	maxLed    = 48
	maxBeyond = 1500
)

func (x *Explored) again(m *Mutant) (v verdict) {
	if m.Above != x.model.Above {
		return v
	}
	list := x.about(m)
	if v.moves = len(list); v.moves == 0 {
		return v
	}
	m, same := m.alike()
	if !same {
		// The rows have other numbers, so a world of one does not fit the other.
		// But a row that is gone, or has no command, is another if it was taken.
		for _, p := range m.Patches {
			if x.taken[p.Machine+"/"+p.Row] {
				v.differs = p.Machine + "/" + p.Row + " was taken"
			}
		}
		if v.differs != "" {
			x.afresh(m, &v)
		}
		return v
	}
	defer func() {
		if p := recover(); p != nil {
			v.found = fmt.Sprintf("panic: %v", p)
		}
	}()
	w := &watched{rules: m.changed()}
	sys, err := x.model.system(m.changed(), w.observe)
	if err != nil {
		v.found = err.Error()
		return v
	}
	st := sys.New()
	for _, e := range list {
		if err := st.SetBinary(x.states[e.state]); err != nil {
			v.differs = err.Error()
			x.afresh(m, &v)
			return v
		}
		var text string
		if v.differs == "" {
			text = sys.MoveText(st, e.move)
		}
		w.seen = false
		if f := st.Take(e.move); f != nil {
			v.differs, v.found = text, f.Error()
			return v
		}
		if (digest{st.Fingerprint(), w.heard()}) == e.was {
			continue
		}
		if v.differs == "" {
			v.differs = text
		}
		if !x.model.Checked {
			return v
		}
		if len(v.led) < maxLed {
			v.led = append(v.led, st.AppendBinary(nil))
		}
	}
	if x.model.Checked && v.differs != "" {
		v.found = beyond(sys, v.led)
	}
	return v
}

// afresh explores from the beginning by the mutant's rules.
func (x *Explored) afresh(m *Mutant, v *verdict) {
	defer func() {
		if p := recover(); p != nil {
			v.found = fmt.Sprintf("panic: %v", p)
		}
	}()
	sys, err := x.model.system(m.changed(), nil)
	if err != nil {
		v.found = err.Error()
		return
	}
	if x.model.Checked {
		v.found = beyond(sys, [][]byte{sys.New().AppendBinary(nil)})
	}
}

// beyond explores from some states and returns the first finding, or "".
func beyond(sys explore.System, from [][]byte) string {
	seen := map[machine.Fingerprint]bool{}
	st := sys.New()
	var moves []explore.Move
	for i := 0; i < len(from) && i < maxBeyond; i++ {
		if err := st.SetBinary(from[i]); err != nil {
			return err.Error()
		}
		moves = st.Moves(moves[:0])
		if len(moves) == 0 {
			if f := st.Final(); f != nil {
				return f.Error()
			}
		}
		for _, m := range moves {
			if err := st.SetBinary(from[i]); err != nil {
				return err.Error()
			}
			text := ""
			if f := st.Take(m); f != nil {
				return text + f.Error()
			}
			if f := st.Fingerprint(); !seen[f] {
				seen[f] = true
				from = append(from, st.AppendBinary(nil))
			}
		}
	}
	return ""
}

// renumbered returns a mutant that does the same and whose rows have the
// original's numbers, so that worlds of one are worlds of the other; false if
// there is none.
func (m *Mutant) renumbered() (*Mutant, bool) {
	var ps []patch.Patch
	for _, p := range m.Patches {
		switch {
		case p.Field == patch.Command && p.Verb == patch.Drop, p.Field == patch.From:
			return m, false
		case p.Field == patch.Row:
			p = patch.Patch{Machine: p.Machine, Row: p.Row, Target: patch.Only, Field: patch.Guard, Verb: patch.Set, New: "false"}
		}
		ps = append(ps, p)
	}
	if slices.Equal(ps, m.Patches) {
		return m, true
	}
	o, err := m.of.Mutant(ps...)
	if err != nil {
		return m, false
	}
	return o, true
}

// Explorations are some explored models, as a [Killer] and as a [Differ].
type Explorations []*Explored

// NewExplorations visits models by the rules as they are, on all processors.
func NewExplorations(models []*Model, base *Mutant) (Explorations, error) {
	out := make(Explorations, len(models))
	errs := make([]error, len(models))
	var group sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, m := range models {
		group.Go(func() {
			limit <- struct{}{}
			out[i], errs[i] = Explore(m, base)
			<-limit
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Name implements [Killer].
func (Explorations) Name() string { return "exploration" }

// Kill implements [Killer].
func (xs Explorations) Kill(m *Mutant) (string, bool, error) {
	for _, x := range xs {
		if !x.model.Checked {
			continue
		}
		if v := x.again(m); v.found != "" {
			return fmt.Sprintf("%s: %s: %s", x.model.Name, v.differs, v.found), true, nil
		}
	}
	return "", false, nil
}

// Same implements [Differ].
func (xs Explorations) Same(m *Mutant) (string, bool, error) {
	var where []string
	for _, x := range xs {
		v := x.again(m)
		if v.differs != "" {
			return fmt.Sprintf("nobody notices: %s: %s", x.model.Name, v.differs), false, nil
		}
		if v.moves > 0 && x.reaches(m) {
			where = append(where, fmt.Sprintf("%s, %d moves of %s", x.model.Name, v.moves, x.bounds()))
		}
	}
	if len(where) == 0 {
		return "nothing ever comes there", false, nil
	}
	return "the same in " + strings.Join(where, "; "), true, nil
}

// reaches reports whether the model comes to what the mutant changes.
func (x *Explored) reaches(m *Mutant) bool {
	for _, p := range m.Patches {
		key := p.Machine + "/" + p.Row
		switch p.Field {
		case patch.Row, patch.From, patch.Guard, patch.Defer:
			// The row was looked at.
			continue
		case patch.Outcome:
			key += " " + p.Part
		case patch.When, patch.Refuse, patch.Before, patch.With, patch.Command:
		default:
			key += fmt.Sprintf("#%d", max(0, p.Target))
		}
		if !x.taken[key] {
			return false
		}
	}
	return true
}

// Bounds says what was visited, a line a model.
func (xs Explorations) Bounds() []string {
	var out []string
	for _, x := range xs {
		out = append(out, x.model.Name+": "+x.bounds())
	}
	return out
}

func (x *Explored) bounds() string {
	s := fmt.Sprintf("%d worlds and %d moves", len(x.states), x.edges)
	if !x.whole {
		s += ", not all there are"
	}
	return s
}
