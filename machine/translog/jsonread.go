package translog

import (
	"errors"
	"fmt"
	"math"

	"github.com/valyala/fastjson"

	"github.com/runfence/runfence/machine"
)

// lineReader decodes lines of JSON. The members of a line come in one order,
// the writer's: what tells the meaning of a member comes before it.
type lineReader struct {
	names  *names
	parser fastjson.Parser
	sites  map[string]string

	// Of the line under way:
	e      *Entry
	m      *machineNames // of the record's instance
	during []byte
	place  int // of the last member, among the places below
	err    error
	take   func(key []byte, v *fastjson.Value)
}

// The order of members.
const (
	_ = iota
	atKind
	atWorld
	atSeq
	atParent
	atTime
	atRef
	atRoot
	atVia
	atEvent
	atArgs
	atFrom
	atDuring
	atRow
	atViews
	atTarget
	atTo
	atIdentity
	atCall
	atCallArgs
	atOutcome
	atAccepted
	atCode
	atLast
	atValue
	atRefusal
	atReason
	atBy
	atByEvent
	atSite
	atLength
	atCount
	atCRC
)

var kindKey = []byte("kind")

var errNotAnObject = errors.New("not a JSON object")

// decode reads one line whose checksum holds.
func (l *lineReader) decode(e *Entry, line []byte) error {
	v, err := l.parser.ParseBytes(line)
	if err != nil {
		return shortened(err)
	}
	o, err := v.Object()
	if err != nil {
		return errNotAnObject
	}
	if l.take == nil {
		l.take = l.member // bound once: a method value allocates
	}
	l.e, l.m, l.during, l.place, l.err = e, nil, nil, 0, nil
	kind := l.text(kindKey, o.Get("kind"))
	e.Kind = kindOf(kind, &e.Record)
	switch e.Kind {
	case RecordEntry:
		rec := &e.Record
		rec.Row, rec.Call, rec.Reason = machine.NoRowID, machine.NoCall, machine.NoReasonID
	case RepeatEntry:
	default:
		return decodeText(e, line)
	}
	o.Visit(l.take)
	if e.Kind == RepeatEntry {
		e.Repeat.First, e.Repeat.Time = e.Record.Seq, e.Record.Time
		e.Record = machine.Record{}
	}
	if l.err != nil {
		return l.err
	}
	if e.Kind == RecordEntry && e.Record.Kind != machine.Reserved && l.m == nil && e.Record.Ref == (machine.Ref{}) {
		return errors.New("a record without a ref")
	}
	return nil
}

// kindOf tells records and repeats, which are many, from other entries.
func kindOf(kind []byte, rec *machine.Record) EntryKind {
	if string(kind) == RepeatEntry.String() {
		return RepeatEntry
	}
	for k := range machine.RecordKind(machine.NumRecordKinds) {
		if string(kind) == k.String() {
			rec.Kind = k
			return RecordEntry
		}
	}
	return NoEntry
}

// shortened keeps a parser's error from repeating a hostile line.
func shortened(err error) error {
	s := err.Error()
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return fmt.Errorf("%q", s)
}

// fault keeps the first thing that is wrong with the line.
func (l *lineReader) fault(err error) {
	if l.err == nil {
		l.err = err
	}
}

// after checks that a member comes where it may.
func (l *lineReader) after(place int, key []byte) bool {
	e := l.e.Kind
	repeat := place <= atSeq || place == atTime || place >= atLength
	record := place < atLength || place == atCRC
	switch {
	case e == RepeatEntry && !repeat || e == RecordEntry && !record:
		l.fault(fmt.Errorf("%s has no member %q", e, key))
	case place <= l.place:
		l.fault(fmt.Errorf("member %q comes twice or too late", key))
	default:
		l.place = place
		return true
	}
	return false
}

