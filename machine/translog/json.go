package translog

import (
	"strconv"
	"unicode/utf8"

	"github.com/runfence/runfence/machine"
)

// A line of JSON Lines ends in its checksum: the CRC-32C of every byte of the
// line before the comma.
const (
	trailerHead = `,"crc":"`
	trailerSize = len(trailerHead) + 8 + len(`"}`)
)

// closeLine ends an object that begins at start and lacks its last brace.
func closeLine(b []byte, start int) []byte {
	sum := checksum(b[start:])
	b = append(b, trailerHead...)
	b = appendSum(b, sum)
	return append(b, "\"}\n"...)
}

func appendSum(b []byte, sum uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[sum>>shift&15])
	}
	return b
}

// checkLine reports whether a line, without its end, has the checksum it says.
func checkLine(line []byte) bool {
	n := len(line) - trailerSize
	if n < 1 || string(line[n:n+len(trailerHead)]) != trailerHead || string(line[len(line)-2:]) != `"}` {
		return false
	}
	var want [8]byte
	appendSum(want[:0], checksum(line[:n]))
	return string(line[n+len(trailerHead):len(line)-2]) == string(want[:])
}

// appendTextLine makes a line of an object that encoding/json spelled.
func appendTextLine(b, object []byte) []byte {
	start := len(b)
	b = append(b, object[:len(object)-1]...)
	return closeLine(b, start)
}

// appendRecordLine writes a record and its site.
func (n *names) appendRecordLine(b []byte, world int, rec *machine.Record, site string) []byte {
	start := len(b)
	m := n.of(rec)
	b = append(b, `{"kind":"`...)
	b = append(b, rec.Kind.String()...)
	b = append(b, `","world":`...)
	b = strconv.AppendInt(b, int64(world), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, rec.Seq, 10)
	if rec.Parent != 0 {
		b = append(b, `,"parent":`...)
		b = strconv.AppendUint(b, rec.Parent, 10)
	}
	if rec.Time != 0 {
		b = append(b, `,"time":`...)
		b = strconv.AppendInt(b, rec.Time, 10)
	}
	if rec.Kind != machine.Reserved || rec.Ref != (machine.Ref{}) {
		b = append(b, `,"ref":"`...)
		b = n.appendRef(b, rec.Ref)
		b = append(b, '"')
	}
	if rec.Root != rec.Ref {
		b = append(b, `,"root":"`...)
		b = n.appendRef(b, rec.Root)
		b = append(b, '"')
	}
	if rec.Via != machine.ViaHost {
		b = append(b, `,"via":"`...)
		b = append(b, rec.Via.String()...)
		b = append(b, '"')
	}
	switch {
	case rec.Kind == machine.Reserved:
		b = append(b, `,"sort":`...)
		b = appendName(b, n.sorts, uint64(rec.Event))
	case rec.Kind != machine.Dropped || rec.Event != 0:
		b = append(b, `,"event":`...)
		b = m.appendEvent(b, rec.Event)
	}
	b = n.appendValues(b, `,"args":`, m.argFields(rec), rec.Args[:rec.NArgs], true)
	if m != nil || rec.From != 0 {
		b = append(b, `,"from":`...)
		b = m.appendState(b, rec.From)
	}
	if rec.Row != machine.NoRowID {
		b = m.appendRow(b, rec)
	}
	b = n.appendValues(b, `,"views":`, m.viewFields(rec), rec.Views[:rec.NViews], true)
	if rec.Target != 0 {
		b = append(b, `,"target":`...)
		b = strconv.AppendUint(b, uint64(rec.Target), 10)
	}
	if rec.To != rec.From {
		b = append(b, `,"to":`...)
		b = m.appendState(b, rec.To)
	}
	b = n.appendValues(b, `,"identity":`, m.identityFields(rec), rec.Identity[:rec.NIdentity], true)
	if rec.Call != machine.NoCall {
		b = append(b, `,"call":`...)
		b = appendName(b, n.calls, uint64(rec.Call))
	}
	b = n.appendValues(b, `,"callargs":`, m.callFields(rec), rec.CallArgs[:rec.NCall], false)
	if answers(rec) {
		b = appendResult(b, &rec.Result)
	}
	if rec.Refusal != machine.NotRefused {
		b = append(b, `,"refusal":"`...)
		b = append(b, rec.Refusal.String()...)
		b = append(b, '"')
	}
	if rec.Reason != machine.NoReasonID {
		b = append(b, `,"reason":`...)
		b = appendName(b, n.reasons, uint64(rec.Reason))
	}
	if blames(rec) {
		b = append(b, `,"by":"`...)
		b = n.appendRef(b, rec.By)
		b = append(b, `","by_event":`...)
		b = n.machine(rec.By.Machine).appendEvent(b, rec.ByEvent)
	}
	if site != "" {
		b = append(b, `,"site":`...)
		b = appendQuoted(b, site)
	}
	return closeLine(b, start)
}

