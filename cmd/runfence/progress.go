package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"github.com/runfence/runfence/invariants/explore"
)

// progress shows on the error output how far a command is: as a bar that stays
// in its line on a terminal, else as a line now and then.
type progress struct {
	w   io.Writer
	bar *progressbar.ProgressBar // nil if w is no terminal
	// last is what was shown last.
	last explore.Report
}

// The time from one line to the next, and from one look of the bar to the next.
const (
	lineEvery = 10 * time.Second
	barEvery  = 200 * time.Millisecond
)

// newProgress makes one for at most so many states, walks or mutants; 0 is any number.
func (a *app) newProgress(most uint64) *progress {
	p := &progress{w: a.stderr}
	if !a.console {
		return p
	}
	total := int64(-1)
	if most > 0 {
		total = int64(min(most, 1<<62))
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetWidth(12),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetSpinnerChangeInterval(0), // each look is the next one
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
	)
	return p
}

// tell is what a search reports to.
func (p *progress) tell(r explore.Report) {
	d := r.Elapsed - p.last.Elapsed
	if !p.due(r.Elapsed) {
		return
	}
	p.show("explore", reportText(&r, perSecond(r.States-p.last.States, d)), r.States)
	p.last = r
}

// tellWalks is what walks report to, each time that a bar is due.
func (p *progress) tellWalks(r explore.WalkReport) {
	if p.bar == nil && !p.due(r.Elapsed) {
		return
	}
	text := fmt.Sprintf("%s: %s walks, %s moves, %s/s", r.Elapsed.Round(time.Second), short(float64(r.Walks)), short(float64(r.Moves)), short(perSecond(r.Moves, r.Elapsed)))
	if r.Findings > 0 {
		text += "; findings " + short(float64(r.Findings))
	}
	p.show("fuzz", text, r.Walks)
	p.last.Elapsed = r.Elapsed
}

// tellMutants tells how many rules were broken so far, and how often nobody
// noticed.
func (p *progress) tellMutants(elapsed time.Duration, done, total, holes int) {
	if !p.due(elapsed) {
		return
	}
	p.show("mutate", fmt.Sprintf("%d of %d, %s", done, total, plural(holes, "hole")), uint64(done))
	p.last.Elapsed = elapsed
}

// due reports whether it is time to show something again.
func (p *progress) due(elapsed time.Duration) bool {
	every := lineEvery
	if p.bar != nil {
		every = barEvery
	}
	return elapsed-p.last.Elapsed >= every
}

// show shows what a command has done by now.
func (p *progress) show(command, text string, done uint64) {
	if p.bar == nil {
		fmt.Fprintln(p.w, command+": "+text)
		return
	}
	p.bar.Describe(text)
	_ = p.bar.Set64(int64(done))
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// reportText says in a line how far a search is, at that many states a second.
func reportText(r *explore.Report, rate float64) string {
	text := fmt.Sprintf("%s, depth %d: %s states, %s/s; frontier %s, then %s; memory %s",
		r.Elapsed.Round(time.Second), r.Depth, short(float64(r.States)), short(rate), short(float64(r.Left)), short(float64(r.Next)), size(r.TableBytes+r.FrontierBytes))
	if r.DiskBytes > 0 {
		text += ", disk " + size(r.DiskBytes)
	}
	if r.Findings > 0 {
		text += "; findings " + short(float64(r.Findings))
	}
	return text
}

// short writes a number in few characters: 950, 12.3k, 4.5M.
func short(n float64) string {
	if n < 1000 {
		return fmt.Sprintf("%.0f", n)
	}
	return strings.Replace(humanize.SIWithDigits(n, 1, ""), " ", "", 1)
}
