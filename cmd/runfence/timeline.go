package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/runfence/runfence/scenario"
)

// timeline draws what a script did: time, host, and a column for each stream,
// with kernels as spans.
type timeline struct {
	out   *output
	style style
	// host and stream are the widths of the columns.
	host, stream int
	whole        int // width of all
	columns      []*lifeline
	time         string // of the row printed last
}

// lifeline is the column of one stream.
type lifeline struct {
	stream string
	class  scenario.Column
	nth    int // of its class
	title  string
	busy   string // what is being executed, or empty
}

const (
	timeWidth     = 10
	least, most   = 18, 30 // of a stream's column
	leastHost     = 34
	gutter        = "  "
	spanBegins    = "┌ "
	spanGoes      = "│"
	spanEnds      = "└ "
	point         = "• "
	answerMark    = "= "
	violationMark = "! "
	callIndent    = "  "
)

func newTimeline(out *output, s style, columns int, events []scenario.Event) *timeline {
	t := &timeline{out: out, style: s, whole: columns}
	classes := map[scenario.Column]int{} // streams of each
	longest := least
	for _, e := range events {
		if e.Column == scenario.Host {
			continue
		}
		longest = max(longest, width(spanBegins+e.Text))
		if t.lifeline(e.Stream) == nil {
			t.columns = append(t.columns, &lifeline{stream: e.Stream, class: e.Column, nth: classes[e.Column]})
			classes[e.Column]++
		}
	}
	// Pairs stand together, AICore first, as the streams of a slot do.
	slices.SortFunc(t.columns, func(a, b *lifeline) int {
		return cmp.Or(cmp.Compare(a.nth, b.nth), cmp.Compare(a.class, b.class))
	})
	for _, c := range t.columns {
		c.title = map[scenario.Column]string{scenario.AICore: "AICore", scenario.AICPU: "AICPU"}[c.class]
		if classes[c.class] > 1 {
			c.title += " " + c.stream
		}
	}
	n := len(t.columns)
	t.stream = min(longest, most)
	for t.stream > least && columns-timeWidth-n*(t.stream+len(gutter)) < leastHost {
		t.stream--
	}
	t.host = max(leastHost, columns-timeWidth-n*(t.stream+len(gutter))-len(gutter))
	return t
}

func (t *timeline) lifeline(stream string) *lifeline {
	for _, c := range t.columns {
		if c.stream == stream {
			return c
		}
	}
	return nil
}

// heading prints the columns' titles.
func (t *timeline) heading() {
	line := pad("     time", timeWidth) + gutter + pad("host", t.host)
	for _, c := range t.columns {
		line += gutter + pad(c.title, t.stream)
	}
	t.out.println(t.style.bold(strings.TrimRight(line, " ")))
}

// row prints one moment: what the host does, and what the streams do.
func (t *timeline) row(time string, host []string, cells map[*lifeline][]string) {
	if time == t.time {
		time = ""
	} else {
		t.time = time
	}
	n := max(1, len(host))
	for _, c := range cells {
		n = max(n, len(c))
	}
	for i := range n {
		line := strings.Repeat(" ", timeWidth)
		if i == 0 {
			line = strings.Repeat(" ", max(0, timeWidth-width(time)-1)) + t.style.dim(time) + " "
		}
		text := ""
		if i < len(host) {
			text = host[i]
		}
		line += gutter + pad(text, t.host)
		for _, c := range t.columns {
			text := ""
			switch own := cells[c]; {
			case i < len(own) && own[i] != "":
				text = own[i]
			case c.busy != "":
				text = t.style.cyan(spanGoes)
			}
			line += gutter + pad(text, t.stream)
		}
		t.out.println(strings.TrimRight(line, " "))
	}
}

// room is how wide text of the host may be: while no stream is busy it may
// take their columns too.
func (t *timeline) room() int {
	if slices.ContainsFunc(t.columns, func(c *lifeline) bool { return c.busy != "" }) {
		return t.host
	}
	return t.whole - timeWidth - len(gutter)
}

// said is text of the host's, wrapped; later lines are below the first.
func said(w int, indent, text string, paint func(string) string) []string {
	lines := wrap(printable(text), w-width(indent))
	for i, l := range lines {
		in := indent
		if i > 0 {
			in = strings.Repeat(" ", width(indent))
		}
		lines[i] = in + paint(l)
	}
	return lines
}

func plain(s string) string { return s }