// answers reports whether a record carries an answer.
func answers(rec *machine.Record) bool {
	return rec.Kind == machine.Settled || rec.Kind == machine.Holed || rec.Result != machine.Result{}
}

// blames reports whether a record names an instance that was taken along.
func blames(rec *machine.Record) bool {
	return rec.Refusal == machine.ByJoint || rec.By != machine.Ref{} || rec.ByEvent != 0
}

func appendResult(b []byte, r *machine.Result) []byte {
	b = append(b, `,"outcome":"`...)
	b = append(b, r.Outcome.String()...)
	b = append(b, '"')
	if r.Accepted {
		b = append(b, `,"accepted":true`...)
	}
	if r.Code != 0 {
		b = append(b, `,"code":`...)
		b = strconv.AppendInt(b, int64(r.Code), 10)
	}
	if r.Last != 0 {
		b = append(b, `,"last":`...)
		b = strconv.AppendInt(b, int64(r.Last), 10)
	}
	if r.Value != 0 {
		b = append(b, `,"value":`...)
		b = strconv.AppendUint(b, r.Value, 10)
	}
	return b
}

// appendValues writes a list of values: an object or array of typed values if
// the fields are known, else an array of bare numbers.
func (n *names) appendValues(b []byte, key string, fs []field, vs []uint64, named bool) []byte {
	if len(vs) == 0 {
		return b
	}
	b = append(b, key...)
	if fs == nil {
		b = append(b, '[')
		for i, v := range vs {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(b, v, 10)
		}
		return append(b, ']')
	}
	open, end := byte('['), byte(']')
	if named {
		open, end = '{', '}'
	}
	b = append(b, open)
	for i, v := range vs {
		if i > 0 {
			b = append(b, ',')
		}
		if named {
			b = append(b, fs[i].key...)
		}
		b = n.appendValue(b, &fs[i], v)
	}
	return append(b, end)
}

// appendName writes a name, or the number of one that there is not.
func appendName(b []byte, quoted []string, i uint64) []byte {
	if i < uint64(len(quoted)) {
		return append(b, quoted[i]...)
	}
	return strconv.AppendUint(b, i, 10)
}

func (m *machineNames) appendEvent(b []byte, e machine.EventID) []byte {
	if en := m.event(e); en != nil {
		return append(b, en.quoted...)
	}
	return strconv.AppendUint(b, uint64(e), 10)
}

// appendRow writes a row by its id, which is unique among the rows of one state
// and row in flight.
func (m *machineNames) appendRow(b []byte, rec *machine.Record) []byte {
	r := m.row(rec.Row)
	if r == nil || r.from != rec.From {
		b = append(b, `,"row":`...)
		return strconv.AppendUint(b, uint64(rec.Row), 10)
	}
	if r.during != "" {
		b = append(b, `,"during":`...)
		b = append(b, r.duringQuoted...)
	}
	b = append(b, `,"row":`...)
	return append(b, r.quoted...)
}

func (m *machineNames) appendState(b []byte, s machine.StateID) []byte {
	if m == nil {
		return strconv.AppendUint(b, uint64(s), 10)
	}
	return appendName(b, m.states, uint64(s))
}

// appendQuoted spells a text as JSON. Sites are nearly always plain.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return append(b, quote(s)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendRepeatLine(b []byte, world int, r *Repeat) []byte {
	start := len(b)
	b = append(b, `{"kind":"repeat","world":`...)
	b = strconv.AppendInt(b, int64(world), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, r.First, 10)
	if r.Time != 0 {
		b = append(b, `,"time":`...)
		b = strconv.AppendInt(b, r.Time, 10)
	}
	b = append(b, `,"length":`...)
	b = strconv.AppendInt(b, int64(r.Length), 10)
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(r.Count), 10)
	return closeLine(b, start)
}