// member reads one member of the line.
func (l *lineReader) member(key []byte, v *fastjson.Value) {
	e, n := l.e, l.names
	rec := &e.Record
	switch string(key) {
	case "kind":
		l.after(atKind, key)
	case "world":
		if l.after(atWorld, key) {
			e.World = int(l.uint(key, v, math.MaxInt32))
		}
	case "seq":
		if l.after(atSeq, key) {
			rec.Seq = l.uint(key, v, math.MaxUint64)
		}
	case "parent":
		if l.after(atParent, key) {
			rec.Parent = l.uint(key, v, math.MaxUint64)
		}
	case "time":
		if l.after(atTime, key) {
			rec.Time = l.int(key, v, math.MinInt64, math.MaxInt64)
		}
	case "ref":
		if l.after(atRef, key) {
			rec.Ref = l.ref(key, v)
			rec.Root = rec.Ref
			l.m = n.of(rec)
		}
	case "root":
		if l.after(atRoot, key) {
			rec.Root = l.ref(key, v)
		}
	case "via":
		if l.after(atVia, key) {
			rec.Via = oneOf[machine.Via](l, key, v, machine.NumVia)
		}
	case "event":
		if l.after(atEvent, key) {
			rec.Event = l.event(key, v, l.m)
		}
	case "sort":
		if l.after(atEvent, key) {
			rec.Event = byName(l, "sort", key, v, n.sortID)
		}
	case "args":
		if l.after(atArgs, key) {
			var fs []field
			if en := l.m.event(rec.Event); en != nil {
				fs = en.args
			}
			rec.NArgs = l.values(key, v, fs, rec.Args[:])
		}
	case "from":
		if l.after(atFrom, key) {
			rec.From = l.state(key, v)
			rec.To = rec.From
		}
	case "during":
		if l.after(atDuring, key) {
			l.during = l.text(key, v)
		}
	case "row":
		if l.after(atRow, key) {
			rec.Row = l.row(key, v)
		}
	case "views":
		if l.after(atViews, key) {
			var fs []field
			if r := l.m.row(rec.Row); r != nil {
				fs = r.views
			}
			rec.NViews = l.values(key, v, fs, rec.Views[:])
		}
	case "target":
		if l.after(atTarget, key) {
			rec.Target = uint8(l.uint(key, v, math.MaxUint8))
		}
	case "to":
		if l.after(atTo, key) {
			rec.To = l.state(key, v)
		}
	case "identity":
		if l.after(atIdentity, key) {
			var fs []field
			if l.m != nil {
				fs = l.m.identity
			}
			rec.NIdentity = l.values(key, v, fs, rec.Identity[:])
		}
	case "call":
		if l.after(atCall, key) {
			rec.Call = byName(l, "call", key, v, n.callID)
		}
	case "callargs":
		if l.after(atCallArgs, key) {
			var fs []field
			if r := l.m.row(rec.Row); r != nil {
				fs = r.call
			}
			rec.NCall = l.values(key, v, fs, rec.CallArgs[:])
		}
	default:
		l.answer(key, v)
	}
}

// answer reads the members from the answer on.
func (l *lineReader) answer(key []byte, v *fastjson.Value) {
	e, n := l.e, l.names
	rec := &e.Record
	switch string(key) {
	case "outcome":
		if l.after(atOutcome, key) {
			rec.Result.Outcome = oneOf[machine.Outcome](l, key, v, machine.NumOutcomes)
		}
	case "accepted":
		if l.after(atAccepted, key) {
			a, err := v.Bool()
			if err != nil {
				l.fault(fmt.Errorf("%s: want true or false", key))
			}
			rec.Result.Accepted = a
		}
	case "code":
		if l.after(atCode, key) {
			rec.Result.Code = int32(l.int(key, v, math.MinInt32, math.MaxInt32))
		}
	case "last":
		if l.after(atLast, key) {
			rec.Result.Last = int32(l.int(key, v, math.MinInt32, math.MaxInt32))
		}
	case "value":
		if l.after(atValue, key) {
			rec.Result.Value = l.uint(key, v, math.MaxUint64)
		}
	case "refusal":
		if l.after(atRefusal, key) {
			rec.Refusal = oneOf[machine.RefusalKind](l, key, v, machine.NumRefusalKinds)
		}
	case "reason":
		if l.after(atReason, key) {
			rec.Reason = byName(l, "reason", key, v, n.reasonID)
		}
	case "by":
		if l.after(atBy, key) {
			rec.By = l.ref(key, v)
		}
	case "by_event":
		if l.after(atByEvent, key) {
			rec.ByEvent = l.event(key, v, n.machine(rec.By.Machine))
		}
	case "site":
		if l.after(atSite, key) {
			e.Site = l.site(l.text(key, v))
		}
	case "length":
		if l.after(atLength, key) {
			e.Repeat.Length = int(l.uint(key, v, MaxRepeatLength))
		}
	case "count":
		if l.after(atCount, key) {
			e.Repeat.Count = int(l.uint(key, v, MaxRepeatCount))
		}
	case "crc":
		l.after(atCRC, key)
	default:
		l.fault(fmt.Errorf("unknown member %.40q", key))
	}
}

func (l *lineReader) text(key []byte, v *fastjson.Value) []byte {
	if v == nil {
		l.fault(fmt.Errorf("no member %q", key))
		return nil
	}
	b, err := v.StringBytes()
	if err != nil {
		l.fault(fmt.Errorf("%s: want a text", key))
	}
	return b
}

func (l *lineReader) uint(key []byte, v *fastjson.Value, most uint64) uint64 {
	u, err := v.Uint64()
	if err != nil || u > most {
		l.fault(fmt.Errorf("%s: want a whole number from 0 to %d", key, most))
		return 0
	}
	return u
}

func (l *lineReader) int(key []byte, v *fastjson.Value, least, most int64) int64 {
	i, err := v.Int64()
	if err != nil || i < least || i > most {
		l.fault(fmt.Errorf("%s: want a whole number from %d to %d", key, least, most))
		return 0
	}
	return i
}

