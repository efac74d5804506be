package machine

// NumMachines returns how many machines the rules have.
func (r *Rules) NumMachines() int { return len(r.machines) }

// At returns the machine at a position. It panics if there is none.
func (r *Rules) At(id MachineID) *Machine { return r.machines[id] }

// Machine returns the machine of that name, or nil.
func (r *Rules) Machine(name string) *Machine { return r.byName[name] }

// Machines returns the machines' names in order.
func (r *Rules) Machines() []string {
	out := make([]string, len(r.machines))
	for i, m := range r.machines {
		out[i] = m.def.Name
	}
	return out
}

// Pools returns the pools' names, each once, in order of first use.
func (r *Rules) Pools() []string { return append([]string(nil), r.pools...) }

// Sorts returns the sorts of identities, in order of first use.
func (r *Rules) Sorts() []string { return append([]string(nil), r.sorts...) }

// Sort returns the position of a sort of identities.
func (r *Rules) Sort(name string) (int, bool) {
	i, ok := r.sortID[name]
	return i, ok
}

// Calls returns the names of all commands; a [CallID] is a position in it.
func (r *Rules) Calls() []string { return append([]string(nil), r.calls...) }

// Call returns the position of a command's name.
func (r *Rules) Call(name string) (CallID, bool) {
	id, ok := r.callID[name]
	return id, ok
}

// CallName returns the name of a command, or "" for [NoCall].
func (r *Rules) CallName(id CallID) string {
	if int(id) < len(r.calls) {
		return r.calls[id]
	}
	return ""
}

// Reasons returns the reasons that rows name; a Record holds a position in it.
func (r *Rules) Reasons() []Reason { return append([]Reason(nil), r.reasons...) }

func (r *Rules) reason(x Reason) uint16 {
	if x == "" {
		return NoReasonID
	}
	return r.reasonID[x]
}

// ReasonAt returns the reason at a position, or "" for [NoReasonID].
func (r *Rules) ReasonAt(i uint16) Reason {
	if int(i) < len(r.reasons) {
		return r.reasons[i]
	}
	return ""
}

// Hash identifies the rules: equal hashes mean equal behaviour, except for
// opaque functions. See [Hash].
func (r *Rules) Hash() Hash { return r.hash }

// Definition returns what the machine was compiled from. It must not be changed.
func (m *Machine) Definition() *Definition { return m.def }

// Name returns the machine's name.
func (m *Machine) Name() string { return m.def.Name }

// ID returns the machine's position among its rules.
func (m *Machine) ID() MachineID { return m.id }

// NumStates returns how many states there are.
func (m *Machine) NumStates() int { return len(m.def.States) }

// NumEvents returns how many events there are.
func (m *Machine) NumEvents() int { return len(m.def.Events) }

// State returns the position of a state's name.
func (m *Machine) State(name string) (StateID, bool) {
	id, ok := m.states[name]
	return id, ok
}

// StateName returns the name of a state.
func (m *Machine) StateName(s StateID) string {
	if int(s) < len(m.def.States) {
		return m.def.States[s].Name
	}
	return "(no state)"
}

// InFlightName returns "STATE▸ROW", the name of being in flight on a row.
func (m *Machine) InFlightName(r RowID) string {
	x := &m.rows[r]
	return m.def.States[x.from].Name + inFlightMark + x.id
}

// Event returns the position of an event's name.
func (m *Machine) Event(name string) (EventID, bool) {
	id, ok := m.events[name]
	return id, ok
}

// MustEvent is Event for names that are part of a program: it panics on a
// name that is unknown.
func (m *Machine) MustEvent(name string) EventID {
	id, ok := m.events[name]
	if !ok {
		panic("machine: " + m.def.Name + ": " + unknown("event", name, m.events))
	}
	return id
}

// EventName returns the name of an event.
func (m *Machine) EventName(e EventID) string {
	if int(e) < len(m.def.Events) {
		return m.def.Events[e].Name
	}
	return "(no event)"
}

