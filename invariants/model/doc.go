// Package model is a host, its lane and a simulated device as one value that
// moves by choices: what the host starts, what the device does next, how a call
// ends, which fault strikes. Nothing in it waits, and nothing happens but what
// is chosen, so a state can be copied, named and gone back to.
//
// A [System] says how much of a host there is and what may go wrong. A [State]
// lists its moves and takes one of them, and looks at every step whether an
// invariant is broken. Explorers visit all states, walks some of them, and a
// scenario takes the moves that a file lists.
//
// The rules are those of package states, stepped as a [states.Lane] steps them:
// an operation runs on until a call of the device is due. Between a call's
// beginning, its effect and its return everything else may happen.
package model
