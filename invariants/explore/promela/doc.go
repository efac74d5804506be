// Package promela is a second opinion on the rules: it writes lifecycles as a
// Promela model, made from the same rows that hosts run, for the model checker
// SPIN to search.
//
// The rules are exported: [New] walks the Definitions, and each row that may
// be taken becomes one d_step. What is around the rules is not: run.pml.tmpl
// says by hand, from the facts known of the device, what its streams and events
// do and what a host may ask for, and [RunModel] says the same in Go, so
// that SPIN and this repository can be held against each other: the same number
// of states, the same number of transitions, and the same verdict on rules that
// were broken on purpose. See docs/promela.md.
package promela
