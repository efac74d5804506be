package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/runfence/runfence/backend"
	"github.com/runfence/runfence/machine"
)

// verb is one command of the language. The tables of verbs are what parses
// them, what their errors are worded from, and what docs/scenarios.md is held
// against.
type verb struct {
	// name is one word, or two for a verb of a group: "dev record".
	name   string
	params []param
	// open verbs take any NAME=VALUE besides: the arguments of an event.
	open bool
	// sim verbs need the simulated device.
	sim bool
	run func(s *session, c *call) error
}

// param is a parameter of a verb.
type param struct {
	name string
	kind kind
	// place is for the parameters that are given by place, not as NAME=VALUE.
	place bool
	need  bool
	words []string                      // of kind word
	from  func(*machine.Rules) []string // more of them
	max   uint64                        // of kind count and size; 0 means 65535
}

// kind is what a parameter's value must look like.
type kind uint8

const (
	toggle   kind = iota // given or not
	name                 // of something in the script
	word                 // one of a few
	count                // a number from 0
	duration             // "40us"
	code                 // a return code, by number or name
	text                 // anything
	names                // several
)

// call is a command line that was understood.
type call struct {
	*verb
	line int
	// args are the values by parameter; a flag is "".
	args map[string]string
	list []string // of kind names
	// more are the arguments of an open verb, in the order given.
	more []datadriven.CmdArg
}

// words of the verb and what it is about, as they begin its answer.
func (c *call) String() string {
	if c.open {
		return c.name + " " + c.args["instance"] + " " + c.args["event"]
	}
	for _, p := range c.params {
		if v := c.args[p.name]; p.place && v != "" && p.kind == name {
			return c.name + " " + v
		}
	}
	return c.name
}

func (c *call) has(p string) bool { _, ok := c.args[p]; return ok }

// str returns a parameter's value, or or if it was not given.
func (c *call) str(p, or string) string {
	if v, ok := c.args[p]; ok {
		return v
	}
	return or
}

// num, dur and code return values that were checked when the line was read.
func (c *call) num(p string, or uint64) uint64 {
	if v, ok := c.args[p]; ok {
		or, _ = strconv.ParseUint(v, 10, 64)
	}
	return or
}

func (c *call) dur(p string, or time.Duration) time.Duration {
	if v, ok := c.args[p]; ok {
		or, _ = parseDuration(v)
	}
	return or
}

func (c *call) code(p string, or backend.Code) backend.Code {
	if v, ok := c.args[p]; ok {
		or, _ = parseCode(v)
	}
	return or
}

// parse understands a command line. The rules give the words for machines,
// events and commands.
func parse(text string, rules *machine.Rules) (*call, error) {
	if isPatch(text) {
		return nil, errLatePatch
	}
	head, args, err := datadriven.ParseLine(strings.ReplaceAll(text, "\t", " "))
	if err != nil {
		return nil, err
	}
	if known := group(head); known != nil {
		if len(args) == 0 || args[0].Vals != nil {
			return nil, fmt.Errorf("%s what? want one of %q", head, known)
		}
		if !slices.Contains(known, args[0].Key) {
			return nil, errors.New(machine.Unknown("verb after "+head, args[0].Key, known))
		}
		head, args = head+" "+args[0].Key, args[1:]
	}
	v := verbs[head]
	if v == nil {
		return nil, errors.New(machine.Unknown("verb", head, firstWords()))
	}
	c := &call{verb: v, args: map[string]string{}}
	places := 0
	for _, a := range args {
		p, err := v.find(a, &places)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		if p == nil {
			if slices.ContainsFunc(c.more, func(m datadriven.CmdArg) bool { return m.Key == a.Key }) {
				return nil, fmt.Errorf("%s: %s is given twice", v.name, a.Key)
			}
			c.more = append(c.more, a)
			continue
		}
		if c.has(p.name) {
			return nil, fmt.Errorf("%s: %s is given twice", v.name, p.name)
		}
		value := strings.Join(a.Vals, ",")
		switch {
		case p.kind == toggle && a.Vals != nil:
			return nil, fmt.Errorf("%s: %s takes no value", v.name, p.name)
		case p.kind == names:
			for _, v := range a.Vals {
				c.list = append(c.list, strings.FieldsFunc(v, func(r rune) bool { return r == ',' })...)
			}
		case p.place && a.Vals == nil:
			value = a.Key
		}
		if err := p.check(value, rules); err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		c.args[p.name] = value
	}
	for _, p := range v.params {
		if p.need && !c.has(p.name) {
			return nil, fmt.Errorf("%s: %s is missing; usage: %s", v.name, p.name, v.usage())
		}
	}
	return c, nil
}

