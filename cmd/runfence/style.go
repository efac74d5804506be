package main

import (
	"errors"
	"strings"

	"github.com/runfence/runfence/machine"
)

// style colours text, or not.
type style struct{ on bool }

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) dim(text string) string    { return s.paint("2", text) }
func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }
func (s style) cyan(text string) string   { return s.paint("36", text) }

// option is the value of a flag that takes one of a few words.
type option struct {
	value string
	what  string
	words []string
}

// String implements pflag.Value.
func (o *option) String() string { return o.value }

// Set implements pflag.Value.
func (o *option) Set(s string) error {
	for _, w := range o.words {
		if w == s {
			o.value = s
			return nil
		}
	}
	return errors.New(machine.Unknown(o.what, s, o.words))
}

// Type implements pflag.Value.
func (o *option) Type() string { return strings.Join(o.words, "|") }

// styled decides on colours: what the flag says; or else only a terminal gets
// them, and only if NO_COLOR is not set.
func (a *app) styled() style {
	switch a.color.value {
	case "always":
		return style{on: true}
	case "never":
		return style{}
	}
	return style{on: a.terminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}
