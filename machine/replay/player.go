package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/runfence/runfence/machine"
	"github.com/runfence/runfence/machine/translog"
)

// player is one replay.
type player struct {
	o      Options
	rules  *machine.Rules
	given  *translog.Header // of rules
	reader *translog.Reader
	other  *translog.Translator // if the log is of other rules
	result *Result
	worlds []*world

	instances int
	place     translog.Place // of the entry under way
	counted   uint64         // records read, those left out included

	seeker io.ReadSeeker // nil if the log can be read only once
	start  int64
	recent *recent // nil if it can be read again

	// acting is the world that the rules are at work in.
	acting *world
}

// world is one world under replay.
type world struct {
	*World
	seq uint64 // of the last record

	// made are the records of the last step, of which the log has confirmed
	// the first `next`.
	made []machine.Record
	next int
	// panicked: the last input must not be given again.
	panicked bool

	// group are the records of the last host operation, for repeats.
	group []machine.Record

	// before is the world some inputs ago, see [world.stateBefore].
	before *machine.World
	inputs []input
}

// Record takes what the world records.
func (w *world) Record(r *machine.Record) { w.made = append(w.made, *r) }

func newPlayer(src io.Reader, rules *machine.Rules, o Options) (*player, error) {
	if o.Recent <= 0 {
		o.Recent = 4096
	}
	if o.MaxWorlds <= 0 {
		o.MaxWorlds = 4096
	}
	if o.MaxInstances <= 0 {
		o.MaxInstances = 1 << 20
	}
	given, err := translog.HeaderOf(rules)
	if err != nil {
		return nil, err
	}
	p := &player{o: o, rules: rules, given: given, result: &Result{}}
	if s, ok := src.(io.ReadSeeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			p.seeker, p.start = s, at
		}
	}
	if p.seeker == nil {
		p.recent = newRecent(o.Recent)
	}
	if p.reader, err = translog.NewReader(src); err != nil {
		return nil, err
	}
	p.result.Header = p.reader.Header()
	if other := compareRules(p.result.Header, given); other != nil {
		if !o.AllowOtherRules {
			return p, other
		}
		p.other = translog.NewTranslator(p.result.Header, given)
	}
	return p, nil
}

// play goes through the log.
func (p *player) play() (err error) {
	defer func() {
		if w := p.acting; w != nil {
			if caught := recover(); caught != nil {
				w.panicked = true
				err = p.diverged(w, nil, fmt.Sprintf("the rules panicked: %v", caught))
			}
		}
	}()
	var e translog.Entry
	for {
		err := p.reader.Next(&e)
		switch {
		case err == io.EOF:
			return p.ended()
		case err != nil:
			return p.unreadable(&e, err)
		}
		p.place = e.Place
		switch e.Kind {
		case translog.WorldEntry:
			err = p.open(&e)
		case translog.RecordEntry:
			err = p.record(&e)
		case translog.RepeatEntry:
			err = p.repeat(&e)
		case translog.GapEntry:
			err = p.gap(&e)
		case translog.EndEntry:
			err = p.end(&e)
		}
		if err != nil {
			return err
		}
	}
}

// open makes a world as the log says it was.
func (p *player) open(e *translog.Entry) error {
	fail := func(err error) error {
		return &WorldError{Place: e.Place, World: e.World, Name: e.Opened.Name, Err: err}
	}
	if len(p.worlds) == p.o.MaxWorlds {
		return fail(fmt.Errorf("world %d: at most %d: %w", len(p.worlds)+1, p.o.MaxWorlds, ErrTooMuch))
	}
	n := 0
	for i := range p.rules.NumMachines() {
		if pool := p.rules.At(machine.MachineID(i)).Definition().Pool; pool == "" {
			n++
		} else if size := e.Opened.Pools[pool]; size > 0 && size <= 4096 {
			n += size // another size is refused below
		}
	}
	if p.instances += n; p.instances > p.o.MaxInstances {
		return fail(fmt.Errorf("%d instances: at most %d: %w", p.instances, p.o.MaxInstances, ErrTooMuch))
	}
	w := &world{World: &World{Number: e.World, Name: e.Opened.Name}}
	var err error
	w.State, err = p.rules.NewWorld(machine.Config{Name: e.Opened.Name, Pools: e.Opened.Pools, Queue: e.Opened.Queue, Recorder: w})
	if err != nil {
		return fail(err)
	}
	w.before = w.State.Clone()
	p.worlds = append(p.worlds, w)
	p.result.Worlds = append(p.result.Worlds, w.World)
	return nil
}

// record takes one record of the log.
func (p *player) record(e *translog.Entry) error {
	w := p.worlds[e.World]
	p.counted++
	if w.Gap != nil {
		p.result.Skipped++
		return nil
	}
	if p.other != nil {
		if err := p.other.Translate(e); err != nil {
			d := p.diverged(w, nil, err.Error())
			d.Seq, d.Err = e.Record.Seq, err
			d.parent = e.Record.Parent
			return d
		}
	}
	r := &e.Record
	if p.recent != nil {
		p.recent.add(e.World, r)
	}
	if starts(r) {
		w.group = w.group[:0]
	}
	if len(w.group) <= translog.MaxRepeatLength {
		w.group = append(w.group, *r)
	}
	return p.take(w, r)
}

// starts reports whether a record begins a host operation.
func starts(r *machine.Record) bool {
	return r.Via == machine.ViaHost && r.Kind != machine.Settled && r.Kind != machine.Holed
}