// find returns the parameter that an argument is for, or nil for an argument
// of an event. A bare word is a flag or, if none has its name, the next
// parameter by place.
func (v *verb) find(a datadriven.CmdArg, places *int) (*param, error) {
	for i := range v.params {
		p := &v.params[i]
		if p.name == a.Key && (a.Vals != nil || p.kind == toggle) {
			return p, nil
		}
	}
	var known []string
	if a.Vals == nil {
		for _, p := range v.params {
			if p.name == a.Key && !p.place {
				return nil, fmt.Errorf("%s wants a value: %s=…", a.Key, a.Key)
			}
		}
		n := 0
		for i := range v.params {
			switch p := &v.params[i]; {
			case p.place:
				if n++; n > *places {
					*places = n
					return p, nil
				}
			case p.kind == toggle:
				known = append(known, p.name)
			}
		}
		if len(known) == 0 {
			return nil, fmt.Errorf("%q is one word too many; usage: %s", a.Key, v.usage())
		}
		return nil, errors.New(machine.Unknown("word", a.Key, known))
	}
	if v.open {
		return nil, nil
	}
	for _, p := range v.params {
		if p.kind != toggle && !p.place {
			known = append(known, p.name)
		}
	}
	return nil, errors.New(machine.Unknown("argument", a.Key, known))
}

// usage is the verb with its parameters.
func (v *verb) usage() string {
	s := v.name
	for _, p := range v.params {
		u := p.name
		switch {
		case p.place:
			u = strings.ToUpper(u)
		case p.kind != toggle:
			u += "=…"
		}
		if !p.need {
			u = "[" + u + "]"
		}
		s += " " + u
	}
	if v.open {
		s += " [ARGUMENT=…]"
	}
	return s
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)

// check says what is wrong with a value.
func (p *param) check(v string, rules *machine.Rules) error {
	switch p.kind {
	case name:
		if !nameForm.MatchString(v) {
			return fmt.Errorf("%s %q: want a name: a letter, then letters, digits and _ . -, at most 32", p.name, v)
		}
	case word:
		known := p.words
		if p.from != nil {
			known = append(slices.Clone(known), p.from(rules)...)
		}
		if !slices.Contains(known, v) {
			return errors.New(machine.Unknown(p.name, v, known))
		}
	case count:
		most := p.max
		if most == 0 {
			most = 65535
		}
		if n, err := strconv.ParseUint(v, 10, 64); err != nil || n > most {
			return fmt.Errorf("%s=%s: want a number from 0 to %d", p.name, v, most)
		}
	case duration:
		if _, err := parseDuration(v); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	case code:
		if _, err := parseCode(v); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

const maxDuration = 24 * time.Hour

// parseDuration reads a duration in Go's form, from 0 to a day.
func parseDuration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > maxDuration {
		return 0, fmt.Errorf("%q: want a duration from 0 to 24h, such as 40us", v)
	}
	return d, nil
}

// codeNames are the names of return codes without what all begin with.
var codeNames = func() map[string]backend.Code {
	m := map[string]backend.Code{}
	for _, c := range []backend.Code{
		backend.InvalidParam, backend.InvalidHandle, backend.ContextNull, backend.StreamContext, backend.TaskAbort,
		backend.StreamCaptured, backend.FeatureNotSupported, backend.OutOfMemory, backend.InternalError,
		backend.AICoreTimeout, backend.AICoreException, backend.AICPUTimeout, backend.AICPUException,
		backend.StreamSyncTimeout, backend.EventSyncTimeout, backend.DriverInternalError,
	} {
		m[c.ShortName()] = c
	}
	return m
}()

// parseCode reads a return code, by number or by name.
func parseCode(v string) (backend.Code, error) {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return backend.Code(n), nil
	}
	if c, ok := codeNames[strings.TrimPrefix(v, "ACL_ERROR_RT_")]; ok {
		return c, nil
	}
	var known []string
	for n := range codeNames {
		known = append(known, n)
	}
	return 0, errors.New(machine.Unknown("code", v, known))
}

// verbs are all of them, by name.
var verbs = map[string]*verb{}

func init() {
	for _, table := range [][]verb{deviceVerbs, rawVerbs, laneVerbs, referenceVerbs, environmentVerbs, latchVerbs, holdVerbs, pureVerbs, inspectVerbs, workerVerbs, packetVerbs, bufferVerbs, retentionVerbs, modelVerbs} {
		for i := range table {
			verbs[table[i].name] = &table[i]
		}
	}
}

// group returns the verbs of a group by their second word, nil if it is none.
func group(head string) []string {
	var out []string
	for n := range verbs {
		if first, second, two := strings.Cut(n, " "); two && first == head {
			out = append(out, second)
		}
	}
	slices.Sort(out)
	return out
}

func firstWords() []string {
	var out []string
	for n := range verbs {
		first, _, _ := strings.Cut(n, " ")
		if !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}
