package explore

// Marker is a [State] that says which rows of the rules it takes, so that a
// search can list those that nothing ever took.
type Marker interface {
	State
	// MarkIn makes every later Take mark in rows what it takes. CopyFrom and
	// SetBinary leave that as it is.
	MarkIn(rows *Rows)
}

// RowNamer is a [System] whose states are Markers.
type RowNamer interface {
	System
	// RowNames names the rows that a state may take; a row's number is its place.
	// Those of one name are one row, to whoever reads what was never taken.
	RowNames() []string
}

// Rows is a set of rows of the rules, by number. Nil takes marks and forgets
// them. It is not safe for concurrent use: each worker of a search has its own.
type Rows struct{ words []uint64 }

// newRows returns an empty set of rows below n.
func newRows(n int) *Rows { return &Rows{make([]uint64, (n+63)/64)} }

// Mark puts a row into the set. A row that the System did not name panics.
func (r *Rows) Mark(row int) {
	if r != nil {
		r.words[row/64] |= 1 << (row % 64)
	}
}

// has reports whether a row is in the set.
func (r *Rows) has(row int) bool { return r.words[row/64]>>(row%64)&1 != 0 }

// take moves what is in o into r.
func (r *Rows) take(o *Rows) {
	for i, w := range o.words {
		r.words[i] |= w
		o.words[i] = 0
	}
}

// never returns the names of which no row is in the set, and how many names
// there are.
func (r *Rows) never(names []string) (never []string, n int) {
	taken := map[string]bool{}
	for i, name := range names {
		taken[name] = taken[name] || r.has(i)
	}
	for _, name := range names {
		if fired, ok := taken[name]; ok && !fired {
			never = append(never, name)
			delete(taken, name)
		}
	}
	return never, len(taken) + len(never)
}
