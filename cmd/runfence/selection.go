package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// selection says which records of a log to show.
type selection struct {
	machines []string // NAME or NAME[SLOT]
	slot     number
	run      number
	world    number
	seq      span
	refused  bool

	wanted []wanted
	// slots are the machines of the pool of pipeline slots.
	slots map[machine.MachineID]bool
	// epoch is the position of run_epoch in the identity of each machine.
	epoch map[machine.MachineID]int
	// last has the run that each instance stood for when it was last heard of.
	last map[instance]uint64
	// recent has whether each of the last records was selected, by sequence, for
	// the repeats that stand for them.
	recent map[int]*[translog.MaxRepeatLength]bool
}

// wanted is a machine, or one instance of it.
type wanted struct {
	id   machine.MachineID
	slot int // -1: any
}

// instance is a place in a world, whoever occupies it.
type instance struct {
	world int
	id    machine.MachineID
	slot  uint16
}

// slotPool is the pool of the pipeline slots.
const slotPool = "slot"

// number is the value of a flag that may be left out.
type number struct {
	given bool
	n     uint64
}

// String implements pflag.Value.
func (n *number) String() string {
	if !n.given {
		return ""
	}
	return strconv.FormatUint(n.n, 10)
}

// Set implements pflag.Value.
func (n *number) Set(text string) error {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("want a number")
	}
	*n = number{true, v}
	return nil
}

// Type implements pflag.Value.
func (n *number) Type() string { return "N" }

// is reports whether the flag is left out, or given with this value.
func (n *number) is(v uint64) bool { return !n.given || n.n == v }

// span is a range of sequence numbers, both ends included.
type span struct{ from, to uint64 }

// String implements pflag.Value.
func (s *span) String() string {
	switch {
	case *s == span{} || *s == span{0, math.MaxUint64}:
		return ""
	case s.to == math.MaxUint64:
		return fmt.Sprintf("%d..", s.from)
	}
	return fmt.Sprintf("%d..%d", s.from, s.to)
}

// Set implements pflag.Value.
func (s *span) Set(text string) error {
	from, to, isRange := strings.Cut(text, "..")
	if !isRange {
		to = from
	}
	out := span{0, math.MaxUint64}
	var err error
	if from != "" {
		if out.from, err = strconv.ParseUint(from, 10, 64); err != nil {
			return errors.New("want A..B, A.., ..B or A, in numbers")
		}
	}
	if to != "" {
		if out.to, err = strconv.ParseUint(to, 10, 64); err != nil {
			return errors.New("want A..B, A.., ..B or A, in numbers")
		}
	}
	if from == "" && to == "" {
		return errors.New("want A..B, A.., ..B or A, in numbers")
	}
	if out.from > out.to {
		return fmt.Errorf("%d is after %d", out.from, out.to)
	}
	*s = out
	return nil
}

// Type implements pflag.Value.
func (s *span) Type() string { return "A..B" }

func (s *selection) flags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVarP(&s.machines, "machine", "m", nil, "only records of this machine, or NAME[SLOT]; may be repeated")
	f.Var(&s.slot, "slot", "only operations on this pipeline slot")
	f.Var(&s.run, "run", "only operations on the run with this run_epoch")
	f.Var(&s.world, "world", "only records of this world")
	f.Var(&s.seq, "seq", "only records with these sequence numbers")
	f.BoolVar(&s.refused, "refused", false, "only what was refused")
	must(cmd.RegisterFlagCompletionFunc("machine", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return a.rules().Machines(), cobra.ShellCompDirectiveNoFileComp
	}))
	for _, name := range []string{"slot", "run", "world", "seq"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
}

// bind finds the names in the log's header.
func (s *selection) bind(h *translog.Header) error {
	if s.seq == (span{}) {
		s.seq = span{0, math.MaxUint64}
	}
	s.slots, s.epoch, s.last = map[machine.MachineID]bool{}, map[machine.MachineID]int{}, map[instance]uint64{}
	s.recent = map[int]*[translog.MaxRepeatLength]bool{}
	var names []string
	for i, m := range h.Machines {
		names = append(names, m.Name)
		if m.Pool == slotPool {
			s.slots[machine.MachineID(i)] = true
		}
		for j, f := range m.Identity {
			if f.Name == "run_epoch" {
				s.epoch[machine.MachineID(i)] = j
			}
		}
	}
	if s.slot.given && len(s.slots) == 0 {
		return fmt.Errorf("--slot: no machine of this log lives in the pool %q; --machine NAME[SLOT] names an instance", slotPool)
	}
	if s.run.given && len(s.epoch) == 0 {
		return errors.New("--run: no machine of this log has a run_epoch in its identity")
	}
	for _, text := range s.machines {
		w := wanted{slot: -1}
		name, rest, one := strings.Cut(text, "[")
		if one {
			slot, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 16)
			if err != nil || !strings.HasSuffix(rest, "]") {
				return fmt.Errorf("--machine %s: want NAME or NAME[SLOT]", text)
			}
			w.slot = int(slot)
		}
		i, err := resolve("machine of this log", name, names)
		if err != nil {
			return err
		}
		w.id = machine.MachineID(i)
		s.wanted = append(s.wanted, w)
	}
	return nil
}