// events prints what happened while one command was carried out.
func (t *timeline) events(events []scenario.Event) {
	for i := 0; i < len(events); {
		e := events[i]
		switch {
		case e.Column != scenario.Host:
			i += t.device(events[i:])
		case e.Mark:
			i++ // the command itself, which stands there already
		case !isCall(e):
			t.row(virtual(e.Time), said(t.room(), callIndent, e.Text, t.style.red), nil)
			i++ // a misuse, or the notice of an exception
		default:
			i += t.calls(events[i:])
		}
	}
}

// calls prints calls of the host: one, or several in a row that have nothing
// to tell, with what they had streams begin. It returns how many events that were.
func (t *timeline) calls(events []scenario.Event) int {
	e := events[0]
	switch returns(events) {
	case 0:
	case 1:
		return 1 // at once: its return tells all
	default:
		t.row(virtual(e.Time), said(t.room(), callIndent, e.Text+" …", plain), nil)
		return 1
	}
	n, texts, paint := 1, []string{e.Text}, plain
	if out := outcomeOf(e); out == "" {
		for n < len(events) && events[n].Time == e.Time && isCall(events[n]) && outcomeOf(events[n]) == "" && returns(events[n:]) == 0 {
			texts = append(texts, events[n].Text)
			n++
		}
	} else if bad.MatchString(out) {
		paint = t.style.yellow
	}
	// What streams begin on account of the call stands beside it.
	begun := events[n:n]
	taken := map[string]bool{}
	for m := n; m < len(events) && events[m].Column != scenario.Host && events[m].Time == e.Time; m++ {
		c := t.lifeline(events[m].Stream)
		if begins(events[m].Text) == "" || c.busy != "" || taken[c.stream] {
			break
		}
		taken[c.stream] = true
		begun = events[n : m+1]
	}
	w := t.room()
	if len(begun) > 0 {
		w = t.host
	}
	host := said(w, callIndent, strings.Join(texts, "; "), paint)
	cells := map[*lifeline][]string{}
	for _, e := range begun {
		c := t.lifeline(e.Stream)
		cells[c] = append(make([]string, len(host)-1), t.happening(c, e.Text)...)
	}
	t.row(virtual(e.Time), host, cells)
	for _, e := range begun {
		t.lifeline(e.Stream).busy = begins(e.Text)
	}
	return n + len(begun)
}

// isCall reports that an event is a call of the host, or its return.
func isCall(e scenario.Event) bool {
	return e.Column == scenario.Host && !e.Mark && !strings.HasPrefix(e.Text, violationMark) && !strings.HasPrefix(e.Text, "notice of ")
}

// outcomeOf returns how a call ended, with the colon before it.
func outcomeOf(e scenario.Event) string {
	if i := strings.Index(e.Text, ": "); i >= 0 && isCall(e) {
		return e.Text[i:]
	}
	return ""
}

// bad matches the outcome of a call that did not go well.
var bad = regexp.MustCompile(`^: (refused|failed|panicked|timedout)`)

// returns reports how many events after a call its return is told, if that is
// told apart; else 0.
func returns(events []scenario.Event) int {
	for i, e := range events[1:] {
		if isCall(e) && strings.HasPrefix(e.Text, events[0].Text+": ") {
			return i + 1
		}
	}
	return 0
}

// device prints what streams do in the same instant as one row. It returns how
// many events that were.
func (t *timeline) device(events []scenario.Event) int {
	n, now := 0, events[0].Time
	cells := map[*lifeline][]string{}
	var ended []*lifeline
	begun := map[*lifeline]string{}
	for n < len(events) && events[n].Column != scenario.Host && events[n].Time == now {
		e := events[n]
		c := t.lifeline(e.Stream)
		if cells[c] != nil {
			break
		}
		n++
		cells[c] = t.happening(c, e.Text)
		if what := begins(e.Text); what != "" {
			begun[c] = what
		} else if c.ends(e.Text) {
			ended = append(ended, c)
		}
	}
	for _, c := range ended {
		c.busy = ""
	}
	t.row(virtual(now), nil, cells)
	for c, what := range begun {
		c.busy = what
	}
	return n
}

// happening draws what a stream does.
func (t *timeline) happening(c *lifeline, text string) []string {
	mark, what := point, text
	switch {
	case begins(text) != "":
		mark, what = spanBegins, begins(text)
	case c.ends(text):
		mark = spanEnds
	case c.busy != "":
		mark = spanGoes + " "
	}
	paint := plain
	if strings.Contains(what, ", ") { // a code
		paint = t.style.red
	}
	lines := wrap(printable(what), t.stream-width(mark))
	for i, l := range lines {
		lines[i] = t.style.cyan(mark) + paint(l)
		if mark != spanGoes+" " {
			mark = "  "
		}
	}
	return lines
}

