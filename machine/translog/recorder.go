package translog

import "github.com/runfence/runfence/machine"

// Recorder takes the records of one world: it is the Recorder of its
// [machine.Config], and a [machine.Flusher].
//
// It holds operations back that repeat the one before, equal but for sequence,
// time and where parents are, to write them as one [Repeat]. They are held
// until another record of the world comes, until they are [MaxRepeatCount],
// until the writer gives a batch to the sink, or until Sync or Close.
type Recorder struct {
	w     *Writer
	world int
	next  uint64 // the Seq that comes next
	dirty bool   // among w.dirty

	// group has the bodies of one host operation's records, one after another;
	// ends[i] is where the i-th ends.
	group      []byte
	ends       [MaxRepeatLength]int
	length     int
	collecting bool // the operation is under way: group may grow
	whole      bool // group is a whole operation, whose repetition is awaited

	// What is held back: reps repetitions of the group from Seq first on, the
	// last of which ended at time; then the first `at` records of one more.
	first uint64
	reps  int
	time  int64
	at    int
	times [MaxRepeatLength]int64

	gap Gap
}

// Record takes a record. It never blocks on the sink.
func (r *Recorder) Record(rec *machine.Record) {
	w := r.w
	w.mu.Lock()
	r.record(rec)
	w.mu.Unlock()
}

// Flush is called before a command and at the end of a host operation; it may
// write to the sink.
func (r *Recorder) Flush() { r.w.flush() }

// starts reports whether a record begins a host operation.
func starts(rec *machine.Record) bool {
	return rec.Via == machine.ViaHost && rec.Kind != machine.Settled && rec.Kind != machine.Holed
}

func (r *Recorder) record(rec *machine.Record) {
	w, s := r.w, r.w.spelling
	if w.closed {
		w.dropped++
		return
	}
	var site uint32
	if rec.Site != 0 {
		site = w.siteOf(rec.Site)
	}
	s.body = appendBody(s.body[:0], rec, site)
	switch {
	case w.exact:
		r.put(rec, site, s.body)
	case r.matches(rec, s.body):
		r.hold(rec)
	default:
		if r.reps > 0 || r.at > 0 {
			r.release()
		}
		r.whole = false
		r.collect(rec, s.body, r.put(rec, site, s.body))
	}
	r.next = rec.Seq + 1
}

// matches reports whether a record is the next one of a repetition.
func (r *Recorder) matches(rec *machine.Record, body []byte) bool {
	if r.collecting && starts(rec) {
		r.collecting, r.whole = false, true
	}
	if !r.whole || rec.Seq != r.next {
		return false
	}
	from := 0
	if r.at > 0 {
		from = r.ends[r.at-1]
	}
	return string(body) == string(r.group[from:r.ends[r.at]])
}

func (r *Recorder) hold(rec *machine.Record) {
	if r.reps == 0 && r.at == 0 {
		r.first = rec.Seq
		r.mark()
	}
	r.times[r.at] = rec.Time
	r.at++
	if r.at < r.length {
		return
	}
	r.at = 0
	r.reps++
	r.time = rec.Time
	if r.reps == MaxRepeatCount {
		r.release()
	}
}

// collect keeps a record that was written as part of a host operation that may
// be repeated. One that was dropped ends the operation.
func (r *Recorder) collect(rec *machine.Record, body []byte, written bool) {
	if starts(rec) {
		r.group, r.length, r.collecting = r.group[:0], 0, true
	}
	if !written || r.length == MaxRepeatLength {
		r.collecting = false
	}
	if r.collecting {
		r.group = append(r.group, body...)
		r.ends[r.length] = len(r.group)
		r.length++
	}
}

// mark lists the recorder among those that hold something back.
func (r *Recorder) mark() {
	if !r.dirty {
		r.dirty = true
		r.w.dirty = append(r.w.dirty, r)
	}
}

// release writes what is held back. The gap stays if there is no room for it.
// It leaves the recorder listed; [Writer.release] sees to that.
func (r *Recorder) release() {
	w := r.w
	before := len(w.buf)
	if r.reps > 0 {
		x := Repeat{First: r.first, Length: r.length, Count: r.reps, Time: r.time}
		w.buf = w.spelling.repeat(w.buf, r.world, &x)
		w.records += x.Records()
	}
	from, seq := 0, r.first+uint64(r.reps)*uint64(r.length)
	for i := range r.at {
		w.buf = w.spelling.again(w.buf, r.world, seq+uint64(i), r.times[i], r.group[from:r.ends[i]])
		from = r.ends[i]
		w.records++
		r.whole = false // what comes next is in the middle of an operation
	}
	r.reps, r.at = 0, 0
	if r.gap.Count > 0 && (w.closed || w.kept+maxGapEntry <= w.limit) {
		w.buf = w.spelling.gap(w.buf, r.world, r.gap)
		r.gap = Gap{}
	}
	w.added(before)
}

// maxGapEntry is more than a gap takes in either encoding.
const maxGapEntry = 160

// put writes a record, or drops it if there is no room, or none yet for the
// gap before it.
func (r *Recorder) put(rec *machine.Record, site uint32, body []byte) bool {
	w := r.w
	if r.gap.Count > 0 {
		r.release()
	}
	if r.gap.Count > 0 || w.kept+len(body) > w.limit {
		if r.gap.Count == 0 {
			r.gap.First = rec.Seq
			r.mark()
		}
		r.gap.Count++
		w.dropped++
		w.press(len(body))
		return false
	}
	before := len(w.buf)
	w.buf = w.spelling.record(w.buf, r.world, rec, site, body)
	w.added(before)
	w.records++
	return true
}

// siteOf returns the number of a program counter's site, 0 if it has none.
func (w *Writer) siteOf(pc uintptr) uint32 {
	if n, ok := w.sites[pc]; ok {
		return n
	}
	before := len(w.buf)
	var n uint32
	w.buf, n = w.spelling.site(w.buf, siteText(pc))
	w.added(before)
	w.sites[pc] = n
	return n
}
