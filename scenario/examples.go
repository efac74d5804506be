package scenario

import "embed"

// Examples are the scenarios of this project, testdata/*.txt: its documentation,
// and what holds its rules fast.
//
//go:embed testdata/*.txt
var Examples embed.FS