// known returns an error if a log that has been read has no such world. (A
// world may begin anywhere in a log, so that is not known before.)
func (s *selection) known(l *logFile) error {
	if !s.world.given || s.world.n < uint64(len(l.worlds)) {
		return nil
	}
	if len(l.worlds) == 0 {
		return fmt.Errorf("--world %d: %s has no world", s.world.n, l.name)
	}
	const most = 16
	var there []string
	for i, name := range l.worlds[:min(most, len(l.worlds))] {
		there = append(there, fmt.Sprintf("%d (%s)", i, printable(name)))
	}
	more := ""
	if n := len(l.worlds); n > most {
		more = fmt.Sprintf(" and others, up to %d", n-1)
	}
	return fmt.Errorf("--world %d: %s has no such world, but %s%s", s.world.n, l.name, strings.Join(there, ", "), more)
}

// takes reports whether to show an entry.
func (s *selection) takes(e *translog.Entry) bool {
	if e.Kind != translog.EndEntry && !s.world.is(uint64(e.World)) {
		return false
	}
	switch e.Kind {
	case translog.RecordEntry:
		ok := s.matches(e)
		s.note(e.World, e.Record.Seq, ok)
		return ok && s.overlaps(e.Record.Seq, 1)
	case translog.RepeatEntry:
		// A repeat is shown if any of the records is that it stands for. What
		// comes next may repeat the repetition.
		x := &e.Repeat
		n, l := x.Records(), uint64(x.Length)
		var group [translog.MaxRepeatLength]bool
		shown := false
		for i := range l {
			group[i] = s.noted(e.World, x.First-l+i)
			shown = shown || group[i]
		}
		for i := range l {
			s.note(e.World, x.First+n-l+i, group[i])
		}
		return shown && s.overlaps(x.First, n)
	case translog.GapEntry:
		return s.overlaps(e.Gap.First, e.Gap.Count)
	}
	return true
}

func (s *selection) overlaps(first, n uint64) bool {
	return first+n-1 >= s.seq.from && first <= s.seq.to
}

func (s *selection) matches(e *translog.Entry) bool {
	rec := &e.Record
	if rec.Kind == machine.Reserved {
		// It is of no instance.
		return !s.run.given && !s.slot.given && !s.refused && len(s.wanted) == 0
	}
	if s.run.given && !s.ofRun(e.World, rec) {
		return false
	}
	if s.refused && rec.Kind != machine.Rejected && rec.Kind != machine.Holed {
		return false
	}
	if s.slot.given && !s.inSlot(rec.Ref) && !s.inSlot(rec.Root) {
		return false
	}
	for _, w := range s.wanted {
		if w.id == rec.Ref.Machine && (w.slot < 0 || w.slot == int(rec.Ref.Slot)) {
			return true
		}
	}
	return len(s.wanted) == 0
}

func (s *selection) inSlot(r machine.Ref) bool {
	return s.slots[r.Machine] && s.slot.is(uint64(r.Slot))
}

// ofRun reports whether a record is of the run: its instance stands for it, or
// that whose operation it is part of does.
func (s *selection) ofRun(world int, rec *machine.Record) bool {
	at := func(r machine.Ref) instance { return instance{world, r.Machine, r.Slot} }
	if i, ok := s.epoch[rec.Ref.Machine]; ok && i < int(rec.NIdentity) {
		s.last[at(rec.Ref)] = rec.Identity[i]
	}
	return s.run.is(s.last[at(rec.Ref)]) || s.run.is(s.last[at(rec.Root)])
}

func (s *selection) note(world int, seq uint64, shown bool) {
	r := s.recent[world]
	if r == nil {
		r = new([translog.MaxRepeatLength]bool)
		s.recent[world] = r
	}
	r[seq%translog.MaxRepeatLength] = shown
}

func (s *selection) noted(world int, seq uint64) bool {
	r := s.recent[world]
	return r != nil && r[seq%translog.MaxRepeatLength]
}
