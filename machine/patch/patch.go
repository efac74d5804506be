// Package patch names single changes of rules: one row broken in one place, as
// a line of text and as data. Mutation testing applies every one of them, seeded
// faults are a few that history made, and a scenario may begin with some, so
// that what broken rules do is a file like any other.
package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runfence/runfence/machine"
)

// Patch is one change of one row. Its text is
//
//	MACHINE/ROW: FIELD VERB "PART" …
//
// with these fields and verbs:
//
//	row drop                       the row is not there
//	from drop "a"                  … not in this state
//	from set "a|b"
//	guard drop                     it always holds
//	guard drop "x"                 without this operand of a && or ||
//	guard negate, guard negate "x"
//	guard set "x"
//	before drop "x++"              likewise do
//	before set "x = a" "x = b"
//	before add "x++"
//	with drop "peer.event()"       likewise then.with and emit
//	with set "a.b()" "a.c()"
//	with add "a.b()"
//	command drop                   as if it had answered ok, at once
//	command set "Name()"
//	refuse drop, defer drop        the event is taken, and does nothing
//	outcome failed as ok           what one outcome brings, another does
//	then[1] drop                   the row's second target is not there
//	then[1].to "a state"
//	then[1].when drop              likewise the rest of a guard's changes
//	then[1].do drop "x++"
//	then[1].with drop "a.b()"
//	then[1].emit drop "a.b()"
//	then[1].code drop, then[1].code set "x"
//	then[1].return drop, then[1].return set "x"
//	then[1].error drop, then[1].error set "reason"
//
// The fields of a row's only target are written without then[0], but for
// then.with, since a row has a with of its own. "nth 2" at the end means the
// second part of that text.
type Patch struct {
	Machine, Row string
	Field        Field
	// Target is the position of the target in the row, or [Only].
	Target int
	Verb   Verb
	// Part is what is changed, if not all of the field; New is what it becomes.
	// For the field outcome they are the two outcomes.
	Part, New string
	// Nth counts the parts of that text, from 0.
	Nth int
}

// Only is the target of a row that has one.
const Only = -1

// Field is what of a row, or of a target, is changed.
type Field string

// The fields.
const (
	Row     Field = "row"
	From    Field = "from"
	Guard   Field = "guard"
	Refuse  Field = "refuse"
	Defer   Field = "defer"
	Before  Field = "before"
	With    Field = "with"
	Command Field = "command"
	Outcome Field = "outcome"

	Then     Field = "then"
	To       Field = "to"
	When     Field = "when"
	Do       Field = "do"
	ThenWith Field = "then.with"
	Emit     Field = "emit"
	Code     Field = "code"
	Return   Field = "return"
	Error    Field = "error"
)

// Verb is what is done to it.
type Verb string

// The verbs. Set is not written for the field to, nor as for outcome.
const (
	Drop   Verb = "drop"
	Negate Verb = "negate"
	Set    Verb = "set"
	Add    Verb = "add"
)

// form says how many texts a verb of a field takes: least and most.
type form struct{ least, most int }

var (
	expression = map[Verb]form{Drop: {0, 1}, Negate: {0, 1}, Set: {1, 1}}
	list       = map[Verb]form{Drop: {1, 1}, Set: {2, 2}, Add: {1, 1}}
	value      = map[Verb]form{Drop: {0, 0}, Set: {1, 1}}
	presence   = map[Verb]form{Drop: {0, 0}}

	forms = map[Field]map[Verb]form{
		Row: presence, From: {Drop: {1, 1}, Set: {1, 1}}, Guard: expression, Refuse: presence, Defer: presence, Before: list, With: list,
		Command: value, Then: presence, When: expression, Do: list, ThenWith: list, Emit: list, Code: value, Return: value, Error: value,
		To: {Set: {1, 1}}, Outcome: {Set: {2, 2}},
	}
)

// ofTarget reports whether the field is one of a target.
func (f Field) ofTarget() bool {
	switch f {
	case Then, To, When, Do, ThenWith, Emit, Code, Return, Error:
		return true
	}
	return false
}

// field is the field as it is written.
func (p Patch) field() string {
	if !p.Field.ofTarget() || p.Target == Only {
		return string(p.Field)
	}
	at := fmt.Sprintf("then[%d]", p.Target)
	switch p.Field {
	case Then:
		return at
	case ThenWith:
		return at + ".with"
	}
	return at + "." + string(p.Field)
}

// String writes the patch so that [Parse] reads it back.
func (p Patch) String() string {
	s := p.Machine + "/" + p.Row + ": " + p.field()
	switch p.Field {
	case To:
		return s + " " + word(p.New)
	case Outcome:
		return s + " " + p.Part + " as " + p.New
	}
	s += " " + string(p.Verb)
	f := forms[p.Field][p.Verb]
	if p.Part != "" && (f.most == 2 || p.Verb != Set && p.Verb != Add) {
		s += " " + strconv.Quote(p.Part)
	}
	if p.Verb == Set || p.Verb == Add {
		s += " " + strconv.Quote(p.New)
	}
	if p.Nth > 0 {
		s += " nth " + strconv.Itoa(p.Nth+1)
	}
	return s
}

// word quotes a name unless it can stand alone.
func word(s string) string {
	if q := strconv.Quote(s); s == "" || strings.ContainsAny(s, " \t`") || q != `"`+s+`"` {
		return q
	}
	return s
}

// maxText bounds a patch's text, in bytes.
const maxText = 8 << 10

