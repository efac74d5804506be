package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a file of definitions.
const (
	// MaxDefinitionBytes bounds the file.
	MaxDefinitionBytes = 8 << 20
	// maxDefinitionDepth is deeper than any Definition.
	maxDefinitionDepth = 16
	// maxDefinitionParts bounds states, events, facts, views, rows and targets
	// together: an empty one takes two bytes of a file and many of memory.
	maxDefinitionParts = 1 << 17
)

// FileError says what is wrong with a file of definitions and where.
type FileError struct {
	// Offset counts bytes from the start; Line and Column count from 1, the
	// column in bytes.
	Offset       int64
	Line, Column int
	// Pointer is the JSON pointer (RFC 6901) of the value that is wrong, such
	// as /rows/3/guard.
	Pointer string
	Msg     string
}

// Error returns "line:column: pointer: message".
func (e *FileError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
	}
	return fmt.Sprintf("%d:%d: %s: %s", e.Line, e.Column, e.Pointer, e.Msg)
}

// ErrOpaque is matched by the error of [AppendJSON] for a Definition with a Go
// function in it.
const ErrOpaque Reason = "a Go function has no JSON form"

// LoadDefinitions reads Definitions from JSON: one object, or a list of them.
// It is strict: a member that is unknown, doubled or null, or of another type
// than it should be, is a [*FileError]; so is a file of more than
// [MaxDefinitionBytes]. Whether a Definition makes sense is for [Compile] to say.
func LoadDefinitions(r io.Reader) ([]*Definition, error) {
	f, err := readFile(r)
	if err != nil {
		return nil, err
	}
	return f.pointers(), nil
}

// LoadRules reads Definitions as [LoadDefinitions] does and compiles them. Each
// [DefinitionError] has the place of its row, or of its machine, in the file.
func LoadRules(r io.Reader) (*Rules, error) {
	f, err := readFile(r)
	if err != nil {
		return nil, err
	}
	rules, err := Compile(f.pointers()...)
	if err != nil {
		f.locate(err)
		return nil, err
	}
	return rules, nil
}

// AppendJSON appends Definitions to dst in the form that [LoadDefinitions]
// reads: one as an object, several as a list. Loading gives Definitions of the
// same hash. A Definition with a Go function is refused with a
// [*DefinitionError] for the row, which matches [ErrOpaque].
func AppendJSON(dst []byte, defs ...*Definition) ([]byte, error) {
	for i, d := range defs {
		for j := range d.Rows {
			r := &d.Rows[j]
			if r.GuardFunc != nil || r.DoFunc != nil {
				return dst, &DefinitionError{Machine: d.Name, Row: r.ID, Msg: string(ErrOpaque), reason: ErrOpaque, machine: i, row: j}
			}
		}
	}
	var v any = defs
	if len(defs) == 1 {
		v = defs[0]
	}
	out := bytes.NewBuffer(dst)
	if err := json.MarshalWrite(out, v, json.OmitZeroStructFields(true), jsontext.WithIndent("  ")); err != nil {
		return dst, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// definitionFile is a file of definitions and where its parts are.
type definitionFile struct {
	data []byte
	defs []Definition
	// at has the offset of each Definition, rows those of its rows.
	at    []int64
	rows  [][]int64
	parts int
}

func (f *definitionFile) pointers() []*Definition {
	out := make([]*Definition, len(f.defs))
	for i := range f.defs {
		out[i] = &f.defs[i]
	}
	return out
}

// locate gives every DefinitionError in a joined error its place.
func (f *definitionFile) locate(err error) {
	switch e := err.(type) {
	case *DefinitionError:
		e.Offset = f.at[e.machine]
		if e.row >= 0 {
			e.Offset = f.rows[e.machine][e.row]
		}
		e.Line, e.Column = f.position(e.Offset)
	case interface{ Unwrap() []error }:
		for _, x := range e.Unwrap() {
			f.locate(x)
		}
	}
}

// position returns the line and column of an offset.
func (f *definitionFile) position(offset int64) (line, column int) {
	before := f.data[:min(int(offset), len(f.data))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

func (f *definitionFile) fault(offset int64, pointer jsontext.Pointer, format string, args ...any) error {
	e := &FileError{Offset: offset, Pointer: string(pointer), Msg: fmt.Sprintf(format, args...)}
	e.Line, e.Column = f.position(offset)
	return e
}

func readFile(r io.Reader) (*definitionFile, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxDefinitionBytes+1))
	if err != nil {
		return nil, err
	}
	f := &definitionFile{data: data}
	if len(data) > MaxDefinitionBytes {
		return nil, f.fault(MaxDefinitionBytes, "", "the file has more than %d bytes", MaxDefinitionBytes)
	}
	if err := f.grammar(); err != nil {
		return nil, err
	}
	opts := json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *Definition) error {
			f.at, f.rows = append(f.at, f.start(d)), append(f.rows, nil)
			return f.part()
		}),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *Row) error {
			last := len(f.rows) - 1
			f.rows[last] = append(f.rows[last], f.start(d))
			return f.part()
		}),
		json.UnmarshalFromFunc(func(*jsontext.Decoder, *State) error { return f.part() }),
		json.UnmarshalFromFunc(func(*jsontext.Decoder, *Event) error { return f.part() }),
		json.UnmarshalFromFunc(func(*jsontext.Decoder, *Fact) error { return f.part() }),
		json.UnmarshalFromFunc(func(*jsontext.Decoder, *View) error { return f.part() }),
		json.UnmarshalFromFunc(func(*jsontext.Decoder, *Target) error { return f.part() }),
	)))
	if data = bytes.TrimLeft(data, " \t\r\n"); data[0] == '[' {
		err = json.Unmarshal(f.data, &f.defs, opts)
	} else {
		f.defs = make([]Definition, 1)
		err = json.Unmarshal(f.data, &f.defs[0], opts)
	}
	if err != nil {
		return nil, f.explain(err)
	}
	return f, nil
}

