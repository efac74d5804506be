package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Hash identifies what rules do. Texts for readers and layout do not count:
// a Definition's Doc and Source, and how an expression is spaced. An opaque
// function counts only as being there, so two Definitions with different
// functions may have equal hashes; [Rules.Opaque] tells.
type Hash [16]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash is the inverse of [Hash.String].
func ParseHash(s string) (Hash, error) {
	var h Hash
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("hash %q: want %d hexadecimal digits", s, 2*len(h))
	}
	copy(h[:], b)
	return h, nil
}

// Opaque reports whether some machine of the rules is opaque.
func (r *Rules) Opaque() bool {
	for _, m := range r.machines {
		if m.Opaque() {
			return true
		}
	}
	return false
}

// Hash identifies one machine's rules. It is made when it is first asked for.
func (m *Machine) Hash() Hash {
	m.hashed.Do(func() {
		d := sha256.New()
		writeMachine(d, m)
		copy(m.hash[:], d.Sum(nil))
	})
	return m.hash
}

func hashRules(r *Rules) Hash {
	d := sha256.New()
	for _, m := range r.machines {
		writeMachine(d, m)
	}
	var h Hash
	copy(h[:], d.Sum(nil))
	return h
}

// writeMachine writes a machine in one spelling: every list with its length,
// every text quoted, expressions printed from their trees.
func writeMachine(w io.Writer, m *Machine) {
	d := m.def
	put := func(parts ...string) {
		for i, p := range parts {
			if i > 0 {
				io.WriteString(w, " ")
			}
			io.WriteString(w, strconv.Quote(p))
		}
		io.WriteString(w, "\n")
	}
	list := func(what string, n int) { put(what, strconv.Itoa(n)) }
	facts := func(fs []Fact) {
		list("facts", len(fs))
		for _, f := range fs {
			t, _ := ParseType(f.Type)
			put(f.Name, t.String())
		}
	}
	put("machine", d.Name, d.Pool)
	list("states", len(d.States))
	for _, s := range d.States {
		put(s.Name, strconv.FormatBool(s.Terminal), strconv.FormatBool(s.Kept))
	}
	list("events", len(d.Events))
	for _, e := range d.Events {
		put(e.Name)
		facts(e.Args)
	}
	facts(d.Facts)
	put("identity", strings.Join(d.Identity, " "))
	list("views", len(d.Views))
	for _, v := range d.Views {
		put(v.Name, spellExpr(v.Expr))
	}
	list("rows", len(d.Rows))
	for i := range d.Rows {
		r := &d.Rows[i]
		put(r.ID, r.From, r.Event, spellExpr(r.Guard), string(r.Refuse), strconv.FormatBool(r.Defer), spellUpdates(r.Before), spellCall(r.Command))
		put(append([]string{"with"}, spellCalls(r.With)...)...)
		put("opaque", strconv.FormatBool(r.GuardFunc != nil), strconv.FormatBool(r.DoFunc != nil))
		list("then", len(r.Then))
		for _, t := range r.Then {
			put(strings.Join(strings.Fields(t.On), " "), spellExpr(t.When), t.To, spellUpdates(t.Do), spellExpr(t.Code), spellExpr(t.Return), string(t.Error))
			put(append([]string{"with"}, spellCalls(t.With)...)...)
			put(append([]string{"emit"}, spellCalls(t.Emit)...)...)
		}
	}
}

func spellExpr(text string) string {
	if e, err := ParseExpr(text); text != "" && err == nil {
		return e.String()
	}
	return strings.TrimSpace(text)
}

func spellUpdates(text string) string {
	us, err := ParseUpdates(text)
	if err != nil {
		return text
	}
	return FormatUpdates(us)
}

func spellCall(text string) string {
	if c, err := ParseInvocation(text); text != "" && err == nil {
		return c.String()
	}
	return text
}

func spellCalls(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = spellCall(t)
	}
	return out
}
