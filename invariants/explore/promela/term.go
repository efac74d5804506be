package promela

import (
	"slices"
	"strconv"
	"strings"
)

// term is a value as an expression over the state before a step: a number
// that is known, or Promela text that is safe inside any other expression.
type term struct {
	text  string
	known bool
	value int64
}

func number(v int64) term {
	return term{text: strconv.FormatInt(v, 10), known: true, value: v}
}

func truth(b bool) term {
	if b {
		return number(1)
	}
	return number(0)
}

// named is a number that has a name.
func named(name string, v int64) term { return term{text: name, known: true, value: v} }

// written is a term of Promela text, which is a number if it reads as one.
func written(text string) term {
	text = strings.TrimSpace(text)
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number(v)
	}
	return term{text: "(" + text + ")"}
}

func not(a term) term {
	if a.known {
		return truth(a.value == 0)
	}
	if rest, is := strings.CutPrefix(a.text, "!"); is {
		return term{text: rest}
	}
	return term{text: "!" + a.text}
}

// all is true if each of the terms is.
func all(ts ...term) term { return joined(ts, " && ", 0) }

// anyOf is true if one of the terms is.
func anyOf(ts ...term) term { return joined(ts, " || ", 1) }

// joined joins terms by an operator that one term of value decides.
func joined(ts []term, op string, decides int64) term {
	var parts []string
	for i, t := range ts {
		contrary := func(o term) bool { return !t.known && o.text == not(t).text }
		switch {
		case t.known && truth(t.value != 0).value == decides, slices.ContainsFunc(ts[:i], contrary):
			return number(decides)
		case !t.known:
			parts = append(parts, t.text)
		}
	}
	switch len(parts) {
	case 0:
		return number(1 - decides)
	case 1:
		return term{text: parts[0]}
	}
	return term{text: "(" + strings.Join(parts, op) + ")"}
}

func equal(a, b term) term {
	if a.known && b.known {
		return truth(a.value == b.value)
	}
	if a.text == b.text {
		return number(1)
	}
	return term{text: "(" + a.text + " == " + b.text + ")"}
}

func less(a, b term) term {
	if a.known && b.known {
		return truth(a.value < b.value)
	}
	return term{text: "(" + a.text + " < " + b.text + ")"}
}

func plus(a term, n int64) term {
	if a.known {
		return number(a.value + n)
	}
	if n < 0 {
		return term{text: "(" + a.text + " - " + strconv.FormatInt(-n, 10) + ")"}
	}
	return term{text: "(" + a.text + " + " + strconv.FormatInt(n, 10) + ")"}
}

func sum(a, b term) term {
	switch {
	case b.known:
		return plus(a, b.value)
	case a.known:
		return plus(b, a.value)
	}
	return term{text: "(" + a.text + " + " + b.text + ")"}
}

// either is a if the condition holds, else b.
func either(cond, a, b term) term {
	switch {
	case cond.known && cond.value != 0, a.text == b.text:
		return a
	case cond.known:
		return b
	}
	return term{text: "(" + cond.text + " -> " + a.text + " : " + b.text + ")"}
}
