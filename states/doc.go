// Package states is the lifecycles of accelerator runs: each a Definition, which
// is data, and the types that hosts call.
//
// A [Lane] is the runs of one device context on any [backend.Backend]. A host
// prepares a [Run], launches it, polls or waits, and finalizes it; [Lane.Submit]
// does the first two in one, in order with a caller's stream. A [ChipWorker] is
// a lane with an execution mode and a registry of callables. A [WaitRef] is one
// counted wait on a run's boundary. [Environment] and [ModeLatch] also stand
// alone, for hosts without a lane.
//
// Every error carries a [machine.Reason], such as [ErrUnproven], that errors.Is
// matches; docs/embedding.md says what to do about each. The pages in docs/rules
// are written from [Definitions]. F and a number, as in "F96", is a clause of
// the source, listed in docs/coverage.md.
//
// Types decide nothing: each operation fires an event, and the rows say the
// rest. [Config].Rules takes other rows.
package states
