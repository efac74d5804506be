package states

import "strings"

// id makes a part of a row's id of a list of states.
func id(states string) string {
	return strings.NewReplacer("|", "-", " ", "-").Replace(states)
}

// sprintBoundary puts the boundary's fact into a guard's pattern.
func sprintBoundary(pattern, boundary string) string {
	return strings.ReplaceAll(pattern, "%s", boundary)
}

// id2 makes an event's name of a state.
func id2(state string) string { return strings.ReplaceAll(state, " ", "_") }
