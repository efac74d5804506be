package translog

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/runfence/runfence/machine"
)

// Schema is the version of the log schema that this package writes and reads.
const Schema = 1

// Header is what a log says about the rules that made it: enough to print its
// records, and to tell whether other rules are the same.
type Header struct {
	// Schema is the version of the schema the log was written in.
	Schema int `json:"schema"`
	// Rules is the hash of all rules, in hexadecimal; see [machine.Rules.Hash].
	Rules string `json:"rules"`
	// Calls and Reasons name the commands and the reasons of the rules.
	Calls   []string         `json:"calls,omitempty"`
	Reasons []machine.Reason `json:"reasons,omitempty"`
	// Sorts names the sorts of identities.
	Sorts []string `json:"sorts,omitempty"`
	// Machines has the names of each machine.
	Machines []MachineTable `json:"-"`

	names *names
}

// MachineTable has the names of one machine. Positions in its lists are the
// numbers that records hold.
type MachineTable struct {
	Name string `json:"machine"`
	// Hash identifies the machine's rules, in hexadecimal.
	Hash string `json:"hash"`
	// Pool is empty for a machine of one instance.
	Pool     string       `json:"pool,omitempty"`
	States   []string     `json:"states"`
	Events   []EventTable `json:"events"`
	Identity []Field      `json:"identity,omitempty"`
	Rows     []RowTable   `json:"rows"`
}

// EventTable names an event and its arguments.
type EventTable struct {
	Name string  `json:"event"`
	Args []Field `json:"args,omitempty"`
}

// Field is a named value of a record. Type is as in [machine.Fact], or
// "state of MACHINE".
type Field struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// RowTable names a row of one state: a row declared for three states is three.
type RowTable struct {
	ID    string          `json:"row"`
	From  machine.StateID `json:"from"`
	Event machine.EventID `json:"event"`
	// During is the id of the row in flight that the row is taken during, if any.
	During string `json:"during,omitempty"`
	// Views are what a record of the row carries; Call has the types of the
	// arguments of its command.
	Views []Field  `json:"views,omitempty"`
	Call  []string `json:"call,omitempty"`
}

// HeaderOf returns the header of logs made by these rules. The error is for
// names that are not valid UTF-8, which a log cannot carry exactly.
func HeaderOf(rules *machine.Rules) (*Header, error) {
	h := &Header{
		Schema: Schema, Rules: rules.Hash().String(),
		Calls: rules.Calls(), Reasons: rules.Reasons(), Sorts: rules.Sorts(),
	}
	for i := range rules.NumMachines() {
		h.Machines = append(h.Machines, tableOf(rules.At(machine.MachineID(i))))
	}
	if err := h.compile(); err != nil {
		return nil, fmt.Errorf("translog: %w", err)
	}
	return h, nil
}

func tableOf(m *machine.Machine) MachineTable {
	d := m.Definition()
	t := MachineTable{Name: d.Name, Hash: m.Hash().String(), Pool: d.Pool}
	for _, s := range d.States {
		t.States = append(t.States, s.Name)
	}
	for i, e := range d.Events {
		et := EventTable{Name: e.Name}
		for j, ty := range m.EventArgs(machine.EventID(i)) {
			et.Args = append(et.Args, Field{Name: e.Args[j].Name, Type: ty.String()})
		}
		t.Events = append(t.Events, et)
	}
	for _, f := range m.IdentityFacts() {
		t.Identity = append(t.Identity, Field{Name: d.Facts[f].Name, Type: m.FactType(f).String()})
	}
	for i := range m.NumRows() {
		r := machine.RowID(i)
		from, during := m.RowFrom(r)
		rt := RowTable{ID: m.RowID(r), From: from, Event: m.RowEvent(r), During: m.RowID(during)}
		tys := m.RowViewTypes(r)
		for j, v := range m.RowViews(r) {
			rt.Views = append(rt.Views, Field{Name: v, Type: tys[j].String()})
		}
		for _, ty := range m.RowCallTypes(r) {
			rt.Call = append(rt.Call, ty.String())
		}
		t.Rows = append(t.Rows, rt)
	}
	return t
}

// headLine is the first entry of a log.
type headLine struct {
	Magic    string `json:"runfence"`
	Machines int    `json:"machines"`
	*Header
}

// machineLine is the entry of one machine.
type machineLine struct {
	Kind string `json:"kind"`
	MachineTable
}

const (
	jsonMagic   = "transition log"
	jsonPrefix  = `{"runfence":"` + jsonMagic + `",`
	kindMachine = "machine"
	// maxMachines is how many machines a [machine.MachineID] can count.
	maxMachines = 200
)

// lines returns the header's entries as lines of JSON without checksums.
func (h *Header) lines() ([][]byte, error) {
	head, err := marshal(headLine{Magic: jsonMagic, Machines: len(h.Machines), Header: h})
	if err != nil {
		return nil, err
	}
	out := [][]byte{head}
	total := len(head)
	for i := range h.Machines {
		b, err := marshal(machineLine{Kind: kindMachine, MachineTable: h.Machines[i]})
		if err != nil {
			return nil, err
		}
		out = append(out, b)
		total += len(b)
	}
	for i, b := range out {
		if len(b) > maxHeaderLine-trailerSize {
			what := "the names of all calls and reasons"
			if i > 0 {
				what = "the names of machine " + h.Machines[i-1].Name
			}
			return nil, fmt.Errorf("%s take %d bytes: at most %d: %w", what, len(b), maxHeaderLine-trailerSize, ErrTooLong)
		}
	}
	if total > maxHeader {
		return nil, fmt.Errorf("the names of the rules take %d bytes: at most %d: %w", total, maxHeader, ErrTooLong)
	}
	return out, nil
}

// checkText refuses names that JSON cannot carry exactly.
func checkText(texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return fmt.Errorf("name %q is not valid UTF-8", s)
		}
	}
	return nil
}

// marshal is json.Marshal without the escapes that HTML would need.
func marshal(v any) ([]byte, error) {
	var b lineBuffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b[:len(b)-1], nil // Encode ends the line
}

type lineBuffer []byte

func (b *lineBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
