package explore

import (
	"math"
	"time"
)

// Options bound a search and say where it may leave things. The zero value
// visits everything, in memory.
type Options struct {
	// Workers is how many goroutines expand states; 0 is as many as GOMAXPROCS.
	// Results do not depend on it.
	Workers int
	// MaxStates stops the search soon after it has visited that many; 0 is no
	// bound.
	MaxStates uint64
	// MaxDepth is how many moves a path may have; 0 is no bound.
	MaxDepth int
	// Memory is how many bytes the table of visited states and the frontier may
	// take together; 0 is no bound. The frontier goes to disk past it; when the
	// table alone is larger, the search stops.
	Memory int64
	// Dir is the directory for what goes to disk; empty is that of the system.
	// Nothing is left in it.
	Dir string
	// Checkpoint is the file that a search which stops before its end is written
	// to, other than for a finding; empty is none. Unless Resume is set there must
	// be no such file yet.
	Checkpoint string
	// Every is after how much time the checkpoint is written while the search
	// goes on; 0 is never.
	Every time.Duration
	// Resume goes on with the search in the file Checkpoint.
	Resume bool
	// KeepGoing goes on behind findings. Otherwise the search stops at the end of
	// the first level that has one.
	KeepGoing bool
	// Progress, if not nil, is told how far the search is: at the end of each
	// level, and each Tick while it lasts. One call is made at a time.
	Progress func(Report)
	// Tick is how often Progress is called within a level; 0 is once a second.
	Tick time.Duration

	// batch, if not 0, is how many states a worker takes at a time, and batchDone
	// is called after each, for tests.
	batch     int
	batchDone func()
}

// Report says how far a search is.
type Report struct {
	// Depth is how many moves the states have that are being expanded.
	Depth int
	// States is how many were visited, Edges how many moves were taken.
	States, Edges uint64
	// Left is how many states of the current level are not expanded yet, Next
	// how many the next one has so far.
	Left, Next uint64
	// Findings is how many moves and states had something wrong.
	Findings uint64
	// TableBytes and FrontierBytes are what is in memory, DiskBytes what of the
	// frontier is on disk.
	TableBytes, FrontierBytes, DiskBytes int64
	// Elapsed is the time spent, that before a checkpoint included.
	Elapsed time.Duration
}

// Stop is why a search ended before it had seen everything.
type Stop string

// Why a search stops.
const (
	// NotStopped: there is nothing left to be seen.
	NotStopped Stop = ""
	// AtFinding: the level has a finding, and Options.KeepGoing is not set.
	AtFinding Stop = "finding"
	// AtDepth: what is left lies deeper than Options.MaxDepth.
	AtDepth Stop = "depth"
	// AtStates: Options.MaxStates have been visited.
	AtStates Stop = "states"
	// AtMemory: the table of visited states is larger than Options.Memory.
	AtMemory Stop = "memory"
	// AtTable: the table has no place for more states; that is at some four
	// billion.
	AtTable Stop = "table"
	// Interrupted: the context was cancelled.
	Interrupted Stop = "interrupted"
)

// Result is what a search saw. All of it but Elapsed and the measures of memory
// follows from the system and the bounds alone if the search ended with a
// level: it finished, or Stopped is AtFinding or AtDepth.
type Result struct {
	// Finished: every state that can be reached was visited.
	Finished bool
	// Stopped is why not.
	Stopped Stop
	// States is how many different states were visited, Edges how many moves were
	// taken, those that change nothing included.
	States, Edges uint64
	// Depth is how many levels were expanded: every path of so many moves was
	// looked at.
	Depth int
	// Deepest is how many moves the state that is farthest off has.
	Deepest int
	// Frontier is how many states were visited but not expanded.
	Frontier uint64
	// Findings are what is wrong, the shortest first: one of each kind, and how
	// often it was seen.
	Findings []Counterexample
	// Rows is how many rows the system names, NeverFired those of them that no
	// move took.
	Rows       int
	NeverFired []string
	// Elapsed is the time spent, that before a checkpoint included.
	Elapsed time.Duration
	// TableBytes is the most memory that the table of visited states took, while
	// it grew included.
	TableBytes int64
	// FrontierBytes is the most memory that the frontier took, DiskBytes how much
	// of it was written to disk.
	FrontierBytes, DiskBytes int64
}

// CollisionBound bounds the probability that two different states had one
// fingerprint, so that the search took them for one: states²/2¹²⁹.
func (r *Result) CollisionBound() float64 {
	return math.Ldexp(float64(r.States)*float64(r.States), -129)
}

// BytesPerState is the most memory that the table of visited states took, for
// each of them.
func (r *Result) BytesPerState() float64 { return float64(r.TableBytes) / float64(r.States) }
