package machine

import (
	"fmt"
	"sort"
)

// Unknown words a complaint about an unknown name, with the nearest known one
// if there is a near one, or else all of them.
func Unknown(what, name string, known []string) string {
	known = append([]string(nil), known...)
	sort.Strings(known)
	best, at := "", len(name)/2+1
	for _, k := range known {
		if d := editDistance(name, k); d < at {
			best, at = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("unknown %s %q: did you mean %q?", what, name, best)
	case len(known) == 0:
		return fmt.Sprintf("unknown %s %q: there are none", what, name)
	case len(known) > 24:
		return fmt.Sprintf("unknown %s %q", what, name)
	}
	return fmt.Sprintf("unknown %s %q: want one of %q", what, name, known)
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 1 << 20
	}
	var prev, cur, before [65]int
	for j := range len(b) {
		prev[j+1] = j + 1
	}
	for i := range len(a) {
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(b)]
}