// grammar checks that the file is JSON that is not too deep and has no null in
// it, and that no object names a member twice.
func (f *definitionFile) grammar() error {
	d := jsontext.NewDecoder(bytes.NewReader(f.data))
	for n := 0; ; n++ {
		tok, err := d.ReadToken()
		switch {
		case err == io.EOF && n == 0:
			return f.fault(0, "", "the file is empty")
		case err == io.EOF:
			return nil
		case err != nil:
			return f.explain(err)
		case d.StackDepth() > maxDefinitionDepth:
			return f.fault(d.InputOffset()-1, "", "nested more than %d deep", maxDefinitionDepth)
		case tok.Kind() == 'n':
			return f.fault(d.InputOffset()-4, d.StackPointer(), "null: leave the member out")
		}
	}
}

// start returns the offset of the value that is read next.
func (f *definitionFile) start(d *jsontext.Decoder) int64 {
	at := d.InputOffset()
	for int(at) < len(f.data) && strings.IndexByte(" \t\r\n,:", f.data[at]) >= 0 {
		at++
	}
	return at
}

// part counts one and leaves it to be read as usual.
func (f *definitionFile) part() error {
	if f.parts++; f.parts > maxDefinitionParts {
		return fmt.Errorf("more than %d states, events, facts, views, rows and targets", maxDefinitionParts)
	}
	return errors.ErrUnsupported
}

// explain words an error of the JSON library.
func (f *definitionFile) explain(err error) error {
	var syntax *jsontext.SyntacticError
	var meaning *json.SemanticError
	switch {
	case errors.As(err, &meaning):
		if errors.Is(meaning.Err, json.ErrUnknownName) {
			name := meaning.JSONPointer.LastToken()
			return f.fault(meaning.ByteOffset, meaning.JSONPointer, "%s", Unknown("member", name, members(meaning.GoType)))
		}
		if meaning.Err != nil {
			return f.fault(meaning.ByteOffset, meaning.JSONPointer, "%v", meaning.Err)
		}
		return f.fault(meaning.ByteOffset, meaning.JSONPointer, "want %s, not %s", wanted(meaning.GoType), given(meaning.JSONKind))
	case errors.As(err, &syntax):
		msg := syntax.Err.Error()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			msg = "the file ends too early"
		case errors.Is(err, jsontext.ErrDuplicateName):
			msg = "a member that is there already"
		}
		return f.fault(syntax.ByteOffset, syntax.JSONPointer, "%s", msg)
	}
	return err
}

// members lists the names that a struct has in JSON.
func members(t reflect.Type) []string {
	var out []string
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			out = append(out, name)
		}
	}
	return out
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

func given(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "a " + k.String()
}
