package translog

import (
	"fmt"
	"strings"

	"github.com/runfence/runfence/machine"
)

// names is a [Header] made fast: by position for encoding, by name for
// decoding, with the JSON spelling of every name at hand.
type names struct {
	machines  []machineNames
	machineID map[string]machine.MachineID
	calls     []string // quoted
	callID    map[string]machine.CallID
	reasons   []string // quoted
	reasonID  map[string]uint16
	sorts     []string                   // quoted
	sortID    map[string]machine.EventID // as a Reserved record holds it
}

type machineNames struct {
	name     string
	pooled   bool
	states   []string // quoted
	stateID  map[string]machine.StateID
	events   []eventNames
	eventID  map[string]machine.EventID
	identity []field
	rows     []rowNames
	rowID    map[string][]machine.RowID
}

type eventNames struct {
	quoted string
	args   []field
}

type rowNames struct {
	quoted               string
	from                 machine.StateID
	during, duringQuoted string // empty if none
	views                []field
	call                 []field
}

// field is a [Field] made fast.
type field struct {
	name string
	key  string // `"name":`
	ty   machine.Type
	// states is set for a value that is a state of a machine.
	states *machineNames
}

// compile checks the header and makes its names.
func (h *Header) compile() error {
	n := &names{
		machineID: map[string]machine.MachineID{}, callID: map[string]machine.CallID{}, reasonID: map[string]uint16{},
		sortID:   map[string]machine.EventID{},
		machines: make([]machineNames, len(h.Machines)),
	}
	if len(h.Machines) == 0 || len(h.Machines) > maxMachines {
		return fmt.Errorf("%d machines: want 1 to %d", len(h.Machines), maxMachines)
	}
	if len(h.Calls) >= int(machine.NoCall) || len(h.Reasons) >= int(machine.NoReasonID) || len(h.Sorts) > 1<<16 {
		return fmt.Errorf("%d calls, %d reasons, %d sorts: too many", len(h.Calls), len(h.Reasons), len(h.Sorts))
	}
	for i, c := range h.Calls {
		q, err := unique(n.callID, "call", c, machine.CallID(i))
		if err != nil {
			return err
		}
		n.calls = append(n.calls, q)
	}
	for i, r := range h.Reasons {
		q, err := unique(n.reasonID, "reason", string(r), uint16(i))
		if err != nil {
			return err
		}
		n.reasons = append(n.reasons, q)
	}
	for i, x := range h.Sorts {
		q, err := unique(n.sortID, "sort", x, machine.EventID(i))
		if err != nil {
			return err
		}
		n.sorts = append(n.sorts, q)
	}
	for i := range h.Machines {
		// First all names of states, for types that are "state of".
		t, m := &h.Machines[i], &n.machines[i]
		if _, err := unique(n.machineID, "machine", t.Name, machine.MachineID(i)); err != nil {
			return err
		}
		if strings.ContainsAny(t.Name, "[~#") {
			return fmt.Errorf("machine %q: not a name", t.Name)
		}
		m.name, m.pooled = t.Name, t.Pool != ""
		if err := checkText(t.Pool); err != nil {
			return err
		}
		m.stateID = map[string]machine.StateID{}
		if len(t.States) == 0 || len(t.States) > 1<<16 {
			return fmt.Errorf("machine %s: %d states", t.Name, len(t.States))
		}
		for j, s := range t.States {
			q, err := unique(m.stateID, "state", s, machine.StateID(j))
			if err != nil {
				return fmt.Errorf("machine %s: %w", t.Name, err)
			}
			m.states = append(m.states, q)
		}
	}
	for i := range h.Machines {
		if err := n.link(&h.Machines[i], &n.machines[i]); err != nil {
			return fmt.Errorf("machine %s: %w", h.Machines[i].Name, err)
		}
	}
	h.names = n
	return nil
}

