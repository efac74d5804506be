package translog

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"

	"github.com/runfence/runfence/machine"
)

// Format is an encoding of the log's schema.
type Format uint8

// The encodings.
const (
	// Binary is compact and quick: frames with a checksum each.
	Binary Format = iota
	// JSONLines is a line of JSON an entry, with everything by name.
	JSONLines
)

// String returns the name that [ParseFormat] reads.
func (f Format) String() string {
	switch f {
	case Binary:
		return "binary"
	case JSONLines:
		return "json"
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// ParseFormat reads "binary" or "json".
func ParseFormat(s string) (Format, error) {
	switch s {
	case "binary":
		return Binary, nil
	case "json":
		return JSONLines, nil
	}
	return 0, fmt.Errorf("%s", machine.Unknown("log format", s, []string{"binary", "json"}))
}

// spelling turns entries into bytes. It remembers which sites it has spelled.
type spelling struct {
	names  *names
	format Format
	// sites has the number of each site, counting from 1; texts is its inverse.
	sites map[string]uint32
	texts []string
	body  []byte
}

func newSpelling(f Format, h *Header) (*spelling, error) {
	if f != Binary && f != JSONLines {
		return nil, fmt.Errorf("translog: unknown format %d", f)
	}
	if h.Schema != Schema {
		return nil, &SchemaError{Version: uint64(h.Schema)}
	}
	if h.names == nil {
		if err := h.compile(); err != nil {
			return nil, fmt.Errorf("translog: %w", err)
		}
	}
	return &spelling{names: h.names, format: f, sites: map[string]uint32{}}, nil
}

// text writes an entry that encoding/json spells.
func (s *spelling) text(b []byte, v any) ([]byte, error) {
	object, err := marshal(v)
	if err != nil {
		return b, fmt.Errorf("translog: %w", err)
	}
	return s.line(b, object), nil
}

func (s *spelling) line(b, object []byte) []byte {
	if s.format == Binary {
		return appendTextFrame(b, object)
	}
	return appendTextLine(b, object)
}

func (s *spelling) header(b []byte, h *Header) ([]byte, error) {
	lines, err := h.lines()
	if err != nil {
		return b, fmt.Errorf("translog: %w", err)
	}
	if s.format == Binary {
		b = appendPreamble(b)
	}
	for _, l := range lines {
		b = s.line(b, l)
	}
	return b, nil
}

type worldLine struct {
	Kind   string `json:"kind"`
	Number int    `json:"world"`
	World
}

type gapLine struct {
	Kind   string `json:"kind"`
	Number int    `json:"world"`
	First  uint64 `json:"seq"`
	Count  uint64 `json:"count"`
}

type endLine struct {
	Kind    string `json:"kind"`
	Records uint64 `json:"records"`
	Dropped uint64 `json:"dropped,omitempty"`
}

func (s *spelling) world(b []byte, number int, w World) ([]byte, error) {
	return s.text(b, worldLine{Kind: WorldEntry.String(), Number: number, World: w})
}

// gap and end hold nothing that could fail to marshal.
func (s *spelling) gap(b []byte, world int, g Gap) []byte {
	b, _ = s.text(b, gapLine{Kind: GapEntry.String(), Number: world, First: g.First, Count: g.Count})
	return b
}

func (s *spelling) end(b []byte, e End) []byte {
	b, _ = s.text(b, endLine{Kind: EndEntry.String(), Records: e.Records, Dropped: e.Dropped})
	return b
}

func (s *spelling) repeat(b []byte, world int, r *Repeat) []byte {
	if s.format == Binary {
		return appendRepeatFrame(b, world, r)
	}
	return appendRepeatLine(b, world, r)
}

// site returns the number of a site, 0 if it is empty or beyond what a log
// holds. A site that is new to a binary log gets its frame.
func (s *spelling) site(b []byte, text string) ([]byte, uint32) {
	if text == "" {
		return b, 0
	}
	if n, ok := s.sites[text]; ok {
		return b, n
	}
	if len(text) > maxSite || len(s.texts) == maxSites || checkText(text) != nil {
		return b, 0
	}
	s.texts = append(s.texts, text)
	n := uint32(len(s.texts))
	s.sites[text] = n
	if s.format == Binary {
		b = appendSiteFrame(b, text)
	}
	return b, n
}

// record writes a record, given its body.
func (s *spelling) record(b []byte, world int, rec *machine.Record, site uint32, body []byte) []byte {
	if s.format == Binary {
		return appendRecordFrame(b, world, rec.Seq, rec.Time, body)
	}
	text := ""
	if site > 0 {
		text = s.texts[site-1]
	}
	return s.names.appendRecordLine(b, world, rec, text)
}

// again writes a record of which only the body, Seq and Time are at hand.
func (s *spelling) again(b []byte, world int, seq uint64, time int64, body []byte) []byte {
	if s.format == Binary {
		return appendRecordFrame(b, world, seq, time, body)
	}
	rec := machine.Record{Seq: seq, Time: time}
	c := cursor{b: body}
	site := c.readBody(&rec)
	return s.record(b, world, &rec, site, body)
}

// siteText returns "file:line" for a program counter, or "".
func siteText(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if f.File == "" {
		return ""
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

// Encoder writes entries as they are given: for tools that convert or filter
// logs. To record, use a [Writer]. An Encoder is for one goroutine.
type Encoder struct {
	w   io.Writer
	s   *spelling
	buf []byte
	err error
}

// NewEncoder starts a log with the header. Nothing is written to w before the
// first Flush, or before more than 64 KiB are due.
func NewEncoder(w io.Writer, f Format, h *Header) (*Encoder, error) {
	s, err := newSpelling(f, h)
	if err != nil {
		return nil, err
	}
	e := &Encoder{w: w, s: s}
	e.buf, err = s.header(nil, h)
	return e, err
}

// Encode writes one entry. Record.Site does not count; e.Site does. The error
// is that of the writer, or says that the entry is none.
func (e *Encoder) Encode(x *Entry) error {
	if e.err != nil {
		return e.err
	}
	if x.World < 0 || x.World > math.MaxInt32 {
		return fmt.Errorf("translog: no world %d", x.World)
	}
	switch x.Kind {
	case WorldEntry:
		if e.buf, e.err = e.s.world(e.buf, x.World, x.Opened); e.err != nil {
			return e.err
		}
	case RecordEntry:
		var site uint32
		e.buf, site = e.s.site(e.buf, x.Site)
		e.s.body = appendBody(e.s.body[:0], &x.Record, site)
		e.buf = e.s.record(e.buf, x.World, &x.Record, site, e.s.body)
	case RepeatEntry:
		e.buf = e.s.repeat(e.buf, x.World, &x.Repeat)
	case GapEntry:
		e.buf = e.s.gap(e.buf, x.World, x.Gap)
	case EndEntry:
		e.buf = e.s.end(e.buf, x.End)
	default:
		return fmt.Errorf("translog: entry of kind %d", x.Kind)
	}
	if len(e.buf) > maxEntry {
		return e.Flush()
	}
	return nil
}

// Flush hands everything to the writer.
func (e *Encoder) Flush() error {
	if e.err != nil || len(e.buf) == 0 {
		return e.err
	}
	_, e.err = e.w.Write(e.buf)
	e.buf = e.buf[:0]
	return e.err
}

// Convert copies a log from one encoding to the other, or to the same. What it
// could read is written even if the log turns out to be torn or corrupt, which
// is the error then.
func Convert(dst io.Writer, f Format, src io.Reader) error {
	r, err := NewReader(src)
	if err != nil {
		return err
	}
	e, err := NewEncoder(dst, f, r.Header())
	if err != nil {
		return err
	}
	var x Entry
	for {
		switch err := r.Next(&x); {
		case err == io.EOF:
			return e.Flush()
		case err != nil:
			if ferr := e.Flush(); ferr != nil {
				return ferr
			}
			return err
		}
		if err := e.Encode(&x); err != nil {
			return err
		}
	}
}
