package translog

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package, for errors.Is.
var (
	// ErrEmpty: there is nothing in the log, not even a header.
	ErrEmpty = errors.New("empty log")
	// ErrNotALog: what is read does not begin as a log does.
	ErrNotALog = errors.New("not a transition log")
	// ErrChecksum: an entry is not what was written. Wrapped in a [CorruptError].
	ErrChecksum = errors.New("checksum does not match")
	// ErrTooLong: an entry is longer than any that a writer makes.
	ErrTooLong = errors.New("entry too long")
	// ErrClosed: the writer is closed.
	ErrClosed = errors.New("log is closed")
)

// Place is a place in a log.
type Place struct {
	// Offset counts bytes from the start of the log to the start of the entry.
	Offset int64
	// Line counts from 1; it is 0 in a binary log.
	Line int
	// World and Seq are of the last record before the place; Seq is 0 before
	// the first.
	World int
	Seq   uint64
}

// String says the place in words.
func (p Place) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d, ", p.Line)
	}
	fmt.Fprintf(&b, "byte %d", p.Offset)
	if p.Seq > 0 {
		fmt.Fprintf(&b, ", after record %d of world %d", p.Seq, p.World)
	}
	return b.String()
}

// CorruptError says that an entry is not one: damaged, or not from a writer.
// Everything before it was read.
type CorruptError struct {
	Place Place
	Err   error
}

// Error says what is wrong and where.
func (e *CorruptError) Error() string { return fmt.Sprintf("corrupt log: %v: %v", e.Place, e.Err) }

// Unwrap returns what is wrong.
func (e *CorruptError) Unwrap() error { return e.Err }

// TornError says that the log ends in the middle of an entry, as it does when
// its writer was killed or the machine lost power. Everything before it was
// read and is whole.
type TornError struct {
	Place Place
	// Tail is how many bytes there are after the last whole entry.
	Tail int64
	// Zeros: the tail is nothing but zero bytes, room that a file system had
	// set aside.
	Zeros bool
}

// Error says where the log is torn.
func (e *TornError) Error() string {
	what := "an incomplete entry"
	if e.Zeros {
		what = "zeros"
	}
	return fmt.Sprintf("torn log: %v: ends in %d bytes of %s", e.Place, e.Tail, what)
}

// NameError says that a record of a JSON log names something that the log's
// header does not know. The entry has everything else.
type NameError struct {
	Place Place
	// World and Seq are the record's.
	World int
	Seq   uint64
	// What is the kind of thing named: event, state, row, …
	What, Name string
	// Hint says which name is meant, perhaps.
	Hint string
}

// Error says what is unknown and where.
func (e *NameError) Error() string {
	return fmt.Sprintf("%v: record %d of world %d: %s", e.Place, e.Seq, e.World, e.Hint)
}

// SchemaError says that the log is of a schema that this package does not read.
type SchemaError struct {
	Version uint64
}

// Error names both versions.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("log schema version %d: this program reads version %d", e.Version, Schema)
}