func (n *names) link(t *MachineTable, m *machineNames) error {
	var err error
	m.eventID, m.rowID = map[string]machine.EventID{}, map[string][]machine.RowID{}
	if len(t.Events) > 1<<16 || len(t.Rows) >= int(machine.NoRowID) {
		return fmt.Errorf("%d events and %d rows: too many", len(t.Events), len(t.Rows))
	}
	for i, e := range t.Events {
		var en eventNames
		if en.quoted, err = unique(m.eventID, "event", e.Name, machine.EventID(i)); err != nil {
			return err
		}
		if en.args, err = n.fields(e.Args, machine.MaxArgs); err != nil {
			return fmt.Errorf("event %s: %w", e.Name, err)
		}
		m.events = append(m.events, en)
	}
	if m.identity, err = n.fields(t.Identity, machine.MaxIdentity); err != nil {
		return err
	}
	for i, r := range t.Rows {
		rn := rowNames{quoted: quote(r.ID), from: r.From, during: r.During}
		if err := checkText(r.ID, r.During); err != nil {
			return err
		}
		if int(r.From) >= len(t.States) || int(r.Event) >= len(t.Events) {
			return fmt.Errorf("row %q: no state %d or no event %d", r.ID, r.From, r.Event)
		}
		if r.During != "" {
			rn.duringQuoted = quote(r.During)
		}
		if rn.views, err = n.fields(r.Views, machine.MaxViews); err != nil {
			return fmt.Errorf("row %q: %w", r.ID, err)
		}
		if len(r.Call) > machine.MaxArgs {
			return fmt.Errorf("row %q: %d arguments of a call", r.ID, len(r.Call))
		}
		for _, ty := range r.Call {
			f, err := n.field(Field{Type: ty})
			if err != nil {
				return fmt.Errorf("row %q: %w", r.ID, err)
			}
			rn.call = append(rn.call, f)
		}
		for _, same := range m.rowID[r.ID] {
			if o := &m.rows[same]; o.from == rn.from && o.during == rn.during {
				return fmt.Errorf("two rows %q of one state", r.ID)
			}
		}
		m.rowID[r.ID] = append(m.rowID[r.ID], machine.RowID(i))
		m.rows = append(m.rows, rn)
	}
	return nil
}

func (n *names) fields(fs []Field, most int) ([]field, error) {
	if len(fs) > most {
		return nil, fmt.Errorf("%d values: at most %d", len(fs), most)
	}
	var out []field
	for _, f := range fs {
		c, err := n.field(f)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (n *names) field(f Field) (field, error) {
	if err := checkText(f.Name); err != nil {
		return field{}, err
	}
	c := field{name: f.Name, key: quote(f.Name) + ":"}
	if of, ok := strings.CutPrefix(f.Type, "state of "); ok {
		id, known := n.machineID[of]
		if !known {
			return field{}, fmt.Errorf("%s: no machine %q", f.Name, of)
		}
		c.states = &n.machines[id]
		return c, nil
	}
	var err error
	c.ty, err = machine.ParseType(f.Type)
	return c, err
}

// unique enters a name and returns it quoted.
func unique[ID any](ids map[string]ID, what, name string, id ID) (string, error) {
	if err := checkText(name); err != nil {
		return "", err
	}
	if _, dup := ids[name]; dup || name == "" {
		return "", fmt.Errorf("%s %q: want a fresh name", what, name)
	}
	ids[name] = id
	return quote(name), nil
}

// quote spells a name as JSON.
func quote(s string) string {
	b, err := marshal(s)
	if err != nil {
		panic("translog: " + err.Error()) // a string always marshals
	}
	return string(b)
}

// machine returns the names of a machine, or nil.
func (n *names) machine(id machine.MachineID) *machineNames {
	if int(id) < len(n.machines) {
		return &n.machines[id]
	}
	return nil
}

// of returns the names of the machine that a record is of, or nil.
func (n *names) of(rec *machine.Record) *machineNames {
	if rec.Kind == machine.Reserved {
		return nil
	}
	return n.machine(rec.Ref.Machine)
}

// event returns the names of an event, or nil.
func (m *machineNames) event(e machine.EventID) *eventNames {
	if m != nil && int(e) < len(m.events) {
		return &m.events[e]
	}
	return nil
}

// row returns the names of a row, or nil.
func (m *machineNames) row(r machine.RowID) *rowNames {
	if m != nil && int(r) < len(m.rows) {
		return &m.rows[r]
	}
	return nil
}

// fieldsOf returns the fields of a list of values if they are as many as the
// list has, else nil: then they are written as bare numbers.
func fieldsOf(fs []field, n uint8) []field {
	if len(fs) != int(n) {
		return nil
	}
	return fs
}

func (m *machineNames) argFields(rec *machine.Record) []field {
	if e := m.event(rec.Event); e != nil {
		return fieldsOf(e.args, rec.NArgs)
	}
	return nil
}

func (m *machineNames) viewFields(rec *machine.Record) []field {
	if r := m.row(rec.Row); r != nil {
		return fieldsOf(r.views, rec.NViews)
	}
	return nil
}

func (m *machineNames) callFields(rec *machine.Record) []field {
	if r := m.row(rec.Row); r != nil {
		return fieldsOf(r.call, rec.NCall)
	}
	return nil
}

func (m *machineNames) identityFields(rec *machine.Record) []field {
	if m == nil {
		return nil
	}
	return fieldsOf(m.identity, rec.NIdentity)
}