// EventArgs returns the types of an event's arguments. It must not be changed.
func (m *Machine) EventArgs(e EventID) []Type { return m.argTy[e] }

// Fact returns the position of a fact's name.
func (m *Machine) Fact(name string) (FactID, bool) {
	id, ok := m.facts[name]
	return id, ok
}

// MustFact is Fact for names that are part of a program: it panics on a name
// that is unknown.
func (m *Machine) MustFact(name string) FactID {
	id, ok := m.facts[name]
	if !ok {
		panic("machine: " + m.def.Name + ": " + unknown("fact", name, m.facts))
	}
	return id
}

// FactType returns the type of a fact.
func (m *Machine) FactType(f FactID) Type { return m.factTy[f] }

// IdentityFacts returns the facts of the identity. It must not be changed.
func (m *Machine) IdentityFacts() []FactID { return m.ident }

// NumRows returns how many rows there are, a row of several states counting
// once for each.
func (m *Machine) NumRows() int { return len(m.rows) }

// Row returns the row's declaration.
func (m *Machine) Row(r RowID) *Row { return &m.def.Rows[m.rows[r].def] }

// RowID returns the row's id, or "" for [NoRowID].
func (m *Machine) RowID(r RowID) string {
	if int(r) < len(m.rows) {
		return m.rows[r].id
	}
	return ""
}

// RowFrom returns the state the row starts from, and the row in flight during
// which it is accepted, or [NoRowID].
func (m *Machine) RowFrom(r RowID) (StateID, RowID) {
	x := &m.rows[r]
	if x.during != nil {
		return x.from, x.during.idx
	}
	return x.from, NoRowID
}

// RowEvent returns the event of the row.
func (m *Machine) RowEvent(r RowID) EventID { return m.rows[r].ev }

// RowViews returns the names of the views that a record of the row carries, in order.
func (m *Machine) RowViews(r RowID) []string {
	var out []string
	for _, v := range m.rows[r].cell.views {
		out = append(out, v.name)
	}
	return out
}

// RowViewTypes returns the types of [Machine.RowViews].
func (m *Machine) RowViewTypes(r RowID) []Type {
	var out []Type
	for _, v := range m.rows[r].cell.views {
		out = append(out, v.ty)
	}
	return out
}

// RowCallTypes returns the types of the arguments of the row's command.
func (m *Machine) RowCallTypes(r RowID) []Type { return m.rows[r].callTy }

// RowsOf returns the rows of a state and event, in the order they are tried.
// For an instance in flight, during is the row it is in flight on; else NoRowID.
func (m *Machine) RowsOf(s StateID, during RowID, e EventID) []RowID {
	var out []RowID
	c := &m.cells[int(s)*len(m.argTy)+int(e)]
	if during != NoRowID {
		in := m.rows[during].inFlight
		if in == nil {
			return nil
		}
		c = &in[e]
	}
	for _, r := range c.rows {
		out = append(out, r.idx)
	}
	return out
}

// Accepts lists the events that the state takes by some row that is not a
// refusal, in order of declaration.
func (m *Machine) Accepts(s StateID, during RowID) []EventID {
	var out []EventID
	for e := range m.argTy {
		for _, r := range m.RowsOf(s, during, EventID(e)) {
			if m.rows[r].kind == transition {
				out = append(out, EventID(e))
				break
			}
		}
	}
	return out
}

// Opaque reports whether a row uses a Go function.
func (m *Machine) Opaque() bool {
	for i := range m.def.Rows {
		if m.def.Rows[i].GuardFunc != nil || m.def.Rows[i].DoFunc != nil {
			return true
		}
	}
	return false
}

// badArgument returns the position of the first argument that is not of its
// type, the number expected if there are too few or many, or -1.
func (m *Machine) badArgument(ev EventID, args []uint64) int {
	if int(ev) >= len(m.argTy) {
		return 0
	}
	want := m.argBounds[ev]
	if len(args) != len(want) {
		return len(want)
	}
	for i := range want {
		if !want[i].hold(args[i]) {
			return i
		}
	}
	return -1
}
