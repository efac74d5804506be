package explore

import (
	"github.com/runfence/runfence/invariants/model"
	"github.com/runfence/runfence/machine"
)

// System is what is explored: a state that moves by choices, and nothing else.
// Its methods are safe for concurrent use.
type System interface {
	// New returns the state that everything begins with.
	New() State
	// Name says in a few words what the system is and how it is bounded.
	Name() string
	// Hash names the system: rules, bounds and all. A search that was stopped
	// goes on only with a system of the same hash.
	Hash() machine.Fingerprint
	// MoveText writes a move, as findings show it.
	MoveText(s State, m Move) string
}

// State is one state of a System. It is used by one goroutine at a time.
type State interface {
	// Moves appends what may happen next to dst, in an order that follows from
	// the state alone.
	Moves(dst []Move) []Move
	// Take lets a move happen. The move is one of those that Moves gave for
	// this state. It returns what the move broke, or nil; after that the state
	// is good for nothing but to be looked at.
	Take(m Move) *Finding
	// Final says what is wrong with the state if nothing can happen in it any
	// more: a deadlock, or an operation or run that is left unfinished.
	Final() *Finding
	// Fingerprint names the state up to symmetry.
	Fingerprint() machine.Fingerprint
	// AppendBinary appends the state, exactly, to dst; SetBinary reads back
	// what a state of the same system wrote.
	AppendBinary(dst []byte) []byte
	SetBinary(src []byte) error
	// CopyFrom makes the state a copy of another one of the same system, and
	// reuses the memory that it has.
	CopyFrom(o State)
}

// Move is one thing that may happen in a state. What it means is the System's
// affair; the same number may mean another thing in another state.
type Move = model.Move

// Finding is what is wrong with a state or with a step that led to it.
type Finding = model.Finding
