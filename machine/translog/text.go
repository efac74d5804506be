package translog

import (
	"strconv"
	"strings"

	"github.com/runfence/runfence/machine"
)

// Member is one part of a record by name, as a reader would want it.
type Member struct {
	// Name is as in a line of JSON; a part of a list is "args.epoch".
	Name, Value string
}

// Members returns every part of a record that says something, by name, in the
// order of a line of JSON. The header must be of the rules that made it.
func (h *Header) Members(r *machine.Record) []Member {
	n := h.names
	m := n.of(r)
	var out []Member
	put := func(name string, value []byte) {
		v := string(value)
		if s, err := strconv.Unquote(v); err == nil {
			v = s
		}
		out = append(out, Member{name, v})
	}
	put("kind", []byte(r.Kind.String()))
	put("seq", strconv.AppendUint(nil, r.Seq, 10))
	if r.Parent != 0 {
		put("parent", strconv.AppendUint(nil, r.Parent, 10))
	}
	if r.Time != 0 {
		put("time", strconv.AppendInt(nil, r.Time, 10))
	}
	if r.Kind != machine.Reserved {
		put("ref", n.appendRef(nil, r.Ref))
	}
	if r.Root != r.Ref {
		put("root", n.appendRef(nil, r.Root))
	}
	if r.Via != machine.ViaHost {
		put("via", []byte(r.Via.String()))
	}
	switch {
	case r.Kind == machine.Reserved:
		put("sort", appendName(nil, n.sorts, uint64(r.Event)))
	case r.Kind != machine.Dropped:
		put("event", m.appendEvent(nil, r.Event))
	}
	list := func(what string, fs []field, vs []uint64) {
		for i, v := range vs {
			name := what + "." + strconv.Itoa(i)
			value := strconv.AppendUint(nil, v, 10)
			if fs != nil {
				value = n.appendValue(nil, &fs[i], v)
				if fs[i].name != "" {
					name = what + "." + fs[i].name
				}
			}
			put(name, value)
		}
	}
	list("args", m.argFields(r), r.Args[:r.NArgs])
	if m != nil {
		put("from", m.appendState(nil, r.From))
	}
	if r.Row != machine.NoRowID {
		if row := m.row(r.Row); row != nil {
			put("row", []byte(row.quoted))
			if row.during != "" {
				put("during", []byte(row.duringQuoted))
			}
		} else {
			put("row", strconv.AppendUint(nil, uint64(r.Row), 10))
		}
	}
	list("views", m.viewFields(r), r.Views[:r.NViews])
	if r.Target != 0 {
		put("target", strconv.AppendUint(nil, uint64(r.Target), 10))
	}
	if m != nil {
		put("to", m.appendState(nil, r.To))
	}
	list("identity", m.identityFields(r), r.Identity[:r.NIdentity])
	if r.Call != machine.NoCall {
		put("call", appendName(nil, n.calls, uint64(r.Call)))
	}
	list("callargs", m.callFields(r), r.CallArgs[:r.NCall])
	if answers(r) {
		put("outcome", []byte(r.Result.Outcome.String()))
		put("accepted", strconv.AppendBool(nil, r.Result.Accepted))
		put("code", strconv.AppendInt(nil, int64(r.Result.Code), 10))
		put("last", strconv.AppendInt(nil, int64(r.Result.Last), 10))
		put("value", strconv.AppendUint(nil, r.Result.Value, 10))
	}
	if r.Refusal != machine.NotRefused {
		put("refusal", []byte(r.Refusal.String()))
	}
	if r.Reason != machine.NoReasonID {
		put("reason", appendName(nil, n.reasons, uint64(r.Reason)))
	}
	if blames(r) {
		put("by", n.appendRef(nil, r.By))
		put("by_event", n.machine(r.By.Machine).appendEvent(nil, r.ByEvent))
	}
	return out
}

// Text says in one line what a record reports: who took what, from where to
// where, by which row, and what came of it. Sequence and time are left out.
func (h *Header) Text(r *machine.Record) string {
	ms := h.Members(r)
	get := func(name string) string {
		for _, m := range ms {
			if m.Name == name {
				return m.Value
			}
		}
		return ""
	}
	all := func(what string) string {
		var parts []string
		for _, m := range ms {
			if name, ok := strings.CutPrefix(m.Name, what+"."); ok {
				if name[0] >= '0' && name[0] <= '9' {
					parts = append(parts, m.Value)
				} else {
					parts = append(parts, name+"="+m.Value)
				}
			}
		}
		return strings.Join(parts, ", ")
	}
	var b strings.Builder
	b.WriteString(r.Kind.String() + " ")
	if r.Kind == machine.Reserved {
		b.WriteString(get("sort") + " up to " + all("args"))
		return b.String()
	}
	b.WriteString(get("ref"))
	if r.Kind != machine.Dropped {
		b.WriteString(" " + get("event") + "(" + all("args") + ")")
	}
	from := get("from")
	if d := get("during"); d != "" {
		from += "▸" + d
	}
	if from != "" {
		b.WriteString(": " + from)
	}
	if r.To != r.From {
		b.WriteString(" → " + get("to"))
	}
	if r.Row != machine.NoRowID {
		b.WriteString(" [" + get("row"))
		if r.Target != 0 {
			b.WriteString(" target " + get("target"))
		}
		b.WriteString("]")
	}
	if r.Call != machine.NoCall {
		b.WriteString(" calls " + get("call") + "(" + all("callargs") + ")")
	}
	if answers(r) {
		b.WriteString(" answered " + get("outcome"))
		for _, name := range []string{"code", "last", "value"} {
			if v := get(name); v != "0" {
				b.WriteString(" " + name + "=" + v)
			}
		}
		if r.Result.Accepted {
			b.WriteString(" accepted")
		}
	}
	if r.Refusal != machine.NotRefused {
		b.WriteString(" " + get("refusal"))
		if by := get("by"); by != "" {
			b.WriteString(": " + by + " " + get("by_event"))
		}
	}
	if r.Reason != machine.NoReasonID {
		b.WriteString(": " + get("reason"))
	}
	if v := all("views"); v != "" {
		b.WriteString(" views " + v)
	}
	if id := all("identity"); id != "" {
		b.WriteString(" {" + id + "}")
	}
	switch r.Via {
	case machine.ViaQueue:
		b.WriteString(" queued by " + get("parent"))
	case machine.ViaJoint:
		b.WriteString(" along with " + get("parent"))
	}
	return b.String()
}

// Translator turns records of one set of rules into records of another that
// has the same names at other positions.
type Translator struct {
	from *names
	to   lineReader
	line []byte
}

// NewTranslator returns a Translator from the rules of one header to those of
// another, both made by [HeaderOf] or read from a log.
func NewTranslator(from, to *Header) *Translator {
	return &Translator{from: from.names, to: lineReader{names: to.names}}
}

// Translate turns the record of an entry. A name that the other rules do not
// have is a [*NameError]; whatever has another shape there is an error too.
// The entry then holds what could be turned.
func (t *Translator) Translate(e *Entry) error {
	// By name is how JSON has it.
	t.line = t.from.appendRecordLine(t.line[:0], e.World, &e.Record, "")
	place, site := e.Place, e.Site
	*e = Entry{}
	err := t.to.decode(e, t.line[:len(t.line)-1])
	e.Place, e.Site = place, site
	if f, ok := err.(*nameFault); ok {
		return &NameError{Place: place, World: e.World, Seq: e.Record.Seq, What: f.what, Name: f.name, Hint: f.hint}
	}
	return err
}
