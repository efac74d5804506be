// Package explore looks at what the rules can lead to: it visits every state
// within stated bounds, walks at random far beyond them, and breaks the rules
// one change at a time to see whether anybody notices.
package explore