// repeat takes the records that a repeat stands for.
func (p *player) repeat(e *translog.Entry) error {
	w := p.worlds[e.World]
	x := &e.Repeat
	p.counted += x.Records()
	if w.Gap != nil {
		p.result.Skipped += x.Records()
		return nil
	}
	if len(w.group) != x.Length {
		d := p.diverged(w, nil, fmt.Sprintf("the log repeats %d records of an operation that has %d", x.Length, len(w.group)))
		d.Seq = x.First
		return d
	}
	seq := x.First
	for range x.Count {
		for i := range w.group {
			r := w.group[i]
			by := seq - r.Seq
			r.Seq, r.Time = seq, x.Time
			if r.Parent != 0 {
				r.Parent += by
			}
			seq++
			if p.recent != nil {
				p.recent.add(e.World, &r)
			}
			if err := p.take(w, &r); err != nil {
				return err
			}
			w.Repeated++
			p.result.Repeated++
		}
	}
	return nil
}

// take confirms a record that the world made, or gives the world what came
// from outside and confirms that.
func (p *player) take(w *world, r *machine.Record) error {
	if r.Seq != w.seq+1 {
		return p.outOfOrder(w, r)
	}
	if w.next == len(w.made) {
		if err := p.input(w, r); err != nil {
			return err
		}
	}
	made := &w.made[w.next]
	made.Time = r.Time // data only
	if *made != *r {
		return p.differ(w, r, made)
	}
	w.next++
	w.seq++
	w.Records++
	p.result.Records++
	if r.Kind == machine.Rejected {
		w.Refusals++
		p.result.Refusals++
	}
	if p.o.Observer != nil {
		if err := p.o.Observer(w.State, r); err != nil {
			return fmt.Errorf("world %d %q, record %d: %w", w.Number, w.Name, r.Seq, err)
		}
	}
	return nil
}

// input gives the world what the record says came from outside.
func (p *player) input(w *world, r *machine.Record) error {
	if r.Via == machine.ViaJoint {
		return p.diverged(w, r, "the step it says it is part of did not take it along")
	}
	if r.Kind == machine.Stepped || r.Kind == machine.Issued {
		// A refusal may be of an event that there is not.
		m := int(r.Ref.Machine)
		if m >= p.rules.NumMachines() {
			return p.diverged(w, r, fmt.Sprintf("unknown machine %d: there are %d", m, p.rules.NumMachines()))
		}
		if of := p.rules.At(r.Ref.Machine); int(r.Event) >= of.NumEvents() {
			return p.diverged(w, r, fmt.Sprintf("unknown event %d: %s has %d", r.Event, of.Name(), of.NumEvents()))
		}
	}
	in := inputOf(w.State, r)
	w.keep(&in)
	w.made, w.next = w.made[:0], 0
	p.acting = w
	s := in.give(w.State)
	p.acting = nil
	if len(w.made) > 0 {
		return nil
	}
	switch {
	case s == nil && r.Kind == machine.Reserved:
		return p.diverged(w, r, "the identities were taken already")
	case s == nil:
		return p.diverged(w, r, fmt.Sprintf("no event of %s waits to be taken", p.rules.RefName(r.Root)))
	case s.Status == machine.Deferred:
		return p.diverged(w, r, fmt.Sprintf("%s is in state %s: the event has to wait", p.rules.RefName(s.Ref), w.State.StateName(s.Ref)))
	}
	why := w.State.RefusalError(s)
	if why == nil {
		why = errors.New("nothing was recorded")
	}
	return p.diverged(w, r, why.Error())
}

// gap takes note of records that are lost.
func (p *player) gap(e *translog.Entry) error {
	w := p.worlds[e.World]
	p.result.Gaps++
	p.result.Lost += e.Gap.Count
	if w.Gap != nil {
		return nil
	}
	if e.Gap.First != w.seq+1 {
		d := p.diverged(w, nil, fmt.Sprintf("record %d is missing: after %d comes a gap from %d on", w.seq+1, w.seq, e.Gap.First))
		d.Seq = w.seq + 1
		return d
	}
	if !p.o.SkipGaps {
		return &GapError{Place: e.Place, World: w.Number, Name: w.Name, Gap: e.Gap}
	}
	g := e.Gap
	w.Gap = &g
	return nil
}

// end checks that the log has what its writer wrote.
func (p *player) end(e *translog.Entry) error {
	for _, w := range p.worlds {
		if w.Gap == nil && w.next < len(w.made) {
			return p.missing(w)
		}
	}
	if e.End.Records != p.counted || e.End.Dropped != p.result.Lost {
		return &Divergence{
			World: -1, Place: e.Place,
			Reason: fmt.Sprintf("the log's end says %d records and %d lost; there are %d and %d", e.End.Records, e.End.Dropped, p.counted, p.result.Lost),
		}
	}
	return nil
}

// ended takes the end of what there is. Without an end entry, the last step of
// a world may have been cut.
func (p *player) ended() error {
	for _, w := range p.worlds {
		if w.Gap == nil {
			w.Missing = len(w.made) - w.next
		}
	}
	return nil
}

// unreadable takes an entry that could not be read.
func (p *player) unreadable(e *translog.Entry, err error) error {
	_ = p.ended()
	var unknown *translog.NameError
	if errors.As(err, &unknown) && unknown.World < len(p.worlds) {
		if w := p.worlds[unknown.World]; w.Gap == nil {
			d := p.diverged(w, nil, unknown.Hint)
			d.Seq, d.Err, d.Place = unknown.Seq, err, unknown.Place
			d.parent = e.Record.Parent
			return d
		}
	}
	return err
}
