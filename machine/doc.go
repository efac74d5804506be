/*
Package machine runs explicit finite-state machines that are declared as data.
It knows no device and no lifecycle; it imports nothing of this module.

# The model

A [Definition] is a table. Each [Row] says what one event does in one state: a
guard chooses among rows, a row either refuses with a reason, or defers, or
moves the instance on. Guards, updates and arguments are short expressions over
the instance's facts, so one table is what runs, and also what is hashed,
printed, drawn, mutated and explored. A host with a small machine of its own may
use Go functions in rows; such a machine is opaque and cannot be exported.

A row may name a command: a call to the backend. Then the row has two steps.
The issue chooses the row and marks the instance in flight; the command is
carried out without any lock; the settle takes its answer and picks a target by
the answer's [Outcome]: ok, refused before the attempt, attempted and failed,
panicked, timed out. A row has a target for every outcome, or it does not
compile: "a failed enqueue may still be enqueued" is a row, not an if.

	state    event   guard           command        ok        refused   the rest
	idle     submit  !closed         Enqueue(id)    queued    idle      unknown
	idle     submit  else            –              refused: "closed"

While an instance is in flight, an event is taken if a row from "STATE▸ROW"
declares it. If not, its caller waits, bounded by its context, and then the
event is taken or refused in the state that the command has brought about. An
event fired through the context of a command of the same world is
[ErrReentrant] at once, since it would wait for itself.

A [World] is a set of instances that share one lock, one log and one hash. What
several instances must do together is one atomic step (With). What comes later
in the same host operation is queued as data (Emit), so a world can be cloned in
the middle of an operation. What a guard must know of other instances it reads
from a declared [View], which goes on record.

A refusal changes nothing and says everything: a [RefusalError] names machine,
instance, state, event, row, each guard that said no and what would be accepted.

# The levels

[Compile] checks definitions and makes [Rules]; a process may hold many. From
rules come three things to run:

  - [World], the pure level: Issue, Settle, Next and Drop are functions of the
    world and their arguments. It does no I/O and has no lock and no clock. For
    exploration, replay, simulation and tests.
  - [Driver], a world with a lock and a backend: Fire carries a whole host
    operation out. For hosts.
  - [Instance], one machine alone, the shortest way for a host with one machine.

Identities (epochs, generations, tokens) are compared and minted, never counted
with. [World.AppendCanonical] renames them and sorts the slots of each pool, so
that worlds which differ in names only are one world to an explorer.

# Around it

[LoadRules] reads definitions from JSON files. Package looplab runs a machine in
github.com/looplab/fsm and draws it; package naive is a second, slow reading of
the same definitions to check the engine against; package machinetest draws
definitions at random.
*/
package machine