// begins returns what begins, if an event says that something does.
func begins(text string) string {
	what, ok := strings.CutSuffix(text, " starts")
	if !ok {
		return ""
	}
	return what
}

// ends reports whether an event ends what the stream is at.
func (c *lifeline) ends(text string) bool {
	return c.busy != "" && strings.HasPrefix(text, c.busy) && begins(text) == "" && !strings.HasSuffix(text, " sets its flag")
}

// failure matches an answer that tells of one.
var failure = regexp.MustCompile(`^(!|failed|timedout|panicked)`)

// answer prints a line of what a command answered.
func (t *timeline) answer(l string) {
	l = printable(l)
	paint := t.style.green
	switch {
	case failure.MatchString(l):
		paint = t.style.red
	case strings.HasPrefix(l, "refused"):
		paint = t.style.yellow
	}
	words := strings.TrimLeft(l, " ")
	switch {
	case width(answerMark+l) <= t.room():
		t.row(t.time, []string{answerMark + paint(l)}, nil)
	case strings.Contains(words, "  "):
		// A line of a table is not broken, whatever it covers.
		t.out.println(strings.Repeat(" ", timeWidth) + gutter + answerMark + paint(l))
	default:
		t.row(t.time, said(t.room(), answerMark+l[:len(l)-len(words)], words, paint), nil)
	}
}

// draw prints the timeline of a script that was run, with its comments where
// they stand.
func (t *timeline) draw(src []byte, r *scenario.Result) {
	lines := strings.Split(string(src), "\n")
	t.heading()
	at, events := 0, r.Timeline
	for _, b := range r.Blocks {
		if !b.Ran {
			break
		}
		answers := allot(b)
		for i, c := range b.Commands {
			if c.Line > at {
				t.comment(lines[at : c.Line-1])
				at = c.Line
			}
			n := slices.IndexFunc(events, func(e scenario.Event) bool { return e.Line > c.Line })
			if n < 0 {
				n = len(events)
			}
			now := t.time
			if n > 0 && events[0].Mark {
				now = virtual(events[0].Time)
			}
			t.row(now, said(t.room(), "", c.Text, t.style.bold), nil)
			t.events(events[:n])
			events = events[n:]
			for _, l := range answers[i] {
				t.answer(l)
			}
		}
	}
}

// allot shares the lines that a block answered among its commands if each
// answered one, which begins as the command does; else all come after the last.
// What the device was misused in belongs to the answer after which it stands.
func allot(b *scenario.Block) [][]string {
	out := make([][]string, len(b.Commands))
	if b.Actual == "" {
		return out
	}
	at := -1
	all := strings.Split(strings.TrimSuffix(b.Actual, "\n"), "\n")
	for _, l := range all {
		if at >= 0 && strings.HasPrefix(l, violationMark) {
			out[at] = append(out[at], l)
			continue
		}
		if at++; at == len(out) {
			break
		}
		rest, ok := unprefixed(l, b.Commands[at].Text)
		if !ok {
			at = len(out)
			break
		}
		out[at] = append(out[at], rest)
	}
	if at != len(out)-1 {
		clear(out)
		out[len(out)-1] = all
	}
	return out
}

// unprefixed leaves out what an answer repeats of its command: one to three
// words, and a colon. It reports whether the answer begins as the command does.
func unprefixed(l, command string) (rest string, ok bool) {
	words := strings.Fields(command)
	for n := min(3, len(words)); n > 0; n-- {
		if rest, ok := strings.CutPrefix(l, strings.Join(words[:n], " ")+": "); ok {
			return rest, true
		}
	}
	return l, strings.HasPrefix(l, words[0]+" ")
}

// comment prints the comments among some lines, as paragraphs.
func (t *timeline) comment(lines []string) {
	var text []string
	flush := func() {
		if len(text) > 0 {
			t.out.println("")
			for _, l := range wrap(printable(strings.Join(text, " ")), t.whole) {
				t.out.println(l)
			}
			text = nil
		}
	}
	for _, l := range lines {
		rest, ok := strings.CutPrefix(strings.TrimSpace(l), "#")
		if rest = strings.TrimSpace(rest); !ok || rest == "" {
			flush()
			continue
		}
		text = append(text, rest)
	}
	flush()
}