// Parse reads the text of a patch. It knows the words of patches, not those of
// rules: [Apply] does. Errors name the nearest word that there is.
func Parse(text string) (Patch, error) {
	p := Patch{Target: Only}
	if len(text) > maxText {
		return p, fmt.Errorf("a patch of %d bytes: at most %d", len(text), maxText)
	}
	if !utf8.ValidString(text) {
		return p, errors.New("a patch that is not UTF-8")
	}
	where, what, ok := strings.Cut(text, ":")
	p.Machine, p.Row, _ = strings.Cut(strings.TrimSpace(where), "/")
	if !ok || !named(p.Machine) || !named(p.Row) {
		return p, fmt.Errorf("%q: want MACHINE/ROW: FIELD VERB …", text)
	}
	words, err := split(what)
	if err != nil {
		return p, fmt.Errorf("%q: %w", text, err)
	}
	if err := p.parse(words); err != nil {
		return p, fmt.Errorf("%s/%s: %w", p.Machine, p.Row, err)
	}
	return p, nil
}

func named(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' || r == '/' })
}

// token is a word, quoted or bare.
type token struct {
	text   string
	quoted bool
}

func split(s string) ([]token, error) {
	var out []token
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimLeft(s, " \t") {
		if s[0] == '"' || s[0] == '`' {
			q, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, fmt.Errorf("a quote that does not end: %s", s)
			}
			text, err := strconv.Unquote(q)
			if err != nil || !utf8.ValidString(text) {
				return nil, fmt.Errorf("%s: not a quoted text", q)
			}
			out, s = append(out, token{text, true}), s[len(q):]
			continue
		}
		n := strings.IndexAny(s, " \t")
		if n < 0 {
			n = len(s)
		}
		out, s = append(out, token{s[:n], false}), s[n:]
	}
	return out, nil
}

func (p *Patch) parse(words []token) error {
	if len(words) == 0 {
		return fmt.Errorf("what of it? want one of %q", fieldNames())
	}
	if err := p.parseField(words[0].text); err != nil {
		return err
	}
	name := p.field()
	words = words[1:]
	if n := len(words); n > 2 && !words[n-2].quoted && words[n-2].text == "nth" {
		nth, err := strconv.Atoi(words[n-1].text)
		if err != nil || nth < 2 || nth > 999 {
			return fmt.Errorf("%s: nth %s: want a number from 2", name, words[n-1].text)
		}
		p.Nth, words = nth-1, words[:n-2]
	}
	switch p.Field {
	case To:
		p.Verb = Set
	case Outcome:
		if len(words) != 3 || words[1].text != "as" {
			return errors.New("outcome: want outcome A as B")
		}
		p.Verb, words = Set, []token{words[0], words[2]}
		for _, w := range words {
			if _, err := machine.ParseOutcome(w.text); err != nil {
				return errors.New(machine.Unknown("outcome", w.text, outcomes()))
			}
		}
	default:
		verbs := forms[p.Field]
		if len(words) == 0 {
			return fmt.Errorf("%s what? want one of %q", name, verbNames(verbs))
		}
		p.Verb = Verb(words[0].text)
		if _, ok := verbs[p.Verb]; !ok {
			return fmt.Errorf("%s: %s", name, machine.Unknown("verb", words[0].text, verbNames(verbs)))
		}
		words = words[1:]
	}
	f := forms[p.Field][p.Verb]
	if len(words) < f.least || len(words) > f.most {
		return fmt.Errorf("%s %s: %d texts: want %s", name, p.Verb, len(words), between(f))
	}
	for _, w := range words {
		if w.text == "" {
			return fmt.Errorf("%s %s: an empty text", name, p.Verb)
		}
	}
	switch {
	case len(words) == 2:
		p.Part, p.New = words[0].text, words[1].text
	case len(words) == 1 && (p.Verb == Set || p.Verb == Add):
		p.New = words[0].text
	case len(words) == 1:
		p.Part = words[0].text
	}
	if p.Nth > 0 && (p.Part == "" || p.Field == Outcome || p.Field == From) {
		return fmt.Errorf("%s %s: nth of what?", name, p.Verb)
	}
	return nil
}

func between(f form) string {
	if f.least == f.most {
		return strconv.Itoa(f.least)
	}
	return fmt.Sprintf("%d to %d", f.least, f.most)
}

func (p *Patch) parseField(name string) error {
	rest, ok := strings.CutPrefix(name, "then[")
	if !ok {
		p.Field = Field(name)
		if _, known := forms[p.Field]; !known || p.Field == Then {
			return errors.New(machine.Unknown("field", name, fieldNames()))
		}
		return nil
	}
	number, field, ok := strings.Cut(rest, "]")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || n > 99 || strconv.Itoa(n) != number {
		return fmt.Errorf("%s: want then[N], counted from 0", name)
	}
	p.Target, p.Field = n, Then
	if field == "" {
		return nil
	}
	of := []string{}
	for f := range forms {
		if f.ofTarget() && f != Then {
			of = append(of, strings.TrimPrefix(string(f), "then."))
		}
	}
	field = strings.TrimPrefix(field, ".")
	if !slices.Contains(of, field) {
		return fmt.Errorf("then[%d]: %s", n, machine.Unknown("field", field, of))
	}
	if p.Field = Field(field); p.Field == With {
		p.Field = ThenWith
	}
	return nil
}

func fieldNames() []string {
	var out []string
	for f := range forms {
		if f != Then {
			out = append(out, string(f))
		}
	}
	slices.Sort(out)
	return out
}

func verbNames(m map[Verb]form) []string {
	var out []string
	for v := range m {
		out = append(out, string(v))
	}
	slices.Sort(out)
	return out
}

func outcomes() []string {
	var out []string
	for o := range machine.Outcome(machine.NumOutcomes) {
		out = append(out, o.String())
	}
	return out
}
