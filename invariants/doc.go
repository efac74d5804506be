// Package invariants states what must hold in every world of a lane or of an
// orchestrator, each sentence with its source, a predicate, and the change of a
// rule that it notices. It checks worlds and steps ([Checker], [Check],
// [CheckStep]), or a log as it streams by ([Observer]).
//
// A predicate says what it needs. Over a real device, where the queues cannot
// be looked into, one that needs the device is unknown, which is neither a
// pass nor a finding, unless what the log tells of the device decides it.
package invariants
