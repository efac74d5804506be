// Package invariants states what must hold in every world of a lane, each
// sentence with its source and a predicate, and checks it: on a world
// ([Check]), between two worlds ([Step]), or over a log as it streams by
// ([Observer]).
//
// A predicate says what it needs. Over a real device, where the queues cannot
// be looked into, one that needs the device is unknown, which is neither a
// pass nor a finding.
package invariants
