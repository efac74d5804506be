// Package scenario runs scripted runs: text files that are documentation, demo
// and test at once. A block of such a file is some command lines, a line of
// four dashes, and what the commands answered:
//
//	prepare a
//	launch a
//	wait a
//	----
//	prepare a: on slot 0
//	launch a: complete, both boundaries recorded
//	wait a: succeeded, now 50us
//
// The commands drive the lifecycles of package states on a device, the
// simulated one unless another is plugged in. docs/scenarios.md is the
// reference of the language. The format is that of cockroachdb/datadriven,
// whose runner reads these files too.
package scenario
