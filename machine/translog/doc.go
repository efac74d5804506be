// Package translog writes and reads transition logs: what a world did, record
// by record, so that it can be read, and replayed.
//
// One schema has two encodings. [Binary] is for recording: length-prefixed
// frames with a checksum each. [JSONLines] is for reading: a line of JSON for
// each entry, everything by name. [Convert] turns one into the other without
// loss. A log carries the names of its rules in its header, so that it can be
// printed without them.
//
// docs/log-format.md describes both encodings, and what of a log is safe when.
package translog