func (l *lineReader) ref(key []byte, v *fastjson.Value) machine.Ref {
	r, err := l.names.parseRef(l.text(key, v))
	if err != nil {
		l.fault(err)
	}
	return r
}

func (l *lineReader) event(key []byte, v *fastjson.Value, m *machineNames) machine.EventID {
	if m == nil {
		return machine.EventID(l.uint(key, v, math.MaxUint16))
	}
	return byName(l, "event", key, v, m.eventID)
}

func (l *lineReader) state(key []byte, v *fastjson.Value) machine.StateID {
	if l.m == nil {
		return machine.StateID(l.uint(key, v, math.MaxUint16))
	}
	return byName(l, "state", key, v, l.m.stateID)
}

// byName reads a name that has a number, or a number that has no name.
func byName[ID ~uint16](l *lineReader, what string, key []byte, v *fastjson.Value, ids map[string]ID) ID {
	if v.Type() == fastjson.TypeNumber {
		return ID(l.uint(key, v, math.MaxUint16))
	}
	name := l.text(key, v)
	id, ok := ids[string(name)]
	if !ok {
		l.fault(unknown(what, string(name), ids))
	}
	return id
}

// oneOf reads the name of one of n values.
func oneOf[T interface {
	~uint8
	String() string
}](l *lineReader, key []byte, v *fastjson.Value, n int) T {
	name := l.text(key, v)
	for i := range n {
		if T(i).String() == string(name) {
			return T(i)
		}
	}
	known := make(map[string]T, n)
	for i := range n {
		known[T(i).String()] = T(i)
	}
	l.fault(unknown(string(key), string(name), known))
	return 0
}

func (l *lineReader) row(key []byte, v *fastjson.Value) machine.RowID {
	if v.Type() == fastjson.TypeNumber {
		return machine.RowID(l.uint(key, v, math.MaxUint16-1))
	}
	id := l.text(key, v)
	if l.m == nil {
		l.fault(fmt.Errorf("row %q of a machine that is not among the rules", id))
		return machine.NoRowID
	}
	rows := l.m.rowID[string(id)]
	for _, r := range rows {
		if x := &l.m.rows[r]; x.from == l.e.Record.From && x.during == string(l.during) {
			return r
		}
	}
	if rows == nil {
		l.fault(unknown("row", string(id), l.m.rowID))
	} else {
		l.fault(&nameFault{what: "row", name: string(id), hint: fmt.Sprintf("no row %q from state %s", id, l.m.appendState(nil, l.e.Record.From))})
	}
	return machine.NoRowID
}

// values reads an object or array of typed values, or an array of bare numbers.
func (l *lineReader) values(key []byte, v *fastjson.Value, fs []field, into []uint64) uint8 {
	switch v.Type() {
	case fastjson.TypeObject:
		o, _ := v.Object()
		if o.Len() != len(fs) {
			l.fault(fmt.Errorf("%s: %d members, want %d", key, o.Len(), len(fs)))
			return 0
		}
		i := 0
		o.Visit(func(name []byte, x *fastjson.Value) {
			if string(name) != fs[i].name {
				l.fault(&nameFault{what: string(key), name: string(name), hint: fmt.Sprintf("%s: %.200q where %q comes", key, name, fs[i].name)})
			} else {
				l.value(key, x, &fs[i], &into[i])
			}
			i++
		})
		return uint8(len(fs))
	case fastjson.TypeArray:
		a, _ := v.Array()
		if len(a) > len(into) {
			l.fault(fmt.Errorf("%s: %d values, at most %d", key, len(a), len(into)))
			return 0
		}
		for i, x := range a {
			if len(fs) == len(a) {
				l.value(key, x, &fs[i], &into[i])
			} else {
				into[i] = l.uint(key, x, math.MaxUint64)
			}
		}
		return uint8(len(a))
	}
	l.fault(fmt.Errorf("%s: want an object or an array", key))
	return 0
}

func (l *lineReader) value(key []byte, v *fastjson.Value, f *field, into *uint64) {
	w, err := l.names.parseValue(f, v)
	if err != nil {
		if _, isName := err.(*nameFault); !isName {
			err = fmt.Errorf("%s: %w", key, err)
		}
		l.fault(err)
	}
	*into = w
}

// site keeps one string for each site, up to as many as a log holds.
func (l *lineReader) site(b []byte) string {
	if s, ok := l.sites[string(b)]; ok {
		return s
	}
	if len(b) == 0 || len(b) > maxSite || len(l.sites) == maxSites {
		l.fault(fmt.Errorf("a site of %d bytes after %d sites: at most %d and %d", len(b), len(l.sites), maxSite, maxSites))
		return ""
	}
	if l.sites == nil {
		l.sites = map[string]string{}
	}
	s := string(b)
	l.sites[s] = s
	return s
}
